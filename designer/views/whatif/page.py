"""The What-if view: sliders at the left, figures over the cut in the middle, questions right.

Today beside the change: the best rate, the bounds, and the cuts that hold them down. What limits
the cluster as the sliders stand, once they rest, and the curves of its classes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dash import (
    ALL,
    ClientsideFunction,
    Dash,
    Input,
    Output,
    State,
    dcc,
    html,
    no_update,
    set_props,
)

from ccl import text
from ccl.errors import CclError
from designer.server.sessions import visitor
from designer.shell import ids, ui
from designer.shell.request import callback, states
from designer.views.solve.live import Newest
from designer.views.whatif import study_cards
from designer.views.whatif.answering import (
    Standing,
    curves,
    first_curves,
    limits_answered,
    standing,
)
from designer.views.whatif.study_cards import budget_card, failure_cards
from widgets import TopologyCanvas
from widgets.charts.comparison import LOOKS
from widgets.charts.rates import rates_figure

Json = Mapping[str, Any]

MOST_CUTS = 4
"""Cuts with a button; the rest are counted."""
MOST_DIGITS = 15
"""Characters of a fraction that people still read."""
SAME = 1e-9
"""A change below this share is none."""


def figures(today: Json | None, now: Json | None) -> list[Any]:
    """Return the figures.

    Parameters
    ----------
    today, now
        As `designer.views.whatif.answering.answered` returns them; None before they are known.
    """
    if not now or now.get("trouble"):
        words = (now or {}).get("trouble") or "Move a slider, and the proved rate follows."
        return [html.P(words, className="ds-card ds-quiet ds-wif-trouble")]
    before = {} if not today or today.get("trouble") else today
    return [
        _card(
            "Best rate",
            text.bandwidth,
            (before.get("algbw"), now["algbw"]),
            note=_exactly(now),
            title=f"algbw, latencies aside. Proof: {now['proved_by']}.",
        ),
        _card(
            "Steady state, per call",
            text.duration,
            (before.get("each"), now["each"]),
            note=f"time for {text.size(now['size'])}, call after call",
            less=True,
        ),
        _card(
            "Single call, lower bound",
            text.duration,
            (before.get("once"), now["once"]),
            note=f"{now['once_by']}; latencies count" if now["once"] else now["once_by"],
            less=True,
        ),
    ]


def _exactly(now: Json) -> str:
    fraction = now["fraction"] or ""
    if not now["reached"]:
        return "no plan is faster; whether one is as fast is open"
    if "/" in fraction and len(fraction) <= MOST_DIGITS:
        return f"exactly {fraction} GB/s"
    return "proved, and a plan has it"


def _card(
    label: str,
    write: Any,
    values: tuple[float | None, float | None],
    *,
    note: str,
    less: bool = False,
    title: str | None = None,
) -> html.Div:
    before, after = values
    same = before is None or after is None or abs(after - before) <= SAME * before
    then = None if same else html.Span([write(before), " "], className="ds-wif-before")
    shown = write(after) if after is not None else text.NONE
    return ui.div(
        "ds-card ds-wif-figure",
        html.Span(label, className="ds-wif-what"),
        ui.div("ds-wif-value", then, html.B(shown)),
        _moved(before, after, write, less=less) if not same else _still(),
        html.Small(note, title=note),
        title=title,
    )


def _still() -> html.Span:
    return html.Span("as today", className="ds-wif-delta")


def _moved(before: Any, after: Any, write: Any, *, less: bool) -> html.Span:
    """Say by how much it has changed, in units and in per cent, and whether that is good."""
    up = after > before
    good = up is not less
    sign = "+" if up else "−"
    size = write(abs(after - before))
    share = text.digits(100 * abs(after / before - 1))
    tone = "ds-good" if good else "ds-bad"
    mark = html.I("▲" if up else "▼", **ui.attributes(aria_hidden="true"))
    return html.Span([mark, f"{sign}{size}, {sign}{share} %"], className=f"ds-wif-delta {tone}")


def cuts(now: Json | None, chosen: int | None, today: Json | None) -> list[Any]:
    """Return what holds the rate down, each tied cut with a button that draws it.

    Parameters
    ----------
    now, today
        As `designer.views.whatif.answering.answered` returns them.
    chosen
        Number of the cut on the canvas, or None.
    """
    if not now or now.get("trouble"):
        return []
    found: Sequence[Json] = now["cuts"]
    if not found:
        many = text.count(len(now["held"]), "link")
        words = f"No cut alone decides: {many} hold it down together" if now["held"] else ""
        return [html.Span(words or "No cut alone decides", className="ds-note")]
    title = "Bottleneck" if now["ties"] == 1 else f"{now['ties']} cuts tie"
    was = _was(now, today)
    more = now["ties"] - min(len(found), MOST_CUTS)
    return [
        html.Span(title, className="ds-wif-what"),
        *(_cut(each, number=i, pressed=i == chosen) for i, each in enumerate(found[:MOST_CUTS])),
        html.Small(f"and {more} more", className="ds-note") if more else None,
        html.Small(was, className="ds-note") if was else None,
    ]


def _was(now: Json, today: Json | None) -> str:
    before = [each["where"] for each in (today or {}).get("cuts", ())]
    if not before or before[0] in {each["where"] for each in now["cuts"]}:
        return ""
    return f"today {before[0]}"


def _cut(cut: Json, *, number: int, pressed: bool) -> html.Button:
    return ui.press(
        [ui.icon("cut"), cut["where"]],
        {"whatif-cut": number},
        "ds-layer ds-wif-cut",
        title="Draw it",
        aria_pressed=pressed,
    )


def applied() -> html.Div:
    """Say that the change is in the drawing, with the way back."""
    back = ui.press("Undo", {"whatif-undo": 0}, "ds-wif-link")
    return ui.div("ds-wif-done", ui.icon("check"), html.Span("The drawing has it now."), back)


NOTHING: dict[str, Any] = {
    "topology": {"name": "", "devices": [], "links": [], "limits": []},
    "positions": {},
}


def stores() -> list[Any]:
    """Return what the page keeps of the view."""
    return [
        *(dcc.Store(id=each) for each in (ids.WHATIF_TODAY, ids.WHATIF_REQUEST, ids.WHATIF_NOW)),
        dcc.Store(id=ids.WHATIF_CUT, data=0),
        *(dcc.Store(id=each) for each in (ids.WHATIF_SETTLED, ids.WHATIF_LIMITED)),
        *(
            dcc.Store(id=each)
            for each in (ids.WHATIF_CHOSEN, ids.WHATIF_PICKED, ids.WHATIF_SOLVING)
        ),
        *study_cards.stores(),
    ]


def pane() -> html.Div:
    """Return the whole view."""
    return ui.div("ds-pane ds-wif", _left(), _middle(), _right(), id=ids.WHATIF_PANE)


def _left() -> html.Div:
    return ui.div(
        "ds-wif-left",
        ui.div(
            "ds-wif-scroll",
            ui.heading("What if", html.Small("bandwidths of both directions", className="ds-note")),
            html.Div(id=ids.WHATIF_FORM, className="ds-wif-form"),
        ),
        ui.div("ds-wif-foot", _buttons(), html.Div(id=ids.WHATIF_STATUS, role="status")),
        role="group",
        aria_label="What to change",
    )


def _buttons() -> html.Div:
    return ui.div(
        "ds-wif-buttons",
        ui.button("Apply to the drawing", ids.WHATIF_APPLY, "check", size="sm", disabled=True),
        ui.button(
            "Solve this",
            ids.WHATIF_SOLVE,
            "play",
            size="sm",
            variant="default",
            aria_description="Applies it to the drawing first",
        ),
        ui.button("Reset", ids.WHATIF_RESET, size="sm", variant="default"),
    )


def _middle() -> html.Div:
    return ui.div(
        "ds-wif-middle",
        ui.div("ds-wif-figures", figures(None, None), id=ids.WHATIF_FIGURES, role="status"),
        ui.div(
            "ds-wif-stage",
            html.Div(id=ids.WHATIF_CUTS, className="ds-wif-cuts"),
            ui.div(
                "ds-wif-canvas",
                TopologyCanvas(
                    id=ids.WHATIF_CANVAS,
                    drawing=NOTHING,
                    cuts=[],
                    locked=True,
                    toolbar=False,
                    timeline=False,
                    theme="auto",
                    height="100%",
                ),
            ),
        ),
    )


def _right() -> html.Div:
    """Return the questions at the right, one kind at a time."""
    return ui.div(
        "ds-wif-right",
        ui.segments(
            ids.WHATIF_TAB,
            "Studies of the cluster as the sliders stand",
            {"limits": "What limits", "budget": "What to buy", "failing": "Failures"},
            fullWidth=True,
            className="ds-wif-tabs",
        ),
        ui.div(
            "ds-wif-cards",
            ui.div("ds-wif-tab", limits_card(), data_of="limits"),
            ui.div("ds-wif-tab", budget_card(), data_of="budget"),
            ui.div("ds-wif-tab", failure_cards(), data_of="failing"),
            id=ids.WHATIF_RIGHT,
            tabIndex=0,
            role="region",
            aria_label="Answers",
            data_tab="limits",
        ),
    )


TODAY = {**states("drawing", "request"), "before": State(ids.WHATIF_TODAY, "data")}
"""What the sliders start from: what is drawn and asked, and what is known of it."""

MOST_WORDS = 4
"""Sentences that are read; the others are folded."""


def limits_card() -> html.Section:
    """Return the card before anything is known."""
    return ui.headed(
        "What limits this cluster",
        html.Div(limits(None, marks={}, chosen=()), id=ids.WHATIF_LIMITS, role="status"),
        ui.div(
            "ds-wif-curve",
            ui.div(
                "ds-note",
                "Best rate over the bandwidth of a kind of links, all else as the sliders stand",
            ),
            ui.graph(ids.WHATIF_PLOT, style={"height": 210}, className="ds-wif-plot"),
            html.Div(id=ids.WHATIF_PLOT_NOTE, className="ds-note"),
            id=ids.WHATIF_PLOT_BOX,
            hidden=True,
        ),
        className="ds-wif-card",
    )


def limits(found: Json | None, *, marks: Mapping[str, int], chosen: Sequence[str]) -> Any:
    """Return the sentences and the classes.

    Parameters
    ----------
    found
        As `designer.views.whatif.answering.limits_answered` returns it.
    marks
        Number of the colour of each class, by key.
    chosen
        Keys of those whose curves are drawn.
    """
    if found is None:
        return html.P(
            "What a little more or less of each class does appears here.", className="ds-quiet"
        )
    if found.get("trouble"):
        return html.P(found["trouble"], className="ds-quiet")
    said = [html.P(each) for each in found["words"]]
    more = [ui.fold("More", *said[MOST_WORDS:])] if len(said) > MOST_WORDS else []
    return [
        ui.div("ds-wif-said", *said[:MOST_WORDS], *more),
        ui.table(
            "Kinds of links, what gives most first",
            "ds-wif-table",
            ["Curve", "1 % more gives", "1 % less costs"],
            [
                _class_row(each, marks.get(each["key"], 0), each["key"] in chosen)
                for each in found["rows"]
            ],
        ),
    ]


def _class_row(row: Json, mark: int, shown: bool) -> html.Tr:
    light, dark = (
        LOOKS[scheme].lines[mark % len(LOOKS[scheme].lines)] for scheme in ("light", "dark")
    )
    draws = ui.press(
        [
            html.I(
                style={"--light": light, "--dark": dark},
                className="ds-wif-dot",
                **ui.attributes(aria_hidden="true"),
            ),
            html.Span(row["words"]),
        ],
        {"whatif-class": row["key"]},
        "ds-wif-class",
        title="Draw the curve of this kind of links, or take it away",
        aria_pressed=shown,
    )
    return html.Tr(
        [html.Th(draws, scope="row"), _class_effect(row["more"]), _class_effect(row["less"])]
    )


def _class_effect(share: float) -> html.Td:
    """Write what a share of bandwidth does, with a bar that is full where the rate follows."""
    words = text.share(share / 100) if share > _NOTHING else "nothing"
    bar = html.Span(html.I(style={"width": f"{min(share, 1):.1%}"}), className="ds-track")
    return html.Td([words, bar])


_NOTHING = 1e-7


def register(app: Dash) -> None:
    """Wire the card."""
    _on_limits(app)
    _curves(app)
    app.clientside_callback(
        ClientsideFunction("whatif", "choose"),
        Output(ids.WHATIF_CHOSEN, "data"),
        Input({"whatif-class": ALL}, "n_clicks"),
        State({"whatif-class": ALL}, "aria-pressed"),
    )


def _on_limits(app: Dash) -> None:
    newest = Newest()

    # Nothing that has the answer among its inputs may wait for it, as with the figures.
    @app.callback(inputs={"settled": Input(ids.WHATIF_SETTLED, "data")}, state={**TODAY})
    def on_settled(settled: dict[str, Any] | None, **today: Any) -> None:
        newer = newest.ask(settled, visitor=visitor()) if settled else None
        stands = _stands(settled, **today)
        if newer is None or stands is None:
            return
        told = None
        if not isinstance(stands.problem, str):
            told = limits_answered(stands.problem, stands.knobs)
        if newer():
            set_props(ids.WHATIF_LIMITED, {"data": told})


def _curves(app: Dash) -> None:
    @callback(
        app,
        output={
            "limits": Output(ids.WHATIF_LIMITS, "children"),
            "plot_figure": ui.figure(ids.WHATIF_PLOT),
            "plot_note": Output(ids.WHATIF_PLOT_NOTE, "children"),
            "plot_box_hidden": Output(ids.WHATIF_PLOT_BOX, "hidden"),
        },
        inputs={
            "told": Input(ids.WHATIF_LIMITED, "data"),
            "chosen": Input(ids.WHATIF_CHOSEN, "data"),
            "scheme": Input(ids.SCHEME_NOW, "data"),
        },
        state={"settled": State(ids.WHATIF_SETTLED, "data"), **TODAY},
    )
    def on_limited(
        told: Any, chosen: list[str] | None, scheme: str | None, **stood: Any
    ) -> dict[str, Any]:
        stands = _stands(**stood)
        if told is None or stands is None:
            empty = limits(None, marks={}, chosen=())
            return {"limits": empty, "plot_note": None, "plot_box_hidden": True}
        keys = chosen if chosen is not None else first_curves(told, stands)
        marks = {knob.key: i for i, knob in enumerate(stands.knobs)}
        panel = limits(told, marks=marks, chosen=keys)
        lines, why = ([], "") if told.get("trouble") else curves(stands, keys)
        figure = rates_figure(lines, scheme=scheme) if lines else no_update
        return {
            "limits": panel,
            "plot_figure": figure,
            "plot_note": why,
            "plot_box_hidden": not (lines or why),
        }


def _stands(
    settled: dict[str, Any] | None, drawing: Any, request: Any, before: Any
) -> Standing | None:
    """Return the cluster as the sliders stand, or None where there is none to speak of."""
    if not settled or not drawing or not before:
        return None
    try:
        return standing(drawing, request, before, settled["values"])
    except CclError:  # the figures say what is wrong
        return None
