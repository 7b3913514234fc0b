"""Messages and collectives of torch.distributed's gloo backend, over loopback.

A message is sent and received blocking, in the thread of its thread block; the tag is the channel,
so that the messages of a connection stay in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ccl.errors import ProblemError
from interchange.running.wires import LOOPBACK, Array


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
