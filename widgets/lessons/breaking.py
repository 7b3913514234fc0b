"""Break one send of a schedule and let the verifier find it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from html import escape

import ipywidgets

from ccl.errors import CclError, ProblemError
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.result import Result
from ccl.verify import verify
from widgets.notebook.still import InWords

MOST_SENDS = 500
"""Sends that can be chosen; more than that nobody looks through."""


def leave_out(schedule: Schedule, place: int, _problem: Problem) -> Schedule:
    """Return the schedule without a send."""
    return replace(schedule, sends=schedule.sends[:place] + schedule.sends[place + 1 :])


def send_at_once(schedule: Schedule, place: int, _problem: Problem) -> Schedule:
    """Return the schedule with a send in its first epoch, before all others."""
    moved = replace(schedule.sends[place], epoch=0)
    return replace(schedule, sends=(moved, *schedule.sends[:place], *schedule.sends[place + 1 :]))


def send_too_late(schedule: Schedule, place: int, _problem: Problem) -> Schedule:
    """Return the schedule with a send in its last epoch."""
    return _with(schedule, place, replace(schedule.sends[place], epoch=schedule.horizon - 1))


def send_another_chunk(schedule: Schedule, place: int, problem: Problem) -> Schedule:
    """Return the schedule with the next chunk in a send."""
    send = schedule.sends[place]
    chunk = (send.chunk + 1) % len(problem.collective.chunks)
    return _with(schedule, place, replace(send, chunk=chunk))


def send_back(schedule: Schedule, place: int, _problem: Problem) -> Schedule:
    """Return the schedule with a send that goes the other way."""
    send = schedule.sends[place]
    turned = replace(send, src=send.dst, dst=send.src, via=send.via[::-1])
    return _with(schedule, place, turned)


def _with(schedule: Schedule, place: int, send: Send) -> Schedule:
    sends = (*schedule.sends[:place], send, *schedule.sends[place + 1 :])
    return replace(schedule, sends=sends)


WAYS = {
    "leave it out": leave_out,
    "send it at once": send_at_once,
    "send it in the last epoch": send_too_late,
    "send another chunk": send_another_chunk,
    "send it the other way": send_back,
}
"""How a send can be broken."""


def found(problem: Problem, broken: Schedule) -> str | None:
    """Return what the verifier says of a schedule, None where it finds nothing wrong."""
    try:
        verify(problem, broken)
    except CclError as error:
        return str(error)
    return None


class BreakASend(InWords, ipywidgets.VBox):  # type: ignore[misc]  # it has no types
    """Choose a send and a way to break it; the verifier's sentence comes below.

    Parameters
    ----------
    result
        Whose schedule is broken; it stays as it is.

    Raises
    ------
    ProblemError
        If its plan is no schedule.
    """

    words = "Break one send and let the verifier find it. (Run the notebook to try.)"

    def __init__(self, result: Result) -> None:
        if not isinstance(result.plan, Schedule):
            msg = f"only a schedule has sends to break; {result.formulation} found another plan"
            raise ProblemError(msg)
        self._problem, self._schedule = result.problem, result.plan
        listed = enumerate(self._schedule.sends[:MOST_SENDS])
        self.send = ipywidgets.Dropdown(
            options=[(f"epoch {send.epoch}: {send}", i) for i, send in listed],
            description="Send",
        )
        self.way = ipywidgets.Dropdown(options=list(WAYS), description="Break it")
        self.button = ipywidgets.Button(description="Verify", icon="search")
        self.message = ipywidgets.HTML()
        """What the verifier says."""
        self.button.on_click(lambda _: self.verify())
        row = ipywidgets.HBox([self.send, self.way, self.button])
        row.layout.flex_flow = "row wrap"
        super().__init__([row, self.message])

    @property
    def broken(self) -> Schedule:
        """The schedule with the chosen send broken."""
        return WAYS[self.way.value](self._schedule, self.send.value, self._problem)

    def verify(self) -> None:
        """Break the chosen send and show what the verifier says."""
        said = found(self._problem, self.broken)
        if Counter(self.broken.sends) == Counter(self._schedule.sends):
            words = "<b>Nothing is wrong.</b> The plan does this already; break it in another way."
        elif said is None:
            words = "<b>Nothing is wrong.</b> The plan does not need this send as it was: why?"
        else:
            words = f"<b>Found.</b> {escape(said)}"
        self.message.value = f'<div role="status">{words}</div>'
