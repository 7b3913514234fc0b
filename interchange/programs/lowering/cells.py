"""Where chunks lie in the buffers of a runtime, instances of programs, and what steps wait for.

Every lowering begins with chunks cut in pieces, and the sizes that a program is for (`cut`).

With n ranks and c chunks per shard, a chunk j of a rank's own shard lies (`Buffers`) at

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

`repeated` makes a program several times side by side, so that more thread blocks share the work.
Every chunk of the program is cut in as many parts as there are instances, and each instance moves
one part on channels of its own. A run of n chunks from i on becomes, of instance k among m, the
run of n parts from i m + k n on: the parts of a run lie one after the other, so that a run stays
one. The same chunks are always moved in the same runs, or else the parts would not meet.

`Waits` say what a step must wait for: whoever wrote what it reads, and whoever used what it
overwrites. Steps are added in an order in which they could be done one after the other. A step
waits for

* the last step that wrote a cell that it reads or writes, and
* all steps that have read a cell since, which it writes,

unless its own thread block did these before, or waited for them before. Where a program may be
called in place, two names of one cell are one as well. What a rank copies of its own is then its
own copy already, and nobody has to wait for it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ccl.collective import Collective, CollectiveKind, find_arguments, make_collective
from ccl.errors import ProblemError
from ccl.options import option
from ccl.problem import Problem
from ccl.result import Plan
from interchange.programs import Program, RankProgram, Slot, Step, ThreadBlock
from interchange.programs.lowering.hops import Hops, hops_of

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


UNSHARDED = ("broadcast", "reduce", "all-reduce")
"""Collectives of whole vectors, which may be cut into any number of chunks."""


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
        return self.shard * (1 if self.kind in UNSHARDED else self.ranks)

    def input(self, rank: int) -> int:
        """Pieces of the input of a rank."""
        if self.kind == "scatter" and rank != self.root:
            return 0
        return self.shard if self.kind in ("all-gather", "gather") else self.per_loop

    def output(self, rank: int) -> int:
        """Pieces of the output of a rank."""
        if self.kind == "gather" and rank != self.root:
            return 0
        return self.shard if self.kind in ("reduce-scatter", "scatter") else self.per_loop

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
        if self.kind in ("all-gather", "gather") and slot.buffer == "input":
            return Slot("output", slot.index + rank * self.shard)
        if self.kind in ("reduce-scatter", "scatter"):
            own = rank * self.shard if slot.buffer == "output" else 0
            return Slot("input", slot.index + own)
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
    kind, found = collective.kind, find_arguments(collective)
    if kind == "all-reduce":
        plain, size = make_collective(kind, collective.ranks, 1.0).chunks[0], collective.chunk_size
        if {*collective.chunks} == {replace(plain, size=size)}:
            return Buffers(kind, collective.ranks, len(collective.chunks), pieces, 0)
    elif found is not None:
        chunks, root = found
        return Buffers(kind, collective.ranks, chunks, pieces, root)
    raise ProblemError(
        f"the {kind} has chunks of its own, and a runtime knows collectives by name alone; ask for "
        "an all-gather, reduce-scatter, all-reduce, all-to-all or the like with equal chunks"
    )


class Placing:
    """Where parts lie at a rank while its program is written.

    Parameters
    ----------
    problem, hops, buffers
        What all ranks know.
    number
        The rank.
    """

    def __init__(self, problem: Problem, hops: Hops, buffers: Buffers, *, number: int) -> None:
        self._number = number
        self._chunks = problem.collective.chunks
        self._parts = hops.parts
        self._buffers = buffers
        self._place: dict[int, Slot] = {}
        self._scratch = 0

    def _named(self, slot: Slot) -> Slot:
        """Return what a place is called."""
        return slot

    def _start(self, part: int, first: Slot) -> Slot:
        return self._named(Slot(first.buffer, first.index + self._parts[part].start))

    def _here(self, part: int) -> Slot:
        """Return where the part lies: in the input unless something has come."""
        if part not in self._place:
            self._place[part] = self._start(part, self._buffers.source(self._parts[part].chunk))
        return self._place[part]

    def _goal(self, part: int) -> Slot | None:
        """Return where the output has a part, None if it is not needed here."""
        chunk = self._parts[part].chunk
        needed = self._number in self._chunks[chunk].destinations
        return self._start(part, self._buffers.goal(chunk)) if needed else None

    def _reserved(self, part: int) -> Slot:
        """Return a place of a part's own in scratch."""
        self._scratch += self._parts[part].count
        return Slot("scratch", self._scratch - self._parts[part].count)


MOST_PIECES = 4096
"""Pieces of a chunk at most, whatever is requested."""


def pieces_row() -> Any:
    """Return the option of how finely chunks are cut."""
    words = "Shares that need more are rounded to so many."
    return option(128, "Pieces of a chunk, at most", words, min=1, max=MOST_PIECES)


def smallest_row() -> Any:
    """Return the option of the smallest buffer that a program is for."""
    words = "Buffers below are left to other programs."
    return option(0, "From a size of", words, unit="bytes", min=0)


def largest_row() -> Any:
    """Return the option of the largest buffer that a program is for."""
    words = "Buffers above are left to other programs."
    return option(1 << 40, "Up to a size of", words, unit="bytes", min=1)


def cut(
    problem: Problem, plan: Plan, *, pieces: int, smallest: int, largest: int
) -> tuple[Hops, Buffers]:
    """Return the hops of a plan and the layout of its buffers, once the options are in order.

    Raises
    ------
    ProblemError
        If the sizes are none, or a runtime does not know the collective.
    """
    if smallest > largest:
        raise ProblemError(
            f"the program is for {smallest:,} to {largest:,} bytes, which is no size; "
            "give the smaller one first"
        )
    hops = hops_of(problem, plan, most_pieces=pieces)
    return hops, buffers_of(problem.collective, pieces=hops.pieces)


def repeated(program: Program, instances: int) -> Program:
    """Return the program in so many instances."""
    if instances == 1:
        return program
    many = program.channels
    return replace(
        program,
        ranks=tuple(_rank(each, instances, channels=many) for each in program.ranks),
        chunks_per_loop=program.chunks_per_loop * instances,
    )


def _rank(rank: RankProgram, instances: int, *, channels: int) -> RankProgram:
    many = len(rank.blocks)
    blocks = [
        ThreadBlock(
            block.send,
            block.receive,
            block.channel + k * channels,
            tuple(
                _step(step, k, instances=instances, first_block=k * many) for step in block.steps
            ),
        )
        for k in range(instances)
        for block in rank.blocks
    ]
    return RankProgram(
        rank.input * instances, rank.output * instances, rank.scratch * instances, tuple(blocks)
    )


def _step(step: Step, k: int, *, instances: int, first_block: int) -> Step:
    after = None if step.after is None else (step.after[0] + first_block, step.after[1])

    def moved(slot: Slot | None) -> Slot | None:
        if slot is None:
            return None
        return Slot(slot.buffer, slot.index * instances + k * step.count)

    return replace(step, src=moved(step.src), dst=moved(step.dst), after=after)


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
