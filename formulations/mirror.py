"""Reductions as mirrored collectives, and all-reduce as two halves.

A plan of the mirrored collective on the reversed topology, read backwards in time, is a plan of
the reduction: out-trees become in-trees along which contributions are added (TE-CCL, section 2;
ForestColl, section 5.7 has the same for trees). An all-reduce is a reduce-scatter followed by an
all-gather; the replay lets the second begin, link by link, as soon as the first is done with it.
This is a choice, not always the optimum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ccl.collective import Chunk, Collective, CollectiveKind
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.result import Result, Stop
from ccl.schedule import Schedule
from ccl.topology import Topology
from formulations.bounds import lower_bounds
from formulations.epochs import EpochGrid
from formulations.hops import hyper_edges, link_hops
from formulations.plans import delays
from formulations.run import Progress, Run

Search = Callable[[Run, Any], Stop]
"""Offers plans to a run until it stops, and says why it stopped."""


def no_mirror(problem: Problem) -> str | None:
    """Say why a reduction cannot be found as a mirror, or None."""
    if not problem.collective.reduces:
        return None
    try:
        _adding(problem)
    except ProblemError:
        return "only ways through memory join its GPUs, and here memory takes no part in reductions"
    return None


def _adding(problem: Problem) -> Problem:
    """Return the problem without what stores and cannot add.

    It would hold contributions apart, and which of them a send carries is not said in a schedule.
    """
    topology = problem.topology
    apart = {each.name for each in topology.devices if each.stores and not each.reduces}
    links = tuple(link for link in topology.links if not apart & set(link.ends))
    kept = {link.ends for link in links}
    limits = []
    for limit in topology.limits:
        under = tuple(ends for ends in limit.links if ends in kept)
        if under:
            limits.append(replace(limit, links=under))
    devices = tuple(each for each in topology.devices if each.name not in apart)
    return replace(problem, topology=Topology(topology.name, devices, links, tuple(limits)))


def search(run: Run, options: Any, find: Search) -> Result:
    """Run `find`, which knows no reductions, on any collective."""
    chunks = run.problem.collective.chunks
    if not run.problem.collective.reduces:
        return run.finish(find(run, options))
    if all(not chunk.reduced or len(chunk.destinations) == 1 for chunk in chunks):
        return run.finish(_mirrored(run, options, find))
    return run.finish(_halves(run, options, find))


def _mirrored(run: Run, options: Any, find: Search) -> Stop:
    """Solve the mirrored problem and offer every plan of it backwards."""
    problem = _adding(run.problem)
    mirror = Problem(problem.topology.reversed(), problem.collective.reversed())

    def heard(news: Progress) -> None:
        if news.result is not None:
            run.offer(backwards(mirror, _plan(news.result)))
        else:
            run.report(news.message)

    inner = replace(run, problem=mirror, progress=heard, best=None)
    stop = find(inner, options)
    run.size = inner.size
    return stop


def _halves(run: Run, options: Any, find: Search) -> Stop:
    """Solve the reduce-scatter, then the all-gather, each in half of the time."""
    problem = _adding(run.problem)
    gather = Problem(problem.topology, spread(problem.collective))
    scatter = Problem(problem.topology, gather.collective.reversed())
    first = _half(run, scatter, 0.5)
    done = search(first, options, find)
    head = _plan(done)
    run.note("all-reduce is a reduce-scatter followed by an all-gather, which is a choice")

    def heard(news: Progress) -> None:
        if news.result is not None:
            run.offer(joined(head, _plan(news.result)))
        else:
            run.report(news.message)

    second = _half(run, gather, 1.0)
    second.progress = heard
    second.epoch_duration = head.epoch_duration
    stop = find(second, options)
    for half in (first, second):
        if half.size is not None:
            run.met(half.size)
    return stop if stop is not Stop.MODEL_OPTIMAL else done.stop


def _half(run: Run, problem: Problem, share: float) -> Run:
    limit = None if run.left is None else run.left * share
    return Run(
        problem=problem,
        formulation=run.formulation,
        options=run.options,
        backend=run.backend,
        bounds=lower_bounds(problem, whole_chunks=True),
        time_limit=limit,
        gap=run.gap,
        progress=lambda news: run.report(news.message),
        log=run.log,
    )


def spread(collective: Collective) -> Collective:
    """Return the second half of an all-reduce: each reduced chunk starts at one rank as a sum.

    Chunks are dealt to their destinations in turn, so that every rank adds up its share.
    """
    many = Counter(chunk.destinations for chunk in collective.chunks)
    dealt: Counter[tuple[int, ...]] = Counter()
    chunks = []
    for chunk in collective.chunks:
        ranks = chunk.destinations
        # In blocks, as the shards of an all-gather lie.
        root = ranks[dealt[ranks] * len(ranks) // many[ranks]]
        dealt[ranks] += 1
        others = tuple(rank for rank in chunk.destinations if rank != root)
        chunks.append(Chunk(chunk.size, (root,), others))
    kind: CollectiveKind = "all-gather" if collective.kind == "all-reduce" else "custom"
    return Collective(kind, collective.ranks, collective.size, tuple(chunks))


def backwards(mirror: Problem, plan: Schedule) -> Schedule:
    """Read a plan of the mirrored problem backwards: a plan of the problem itself.

    A send in epoch k with a delay of d epochs becomes one in epoch ``horizon - k - d``.
    """
    grid = EpochGrid(mirror.topology, mirror.collective.chunk_size, plan.epoch_duration)
    through = any(send.via for send in plan.sends)
    took = delays(hyper_edges(grid) if through else link_hops(grid))
    sends = [
        replace(
            send,
            epoch=plan.horizon - send.epoch - took[send.src, *send.via, send.dst],
            src=send.dst,
            dst=send.src,
            via=send.via[::-1],
        )
        for send in reversed(plan.sends)
    ]
    return replace(plan, sends=tuple(sorted(sends, key=lambda send: send.epoch)))


def joined(first: Schedule, second: Schedule) -> Schedule:
    """Let `second` begin in the epoch after the last of `first`; both are on one grid."""
    assert first.epoch_duration == second.epoch_duration
    shifted = tuple(replace(send, epoch=send.epoch + first.horizon) for send in second.sends)
    return Schedule(first.sends + shifted, first.epoch_duration, first.horizon + second.horizon)


def _plan(result: Result) -> Schedule:
    assert isinstance(result.plan, Schedule)
    return result.plan
