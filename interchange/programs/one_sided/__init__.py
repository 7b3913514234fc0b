"""Programs of one-sided puts: their nouns (`program`), and how a plan becomes one.

The first stages are those of `interchange.programs.lowering`: hops, messages, places in buffers.
Here messages become errands of thread blocks, who puts what where and who waits for whom, and
these become operations (`program`).

A put has no flow control: it lands whenever it comes. So it goes only where nobody has been
before: into the output if no step of the receiver used that place so far, or else into scratch
that is its own, from where the receiver adds it to what it holds or copies it to its place. Every
connection, some messages from a rank to another, has a thread block and a channel of its own at
either end; the k-th signal is taken by the k-th wait. Thread blocks of one rank wait for one
another (`interchange.programs.lowering.cells`), from block to block over a semaphore of their own.

Messages can be done one after the other in their order, nothing waits for a later one, and so the
program cannot stand still.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ccl.errors import ProblemError
from ccl.options import option
from ccl.problem import Problem
from ccl.result import Plan
from interchange.programs import Slot, lowering
from interchange.programs.lowering.cells import (
    IN_PLACE,
    Buffers,
    Placing,
    Waits,
    cut,
    largest_row,
    pieces_row,
    smallest_row,
)
from interchange.programs.lowering.hops import (
    Hops,
    Lane,
    Message,
    Messages,
    check_unnamed,
    lanes_of,
    messages_of,
)
from interchange.programs.one_sided.program import (
    MOST_OPERATIONS,
    Block,
    Cells,
    Channel,
    ChannelKind,
    Errand,
    Op,
    PutProgram,
    PutRank,
)


@dataclass(frozen=True, slots=True)
class Layout:
    """What all ranks know: the problem, its parts, the buffers, and the kinds of channels.

    Parameters
    ----------
    problem, hops, buffers
        As of the stages before.
    in_place
        Whether input and output overlap.
    ports
        Whether channels between hosts are port channels.
    """

    problem: Problem
    hops: Hops
    buffers: Buffers
    in_place: bool
    ports: bool

    def kind(self, src: int, dst: int) -> ChannelKind:
        """Return the kind of channels between two ranks."""
        topology = self.problem.topology
        hosts = {topology.device(topology.ranks[rank]).host for rank in (src, dst)}
        return "port" if self.ports and len(hosts) > 1 else "memory"


def put_ranks(layout: Layout, messages: Messages, *, most: int) -> tuple[PutRank, ...]:
    """Return the program of every rank, with `most` messages to a connection."""
    lanes = lanes_of(messages, most)
    channels = _channels(layout, set(lanes.values()))
    ranks = [_Rank(layout, number, channels) for number in range(layout.buffers.ranks)]
    for rank in ranks:
        rank.copy_own()
    landed: dict[int, Cells] = {}
    for event in messages.events:
        message, lane = messages.messages[event.message], lanes[event.message]
        receiver = ranks[message.dst]
        if event.sends:
            landed[event.message] = receiver.landing(message)
            ranks[message.src].send(message, lane, landed[event.message])
        else:
            receiver.receive(message, lane, landed[event.message])
    return tuple(rank.finished() for rank in ranks)


def _channels(layout: Layout, lanes: set[Lane]) -> list[dict[Lane, tuple[int, Channel]]]:
    """Return for each rank its end of each lane, with its number.

    The lanes of two ranks are in the same order at both, so that the ends meet, and those of memory
    come first, as in files.
    """
    found: list[dict[Lane, tuple[int, Channel]]] = [{} for _ in range(layout.buffers.ranks)]
    for kind, lane in sorted((layout.kind(*lane[:2]), lane) for lane in lanes):
        src, dst, _ = lane
        for rank, peer in ((src, dst), (dst, src)):
            found[rank][lane] = len(found[rank]), Channel(kind, peer)
    return found


class _Rank(Placing):
    """The thread blocks of a rank while they are written."""

    def __init__(
        self, layout: Layout, number: int, channels: Sequence[dict[Lane, tuple[int, Channel]]]
    ) -> None:
        super().__init__(layout.problem, layout.hops, layout.buffers, number=number)
        self._in_place = layout.in_place
        self._channels = channels[number]
        self._used: set[Slot] = set()
        self._numbers: dict[tuple[str, Lane | None], int] = {}
        self._blocks: list[Block] = []
        self._waits = Waits([lambda slot: slot])

    def copy_own(self) -> None:
        """Copy what the rank has and needs itself, in a thread block of its own."""
        own = self._buffers.own_copy(self._number)
        if own is None:
            return
        src, dst = self._named(Slot("input", own.src)), self._named(Slot("output", own.dst))
        if src != dst:
            self._add("own", None, Op("copy", (_cells(src, own.count),), (_cells(dst, own.count),)))

    def landing(self, message: Message) -> Cells:
        """Return where a message is put: at its place if nobody was there, else in scratch."""
        count, goal = self._parts[message.part].count, self._goal(message.part)
        if goal is not None and not (message.adds or message.early):
            cells = _cells(goal, count)
            if self._used.isdisjoint(_slots(cells)):
                return cells
        return _cells(self._reserved(message.part), count)

    def send(self, message: Message, lane: Lane, landing: Cells) -> None:
        """Put what the rank holds of a part."""
        count = self._parts[message.part].count
        number, channel = self._channels[lane]
        there = Cells(landing.buffer, landing.index, landing.count, message.dst)
        here = _cells(self._here(message.part), count)
        used = (number,) if channel.kind == "port" else ()
        self._add("out", lane, Op("put", (here,), (there,), channel.kind, used))

    def receive(self, message: Message, lane: Lane, landing: Cells) -> None:
        """Add what has landed to what is held, or take or copy it to its place."""
        part = message.part
        count, target = self._parts[part].count, self._goal(part)
        if target is None:
            target = Slot(landing.buffer, landing.index)
            if message.adds and self._here(part).buffer == "scratch":
                target = self._here(part)
        moved = _cells(target, count)
        if message.adds:
            held = _cells(self._here(part), count)
            self._add("in", lane, Op("re", (held, landing), (moved,)))
        elif moved != landing:
            self._add("in", lane, Op("copy", (landing,), (moved,)))
        else:
            self._add("in", lane, None, writes=_slots(moved))
        self._place[part] = target

    def finished(self) -> PutRank:
        """Return what was written."""
        pairs = {
            (number, other): None
            for number, block in enumerate(self._blocks)
            for errand in block.errands
            for other in errand.releases
        }
        semaphores = {pair: number for number, pair in enumerate(pairs)}
        ops = tuple(block.ops(number, semaphores) for number, block in enumerate(self._blocks))
        # Not its own length where a rank has none: the executor divides by both.
        buffers = self._buffers
        given, taken = (
            max(side(rank) for rank in range(buffers.ranks))
            for side in (buffers.input, buffers.output)
        )
        channels = tuple(channel for _, channel in self._channels.values())
        return PutRank(given, taken, self._scratch, channels, (0,) * len(semaphores), ops)

    def _named(self, slot: Slot) -> Slot:
        return self._buffers.in_place(self._number, slot) if self._in_place else slot

    def _add(
        self, role: str, lane: Lane | None, move: Op | None, writes: Sequence[Slot] = ()
    ) -> None:
        """Add an errand to a thread block, and make others tell it what it must wait for."""
        number = self._numbers.setdefault((role, lane), len(self._blocks))
        if number == len(self._blocks):
            channel = (-1, Channel("memory", -1)) if lane is None else self._channels[lane]
            self._blocks.append(Block(role, channel[0], channel[1].kind))
        errand = Errand(move)
        reads = [] if move is None else [each for cells in move.src for each in _slots(cells)]
        own = () if move is None else (each for each in move.dst if each.rank is None)
        written = [*writes, *(slot for cells in own for slot in _slots(cells))]
        for other, step in self._waits.needs(number, reads=reads, writes=written):
            self._blocks[other].errands[step].releases.append(number)
            errand.acquires.append(other)
        place = number, len(self._blocks[number].errands)
        self._waits.done(place, reads=reads, writes=written)
        self._used.update(reads, written)
        self._blocks[number].errands.append(errand)


def _cells(first: Slot, count: int) -> Cells:
    return Cells(first.buffer, first.index, count)


def _slots(cells: Cells) -> list[Slot]:
    return [Slot(cells.buffer, cells.index + i) for i in range(cells.count)]


__all__ = ["Cells", "Channel", "Op", "Options", "PutProgram", "PutRank", "lower_one_sided"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a plan becomes a program of puts."""

    in_place: bool = option(
        False,
        "In place",
        "For overlapping buffers, where the collective allows it; else for separate.",
    )
    ports: bool = option(
        True,
        "Port channels between hosts",
        "Without, all GPUs must reach one another's memory, as in one rack of NVLink.",
    )
    pieces: int = pieces_row()
    operations: int = option(
        MOST_OPERATIONS,
        "Operations of a thread block, at most",
        "More thread blocks and channels are used where there are more.",
        min=8,
        max=MOST_OPERATIONS,
    )
    smallest: int = smallest_row()
    largest: int = largest_row()


def lower_one_sided(problem: Problem, plan: Plan, options: Options | None = None) -> PutProgram:
    """Return a program of puts that does what a verified plan says.

    Raises
    ------
    ProblemError
        If a runtime does not know the collective, or a thread block gets too many operations.
    """
    request = options or Options()
    hops, buffers = cut(
        problem, plan, pieces=request.pieces, smallest=request.smallest, largest=request.largest
    )
    in_place = request.in_place and buffers.kind in IN_PLACE
    layout = Layout(problem, hops, buffers, in_place, request.ports)
    return PutProgram(
        name=lowering.program_name(problem),
        collective=buffers.kind,
        ranks=_short_enough(layout, request.operations),
        in_place=in_place,
        smallest=request.smallest,
        largest=request.largest,
        root=buffers.root,
        notes=lowering.lost_notes(problem, hops),
    )


def _short_enough(layout: Layout, operations: int) -> tuple[PutRank, ...]:
    """Open more connections until every thread block has `operations` at most.

    Raises
    ------
    ProblemError
        If it has more with one message to a connection.
    """
    messages = messages_of(layout.problem, layout.hops)
    check_unnamed(messages, "a program of puts")
    most = operations
    while True:
        ranks = put_ranks(layout, messages, most=most)
        longest = max((len(ops) for rank in ranks for ops in rank.blocks), default=0)
        if longest <= operations:
            return ranks
        if most == 1:
            raise ProblemError(
                f"a thread block needs {longest} operations with one message alone, and may have "
                f"{operations}; ask for fewer chunks"
            )
        most //= 2
