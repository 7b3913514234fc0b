"""Cheapest paths over relays and cheapest out-trees of every root at once, compiled.

Paths (`closure`, `unfold`) join vertices, devices that a tree may branch at; between them data
crosses relays, which only pass on. Distances between relays are found once, then those from and to
vertices are sums.

Out-trees (`arborescences`): `_contract` is the algorithm of Edmonds on a dense matrix in the order
of Gabow, Galil, Spencer and Tarjan (Combinatorica 6, 1986): a path grows backwards along the
cheapest path into its end; where it meets itself the cycle becomes one vertex. No root is needed
for that. Every set S that was ever a vertex has a price, what its cheapest path in costs once the
prices of the sets inside are taken off, and a cheapest out-tree of any root costs the sum of the
prices of the sets without it. So the sets are found once in O(n^2), and `_expand` reads off a tree
for each root in O(n).
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from formulations.engines.kernels.arrays import allocating, inner, kernel

FAR = 1e30
"""The cost of a path that does not exist."""


class Adjacency(NamedTuple):
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
def closure(paths, length):
    """Return the costs of the cheapest paths, and what `unfold` needs to write them out.

    Returns
    -------
    tuple
        Cost of the path into each vertex from each other, shape (n, n), target first; cost from
        each vertex to each relay, shape (n, r); of the path from relay to relay the last link and
        the relay before it, shape (2, r, r).
    """
    many, relays = len(paths.out_first) - 1, len(paths.on_first) - 1
    between = np.full((relays, relays), FAR)
    before = np.full((2, relays, relays), -1, np.int32)
    for k in range(paths.out.shape[1]):
        relay = paths.out[0, k]
        if between[relay, relay] > 0:
            _reach(paths, length, relay, between[relay], before[:, relay])
    near = np.full((many, relays), FAR)
    for vertex in range(many):
        for k in range(paths.out_first[vertex], paths.out_first[vertex + 1]):
            relay, cost = paths.out[0, k], length[paths.out[1, k]]
            for other in range(relays):
                near[vertex, other] = min(near[vertex, other], cost + between[relay, other])
    costs = np.full((many, many), FAR)
    for vertex in range(many):
        for k in range(paths.into_first[vertex], paths.into_first[vertex + 1]):
            relay, cost = paths.into[0, k], length[paths.into[1, k]]
            for source in range(many):
                costs[vertex, source] = min(costs[vertex, source], near[source, relay] + cost)
    for k in range(paths.direct.shape[1]):
        src, dst, link = paths.direct[:, k]
        costs[dst, src] = min(costs[dst, src], length[link])
    return costs, near, before


@allocating
def _reach(paths, length, start, cost, before):
    """Find the cheapest paths from one relay to all others."""
    cost[start] = 0.0
    heap = [(0.0, start)]
    while len(heap) > 0:
        here, relay = heapq.heappop(heap)
        if here > cost[relay]:
            continue
        for k in range(paths.on_first[relay], paths.on_first[relay + 1]):
            other, link = paths.on[0, k], paths.on[1, k]
            if here + length[link] < cost[other]:
                cost[other] = here + length[link]
                before[0, other], before[1, other] = link, relay
                heapq.heappush(heap, (cost[other], other))


@kernel
def unfold(paths, length, costs, near, before, parents):
    """Return the links of the path into each vertex of a tree: flat, and where each begins.

    `parents` is -1 where a vertex has none.
    """
    many = len(parents)
    first = np.zeros(many + 1, np.int64)
    flat = np.empty(2 * many + 16, np.int32)
    for vertex in range(many):
        end = first[vertex]
        if parents[vertex] >= 0:
            back = _path(paths, length, costs, near, before, parents[vertex], vertex)
            if end + len(back) > len(flat):
                flat = np.concatenate((flat, np.empty(len(flat) + len(back), np.int32)))
            for k in range(len(back)):
                flat[end + k] = back[len(back) - 1 - k]
            end += len(back)
        first[vertex + 1] = end
    return flat[: first[many]].copy(), first


@allocating
def _path(paths, length, costs, near, before, src, dst):
    """Return the links of the cheapest path from one vertex to another, the last one first."""
    back = [np.int64(0) for _ in range(0)]
    for k in range(paths.direct.shape[1]):
        link = paths.direct[2, k]
        joins = paths.direct[0, k] == src and paths.direct[1, k] == dst
        if joins and length[link] <= costs[dst, src]:
            back.append(np.int64(link))
            return back
    last, least = -1, FAR
    for k in range(paths.into_first[dst], paths.into_first[dst + 1]):
        cost = near[src, paths.into[0, k]] + length[paths.into[1, k]]
        if cost < least:
            last, least = k, cost
    relay = paths.into[0, last]
    back.append(np.int64(paths.into[1, last]))
    start, least = -1, FAR
    for k in range(paths.out_first[src], paths.out_first[src + 1]):
        cost = _total(before, length, paths.out[0, k], relay) + length[paths.out[1, k]]
        if cost < least:
            start, least = k, cost
    origin = paths.out[0, start]
    while relay != origin:
        back.append(np.int64(before[0, origin, relay]))
        relay = before[1, origin, relay]
    back.append(np.int64(paths.out[1, start]))
    return back


@inner
def _total(before, length, origin, relay):
    """Return the cost of the path between two relays."""
    total = 0.0
    while relay != origin:
        if before[0, origin, relay] < 0:
            return FAR
        total += length[before[0, origin, relay]]
        relay = before[1, origin, relay]
    return total


@kernel
def arborescences(costs, members, roots):
    """Return a cheapest out-tree over `members` of each root: parents, -1 at roots and elsewhere.

    Parameters
    ----------
    costs
        Of the path into each vertex from each other, shape (n, n).
    members
        Vertices that every tree reaches, shape (k,); the roots are among them.
    roots
        Shape (r,).

    Returns
    -------
    np.ndarray
        Shape (r, n). A parent of a member that no tree can reach is one from which no path leads.
    """
    place = np.full(len(costs), -1, np.int64)
    for k in range(len(members)):
        place[members[k]] = k
    up, into, child, beside = _contract(_among(costs, members))
    found = np.full((len(roots), len(costs)), -1, np.int32)
    parent = np.empty(len(members), np.int64)
    for number in range(len(roots)):
        _expand(up, into, child, beside, place[roots[number]], parent)
        for k in range(len(members)):
            if parent[k] >= 0:
                found[number, members[k]] = members[parent[k]]
    return found


@kernel
def shallow(costs, members, roots, steps, rounds):
    """Return trees that are cheap and not deep: parents of each, as `arborescences` does.

    A path that leaves a vertex costs `steps` more, one for each root, for every hop from the root
    to that vertex. How many those are is known from the tree before, so trees are sought `rounds`
    times, and the best of them counts.
    """
    many = len(members)
    place = np.full(len(costs), -1, np.int64)
    for k in range(many):
        place[members[k]] = k
    parent = np.empty(many, np.int64)
    kept = np.empty(many, np.int64)
    plain = _among(costs, members)
    found = np.full((len(roots), len(costs)), -1, np.int32)
    for number in range(len(roots)):
        depth = _hops(plain, place[roots[number]])
        least = np.inf
        for _ in range(rounds):
            up, into, child, beside = _contract(plain + steps[number] * depth)
            _expand(up, into, child, beside, place[roots[number]], parent)
            new = _depths(parent)
            total = 0.0
            for k in range(many):
                if parent[k] >= 0:
                    total += plain[k, parent[k]] + steps[number] * new[parent[k]]
            if total < least:
                least = total
                kept[:] = parent
            # Half of what was believed before stays, or two trees could take turns.
            depth = (depth + new) / 2
        for k in range(many):
            if kept[k] >= 0:
                found[number, members[k]] = members[kept[k]]
    return found


@allocating
def _hops(costs, root):
    """Return how many paths lead from the root to each vertex at least."""
    many = len(costs)
    depth = np.full(many, float(many))
    depth[root] = 0.0
    front = np.empty(many, np.int64)
    front[0], low, high = root, 0, 1
    while low < high:
        here = front[low]
        low += 1
        for vertex in range(many):
            if depth[vertex] >= many and costs[vertex, here] < FAR:
                depth[vertex] = depth[here] + 1
                front[high] = vertex
                high += 1
    return depth


@allocating
def _among(costs, members):
    """Return the costs among some vertices."""
    chosen = np.empty((len(members), len(members)))
    for i in range(len(members)):
        for j in range(len(members)):
            chosen[i, j] = costs[members[i], members[j]]
    return chosen


@allocating
def _contract(costs):
    """Return the laminar sets: parent, cheapest path in, first child and next sibling of each.

    The numbers of the vertices come first; `costs` is used up.
    """
    many = len(costs)
    edge = np.empty((many, many), np.int64)
    for dst in range(many):
        for src in range(many):
            edge[dst, src] = src * many + dst
    up = np.full(2 * many, -1, np.int64)
    into = np.full(2 * many, -1, np.int64)
    child = np.full(2 * many, -1, np.int64)
    beside = np.full(2 * many, -1, np.int64)
    price = np.zeros(2 * many)
    active = np.arange(many)
    left = many
    number = np.arange(many)
    where = np.full(many, -1, np.int64)
    path = np.empty(many, np.int64)
    path[0], where[0], end, made = 0, 0, 1, many
    while left > 1:
        here = path[end - 1]
        best = active[0] if active[0] != here else active[1]
        for k in range(left):
            if active[k] != here and costs[here, active[k]] < costs[here, best]:
                best = active[k]
        into[number[here]] = edge[here, best]
        price[number[here]] = costs[here, best]
        if where[best] < 0:
            path[end], where[best] = best, end
            end += 1
            continue
        low = where[best]
        left = _merged(costs, edge, active, left, path[low:end], price, number)
        for k in range(low, end):
            member = number[path[k]]
            up[member], beside[member], child[made] = made, child[made], member
            if k > low:
                where[path[k]] = -1
        number[path[low]] = made
        made, end = made + 1, low + 1
    return up, into, child, beside


@allocating
def _merged(costs, edge, active, left, cycle, price, number):
    """Make one vertex of a cycle, at the place of its first; return how many vertices are left."""
    slot = cycle[0]
    inside = np.zeros(len(costs), np.bool_)
    inside[cycle] = True
    kept = 0
    for k in range(left):
        if not inside[active[k]] or active[k] == slot:
            active[kept] = active[k]
            kept += 1
    own = price[number[slot]]
    for j in range(kept):
        costs[slot, active[j]] -= own
    for member in cycle[1:]:
        own = price[number[member]]
        for j in range(kept):
            other = active[j]
            if costs[member, other] - own < costs[slot, other]:
                costs[slot, other] = costs[member, other] - own
                edge[slot, other] = edge[member, other]
    for j in range(kept):
        other = active[j]
        for member in cycle[1:]:
            if costs[other, member] < costs[other, slot]:
                costs[other, slot] = costs[other, member]
                edge[other, slot] = edge[other, member]
    return kept


@allocating
def _expand(up, into, child, beside, root, parent):
    """Write the parents of the out-tree of one root."""
    many = len(parent)
    parent[:] = -1
    top = root
    while up[top] >= 0:
        top = up[top]
    vertices = np.empty(many + 1, np.int64)
    tops = np.empty(many + 1, np.int64)
    vertices[0], tops[0], size = root, top, 1
    while size > 0:
        size -= 1
        here, top = vertices[size], tops[size]
        while here != top:
            other = child[up[here]]
            while other >= 0:
                if other != here:
                    src, dst = into[other] // many, into[other] % many
                    parent[dst] = src
                    vertices[size], tops[size] = dst, other
                    size += 1
                other = beside[other]
            here = up[here]


@allocating
def _depths(parent):
    """Return how many hops each vertex is from the root."""
    depth = np.full(len(parent), -1.0)
    for vertex in range(len(parent)):
        many, here = 0.0, vertex
        while depth[here] < 0 and parent[here] >= 0:
            many, here = many + 1, parent[here]
        base = max(depth[here], 0.0)
        here, own = vertex, base + many
        while depth[here] < 0:
            depth[here] = own
            own, here = own - 1, max(parent[here], 0)
    return depth


@kernel
def breadth(costs, roots):
    """Return of each root the cheapest of its out-trees with the fewest hops to every vertex.

    Each vertex takes the cheapest path from one that is a hop nearer. Parents as `arborescences`
    returns them, shape (r, n).
    """
    many = len(costs)
    found = np.full((len(roots), many), -1, np.int32)
    for number in range(len(roots)):
        depth = np.full(many, -1, np.int64)
        depth[roots[number]] = 0
        layer, front = 0, True
        while front:
            front = False
            layer += 1
            for vertex in range(many):
                if depth[vertex] >= 0:
                    continue
                best, least = -1, FAR
                for source in range(many):
                    cost = costs[vertex, source]
                    if depth[source] == layer - 1 and cost < least:
                        best, least = source, cost
                if best >= 0:
                    depth[vertex], found[number, vertex] = layer, best
                    front = True
    return found
