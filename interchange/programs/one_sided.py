"""Programs of puts, signals and waits, as the executor of MSCCL++ knows them.

Every rank has an input, an output and a scratch buffer, counted in chunks, channels to other ranks,
and thread blocks that run side by side, each doing its operations in order. A put writes into the
memory of another rank and nobody there notices; a signal after it tells. The k-th memory channel
of rank a to rank b and the k-th of b to a are the two ends of one: a signal at one end adds one to
a count at the other, and each wait takes one. What operations do, `count` chunks each:

============  =====================================================================
put           every dst, at other ranks, becomes the src with its number
pws, pwsf     the same, then signal; the same, then signal and flush (port channels)
get           every dst becomes the src with its number, at other ranks
signal, wait  on each of the channels
flush         waits until the port channels have read what was put
copy          dst = src
re, rre       first dst = sum of all src; of rre, src but the first are at other ranks
res, rres     the same, and put into the other dst, at other ranks
nop           all threads of the block wait for one another
barrier       all threads of `blocks` thread blocks wait for one another
sem_release   adds one to each of the semaphores of the rank
sem_acquire   waits until each is above 0 and takes one
============  =====================================================================

A thread block has many threads. Data is moved by all of them, each its share; signals, waits and
semaphores are done by one thread for each channel or semaphore, the others go on. So a ``nop``
belongs between a wait and what uses its data, and between data and the signal that tells of it.
Through a port channel somebody else puts and signals, in order and later: the source may only be
written after a flush.

Source of the semantics: microsoft/mscclpp, src/core/include/execution_kernel.hpp and
src/core/executor/executor.cc.

The first stages from a plan to a program are those of `interchange.programs.lowering`: hops,
messages, places in buffers. Here messages become errands of thread blocks, who puts what where and
who waits for whom, and these become operations.

A put has no flow control: it lands whenever it comes. So it goes only where nobody has been
before: into the output if no step of the receiver used that place so far, or else into scratch
that is its own, from where the receiver adds it to what it holds or copies it to its place. Every
connection, some messages from a rank to another, has a thread block and a channel of its own at
either end; the k-th signal is taken by the k-th wait. Thread blocks of one rank wait for one
another (`interchange.programs.lowering.cells`), from block to block over a semaphore of their own.

Messages can be done one after the other in their order, nothing waits for a later one, and so the
program cannot stand still.

An `Errand` is one move of data with what it waits for and what waits for it. What a `Block` is to
do becomes its operations, with all that its threads need between. Threads of a block go on while
one of them waits or signals, so they meet (``nop``)

* after waits, before data is moved or a signal sent;
* after data was moved, before a signal says so.

One errand's data never touches another's without a wait between them, except in the block that
copies a rank's own, whose copies are apart.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

from ccl.errors import ProblemError
from ccl.options import option
from ccl.problem import Problem
from ccl.result import Plan
from interchange.programs import Buffer, RankBuffers, Routine, Slot, lowering
from interchange.programs.lowering import cells as places
from interchange.programs.lowering import hops as paths
from interchange.programs.lowering.hops import Lane, Message

ChannelKind = Literal["memory", "port"]

RemoteMove = Literal["put", "pws", "pwsf", "get"]
LocalMove = Literal["copy", "re", "rre", "res", "rres"]
Meeting = Literal["nop", "barrier", "sem_release", "sem_acquire"]
PutOperation = Literal[RemoteMove, "signal", "wait", "flush", LocalMove, Meeting]
PUT_OPERATIONS: tuple[PutOperation, ...] = get_args(PutOperation)

PAIRED = frozenset(get_args(RemoteMove))
"""Operations with a destination for each source."""
MOVES = PAIRED | frozenset(get_args(LocalMove))
"""Operations that move data."""

MOST_OPERATIONS = 64
"""Of a thread block (src/core/include/execution_common.hpp, as are the others)."""
MOST_CHANNELS = 16
"""Of one kind, and remote buffers through it, of a thread block."""
MOST_CHANNELS_AT_ONCE = 8
"""Of one operation."""
MOST_SEMAPHORES = 16
"""Of one operation."""


@dataclass(frozen=True, slots=True)
class Cells:
    """A run of chunks in a buffer, from `index` on; of another rank unless `rank` is None."""

    buffer: Buffer
    index: int
    count: int = 1
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Channel:
    """One end of a channel: its kind and who is at the other end."""

    kind: ChannelKind
    peer: int


@dataclass(frozen=True, slots=True)
class Op:
    """What a thread block does.

    Parameters
    ----------
    name
        One of `PUT_OPERATIONS`.
    src, dst
        What is read and written.
    kind
        Of the channels; None where none is used.
    channels
        Numbers of the rank's channels.
    semaphores
        Numbers of the rank's semaphores.
    barrier, blocks
        Number of the barrier, and thread blocks that meet there.
    """

    name: PutOperation
    src: tuple[Cells, ...] = ()
    dst: tuple[Cells, ...] = ()
    kind: ChannelKind | None = None
    channels: tuple[int, ...] = ()
    semaphores: tuple[int, ...] = ()
    barrier: int = 0
    blocks: int = 1


@dataclass(frozen=True, slots=True)
class PutRank(RankBuffers):
    """What one rank does: its thread blocks, and what they use.

    `semaphores` are the values at the start.
    """

    channels: tuple[Channel, ...]
    semaphores: tuple[int, ...]
    blocks: tuple[tuple[Op, ...], ...]


@dataclass(frozen=True)
class PutProgram(Routine[PutRank]):
    """What all ranks do; it is called in place or else out of place.

    Parameters
    ----------
    parts
        In how many the chunks of the file that it was read from are cut.
    """

    parts: int = 1

    @property
    def out_of_place(self) -> bool:
        """Whether it is called with separate buffers."""
        return not self.in_place

    @property
    def chunks_per_loop(self) -> int:
        """Into how many chunks the larger of a rank's input and output is cut."""
        return self.longest

    @property
    def operations(self) -> int:
        """Operations of all thread blocks."""
        return sum(1 for _ in self.ops())

    def ops(self) -> Iterator[tuple[int, int, int, Op]]:
        """Yield all operations with rank, thread block and number."""
        for rank, each in enumerate(self.ranks):
            for block, ops in enumerate(each.blocks):
                for number, op in enumerate(ops):
                    yield rank, block, number, op

    def other_end(self, rank: int, channel: int) -> tuple[int, int] | None:
        """Return rank and channel at the other end, or None if nobody there has one."""
        return self._ends.get((rank, channel))

    @cached_property
    def _ends(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Both ends of all channels, each by the other: the k-th of a kind to the k-th back."""
        there: defaultdict[tuple[int, Channel], list[int]] = defaultdict(list)
        for rank, each in enumerate(self.ranks):
            for number, channel in enumerate(each.channels):
                there[rank, channel].append(number)
        found = {}
        for (rank, channel), numbers in list(there.items()):
            back = there.get((channel.peer, Channel(channel.kind, rank)), [])
            for here, far in zip(numbers, back, strict=False):
                found[rank, here] = channel.peer, far
        return found


_WAITS = frozenset({"wait", "sem_acquire"})
_TELLS = frozenset({"signal", "sem_release"})


@dataclass
class Errand:
    """A move of data, what it waits for and what waits for it.

    Parameters
    ----------
    move
        The operation; None where data only comes.
    acquires
        Thread blocks of the rank that must have come so far before.
    releases
        Thread blocks of the rank that wait for it.
    """

    move: Op | None
    acquires: list[int] = field(default_factory=list)
    releases: list[int] = field(default_factory=list)


@dataclass
class Block:
    """A thread block while it is written.

    Parameters
    ----------
    role
        ``out`` puts and signals, ``in`` waits for what is put, ``own`` only copies.
    channel
        Number of its channel; -1 for none.
    kind
        Of the channel.
    errands
        In order.
    """

    role: str
    channel: int = -1
    kind: ChannelKind = "memory"
    errands: list[Errand] = field(default_factory=list)

    def ops(self, number: int, semaphores: dict[tuple[int, int], int]) -> tuple[Op, ...]:
        """Return its operations; it is block `number`, and semaphores go from block to block."""
        return tuple(_with_nops(self._bare(number, semaphores)))

    def _bare(self, number: int, semaphores: dict[tuple[int, int], int]) -> Iterator[Op]:
        """Yield its operations without those that let threads meet.

        One that receives begins by saying that it has been called, one that sends by waiting for
        that: else the puts of a second call could meet the end of the first.
        """
        signal = Op("signal", kind=self.kind, channels=(self.channel,))
        wait = Op("wait", kind=self.kind, channels=(self.channel,))
        if self.role != "own":
            yield signal if self.role == "in" else wait
        for errand in self.errands:
            acquired = [semaphores[other, number] for other in errand.acquires]
            yield from _several("sem_acquire", acquired)
            if self.role == "in":
                yield wait
            if errand.move is not None:
                yield errand.move
            if self.role == "out":
                yield signal
                if self.kind == "port" and (errand.releases or errand is self.errands[-1]):
                    yield Op("flush", kind="port", channels=(self.channel,))
            released = [semaphores[number, other] for other in errand.releases]
            yield from _several("sem_release", released)


def _several(name: str, semaphores: Sequence[int]) -> Iterator[Op]:
    for start in range(0, len(semaphores), MOST_SEMAPHORES):
        some = tuple(semaphores[start : start + MOST_SEMAPHORES])
        if name == "sem_acquire":
            yield Op("sem_acquire", semaphores=some)
        else:
            yield Op("sem_release", semaphores=some)


def _with_nops(ops: Iterator[Op]) -> Iterator[Op]:
    waited = moved = False
    for op in ops:
        # A port channel moves data in order with its signals, once one thread has told it to.
        moves = op.name in MOVES and op.kind != "port"
        tells = op.name in _TELLS or (op.name in MOVES and op.kind == "port")
        if (waited and (moves or tells)) or (moved and tells):
            yield Op("nop")
            waited = moved = False
        yield op
        waited |= op.name in _WAITS or op.name == "flush"
        moved |= moves


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
    hops: paths.Hops
    buffers: places.Buffers
    in_place: bool
    ports: bool

    def kind(self, src: int, dst: int) -> ChannelKind:
        """Return the kind of channels between two ranks."""
        topology = self.problem.topology
        hosts = {topology.device(topology.ranks[rank]).host for rank in (src, dst)}
        return "port" if self.ports and len(hosts) > 1 else "memory"


def put_ranks(layout: Layout, messages: paths.Messages, *, most: int) -> tuple[PutRank, ...]:
    """Return the program of every rank, with `most` messages to a connection."""
    lanes = paths.lanes_of(messages, most)
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


class _Rank(places.Placing):
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
        self._waits = places.Waits([lambda slot: slot])

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
    pieces: int = places.pieces_row()
    operations: int = option(
        MOST_OPERATIONS,
        "Operations of a thread block, at most",
        "More thread blocks and channels are used where there are more.",
        min=8,
        max=MOST_OPERATIONS,
    )
    smallest: int = places.smallest_row()
    largest: int = places.largest_row()


def lower_one_sided(problem: Problem, plan: Plan, options: Options | None = None) -> PutProgram:
    """Return a program of puts that does what a verified plan says.

    Raises
    ------
    ProblemError
        If a runtime does not know the collective, or a thread block gets too many operations.
    """
    request = options or Options()
    hops, buffers = places.cut(
        problem, plan, pieces=request.pieces, smallest=request.smallest, largest=request.largest
    )
    in_place = request.in_place and buffers.kind in places.IN_PLACE
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
    messages = paths.messages_of(layout.problem, layout.hops)
    paths.check_unnamed(messages, "a program of puts")
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
