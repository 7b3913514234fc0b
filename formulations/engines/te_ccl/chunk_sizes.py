"""Size of the model of whole chunks, before it is built or a solver loaded."""

from __future__ import annotations

from dataclasses import replace

from ccl.problem import Problem
from formulations.bounds.cuts import Network, common_cuts, cut_bounds
from formulations.core.registry import ModelEstimate
from formulations.engines.epoch_grid.arcs import hyper_edges, link_arcs
from formulations.engines.epoch_grid.epochs import ChunkOptions, EpochGrid
from formulations.engines.epoch_grid.plans import demand, without_copies
from formulations.engines.epoch_grid.windows import Windows, crossing
from formulations.engines.reverse_time import parts
from formulations.engines.te_ccl.chunk_search import epoch_durations, in_epochs

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
