"""Pictures and pages among the formats that are written (`ccl.formats.format`)."""

from __future__ import annotations

from ccl.errors import FormatError
from ccl.formats.documents import Document
from ccl.formats.format import NoOptions, Writer, Written, one_file, replayed
from ccl.layout import layout
from widgets.export import standalone_html
from widgets.scene import cuts, drawing, scene


def write_page(content: Document, _options: NoOptions) -> Written:
    """Write a page that shows the drawing and, if there is a plan, plays it."""
    places = {**layout(content.topology), **content.positions}
    drawn = drawing(content.topology, places)
    played = None if content.plan is None else scene(*replayed(content))
    proved = () if content.result is None else cuts(content.result.bounds)
    try:
        return one_file(standalone_html(drawn, played, proved), ending="html")
    except ImportError as error:
        raise FormatError(str(error)) from None  # the canvas was not built, and it says how


WRITERS = (
    Writer(
        name="html",
        title="Page that plays, from disk",
        ending="html",
        needs="topology",
        write=write_page,
    ),
)
