"""``topoloom execute``: a program run as its runtime runs it, in many orders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ccl import text
from designer.cli.asked import JsonOption
from designer.cli.programs import any_program_in
from designer.cli.show import print_facts, print_json
from interchange.execution import Execution, Finding
from interchange.execution import execute as execute_program
from interchange.execution.puts import PutExecution, execute_puts
from interchange.programs import Program
from interchange.programs.puts import PutProgram

WRONG = 1


def execute(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="MSCCL XML, an execution plan of MSCCL++, or a plan."),
    ],
    *,
    interleavings: Annotated[
        int, typer.Option("--interleavings", min=1, help="Orders of thread blocks that are tried.")
    ] = 100,
    seed: Annotated[int, typer.Option("--seed", help="Of the orders and of the values.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Run a program on distinct values, find deadlocks and hazards; exit code 1 if it is wrong."""
    program = any_program_in(file)
    execution: Execution | PutExecution
    if isinstance(program, Program):
        execution = execute_program(program, interleavings=interleavings, seed=seed)
        answer, facts = _answer(execution), _facts(execution)
    else:
        execution = execute_puts(program, interleavings=interleavings, seed=seed)
        answer, facts = _puts_answer(execution), _puts_facts(execution)
    if as_json:
        print_json(answer)
    else:
        print_facts(_title(execution), facts)
    if not execution.ok:
        raise typer.Exit(WRONG)


def _title(execution: Execution | PutExecution) -> str:
    program = execution.program
    what = f"{program.collective} of {text.count(len(program.ranks), 'rank')}"
    if execution.ok:
        return f"{what}: right in {text.count(execution.interleavings, 'interleaving')}"
    return f"{what}: wrong, {text.count(len(execution.findings), 'finding')}"


def _facts(execution: Execution) -> list[tuple[str, str]]:
    program, needed = execution.program, execution.slots_needed
    blocks = text.count(sum(len(rank.blocks) for rank in program.ranks), "thread block")
    steps, messages = text.count(program.steps, "step"), text.count(execution.messages, "message")
    deviation = execution.deviation
    facts = [
        ("program", f"{blocks}, {text.count(program.channels, 'channel')}, {program.protocol}"),
        ("done", f"{steps}, {messages}" if execution.ok else ""),
        ("called", " and ".join(execution.manners)),
        ("room", "" if needed is None else f"{text.count(needed, 'message')} to a connection"),
        ("float32", "" if deviation is None else f"sums are {deviation:.2g} off at most"),
        ("took", text.seconds(execution.seconds)),
    ]
    return [
        *((each.kind, each.sentence) for each in execution.findings),
        *facts,
        *(("remark", each.sentence) for each in execution.remarks),
    ]


def _answer(execution: Execution) -> dict[str, Any]:
    program = execution.program
    return {
        "right": execution.ok,
        "collective": program.collective,
        "ranks": len(program.ranks),
        "thread_blocks": sum(len(rank.blocks) for rank in program.ranks),
        "steps": program.steps,
        "messages": execution.messages,
        "called": list(execution.manners),
        "interleavings": execution.interleavings,
        "slots_needed": execution.slots_needed,
        "float32_deviation": execution.deviation,
        "findings": [_told(each) for each in execution.findings],
        "remarks": [_told(each) for each in execution.remarks],
        "seconds": execution.seconds,
    }


def _puts_facts(execution: PutExecution) -> list[tuple[str, str]]:
    program, deviation = execution.program, execution.deviation
    blocks = text.count(sum(len(rank.blocks) for rank in program.ranks), "thread block")
    channels = text.count(sum(len(rank.channels) for rank in program.ranks) // 2, "channel")
    return [
        *((each.kind, each.sentence) for each in execution.findings),
        ("program", f"{blocks}, {channels}, {text.count(program.operations, 'operation')}"),
        ("called", _manner(program) if execution.interleavings else ""),
        ("float32", "" if deviation is None else f"sums are {deviation:.2g} off at most"),
        ("took", text.seconds(execution.seconds)),
        *(("remark", each.sentence) for each in execution.remarks),
    ]


def _puts_answer(execution: PutExecution) -> dict[str, Any]:
    program = execution.program
    return {
        "right": execution.ok,
        "collective": program.collective,
        "ranks": len(program.ranks),
        "thread_blocks": sum(len(rank.blocks) for rank in program.ranks),
        "operations": program.operations,
        "called": [_manner(program)],
        "interleavings": execution.interleavings,
        "float32_deviation": execution.deviation,
        "findings": [_told(each) for each in execution.findings],
        "remarks": [_told(each) for each in execution.remarks],
        "seconds": execution.seconds,
    }


def _manner(program: PutProgram) -> str:
    return "in place" if program.in_place else "out of place"


def _told(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "sentence": finding.sentence,
        "rank": finding.rank,
        "thread_block": finding.block,
        "step": finding.step,
    }
