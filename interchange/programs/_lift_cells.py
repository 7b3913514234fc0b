"""What lies in the buffers of a program before and after: chunks of a collective, cell by cell.

A chunk of a program is a chunk of the collective, so with n ranks and L chunks per loop there are
L/n chunks per shard, and L where there are no shards. Where a program works in place alone, the
shorter buffer of a rank is the part of the longer one that holds its own shard, and two names of
one cell are made one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ccl.collective import Chunk, Collective, make_collective
from ccl.errors import FormatError
from interchange.programs.lint import shards
from interchange.programs.program import Program, Slot

Cell = tuple[str, int]
"""A buffer's name and a place in it."""

Piece = tuple[int, int]
"""A chunk and, as bits, whose contributions are in it; of what is not added up, its holder.

Chunks that stay where they are have numbers from that of the collective's chunks on.
"""

MOST_CELLS = 500_000
"""Cells of all ranks that are followed at most."""


@dataclass(frozen=True)
class Layout:
    """The collective of a program, and where its chunks lie.

    Parameters
    ----------
    program
        Whose buffers they are.
    collective
        With one chunk for each chunk of the program.
    per_shard
        Chunks of a shard, or of the buffer where there are no shards.
    """

    program: Program
    collective: Collective
    per_shard: int

    def cell(self, rank: int, slot: Slot, offset: int = 0) -> Cell:
        """Return the cell that a place in a buffer is."""
        name, index = slot.buffer, slot.index + offset
        if self.program.out_of_place or name == "scratch":
            return name, index
        kind, own = self.program.collective, rank * self.per_shard
        if kind in ("all-gather", "gather"):
            return ("output", own + index) if name == "input" else (name, index)
        if kind in ("reduce-scatter", "scatter"):
            return ("input", own + index) if name == "output" else (name, index)
        return "output", index

    def held(self, rank: int) -> Iterator[tuple[Cell, Piece]]:
        """Yield what a rank's input holds at the start."""
        for index, number in self._chunks(rank, "input"):
            yield self.cell(rank, Slot("input", index)), (number, 1 << rank)

    def wanted(self, rank: int) -> Iterator[tuple[Cell, Piece]]:
        """Yield what a rank's output must hold at the end."""
        everyone = (1 << len(self.program.ranks)) - 1
        for index, number in self._chunks(rank, "output"):
            source = everyone if self.collective.reduces else 1 << self._holder(rank, number, index)
            yield self.cell(rank, Slot("output", index)), (number, source)

    def _holder(self, rank: int, number: int, index: int) -> int:
        """Return who holds a chunk that is not added up, one that stays at its rank included."""
        if number >= len(self.collective.chunks):
            return rank
        kind = self.program.collective
        if kind in ("all-gather", "gather", "all-to-all"):
            return index // self.per_shard
        return self.program.root

    def _chunks(self, rank: int, buffer: str) -> Iterator[tuple[int, int]]:
        """Yield places of a buffer of a rank with the numbers of the chunks there."""
        kind, n, k = self.program.collective, len(self.program.ranks), self.per_shard
        into, root = buffer == "input", self.program.root
        if kind in ("broadcast", "reduce"):
            if rank == root or into == (kind == "reduce"):
                yield from ((index, index) for index in range(k))
        elif kind in ("gather", "scatter"):
            if into == (kind == "gather"):
                yield from ((j, self._part(rank, j)) for j in range(k))
            elif rank == root:
                yield from ((r * k + j, self._part(r, j)) for r in range(n) for j in range(k))
        elif kind == "all-to-all":
            for other in range(n):
                src, dst = (rank, other) if into else (other, rank)
                yield from ((other * k + j, self._pair(src, dst, j)) for j in range(k))
        elif kind == "all-reduce" or into == (kind == "reduce-scatter"):
            yield from ((index, index) for index in range(self.program.chunks_per_loop))
        else:
            yield from ((j, rank * k + j) for j in range(k))

    def _part(self, rank: int, j: int) -> int:
        """Return the number of a chunk of a gather or scatter; the root's own come last."""
        n, k, root = len(self.program.ranks), self.per_shard, self.program.root
        if rank == root:
            return (n - 1) * k + j
        return (rank - (rank > root)) * k + j

    def _pair(self, src: int, dst: int, j: int) -> int:
        """Return the number of a chunk of an all-to-all; what stays comes last."""
        n, k = len(self.program.ranks), self.per_shard
        if src == dst:
            return (n * (n - 1) + src) * k + j
        return (src * (n - 1) + dst - (dst > src)) * k + j


def layout_of(program: Program, size: float) -> Layout:
    """Return the layout of a program for a buffer of `size` bytes.

    Raises
    ------
    FormatError
        If it is of no collective that is known here, or its chunks do not go into its shards.
    ProblemError
        If there is nothing to move.
    """
    n, loop = len(program.ranks), program.chunks_per_loop
    parts = shards(program.collective, n)
    if parts is None:
        msg = "the program is a custom one, of which nobody says what must be where at the end"
        raise FormatError(msg)
    if loop % max(parts):
        msg = f"{loop} chunks per loop are no whole number for each of {n} ranks"
        raise FormatError(msg)
    if loop * n > MOST_CELLS:
        msg = f"{loop:,} chunks at {n} ranks are more than the {MOST_CELLS:,} that are followed"
        raise FormatError(msg)
    per_shard = loop // max(parts)
    if program.collective == "all-reduce":
        everyone = tuple(range(n))
        chunk = Chunk(size / loop, everyone, everyone, reduced=True)
        whole = make_collective("all-reduce", n, size)
        collective = Collective("all-reduce", whole.ranks, whole.size, (chunk,) * loop)
    else:
        collective = make_collective(
            program.collective, n, size, chunks=per_shard, root=program.root
        )
    return Layout(program, collective, per_shard)
