"""Whether a program gives the right bytes: checked, ordered, run in many orders, compared.

A program is called in place or out of place: it finishes, it is in order, it is right in any order
of its thread blocks. How much its connections must hold, and what large buffers make of it, is
found as well.

A connection has NCCL_STEPS = 8 slots (NVIDIA/nccl:src/include/device.h). A message takes one of
them under LL and LL128 and MSCCL_CHUNKSTEPS = NCCL_STEPS / 2 under Simple, however short it is
(microsoft/msccl:src/include/msccl.h and src/collectives/device/msccl_interpreter.h). Chunks as
large as a message go alone: a step of several is then as many messages, one after the other.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Generic, Self, TypeVar

import numpy as np

from ccl.errors import CclError, ProblemError
from interchange import programs as ir
from interchange.execution import blocks as orders
from interchange.execution.hazards import described, hazards, overlaps, unwritten
from interchange.execution.machine import Machine, Memory, Values, difference, integers, reals
from interchange.programs import checks as static
from interchange.programs.checks import Finding, Promise, place
from interchange.programs.one_sided import PutProgram

CUSTOM = Finding("custom", "a custom collective promises nothing to compare with; its orders agree")
"""The remark on a program whose results are compared with nothing."""

SLOTS: Mapping[ir.Protocol, int] = {"Simple": 2, "LL": 8, "LL128": 8}
"""Messages that a connection holds."""
MOST_MESSAGES = 200_000
"""Chunks moved by all steps up to which it is tried what single ones do."""


def slots_needed(machine: Machine, *, most: int) -> int:
    """Return the messages a connection must hold for a machine that finishes with `most`."""
    every = len(machine.actions)
    for slots in range(1, most):
        if len(orders.finishing_order(machine, slots=slots)) == every:
            return slots
    return most


def full_chunks(program: ir.Program, memory: Memory, *, slots: int) -> Finding | None:
    """Return what hangs if every chunk is a message of its own, or None if nothing."""
    steps = [step for _, _, block in program.blocks() for step in block.steps]
    if not any(step.count > slots and step.operation in ir.SENDS | ir.RECEIVES for step in steps):
        return None
    parts = sum(map(_parts, steps))
    if parts > MOST_MESSAGES:
        words = (
            f"whether it hangs with large buffers is open: it moves {parts:,} chunks, and at most "
            f"{MOST_MESSAGES:,} are tried as messages of their own"
        )
        return Finding("room", words)
    machine = orders.machine_of(_alone(program), memory)
    order = orders.finishing_order(machine, slots=slots)
    if len(order) == len(machine.actions):
        return None
    at = list(machine.starts[:-1])
    for action in order:
        at[machine.owners[action]] += 1
    first = next(at[t] for t, end in enumerate(machine.starts[1:]) if at[t] < end)
    rank, block, number = machine.where(first)
    step = _origins(program.ranks[rank].blocks[block])[number]
    words = (
        f"large buffers hang: when a chunk fills a message, a step of several chunks sends them "
        f"one by one and a connection of protocol {program.protocol} holds {slots}; "
        f"{place(rank, block, step)} comes to a stop"
    )
    return Finding("room", words, rank, block, step)


def _alone(program: ir.Program) -> ir.Program:
    """Return a program whose steps move one chunk each."""
    return replace(program, ranks=tuple(_alone_in(rank) for rank in program.ranks))


def _alone_in(rank: ir.RankProgram) -> ir.RankProgram:
    last = [
        {origin: number for number, origin in enumerate(_origins(block))} for block in rank.blocks
    ]
    blocks = []
    for block in rank.blocks:
        steps = []
        for step in block.steps:
            after = step.after and (step.after[0], last[step.after[0]][step.after[1]])
            steps += [
                ir.Step(
                    step.operation,
                    _moved(step.src, part),
                    _moved(step.dst, part),
                    after=None if part else after,
                )
                for part in range(_parts(step))
            ]
        blocks.append(replace(block, steps=tuple(steps)))
    return replace(rank, blocks=tuple(blocks))


def _parts(step: ir.Step) -> int:
    return step.count if step.operation != "nop" else 1


def _origins(block: ir.ThreadBlock) -> list[int]:
    """Return the step that each step of the block came from, once they move one chunk each."""
    return [number for number, step in enumerate(block.steps) for _ in range(_parts(step))]


def _moved(slot: ir.Slot | None, by: int) -> ir.Slot | None:
    return None if slot is None else ir.Slot(slot.buffer, slot.index + by)


MOST = 20
"""Findings that are listed."""


class Run:
    """One manner of calling a program.

    Parameters
    ----------
    machine
        What its runtime does.
    memory
        The buffers among the machine's cells, in place or out of place.
    promised
        What it must keep.
    slots
        Messages that a connection holds.
    """

    def __init__(
        self, machine: Machine, memory: Memory, promised: Promise, *, slots: int | None
    ) -> None:
        self.machine = machine
        self.memory = memory
        self.promised = promised
        self.slots = slots
        self.findings: list[Finding] = []
        self.remarks: list[Finding] = []
        self.order: list[int] = []
        self.interleavings = 0
        self.deviation: float | None = None

    @property
    def manner(self) -> str:
        """How it is called."""
        return "in place" if self.memory.in_place else "out of place"

    @property
    def finishes(self) -> bool:
        """Whether all its threads do, once it was executed."""
        return len(self.order) == len(self.machine.actions)

    def execute(self, interleavings: int, *, seed: int, keep_input: bool) -> None:
        """Analyse it, then run it in many orders."""
        machine = self.machine
        self.order = orders.finishing_order(machine, slots=self.slots)
        stuck = orders.deadlock(machine, self.order, slots=self.slots)
        if stuck is not None:
            self.findings.append(self._with_room(stuck))
            return
        self.findings += islice(overlaps(machine), MOST)
        pairs = hazards(machine, self.order)
        self.findings += [described(machine, each) for each in pairs]
        racing = {number for each in pairs for number in (each.before, each.after)}
        values = integers(self.promised, self.memory, seed=seed)
        defined = bytearray(values.defined)
        early = unwritten(machine, self.order, defined=defined, racing=racing)
        self.findings += islice(early, MOST)
        if not self.memory.in_place:
            kind = self.findings if keep_input else self.remarks
            kind += self._input_written()
        self._interleave(values, interleavings, seed=seed)
        if not self.findings and self.promised.kind in static.SUMS:
            self.deviation = self._float32(seed)

    def _with_room(self, stuck: Finding) -> Finding:
        """Return a deadlock with what more room would change."""
        if len(orders.finishing_order(self.machine, slots=None)) < len(self.machine.actions):
            return stuck
        return stuck.prefixed(f"with {self.slots} messages to a connection there is a ")

    def _input_written(self) -> list[Finding]:
        """Return the first step that writes an input, with how many ranks have one."""
        inputs = [self.memory.range(rank, "input") for rank in range(self.promised.ranks)]
        found: dict[int, int] = {}
        for number in self.order:
            for cell, _, writes in self.machine.touched(number):
                if writes and cell < self.machine.memory:
                    rank = self.memory.rank(cell)
                    if cell in inputs[rank]:
                        found.setdefault(rank, number)
        if not found:
            return []
        first = next(iter(found.values()))
        others = f" (and {len(found) - 1} other ranks' are written)" if len(found) > 1 else ""
        words = f"{self.machine.place(first)} writes the input{others}"
        told_ = f"{words}, which an out-of-place call leaves to its caller"
        return [Finding("input", told_, *self.machine.where(first))]

    def _interleave(self, values: Values, interleavings: int, *, seed: int) -> None:
        """Run it in many orders until a result is wrong."""
        interpreter = orders.Interpreter(self.machine, values.start)
        walk = orders.Walk(self.machine, slots=self.slots)
        expected = values.expected
        if self.promised.kind == "custom":
            expected = interpreter.run(self.order)[values.places]
        for number in range(interleavings):
            memory = interpreter.run(walk(orders.shuffled(self.machine, number=number, seed=seed)))
            got = memory[values.places]
            self.interleavings += 1
            if not np.array_equal(got, expected):
                self.findings.append(self._wrong_result(values, got, expected, number))
                return

    def _wrong_result(
        self, values: Values, got: np.ndarray, expected: np.ndarray, number: int
    ) -> Finding:
        place = int(np.argmax((got != expected).any(axis=1)))
        cell = int(values.places[place])
        if self.promised.kind == "custom":
            words = f"{self.memory.name(cell)} differs from one order of thread blocks to another"
        else:
            words = difference(values, place, got[place])
        last = self._last_writer(cell)
        if number:
            words += f", in interleaving {number + 1} and not in those before"
        if last is None:
            return Finding("result", f"{words}; no step writes it", self.memory.rank(cell))
        _, block, step = where = self.machine.where(last)
        told_ = f"{words}; thread block {block}, step {step} writes it last"
        return Finding("result", told_, *where)

    def _last_writer(self, cell: int) -> int | None:
        writers = (
            number
            for number in reversed(self.order)
            for effect in self.machine.actions[number].effects
            if effect.target <= cell < effect.target + effect.count
        )
        return next(writers, None)

    def _float32(self, seed: int) -> float:
        """Return the largest relative error of sums of float32 numbers from 1 to 2."""
        values = reals(self.promised, self.memory, seed=seed)
        memory = orders.Interpreter(self.machine, values.start).run(self.order)
        exact = values.expected
        return float(np.max(np.abs(memory[values.places] - exact) / exact))


Executed = TypeVar("Executed", ir.Program, PutProgram)


CELLS = 8_000_000
"""Chunks of all buffers and messages that are kept in memory, 32 bytes each."""


@dataclass(frozen=True)
class Execution(Generic[Executed]):
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
        How many a program with connections sends.
    slots_needed
        Messages that a connection must hold for it to finish; None if it does not, or has none.
    deviation
        Largest relative error of its float32 sums of numbers from 1 to 2; None where it adds
        nothing up or is wrong.
    seconds
        How long executing it took.
    """

    program: Executed
    findings: tuple[Finding, ...]
    remarks: tuple[Finding, ...] = ()
    interleavings: int = 0
    manners: tuple[str, ...] = ()
    messages: int = 0
    slots_needed: int | None = None
    deviation: float | None = None
    seconds: float = field(default=0.0, compare=False)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def check(self) -> Self:
        """Return itself if nothing is wrong.

        Raises
        ------
        CclError
            If something is; the sentence is the first finding's.
        """
        if self.findings:
            raise CclError(f"program {self.program.name}: {self.findings[0].sentence}")
        return self


def execute(
    program: ir.Program,
    *,
    interleavings: int = 100,
    seed: int = 0,
    slots: int | None = None,
    keep_input: bool = False,
) -> Execution[ir.Program]:
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
        protocol (`SLOTS`).
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
        raise ProblemError(
            f"{interleavings} interleavings with {slots} slots are not run; give 1 or more each"
        )
    promised = examined(program, _before_running)
    if isinstance(promised, tuple):
        return Execution(program, promised, seconds=time.perf_counter() - began)
    held = sum(
        max(each.input, promised.input) + max(each.output, promised.output) + each.scratch
        for each in program.ranks
    )
    steps = (step for _, _, block in program.blocks() for step in block.steps)
    check_size(program, held, sum(each.count for each in steps if each.operation != "nop"))
    done: list[Run] = []
    for in_place, allowed in ((False, program.out_of_place), (True, program.in_place)):
        if allowed and not any(run.findings for run in done):
            memory = Memory(program, promised, in_place=in_place)
            run = Run(orders.machine_of(program, memory), memory, promised, slots=slots)
            run.execute(interleavings, seed=seed, keep_input=keep_input)
            done.append(run)
    return _together(program, done, slots, began)


def examined(
    program: Executed, checks: Callable[[Executed, Promise], Iterator[Finding]]
) -> Promise | tuple[Finding, ...]:
    """Return what a program must keep, or what is wrong with it before anything runs."""
    promised = static.promise(program)
    if isinstance(promised, Finding):
        return (promised,)
    return tuple(islice(checks(program, promised), MOST)) or promised


def _before_running(program: ir.Program, promised: Promise) -> Iterator[Finding]:
    """Yield what is wrong before anything runs; connections only if every step is in place."""
    if not program.in_place and not program.out_of_place:
        yield Finding("call", "it may be called neither in place nor out of place; allow one")
    placed = True
    for each in (*static.wrong_sizes(program, promised), *static.misplaced(program)):
        placed = False
        yield each
    if placed:
        yield from static.mismatched(program)


def check_size(program: ir.Program | PutProgram, held: int, moved: int) -> None:
    """Refuse what would not fit into memory.

    Raises
    ------
    ProblemError
        If the buffers and what steps move have more than `CELLS` chunks together.
    """
    if held + moved > CELLS:
        raise ProblemError(
            f"program {program.name} has {held:,} chunks in its buffers and moves {moved:,}; "
            f"at most {CELLS:,} in all are executed, so cut its buffers into fewer"
        )


def _together(
    program: ir.Program, runs: Sequence[Run], slots: int, began: float
) -> Execution[ir.Program]:
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
        remarks += [] if findings else [CUSTOM]
    return Execution(
        program,
        tuple(findings[:MOST]),
        tuple(dict.fromkeys(remarks)),
        interleavings=sum(run.interleavings for run in runs),
        manners=tuple(run.manner for run in runs),
        messages=sum(
            step.operation in ir.RECEIVES
            for _, _, block in program.blocks()
            for step in block.steps
        ),
        slots_needed=needed,
        deviation=max((run.deviation for run in runs if run.deviation is not None), default=None),
        seconds=time.perf_counter() - began,
    )
