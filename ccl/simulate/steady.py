"""Replay of forests and flows: they say which way the data goes, so they are cut into parts.

Every chunk is cut into parts, which take the trees or paths in proportion to their weights. A
link sends of the parts that are there the one that is furthest behind: part i of n of a chunk
has the rank (i + 1/2) / n, so that all chunks and trees move on together, and a device passes a
part on when all of it has come. The more parts, the closer to the steady state.

An all-reduce is cut where its in-trees and its out-trees are: the data of a root is a line, of
which each in-tree adds up a stretch and each out-tree spreads one, both in their order. Where two
stretches meet, a part goes up the one and down the other, from the root on when the root has all
of it. The lines of all roots one after the other are the chunks one after the other.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ccl.flow import Flow
from ccl.forest import Forest, Tree
from ccl.laying import Laid, lay
from ccl.problem import Problem
from ccl.simulate.engine import Engine, Job
from ccl.simulate.orbits import Orbits, orbits_of
from ccl.simulate.slow import SlowTimes
from ccl.steady import exact
from ccl.timeline import Timeline, Transfer
from ccl.topology import Topology

_MOST_PARTS = 64
_MOST_CROSSINGS = 50_000
_NOTHING = 1e-12
"""Shares of a chunk below this are rounding errors of a solver."""


@dataclass(frozen=True, slots=True)
class _Way:
    """A tree or path of a share of a chunk: its links, and for each the places it waits for."""

    chunk: int
    share: float
    links: tuple[int, ...]
    after: tuple[tuple[int, ...], ...]


def replay_forest(problem: Problem, forest: Forest, *, chunks: int | None) -> Timeline:
    """Replay a forest with `chunks` parts of each chunk; images move as their trees do."""
    orbits = None
    if forest.symmetry is not None:
        orbits = None if problem.windows else orbits_of(problem.topology, forest.symmetry)
        if orbits is None:
            forest = forest.unfolded(problem.topology)
    ways = list(_up_and_down(problem, forest) if forest.spread else _one_way(problem, forest))
    return _replay(problem, ways, chunks=chunks, orbits=orbits)


def replay_flow(problem: Problem, flow: Flow, *, chunks: int | None) -> Timeline:
    """Replay a flow, taken apart into paths, with `chunks` parts of each chunk."""
    amounts: defaultdict[int, defaultdict[str, dict[str, float]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for rate in flow.rates:
        out = amounts[rate.chunk][rate.src]
        out[rate.dst] = out.get(rate.dst, 0.0) + rate.amount
    ranks, index = problem.topology.ranks, problem.topology.link_index
    ways = []
    for number, chunk in enumerate(problem.collective.chunks):
        start, goal = ranks[chunk.holders[0]], ranks[chunk.destinations[0]]
        paths = list(_paths(amounts[number], start, goal=goal))
        whole = sum(share for share, _ in paths)
        for share, path in paths:
            links = tuple(index[ends] for ends in itertools.pairwise(path))
            after = ((), *((place,) for place in range(len(links) - 1)))
            ways.append(_Way(number, share / whole, links, after[: len(links)]))
    return _replay(problem, ways, chunks=chunks)


def _one_way(problem: Problem, forest: Forest) -> Iterator[_Way]:
    """Yield the ways of all chunks, which all go out from their roots or all come to them."""
    of_root: defaultdict[int, list[int]] = defaultdict(list)
    for number, chunk in enumerate(problem.collective.chunks):
        ends = chunk.destinations if forest.reduces else chunk.holders
        of_root[ends[0]].append(number)
    ways = []
    for tree in forest.trees:
        laid = lay(problem.topology, tree, reduces=forest.reduces)
        after = _waits(laid, reduces=forest.reduces)
        share = float(tree.weight)
        ways += [_Way(number, share, laid.links, after) for number in of_root[tree.root]]
    yield from sorted(ways, key=lambda way: way.chunk)


def _up_and_down(problem: Problem, forest: Forest) -> Iterator[_Way]:
    """Yield the ways of an all-reduce: up an in-tree, then down an out-tree of its root."""
    sizes = [exact(chunk.size) for chunk in problem.collective.chunks]
    whole = sum(sizes, Fraction(0))
    ends = [Fraction(0), *itertools.accumulate(size / whole for size in sizes)]
    at, chunk = Fraction(0), 0
    for up, down, weight in _met(forest):
        links, after = _joined(problem.topology, up, down)
        stop = at + weight
        while at < stop:
            upto = min(stop, ends[chunk + 1])
            share = (upto - at) / (ends[chunk + 1] - ends[chunk])
            yield _Way(chunk, float(share), links, after)
            at = upto
            chunk += at == ends[chunk + 1]


def _met(forest: Forest) -> Iterator[tuple[Tree, Tree, Fraction]]:
    """Yield in-tree, out-tree and weight of each stretch of the roots' data."""
    downs: defaultdict[int, list[list[Tree | Fraction]]] = defaultdict(list)
    for tree in forest.spread:
        downs[tree.root].append([tree, tree.weight])
    for queue in downs.values():
        queue.reverse()
    for up in sorted(forest.trees, key=lambda tree: tree.root):
        left = up.weight
        while left:
            last = downs[up.root][-1]
            down, room = last
            assert isinstance(down, Tree)
            assert isinstance(room, Fraction)
            weight = min(left, room)
            yield up, down, weight
            left -= weight
            last[1] = room - weight
            if room == weight:
                downs[up.root].pop()


def _joined(
    topology: Topology, up: Tree, down: Tree
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Return the links of both trees, and what each waits for: the second for all of the first."""
    first, then = lay(topology, up, reduces=True), lay(topology, down, reduces=False)
    many = len(first.links)
    added = tuple(place for place, before in enumerate(first.before) if before < 0)
    after = [added if before < 0 else (many + before,) for before in then.before]
    return first.links + then.links, (*_waits(first, reduces=True), *after)


def _waits(laid: Laid, *, reduces: bool) -> tuple[tuple[int, ...], ...]:
    """Return for each link of a tree the places of those that it waits for."""
    if not reduces:
        return tuple(() if before < 0 else (before,) for before in laid.before)
    found: list[list[int]] = [[] for _ in laid.links]
    for place, before in enumerate(laid.before):
        if before >= 0:
            found[before].append(place)
    return tuple(map(tuple, found))


def _paths(
    amounts: defaultdict[str, dict[str, float]], start: str, *, goal: str
) -> Iterable[tuple[float, list[str]]]:
    """Take paths with their shares off the amounts, which are used up, until none is left."""
    while True:
        came_from = {start: ""}
        front = [start]
        while front and goal not in came_from:
            device = front.pop(0)
            for dst, amount in amounts[device].items():
                if amount > _NOTHING and dst not in came_from:
                    came_from[dst] = device
                    front.append(dst)
        if goal not in came_from:
            return
        path = [goal]
        while path[-1] != start:
            path.append(came_from[path[-1]])
        path.reverse()
        share = min(amounts[src][dst] for src, dst in itertools.pairwise(path))
        for src, dst in itertools.pairwise(path):
            amounts[src][dst] -= share
        yield share, path


def _replay(
    problem: Problem, ways: Sequence[_Way], *, chunks: int | None, orbits: Orbits | None = None
) -> Timeline:
    """Cut the chunks into parts and send them over their ways."""
    if chunks is None:
        crossings = sum(way.share * len(way.links) for way in ways)
        chunks = max(1, min(_MOST_PARTS, int(_MOST_CROSSINGS / max(1.0, crossings))))
    parts = []
    for way in ways:
        count = max(1, round(way.share * chunks))
        parts += [((i + 0.5) / count, way, count) for i in range(count)]
    parts.sort(key=lambda part: part[0])
    sizes = [each.size for each in problem.collective.chunks]
    jobs: list[Job] = []
    of_job: list[tuple[int, int]] = []
    alphas = [link.alpha for link in problem.topology.links]
    for _, way, count in parts:
        nbytes = sizes[way.chunk] * way.share / count
        jobs += _jobs(way, alphas, base=len(jobs), nbytes=nbytes)
        of_job += [(way.chunk, link) for link in way.links]
    slow = SlowTimes(problem) if problem.windows else None
    topology = problem.topology
    if orbits is not None:
        orbits.place(jobs)
        topology = orbits.topology
    Engine(topology, jobs, in_order=False, slow=slow).run()
    timeline = _timeline(problem, jobs, of_job=of_job, chunks=chunks)
    return timeline if orbits is None else orbits.told(timeline)


def _jobs(way: _Way, alphas: Sequence[float], *, base: int, nbytes: float) -> list[Job]:
    """Make the jobs of one part, which are numbered from `base` on."""
    jobs = [Job(link, nbytes, len(after)) for link, after in zip(way.links, way.after, strict=True)]
    for place, after in enumerate(way.after):
        for first in after:
            jobs[first].on_end.append((base + place, alphas[way.links[first]]))
    return jobs


def _timeline(
    problem: Problem, jobs: Sequence[Job], *, of_job: Sequence[tuple[int, int]], chunks: int
) -> Timeline:
    links = problem.topology.links
    wanted = [frozenset(chunk.destinations) for chunk in problem.collective.chunks]
    rank = [problem.topology.rank.get(link.dst, -1) for link in links]
    makespan = 0.0
    transfers = []
    for job, (chunk, number) in zip(jobs, of_job, strict=True):
        link = links[number]
        end = job.sent + link.alpha
        transfers.append(Transfer(chunk, link.src, link.dst, job.start, job.sent, end, job.nbytes))
        if end > makespan and rank[number] in wanted[chunk]:
            makespan = end
    transfers.sort(key=lambda transfer: transfer.start)
    return Timeline(tuple(transfers), makespan, chunks)
