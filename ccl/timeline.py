"""Where every byte is at every moment: what a plan becomes when it is replayed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

Ends = tuple[str, str]

After = tuple[tuple[int, ...], ...]
"""For each transfer the places of those that brought what it carries."""


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
        µs at which the last byte has arrived: ``sent`` plus the link's alpha.
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
    images
        How many trees each tree of a symmetric forest stands for; the transfers are those of the
        trees themselves. Each stands for one at the same time on every link of its orbit; where
        several images cross one link they are one transfer, of the bytes of all.
    orbits
        For each link one of its orbit, by ends: all of an orbit send at the same times. Empty
        where every link stands for itself.
    after
        For each transfer the places of those that brought what it carries to its source: none for
        what was there from the start, several where it waits for the parts of a sum or of a
        chunk. Where it takes bytes on at once (`Send.via`), the crossings that they come from.
        Empty for transfers that no replay has put together.
    """

    transfers: tuple[Transfer, ...]
    makespan: float
    chunks: int = 1
    images: int = 1
    orbits: Mapping[Ends, Ends] = field(default_factory=dict)
    after: After = field(default=(), repr=False)

    def place(self, src: str, dst: str) -> Ends:
        """Return the ends of the link that stands for a link: of its own, without symmetry."""
        return self.orbits.get((src, dst), (src, dst))

    def by_link(self, transfers: Iterable[Transfer] | None = None) -> dict[Ends, list[Transfer]]:
        """Return the transfers, or some of them, of each link that stands for others."""
        found: dict[Ends, list[Transfer]] = {}
        for each in self.transfers if transfers is None else transfers:
            found.setdefault(self.place(each.src, each.dst), []).append(each)
        return found

    @cached_property
    def link_busy(self) -> dict[Ends, float]:
        """µs during which each used link is sending, by ends."""
        busy: dict[Ends, float] = {}
        for ends, transfers in self.by_link().items():
            busy[ends] = sum(each.sent - each.start for each in transfers)
        if not self.orbits:
            return busy
        return {ends: busy[place] for ends, place in self.orbits.items() if place in busy}


def by_start(
    transfers: Sequence[Transfer], after: Sequence[Sequence[int]]
) -> tuple[tuple[Transfer, ...], After]:
    """Sort transfers by start, and say of each in the new order what it came after."""
    order = sorted(range(len(transfers)), key=[each.start for each in transfers].__getitem__)
    place = [0] * len(order)
    for new, old in enumerate(order):
        place[old] = new
    moved = [tuple([place[each] for each in after[old]]) if after[old] else () for old in order]
    return tuple([transfers[old] for old in order]), tuple(moved)
