"""The canvas in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anywidget
import traitlets

from ccl.errors import CclError
from ccl.explain import explain
from ccl.layout import layout
from ccl.problem import Problem
from ccl.result import Plan, Result
from ccl.serialization.documents import document
from ccl.serialization.topoloom import topology_from_json
from ccl.simulate import simulate
from ccl.topology import Topology
from widgets import canvas_file
from widgets.notebook.comparison import Positions
from widgets.notebook.still import Still
from widgets.pages.saving import Content
from widgets.view_model import scene as views
from widgets.view_model.classes import Marked, marks_of

_NOTHING: dict[str, Any] = {"name": "untitled", "devices": [], "links": [], "limits": []}


class TopologyWidget(Still, anywidget.AnyWidget):
    """Draw a cluster, read it as a `Topology`, and watch a plan run on it.

    Parameters
    ----------
    topology
        What is drawn at the start; nothing by default.
    positions
        Middle of each device by name, by default those of `ccl.layout.layout`.
    marked
        What is marked at the start: see `mark`.
    **traits
        Those that `widgets.view_model.scene.PROPS` explains, such as ``height="600px"``.
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
    focus = traitlets.Dict(default_value=None, allow_none=True).tag(sync=True)
    inspect = traitlets.Bool(False).tag(sync=True)
    time = traitlets.Float(0.0).tag(sync=True)
    stale = traitlets.Bool(False).tag(sync=True)
    theme = traitlets.Enum(["auto", "light", "dark"], "auto").tag(sync=True)
    height = traitlets.Unicode("520px").tag(sync=True)
    toolbar = traitlets.Bool(True).tag(sync=True)
    timeline = traitlets.Bool(True).tag(sync=True)
    locked = traitlets.Bool(False).tag(sync=True)
    link_preset = traitlets.Dict({"bandwidth": 50.0, "alpha": 0.7, "medium": ""}).tag(sync=True)
    command = traitlets.Dict({}).tag(sync=True)
    message = traitlets.Dict({}).tag(sync=True)
    request = traitlets.Dict({}).tag(sync=True)
    trouble = traitlets.Dict({}).tag(sync=True)

    def __init__(
        self,
        topology: Topology | None = None,
        positions: Mapping[str, tuple[float, float]] | None = None,
        *,
        marked: Marked | None = None,
        **traits: Any,
    ) -> None:
        if topology is not None:
            traits["drawing"] = views.drawing(topology, positions or layout(topology))
            if marked is not None:
                traits["marks"] = marks_of(topology, marked)
        super().__init__(**traits)
        self._commands = 0
        self._result: Result | None = None
        self._failed: frozenset[str] = frozenset()

    @property
    def topology(self) -> Topology:
        """The cluster as it is drawn now; setting it is one step that can be undone.

        Devices that remain stay where they are, and so does what is in view.

        Raises
        ------
        CclError
            If what is drawn is no topology yet.
        """
        return topology_from_json(self.drawing["topology"])

    @topology.setter
    def topology(self, topology: Topology) -> None:
        self.drawing = views.drawing(topology, self._places(topology))

    @property
    def positions(self) -> dict[str, tuple[float, float]]:
        """Middle of each device that has a place, by name."""
        return {name: (x, y) for name, (x, y) in self.drawing["positions"].items()}

    def _places(self, topology: Topology) -> Mapping[str, tuple[float, float]]:
        """Keep the places there are; the canvas finds those of newcomers, beside the others."""
        known = self.positions
        kept = {each.name: known[each.name] for each in topology.devices if each.name in known}
        return kept or layout(topology)

    def show(
        self, problem: Problem, plan: Plan | Result, *, take: dict[str, Any] | None = None
    ) -> None:
        """Play a plan on the canvas, with the cut that bounds it where a result brings one.

        Parameters
        ----------
        problem, plan
            The problem, and the answer.
        take
            Which schedule of which solve it is, as `widgets.view_model.scene.take` says it.

        Raises
        ------
        ScheduleError
            If the plan cannot be replayed.
        """
        self._result = plan if isinstance(plan, Result) else None
        if isinstance(plan, Result):
            self.cuts = views.cuts(plan.bounds)[:1]
            self.scene = views.scene(problem, plan.plan, plan.timeline, take=take)
        else:
            self.cuts = []
            self.scene = views.scene(problem, plan, simulate(problem, plan), take=take)

    def mark(self, what: Marked, *, root: int = 0) -> None:
        """Mark something on the drawing.

        Parameters
        ----------
        what
            A group, whose classes of GPUs are coloured; prices of links; or a forest.
        root
            Rank whose heaviest tree of the forest is drawn.
        """
        self.set_trait("marks", marks_of(self.topology, what, root=root))

    def do(self, command: str, **arguments: Any) -> None:
        """Run a command of the canvas, such as ``do("align", how="left")`` or ``do("play")``."""
        self._commands += 1
        self.command = {"name": command, "args": arguments, "n": self._commands}

    @traitlets.observe("request")
    def _grant(self, change: dict[str, Any]) -> None:
        if change["new"].get("name") == "layout":
            self.do("move", to=layout(self.topology))

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take what the view says; an error of whoever observes it appears below the view.

        It is raised all the same, so that the log of the kernel has where it came from. It
        disappears when the same is heard of again without one.
        """
        heard = frozenset(sync_data)
        try:
            super().set_state(sync_data)
        except Exception as error:
            self._failed = heard
            known = isinstance(error, CclError)
            self._tell_trouble(str(error) if known else f"bug: {type(error).__name__}: {error}")
            raise
        if self._failed & heard:
            self._failed = frozenset()
            self._tell_trouble("")

    def _tell_trouble(self, words: str) -> None:
        self.trouble = {"text": words, "n": self.trouble.get("n", 0) + 1}

    def _held(self) -> Content:
        """Return what is drawn; with the result while it is of this cluster."""
        topology, result = self.topology, self._result
        if result is not None and result.problem.topology == topology:
            return document(result, positions=self.positions)
        return document(topology, positions=self.positions)


class SchedulePlayer(TopologyWidget):
    """The plan of a result on its cluster, with the cut that bounds it.

    Frames ask the kernel for nothing: the whole plan is in the view.

    Parameters
    ----------
    result
        What is played.
    positions
        Middle of each device by name; by default those of `ccl.layout.layout`.
    **traits
        Those that `widgets.view_model.scene.PROPS` explains, such as ``height="600px"``.
    """

    def __init__(self, result: Result, positions: Positions | None = None, **traits: Any) -> None:
        super().__init__(result.problem.topology, positions, **{"toolbar": False, **traits})
        self.result = result
        """What is played."""
        self._speed = 1.0
        self.show(result.problem, result)

    @property
    def speed(self) -> float:
        """How fast it plays; 1 is normal, in which a whole plan takes 20 s at most."""
        return self._speed

    @speed.setter
    def speed(self, value: float) -> None:
        self.do("speed", value=float(value))
        self._speed = float(value)

    def play(self) -> None:
        """Let it run; from the end it starts over."""
        self.do("play")

    def pause(self) -> None:
        """Stop where it is."""
        self.do("pause")

    def step(self, by: int = 1) -> None:
        """Go to the next whole epoch, or `by` epochs on; back if it is negative."""
        self.do("step", by=by)

    def seek(self, time: float) -> None:
        """Go to a time in µs and stop there; `time` says where it is."""
        self.do("seek", time=float(time))

    def look_at(self, **parts: Any) -> None:
        """Show only what concerns some parts, and the way of a chunk; without any, everything.

        Parameters
        ----------
        **parts
            ``chunk``, ``rank`` or ``transfer``, numbers; ``link``, its two ends; ``host``, a name.
        """
        wanted = {part: value for part, value in parts.items() if value is not None}
        if strange := wanted.keys() - set(FOCUS):
            raise TypeError(
                f"nothing is looked at by {sorted(strange)[0]!r}; there are {', '.join(FOCUS)}"
            )
        if "link" in wanted:
            wanted["link"] = list(wanted["link"])
        self.set_trait("focus", {**dict.fromkeys(FOCUS), **wanted} if wanted else None)

    def explain(self, **parts: Any) -> str:
        """Describe the plan in words; the parts are those of `ccl.explain.explain`."""
        result = self.result
        return explain(result.problem, result.plan, timeline=result.timeline, **parts)

    def _held(self) -> Content:
        return document(self.result, positions=self.positions)


FOCUS = ("chunk", "link", "rank", "host", "transfer")
"""By what a plan is looked at."""
