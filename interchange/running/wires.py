"""How messages go from process to process: sockets of ZeroMQ, or gloo of torch.distributed.

Both keep the messages of one connection (from a rank, to a rank, over a channel) in order, as a
program needs it. All is on the loopback of this machine.

ZeroMQ was chosen for sockets because Jupyter brings it along; gloo because it is what PyTorch runs
collectives with on processors, so that its own collectives can be compared with (an extra, since
it is large).
"""

from __future__ import annotations

import queue
import threading
from collections import defaultdict
from typing import Any, Protocol

import numpy as np

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
