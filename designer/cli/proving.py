"""``topoloom bound`` and ``topoloom verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ccl import metrics
from ccl.errors import FormatError, ScheduleError
from ccl.formats.documents import Document, read_document
from ccl.problem import Problem
from ccl.result import Plan
from ccl.simulate import simulate
from ccl.verify import verify as verify_plan
from designer.cli.inputs import (
    AsJson,
    Asked,
    Chunks,
    Cluster,
    Collective,
    Root,
    Size,
    open_any,
    problem_of,
)
from designer.cli.output import cut_json, cut_rows, say_json, say_rows

REFUSED = 1

WholeChunks = Annotated[
    bool, typer.Option("--whole-chunks", help="Prove it only for plans that never split a chunk.")
]
PlanFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="A result or a plan, as solve and export write it.")
]
ProblemFile = Annotated[
    Path | None, typer.Option("--problem", help="The problem that it must answer.", metavar="FILE")
]


def bound(
    cluster: Cluster,
    *,
    collective: Collective = None,
    size: Size = None,
    chunks: Chunks = 1,
    root: Root = 0,
    whole_chunks: WholeChunks = False,
    as_json: AsJson = False,
) -> None:
    """Prove how fast no plan can be beaten, and show the cut that proves it."""
    from formulations.bounds import lower_bounds  # noqa: PLC0415  it loads SciPy

    asked = Asked(collective=collective, size=size, chunks=chunks, root=root)
    problem = problem_of(open_any(cluster), asked)
    bounds = lower_bounds(problem, whole_chunks=whole_chunks)
    best = bounds[0]
    algbw = metrics.algbw(problem.collective, best.makespan)
    busbw = metrics.busbw(problem.collective, best.makespan)
    if as_json:
        say_json(
            {
                "topology": problem.topology.name,
                "collective": problem.collective.kind,
                "size_bytes": problem.collective.size,
                "bound_us": best.makespan,
                "bound_kind": best.kind,
                "reference": best.reference,
                "algbw_GBps": algbw,
                "busbw_GBps": busbw,
                "cut": cut_json(bounds),
            }
        )
        return
    say_rows(
        [
            ("problem", f"{problem.collective.kind} on {problem.topology}"),
            ("bound", f"{best.makespan:.6g} µs ({best.kind}: {best.reference})"),
            ("algbw", f"{algbw:.6g} GB/s at most"),
            ("busbw", f"{busbw:.6g} GB/s at most"),
            *cut_rows(bounds),
        ]
    )


def verify(file: PlanFile, *, problem: ProblemFile = None, as_json: AsJson = False) -> None:
    """Verify a plan against its problem and replay it; exit code 1 if it breaks a rule."""
    try:
        told = _replayed(*_plan_and_problem(file, problem))
    except ScheduleError as error:
        if as_json:
            refusal = {"rule": str(error), "where": error.where, "time_us": error.time}
            say_json({"verified": False, **refusal, "epoch": error.epoch})
        else:
            typer.echo(f"refused: {error}", err=True)
        raise typer.Exit(REFUSED) from None
    if as_json:
        say_json({"verified": True, **told})
    else:
        say_rows(
            [
                ("verified", f"{told['collective']} on {told['topology']}"),
                ("makespan", f"{told['makespan_us']:.6g} µs"),
                ("algbw", f"{told['algbw_GBps']:.6g} GB/s"),
                ("busbw", f"{told['busbw_GBps']:.6g} GB/s"),
            ]
        )


def _plan_and_problem(file: Path, problem: Path | None) -> tuple[Plan, Problem]:
    found = read_document(file)
    if found.plan is None or found.problem is None:
        msg = f"{file} holds a {found.kind} and no plan; give a result or a plan"
        raise FormatError(msg)
    return found.plan, found.problem if problem is None else _problem(read_document(problem))


def _problem(found: Document) -> Problem:
    if found.problem is None:
        msg = f"--problem names a file with a {found.kind} and no problem; give a problem"
        raise FormatError(msg)
    return found.problem


def _replayed(plan: Plan, problem: Problem) -> dict[str, Any]:
    verify_plan(problem, plan)
    makespan = simulate(problem, plan).makespan
    return {
        "topology": problem.topology.name,
        "collective": problem.collective.kind,
        "size_bytes": problem.collective.size,
        "makespan_us": makespan,
        "algbw_GBps": metrics.algbw(problem.collective, makespan),
        "busbw_GBps": metrics.busbw(problem.collective, makespan),
    }
