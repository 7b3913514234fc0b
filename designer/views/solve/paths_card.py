"""The card of ways that others planned over the cluster, such as the rings and trees of NCCL.

Ways over the cluster: which is drawn, and when they go.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, html, no_update

from ccl import text
from designer.shell import ids
from designer.shell.markup import attributes, heading, icon
from designer.shell.request import callback
from designer.views.solve.live_card import layer

Json = dict[str, Any]

ALL = "all"
"""The choice that draws every way."""

MOST_PATHS = 400
"""Ways to choose from; all of them are drawn together."""


def paths_section() -> html.Section:
    """Return the section; it is hidden where there are none."""
    close = html.Button(
        icon("close"),
        id=ids.PATHS_CLOSE,
        type="button",
        className="ds-close",
        title="Hide the paths",
        **attributes(aria_label="Hide the paths"),
    )
    return html.Section(
        [
            heading("Paths shown", html.Div([layer("ways"), close], className="ds-row")),
            html.Div(
                [
                    html.B(id=ids.PATHS_TITLE, className="ds-ways-title"),
                    dmc.Select(
                        id=ids.PATHS_CHOICE,
                        data=[],
                        value=ALL,
                        searchable=True,
                        allowDeselect=False,
                        size="xs",
                        maxDropdownHeight=260,
                        **attributes(aria_label="Which path is shown"),
                    ),
                    html.P(id=ids.PATHS_FACTS, className="ds-note ds-ways-facts", role="status"),
                ],
                className="ds-card ds-ways",
            ),
        ],
        id=ids.PATHS_BOX,
        hidden=True,
        **attributes(aria_label="Paths over the drawing"),
    )


def choices(ways: Json) -> list[dict[str, str]]:
    """Return what can be drawn: all ways, or one."""
    labels = [each["label"] for each in ways["ways"][:MOST_PATHS]]
    every = {"value": ALL, "label": f"All of them ({len(ways['ways'])})"}
    return [every, *({"value": str(i), "label": label} for i, label in enumerate(labels))]


def chosen_marks(ways: Json, choice: str | None) -> tuple[Json, str]:
    """Return the marks of what is chosen, and its devices in a sentence.

    Where two ways run along the same side of a link the first is seen; each can be seen alone.
    """
    one = int(choice) if choice and choice != ALL else None
    among = list(enumerate(ways["ways"]))
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
        many = text.count(len(among), "way")
        told = f"{many} over {text.count(len(hops), 'one-way link')}"
    else:
        told = " → ".join(name for _, each in drawn for name in each["devices"])
    return {"title": ways["title"], "groups": groups, "arrows": True, "fade": True}, told


def fits(ways: Json, topology: Json) -> bool:
    """Whether every device of the ways is drawn."""
    there = {each["name"] for each in topology["devices"]}
    return all(name in there for each in ways["ways"] for name in each["devices"])


def register(app: Dash) -> None:
    """Wire the card of the ways."""

    @callback(
        app,
        output={
            "paths_box_hidden": Output(ids.PATHS_BOX, "hidden"),
            "paths_title": Output(ids.PATHS_TITLE, "children"),
            "paths_choice": Output(ids.PATHS_CHOICE, "data"),
            "paths_choice_value": Output(ids.PATHS_CHOICE, "value"),
            "layer": Output(ids.LAYER, "data", allow_duplicate=True),
        },
        inputs={"ways": Input(ids.PATHS, "data")},
        state={"layer": State(ids.LAYER, "data")},
        prevent_initial_call="initial_duplicate",
    )
    def on_ways(ways: Json | None, layer: str) -> Json:
        if not ways:
            return {
                "paths_box_hidden": True,
                "paths_title": "",
                "paths_choice": [],
                "paths_choice_value": ALL,
                "layer": "" if layer == "ways" else no_update,
            }
        return {
            "paths_box_hidden": False,
            "paths_title": ways["title"],
            "paths_choice": choices(ways),
            "paths_choice_value": ALL,
        }

    @app.callback(
        Output(ids.PATHS_MARKS, "data"),
        Output(ids.PATHS_FACTS, "children"),
        Input(ids.PATHS, "data"),
        Input(ids.PATHS_CHOICE, "value"),
    )
    def on_choice(ways: Json | None, choice: str | None) -> tuple[Any, str]:
        return chosen_marks(ways, choice) if ways else (None, "")

    @app.callback(
        Output(ids.PATHS, "data", allow_duplicate=True),
        Input(ids.PATHS_CLOSE, "n_clicks"),
        prevent_initial_call=True,
    )
    def on_close(_clicks: int) -> None:
        return None

    @app.callback(
        Output(ids.PATHS, "data", allow_duplicate=True),
        Input(ids.PROBLEM, "data"),
        State(ids.PATHS, "data"),
        prevent_initial_call=True,
    )
    def on_drawing(asked: Json | None, ways: Json | None) -> Any:
        if not ways or not asked or fits(ways, asked["topology"]):
            return no_update
        return None
