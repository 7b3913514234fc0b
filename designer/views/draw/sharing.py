"""What of the page a link carries, and what a link changes on the page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ccl.errors import CclError
from ccl.options import make_options
from designer.shell.request import read_request
from designer.views.draw import exporting
from designer.views.draw.files import Opened, drawing_of, settings_of
from designer.views.solve import sketch
from formulations import formulation
from interchange.formats.own.fragment import Share, Solving, fragment_of, share_of

Json = dict[str, Any]


def solving_of(asked: Json | None) -> Solving | None:
    """Return how the header asks for a solve, None while a number in it is wrong."""
    try:
        request = read_request(asked)
    except CclError:  # the page says what is wrong with what is asked
        return None
    return Solving(
        formulation=request.formulation,
        options=dict(request.options),
        time_limit=request.time_limit,
        gap=request.gap,
    )


def fragment(drawing: Json, asked: Json | None) -> str:
    """Return what is drawn and asked as the fragment of a link.

    Raises
    ------
    TooLarge
        If no link holds it.
    CclError
        If the drawing is no topology.
    """
    return fragment_of(Share(exporting.content_of(drawing, asked, None), solving_of(asked)))


@dataclass(frozen=True, kw_only=True)
class Linked:
    """What a link changes.

    Parameters
    ----------
    opened
        The drawing, and what of the header the problem says.
    formulation
        Its name, or None where the link says none.
    options, sketches
        Of the formulation: what stands in its form, and what is drawn.
    limits
        Time limit in s and gap in per cent as their fields hold them.
    left_out
        What the page cannot show, in sentences.
    """

    opened: Opened
    formulation: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    sketches: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()


def linked(text: str) -> Linked:
    """Read the fragment of a link.

    Raises
    ------
    CclError
        If it was changed on its way, or what it holds means nothing.
    """
    share = share_of(text)
    found = share.document
    settings: dict[str, Any] = {}
    left_out: list[str] = []
    if found.problem is not None:
        settings = settings_of(found.problem)
        if found.problem.windows:
            left_out.append("times in which links have less bandwidth, which Python asks for")
    opened = Opened(drawing_of(found.topology, found.positions), settings)
    if share.solving is None:
        return Linked(opened=opened, left_out=tuple(left_out))
    try:
        make_options(formulation(share.solving.formulation).options, share.solving.options)
    except CclError as error:  # of another version of Topoloom
        left_out.append(f"how it is solved: {error}")
        return Linked(opened=opened, left_out=tuple(left_out))
    return _solved(opened, share.solving, tuple(left_out))


def _solved(opened: Opened, solving: Solving, left_out: tuple[str, ...]) -> Linked:
    """Take apart what stands in the form and what is drawn as a sketch."""
    options = {name: value for name, value in solving.options.items() if value is not None}
    drawn = options.pop(sketch.sketch_option(solving.formulation) or "", None)
    gap = solving.gap
    return Linked(
        opened=opened,
        formulation=solving.formulation,
        options=options,
        sketches=sketch.keep({}, solving.formulation, drawn),
        limits={
            "time_limit": "" if solving.time_limit is None else solving.time_limit,
            "gap": "" if gap is None else float(f"{gap * 100:.12g}"),
        },
        left_out=left_out,
    )
