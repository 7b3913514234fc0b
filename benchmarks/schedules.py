"""``auto`` on the rows that its engine was built for: proofs, gaps and seconds, part by part.

``all-gather``
    NDv2 x 2 beside TE-CCL's table 8, NDv2 x 4 and DGX-2 x 2 with switches that copy or not.
``all-to-all``
    Table 8, and 128 GPUs of DGX A100 on rails.
``chunks``
    Makespan against chunks per shard, beside TACOS.
``reductions``
    Reduce-scatter, and all-reduce beside reduce-scatter plus all-gather.
``large``
    All-gather of 64, 128 and 1,024 GPUs.
``methods``
    ``auto`` beside every single method in the same time.

A limit leaves a tenth of the seconds asked for to the last verification and replay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Annotated

import typer
from rich.table import Table

from benchmarks.measuring import (
    FIGURES,
    Goal,
    Measured,
    PartArgument,
    Request,
    Settings,
    figures,
    filled,
    measured,
    parts_named,
    said,
    show,
    table,
    warm_up,
)
from benchmarks.te_ccl import ALL_GATHER, ALL_TO_ALL, TABLE8
from ccl.result import PROOF_TOLERANCE
from ccl.serialization.quantity import parse_size
from formulations import available
from formulations.analyses.chunk_counts import COUNTS, common_bound

SIZES = tuple(row.size for row in ALL_GATHER)
LIMIT = 0.9
"""Share of the seconds asked for that a search gets."""

DROPPED = 2.7
"""µs of latency from the GPU at the port to the farthest ones on the other NDv2, over the network
and two NVLinks (1.3 + 0.7 + 0.7). TE-CCL drops latencies below a tenth of an epoch, so all of it
from 16 MB up, where the epochs of its better column take 20 µs and more."""

DROPPED_FROM = 16e6


def main(
    part: PartArgument = "all",
    *,
    repeat: Annotated[int, typer.Option(min=1, help="Solves of each row; seconds: median.")] = 3,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds for each row, instead of its own.")
    ] = None,
    only: Annotated[str, typer.Option(help="Rows that have this text in them.")] = "",
) -> None:
    """Print makespan, bound, gap, who found the plan and seconds of whole solves by ``auto``."""
    settings = Settings(repeat=repeat, time_limit=time_limit, only=only)
    for each in parts_named(part, PARTS):
        show(each(settings))


def all_gathers(settings: Settings) -> Iterator[Table]:
    """Eleven sizes on two, four and two hosts: to be proved within a second, or near within 60."""
    warm_up(Request(cluster="ndv2:hosts=2", size="1MB"))
    rows = settings.chosen(
        Request(
            cluster="ndv2:hosts=2",
            size=row.size,
            goal=Goal(_allowed(row.size, row.slow, row.fast), PROOF_TOLERANCE, 1.0),
            published=row.published,
        )
        for row in ALL_GATHER
    )
    yield filled("all-gather, NDv2 x 2", rows, settings, published=TABLE8)
    proved, near = Goal(gap=PROOF_TOLERANCE, seconds=1.0), Goal(gap=0.02, seconds=60.0)
    for cluster, goal in (
        ("ndv2:hosts=4,copies=true", proved),
        ("dgx-2-te-ccl:copies=true", proved),
        ("ndv2:hosts=4", near),
        ("dgx-2-te-ccl", near),
    ):
        rows = settings.chosen(
            Request(cluster=cluster, size=size, goal=goal, time_limit=LIMIT * 60.0)
            for size in SIZES
        )
        yield filled(f"all-gather, {cluster}", rows, settings)


def all_to_alls(settings: Settings) -> Iterator[Table]:
    """Table 8 within 20 s, and 128 GPUs within 60 s."""
    warm_up(Request(cluster="ndv2:hosts=2", kind="all-to-all", size="1MB", time_limit=20.0))
    rows = settings.chosen(
        Request(
            cluster="ndv2:hosts=2",
            kind="all-to-all",
            size=row.size,
            time_limit=LIMIT * 20.0,
            goal=Goal(makespan=min(row.slow, row.fast), seconds=20.0),
            published=row.published,
        )
        for row in ALL_TO_ALL
    )
    yield filled("all-to-all, NDv2 x 2", rows, settings, published=TABLE8)
    rows = settings.chosen(
        Request(
            cluster="dgx-a100:hosts=16",
            kind="all-to-all",
            size=size,
            time_limit=LIMIT * 60.0,
            goal=Goal(seconds=60.0),
        )
        for size in ("1GB", "1MB")
    )
    yield filled("all-to-all, 128 GPUs on rails", rows, settings)


TACOS = {("ndv2:hosts=2", 1): 43762, ("ndv2:hosts=2", 4): 40981, ("ndv2:hosts=2", 16): 40402} | {
    ("dgx-1v", 1): 7502,
    ("dgx-1v", 6): 5843,
}
"""Cluster and chunks -> µs of the all-gather of 1 GB by TACOS's program, run by us."""


def chunk_counts(settings: Settings) -> Iterator[Table]:
    """More chunks per shard, against the bound that holds for every number of them."""
    for cluster, most in (("ndv2:hosts=2", 40_300.0), ("dgx-1v", math.inf)):
        rows = settings.chosen(
            Request(
                cluster=cluster,
                size="1GB",
                chunks=count,
                options={"effort": "quick"},
                time_limit=30.0,
                published=(str(TACOS.get((cluster, count), "")),),
            )
            for count in COUNTS
        )
        if rows:
            warm_up(rows[0])
            yield _front(cluster, rows, settings, most=most)


def _front(cluster: str, rows: list[Request], settings: Settings, *, most: float) -> Table:
    done = [measured(row, settings) for row in rows]
    found = [each.result for each in done if each.result is not None]
    made = table(
        f"all-gather of 1 GB, {cluster}", ("chunks", *FIGURES, "gap, any count"), ("TACOS µs",)
    )
    if not found:
        return made
    bound = common_bound(found).makespan
    for each in done:
        gap = f"{each.makespan / bound - 1:.2%}"
        made.add_row(str(each.asked.chunks), *figures(each), gap, *each.asked.published)
    best = min(result.makespan for result in found)
    made.caption = f"best {best:.7g} µs; bound for any number of chunks {bound:.7g} µs"
    if most < math.inf:
        made.caption += f"; below {most:g} µs: {said(best < most)}"
    return made


REDUCED = ("dgx-1v", "ndv2:hosts=2", "dgx-2-te-ccl", "amd-te-ccl:hosts=1", "torus")


def reductions(settings: Settings) -> Iterator[Table]:
    """All-reduce is never worse than its two halves one after the other."""
    warm_up(Request(cluster="dgx-1v", kind="all-reduce", size="1MB", time_limit=20.0))
    for cluster in REDUCED:
        made = table(
            f"reductions, {cluster}",
            ("collective", "size", *FIGURES, "reduce-scatter + all-gather µs", "not worse"),
        )
        for row in settings.chosen(
            Request(cluster=cluster, kind="all-reduce", size=size, time_limit=20.0)
            for size in ("1KB", "64KB", "1MB", "1GB")
        ):
            halves = [
                measured(replace(row, kind="reduce-scatter"), settings),
                measured(replace(row, kind="all-gather"), settings),
            ]
            whole = measured(row, settings)
            both = sum(half.makespan for half in halves)
            made.add_row("reduce-scatter", row.size, *figures(halves[0]))
            better = said(whole.makespan <= both * (1 + 1e-9))
            made.add_row("all-reduce", row.size, *figures(whole), f"{both:.7g}", better)
        yield made


def large(settings: Settings) -> Iterator[Table]:
    """64 and 128 GPUs within 30 s, 1,024 within 120 s."""
    warm_up(Request(cluster="ndv2:hosts=2", size="1MB", time_limit=20.0))
    clusters = ("ndv2:hosts=8", "ndv2:hosts=16", "mi250:hosts=4", "mi250:hosts=8")
    for names, seconds in (
        ((*clusters, "torus:shape=8x8"), 30.0),
        (("dgx-a100:hosts=128",), 120.0),
    ):
        rows = settings.chosen(
            Request(cluster=name, size=size, time_limit=LIMIT * seconds, goal=Goal(seconds=seconds))
            for name in names
            for size in ("1GB", "1MB")
        )
        yield filled(f"all-gather, within {seconds:g} s", rows, settings)


COMPARED = (
    Request(cluster="ndv2:hosts=2", size="1MB"),
    Request(cluster="dgx-2-te-ccl", size="256KB"),
    Request(cluster="dgx-1v", size="25KB"),
    Request(cluster="ndv2:hosts=2", kind="all-to-all", size="1MB"),
    Request(cluster="dgx-1v", kind="all-to-all", size="1MB"),
    Request(cluster="amd-te-ccl:hosts=1", kind="reduce-scatter", size="64KB"),
    Request(cluster="torus", kind="all-reduce", size="1MB"),
    Request(cluster="ring", kind="all-reduce", size="1GB"),
    Request(cluster="torus", kind="broadcast", size="1MB", chunks=4),
)


def methods(settings: Settings) -> Iterator[Table]:
    """``auto`` and every single method, each with 20 s."""
    warm_up(replace(COMPARED[1], time_limit=20.0))
    for row in settings.chosen(replace(row, time_limit=20.0) for row in COMPARED):
        problem = row.problem
        names = [each.name for each in available() if each.why_not(problem) is None]
        done = {name: measured(replace(row, formulation=name), settings) for name in names}
        yield _compared(row, done)


def _compared(row: Request, done: dict[str, Measured]) -> Table:
    made = table(f"{row.kind} of {row.size}, {row.cluster}", ("method", *FIGURES, "than auto"))
    auto = done["auto"].makespan
    for name, each in done.items():
        made.add_row(
            name, *figures(each), "" if name == "auto" else f"{each.makespan / auto - 1:+.2%}"
        )
    best = min(each.makespan for name, each in done.items() if name != "auto")
    made.caption = f"auto is not worse than any: {said(auto <= best * (1 + 1e-9))}"
    return made


def _allowed(size: str, slow: float, fast: float) -> float:
    """Return the better finish time in µs of table 8 with the latency that it drops."""
    return min(slow, fast) + (DROPPED if parse_size(size) >= DROPPED_FROM else 0.0)


PARTS: dict[str, Callable[[Settings], Iterator[Table]]] = {
    "all-gather": all_gathers,
    "all-to-all": all_to_alls,
    "chunks": chunk_counts,
    "reductions": reductions,
    "large": large,
    "methods": methods,
}
