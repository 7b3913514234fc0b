"""Where every byte is at every moment: what a plan becomes when it is replayed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True)
class Transfer:
    """One crossing of one link.

    Parameters
    ----------
    chunk
        Number of the chunk in the collective.
    src, dst
        Ends of the link.
    start
        µs at which the first byte enters the link.
    sent
        µs at which the last byte has entered it, so that the link is free again.
    end
        µs at which the last byte has arrived: ``sent`` plus the link's alpha, or later where it
        came over a slower link and was passed on byte by byte (`Send.via`).
    nbytes
        Bytes carried.
    epoch
        Epoch of the send that it comes from, or -1 where the plan has none.
    """

    chunk: int
    src: str
    dst: str
    start: float
    sent: float
    end: float
    nbytes: float
    epoch: int = -1


@dataclass(frozen=True)
class Timeline:
    """Transfers sorted by start.

    Parameters
    ----------
    transfers
        Sorted by start.
    makespan
        µs until the last byte is where it is needed; what arrives later and is needed by
        nobody does not count.
    chunks
        In how many equal parts each chunk was replayed: 1 for a schedule, more for forests and
        flows, whose steady state is reached only with many.
    """

    transfers: tuple[Transfer, ...]
    makespan: float
    chunks: int = 1

    @cached_property
    def link_busy(self) -> dict[tuple[str, str], float]:
        """µs during which each used link is sending, by ends."""
        busy: dict[tuple[str, str], float] = {}
        for each in self.transfers:
            ends = each.src, each.dst
            busy[ends] = busy.get(ends, 0.0) + each.sent - each.start
        return busy
