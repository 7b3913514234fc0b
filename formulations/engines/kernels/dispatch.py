"""Events in continuous time, compiled: a pass of list scheduling, and a trial of matching.

An event is that a chunk has arrived at a device, or that a link is free again. Links are merged
into resources, of which each serves one chunk at a time; without symmetry a link is a resource. A
shared limit that binds is filled up by the transfers under it at the rates of their links.
Transfers and their times are those of `formulations.engines.list_scheduling.timed`. All functions
here are compiled by numba and know only arrays.

`dispatch` is one pass of list scheduling; `formulations.engines.list_scheduling.multistart` calls
it. At an event every transfer that has become possible is looked at, in an order that chance and
the weights decide, and takes the chunk that helps most. A chunk that u sends to v helps a
destination d that lacks it if it would be there earlier, by the quickest path on from v, than by
what is expected now: from the device ``own[c, d]``, once it holds the chunk and the first transfer
of its quickest path is free. What is sent is committed: links are busy, v will have the chunk,
expectations follow. Where the device before a link copies, other transfers that begin alike go
along in the same transmission.

`match` is one trial of matching links with chunks: whatever is free takes something at once.
`formulations.engines.list_scheduling.search` calls it. At an event every transfer that has become
possible is looked at, the quickest first and equal ones in random order. If all that it crosses is
free, it takes one of the chunks that its source holds and its destination wants and has not been
sent: one that fewest devices have or, as requested, any of them with the same chance. No chunk goes
to a device that does not want it.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from formulations.engines.kernels.arrays import (
    NEVER,
    Net,
    State,
    Weights,
    Work,
    allocating,
    inner,
    kernel,
)

SAME = 1e-9
"""Times closer than this share of a long hop are one moment."""


@allocating
def first_events(net, work, state):
    """Return the events of the beginning: what is there, and when links are free."""
    devices = work.wants.shape[1]
    resources = len(net.user_first) - 1
    events = [(0.0, 0)]
    for chunk in range(len(work.nbytes)):
        for device in range(devices):
            if work.there[chunk, device] < NEVER:
                when = work.there[chunk, device]
                heapq.heappush(events, (when, resources + chunk * devices + device))
    for resource in range(resources):
        if state.free[resource] > 0:
            watch(net, state, events, resource)
    return events


@allocating
def happened(net, work, state, events, looked, until):
    """Take the events of this moment; fill in the transfers that they touch and count them."""
    devices = work.wants.shape[1]
    resources = len(net.user_first) - 1
    state.tally[3] += 1
    turn = state.tally[3]
    many = np.int64(0)
    while len(events) and events[0][0] <= until:
        _, what = heapq.heappop(events)
        if what < 0:
            many = _released(net, state, looked, many, -1 - what)
        elif what < resources:
            many = _touch(net, state, looked, many, what)
        else:
            chunk, device = divmod(what - resources, devices)
            state.held[device, state.holds[device]] = chunk
            state.holds[device] += 1
            for transfer in range(net.out[device], net.out[device + 1]):
                if state.mark[transfer] != turn:
                    state.mark[transfer] = turn
                    looked[many] = transfer
                    many += 1
    return many


@inner
def _touch(net, state, looked, many, resource):
    """Add the transfers over a resource to those that are looked at, if they have what to send."""
    for place in range(net.user_first[resource], net.user_first[resource + 1]):
        transfer = net.users[place]
        if state.holds[net.src[transfer]] > 0 and state.mark[transfer] != state.tally[3]:
            state.mark[transfer] = state.tally[3]
            looked[many] = transfer
            many += 1
    return many


@inner
def _released(net, state, looked, many, resource):
    """Give back what a resource took of its shared limits, and touch what is under them."""
    for cap in range(net.cap_first[resource], net.cap_first[resource + 1]):
        limit = net.caps[cap]
        # The next over it may have been let through already, for when it is free.
        state.load[limit] -= state.rate[resource]
        for place in range(net.under_first[limit], net.under_first[limit + 1]):
            many = _touch(net, state, looked, many, net.under[place])
    return many


@inner
def idle(net, work, state, transfer, chunk, now, moment):
    """Return whether all that the transfer crosses is free in time."""
    nbytes = work.nbytes[chunk]
    for place in range(net.first[transfer], net.first[transfer + 1]):
        resource = net.resource[place]
        begin = now + net.lead[place] + nbytes * net.drag[place]
        if state.free[resource] > begin + moment:
            return False
        if not let_through(net, state, place):
            return False
    return True


@inner
def let_through(net, state, place):
    """Return whether the shared limits of a crossing have capacity left for it."""
    resource = net.resource[place]
    for cap in range(net.cap_first[resource], net.cap_first[resource + 1]):
        limit = net.caps[cap]
        if state.load[limit] + 1 / net.beta[place] > net.capacity[limit] * (1 + SAME):
            return False
    return True


@allocating
def occupy(net, work, state, events, transfer, chunk, now):
    """Send a chunk: what the transfer crosses is busy; note it and return when it is there."""
    devices = work.wants.shape[1]
    resources = len(net.user_first) - 1
    nbytes, dst = work.nbytes[chunk], net.dst[transfer]
    group = state.tally[2]
    for place in range(net.first[transfer], net.first[transfer + 1]):
        resource = net.resource[place]
        if state.together[net.link[place]] == group:
            continue
        state.together[net.link[place]] = group
        begin = now + net.lead[place] + nbytes * net.drag[place]
        state.free[resource] = begin + nbytes * net.beta[place]
        watch(net, state, events, resource)
        if net.cap_first[resource] < net.cap_first[resource + 1]:
            state.rate[resource] = 1 / net.beta[place]
            heapq.heappush(events, (state.free[resource], -1 - resource))
            for cap in range(net.cap_first[resource], net.cap_first[resource + 1]):
                state.load[net.caps[cap]] += 1 / net.beta[place]
    arrival = now + net.latency[transfer] + nbytes * net.slowest[transfer]
    state.there[chunk, dst] = arrival
    _hold(state, chunk, dst)
    heapq.heappush(events, (arrival, resources + chunk * devices + dst))
    sent = state.tally[0]
    state.transfer[sent], state.chunk[sent] = transfer, chunk
    state.start[sent], state.group[sent] = now, group
    state.tally[0] += 1
    return arrival


@inner
def _hold(state, chunk, device):
    """Note among the holders of a chunk one more, in the order of devices."""
    place = state.spread[chunk]
    while place > 0 and state.holders[chunk, place - 1] > device:
        state.holders[chunk, place] = state.holders[chunk, place - 1]
        place -= 1
    state.holders[chunk, place] = device
    state.spread[chunk] += 1


@allocating
def watch(net, state, events, resource):
    """Note the moments from which on transfers over a resource may start."""
    for place in range(net.early_first[resource], net.early_first[resource + 1]):
        heapq.heappush(events, (max(0.0, state.free[resource] - net.early[place]), resource))


@inner
def end_of(work, state):
    """Return when the last chunk is where it is wanted."""
    last = 0.0
    for chunk in range(work.wants.shape[0]):
        for device in range(work.wants.shape[1]):
            if work.wants[chunk, device]:
                last = max(last, state.there[chunk, device])
    return last


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
        if now >= weights.limit or state.tally[4] > weights.steps or weights.stop[0]:
            return NEVER
        sent = state.tally[0]
        _look(net, work, state, weights, events, looked[:many], now, eager)
        if eager and state.tally[0] == sent:
            return NEVER
    return end_of(work, state)


@inner
def _all(net, looked):
    for transfer in range(len(net.src)):
        looked[transfer] = transfer
    return len(net.src)


@allocating
def _look(net, work, state, weights, events, looked, now, eager):
    """Let the transfers that are possible take what helps most."""
    keys = np.empty(len(looked))
    state.tally[4] += len(looked)
    many = 0
    for transfer in looked:
        if state.holds[net.src[transfer]] == 0:
            continue
        keys[many] = weights.of_transfer[transfer]
        if weights.choosy:
            chunk, score = _choose(net, work, state, weights, transfer, now, eager)
            if chunk < 0:
                continue
            keys[many] = -score
        looked[many] = transfer
        many += 1
    for i in np.argsort(keys[:many]):
        transfer = looked[i]
        chunk, _ = _choose(net, work, state, weights, transfer, now, eager)
        if chunk >= 0:
            state.tally[2] += 1
            _commit(net, work, state, events, transfer, chunk, now)
            _along(net, work, state, weights, events, transfer, chunk, now)


@inner
def _choose(net, work, state, weights, transfer, now, eager):
    """Return the chunk that it helps most to send, or -1."""
    device = net.src[transfer]
    chunk = -1
    top = -NEVER
    place = 0
    known = -1
    free = False
    while place < state.holds[device] and not weights.stop[0]:
        each = state.held[device, place]
        if state.lacking[each] == 0:
            # Nobody lacks it any more: it need not be looked at again.
            state.holds[device] -= 1
            state.held[device, place] = state.held[device, state.holds[device]]
            continue
        place += 1
        if state.there[each, net.dst[transfer]] < NEVER:
            continue
        if work.kind[each] != known:
            known = work.kind[each]
            free = idle(net, work, state, transfer, each, now, weights.scale * SAME)
            if not free and len(net.far) == 1:
                break  # nor is it for any other chunk of the size
        if free and not _too_late(net, work, state, weights, transfer, each, now, eager):
            score = _score(net, work, state, weights, transfer, each, now, eager)
            if state.lacking[each] == 1 and not eager:
                _note(net, work, state, each, device, now, score == -NEVER)
            if score > top:
                top = score
                chunk = each
    state.tally[4] += place // SCANNED
    return chunk, top


@inner
def _too_late(net, work, state, weights, transfer, chunk, now, eager):
    """Return whether a transfer is known not to help the one device that lacks the chunk.

    Most are when all go everywhere: a device holds a thousand chunks, each for another device, and
    of a hundred transfers over a link that is free all but a few help none of them.
    """
    if eager or state.since[chunk] != state.tally[0] + state.tally[3]:
        return False
    kind, device = work.kind[chunk], state.todo[chunk, 0]
    moment = weights.scale * SAME
    took = net.latency[transfer] + work.nbytes[chunk] * net.slowest[transfer]
    mine = now + took + net.far[kind, net.dst[transfer], device]
    if state.own[chunk, device] == net.src[transfer]:
        late = state.round[chunk] and mine > state.soon[chunk] + weights.slack * took + moment
    else:
        late = mine >= state.soon[chunk] - moment
    state.tally[4] += late
    return late


@inner
def _note(net, work, state, chunk, src, now, late):
    """Note when the chunk is expected, and whether a transfer from `src` looked round for it."""
    device = state.todo[chunk, 0]
    state.round[chunk] = late and state.own[chunk, device] == src
    state.soon[chunk] = _expected(net, work, state, chunk, device, now)
    state.since[chunk] = state.tally[0] + state.tally[3]


@inner
def _ready(net, state, work, transfer, chunk):
    """Return when all that the transfer crosses is free."""
    when = 0.0
    nbytes = work.nbytes[chunk]
    for place in range(net.first[transfer], net.first[transfer + 1]):
        begin = state.free[net.resource[place]] - net.lead[place] - nbytes * net.drag[place]
        when = max(when, begin)
    return when


@inner
def _expected(net, work, state, chunk, device, now):
    """Return when the chunk will be there, as far as is known now."""
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
    for place in range(state.spread[chunk]):
        holder = state.holders[chunk, place]
        if holder == own:
            continue
        when = state.there[chunk, holder]
        hop = net.hop[kind, holder, device]
        if hop < 0:
            continue
        begin = max(now, when, _ready(net, state, work, hop, chunk))
        if begin + net.far[kind, holder, device] < best * (1 - SAME):
            best = begin + net.far[kind, holder, device]
            state.own[chunk, device] = holder


@inner
def _score(net, work, state, weights, transfer, chunk, now, eager):
    """Return how much it helps to send the chunk now, or -inf if it does not."""
    kind, dst = work.kind[chunk], net.dst[transfer]
    tail = -1.0
    helped = 0
    alone = weights.narrow and work.wants[chunk, dst]
    many = 1 if alone else state.lacking[chunk]
    state.tally[4] += many
    for place in range(many):
        device = dst if alone else state.todo[chunk, place]
        if _helps(net, work, state, weights, transfer, chunk, device, now, eager):
            helped += 1
            if not alone:
                tail = max(tail, net.far[kind, dst, device])
    if not helped:
        return -NEVER
    score = weights.tail * tail / weights.scale - weights.few * state.spread[chunk]
    score += weights.many * helped + 1e6 * work.rank[chunk]
    return score + weights.chance * (weights.of_chunk[chunk] + weights.of_transfer[transfer])


@inner
def _helps(net, work, state, weights, transfer, chunk, device, now, eager):
    """Return whether a destination would have the chunk earlier than is expected now."""
    kind, src, dst = work.kind[chunk], net.src[transfer], net.dst[transfer]
    took = net.latency[transfer] + work.nbytes[chunk] * net.slowest[transfer]
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
def _commit(net, work, state, events, transfer, chunk, now):
    """Send it: what it crosses is busy, and expectations follow."""
    kind, dst = work.kind[chunk], net.dst[transfer]
    arrival = occupy(net, work, state, events, transfer, chunk, now)
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
    """Send the same chunk along on transfers that part where devices copy."""
    device = net.src[first]
    start = net.link[net.first[first]]
    # Never; the constant False would compile all that follows once more.
    eager = now < 0.0
    for transfer in range(net.out[device], net.out[device + 1]):
        if state.lacking[chunk] == 0:
            return
        if net.link[net.first[transfer]] != start or state.there[chunk, net.dst[transfer]] < NEVER:
            continue
        if _joins(net, work, state, transfer, chunk, now, weights.scale * SAME):
            score = _score(net, work, state, weights, transfer, chunk, now, eager)
            if score > -NEVER:
                _commit(net, work, state, events, transfer, chunk, now)


@inner
def _joins(net, work, state, transfer, chunk, now, moment):
    """Return whether a transfer can part from the running transmission at a device that copies."""
    group = state.tally[2]
    nbytes = work.nbytes[chunk]
    shared = True
    for place in range(net.first[transfer], net.first[transfer + 1]):
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


class Rules(NamedTuple):
    """How one trial decides.

    Parameters
    ----------
    seed
        Of its random numbers.
    pace
        Place of each transfer among the different durations, the quickest 0, shape (n,).
    rarest
        Whether what fewest devices have goes first.
    wait
        Chance that a transfer which is not among the quickest lets its turn pass.
    step
        µs after which it is looked at again.
    limit
        µs after which the trial is given up.
    scale
        µs of a long hop, by which times are measured.
    stop
        Not 0 as soon as the trial is to be given up, shape (1,).
    """

    seed: int
    pace: np.ndarray
    rarest: bool
    wait: float
    step: float
    limit: float
    scale: float
    stop: np.ndarray


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
        if now >= rules.limit or rules.stop[0]:
            return NEVER
        many = happened(net, work, state, events, looked, now + moment)
        keys = rules.pace[looked[:many]] + np.random.random(many)  # noqa: NPY002
        state.tally[4] += many
        for place in np.argsort(keys):
            transfer = looked[place]
            chunk = _drawn(net, work, state, transfer, rules.rarest, now, moment)
            if chunk < 0:
                continue
            if rules.pace[transfer] > 0 and np.random.random() < rules.wait:  # noqa: NPY002
                heapq.heappush(events, (now + rules.step, net.resource[net.first[transfer]]))
                continue
            state.tally[1] -= 1
            state.tally[2] += 1
            state.lacking[chunk] -= 1
            occupy(net, work, state, events, transfer, chunk, now)
    return end_of(work, state)


@inner
def _drawn(net, work, state, transfer, rarest, now, moment):
    """Return a chunk that the transfer can take, -1 if there is none."""
    src, dst = net.src[transfer], net.dst[transfer]
    chunk, equal, known, free = -1, 0, -1, False
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
            free = idle(net, work, state, transfer, each, now, moment)
            if not free and len(net.far) == 1:
                break  # nor is it for any other chunk of the size
        if not free:
            continue
        if chunk >= 0 and rarest and state.spread[each] != state.spread[chunk]:
            if state.spread[each] < state.spread[chunk]:
                chunk, equal = each, 1
            continue
        equal += 1
        if np.random.random() * equal < 1:  # noqa: NPY002
            chunk = each
    state.tally[4] += place
    return chunk
