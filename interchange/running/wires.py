"""How messages go from process to process: sockets of ZeroMQ, or gloo of torch.distributed.

Both keep the messages of one connection (from a rank, to a rank, over a channel) in order, as a
program needs it. All is on the loopback of this machine.

ZeroMQ was chosen for sockets because Jupyter brings it along; gloo because it is what PyTorch runs
collectives with on processors, so that its own collectives can be compared with (an extra, since
it is large).

Messages and collectives of torch.distributed's gloo backend, over loopback.

A message is sent and received blocking, in the thread of its thread block; the tag is the channel,
so that the messages of a connection stay in order.
"""

from __future__ import annotations

import queue
import threading
from collections import defaultdict
from typing import Any, Protocol

import numpy as np

from ccl.errors import ProblemError

LOOPBACK = "127.0.0.1"

Array = np.ndarray[Any, np.dtype[Any]]


class Wires(Protocol):
    """What thread blocks of a rank send and receive with; each block is a thread."""

    def address(self) -> str:
        """Return where others reach this rank."""

    def join(self, addresses: list[str]) -> None:
        """Meet the other ranks, whose addresses are in order."""

    def begin(self) -> None:
        """Begin the next program; what is sent from now on belongs to it."""

    def send(self, dst: int, channel: int, data: Array) -> None:
        """Send a message."""

    def receive(self, src: int, channel: int, into: Array) -> None:
        """Wait for the next message of a connection."""

    def own(self, collective: str, given: Array, shape: int, root: int) -> Array | None:
        """Return what the library's own collective gives, or None where it has none."""

    def close(self) -> None:
        """Leave."""


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
        msg = "torch with gloo is not installed; pip install 'topoloom[gloo]', or use sockets"
        raise ProblemError(msg)


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
