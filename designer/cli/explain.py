"""``topoloom explain`` and ``diff``: plans in words, and what differs between two of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ccl.errors import FormatError
from ccl.explain import difference, report
from ccl.explain import explain as told_in_words
from ccl.explain.narration import PlanReport
from ccl.serialization.conditions import read_document
from designer.cli.request import JsonOption, print_json
from interchange.formats.format import replayed

PlanFile = Annotated[Path, typer.Argument(metavar="FILE", help="A result or plan document.")]


def explain(
    file: PlanFile,
    *,
    chunk: Annotated[
        int | None, typer.Option("--chunk", help="The path of this chunk.", show_default=False)
    ] = None,
    link: Annotated[
        str | None,
        typer.Option(
            "--link",
            metavar="SRC->DST",
            help="What this link carries, and where it is idle.",
            show_default=False,
        ),
    ] = None,
    rank: Annotated[
        int | None,
        typer.Option("--rank", help="What this rank gets and sends.", show_default=False),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option("--host", help="What enters and leaves this host.", show_default=False),
    ] = None,
) -> None:
    """Tell a plan in words: each send, what it waited for, what its makespan is made of."""
    told = _told(file)
    typer.echo(
        told_in_words(
            told.problem,
            told.plan,
            timeline=told.timeline,
            chunk=chunk,
            link=None if link is None else _ends(link),
            rank=rank,
            host=host,
        )
    )


def diff(
    first: Annotated[Path, typer.Argument(metavar="FIRST", help="A result or plan document.")],
    second: Annotated[Path, typer.Argument(metavar="SECOND", help="Another, of one problem.")],
    as_json: JsonOption = False,
) -> None:
    """Say what differs between two plans of one problem: sends, times, bytes of links."""
    names = (first.name, second.name) if first.name != second.name else (str(first), str(second))
    found = difference(_told(first), _told(second), names=names)
    if not as_json:
        typer.echo(found.text())
        return
    print_json(
        {
            "makespans_us": list(found.makespans),
            "parts_at_us": found.parts_at,
            "same": found.same,
            "rows": found.as_rows(),
            "links": [
                {"src": src, "dst": dst, "bytes": list(both)}
                for (src, dst), both in found.links.items()
            ],
        }
    )


def _told(file: Path) -> PlanReport:
    opened = read_document(file)
    try:
        return report(*replayed(opened))
    except FormatError as error:
        msg = f"{file}: {error}"
        raise FormatError(msg) from None


def _ends(link: str) -> tuple[str, str]:
    """Return the ends of a link as typed, such as ``g0->g1``.

    Raises
    ------
    FormatError
        If it has not two.
    """
    for arrow in ("->", "→"):
        src, found, dst = link.partition(arrow)
        if found and src.strip() and dst.strip():
            return src.strip(), dst.strip()
    msg = f"--link is {link!r}; write SRC->DST, such as g0->g1"
    raise FormatError(msg)
