"""TE-CCL's general model: whole chunks, copied on the way, on a grid of epochs.

Sets: epochs k = 0 .. K-1, hops e from src(e) to dst(e) (links, or hyper-edges for switches in the
manner of appendix C), devices v, chunks c. Constants: delay[e] and occupancy[e] in epochs and
room[l] in chunks (``formulations.epochs``). ``has`` and ``wants`` are the pre- and postcondition.

Variables: f[k, e, c], how often chunk c starts over hop e in epoch k: an integer up to most[e],
the hop's room on the way to a switch that does not copy, else 1; b[k, v, c] in [0, 1], the
buffer: whether a device that stores holds the chunk at the beginning of epoch k.

    b[k, v, c] = b[k-1, v, c] + sum over e into v of f[k - delay[e], e, c]          buffer
    f[k, e, c] <= most[e] * b[k, src(e), c]             src stores: send what is held
    f[k, e, c] <= most[e] * sum over e' into s of f[k - delay[e'], e', c]   switch s that copies
    sum over e out of s of f[k, e, c] = sum over e' into s of f[k - delay[e'], e', c]
                                                        switch s that does not copy
    sum over c, e that hold link l, k - occupancy[e] < k' <= k of f[k', e, c] <= room[l]
    sum over l in a shared limit of what is carried in epoch k <= what the limit lets through
    b[0, v, c] = has,  b[K, v, c] = 1 where v wants c

b <= 1 also says that a chunk arrives at most once. A variable exists only inside its window: k
not before the chunk can be at src(e), and arrival not after it can still be of use.

Objectives, named for what they optimise:

* ``fewest-epochs``: the smallest K for which a solution exists. A greedy schedule gives a K that
  is enough; the model is then asked for K - 1, or for the horizon given if that is less, and so
  on until it has no solution.
* ``early-arrivals``: maximise the sum of b[k, v, c] / k over the wanted (v, c), k = 1 .. K; with
  1 / (k + 1) in place of 1 / k for R[k] = min(demand, b[k+1]) this is the paper's objective.

Source: TE-CCL (Liu et al., SIGCOMM 2024, doi 10.1145/3651890.3672249), section 3.1 and appendices
A, C, F. Decisions: first and last epoch are handled by the windows rather than by extra rows; the
paper's max and min become one row per term, which is exact as both only bound from one side; no
latency is dropped (``formulations.epochs``); which epoch duration is best is found by trying the
greedy schedule on several (``auto``), and with time to spare the model is asked on finer ones
too; on a mirrored grid (``formulations.mirror``) sends hold their links in the last epochs of
their delay instead of the first. Makespans reported are of the replay in continuous time, so
fewer epochs need not mean a smaller makespan; the best replayed plan is kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ccl.collective import COLLECTIVES
from ccl.errors import Infeasible, LimitReached
from ccl.problem import Problem
from ccl.result import Result, Stop
from formulations.demand import demand
from formulations.epoch_options import EpochOptions
from formulations.epochs import EpochGrid, durations
from formulations.greedy import greedy
from formulations.hops import Hops, hyper_edges, link_hops
from formulations.mirror import no_mirror, search
from formulations.plans import schedule
from formulations.registry import Formulation
from formulations.run import Run

if TYPE_CHECKING:
    from formulations.chunk_model import ChunkModel

LAST = (Stop.PROVED, Stop.GAP, Stop.TOO_LARGE)
"""Why no finer grid is tried."""

PATIENCE = 1.5
"""Seconds for greedy schedules on all grids together."""

VARIABLES = 1_000_000
"""Most variables of a model that is tried where a greedy schedule is at hand; HiGHS takes minutes
for less on two cores, and looks at its time limit only now and then while it presolves."""

ENTRIES = 10_000_000
"""Most variables and most entries of any model; more take more memory than there may be."""

EPOCHS = 200_000
"""Most epochs into which the lower bound is cut; on more even the greedy schedule takes long."""

WORTH = 0.002
"""Share by which a finer grid's greedy schedule must be faster for the model to use that grid."""

CELLS = 300_000
"""Most epochs times hops times chunks of a grid that ``auto`` tries beside the coarsest; HiGHS
finds nothing on larger ones within minutes on two cores."""


@dataclass(frozen=True, kw_only=True)
class Options(EpochOptions):
    """The form of the model."""

    switches: Literal["as drawn", "hyper-edges"] = field(
        default="as drawn",
        metadata={
            "label": "Switches",
            "help": "Devices that copy or not as drawn, or replaced by hyper-edges between GPUs",
        },
    )
    greedy_start: bool = field(
        default=True,
        metadata={
            "label": "Greedy start",
            "help": "Keep the greedy schedule that sets the horizon as a first plan",
        },
    )


def refuses(problem: Problem) -> str | None:
    """Leave limited buffers to other formulations."""
    for device in problem.topology.devices:
        if device.buffer_bytes is not None:
            return f"{device.name} has a limited buffer, and here buffers are unlimited"
        if device.stores and not device.copies:
            return f"{device.name} stores and cannot copy, and here all that stores copies"
    if len({chunk.size for chunk in problem.collective.chunks}) > 1:
        return "its chunks differ in size, and here one chunk size sets the epoch"
    return no_mirror(problem)


def run(run: Run, options: Options) -> Result:
    """Search for a schedule; reductions by their mirror.

    Raises
    ------
    Infeasible
        If the horizon is too small.
    LimitReached
        If the time limit came before a schedule.
    """
    return search(run, options, _find)


def _find(run: Run, options: Options) -> Stop:
    """Offer greedy schedules, then those of the model, the most promising grid first.

    With time to spare, the model is asked on finer grids as well.
    """
    starts = _starts(run, options)
    if run.enough:
        return run.reached
    from formulations.chunk_model import ChunkModel  # noqa: PLC0415  it loads the solver

    stop = Stop.TOO_LARGE
    impossible: list[Infeasible] = []
    for hops, enough in starts:
        if run.expired:
            return Stop.TIME_LIMIT
        try:
            stop = _on_grid(ChunkModel(hops, demand(run.problem), run), options, enough)
        except Infeasible as error:
            stop = Stop.MODEL_OPTIMAL
            impossible.append(error)
        if stop in LAST or (run.best and run.time_limit is None):
            break
    if run.best is None and impossible:
        raise impossible[0]
    return stop


def _on_grid(model: ChunkModel, options: Options, enough: int) -> Stop:
    """Offer what the model finds on one grid, where `enough` epochs have a solution.

    Raises
    ------
    Infeasible
        If the horizon is too small.
    """
    run, early = model.run, options.objective == "early-arrivals"
    most = options.horizon or enough
    horizon = most if early else min(most, enough)
    variables, entries = model.measure(horizon)
    if max(variables, entries) > ENTRIES or (run.best is not None and variables > VARIABLES):
        run.note(
            f"a model of {variables:,} variables and {entries:,} entries was not built, "
            "it would be too large"
        )
        return Stop.TOO_LARGE
    if early:
        return _early(model, horizon)
    return _fewest(model, horizon, known=options.greedy_start and enough <= most)


def _starts(run: Run, options: Options) -> list[tuple[Hops, int]]:
    """Offer greedy schedules on the grids in question.

    Return the grids with their horizons, from that of the best schedule on to finer ones.
    """
    wanted = demand(run.problem)
    grids = _grids(run, options)
    through = options.switches == "hyper-edges"
    starts: list[tuple[Hops, int]] = []
    best, first = math.inf, 0
    for hops in grids:
        tau = hops.grid.epoch_duration
        run.report(f"greedy schedule with epochs of {tau:.6g} µs")
        try:
            sends = greedy(
                hops, wanted, through=through, seed=run.backend.seed, patience=PATIENCE / len(grids)
            )
        except Infeasible:
            if not starts and hops is grids[-1]:
                raise
            continue
        plan = schedule(sends, hops, wanted)
        starts.append((hops, plan.horizon))
        fits = plan.horizon <= (options.horizon or plan.horizon)
        makespan = run.replay(plan) if fits else math.inf
        # A finer grid costs a larger model, so it must be worth it.
        if makespan < best * (1 - WORTH):
            best, first = makespan, len(starts) - 1
        if options.greedy_start and fits:
            run.offer(plan, message="a greedy schedule")
            if run.enough or run.expired:
                break
    return starts[first:]


def _grids(run: Run, options: Options) -> list[Hops]:
    """Return the hops on every grid that the options ask for and that is not too fine."""
    problem = run.problem
    topology, size = problem.topology, problem.collective.chunk_size
    hyper = options.switches == "hyper-edges"
    taus = durations(topology, size, by=options.epoch, given=options.epoch_duration)
    if run.epoch_duration is not None:
        taus = [run.epoch_duration]
    found: list[Hops] = []
    for tau in sorted(taus, reverse=True):
        grid = EpochGrid(topology, size, tau, mirrored=run.mirrored)
        hops = hyper_edges(grid) if hyper else link_hops(grid)
        epochs = max(1.0, run.bounds[0].makespan / tau)
        cells = epochs * len(hops.routes) * len(problem.collective.chunks)
        if epochs <= EPOCHS and (not found or cells <= CELLS):
            found.append(hops)
        else:
            run.note(
                f"epochs of {tau:.6g} µs were not tried: {epochs:.2g} epochs at least, with "
                f"{cells:.2g} cells, are too many"
            )
    return found


def _fewest(model: ChunkModel, horizon: int, *, known: bool) -> Stop:
    """Ask for one epoch less until there is no solution; `known`: a plan of `horizon` is at hand.

    Raises
    ------
    Infeasible
        When there is none, be it the first time or after some.
    """
    run, horizon = model.run, horizon - known
    while horizon >= 1:
        if run.expired:
            return Stop.TIME_LIMIT
        try:
            plan = model.solve(horizon)
        except LimitReached:
            return Stop.TIME_LIMIT
        if run.offer(plan, message=f"a schedule of {plan.horizon} epochs"):
            return run.reached
        horizon = plan.horizon - 1
    return Stop.MODEL_OPTIMAL


def _early(model: ChunkModel, horizon: int) -> Stop:
    """Maximise the reward for early arrivals within `horizon` epochs."""
    try:
        plan = model.solve(horizon, reward=True)
    except LimitReached:
        return Stop.TIME_LIMIT
    if model.run.offer(plan):
        return model.run.reached
    return Stop.MODEL_OPTIMAL if model.proved else Stop.TIME_LIMIT


FORMULATION = Formulation(
    name="te-ccl-milp",
    title="TE-CCL: chunks in epochs (MILP)",
    reference="Liu et al., SIGCOMM 2024, section 3.1; doi 10.1145/3651890.3672249",
    collectives=frozenset(COLLECTIVES),
    options=Options,
    refuses=refuses,
    run=run,
    mathematics=__doc__ or "",
)
