"""TE-CCL's general model: whole chunks, copied along the path, on a grid of epochs.

Sets: epochs k = 0 .. K-1, hops e from src(e) to dst(e) (links, or hyper-edges for switches in the
manner of appendix C), devices v, chunks c. Constants: delay[e] and occupancy[e] in epochs and
capacity[l] in chunks (``formulations.engines.epoch_grid.epochs``). ``has`` and ``wants`` are the
pre- and postcondition.

Variables: f[k, e, c], how often chunk c starts over hop e in epoch k: an integer up to most[e],
the hop's capacity towards a switch that does not copy, else 1; b[k, v, c] in [0, 1], the
buffer: whether a device that stores holds the chunk at the beginning of epoch k.

    b[k, v, c] = b[k-1, v, c] + sum over e into v of f[k - delay[e], e, c]          buffer
    f[k, e, c] <= most[e] * b[k, src(e), c]             src stores: send what is held
    f[k, e, c] <= most[e] * sum over e' into s of f[k - delay[e'], e', c]   switch s that copies
    sum over e out of s of f[k, e, c] = sum over e' into s of f[k - delay[e'], e', c]
                                                        switch s that does not copy
    sum over c, e that hold link l, k - occupancy[e] < k' <= k of f[k', e, c] <= capacity[l]
    sum over l in a shared limit of what is carried in epoch k <= what the limit lets through
    b[0, v, c] = has,  b[K, v, c] = 1 where v wants c

b <= 1 also says that a chunk arrives at most once. A variable exists only inside its window: k
not before the chunk can be at src(e), and arrival not after it can still be of use.

Options change these rows: a limited buffer adds evictions
(`formulations.engines.epoch_grid.epochs`, appendix B); without store-and-forward a device that
stores sends what it was not given at the start as a switch that copies does, in the epoch of its
arrival or never; without copies every destination of a chunk is sent a chunk of its own, and the
result is one of that larger problem. Over a link that has less bandwidth at times, occupancy and
delay depend on the epoch (`formulations.engines.epoch_grid.arcs`).

Objectives, named for what they optimise:

* ``fewest-epochs``: the smallest K for which a solution exists, found from models without an
  objective for one K after the other (`formulations.engines.te_ccl.chunk_search`);
* ``early-arrivals``: maximise the sum of priority[c] * b[k, v, c] / k over the wanted (v, c),
  k = 1 .. K; with 1 / (k + 1) in place of 1 / k for R[k] = min(demand, b[k+1]) and all priorities
  1 this is the paper's objective;
* ``finish-times``: minimise the sum over tenants t of priority[t] times the epochs in which t
  still waits for a chunk, with binary busy[t, k], k = 0 .. K-1, in one model:

      busy[t, k] >= 1 - b[k, v, c] for every c that v wants for t;  busy[t, k+1] <= busy[t, k]

  With one tenant this is the first epoch at whose beginning all is there, as few as by
  ``fewest-epochs``, with the solver's own bound on it. The paper wants a buffer and a reading
  variable for each tenant; b has all that is needed, since chunks are distinguished.

With tenants or priorities the plan kept is the one that is best in these terms in the replay, and
K is no less than a greedy schedule takes that serves one priority after the other: the fewest
epochs may be too few for the urgent to go first.
A gap to stop at early (the paper takes 30 % of the reward's value at the solution, as Gurobi and
HiGHS count it) is one of the objective, not of the makespan.

Source: TE-CCL (Liu et al., SIGCOMM 2024, doi 10.1145/3651890.3672249), sections 3.1, 5 and 6 and
appendices A, B, C, E, F.
Decisions: first and last epoch are handled by the windows rather than by extra rows; the paper's
max and min become one row per term, which is exact as both only bound from one side; no latency is
dropped (``formulations.engines.epoch_grid.epochs``); which epoch duration is best is found by
trying the greedy schedule on several (``auto``), and with time to spare the model is solved on
finer ones too; on a time-reversed grid (``formulations.engines.reverse_time``) sends hold their
links in the last epochs of their delay instead of the first. Makespans reported are of the replay
in continuous time, so fewer epochs need not mean a smaller makespan; the best replayed plan is
the answer.
"""

from dataclasses import dataclass, replace

from ccl.collective import COLLECTIVES
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.result import Result
from formulations.bounds import initial_bounds
from formulations.bounds.cuts import Network, common_cuts, cut_bounds
from formulations.core.registry import Formulation, ModelEstimate
from formulations.core.run import Run
from formulations.engines.epoch_grid.arcs import hyper_edges, link_arcs
from formulations.engines.epoch_grid.epochs import ChunkOptions, EpochGrid, too_small
from formulations.engines.epoch_grid.plans import demand, without_copies
from formulations.engines.epoch_grid.windows import Windows, crossing
from formulations.engines.reverse_time import irreversible, parts, search
from formulations.engines.te_ccl.chunk_search import epoch_durations, find, in_epochs

PAIRS = 20_000_000
"""Most pairs of a hop and a chunk that are counted one by one."""

DEVICES = 600
"""Most devices for whose distances a person waits."""

ENTRIES = 4
"""Nonzeros per variable where they are only estimated."""


GROUPS = {
    "buffer": "a device holds a chunk at the beginning of an epoch if it did before or it arrives",
    "wanted": "at the end whoever wants a chunk holds it",
    "send what is held": "a device sends a chunk only if it holds it",
    "switch": "what leaves a switch in an epoch is what came in for it",
    "capacity of a link": "a link carries no more chunks in an epoch than it has room for",
    "shared limit": "what is carried under a shared limit in an epoch fits into it",
    "any row": "windows are left out, so no rows are distinguished",
}
"""What the constraints say, by the names that `estimate` counts them under."""


def estimate(problem: Problem, options: ChunkOptions) -> ModelEstimate | None:
    """Count the first model that would be built, None where nothing has to be sent.

    It is on the coarsest grid that the options select, with the horizon given or, without one,
    with the smallest that latencies and cuts allow, so it is then a lower estimate; of a
    sum for several ranks it is the larger half. Above `PAIRS` or `DEVICES` only the cells are
    counted, windows left out, which is an upper estimate. Those of limited buffers, of
    ``finish-times`` and of relaying at once are left out.
    """
    if not options.copy:
        problem = without_copies(problem)
    found = [
        _one(part, options, reverse_time=reverse_time) for part, reverse_time in parts(problem)
    ]
    return max(found, key=lambda each: each.variables, default=None)


def _one(problem: Problem, options: ChunkOptions, *, reverse_time: bool) -> ModelEstimate:
    network = Network(problem)
    bounds = cut_bounds(network, common_cuts(network))
    bound = max((each.makespan for each in bounds), default=0.0)
    tau = max(epoch_durations(problem, options, note=lambda _: None))
    grid = EpochGrid(
        problem.topology, problem.collective.chunk_size, tau, reverse_time=reverse_time
    )
    hops = hyper_edges(grid) if options.switches == "hyper-edges" else link_arcs(grid)
    least = options.horizon or in_epochs(bound, tau)
    pairs = len(hops.routes) * len(problem.collective.chunks)
    if pairs > PAIRS or len(problem.topology.devices) > DEVICES:
        many = pairs * least
        note = f"estimated from above for {least} epochs of {tau:.6g} µs"
        return ModelEstimate(many, ENTRIES * many, {"any row": many}, note)
    windows = Windows(hops, demand(problem))
    if options.horizon is None:
        least = max(least, windows.last_to_come[0], crossing(hops, windows.demand).epochs)
    why = "as requested" if options.horizon else "the least that latencies and cuts allow"
    note = f"of {least} epochs of {tau:.6g} µs, {why}"
    return replace(windows.estimate(least), note=note)


@dataclass(frozen=True, kw_only=True)
class Options(ChunkOptions):
    """The form of the model."""


def refuses(problem: Problem) -> str | None:
    """Refuse chunks of several sizes, sums in limited buffers and moves without copy."""
    for device in problem.topology.devices:
        if device.stores and device.buffer_bytes is not None and problem.collective.reduces:
            return f"{device.name} has a limited buffer, and sums are found here as if it had none"
        if device.stores and not device.copies:
            return f"{device.name} stores and cannot copy, and here all that stores copies"
    if len({chunk.size for chunk in problem.collective.chunks}) > 1:
        return "its chunks differ in size, and here one chunk size sets the epoch"
    if problem.windows and problem.collective.reduces:
        return "links have less bandwidth at times, and sums are found here backwards in time"
    small = too_small(problem)
    if small is not None:
        return small
    return irreversible(problem)


def run(run: Run, options: Options) -> Result:
    """Search for a schedule; reductions by time reversal.

    Raises
    ------
    ProblemError
        If a reduction is requested without copies, or hyper-edges with windows.
    Infeasible
        If the horizon is too small.
    LimitReached
        If the time limit came before a schedule.
    """
    if run.problem.windows and options.switches == "hyper-edges":
        raise ProblemError(
            "hyper-edges know no links with less bandwidth at times; take switches as drawn"
        )
    if not options.copy:
        problem = without_copies(run.problem)
        run = replace(
            run, problem=problem, bounds=initial_bounds(problem, quick=False, whole_chunks=True)
        )
        run.note(
            f"without copies along paths {len(problem.collective.chunks)} chunks have to be sent"
        )
    return search(_begun(run, options), options, find)


def _begun(run: Run, options: Options) -> Run:
    """Offer the plan to begin with; it goes on to models of the same question only."""
    if run.start is None:
        return run
    if not (options.copy and options.store_and_forward):
        run.note("the plan given was not used: it may copy along its paths, or store and forward")
        return replace(run, start=None)
    run.offer(run.start, message="the plan given", doubted=True)
    if run.problem.collective.reduces:
        run.note("no model began with the plan given: sums are found backwards in time")
        return replace(run, start=None)
    return run


FORMULATION = Formulation(
    name="te-ccl-milp",
    title="TE-CCL: chunks in epochs (MILP)",
    reference="Liu et al., SIGCOMM 2024, section 3.1; doi 10.1145/3651890.3672249",
    collectives=frozenset(COLLECTIVES),
    options=Options,
    refuses=refuses,
    run=run,
    model="milp",
    estimate=estimate,
    groups=GROUPS,
    takes_start=True,
    windows=True,
)
