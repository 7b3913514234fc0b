"""What a step must wait for: whoever wrote what it reads, and whoever used what it overwrites.

Steps are added in an order in which they could be done one after the other. A step waits for

* the last step that wrote a cell that it reads or writes, and
* all steps that have read a cell since, which it writes,

unless its own thread block did these before, or waited for them before. Where a program may be
called in place, two names of one cell are one as well. What a rank copies of its own is then its
own copy already, and nobody has to wait for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from interchange.programs.program import Slot

Place = tuple[int, int]
"""A thread block of a rank, and a step of it."""

Name = Callable[[Slot], Slot]


class Waits:
    """The steps of one rank.

    Parameters
    ----------
    namings
        Ways in which the buffers may lie: for each what a cell is called then.
    """

    def __init__(self, namings: Sequence[Name]) -> None:
        self._cells = [_Cells(name) for name in namings]
        self._known: defaultdict[tuple[int, int], int] = defaultdict(lambda: -1)

    def needs(
        self, block: int, *, reads: Sequence[Slot] = (), writes: Sequence[Slot] = ()
    ) -> tuple[Place, ...]:
        """Return what the next step of a block must wait for, the newest of each other block."""
        newest: dict[int, int] = {}
        for cells in self._cells:
            for other, step in cells.before(reads, writes):
                if other != block and step > self._known[block, other]:
                    newest[other] = max(step, newest.get(other, -1))
        for other, step in newest.items():
            self._known[block, other] = step
        return tuple(sorted(newest.items()))

    def done(
        self, place: Place, *, reads: Sequence[Slot] = (), writes: Sequence[Slot] = ()
    ) -> None:
        """Keep in mind what a step has read and written."""
        for cells in self._cells:
            cells.used(place, reads, writes)

    def copied(self, place: Place, *, reads: Sequence[Slot], writes: Sequence[Slot]) -> None:
        """Keep in mind what a step has copied of the rank's own, which is nothing in place."""
        for cells in self._cells:
            cells.copied(place, reads, writes)


class _Cells:
    """Who used which cell last, under one naming."""

    def __init__(self, name: Name) -> None:
        self._name = name
        self._writer: dict[Slot, Place] = {}
        self._readers: defaultdict[Slot, list[Place]] = defaultdict(list)

    def before(self, reads: Sequence[Slot], writes: Sequence[Slot]) -> Iterable[Place]:
        """Yield the steps that must be done before a step that uses some cells."""
        read, written = self._named(reads, writes)
        for cell in (*read, *written):
            if cell in self._writer:
                yield self._writer[cell]
        for cell in written:
            yield from self._readers[cell]

    def used(self, place: Place, reads: Sequence[Slot], writes: Sequence[Slot]) -> None:
        """Keep who used the cells."""
        read, written = self._named(reads, writes)
        for cell in written:
            self._writer[cell] = place
            self._readers[cell] = []
        for cell in read:
            self._readers[cell].append(place)

    def copied(self, place: Place, reads: Sequence[Slot], writes: Sequence[Slot]) -> None:
        """Keep who copied the cells, unless they are the same ones."""
        read, written = self._named(reads, writes)
        if read != written:
            self.used(place, reads, writes)

    def _named(
        self, reads: Sequence[Slot], writes: Sequence[Slot]
    ) -> tuple[list[Slot], list[Slot]]:
        """Return the cells by their names."""
        return list(map(self._name, reads)), list(map(self._name, writes))
