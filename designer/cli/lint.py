"""``topoloom lint``: what a runtime would refuse of a program, limit by limit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ccl import text
from designer.cli.asked import JsonOption
from designer.cli.programs import program_in
from designer.cli.show import print_facts, print_json
from interchange.programs.lint import EXECUTORS, Complaint, lint

BROKEN = 1


def lint_(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="MSCCL XML, or a plan, which becomes a program first."),
    ],
    executor: Annotated[
        str | None,
        typer.Option(
            "--executor",
            help=f"{', '.join(EXECUTORS)}; by default all.",
            show_default=False,
        ),
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Name each limit of a runtime that a program breaks; exit code 1 if one would refuse it."""
    program = program_in(file)
    names = EXECUTORS if executor is None else (executor,)
    found = {name: lint(program, name) for name in names}  # type: ignore[arg-type]
    if as_json:
        rows = {
            name: [{"refused": each.severe, "sentence": str(each)} for each in complaints]
            for name, complaints in found.items()
        }
        print_json({"program": program.name, "complaints": rows})
    else:
        for name, complaints in found.items():
            print_facts(f"{name}: {_verdict(complaints)}", list(map(_row, complaints)))
    if any(each.severe for complaints in found.values() for each in complaints):
        raise typer.Exit(BROKEN)


def _verdict(complaints: tuple[Complaint, ...]) -> str:
    refused = sum(each.severe for each in complaints)
    if refused:
        return f"refused, {text.count(refused, 'limit')} broken"
    return "clean" if not complaints else f"taken, {text.count(len(complaints), 'remark')}"


def _row(complaint: Complaint) -> tuple[str, str]:
    return ("refused" if complaint.severe else "remark"), str(complaint)
