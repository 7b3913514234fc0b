"""The thesis' integer program: whole chunks in steps, in a network over time.

Sets: steps t = 0 .. T - 1 of s µs, chunks c with origin o(c) and destinations D(c), edges e of
T + 1 layers of the cluster, in which an edge over link l leads to the next layer, and what stores
may wait. A switch that may not copy is a vertex for each device that data reaches from it next.
Variables: w[e, c], binary, whether c crosses e; f[e, c, d] >= 0.

    minimise    sum over e and c of cost[e] size w[e, c]          what GPUs upload and download
    subject to  f[., c, d] is a flow of 1 from (o(c), 0) to (d, T)
                f[e, c, d] <= w[e, c]
                sum of w[e, c] over c, and over e of l in step t <= capacity[l]
                sum of size w[e, c] over c, and over e of L in step t <= 1000 s b(L)

capacity[l] is the number of chunks of which the last arrives within the step, latency counted. This
is MILP (3.8), or (3.9) for several chunks a rank. The least T that has a solution is found by
trying one after the other, from the steps of the longest of the quickest paths on. All
transmissions end within their step: links that are too slow for that are left out, so s is what a
chunk takes on some link (the thesis shows that no other need be tried, as long as one chunk at a
time crosses the link that sets it): the ``slowest``, the ``fastest`` or ``each``, from the slowest
on. A schedule by another method is a first plan and bounds T from above; a reduction is the
reversed collective read backwards, an all-reduce both halves, one after the other.

It is large: w and f for every chunk, destination, link and step. Above `ENTRIES` the model is not
built, and the first plan is all there is; the log says so. `te-ccl-milp` says the same with the
chunks that devices hold in place of flows to destinations, which is smaller, and lets transmissions
take several epochs.

Decisions: `formulations.engines.fluid_lp.stepwise` says why w is binary here and f in the thesis,
which comes to the same. The secondary objective counts sends, so plans send nothing in vain.

Source: the thesis, section 3.1, (3.8) and (3.9).
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ccl.collective import COLLECTIVES
from ccl.errors import Infeasible, LimitReached
from ccl.options import option
from ccl.problem import Problem
from ccl.result import Result, Stop
from ccl.topology import binding_limits
from formulations.core.refusals import no_stores
from formulations.core.registry import Formulation, ModelEstimate
from formulations.core.run import Run
from formulations.engines.epoch_grid.arcs import Arcs, link_arcs
from formulations.engines.epoch_grid.epochs import EpochGrid, ProofOptions
from formulations.engines.epoch_grid.plans import demand, schedule
from formulations.engines.epoch_grid.windows import Need, by_bound, by_hops, proved_short, too_short
from formulations.engines.fluid_lp.plain import CostKind, link_costs
from formulations.engines.fluid_lp.stepwise import STEP_GROUPS, StepModel, count_steps
from formulations.engines.reverse_time import irreversible, parts, search
from formulations.engines.te_ccl.greedy import greedy

ENTRIES = 400_000
"""Most nonzeros of a model; HiGHS takes minutes for more on two cores."""

PATIENCE = 0.5
"""Seconds for first plans on each grid."""


@dataclass(frozen=True, kw_only=True)
class Options(ProofOptions):
    """How long a step is, and how many there are."""

    step: Literal["slowest", "fastest", "each"] = option(
        "slowest",
        "Step by",
        "A chunk on the slowest or fastest link, or on each, one after the other; "
        "slower links are left out",
    )
    step_duration: float | None = option(
        None, "Step duration", "Given here, it is what the step is by", unit="µs", min=0.0
    )
    steps: int | None = option(None, "Steps", "T; left empty, the least is found", min=1)
    costs: CostKind = option(
        "gpus",
        "Of the shortest, least",
        "gpus: what GPUs upload and download; ports: and what hosts do; links: sends; none: any",
    )


def refuses(problem: Problem) -> str | None:
    """Leave limited buffers, chunks of several sizes and several holders to others."""
    reason = no_stores(problem) or irreversible(problem)
    if reason is not None:
        return reason
    chunks = problem.collective.chunks
    if len({chunk.size for chunk in chunks}) > 1:
        return "its chunks differ in size, and here one chunk size sets the step"
    for number, chunk in enumerate(chunks):
        if not chunk.reduced and len(chunk.holders) > 1:
            return f"chunk {number} has several holders, and a flow begins at one"
    for limit in binding_limits(problem.topology):
        for src, dst in limit.links:
            if problem.topology.link(src, dst).alpha:
                return (
                    f"the link {src}->{dst} under {limit.name} has latency, and here what is sent "
                    "in a step is there at its end"
                )
    return None


def run(run: Run, options: Options) -> Result:
    """Find the fewest steps; reductions by time reversal.

    Raises
    ------
    Infeasible
        If a number of steps is requested that is too small.
    """
    return search(run, options, find)


def estimate(problem: Problem, options: Options) -> ModelEstimate | None:
    """Count the first program, of the larger half where there are two."""
    found = []
    for part, reverse_time in parts(problem):
        run = Run(problem=part, formulation="", options={}, bounds=(), reverse_time=reverse_time)
        duration = _durations(run, options)[0]
        steps = options.steps or _by_hops(run, _hops(run, duration)).many
        why = "as requested" if options.steps else "the least that latencies allow"
        note = f"of {steps} steps of {duration:.6g} µs, {why}"
        found.append(replace(count_steps(part, steps), note=note))
    return max(found, key=lambda each: each.variables, default=None)


def find(run: Run, options: Options) -> Stop:
    """Offer first plans, then those of the program, on one grid after the other."""
    stop = Stop.MODEL_OPTIMAL
    for duration in _durations(run, options):
        try:
            stop = _on_grid(run, options, _hops(run, duration))
        except LimitReached:
            stop = Stop.TIME_LIMIT
        if run.enough or run.expired or stop is Stop.TIME_LIMIT:
            break
    return run.reached if run.enough else stop


def _durations(run: Run, options: Options) -> list[float]:
    """Return the step durations in µs to be tried, the longest first."""
    given = run.epoch_duration or options.step_duration
    if given is not None:
        return [given]
    size = run.problem.collective.chunk_size
    grid = EpochGrid(run.problem.topology, size, 1.0)
    # Equal but for rounding is equal; the longer one fits both.
    apart = {f"{each:.6g}": each for each in sorted((grid.hold + grid.alpha).tolist())}
    took = sorted(apart.values(), reverse=True)
    return {"slowest": took[:1], "fastest": took[-1:], "each": took}[options.step]


def _hops(run: Run, duration: float) -> Arcs:
    problem = run.problem
    size = problem.collective.chunk_size
    return link_arcs(EpochGrid(problem.topology, size, duration, reverse_time=run.reverse_time))


def _on_grid(run: Run, options: Options, hops: Arcs) -> Stop:
    """Try one number of steps after the other, from the least possible on."""
    problem, duration = run.problem, hops.grid.epoch_duration
    wanted = demand(problem)
    sends = greedy(hops, wanted, seed=run.backend.seed, patience=PATIENCE, left=lambda: run.awaited)
    first = schedule(sends, hops, wanted)
    if options.steps is None or first.horizon <= options.steps:
        run.offer(first, message=f"a first schedule in {first.horizon} steps of {duration:.6g} µs")
    if run.enough and options.stop_at_proof:
        return run.reached
    slow = int((hops.delay > 1).sum())
    if slow:
        run.note(f"{slow} links take longer than a step of {duration:.6g} µs and are left out")
    model = StepModel(problem, hops, link_costs(problem.topology, options.costs))
    steps = options.steps or _by_hops(run, hops).many
    _check(run, options, hops)
    while options.steps is not None or steps <= first.horizon:
        size = model.size(steps)
        run.met(size)
        if size.nonzeros > ENTRIES:
            run.note(
                f"the program of {steps} steps of {duration:.6g} µs was not built: "
                f"{size.nonzeros:,} entries are more than {ENTRIES:,}"
            )
            return Stop.TOO_LARGE
        run.report(f"{steps} steps of {duration:.6g} µs")
        try:
            plan = model.solve(steps, run.backend, run.left)
        except LimitReached:
            return Stop.TIME_LIMIT
        except Infeasible:
            if options.steps is not None:
                raise Infeasible(_ruled_out(run, hops, steps)) from None
            steps += 1
            continue
        if options.steps is None:
            run.note(f"{steps} steps of {duration:.6g} µs are the fewest")
        run.offer(plan, message=f"a schedule in {plan.horizon} steps")
        return Stop.MODEL_OPTIMAL
    return Stop.MODEL_OPTIMAL


def _check(run: Run, options: Options, hops: Arcs) -> None:
    """Explain why a number of steps is too small before a solver has to find out.

    Raises
    ------
    Infeasible
        If hops or a lower bound need more.
    """
    need = _need(run, hops)
    if options.steps is not None and options.steps < need.many:
        duration = hops.grid.epoch_duration
        raise Infeasible(too_short(options.steps, need, unit="step", each=duration))


def _ruled_out(run: Run, hops: Arcs, steps: int) -> str:
    """Return the message that the solver proved a number of steps too small."""
    least, duration = _need(run, hops).many, hops.grid.epoch_duration
    return proved_short(steps, least, unit="step", each=duration)


def _need(run: Run, hops: Arcs) -> Need:
    bound = by_bound(run.bounds[0], hops.grid.epoch_duration)
    return max(_by_hops(run, hops), bound, key=lambda each: each.many)


def _by_hops(run: Run, hops: Arcs) -> Need:
    wanted = demand(run.problem)
    pairs = [
        (wanted.holder(hops.distance, device, chunk), device)
        for device, chunk in np.argwhere(wanted.wants).tolist()
    ]
    return by_hops(hops.distance, pairs, hops.topology)


FORMULATION = Formulation(
    name="thesis-steps",
    title="Thesis: chunks in steps (MILP)",
    reference="thesis, MILP (3.8) and (3.9)",
    collectives=frozenset(COLLECTIVES),
    options=Options,
    refuses=refuses,
    run=run,
    model="milp",
    estimate=estimate,
    groups=STEP_GROUPS,
)
