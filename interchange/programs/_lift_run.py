"""A program run once with marks in the place of data: which message carries what.

All thread blocks that can go on do one step, turn after turn, so that what comes out is in an
order in which things may happen. Messages never wait for room; what stands still then stands still
in every executor.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass

from ccl.errors import FormatError
from interchange.programs._lift_cells import Cell, Layout, Piece
from interchange.programs.program import (
    READS,
    RECEIVES,
    SENDS,
    WRITES,
    Program,
    Slot,
    Step,
    ThreadBlock,
)

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
        msg = f"its steps move {pieces:,} chunks, more than the {MOST_PIECES:,} that are followed"
        raise FormatError(msg)
    machine = _Machine(layout)
    machine.run()
    return machine.result()


def _check(program: Program) -> None:
    """Refuse thread blocks without a peer, and steps without a place, that they need."""
    for rank, number, block in program.blocks():
        for peer, operations in ((block.send, SENDS), (block.receive, RECEIVES)):
            used = any(step.operation in operations for step in block.steps)
            if used and (peer == rank or not 0 <= peer < len(program.ranks)):
                msg = f"rank {rank}, thread block {number} has {peer} as a peer, which is no other"
                raise FormatError(msg)
        for turn, step in enumerate(block.steps):
            for slot, operations in ((step.src, READS), (step.dst, WRITES)):
                if step.operation in operations and slot is None:
                    msg = f"rank {rank}, thread block {number}, step {turn} names no place"
                    raise FormatError(msg)


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
                msg = (
                    f"rank {rank}, thread block {number}, step {turn} receives {step.count} chunks "
                    f"and rank {block.receive} sent {len(came)}"
                )
                raise FormatError(msg)
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
        msg = (
            f"it stands still: rank {rank}, thread block {number}, step {turn} ({step.operation}) "
            f"waits for {what}, which never comes"
        )
        raise FormatError(msg)

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
