"""The card that shows the trees of a forest one at a time, and what it needs of a result.

The trees of a forest: choosing a root, turning pages, drawing one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dash_mantine_components as dmc
from dash import ALL, Dash, Input, Output, State, ctx, html, no_update

from ccl import text
from ccl.errors import CclError
from ccl.plans import Forest
from ccl.serialization.topoloom import plan_from_json, topology_from_json
from ccl.topology import Topology
from designer.server.sessions import once
from designer.shell import ids
from designer.shell.markup import attributes, heading, icon
from designer.shell.request import callback
from designer.views.solve.live_card import layer
from widgets.view_model.classes import Half, Route, roots, routes, tree_marks, weight_words

Json = Mapping[str, Any]

HALVES = {"both": "Pair", "up": "Up, adding", "down": "Down, spreading"}
"""What an all-reduce can show of an in-tree and its out-tree."""


def tree_section() -> html.Section:
    """Return the section; it is hidden where the plan is no forest."""
    return html.Section(
        [
            heading("Trees", layer("tree")),
            html.Div(
                [
                    html.Div(
                        [
                            dmc.Select(
                                id=ids.TREE_ROOT,
                                searchable=True,
                                allowDeselect=False,
                                size="xs",
                                maxDropdownHeight=260,
                                className="ds-root",
                                **attributes(aria_label="Root of the trees"),
                            ),
                            _turn("chevron", "Tree before", -1),
                            html.Span(id=ids.TREE_PLACE, className="ds-place", role="status"),
                            _turn("chevron", "Next tree", 1),
                        ],
                        className="ds-trees",
                    ),
                    dmc.SegmentedControl(
                        id=ids.TREE_HALF,
                        data=[{"value": key, "label": label} for key, label in HALVES.items()],
                        value="both",
                        size="xs",
                        fullWidth=True,
                        **attributes(aria_label="Which half of the all-reduce"),
                    ),
                    html.Div(id=ids.TREE_FACTS),
                ],
                className="ds-card ds-tree",
            ),
        ],
        id=ids.TREES_BOX,
        hidden=True,
        **attributes(aria_label="Trees"),
    )


def _turn(picture: str, title: str, by: int) -> dmc.ActionIcon:
    return dmc.ActionIcon(
        icon(picture),
        id={"tree-turn": by},
        size="md",
        variant="default",
        **attributes(aria_label=title),
    )


def forest_of(document: Json | None) -> tuple[Forest, Topology] | None:
    """Return the forest of a result's document with its topology, None where there is none."""
    if not document or document.get("plan", {}).get("plan") != "forest":
        return None
    return once(_forest, document)


def _forest(document: Json) -> tuple[Forest, Topology] | None:
    try:
        topology = topology_from_json(document["problem"]["topology"])
        plan = plan_from_json(document["plan"], topology)
    except CclError:  # of another version
        return None
    return (plan, topology) if isinstance(plan, Forest) else None


def root_choices(forest: Forest, topology: Topology) -> list[dict[str, str]]:
    """Return the roots to choose from."""
    return [{"value": str(rank), "label": topology.ranks[rank]} for rank in roots(forest)]


def tree_summary(
    forest: Forest, topology: Topology, *, rank: int, number: int, half: str
) -> tuple[dict[str, Any], str, Any, int]:
    """Return marks, place, facts and the number of a tree that is there.

    Parameters
    ----------
    rank
        Of the root.
    number
        Of its tree; it goes round past the last and before the first.
    half
        ``up``, ``down`` or ``both`` of an all-reduce.
    """
    found = routes(forest, topology, rank)
    number %= max(1, len(found))
    way = found[number]
    part: Half = "up" if half == "up" else "down" if half == "down" else "both"
    if way.up is None or way.down is None:
        part = "both"
    return (
        tree_marks(way, topology, half=part),
        f"{number + 1} of {len(found)}",
        _facts(forest, way, topology, half=part),
        number,
    )


def _facts(forest: Forest, way: Route, topology: Topology, *, half: Half) -> Any:
    share = (
        "of all data"
        if forest.spread
        else f"of what {topology.ranks[way.root]} " + ("collects" if forest.reduces else "gives")
    )
    edges = [len(tree.routes) for tree, _ in way.trees(half)]
    return html.Div(
        [
            html.Div([html.B(weight_words(way.weight)), html.Span(share)]),
            html.Div([html.B(text.count(way.depth(half), "hop")), html.Span("deep")]),
            html.Div([html.B(str(sum(edges))), html.Span("edges")]),
        ],
        className="ds-figures ds-three",
    )


def register(app: Dash) -> None:
    """Wire the card of the trees."""

    @callback(
        app,
        output={
            "trees_box_hidden": Output(ids.TREES_BOX, "hidden"),
            "tree_root": Output(ids.TREE_ROOT, "data"),
            "tree_root_value": Output(ids.TREE_ROOT, "value"),
            "tree_half_style": Output(ids.TREE_HALF, "style"),
            "layer": Output(ids.LAYER, "data", allow_duplicate=True),
        },
        inputs={"document": Input(ids.RESULT, "data"), "stale": Input(ids.CANVAS, "stale")},
        state={"layer": State(ids.LAYER, "data")},
        prevent_initial_call=True,
    )
    def on_result(
        document: dict[str, Any] | None, stale: bool | None, layer: str
    ) -> dict[str, Any]:
        found = None if stale else forest_of(document)
        if found is None:
            return {
                "trees_box_hidden": True,
                "tree_root": [],
                "tree_root_value": None,
                "layer": "" if layer == "tree" else no_update,
            }
        choices = root_choices(*found)
        halves = {} if found[0].spread else {"display": "none"}
        return {
            "trees_box_hidden": False,
            "tree_root": choices,
            "tree_root_value": choices[0]["value"],
            "tree_half_style": halves,
        }

    @callback(
        app,
        output={
            "tree": Output(ids.TREE, "data"),
            "tree_place": Output(ids.TREE_PLACE, "children"),
            "tree_facts": Output(ids.TREE_FACTS, "children"),
            "tree_number": Output(ids.TREE_NUMBER, "data"),
            "layer": Output(ids.LAYER, "data", allow_duplicate=True),
        },
        inputs={
            "root": Input(ids.TREE_ROOT, "value"),
            "clicks": Input({"tree-turn": ALL}, "n_clicks"),
            "half": Input(ids.TREE_HALF, "value"),
        },
        state={"number": State(ids.TREE_NUMBER, "data"), "document": State(ids.RESULT, "data")},
        prevent_initial_call=True,
    )
    def on_turn(
        root: str | None, half: Any, number: Any, document: Any, **_: Any
    ) -> dict[str, Any]:
        found = forest_of(document)
        if found is None or root is None:
            return {"tree": None, "tree_place": "", "tree_facts": None, "tree_number": 0}
        asked = ctx.triggered_id
        turned = isinstance(asked, dict)
        at = (number or 0) + asked["tree-turn"] if turned else number or 0
        marks, place, facts, at = tree_summary(
            *found, rank=int(root), number=0 if asked == ids.TREE_ROOT else at, half=half
        )
        # Whoever turns a page wants to see it.
        return {
            "tree": marks,
            "tree_place": place,
            "tree_facts": facts,
            "tree_number": at,
            "layer": "tree" if turned else no_update,
        }
