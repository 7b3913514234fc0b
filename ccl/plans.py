"""Plans: schedules of sends in epochs, forests of trees, flows.

Discrete schedules: which chunk crosses which link in which epoch.

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

So times are exact and no latency is ever dropped; a formulation that wants to count a short
latency as nothing makes its epochs longer by it.

Trees with exact weights: a collective in its steady state.

Source of the notion: Zhao et al., ForestColl, section 3.

Fluid flows: how much of each chunk every link carries, without saying when.

Flows taken apart into paths.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.symmetry import Symmetry
from ccl.topology import Topology


@dataclass(frozen=True, slots=True, order=True)
class Send:
    """One chunk, or a fraction of one, sent from a device to another in an epoch.

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
    """

    epoch: int
    chunk: int
    src: str
    dst: str
    via: tuple[str, ...] = ()
    fraction: float = 1.0

    @property
    def hops(self) -> tuple[tuple[str, str], ...]:
        """Ends of each link it crosses, in order."""
        stops = (self.src, *self.via, self.dst)
        return tuple(pairwise(stops))

    def __str__(self) -> str:
        return f"chunk {self.chunk} {'->'.join((self.src, *self.via, self.dst))}"


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
        If the epoch duration or an epoch or fraction is out of range.
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
