"""One rank as a process: a thread for each thread block, numpy arrays as buffers.

The buffers of a rank, filled by chance, and what a collective makes of them.

Every rank makes the inputs of all ranks from the seed, so none has to be told them: what comes by
the wires can only be right if the program is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from interchange.programs.program import Program, Slot, Step, ThreadBlock
from interchange.running.wires import Array, Gloo, Sockets, Wires

DType = np.dtype[Any]


@dataclass(frozen=True)
class Buffers:
    """Arrays of a rank; in place, the shorter of input and output is a part of the other.

    Parameters
    ----------
    given
        The input as it was, a copy.
    input, output, scratch
        What the program works on.
    """

    given: Array
    input: Array
    output: Array
    scratch: Array

    @property
    def by_name(self) -> dict[str, Array]:
        """The three by the names of `interchange.programs`."""
        return {"input": self.input, "output": self.output, "scratch": self.scratch}


def buffers_of(
    program: Program, rank: int, *, dtype: DType, elements: int, in_place: bool, seed: int
) -> Buffers:
    """Return the buffers of a rank; what is not given holds numbers that nobody sent."""
    own = program.ranks[rank]
    given = _given(program, rank, dtype=dtype, elements=elements, seed=seed)
    scratch = np.full(own.scratch * elements, -77, dtype=dtype)
    if not in_place:
        output = np.full(own.output * elements, -55, dtype=dtype)
        return Buffers(given.copy(), given, output, scratch)
    longer = max(own.input, own.output) * elements
    whole = np.full(longer, -55, dtype=dtype)

    def part(chunks: int) -> Array:
        size = chunks * elements
        first = rank * size if size < longer else 0
        return whole[first : first + size]

    part(own.input)[:] = given
    return Buffers(given.copy(), part(own.input), part(own.output), scratch)


def expected(
    program: Program, rank: int, *, dtype: DType, elements: int, seed: int
) -> Array | None:
    """Return what the output must be by the definition of the collective; None if anything may.

    Sums are made in the next wider type, rank after rank.
    """
    ranks = range(len(program.ranks))
    inputs = [_given(program, each, dtype=dtype, elements=elements, seed=seed) for each in ranks]
    size = program.ranks[rank].output * elements
    kind, mine = program.collective, slice(rank * size, (rank + 1) * size)
    if kind in ("reduce", "gather") and rank != program.root:
        return None
    if kind in ("all-gather", "gather"):
        return np.concatenate(inputs)
    if kind == "broadcast":
        return inputs[program.root]
    if kind == "scatter":
        return inputs[program.root][mine]
    if kind == "all-to-all":
        shard = size // len(inputs)
        return np.concatenate([each[rank * shard : (rank + 1) * shard] for each in inputs])
    wide = np.float64 if dtype.kind == "f" else np.int64
    total = np.sum([each.astype(wide) for each in inputs], axis=0)
    return np.asarray(total[mine] if kind == "reduce-scatter" else total).astype(dtype)


def _given(program: Program, rank: int, *, dtype: DType, elements: int, seed: int) -> Array:
    """Return the input of a rank: whole numbers that sums of them hold exactly, or real ones."""
    chance = np.random.default_rng([seed, rank])
    size = program.ranks[rank].input * elements
    if dtype.kind == "f":
        return chance.uniform(1.0, 2.0, size).astype(dtype)
    return chance.integers(0, 1_000_000, size).astype(dtype)


@dataclass(frozen=True)
class Job:
    """A program to be run, and how.

    Parameters
    ----------
    program
        What all ranks do.
    dtype
        ``int32`` or ``float32``.
    elements
        Of a chunk.
    in_place
        Whether input and output lie in one buffer.
    seed
        Of the values.
    """

    program: Program
    dtype: str
    elements: int
    in_place: bool
    seed: int


@dataclass(frozen=True)
class Order:
    """What a process is told.

    Parameters
    ----------
    rank, ranks
        Which one it is, and of how many.
    transport
        ``sockets`` or ``gloo``.
    jobs
        What is run, one after the other.
    """

    rank: int
    ranks: int
    transport: str
    jobs: tuple[Job, ...]


@dataclass(frozen=True)
class Outcome:
    """What a rank found.

    Parameters
    ----------
    rank
        Which.
    wrong
        Elements of its output that differ from the definition of the collective.
    library
        Elements that differ from what the library's own collective gave, None where it has none.
    deviation
        Largest relative difference of its sums from exact ones, as floating-point sums differ with
        their order.
    seconds
        From the first step to the last.
    fault
        An error, or empty.
    """

    rank: int
    wrong: int = 0
    library: int | None = None
    deviation: float = 0.0
    seconds: float = 0.0
    fault: str = ""


@dataclass(frozen=True)
class Fault:
    """What went wrong in a rank, in words."""

    words: str


def serve(pipe: Connection, order: Order) -> None:
    """Be a rank: tell the address, hear the others', run all jobs, tell the outcome of each."""
    try:
        wires = _wires(order)
        pipe.send(wires.address())
        wires.join(pipe.recv())
        pipe.send([_run(job, order.rank, wires) for job in order.jobs])
        pipe.recv()  # nobody leaves before all have what was sent to them
        wires.close()
    except Exception as error:  # noqa: BLE001  the parent tells it, whatever it is
        pipe.send(Fault(f"{type(error).__name__}: {error}"))


def _wires(order: Order) -> Wires:
    if order.transport == "gloo":
        return Gloo(order.rank, order.ranks)
    return Sockets(order.rank)


def _run(job: Job, rank: int, wires: Wires) -> Outcome:
    program, dtype, elements = job.program, np.dtype(job.dtype), job.elements
    how: dict[str, Any] = {"dtype": dtype, "elements": elements, "seed": job.seed}
    buffers = buffers_of(program, rank, in_place=job.in_place, **how)
    size = program.ranks[rank].output * elements
    wires.begin()
    own = wires.own(program.collective, buffers.given, size, program.root)
    began = time.perf_counter()
    fault = _Blocks(program.ranks[rank].blocks, buffers, wires, elements).run()
    seconds = time.perf_counter() - began
    if fault:
        return Outcome(rank, fault=fault)
    goal = expected(program, rank, **how)
    if goal is None:  # a rank whose output nobody defines
        return Outcome(rank, seconds=seconds)
    return Outcome(
        rank,
        wrong=_differing(buffers.output, goal),
        library=None if own is None else _differing(buffers.output, own),
        deviation=_deviation(buffers.output, goal),
        seconds=seconds,
    )


def _differing(got: Array, goal: Array) -> int:
    """Count elements that differ; sums of float32 may by their order, at most by rounding."""
    if got.dtype.kind == "f":
        return int(np.sum(~np.isclose(got, goal, rtol=1e-5, atol=1e-6)))
    return int(np.sum(got != goal))


def _deviation(got: Array, goal: Array) -> float:
    if got.dtype.kind != "f" or not goal.size:
        return 0.0
    scale = np.maximum(np.abs(goal), np.finfo(goal.dtype).tiny)
    return float(np.max(np.abs(got.astype(np.float64) - goal) / scale))


class _Blocks:
    """The thread blocks of a rank, which wait for one another's steps."""

    def __init__(
        self, blocks: tuple[ThreadBlock, ...], buffers: Buffers, wires: Wires, elements: int
    ) -> None:
        self._blocks = blocks
        self._buffers = buffers
        self._wires = wires
        self._elements = elements
        self._done = [0] * len(blocks)
        self._turn = threading.Condition()
        self._fault = ""

    def run(self) -> str:
        """Run all to their end; return the first error in words, or nothing."""
        threads = [
            threading.Thread(target=self._guarded, args=(number,), daemon=True)
            for number in range(len(self._blocks))
        ]
        for each in threads:
            each.start()
        for each in threads:
            while each.is_alive() and not self._fault:
                each.join(0.2)
        return self._fault

    def _guarded(self, number: int) -> None:
        try:
            self._block(number)
        except Exception as error:  # noqa: BLE001  told by the rank, whatever it is
            self._fault = f"thread block {number}: {type(error).__name__}: {error}"
            with self._turn:
                self._turn.notify_all()

    def _block(self, number: int) -> None:
        block = self._blocks[number]
        for place, step in enumerate(block.steps):
            if step.after is not None:
                other, least = step.after[0], step.after[1] + 1
                with self._turn:
                    self._turn.wait_for(self._after(other, least))
            self._do(block, step)
            with self._turn:
                self._done[number] = place + 1
                self._turn.notify_all()

    def _after(self, other: int, least: int) -> Callable[[], bool]:
        return lambda: bool(self._done[other] >= least or self._fault)

    def _do(self, block: ThreadBlock, step: Step) -> None:
        """Do a step as `interchange.programs.program` defines it."""
        name = step.operation
        if name == "nop":
            return
        size = step.count * self._elements
        came: Array = np.empty(0)
        if name in ("r", "rcs", "rrs", "rrc", "rrcs"):
            came = np.empty(size, dtype=self._buffers.output.dtype)
            self._wires.receive(block.receive, block.channel, came)
        result = self._result(name, step, came)
        if name in ("s", "rcs", "rrs", "rrcs"):
            self._wires.send(block.send, block.channel, result)
        if name not in ("s", "rrs"):
            self._at(step.dst, size)[:] = result

    def _result(self, name: str, step: Step, came: Array) -> Array:
        size = step.count * self._elements
        if name in ("s", "cpy"):
            return self._at(step.src, size)
        if name == "re":
            return np.asarray(self._at(step.dst, size) + self._at(step.src, size))
        if name in ("rrs", "rrc", "rrcs"):
            return np.asarray(came + self._at(step.src, size))
        return came

    def _at(self, slot: Slot | None, size: int) -> Array:
        """Return the cells of a slot."""
        if slot is None:
            msg = "a step reads or writes nowhere"
            raise ValueError(msg)
        memory: dict[str, Any] = self._buffers.by_name
        first = slot.index * self._elements
        found: Array = memory[slot.buffer][first : first + size]
        if len(found) != size:
            msg = f"{slot.buffer} {slot.index} is past the end"
            raise IndexError(msg)
        return found
