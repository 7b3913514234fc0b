"""What a replay is worth: bandwidths as nccl-tests prints them, use of links, critical path."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ccl.collective import Collective
from ccl.problem import Problem
from ccl.timeline import Timeline, Transfer

_SAME_MOMENT = 1e-9
"""Times closer than this share of the makespan are one moment."""


def bus_factor(collective: Collective) -> float:
    """Return busbw / algbw of a collective.

    Reference: NVIDIA/nccl-tests, doc/PERFORMANCE.md and the GetBw functions in src/; a custom
    demand, which it does not know, has the factor 1.
    """
    n = collective.ranks
    if collective.kind == "all-reduce":
        return 2 * (n - 1) / n
    if collective.kind in ("custom", "broadcast", "reduce"):
        return 1.0
    return (n - 1) / n


def algbw(collective: Collective, makespan: float) -> float:
    """Return size over makespan in GB/s; `makespan` is in µs."""
    return collective.size / makespan * 1e-3


def busbw(collective: Collective, makespan: float) -> float:
    """Return algbw times the bus factor in GB/s; `makespan` is in µs."""
    return algbw(collective, makespan) * bus_factor(collective)


def finish_times(problem: Problem, timeline: Timeline) -> dict[str, float]:
    """Return the µs at which the last byte of each tenant is where it is needed.

    By name in the order of the chunks; chunks without a tenant are together under the empty
    name. The largest is the makespan.
    """
    ranks, chunks = problem.topology.ranks, problem.collective.chunks
    wanted = [{ranks[rank] for rank in chunk.destinations} for chunk in chunks]
    finish = {chunk.tenant: 0.0 for chunk in chunks}
    for each in timeline.transfers:
        if each.dst in wanted[each.chunk]:
            tenant = chunks[each.chunk].tenant
            finish[tenant] = max(finish[tenant], each.end)
    return finish


def link_utilisation(problem: Problem, timeline: Timeline) -> dict[tuple[str, str], float]:
    """Return for every link the share of the makespan in which it carries at full bandwidth.

    What crosses a link after the makespan, needed by nobody, counts all the same.
    """
    carried = {
        place: sum(each.nbytes for each in transfers)
        for place, transfers in timeline.by_link().items()
    }
    if not timeline.makespan:
        return {link.ends: 0.0 for link in problem.topology.links}
    return {
        link.ends: carried.get(timeline.place(*link.ends), 0.0) * link.beta / timeline.makespan
        for link in problem.topology.links
    }


def link_load(problem: Problem, timeline: Timeline, epoch_duration: float) -> NDArray[np.float64]:
    """Return the share of each link's capacity that is used in each slot of time.

    Parameters
    ----------
    problem
        Whose links give the rows.
    timeline
        A replay; what a transfer carries counts as spread evenly from its start until it is sent.
    epoch_duration
        Length of a slot in µs.

    Returns
    -------
    Array of shape (links, slots), from 0 to 1, with as many slots as the makespan needs.
    """
    slots = max(1, int(np.ceil(timeline.makespan / epoch_duration - _SAME_MOMENT)))
    moments = np.arange(slots + 1) * epoch_duration
    by_link = timeline.by_link()
    rows = [by_link.get(timeline.place(*link.ends), []) for link in problem.topology.links]
    load = np.zeros((len(rows), slots))
    for i, (link, row) in enumerate(zip(problem.topology.links, rows, strict=True)):
        if row:
            # A link serves one transfer at a time, so what it has carried grows along a line.
            times = np.array([(each.start, each.sent) for each in row]).ravel()
            total = np.cumsum([each.nbytes for each in row])
            carried = np.column_stack([total - [each.nbytes for each in row], total]).ravel()
            load[i] = np.diff(np.interp(moments, times, carried)) * link.beta / epoch_duration
    return load


def critical_path(problem: Problem, timeline: Timeline) -> tuple[Transfer, ...]:
    """Return a chain of transfers, each the cause of the next, that makes the makespan what it is.

    Each one starts when the one before it lets it: by bringing what it carries or, where nothing
    of it came just then, by leaving a link of its way; or by doing so for what it meets in a
    switch that adds. Of a timeline slowed down by shared limits the one before is the last that
    did either.
    """
    causes = _Causes(problem, timeline)
    chain: list[Transfer] = []
    current = causes.last()
    while current is not None:
        chain.append(current)
        current = causes.before(current)
    return tuple(reversed(chain))


class _Causes:
    """Finds what let a transfer start; each transfer is found once."""

    def __init__(self, problem: Problem, timeline: Timeline) -> None:
        self._problem = problem
        self._timeline = timeline
        self._slack = _SAME_MOMENT * timeline.makespan
        self._found: set[int] = set()
        self._on_link = timeline.by_link()
        self._of_chunk: dict[int, list[Transfer]] = {}
        for each in timeline.transfers:
            self._of_chunk.setdefault(each.chunk, []).append(each)
        self._at: dict[int, dict[str, tuple[list[Transfer], list[Transfer]]]] = {}

    def last(self) -> Transfer | None:
        """Return the transfer that ends at the makespan where it is needed."""
        ranks, chunks = self._problem.topology.ranks, self._problem.collective.chunks
        wanted = [{ranks[rank] for rank in chunk.destinations} for chunk in chunks]
        needed = (each for each in self._timeline.transfers if each.dst in wanted[each.chunk])
        return max(needed, key=lambda each: each.end, default=None)

    def before(self, current: Transfer) -> Transfer | None:
        """Return the last of what let `current` start, arrivals first, or None at the beginning."""
        if current.start <= self._slack:
            return None
        self._found.add(id(current))
        passed_on = self._passed_on(current)
        if len(passed_on) > 1:
            return max(passed_on, key=self._pressed)
        candidates = [
            (self._there(each, current), each) for each in self._into(current.chunk, current.src)
        ]
        for part in self._together(current):
            late = part.start - current.start
            candidates += [(each.sent - late, each) for each in self._sent_on(part)]
            if part is not current and self._stores(part.src):
                came = self._into(part.chunk, part.src)
                candidates += [(each.end - late, each) for each in came]
                if part.start <= self._slack:
                    candidates.append((current.start, part))
        best: tuple[float, Transfer | None] = (0.0, None)
        for time, each in candidates:
            if time <= current.start + self._slack and id(each) not in self._found:
                best = (time, each) if time > best[0] + self._slack else best
        return best[1]

    def _passed_on(self, current: Transfer) -> list[Transfer]:
        """Return what `current` takes on byte by byte: several transfers where a switch adds."""
        if self._stores(current.src):
            return []
        came = self._into(current.chunk, current.src)
        return [each for each in came if abs(self._first_byte(each) - current.start) <= self._slack]

    def _pressed(self, each: Transfer) -> float:
        """Return how many µs before a transfer starts its last cause was there, below 0.

        Of all that a switch adds, one at least starts at once when it can, and the others so
        that their first bytes meet.
        """
        latest = -each.start
        for part in self._parts(each):
            if part.start <= self._slack:
                return 0.0
            times = [before.sent for before in self._sent_on(part)]
            if self._stores(part.src):
                times += [before.end for before in self._into(part.chunk, part.src)]
            due = [time - part.start for time in times if time <= part.start + self._slack]
            latest = max([latest, *due])
        return latest

    def _parts(self, each: Transfer) -> list[Transfer]:
        """Return a transfer with all that it takes on byte by byte, over however many links."""
        parts = [each]
        for part in parts:
            # Without latency, what comes back to a switch at once may seem to be its own cause.
            parts += [before for before in self._passed_on(part) if before not in parts]
        return parts

    def _there(self, each: Transfer, current: Transfer) -> float:
        """Return when a transfer was there: its first byte where that was sent on at once."""
        if each.end > current.start + self._slack and not self._stores(each.dst):
            return self._first_byte(each)
        return each.end

    def _together(self, current: Transfer) -> list[Transfer]:
        """Return a transfer with those that take it on byte by byte, whose links it waits for.

        With them comes what they take on beside it, where a switch adds.
        """
        onward = [current]
        for last in onward:
            if not self._stores(last.dst):
                first_byte = self._first_byte(last)
                left = self._out_of(current.chunk, last.dst)
                at_once = [each for each in left if abs(each.start - first_byte) <= self._slack]
                onward += [each for each in at_once if each not in onward]
        parts = [each for last in onward for each in self._parts(last)]
        return list(dict.fromkeys([*onward, *parts]))

    def _sent_on(self, part: Transfer) -> list[Transfer]:
        """Return what crosses the link of a transfer, or one of its orbit."""
        return self._on_link[self._timeline.place(part.src, part.dst)]

    def _into(self, chunk: int, device: str) -> list[Transfer]:
        return self._moves(chunk).get(device, ([], []))[0]

    def _out_of(self, chunk: int, device: str) -> list[Transfer]:
        return self._moves(chunk).get(device, ([], []))[1]

    def _moves(self, chunk: int) -> dict[str, tuple[list[Transfer], list[Transfer]]]:
        """Return what brings a chunk to each device, and what takes it from there."""
        if chunk not in self._at:
            self._at[chunk] = {}
            for each in self._of_chunk[chunk]:
                self._at[chunk].setdefault(each.dst, ([], []))[0].append(each)
                self._at[chunk].setdefault(each.src, ([], []))[1].append(each)
        return self._at[chunk]

    def _first_byte(self, each: Transfer) -> float:
        """Return when the first byte of a transfer was there."""
        return each.start + self._problem.topology.link(each.src, each.dst).alpha

    def _stores(self, device: str) -> bool:
        return self._problem.topology.device(device).stores
