"""Who reaches whom, rings through all ranks, and what a closed form is for one problem.

`Reachability` of ranks is by a link, or by a path over devices that cannot store. Rows of
neighbours are whole numbers, one bit for each rank, so that a search over thousands of ranks finds
the neighbours of several at once in no time.

`ring_of` finds a ring, a cycle through all ranks, as fast as can be. It is searched depth first,
over fast paths before slow ones and short ones before long ones, ranks in the order of the drawing.
Once it has had to turn back, a step is taken only if all that are left can be reached from it, and
the first rank from them. No claim is made that no better ring exists.

A `Pattern` is a closed form for one problem: an order of the ranks, messages, and the published
formula. Formulas may be of several phases (`summed`), some within hosts (α1, β1) and some between
hosts (α2, β2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise

import numpy as np
from scipy import sparse

from ccl.topology import Topology
from formulations.engines.closed_forms.trees import Algorithm, Messages, Task
from formulations.engines.epoch_grid.relay_paths import LONGEST_PATH, passable, relay_paths

ROWS = 256
"""Ranks whose neighbours are found at once."""


@dataclass(frozen=True)
class Reachability:
    """Who is joined to whom.

    Parameters
    ----------
    out, into
        Bits of those that each one reaches, and that reach it.
    """

    out: list[int]
    into: list[int]

    @classmethod
    def of(cls, count: int, pairs: Iterable[tuple[int, int]]) -> Reachability:
        """Make it of pairs (src, dst) among so many."""
        out, into = [0] * count, [0] * count
        for src, dst in pairs:
            out[src] |= 1 << dst
            into[dst] |= 1 << src
        return cls(out, into)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.out)

    def has(self, src: int, dst: int) -> bool:
        """Return whether one reaches the other."""
        return bool(self.out[src] >> dst & 1)

    def within(self, other: Reachability) -> bool:
        """Return whether the other joins all that this does."""
        return not any(mine & ~others for mine, others in zip(self.out, other.out, strict=True))

    @cached_property
    def strong(self) -> bool:
        """Whether everyone reaches everyone, in any number of turns."""
        others = (1 << self.count) - 2
        return all(reached(rows, 0, others) == others for rows in (self.out, self.into))

    @property
    def complete(self) -> bool:
        """Whether everyone reaches everyone else at once."""
        every = (1 << self.count) - 1
        return all(row | 1 << place == every for place, row in enumerate(self.out))

    @property
    def mutual(self) -> Reachability:
        """Those who reach each other."""
        both = [out & into for out, into in zip(self.out, self.into, strict=True)]
        return Reachability(both, both)


def reached(rows: list[int], first: int, among: int) -> int:
    """Return the bits of those among some that one reaches, over these alone."""
    seen = front = rows[first] & among
    while front:
        near = 0
        while front:
            lowest = front & -front
            front ^= lowest
            near |= rows[lowest.bit_length() - 1]
        front = near & among & ~seen
        seen |= front
    return seen


def nearest(topology: Topology) -> Iterator[Reachability]:
    """Yield which ranks are joined, at first by fast paths only and by short ones among these.

    Each joins some that none before it does.
    """
    widest = Reachability.of(len(topology.ranks), ())
    for pace in paces(topology):
        every = [each for each in levels(topology, pace) if not each.within(widest)]
        yield from every
        widest = every[-1] if every else widest


def paces(topology: Topology) -> list[float]:
    """Return the GB/s that links have, the fastest first."""
    return sorted({link.bandwidth for link in topology.links}, reverse=True)


def reachability(topology: Topology, pace: float = 0.0) -> Reachability:
    """Return which ranks a path joins whose links all have `pace` GB/s or more."""
    return levels(topology, pace)[-1]


def levels(topology: Topology, pace: float) -> list[Reachability]:
    """Return which ranks are joined by paths whose links all have `pace` GB/s or more.

    First those that paths of fewest links join, then more and more of them; the last has all.
    """
    if topology.limits:
        # What passes the same limit twice may be too much for it, so paths count one by one.
        return _unlike(_let_through(topology, pace))
    crossed = [each.name for each in topology.devices if not each.stores]
    place = {name: number for number, name in enumerate((*topology.ranks, *crossed))}
    ends = [
        (place[link.src], place[link.dst])
        for link in topology.links
        if link.bandwidth >= pace and link.src in place and link.dst in place
    ]
    rows, columns = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    shape = len(place), len(place)
    links = sparse.csr_array((np.ones(len(rows), dtype=bool), (rows, columns)), shape=shape)
    count = len(topology.ranks)
    out, into = _rows(links, count), _rows(sparse.csr_array(links.T), count)
    return _unlike(map(Reachability, out, into))


def _unlike(every: Iterable[Reachability]) -> list[Reachability]:
    """Return those that are not as the one before."""
    found: list[Reachability] = []
    for each in every:
        if not found or each != found[-1]:
            found.append(each)
    return found


def _rows(links: sparse.csr_array, count: int) -> list[list[int]]:
    """Return for each rank the bits of those that paths of at most 1, 2, ... links lead to."""
    found: list[list[int]] = [[] for _ in range(LONGEST_PATH)]
    through, back = links[count:, count:], links[count:, :count]
    for first in range(0, count, ROWS):
        block = links[first : min(first + ROWS, count)]
        near, front = block[:, :count], block[:, count:]
        itself = np.arange(near.shape[0])
        for rows in found:
            table = near.toarray() != 0
            table[itself, first + itself] = False
            bits = np.packbits(table, axis=1, bitorder="little")
            rows += [int.from_bytes(row.tobytes(), "little") for row in bits]
            near = near + front @ back
            front = front @ through
    return found


def _let_through(topology: Topology, pace: float) -> Iterable[Reachability]:
    """Yield those that paths of at most 1, 2, ... links join."""
    rank, link = topology.rank, topology.link
    pairs: list[list[tuple[int, int]]] = [[] for _ in range(LONGEST_PATH)]
    for route in filter(passable(topology), relay_paths(topology)):
        ends = route[0], route[-1]
        if all(name in rank for name in ends) and all(
            link(*pair).bandwidth >= pace for pair in pairwise(route)
        ):
            pairs[len(route) - 2].append((rank[ends[0]], rank[ends[1]]))
    for most in range(LONGEST_PATH):
        yield Reachability.of(len(rank), chain.from_iterable(pairs[: most + 1]))


WORK = 600_000
"""Ranks looked at in the searches for a ring, after which it gives up; half a second."""

Hop = tuple[int, ...]
"""Links that a ring takes from a rank to the next."""


def ring_of(topology: Topology, *, both: bool = False) -> np.ndarray | None:
    """Return the ranks around a ring, its slowest hop as fast as could be found, or None.

    With `both`, paths lead around it in both directions.
    """
    if len(topology.ranks) < 2:
        return None
    found: list[Reachability] = []
    patience = Patience(WORK)
    for near in nearest(topology):
        paths = near.mutual if both else near
        ring = cycle(paths, patience, faster=found)
        if ring is not None:
            return np.array(ring)
        found.append(paths)
    return None


@dataclass
class Patience:
    """Ranks that may still be looked at."""

    left: int


def cycle(
    paths: Reachability,
    patience: Patience,
    *,
    faster: Sequence[Reachability] = (),
    take: Callable[[int, int], Hop | None] = lambda *_: (),
    give: Callable[[Hop], None] = lambda _: None,
) -> list[int] | None:
    """Return a cycle through all, or None.

    Parameters
    ----------
    paths
        Who is joined to whom.
    patience
        What is left of it; without any it is None.
    faster
        Of these, those that are tried first, the first first.
    take, give
        Takes a hop, if it is still free, and gives it back.
    """
    if not (all(paths.out) and paths.strong):
        return None
    search = _Search(paths, (*faster, paths), take)
    while patience.left > 0:
        patience.left -= search.work
        following = search.following()
        if following is not None:
            if search.went(following):
                return search.path
        elif len(search.path) == 1:
            return None
        else:
            give(search.turn())
    for hop in search.hops:
        give(hop)
    return None


@dataclass
class _Search:
    """A path from the first rank, and what may still come after each of its ranks."""

    paths: Reachability
    tiers: Sequence[Reachability]
    take: Callable[[int, int], Hop | None]
    turned: bool = False
    work: int = 1

    def __post_init__(self) -> None:
        self.path, self.hops = [0], list[Hop]([()])
        self.pending = [self.paths.out[0]]
        self.free = (1 << self.paths.count) - 2

    def following(self) -> int | None:
        """Return who comes next: the nearest that is left, by rank after the last."""
        last, able = self.path[-1], self.pending[-1] & self.free
        for tier in self.tiers:
            near = able & tier.out[last]
            if near:
                near = (near >> last << last) or near
                return (near & -near).bit_length() - 1
        return None

    def went(self, following: int) -> bool:
        """Go on to the next, if that is any good, and say whether the ring is closed by it."""
        self.work = 1
        self.pending[-1] ^= 1 << following
        left = self.free ^ (1 << following)
        if left and self.turned and not self._open(following, left):
            return False
        hop = self.take(self.path[-1], following)
        if hop is None:
            return False
        self.path.append(following)
        if not left and self.paths.has(following, 0) and self.take(following, 0) is not None:
            return True
        self.hops.append(hop)
        self.pending.append(self.paths.out[following])
        self.free = left
        return False

    def turn(self) -> Hop:
        """Go back by one; return the hop that is free again."""
        self.turned, self.work = True, 1
        self.pending.pop()
        self.free |= 1 << self.path.pop()
        return self.hops.pop()

    def _open(self, last: int, left: int) -> bool:
        """Return whether the last reaches all that are left, and they the first."""
        self.work += 2 * left.bit_count()
        paths = self.paths
        return reached(paths.out, last, left) == left and reached(paths.into, 0, left) == left


@dataclass(frozen=True)
class Formula:
    """A published α-β formula.

    Parameters
    ----------
    expression
        As it is written: α, β, p ranks, m bytes of the whole buffer, n chunks; γ, to add up, is
        left out, as adding costs nothing in a replay.
    makespan
        What it comes to in µs, of α in µs and β in µs per byte; p and m are those of the problem.
    by_host
        The same of α1, β1 of paths within a host and α2, β2 of those between hosts, for a formula
        that distinguish them.
    """

    expression: str
    makespan: Callable[[float, float], float]
    by_host: Callable[[float, float, float, float], float] | None = None


@dataclass(frozen=True)
class Pattern:
    """What a form does with a problem.

    Parameters
    ----------
    order
        Rank at each place, shape (places,).
    spread
        Gives the messages of a task without sums. Reductions are these read backwards, from the
        last step to the first on reversed links; a sum that all want is added up at one place
        for each chunk and spread from there.
    formula
        The published formula for the whole problem.
    roots
        Place at which each chunk of an all-reduce is added up, shape (chunks,); None for shards
        in order, as the blocks of an all-gather lie.
    exchange
        Gives the messages of an all-reduce that has no root: in every step partial sums go both
        paths between two places. None for forms that add up and then spread.
    back
        Rank at each place on reversed links, where that is another order.
    turned
        Gives the messages on reversed links, where these are others: where links are one way,
        rings are turned round.
    one_port
        Whether the formula counts all that a place sends in a step, and all that it takes in, as
        passing through one port.
    """

    order: np.ndarray
    spread: Callable[[Task], Messages]
    formula: Formula
    roots: np.ndarray | None = None
    exchange: Callable[[Task], Messages] | None = None
    back: np.ndarray | None = None
    turned: Callable[[Task], Messages] | None = None
    one_port: bool = False


@dataclass(frozen=True)
class Phase:
    """What a phase takes.

    Parameters
    ----------
    level
        1 within hosts, 2 between them.
    steps
        How many latencies.
    nbytes
        Bytes one after the other.
    text
        As it is written.
    """

    level: int
    steps: int
    nbytes: float
    text: str


@dataclass(frozen=True)
class Among:
    """Those who deal with one another in a phase.

    Parameters
    ----------
    level
        1 within hosts, 2 between them.
    letter
        Of their number in formulas.
    count
        Their number.
    algorithm
        How they do it.
    """

    level: int
    letter: str
    count: int
    algorithm: Algorithm

    def to_all(self, nbytes: float, text: str) -> Phase:
        """Each sends so many bytes to each other, the same or others; `text` writes them."""
        level, letter = self.level, self.letter
        begin, each = f"α{level}", f"{text} β{level}"
        written = {
            "direct": f"{begin} + ({letter}-1) {each}",
            "ring": f"({letter}-1) ({begin} + {each})",
            "doubling": f"log2 {letter} {begin} + ({letter}-1) {each}",
        }
        steps = {"direct": 1, "ring": self.count - 1, "doubling": self.count.bit_length() - 1}
        return Phase(
            level, steps[self.algorithm], (self.count - 1) * nbytes, written[self.algorithm]
        )

    def down(self, nbytes: float, text: str, *, chunks: int) -> Phase:
        """One sends so many bytes to all others, in so many chunks."""
        level, letter = self.level, self.letter
        if self.algorithm == "direct":
            return self.to_all(nbytes, text)
        if self.algorithm == "ring":
            steps = self.count + chunks - 2
            written = f"({letter} + {chunks} - 2) (α{level} + {text} β{level}/{chunks})"
            return Phase(level, steps, steps * nbytes / chunks, written)
        steps = math.ceil(math.log2(self.count))
        return Phase(level, steps, steps * nbytes, f"⌈log2 {letter}⌉ (α{level} + {text} β{level})")

    def through_one(self, nbytes: float, text: str) -> Phase:
        """So many bytes reach or leave one of them, all at once."""
        return Phase(self.level, 1, nbytes, f"α{self.level} + {text} β{self.level}")


def summed(phases: Sequence[Phase], *, twice: bool) -> Formula:
    """Return the formula of phases one after the other, or of all that there and back."""
    many = 2 if twice else 1
    text = " + ".join(phase.text for phase in phases)

    def by_host(alpha1: float, beta1: float, alpha2: float, beta2: float) -> float:
        cost = {1: (alpha1, beta1), 2: (alpha2, beta2)}
        return many * sum(
            phase.steps * cost[phase.level][0] + phase.nbytes * cost[phase.level][1]
            for phase in phases
        )

    return Formula(
        f"2 ({text})" if twice else text,
        lambda alpha, beta: by_host(alpha, beta, alpha, beta),
        by_host,
    )
