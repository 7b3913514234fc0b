"""What building and compiling a model costs beside solving it, and the memory that it takes.

All-gather on NDv2 x 2 with `formulations.models.te_ccl_milp`: the greedy schedule is left out, so
that the model has to find a schedule of as few epochs as the greedy one.
"""

from __future__ import annotations

import resource
import statistics

from rich.console import Console
from rich.table import Table

from ccl.collective import all_gather
from ccl.problem import Problem
from ccl.serialization.quantity import parse_size
from formulations.bounds import lower_bounds
from formulations.core.run import Run
from formulations.engines.epoch_grid.arcs import link_arcs
from formulations.engines.epoch_grid.epochs import EpochGrid, durations
from formulations.engines.epoch_grid.plans import demand, schedule
from formulations.engines.te_ccl.chunk_milp import ChunkModel
from formulations.engines.te_ccl.greedy import greedy
from gallery import open_cluster


def main(cluster: str = "ndv2:hosts=2", size: str = "1MB", repeat: int = 3) -> None:
    """Print seconds for building, compiling and solving, and the peak of memory."""
    topology = open_cluster(cluster)
    problem = Problem(topology, all_gather(len(topology.ranks), parse_size(size)))
    wanted, nbytes = demand(problem), problem.collective.chunk_size
    [tau] = durations(topology, nbytes, by="slowest")
    hops = link_arcs(EpochGrid(topology, nbytes, tau))
    horizon = schedule(greedy(hops, wanted), hops, wanted).horizon
    bounds = lower_bounds(problem, whole_chunks=True)
    before = _megabytes()
    build, solve = [], []
    for _ in range(repeat):
        run = Run(problem=problem, formulation="build", options={}, bounds=bounds)
        model = ChunkModel(hops, wanted, run)
        model.solve(horizon)
        build.append(model.build_seconds)
        solve.append(model.solve_seconds)
    assert run.size is not None
    table = Table(title=f"{cluster}, all-gather of {size}, {horizon} epochs of {tau:.6g} µs")
    table.add_column("what")
    table.add_column("figure", justify="right")
    table.add_row("variables, constraints", f"{run.size.variables:,}, {run.size.constraints:,}")
    table.add_row("building and compiling, median s", f"{statistics.median(build):.3f}")
    table.add_row("solving, median s", f"{statistics.median(solve):.3f}")
    share = statistics.median(build) / statistics.median(solve)
    table.add_row("building / solving", f"{share:.1%}")
    table.add_row(
        "peak memory, of which the models", f"{_megabytes():.0f}, {_megabytes() - before:.0f} MB"
    )
    Console().print(table)


def _megabytes() -> float:
    """Return the peak of this process's memory so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
