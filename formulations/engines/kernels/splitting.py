"""Splitting off at one switch while a flow to every GPU stays as large as it is: inner loop.

For each sink there is a flow, kept as what every arc can still take, ``room[sink, arc]``: capacity
minus the flow of the arc plus that of its opposite, ``rev[arc]``. Arcs are sorted by tail, those
of vertex v are ``first[v]`` to ``first[v + 1]``.

To split off y units of u -> w -> t means to take them from both arcs and give them to u -> t. Say
one sink's flow has f on u -> w and g on w -> t. What passes both moves to the new arc; the rest
must fit what is left of each, f - g <= c(u, w) - y and g - f <= c(w, t) - y, so only f - g counts.
It is lowered by flow from u or t to w on other arcs, and raised by flow from w to u or t: if the
largest such flow is short of what y needs, y goes down by just that. What remains is the largest y
for all sinks; it is the theorem's (ForestColl, theorem 8), found without a flow from scratch.
"""

from __future__ import annotations

import numpy as np

from formulations.engines.kernels.kernels import allocating, inner, kernel


@inner
def _augment(first, head, rev, room, starts, goals, need, back, mark, queue, turn):
    """Push at most `need` along a shortest way from a start to a goal.

    Returns
    -------
    tuple
        The amount (0: there is no way), the start and the goal.
    """
    low, high = 0, 0
    for start in starts:
        if mark[start] != turn:
            mark[start] = turn
            back[start] = -1
            queue[high] = start
            high += 1
    goal = -1
    while low < high and goal < 0:
        vertex = queue[low]
        low += 1
        for arc in range(first[vertex], first[vertex + 1]):
            after = head[arc]
            if room[arc] > 0 and mark[after] != turn:
                mark[after] = turn
                back[after] = arc
                queue[high] = after
                high += 1
                if after == goals[0] or after == goals[1]:
                    goal = after
                    break
    if goal < 0:
        return np.int64(0), -1, -1
    amount, vertex = need, goal
    while back[vertex] >= 0:
        amount = min(amount, room[back[vertex]])
        vertex = head[rev[back[vertex]]]
    start, vertex = vertex, goal
    while back[vertex] >= 0:
        room[back[vertex]] -= amount
        room[rev[back[vertex]]] += amount
        vertex = head[rev[back[vertex]]]
    return amount, start, goal


@allocating
def _fit(first, head, rev, capacity, room, pair, amount, back, mark, queue, turn):
    """Reroute one sink's flow until `amount` can be split off; return how much of it can."""
    into, out, u, w, t = pair
    f = max(np.int64(0), capacity[into] - room[into])
    g = max(np.int64(0), capacity[out] - room[out])
    lower = f - g > capacity[into] - amount
    need = f - g - capacity[into] + amount if lower else amount - capacity[out] - f + g
    if need <= 0:
        return amount
    _hold(rev, capacity, room, into, out, f, g, -1)
    ends, hub = np.array([u, t]), np.array([w, w])
    while need > 0:
        turn[0] += 1
        sources, goals = (ends, hub) if lower else (hub, ends)
        pushed, start, goal = _augment(
            first, head, rev, room, sources, goals, need, back, mark, queue, turn[0]
        )
        if pushed == 0:
            break
        need -= pushed
        if lower:
            if start == u and (u != t or f > 0):
                f -= pushed
            else:
                g += pushed
        elif goal == u and (u != t or g == 0):
            f += pushed
        else:
            g -= pushed
    _hold(rev, capacity, room, into, out, f, g, 1)
    return amount - need


@inner
def _hold(rev, capacity, room, into, out, f, g, sign):
    """Take the two arcs and their own flow out of the graph (-1), or put them back (1)."""
    if out == rev[into]:
        room[into] = (capacity[into] - f + g) if sign > 0 else 0
        room[out] = (capacity[out] - g + f) if sign > 0 else 0
        return
    room[into] += sign * (capacity[into] - f)
    room[rev[into]] += sign * f
    room[out] += sign * (capacity[out] - g)
    room[rev[out]] += sign * g


@inner
def _apply(rev, capacity, room, into, out, across, amount):
    """Move one sink's flow to the new arc where the old ones get too narrow."""
    if out == rev[into]:
        room[into] -= amount
        room[out] -= amount
        return
    f, g = capacity[into] - room[into], capacity[out] - room[out]
    moved = max(np.int64(0), f - (capacity[into] - amount), g - (capacity[out] - amount))
    room[into] += moved - amount
    room[rev[into]] -= moved
    room[out] += moved - amount
    room[rev[out]] -= moved
    room[across] += amount - moved
    room[rev[across]] += moved


@kernel
def split_off(first, head, rev, capacity, room, pairs, hub):
    """Split off at `hub`, pair after pair, as much of each as can be; change capacity and room.

    Parameters
    ----------
    pairs
        Arc into the hub, arc out of it, arc across (-1: back to where it came from, so that the
        capacity is dropped) and the most to split off, shape (pairs, 4).

    Returns
    -------
    array
        What was split off, shape (pairs,).
    """
    many = len(first) - 1
    back = np.empty(many, np.int64)
    mark = np.zeros(many, np.int64)
    queue = np.empty(many, np.int64)
    turn = np.zeros(1, np.int64)
    done = np.zeros(len(pairs), np.int64)
    strict = 0
    for place in range(len(pairs)):
        into, out, across = pairs[place, 0], pairs[place, 1], pairs[place, 2]
        amount = min(pairs[place, 3], capacity[into], capacity[out])
        if amount <= 0:
            continue
        pair = (into, out, head[rev[into]], hub, head[out])
        for number in range(len(room)):
            # The sink that refused last refuses most often.
            sink = (number + strict) % len(room)
            amount = _fit(
                first, head, rev, capacity, room[sink], pair, amount, back, mark, queue, turn
            )
            if amount == 0:
                strict = sink
                break
        if amount == 0:
            continue
        for sink in range(len(room)):
            _apply(rev, capacity, room[sink], into, out, across, amount)
        capacity[into] -= amount
        capacity[out] -= amount
        if across >= 0:
            capacity[across] += amount
        done[place] = amount
    return done
