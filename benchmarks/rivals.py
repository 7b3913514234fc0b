"""Methods of the field that make trees or match links, on equal footing: rates and replays.

``rates``
    ForestColl, Blink, Blink with switches removed, BFB and TACOS on five clusters: what each plan
    moves in its steady state (a schedule has none), its replay at 1 GB, and the bound.
``tacos``
    All-gathers of 1 GB beside what TACOS's program found, in as many trials.

ForestColl's paper has its all-reduce of 1 GB on two MI250 16 % above Blink with switches removed,
measured on the hardware; here are the steady states and the replays of both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from benchmarks.measuring import Measured, Request, Settings, measured, table, warm_up
from ccl.collective import CollectiveKind

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

PUBLISHED = (
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


def main(
    part: Annotated[str, typer.Argument(help="One part, or all of them.")] = "all",
    *,
    time_limit: Annotated[float, typer.Option(help="Seconds for each solve.")] = 20.0,
    only: Annotated[str, typer.Option(help="Rows that have this text in them.")] = "",
) -> None:
    """Print rates and replays of ForestColl, Blink, BFB and TACOS."""
    if part != "all" and part not in PARTS:
        msg = f"there is no part {part!r}; choose all or one of {', '.join(PARTS)}"
        raise typer.BadParameter(msg)
    settings = Settings(repeat=1, time_limit=time_limit, only=only)
    console = Console(width=160)
    for name in PARTS if part == "all" else (part,):
        for each in PARTS[name](settings):
            if each.row_count:
                console.print(each)


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
    for cluster, chunks, trials, published, seconds in PUBLISHED:
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
