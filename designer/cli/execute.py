"""``topoloom execute``: a program run as its runtime runs it, in many orders.

What the commands on programs are given: a runtime's file, or a plan that becomes a program.

``topoloom lint``: what a runtime would refuse of a program, limit by limit.

``topoloom run``: a plan executed for real, one process of the operating system per rank.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ccl import text
from ccl.errors import FormatError
from ccl.serialization.quantity import parse_size
from ccl.serialization.text import read_bytes
from designer.cli import request as cli
from interchange.execution import Execution
from interchange.execution import execute as execute_program
from interchange.execution.one_sided import execute_one_sided
from interchange.formats.catalogue import read_content
from interchange.formats.format import Request, replayed
from interchange.formats.runtimes import msccl_xml, mscclpp
from interchange.programs import Program
from interchange.programs.checks import Finding
from interchange.programs.lint import EXECUTORS, lint
from interchange.programs.lowering import lower
from interchange.programs.one_sided import PutProgram
from interchange.running import Ran, run


def program_in(file: Path) -> Program:
    """Return the program in a file or of the plan in it.

    Raises
    ------
    FormatError
        If the file has neither.
    """
    content, name = read_bytes(file), str(file)
    if msccl_xml.READER.recognises(content):
        # As a program alone: what is wrong with it need not be a plan of anything.
        return msccl_xml.program_from_xml(content, name)
    if mscclpp.recognises(content):
        raise FormatError(
            f"{file} is an execution plan of MSCCL++, which `topoloom execute` takes alone"
        )
    imported = read_content(content, Request(name=name))
    if imported.program is not None:
        return imported.program
    if imported.document.plan is None:
        raise FormatError(f"{file} has no program and no plan; give MSCCL XML, a result or a plan")
    problem, plan, _ = replayed(imported.document)
    return lower(problem, plan)


def any_program_in(file: Path) -> Program | PutProgram:
    """Return the program in a file, of puts as well; errors as `program_in`."""
    content = read_bytes(file)
    if mscclpp.recognises(content):
        return mscclpp.one_sided_from_json(content, str(file))
    return program_in(file)


WRONG = 1
"""Exit code where the program is, or a runtime would refuse it."""


def execute(
    file: Path,
    *,
    interleavings: Annotated[int, {"min": 1}] = 100,
    seed: int = 0,
    as_json: bool = False,
) -> None:
    """Run a program on distinct values, find deadlocks and hazards; exit code 1 if it is wrong.

    Parameters
    ----------
    file : FILE
        MSCCL XML, an execution plan of MSCCL++, or a plan.
    interleavings
        Orders of thread blocks that are tried.
    seed
        Of the orders and of the values.
    """
    program = any_program_in(file)
    execution: Execution[Program] | Execution[PutProgram]
    if isinstance(program, Program):
        execution = execute_program(program, interleavings=interleavings, seed=seed)
        answer, facts = _program_answer(execution), _facts(execution)
    else:
        execution = execute_one_sided(program, interleavings=interleavings, seed=seed)
        answer, facts = _puts_answer(execution), _puts_facts(execution)
    if as_json:
        cli.print_json(answer)
    else:
        cli.print_facts(_title(execution), facts)
    if not execution.ok:
        raise typer.Exit(WRONG)


def _title(execution: Execution[Program] | Execution[PutProgram]) -> str:
    program = execution.program
    what = f"{program.collective} of {text.count(len(program.ranks), 'rank')}"
    if execution.ok:
        return f"{what}: right in {text.count(execution.interleavings, 'interleaving')}"
    return f"{what}: wrong, {text.count(len(execution.findings), 'finding')}"


def _facts(execution: Execution[Program]) -> list[tuple[str, str]]:
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


def _answer(
    execution: Execution[Program] | Execution[PutProgram], *, called: list[str], **own: Any
) -> dict[str, Any]:
    """Return what ``--json`` prints of any program, with what only its kind has."""
    program = execution.program
    return {
        "right": execution.ok,
        "collective": program.collective,
        "ranks": len(program.ranks),
        "thread_blocks": sum(len(rank.blocks) for rank in program.ranks),
        **own,
        "called": called,
        "interleavings": execution.interleavings,
        "float32_deviation": execution.deviation,
        "findings": [_told(each) for each in execution.findings],
        "remarks": [_told(each) for each in execution.remarks],
        "seconds": execution.seconds,
    }


def _program_answer(execution: Execution[Program]) -> dict[str, Any]:
    return _answer(
        execution,
        called=list(execution.manners),
        steps=execution.program.steps,
        messages=execution.messages,
        slots_needed=execution.slots_needed,
    )


def _puts_facts(execution: Execution[PutProgram]) -> list[tuple[str, str]]:
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


def _puts_answer(execution: Execution[PutProgram]) -> dict[str, Any]:
    program = execution.program
    return _answer(execution, called=[_manner(program)], operations=program.operations)


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


def lint_(file: Path, *, executor: str | None = None, as_json: bool = False) -> None:
    """Name each limit of a runtime that a program breaks; exit code 1 if one would refuse it.

    Parameters
    ----------
    file : FILE
        MSCCL XML, or a plan, which becomes a program first.
    executor
        msccl, azure, rccl; by default all.
    """
    program = program_in(file)
    names = EXECUTORS if executor is None else (executor,)
    found = {name: lint(program, name) for name in names}  # type: ignore[arg-type]
    if as_json:
        rows = {
            name: [{"refused": each.severe, "sentence": str(each)} for each in complaints]
            for name, complaints in found.items()
        }
        cli.print_json({"program": program.name, "complaints": rows})
    else:
        for name, complaints in found.items():
            cli.print_facts(f"{name}: {_verdict(complaints)}", list(map(_row, complaints)))
    if any(each.severe for complaints in found.values() for each in complaints):
        raise typer.Exit(WRONG)


def _verdict(complaints: tuple[Finding, ...]) -> str:
    refused = sum(each.severe for each in complaints)
    if refused:
        return f"refused, {text.count(refused, 'limit')} broken"
    return "clean" if not complaints else f"taken, {text.count(len(complaints), 'remark')}"


def _row(complaint: Finding) -> tuple[str, str]:
    return ("refused" if complaint.severe else "remark"), complaint.sentence


def run_(
    file: Path,
    *,
    ranks: Literal["processes"] = "processes",
    transport: Literal["sockets", "gloo"] = "sockets",
    dtype: Literal["int32", "float32"] = "int32",
    size: str = "1MB",
    in_place: bool = False,
    seed: int = 0,
    time_limit: Annotated[float, {"min": 1.0}] = 60.0,
    as_json: bool = False,
) -> None:
    """Run it on this machine and compare every element; exit code 1 if one is wrong.

    Parameters
    ----------
    file : FILE
        A plan, a result, or the program of a runtime.
    ranks
        What each rank is.
    transport
        Sockets of ZeroMQ, or gloo of PyTorch.
    dtype
        Type of the elements.
    size : BYTES
        Of a rank's larger buffer.
    in_place
        With input and output in one buffer.
    seed
        Of the values.
    time_limit
        Seconds.
    """
    ran = run(
        program_in(file),
        transport=transport,
        dtype=dtype,
        nbytes=parse_size(size),
        in_place=in_place,
        seed=seed,
        time_limit=time_limit,
    )
    if as_json:
        cli.print_json(_run_told(ran, ranks))
    else:
        _print(ran)
    if not ran.ok:
        raise typer.Exit(WRONG)


def _run_told(ran: Ran, ranks: str) -> dict[str, object]:
    return {
        "right": ran.ok,
        "program": ran.job.program.name,
        "collective": ran.job.program.collective,
        "ranks": len(ran.job.program.ranks),
        "of": ranks,
        "transport": ran.transport,
        "dtype": ran.job.dtype,
        "in_place": ran.job.in_place,
        "elements_per_chunk": ran.job.elements,
        "compared_with_library": ran.compared,
        "largest_deviation": ran.deviation,
        "seconds": ran.seconds,
        "wrong": ran.sentences(),
    }


def _print(ran: Ran) -> None:
    verdict = "every element is right" if ran.ok else "wrong"
    ranks = text.count(len(ran.job.program.ranks), "process", "processes")
    cli.print_facts(
        f"{ran.job.program.collective} by {ranks} over {ran.transport}: {verdict}",
        [
            ("elements", f"{ran.job.dtype}, {ran.job.elements:,} in a chunk"),
            ("buffers", "in place" if ran.job.in_place else "out of place"),
            ("compared", "with gloo's own as well" if ran.compared else "with the definition"),
            ("deviation", f"{ran.deviation:.2g}" if ran.job.dtype == "float32" else ""),
            ("took", f"{ran.seconds:.3g} s, start of the processes left out"),
        ],
    )
    for each in ran.sentences():
        cli.remark(each)
