"""TE-CCL's linear program: amounts instead of chunks, for demands that no copy can help.

Sets: epochs k = 0 .. K, links e, devices v, sources s (what starts at one rank is one commodity).
All amounts are in chunks. Constants: delay[e] in epochs and capacity[e] in chunks per epoch, a real
number (``formulations.engines.epoch_grid.epochs``); share[k, e], 1 but where windows take bandwidth
from the link; demand[s, d].

Variables, all >= 0: f[k, e, s], sent over e in epoch k; h[k, v, s], held back at v in epoch k;
r[k, d, s], read at d at the beginning of epoch k.

    h[k-1, v, s] + sum over e into v of f[k - delay[e], e, s]
        = h[k, v, s] + r[k, v, s] + sum over e out of v of f[k, e, s]      v stores
    the same without h and r                                              v does not store
    h[0, s, s] + sum over e out of s of f[0, e, s] = sum over d of demand[s, d]
    sum over s of f[k, e, s] <= capacity[e] * share[k, e];  shared limits likewise
    sum over k of r[k, d, s] = demand[s, d]
    sum over s of h[k, v, s] + r[0, v, s] + .. + r[k, v, s] + sum over e out of v of f[k, e, s]
        <= buffer[v], k > 0                                               v's buffer is limited

Objectives, named for what they optimise: ``fewest-epochs`` takes the smallest K that has a
solution, and of these one that keeps the links busy for the shortest time in all, then one for
which busy time counts up to twice as much in the last epochs, because the replay ends with them;
``early-arrivals`` maximises the sum over k = 1 .. K of priority * R[k, d, s] / k, where R[k, d, s]
is all that was read until then, the sum of r[k', d, s] over k' <= k: the paper's objective, whose
epochs end where ours begin, so that r[k, d, s] counts 1/k + .. + 1/K. Chunks of one source and
destination with different priorities are read apart, each with its own r. So that the urgent can
go first though all then takes longer, K is at last as many times the smallest as there are
priorities: enough to serve one after the other. The plan kept is the one whose bytes arrive
earliest in the replay, weighted by priority.

Symmetry: where automorphisms of the cluster leave the demand as it is, one source of each orbit is
a commodity, and rows count its images (``formulations.engines.epoch_grid.decompose``). The
optimum is the same.

Source: TE-CCL (Liu et al., SIGCOMM 2024, doi 10.1145/3651890.3672249), section 4.1 and appendices
A and B; variable bandwidth, tenants and priorities as in section 5.
Decisions: the paper's equation for the last epoch lets nothing held back be read in it, which
only moves reads to earlier epochs; here reading is free in every epoch. The paper bounds what is
held back; here a buffer also has what its device has read, which stays there, and what it is about
to send. Within an epoch more may have come than has left: a plan that the verifier refuses for
that is sought once more with what may arrive before the epoch ends in the same sum. Rates become
paths of fractions of chunks (``formulations.engines.epoch_grid.decompose``), which the paper only
mentions. The fluid needs no short epochs: a few long ones, lengthened by the latency, lose nothing
that the replay in continuous time does not win back, so ``auto`` cuts the lower bound into those of
`AIMS`, and into those of `FINER` while the model stays small. Where latency dominates, epochs that
it is a whole number of are tried as well.
"""

import math
from contextlib import suppress
from dataclasses import dataclass, replace

from ccl.errors import Infeasible, LimitReached, ScheduleError
from ccl.options import option
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.result import Result, Stop
from ccl.verify import verify
from formulations.bounds import quick_bounds
from formulations.core.refusals import no_crumbs
from formulations.core.registry import Formulation, ModelEstimate
from formulations.core.run import Run
from formulations.core.weighted_objectives import prioritised, weighted_arrivals
from formulations.engines.epoch_grid.arcs import link_arcs
from formulations.engines.epoch_grid.decompose import Commodities, commodities
from formulations.engines.epoch_grid.epochs import (
    ROUNDING,
    EpochGrid,
    EpochOptions,
    durations,
    lengthened,
    snapped,
    stretched,
)
from formulations.engines.epoch_grid.windows import proved_short
from formulations.engines.te_ccl.flow_lp import GROUPS, Aim, FlowModel, count_amounts

AIMS = ((12, 0.95), (12, 0.0), (24, 0.95), (24, 0.0))
"""What ``auto`` tries: into how many epochs the lower bound is cut, and the least share of an
epoch that a link has for sending (`EpochGrid.fluid`)."""

FINER = (48, 96, 192)
"""Into how many epochs the lower bound is cut after that, with the first share of `AIMS`."""

FEW = 48
"""Most epochs of one chunk on the slowest link for which ``auto`` tries these too."""

SMALL = 20_000
"""Most epochs times links times sources of the lower bound on one of the finer grids."""

CELLS = 3_000_000
"""Most epochs times links times sources of a model."""

COUNTED = 30_000
"""Most chunks of which a model is counted exactly before it is built."""

HOPELESS = 1.05
"""A grid is given up when it needs this much longer than the best plan of the grids before."""


PATIENCE = 6
"""How many times the least horizon is tried before limited buffers are held to be too small."""


@dataclass(frozen=True, kw_only=True)
class Options(EpochOptions):
    """The form of the model."""

    symmetry: bool = option(True, "Symmetry", "Sources that look alike are solved as one")


def refuses(problem: Problem) -> str | None:
    """Leave copies, sums, several holders and buffers that cannot do to other formulations."""
    for number, chunk in enumerate(problem.collective.chunks):
        if chunk.reduced:
            return f"chunk {number} is reduced, and here amounts are not added up"
        if len(chunk.destinations) > 1:
            return f"chunk {number} has several destinations, and amounts cannot be copied"
        if len(chunk.holders) > 1:
            return f"chunk {number} has several holders, and here each starts at one rank"
    return no_crumbs(problem) or _too_small(problem)


def _too_small(problem: Problem) -> str | None:
    """Return which buffer cannot take what is in it at the beginning or at the end."""
    topology, chunks = problem.topology, problem.collective.chunks
    for when, ends in (
        ("at the start", [chunk.holders[0] for chunk in chunks]),
        ("at the end", [chunk.destinations[0] for chunk in chunks]),
    ):
        has = [0.0] * len(topology.ranks)
        for rank, chunk in zip(ends, chunks, strict=True):
            has[rank] += chunk.size
        for name, nbytes in zip(topology.ranks, has, strict=True):
            capacity = topology.device(name).buffer_bytes
            if capacity is not None and nbytes > capacity * (1 + ROUNDING):
                return f"{name} has {nbytes:g} bytes {when} and its buffer takes {capacity:g}"
    return None


def estimate(problem: Problem, options: Options) -> ModelEstimate:
    """Count the first model that is built: on the first grid, of the fewest epochs it may take."""
    if len(problem.collective.chunks) > COUNTED:
        epochs = options.horizon or AIMS[0][0]
        cells = epochs * len(problem.topology.links) * len(problem.topology.ranks)
        note = f"estimated for {epochs} epochs; symmetry makes it smaller, more epochs larger"
        return ModelEstimate(cells, 3 * cells, {"any row": cells}, note)
    flows = commodities(problem, problem.collective.chunk_size, symmetric=options.symmetry)
    bounds = quick_bounds(problem)
    run = Run(problem=problem, formulation="te-ccl-lp", options={}, bounds=bounds)
    grid = _grids(run, options, flows)[0]
    hops, tau = link_arcs(grid), grid.epoch_duration
    reach = hops.distance[flows.sources].T[flows.goal, flows.source].max()
    horizon = options.horizon or max(int(reach), math.ceil(bounds[0].makespan / tau))
    why = "as requested" if options.horizon else "the least that latencies and bounds allow"
    note = f"of {horizon} epochs of {tau:.6g} µs, {why}; other grids follow"
    if (cells := horizon * len(hops.topology.links) * len(flows.sources)) > CELLS:
        note = f"estimated from above for {horizon} epochs of {tau:.6g} µs; it is not built"
        return ModelEstimate(cells, 3 * cells, {"any row": cells}, note)
    return replace(count_amounts(hops, flows, horizon), note=note)


def run(run: Run, options: Options) -> Result:
    """Solve on one grid after the other until the plan is good enough.

    Raises
    ------
    Infeasible
        If the horizon is too small.
    LimitReached
        If the time limit came before a plan.
    """
    problem, stop = run.problem, Stop.MODEL_OPTIMAL
    if options.objective == "early-arrivals" and prioritised(problem):
        run.merit = weighted_arrivals
    flows = commodities(problem, problem.collective.chunk_size, symmetric=options.symmetry)
    if flows.order > 1:
        run.note(f"{flows.order} sources that look alike are solved as one")
    for grid in _grids(run, options, flows):
        stop = _on_grid(FlowModel(link_arcs(grid), run, flows), options)
        if run.enough or stop is Stop.TIME_LIMIT:
            break
    return run.end(stop)


def _grids(run: Run, options: Options, flows: Commodities) -> list[EpochGrid]:
    """Return the grids to try, one after the other."""
    problem = run.problem
    topology, size = problem.topology, problem.collective.chunk_size
    if options.epoch_duration is not None:
        return [_grid(problem, options.epoch_duration, AIMS[0][1])]
    longer = options.epoch_multiplier
    if longer > 1:
        run.note(f"epochs are {longer} times as long, as requested")
    if options.epoch != "auto":
        [tau] = durations(topology, size, by=options.epoch)
        if options.lengthen_short and (much := lengthened(topology, tau)) > tau:
            run.note(f"epochs of {tau:.6g} µs are short beside a latency and became {much:.6g} µs")
            tau = much
        return [_grid(problem, tau * longer, AIMS[0][1])]
    bound = run.bounds[0].makespan
    pairs = [(stretched(topology, bound / many), fluid) for many, fluid in AIMS]
    # Where chunks are few, whole ones in epochs of their own can fit without any remainder.
    [whole] = durations(topology, size, by="slowest")
    if bound / whole <= FEW:
        pairs.append((whole, AIMS[0][1]))
    quick = min((link.alpha for link in topology.links if link.alpha > 0), default=0.0)
    # Of a latency that is a whole number of epochs nothing is lost to rounding.
    parts = {math.ceil(quick * many / bound - ROUNDING) for many, _ in AIMS if quick * many > bound}
    pairs += [(quick / many, AIMS[0][1]) for many in sorted(parts)]
    width = len(topology.links) * len(flows.sources)
    pairs += [(bound / many, AIMS[0][1]) for many in FINER if many * width <= SMALL]
    fit = dict.fromkeys((snapped(topology, tau), fluid) for tau, fluid in pairs)
    return [_grid(problem, tau * longer, fluid) for tau, fluid in fit]


def _grid(problem: Problem, tau: float, fluid: float) -> EpochGrid:
    size = problem.collective.chunk_size
    return EpochGrid(problem.topology, size, tau, fluid=fluid, windows=problem.windows)


def _on_grid(model: FlowModel, options: Options) -> Stop:
    """Offer the plans of the smallest horizon that has one."""
    run, early = model.run, options.objective == "early-arrivals"
    stop, horizon = _fewest(model, "arrivals" if early else "thrift", given=options.horizon)
    if horizon is not None and not (early or run.enough or run.expired):
        with suppress(Infeasible, LimitReached):
            run.offer(_solved(model, horizon, aim="haste"), message="a flow that ends earlier")
    if horizon is not None and run.merit is not None and options.horizon is None:
        _urgent_first(model, horizon)
    return Stop.TIME_LIMIT if run.expired else stop


def _urgent_first(model: FlowModel, horizon: int) -> None:
    """Offer a plan within as many epochs as the priorities one after the other need at most."""
    run = model.run
    longer = horizon * len({chunk.priority for chunk in run.problem.collective.chunks})
    if run.expired or longer * model.width > CELLS:
        run.note(f"{horizon} epochs may be too few for the urgent to go first; allow more")
        return
    with suppress(Infeasible, LimitReached):
        plan = _solved(model, longer, aim="arrivals")
        run.offer(plan, message=f"a flow in {longer} epochs, the urgent first")


def _fewest(model: FlowModel, aim: Aim, *, given: int | None) -> tuple[Stop, int | None]:
    """Offer plans of fewer and fewer epochs: steps that double until there is one, then halve.

    The first two steps are of one epoch: on most grids the least that a bound allows, or the next,
    has a plan.

    Return why it stopped and the horizon of the last plan, None without a plan.
    """
    run, tau = model.run, model.hops.grid.epoch_duration
    best = None if run.best is None else run.best.plan
    shortest = best.duration if isinstance(best, Schedule) else math.inf
    if given is not None:
        model.check(given)
    low, step, longer = (given or model.least()) - 1, 1, 1
    high = None
    while high is None or high - low > 1:
        horizon = low + step if high is None else (low + high) // 2
        if high is None and (low + 1) * tau > HOPELESS * shortest:
            return Stop.MODEL_OPTIMAL, None
        _check_buffers(model, low)
        if horizon * model.width > CELLS:
            run.note(
                f"{horizon} epochs of {tau:.6g} µs were not tried: {horizon * model.width:.2g} "
                "cells are too many"
            )
            return Stop.TOO_LARGE, high
        try:
            plan = _solved(model, horizon, aim=aim)
        except Infeasible:
            if given is not None:
                raise Infeasible(proved_short(horizon, model.least(), each=tau)) from None
            low, step, longer = horizon, longer, 2 * longer
        except LimitReached:
            return Stop.TIME_LIMIT, high
        else:
            high = horizon
            run.offer(plan, message=f"a flow in {horizon} epochs of {tau:.6g} µs")
            if run.enough:
                break
    return Stop.MODEL_OPTIMAL, high


def _check_buffers(model: FlowModel, low: int) -> None:
    """Give up where `low` epochs are not enough and more would hardly be.

    Raises
    ------
    Infeasible
        If buffers are limited and the horizon is far beyond the least.
    """
    if model.buffered and low > PATIENCE * model.least():
        raise Infeasible(f"the buffers let nothing through within {low} epochs; make them larger")


def _solved(model: FlowModel, horizon: int, *, aim: Aim) -> Schedule:
    """Return a plan within `horizon` epochs that keeps to buffers and windows.

    Raises
    ------
    Infeasible
        If none is found.
    LimitReached
        If the time limit came first.
    """
    plan = model.solve(horizon, aim=aim)
    if not model.checked or _verified(model.run.problem, plan):
        return plan
    plan = model.solve(horizon, aim=aim, careful=True)
    if not _verified(model.run.problem, plan):
        raise Infeasible(
            f"no plan of {horizon} epochs keeps to buffers and windows; allow more epochs"
        )
    return plan


def _verified(problem: Problem, plan: Schedule) -> bool:
    try:
        verify(problem, plan)
    except ScheduleError:
        return False
    return True


FORMULATION = Formulation(
    name="te-ccl-lp",
    title="TE-CCL: amounts in epochs (LP)",
    reference="Liu et al., SIGCOMM 2024, section 4.1; doi 10.1145/3651890.3672249",
    collectives=frozenset({"all-to-all", "gather", "scatter", "custom"}),
    options=Options,
    refuses=refuses,
    run=run,
    model="lp",
    estimate=estimate,
    groups=GROUPS,
    windows=True,
    whole_chunks=False,
)
