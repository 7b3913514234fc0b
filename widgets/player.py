"""A solved schedule in a notebook: played, stepped through and looked into, not edited."""

from __future__ import annotations

from typing import Any

from ccl.result import Result
from widgets.comparison import Positions
from widgets.jupyter import TopologyWidget


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
        Those that `widgets.props.PROPS` explains, such as ``height="600px"``.
    """

    def __init__(self, result: Result, positions: Positions | None = None, **traits: Any) -> None:
        super().__init__(result.problem.topology, positions, **{"toolbar": False, **traits})
        self.result = result
        """What is played."""
        self.show(result.problem, result)
