"""Reductions as time-reversed collectives, and sums for several ranks as two halves.

A plan of the reversed collective on the reversed topology, read backwards in time, is a plan of
the reduction: out-trees become in-trees along which contributions are added (TE-CCL, section 2;
ForestColl, section 5.7 has the same for trees). A sum that several ranks want is added up at one
rank, then spread from there: an all-reduce is a reduce-scatter followed by an all-gather. The
replay lets the second half begin, link by link, as soon as the first is done with it. This is a
choice, not always the optimum.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ccl.collective import Chunk, Collective, CollectiveKind
from ccl.errors import ProblemError
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.result import Plan, Result, Stop
from ccl.topology import Topology
from formulations.core.refusals import no_sums
from formulations.core.run import Progress, Run

Search = Callable[[Run, Any], Stop]
"""Offers plans to a run until it stops, and says why it stopped."""


def irreversible(problem: Problem) -> str | None:
    """Explain why a reduction cannot be found as a time reversal, or None."""
    if not problem.collective.reduces:
        return None
    if (reason := no_sums(problem)) is not None:
        return reason
    try:
        whole = adding(problem)
        for half in halves(problem.collective):
            if half is not None:
                replace(whole, collective=half.collective)
    except ProblemError:
        return "no paths join its contributions at one rank, memory apart, which cannot add them"
    return None


def adding(problem: Problem) -> Problem:
    """Return the problem with no path through what stores and cannot add.

    It would hold contributions apart, and a plan read backwards does not name those of a send.
    Its links stay, so that a shared limit over them binds as before: those out of it leave a
    twin that nothing reaches.
    """
    topology = problem.topology
    into, out = topology.links_in, topology.links_out
    apart = {
        each.name
        for each in topology.devices
        if each.stores and not each.reduces and into[each.name] and out[each.name]
    }
    if not apart:
        return problem
    # Longer than every name, so a name of its own.
    mark = "~" * max(len(each.name) for each in topology.devices)
    twin = {name: mark + name for name in apart}
    devices = [
        replace(each, name=twin[each.name]) for each in topology.devices if each.name in apart
    ]
    split = Topology(
        topology.name,
        (*topology.devices, *devices),
        tuple(replace(each, src=twin.get(each.src, each.src)) for each in topology.links),
        tuple(
            replace(each, links=tuple((twin.get(src, src), dst) for src, dst in each.links))
            for each in topology.limits
        ),
    )
    return replace(problem, topology=split)


def forwarding(problem: Problem) -> Problem:
    """Return the problem as if switches only forwarded.

    Its plans are plans of the problem where sends that a switch would join have epochs of their own
    (`formulations.engines.list_scheduling.timed.in_epochs`). Where latency counts, messages between
    GPUs take less than a sum and then copies.
    """
    devices = (
        each if each.stores else replace(each, copies=False, reduces=False)
        for each in problem.topology.devices
    )
    return replace(problem, topology=replace(problem.topology, devices=tuple(devices)))


def parts(problem: Problem) -> list[tuple[Problem, bool]]:
    """Return what is solved for `problem`, and whether it is read backwards.

    That is the problem itself, the time reversal of a reduction, or both halves of a sum for
    several.
    """
    if not problem.collective.reduces:
        return [(problem, False)]
    whole = adding(problem)
    found = []
    for half in halves(whole.collective):
        if half is not None and half.collective.reduces:
            reverse = Problem(whole.topology.reversed(), half.collective.reversed())
            found.append((reverse, True))
        elif half is not None:
            found.append((Problem(whole.topology, half.collective), False))
    return found


@dataclass(frozen=True)
class Half:
    """Some chunks of a collective, as a collective of their own.

    Parameters
    ----------
    collective
        The chunks.
    numbers
        Number of each in the whole collective.
    """

    collective: Collective
    numbers: tuple[int, ...]

    def renumbered(self, plan: Schedule) -> Schedule:
        """Return a plan of this half with the numbers of the whole collective."""
        sends = tuple(replace(send, chunk=self.numbers[send.chunk]) for send in plan.sends)
        return replace(plan, sends=sends)


def search(run: Run, options: Any, find: Search) -> Result:
    """Run `find`, which knows no reductions, on any collective."""
    if not run.problem.collective.reduces:
        return run.finish(find(run, options))
    problem = adding(run.problem)
    head, tail = halves(problem.collective)
    if head is None or tail is None:
        half = head or tail
        assert half is not None
        return run.finish(_one(run, options, find, problem=problem, half=half))
    return run.finish(_both(run, options, find, topology=problem.topology, halves=(head, tail)))


def _one(run: Run, options: Any, find: Search, *, problem: Problem, half: Half) -> Stop:
    """Solve the only half that has anything to do; every plan of it answers the whole."""
    inner_problem = Problem(problem.topology, half.collective)
    inner = replace(run, problem=inner_problem, answers=run.answers or run.problem)
    turn = run.turn

    def whole(plan: Schedule) -> Plan:
        return turn(half.renumbered(plan))

    def turned(plan: Schedule) -> Plan:
        return whole(backwards(inner.problem, plan))

    if half.collective.reduces:
        reverse = Problem(inner_problem.topology.reversed(), half.collective.reversed())
        inner = replace(inner, problem=reverse, reverse_time=True, turn=turned)
    else:
        inner = replace(inner, turn=whole)
    stop = find(inner, options)
    run.best, run.size = inner.best, inner.size
    return stop


def _both(
    run: Run, options: Any, find: Search, *, topology: Topology, halves: tuple[Half, Half]
) -> Stop:
    """Solve the half that adds up, then the half that spreads, each in half of the time."""
    head, tail = halves
    first = _half(run, Problem(topology, head.collective), 0.5)
    done = search(first, options, find)
    added = head.renumbered(_plan(done.plan))
    run.note(f"{run.problem.collective.kind} adds up first, then spreads, which is a choice")

    def heard(news: Progress) -> None:
        if news.result is not None:
            run.offer(concatenated(added, tail.renumbered(_plan(news.result.plan))))
        else:
            run.report(news.message)

    second = _half(run, Problem(topology, tail.collective), 1.0)
    second.progress = heard
    second.epoch_duration = added.epoch_duration
    stop = find(second, options)
    for half in (first, second):
        if half.size is not None:
            run.met(half.size)
    return _joint_stop(done.stop, stop)


def _joint_stop(first: Stop, second: Stop) -> Stop:
    """Explain why two halves stopped: both solved is no proof of the whole."""
    solved = (Stop.PROVED, Stop.MODEL_OPTIMAL)
    unsolved = [stop for stop in (first, second) if stop not in solved]
    return unsolved[0] if unsolved else Stop.MODEL_OPTIMAL


def _half(run: Run, problem: Problem, share: float) -> Run:
    from formulations.bounds import initial_bounds  # noqa: PLC0415  menus need no bounds

    limit = None if run.left is None else run.left * share
    return Run(
        problem=problem,
        formulation=run.formulation,
        options=run.options,
        solver=run.solver,
        bounds=initial_bounds(problem, quick=False, whole_chunks=True),
        time_limit=limit,
        grace=(run.grace - run.seconds) * share,
        gap=run.gap,
        progress=lambda news: run.report(news.message),
        log=run.log,
        broken=run.broken,
    )


def halves(collective: Collective) -> tuple[Half | None, Half | None]:
    """Split a collective: each sum to one rank, then sums and other chunks to who wants them.

    A half in which nothing has to be sent is None.
    """
    added: dict[int, Chunk] = {}
    spread: dict[int, Chunk] = {}
    root = _roots(collective)
    for number, chunk in enumerate(collective.chunks):
        holders = chunk.holders
        if chunk.reduced:
            if set(holders) != {root[number]}:
                added[number] = replace(chunk, destinations=(root[number],))
            holders = (root[number],)
        others = tuple(rank for rank in chunk.destinations if rank not in holders)
        if others:
            spread[number] = replace(chunk, holders=holders, destinations=others, reduced=False)
    if not spread:
        return _made(collective, added, collective.kind), None
    whole = collective.kind == "all-reduce"
    return (
        _made(collective, added, "reduce-scatter" if whole else "custom"),
        _made(collective, spread, "all-gather" if whole else "custom"),
    )


def _made(whole: Collective, chunks: Mapping[int, Chunk], kind: CollectiveKind) -> Half | None:
    if not chunks:
        return None
    collective = Collective(kind, whole.ranks, whole.size, tuple(chunks.values()))
    return Half(collective, tuple(chunks))


def _roots(collective: Collective) -> dict[int, int]:
    """Return the rank that adds up each reduced chunk.

    It is the destination where there is one. Of several, those that contribute take turns, so
    that every rank adds up its share, in blocks, as the shards of an all-gather lie. Where none
    of them contributes it is a holder: else another might have the sum before it is sent it.
    """
    able = {}
    for number, chunk in enumerate(collective.chunks):
        if chunk.reduced:
            holders = set(chunk.holders)
            both = tuple(rank for rank in chunk.destinations if rank in holders)
            able[number] = (
                chunk.destinations if len(chunk.destinations) == 1 else both or chunk.holders
            )
    many = Counter(able.values())
    dealt: Counter[tuple[int, ...]] = Counter()
    root = {}
    for number, ranks in able.items():
        root[number] = ranks[dealt[ranks] * len(ranks) // many[ranks]]
        dealt[ranks] += 1
    return root


def backwards(reverse: Problem, plan: Schedule) -> Schedule:
    """Read a plan of the time-reversed problem backwards: a plan of the problem itself.

    A send in epoch k with a delay of d epochs becomes one in epoch ``horizon - k - d``.

    Raises
    ------
    ProblemError
        If a send names its terms: backwards it would carry what is not there to be added.
    """
    # A menu tests what can be reversed, and loads no scipy for it.
    from formulations.engines.epoch_grid.arcs import hyper_edges, link_arcs  # noqa: PLC0415
    from formulations.engines.epoch_grid.epochs import EpochGrid  # noqa: PLC0415
    from formulations.engines.epoch_grid.plans import delays  # noqa: PLC0415

    if any(send.terms is not None for send in plan.sends):
        raise ProblemError(
            "a plan whose sends name the contributions they carry has no reversal in time; "
            "reverse one that adds up nothing"
        )
    size, tau = reverse.collective.chunk_size, plan.epoch_duration
    grid = EpochGrid(reverse.topology, size, tau, reverse_time=True)
    through = any(send.via for send in plan.sends)
    took = delays(hyper_edges(grid) if through else link_arcs(grid))
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


def concatenated(first: Schedule, second: Schedule) -> Schedule:
    """Let `second` begin in the epoch after the last of `first`; both are on one grid."""
    assert first.epoch_duration == second.epoch_duration
    shifted = tuple(replace(send, epoch=send.epoch + first.horizon) for send in second.sends)
    return Schedule(first.sends + shifted, first.epoch_duration, first.horizon + second.horizon)


def _plan(plan: Plan) -> Schedule:
    assert isinstance(plan, Schedule)
    return plan
