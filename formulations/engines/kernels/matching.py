"""One trial of matching links with chunks, compiled: whatever is free takes something at once.

At an event every move that has become possible is looked at, the quickest first and equal ones in
random order. If all that it crosses is free, it takes one of the chunks that its source holds and
its destination wants and has not been sent: one that fewest devices have or, as asked for, any
of them with the same chance. No chunk goes to a device that does not want it.

Moves and their times are those of `formulations.engines.list_scheduling.routes`, events and what is
busy those of `formulations.engines.kernels.events`; `formulations.engines.list_scheduling.tacos`
calls this.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from formulations.engines.kernels.arrays import NEVER, Net, State, Work
from formulations.engines.kernels.events import SAME, end_of, first_events, happened, idle, occupy
from formulations.engines.kernels.kernels import inner, kernel


class Rules(NamedTuple):
    """How one trial decides.

    Parameters
    ----------
    seed
        Of its random numbers.
    pace
        Place of each move among the different durations, the quickest 0, shape (n,).
    rarest
        Whether what fewest devices have goes first.
    wait
        Chance that a move which is not among the quickest lets its turn pass.
    step
        µs after which it is looked at again.
    limit
        µs after which the trial is given up.
    scale
        µs of a long hop, by which times are measured.
    """

    seed: int
    pace: np.ndarray
    rarest: bool
    wait: float
    step: float
    limit: float
    scale: float


@kernel
def match(net: Net, work: Work, rules: Rules, state: State) -> float:
    """Run one trial; what is sent stands in `state` afterwards.

    Returns
    -------
    float
        Makespan in µs, infinite if the trial was given up or nothing leads to a destination.
    """
    np.random.seed(rules.seed)  # noqa: NPY002  numba has this one
    events = first_events(net, work, state)
    looked = np.empty(len(net.src), np.int64)
    moment = rules.scale * SAME
    now = 0.0
    while state.tally[1] > 0 and len(events):
        # A link may be free for a later start than another was noted for.
        now = max(now, events[0][0])
        if now >= rules.limit:
            return NEVER
        many = happened(net, work, state, events, looked, now + moment)
        keys = rules.pace[looked[:many]] + np.random.random(many)  # noqa: NPY002
        state.tally[4] += many
        for place in np.argsort(keys):
            move = looked[place]
            chunk = _drawn(net, work, state, move, rules.rarest, now, moment)
            if chunk < 0:
                continue
            if rules.pace[move] > 0 and np.random.random() < rules.wait:  # noqa: NPY002
                heapq.heappush(events, (now + rules.step, net.resource[net.first[move]]))
                continue
            state.tally[1] -= 1
            state.tally[2] += 1
            state.lacking[chunk] -= 1
            occupy(net, work, state, events, move, chunk, now)
    return end_of(work, state)


@inner
def _drawn(net, work, state, move, rarest, now, moment):
    """Return a chunk that the move can take, -1 if there is none."""
    src, dst = net.src[move], net.dst[move]
    chunk, equal, known, free = -1, 0, -1, False
    state.tally[4] += state.holds[src]
    place = 0
    while place < state.holds[src]:
        each = state.held[src, place]
        if state.lacking[each] == 0:
            # Nobody lacks it any more: it need not be looked at again.
            state.holds[src] -= 1
            state.held[src, place] = state.held[src, state.holds[src]]
            continue
        place += 1
        if state.there[each, dst] < NEVER or not work.wants[each, dst]:
            continue
        if work.kind[each] != known:
            known = work.kind[each]
            free = idle(net, work, state, move, each, now, moment)
        if not free:
            continue
        if chunk >= 0 and rarest and state.spread[each] != state.spread[chunk]:
            if state.spread[each] < state.spread[chunk]:
                chunk, equal = each, 1
            continue
        equal += 1
        if np.random.random() * equal < 1:  # noqa: NPY002
            chunk = each
    return chunk
