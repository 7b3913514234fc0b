"""One-shot sums: whoever wants a sum gets every other's vector, and adds up itself.

One step of (p-1) messages: on one port  α + (p-1) mβ,  where a reduce-scatter and an all-gather
take 2 α and 2 (p-1)/p mβ. So it is the shortest where latency is all, and on a switch that
neither adds nor copies no plan is shorter at small sizes (`formulations.bounds.cut_times`). NCCL
and its like have it for small messages.

In several steps everybody exchanges in a group, then, of the sums, with its likes of the other
groups, and so on: with groups of k1, k2, ... whose product is p that is  steps α + (k1-1 + k2-1 +
...) mβ.  Groups are hosts and rails, the two quads of a DGX-1, or whatever paths without a GPU
join; groups of two throughout are recursive doubling.

Decisions: sends name the contributions that they carry (`ccl.plans.Send.terms`), so a vector that
comes early is in nothing that is sent before its turn. For every product of two or three numbers
that is p an order of the ranks is sought in which all groups are joined, and the steps are tried
from the first to the last and back. Where GPUs are not all joined, vectors are relayed: that is an
all-gather of vectors, and list scheduling finds it (`formulations.engines.list_scheduling`).
Vectors go whole, or in a few pieces, which do not wait for one another on their way. The best
counts.

Memory that cannot add passes vectors on, apart from one another: named, they may meet there, where
trees of sums may not. So over memory sums for one GPU come by this method as well; elsewhere those
are what `formulations.schedules.direct` sends.

Where switches add, relayed vectors that arrive together may become a sum that is needed apart: such
plans are dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations_with_replacement, permutations
from math import prod

import numpy as np

from ccl import text
from ccl.collective import Collective
from ccl.errors import SolveError
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.result import Plan, Result, Stop
from ccl.topology import Topology
from formulations.core.refusals import no_sums
from formulations.core.registry import Formulation, NoOptions
from formulations.core.run import Run
from formulations.engines.closed_forms.hosts import arranged, by_rank
from formulations.engines.closed_forms.routing import Formula, Pattern, reachability
from formulations.engines.closed_forms.steps import answer
from formulations.engines.closed_forms.steps import refuses as refuses_any
from formulations.engines.closed_forms.trees import Messages, Task
from formulations.engines.reverse_time import irreversible

MOST = 30_000
"""Messages above which there are too many."""

PIECES = (1, 2, 4, 8)
"""Into how many vectors are cut."""

PASSES = 12
"""Of list scheduling for each number of pieces."""


def refuses(problem: Problem) -> str | None:
    """Refuse too many messages, and what is sent at once by `direct` too."""
    many, messages = len(problem.topology.ranks), _messages(problem, _pieces(problem)[0])
    if messages > MOST:
        return f"{many} GPUs would send {messages:,} messages, and {MOST:,} are the most"
    if reason := no_sums(problem):
        return reason
    if not _for_all(problem) and not irreversible(problem):
        return "its sums need no memory that cannot add, and there direct sends contributions"
    vectors, _ = _vectors(problem, _pieces(problem)[0])
    return refuses_any(replace(problem, collective=vectors))


def _messages(problem: Problem, pieces: int) -> int:
    """Return how many contributions are wanted elsewhere."""
    chunks = problem.cut_into(pieces).collective.chunks
    wanted = (len(each.holders) * len(each.destinations) for each in chunks)
    own = (len({*each.holders} & {*each.destinations}) for each in chunks)
    return sum(wanted) - sum(own)


def _vectors(problem: Problem, pieces: int) -> tuple[Collective, list[tuple[int, int]]]:
    """Return what sends each contribution to whoever wants the sum; chunk and holder of each."""
    cut = problem.cut_into(pieces).collective
    vectors, whose = [], []
    for number, chunk in enumerate(cut.chunks):
        for holder in chunk.holders:
            others = tuple(rank for rank in chunk.destinations if rank != holder)
            if others:
                vectors.append(
                    replace(chunk, holders=(holder,), destinations=others, reduced=False)
                )
                whose.append((number, holder))
    return Collective("custom", cut.ranks, cut.size, tuple(vectors)), whose


def _pieces(problem: Problem) -> tuple[int, ...]:
    """Return into how many pieces vectors may be cut."""
    collective = problem.collective
    if collective.whole or not collective.alike:
        return (len(collective.chunks),)
    return PIECES


def run(run: Run, options: NoOptions) -> Result:
    """Try one step, then two or three, then relays, with more and more pieces."""
    best, closed = run.best, None
    for pieces in _pieces(run.problem):
        if _messages(run.problem, pieces) > MOST or _over(run):
            break
        before = run.best
        for order, steps, formula in _tried(run.problem) if _for_all(run.problem) else ():
            inner = _in_steps(run, pieces, steps, order)
            messages = partial(_exchanged, steps=steps)
            answer(inner, Pattern(order, messages, formula, exchange=messages))
            run.best = inner.best
            if run.best is not best:
                best, closed = run.best, inner.closed_form
            if _over(run):
                break
        run.best = _relayed(run, pieces)
        if run.best is not best:
            best, closed = run.best, None
        if before is not None and run.best is before:
            break
    if run.best is None and not run.expired:
        raise SolveError("vectors meet in switches that add, or take longer than a known plan")
    run.closed_form = closed
    return run.end(Stop.CONSTRUCTED)


def _for_all(problem: Problem) -> bool:
    return problem.collective.kind == "all-reduce"


def _over(run: Run) -> bool:
    return run.enough or run.expired


def _in_steps(run: Run, pieces: int, steps: Sequence[np.ndarray], order: np.ndarray) -> Run:
    """Return a run for vectors in pieces whose plans name the sums that groups exchange."""
    ranks = run.problem.topology.ranks
    carried: dict[tuple[str, str], frozenset[int]] = {}
    has = [frozenset({int(rank)}) for rank in order]
    for groups in steps:
        for each in groups.tolist():
            pairs = permutations(each, 2)
            carried |= {(ranks[order[i]], ranks[order[j]]): has[i] for i, j in pairs}
        for each in groups.tolist():
            everything = frozenset[int]().union(*(has[place] for place in each))
            for place in each:
                has[place] = everything

    def named(plan: Schedule) -> Plan:
        sends = tuple(replace(each, terms=carried[each.src, each.dst]) for each in plan.sends)
        return run.turn(replace(plan, sends=sends, chunks=pieces))

    return _inner(run, run.problem.cut_into(pieces), named)


def _relayed(run: Run, pieces: int) -> Result | None:
    """Return the best plan with that of list scheduling, which sends vectors to all who add."""
    from formulations.engines.list_scheduling.search import search  # noqa: PLC0415  it loads numba

    problem = run.problem
    vectors, whose = _vectors(problem, pieces)
    if _least(problem.topology, vectors) >= run.best_known():
        return run.best

    def named(plan: Schedule) -> Plan:
        sends = tuple(
            replace(each, chunk=whose[each.chunk][0], terms=frozenset({whose[each.chunk][1]}))
            for each in plan.sends
        )
        return run.turn(replace(plan, sends=sends, chunks=pieces))

    inner = _inner(run, replace(problem, collective=vectors), named)
    inner.doubts = any(each.reduces and not each.stores for each in problem.topology.devices)
    try:
        search(inner, seed=0, passes=PASSES, symmetry=True)
    except SolveError as error:
        run.note(f"vectors in {text.count(pieces, 'piece')}: {error}")
    return inner.best


def _least(topology: Topology, vectors: Collective) -> float:
    """Return the µs in which all others' vectors enter the GPU that needs longest for them."""
    wanted: Counter[int] = Counter()
    for each in vectors.chunks:
        wanted.update(dict.fromkeys(each.destinations, each.size))
    rates = {
        rank: sum(each.bandwidth for each in topology.links_in[topology.ranks[rank]])
        for rank in wanted
    }
    return max(size / (1e3 * rates[rank]) for rank, size in wanted.items())


def _inner(run: Run, problem: Problem, turn: Callable[[Schedule], Plan]) -> Run:
    return replace(run, problem=problem, answers=run.answers or run.problem, turn=turn, log=[])


def _tried(problem: Problem) -> Iterator[tuple[np.ndarray, list[np.ndarray], Formula]]:
    """Yield the rank at each place, the groups of places in each step, and the formula."""
    topology, size = problem.topology, problem.collective.size
    p = len(topology.ranks)
    places, paths = np.arange(p), reachability(topology)
    if all(paths.has(i, j) for i, j in permutations(range(p), 2)):
        one = Formula("α + (p-1) mβ", partial(_makespan, steps=1, messages=p - 1, size=size))
        yield by_rank(topology), [places[None, :]], one
    for sides in _products(p):
        grid = places.reshape(sides)
        steps = [np.moveaxis(grid, axis, -1).reshape(-1, side) for axis, side in enumerate(sides)]
        pairs = [
            pair for groups in steps for each in groups for pair in permutations(each.tolist(), 2)
        ]
        order = arranged(topology, pairs)
        if order is None:
            continue
        many = " + ".join(f"{side}-1" for side in sides)
        some = Formula(
            f"{len(sides)} α + ({many}) mβ",
            partial(_makespan, steps=len(sides), messages=sum(sides) - len(sides), size=size),
        )
        yield order, steps, some
        yield order, steps[::-1], some


def _makespan(alpha: float, beta: float, *, steps: int, messages: int, size: float) -> float:
    return steps * alpha + messages * size * beta


def _products(p: int) -> Iterator[tuple[int, ...]]:
    """Yield the products of two, then of three, that are p, the largest first."""
    sides = [each for each in range(2, p) if p % each == 0]
    for many in (2, 3):
        for each in combinations_with_replacement(sides[::-1], many):
            if prod(each) == p and each[0] > 2:
                yield each


def _exchanged(task: Task, steps: Sequence[np.ndarray]) -> Messages:
    """Let all of a group exchange all sums, chunk by chunk, the next places first."""
    parts = []
    for step, groups in enumerate(steps):
        for chunk in task.chunk:
            for turn in range(1, groups.shape[1]):
                src, dst = groups.ravel(), np.roll(groups, -turn, axis=1).ravel()
                parts.append(Messages(np.full_like(src, step), np.full_like(src, chunk), src, dst))
    return Messages.joined(parts)


FORMULATION = Formulation(
    name="one-shot",
    title="One-shot sums",
    reference="Thakur, Rabenseifner, Gropp, IJHPCA 2005 (exchange); as in NCCL and TensorRT-LLM",
    collectives=frozenset({"all-reduce", "reduce", "reduce-scatter"}),
    refuses=refuses,
    run=run,
    whole_chunks=lambda problem: problem.collective.whole,
)
