"""What the makespan is made of, along the critical path: latencies, bytes, waiting."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ccl.explain.told import Told
from ccl.text import number
from ccl.timeline import Cause, Reason, Transfer

_NOTHING = 1e-9
"""Shares of the makespan below this are rounding errors."""


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The parts of a makespan in µs, which add up to it.

    Parameters
    ----------
    alphas
        Latencies of the links along the critical path. Where a send over several links waits for
        one further on, those before it are none: its first bytes are under way before that is
        free. One is negative where the path does not go over that link.
    sending
        µs in which bytes were put on links at their bandwidth.
    slowed
        µs that this took longer, under shared limits and with less bandwidth for a time.
    waiting
        µs in which nothing of the path was sent: for a limit, a window or the plan.
    """

    alphas: tuple[float, ...]
    sending: float
    slowed: float
    waiting: float

    @property
    def latency(self) -> float:
        """Sum of the latencies in µs."""
        return sum(self.alphas)

    @property
    def total(self) -> float:
        """Sum of all parts in µs: the makespan."""
        return self.latency + self.sending + self.slowed + self.waiting

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """Say the parts in one line, those that are nothing left out."""
        least = _NOTHING * self.total
        parts = [f"bytes {number(self.sending)} µs"]
        if self.latency > least:
            parts.insert(0, f"alpha {_added(self.alphas)}")
        if self.slowed > least:
            parts.append(f"slowed down {number(self.slowed)} µs")
        if self.waiting > least:
            parts.append(f"waiting {number(self.waiting)} µs")
        return f"{number(self.total)} µs = {' + '.join(parts)}"


def breakdown(told: Told) -> Breakdown:
    """Take the makespan of a replay apart along its critical path."""
    parts = _Parts(told)
    path = told.critical
    for place, i in enumerate(path):
        own = told.transfers[i]
        if not place:
            parts.waiting += own.start
        if place + 1 < len(path):
            after = path[place + 1]
            parts.until(own, told.transfers[after], told.causes[after])
        else:
            parts.arrival(own)
    parts.settle()
    alphas = tuple(each for each in parts.alphas if each)
    return Breakdown(alphas, parts.sending, parts.slowed, parts.waiting)


class _Parts:
    """The sums, and how a transfer adds to them."""

    def __init__(self, told: Told) -> None:
        self._link = told.problem.topology.link
        self.alphas: list[float] = []
        self.sending = self.slowed = self.waiting = 0.0
        # µs that a send set out before a link further on was free.
        self._ahead = 0.0
        self._least = _NOTHING * told.timeline.makespan

    def until(self, own: Transfer, later: Transfer, cause: Cause) -> None:
        """Count from the start of a transfer to that of the one that it lets start."""
        if cause.reason is Reason.PASSED_ON and self._ahead > self._least:
            self._ahead -= later.start - own.start
            return
        self.settle()
        if cause.reason is Reason.PASSED_ON:
            alpha = self._link(own.src, own.dst).alpha
            self.alphas.append(alpha)
            # Until the next link can send without a pause.
            self.sending += later.start - own.start - alpha
        elif cause.reason is Reason.MEETS:
            self.alphas.append(later.start - own.start)
        elif cause.reason is Reason.FURTHER_ON:
            self._sends(own)
            self._ahead = own.sent - later.start
        elif cause.reason is Reason.LINK_BUSY or not _brings(own, later):
            self._sends(own)
            self.waiting += later.start - own.sent
        elif cause.reason is Reason.NOT_THERE or later.start >= own.end:
            self.arrival(own)
            self.waiting += later.start - own.end
        else:  # its first bytes were there, and had to wait
            alpha = self._link(own.src, own.dst).alpha
            self.alphas.append(alpha)
            self.waiting += later.start - own.start - alpha

    def settle(self) -> None:
        """Count what is left of setting out ahead of a link that was not come to."""
        if abs(self._ahead) > self._least:
            self.alphas.append(-self._ahead)
        self._ahead = 0.0

    def arrival(self, own: Transfer) -> None:
        """Count from the start of a transfer until it has arrived."""
        alpha = self._link(own.src, own.dst).alpha
        self._sends(own)
        self.alphas.append(alpha)

    def _sends(self, own: Transfer) -> None:
        needed = own.nbytes * self._link(own.src, own.dst).beta
        self.sending += needed
        self.slowed += own.sent - own.start - needed


def _brings(own: Transfer, later: Transfer) -> bool:
    """Say whether a transfer brings what a later one sends, rather than leaves its link."""
    return own.dst == later.src and own.chunk == later.chunk


def _added(alphas: tuple[float, ...]) -> str:
    """Write latencies as a sum, the same ones as a product."""
    total = f"{number(sum(alphas))} µs"
    if any(each < 0 for each in alphas):
        return total
    counts = Counter(number(each) for each in alphas)
    terms = " + ".join(f"{many} × {each}" for each, many in counts.items())
    return f"{terms} µs" if len(counts) == 1 else f"({terms}) µs"
