"""Patterns: what one piece of the data does along a tree, as crossings that wait for one another.

* along an out-tree a piece goes from parent to child, once it is there;
* along an in-tree a sum goes from child to parent, once the sums of all children are there;
* along an undirected tree all-reduce sends over each edge, both ways, the sum of the side behind
  it: to v goes from u what came to u from all its other neighbours, and its own. So a tree takes
  as long as its longest path, not twice its radius, and loads each edge once each way;
* in stages (`formulations.engines.closed_forms.words`) sums are exchanged, added up at owners and
  spread, on the quickest paths, along which other ranks pass them on.

A crossing is a path between two devices that store, over devices that do not, or several that part
or join there (`formulations.engines.tree_columns.routes`). A pattern of a representative stands for
its images under the group of the task (`formulations.engines.tree_columns.task`).

Undirected trees are those of a pool (`formulations.engines.tree_columns.directed`) without their
roots, and random trees of short paths: between the two ends latency and bandwidth count alike, and
prices of a steady state know nothing of latency.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from itertools import pairwise, product, zip_longest
from typing import Literal

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ccl.errors import Infeasible
from ccl.topology import Topology
from formulations.engines.closed_forms.words import Word
from formulations.engines.list_scheduling.timed import Transfers
from formulations.engines.tree_columns.routes import Ends, Links
from formulations.engines.tree_columns.task import Column, Side, Task

SPREADS = (0.05, 0.3, 0.8)
"""By how much chance makes paths longer, where trees are random."""

LEAST = 1e-9
"""µs that count as none."""

Direction = Literal["out", "in", "undirected"]
"""Whether a tree leads out of its root or into it, or has none."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """Crossings of one piece; m of them, each after those that it waits for.

    Parameters
    ----------
    demand
        Place of the demand in the task that it serves; 0 for undirected trees.
    routes
        Of each crossing.
    before, after
        Pairs of crossings of which the second waits for the first, each shape (pairs,).
    direction
        Of the tree, where each crossing is one path between two devices; None where not.
    ranks
        Where each crossing starts, if it names what it carries: the contribution of that rank and
        what the crossings that it waits for carry, or, for None, these alone. None of all where
        each carries all that is there.
    """

    demand: int
    routes: tuple[Links, ...]
    before: np.ndarray
    after: np.ndarray
    direction: Direction | None = None
    ranks: tuple[int | None, ...] | None = None

    @property
    def staged(self) -> bool:
        """Whether it goes in stages: crossings name what they carry, along no tree of paths."""
        return self.direction is None and self.ranks is not None

    @cached_property
    def terms(self) -> tuple[frozenset[int], ...] | None:
        """Ranks whose contributions each crossing carries, or None where it is all there is."""
        if self.ranks is None:
            return None
        found = [set[int]() if rank is None else {rank} for rank in self.ranks]
        for own, those in zip(found, self.waits, strict=True):
            own.update(*(found[each] for each in those))
        return tuple(map(frozenset, found))

    @cached_property
    def waits(self) -> list[list[int]]:
        """Those that each crossing waits for."""
        found: list[list[int]] = [[] for _ in self.routes]
        for first, second in zip(self.before.tolist(), self.after.tolist(), strict=True):
            found[second].append(first)
        return found

    def heads(self, delays: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
        """Return when each crossing can begin, and the least from its arrival to the end, in µs.

        `delays` are the µs of each crossing.
        """
        head, tail = [0.0] * len(self.routes), [0.0] * len(self.routes)
        for number, those in enumerate(self.waits):
            for each in those:
                head[number] = max(head[number], head[each] + delays[each])
        for number in range(len(self.routes) - 1, -1, -1):
            behind = tail[number] + delays[number]
            for each in self.waits[number]:
                tail[each] = max(tail[each], behind)
        return np.array(head), np.array(tail)


def directed(task: Task, demand: int, column: Column) -> Pattern:
    """Return what a piece does along a tree of column generation, out of the root or into it.

    A switch that copies is a vertex of the tree, and what parts there is one crossing. Where paths
    also meet again, or part at a switch that does not copy, or are too much for a shared limit at
    once, each is a crossing by itself.
    """
    side = task.sides[task.demands[demand].side]
    routes: list[Links] = []
    brought: dict[int, int] = {}
    edges = []
    direction: Direction | None = "in" if side.reduces else "out"
    for source, paths in _parted(side, column).items():
        links = tuple(dict.fromkeys(link for path in paths.values() for link in path))
        apart = not _as_one(side, links, list(paths.values()))
        direction = direction if apart or len(paths) == 1 else None
        for place, (vertex, path) in enumerate(paths.items()):
            brought[vertex] = len(routes) if apart else len(routes) - (place > 0)
            if apart or not place:
                routes.append(path if apart else links)
                if source[0] != column.root:
                    edges.append((brought[source[0]], brought[vertex]))
    first, second = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    if side.reduces:
        last = len(routes) - 1
        turned = tuple(each[::-1] for each in reversed(routes))
        return Pattern(demand, turned, last - second, last - first, direction)
    return Pattern(demand, tuple(routes), first, second, direction)


def _parted(side: Side, column: Column) -> dict[tuple[int, int], dict[int, Links]]:
    """Return the paths to devices that store, from one to the next, by what leaves as one.

    The keys are the device, as a vertex, and the first vertex on the way: one that stores, or a
    switch.
    """
    devices = side.topology.devices
    stores = [devices[device].stores for device in side.vertices.tolist()]
    found: dict[tuple[int, int], dict[int, Links]] = {}
    of: dict[int, tuple[tuple[int, int], Links]] = {}
    for vertex in column.order:
        parent = int(column.parents[vertex])
        key, path = ((parent, vertex), ()) if stores[parent] else of[parent]
        of[vertex] = key, (*path, *column.links_to(vertex))
        if stores[vertex]:
            found.setdefault(key, {})[vertex] = of[vertex][1]
    return found


def _as_one(side: Side, links: Links, paths: Sequence[Links]) -> bool:
    """Return whether paths from a device can be one crossing: a tree that parts at what copies."""
    topology = side.topology
    if not side.fits(links):
        return False
    if len({topology.links[link].dst for link in links}) < len(links):
        return False
    steps = {step for path in paths for step in pairwise(path)}
    onwards = Counter(link for link, _ in steps)
    return all(
        many == 1 or topology.device(topology.links[link].dst).copies
        for link, many in onwards.items()
    )


def along_tree(
    crossings: Mapping[Ends, Links],
    direction: Direction,
    *,
    demand: int = 0,
    rank: Mapping[int, int] | None = None,
) -> Pattern:
    """Return what a piece does along a tree: each crossing waits for all that come to its start.

    But for what comes back from where it leads.

    Parameters
    ----------
    crossings
        The links between two devices.
    direction
        Of the tree.
    demand
        That it serves.
    rank
        Of each device, where crossings name the side that they come from.
    """
    into: defaultdict[int, list[Ends]] = defaultdict(list)
    for ends in crossings:
        into[ends[1]].append(ends)
    waits = {ends: [each for each in into[ends[0]] if each[0] != ends[1]] for ends in crossings}
    order = {ends: number for number, ends in enumerate(TopologicalSorter(waits).static_order())}
    pairs = [(order[each], number) for ends, number in order.items() for each in waits[ends]]
    before, after = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    routes = tuple(crossings[ends] for ends in order)
    ranks = None if rank is None else tuple(rank[start] for start, _ in order)
    return Pattern(demand, routes, before, after, direction, ranks)


def met(inward: Pattern, outward: Pattern) -> Pattern:
    """Return what a piece does along an in-tree to a root, and from there along an out-tree."""
    many, offset = len(inward.routes) + len(outward.routes), len(inward.routes)
    waited = np.bincount(inward.before, minlength=offset)
    waiting = np.bincount(outward.after + offset, minlength=many)[offset:]
    last, first = np.flatnonzero(waited == 0), np.flatnonzero(waiting == 0) + offset
    return Pattern(
        0,
        (*inward.routes, *outward.routes),
        np.concatenate([inward.before, outward.before + offset, np.repeat(last, len(first))]),
        np.concatenate([inward.after, outward.after + offset, np.tile(first, len(last))]),
    )


Edge = tuple[int, int, Links, Links]
"""Two devices, the smaller first, and the paths from it and back."""

Reach = tuple[int, float, Links]
"""Where a path leads, how many µs it takes, and its links."""


class Undirected:
    """Trees without a root on a cluster whose links have links back.

    Parameters
    ----------
    topology
        The cluster.
    """

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        index = topology.link_index
        self._back = [index.get((each.dst, each.src), -1) for each in topology.links]
        self._rank = {topology.index[name]: rank for rank, name in enumerate(topology.ranks)}

    def back(self, links: Sequence[int]) -> Links | None:
        """Return the path back, or None where a link has none."""
        found = tuple(self._back[link] for link in reversed(links))
        return None if -1 in found else found

    def edges_of(self, task: Task, demand: int, column: Column) -> tuple[Edge, ...] | None:
        """Return the edges of a tree over ranks alone, sorted; None where links back lack."""
        side = task.sides[task.demands[demand].side]
        device = side.vertices.tolist()
        found = []
        for vertex in column.order:
            links = tuple(column.links_to(vertex))
            # On the reversed cluster links lead from child to parent, so this is the way back.
            links = links[::-1] if side.reduces else links
            other = self.back(links)
            if other is None:
                return None
            ends = device[int(column.parents[vertex])], device[vertex]
            if not {*ends} <= self._rank.keys():
                return None
            down, up = (other, links) if side.reduces else (links, other)
            found.append(_edge(*ends, down, up))
        return tuple(sorted(found))

    def pattern(self, edges: Sequence[Edge]) -> Pattern:
        """Return what a piece of an all-reduce does along a tree: sums of sides, both ways."""
        there = {(one, other): links for one, other, links, _ in edges}
        back = {(other, one): links for one, other, _, links in edges}
        return along_tree(there | back, "undirected", rank=self._rank)

    def random(
        self, transfers: Transfers, *, many: int, nbytes: float, seed: int
    ) -> Iterator[tuple[Edge, ...]]:
        """Yield random trees of short paths, by turns from a rank and from both ends of an edge.

        Where some paths take longer than others, and GPUs fall into islands without the longest,
        every third tree grows inside them, from a rank of one and its likes in the others.

        Parameters
        ----------
        transfers
            What can be crossed.
        many
            How many are tried.
        nbytes
            Of a piece, by which paths are measured.
        seed
            Of the random numbers.
        """
        out: defaultdict[int, list[Reach]] = defaultdict(list)
        delays = transfers.delay(nbytes).tolist()
        pairs = zip(transfers.src.tolist(), transfers.dst.tolist(), strict=True)
        for number, ends in enumerate(pairs):
            first, last = transfers.first[number : number + 2]
            links = tuple(transfers.link[first:last].tolist())
            if self._rank.keys() >= {*ends} and self.back(links) is not None:
                out[ends[0]].append((ends[1], delays[number], links))
        roots, dice = sorted(out), np.random.default_rng(seed)
        if len(roots) < len(self._rank):
            return  # links one way alone join some of them to the rest
        island = _islands(transfers, roots)
        inside = {
            start: [each for each in ways if island[each[0]] == island[start]]
            for start, ways in out.items()
        }
        for turn in range(many):
            spread, root = SPREADS[turn * len(SPREADS) // many], roots[turn % len(roots)]
            shuffled = [out[root][each] for each in dice.permutation(len(out[root])).tolist()]
            likes = {island[each[0]]: each for each in shuffled if island[each[0]] != island[root]}
            kind = (turn + turn // len(roots)) % (3 if likes else 2)
            if kind == 2:
                edges = self._grown(inside, root, [*likes.values()], spread, dice)
            else:
                edges = self._grown(out, root, shuffled[:kind], spread, dice)
            # Links one way alone may join some of them to the rest.
            if len(edges) == len(roots) - 1:
                yield edges

    def _grown(
        self,
        out: dict[int, list[Reach]],
        root: int,
        first: Sequence[Reach],
        spread: float,
        dice: np.random.Generator,
    ) -> tuple[Edge, ...]:
        """Return a tree of the shortest paths from a rank and where its first edges lead."""
        came: dict[int, tuple[int, Links]] = {}
        far, heap = {root: 0.0}, [(0.0, 0.0, root)]
        for other, _, links in first:
            far[other], came[other] = 0.0, (root, links)
            heap.append((0.0, 1.0, other))
        done = set()
        while heap:
            here, _, vertex = heapq.heappop(heap)
            if vertex in done:
                continue
            done.add(vertex)
            chance = dice.random((len(out[vertex]), 2)).tolist()
            for (end, delay, links), (longer, turn) in zip(out[vertex], chance, strict=True):
                there = here + delay * (1 + spread * longer)
                if end not in done and there < far.get(end, np.inf):
                    far[end], came[end] = there, (vertex, links)
                    heapq.heappush(heap, (there, turn, end))
        edges = []
        for end, (start, links) in came.items():
            other_way = self.back(links)
            assert other_way is not None
            edges.append(_edge(start, end, links, other_way))
        return tuple(sorted(edges))


def _islands(transfers: Transfers, ranks: Sequence[int]) -> dict[int, int]:
    """Return the island of each of these devices, whom less than the longest latency joins.

    If that leaves one alone, or joins all, they are one.
    """
    short = transfers.latency < transfers.latency.max() - 1e-9
    many = len(transfers.topology.devices)
    ends = transfers.src[short], transfers.dst[short]
    joined = sparse.csr_array((np.ones(len(ends[0])), ends), shape=(many, many))
    label = connected_components(joined, directed=False)[1][np.array(ranks)]
    alone = np.bincount(label)[label].min() == 1
    return dict(zip(ranks, [0] * len(ranks) if alone else label.tolist(), strict=True))


def _edge(start: int, end: int, there: Links, back: Links) -> Edge:
    return (start, end, there, back) if start < end else (end, start, back, there)


class Staged:
    """Patterns of words: what one piece of an all-reduce does in stages.

    Parameters
    ----------
    topology
        The cluster.
    transfers
        What can be crossed.
    nbytes
        Of a piece, by which paths are measured.
    """

    def __init__(self, topology: Topology, transfers: Transfers, *, nbytes: float) -> None:
        rank = {topology.index[name]: number for number, name in enumerate(topology.ranks)}
        self._dice = np.random.default_rng(0)
        paths: defaultdict[Ends, list[tuple[float, Links]]] = defaultdict(list)
        ends = zip(transfers.src.tolist(), transfers.dst.tolist(), strict=True)
        for number, (delay, (src, dst)) in enumerate(
            zip(transfers.delay(nbytes).tolist(), ends, strict=True)
        ):
            if {src, dst} <= rank.keys():
                first, last = transfers.first[number : number + 2]
                links = tuple(transfers.link[first:last].tolist())
                paths[rank[src], rank[dst]].append((delay, links))
        self._out: defaultdict[int, list[tuple[int, float, list[Links]]]] = defaultdict(list)
        self._into: defaultdict[int, list[tuple[int, float, list[Links]]]] = defaultdict(list)
        for (src, dst), those in paths.items():
            least = min(delay for delay, _ in those)
            alike = [links for delay, links in those if delay <= least + LEAST]
            self._out[src].append((dst, least, alike))
            self._into[dst].append((src, least, alike))

    def patterns(self, word: Word, owners: int) -> list[Pattern]:
        """Return what pieces do that take dimensions and so many choices of owners by turns.

        None of them where no path joins what has to be.
        """
        try:
            return [
                self._pattern(word, axes, turn) for turn, axes in product(range(owners), word.axes)
            ]
        except Infeasible:
            return []

    def _pattern(self, word: Word, axes: Sequence[int], turn: int) -> Pattern:
        active, left, sums = word.grid, [*range(word.grid.ndim)], _Sums(self)
        for letter, axis in zip_longest(word.letters, axes):
            if letter == "s":
                sums.spread()
                continue
            place = left.index(axis)
            side = active.shape[place]
            rows = np.moveaxis(active, place, -1).reshape(-1, side).tolist()
            for row in rows:
                if letter == "x":
                    sums.exchange(row)
                else:
                    sums.add_up(row, row[turn % side])
            if letter == "h":
                active, turn = active.take(turn % side, axis=place), turn // side
                left.pop(place)
        return sums.pattern

    def tree(
        self, root: int, goals: Iterable[int], *, inward: bool
    ) -> list[tuple[int, int, Links]]:
        """Return the quickest paths from a rank to others, or back: pairs of ranks, the root first.

        Of paths as quick chance takes one.

        Raises
        ------
        Infeasible
            If there is none.
        """
        reaches = self._into if inward else self._out
        far, came = {root: 0.0}, dict[int, tuple[int, Links]]()
        heap, done, left = [(0.0, 0.0, root)], dict[int, None](), {*goals} - {root}
        while heap and left:
            here, _, rank = heapq.heappop(heap)
            if rank in done:
                continue
            done[rank] = None
            left.discard(rank)
            chance = self._dice.random(len(reaches[rank])).tolist()
            for (end, delay, alike), luck in zip(reaches[rank], chance, strict=True):
                there, known = here + delay, far.get(end, np.inf)
                if end not in done and (there < known - LEAST or (luck > 0.5 and there <= known)):
                    path = alike[int(2 * luck * len(alike)) % len(alike)]
                    far[end], came[end] = there, (rank, path)
                    heapq.heappush(heap, (there, luck, end))
        if left:
            raise Infeasible(f"no path joins ranks {root} and {min(left)}")
        used = {root}
        for goal in goals:
            here_on = goal
            while here_on not in used:
                used.add(here_on)
                here_on = came[here_on][0]
        return [(came[rank][0], rank, came[rank][1]) for rank in [*done][1:] if rank in used]


class _Sums:
    """Crossings of a piece so far, and those that have brought each rank what is in its sum.

    What a rank has had already, to pass it on, it does not get again.
    """

    def __init__(self, paths: Staged) -> None:
        self._paths = paths
        self._routes: list[Links] = []
        self._ranks: list[int | None] = []
        self._waits: list[tuple[int, int]] = []
        self._terms: list[frozenset[int]] = []
        self._had: dict[tuple[int, frozenset[int]], int] = {}
        self._brought: defaultdict[int, list[int]] = defaultdict(list)
        self._dropped: list[tuple[int, list[int]]] = []

    @property
    def pattern(self) -> Pattern:
        """What the piece does."""
        before, after = np.array(self._waits, dtype=np.int64).reshape(-1, 2).T
        return Pattern(0, tuple(self._routes), before, after, None, tuple(self._ranks))

    def exchange(self, row: Sequence[int]) -> None:
        """Let all of a row have all their sums."""
        came = [self._sent(rank, row) for rank in row]
        for rank in row:
            self._brought[rank] += [each[rank] for each in came if rank in each]

    def add_up(self, row: Sequence[int], owner: int) -> None:
        """Bring the sums of a row to one of them, added up on the way."""
        others = [rank for rank in row if rank != owner]
        through: defaultdict[int, list[int]] = defaultdict(list)
        for near, far, links in reversed(self._paths.tree(owner, others, inward=True)):
            own = far if far in others else None
            waits = through[far] if own is None else self._brought[far] + through[far]
            through[near].append(self._cross(links, near, own, waits))
        self._brought[owner] += through[owner]
        self._dropped.append((owner, others))

    def spread(self) -> None:
        """Send the sum of all back to those that have brought theirs to owners."""
        for owner, others in reversed(self._dropped):
            came = self._sent(owner, others)
            self._brought.update({rank: [came[rank]] for rank in others})

    def _sent(self, root: int, goals: Sequence[int]) -> dict[int, int]:
        """Send the sum of a rank to others; return by which crossing each has it."""
        came: dict[int, int] = {}
        for near, far, links in self._paths.tree(root, goals, inward=False):
            first = near == root
            waits = self._brought[root] if first else [came[near]]
            came[far] = self._cross(links, far, root if first else None, waits)
        return {rank: came[rank] for rank in goals if rank != root}

    def _cross(self, links: Links, end: int, rank: int | None, waits: Sequence[int]) -> int:
        """Send what some have brought, and what a rank has; return by which the end has it."""
        own: set[int] = set() if rank is None else {rank}
        terms = frozenset(own.union(*(self._terms[each] for each in waits)))
        number = self._had.setdefault((end, terms), len(self._routes))
        if number == len(self._routes):
            self._routes.append(links)
            self._ranks.append(rank)
            self._terms.append(terms)
            self._waits += [(each, number) for each in waits]
        return number
