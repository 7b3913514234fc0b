"""Forward and backward passes: a plan whose paths stay, put into a better order on its links.

Read backwards, a transfer that ends early in a plan may start late, and the plan is one whose
transfers wait for those that came after them. A pass forwards whose priorities are the starts of a
pass backwards sends first what has to be there first, and the next pass backwards begins from its
ends: Li and Willis' iterative scheduling (EJOR 56, 1992) on links. What begins it hardly matters.

Only plans are put into order whose transfers share links with no other at a time: shared limits,
transmissions that part or meet on the way, and buffers are left as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ccl.topology import binding_limits
from formulations.core.preparing import interpreting, ready
from formulations.engines.list_scheduling.timed import TimedTransfers, Transfers, ends, relied

ROUNDS, PATIENCE = 40, 4
"""Most pairs of passes, and how many of them may pass without a gain."""

Pass = tuple[np.ndarray, np.ndarray]
"""When each transfer starts, and when it is there, in µs."""

AS_WRITTEN = 500
"""Transfers above which it takes too long as it is written, while it is being compiled."""

GAIN = 1e-6
"""Share of the makespan that counts as a gain."""


def reordered(
    transfers: Transfers,
    timed: TimedTransfers,
    sizes: np.ndarray,
    *,
    goal: float,
    over: Callable[[], bool],
) -> TimedTransfers:
    """Return the plan in the best order that passes find, or as it is where none is better.

    Parameters
    ----------
    transfers, timed
        What is sent.
    sizes
        Bytes of each chunk.
    goal
        µs that no plan is below.
    over
        Whether the time is over; asked before each pass.
    """
    slow = interpreting() and not ready() and len(timed) > AS_WRITTEN
    if slow or not _orderly(transfers, timed):
        return timed
    stop = ends(transfers, timed, sizes)
    if float(stop.max(initial=0.0)) <= goal * (1 + GAIN):
        return timed
    before, after = relied(transfers, timed, sizes, np.arange(len(timed)))
    passes = Passes(transfers, timed.transfer, sizes[timed.chunk], before, after)
    start, _ = passes.improved((timed.start, stop), goal=goal, over=over)
    return replace(timed, start=start)


class Passes:
    """Passes over transfers that wait for one another, as if links shared no limits.

    Parameters
    ----------
    transfers
        What can be sent.
    transfer, nbytes
        Number and bytes of each transfer of the plan, each shape (n,).
    before, after
        Pairs of which the second waits for the first, each shape (pairs,).
    """

    def __init__(
        self,
        transfers: Transfers,
        transfer: np.ndarray,
        nbytes: np.ndarray,
        before: np.ndarray,
        after: np.ndarray,
    ) -> None:
        many, links = len(transfer), len(transfers.topology.links)
        self._topology = transfers.topology
        self._there = (*transfers.arrays, links)
        self._back = (*mirrored(transfers), links)
        self._jobs = transfer, nbytes, np.bincount(after, minlength=many)
        self._turned = transfer, nbytes, np.bincount(before, minlength=many)
        self._followers, self._leaders = _listed(before, after, many), _listed(after, before, many)

    def forward(self, priority: np.ndarray) -> Pass:
        """Return when each starts and is there, where the smallest priority goes first."""
        from formulations.engines.kernels.precedence import ordered  # noqa: PLC0415  it loads numba

        start, end = ordered(self._there, self._jobs, self._followers, priority)
        return start, end

    def backward(self, priority: np.ndarray) -> Pass:
        """Return the same backwards in time."""
        from formulations.engines.kernels.precedence import ordered  # noqa: PLC0415  it loads numba

        start, end = ordered(self._back, self._turned, self._leaders, priority)
        return start, end

    def improved(
        self, first: Pass, *, goal: float, over: Callable[[], bool], patience: int = PATIENCE
    ) -> Pass:
        """Return the best that passes find from a plan on, given as its starts and arrivals.

        Times that no plan has under shared limits meet no goal.
        """
        goal = 0.0 if binding_limits(self._topology) else goal
        best, stalled, end = first, 0, first[1]
        least = float(end.max(initial=0.0))
        for _ in range(ROUNDS):
            if least <= goal * (1 + GAIN) or stalled >= patience or over():
                break
            start, end = self.forward(-self.backward(-end)[1])
            last = float(end.max(initial=0.0))
            stalled = 0 if last < least * (1 - GAIN) else stalled + 1
            if last < least:
                best, least = (start, end), last
        return best


def mirrored(transfers: Transfers) -> tuple[np.ndarray, ...]:
    """Return `Transfers.arrays` as they are when time runs backwards."""
    first, link, beta, lead, drag, latency, slowest = transfers.arrays
    of = transfers.of_link
    return first, link, beta, latency[of] - lead, slowest[of] - beta - drag, latency, slowest


def _orderly(transfers: Transfers, timed: TimedTransfers) -> bool:
    """Return whether each transfer is by itself on links without shared limits."""
    groups = np.sort(timed.group)
    return bool((groups[1:] > groups[:-1]).all()) and not binding_limits(transfers.topology)


def _listed(of: np.ndarray, others: np.ndarray, many: int) -> tuple[np.ndarray, np.ndarray]:
    """Return where the others of each begin, and the others."""
    order = np.argsort(of, kind="stable")
    first = np.searchsorted(of[order], np.arange(many + 1))
    return first.astype(np.int64), others[order].astype(np.int64)
