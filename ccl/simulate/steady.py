"""Replay of forests and flows: they say which way the data goes, so they are cut into parts.

Every chunk is cut into parts, which take the trees or paths in proportion to their weights. A
link sends of the parts that are there the one that is furthest behind: part i of n of a chunk
has the rank (i + 1/2) / n, so that all chunks and trees move on together, and a device passes a
part on when all of it has come. The more parts, the closer to the steady state.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ccl.flow import Flow
from ccl.forest import Forest
from ccl.laying import Laid, lay
from ccl.problem import Problem
from ccl.simulate.engine import Engine, Job
from ccl.simulate.slow import SlowTimes
from ccl.timeline import Timeline, Transfer
from ccl.topology import Topology

_MOST_PARTS = 64
_MOST_CROSSINGS = 50_000
_NOTHING = 1e-12
"""Shares of a chunk below this are rounding errors of a solver."""


@dataclass(frozen=True)
class _Way:
    """A tree or path of one chunk: its links, and for each the place here of the one before it.

    Of a reduction the order is turned round: a link waits for all that name it as theirs.
    """

    chunk: int
    share: float
    links: tuple[int, ...]
    before: tuple[int, ...]
    reduces: bool = False


def replay_forest(problem: Problem, forest: Forest, *, chunks: int | None) -> Timeline:
    """Replay a forest with `chunks` parts of each chunk."""
    by_root: defaultdict[int, list[tuple[float, Laid]]] = defaultdict(list)
    for tree in forest.every(problem.topology):
        laid = lay(problem.topology, tree, reduces=forest.reduces)
        by_root[tree.root].append((float(tree.weight), laid))
    ways = []
    for number, chunk in enumerate(problem.collective.chunks):
        ends = chunk.destinations if forest.reduces else chunk.holders
        ways += [
            _Way(number, share, laid.links, laid.before, forest.reduces)
            for share, laid in by_root[ends[0]]
        ]
    return _replay(problem, ways, chunks=chunks)


def replay_flow(problem: Problem, flow: Flow, *, chunks: int | None) -> Timeline:
    """Replay a flow, taken apart into paths, with `chunks` parts of each chunk."""
    amounts: defaultdict[int, defaultdict[str, dict[str, float]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for rate in flow.rates:
        out = amounts[rate.chunk][rate.src]
        out[rate.dst] = out.get(rate.dst, 0.0) + rate.amount
    ranks = problem.topology.ranks
    ways = []
    for number, chunk in enumerate(problem.collective.chunks):
        start, goal = ranks[chunk.holders[0]], ranks[chunk.destinations[0]]
        paths = list(_paths(amounts[number], start, goal=goal))
        whole = sum(share for share, _ in paths)
        for share, path in paths:
            links = tuple(problem.topology.link_index[ends] for ends in itertools.pairwise(path))
            ways.append(_Way(number, share / whole, links, tuple(range(-1, len(links) - 1))))
    return _replay(problem, ways, chunks=chunks)


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


def _replay(problem: Problem, ways: Sequence[_Way], *, chunks: int | None) -> Timeline:
    """Cut the chunks into parts and send them over their ways."""
    if chunks is None:
        crossings = sum(way.share * len(way.links) for way in ways)
        chunks = max(1, min(_MOST_PARTS, int(_MOST_CROSSINGS / max(1.0, crossings))))
    parts = []
    for way in ways:
        count = max(1, round(way.share * chunks))
        parts += [((i + 0.5) / count, way, count) for i in range(count)]
    parts.sort(key=lambda part: part[0])
    topology, sizes = problem.topology, [each.size for each in problem.collective.chunks]
    jobs: list[Job] = []
    of_job: list[int] = []
    for _, way, count in parts:
        nbytes = sizes[way.chunk] * way.share / count
        jobs += _jobs(topology, way, base=len(jobs), nbytes=nbytes)
        of_job += [way.chunk] * len(way.links)
    slow = SlowTimes(problem) if problem.windows else None
    Engine(topology, jobs, in_order=False, slow=slow).run()
    return _timeline(problem, jobs, of_job=of_job, chunks=chunks)


def _jobs(topology: Topology, way: _Way, *, base: int, nbytes: float) -> list[Job]:
    """Make the jobs of one part, which are numbered from `base` on."""
    jobs = [Job(link, nbytes) for link in way.links]
    for i, earlier in enumerate(way.before):
        if earlier >= 0:
            first, then = (i, earlier) if way.reduces else (earlier, i)
            alpha = topology.links[jobs[first].link].alpha
            jobs[first].on_end.append((base + then, alpha))
            jobs[then].waits += 1
    return jobs


def _timeline(
    problem: Problem,
    jobs: Sequence[Job],
    *,
    of_job: Sequence[int],
    chunks: int,
) -> Timeline:
    ranks = problem.topology.ranks
    wanted = [{ranks[rank] for rank in chunk.destinations} for chunk in problem.collective.chunks]
    makespan = 0.0
    transfers = []
    for job, chunk in zip(jobs, of_job, strict=True):
        link = problem.topology.links[job.link]
        end = job.sent + link.alpha
        transfers.append(Transfer(chunk, link.src, link.dst, job.start, job.sent, end, job.nbytes))
        if link.dst in wanted[chunk]:
            makespan = max(makespan, end)
    transfers.sort(key=lambda transfer: transfer.start)
    return Timeline(tuple(transfers), makespan, chunks)
