"""The canvas as a Dash component: every property is an Input, a State and an Output."""

from __future__ import annotations

from typing import Any, ClassVar

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
    _children_props: ClassVar[list[str]] = []
    _base_nodes: ClassVar[list[str]] = []
    _valid_wildcard_attributes: ClassVar[list[str]] = []
    available_wildcard_properties: ClassVar[list[str]] = []
    _prop_names: ClassVar[list[str]] = ["id", "className", "style", *PROPS]
    available_properties = _prop_names

    def __init__(self, **props: Any) -> None:
        canvas_file()  # says how to build it, where the browser would show an empty page
        super().__init__(**props)
