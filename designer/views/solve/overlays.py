"""What is drawn over the cluster: the trees of a forest one at a time, and the paths of others.

Trees: choosing a root, turning pages. Paths: which of those that others planned, such as the rings
and trees of NCCL, and when they go.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import dash_mantine_components as dmc
from dash import ALL, Dash, Input, Output, State, ctx, html, no_update

from ccl import text
from ccl.errors import CclError
from ccl.plans import Forest
from ccl.serialization.topoloom import plan_from_json, topology_from_json
from ccl.topology import Topology
from designer.session import once
from designer.shell import ids, ui
from designer.shell.request import callback
from designer.views.solve.live_card import layer
from widgets.view_model.classes import Half, Route, roots, routes, tree_marks, weight_words

Json = Mapping[str, Any]

HALVES = {"both": "Pair", "up": "Up, adding", "down": "Down, spreading"}
"""What an all-reduce can show of an in-tree and its out-tree."""


def tree_section() -> html.Section:
    """Return the section; it is hidden where the plan is no forest."""
    return ui.section(
        "Trees",
        ui.folding("Trees", layer("tree")),
        ui.div(
            "ds-card ds-tree",
            ui.div(
                "ds-trees",
                ui.select(
                    ids.TREE_ROOT,
                    (),
                    searchable=True,
                    maxDropdownHeight=260,
                    className="ds-root",
                    aria_label="Root of the trees",
                ),
                _turn("chevron", "Tree before", -1),
                html.Span(id=ids.TREE_PLACE, className="ds-place", role="status"),
                _turn("chevron", "Next tree", 1),
            ),
            ui.segments(
                ids.TREE_HALF, "Which half of the all-reduce", HALVES, value="both", fullWidth=True
            ),
            html.Div(id=ids.TREE_FACTS),
        ),
        id=ids.TREES_BOX,
        hidden=True,
    )


def _turn(picture: str, title: str, by: int) -> dmc.ActionIcon:
    return dmc.ActionIcon(
        ui.icon(picture),
        id={"tree-turn": by},
        size="md",
        variant="default",
        **ui.attributes(aria_label=title),
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
    return ui.div(
        "ds-figures ds-three",
        html.Div([html.B(weight_words(way.weight)), html.Span(share)]),
        html.Div([html.B(text.count(way.depth(half), "hop")), html.Span("deep")]),
        html.Div([html.B(str(sum(edges))), html.Span("edges")]),
    )


def register(app: Dash) -> None:
    """Wire both cards."""
    _paths(app)

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


EVERY = "all"
"""The choice that draws every path."""

MOST_PATHS = 400
"""Paths to choose from; all of them are drawn together."""


def paths_section() -> html.Section:
    """Return the section; it is hidden where there are none."""
    close = ui.press(
        ui.icon("close"),
        ids.PATHS_CLOSE,
        "ds-close",
        title="Hide the paths",
        aria_label="Hide the paths",
    )
    return ui.section(
        "Paths over the drawing",
        ui.folding("Paths shown", ui.div("ds-row", layer("paths"), close)),
        ui.div(
            "ds-card ds-paths",
            html.B(id=ids.PATHS_TITLE, className="ds-paths-title"),
            ui.select(
                ids.PATHS_CHOICE,
                [],
                value=EVERY,
                searchable=True,
                maxDropdownHeight=260,
                aria_label="Which path is shown",
            ),
            html.P(id=ids.PATHS_FACTS, className="ds-note ds-paths-facts", role="status"),
        ),
        id=ids.PATHS_BOX,
        hidden=True,
    )


def path_choices(overlay: Json) -> list[dict[str, str]]:
    """Return what can be drawn: all paths, or one."""
    labels = [each["label"] for each in overlay[ids.PATHS][:MOST_PATHS]]
    every = {"value": EVERY, "label": f"All of them ({len(overlay[ids.PATHS])})"}
    return [every, *({"value": str(i), "label": label} for i, label in enumerate(labels))]


def chosen_marks(overlay: Json, choice: str | None) -> tuple[Json, str]:
    """Return the marks of what is chosen, and its devices in a sentence.

    Where two paths run along the same side of a link the first is seen; each can be seen alone.
    """
    one = int(choice) if choice and choice != EVERY else None
    among = list(enumerate(overlay[ids.PATHS]))
    drawn = among if one is None else among[one : one + 1]
    groups = [
        {
            "tone": {"origin": [i, len(among)]},
            "links": [list(hop) for hop in pairwise(each["devices"])],
            "label": each["label"],
        }
        for i, each in drawn
    ]
    if one is None:
        hops = {hop for _, each in among for hop in pairwise(each["devices"])}
        many = text.count(len(among), "path")
        told = f"{many} over {text.count(len(hops), 'one-way link')}"
    else:
        told = " → ".join(name for _, each in drawn for name in each["devices"])
    return {"title": overlay["title"], "groups": groups, "arrows": True, "fade": True}, told


def fits(overlay: Json, topology: Json) -> bool:
    """Whether every device of the paths is drawn."""
    there = {each["name"] for each in topology["devices"]}
    return all(name in there for each in overlay[ids.PATHS] for name in each["devices"])


def _paths(app: Dash) -> None:
    """Wire the card of the paths."""

    @callback(
        app,
        output={
            "paths_box_hidden": Output(ids.PATHS_BOX, "hidden"),
            "paths_title": Output(ids.PATHS_TITLE, "children"),
            "paths_choice": Output(ids.PATHS_CHOICE, "data"),
            "paths_choice_value": Output(ids.PATHS_CHOICE, "value"),
            "layer": Output(ids.LAYER, "data", allow_duplicate=True),
        },
        inputs={"paths": Input(ids.PATHS, "data")},
        state={"layer": State(ids.LAYER, "data")},
        prevent_initial_call="initial_duplicate",
    )
    def on_paths(paths: Json | None, layer: str) -> Json:
        if not paths:
            return {
                "paths_box_hidden": True,
                "paths_title": "",
                "paths_choice": [],
                "paths_choice_value": EVERY,
                "layer": "" if layer == "paths" else no_update,
            }
        return {
            "paths_box_hidden": False,
            "paths_title": paths["title"],
            "paths_choice": path_choices(paths),
            "paths_choice_value": EVERY,
        }

    @app.callback(
        Output(ids.PATHS_MARKS, "data"),
        Output(ids.PATHS_FACTS, "children"),
        Input(ids.PATHS, "data"),
        Input(ids.PATHS_CHOICE, "value"),
        prevent_initial_call=False,
    )
    def on_choice(paths: Json | None, choice: str | None) -> tuple[Any, str]:
        return chosen_marks(paths, choice) if paths else (None, "")

    @app.callback(
        Output(ids.PATHS, "data", allow_duplicate=True), Input(ids.PATHS_CLOSE, "n_clicks")
    )
    def on_close(_clicks: int) -> None:
        return None

    @app.callback(
        Output(ids.PATHS, "data", allow_duplicate=True),
        Input(ids.PROBLEM, "data"),
        State(ids.PATHS, "data"),
    )
    def on_drawing(problem: Json | None, paths: Json | None) -> Any:
        if not paths or not problem or fits(paths, problem["topology"]):
            return no_update
        return None
