"""A program in place or out of place: it finishes, it is in order, it is right in any order."""

from __future__ import annotations

from itertools import islice

import numpy as np

from interchange.execution.finding import Finding
from interchange.execution.hazards import hazards, overlaps, told, unwritten
from interchange.execution.interpreter import Interpreter
from interchange.execution.machine import Machine
from interchange.execution.memory import SUMS, Memory, Promise
from interchange.execution.order import deadlock, finishing_order
from interchange.execution.schedule import Walk, shuffled
from interchange.execution.values import Values, difference, integers, reals

MOST = 20
"""Findings that are told."""


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
        self.order = finishing_order(machine, slots=self.slots)
        stuck = deadlock(machine, self.order, slots=self.slots)
        if stuck is not None:
            self.findings.append(self._with_room(stuck))
            return
        self.findings += islice(overlaps(machine), MOST)
        pairs = hazards(machine, self.order)
        self.findings += [told(machine, each) for each in pairs]
        racing = {number for each in pairs for number in (each.before, each.after)}
        values = integers(self.promised, self.memory, seed=seed)
        defined = bytearray(values.defined)
        early = unwritten(machine, self.order, defined=defined, racing=racing)
        self.findings += islice(early, MOST)
        if not self.memory.in_place:
            kind = self.findings if keep_input else self.remarks
            kind += self._input_written()
        self._interleave(values, interleavings, seed=seed)
        if not self.findings and self.promised.kind in SUMS:
            self.deviation = self._float32(seed)

    def _with_room(self, stuck: Finding) -> Finding:
        """Return a deadlock with what more room would change."""
        if len(finishing_order(self.machine, slots=None)) < len(self.machine.actions):
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
        interpreter = Interpreter(self.machine, values.start)
        walk = Walk(self.machine, slots=self.slots)
        expected = values.expected
        if self.promised.kind == "custom":
            expected = interpreter.run(self.order)[values.places]
        for number in range(interleavings):
            memory = interpreter.run(walk(shuffled(self.machine, number=number, seed=seed)))
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
        memory = Interpreter(self.machine, values.start).run(self.order)
        exact = values.expected
        return float(np.max(np.abs(memory[values.places] - exact) / exact))
