"""What commands print: tables for people, JSON for programs, progress on a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from ccl.bound import Bound, Cut
from ccl.formats.text import write_text
from ccl.result import Result

MOST_NAMES = 12
"""Devices of a cut that are listed."""


def say_json(value: Mapping[str, Any] | list[Any]) -> None:
    """Print JSON and nothing else."""
    typer.echo(json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False))


def say_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Print what is called what, a row each."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    console().print(table)


def console(*, stderr: bool = False) -> Console:
    """Return a console that prints names as they are."""
    return Console(stderr=stderr, markup=False, highlight=False, emoji=False)


def hand_over(text: str, out: Path | None, *, what: str) -> None:
    """Write a text to a file and say so, or print it."""
    if out is None:
        typer.echo(text, nl=not text.endswith("\n"))
    else:
        write_text(out, text)
        typer.echo(f"wrote {what} to {out}", err=True)


def result_json(result: Result) -> dict[str, Any]:
    """Return what ``solve --json`` prints."""
    size = result.size
    return {
        "formulation": result.formulation,
        "topology": result.problem.topology.name,
        "collective": result.problem.collective.kind,
        "size_bytes": result.problem.collective.size,
        "status": result.status.value,
        "stop": result.stop.value,
        "makespan_us": result.makespan,
        "algbw_GBps": result.algbw,
        "busbw_GBps": result.busbw,
        "bound_us": result.bound.makespan,
        "bound_kind": result.bound.kind,
        "gap": result.gap,
        "solve_s": result.solve_time,
        "epochs": result.epochs,
        "variables": None if size is None else size.variables,
        "constraints": None if size is None else size.constraints,
        "options": dict(result.options),
        "log": list(result.log),
    }


def result_rows(result: Result) -> list[tuple[str, str]]:
    """Return what ``solve`` prints for people."""
    size = result.size
    rows = [
        ("problem", f"{result.problem.collective.kind} on {result.problem.topology}"),
        ("formulation", result.formulation),
        ("makespan", f"{result.makespan:.6g} µs"),
        ("bound", f"{result.bound.makespan:.6g} µs ({result.bound.kind})"),
        ("gap", f"{result.gap:.3%} ({result.status.value}: {result.stop.value})"),
        ("algbw", f"{result.algbw:.6g} GB/s"),
        ("busbw", f"{result.busbw:.6g} GB/s"),
        ("solve time", f"{result.solve_time:.3g} s"),
    ]
    if result.epochs is not None:
        rows.append(("epochs", f"{result.epochs}"))
    if size is not None:
        rows.append(("model", f"{size.variables:,} variables, {size.constraints:,} constraints"))
    return rows + [("" if number else "log", line) for number, line in enumerate(result.log)]


def cut_json(bounds: Iterable[Bound]) -> dict[str, Any] | None:
    """Return the cut that proves most, or None where no bound rests on one."""
    bound = _first_cut(bounds)
    if bound is None or not isinstance(bound.witness, Cut):
        return None
    cut = bound.witness
    return {
        "inside": list(cut.inside),
        "links": [list(ends) for ends in cut.links],
        "bandwidth_GBps": cut.bandwidth,
        "bound_us": bound.makespan,
    }


def cut_rows(bounds: Iterable[Bound]) -> list[tuple[str, str]]:
    """Say which cut proves most."""
    bound = _first_cut(bounds)
    if bound is None or not isinstance(bound.witness, Cut):
        return []
    cut = bound.witness
    names = ", ".join(cut.inside[:MOST_NAMES])
    more = len(cut.inside) - MOST_NAMES
    if more > 0:
        names += f" and {more} more"
    return [
        ("cut", f"{cut.bandwidth:.6g} GB/s out of {names}"),
        ("proves", f"{bound.makespan:.6g} µs"),
    ]


def _first_cut(bounds: Iterable[Bound]) -> Bound | None:
    return next((each for each in bounds if isinstance(each.witness, Cut)), None)
