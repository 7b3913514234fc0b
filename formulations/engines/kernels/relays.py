"""Cheapest ways over relays, compiled; `formulations.engines.tree_columns.multicast` calls it.

Vertices are devices that a tree may branch at; between them data crosses relays, which only pass
on. Distances between relays are found once, then those from and to vertices are sums.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from formulations.engines.kernels.kernels import allocating, inner, kernel

FAR = 1e30
"""The cost of a way that does not exist."""


class Ways(NamedTuple):
    """Links between n vertices, over r relays or not.

    Parameters
    ----------
    direct
        Vertex, vertex, link of each link between vertices, shape (3, any).
    out_first, out
        For each vertex where its links to relays begin, shape (n + 1,); relay and link of each.
    into_first, into
        The same of the links from relays to each vertex.
    on_first, on
        Links between relays: for each relay where they begin, shape (r + 1,); next relay and link.
    """

    direct: np.ndarray
    out_first: np.ndarray
    out: np.ndarray
    into_first: np.ndarray
    into: np.ndarray
    on_first: np.ndarray
    on: np.ndarray


@kernel
def closure(ways, length):
    """Return the costs of the cheapest ways, and what `unfold` needs to write them out.

    Returns
    -------
    tuple
        Cost of the way into each vertex from each other, shape (n, n), target first; cost from
        each vertex to each relay, shape (n, r); of the way from relay to relay the last link and
        the relay before it, shape (2, r, r).
    """
    many, relays = len(ways.out_first) - 1, len(ways.on_first) - 1
    between = np.full((relays, relays), FAR)
    before = np.full((2, relays, relays), -1, np.int32)
    for k in range(ways.out.shape[1]):
        relay = ways.out[0, k]
        if between[relay, relay] > 0:
            _reach(ways, length, relay, between[relay], before[:, relay])
    near = np.full((many, relays), FAR)
    for vertex in range(many):
        for k in range(ways.out_first[vertex], ways.out_first[vertex + 1]):
            relay, cost = ways.out[0, k], length[ways.out[1, k]]
            for other in range(relays):
                near[vertex, other] = min(near[vertex, other], cost + between[relay, other])
    costs = np.full((many, many), FAR)
    for vertex in range(many):
        for k in range(ways.into_first[vertex], ways.into_first[vertex + 1]):
            relay, cost = ways.into[0, k], length[ways.into[1, k]]
            for source in range(many):
                costs[vertex, source] = min(costs[vertex, source], near[source, relay] + cost)
    for k in range(ways.direct.shape[1]):
        src, dst, link = ways.direct[:, k]
        costs[dst, src] = min(costs[dst, src], length[link])
    return costs, near, before


@allocating
def _reach(ways, length, start, cost, before):
    """Find the cheapest ways from one relay to all others."""
    cost[start] = 0.0
    heap = [(0.0, start)]
    while len(heap) > 0:
        here, relay = heapq.heappop(heap)
        if here > cost[relay]:
            continue
        for k in range(ways.on_first[relay], ways.on_first[relay + 1]):
            other, link = ways.on[0, k], ways.on[1, k]
            if here + length[link] < cost[other]:
                cost[other] = here + length[link]
                before[0, other], before[1, other] = link, relay
                heapq.heappush(heap, (cost[other], other))


@kernel
def unfold(ways, length, costs, near, before, parents):
    """Return the links of the way into each vertex of a tree: flat, and where each begins.

    `parents` is -1 where a vertex has none.
    """
    many = len(parents)
    first = np.zeros(many + 1, np.int64)
    flat = np.empty(2 * many + 16, np.int32)
    for vertex in range(many):
        end = first[vertex]
        if parents[vertex] >= 0:
            back = _way(ways, length, costs, near, before, parents[vertex], vertex)
            if end + len(back) > len(flat):
                flat = np.concatenate((flat, np.empty(len(flat) + len(back), np.int32)))
            for k in range(len(back)):
                flat[end + k] = back[len(back) - 1 - k]
            end += len(back)
        first[vertex + 1] = end
    return flat[: first[many]].copy(), first


@allocating
def _way(ways, length, costs, near, before, src, dst):
    """Return the links of the cheapest way from one vertex to another, the last one first."""
    back = [np.int64(0) for _ in range(0)]
    for k in range(ways.direct.shape[1]):
        link = ways.direct[2, k]
        joins = ways.direct[0, k] == src and ways.direct[1, k] == dst
        if joins and length[link] <= costs[dst, src]:
            back.append(np.int64(link))
            return back
    last, least = -1, FAR
    for k in range(ways.into_first[dst], ways.into_first[dst + 1]):
        cost = near[src, ways.into[0, k]] + length[ways.into[1, k]]
        if cost < least:
            last, least = k, cost
    relay = ways.into[0, last]
    back.append(np.int64(ways.into[1, last]))
    start, least = -1, FAR
    for k in range(ways.out_first[src], ways.out_first[src + 1]):
        cost = _total(before, length, ways.out[0, k], relay) + length[ways.out[1, k]]
        if cost < least:
            start, least = k, cost
    origin = ways.out[0, start]
    while relay != origin:
        back.append(np.int64(before[0, origin, relay]))
        relay = before[1, origin, relay]
    back.append(np.int64(ways.out[1, start]))
    return back


@inner
def _total(before, length, origin, relay):
    """Return the cost of the way between two relays."""
    total = 0.0
    while relay != origin:
        if before[0, origin, relay] < 0:
            return FAR
        total += length[before[0, origin, relay]]
        relay = before[1, origin, relay]
    return total
