"""A solved schedule in a notebook: played, stepped through and looked into, not edited."""

from __future__ import annotations

from typing import Any

from ccl.explain import explain
from ccl.result import Result
from ccl.serialization.conditions import document
from widgets.notebook.canvas import TopologyWidget
from widgets.notebook.comparison import Positions
from widgets.pages.saving import Content


class SchedulePlayer(TopologyWidget):
    """The plan of a result on its cluster, with the cut that bounds it.

    Frames ask the kernel for nothing: the whole plan is in the view.

    Parameters
    ----------
    result
        What is played.
    positions
        Middle of each device by name; by default `ccl.layout.layout` is asked.
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
            msg = f"nothing is looked at by {sorted(strange)[0]!r}; there are {', '.join(FOCUS)}"
            raise TypeError(msg)
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
