"""Whole numbers, compiled: maximum flows, the rate of spanning trees, matrices modulo a prime.

Dinic's algorithm (`maxflow`) in 64 bits: levels by distance to the sink, then a blocking flow along
them. igraph's flows are doubles, whole only up to 2**53, and its graph is made anew for each
capacity; here thousands of flows share one graph.

A graph is given by its arcs, sorted by their tails: those of vertex v are ``first[v]`` to
``first[v + 1]``; arc a leads to ``head[a]``, its opposite is ``rev[a]``, ``residual[a]`` is what it
can still take. The last vertex is the source.

The rate of spanning trees is found by Newton's method (`newton`);
`formulations.engines.forestcoll.search` says what is computed and why. `inverse` of a matrix modulo
a prime is for `formulations.engines.tree_columns.master`.
"""

from __future__ import annotations

from math import gcd

import numpy as np

from formulations.engines.kernels.arrays import allocating, inner, kernel


@inner
def _levels(first, head, rev, residual, sink, level, queue):
    """Set the distance of each vertex to the sink over residual arcs, -1 without a path."""
    level[:] = -1
    level[sink] = 0
    queue[0] = sink
    low, high = 0, 1
    while low < high:
        vertex = queue[low]
        low += 1
        for arc in range(first[vertex], first[vertex + 1]):
            before = head[arc]
            if level[before] < 0 and residual[rev[arc]] > 0:
                level[before] = level[vertex] + 1
                queue[high] = before
                high += 1
    return level[len(level) - 1] >= 0


@inner
def _push(head, rev, residual, path, steps):
    """Push what the arcs of a path can take; return how much, and where the first full arc is."""
    least = residual[path[0]]
    for step in range(1, steps):
        least = min(least, residual[path[step]])
    where = -1
    for step in range(steps):
        residual[path[step]] -= least
        residual[rev[path[step]]] += least
        if where < 0 and residual[path[step]] == 0:
            where = step
    return least, where


@allocating
def maxflow(first, head, rev, residual, sink):
    """Push a maximum flow from the last vertex to `sink`, change `residual`, return its value."""
    many = len(first) - 1
    level = np.empty(many, np.int32)
    queue = np.empty(many, np.int32)
    path = np.empty(many, np.int32)
    now = np.empty(many, np.int32)
    source = many - 1
    total = np.int64(0)
    while _levels(first, head, rev, residual, sink, level, queue):
        now[:] = first[:many]
        vertex, steps = source, 0
        while True:
            if vertex == sink:
                least, steps = _push(head, rev, residual, path, steps)
                total += least
                vertex = head[rev[path[steps]]]
            while now[vertex] < first[vertex + 1]:
                arc = now[vertex]
                if residual[arc] > 0 and level[head[arc]] == level[vertex] - 1:
                    break
                now[vertex] += 1
            if now[vertex] < first[vertex + 1]:
                path[steps] = now[vertex]
                steps += 1
                vertex = head[now[vertex]]
            elif steps == 0:
                break
            else:
                steps -= 1
                vertex = head[rev[path[steps]]]
                now[vertex] += 1
    return total


@inner
def _filled(first, head, capacity, weight, sink, above, below, residual):
    """Set residuals for the rate ``above / below`` with one sink; return what should reach it."""
    source = len(first) - 2
    for arc in range(first[source]):
        residual[arc] = capacity[arc] * below
    wanted = np.int64(0)
    for arc in range(first[source], first[source + 1]):
        gpu = head[arc]
        residual[arc] = 0 if gpu == sink else weight[gpu] * above
        wanted += residual[arc]
    return wanted


@inner
def _reached(first, head, residual, start, inside, queue):
    """Add to `inside` all that can be reached from a vertex over residual arcs."""
    inside[start] = True
    queue[0] = start
    low, high = 0, 1
    while low < high:
        vertex = queue[low]
        low += 1
        for arc in range(first[vertex], first[vertex + 1]):
            after = head[arc]
            if residual[arc] > 0 and not inside[after]:
                inside[after] = True
                queue[high] = after
                high += 1


@kernel
def newton(first, head, rev, capacity, weight, sinks, above, below):
    """Lower the rate ``above / below`` until no cut before any of the sinks is overwhelmed.

    Returns
    -------
    tuple
        The rate as numerator and denominator, the sink that decided it last (-1: none did), and
        the number of flows.
    """
    many = len(first) - 1
    residual = np.empty(len(head), np.int64)
    inside = np.empty(many, np.bool_)
    queue = np.empty(many, np.int32)
    last, flows = -1, 0
    for sink in sinks:
        while True:
            wanted = _filled(first, head, capacity, weight, sink, above, below, residual)
            flows += 1
            if maxflow(first, head, rev, residual, sink) == wanted:
                break
            inside[:] = False
            _reached(first, head, residual, many - 1, inside, queue)
            leaving, held = np.int64(0), np.int64(0)
            for vertex in range(many - 1):
                if inside[vertex]:
                    held += weight[vertex]
                    for arc in range(first[vertex], first[vertex + 1]):
                        if not inside[head[arc]]:
                            leaving += capacity[arc]
            common = gcd(leaving, held)
            above, below, last = leaving // common, held // common, sink
    return above, below, last, flows


@kernel
def tight_sides(first, head, rev, capacity, weight, sink, above, below, most):
    """Return masks of source sides that are full at the rate, before one sink.

    The first is the largest, the others are the smallest ones around single roots, at most `most`.
    """
    many = len(first) - 1
    residual = np.empty(len(head), np.int64)
    queue = np.empty(many, np.int32)
    level = np.empty(many, np.int32)
    _filled(first, head, capacity, weight, sink, above, below, residual)
    maxflow(first, head, rev, residual, sink)
    _levels(first, head, rev, residual, sink, level, queue)
    sides = np.zeros((most + 1, many), np.bool_)
    sides[0] = level < 0
    size = np.zeros(many, np.int64)
    for root in range(many - 1):
        if weight[root] > 0 and sides[0, root]:
            sides[1] = False
            _reached(first, head, residual, root, sides[1], queue)
            size[root] = np.sum(sides[1])
    least = many
    for root in range(many - 1):
        if 0 < size[root] < least:
            least = size[root]
    count = 1
    for root in range(many - 1):
        # Two smallest sides are the same or have no root in common.
        if size[root] == least and count <= most:
            sides[count] = False
            _reached(first, head, residual, root, sides[count], queue)
            size[sides[count]] = 0
            count += 1
    return sides[:count]


@kernel
def carries(first, head, rev, capacity, weight, sinks, many):
    """Return whether `many` trees of each unit of weight reach every sink."""
    residual = np.empty(len(head), np.int64)
    for sink in sinks:
        wanted = _filled(first, head, capacity, weight, sink, many, np.int64(1), residual)
        if maxflow(first, head, rev, residual, sink) < wanted:
            return False
    return True


@kernel
def flows_to(first, head, rev, capacity, weight, sinks, many):
    """Return what each arc can still take after a flow to each sink, shape (sinks, arcs).

    The arcs of the source are left out. A row begins with -1 where the flow falls short.
    """
    source = len(first) - 2
    residual = np.empty(len(head), np.int64)
    found = np.empty((len(sinks), first[source]), np.int64)
    for i in range(len(sinks)):
        wanted = _filled(first, head, capacity, weight, sinks[i], many, np.int64(1), residual)
        if maxflow(first, head, rev, residual, sinks[i]) < wanted:
            found[i, 0] = -1
        else:
            found[i] = residual[: first[source]]
    return found


@kernel
def inverse(matrix, prime):
    """Return the inverse of a square matrix modulo a prime below 2**31; empty if it has none."""
    many = len(matrix)
    left = matrix.copy()
    right = np.zeros((many, many), np.int64)
    for k in range(many):
        right[k, k] = 1
    for k in range(many):
        pivot = k
        while pivot < many and left[pivot, k] == 0:
            pivot += 1
        if pivot == many:
            return np.empty((0, 0), np.int64)
        if pivot != k:
            for j in range(many):
                left[k, j], left[pivot, j] = left[pivot, j], left[k, j]
                right[k, j], right[pivot, j] = right[pivot, j], right[k, j]
        scale = _power(left[k, k], prime - 2, prime)
        for j in range(many):
            left[k, j] = left[k, j] * scale % prime
            right[k, j] = right[k, j] * scale % prime
        for i in range(many):
            factor = left[i, k]
            if i == k or factor == 0:
                continue
            for j in range(many):
                if left[k, j]:
                    left[i, j] = (left[i, j] - factor * left[k, j]) % prime
                if right[k, j]:
                    right[i, j] = (right[i, j] - factor * right[k, j]) % prime
    return right


@inner
def _power(base, exponent, prime):
    result = 1
    while exponent > 0:
        if exponent & 1:
            result = result * base % prime
        base = base * base % prime
        exponent >>= 1
    return result
