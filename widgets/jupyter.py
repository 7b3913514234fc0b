"""The canvas in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anywidget
import traitlets

from ccl.formats.topoloom import topology_from_json
from ccl.layout import layout
from ccl.problem import Problem
from ccl.result import Plan, Result
from ccl.simulate import simulate
from ccl.topology import Topology
from widgets import canvas_file
from widgets import scene as views

_NOTHING: dict[str, Any] = {"name": "untitled", "devices": [], "links": [], "limits": []}


class TopologyWidget(anywidget.AnyWidget):
    """Draw a cluster, read it as a `Topology`, and watch a plan run on it.

    Parameters
    ----------
    topology
        What is drawn at the start; nothing by default.
    positions
        Middle of each device by name, as `ccl.layout.layout` returns them; by default it is asked.
    **traits
        Those that `widgets.props.PROPS` explains, such as ``height="600px"``.
    """

    _esm = canvas_file()

    drawing = traitlets.Dict({"topology": _NOTHING, "positions": {}}).tag(sync=True)
    scene = traitlets.Dict(default_value=None, allow_none=True).tag(sync=True)
    cuts: traitlets.List[dict[str, Any]] = traitlets.List([]).tag(sync=True)
    marks = traitlets.Dict(default_value=None, allow_none=True).tag(sync=True)
    sketch = traitlets.Dict(default_value=None, allow_none=True).tag(sync=True)
    picked = traitlets.Dict({}).tag(sync=True)
    selection: traitlets.Dict[str, list[Any]] = traitlets.Dict(
        {"devices": [], "links": [], "hosts": []}
    ).tag(sync=True)
    time = traitlets.Float(0.0).tag(sync=True)
    stale = traitlets.Bool(False).tag(sync=True)
    theme = traitlets.Enum(["auto", "light", "dark"], "auto").tag(sync=True)
    height = traitlets.Unicode("520px").tag(sync=True)
    toolbar = traitlets.Bool(True).tag(sync=True)
    timeline = traitlets.Bool(True).tag(sync=True)
    link_preset = traitlets.Dict({"bandwidth": 50.0, "alpha": 0.7, "medium": ""}).tag(sync=True)
    command = traitlets.Dict({}).tag(sync=True)
    message = traitlets.Dict({}).tag(sync=True)

    def __init__(
        self,
        topology: Topology | None = None,
        positions: Mapping[str, tuple[float, float]] | None = None,
        **traits: Any,
    ) -> None:
        if topology is not None:
            traits["drawing"] = views.drawing(topology, positions or layout(topology))
        super().__init__(**traits)
        self._commands = 0

    @property
    def topology(self) -> Topology:
        """The cluster as it is drawn now; setting it is one step that can be undone.

        Raises
        ------
        CclError
            If what is drawn is no topology yet.
        """
        return topology_from_json(self.drawing["topology"])

    @topology.setter
    def topology(self, topology: Topology) -> None:
        self.drawing = views.drawing(topology, layout(topology))

    def show(
        self, problem: Problem, plan: Plan | Result, *, take: dict[str, Any] | None = None
    ) -> None:
        """Play a plan on the canvas, with the cut that bounds it where a result brings one.

        Parameters
        ----------
        problem, plan
            What was asked, and the answer.
        take
            Which schedule of which solve it is, as `widgets.scene.take` says it.

        Raises
        ------
        ScheduleError
            If the plan cannot be replayed.
        """
        if isinstance(plan, Result):
            self.cuts = views.cuts(plan.bounds)[:1]
            self.scene = views.scene(problem, plan.plan, plan.timeline, take=take)
        else:
            self.cuts = []
            self.scene = views.scene(problem, plan, simulate(problem, plan), take=take)

    def do(self, command: str, **arguments: Any) -> None:
        """Run a command of the canvas, such as ``do("align", how="left")`` or ``do("play")``."""
        self._commands += 1
        self.command = {"name": command, "args": arguments, "n": self._commands}
