"""Replay of forests and flows: they say which way the data goes, so they are cut into parts.

Every chunk is cut into parts, which take the trees or paths in proportion to their weights. A
link sends of the parts that are there the one that is furthest behind: part i of n of a chunk
has the rank (i + 1/2) / n, so that all chunks and trees move on together, and a device passes a
part on when all of it has come. The more parts, the closer to the steady state.

An all-reduce is cut where its in-trees and its out-trees are (`ccl.laying`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ccl.flow import Flow
from ccl.forest import Forest
from ccl.laying import ways
from ccl.paths import paths
from ccl.problem import Problem
from ccl.simulate.orbits import Orbits, orbits_of
from ccl.simulate.parts import Parts, Track, track
from ccl.simulate.slow import SlowTimes
from ccl.timeline import Timeline, Transfer, by_start

_PARTS = 64
_CROSSINGS = 50_000
_MOST_CROSSINGS = 100_000

_GAIN = 0.01
"""Share of the makespan that a doubling of the parts must have gained to be worth another."""


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
    found = [
        _Way(way.chunk, float(way.share), way.links, way.after) for way in ways(problem, forest)
    ]
    return _replay(problem, found, chunks=chunks, orbits=orbits)


def replay_flow(problem: Problem, flow: Flow, *, chunks: int | None) -> Timeline:
    """Replay a flow, taken apart into paths, with `chunks` parts of each chunk."""
    index = problem.topology.link_index
    found = []
    for number, taken in paths(problem, flow):
        whole = sum(share for share, _ in taken)
        for share, path in taken:
            links = tuple(index[ends] for ends in itertools.pairwise(path))
            after = ((), *((place,) for place in range(len(links) - 1)))
            found.append(_Way(number, share / whole, links, after[: len(links)]))
    return _replay(problem, found, chunks=chunks)


def _replay(
    problem: Problem, found: Sequence[_Way], *, chunks: int | None, orbits: Orbits | None = None
) -> Timeline:
    """Cut the chunks into parts and send them over their ways."""
    if chunks is not None:
        return _in_parts(problem, found, chunks=chunks, orbits=orbits)
    crossings = max(1.0, sum(way.share * len(way.links) for way in found))
    chunks = max(1, min(_PARTS, int(_CROSSINGS / crossings)))
    before = _in_parts(problem, found, chunks=max(1, chunks // 2), orbits=orbits)
    best = _in_parts(problem, found, chunks=chunks, orbits=orbits)
    # What filling ways and emptying them takes shrinks as parts do.
    while (
        best.makespan < before.makespan * (1 - _GAIN) and 2 * chunks * crossings < _MOST_CROSSINGS
    ):
        chunks *= 2
        before, best = best, _in_parts(problem, found, chunks=chunks, orbits=orbits)
    return before if before.makespan < best.makespan else best


def _in_parts(
    problem: Problem, found: Sequence[_Way], *, chunks: int, orbits: Orbits | None
) -> Timeline:
    """Replay with about so many parts of each chunk."""
    cut: list[tuple[float, _Way, float, Track]] = []
    sizes = [each.size for each in problem.collective.chunks]
    for way in found:
        count = max(1, round(way.share * chunks))
        nbytes = sizes[way.chunk] * way.share / count
        own = _track(way, orbits)
        cut += [((i + 0.5) / count, way, nbytes, own) for i in range(count)]
    cut.sort(key=lambda part: part[0])
    parts = Parts()
    for _, _, nbytes, own in cut:
        parts.add(own, nbytes)
    slow = SlowTimes(problem) if problem.windows else None
    parts.send(problem.topology if orbits is None else orbits.topology, slow)
    crossed = ((way.chunk, link) for _, way, _, _ in cut for link in way.links)
    after = _after(way for _, way, _, _ in cut)
    timeline = _timeline(problem, parts, crossed=crossed, after=after, chunks=chunks)
    return timeline if orbits is None else orbits.told(timeline)


def _track(way: _Way, orbits: Orbits | None) -> Track:
    """Return the links that a way takes, those that stand for its own where there are orbits."""
    if orbits is None:
        return track(way.links, (1,) * len(way.links), way.after)
    return track(*orbits.of(way.links), way.after)


def _after(cut: Iterable[_Way]) -> list[tuple[int, ...]]:
    """Return for each crossing of each part the places of those that it waits for."""
    found: list[tuple[int, ...]] = []
    for way in cut:
        base = len(found)
        found += [tuple([base + place for place in those]) for those in way.after]
    return found


def _timeline(
    problem: Problem,
    parts: Parts,
    *,
    crossed: Iterable[tuple[int, int]],
    after: Sequence[tuple[int, ...]],
    chunks: int,
) -> Timeline:
    links = problem.topology.links
    wanted = [frozenset(chunk.destinations) for chunk in problem.collective.chunks]
    rank = [problem.topology.rank.get(link.dst, -1) for link in links]
    makespan = 0.0
    transfers = []
    for (chunk, number), start, sent, nbytes in zip(
        crossed, parts.start, parts.sent, parts.nbytes, strict=True
    ):
        link = links[number]
        end = sent + link.alpha
        transfers.append(Transfer(chunk, link.src, link.dst, start, sent, end, nbytes))
        if end > makespan and rank[number] in wanted[chunk]:
            makespan = end
    placed, moved = by_start(transfers, after)
    return Timeline(placed, makespan, chunks, after=moved)
