"""The trees of a forest: choosing a root, turning pages, drawing one."""

from __future__ import annotations

from typing import Any

from dash import ALL, Dash, Input, Output, State, ctx, no_update

from designer.shell import ids
from designer.views.solve import tree_card


def register(app: Dash) -> None:
    """Wire the card of the trees."""

    @app.callback(
        Output(ids.TREES_BOX, "hidden"),
        Output(ids.TREE_ROOT, "data"),
        Output(ids.TREE_ROOT, "value"),
        Output(ids.TREE_HALF, "style"),
        Output(ids.LAYER, "data", allow_duplicate=True),
        Input(ids.RESULT, "data"),
        Input(ids.CANVAS, "stale"),
        State(ids.LAYER, "data"),
        prevent_initial_call=True,
    )
    def on_result(document: dict[str, Any] | None, stale: bool | None, layer: str) -> Any:
        found = None if stale else tree_card.forest_of(document)
        if found is None:
            return True, [], None, no_update, "" if layer == "tree" else no_update
        choices = tree_card.root_choices(*found)
        halves = {} if found[0].spread else {"display": "none"}
        return False, choices, choices[0]["value"], halves, no_update

    @app.callback(
        Output(ids.TREE, "data"),
        Output(ids.TREE_PLACE, "children"),
        Output(ids.TREE_FACTS, "children"),
        Output(ids.TREE_NUMBER, "data"),
        Output(ids.LAYER, "data", allow_duplicate=True),
        Input(ids.TREE_ROOT, "value"),
        Input({"tree-turn": ALL}, "n_clicks"),
        Input(ids.TREE_HALF, "value"),
        State(ids.TREE_NUMBER, "data"),
        State(ids.RESULT, "data"),
        prevent_initial_call=True,
    )
    def on_turn(root: str | None, *given: Any) -> Any:
        _clicks, half, number, document = given
        found = tree_card.forest_of(document)
        if found is None or root is None:
            return None, "", None, 0, no_update
        asked = ctx.triggered_id
        turned = isinstance(asked, dict)
        at = (number or 0) + asked["tree-turn"] if turned else number or 0
        marks, place, facts, at = tree_card.tree_shown(
            *found, rank=int(root), number=0 if asked == ids.TREE_ROOT else at, half=half
        )
        # Whoever turns a page wants to see it.
        return marks, place, facts, at, "tree" if turned else no_update
