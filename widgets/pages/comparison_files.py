"""A comparison as a file: a page, a chart, or all of it as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ccl.errors import FormatError
from ccl.options import make_options, option_fields
from formulations.analyses.comparison import Comparison, comparison_to_json
from interchange.formats.format import NoOptions
from widgets.pages.writers import PageOptions
from widgets.pictures.options import ChartOptions, ChartPixelOptions


def comparison_file(comparison: Comparison, ending: str, options: Mapping[str, Any]) -> bytes:
    """Return the content of a file.

    Parameters
    ----------
    comparison
        What was found.
    ending
        ``html``, ``svg``, ``png`` or ``json``.
    options
        By name: of a page `widgets.pages.writers.PageOptions`, of a chart
        `widgets.pictures.options.ChartOptions`.

    Raises
    ------
    FormatError
        If a comparison is not written so, has no such option, or the chart is too large.
    ProblemError
        If a value is out of range.
    """
    if ending not in _WRITERS:
        endings = ", ".join(f".{each}" for each in _WRITERS)
        msg = f"a comparison is not written as .{ending}; end the name with one of {endings}"
        raise FormatError(msg)
    kind, write = _WRITERS[ending]
    return write(comparison, told(kind, options, f"a comparison as .{ending}"))


def told(kind: type, options: Mapping[str, Any], what: str) -> Any:
    """Make the options of something from those that were given by name.

    Raises
    ------
    FormatError
        If one is unknown; it lists those that there are.
    """
    known = [row.name for row in option_fields(kind)]
    strange = next((name for name in options if name not in known), None)
    if strange is not None:
        msg = f"{what} has no option {strange!r}; there are {', '.join(known) or 'none'}"
        raise FormatError(msg)
    return make_options(kind, options)


def _page(comparison: Comparison, options: PageOptions) -> bytes:
    from widgets.pages.comparison import comparison_html  # noqa: PLC0415 - it loads Plotly

    return comparison_html(comparison, theme=options.theme).encode()


def _svg(comparison: Comparison, options: ChartOptions) -> bytes:
    from widgets.pictures.svg import svg  # noqa: PLC0415

    return svg(_chart(comparison, options), column=options.column).encode()


def _png(comparison: Comparison, options: ChartPixelOptions) -> bytes:
    from widgets.pictures.making import pixels_of  # noqa: PLC0415 - it loads Pillow

    return pixels_of(_chart(comparison, options), scale=options.scale)


def _chart(comparison: Comparison, options: ChartOptions) -> Any:
    from widgets.pictures.charts import comparison_picture  # noqa: PLC0415 - it loads Plotly

    return comparison_picture(
        comparison,
        quantity=options.quantity,
        style=options.style,
        width=options.pixels,
        font=options.letters,
    )


def _json(comparison: Comparison, _options: NoOptions) -> bytes:
    return json.dumps(comparison_to_json(comparison), separators=(",", ":")).encode()


_WRITERS: Mapping[str, tuple[type, Callable[[Comparison, Any], bytes]]] = {
    "html": (PageOptions, _page),
    "svg": (ChartOptions, _svg),
    "png": (ChartPixelOptions, _png),
    "json": (NoOptions, _json),
}
