"""``topoloom compare``: several methods at several sizes, replayed and held against one bound."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from ccl import text
from ccl.bound import Bound, Cut
from ccl.bound import Path as Way
from ccl.errors import ProblemError
from ccl.serialization.quantity import format_size, parse_size
from ccl.serialization.text import laid_out, write_text
from ccl.topology import Topology
from designer.cli.request import (
    ChunksOption,
    Cluster,
    CollectiveOption,
    JsonOption,
    MemoryOption,
    RootOption,
    ask,
    memory_in,
    open_document,
    positive,
    print_json,
    remark,
    sketch_in,
    writable,
)
from designer.cli.solve import INTERRUPTED, interruptible
from widgets.words import cut_words

if TYPE_CHECKING:
    from formulations.analyses.comparison import Comparison, ComparisonJob, Method

LIMIT = 5.0
"""Seconds for each solve when nothing is said: some methods would go on for hours."""

WIDE = 160
"""Columns for whoever reads a pipe: no cell is broken."""

SizesOption = Annotated[
    str | None,
    typer.Option(
        "--sizes",
        metavar="BYTES[,BYTES...]",
        help="Whole buffers as nccl-tests counts them; by default from 1KB to 1GB.",
        show_default=False,
    ),
]
MethodsOption = Annotated[
    str | None,
    typer.Option(
        "--formulations",
        metavar="NAME[:OPTION=VALUE,...][,NAME...]",
        help="Such as ring,list:passes=40,direct; by default all that take the collective, "
        "constructions first.",
        show_default=False,
    ),
]
LimitOption = Annotated[
    float, typer.Option("--time-limit", metavar="S", help="Seconds for each solve.")
]
FormulasOption = Annotated[
    bool, typer.Option("--formulas", help="Say why replays differ from published formulas.")
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="Keep all rows with their plans as JSON."),
]


def compare(  # noqa: PLR0913  one for each flag
    cluster: Cluster,
    *,
    collective: CollectiveOption = None,
    sizes: SizesOption = None,
    methods: MethodsOption = None,
    time_limit: LimitOption = LIMIT,
    memory: MemoryOption = None,
    chunks: ChunksOption = None,
    root: RootOption = None,
    formulas: FormulasOption = False,
    out: OutOption = None,
    as_json: JsonOption = False,
) -> None:
    """Solve with several methods at several sizes; every plan is verified and replayed alike."""
    from formulations.analyses.comparison import start_comparison  # noqa: PLC0415  it loads all methods

    positive("--time-limit", time_limit, unit="s")
    writable(out)
    opened = open_document(cluster)
    problem = ask(opened, collective=collective, size=None, chunks=chunks, root=root)
    job = start_comparison(
        problem,
        _methods(methods, opened.topology),
        sizes=None if sizes is None else _sizes(sizes),
        time_limit=time_limit,
        memory=memory_in(memory),
    )
    interrupted = _followed(job)
    found = job.comparison()
    if out is not None:
        _keep(found, out)
    if as_json:
        print_json(answer(found))
    else:
        _print(found, formulas=formulas)
    if out is not None:
        remark(f"the comparison is in {out}")
    if interrupted:
        remark(f"interrupted; {len(found.rows)} of {len(job.request.cells)} rows are there")
        raise typer.Exit(INTERRUPTED)


def answer(found: Comparison) -> dict[str, Any]:
    """Return what ``--json`` prints of a comparison."""
    collective = found.problem.collective
    return {
        "topology": found.problem.topology.name,
        "collective": collective.kind,
        "methods": [str(each) for each in found.methods],
        "bounds": [
            {
                "size": size,
                "bound_us": each.makespan,
                "bound_kind": each.kind,
                "reference": each.reference,
            }
            for size, each in zip(found.sizes, found.bounds, strict=True)
        ],
        "rows": found.table(),
        "crossovers": [
            {
                "size": each.size,
                "makespan_us": each.makespan,
                "before": str(each.before),
                "after": str(each.after),
            }
            for each in found.crossovers()
        ],
    }


def bound_words(bound: Bound, topology: Topology) -> str:
    """Say what proves a bound: the cut in words, the way, or the argument."""
    if isinstance(bound.witness, Cut):
        return f"{bound.kind}, {cut_words(bound.witness, topology)}"
    if isinstance(bound.witness, Way):
        return f"{bound.kind}, {' -> '.join(bound.witness.devices)}"
    return f"{bound.kind}, {bound.reference}"


def crossover_words(found: Comparison) -> list[str]:
    """Say who is the fastest where: ``below 210 KB direct, above ring (both take 12 µs)``."""
    crossovers, leaders = found.crossovers(), {str(each or "") for each in found.leaders()}
    if not crossovers and len(leaders) == 1 and len(found.sizes) > 1:
        return [f"{each} is the fastest at every size" for each in leaders if each]
    return [
        f"below {text.size(each.size)} {each.before}, above {each.after} "
        f"(both take {text.duration(each.makespan)})"
        for each in crossovers
    ]


def _methods(given: str | None, topology: Topology) -> tuple[Method, ...] | None:
    from formulations.analyses.comparison import parse_methods  # noqa: PLC0415  as `compare`

    read: dict[str, dict[str, Any]] = {}

    def sketch(path: str) -> dict[str, Any]:
        read[path] = sketch_in(Path(path), topology)
        return read[path]

    methods = None if given is None else parse_methods(given, sketch=sketch)
    for each in methods or ():
        for path, value in read.items():
            if value in each.options.values():
                remark(f"{each} has the sketch {path}")
    return methods


def _sizes(given: str) -> tuple[float, ...]:
    parts = [each for each in given.split(",") if each.strip()]
    if not parts:
        msg = f"--sizes is {given!r}; give sizes joined by commas, such as 16KB,1MB,64MB"
        raise ProblemError(msg)
    return tuple(map(parse_size, parts))


def _followed(job: ComparisonJob) -> bool:
    """Watch a comparison until it ends; return whether Ctrl-C ended it."""
    console = Console(stderr=True)
    columns = (
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with (
        interruptible(job) as interrupted,
        Progress(
            *columns,
            console=console,
            transient=True,
            redirect_stdout=False,
            disable=not console.is_terminal,
        ) as shown,
    ):
        task = shown.add_task("bounds", total=len(job.request.cells))
        for news in job:
            if news.method is None:
                continue
            best = news.progress.incumbent if news.progress else None
            told = f"{news.method} at {text.size(news.size)}   best {text.duration(best)}"
            shown.update(task, completed=news.done, description=told)
    return interrupted.is_set()


def _keep(found: Comparison, path: Path) -> None:
    from formulations.analyses.comparison import comparison_to_json  # noqa: PLC0415  as `compare`

    write_text(path, laid_out(comparison_to_json(found)) + "\n")


def _print(found: Comparison, *, formulas: bool) -> None:
    """Print a block for each size, then who is the fastest where and who has no schedule."""
    problem = found.problem
    for size, bound in zip(found.sizes, found.bounds, strict=True):
        typer.echo(f"{problem.collective.kind} of {text.size(size)} on {problem.topology}")
        rows = [row for row in found.table() if row["size"] == size and row["status"]]
        if rows:
            _print_rows(rows)
        words = bound_words(bound, problem.topology)
        typer.echo(f"no schedule takes less than {bound.makespan:.6g} µs: {words}")
        for row in rows:
            if formulas and row["why"]:
                typer.echo(f"{row['method']}: {row['why']}")
        typer.echo()
    for sentence in (*crossover_words(found), *missing_words(found)):
        typer.echo(sentence)


def _print_rows(rows: list[dict[str, Any]]) -> None:
    """Print a line for each row, units in the heading so that it fits a terminal."""
    heads = ["algbw GB/s", "busbw GB/s", "gap", "solve s", "variables"]
    if any(row["formula"] for row in rows):
        heads.append("formula µs")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("method", no_wrap=True)
    table.add_column("status", overflow="fold")
    for name in ("makespan µs", *heads):
        table.add_column(name, justify="right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in _cells(row)[: 3 + len(heads)]))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDE
    console.print(table)


def _cells(row: dict[str, Any]) -> list[str]:
    other = row["found_by"] != row["method"].partition(":")[0]
    return [
        f"{row['method']} ({row['found_by']})" if other else row["method"],
        str(row["status"]),
        f"{row['makespan_us']:.6g}",
        text.digits(row["algbw_GBps"]),
        text.digits(row["busbw_GBps"]),
        text.share(row["gap"]),
        text.digits(row["solve_s"]),
        text.NONE if row["variables"] is None else f"{row['variables']:,}",
        "" if row["formula_us"] is None else f"{row['formula_us']:.6g}",
    ]


def missing_words(found: Comparison) -> Iterator[str]:
    """Yield who has no schedule at which sizes, and why."""
    why: dict[tuple[str, str], list[float]] = {}
    for row in found.rows:
        if row.result is None:
            why.setdefault((str(row.method), row.why_not), []).append(row.size)
    for (method, reason), sizes in why.items():
        everywhere = len(sizes) == len(found.sizes)
        where = "" if everywhere else f" at {', '.join(map(format_size, sizes))}"
        yield f"{method} has no schedule{where}: {reason}"
