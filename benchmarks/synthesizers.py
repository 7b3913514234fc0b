"""Synthesizers of others, rebuilt here, beside what their authors published: TACCL, SCCL, trees.

TACCL's three steps run in full: the quick ways are not offered, they only start step 1. First on
NDv2 x 2: makespans, bounds and seconds of every size, beside the finish times and solver seconds
of TACCL in TE-CCL's table 8. Then all-gather on NDv2 x 2, NDv2 x 4 and DGX-2 x 2 in chunks of 1 MB,
beside the seconds that the published program takes with HiGHS on a machine of two cores. Ours are
replays in continuous time with every latency counted; in TACCL's figures latency holds a link.

SCCL's instances on the DGX-1 and DGX-2 are in steps and rounds. Seconds "cold" are those of a
process from its start to its end, with all that it loads; "again" those of the same solve once more
in the same process: bounds, a process for the solver, search, verification and replay. "cpu" are
those of the processors for "again", which a busy machine does not stretch. The first table has
instances for which the published program was run on two cores like ours, with z3; the second has
TE-CCL's table 7, whose epochs are rounds and whose seconds are those of its authors' six cores.
Steps are the fewest that the rounds can be dealt out to; the last column of ours says what refutes
one less.

Rivals are methods of the field that make trees or match links, on equal footing. ``rates``:
ForestColl, Blink, Blink with switches removed, BFB and TACOS on five clusters: what each plan moves
in its steady state (a schedule has none), its replay at 1 GB, and the bound. ``tacos``: all-gathers
of 1 GB beside what TACOS's program found, in as many trials. ForestColl's paper has its all-reduce
of 1 GB on two MI250 16 % above Blink with switches removed, measured on the hardware; here are the
steady states and the replays of both.
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer
from rich.table import Table

from benchmarks.measuring import (
    Measured,
    PartArgument,
    Request,
    Settings,
    measured,
    parts_named,
    show,
    table,
    warm_up,
)
from ccl.collective import CollectiveKind


@dataclass(frozen=True, slots=True)
class Published:
    """A row of table 8: size of the buffer, finish time of TACCL in µs, its solver's seconds."""

    size: str
    makespan: float
    seconds: float


TACCL_ALL_TO_ALL = (
    Published("1GB", 320049.4, 1214.69),
    Published("256MB", 81964.2, 1217.56),
    Published("64MB", 20532, 1220.6),
    Published("16MB", 5164.4, 1213.9),
    Published("4MB", 1324.2, 1214.51),
    Published("1MB", 359, 1213.52),
    Published("256KB", 115.72, 1221.78),
    Published("64KB", 50.34, 860.88),
    Published("16KB", 35.76, 86.03),
    Published("4KB", 32.115, 31.14),
    Published("1KB", 36.799, 27.66),
)
TACCL_ALL_GATHER = (
    Published("1GB", 53766.70, 7.01),
    Published("256MB", 12494.60, 6.56),
    Published("64MB", 3133.20, 8.27),
    Published("4MB", 216.50, 8.37),
    Published("1MB", 62.15, 62.65),
    Published("256KB", 25.26, 11.17),
    Published("64KB", 13.08, 3.66),
    Published("16KB", 12.68, 6.34),
    Published("4KB", 11.85, 4.30),
    Published("1KB", 10.16, 3.02),
)


@dataclass(frozen=True, slots=True)
class Synthesis:
    """An all-gather of chunks of 1 MB: cluster, chunks per shard, seconds and µs of TACCL.

    Seconds and µs are those of its published program with HiGHS, on links as it profiled them.
    """

    cluster: str
    ranks: int
    chunks: int
    seconds: float
    makespan: float


SYNTHESES = (
    Synthesis("ndv2:hosts=2", 16, 1, 6.8, 991),
    Synthesis("ndv2:hosts=4", 32, 1, 74.2, 2669),
    Synthesis("dgx-2-te-ccl:hosts=2", 32, 2, 39.8, 583),
)


def taccl(time_limit: float = 60.0) -> None:
    """Print table 8 and the seconds of synthesis."""
    warm_up(_three_steps("ndv2:hosts=2", "1MB"))
    show(_taccl(Settings(repeat=1, time_limit=time_limit)))


def _three_steps(
    cluster: str, size: str, *, kind: CollectiveKind = "all-gather", chunks: int = 1
) -> Request:
    return Request(
        cluster=cluster,
        size=size,
        kind=kind,
        chunks=chunks,
        formulation="taccl",
        options={"quick": False},
    )


def _taccl(settings: Settings) -> Iterator[Table]:
    """Yield table 8 by collective, and the seconds of synthesis."""
    headings = ("makespan µs", "bound µs", "gap", "s")
    halves: tuple[tuple[CollectiveKind, tuple[Published, ...]], ...] = (
        ("all-gather", TACCL_ALL_GATHER),
        ("all-to-all", TACCL_ALL_TO_ALL),
    )
    for kind, rows in halves:
        ours = ("size", *headings, "of µs")
        made = table(f"NDv2 x 2, {kind}", ours, ("TACCL µs", "s"))
        for row in rows:
            done = _run(_three_steps("ndv2:hosts=2", row.size, kind=kind), settings)
            share = f"{done.makespan / row.makespan:.3f}"
            theirs = f"{row.makespan:.6g}", f"{row.seconds:.2f}"
            made.add_row(row.size, *_shown(done), share, *theirs)
        made.caption = "dim: TACCL as in TE-CCL's table 8"
        yield made
    made = table("All-gather, chunks of 1 MB", ("cluster", *headings, "of s"), ("TACCL µs", "s"))
    for one in SYNTHESES:
        size = f"{one.ranks * one.chunks}MB"
        done = _run(_three_steps(one.cluster, size, chunks=one.chunks), settings)
        share = f"{done.seconds / one.seconds:.3f}"
        made.add_row(one.cluster, *_shown(done), share, f"{one.makespan:.6g}", f"{one.seconds:.2f}")
    made.caption = (
        "dim: the published program with HiGHS on two cores, on its own profiled links "
        "(slower ones: its µs are not those of this cluster)"
    )
    yield made


def _run(row: Request, settings: Settings) -> Measured:
    [chosen] = settings.chosen([row])
    return measured(chosen, settings)


def _shown(done: Measured) -> tuple[str, ...]:
    result = done.result
    if result is None:
        return "none", "", done.failure, f"{done.seconds:.2f}"
    makespan, bound = f"{result.makespan:.6g}", f"{result.bound.makespan:.6g}"
    return makespan, bound, f"{result.gap:.2%}", f"{done.seconds:.2f}"


CHUNK = 25_000
"""Bytes of each chunk; 1 µs on the slowest link."""

LIMIT = 120.0
"""Seconds for each solve."""

_SOLVE = """
    import json, os, sys, time
    from ccl.collective import make_collective
    from ccl.errors import Infeasible, LimitReached
    from ccl.problem import Problem
    from formulations import solve
    from gallery import open_cluster

    asked = json.loads(sys.argv[1])
    for _ in range(asked["times"]):
        begin, work = time.perf_counter(), sum(os.times()[:4])
        topology = open_cluster(asked["cluster"])
        ranks = len(topology.ranks)
        size = ranks * asked["chunks"] * asked["bytes"]
        made = make_collective(asked["kind"], ranks, size, chunks=asked["chunks"])
        problem = Problem(topology, made)
        try:
            result = solve(problem, "sccl", options=asked["options"], time_limit=asked["limit"])
            cost = result.closed_form.expression
            said = {"makespan": f"{result.makespan:.6g}", "cost": cost, "why": result.log[-1]}
        except (Infeasible, LimitReached) as error:
            said = {"makespan": "none", "cost": "", "why": str(error)}
        said |= {"seconds": time.perf_counter() - begin, "cpu": sum(os.times()[:4]) - work}
    print(json.dumps(said))
"""


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance.

    Parameters
    ----------
    kind, chunks
        Collective and chunks per shard.
    steps, rounds
        Of the instance; 0 for the fewest steps of a round each.
    published
        Texts of the published seconds.
    cluster
        By its name in the gallery.
    """

    kind: str
    chunks: int
    steps: int
    rounds: int
    published: tuple[str, ...]
    cluster: str = "dgx-1v:alpha=0"


Z3 = (
    Instance("all-gather", 1, 0, 0, ("0.4",)),
    Instance("all-gather", 2, 2, 3, ("0.7",)),
    Instance("all-gather", 6, 3, 7, ("20.8",)),
    Instance("all-to-all", 1, 0, 0, ("9.6",)),
    Instance("all-gather", 1, 0, 0, ("open at 300",), "dgx-2"),
)
TABLE_7 = (
    Instance("all-gather", 1, 2, 2, ("0.3", "0.09")),
    Instance("all-gather", 2, 2, 3, ("0.7", "0.07")),
    Instance("all-gather", 3, 3, 4, ("1.8", "0.19")),
    Instance("all-gather", 4, 3, 5, ("4.1", "1.45")),
    Instance("all-gather", 5, 3, 6, ("11.2", "8.96")),
    Instance("all-gather", 6, 3, 7, ("27.7", "50.57")),
    Instance("all-to-all", 1, 2, 3, ("8.8", "0.11")),
    Instance("all-to-all", 3, 2, 8, ("none", "0.18")),
    Instance("all-to-all", 8, 2, 30, ("none", "1.88")),
)


def sccl() -> None:
    """Solve every instance and print ours beside the published figures."""
    show(_all_instances())


def _all_instances() -> Iterator[Table]:
    yield _instances("SCCL's program with z3", Z3, ("z3 s",))
    title = "TE-CCL, table 7, DGX-1, 25 KB chunks, alpha 0"
    yield _instances(title, TABLE_7, ("SCCL s", "TE-CCL s"))


def _instances(title: str, rows: tuple[Instance, ...], published: tuple[str, ...]) -> Table:
    headings = ("cluster", "collective", "chunks", "cost", "µs", "cold s", "again s", "cpu s")
    made = table(title, (*headings, "a step less"), published)
    for row in rows:
        begin = time.perf_counter()
        _instance(row, steps=row.steps)
        cold = time.perf_counter() - begin
        found = _instance(row, steps=row.steps, times=2)
        # Who asks for the fewest steps is told by whom fewer are refuted.
        less = _instance(row, steps=row.steps - 1) if row.steps else found
        made.add_row(
            row.cluster.partition(":")[0],
            row.kind,
            str(row.chunks),
            found["cost"],
            found["makespan"],
            f"{cold:.2f}",
            f"{found['seconds']:.2f}",
            f"{found['cpu']:.2f}",
            _refuted(less),
            *row.published,
        )
    return made


def _instance(row: Instance, *, steps: int, times: int = 1) -> dict[str, Any]:
    """Solve a row in so many steps in a process of its own; return what it says the last time."""
    options: dict[str, Any] = {"seconds": LIMIT}
    if row.steps:
        options |= {"mode": "instance", "steps": steps, "rounds": row.rounds}
    asked = {
        "cluster": row.cluster,
        "kind": row.kind,
        "chunks": row.chunks,
        "bytes": CHUNK,
        "limit": LIMIT,
        "options": options,
        "times": times,
    }
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_SOLVE), json.dumps(asked)],
        capture_output=True,
        text=True,
        check=True,
    )
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def _refuted(less: dict[str, Any]) -> str:
    """Say in a word what proves that there is no plan."""
    if "proved" not in less["why"]:
        return "not refuted"
    for word, what in (("searched", "search"), ("links of", "cut"), ("steps to", "distance")):
        if word in less["why"]:
            return what
    return "bound"


CLUSTERS = ("dgx-1v", "mi250:hosts=2", "dgx-a100:hosts=2", "ndv2:hosts=2", "torus")
KINDS: tuple[CollectiveKind, ...] = ("all-gather", "all-reduce", "broadcast")

METHODS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("forestcoll", "forestcoll", {}),
    ("blink", "blink", {}),
    ("blink-switch", "blink-switch", {}),
    ("blink-switch, halves in turn", "blink-switch", {"halves": "in turn"}),
    ("blink-switch, weights", "blink-switch", {"packing": "multiplicative weights"}),
    ("bfb", "bfb", {}),
    ("tacos", "tacos", {}),
)
"""Name in the table, formulation and options."""

TACOS = (
    ("dgx-1v", 1, 200, 7_502, 0.0002),
    ("dgx-1v", 6, 200, 5_843, 0.002),
    ("ndv2:hosts=2", 1, 200, 43_762, 0.003),
    ("ndv2:hosts=2", 4, 100, 40_981, 0.03),
    ("ndv2:hosts=2", 16, 20, 40_402, 0.5),
    ("torus:shape=8x8", 1, 10, 5_075, 0.01),
)
"""Cluster, chunks, trials, µs and seconds a trial of TACOS's program, run by us."""

PLAIN = {"symmetry": False, "patience": 0.0, "order": "any"}
"""The rule of the paper without what is ours."""


def rivals(
    part: PartArgument = "all",
    *,
    time_limit: Annotated[float, typer.Option(help="Seconds for each solve.")] = 20.0,
    only: Annotated[str, typer.Option(help="Rows that have this text in them.")] = "",
) -> None:
    """Print rates and replays of ForestColl, Blink, BFB and TACOS."""
    settings = Settings(repeat=1, time_limit=time_limit, only=only)
    for each in parts_named(part, PARTS):
        show(each(settings))


def rates(settings: Settings) -> Iterator[Table]:
    """All methods on all clusters; what a method refuses is left out."""
    for method in ("forestcoll", "tacos"):
        warm_up(Request(cluster="ring", size="1MB", formulation=method))
    for cluster in CLUSTERS:
        made = table(f"{cluster}, 1 GB", HEADINGS)
        for kind in KINDS:
            _rows(made, Request(cluster=cluster, size="1GB", kind=kind), settings)
        yield made


HEADINGS = (
    "collective",
    "method",
    "steady GB/s",
    "bound GB/s",
    "than forestcoll",
    "replay µs",
    "bound µs",
    "than forestcoll",
    "s",
)


def _rows(made: Table, asked: Request, settings: Settings) -> None:
    first: Measured | None = None
    for name, formulation, options in METHODS:
        if "halves" in options and asked.kind != "all-reduce":
            continue
        row = replace(asked, formulation=formulation, options=options)
        for each in settings.chosen([row]):
            done = measured(each, settings)
            if done.result is None:
                continue
            first = first or done
            made.add_row(asked.kind, name, *_figures(done, first))
    made.add_section()


def _figures(done: Measured, first: Measured) -> list[str]:
    """Return rate, bounds, replay and seconds, and what is more than in the first row."""
    result, other = done.result, first.result
    assert result is not None
    assert other is not None
    size = result.problem.collective.size * 1e-3
    steady, best = result.steady_makespan, other.steady_makespan
    slowest = max((bound.makespan for bound in other.bounds if bound.steady), default=0.0)
    return [
        "" if steady is None else f"{size / steady:.5g}",
        f"{size / slowest:.5g}" if slowest else "",
        "" if steady is None or best is None else f"{steady / best - 1:+.1%}",
        f"{result.makespan:.7g}",
        f"{result.bound.makespan:.7g}",
        f"{result.makespan / other.makespan - 1:+.1%}",
        f"{done.seconds:.2f}",
    ]


def tacos(settings: Settings) -> Iterator[Table]:
    """As many trials as the published program had, by its rule and with what is ours."""
    warm_up(Request(cluster="ring", size="1MB", formulation="tacos"))
    made = table(
        "TACOS, all-gather of 1 GB",
        ("cluster", "chunks", "trials", "its rule µs", "s", "ours µs", "s", "bound µs"),
        ("published program µs", "s"),
    )
    for cluster, chunks, trials, published, seconds in TACOS:
        asked = Request(
            cluster=cluster,
            size="1GB",
            chunks=chunks,
            formulation="tacos",
            options={"trials": trials},
        )
        plain = replace(asked, options={**asked.options, **PLAIN})
        rows = settings.chosen([plain, asked])
        if not rows:
            continue
        rule, ours = (measured(row, settings) for row in rows)
        assert ours.result is not None
        made.add_row(
            cluster,
            str(chunks),
            str(trials),
            f"{rule.makespan:.7g}",
            f"{rule.seconds:.2f}",
            f"{ours.makespan:.7g}",
            f"{ours.seconds:.2f}",
            f"{ours.result.bound.makespan:.7g}",
            f"{published}",
            f"{seconds * trials:.2f}",
        )
    made.caption = (
        "the published program lets a slow link end with what came to its source on the way; "
        "plans here are verified"
    )
    yield made


PARTS: dict[str, Callable[[Settings], Iterator[Table]]] = {"rates": rates, "tacos": tacos}
