"""Programs of puts executed: as `execution`, with what one-sided puts can do wrong."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from ccl.errors import ProblemError
from interchange.execution._puts_checks import beyond_limits, mismatched_puts, misplaced_puts
from interchange.execution._puts_machine import CALLER, machine_of_puts
from interchange.execution.execution import CELLS
from interchange.execution.finding import Finding
from interchange.execution.hazards import Hazard, hazards
from interchange.execution.machine import Machine
from interchange.execution.memory import Memory, Promise, promise, wrong_sizes
from interchange.execution.order import finishing_order
from interchange.execution.run import MOST, Run
from interchange.execution.verdict import Verdict
from interchange.programs import Program, RankProgram
from interchange.programs.puts.program import MOVES, PutProgram


@dataclass(frozen=True)
class PutExecution(Verdict[PutProgram]):
    """What came out of executing a program of puts; fields as of `interchange.execution.Execution`.

    Parameters
    ----------
    program
        What was executed.
    findings
        What is wrong with it; none if it is right.
    remarks
        What a user should know of it all the same.
    interleavings
        How many were run to the end.
    deviation
        Largest relative error of its float32 sums; None where it adds nothing up or is wrong.
    seconds
        How long executing it took.
    """

    remarks: tuple[Finding, ...] = ()
    interleavings: int = 0
    deviation: float | None = None
    seconds: float = field(default=0.0, compare=False)


def execute_puts(program: PutProgram, *, interleavings: int = 100, seed: int = 0) -> PutExecution:
    """Execute a program with distinct values and compare them with what its collective promises.

    First its places, channels and semaphores are checked. Then it is run: does it finish, are any
    two accesses to a chunk unordered, is the result right in every one of many orders. Last, two
    calls in a row: a rank that is fast must not put into the memory of one that is still at the
    first.

    Raises
    ------
    ProblemError
        If a setting is out of range or the program's buffers have too many chunks to be kept.
    """
    began = time.perf_counter()
    if interleavings < 1:
        msg = f"{interleavings} interleavings are not run; give 1 or more"
        raise ProblemError(msg)
    sizes = _sizes(program)
    promised = promise(sizes)
    if isinstance(promised, Finding):
        return PutExecution(program, (promised,), seconds=time.perf_counter() - began)
    found = list(islice(_before_running(program, sizes, promised), MOST))
    if found:
        return PutExecution(program, tuple(found), seconds=time.perf_counter() - began)
    _small(program)
    memory = Memory(sizes, promised, in_place=program.in_place)
    run = Run(machine_of_puts(program, memory), memory, promised, slots=None)
    run.execute(interleavings, seed=seed, keep_input=False)
    findings = run.findings or _again(machine_of_puts(program, memory, calls=2))
    remarks = run.remarks
    if program.parts > 1:
        words = (
            f"thread blocks share operations: of each chunk of the file {program.parts} are made"
        )
        remarks = [*remarks, Finding("cut", words)]
    if program.collective == "custom" and not findings:
        words = "a custom collective promises nothing to compare with; its orders agree"
        remarks = [*remarks, Finding("custom", words)]
    return PutExecution(
        program,
        tuple(findings[:MOST]),
        tuple(dict.fromkeys(remarks)),
        interleavings=run.interleavings,
        deviation=None if findings else run.deviation,
        seconds=time.perf_counter() - began,
    )


def _sizes(program: PutProgram) -> Program:
    """Return a program with the buffers and nothing done."""
    ranks = tuple(RankProgram(each.input, each.output, each.scratch, ()) for each in program.ranks)
    return Program(
        program.name,
        program.collective,
        ranks,
        max(max(each.input, each.output) for each in ranks),
        in_place=program.in_place,
        out_of_place=not program.in_place,
        root=program.root,
    )


def _before_running(program: PutProgram, sizes: Program, promised: Promise) -> Iterator[Finding]:
    """Yield what is wrong before anything runs; connections only if every place is right."""
    for rank, own in enumerate(program.ranks):
        if not (own.input and own.output):
            words = f"rank {rank} has {own.input} chunks of input and {own.output} of output"
            yield Finding("size", f"{words}; the executor divides by both", rank)
    placed = True
    for each in (*wrong_sizes(sizes, promised), *misplaced_puts(program)):
        placed = False
        yield each
    if placed:
        yield from mismatched_puts(program)
    yield from beyond_limits(program)


def _small(program: PutProgram) -> None:
    """Refuse what would not fit into memory.

    Raises
    ------
    ProblemError
        If the buffers and what is moved have more than `CELLS` chunks together.
    """
    kept = sum(each.input + each.output + each.scratch for each in program.ranks)
    moved = sum(
        cells.count for _, _, _, op in program.ops() if op.name in MOVES for cells in op.dst
    )
    if kept + moved > CELLS:
        msg = (
            f"program {program.name} has {kept:,} chunks in its buffers and moves {moved:,}; "
            f"at most {CELLS:,} in all are executed, so cut its buffers into fewer"
        )
        raise ProblemError(msg)


def _again(machine: Machine) -> list[Finding]:
    """Return where a second call meets the first one."""
    order = finishing_order(machine, slots=None)
    return [_told(machine, each) for each in hazards(machine, order)]


def _told(machine: Machine, hazard: Hazard) -> Finding:
    does = {True: "writes", False: "reads"}
    cell = machine.cell_name(hazard.cell)
    words = (
        f"called twice, {_who(machine, hazard.after)} {does[hazard.after_writes]} {cell} and "
        f"{_who(machine, hazard.before)} {does[hazard.before_writes]} it, and nothing says which "
        "comes first"
    )
    return Finding("again", words, *machine.where(hazard.after))


def _who(machine: Machine, action: int) -> str:
    rank, block, _ = machine.where(action)
    return f"the caller of rank {rank}" if block == CALLER else machine.place(action)
