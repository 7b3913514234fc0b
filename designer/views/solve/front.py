"""Fewer sends or faster: a slider over the plans that one solve has found.

The best stays what the solve came to; a mark stands for each plan with fewer sends
(`ccl.result.Result.front`). The page holds their documents, so a reload of the server loses none,
and what the slider stands on is the result of the page like any other.
"""

from typing import Any

import dash_mantine_components as dmc
from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html

from ccl import text
from ccl.result import Result
from ccl.serialization.topoloom import result_to_json
from designer.session import result_of
from designer.shell import ids, ui
from designer.shell.request import Json, callback, changes, method_title, now
from designer.views.solve.assess import views_of
from formulations import sends_front
from widgets.view_model.scene import take
from widgets.words import point_words


def front_card() -> html.Div:
    """Return the card, hidden until a solve has more than one plan to choose from."""
    return ui.div(
        "ds-card ds-front",
        ui.div(
            "ds-front-head",
            html.Span("fewer sends"),
            html.B("Pieces per shard"),
            html.Span("faster"),
        ),
        dmc.Slider(
            id=ids.FRONT_SLIDE,
            value=0,
            min=0,
            max=1,
            step=1,
            marks=[],
            label=None,
            size=4,
            thumbSize=16,
            updatemode="mouseup",
            thumbLabel="Pieces per shard: fewer sends or faster",
        ),
        html.Div(id=ids.FRONT_WORDS, role="status", className="ds-note"),
        dcc.Store(id=ids.FRONT),
        dcc.Store(id=ids.FRONT_CHOICE),
        id=ids.FRONT_BOX,
        hidden=True,
    )


def front_of(result: Result) -> Json | None:
    """Return the plans beside a result, a mark and words for each and for itself, or None."""
    if not result.simpler:
        return None
    rows = sends_front(result)
    return {
        "plans": [result_to_json(each) for each in result.simpler],
        "marks": [
            {"value": place, "label": f"{row['pieces']:,}"} for place, row in enumerate(rows)
        ],
        "words": [
            text.sentence(point_words({**row, "found_by": method_title(row["found_by"])}))
            for row in rows
        ],
    }


def register(app: Dash) -> None:
    """Wire the slider."""
    app.clientside_callback(
        ClientsideFunction("topoloom", "front"),
        Output(ids.FRONT_BOX, "hidden"),
        Output(ids.FRONT_SLIDE, "max"),
        Output(ids.FRONT_SLIDE, "marks"),
        Output(ids.FRONT_SLIDE, "value"),
        Output(ids.FRONT_WORDS, "children"),
        Output(ids.FRONT_CHOICE, "data"),
        Input(ids.FRONT_SLIDE, "value"),
        Input(ids.FRONT, "data"),
        Input(ids.RESULT, "data"),
        Input(ids.JOB, "data"),
    )

    @callback(
        app,
        output=changes("scene", "summary", "load"),
        inputs={"chosen": Input(ids.FRONT_CHOICE, "data")},
        state={"summary": State(ids.SUMMARY, "data")},
    )
    def on_choice(chosen: Json | None, summary: Json | None) -> dict[str, Any]:
        """Show the plan on the canvas, with figures of its own."""
        if not chosen:
            return {}
        asked = (summary or {}).get("asked")
        return views_of(result_of(chosen), asked, take=take(f"front-{now()}", 1))
