"""Sends of chunks on their ways, what each waits for, and the times that an order gives them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from formulations.engines.list_scheduling.routes import Moves
from formulations.engines.list_scheduling.timed import TimedMoves
from formulations.engines.taccl.pairs import Pairs
from formulations.engines.taccl.parts import Part

Crossed = tuple[tuple[int, float, float], ...]
"""Of each link of a send its number, how much later than the send it is held, and how long, µs."""


@dataclass(frozen=True)
class Sends:
    """Sends in the direction in which they happen; n of them.

    Parameters
    ----------
    moves
        All moves of the topology.
    move, chunk
        Of each send the number of its move and of its parent, shape (n,).
    nbytes
        Bytes of each, shape (n,).
    after
        Sends that each waits for.
    members
        Numbers in the whole collective of the chunks of each parent.
    priority
        Of each send, larger first, shape (n,).
    alike
        Sends that symmetries exchange have the same number, shape (n,).
    """

    moves: Moves
    move: np.ndarray
    chunk: np.ndarray
    nbytes: np.ndarray
    after: tuple[tuple[int, ...], ...]
    members: tuple[tuple[int, ...], ...]
    priority: np.ndarray
    alike: np.ndarray

    def __len__(self) -> int:
        return len(self.move)

    @cached_property
    def delay(self) -> list[float]:
        """µs that each send takes."""
        moves = self.moves
        took = moves.latency[self.move] + self.nbytes * moves.slowest[self.move]
        return [float(each) for each in took]

    @cached_property
    def before(self) -> tuple[tuple[int, ...], ...]:
        """Sends that wait for each."""
        found: list[list[int]] = [[] for _ in self.after]
        for number, waits in enumerate(self.after):
            for each in waits:
                found[each].append(number)
        return tuple(tuple(each) for each in found)

    @cached_property
    def crossed(self) -> tuple[Crossed, ...]:
        """Links of each send and when they are held: for ``bytes * beta``, as the replay has it."""
        moves, found = self.moves, []
        for move, nbytes in zip(self.move.tolist(), self.nbytes.tolist(), strict=True):
            span = slice(moves.first[move], moves.first[move + 1])
            begin = (moves.lead[span] + moves.drag[span] * nbytes).tolist()
            held = (moves.beta[span] * nbytes).tolist()
            found.append(tuple(zip(moves.link[span].tolist(), begin, held, strict=True)))
        return tuple(found)

    @cached_property
    def held(self) -> tuple[Crossed, ...]:
        """The same where latency holds links too: all for the whole send, as the paper has it."""
        return tuple(
            tuple((link, 0.0, delay) for link, _, _ in crossed)
            for crossed, delay in zip(self.crossed, self.delay, strict=True)
        )

    def links(self, *, holds: bool) -> tuple[Crossed, ...]:
        """Links of each send and when they are held."""
        return self.held if holds else self.crossed


def sends_of(pairs: Pairs, taken: np.ndarray) -> Sends:
    """Return the sends of ways that were chosen, without those that nobody needs.

    Parameters
    ----------
    pairs
        What there was to choose.
    taken
        Whether each orbit is taken, shape (many,).
    """
    part = pairs.part
    came = _into(pairs, taken)
    needed: dict[tuple[int, int], int] = {}
    for chunk, device in np.argwhere(part.wants).tolist():
        here = device
        while (chunk, here) in came and (chunk, here) not in needed:
            pair = came[chunk, here]
            needed[chunk, here] = pair
            here = int(pairs.src[pair])
    place = {cell: number for number, cell in enumerate(needed)}
    chosen = np.array(list(needed.values()), dtype=np.int64)
    # A way that is turned is taken back: what was sent on before is received first.
    after: list[list[int]] = [[] for _ in place]
    for (chunk, _), number in place.items():
        source = place.get((chunk, int(pairs.src[chosen[number]])))
        if source is not None:
            near, far = (source, number) if part.turned else (number, source)
            after[near].append(far)
    chunks = pairs.chunk[chosen]
    weights = np.array([each.priority for each in part.collective.chunks], dtype=float)
    return Sends(
        part.logical.moves,
        part.logical.kept[pairs.move[chosen]],
        chunks,
        part.nbytes[chunks],
        tuple(tuple(each) for each in after),
        part.members,
        weights[chunks],
        pairs.orbit[chosen],
    )


def _into(pairs: Pairs, taken: np.ndarray) -> dict[tuple[int, int], int]:
    """Return the pair by which each chunk comes to each device."""
    chosen = np.flatnonzero(taken[pairs.orbit])
    cells = zip(pairs.chunk[chosen].tolist(), pairs.dst[chosen].tolist(), strict=True)
    return dict(zip(cells, chosen.tolist(), strict=True))


def joined(head: Part, adding: Sends, spreading: Sends) -> Sends:
    """Return the sends of both halves of a sum; what spreads waits for its sum to be complete.

    Parameters
    ----------
    head
        The half that adds up.
    adding, spreading
        The sends of both halves.
    """
    root = head.holds.argmax(axis=1)
    last: dict[int, list[int]] = {}
    received = adding.moves.dst[adding.move]
    for number in np.flatnonzero(received == root[adding.chunk]).tolist():
        for member in adding.members[adding.chunk[number]]:
            last.setdefault(member, []).append(number)
    shift = len(adding)
    after = list(adding.after)
    for chunk, waits in zip(spreading.chunk.tolist(), spreading.after, strict=True):
        sums = {each for member in spreading.members[chunk] for each in last.get(member, [])}
        after.append(tuple(each + shift for each in waits) or tuple(sorted(sums)))
    return Sends(
        adding.moves,
        np.concatenate([adding.move, spreading.move]),
        np.concatenate([adding.chunk, spreading.chunk + len(adding.members)]),
        np.concatenate([adding.nbytes, spreading.nbytes]),
        tuple(after),
        adding.members + spreading.members,
        np.concatenate([adding.priority, spreading.priority]),
        np.concatenate([adding.alike, spreading.alike + int(adding.alike.max(initial=0)) + 1]),
    )


def times(sends: Sends, order: list[int], *, holds: bool = False) -> list[float]:
    """Return the earliest start of each send in µs if links serve them in an order.

    Parameters
    ----------
    sends
        What is sent.
    order
        All of them, none before what it waits for.
    holds
        Whether latency holds links too.
    """
    crossed, delay, after = sends.links(holds=holds), sends.delay, sends.after
    free: dict[int, float] = {}
    start = [0.0] * len(order)
    for number in order:
        begin = max((start[each] + delay[each] for each in after[number]), default=0.0)
        for link, lead, _ in crossed[number]:
            begin = max(begin, free.get(link, 0.0) - lead)
        start[number] = begin
        for link, lead, held in crossed[number]:
            free[link] = begin + lead + held
    return start


def end(sends: Sends, start: list[float]) -> float:
    """Return when the last send is there, in µs."""
    return max((each + took for each, took in zip(start, sends.delay, strict=True)), default=0.0)


def parted(sends: Sends, order: list[int], sizes: np.ndarray) -> tuple[Sends, list[int]]:
    """Return the sends of chunks, one after the other in place of their parents', and their order.

    Parameters
    ----------
    sends, order
        Those of parents.
    sizes
        Bytes of the chunks of the whole collective.
    """
    if all(len(each) == 1 for each in sends.members):
        numbers = np.array([each[0] for each in sends.members], dtype=np.int64)
        single = tuple((each,) for each in range(len(sizes)))
        return replace(sends, chunk=numbers[sends.chunk], members=single), order
    many = [len(sends.members[chunk]) for chunk in sends.chunk.tolist()]
    begin = np.cumsum([0, *many])
    which = np.repeat(np.arange(len(sends)), many)
    chunk = np.array([each for one in sends.chunk.tolist() for each in sends.members[one]])
    after = tuple(
        tuple(int(begin[each]) + place for each in sends.after[number])
        for number in range(len(sends))
        for place in range(many[number])
    )
    parts = Sends(
        sends.moves,
        sends.move[which],
        chunk,
        sizes[chunk],
        after,
        tuple((each,) for each in range(len(sizes))),
        sends.priority[which],
        sends.alike[which],
    )
    return parts, [int(begin[each]) + place for each in order for place in range(many[each])]


def timed(sends: Sends, order: list[int]) -> TimedMoves:
    """Return the sends of whole chunks at the times that an order gives them, for a schedule."""
    place = np.array(order, dtype=np.int64)
    start = np.array(times(sends, order))[place]
    return TimedMoves(sends.move[place], sends.chunk[place], start, np.arange(len(place)))
