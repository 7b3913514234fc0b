"""One rank as a process: a thread for each thread block, numpy arrays as buffers, real messages.

`Buffers` are filled by chance, and `expected` says what a collective makes of them. Every rank
makes the inputs of all ranks from the seed, so none has to be sent: what comes by the wires can
only be right if the program is.

Messages go from process to process over sockets of ZeroMQ (`Sockets`), or over gloo of
torch.distributed (`Gloo`). Both keep the messages of one connection (from a rank, to a rank, over a
channel) in order, as a program needs it. All is on the loopback of this machine. ZeroMQ was chosen
for sockets because Jupyter brings it along; gloo because it is what PyTorch runs collectives with
on processors, so that its own collectives can be compared with (an extra, since it is large). With
gloo a message is sent and received blocking, in the thread of its thread block; the tag is the
channel, so that the messages of a connection stay in order.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from ccl.errors import ProblemError
from interchange.execution.blocks import EFFECTS
from interchange.execution.machine import expected_outputs
from interchange.programs import READS, RECEIVES, SENDS, WRITES, Program, Slot, Step, ThreadBlock
from interchange.programs.checks import Finding, Promise, promise

LOOPBACK = "127.0.0.1"

Array = np.ndarray[Any, np.dtype[Any]]


class Sockets:
    """A socket per sending thread, one for all that comes, sorted by connection."""

    def __init__(self, rank: int) -> None:
        import zmq  # noqa: PLC0415  only where ranks are processes

        self._zmq = zmq
        self._rank = rank
        self._context = zmq.Context()
        self._came: defaultdict[bytes, queue.Queue[bytes]] = defaultdict(queue.Queue)
        self._turn = 0
        self._lock = threading.Lock()
        self._own = threading.local()
        self._inbox = self._context.socket(zmq.PULL)
        self._inbox.setsockopt(zmq.LINGER, 0)
        self._port = self._inbox.bind_to_random_port(f"tcp://{LOOPBACK}")
        self._addresses: list[str] = []
        self._open: list[Any] = []

    def address(self) -> str:
        """Return where the inbox is."""
        return f"tcp://{LOOPBACK}:{self._port}"

    def join(self, addresses: list[str]) -> None:
        """Begin to sort what comes."""
        self._addresses = addresses
        threading.Thread(target=self._sort, daemon=True).start()

    def begin(self) -> None:
        """Count the programs: their threads have sockets of their own, which may overtake."""
        self._turn += 1

    def send(self, dst: int, channel: int, data: Array) -> None:
        """Send a message; it waits in the socket."""
        head = f"{self._turn} {self._rank} {channel}".encode()
        self._socket(dst).send_multipart([head, data.tobytes()])

    def receive(self, src: int, channel: int, into: Array) -> None:
        """Wait for the next message of a connection."""
        content = self._box(f"{self._turn} {src} {channel}".encode()).get()
        into[:] = np.frombuffer(content, dtype=into.dtype)

    def own(self, collective: str, given: Array, shape: int, root: int) -> Array | None:
        """Sockets have no collectives."""
        return None

    def close(self) -> None:
        """Send what still waits, for five seconds at most, and leave."""
        for each in self._open:
            each.close(linger=5000)
        self._context.term()  # ends the sorting, which alone may touch the inbox

    def _socket(self, dst: int) -> Any:
        mine: dict[int, Any] | None = getattr(self._own, "sockets", None)
        if mine is None:
            mine = self._own.sockets = {}
        if dst not in mine:
            mine[dst] = self._context.socket(self._zmq.PUSH)
            mine[dst].connect(self._addresses[dst])
            with self._lock:
                self._open.append(mine[dst])
        return mine[dst]

    def _box(self, head: bytes) -> queue.Queue[bytes]:
        with self._lock:
            return self._came[head]

    def _sort(self) -> None:
        """Put what comes where its connection waits for it, until the context ends."""
        while True:
            try:
                head, content = self._inbox.recv_multipart()
            except self._zmq.ContextTerminated:
                self._inbox.close(0)
                return
            self._box(head).put(content)


def installed() -> bool:
    """Say whether torch can be imported."""
    try:
        import torch.distributed as group  # noqa: PLC0415  large, and an extra
    except ImportError:
        return False
    return bool(group.is_available() and group.is_gloo_available())


def refuse_missing() -> None:
    """Refuse where it is not installed.

    Raises
    ------
    ProblemError
        If torch is not there.
    """
    if not installed():
        raise ProblemError(
            "torch with gloo is not installed; pip install -e '.[gloo]', or use sockets"
        )


class Gloo:
    """A rank of a process group."""

    def __init__(self, rank: int, ranks: int) -> None:
        import torch  # noqa: PLC0415  large, and an extra
        import torch.distributed as group  # noqa: PLC0415

        self._torch: Any = torch
        self._group: Any = group
        self._rank, self._ranks = rank, ranks
        torch.set_num_threads(1)
        self._store: Any = None
        if rank == 0:
            self._store = self._group.TCPStore(
                LOOPBACK, 0, ranks, is_master=True, wait_for_workers=False
            )

    def address(self) -> str:
        """Return the port of the store at which the ranks meet; rank 0 has it."""
        return "" if self._store is None else str(self._store.port)

    def join(self, addresses: list[str]) -> None:
        """Meet the others."""
        if self._store is None:
            self._store = self._group.TCPStore(
                LOOPBACK, int(addresses[0]), self._ranks, is_master=False
            )
        self._group.init_process_group(
            "gloo", store=self._store, rank=self._rank, world_size=self._ranks
        )

    def begin(self) -> None:
        """Begin the next program; pairs keep the order of everything."""

    def send(self, dst: int, channel: int, data: Array) -> None:
        """Send a message."""
        self._group.send(self._torch.from_numpy(np.ascontiguousarray(data)), dst, tag=channel)

    def receive(self, src: int, channel: int, into: Array) -> None:
        """Wait for the next message of a connection."""
        self._group.recv(self._torch.from_numpy(into), src, tag=channel)

    def own(self, collective: str, given: Array, shape: int, root: int) -> Array | None:
        """Return what gloo's own collective gives this rank, of `shape` elements.

        It has no reduce-scatter for every version, so its all-reduce is cut.
        """
        torch, group = self._torch, self._group
        mine = torch.from_numpy(given.copy())
        got = torch.empty(shape, dtype=mine.dtype)
        if collective == "all-gather":
            group.all_gather(list(got.chunk(self._ranks)), mine)
        elif collective in ("all-reduce", "reduce-scatter"):
            group.all_reduce(mine)
            first = self._rank * shape if collective == "reduce-scatter" else 0
            got = mine[first : first + shape]
        elif collective == "all-to-all":
            group.all_to_all_single(got, mine)
        elif collective == "broadcast":
            got = mine
            group.broadcast(got, root)
        elif collective == "reduce":
            got = mine
            group.reduce(got, root)
        else:
            return None
        return np.asarray(got.numpy())

    def close(self) -> None:
        """Wait for all and leave."""
        self._group.barrier()
        self._group.destroy_process_group()


Wires = Sockets | Gloo
"""What thread blocks of a rank send and receive with; each block is a thread."""


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


def buffers_of(program: Program, rank: int, given: Array, *, in_place: bool) -> Buffers:
    """Return the buffers of a rank; what is not given holds numbers that nobody sent.

    `given` has shape (chunks of the input, elements).
    """
    own, (_, elements), dtype = program.ranks[rank], given.shape, given.dtype
    given = given[: own.input].reshape(-1)
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


def expected(promised: Promise, rank: int, given: Array) -> Array | None:
    """Return what the output must be by the definition of the collective; None if anything may.

    `given` has shape (ranks, chunks of the input, elements).
    """
    if promised.kind == "custom" or not promised.has_output(rank):
        return None
    outputs = expected_outputs(promised, given)
    return np.asarray(outputs[rank if len(outputs) > 1 else 0].reshape(-1)).astype(given.dtype)


def inputs_of(promised: Promise, job: Job) -> Array:
    """Return the inputs of all ranks: whole numbers that their sums hold exactly, or real ones."""
    chance = np.random.default_rng(job.seed)
    shape = promised.ranks, promised.input, job.elements
    if job.dtype == "float32":
        return chance.uniform(1.0, 2.0, shape).astype(job.dtype)
    return chance.integers(0, 1_000_000, shape).astype(job.dtype)


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
    """What a process is given.

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
        gloo = order.transport == "gloo"
        wires = Gloo(order.rank, order.ranks) if gloo else Sockets(order.rank)
        pipe.send(wires.address())
        wires.join(pipe.recv())
        pipe.send([_run(job, order.rank, wires) for job in order.jobs])
        pipe.recv()  # nobody leaves before all have what was sent to them
        wires.close()
    except Exception as error:  # noqa: BLE001  the parent tells it, whatever it is
        pipe.send(Fault(f"{type(error).__name__}: {error}"))


def _run(job: Job, rank: int, wires: Wires) -> Outcome:
    program, elements, promised = job.program, job.elements, promise(job.program)
    if isinstance(promised, Finding):
        return Outcome(rank, fault=promised.sentence)
    given = inputs_of(promised, job)
    buffers = buffers_of(program, rank, given[rank], in_place=job.in_place)
    size = program.ranks[rank].output * elements
    wires.begin()
    own = wires.own(program.collective, buffers.given, size, program.root)
    began = time.perf_counter()
    fault = _Blocks(program.ranks[rank].blocks, buffers, wires, elements).run()
    seconds = time.perf_counter() - began
    if fault:
        return Outcome(rank, fault=fault)
    goal = expected(promised, rank, given)
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
        """Do a step as `interchange.programs` defines it."""
        operation, size = step.operation, step.count * self._elements
        held: dict[str, Array] = {
            place: np.empty(size, dtype=self._buffers.output.dtype)
            for place, used in (("received", RECEIVES), ("sent", SENDS))
            if operation in used
        }
        if operation in RECEIVES:
            self._wires.receive(block.receive, block.channel, held["received"])
        for place, slot, used in (("src", step.src, READS), ("dst", step.dst, WRITES)):
            if operation in used:
                held[place] = self._at(slot, size)
        for target, sources in EFFECTS[operation]:
            first, *others = (held[each] for each in sources)
            held[target][:] = sum(others, start=first)
        if operation in SENDS:
            self._wires.send(block.send, block.channel, held["sent"])

    def _at(self, slot: Slot | None, size: int) -> Array:
        """Return the cells of a slot."""
        if slot is None:
            raise ValueError("a step reads or writes nowhere")
        memory: dict[str, Any] = self._buffers.by_name
        first = slot.index * self._elements
        found: Array = memory[slot.buffer][first : first + size]
        if len(found) != size:
            raise IndexError(f"{slot.buffer} {slot.index} is past the end")
        return found
