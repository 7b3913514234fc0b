"""The canvas as a Dash component: every property is an Input, a State and an Output."""

from __future__ import annotations

from typing import Any

from dash.development.base_component import Component

from widgets import canvas_file
from widgets.props import PROPS


class TopologyCanvas(Component):
    """Draw a cluster and play its schedule.

    Parameters
    ----------
    **props
        ``id``, ``className``, ``style``, and those that `widgets.props.PROPS` explains.
    """

    _namespace = "widgets"
    _type = "TopologyCanvas"

    def __init__(self, **props: Any) -> None:
        canvas_file()  # says how to build it, where the browser would show an empty page
        self._children_props: list[str] = []
        self._base_nodes: list[str] = []
        self._prop_names = ["id", "className", "style", *PROPS]
        self.available_properties = self._prop_names
        self._valid_wildcard_attributes: list[str] = []
        self.available_wildcard_properties: list[str] = []
        super().__init__(**props)  # type: ignore[no-untyped-call]
