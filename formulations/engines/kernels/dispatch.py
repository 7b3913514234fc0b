"""List scheduling in continuous time: one pass of events, compiled.

An event is that a chunk has arrived at a device, or that a link is free again. At an event every
move that has become possible is looked at, in an order that chance and the weights decide, and
takes the chunk that helps most. A chunk that u sends to v helps a destination d that lacks it if
it would be there earlier, by the quickest way on from v, than by what is expected now: from the
device ``own[c, d]``, once it holds the chunk and the first move of its quickest way is free. What
is sent is committed: links are busy, v will have the chunk, expectations follow. Where the device
before a link copies, other moves that begin in the same way go along in the same transmission.

Moves and their times are those of `formulations.engines.list_scheduling.routes`, events and what is
busy those of `formulations.engines.kernels.events`.

The functions here are compiled by numba and know only arrays;
`formulations.engines.list_scheduling.multistart` calls them.
"""

from __future__ import annotations

import numpy as np

from formulations.engines.kernels.arrays import NEVER, Net, State, Weights, Work
from formulations.engines.kernels.events import (
    SAME,
    end_of,
    first_events,
    happened,
    idle,
    let_through,
    occupy,
)
from formulations.engines.kernels.kernels import allocating, inner, kernel

SCANNED = 12
"""Chunks that are looked over in the time of a step."""


@kernel
def dispatch(net: Net, work: Work, weights: Weights, state: State) -> float:
    """Run one pass; what is sent stands in `state` afterwards.

    Returns
    -------
    float
        Makespan in µs, infinite if the pass was given up.
    """
    events = first_events(net, work, state)
    looked = np.empty(len(net.src), np.int64)
    now = 0.0
    while state.tally[1] > 0:
        eager = len(events) == 0
        if eager:
            many = _all(net, looked)
        else:
            # A link may be free for a later start than another was noted for.
            now = max(now, events[0][0])
            many = happened(net, work, state, events, looked, now + weights.scale * SAME)
        if now >= weights.limit or state.tally[4] > weights.steps:
            return NEVER
        sent = state.tally[0]
        _look(net, work, state, weights, events, looked[:many], now, eager)
        if eager and state.tally[0] == sent:
            return NEVER
    return end_of(work, state)


@inner
def _all(net, looked):
    for move in range(len(net.src)):
        looked[move] = move
    return len(net.src)


@allocating
def _look(net, work, state, weights, events, looked, now, eager):
    """Let the moves that are possible take what helps most."""
    keys = np.empty(len(looked))
    state.tally[4] += len(looked)
    many = 0
    for move in looked:
        if state.holds[net.src[move]] == 0:
            continue
        keys[many] = weights.of_move[move]
        if weights.choosy:
            chunk, score = _choose(net, work, state, weights, move, now, eager)
            if chunk < 0:
                continue
            keys[many] = -score
        looked[many] = move
        many += 1
    for i in np.argsort(keys[:many]):
        move = looked[i]
        chunk, _ = _choose(net, work, state, weights, move, now, eager)
        if chunk >= 0:
            state.tally[2] += 1
            _commit(net, work, state, events, move, chunk, now)
            _along(net, work, state, weights, events, move, chunk, now)


@inner
def _choose(net, work, state, weights, move, now, eager):
    """Return the chunk that it helps most to send, or -1."""
    device = net.src[move]
    chunk = -1
    top = -NEVER
    place = 0
    known = -1
    free = False
    while place < state.holds[device]:
        each = state.held[device, place]
        if state.lacking[each] == 0:
            # Nobody lacks it any more: it need not be looked at again.
            state.holds[device] -= 1
            state.held[device, place] = state.held[device, state.holds[device]]
            continue
        place += 1
        if state.there[each, net.dst[move]] < NEVER:
            continue
        if work.kind[each] != known:
            known = work.kind[each]
            free = idle(net, work, state, move, each, now, weights.scale * SAME)
            if not free and len(net.far) == 1:
                break  # nor is it for any other chunk of the size
        if free:
            score = _score(net, work, state, weights, move, each, now, eager)
            if score > top:
                top = score
                chunk = each
    state.tally[4] += place // SCANNED
    return chunk, top


@inner
def _ready(net, state, work, move, chunk):
    """When all that the move crosses is free."""
    when = 0.0
    nbytes = work.nbytes[chunk]
    for place in range(net.first[move], net.first[move + 1]):
        begin = state.free[net.resource[place]] - net.lead[place] - nbytes * net.drag[place]
        when = max(when, begin)
    return when


@inner
def _expected(net, work, state, chunk, device, now):
    """When the chunk will be there, as far as is known now."""
    kind, own = work.kind[chunk], state.own[chunk, device]
    begin = max(now, state.there[chunk, own])
    hop = net.hop[kind, own, device]
    if hop >= 0:
        begin = max(begin, _ready(net, state, work, hop, chunk))
    return begin + net.far[kind, own, device]


@inner
def _look_round(net, work, state, chunk, device, now):
    """Expect the chunk from the holder that now seems the first; of equal ones keep the old."""
    kind, own = work.kind[chunk], state.own[chunk, device]
    best = _expected(net, work, state, chunk, device, now)
    for holder in range(state.there.shape[1]):
        when = state.there[chunk, holder]
        if when == NEVER or holder == own:
            continue
        hop = net.hop[kind, holder, device]
        if hop < 0:
            continue
        begin = max(now, when, _ready(net, state, work, hop, chunk))
        if begin + net.far[kind, holder, device] < best * (1 - SAME):
            best = begin + net.far[kind, holder, device]
            state.own[chunk, device] = holder


@inner
def _score(net, work, state, weights, move, chunk, now, eager):
    """How much it helps to send the chunk now, or -inf if it does not."""
    kind, dst = work.kind[chunk], net.dst[move]
    tail = -1.0
    helped = 0
    alone = weights.narrow and work.wants[chunk, dst]
    many = 1 if alone else state.lacking[chunk]
    state.tally[4] += many
    for place in range(many):
        device = dst if alone else state.todo[chunk, place]
        if _helps(net, work, state, weights, move, chunk, device, now, eager):
            helped += 1
            if not alone:
                tail = max(tail, net.far[kind, dst, device])
    if not helped:
        return -NEVER
    score = weights.tail * tail / weights.scale - weights.few * state.spread[chunk]
    score += weights.many * helped + 1e6 * work.rank[chunk]
    return score + weights.chance * (weights.of_chunk[chunk] + weights.of_move[move])


@inner
def _helps(net, work, state, weights, move, chunk, device, now, eager):
    """Whether a destination would have the chunk earlier than is expected now."""
    kind, src, dst = work.kind[chunk], net.src[move], net.dst[move]
    took = net.latency[move] + work.nbytes[chunk] * net.slowest[move]
    mine = now + took + net.far[kind, dst, device]
    moment = weights.scale * SAME
    if mine == NEVER:
        return False
    if eager:
        return device == dst or net.far[kind, dst, device] < net.far[kind, src, device]
    than = _expected(net, work, state, chunk, device, now)
    if state.own[chunk, device] == src and mine > than - moment:
        # It waited for this; meanwhile another may be nearer.
        _look_round(net, work, state, chunk, device, now)
        than = _expected(net, work, state, chunk, device, now)
    if state.own[chunk, device] == src:
        return mine <= than + weights.slack * took + moment
    return mine < than - moment


@allocating
def _commit(net, work, state, events, move, chunk, now):
    """Send it: what it crosses is busy, and expectations follow."""
    kind, dst = work.kind[chunk], net.dst[move]
    arrival = occupy(net, work, state, events, move, chunk, now)
    place = 0
    while place < state.lacking[chunk]:
        device = state.todo[chunk, place]
        if device == dst:
            state.lacking[chunk] -= 1
            state.tally[1] -= 1
            state.todo[chunk, place] = state.todo[chunk, state.lacking[chunk]]
            continue
        place += 1
        if arrival + net.far[kind, dst, device] < _expected(net, work, state, chunk, device, now):
            state.own[chunk, device] = dst


@allocating
def _along(net, work, state, weights, events, first, chunk, now):
    """Send the same chunk along on moves that part where devices copy."""
    device = net.src[first]
    start = net.link[net.first[first]]
    # Never; the constant False would compile all that follows once more.
    eager = now < 0.0
    for move in range(net.out[device], net.out[device + 1]):
        if state.lacking[chunk] == 0:
            return
        if net.link[net.first[move]] != start or state.there[chunk, net.dst[move]] < NEVER:
            continue
        if _joins(net, work, state, move, chunk, now, weights.scale * SAME):
            score = _score(net, work, state, weights, move, chunk, now, eager)
            if score > -NEVER:
                _commit(net, work, state, events, move, chunk, now)


@inner
def _joins(net, work, state, move, chunk, now, moment):
    """Whether a move can leave the transmission that is under way at a device that copies."""
    group = state.tally[2]
    nbytes = work.nbytes[chunk]
    shared = True
    for place in range(net.first[move], net.first[move + 1]):
        resource = net.resource[place]
        begin = now + net.lead[place] + nbytes * net.drag[place]
        if state.together[net.link[place]] == group:
            end = begin + nbytes * net.beta[place]
            if not shared or abs(state.free[resource] - end) > moment:
                return False
            continue
        if shared and not net.parts[place]:
            return False
        shared = False
        if state.free[resource] > begin + moment or not let_through(net, state, place):
            return False
    return not shared
