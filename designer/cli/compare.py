"""Many solves held against each other: ``topoloom compare`` and ``topoloom sweep``.

Several methods at several sizes, replayed and held against one bound; and clusters by collectives,
sizes and methods, each row kept as it comes.
"""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ccl import text
from ccl.errors import ProblemError
from ccl.result import Status
from ccl.serialization.quantity import parse_size
from ccl.serialization.text import laid_out, write_text
from ccl.topology import Topology
from designer.cli import request as cli
from designer.cli.solve import interruptible
from widgets.words import bound_words, fastest_words, missing_words

if TYPE_CHECKING:
    from formulations.analyses.comparison import Comparison, ComparisonJob, Method
    from formulations.campaigns.sweeps.rows import Row
    from formulations.campaigns.sweeps.running import Progress as News
    from formulations.campaigns.sweeps.running import Sweep

LIMIT = 5.0
"""Seconds for each solve when nothing is said: some methods would go on for hours."""


def compare(  # noqa: PLR0913  one for each flag
    cluster: str,
    *,
    collective: str | None = None,
    sizes: str | None = None,
    methods: str | None = None,
    time_limit: float = LIMIT,
    memory: str | None = None,
    chunks: int | None = None,
    root: int | None = None,
    formulas: bool = False,
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    """Solve with several methods at several sizes; every plan is verified and replayed alike.

    Parameters
    ----------
    sizes : BYTES[,BYTES...]
        Whole buffers as nccl-tests counts them; by default from 1KB to 1GB.
    methods : --formulations NAME[:OPTION=VALUE,...][,NAME...]
        Such as ring,list:passes=40,direct; by default all that take the collective,
        constructions first.
    time_limit : S
        Seconds for each solve.
    formulas
        Say why replays differ from published formulas.
    out : FILE
        Keep all rows with their plans as JSON.
    """
    from formulations.analyses.comparison import start_comparison  # noqa: PLC0415  it loads all methods

    cli.positive("--time-limit", time_limit, unit="s")
    cli.writable(out)
    opened = cli.open_document(cluster)
    problem = cli.ask(opened, collective=collective, chunks=chunks, root=root)
    job = start_comparison(
        problem,
        _methods(methods, opened.topology),
        sizes=None if sizes is None else _sizes(sizes),
        time_limit=time_limit,
        memory=cli.memory_in(memory),
    )
    interrupted = _followed(job)
    found = job.comparison()
    if out is not None:
        _keep(found, out)
    if as_json:
        cli.print_json(answer(found))
    else:
        _print(found, formulas=formulas)
    if out is not None:
        cli.remark(f"the comparison is in {out}")
    if interrupted:
        cli.remark(f"interrupted; {len(found.rows)} of {len(job.request.cells)} rows are there")
        raise typer.Exit(cli.INTERRUPTED)


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


def _methods(given: str | None, topology: Topology) -> tuple[Method, ...] | None:
    from formulations.analyses.comparison import parse_methods  # noqa: PLC0415  as `compare`

    read: dict[str, dict[str, Any]] = {}

    def sketch(path: str) -> dict[str, Any]:
        read[path] = cli.sketch_in(Path(path), topology)
        return read[path]

    methods = None if given is None else parse_methods(given, sketch=sketch)
    for each in methods or ():
        for path, value in read.items():
            if value in each.options.values():
                cli.remark(f"{each} has the sketch {path}")
    return methods


def _sizes(given: str) -> tuple[float, ...]:
    parts = [each for each in given.split(",") if each.strip()]
    if not parts:
        raise ProblemError(
            f"--sizes is {given!r}; give sizes joined by commas, such as 16KB,1MB,64MB"
        )
    return tuple(map(parse_size, parts))


def _followed(job: ComparisonJob) -> bool:
    """Watch a comparison until it ends; return whether Ctrl-C ended it."""
    with interruptible(job) as interrupted, _bar(width=20) as shown:
        task = shown.add_task("bounds", total=len(job.request.cells))
        for news in job:
            if news.method is None:
                continue
            best = news.progress.incumbent if news.progress else None
            told = f"{news.method} at {text.size(news.size)}   best {text.duration(best)}"
            shown.update(task, completed=news.done, description=told)
    return interrupted.is_set()


def _bar(*, width: int) -> Progress:
    """Return a bar that shows on a terminal how many are done."""
    console = Console(stderr=True)
    return Progress(
        BarColumn(bar_width=width),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=console,
        transient=True,
        redirect_stdout=False,
        disable=not console.is_terminal,
    )


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
        typer.echo(bound_words(bound, problem.topology, exact=True))
        for row in rows:
            if formulas and row["why"]:
                typer.echo(f"{row['method']}: {row['why']}")
        typer.echo()
    for sentence in (*fastest_words(found), *missing_words(found)):
        typer.echo(sentence)


def _print_rows(rows: list[dict[str, Any]]) -> None:
    """Print a line for each row, units in the heading so that it fits a terminal."""
    heads = ["algbw GB/s", "busbw GB/s", "gap", "solve s", "variables"]
    if any(row["formula"] for row in rows):
        heads.append("formula µs")
    cells = [_cells(row)[: 3 + len(heads)] for row in rows]
    cli.print_table(
        ("method", "status", "makespan µs", *heads), cells, right=range(2, 3 + len(heads))
    )


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


MOST_LINES = 30
"""Rows of the table of the best, and reasons why there is no plan."""


def sweep(
    spec: Path,
    *,
    into: Path | None = None,
    workers: Annotated[int | None, {"min": 1}] = None,
    scheduler: str | None = None,
    dry_run: bool = False,
    again: bool = False,
    as_json: bool = False,
) -> None:
    """Solve every combination in SPEC; the same command goes on where it was ended.

    Parameters
    ----------
    spec : SPEC
        A YAML file; docs/sweeps.md says what is in it.
    into : DIR
        Folder of the rows; by default beside SPEC, night.sweep for night.yaml.
    workers : N
        How many solve at the same time here; by default one for each core.
    scheduler : ADDRESS
        A Dask scheduler whose workers solve, such as tcp://host:8786.
    dry_run
        List the tasks and solve nothing.
    again
        Try tasks again that have no plan.
    """
    import formulations  # noqa: PLC0415  it loads all methods
    from formulations.campaigns.sweeps.running import folder_of  # noqa: PLC0415  as above

    folder = folder_of(spec) if into is None else into
    if dry_run:
        _list(spec, folder, workers=workers, as_json=as_json)
        return
    with _stoppable() as stop, _shown() as show:
        found = formulations.sweep(
            spec, scheduler, into=folder, workers=workers, again=again, progress=show, stop=stop
        )
    if as_json:
        cli.print_json(_sweep_answer(found))
    else:
        _print_sweep(found)
    if not found.complete:
        cli.remark(
            f"stopped; {len(found.rows):,} of {text.count(found.tasks, 'row')} are in {folder}, "
            "and the same command goes on"
        )
        raise typer.Exit(cli.INTERRUPTED)


@contextmanager
def _stoppable() -> Iterator[threading.Event]:
    """Let Ctrl-C, and whoever ends this program politely, stop the sweep once its rows are safe."""
    stop = threading.Event()
    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(each, lambda *_: stop.set()) for each in signals]
    try:
        yield stop
    finally:
        for each, handler in zip(signals, before, strict=True):
            signal.signal(each, handler)


@contextmanager
def _shown() -> Iterator[Any]:
    """Give what shows on a terminal how the sweep stands."""
    with _bar(width=30) as shown:
        bar = shown.add_task("starting", total=None)

        def show(news: News) -> None:
            shown.update(
                bar, total=news.total, completed=news.done, description=_progress_words(news)
            )

        yield show


def _progress_words(news: News) -> str:
    if news.left is None:
        return f"{news.stored:,} were there" if news.stored else "starting"
    failed = f"   {news.planless:,} without a plan" if news.planless else ""
    return f"{news.rate:.2g} a second   {text.seconds(news.left)} left{failed}"


def _list(spec: Path, folder: Path, *, workers: int | None, as_json: bool) -> None:
    """List the tasks, and tell how long they may take."""
    from formulations.campaigns.sweeps.pool import cores  # noqa: PLC0415  it loads Dask
    from formulations.campaigns.sweeps.rows import at_most, estimated  # noqa: PLC0415  as above
    from formulations.campaigns.sweeps.spec import read_spec  # noqa: PLC0415  as above
    from formulations.campaigns.sweeps.store import is_sweep, read_rows  # noqa: PLC0415  as above
    from formulations.campaigns.sweeps.tasks import tasks_of  # noqa: PLC0415  as above

    tasks = tasks_of(read_spec(spec))
    rows = read_rows(folder) if is_sweep(folder) else ()
    there = {row.task for row in rows}
    left = [each for each in tasks if each.key not in there and not each.why_not]
    many = workers or cores()
    likely, most = estimated(left, rows, many), at_most(left, many)
    if as_json:
        listed = [{"task": each.key, "asks": str(each), "why_not": each.why_not} for each in tasks]
        told = {"likely_s": likely, "at_most_s": most}
        cli.print_json({"tasks": listed, "left": len(left), "workers": many, **told})
        return
    for each in tasks:
        typer.echo(f"{each.key}  {each}{f': {each.why_not}' if each.why_not else ''}")
    cli.print_facts(
        text.count(len(tasks), "task"),
        [
            ("with rows", f"{len(there):,}" if there else ""),
            ("without a cluster", _many(sum(bool(each.why_not) for each in tasks))),
            ("to solve", f"{len(left):,} by {text.count(many, 'worker')}"),
            ("likely", "" if likely is None else text.seconds(likely)),
            ("limits allow", "" if most is None else text.seconds(most)),
        ],
    )


def _many(number: int) -> str:
    return f"{number:,}" if number else ""


def _sweep_answer(found: Sweep) -> dict[str, Any]:
    return {
        "folder": str(found.folder),
        "tasks": found.tasks,
        "rows": len(found.rows),
        "with_plan": sum(not row.why_not for row in found.rows),
        "best": [
            {
                "task": row.task,
                "cluster": row.cluster,
                "collective": row.collective,
                "size": row.size,
                "formulation": row.formulation,
                "busbw_GBps": row.busbw,
                "gap": row.gap,
            }
            for row in best(found.rows)
        ],
    }


def best(rows: Sequence[Row]) -> list[Row]:
    """Return the row of the shortest plan for each cluster, collective, root and size."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        key = row.cluster, row.collective, row.root, row.size
        if row.makespan is not None:
            kept = found.get(key)
            if kept is None or row.makespan < (kept.makespan or 0.0):
                found[key] = row
    return list(found.values())


def _print_sweep(found: Sweep) -> None:
    """Print how many rows there are, the best of each question, and why others have no plan."""
    rows = [row for row in found.rows if not row.why_not]
    chosen = best(rows)
    if chosen:
        _print_best(chosen)
    proved = Counter(row.status for row in rows)
    cli.print_facts(
        f"{len(found.rows):,} rows of {text.count(found.tasks, 'task')} in {found.folder}",
        [
            ("with a plan", f"{len(rows):,}"),
            ("of these optimal", f"{proved[Status.OPTIMAL]:,}"),
            ("for whole chunks", _many(proved[Status.WHOLE])),
            ("without", _many(len(found.rows) - len(rows))),
        ],
    )
    why = Counter(row.why_not for row in found.rows if row.why_not)
    for reason, many in why.most_common(MOST_LINES):
        typer.echo(f"{many:,} x {reason}")
    if len(why) > MOST_LINES:
        typer.echo(f"and {len(why) - MOST_LINES:,} other reasons")


def _print_best(chosen: Sequence[Row]) -> None:
    heads = ("cluster", "collective", "size", "best", "busbw GB/s", "gap", "bottleneck")
    cli.print_table(heads, map(_sweep_cells, chosen[:MOST_LINES]), right=(4, 5), whole=(4, 5))
    more = len(chosen) - MOST_LINES
    typer.echo(f"and {more:,} more, in the rows\n" if more > 0 else "")


def _sweep_cells(row: Row) -> tuple[str, ...]:
    return (
        row.cluster,
        f"{row.collective} at {row.root}" if row.root else row.collective,
        text.size(row.size),
        row.found_by or row.formulation,
        text.digits(row.busbw or 0.0),
        text.share(row.gap),
        row.bottleneck or "",
    )
