"""TE-CCL's linear program: amounts instead of chunks, for demands that no copy can help.

Sets: epochs k = 0 .. K, links e, devices v, sources s (what starts at one rank is one commodity).
All amounts are in chunks. Constants: delay[e] in epochs and room[e] in chunks per epoch, a real
number (``formulations.epochs``); demand[s, d].

Variables, all >= 0: f[k, e, s], sent over e in epoch k; h[k, v, s], held back at v in epoch k;
r[k, d, s], read at d at the beginning of epoch k.

    h[k-1, v, s] + sum over e into v of f[k - delay[e], e, s]
        = h[k, v, s] + r[k, v, s] + sum over e out of v of f[k, e, s]      v stores
    the same without h and r                                              v does not store
    h[0, s, s] + sum over e out of s of f[0, e, s] = sum over d of demand[s, d]
    sum over s of f[k, e, s] <= room[e];  shared limits likewise
    sum over k of r[k, d, s] = demand[s, d]

Objectives, named for what they optimise: ``fewest-epochs`` takes the smallest K that has a
solution, and of these one that keeps the links busy for the shortest time in all;
``early-arrivals`` maximises the sum over k = 1 .. K of R[k, d, s] / k, where R[k, d, s] is all
that was read until then, the sum of r[k', d, s] over k' <= k: the paper's objective, whose
epochs end where ours begin, so that r[k, d, s] counts 1/k + .. + 1/K.

Source: TE-CCL (Liu et al., SIGCOMM 2024, doi 10.1145/3651890.3672249), section 4.1 and appendix A.
Decisions: the paper's equation for the last epoch lets nothing held back be read in it, which
only moves reads to earlier epochs; here reading is free in every epoch. Rates become paths of
fractions of chunks (``formulations.decompose``), which the paper only mentions. The fluid needs
no short epochs: a few long ones, lengthened by the latency, lose nothing that the replay in
continuous time does not win back, so ``auto`` cuts the lower bound into
those of `AIMS`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ccl.errors import Infeasible, LimitReached
from ccl.problem import Problem
from ccl.result import Result, Stop
from ccl.schedule import Schedule
from formulations.epoch_options import EpochOptions
from formulations.epochs import EpochGrid, durations, snapped, stretched
from formulations.hops import link_hops
from formulations.registry import Formulation
from formulations.run import Run

if TYPE_CHECKING:
    from formulations.flow_model import FlowModel

AIMS = ((12, 0.95), (12, 0.0), (24, 0.95), (24, 0.0))
"""What ``auto`` tries: into how many epochs the lower bound is cut, and the least share of an
epoch that a link has for sending (`EpochGrid.fluid`)."""

FEW = 48
"""Most epochs of one chunk on the slowest link for which ``auto`` tries these too."""

CELLS = 3_000_000
"""Most epochs times links times sources of a model."""

HOPELESS = 1.05
"""A grid is given up when it needs this much longer than the best plan of the grids before."""


@dataclass(frozen=True, kw_only=True)
class Options(EpochOptions):
    """The form of the model."""


def refuses(problem: Problem) -> str | None:
    """Leave copies, sums, several holders and limited buffers to other formulations."""
    for number, chunk in enumerate(problem.collective.chunks):
        if chunk.reduced:
            return f"chunk {number} is reduced, and here amounts are not added up"
        if len(chunk.destinations) > 1:
            return f"chunk {number} has several destinations, and amounts cannot be copied"
        if len(chunk.holders) > 1:
            return f"chunk {number} has several holders, and here each starts at one rank"
    for device in problem.topology.devices:
        if device.buffer_bytes is not None:
            return f"{device.name} has a limited buffer, and here buffers are unlimited"
    return None


def run(run: Run, options: Options) -> Result:
    """Solve on one grid after the other until the plan is good enough.

    Raises
    ------
    Infeasible
        If the horizon is too small.
    LimitReached
        If the time limit came before a plan.
    """
    from formulations.flow_model import FlowModel  # noqa: PLC0415  it loads the solver

    stop = Stop.MODEL_OPTIMAL
    for grid in _grids(run, options):
        stop = _on_grid(FlowModel(link_hops(grid), run), options)
        if run.enough or stop is Stop.TIME_LIMIT:
            break
    return run.finish(run.reached if run.enough else stop)


def _grids(run: Run, options: Options) -> list[EpochGrid]:
    """Return the grids to try, one after the other."""
    topology, size = run.problem.topology, run.problem.collective.chunk_size
    if options.epoch != "auto" or options.epoch_duration is not None:
        taus = durations(topology, size, by=options.epoch, given=options.epoch_duration)
        return [EpochGrid(topology, size, tau, fluid=AIMS[0][1]) for tau in taus]
    bound = run.bounds[0].makespan
    pairs = [(stretched(topology, bound / many), fluid) for many, fluid in AIMS]
    # Where chunks are few, whole ones in epochs of their own can fit without any remainder.
    [whole] = durations(topology, size, by="slowest")
    if bound / whole <= FEW:
        pairs.append((whole, AIMS[0][1]))
    return [EpochGrid(topology, size, snapped(topology, tau), fluid=fluid) for tau, fluid in pairs]


def _on_grid(model: FlowModel, options: Options) -> Stop:
    """Offer the plan of the smallest horizon that has one: steps that double, then halve."""
    run, tau = model.run, model.hops.grid.epoch_duration
    best = None if run.best is None else run.best.plan
    shortest = best.duration if isinstance(best, Schedule) else math.inf
    low, step = (options.horizon or model.least()) - 1, 1
    high = None
    while high is None or high - low > 1:
        horizon = low + step if high is None else (low + high) // 2
        if high is None and (low + 1) * tau > HOPELESS * shortest:
            return Stop.MODEL_OPTIMAL
        if horizon * model.width > CELLS:
            run.note(
                f"{horizon} epochs of {tau:.6g} µs were not tried: {horizon * model.width:.2g} "
                "cells are too many"
            )
            return Stop.TOO_LARGE
        try:
            plan = model.solve(horizon, reward=options.objective == "early-arrivals")
        except Infeasible:
            if options.horizon is not None:
                raise
            low, step = horizon, 2 * step
        except LimitReached:
            return Stop.TIME_LIMIT
        else:
            high = horizon
            run.offer(plan, message=f"a flow in {horizon} epochs of {tau:.6g} µs")
            if run.enough:
                break
    return Stop.TIME_LIMIT if run.expired else Stop.MODEL_OPTIMAL


FORMULATION = Formulation(
    name="te-ccl-lp",
    title="TE-CCL: amounts in epochs (LP)",
    reference="Liu et al., SIGCOMM 2024, section 4.1; doi 10.1145/3651890.3672249",
    collectives=frozenset({"all-to-all", "gather", "scatter", "custom"}),
    options=Options,
    refuses=refuses,
    run=run,
    whole_chunks=False,
    mathematics=__doc__ or "",
)
