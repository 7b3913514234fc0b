"""TE-CCL's A*: the model of whole chunks in rounds, each of which brings chunks nearer.

Sets as in ``te-ccl-milp``: hops e from src(e) to dst(e), devices v, chunks c. A round has epochs
k = 0 .. K-1 in which sends may start, and a look-ahead of epochs K .. K+A in which what was sent
arrives, A being the most epochs from one device that stores to the next. Constants: delay[e],
occupancy[e] and capacity[l] (``formulations.engines.epoch_grid.epochs``); FW[v, d], the fewest
epochs from v to d, by Floyd and Warshall. A demand (d, c) is open if d wants c and c is neither
there nor on its path.

State that a round hands on: for every device and chunk the epoch from which on it is there, be
that now, later (the paper's Q) or never; and every send so far, because a long transmission goes
on holding its links, and its share of a shared limit, in the next round.

Variables: f[k, e, c], how often chunk c starts over hop e; b[k, v, c] in [0, 1], whether a device
that stores, and that did not have c coming when the round began, has it at epoch k (for k >= K
this is Q[k - K]); z[k, d, c, m] in [0, 1] for k >= K, whether c is within m epochs of d.

    b[k, v, c] = b[k-1, v, c] + sum over e into v of f[k - delay[e], e, c]          buffer
    f[k, e, c] <= most[e] * b[k, src(e), c]     src stores, and lacked c when the round began
    f[k, e, c] <= most[e] * sum over e' into s of f[k - delay[e'], e', c]   switch s that copies
    sum over e out of s of f[k, e, c] = sum over e' into s of f[k - delay[e'], e', c]
                                                        switch s that does not copy
    sum over c, e that hold link l, k - occupancy[e] < k' <= k of f[k', e, c]
        <= capacity[l] - what earlier rounds hold of it; shared limits likewise
    z[k, d, c, m] <= sum over v with FW[v, d] <= m of b[k, v, c]

Objective, over the open demands (d, c), with near the FW from the nearest device that has c now
or soon, m1 < m2 < ... < near the distances from other devices, and value(m) = gamma / (1 + m):

    maximise  sum over k = 1 .. K of b[k, d, c] / k
            + sum over k = K .. K+A of (1 / (k-K+1)) * ((1 - value(m1)) * b[k, d, c]
                  + sum over i of (value(m_i) - value(m_i+1)) * z[k, d, c, m_i])

The first sum is the paper's reward for early arrivals. The second is its distance objective: 1
for a chunk that has arrived and gamma / (1 + FW) for one that is FW away, each divided by one
more than its epoch in the look-ahead. Rounds follow until no demand is open; the sends of all of
them, without those that nobody needs, are the plan.

Source: TE-CCL (Liu et al., SIGCOMM 2024, doi 10.1145/3651890.3672249), section 4.2 and appendix D.

Decisions where the paper is silent or slips:

* P[s, d], the chunks at s that count for d, is limited there by all chunks at s that d wants
  together, so that two copies of one chunk may count in place of two chunks. Here it is per chunk,
  and z says the same as P with fewer variables: only the nearest copy counts.
* FW is made of the latencies alone there. Where they are 0 all distances are, and in seconds
  1 + FW is 1; here it is made of whole hops, in epochs.
* What arrives at a switch in the next round is held for it there, though it may then find no path
  out. Here a switch sends on within the look-ahead, in the round that sent to it.
* The sum over earlier sends of the capacity of appendix F ends at the beginning of a round there;
  here it goes on into the rounds before.
* The index of the first Q is printed as K; it is 0, the epoch in which the next round begins.
* A send exists only if it leads nearer to an open demand than all that have the chunk, since
  nothing else is rewarded but the beginning of a detour.

The end: rewards for early arrivals say little about the last one. So (an option, not in the
paper) the last rounds, as many as together have a small model, are solved again without rewards,
for all demands within one epoch less each time, until there is no solution or a limit is reached:

    b[K, d, c] = 1 for every demand (d, c) that was open when they began

Length of a round: the option; left empty, 4 A, 2 A or A, the paper's least, whichever is the
longest whose model is small, and where A itself is too long for a small model, halves of it:
nothing here needs more than one epoch, since the state reaches as far ahead as it must. The
program of a round always has a solution, which is to send nothing. Protection against stalling:
a round whose solver is stopped by its limit without half of what its bound promises is solved
again, and all that follow are half as long; where it was the shortest, its limit is doubled. A
round that sends nothing although nothing was in flight is followed by one of twice its length.
After six of these in a row it is given up. Nothing is proved by rounds.
"""

from dataclasses import dataclass
from typing import Literal

from ccl.collective import COLLECTIVES
from ccl.errors import Infeasible, LimitReached
from ccl.options import option
from ccl.problem import Problem
from ccl.result import Result, Stop
from formulations.core.refusals import no_stores
from formulations.core.registry import Formulation
from formulations.core.run import Run
from formulations.engines.epoch_grid.arcs import Arcs, hyper_edges, link_arcs
from formulations.engines.epoch_grid.epochs import (
    DurationOptions,
    EpochGrid,
    ProofOptions,
    durations,
)
from formulations.engines.epoch_grid.plans import Demand, demand, schedule
from formulations.engines.reverse_time import irreversible, search
from formulations.engines.te_ccl.greedy import greedy
from formulations.engines.te_ccl.round_milp import Journey, Rounds

CELLS = 6_000
"""Most epochs times hops times chunks of a grid that is tried after the most promising one."""

PATIENCE = 1.5
"""Seconds for greedy schedules on all grids together."""

ENTRIES = 50_000_000
"""Most epochs times hops times chunks of a round, each counted as often as the epochs in which it
holds its links; more take more time and memory than there may be."""

FINER = 300_000
"""Most epochs times hops times chunks of a grid that is looked at beside the coarsest."""


@dataclass(frozen=True, kw_only=True)
class Options(DurationOptions, ProofOptions):
    """The form of the rounds."""

    round_epochs: int | None = option(
        None,
        "Epochs of a round",
        "Left empty, up to 4 times the most epochs of a hop, by the model's size",
        min=1,
    )
    gamma: float = option(
        0.9,
        "Gamma",
        "What a chunk one step from its destination counts beside one that is there, doubled",
        min=0.0,
        max=1.0,
    )
    round_gap: float = option(
        5.0,
        "Gap of a round",
        "Gap of a round's reward at which its solver stops",
        unit="%",
        min=0.0,
    )
    round_seconds: float = option(
        10.0, "Time of a round", "Limit for the solver in one round", unit="s", min=0.01
    )
    switches: Literal["as drawn", "hyper-edges"] = option(
        "as drawn",
        "Switches",
        "Devices that copy or not as drawn, or replaced by hyper-edges between GPUs",
    )
    shorten_end: bool = option(
        True, "Shorten the end", "Solve the last rounds again, for one epoch less each time"
    )
    greedy_start: bool = option(
        True, "Greedy start", "Keep the greedy schedule that chooses the grid as a first plan"
    )


def refuses(problem: Problem) -> str | None:
    """Leave limited buffers to other formulations."""
    if (reason := no_stores(problem)) is not None:
        return reason
    if len({chunk.size for chunk in problem.collective.chunks}) > 1:
        return "its chunks differ in size, and here one chunk size sets the epoch"
    return irreversible(problem)


def run(run: Run, options: Options) -> Result:
    """Go round after round; reductions by time reversal.

    Raises
    ------
    Infeasible
        If no path leads to a device that wants a chunk.
    LimitReached
        If the time limit came before a schedule.
    SolveError
        If round after round sends nothing.
    """
    return search(run, options, _find)


def _find(run: Run, options: Options) -> Stop:
    """Offer greedy schedules, then those of rounds, the most promising grid first."""
    wanted = demand(run.problem)
    grids = _grids(run, options)
    if not grids:
        return Stop.TOO_LARGE
    try:
        ordered = _ordered(run, options, wanted, grids=grids)
    except LimitReached:
        return Stop.TIME_LIMIT
    for number, hops in enumerate(ordered):
        if run.enough and (number or options.stop_at_proof):
            return run.reached
        if number and _cells(run, hops) > CELLS:
            continue
        journey = Journey(
            run,
            Rounds(hops, wanted, options.gamma),
            length=options.round_epochs,
            gap=options.round_gap / 100,
            seconds=options.round_seconds,
            shorten=options.shorten_end,
        )
        if not journey.travel():
            return Stop.TIME_LIMIT
    return run.reached if run.enough else Stop.CONSTRUCTED


def _cells(run: Run, hops: Arcs) -> float:
    """Estimate the cells of a whole plan: epochs of the lower bound, times hops, times chunks."""
    epochs = max(1.0, run.bounds[0].makespan / hops.grid.epoch_duration)
    return epochs * len(hops.routes) * len(run.problem.collective.chunks)


def _grids(run: Run, options: Options) -> list[Arcs]:
    """Return the hops on every grid that the options select and that is not too fine."""
    problem = run.problem
    topology, size = problem.topology, problem.collective.chunk_size
    taus = durations(topology, size, by=options.epoch, given=options.epoch_duration)
    if run.epoch_duration is not None:
        taus = [run.epoch_duration]
    found: list[Arcs] = []
    for tau in sorted(taus, reverse=True):
        grid = EpochGrid(topology, size, tau, reverse_time=run.reverse_time)
        hops = hyper_edges(grid) if options.switches == "hyper-edges" else link_arcs(grid)
        # A send has an entry for each epoch in which it holds its links.
        held = int(hops.occupancy.clip(1).sum())
        entries = 2 * int(hops.delay.max()) * held * len(problem.collective.chunks)
        if entries <= ENTRIES and (not found or _cells(run, hops) <= FINER):
            found.append(hops)
        else:
            run.note(
                f"epochs of {tau:.6g} µs were not tried: {entries:.2g} entries in a round and "
                f"{_cells(run, hops):.2g} cells in all are too many"
            )
    return found


def _ordered(run: Run, options: Options, wanted: Demand, *, grids: list[Arcs]) -> list[Arcs]:
    """Return the grids by the makespans of greedy schedules on them, which are offered.

    Raises
    ------
    Infeasible
        If no path leads to a device that wants a chunk.
    LimitReached
        If there is no time for a greedy schedule.
    """
    if len(grids) == 1 and not options.greedy_start:
        return grids
    made: list[tuple[float, int]] = []
    for number, hops in enumerate(grids):
        run.report(f"greedy schedule with epochs of {hops.grid.epoch_duration:.6g} µs")
        try:
            sends = greedy(
                hops,
                wanted,
                through=options.switches == "hyper-edges",
                seed=run.backend.seed,
                patience=PATIENCE / len(grids),
                left=lambda: run.awaited,
            )
        except Infeasible:
            if not made and hops is grids[-1]:
                raise
            continue
        plan = schedule(sends, hops, wanted)
        made.append((run.replay(plan), number))
        if options.greedy_start:
            run.offer(plan, message="a greedy schedule")
            if run.enough or run.expired:
                break
    return [grids[number] for _, number in sorted(made)]


FORMULATION = Formulation(
    name="te-ccl-astar",
    title="TE-CCL: rounds of chunks in epochs (A*)",
    reference="Liu et al., SIGCOMM 2024, section 4.2 and appendix D; doi 10.1145/3651890.3672249",
    collectives=frozenset(COLLECTIVES),
    options=Options,
    refuses=refuses,
    run=run,
    model="milp",
)
