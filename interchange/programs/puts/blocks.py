"""What a thread block is to do becomes its operations, with all that its threads need between.

An errand is one move of data with what it waits for and what waits for it. Threads of a block
go on while one of them waits or signals, so they meet (``nop``)

* after waits, before data is moved or anybody is told of anything;
* after data was moved, before anybody is told of it.

One errand's data never touches another's without a wait between them, except in the block that
copies a rank's own, whose copies are apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from interchange.programs.puts.program import MOST_SEMAPHORES, MOVES, ChannelKind, Op

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
