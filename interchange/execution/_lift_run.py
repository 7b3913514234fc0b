"""A program's machine run once with marks in the place of data: which message carries what.

All threads that can go on do one action, turn after turn, so that what comes out is in an order in
which things may happen. Messages never wait for room; what stands still then stands still in every
executor.

A chunk of a program is a chunk of the collective, so with n ranks and L chunks per loop there are
L/n chunks per shard, and L where there are no shards. Where a program works in place alone, the
shorter buffer of a rank is the part of the longer one that holds its own shard, and two names of
one cell are made one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain

from ccl.collective import Chunk, Collective, make_collective
from ccl.errors import FormatError
from interchange.execution.blocks import TurnByTurn, Walk, deadlock, machine_of
from interchange.execution.machine import Machine, Memory
from interchange.programs import Program, Slot
from interchange.programs.checks import SHARDED, Finding, Promise, mismatched, misplaced, promise
from interchange.programs.lowering.cells import Buffers

Piece = tuple[int, int]
"""A chunk and, as bits, whose contributions are in it; of what is not added up, its holder.

Chunks that stay where they are have numbers from that of the collective's chunks on.
"""

Content = Piece | None
"""What a cell holds; None is nothing yet."""

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
    buffers
        Where a runtime has the chunks.
    memory
        The buffers of all ranks as cells.
    promised
        What the collective gives and takes.
    """

    program: Program
    collective: Collective
    buffers: Buffers
    memory: Memory
    promised: Promise

    @cached_property
    def held(self) -> dict[int, Content]:
        """What the cells of inputs hold at the start."""
        found: dict[int, Content] = {
            self.memory.cell(rank, self.buffers.source(number)): (number, 1 << rank)
            for number, chunk in enumerate(self.collective.chunks)
            for rank in chunk.holders
        }
        for rank in range(len(self.program.ranks)):
            own = self.buffers.own_copy(rank)
            for index in range(own.src, own.src + own.count) if own is not None else ():
                stays = len(self.collective.chunks) + index
                found.setdefault(self.memory.cell(rank, Slot("input", index)), (stays, 1 << rank))
        return found

    def wanted(self) -> dict[int, Content]:
        """Return what the cells of outputs must hold at the end."""
        cell, promised = self.memory.cell, self.promised
        return {
            cell(rank, Slot("output", chunk)): reduce(
                _sum,
                (
                    self.held[cell(src, Slot("input", own))]
                    for src, own in promised.sources(rank, chunk)
                ),
            )
            for rank in filter(promised.has_output, range(promised.ranks))
            for chunk in range(promised.output)
        }


def layout_of(program: Program, size: float) -> Layout:
    """Return the layout of a program for a buffer of `size` bytes.

    Raises
    ------
    FormatError
        If it is of no collective that is known here, or its chunks do not go into its shards.
    ProblemError
        If there is nothing to move.
    """
    n, loop, kind = len(program.ranks), program.chunks_per_loop, program.collective
    promised = promise(program)
    if isinstance(promised, Finding):
        raise FormatError(promised.sentence)
    if kind == "custom":
        raise FormatError(
            "the program is a custom one, of which nobody says what must be where at the end"
        )
    if loop * n > MOST_CELLS:
        raise FormatError(
            f"{loop:,} chunks at {n} ranks are more than the {MOST_CELLS:,} that are followed"
        )
    per_shard = promised.shard if kind in SHARDED else loop
    if kind == "all-reduce":
        everyone = tuple(range(n))
        chunk = Chunk(size / loop, everyone, everyone, reduced=True)
        whole = make_collective("all-reduce", n, size)
        collective = Collective("all-reduce", whole.ranks, whole.size, (chunk,) * loop)
    else:
        collective = make_collective(kind, n, size, chunks=per_shard, root=program.root)
    memory = Memory(program, promised, in_place=not program.out_of_place)
    buffers = Buffers(kind, n, per_shard, 1, program.root)
    return Layout(program, collective, buffers, memory, promised)


MOST_PIECES = 200_000
"""Chunks that all steps together move at most."""

SPOILT: Piece = (-1, 0)
"""A sum of what does not belong together."""


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
        If it stands still, a place or the other end of a message is not there, or it is too long.
    """
    program = layout.program
    pieces = sum(step.count for _, _, block in program.blocks() for step in block.steps)
    if pieces > MOST_PIECES:
        raise FormatError(
            f"its steps move {pieces:,} chunks, more than the {MOST_PIECES:,} that are followed"
        )
    for wrong in chain(misplaced(program), mismatched(program)):
        raise FormatError(wrong.sentence)
    machine = machine_of(program, layout.memory)
    order = list(Walk(machine, slots=None)(TurnByTurn()))
    stuck = deadlock(machine, order, slots=None)
    if stuck is not None:
        raise FormatError(stuck.sentence)
    content: list[Content] = [layout.held.get(cell) for cell in range(machine.cells)]
    sent = [each for number in order for each in _act(layout, machine, number, content)]
    many = len(layout.collective.chunks)
    carried = tuple(
        Carry(src, dst, *piece) for src, dst, piece in sent if piece and 0 <= piece[0] < many
    )
    return _compared(layout, content, carried, empty=len(sent) - len(carried))


def _act(
    layout: Layout, machine: Machine, number: int, content: list[Content]
) -> Iterator[tuple[int, int, Content]]:
    """Do an action; yield what it sends, with its rank and the one that it sends to."""
    rank, block, _ = machine.where(number)
    for effect in machine.actions[number].effects:
        rows = (content[first : first + effect.count] for first in effect.sources)
        made = [reduce(_sum, each) for each in zip(*rows, strict=True)]
        content[effect.target : effect.target + effect.count] = made
        if effect.target >= machine.memory:
            peer = layout.program.ranks[rank].blocks[block].send
            yield from ((rank, peer, piece) for piece in made)


def _compared(
    layout: Layout, content: list[Content], carried: tuple[Carry, ...], *, empty: int
) -> Ran:
    """Compare the outputs with what they must hold."""
    unwritten, wrong = 0, ""
    for cell, piece in layout.wanted().items():
        found = content[cell]
        if found is None and piece and piece[1] == 1 << layout.memory.rank(cell):
            unwritten += 1
        elif found != piece and not wrong:
            wrong = (
                f"{layout.memory.name(cell)} must hold {_words(piece)} and holds {_words(found)}"
            )
    return Ran(carried, empty, unwritten, wrong)


def _sum(one: Content, other: Content) -> Content:
    """Add two contents: of one chunk, and of nobody twice."""
    if one is None or other is None or one[0] != other[0] or one[1] & other[1]:
        return SPOILT
    return one[0], one[1] | other[1]


def _words(piece: Content) -> str:
    if piece is None:
        return "nothing"
    if piece == SPOILT:
        return "a sum of what does not belong together"
    chunk, mask = piece
    ranks = [str(rank) for rank in range(mask.bit_length()) if mask >> rank & 1]
    if len(ranks) > 6:
        return f"chunk {chunk} of {len(ranks)} ranks"
    return f"chunk {chunk} of rank{'s' * (len(ranks) > 1)} {', '.join(ranks)}"
