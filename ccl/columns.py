"""Columns: the sends of a plan and the crossings of its replay as arrays.

A plan of a thousand GPUs has a million sends. What is true of each of them is found for all at
once, and an object for each is made only where somebody looks at it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain, starmap
from operator import attrgetter, itemgetter
from typing import overload

import numpy as np
from numpy.typing import NDArray

from ccl.plans import Schedule, Send
from ccl.timeline import Ends, Transfer
from ccl.topology import Topology

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

Route = tuple[str, ...]
"""The devices of a path, both ends included."""

_PATH = attrgetter("src", "via", "dst")


class Order:
    """The sends of a schedule by epoch; each path is there once.

    `sends` are in order, `routes` are the different paths, `split` has the chunks of which parts
    are sent and `named` those of which sends name what they carry.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.sends: Sequence[Send] = sorted(schedule.sends, key=attrgetter("epoch"))
        self._numbers: dict[tuple[str, tuple[str, ...], str], int] = {}
        # In the order in which they come, so that it is the same each time.
        for path in dict.fromkeys(map(_PATH, self.sends)):
            self._numbers[path] = len(self._numbers)
        self.routes: Sequence[Route] = [(src, *via, dst) for src, via, dst in self._numbers]
        parts, terms = map(attrgetter("fraction"), self.sends), map(attrgetter("terms"), self.sends)
        self.split = {each.chunk for each, part in zip(self.sends, parts, strict=True) if part < 1}
        self.named = {
            each.chunk for each, named in zip(self.sends, terms, strict=True) if named is not None
        }

    def __len__(self) -> int:
        """Return the number of sends."""
        return len(self.sends)

    @cached_property
    def route_of(self) -> Integers:
        """Number of each send's path, shape (sends,)."""
        numbers = map(self._numbers.__getitem__, map(_PATH, self.sends))
        return np.fromiter(numbers, np.int64, len(self))

    def devices(self, topology: Topology) -> tuple[Integers, Integers]:
        """Return the numbers of the devices that each send leaves and reaches, shape (sends,)."""
        ends = [(topology.index[route[0]], topology.index[route[-1]]) for route in self.routes]
        src, dst = np.array(ends, dtype=np.int64).reshape(-1, 2).T
        return src[self.route_of], dst[self.route_of]

    @cached_property
    def epochs(self) -> Integers:
        """Epoch of each send, shape (sends,)."""
        return np.fromiter(map(attrgetter("epoch"), self.sends), np.int64, len(self))

    @cached_property
    def chunks(self) -> Integers:
        """Chunk of each send, shape (sends,)."""
        return np.fromiter(map(attrgetter("chunk"), self.sends), np.int64, len(self))

    @cached_property
    def fractions(self) -> Floats:
        """How much of its chunk each send carries, shape (sends,)."""
        return np.fromiter(map(attrgetter("fraction"), self.sends), np.float64, len(self))

    @cached_property
    def terms(self) -> Integers:
        """Of each send the number of its terms, the same for equal ones, shape (sends,)."""
        numbers: dict[frozenset[int] | None, int] = {}
        found = [numbers.setdefault(send.terms, len(numbers)) for send in self.sends]
        return np.array(found, dtype=np.int64)


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
        columns = (getattr(self, each.name)[order] for each in fields(self)[1:])
        moved = Slices(after.low[order], after.high[order], place[after.places])
        return Transfers(self.ends, *columns), moved
