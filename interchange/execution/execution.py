"""Whether a program gives the right bytes: checked, ordered, run in many orders, compared."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ccl.errors import ProblemError
from interchange.execution.blocks import machine_of
from interchange.execution.checks import mismatched, misplaced
from interchange.execution.finding import Finding
from interchange.execution.memory import Memory, Promise, promise, wrong_sizes
from interchange.execution.room import SLOTS, full_chunks, slots_needed
from interchange.execution.run import MOST, Run
from interchange.execution.verdict import Verdict
from interchange.programs import Program
from interchange.programs.program import RECEIVES

CELLS = 8_000_000
"""Chunks of all buffers and messages that are kept in memory, 32 bytes each."""


@dataclass(frozen=True)
class Execution(Verdict[Program]):
    """What came out of executing a program.

    Parameters
    ----------
    program
        What was executed.
    findings
        What is wrong with it, at most `MOST`; none if it is right.
    remarks
        What a user should know of it all the same.
    interleavings
        How many were run to the end, in place and out of place together.
    manners
        ``in place``, ``out of place`` as far as it was executed so.
    messages
        How many the program sends.
    slots_needed
        Messages that a connection must hold for it to finish; None if it does not.
    deviation
        Largest relative error of its float32 sums of numbers from 1 to 2; None where it adds
        nothing up or is wrong.
    seconds
        How long executing it took.
    """

    remarks: tuple[Finding, ...] = ()
    interleavings: int = 0
    manners: tuple[str, ...] = ()
    messages: int = 0
    slots_needed: int | None = None
    deviation: float | None = None
    seconds: float = field(default=0.0, compare=False)


def execute(
    program: Program,
    *,
    interleavings: int = 100,
    seed: int = 0,
    slots: int | None = None,
    keep_input: bool = False,
) -> Execution:
    """Execute a program with distinct values and compare them with what its collective promises.

    First its places, waits and connections are checked. Then it is run in place and out of place,
    as far as it may be called so: does it finish, are any two accesses to a chunk unordered, and
    is the result right in every one of many orders of its thread blocks. What does not pass the
    checks or does not finish is not run, and what is wrong out of place is not tried in place.

    Parameters
    ----------
    program
        What is executed.
    interleavings
        Orders that are tried in place and out of place each.
    seed
        Of the orders and of the values.
    slots
        Messages that a connection holds, at least 1; None for what it holds of the program's
        protocol (`interchange.execution.room`).
    keep_input
        Whether writing the input of an out-of-place call is wrong; else it is a remark.

    Raises
    ------
    ProblemError
        If a setting is out of range or the program's buffers have too many chunks to be kept.
    """
    began = time.perf_counter()
    slots = SLOTS[program.protocol] if slots is None else slots
    if interleavings < 1 or slots < 1:
        msg = f"{interleavings} interleavings with {slots} slots are not run; give 1 or more each"
        raise ProblemError(msg)
    promised = promise(program)
    if isinstance(promised, Finding):
        return _wrong(program, [promised], began)
    found = list(islice(_before_running(program, promised), MOST))
    if found:
        return _wrong(program, found, began)
    _small(program, promised)
    done: list[Run] = []
    for in_place in (False, True):
        if _called(program, in_place=in_place) and not any(run.findings for run in done):
            memory = Memory(program, promised, in_place=in_place)
            run = Run(machine_of(program, memory), memory, promised, slots=slots)
            run.execute(interleavings, seed=seed, keep_input=keep_input)
            done.append(run)
    return _together(program, done, slots, began)


def _wrong(program: Program, findings: Sequence[Finding], began: float) -> Execution:
    return Execution(program, tuple(findings), seconds=time.perf_counter() - began)


def _called(program: Program, *, in_place: bool) -> bool:
    return program.in_place if in_place else program.out_of_place


def _before_running(program: Program, promised: Promise) -> Iterator[Finding]:
    """Yield what is wrong before anything runs; connections only if every step is in place."""
    if not program.in_place and not program.out_of_place:
        yield Finding("call", "it may be called neither in place nor out of place; allow one")
    placed = True
    for each in (*wrong_sizes(program, promised), *misplaced(program)):
        placed = False
        yield each
    if placed:
        yield from mismatched(program)


def _small(program: Program, promised: Promise) -> None:
    """Refuse what would not fit into memory.

    Raises
    ------
    ProblemError
        If the buffers and what steps move have more than `CELLS` chunks together.
    """
    kept = sum(
        max(each.input, promised.input) + max(each.output, promised.output) + each.scratch
        for each in program.ranks
    )
    steps = (step for _, _, block in program.blocks() for step in block.steps)
    moved = sum(step.count for step in steps if step.operation != "nop")
    if kept + moved > CELLS:
        msg = (
            f"program {program.name} has {kept:,} chunks in its buffers and moves {moved:,}; "
            f"at most {CELLS:,} in all are executed, so cut its buffers into fewer"
        )
        raise ProblemError(msg)


def _together(program: Program, runs: Sequence[Run], slots: int, began: float) -> Execution:
    """Return what the runs in place and out of place found, each remark once."""
    both = program.in_place and program.out_of_place
    findings = [
        each.prefixed("in place, ") if both and run.memory.in_place else each
        for run in runs
        for each in run.findings
    ]
    remarks = [each for run in runs for each in run.remarks]
    # Whether threads finish has nothing to do with where the buffers lie.
    first, needed = runs[0], None
    if first.finishes:
        needed = slots_needed(first.machine, most=slots)
        large = full_chunks(program, first.memory, slots=slots)
        remarks += [] if large is None else [large]
    if program.collective == "custom":
        words = "a custom collective promises nothing to compare with; its orders agree"
        remarks += [] if findings else [Finding("custom", words)]
    return Execution(
        program,
        tuple(findings[:MOST]),
        tuple(dict.fromkeys(remarks)),
        interleavings=sum(run.interleavings for run in runs),
        manners=tuple(run.manner for run in runs),
        messages=sum(
            step.operation in RECEIVES for _, _, block in program.blocks() for step in block.steps
        ),
        slots_needed=needed,
        deviation=max((run.deviation for run in runs if run.deviation is not None), default=None),
        seconds=time.perf_counter() - began,
    )
