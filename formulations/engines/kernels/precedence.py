"""List scheduling of transfers that wait for one another, compiled.

`formulations.engines.list_scheduling.reordering` calls it.

Which transfer each chunk takes is fixed; what is chosen is the order on the links. At every moment
each link takes, of the transfers that are ready and whose links are free, the one of the smallest
priority, and never idles on purpose.

Transfers of one path are in a heap of its own, by priority. Paths that begin with the same link are
looked at together: the soonest that could start, of equals the one of the smallest priority, takes
its turn in a heap of all links. That time can only grow, so it is put right when its turn comes.
With n transfers and k paths from a link the whole takes n (k + log n) steps. Heaps are arrays of
numbers, so that no function that is called for each transfer makes or counts anything.
"""

from __future__ import annotations

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
    ready, turns, fans = _first(routes, path, missing, priority)
    events = _heap(len(path), 0), (end, end)
    (order, _, _), (begins, ranks) = turns
    underway, _, going = events[0]
    state, now = (ready, free, fans), 0.0
    while True:
        _arrived(routes, jobs, after, priority, (missing, *state), events, turns, now)
        fan = order[0]
        soonest, rank = begins[fan], ranks[fan]
        if soonest == np.inf:
            if going[0] == 0:
                return start, end
            now = end[underway[0]]
            continue
        begin, least, number = _next(routes, nbytes, priority, state, fan, now)
        if begin > soonest + SAME or least != rank:
            _due(turns, fan, begin, least)
            continue
        if going[0] > 0 and end[underway[0]] < begin - SAME:
            _due(turns, fan, begin, least)
            now = end[underway[0]]
            continue
        now = max(now, begin)
        job = ready[2][ready[0][number]]
        _leave(ready, priority, number)
        start[job] = begin
        end[job] = _take(routes, free, number, nbytes[job], begin)
        _put(events, job)
        begin, least, number = _next(routes, nbytes, priority, state, fan, now)
        _due(turns, fan, begin, least)


@allocating
def _heap(most, many):
    """Return a heap of the first so many numbers: their order, the place of each, how many."""
    return np.arange(most), np.arange(most), np.full(1, many)


@inner
def _sooner(keys, one, other):
    """Return whether one number of a heap comes before another: by two keys, then the smaller."""
    first, second = keys
    if first[one] != first[other]:
        return first[one] < first[other]
    if second[one] != second[other]:
        return second[one] < second[other]
    return one < other


@inner
def _moved(queue, number):
    """Put a number of a heap where its keys belong."""
    (order, place, many), keys = queue
    at = place[number]
    while at > 0 and _sooner(keys, number, order[(at - 1) // 2]):
        order[at] = order[(at - 1) // 2]
        place[order[at]] = at
        at = (at - 1) // 2
    while True:
        below = 2 * at + 1
        if below + 1 < many[0] and _sooner(keys, order[below + 1], order[below]):
            below += 1
        if below >= many[0] or not _sooner(keys, order[below], number):
            break
        order[at] = order[below]
        place[order[at]] = at
        at = below
    order[at] = number
    place[number] = at


@inner
def _put(queue, number):
    """Add a number to a heap."""
    order, place, many = queue[0]
    order[many[0]], place[number] = number, many[0]
    many[0] += 1
    _moved(queue, number)


@inner
def _taken(queue):
    """Take the first number of a heap away and return it."""
    order, place, many = queue[0]
    number = order[0]
    many[0] -= 1
    if many[0] > 0:
        last = order[many[0]]
        order[0], place[last] = last, 0
        _moved(queue, last)
    return number


@inner
def _due(turns, fan, begin, rank):
    """Give a fan its turn, the last where nothing is ready."""
    begins, ranks = turns[1]
    begins[fan], ranks[fan] = begin, rank
    _moved(turns, fan)


@allocating
def _first(routes, path, missing, priority):
    """Return the transfers of each path that are ready, the turns, and the fans.

    Fans are the paths that begin with each link: where those of each begin, their numbers, and the
    fan of each path. Their turns are a heap by when the next could start, and its priority.
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
    fans = np.cumsum(begins), np.argsort(of, kind="mergesort"), of
    turns = _heap(links, links), (np.full(links, np.inf), np.full(links, np.inf))
    for job in range(len(path)):
        if missing[job] == 0:
            _enter(ready, priority, path[job], job)
    for number in range(paths):
        if ready[1][number] > 0:
            rank = priority[ready[2][first[number]]]
            if turns[1][0][of[number]] == np.inf or rank < turns[1][1][of[number]]:
                _due(turns, of[number], 0.0, rank)
    return ready, turns, fans


@inner
def _arrived(routes, jobs, after, priority, state, events, turns, now):
    """Make ready what waited for the transfers that are there by now."""
    path, nbytes, _ = jobs
    missing, ready, free, fans = state
    (underway, _, going), (end, _) = events
    begins, ranks = turns[1]
    while going[0] > 0 and end[underway[0]] <= now + SAME:
        done = _taken(events)
        for place in range(after[0][done], after[0][done + 1]):
            job = after[1][place]
            missing[job] -= 1
            if missing[job] == 0:
                _enter(ready, priority, path[job], job)
                if ready[2][ready[0][path[job]]] == job:
                    soonest = _soonest(routes, free, path[job], nbytes[job], now)
                    fan = fans[2][path[job]]
                    if soonest < begins[fan] or (
                        soonest == begins[fan] and priority[job] < ranks[fan]
                    ):
                        _due(turns, fan, soonest, priority[job])


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
