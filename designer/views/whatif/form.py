"""The sliders: size, counts of the gallery's cluster, and each kind of links.

A slider of bandwidth, latency or size is logarithmic: its value is the binary logarithm of the
number beside it, which is what counts and may be typed as well (`assets/whatif.js` keeps the two
in step).

The What-if view: sliders in, figures and the cut out; into the drawing when asked.

The page keeps one question under way and the last one that waits (`assets/whatif.js`); what was
overtaken all the same is not answered.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import (
    ALL,
    MATCH,
    ClientsideFunction,
    Dash,
    Input,
    Output,
    State,
    ctx,
    html,
    no_update,
    set_props,
)

from ccl.errors import CclError
from ccl.serialization.quantity import KINDS, parse_size
from designer.server.sessions import visitor
from designer.session import topology_of
from designer.shell import ids, ui
from designer.shell import request as commands
from designer.shell.request import Json, callback
from designer.studies import Studies
from designer.views.solve.live import Newest
from designer.views.whatif import answering, page, study_callbacks
from designer.views.whatif.knobs import Knob, knobs_of
from widgets import QuantityField

REACH = 2.0
"""Doublings that a slider goes up and down: from a quarter to four times of today."""
STEP = 0.05
"""Doublings from one place of a slider to the next: 3.5 %."""
MOST_KNOBS = 12
"""Kinds of links with sliders at first sight; the others are folded."""
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
        Kinds of links and of limits.
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


def key(part: str, what: Any, of: Any) -> Json:
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
    head = ui.div("ds-wif-name", html.B(knob.title), html.Small(knob.many))
    return ui.div("ds-wif-knob", head, *rows, role="group", aria_label=knob.title)


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
        ariaLabel=f"{words}, {KINDS[ui.LINK_QUANTITIES[what]['kind']].base}",
        className="ds-floating ds-leftward",
        **ui.LINK_QUANTITIES[what],
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
    name = html.Span([label, moved], className="ds-wif-label", **ui.attributes(aria_hidden="true"))
    return ui.div("ds-wif-row", name, slider, number)


_SLIDER: Json = {"updatemode": "drag", "label": None, "size": 4, "thumbSize": 16}


VIEW = "whatif"


def register(app: Dash, studies: Studies) -> None:
    """Wire the What-if view."""
    _sliders(app)
    _today(app)
    _answer(app)
    _picture(app)
    _apply(app)
    page.register(app)
    study_callbacks.register(app, studies)


def _sliders(app: Dash) -> None:
    """Wire what happens in the page: sliders and numbers in step, one question at a time."""
    slide, number = (key(part, MATCH, MATCH) for part in ("slide", "number"))
    app.clientside_callback(
        ClientsideFunction("whatif", "step"),
        Output(slide, "value"),
        Output(number, "value"),
        Output(slide, "attributes"),
        Output(key("by", MATCH, MATCH), "children"),
        Input(slide, "value"),
        Input(number, "value"),
        State(slide, "min"),
        State(slide, "max"),
    )
    app.clientside_callback(
        ClientsideFunction("whatif", "size"),
        Output(ids.WHATIF_SIZE_SLIDE, "value"),
        Output(ids.WHATIF_SIZE, "value"),
        Output(ids.WHATIF_SIZE_SLIDE, "attributes"),
        Input(ids.WHATIF_SIZE_SLIDE, "value"),
        Input(ids.WHATIF_SIZE, "value"),
    )
    app.clientside_callback(
        ClientsideFunction("whatif", "ask"),
        Output(ids.WHATIF_REQUEST, "data"),
        Input(key("number", ALL, ALL), "value"),
        Input(ids.WHATIF_SIZE, "value"),
        Input(ids.WHATIF_TODAY, "data"),
    )


def _today(app: Dash) -> None:
    @callback(
        app,
        output={
            "form": Output(ids.WHATIF_FORM, "children"),
            "today": Output(ids.WHATIF_TODAY, "data"),
        },
        inputs={
            **commands.inputs("view", "problem"),
            "clicks": Input(ids.WHATIF_RESET, "n_clicks"),
        },
        state=page.TODAY,
    )
    def on_drawing(view: str, drawing: Any, request: Any, before: Any, **_: Any) -> Json:
        if view != VIEW or not drawing:
            return {}
        fresh = before is None or before["signature"] != answering.signature(drawing, request)
        if not fresh and ctx.triggered_id != ids.WHATIF_RESET:
            return {}
        try:
            now = answering.today(drawing, request) if fresh else before
            knobs = knobs_of(topology_of(drawing["topology"]))
        except CclError as error:
            now = {"signature": "", "origin": None, "counts": {}, "size": None}
            return {"form": None, "today": {**now, "answer": {"trouble": str(error)}}}
        return {
            "form": form(knobs, now["counts"], size=_bytes(request), size_words=now["size"]),
            "today": now,
        }


def _bytes(request: Json | None) -> float | None:
    """Return the bytes that the header asks for, or None where they cannot be moved."""
    if not request or request.get("collective") == "custom":
        return None
    try:
        return parse_size(str(request.get("size") or ""))
    except CclError:
        return None


def _answer(app: Dash) -> None:
    newest = Newest()

    # As with the optimum of the drawing, nothing that has the answer among its inputs may wait.
    @app.callback(
        inputs={"asked": Input(ids.WHATIF_REQUEST, "data")},
        state={**page.TODAY, "cut": State(ids.WHATIF_CUT, "data")},
    )
    def on_asked(asked: Json | None, drawing: Any, request: Any, before: Any, cut: Any) -> None:
        if not asked or not before or not drawing:
            return
        newer = newest.ask(asked, visitor=visitor())
        shown = asked.get("shown")
        found = answering.answer(drawing, request, before, asked["values"], chosen=shown)
        if newer():
            now = found["answer"]
            # The page may still hear of it after what is newer, so all of it goes with its number.
            panel = {
                "figures": page.figures(before["answer"], now),
                "cuts": page.cuts(now, cut, before["answer"]),
            }
            set_props(ids.WHATIF_NOW, {"data": {**found, "n": asked["n"], "panel": panel}})


def _picture(app: Dash) -> None:
    app.clientside_callback(
        ClientsideFunction("whatif", "picture"),
        Output(ids.WHATIF_CANVAS, "drawing"),
        Output(ids.WHATIF_CANVAS, "cuts"),
        Output(ids.WHATIF_APPLY, "disabled"),
        Output(ids.WHATIF_CANVAS, "marks"),
        Output(ids.WHATIF_FIGURES, "children"),
        Output(ids.WHATIF_CUTS, "children"),
        Input(ids.WHATIF_NOW, "data"),
        Input(ids.WHATIF_CUT, "data"),
        Input(ids.WHATIF_PICKED, "data"),
    )
    app.clientside_callback(
        ClientsideFunction("whatif", "cut"),
        Output(ids.WHATIF_CUT, "data"),
        Output({"whatif-cut": ALL}, "aria-pressed"),
        Input({"whatif-cut": ALL}, "n_clicks"),
        State(ids.WHATIF_CUT, "data"),
    )


def _apply(app: Dash) -> None:
    @callback(
        app,
        output={
            **commands.changes("drawing", "size", "command", "notes"),
            "status": Output(ids.WHATIF_STATUS, "children"),
            "solving": Output(ids.WHATIF_SOLVING, "data"),
        },
        inputs={
            "clicks": Input(ids.WHATIF_APPLY, "n_clicks"),
            "solve": Input(ids.WHATIF_SOLVE, "n_clicks"),
        },
        state={**page.TODAY, "asked": State(ids.WHATIF_REQUEST, "data")},
    )
    def on_apply(solve: int | None, asked: Any, drawing: Any, before: Any, **_: Any) -> Json:
        if not asked or not before or not drawing:
            return {}
        values = asked["values"]
        try:
            topology = answering.standing(drawing, None, before, values).topology
        except CclError as error:
            return {"notes": ui.note(str(error))}
        made = answering.redrawn(drawing, topology)
        fresh = len(made["topology"]["devices"]) != len(drawing["topology"]["devices"])
        moved = made["topology"] != drawing["topology"]
        return {
            "drawing": made if moved else no_update,
            "size": values.get("size") or no_update,
            "status": page.applied() if moved else None,
            "solving": solve if ctx.triggered_id == ids.WHATIF_SOLVE else no_update,
            "command": commands.fit() if fresh else no_update,
        }

    # The drawing and the request follow in the page within this time.
    app.clientside_callback(
        "(n) => { if (n) setTimeout(() => document.getElementById('solve')?.click(), 150); }",
        Input(ids.WHATIF_SOLVING, "data"),
    )

    @app.callback(
        commands.output(),
        Output(ids.WHATIF_STATUS, "children", allow_duplicate=True),
        Input({"whatif-undo": ALL}, "n_clicks"),
    )
    def on_undo(clicks: list[int | None]) -> tuple[Any, Any]:
        if not any(clicks):
            return no_update, no_update
        return commands.numbered({"name": "undo", "args": {}}), None
