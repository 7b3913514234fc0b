"""The What-if view: sliders at the left, figures over the cut in the middle, questions right."""

from __future__ import annotations

from typing import Any

import dash_mantine_components as dmc
from dash import dcc, html

from designer.shell import ids
from designer.shell.markup import attributes, heading, icon
from designer.views.whatif import figures, study_card
from designer.views.whatif.budget_card import budget_card
from designer.views.whatif.failing_card import failing_cards
from designer.views.whatif.limits_card import limits_card
from widgets import TopologyCanvas

NOTHING: dict[str, Any] = {
    "topology": {"name": "", "devices": [], "links": [], "limits": []},
    "positions": {},
}


def stores() -> list[Any]:
    """Return what the page keeps of the view."""
    return [
        *(dcc.Store(id=each) for each in (ids.WHATIF_TODAY, ids.WHATIF_ASKED, ids.WHATIF_NOW)),
        dcc.Store(id=ids.WHATIF_CUT, data=0),
        *(dcc.Store(id=each) for each in (ids.WHATIF_SETTLED, ids.WHATIF_LIMITED)),
        *(
            dcc.Store(id=each)
            for each in (ids.WHATIF_CHOSEN, ids.WHATIF_PICKED, ids.WHATIF_SOLVING)
        ),
        *study_card.stores(),
    ]


def pane() -> html.Div:
    """Return the whole view."""
    return html.Div(
        [_left(), _middle(), _right()],
        id=ids.WHATIF_PANE,
        className="ds-pane ds-wif",
    )


def _left() -> html.Div:
    return html.Div(
        [
            html.Div(
                [
                    heading("What if", html.Small("bandwidths of both ways", className="ds-note")),
                    html.Div(id=ids.WHATIF_FORM, className="ds-wif-form"),
                ],
                className="ds-wif-scroll",
            ),
            html.Div(
                [_buttons(), html.Div(id=ids.WHATIF_STATUS, role="status")], className="ds-wif-foot"
            ),
        ],
        className="ds-wif-left",
        role="group",
        **attributes(aria_label="What to change"),
    )


def _buttons() -> html.Div:
    return html.Div(
        [
            dmc.Button(
                "Apply to the drawing",
                id=ids.WHATIF_APPLY,
                leftSection=icon("check"),
                size="sm",
                disabled=True,
            ),
            dmc.Button(
                "Solve this",
                id=ids.WHATIF_SOLVE,
                leftSection=icon("play"),
                size="sm",
                variant="default",
                **attributes(aria_description="Applies it to the drawing first"),
            ),
            dmc.Button("Reset", id=ids.WHATIF_RESET, size="sm", variant="default"),
        ],
        className="ds-wif-buttons",
    )


def _middle() -> html.Div:
    return html.Div(
        [
            html.Div(
                figures.figures(None, None),
                id=ids.WHATIF_FIGURES,
                className="ds-wif-figures",
                role="status",
            ),
            html.Div(
                [
                    html.Div(id=ids.WHATIF_CUTS, className="ds-wif-cuts"),
                    html.Div(
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
                        className="ds-wif-canvas",
                    ),
                ],
                className="ds-wif-stage",
            ),
        ],
        className="ds-wif-middle",
    )


def _right() -> html.Div:
    """Return the questions at the right, one kind at a time."""
    return html.Div(
        [
            dmc.SegmentedControl(
                id=ids.WHATIF_TAB,
                data=[
                    {"value": "limits", "label": "What limits"},
                    {"value": "budget", "label": "What to buy"},
                    {"value": "failing", "label": "What may fail"},
                ],
                value="limits",
                size="xs",
                fullWidth=True,
                className="ds-wif-tabs",
                **attributes(aria_label="What is asked of the cluster as the sliders stand"),
            ),
            html.Div(
                [
                    html.Div(limits_card(), className="ds-wif-tab", **attributes(data_of="limits")),
                    html.Div(budget_card(), className="ds-wif-tab", **attributes(data_of="budget")),
                    html.Div(
                        failing_cards(), className="ds-wif-tab", **attributes(data_of="failing")
                    ),
                ],
                id=ids.WHATIF_RIGHT,
                className="ds-wif-cards",
                tabIndex=0,
                role="region",
                **attributes(aria_label="Answers", data_tab="limits"),
            ),
        ],
        className="ds-wif-right",
    )
