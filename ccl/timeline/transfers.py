"""Timeline: where every byte is at every moment of a replayed plan.

A plan of a thousand GPUs has a million crossings of links. They are columns, and an object for each
is made only where somebody looks at it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import chain, starmap
from operator import itemgetter
from typing import overload

import numpy as np
from numpy.typing import NDArray

from ccl.plans import Floats, Integers

Ends = tuple[str, str]

After = Sequence[tuple[int, ...]]
"""For each transfer the places of those that brought what it carries."""

Terms = tuple[frozenset[int] | None, ...]
"""For each transfer the ranks whose contributions it carries, None where nothing says so."""


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
    terms
        What each transfer carries of a chunk of which sends name their terms (`ccl.plans.Send`),
        None for one of other chunks. Empty where there is no such chunk.
    """

    transfers: Sequence[Transfer]
    makespan: float
    chunks: int = 1
    images: int = 1
    orbits: Mapping[Ends, Ends] = field(default_factory=dict)
    after: After = field(default=(), repr=False)
    terms: Terms = field(default=(), repr=False)

    def place(self, src: str, dst: str) -> Ends:
        """Return the ends of the link that stands for a link: of its own, without symmetry."""
        return self.orbits.get((src, dst), (src, dst))

    def by_link(self) -> dict[Ends, list[Transfer]]:
        """Return the transfers of each link that stands for others."""
        found: dict[Ends, list[Transfer]] = {}
        for each in self.transfers:
            found.setdefault(self.place(each.src, each.dst), []).append(each)
        return found

    def count_leaving(self, devices: Container[str]) -> int:
        """Return how many transfers leave some devices, those of all images."""
        moved = self.transfers
        if not isinstance(moved, Transfers):
            return self.images * sum(each.src in devices for each in moved)
        leaves = np.array([src in devices for src, _ in moved.ends], dtype=np.int64)
        return self.images * int(leaves[moved.link].sum())

    @cached_property
    def link_busy(self) -> dict[Ends, float]:
        """µs during which each used link is sending, by ends."""
        busy: dict[Ends, float] = {}
        for ends, transfers in self.by_link().items():
            busy[ends] = sum(each.sent - each.start for each in transfers)
        if not self.orbits:
            return busy
        return {ends: busy[place] for ends, place in self.orbits.items() if place in busy}


def among(values: Integers, others: Integers) -> NDArray[np.bool_]:
    """Return which values are among others, shape (values,).

    As `numpy.isin`, which takes three times as long or more where there are a million.
    """
    if not len(others):
        return np.zeros(len(values), dtype=bool)
    known = np.sort(others)
    place = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.asarray(known[place] == values)


@dataclass(frozen=True, eq=False)
class Slices(Sequence[tuple[int, ...]]):
    """Lists of places, each a slice of one array, so that those that are alike share it.

    Parameters
    ----------
    low, high
        Where each begins and ends, shape (lists,).
    places
        What they are slices of.
    """

    low: Integers
    high: Integers
    places: Integers

    @classmethod
    def of(cls, lists: Iterable[Sequence[int]]) -> Slices:
        """Return lists one after the other."""
        known = list(lists)
        bounds = np.cumsum([0, *map(len, known)])
        places = np.fromiter(chain.from_iterable(known), np.int64, int(bounds[-1]))
        return cls(bounds[:-1], bounds[1:], places)

    def __len__(self) -> int:
        """Return the number of lists."""
        return len(self.low)

    @overload
    def __getitem__(self, which: int) -> tuple[int, ...]: ...
    @overload
    def __getitem__(self, which: slice) -> tuple[tuple[int, ...], ...]: ...
    def __getitem__(self, which: int | slice) -> tuple[int, ...] | tuple[tuple[int, ...], ...]:
        """Return a list, or some."""
        if isinstance(which, slice):
            return tuple(self)[which]
        return tuple(self.places[self.low[which] : self.high[which]].tolist())

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        """Yield them in order; those that are alike are the same object."""
        known: dict[tuple[int, int], tuple[int, ...]] = {}
        every = self.places.tolist()
        for each in zip(self.low.tolist(), self.high.tolist(), strict=True):
            if each not in known:
                known[each] = tuple(every[each[0] : each[1]])
            yield known[each]

    def __eq__(self, other: object) -> bool:
        """Whether the lists are the same."""
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        """Equal for equal lists."""
        return hash(tuple(self))

    @property
    def lengths(self) -> Integers:
        """How many places each has, shape (lists,)."""
        return self.high - self.low

    def flat(self, which: Integers) -> tuple[Integers, Integers]:
        """Return the places of some lists, one after the other, and whose each is by its turn."""
        many = self.lengths[which]
        whose = np.repeat(np.arange(len(which)), many)
        ahead = np.cumsum(many) - many
        rows = np.arange(len(whose)) + np.repeat(self.low[which] - ahead, many)
        return whose, self.places[rows]

    def distinct(self, which: Integers) -> tuple[Slices, Integers]:
        """Return each of some lists once, and the number there of each of them."""
        many = len(self.places) + 1
        pairs = self.low[which] * many + self.high[which]
        once, number = np.unique(pairs, return_inverse=True)
        return Slices(once // many, once % many, self.places), number

    def most(self, values: Floats) -> Floats:
        """Return the largest of the values at the places of each list, shape (lists,).

        It is less than every number for an empty list. `values` has one for each place that there
        is.
        """
        found = np.full(len(self), -np.inf)
        some = np.flatnonzero(self.lengths)
        once, number = self.distinct(some)
        # The end of one list is the beginning of a slice that nobody asks for.
        padded = np.append(values[self.places], -np.inf)
        turns = np.stack([once.low, once.high], axis=1).ravel()
        if len(turns):
            found[some] = np.maximum.reduceat(padded, turns)[::2][number]
        return found


@dataclass(frozen=True, eq=False)
class Transfers(Sequence[Transfer]):
    """Crossings of links as arrays, each of shape (transfers,).

    Parameters
    ----------
    ends
        The ends of each link, by number.
    link
        Number of the link that is crossed.
    chunk, start, sent, end, nbytes, epoch
        As in `ccl.timeline.Transfer`.
    """

    ends: Sequence[Ends]
    link: Integers
    chunk: Integers
    start: Floats
    sent: Floats
    end: Floats
    nbytes: Floats
    epoch: Integers

    def __len__(self) -> int:
        """Return the number of transfers."""
        return len(self.link)

    @cached_property
    def _every(self) -> tuple[Transfer, ...]:
        ends = list(map(self.ends.__getitem__, self.link.tolist()))
        columns = self.start, self.sent, self.end, self.nbytes, self.epoch
        return tuple(
            starmap(
                Transfer,
                zip(
                    self.chunk.tolist(),
                    map(itemgetter(0), ends),
                    map(itemgetter(1), ends),
                    *(each.tolist() for each in columns),
                    strict=True,
                ),
            )
        )

    @overload
    def __getitem__(self, which: int) -> Transfer: ...
    @overload
    def __getitem__(self, which: slice) -> tuple[Transfer, ...]: ...
    def __getitem__(self, which: int | slice) -> Transfer | tuple[Transfer, ...]:
        """Return a transfer, or some."""
        return self._every[which]

    def __iter__(self) -> Iterator[Transfer]:
        """Yield them in order."""
        return iter(self._every)

    def __eq__(self, other: object) -> bool:
        """Whether the transfers are the same."""
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        """Equal for equal transfers."""
        return hash(self._every)

    def __reduce__(self) -> tuple[type[Transfers], tuple[object, ...]]:
        """Leave out what is only there because somebody looked at it."""
        return type(self), tuple(getattr(self, each.name) for each in fields(self))

    def by_start(self, after: Slices) -> tuple[Transfers, Slices]:
        """Return them sorted by start, and of each in the new order what it came after."""
        order = np.argsort(self.start, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        moved = Slices(after.low[order], after.high[order], place[after.places])
        return self.at(order), moved

    def at(self, places: Integers) -> Transfers:
        """Return those at some places, in their order."""
        return Transfers(
            self.ends, *(getattr(self, each.name)[places] for each in fields(self)[1:])
        )
