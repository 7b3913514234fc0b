"""Our views as Dash components: every property is Input, State and Output."""

from __future__ import annotations

from typing import Any

from dash.development.base_component import Component

from widgets import canvas_file
from widgets.shown.props import PAIR_PROPS, PROPS


class _Hosted(Component):
    """A component of ours that `dash_host.js` draws."""

    _namespace = "widgets"
    _props: tuple[str, ...] = ()

    def __init__(self, **props: Any) -> None:
        self._children_props: list[str] = []
        self._base_nodes: list[str] = []
        self._prop_names = ["id", "className", "style", *self._props]
        self.available_properties = self._prop_names
        self._valid_wildcard_attributes: list[str] = []
        self.available_wildcard_properties: list[str] = []
        super().__init__(**props)  # type: ignore[no-untyped-call]


class GapChart(_Hosted):
    """How close a solve has come over time.

    Parameters
    ----------
    **props
        ``id``, ``className``, ``style``, and ``course`` as `widgets.shown.course.course` makes it.
    """

    _type = "GapChart"
    _props = ("course",)


class TopologyCanvas(_Hosted):
    """Draw a cluster and play its schedule.

    Parameters
    ----------
    **props
        ``id``, ``className``, ``style``, and those that `widgets.shown.props.PROPS` explains.
    """

    _type = "TopologyCanvas"
    _props = tuple(PROPS)

    def __init__(self, **props: Any) -> None:
        canvas_file()  # says how to build it, where the browser would show an empty page
        super().__init__(**props)


class SchedulePair(_Hosted):
    """Play two schedules side by side, in step.

    Parameters
    ----------
    **props
        ``id``, ``className``, ``style``, and those that `widgets.shown.props.PAIR_PROPS` explains;
        ``films`` has to be given, empty where there is nothing to play yet.
    """

    _type = "SchedulePair"
    _props = tuple(PAIR_PROPS)
