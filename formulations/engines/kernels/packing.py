"""Inner loops of ForestColl: spanning trees packed, many copies at a time, and switches split off.

Arcs are sorted by tail, those of vertex v are ``first[v]`` to ``first[v + 1]``. For each sink there
is a flow, stored as what every arc can still take after it, ``residual[sink, arc]``: capacity minus
the flow of the arc plus that of its opposite, ``rev[arc]``.

`grow` packs spanning trees. All vertices are GPUs. Trees are whole, partial or not begun; a partial
one has m copies and has reached a set R. For each sink there is a flow that brings it one unit for
every copy that has not reached it: a partial tree's units start anywhere in R, those of a tree not
begun at its root. Such flows exist for all sinks exactly if the rest can be packed (Edmonds'
theorem; a tree is then grown by any edge that keeps them).

Adding y copies of the edge a -> b to a tree takes y from its arc, and lets up to y of the tree's
units start at b. If one sink's flow has more on the arc than is left, the rest of it must get
around: from a to b on other arcs, or from a back to the tree (units that started elsewhere in R,
and are now spared, start at b instead). If the largest such flow is short, y goes down by what is
lacking. What remains is the largest y (ForestColl, theorem 12, takes one flow from scratch).

`split_off` splits off at one switch while a flow to every GPU stays as large as it is. To split off
y units of u -> w -> t means to take them from both arcs and give them to u -> t. Say one sink's
flow has f on u -> w and g on w -> t. What passes both moves to the new arc; the rest must fit what
is left of each, f - g <= c(u, w) - y and g - f <= c(w, t) - y, so only f - g counts. It is lowered
by flow from u or t to w on other arcs, and raised by flow from w to u or t: if the largest such
flow is short of what y needs, y goes down by just that. What remains is the largest y for all
sinks; it is the theorem's (ForestColl, theorem 8), found without a flow from scratch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from formulations.engines.kernels.arrays import allocating, inner, kernel

NONE, ONE = np.int64(-1), np.int64(1)
"""Of the type of variables: for a plain constant numba would compile a function once more."""


class Graph(NamedTuple):
    """Arcs sorted by tail, what each can carry, and what it can still take for each sink.

    `first`, `head`, `rev` and `residual` are as above; `capacity` is what no tree has taken yet.
    """

    first: np.ndarray
    head: np.ndarray
    rev: np.ndarray
    capacity: np.ndarray
    residual: np.ndarray


class Partial(NamedTuple):
    """Trees that have been begun; p places for them, v vertices.

    Parameters
    ----------
    copies
        How many alike, shape (p,); 0: the place is free.
    reached
        Which vertices are in R, shape (p, v).
    depth
        Edges from the root, shape (p, v).
    parent
        Arc by which a vertex was reached, -1 for the root, shape (p, v).
    blocked
        Arcs that cannot be added any more, shape (p, arcs).
    starts
        How many units of each sink start where, shape (sinks, v, p).
    """

    copies: np.ndarray
    reached: np.ndarray
    depth: np.ndarray
    parent: np.ndarray
    blocked: np.ndarray
    starts: np.ndarray


class Search(NamedTuple):
    """Memory of a breadth-first search: vertices, then a vertex for each partial tree."""

    back: np.ndarray
    mark: np.ndarray
    queue: np.ndarray
    turn: np.ndarray


@inner
def _note(search, vertex, step, high):
    """Put a vertex into the queue, unless it is or was there; return the queue's new end."""
    if search.mark[vertex] == search.turn[0]:
        return high
    search.mark[vertex] = search.turn[0]
    search.back[vertex] = step
    search.queue[high] = vertex
    return high + 1


@inner
def _path(graph, residual, partial, sink, start, goal, tree, search):
    """Find a shortest path from `start` to `goal` or to the units of a tree (-1: to none).

    Returns the vertex where it ends: `goal`, or where units of `tree` start; -1 if there is none.
    """
    many = len(graph.first) - 1
    search.turn[0] += 1
    turn = search.turn[0]
    low = np.int64(0)
    high = _note(search, start, NONE, low)
    while low < high:
        vertex = search.queue[low]
        low += 1
        if vertex == goal and low > 1:
            return goal
        if vertex >= many:
            # A tree may start its units elsewhere in R.
            for after in range(many):
                if partial.reached[vertex - many, after]:
                    high = _note(search, after, many - 2 - vertex, high)
            continue
        if tree >= 0 and partial.starts[sink, vertex, tree] > 0:
            return vertex
        for arc in range(graph.first[vertex], graph.first[vertex + 1]):
            after = graph.head[arc]
            if residual[arc] > 0 and search.mark[after] != turn:
                high = _note(search, after, arc, high)
                if after == goal:
                    return goal
        for other in range(len(partial.copies)):
            if partial.copies[other] > 0 and partial.starts[sink, vertex, other] > 0:
                high = _note(search, many + other, vertex, high)
    return -1


@inner
def _push(graph, residual, partial, sink, end, most, search):
    """Push at most `most` along the path that was found to `end`; return the amount."""
    many = len(graph.first) - 1
    amount = most
    for doing in range(2):
        vertex = end
        while search.back[vertex] != -1:
            step = search.back[vertex]
            if step >= 0:
                if doing:
                    residual[step] -= amount
                    residual[graph.rev[step]] += amount
                else:
                    amount = min(amount, residual[step])
                vertex = graph.head[graph.rev[step]]
            else:
                other = -2 - step
                before = search.back[many + other]
                if doing:
                    partial.starts[sink, before, other] -= amount
                    partial.starts[sink, vertex, other] += amount
                else:
                    amount = min(amount, partial.starts[sink, before, other])
                vertex = before
    return amount


@inner
def _fit(graph, partial, tree, arc, sink, amount, moved, search):
    """Free `amount` of an arc in one sink's flow; return how much of it there is.

    ``moved[sink]`` is set to the units that have to start at the end of the arc.
    """
    residual, capacity = graph.residual[sink], graph.capacity[arc]
    moved[sink] = 0
    flow = max(np.int64(0), capacity - residual[arc])
    need = flow - capacity + amount
    if need <= 0:
        return amount
    a, b = graph.head[graph.rev[arc]], graph.head[arc]
    # The arc and its own flow stay out of the search.
    residual[arc] -= capacity - flow
    residual[graph.rev[arc]] -= flow
    while need > 0:
        end = _path(graph, residual, partial, sink, a, b, tree, search)
        if end < 0:
            break
        most = need if end == b else min(need, partial.starts[sink, end, tree])
        pushed = _push(graph, residual, partial, sink, end, most, search)
        if end != b:
            partial.starts[sink, end, tree] -= pushed
            moved[sink] += pushed
        flow -= pushed
        need -= pushed
    residual[arc] += capacity - flow
    residual[graph.rev[arc]] += flow
    return amount - need


@inner
def _settle(graph, partial, tree, arc, amount, moved):
    """Let no more than `amount` units of each sink start at the end of the arc."""
    a = graph.head[graph.rev[arc]]
    for sink in range(len(graph.residual)):
        more = moved[sink] - amount
        if more > 0:
            graph.residual[sink, arc] -= more
            graph.residual[sink, graph.rev[arc]] += more
            partial.starts[sink, a, tree] += more
            moved[sink] = amount


@inner
def _most(graph, partial, tree, arc, least, moved, search):
    """Return how many copies of an arc can be added; free capacity for them if that is `least`.

    If it is less, a negative number says how many there can be at most; 0: none.
    ``search.turn[1]`` is the sink that refused last: it refuses most often, and comes first.
    """
    amount = min(partial.copies[tree], graph.capacity[arc])
    many = len(graph.residual)
    first, done = search.turn[1], -1
    for number in range(many):
        if amount < least:
            break
        sink = (number + first) % many
        fits = _fit(graph, partial, tree, arc, sink, amount, moved, search)
        if fits < amount:
            search.turn[1] = sink
            amount = fits
        done = number
    if amount < least:
        for number in range(done + 1, many):
            moved[(number + first) % many] = 0
        _settle(graph, partial, tree, arc, np.int64(0), moved)
        return -amount
    _settle(graph, partial, tree, arc, amount, moved)
    return amount


@allocating
def _divide(partial, tree, rest, amount, moved):
    """Leave `amount` copies of a tree, and make another tree of the rest."""
    partial.copies[rest] = partial.copies[tree] - amount
    partial.copies[tree] = amount
    partial.reached[rest] = partial.reached[tree]
    partial.depth[rest] = partial.depth[tree]
    partial.parent[rest] = partial.parent[tree]
    partial.blocked[rest] = partial.blocked[tree]
    for sink in range(partial.starts.shape[0]):
        keep = amount - moved[sink]
        for vertex in range(partial.starts.shape[1]):
            own = min(keep, partial.starts[sink, vertex, tree])
            partial.starts[sink, vertex, rest] = partial.starts[sink, vertex, tree] - own
            partial.starts[sink, vertex, tree] = own
            keep -= own


@inner
def _add(graph, partial, tree, arc, moved, row, search):
    """Add an arc to all copies of a tree, for which capacity has been freed."""
    a, b = graph.head[graph.rev[arc]], graph.head[arc]
    amount = partial.copies[tree]
    graph.capacity[arc] -= amount
    for sink in range(len(graph.residual)):
        graph.residual[sink, arc] -= amount
        partial.starts[sink, b, tree] += moved[sink]
    partial.reached[tree, b] = True
    partial.depth[tree, b] = partial.depth[tree, a] + 1
    partial.parent[tree, b] = arc
    # What was in flight to b is there.
    sink = row[b]
    if sink < 0:
        return
    partial.starts[sink, b, tree] = 0
    need = amount - moved[sink]
    while need > 0:
        end = _path(graph, graph.residual[sink], partial, sink, b, NONE, tree, search)
        most = min(need, partial.starts[sink, end, tree])
        pushed = _push(graph, graph.residual[sink], partial, sink, end, most, search)
        partial.starts[sink, end, tree] -= pushed
        need -= pushed


@inner
def _choose(graph, partial, tree, deepest, moved, search):
    """Find an arc to add, for all copies if there is one, and near the root; free capacity for it.

    Returns
    -------
    tuple
        The arc (-1: none) and for how many copies.
    """
    many = len(graph.first) - 1
    depth, found = 0, True
    best: Any = NONE
    most = np.int64(0)
    while found:
        found = False
        for vertex in range(many):
            if not partial.reached[tree, vertex] or partial.depth[tree, vertex] != depth:
                continue
            found = True
            for arc in range(graph.first[vertex], graph.first[vertex + 1]):
                if partial.blocked[tree, arc] or partial.reached[tree, graph.head[arc]]:
                    continue
                amount = _most(graph, partial, tree, arc, partial.copies[tree], moved, search)
                if amount > 0:
                    return arc, amount
                partial.blocked[tree, arc] = amount == 0
                if -amount > most:
                    best, most = arc, -amount
        depth += 1
        if depth == deepest:
            return -1, np.int64(0)
        if found or best < 0:
            continue
        amount = _most(graph, partial, tree, best, ONE, moved, search)
        if amount > 0:
            return best, amount
        partial.blocked[tree, best] = True
        depth, found, best, most = 0, True, NONE, np.int64(0)
    return -1, np.int64(0)


@kernel
def grow(graph, partial, tree, row, deepest):
    """Grow a tree, leaving copies behind where not all can go on.

    Parameters
    ----------
    row
        Place of each vertex among the sinks, -1 where it waits for nothing.
    deepest
        Most edges from the root to a vertex, and then all copies go on together; 0: any number,
        until every vertex is reached.

    Returns
    -------
    bool
        Whether this is done; else there was no place for the copies to leave behind.
    """
    many = len(graph.first) - 1
    size = many + len(partial.copies)
    search = Search(
        np.empty(size, np.int64),
        np.zeros(size, np.int64),
        np.empty(size, np.int64),
        np.zeros(2, np.int64),
    )
    moved = np.zeros(len(graph.residual), np.int64)
    rest = -1
    while not np.all(partial.reached[tree]):
        for place in range(len(partial.copies)):
            if partial.copies[place] == 0:
                rest = place
        if rest < 0 or partial.copies[rest] > 0:
            return False
        arc, amount = _choose(graph, partial, tree, deepest, moved, search)
        if arc < 0:
            assert deepest > 0, "trees that fit can go on"
            return True
        if amount < partial.copies[tree]:
            _divide(partial, tree, rest, amount, moved)
        _add(graph, partial, tree, arc, moved, row, search)
    return True


@inner
def _augment(first, head, rev, residual, starts, goals, need, back, mark, queue, turn):
    """Push at most `need` along a shortest path from a start to a goal.

    Returns
    -------
    tuple
        The amount (0: there is no path), the start and the goal.
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
            if residual[arc] > 0 and mark[after] != turn:
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
        amount = min(amount, residual[back[vertex]])
        vertex = head[rev[back[vertex]]]
    start, vertex = vertex, goal
    while back[vertex] >= 0:
        residual[back[vertex]] -= amount
        residual[rev[back[vertex]]] += amount
        vertex = head[rev[back[vertex]]]
    return amount, start, goal


@allocating
def _splitting_fit(first, head, rev, capacity, residual, pair, amount, back, mark, queue, turn):
    """Reroute one sink's flow until `amount` can be split off; return how much of it can."""
    into, out, u, w, t = pair
    f = max(np.int64(0), capacity[into] - residual[into])
    g = max(np.int64(0), capacity[out] - residual[out])
    lower = f - g > capacity[into] - amount
    need = f - g - capacity[into] + amount if lower else amount - capacity[out] - f + g
    if need <= 0:
        return amount
    _hold(rev, capacity, residual, into, out, f, g, -1)
    ends, hub = np.array([u, t]), np.array([w, w])
    while need > 0:
        turn[0] += 1
        sources, goals = (ends, hub) if lower else (hub, ends)
        pushed, start, goal = _augment(
            first, head, rev, residual, sources, goals, need, back, mark, queue, turn[0]
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
    _hold(rev, capacity, residual, into, out, f, g, 1)
    return amount - need


@inner
def _hold(rev, capacity, residual, into, out, f, g, sign):
    """Take the two arcs and their own flow out of the graph (-1), or put them back (1)."""
    if out == rev[into]:
        residual[into] = (capacity[into] - f + g) if sign > 0 else 0
        residual[out] = (capacity[out] - g + f) if sign > 0 else 0
        return
    residual[into] += sign * (capacity[into] - f)
    residual[rev[into]] += sign * f
    residual[out] += sign * (capacity[out] - g)
    residual[rev[out]] += sign * g


@inner
def _apply(rev, capacity, residual, into, out, across, amount):
    """Move one sink's flow to the new arc where the old ones get too narrow."""
    if out == rev[into]:
        residual[into] -= amount
        residual[out] -= amount
        return
    f, g = capacity[into] - residual[into], capacity[out] - residual[out]
    moved = max(np.int64(0), f - (capacity[into] - amount), g - (capacity[out] - amount))
    residual[into] += moved - amount
    residual[rev[into]] -= moved
    residual[out] += moved - amount
    residual[rev[out]] -= moved
    residual[across] += amount - moved
    residual[rev[across]] += moved


@kernel
def split_off(first, head, rev, capacity, residual, pairs, hub):
    """Split off at `hub`, pair after pair, as much of each as can be; change capacity and residual.

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
        for number in range(len(residual)):
            # The sink that refused last refuses most often.
            sink = (number + strict) % len(residual)
            amount = _splitting_fit(
                first, head, rev, capacity, residual[sink], pair, amount, back, mark, queue, turn
            )
            if amount == 0:
                strict = sink
                break
        if amount == 0:
            continue
        for sink in range(len(residual)):
            _apply(rev, capacity, residual[sink], into, out, across, amount)
        capacity[into] -= amount
        capacity[out] -= amount
        if across >= 0:
            capacity[across] += amount
        done[place] = amount
    return done
