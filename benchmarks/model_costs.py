"""What models cost: how long they solve beside what is told before, and what building them takes.

``classes`` are those of `explanation`. The whole solve is timed, bounds, building and all plans
included, up to a limit; a solve that meets it is told as longer than that.

``build`` has building and compiling beside solving, and the memory that it takes: all-gather on
NDv2 x 2 with `formulations.models.te_ccl_milp`. The greedy schedule is left out, so that the model
has to find a schedule of as few epochs as the greedy one.
"""

from __future__ import annotations

import resource
import statistics
import time

from benchmarks.measuring import show, table
from ccl.collective import CollectiveKind, all_gather, make_collective
from ccl.errors import LimitReached
from ccl.problem import Problem
from ccl.result import Stop
from ccl.serialization.quantity import parse_size
from formulations import explain, solve
from formulations.bounds import lower_bounds
from formulations.core.registry import LAST, Speed
from formulations.core.run import Run
from formulations.engines.epoch_grid.arcs import link_arcs
from formulations.engines.epoch_grid.epochs import EpochGrid, durations
from formulations.engines.epoch_grid.plans import demand, schedule
from formulations.engines.te_ccl.chunk_milp import ChunkModel
from formulations.engines.te_ccl.greedy import greedy
from gallery import open_cluster

Row = tuple[str, str, CollectiveKind, dict[str, object]]

GRID = {"epoch": "slowest", "greedy_start": False}
ASKED: tuple[Row, ...] = (
    ("thesis-fluid", "ring:gpus=4", "all-gather", {}),
    ("thesis-fluid", "dgx-1v", "all-to-all", {}),
    ("thesis-fluid", "dgx-1v", "broadcast", {"model": "duplicates"}),
    ("thesis-fluid", "dgx-1v", "all-gather", {"model": "duplicates"}),
    ("thesis-fluid", "mi250", "all-to-all", {}),
    ("thesis-fluid", "dgx-a100:hosts=4", "all-to-all", {}),
    ("thesis-fluid", "ndv2:hosts=6", "all-to-all", {}),
    ("thesis-fluid", "dgx-a100:hosts=12", "all-to-all", {}),
    ("orbit-lp", "ndv2", "all-to-all", {}),
    ("orbit-lp", "dgx-a100:hosts=8", "all-to-all", {}),
    ("te-ccl-lp", "dgx-1v", "all-to-all", {"epoch": "slowest"}),
    ("te-ccl-lp", "ndv2", "all-to-all", {"epoch": "slowest"}),
    ("te-ccl-lp", "mi250", "all-to-all", {"epoch": "slowest"}),
    ("te-ccl-lp", "dgx-a100:hosts=2", "all-to-all", {"epoch": "slowest"}),
    ("te-ccl-lp", "ndv2:hosts=3", "all-to-all", {"epoch": "slowest"}),
    ("te-ccl-lp", "ndv2:hosts=3", "scatter", {"epoch": "slowest"}),
    ("te-ccl-milp", "ring:gpus=6", "all-gather", GRID),
    ("te-ccl-milp", "dgx-1v", "all-gather", GRID),
    ("te-ccl-milp", "dgx-a100", "all-gather", GRID),
    ("te-ccl-milp", "mi250", "broadcast", GRID),
    ("te-ccl-milp", "mi250", "all-gather", GRID),
    ("te-ccl-milp", "ndv2", "all-gather", GRID),
    ("te-ccl-milp", "mi250", "all-to-all", GRID),
    ("te-ccl-milp", "ndv2:hosts=3", "all-gather", GRID),
    ("te-ccl-milp", "dgx-1v", "all-to-all", GRID),
    ("thesis-steps", "ring:gpus=6", "all-to-all", {}),
    ("thesis-steps", "mi250", "broadcast", {}),
    ("thesis-steps", "mi250", "all-gather", {}),
    ("mirrored-dantzig-wolfe", "mi250", "all-gather", {}),
    ("dantzig-wolfe", "ndv2", "all-gather", {}),
    ("mirrored-dantzig-wolfe", "dgx-a100:hosts=2", "all-gather", {}),
    ("mirrored-dantzig-wolfe", "dgx-1v", "all-gather", {}),
    ("dantzig-wolfe", "dgx-1v", "all-gather", {}),
    ("dantzig-wolfe", "dgx-a100", "all-gather", {}),
)


def classes(size: str = "1MB", limit: float = 60.0, only: str = "") -> None:
    """Print sizes, the class that they are told to be in, and the seconds measured."""
    headings = ("formulation", "cluster", "collective", "nonzeros", "told", "s", "took")
    made = table(f"{size}, at most {limit:g} s each", headings)
    same = 0
    asked = [each for each in ASKED if only in each[0]]
    for name, cluster, kind, options in asked:
        topology = open_cluster(cluster)
        collective = make_collective(kind, len(topology.ranks), parse_size(size), root=0)
        problem = Problem(topology, collective)
        found = explain(name, problem, options=options)
        if found.size is None or found.speed is None:
            made.add_row(name, cluster, kind, "", found.refusal or found.note, "", "")
            continue
        seconds, over = _timed(problem, name, options=options, limit=limit)
        took = speed_in(seconds)
        fits = took is found.speed or (over and found.speed in LONG)
        same += fits
        made.add_row(
            name,
            cluster,
            kind,
            f"{found.size.nonzeros:,}",
            found.speed.words,
            f"{'> ' * over}{seconds:.2f}",
            "as told" if fits else took.words,
        )
    made.caption = f"{same} of {len(asked)} as told"
    show([made])


LONG = (Speed.MINUTES, Speed.HOURS)
"""What a solve that met the limit of a minute may be."""


def speed_in(seconds: float) -> Speed:
    """Return the class of something that took so long."""
    ends = (1.0, 60.0, 3600.0)
    return next((speed for speed, end in zip(Speed, ends, strict=False) if seconds < end), LAST)


def _timed(
    problem: Problem, name: str, *, options: dict[str, object], limit: float
) -> tuple[float, bool]:
    """Return the seconds of a solve, and whether it met its limit."""
    begin = time.perf_counter()
    try:
        stop = solve(problem, name, options=options, time_limit=limit).stop
    except LimitReached:
        stop = Stop.TIME_LIMIT
    return time.perf_counter() - begin, stop in (Stop.TIME_LIMIT, Stop.TOO_LARGE)


def build(cluster: str = "ndv2:hosts=2", size: str = "1MB", repeat: int = 3) -> None:
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
    title = f"{cluster}, all-gather of {size}, {horizon} epochs of {tau:.6g} µs"
    made = table(title, ("what", "figure"))
    made.add_row("variables, constraints", f"{run.size.variables:,}, {run.size.constraints:,}")
    made.add_row("building and compiling, median s", f"{statistics.median(build):.3f}")
    made.add_row("solving, median s", f"{statistics.median(solve):.3f}")
    share = statistics.median(build) / statistics.median(solve)
    made.add_row("building / solving", f"{share:.1%}")
    made.add_row(
        "peak memory, of which the models", f"{_megabytes():.0f}, {_megabytes() - before:.0f} MB"
    )
    show([made])


def _megabytes() -> float:
    """Return the peak of this process's memory so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
