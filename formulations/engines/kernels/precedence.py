"""List scheduling of transfers that wait for one another, compiled.

`formulations.engines.list_scheduling.reordering` calls it.

Which transfer each chunk takes is fixed; what is chosen is the order on the links. At every moment
each link takes, of the transfers that are ready and whose links are free, the one of the smallest
priority, and never idles on purpose.

Transfers of one path are in a heap of its own, by priority. Paths that begin with the same link are
looked at together: the soonest that could start, of equals the one of the smallest priority, takes
its turn in a heap of all links. That time can only grow, so it is put right when its turn comes.
With n transfers and k paths from a link the whole takes n (k + log n) steps.
"""

from __future__ import annotations

import heapq

import numpy as np

from formulations.engines.kernels.arrays import allocating, inner, kernel

SAME = 1e-9
"""µs that count as none."""


@kernel
def ordered(routes, jobs, after, priority):
    """Return when each transfer starts and is there.

    Parameters
    ----------
    routes
        As `formulations.engines.list_scheduling.timed.Transfers.arrays`, and the number of links.
    jobs
        The path of each transfer, its bytes, and how many others it waits for.
    after
        Which wait for each: where those of each begin, and their numbers.
    priority
        Of each, smaller first.
    """
    path, nbytes, before = jobs
    start, end = np.full(len(path), np.inf), np.full(len(path), np.inf)
    missing, free = before.copy(), np.zeros(routes[7])
    ready, events, turns, fans = _first(routes, path, missing, priority)
    due, state = fans[3], (ready, free, fans)
    now = 0.0
    while len(turns) + len(events) > 0:
        _arrived(routes, jobs, after, priority, (missing, ready, free, fans), events, turns, now)
        if len(turns) == 0:
            if len(events) > 0:
                now = events[0][0]
            continue
        soonest, rank, fan = heapq.heappop(turns)
        if due[fan, 0] != soonest or due[fan, 1] != rank:
            continue  # it has another turn, which is sooner
        begin, least, number = _next(routes, nbytes, priority, state, fan, now)
        if begin > soonest + SAME or least != rank:
            _due(due, turns, fan, begin, least)
            continue
        if len(events) > 0 and events[0][0] < begin - SAME:
            _due(due, turns, fan, begin, least)
            now = events[0][0]
            continue
        now = max(now, begin)
        job = ready[2][ready[0][number]]
        _leave(ready, priority, number)
        start[job] = begin
        end[job] = _take(routes, free, number, nbytes[job], begin)
        heapq.heappush(events, (end[job], job))
        begin, least, number = _next(routes, nbytes, priority, state, fan, now)
        _due(due, turns, fan, begin, least)
    return start, end


@allocating
def _due(due, turns, fan, begin, rank):
    """Give a fan its turn, or none where nothing is ready."""
    due[fan, 0], due[fan, 1] = begin, rank
    if begin < np.inf:
        heapq.heappush(turns, (begin, rank, fan))


@allocating
def _first(routes, path, missing, priority):
    """Return the transfers of each path that are ready, no events, the turns, and the fans.

    Fans are the paths that begin with each link: where those of each begin, their numbers, the fan
    of each path, and when the turn of each is, with what priority.
    """
    paths, links = len(routes[0]) - 1, routes[7]
    first = np.zeros(paths + 1, np.int64)
    for job in range(len(path)):
        first[path[job] + 1] += 1
    first = np.cumsum(first)
    ready = first, np.zeros(paths, np.int64), np.zeros(len(path), np.int64)
    of = routes[1][routes[0][:-1]]
    begins = np.zeros(links + 1, np.int64)
    for number in range(paths):
        begins[of[number] + 1] += 1
    due = np.full((links, 2), np.inf)
    fans = np.cumsum(begins), np.argsort(of, kind="mergesort"), of, due
    # Lists have the types of what was in them.
    events = [(0.0, -1)]
    turns = [(0.0, 0.0, -1)]
    events.pop()
    turns.pop()
    for job in range(len(path)):
        if missing[job] == 0:
            _enter(ready, priority, path[job], job)
    for number in range(paths):
        if ready[1][number] > 0:
            rank = priority[ready[2][first[number]]]
            if due[of[number], 0] == np.inf or rank < due[of[number], 1]:
                _due(due, turns, of[number], 0.0, rank)
    return ready, events, turns, fans


@allocating
def _arrived(routes, jobs, after, priority, state, events, turns, now):
    """Make ready what waited for the transfers that are there by now."""
    path, nbytes, _ = jobs
    missing, ready, free, fans = state
    while len(events) > 0 and events[0][0] <= now + SAME:
        _, done = heapq.heappop(events)
        for place in range(after[0][done], after[0][done + 1]):
            job = after[1][place]
            missing[job] -= 1
            if missing[job] == 0:
                _enter(ready, priority, path[job], job)
                if ready[2][ready[0][path[job]]] == job:
                    soonest = _soonest(routes, free, path[job], nbytes[job], now)
                    fan, due = fans[2][path[job]], fans[3]
                    if soonest < due[fan, 0] or (
                        soonest == due[fan, 0] and priority[job] < due[fan, 1]
                    ):
                        _due(due, turns, fan, soonest, priority[job])


@inner
def _next(routes, nbytes, priority, state, fan, now):
    """Return when the next of a fan could start, its priority and its path, -1 if none is ready."""
    ready, free, fans = state
    begin, least, found = np.inf, np.inf, -1
    for place in range(fans[0][fan], fans[0][fan + 1]):
        number = fans[1][place]
        if ready[1][number] > 0:
            job = ready[2][ready[0][number]]
            soonest = _soonest(routes, free, number, nbytes[job], now)
            if soonest < begin - SAME or (soonest <= begin + SAME and priority[job] < least):
                begin, least, found = soonest, priority[job], number
    return begin, least, found


@inner
def _soonest(routes, free, number, size, now):
    """Return when a transfer can start, its links free when it comes to them."""
    first, link, _, lead, drag = routes[:5]
    begin = now
    for place in range(first[number], first[number + 1]):
        begin = max(begin, free[link[place]] - lead[place] - size * drag[place])
    return begin


@inner
def _take(routes, free, number, size, begin):
    """Hold the links of a transfer; return when it is there."""
    first, link, beta, lead, drag, latency, slowest, _ = routes
    for place in range(first[number], first[number + 1]):
        free[link[place]] = begin + lead[place] + size * (drag[place] + beta[place])
    return begin + latency[number] + size * slowest[number]


@inner
def _enter(ready, priority, number, job):
    """Put a transfer among those of its path that are ready."""
    first, many, heap = ready
    base, place = first[number], many[number]
    many[number] += 1
    while place > 0:
        above = (place - 1) // 2
        if priority[job] >= priority[heap[base + above]]:
            break
        heap[base + place] = heap[base + above]
        place = above
    heap[base + place] = job


@inner
def _leave(ready, priority, number):
    """Take the first away from those of a path that are ready."""
    first, many, heap = ready
    base = first[number]
    many[number] -= 1
    last = heap[base + many[number]]
    place = 0
    while True:
        below = 2 * place + 1
        if below >= many[number]:
            break
        if below + 1 < many[number] and (
            priority[heap[base + below + 1]] < priority[heap[base + below]]
        ):
            below += 1
        if priority[heap[base + below]] >= priority[last]:
            break
        heap[base + place] = heap[base + below]
        place = below
    heap[base + place] = last
