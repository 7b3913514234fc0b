"""Where chunks lie in the buffers that a runtime is called with.

With n ranks and c chunks per shard, a chunk j of a rank's own shard lies at

================  =========================  ===============================
collective        input                      output
================  =========================  ===============================
all-gather        j                          r c + j, of the shard of rank r
reduce-scatter    r c + j, for rank r        j
all-reduce        k                          k, for k below n c
all-to-all        d c + j, for rank d        s c + j, from rank s
broadcast         j, of the root             j
reduce            j                          j, of the root
gather            j                          r c + j of the root, from rank r
scatter           r c + j of the root        j, of rank r
================  =========================  ===============================

and each of these is `pieces` times as long where chunks are cut. This is how NCCL lays out its
buffers. Called in place, the shorter buffer is the rank's own shard of the longer one.
"""

from __future__ import annotations

from dataclasses import dataclass

from ccl.collective import Collective, CollectiveKind, make_collective
from ccl.errors import ProblemError
from interchange.programs.program import Slot

IN_PLACE: frozenset[CollectiveKind] = frozenset(
    {"all-gather", "reduce-scatter", "all-reduce", "broadcast", "reduce"}
)
"""Collectives that a runtime may call in place."""


@dataclass(frozen=True, slots=True)
class OwnCopy:
    """What a rank copies from its input to its output: `count` pieces."""

    src: int
    dst: int
    count: int


@dataclass(frozen=True)
class Buffers:
    """The layout of a collective, in pieces.

    Parameters
    ----------
    kind
        Of the collective.
    ranks
        How many.
    chunks
        Chunks per shard, or per buffer where there are no shards.
    pieces
        In how many each is cut.
    root
        Rank of the root where there is one.
    """

    kind: CollectiveKind
    ranks: int
    chunks: int
    pieces: int
    root: int

    @property
    def shard(self) -> int:
        """Pieces of a shard."""
        return self.chunks * self.pieces

    @property
    def per_loop(self) -> int:
        """Pieces of the longer of a rank's buffers."""
        return self.shard * (1 if self.kind in ("broadcast", "reduce") else self.ranks)

    def input(self, rank: int) -> int:
        """Pieces of the input of a rank."""
        if self.kind in ("all-gather", "gather"):
            return self.shard
        if self.kind == "scatter":
            return self.per_loop if rank == self.root else 0
        return self.per_loop

    def output(self, rank: int) -> int:
        """Pieces of the output of a rank."""
        if self.kind in ("reduce-scatter", "scatter"):
            return self.shard
        if self.kind == "gather":
            return self.per_loop if rank == self.root else 0
        return self.per_loop

    def source(self, chunk: int) -> Slot:
        """Return the place of a chunk's first piece in the input of those that hold it."""
        shard, j = divmod(chunk, self.chunks)
        if self.kind in ("all-gather", "gather"):
            return self._slot("input", j)
        if self.kind == "all-to-all":
            src, other = divmod(shard, self.ranks - 1)
            return self._slot("input", (other + (other >= src)) * self.chunks + j)
        if self.kind == "scatter":
            return self._slot("input", (shard + (shard >= self.root)) * self.chunks + j)
        return self._slot("input", chunk)

    def goal(self, chunk: int) -> Slot:
        """Return the place of a chunk's first piece in the output of those that need it."""
        shard, j = divmod(chunk, self.chunks)
        if self.kind in ("reduce-scatter", "scatter"):
            return self._slot("output", j)
        if self.kind == "all-to-all":
            return self._slot("output", shard // (self.ranks - 1) * self.chunks + j)
        if self.kind == "gather":
            return self._slot("output", (shard + (shard >= self.root)) * self.chunks + j)
        return self._slot("output", chunk)

    def own_copy(self, rank: int) -> OwnCopy | None:
        """Return what a rank has in its input and needs in its output, or None."""
        here, shard = rank * self.shard, self.shard
        if self.kind == "all-gather":
            return OwnCopy(0, here, shard)
        if self.kind == "all-to-all":
            return OwnCopy(here, here, shard)
        if rank != self.root:
            return None
        copies = {"broadcast": OwnCopy(0, 0, shard), "gather": OwnCopy(0, here, shard)}
        return {**copies, "scatter": OwnCopy(here, 0, shard)}.get(self.kind)

    def in_place(self, rank: int, slot: Slot) -> Slot:
        """Return the one name that a place has when both buffers lie in one."""
        if slot.buffer == "scratch":
            return slot
        if self.kind == "all-gather" and slot.buffer == "input":
            return Slot("output", slot.index + rank * self.shard)
        if self.kind == "reduce-scatter" and slot.buffer == "output":
            return Slot("input", slot.index + rank * self.shard)
        if self.kind == "reduce-scatter":
            return slot
        return Slot("output", slot.index)

    def _slot(self, buffer: str, chunk: int) -> Slot:
        return Slot("input" if buffer == "input" else "output", chunk * self.pieces)


def buffers_of(collective: Collective, *, pieces: int) -> Buffers:
    """Return the layout of a collective.

    Raises
    ------
    ProblemError
        If it is not one that a runtime knows by name.
    """
    kind, ranks = collective.kind, collective.ranks
    first = collective.chunks[0]
    root = 0
    if kind in ("broadcast", "scatter"):
        root = first.holders[0]
    elif kind in ("reduce", "gather"):
        root = first.destinations[0]
    shards = {
        "all-to-all": ranks * (ranks - 1),
        "broadcast": 1,
        "reduce": 1,
        "gather": ranks - 1,
        "scatter": ranks - 1,
    }.get(kind, ranks)
    chunks = len(collective.chunks) // shards
    if kind != "custom" and chunks:
        usual = make_collective(kind, ranks, collective.size, chunks=chunks, root=root)
        if usual.chunks == collective.chunks:
            return Buffers(kind, ranks, chunks, pieces, root)
    msg = (
        f"the {kind} has chunks of its own, and a runtime knows collectives by name alone; ask for "
        "an all-gather, reduce-scatter, all-reduce, all-to-all or the like with equal chunks"
    )
    raise ProblemError(msg)
