"""Why each transfer of a replay started when it did, and which chain of them makes the makespan.

A transfer starts at the moment at which the last of what it waits for is there:

* what it carries has arrived at its source: all parts of it where it is a sum or cut;
* the transfer before it has left its link;
* of a send that crosses several links at once (`ccl.plans`), so much of it has come that the
  link can go on without a pause, and the same further on: the links begin together, each a set time
  later, so the one that is free last decides for all, and where paths meet in a switch, the
  part that comes last decides for the others;
* a shared limit has something left for it, or a window with no bandwidth at all has ended;
* the plan lets it start: what goes to a limited buffer, and everything where there are windows,
  starts no earlier than its epoch.

Of several that are there at the same moment an arrival counts first, then the link.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import itemgetter

from ccl.problem import Problem
from ccl.timeline.transfers import Ends, Timeline, Transfer
from ccl.topology import binding_limits

SAME_MOMENT = 1e-9
"""Times closer than this share of the makespan are one moment."""


class Reason(StrEnum):
    """What a transfer waited for last."""

    AT_ONCE = "at once"
    NOT_THERE = "the chunk was not there yet"
    LINK_BUSY = "the link was busy"
    PASSED_ON = "passed on byte by byte"
    FURTHER_ON = "a link further on was busy"
    MEETS = "it meets others in a switch that adds"
    LIMIT = "a shared limit"
    CLOSED = "the link let nothing through"
    PLANNED = "the plan starts it only then"


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a transfer started when it did.

    Parameters
    ----------
    reason
        What it waited for last.
    by
        Place in the timeline of the transfer that let it start: by arriving (`NOT_THERE`), by
        leaving its link (`LINK_BUSY`) or one further on (`FURTHER_ON`), by bringing the first
        byte (`PASSED_ON`), or as the one that it is to meet (`MEETS`). Where there is no such
        moment, the last that it waited for before; None where it waited for none.
    ready
        µs at which what it carries was at its source; its first byte, where that is passed on.
    """

    reason: Reason
    by: int | None
    ready: float


_Found = tuple[Reason, int | None]


def causes(problem: Problem, timeline: Timeline) -> tuple[Cause, ...]:
    """Return the cause of each transfer of a replay, in its order.

    Of a symmetric forest the transfers are those of the trees that stand for others; what waits
    for an image of one waits for the one itself.
    """
    replay = _Replay(problem, timeline)
    return tuple([replay.cause(i) for i in range(len(timeline.transfers))])


def trace_critical(
    problem: Problem, timeline: Timeline, *, known: Sequence[Cause] | None = None
) -> tuple[int, ...]:
    """Return the places of a chain of transfers, each let go by the one before it.

    It begins with one that waits for no other and ends with the one that ends at the makespan.
    `known` are the causes of all, where they have been found already.
    """
    cause = _Replay(problem, timeline).cause if known is None else known.__getitem__
    chain: list[int] = []
    current = find_last_needed(problem, timeline)
    while current is not None:
        chain.append(current)
        current = cause(current).by
    return tuple(reversed(chain))


def find_last_needed(problem: Problem, timeline: Timeline) -> int | None:
    """Return the transfer that ends at the makespan where it is needed, None if none is."""
    ranks, chunks = problem.topology.ranks, problem.collective.chunks
    wanted = [{ranks[rank] for rank in chunk.destinations} for chunk in chunks]
    every = timeline.transfers
    needed = (i for i, each in enumerate(every) if each.dst in wanted[each.chunk])
    return max(needed, key=lambda i: every[i].end, default=None)


class _Replay:
    """The transfers of a replay with what comes before and after each of them."""

    def __init__(self, problem: Problem, timeline: Timeline) -> None:
        self._problem = problem
        self._all = tuple(timeline.transfers)
        self._slack = SAME_MOMENT * timeline.makespan
        self._after = tuple(timeline.after) or ((),) * len(self._all)
        self._on_link = _before_on_link(timeline)
        self._passed = _passed_on(problem, timeline)
        self._onward: dict[int, list[int]] = {}
        for i, those in self._passed.items():
            for j in those:
                self._onward.setdefault(j, []).append(i)
        self._limits = _Limits(problem, timeline)
        # Where rates change along the path, every link of a send starts by itself.
        self._together = not (problem.windows or self._limits.any)
        # What the plan may hold back until its time.
        self._timed = bool(problem.windows) or any(
            each.stores and each.buffer_bytes is not None for each in problem.topology.devices
        )
        self._held: dict[int, frozenset[int]] = {}

    def cause(self, i: int) -> Cause:
        """Return why a transfer started when it did."""
        ready = self._ready(i)
        if i in self._passed and self._at_start(i, ready):
            return Cause(Reason.PASSED_ON, self._bearing(i), ready)
        found = self._alone(i, ready) or self._in_company(i) or self._slowed(i)
        reason, by = found or (Reason.PLANNED, self._before(i))
        return Cause(reason, by, ready)

    def _alone(self, i: int, ready: float) -> _Found | None:
        """Return a cause at the source of a transfer or on its link."""
        start, before = self._all[i].start, self._on_link[i]
        if start <= self._slack:
            return Reason.AT_ONCE, None
        if self._after[i] and i not in self._passed and self._at_start(i, ready):
            return Reason.NOT_THERE, max(self._after[i], key=lambda j: self._all[j].end)
        if before is not None and self._at_start(i, self._all[before].sent):
            return Reason.LINK_BUSY, before
        return None

    def _in_company(self, i: int) -> _Found | None:
        """Return a cause that lies with the links that are crossed together with this one."""
        if not self._together or i in self._passed or i not in self._onward:
            return None
        ahead = _reached(i, self._onward)
        for k in ahead:
            before = self._on_link[k]
            if k != i and before is not None and self._at_start(k, self._all[before].sent):
                return Reason.FURTHER_ON, before
        held = self._holding(i)
        return (Reason.MEETS, min(held)) if held else None

    def _slowed(self, i: int) -> _Found | None:
        """Return a shared limit or a window as the cause, where it is one."""
        own, before = self._all[i], self._before(i)
        if any(
            not window.share
            and (own.src, own.dst) in window.links
            and self._at_start(i, window.end)
            for window in self._problem.windows
        ):
            return Reason.CLOSED, before
        left = self._limits.last_left(own, own.start + self._slack)
        let_go = left is not None and self._at_start(i, self._all[left].sent)
        if not self._limits.on(own) or (self._timed and not let_go):
            return None
        known = [] if before is None else [(self._moment(i, before), before)]
        known += [] if left is None else [(self._all[left].sent, left)]
        return Reason.LIMIT, max(known)[1] if known else None

    def _before(self, i: int) -> int | None:
        """Return what a transfer waited for last, of what brings it or leaves its link."""
        before = self._on_link[i]
        known = [*self._after[i], *(() if before is None else (before,))]
        return max(known, key=lambda j: self._moment(i, j), default=None)

    def _moment(self, i: int, j: int) -> float:
        """Return the µs from which on transfer j no longer prevented transfer i from starting."""
        if j == self._on_link[i]:
            return self._all[j].sent
        return self._enough(i, j) if i in self._passed else self._all[j].end

    def _ready(self, i: int) -> float:
        if i in self._passed:
            return max(self._enough(i, j) for j in self._passed[i])
        return max((self._all[j].end for j in self._after[i]), default=0.0)

    def _enough(self, i: int, j: int) -> float:
        """Return when so much of transfer j was there that i could pass it on without a pause."""
        own, source = self._all[i], self._all[j]
        link = self._problem.topology.link
        first = source.start + link(source.src, source.dst).alpha
        took = own.sent - own.start
        # One that is slowed down begins with the first byte.
        slowed = took > own.nbytes * link(own.src, own.dst).beta + self._slack
        return first if slowed else max(first, source.end - took)

    def _at_start(self, i: int, moment: float) -> bool:
        return abs(self._all[i].start - moment) <= self._slack

    def _bearing(self, i: int) -> int:
        """Return, of all that a transfer passes on, the one on whose side it waited."""
        passed = self._passed[i]
        if len(passed) > 1 and self._together:
            held = self._holding(i)
            for j in passed:
                if not held.isdisjoint(_reached(j, self._passed)):
                    return j
        return max(passed, key=lambda j: self._enough(i, j))

    def _holding(self, i: int) -> frozenset[int]:
        """Return those crossed together with a transfer that could not have begun earlier."""
        if i not in self._held:
            together = {k for j in _reached(i, self._onward) for k in _reached(j, self._passed)}
            found = []
            for k in together:
                alone = self._alone(k, self._ready(k))
                if alone and not (k in self._passed and alone[0] is Reason.AT_ONCE):
                    found.append(k)
            self._held.update(dict.fromkeys(together, frozenset(found)))
        return self._held[i]


class _Limits:
    """What leaves the links of each shared limit that binds, and when."""

    def __init__(self, problem: Problem, timeline: Timeline) -> None:
        self._timeline = timeline
        self._of: dict[Ends, list[int]] = {}
        limits = binding_limits(problem.topology)
        for number, limit in enumerate(limits):
            for place in {timeline.place(*ends) for ends in limit.links}:
                self._of.setdefault(place, []).append(number)
        self._left: list[list[tuple[float, int]]] = [[] for _ in limits]
        for i, each in enumerate(timeline.transfers if limits else ()):
            for number in self._of.get(timeline.place(each.src, each.dst), ()):
                self._left[number].append((each.sent, i))
        for left in self._left:
            left.sort()

    @property
    def any(self) -> bool:
        """Whether there are such limits."""
        return bool(self._left)

    def on(self, transfer: Transfer) -> bool:
        """Return whether the link of a transfer is under one."""
        return self._timeline.place(transfer.src, transfer.dst) in self._of

    def last_left(self, transfer: Transfer, moment: float) -> int | None:
        """Return the last that left a link under a limit of this one by a moment in µs."""
        found: list[tuple[float, int]] = []
        for number in self._of.get(self._timeline.place(transfer.src, transfer.dst), ()):
            left = self._left[number]
            at = bisect_right(left, moment, key=itemgetter(0))
            found += left[at - 1 : at]
        return max(found)[1] if found else None


def _before_on_link(timeline: Timeline) -> list[int | None]:
    """Return for each transfer the one before it on its link."""
    found: list[int | None] = []
    last: dict[Ends, int] = {}
    for i, each in enumerate(timeline.transfers):
        place = timeline.place(each.src, each.dst)
        found.append(last.get(place))
        last[place] = i
    return found


def _passed_on(problem: Problem, timeline: Timeline) -> dict[int, tuple[int, ...]]:
    """Return the crossings whose bytes a transfer takes on without a stop, where it does.

    What stops at a device that cannot store goes on in a later epoch than it came.
    """
    stores = {each.name: each.stores for each in problem.topology.devices}
    every = timeline.transfers
    return {
        i: those
        for i, those in enumerate(timeline.after)
        if those
        and not stores[every[i].src]
        and every[i].epoch >= 0
        and every[those[0]].epoch == every[i].epoch
    }


def _reached(start: int, steps: Mapping[int, Iterable[int]]) -> list[int]:
    """Return a place and all that steps lead to from it."""
    found = {start: None}
    front = [start]
    while front:
        for each in steps.get(front.pop(), ()):
            if each not in found:
                found[each] = None
                front.append(each)
    return list(found)
