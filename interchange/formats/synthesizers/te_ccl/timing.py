"""From the sends of a TE-CCL schedule to one of ours, on the file's grid as far as that holds.

In turn: the lines as they stand; with switches crossed without a stop; on epochs longer by the
latencies that TE-CCL drops; and last, when a slip of its grid is more than that, in the file's
order with epochs of their own: every send starts as early as what it carries and its links allow,
those of earlier epochs of the file first.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ccl.errors import FormatError
from ccl.problem import Problem
from ccl.schedule import Schedule, Send
from ccl.simulate.engine import binding
from ccl.simulate.plan import plan_sends
from interchange.formats.synthesizers.te_ccl.moves import NEARLY, Move
from interchange.formats.synthesizers.te_ccl.rules import Rules

FINE = 16
"""Epochs of ours in one of the file, where it gets epochs of its own."""

MOST_EPOCHS = 2**40


@dataclass(frozen=True)
class Timed:
    """A schedule made of a file.

    Parameters
    ----------
    schedule
        What is sent when.
    told
        How its epochs differ from the file's, in words, or nothing.
    in_turn
        Whether it has epochs of its own.
    broken
        The rules that the file breaks, in sentences, where it may.
    """

    schedule: Schedule
    told: str = ""
    in_turn: bool = False
    broken: tuple[str, ...] = ()


def on_grid(problem: Problem, sends: Sequence[Send], *, tau: float, epochs: int) -> Schedule:
    """Return sends in their epochs; there are as many of these as the last needs, or `epochs`."""
    last = max((send.epoch for send in sends), default=0)
    drafted = Schedule(tuple(sends), tau, max(epochs, last + 1))
    ends = plan_sends(problem, drafted, binding(problem.topology)).ends
    needed = math.ceil(max(ends, default=0.0) / tau * (1 - 1e-9))
    return replace(drafted, horizon=max(drafted.horizon, needed))


def lengthened(rules: Rules, moves: Sequence[Move]) -> float:
    """Return the epoch duration that also holds what TE-CCL drops, in µs.

    Dropped latencies are at most a tenth of it for each link, and its solver overloads links by
    a thousandth at most.
    """
    over = 1.0
    for link, loads in rules.loads(moves).items():
        over = max(over, max(loads.values()) / rules.carries(link)) if rules.fluid else over
    dropped = [
        sum(link.alpha for link in rules.links(move.send) if not rules.latency(link))
        for move in moves
    ]
    return rules.epoch_duration * min(over, 1 + NEARLY) + max(dropped, default=0.0)


def in_turn(problem: Problem, moves: Sequence[Move], tau: float) -> Schedule:
    """Return a schedule that keeps the order of the moves on a finer grid than `tau` µs.

    Raises
    ------
    FormatError
        If moves wait for one another, or what they wait for never comes.
    """
    groups = _groups(moves)
    exact = _placed(problem, moves, groups)
    order = sorted(range(len(groups)), key=lambda number: exact[number])
    fine = tau / FINE
    starts = _stepped(problem, moves, groups, (order, fine))
    sends = [
        replace(moves[place].send, epoch=starts[number])
        for number in order
        for place in groups[number]
    ]
    sends.sort(key=lambda send: send.epoch)
    return on_grid(problem, sends, tau=fine, epochs=1)


def _groups(moves: Sequence[Move]) -> list[list[int]]:
    """Return the places of moves that cross links together, as a multicast does."""
    found: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, move in enumerate(moves):
        send = move.send
        together = send.fraction == 1 and send.via
        key = (send.epoch, send.chunk, send.src, send.via[0]) if together else (place,)
        found[key].append(place)
    return list(found.values())


class _Links:
    """Until when each link is held, and when what is sent arrives, in µs."""

    def __init__(self, problem: Problem, moves: Sequence[Move]) -> None:
        self._topology = problem.topology
        self._sizes = [chunk.size for chunk in problem.collective.chunks]
        self._moves = moves
        self._free: defaultdict[tuple[str, str], float] = defaultdict(float)
        self.arrived = [math.inf] * len(moves)

    def _held(self, group: Sequence[int]) -> Iterator[tuple[tuple[str, str], float, float]]:
        """Yield each link of a group, how many µs after the start it is held, and until when."""
        seen = set()
        for place in group:
            for ends, begin, end in self._along(self._moves[place].send):
                if ends not in seen:
                    seen.add(ends)
                    yield ends, begin, end

    def _along(self, send: Send) -> Iterator[tuple[tuple[str, str], float, float]]:
        """Yield the links of a send: each waits until it can send without a pause."""
        late = wait = busy = 0.0
        for ends in send.hops:
            link = self._topology.link(*ends)
            took = self._sizes[send.chunk] * send.fraction * link.beta
            wait += max(0.0, busy - took)
            busy = took
            yield ends, late + wait, late + wait + busy
            late += link.alpha

    def ready(self, group: Sequence[int]) -> float:
        """Return the µs at which all that a group carries is there and its links are free."""
        there = [self.arrived[each] for place in group for each in self._moves[place].after]
        free = [self._free[ends] - offset for ends, offset, _ in self._held(group)]
        return max(0.0, *there, *free)

    def send(self, group: Sequence[int], start: float) -> None:
        """Hold the links of a group from `start` µs on."""
        for ends, _, end in self._held(group):
            self._free[ends] = start + end
        for place in group:
            *_, (ends, _, end) = self._along(self._moves[place].send)
            self.arrived[place] = start + end + self._topology.link(*ends).alpha


def _placed(
    problem: Problem, moves: Sequence[Move], groups: Sequence[Sequence[int]]
) -> list[float]:
    """Return when each group starts in µs: of the earliest epoch what can go first does."""
    links = _Links(problem, moves)
    waits = [{each for place in group for each in moves[place].after} for group in groups]
    then: defaultdict[int, list[int]] = defaultdict(list)
    for number, those in enumerate(waits):
        for each in those:
            then[each].append(number)
    left = [len(those) for those in waits]
    queue = [
        (moves[group[0]].send.epoch, 0.0, number)
        for number, group in enumerate(groups)
        if not left[number]
    ]
    heapq.heapify(queue)
    starts = [math.inf] * len(groups)
    while queue:
        epoch, before, number = heapq.heappop(queue)
        start = links.ready(groups[number])
        # Others of its epoch may go earlier, since its links are taken.
        if start > before and queue and queue[0] < (epoch, start, number):
            heapq.heappush(queue, (epoch, start, number))
            continue
        links.send(groups[number], start)
        starts[number] = start
        for place in groups[number]:
            for other in then[place]:
                left[other] -= 1
                if not left[other]:
                    heapq.heappush(queue, (moves[groups[other][0]].send.epoch, 0.0, other))
    stuck = [number for number, start in enumerate(starts) if start == math.inf]
    if stuck:
        # An end that is not finite is stuck as well.
        send = moves[groups[stuck[0]][0]].send
        msg = f"epoch {send.epoch}: {send} waits for what waits for it"
        raise FormatError(msg)
    return starts


def _stepped(
    problem: Problem,
    moves: Sequence[Move],
    groups: Sequence[Sequence[int]],
    how: tuple[Sequence[int], float],
) -> list[int]:
    """Return the epoch of each group, given their order and the duration of an epoch in µs."""
    order, tau = how
    links = _Links(problem, moves)
    epochs = [0] * len(groups)
    for number in order:
        ready = links.ready(groups[number])
        if not ready < MOST_EPOCHS * tau:
            msg = f"its sends take more than {MOST_EPOCHS:,} epochs of {tau:g} µs"
            raise FormatError(msg)
        epochs[number] = math.ceil(ready / tau * (1 - 1e-12))
        links.send(groups[number], epochs[number] * tau)
    return epochs
