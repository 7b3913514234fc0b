"""Saving what a view shows: by the ending of a file's name, told options by name.

`save` knows no view; a view that can be saved is a `Saving`, which says what it holds. A comparison
is saved as a page, a chart, or all of it as JSON (`comparison_file`).
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ccl.errors import FormatError
from ccl.options import make_options, option_fields
from ccl.problem import Problem
from ccl.result import Result
from ccl.serialization.documents import Document, document
from ccl.serialization.text import write_bytes
from ccl.topology import Topology
from formulations.analyses.comparison import Comparison, comparison_to_json
from interchange.formats import catalogue
from interchange.formats.format import NoOptions, Writer
from interchange.formats.own.fragment import HOME, Share, link_of
from widgets.pages.writers import WRITERS, PageOptions
from widgets.print.style import ChartOptions, ChartPixelOptions


def comparison_file(comparison: Comparison, ending: str, options: Mapping[str, Any]) -> bytes:
    """Return the content of a file.

    Parameters
    ----------
    comparison
        What was found.
    ending
        ``html``, ``svg``, ``png``, ``pdf`` or ``json``.
    options
        By name: of a page `widgets.pages.writers.PageOptions`, of a chart
        `widgets.print.style.ChartOptions`.

    Raises
    ------
    FormatError
        If a comparison is not written so, has no such option, or the chart is too large.
    ProblemError
        If a value is out of range.
    """
    if ending not in _WRITERS:
        endings = ", ".join(f".{each}" for each in _WRITERS)
        raise FormatError(
            f"a comparison is not written as .{ending}; end the name with one of {endings}"
        )
    kind, write = _WRITERS[ending]
    return write(comparison, parsed_options(kind, options, f"a comparison as .{ending}"))


def parsed_options(kind: type, options: Mapping[str, Any], what: str) -> Any:
    """Make the options of something from those that were given by name.

    Raises
    ------
    FormatError
        If one is unknown; it lists those that there are.
    """
    known = [row.name for row in option_fields(kind)]
    strange = next((name for name in options if name not in known), None)
    if strange is not None:
        raise FormatError(
            f"{what} has no option {strange!r}; there are {', '.join(known) or 'none'}"
        )
    return make_options(kind, options)


def _page(comparison: Comparison, options: PageOptions) -> bytes:
    from widgets.pages.comparison import comparison_html  # noqa: PLC0415 - it loads Plotly

    return comparison_html(comparison, theme=options.theme).encode()


def _chart(ending: str) -> Callable[[Comparison, Any], bytes]:
    def write(comparison: Comparison, options: ChartOptions) -> bytes:
        # matplotlib is loaded here
        from widgets.print.film import pixels_of  # noqa: PLC0415
        from widgets.print.painter import pdf, svg  # noqa: PLC0415
        from widgets.print.plots import comparison_picture  # noqa: PLC0415

        chart = comparison_picture(
            comparison,
            quantity=options.quantity,
            style=options.style,
            width=options.pixels,
            font=options.letters,
        )
        if isinstance(options, ChartPixelOptions):
            return pixels_of(chart, scale=options.scale)
        return pdf(chart) if ending == "pdf" else svg(chart, column=options.column).encode()

    return write


def _json(comparison: Comparison, _options: NoOptions) -> bytes:
    return json.dumps(comparison_to_json(comparison), separators=(",", ":")).encode()


_WRITERS: Mapping[str, tuple[type, Callable[[Comparison, Any], bytes]]] = {
    "html": (PageOptions, _page),
    "svg": (ChartOptions, _chart("svg")),
    "png": (ChartPixelOptions, _chart("png")),
    "pdf": (ChartOptions, _chart("pdf")),
    "json": (NoOptions, _json),
}


Content = Topology | Problem | Result | Document
"""What can be saved."""

_OWN = {"json": "topoloom", "py": "python"}
"""Endings of formats that are no pictures."""


class Saving:
    """A view with `save` and `html`; its class says in `_held` what they write."""

    # Widgets have a metaclass of their own, which that of `ABC` would not go with.
    @abstractmethod
    def _held(self) -> Content:
        """Return what is shown, with its positions."""

    def save(self, path: str | Path, **options: Any) -> Path:
        """Write what is shown into a file, in the format of its ending; see `save`.

        >>> player.save("step-3.svg", style="paper", epoch=3)  # doctest: +SKIP
        """
        return save(self._held(), path, **options)

    def link(self, *, at: str = HOME) -> str:
        """Return a link that opens it in the designer; see the function `link`."""
        return link(self._held(), at=at)

    def html(self, **options: Any) -> str:
        """Return a page of its own that shows the same from disk; see `html`."""
        return html(self._held(), **options)


def save(content: Content | Comparison, path: str | Path, **options: Any) -> Path:
    """Write a cluster, a plan or a comparison into a file, in the format of its ending.

    Parameters
    ----------
    content
        What is written; a document brings positions of its own.
    path
        Its ending is ``html``, ``svg``, ``png``, ``pdf``, ``gif``, ``webm``, ``json`` or ``py``;
        of a comparison one of the first four or ``json``.
    **options
        Those of the format (`widgets.print.style`): ``style="paper"``, ``width=640`` pixels or
        in print ``column=85`` mm and ``points=8``, ``time=12.5`` µs or ``epoch=3``; of a page
        ``theme="dark"``.

    Returns
    -------
        Where it is.

    Raises
    ------
    FormatError
        If nothing is written with such an ending, or the format cannot say what is there.
    ProblemError
        If a value of an option is out of range.
    """
    file = Path(path)
    write_bytes(file, _made(content, file, options))
    return file


def html(content: Content | Comparison, **options: Any) -> str:
    """Return a page that shows the same from disk; errors as `save`.

    Parameters
    ----------
    content
        As for `save`.
    **options
        Of the page: ``theme="light"``.
    """
    return _made(content, Path("page.html"), options).decode()


def link(content: Content, *, at: str = HOME) -> str:
    """Return a link that opens a cluster and its question in the designer.

    Parameters
    ----------
    content
        What is shared; a plan is left out.
    at
        Address of the designer.

    Raises
    ------
    TooLarge
        If no link holds it; a file does.
    """
    found = content if isinstance(content, Document) else document(content)
    return link_of(Share.of(found), at=at)


def _made(content: Content | Comparison, path: Path, options: dict[str, Any]) -> bytes:
    """Return the content of a file."""
    if isinstance(content, Comparison):
        return comparison_file(content, path.suffix.lower().removeprefix("."), options)
    writer = writer_for(path)
    found = content if isinstance(content, Document) else document(content)
    return writer.write(found, parsed_options(writer.options, options, writer.title)).content


def writer_for(path: Path) -> Writer:
    """Return the writer for the ending of a file's name.

    Raises
    ------
    FormatError
        If there is none; it lists those that there are.
    """
    ending = path.suffix.lower().removeprefix(".")
    if ending in _OWN:
        return catalogue.writer(_OWN[ending])
    for each in WRITERS:
        if each.ending == ending:
            return each
    endings = ", ".join(f".{each}" for each in (*(one.ending for one in WRITERS), *_OWN))
    raise FormatError(
        f"{path} is in no format that is written here; end its name with one of {endings}"
    )
