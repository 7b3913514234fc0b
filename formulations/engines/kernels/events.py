"""Events of methods in continuous time, compiled: what comes free, arrives or is taken.

An event is that a chunk has arrived at a device, or that a link is free again. Links are merged
into resources, of which each serves one chunk at a time; without symmetry a link is a resource. A
shared limit that binds is filled up by the moves under it at the rates of their links.

`formulations.engines.kernels.dispatch` and `formulations.engines.kernels.matching` decide what is
sent.
"""

from __future__ import annotations

import heapq

import numpy as np

from formulations.engines.kernels.arrays import NEVER
from formulations.engines.kernels.kernels import allocating, inner

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
    """Take the events of this moment; fill in the moves that they touch and count them."""
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
            for move in range(net.out[device], net.out[device + 1]):
                if state.mark[move] != turn:
                    state.mark[move] = turn
                    looked[many] = move
                    many += 1
    return many


@inner
def _touch(net, state, looked, many, resource):
    """Add the moves over a resource to those that are looked at."""
    for place in range(net.user_first[resource], net.user_first[resource + 1]):
        move = net.users[place]
        if state.mark[move] != state.tally[3]:
            state.mark[move] = state.tally[3]
            looked[many] = move
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
def idle(net, work, state, move, chunk, now, moment):
    """Whether all that the move crosses is free in time."""
    nbytes = work.nbytes[chunk]
    for place in range(net.first[move], net.first[move + 1]):
        resource = net.resource[place]
        begin = now + net.lead[place] + nbytes * net.drag[place]
        if state.free[resource] > begin + moment:
            return False
        if not let_through(net, state, place):
            return False
    return True


@inner
def let_through(net, state, place):
    """Whether the shared limits of a crossing have room for it."""
    resource = net.resource[place]
    for cap in range(net.cap_first[resource], net.cap_first[resource + 1]):
        limit = net.caps[cap]
        if state.load[limit] + 1 / net.beta[place] > net.room[limit] * (1 + SAME):
            return False
    return True


@allocating
def occupy(net, work, state, events, move, chunk, now):
    """Send a chunk: what the move crosses is busy; note it and return when it is there."""
    devices = work.wants.shape[1]
    resources = len(net.user_first) - 1
    nbytes, dst = work.nbytes[chunk], net.dst[move]
    group = state.tally[2]
    for place in range(net.first[move], net.first[move + 1]):
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
    arrival = now + net.latency[move] + nbytes * net.slowest[move]
    state.there[chunk, dst] = arrival
    state.spread[chunk] += 1
    heapq.heappush(events, (arrival, resources + chunk * devices + dst))
    sent = state.tally[0]
    state.move[sent], state.chunk[sent] = move, chunk
    state.start[sent], state.group[sent] = now, group
    state.tally[0] += 1
    return arrival


@allocating
def watch(net, state, events, resource):
    """Note the moments from which on moves over a resource may start."""
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
