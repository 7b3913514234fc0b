"""Pictures, films and pages among the formats that are written (`interchange.formats.format`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from ccl.errors import FormatError
from ccl.layout import layout
from ccl.serialization.documents import Document
from interchange.formats.format import Writer, Written, one_file, replayed
from widgets.pages.player import standalone_html
from widgets.pictures.options import FilmOptions, PixelOptions, StillOptions
from widgets.shown.scene import cuts, drawing, scene


@dataclass(frozen=True, kw_only=True)
class PageOptions:
    """Of a page."""

    theme: Literal["auto", "light", "dark"] = field(
        default="auto",
        metadata={"label": "Theme", "help": "auto is as the reader's browser asks for."},
    )


def write_page(content: Document, options: PageOptions) -> Written:
    """Write a page that shows the drawing and, if there is a plan, plays it."""
    places = {**layout(content.topology), **content.positions}
    drawn = drawing(content.topology, places)
    played = None if content.plan is None else scene(*replayed(content))
    proved = () if content.result is None else cuts(content.result.bounds)
    try:
        return one_file(standalone_html(drawn, played, proved, theme=options.theme), ending="html")
    except ImportError as error:
        raise FormatError(str(error)) from None  # the canvas was not built, and it says how


def _painted(name: str) -> Callable[[Document, Any], Written]:
    """Return the writer called so; its painter loads Pillow, which waits until one is used."""

    def write(content: Document, options: Any) -> Written:
        from widgets.pictures.making import PAINTERS  # noqa: PLC0415 - as said

        return PAINTERS[name](content, options)

    return write


WRITERS = (
    Writer(
        name="html",
        title="Page that plays, from disk",
        ending="html",
        needs="topology",
        write=write_page,
        options=PageOptions,
    ),
    Writer(
        name="svg",
        title="Picture, SVG",
        ending="svg",
        needs="topology",
        write=_painted("svg"),
        options=StillOptions,
    ),
    Writer(
        name="png",
        title="Picture, PNG",
        ending="png",
        needs="topology",
        write=_painted("png"),
        options=PixelOptions,
    ),
    Writer(
        name="gif",
        title="Animation, GIF",
        ending="gif",
        needs="plan",
        write=_painted("gif"),
        options=FilmOptions,
    ),
    Writer(
        name="webm",
        title="Animation, WebM",
        ending="webm",
        needs="plan",
        write=_painted("webm"),
        options=FilmOptions,
    ),
)
