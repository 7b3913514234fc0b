"""The card of what limits the cluster: sentences, classes in order, and their curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dash import dcc, html

from ccl import text
from designer.shell import ids
from designer.shell.charts import CONFIG
from designer.shell.markup import attributes, heading
from widgets.charts.comparison import LOOKS

Json = Mapping[str, Any]

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
        As `designer.views.whatif.limits.limits_told` returns it.
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
