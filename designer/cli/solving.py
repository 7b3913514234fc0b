"""``topoloom solve``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ccl.errors import SolveError
from ccl.formats.documents import document, write_document
from ccl.problem import Problem
from ccl.result import Result, Stop
from designer.cli.command import taken
from designer.cli.inputs import (
    AsJson,
    Asked,
    Chunks,
    Cluster,
    Collective,
    Out,
    Root,
    Size,
    check_number,
    check_out,
    open_any,
    problem_of,
)
from designer.cli.output import console, result_json, result_rows, say_json, say_rows
from formulations import DEFAULT, start

if TYPE_CHECKING:
    from formulations.jobs import SolveJob

FormulationName = Annotated[
    str, typer.Option("--formulation", "-f", help="How to solve it.", metavar="NAME")
]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", help="Seconds; the best plan so far is kept.")
]
Gap = Annotated[
    float | None,
    typer.Option("--gap", help="Share above the bound that is good enough, such as 0.05."),
]


def solve(
    context: typer.Context,
    cluster: Cluster,
    *,
    collective: Collective = None,
    size: Size = None,
    chunks: Chunks = 1,
    root: Root = 0,
    formulation: FormulationName = DEFAULT,
    time_limit: TimeLimit = None,
    gap: Gap = None,
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Find a schedule, verified, with a lower bound beside it.

    Ctrl-C keeps the best schedule found so far. --out keeps the result.
    """
    check_number("--time-limit", time_limit, above=0, unit=" s")
    check_number("--gap", gap, above=0, unit="")
    check_out(out)
    opened = open_any(cluster)
    asked = Asked(collective=collective, size=size, chunks=chunks, root=root)
    result = _solved(
        problem_of(opened, asked),
        formulation,
        options=taken(context),
        time_limit=time_limit,
        gap=gap,
    )
    if as_json:
        say_json(result_json(result))
    else:
        say_rows(result_rows(result))
    if out is not None:
        write_document(out, document(result, positions=opened.positions))
        typer.echo(f"wrote the result to {out}", err=True)


def _solved(problem: Problem, formulation: str, **settings: Any) -> Result:
    job = start(problem, formulation, **settings)
    try:
        with _shown(problem) as show:
            for news in job:
                show(news.incumbent, news.bound, news.message)
    except KeyboardInterrupt:
        return _kept(job)
    finally:
        job.cancel()
    return job.result()


def _kept(job: SolveJob) -> Result:
    """Return the best result of a job that the user interrupts, and say so."""
    job.cancel()
    for _ in job:  # what it wrote before it ended
        pass
    if job.best is None:
        msg = "the solve was cancelled before the first schedule was found"
        raise SolveError(msg)
    typer.echo("topoloom: cancelled; the best schedule so far is kept", err=True)
    return replace(job.best, stop=Stop.CANCELLED)


@contextmanager
def _shown(problem: Problem) -> Iterator[Any]:
    """Show on a terminal how a solve stands; elsewhere nothing."""
    shown = console(stderr=True)
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=shown, transient=True, disable=not shown.is_terminal) as bar:
        task = bar.add_task(f"{problem.collective.kind} on {problem.topology}", total=None)

        def show(incumbent: float | None, bound: float | None, message: str) -> None:
            best = "no schedule yet" if incumbent is None else f"best {incumbent:.6g} µs"
            least = "" if bound is None else f", bound {bound:.6g} µs"
            bar.update(task, description=f"{best}{least} · {message}")

        yield show
