"""The sliders: size, counts of the gallery's cluster, and each class of links.

A slider of bandwidth, latency or size is logarithmic: its value is the binary logarithm of the
number beside it, which is what counts and may be typed as well (`assets/whatif.js` keeps the two
in step).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import html

from ccl.serialization.quantity import KINDS
from designer.shell import ids
from designer.shell.markup import attributes
from designer.shell.quantities import LINK_QUANTITIES
from designer.views.whatif.knobs import Knob
from widgets import QuantityField

REACH = 2.0
"""Doublings that a slider goes up and down: from a quarter to four times of today."""
STEP = 0.05
"""Doublings from one place of a slider to the next: 3.5 %."""
MOST_KNOBS = 12
"""Classes of links with sliders at first sight; the others are folded."""
LEAST_SIZE, MOST_SIZE = 3.0, 10.2
"""Decimal logarithms of 1 KB and of 16 GB."""
COUNTS = 4
"""Times as many hosts that a slider goes up to."""
LEAST_REACH = 8
"""Up to which it goes at least."""


def form(
    knobs: Sequence[Knob], counts: Mapping[str, int], *, size: float | None, size_words: str
) -> list[Any]:
    """Return the rows.

    Parameters
    ----------
    knobs
        Classes of links and of limits.
    counts
        Whole-number arguments of the gallery's cluster, by name.
    size
        Of the collective in bytes; None where it cannot be moved.
    size_words
        The same as it is typed.
    """
    rows: list[Any] = [_size(size, size_words)] if size else []
    rows += [_count(name, value) for name, value in counts.items()]
    shown = [_knob(each) for each in knobs]
    rows += shown[:MOST_KNOBS]
    if len(shown) > MOST_KNOBS:
        more = len(shown) - MOST_KNOBS
        words = f"{more} more kind{'' if more == 1 else 's'} of links"
        folded = [html.Summary(words), *shown[MOST_KNOBS:]]
        rows.append(html.Details(folded, className="ds-fold ds-wif-more"))
    return rows


def key(part: str, what: Any, of: Any) -> dict[str, Any]:
    """Return the id of a part of a row.

    Parameters
    ----------
    part
        ``slide``, ``number`` or ``by``, which says how far it is moved.
    what
        ``bandwidth``, ``alpha`` or ``count``.
    of
        Key of the knob, or name of the argument.
    """
    return {"part": part, "what": what, "of": of}


def _knob(knob: Knob) -> html.Div:
    rows = [_row("bandwidth", knob.key, knob.bandwidth, of=knob.title)]
    if knob.alpha is not None:
        rows.append(_row("alpha", knob.key, knob.alpha, of=knob.title))
    head = html.Div([html.B(knob.title), html.Small(knob.many)], className="ds-wif-name")
    return html.Div(
        [head, *rows], className="ds-wif-knob", role="group", **attributes(aria_label=knob.title)
    )


def _row(what: str, of_key: str, value: float, *, of: str) -> html.Div:
    """Return a slider with its number; where there is no latency there is only a number."""
    words = f"{what.capitalize()} of {of}"
    slider: Any = html.Span(className="ds-wif-none")
    if value > 0:
        middle = math.log2(value)
        slider = dmc.Slider(
            id=key("slide", what, of_key),
            value=middle,
            min=middle - REACH,
            max=middle + REACH,
            step=STEP,
            precision=6,
            marks=[{"value": middle}],
            thumbLabel=words,
            **_SLIDER,
        )
    number = QuantityField(
        id=key("number", what, of_key),
        value=value,
        debounce=350,
        hold=True,
        ariaLabel=f"{words}, {KINDS[LINK_QUANTITIES[what]['kind']].base}",
        className="ds-floating ds-leftward",
        **LINK_QUANTITIES[what],
    )
    return _line(what.capitalize(), slider, number, by=key("by", what, of_key))


def _count(name: str, value: int) -> html.Div:
    title = name.replace("_", " ").capitalize()
    top = max(COUNTS * value, LEAST_REACH)
    slider = dmc.Slider(
        id=key("slide", "count", name),
        value=value,
        min=min(1, value),
        max=top,
        step=1,
        marks=[{"value": value}],
        thumbLabel=title,
        **_SLIDER,
    )
    number = QuantityField(
        id=key("number", "count", name),
        kind="count",
        what=title.lower(),
        value=value,
        least=0,
        debounce=350,
        hold=True,
        ariaLabel=title,
        className="ds-floating ds-leftward",
    )
    return _line(title, slider, number, by=key("by", "count", name))


def _size(size: float, words: str) -> html.Div:
    slider = dmc.Slider(
        id=ids.WHATIF_SIZE_SLIDE,
        value=min(max(math.log10(size), LEAST_SIZE), MOST_SIZE),
        min=LEAST_SIZE,
        max=MOST_SIZE,
        step=0.1,
        thumbLabel="Size of the collective",
        **_SLIDER,
    )
    typed = QuantityField(
        id=ids.WHATIF_SIZE,
        kind="size",
        what="size",
        above=0,
        value=words,
        verbatim=True,
        hold=True,
        debounce=350,
        ariaLabel="Size of the collective, such as 1GB or 64 KiB",
        className="ds-floating ds-leftward",
    )
    return _line("Size", slider, typed)


def _line(label: str, slider: Any, number: Any, *, by: Any = None) -> html.Div:
    moved = html.Small(id=by, className="ds-wif-by") if by else None
    name = html.Span([label, moved], className="ds-wif-label", **attributes(aria_hidden="true"))
    return html.Div([name, slider, number], className="ds-wif-row")


_SLIDER: dict[str, Any] = {"updatemode": "drag", "label": None, "size": 4, "thumbSize": 16}
