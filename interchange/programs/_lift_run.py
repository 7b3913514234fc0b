"""A program run once with marks in the place of data: which message carries what.

All thread blocks that can go on do one step, turn after turn, so that what comes out is in an
order in which things may happen. Messages never wait for room; what stands still then stands still
in every executor.

What lies in the buffers of a program before and after: chunks of a collective, cell by cell.

A chunk of a program is a chunk of the collective, so with n ranks and L chunks per loop there are
L/n chunks per shard, and L where there are no shards. Where a program works in place alone, the
shorter buffer of a rank is the part of the longer one that holds its own shard, and two names of
one cell are made one.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass

from ccl.collective import Chunk, Collective, make_collective
from ccl.errors import FormatError
from interchange.programs import READS, RECEIVES, SENDS, WRITES, Program, Slot, Step, ThreadBlock
from interchange.programs.lint import shards

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
        raise FormatError(
            "the program is a custom one, of which nobody says what must be where at the end"
        )
    if loop % max(parts):
        raise FormatError(f"{loop} chunks per loop are no whole number for each of {n} ranks")
    if loop * n > MOST_CELLS:
        raise FormatError(
            f"{loop:,} chunks at {n} ranks are more than the {MOST_CELLS:,} that are followed"
        )
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


MOST_PIECES = 200_000
"""Chunks that all steps together move at most."""

SPOILT: Piece = (-1, 0)
"""A sum of what does not belong together."""

Content = Piece | None
"""What a cell holds; None is nothing yet."""

_Wanted = tuple[str, tuple[int, int, int]]
"""What a thread block waits for: a message over (src, dst, channel) or (rank, block, step)."""


@dataclass(frozen=True, slots=True)
class Carry:
    """A chunk of a message from a rank to another; `mask` has the contributions in it, as bits."""

    src: int
    dst: int
    chunk: int
    mask: int


@dataclass(frozen=True)
class Ran:
    """What a run showed.

    Parameters
    ----------
    carried
        What messages carried, in the order in which they were sent.
    empty
        Chunks of messages that carried nothing that a collective knows.
    unwritten
        Places of outputs that were to hold a rank's own chunk and do not.
    wrong
        The first place of an output that does not hold what it must, in words, or empty.
    """

    carried: tuple[Carry, ...]
    empty: int
    unwritten: int
    wrong: str


def run(layout: Layout) -> Ran:
    """Run a program.

    Raises
    ------
    FormatError
        If it stands still, receives as many chunks as were not sent, or is too long.
    """
    program = layout.program
    _check(program)
    pieces = sum(step.count for _, _, block in program.blocks() for step in block.steps)
    if pieces > MOST_PIECES:
        raise FormatError(
            f"its steps move {pieces:,} chunks, more than the {MOST_PIECES:,} that are followed"
        )
    machine = _Machine(layout)
    machine.run()
    return machine.result()


def _check(program: Program) -> None:
    """Refuse thread blocks without a peer, and steps without a place, that they need."""
    for rank, number, block in program.blocks():
        for peer, operations in ((block.send, SENDS), (block.receive, RECEIVES)):
            used = any(step.operation in operations for step in block.steps)
            if used and (peer == rank or not 0 <= peer < len(program.ranks)):
                raise FormatError(
                    f"rank {rank}, thread block {number} has {peer} as a peer, which is no other"
                )
        for turn, step in enumerate(block.steps):
            for slot, operations in ((step.src, READS), (step.dst, WRITES)):
                if step.operation in operations and slot is None:
                    raise FormatError(
                        f"rank {rank}, thread block {number}, step {turn} names no place"
                    )


class _Machine:
    """Thread blocks, buffers and messages under way."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._ranks = layout.program.ranks
        self._memory: list[dict[Cell, Content]] = [
            dict(layout.held(rank)) for rank in range(len(self._ranks))
        ]
        self._under_way: defaultdict[tuple[int, int, int], deque[tuple[Content, ...]]]
        self._under_way = defaultdict(deque)
        self._next = {(rank, number): 0 for rank, number, _ in layout.program.blocks()}
        self._waiting: defaultdict[_Wanted, list[tuple[int, int]]] = defaultdict(list)
        self._carried: list[Carry] = []
        self._empty = 0

    def run(self) -> None:
        """Let thread blocks go on until all are done."""
        ready = sorted(self._next)
        while ready:
            after: list[tuple[int, int]] = []
            for place in ready:
                wanted = self._lacks(place)
                if wanted is not None:
                    self._waiting[wanted].append(place)
                elif self._next[place] < len(self._block(place).steps):
                    after += [place, *self._step(place)]
            ready = sorted(after)
        for place in self._next:
            self._check_done(place)

    def _block(self, place: tuple[int, int]) -> ThreadBlock:
        return self._ranks[place[0]].blocks[place[1]]

    def _lacks(self, place: tuple[int, int]) -> _Wanted | None:
        """Return what the next step of a thread block still waits for."""
        rank, _ = place
        block, turn = self._block(place), self._next[place]
        if turn == len(block.steps):
            return None
        step = block.steps[turn]
        if step.after is not None and self._next.get((rank, step.after[0]), 0) <= step.after[1]:
            return "step", (rank, *step.after)
        connection = block.receive, rank, block.channel
        if step.operation in RECEIVES and not self._under_way[connection]:
            return "message", connection
        return None

    def _step(self, place: tuple[int, int]) -> Iterator[tuple[int, int]]:
        """Do the next step of a thread block; return who waited for it."""
        rank, number = place
        block, turn = self._block(place), self._next[place]
        step = block.steps[turn]
        came: tuple[Content, ...] = ()
        if step.operation in RECEIVES:
            came = self._under_way[block.receive, rank, block.channel].popleft()
            if len(came) != step.count:
                raise FormatError(
                    f"rank {rank}, thread block {number}, step {turn} receives {step.count} chunks "
                    f"and rank {block.receive} sent {len(came)}"
                )
        result = self._result(rank, step, came)
        woken: list[tuple[int, int]] = []
        if step.operation in SENDS:
            self._send(rank, block.send, result)
            connection = rank, block.send, block.channel
            self._under_way[connection].append(result)
            woken += self._waiting.pop(("message", connection), [])
        self._next[place] = turn + 1
        return iter(woken + self._waiting.pop(("step", (rank, number, turn)), []))

    def _result(self, rank: int, step: Step, came: tuple[Content, ...]) -> tuple[Content, ...]:
        """Return what a step makes of its source, what came and what it adds to; keep it."""
        memory = self._memory[rank]
        result = came
        if step.operation in READS:
            read = tuple(memory.get(cell) for cell in self._cells(rank, step.src, step.count))
            result = tuple(map(_sum, came, read)) if came else read
        target = self._cells(rank, step.dst, step.count)
        if step.operation == "re":
            result = tuple(
                _sum(memory.get(cell), each) for cell, each in zip(target, result, strict=True)
            )
        if step.operation not in ("s", "rrs", "nop"):
            memory.update(zip(target, result, strict=True))
        return result

    def _cells(self, rank: int, slot: Slot | None, count: int) -> list[Cell]:
        if slot is None:
            return []
        return [self._layout.cell(rank, slot, offset) for offset in range(count)]

    def _send(self, src: int, dst: int, contents: tuple[Content, ...]) -> None:
        many = len(self._layout.collective.chunks)
        for piece in contents:
            if piece is not None and 0 <= piece[0] < many:
                self._carried.append(Carry(src, dst, *piece))
            else:
                self._empty += 1

    def _check_done(self, place: tuple[int, int]) -> None:
        rank, number = place
        block, turn = self._block(place), self._next[place]
        if turn == len(block.steps):
            return
        step = block.steps[turn]
        what = f"a message from rank {block.receive} on channel {block.channel}"
        wanted = self._lacks(place)
        if wanted is not None and wanted[0] == "step" and step.after is not None:
            what = f"step {step.after[1]} of thread block {step.after[0]}"
        raise FormatError(
            f"it stands still: rank {rank}, thread block {number}, step {turn} ({step.operation}) "
            f"waits for {what}, which never comes"
        )

    def result(self) -> Ran:
        """Compare the outputs with what they must hold."""
        unwritten, wrong = 0, ""
        for rank, memory in enumerate(self._memory):
            for cell, piece in self._layout.wanted(rank):
                found = memory.get(cell)
                if found == piece:
                    continue
                if found is None and piece[1] == 1 << rank:
                    unwritten += 1
                elif not wrong:
                    wrong = self._difference(rank, cell, piece=piece, found=found)
        return Ran(tuple(self._carried), self._empty, unwritten, wrong)

    def _difference(self, rank: int, cell: Cell, *, piece: Piece, found: Content) -> str:
        where = f"{cell[0]}[{cell[1]}] of rank {rank} must hold {_words(piece)} and holds"
        if found is None:
            return f"{where} nothing"
        if found == SPOILT:
            return f"{where} a sum of what does not belong together"
        return f"{where} {_words(found)}"


def _sum(one: Content, other: Content) -> Content:
    """Add two contents: of one chunk, and of nobody twice."""
    if one is None or other is None or one[0] != other[0] or one[1] & other[1]:
        return SPOILT
    return one[0], one[1] | other[1]


def _words(piece: Piece) -> str:
    chunk, mask = piece
    ranks = [str(rank) for rank in range(mask.bit_length()) if mask >> rank & 1]
    if len(ranks) > 6:
        return f"chunk {chunk} of {len(ranks)} ranks"
    return f"chunk {chunk} of rank{'s' * (len(ranks) > 1)} {', '.join(ranks)}"
