"""Plans: schedules of sends in epochs, forests of trees, flows.

A `Schedule` is discrete: it says which chunk crosses which link in which epoch. A `Forest` is trees
with exact weights, a collective in its steady state (the notion is that of Zhao et al., ForestColl,
section 3). A `Flow` is a fluid: how much of each chunk every link carries, without saying when;
`paths` takes it apart. `Order` has the sends of a schedule by epoch, as columns.

What an epoch means, exactly (``verify`` and every writer of a schedule hold to it):

* epoch k begins at ``k * epoch_duration``;
* sends of one link start in the order of their epochs, within an epoch in the order of
  `Schedule.sends`, each at the beginning of its epoch or when the one before it has left the
  link, whichever is later: ``start = max(k * epoch_duration, end of the previous one)``;
* a send holds its link for ``bytes * beta`` and must leave it before the epoch ends or, if it
  takes longer than an epoch, before the end of the last of the epochs that it needs when it
  starts with one, of which there are ``max(1, ceil(bytes * beta / epoch_duration))``;
* on a link under a shared limit that binds, a send is spread evenly over these epochs and leaves
  at the end of the last; in every epoch the limit lets its bandwidth through. Behind a device that
  cannot store the epochs begin with that in which its first byte comes, and there are as many more
  as it takes until the last of those of a link before it is over;
* likewise on a link with windows of less bandwidth (`ccl.problem`): in an epoch that one overlaps
  it lets through that share of ``bandwidth * epoch_duration``, and a send takes the fewest epochs,
  from those that it needs at full bandwidth on, each of which lets an equal part of it through;
* the chunk is there ``alpha`` after it left the link; latency does not hold the link.

What several sends cross together (`Send.via` says what one send does with its links):

* A multicast is one transmission for several sends: two or more whole sends of one chunk that
  leave the same storing device over the same link in the same epoch, crossing others on the path,
  are one if their links form a tree (all that cross a link have come to it by the same path), none
  of them ends where another goes on, and they part only at devices that copy (`Device.copies`).
* It has the place of its first send. Every link of the tree is held once, when the sends whose path
  it is on hold it after the common start, which is the latest of the beginning of the epoch and,
  over all links, of ``end of the previous one - offset of its occupation after the start``. All
  deadlines count from that start, as for one send. Each send arrives at its own destination when it
  would alone. What leaves the device leaves it once.
* A sum on the path is the mirror image: two or more sends of one reduced chunk that reach the same
  storing device over the same link, all given the same epoch, are one if their links form a tree
  that ends there, none of them begins where another comes through, and they run together only at
  devices that reduce (`Device.reduces`). It has the place of its last send. Links are held when
  those of the multicast are that it is backwards, counted from its end: as late as lets all arrive
  at once, as one sum. The send that would take longest alone leaves its device at the start, each
  other later by what it would take less, and must hold what it sends only then; nothing may be in
  the sum twice. Where one of its links is limited, paths meet as early as latency lets
  their first bytes meet.
* Sends that could be in both are a multicast. Where one of the conditions fails, as where paths
  part at a device that does not copy, every one of these sends crosses its links by itself. The
  same holds for chunks of which parts are sent.

A schedule on the reversed topology, whose switches have `copies` and `reduces` exchanged, read
backwards: a multicast becomes a sum of the same links, whose epoch is that of its longest send.
To be valid backwards, every destination of a multicast may use it only when all of them could.

What a send of a reduced chunk carries (`Send.terms` names it). A device keeps of such a chunk
*values*, sums of contributions of some ranks: at first its own contribution, then each value that
arrives, as it came. A send carries the sum of values that have no contribution twice
(`choose_values`):

* with terms, of those that make up just these ranks; a device that does not reduce holds them as
  one value, and passes that on;
* without, of as many as there are, the largest first and each that shares nothing with those taken
  before. Where no send of a chunk has terms, that is all that has been added up at its sender, and
  a device takes in only what it can add to that.

A device that does not copy has the values no more that it sent. A destination is served when the
values that it keeps make up all contributions. Of what leaves a device that cannot store, each send
carries values that came for its epoch (`share_values`). Sends of a multicast have the same terms or
all none; those of a sum on the path have none in common.

So times are exact and no latency is ever dropped; a formulation that wants to count a short
latency as nothing makes its epochs longer by it.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, total_ordering
from itertools import pairwise
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.symmetry import Symmetry
from ccl.topology import Topology

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

Route = tuple[str, ...]
"""The devices of a path, both ends included."""


@total_ordering
@dataclass(frozen=True, slots=True)
class Send:
    """One chunk, or a fraction of one, sent from a device to another in an epoch.

    Sends are in the order of their fields, one without terms first. Sets are in none of their own,
    so that of their ranks, the least first, takes its place.

    Parameters
    ----------
    epoch
        In which it starts, from 0.
    chunk
        Its number in the collective.
    src, dst
        The devices it leaves and reaches.
    via
        Devices that cannot store and that it crosses without stopping (cut-through).
        No byte leaves one before it has come, and a link carries no more than its bandwidth: a
        link that is faster than one before it waits until it can send without a pause, and is
        free for others until then. With n bytes the links 0, 1, ... of the path are held for
        ``n * beta[j]`` each, from ``alpha[0] + ... + alpha[j - 1] + n * d[j]`` after the start on,

            d[0] = 0,    d[j] = max(d[j - 1], d[j - 1] + beta[j - 1] - beta[j]),

        so that link j begins no earlier than the first byte is there and ends no earlier than the
        last. All has arrived the sum of alphas plus ``n * (d[m] + beta[m])`` after the start, with
        m the last link. Read backwards in time this is the same law. What crosses a limited link
        is not held to these times there, but no byte of it leaves before it has come either, and
        each link is held until its last byte has left.
        Sends may cross the same links together (above). Empty when one link joins the two.
    fraction
        How much of the chunk, in (0, 1]. Less than 1 only for a chunk with one destination
        that is not reduced: parts of it are then amounts, as in a fluid flow.
    terms
        Ranks whose contributions it carries, of a reduced chunk alone. None for all that has been
        added up at its source (above).
    """

    epoch: int
    chunk: int
    src: str
    dst: str
    via: tuple[str, ...] = ()
    fraction: float = 1.0
    terms: frozenset[int] | None = None

    @property
    def hops(self) -> tuple[tuple[str, str], ...]:
        """Ends of each link it crosses, in order."""
        stops = (self.src, *self.via, self.dst)
        return tuple(pairwise(stops))

    def __lt__(self, other: object) -> bool:
        """Whether it comes first in the order of the fields."""
        if not isinstance(other, Send):
            return NotImplemented
        return self._key() < other._key()

    def _key(self) -> tuple[object, ...]:
        ranks = () if self.terms is None else tuple(sorted(self.terms))
        return self.epoch, self.chunk, self.src, self.dst, self.via, self.fraction, ranks

    def __str__(self) -> str:
        what = f"chunk {self.chunk}"
        if self.terms is not None:
            ranks = "rank" if len(self.terms) == 1 else "ranks"
            what += f" ({ranks} {', '.join(map(str, sorted(self.terms)))})"
        return f"{what} {'->'.join((self.src, *self.via, self.dst))}"


def bits_of(ranks: Iterable[int]) -> int:
    """Return a set of ranks as the bits of a number."""
    bits = 0
    for rank in ranks:
        bits |= 1 << rank
    return bits


def ranks_of(bits: int) -> list[int]:
    """Return the set of ranks that the bits of a number are, the least first."""
    return [rank for rank in range(bits.bit_length()) if bits >> rank & 1]


def union_of(values: Iterable[int]) -> int:
    """Return the union of sets of ranks, each the bits of a number."""
    total = 0
    for each in values:
        total |= each
    return total


def _disjoint(values: Sequence[int], places: Iterable[int]) -> tuple[list[int], int]:
    """Return the places of values that share nothing, the largest first, and their union."""
    taken: list[int] = []
    total = 0
    for place in sorted(places, key=lambda place: -values[place].bit_count()):
        if not values[place] & total:
            taken.append(place)
            total |= values[place]
    return sorted(taken), total


def choose_values(values: Sequence[int], terms: int | None, *, adds: bool) -> list[int] | None:
    """Return the places of the values whose sum a send carries, or None if there are none.

    The largest are taken first, of those the earliest; places are returned in order. Where the
    parts of sums are sums themselves, as in trees, this finds what there is to be found.

    Parameters
    ----------
    values
        Those at its source as bits, in the order in which they came.
    terms
        The contributions that it is to carry as bits; None for all that can be added up.
    adds
        Whether its source reduces.
    """
    if terms in values:
        return [values.index(terms)]
    others = 0 if terms is None else ~terms
    fit, total, apart = list[int](), 0, True
    for place, value in enumerate(values):
        if not value & others:
            apart = apart and not value & total
            total |= value
            fit.append(place)
    taken, total = (fit, total) if apart else _disjoint(values, fit)
    if not total or (terms is not None and total != terms) or (len(taken) > 1 and not adds):
        return None
    return taken


def share_values(
    came: Sequence[int], terms: Sequence[int | None], *, copies: bool, adds: bool
) -> list[list[int]] | None:
    """Return for each send that leaves a device that cannot store the places of what it carries.

    Each value that came leaves the device, once unless it copies. Sends without terms carry what no
    other does, each a value or one all of them; where that is nothing, copies of all.

    Parameters
    ----------
    came
        Values that came for the epoch as bits, in order of arrival.
    terms
        Of each send that leaves the contributions as bits, or None.
    copies, adds
        Whether the device copies and reduces.

    Returns
    -------
    None where what came and what leaves do not agree.
    """
    left = list(range(len(came)))
    carried: list[list[int]] = [[] for _ in terms]
    for i, named in enumerate(terms):
        if named is None:
            continue
        able = range(len(came)) if copies else left
        chosen = choose_values([came[place] for place in able], named, adds=adds)
        if chosen is None:
            return None
        carried[i] = [able[place] for place in chosen]
        left = [place for place in left if place not in carried[i]]
    rest = left or (list(range(len(came))) if copies else [])
    others = [i for i, named in enumerate(terms) if named is None]
    if not others:
        return None if left else carried
    if len(others) == len(rest) and not (copies and adds):
        shares = [[place] for place in rest]
    elif rest and (len(rest) == 1 or adds) and (len(others) == 1 or copies):
        shares = [rest] * len(others)
    else:
        return None
    for i, share in zip(others, shares, strict=True):
        carried[i] = share
    return carried


@dataclass(frozen=True)
class Schedule:
    """Sends in epochs.

    Parameters
    ----------
    sends
        In any order of epochs; within an epoch and a link the order here is the order there.
    epoch_duration
        µs.
    horizon
        Number of epochs within which everything has arrived; what arrives later is an error.
    chunks
        Into how many chunks it cuts the data in all, where it was made for a problem whose chunks
        were cut further: a problem with fewer is cut likewise before it is verified or replayed.
        None where the chunks are those of the problem.

    Raises
    ------
    ProblemError
        If the epoch duration or an epoch or fraction is out of range, or terms are empty.
    """

    sends: tuple[Send, ...]
    epoch_duration: float
    horizon: int
    chunks: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not (self.epoch_duration > 0 and math.isfinite(self.epoch_duration)):
            raise ProblemError(
                f"a schedule needs a positive epoch duration, got {self.epoch_duration} µs"
            )
        if self.horizon < 1:
            raise ProblemError(f"a schedule needs a horizon of 1 epoch or more, got {self.horizon}")
        for send in self.sends:
            if not 0 <= send.epoch < self.horizon:
                raise ProblemError(
                    f"{send} is in epoch {send.epoch}; epochs go from 0 to {self.horizon - 1}"
                )
            if not 0 < send.fraction <= 1:
                raise ProblemError(
                    f"{send} sends the fraction {send.fraction}; give more than 0, at most 1"
                )
            if send.terms is not None and not send.terms:
                raise ProblemError(
                    f"{send} in epoch {send.epoch} has terms of no rank; name one or more, or "
                    "leave them out"
                )

    @property
    def duration(self) -> float:
        """µs until the end of the last epoch; the replay (`ccl.simulate`) is never later."""
        return self.horizon * self.epoch_duration


@dataclass(frozen=True, slots=True)
class Tree:
    """One tree along which a share of the root's data travels.

    Parameters
    ----------
    root
        Rank at its root.
    routes
        One entry per edge of the tree, parents first: the devices from the parent to the child,
        switches that are crossed included, so ``("g0", "s", "g1")``.
    weight
        Share of the root's shard that takes this tree; the weights of a root add up to 1. In an
        all-reduce, share of all data; the weights of all roots add up to 1.
    """

    root: int
    routes: tuple[tuple[str, ...], ...]
    weight: Fraction

    def __post_init__(self) -> None:
        if self.weight <= 0:
            raise ProblemError(
                f"a tree of root {self.root} has weight {self.weight}; give a positive one"
            )
        if any(len(route) < 2 for route in self.routes):
            raise ProblemError(
                f"a tree of root {self.root} has a route of one device; give two or more"
            )


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees of every root.

    Parameters
    ----------
    trees
        Out-trees from each root.
    reduces
        Whether data travels up the trees and is added along them (reduce-scatter, reduce)
        rather than down (all-gather, broadcast). Routes are then written from the child to the
        parent, children before their parents.
    spread
        Out-trees of an all-reduce, else empty: what `trees` have added up at a root goes down
        its trees here. The out-trees of a root weigh as much as its in-trees.
    symmetry
        A group that leaves no GPU in its place, or None. With it `trees` and `spread` are
        representatives: the image of each under each element belongs to the forest, with the
        weight of the representative.
    """

    trees: tuple[Tree, ...]
    reduces: bool = False
    spread: tuple[Tree, ...] = ()
    symmetry: Symmetry | None = None

    @property
    def images(self) -> int:
        """How many trees each tree stands for, itself included."""
        return 1 if self.symmetry is None else self.symmetry.order

    @property
    def depth(self) -> int:
        """Most edges from a root to a device, in-trees and out-trees one after the other."""
        return sum(
            max((depth_of(tree, reduces=reduces) for tree in trees), default=0)
            for trees, reduces in ((self.trees, self.reduces), (self.spread, False))
        )

    def every(self, topology: Topology) -> Iterator[Tree]:
        """Yield all of `trees`, images included; those of `spread` are in `unfolded`."""
        return self._images(self.trees, topology)

    def unfolded(self, topology: Topology) -> Forest:
        """Return the same forest with every tree written out, without a symmetry."""
        if self.symmetry is None:
            return self
        every = (tuple(self._images(trees, topology)) for trees in (self.trees, self.spread))
        trees, spread = every
        return Forest(trees, self.reduces, spread)

    def _images(self, trees: tuple[Tree, ...], topology: Topology) -> Iterator[Tree]:
        if self.symmetry is None:
            yield from trees
            return
        names = [each.name for each in topology.devices]
        for devices, ranks in zip(self.symmetry.devices, self.symmetry.ranks, strict=True):
            image = dict(zip(names, (names[i] for i in devices.tolist()), strict=True))
            for tree in trees:
                routes = tuple(tuple([image[name] for name in route]) for route in tree.routes)
                yield replace(tree, root=int(ranks[tree.root]), routes=routes)

    def __eq__(self, other: object) -> bool:
        """Whether trees, direction and group are the same."""
        if not isinstance(other, Forest):
            return NotImplemented
        same = (self.trees, self.reduces, self.spread) == (other.trees, other.reduces, other.spread)
        if not same or self.symmetry is None or other.symmetry is None:
            return same and self.symmetry is other.symmetry
        return np.array_equal(self.symmetry.devices, other.symmetry.devices)

    def __hash__(self) -> int:
        """Equal for equal forests."""
        return hash((self.trees, self.reduces, self.spread, self.images))


def depth_of(tree: Tree, *, reduces: bool = False) -> int:
    """Return the most edges from the root of a tree to a device, switches not counted."""
    depth: dict[str, int] = {}
    for route in reversed(tree.routes) if reduces else tree.routes:
        parent, child = (route[-1], route[0]) if reduces else (route[0], route[-1])
        depth[child] = depth.get(parent, 0) + 1
    return max(depth.values(), default=0)


@dataclass(frozen=True, slots=True)
class Rate:
    """What one link carries of one commodity.

    Parameters
    ----------
    chunk
        Number of the chunk, which is the commodity; it has one holder and one destination.
    src, dst
        Ends of the link.
    amount
        Share of the chunk, above 0 and at most 1.
    """

    chunk: int
    src: str
    dst: str
    amount: float

    def __post_init__(self) -> None:
        if not 0 < self.amount <= 1 + 1e-9:
            raise ProblemError(
                f"link {self.src}->{self.dst} carries {self.amount} of chunk {self.chunk}; "
                "give more than 0, at most 1"
            )


@dataclass(frozen=True)
class Flow:
    """A steady state: each chunk is a unit flow from its holder to its destination."""

    rates: tuple[Rate, ...]


_NOTHING = 1e-12
"""Shares of a chunk below this are rounding errors of a solver."""

_Amounts = defaultdict[str, dict[str, float]]


def paths(problem: Problem, flow: Flow) -> Iterator[tuple[int, list[tuple[float, list[str]]]]]:
    """Yield each chunk that flows with its paths: the share of each and the devices along it.

    The shares of a chunk add up to 1 as nearly as the flow does. Short paths come first.
    """
    amounts: defaultdict[int, _Amounts] = defaultdict(lambda: defaultdict(dict))
    for rate in flow.rates:
        out = amounts[rate.chunk][rate.src]
        out[rate.dst] = out.get(rate.dst, 0.0) + rate.amount
    ranks = problem.topology.ranks
    for number in sorted(amounts):
        chunk = problem.collective.chunks[number]
        if chunk.in_place:
            continue
        start, goal = ranks[chunk.holders[0]], ranks[chunk.destinations[0]]
        yield number, list(_taken(amounts[number], start, goal=goal))


def _taken(amounts: _Amounts, start: str, *, goal: str) -> Iterator[tuple[float, list[str]]]:
    """Take paths with their shares off the amounts, which are used up, until none is left."""
    while True:
        came_from = {start: ""}
        front = [start]
        while front and goal not in came_from:
            device = front.pop(0)
            for dst, amount in amounts[device].items():
                if amount > _NOTHING and dst not in came_from:
                    came_from[dst] = device
                    front.append(dst)
        if goal not in came_from:
            return
        path = [goal]
        while path[-1] != start:
            path.append(came_from[path[-1]])
        path.reverse()
        share = min(amounts[src][dst] for src, dst in itertools.pairwise(path))
        for src, dst in itertools.pairwise(path):
            amounts[src][dst] -= share
        yield share, path


_PATH = attrgetter("src", "via", "dst")


class Order:
    """The sends of a schedule by epoch, as columns; each path is there once.

    `sends` are in order, `routes` are the different paths, `split` has the chunks of which parts
    are sent and `named` those of which sends name what they carry.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.sends: Sequence[Send] = sorted(schedule.sends, key=attrgetter("epoch"))
        self._numbers: dict[tuple[str, tuple[str, ...], str], int] = {}
        # In the order in which they come, so that it is the same each time.
        for path in dict.fromkeys(map(_PATH, self.sends)):
            self._numbers[path] = len(self._numbers)
        self.routes: Sequence[Route] = [(src, *via, dst) for src, via, dst in self._numbers]
        parts, terms = map(attrgetter("fraction"), self.sends), map(attrgetter("terms"), self.sends)
        self.split = {each.chunk for each, part in zip(self.sends, parts, strict=True) if part < 1}
        self.named = {
            each.chunk for each, named in zip(self.sends, terms, strict=True) if named is not None
        }

    def __len__(self) -> int:
        """Return the number of sends."""
        return len(self.sends)

    @cached_property
    def route_of(self) -> Integers:
        """Number of each send's path, shape (sends,)."""
        numbers = map(self._numbers.__getitem__, map(_PATH, self.sends))
        return np.fromiter(numbers, np.int64, len(self))

    def devices(self, topology: Topology) -> tuple[Integers, Integers]:
        """Return the numbers of the devices that each send leaves and reaches, shape (sends,)."""
        ends = [(topology.index[route[0]], topology.index[route[-1]]) for route in self.routes]
        src, dst = np.array(ends, dtype=np.int64).reshape(-1, 2).T
        return src[self.route_of], dst[self.route_of]

    @cached_property
    def epochs(self) -> Integers:
        """Epoch of each send, shape (sends,)."""
        return np.fromiter(map(attrgetter("epoch"), self.sends), np.int64, len(self))

    @cached_property
    def chunks(self) -> Integers:
        """Chunk of each send, shape (sends,)."""
        return np.fromiter(map(attrgetter("chunk"), self.sends), np.int64, len(self))

    @cached_property
    def fractions(self) -> Floats:
        """How much of its chunk each send carries, shape (sends,)."""
        return np.fromiter(map(attrgetter("fraction"), self.sends), np.float64, len(self))

    @cached_property
    def terms(self) -> Integers:
        """Of each send the number of its terms, the same for equal ones, shape (sends,)."""
        numbers: dict[frozenset[int] | None, int] = {}
        found = [numbers.setdefault(send.terms, len(numbers)) for send in self.sends]
        return np.array(found, dtype=np.int64)
