"""The card of what limits the cluster: sentences, classes in order, and their curves.

What limits the cluster as the sliders stand, once they rest, and the curves of its classes.
"""

from __future__ import annotations

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
from designer.shell import ids
from designer.shell.markup import CONFIG, attributes, heading
from designer.shell.request import callback
from designer.views.solve.live import Newest
from designer.views.whatif.answering import (
    Standing,
    curves,
    first_curves,
    limits_answered,
    standing,
)
from widgets.charts.comparison import LOOKS
from widgets.charts.rates import rates_figure

Json = Mapping[str, Any]

TODAY = {
    "drawing": State(ids.CANVAS, "drawing"),
    "request": State(ids.REQUEST, "data"),
    "before": State(ids.WHATIF_TODAY, "data"),
}
"""What the sliders start from: what is drawn and asked, and what is known of it."""

MOST_WORDS = 4
"""Sentences that are read; the others are folded."""


def limits_card() -> html.Section:
    """Return the card before anything is known."""
    return html.Section(
        [
            heading("What limits this cluster"),
            html.Div(limits(None, marks={}, chosen=()), id=ids.WHATIF_LIMITS, role="status"),
            html.Div(
                [
                    html.Div(
                        "Best rate over the bandwidth of a class, all else as the sliders stand",
                        className="ds-note",
                    ),
                    dcc.Graph(
                        id=ids.WHATIF_PLOT,
                        config=CONFIG,
                        responsive=True,
                        style={"height": 210},
                        className="ds-wif-plot",
                    ),
                    html.Div(id=ids.WHATIF_PLOT_NOTE, className="ds-note"),
                ],
                id=ids.WHATIF_PLOT_BOX,
                hidden=True,
                className="ds-wif-curve",
            ),
        ],
        className="ds-wif-card",
        **attributes(aria_label="What limits this cluster"),
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
    more = (
        [html.Details([html.Summary("More"), *said[MOST_WORDS:]], className="ds-fold")]
        if len(said) > MOST_WORDS
        else []
    )
    return [
        html.Div([*said[:MOST_WORDS], *more], className="ds-wif-said"),
        html.Table(
            [
                html.Caption("Classes of links, what gives most first", className="ds-unseen"),
                html.Thead(
                    html.Tr(
                        [
                            html.Th("Curve", scope="col"),
                            html.Th("1 % more gives", scope="col"),
                            html.Th("1 % less costs", scope="col"),
                        ]
                    )
                ),
                html.Tbody(
                    [
                        _row(each, marks.get(each["key"], 0), each["key"] in chosen)
                        for each in found["rows"]
                    ]
                ),
            ],
            className="ds-wif-table",
        ),
    ]


def _row(row: Json, mark: int, shown: bool) -> html.Tr:
    light, dark = (
        LOOKS[scheme].lines[mark % len(LOOKS[scheme].lines)] for scheme in ("light", "dark")
    )
    button = html.Button(
        [
            html.I(
                style={"--light": light, "--dark": dark},
                className="ds-wif-dot",
                **attributes(aria_hidden="true"),
            ),
            html.Span(row["words"]),
        ],
        id={"whatif-class": row["key"]},
        type="button",
        className="ds-wif-class",
        title="Draw the curve of this class, or take it away",
        **attributes(aria_pressed=str(shown).lower()),
    )
    return html.Tr([html.Th(button, scope="row"), _effect(row["more"]), _effect(row["less"])])


def _effect(share: float) -> html.Td:
    """Write what a share of bandwidth does, with a bar that is full where the rate follows."""
    words = text.share(share / 100) if share > _NOTHING else "nothing"
    bar = html.Span(html.I(style={"width": f"{min(share, 1):.1%}"}), className="ds-track")
    return html.Td([words, bar])


_NOTHING = 1e-7


def register(app: Dash) -> None:
    """Wire the card."""
    _limits(app)
    _curves(app)
    app.clientside_callback(
        ClientsideFunction("whatif", "choose"),
        Output(ids.WHATIF_CHOSEN, "data"),
        Input({"whatif-class": ALL}, "n_clicks"),
        State({"whatif-class": ALL}, "aria-pressed"),
        prevent_initial_call=True,
    )


def _limits(app: Dash) -> None:
    newest = Newest()

    # Nothing that has the answer among its inputs may wait for it, as with the figures.
    @app.callback(
        inputs={"settled": Input(ids.WHATIF_SETTLED, "data")},
        state={**TODAY},
        prevent_initial_call=True,
    )
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
            "plot_figure": Output(ids.WHATIF_PLOT, "figure"),
            "plot_note": Output(ids.WHATIF_PLOT_NOTE, "children"),
            "plot_box_hidden": Output(ids.WHATIF_PLOT_BOX, "hidden"),
        },
        inputs={
            "told": Input(ids.WHATIF_LIMITED, "data"),
            "chosen": Input(ids.WHATIF_CHOSEN, "data"),
            "scheme": Input(ids.SCHEME_NOW, "data"),
        },
        state={"settled": State(ids.WHATIF_SETTLED, "data"), **TODAY},
        prevent_initial_call=True,
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
