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

What a thread block is to do becomes its operations, with all that its threads need between.

An errand is one move of data with what it waits for and what waits for it. Threads of a block
go on while one of them waits or signals, so they meet (``nop``)

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

from interchange.programs import Buffer, RankBuffers, Routine

ChannelKind = Literal["memory", "port"]

PutOperation = Literal[
    "put",
    "pws",
    "pwsf",
    "get",
    "signal",
    "wait",
    "flush",
    "copy",
    "re",
    "rre",
    "res",
    "rres",
    "nop",
    "barrier",
    "sem_release",
    "sem_acquire",
]
PUT_OPERATIONS: tuple[PutOperation, ...] = get_args(PutOperation)

MOVES = frozenset({"put", "pws", "pwsf", "get", "copy", "re", "rre", "res", "rres"})
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
