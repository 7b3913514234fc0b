"""``topoloom sweep``: clusters by collectives, sizes and methods, each row kept as it comes."""

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
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from ccl import text
from ccl.result import Status
from designer.cli.compare import WIDE
from designer.cli.request import JsonOption, print_facts, print_json, remark
from designer.cli.solve import INTERRUPTED

if TYPE_CHECKING:
    from formulations.campaigns.sweeps.rows import Row
    from formulations.campaigns.sweeps.running import Progress, Sweep

MOST_LINES = 30
"""Rows of the table of the best, and reasons why there is no plan."""

SpecArgument = Annotated[
    Path, typer.Argument(metavar="SPEC", help="A YAML file; docs/sweeps.md says what is in it.")
]
IntoOption = Annotated[
    Path | None,
    typer.Option(
        "--into",
        metavar="DIR",
        help="Folder of the rows; by default beside SPEC, night.sweep for night.yaml.",
        show_default=False,
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers",
        metavar="N",
        min=1,
        help="How many solve at the same time here; by default one for each core.",
        show_default=False,
    ),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="A Dask scheduler whose workers solve, such as tcp://host:8786.",
        show_default=False,
    ),
]
DryOption = Annotated[bool, typer.Option("--dry-run", help="List the tasks and solve nothing.")]
AgainOption = Annotated[bool, typer.Option("--again", help="Try tasks again that have no plan.")]


def sweep(
    spec: SpecArgument,
    *,
    into: IntoOption = None,
    workers: WorkersOption = None,
    scheduler: SchedulerOption = None,
    dry_run: DryOption = False,
    again: AgainOption = False,
    as_json: JsonOption = False,
) -> None:
    """Solve every combination in SPEC; the same command goes on where it was ended."""
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
        print_json(_answer(found))
    else:
        _print(found)
    if not found.complete:
        remark(
            f"stopped; {len(found.rows):,} of {text.count(found.tasks, 'row')} are in {folder}, "
            "and the same command goes on"
        )
        raise typer.Exit(INTERRUPTED)


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
    console = Console(stderr=True)
    columns = (
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Bar(
        *columns,
        console=console,
        transient=True,
        redirect_stdout=False,
        disable=not console.is_terminal,
    ) as shown:
        bar = shown.add_task("starting", total=None)

        def show(news: Progress) -> None:
            shown.update(bar, total=news.total, completed=news.done, description=_words(news))

        yield show


def _words(news: Progress) -> str:
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
        print_json({"tasks": listed, "left": len(left), "workers": many, **told})
        return
    for each in tasks:
        typer.echo(f"{each.key}  {each}{f': {each.why_not}' if each.why_not else ''}")
    print_facts(
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


def _answer(found: Sweep) -> dict[str, Any]:
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


def _print(found: Sweep) -> None:
    """Print how many rows there are, the best of each question, and why others have no plan."""
    rows = [row for row in found.rows if not row.why_not]
    chosen = best(rows)
    if chosen:
        _print_best(chosen)
    proved = Counter(row.status for row in rows)
    print_facts(
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
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("cluster", "collective", "size", "best"):
        table.add_column(name, overflow="fold")
    for name in ("busbw GB/s", "gap"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("bottleneck", overflow="fold")
    for row in chosen[:MOST_LINES]:
        table.add_row(*map(Text, _cells(row)))
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDE
    console.print(table)
    more = len(chosen) - MOST_LINES
    typer.echo(f"and {more:,} more, in the rows\n" if more > 0 else "")


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.cluster,
        f"{row.collective} at {row.root}" if row.root else row.collective,
        text.size(row.size),
        row.found_by or row.formulation,
        text.digits(row.busbw or 0.0),
        text.share(row.gap),
        row.bottleneck or "",
    )
