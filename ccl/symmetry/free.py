"""Automorphisms: permutations of devices that leave a cluster and a collective as they are.

A group of them that acts freely on GPUs and links lets a schedule be made for one
chunk of each orbit: its images are the rest, and no two of them meet on a link.

Clusters are numbered in an order that shows how they are built: hosts one after the other, a torus
row by row. So candidates are found by counting: of the digits of a rank, written in any mixed
base, one is turned round or, where it has two values, exchanged. Each is extended to the other
devices by refinement and then checked link by link; what passes is an automorphism, however it
was guessed. A cluster whose numbers show nothing is found to have none.

A topology as colours and numbers, and whether a permutation of its devices keeps them.

Colour refinement: devices that differ in what they are linked to get different colours.

Colours that are equal do not mean that devices are interchangeable; colours that differ mean that
they are not. They are used for finding candidates only.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ccl.collective import Collective
from ccl.topology import Topology

Moves = tuple[np.ndarray, np.ndarray]
"""Links that a permutation moves, and where it takes them; two arrays of the same shape."""


@dataclass(frozen=True, eq=False)
class Shape:
    """What an automorphism must keep.

    Parameters
    ----------
    topology
        The cluster.
    src, dst
        Positions of the ends of each link, shape (links,).
    device, link, limit
        A number for each device, link and shared limit; it goes to one of the same number.
    membership
        Pairs of a limit and one of its links, shape (2, memberships).
    """

    topology: Topology
    src: np.ndarray
    dst: np.ndarray
    device: np.ndarray
    link: np.ndarray
    limit: np.ndarray
    membership: np.ndarray

    @property
    def size(self) -> int:
        """Number of devices."""
        return len(self.device)

    @cached_property
    def _keys(self) -> np.ndarray:
        """Return a number for each link that its ends decide, shape (links,)."""
        return np.asarray(self.src * self.size + self.dst)

    @cached_property
    def _order(self) -> np.ndarray:
        """Links in the order of their keys."""
        return np.argsort(self._keys)

    def moves(self, image: np.ndarray) -> Moves | None:
        """Return the links that move and where they go; None if it is no automorphism.

        Parameters
        ----------
        image
            Where each device goes, shape (devices,).
        """
        if not _permutes(image, self.size) or (self.device[image] != self.device).any():
            return None
        src, dst = image[self.src], image[self.dst]
        moves = (src != self.src) | (dst != self.dst)
        moved = np.flatnonzero(moves)
        # Links that move take one another's places, so that they only need to be sorted.
        wanted = src[moved] * self.size + dst[moved]
        there = self._order[moves[self._order]]
        here = np.argsort(wanted)
        if (wanted[here] != self._keys[there]).any():
            return None
        links = np.empty_like(moved)
        links[here] = there
        if (self.link[links] != self.link[moved]).any() or not self._limits_kept(moved, links):
            return None
        return moved, links

    def _limits_kept(self, moved: np.ndarray, images: np.ndarray) -> bool:
        """Test that each limit goes to one of its kind: match sets by sums, then compare."""
        if not len(self.limit):
            return True
        links = np.arange(len(self.src))
        links[moved] = images
        limit, member = self.membership
        before, after = self._sums(member), self._sums(links[member])
        place = np.empty(len(self.limit), dtype=np.int64)
        place[np.argsort(after, kind="stable")] = np.argsort(before, kind="stable")
        if (self.limit[place] != self.limit).any():
            return False
        many = len(self.src)
        found = np.sort(place[limit] * many + links[member])
        return bool((found == np.sort(limit * many + member)).all())

    def _sums(self, member: np.ndarray) -> np.ndarray:
        """Return a number for each limit that its colour and its links decide."""
        total = scatter_numbers(self.limit.astype(np.uint64))
        np.add.at(total, self.membership[0], scatter_numbers(member.astype(np.uint64)))
        return total


def shape_of(
    topology: Topology,
    *,
    colours: Iterable[Hashable] | None = None,
    links: Iterable[Hashable] | None = None,
    steady: bool = False,
) -> Shape:
    """Return what an automorphism must keep.

    Parameters
    ----------
    topology
        The cluster.
    colours
        Something for each device that must be equal for two to change places, besides kind,
        abilities and buffer.
    links
        Something for each link, such as its cost, besides bandwidth and latency.
    steady
        Whether latencies may differ, as in a steady state, where only bandwidths count.
    """
    many = len(topology.links)
    device = number_keys(
        (each.kind, each.stores, each.copies, each.reduces, each.buffer_bytes)
        for each in topology.devices
    )
    bandwidth = np.fromiter((each.bandwidth for each in topology.links), np.float64, many)
    link = number_pairs(np.zeros(many, dtype=np.int64), bandwidth)
    if not steady:
        alpha = np.fromiter((each.alpha for each in topology.links), np.float64, many)
        link = number_pairs(link, alpha)
    if colours is not None:
        device = number_pairs(device, number_keys(colours))
    if links is not None:
        link = number_pairs(link, number_keys(links))
    places = topology.link_index if topology.limits else {}
    return Shape(
        topology=topology,
        src=topology.ends[0],
        dst=topology.ends[1],
        device=device,
        link=link,
        limit=number_keys(each.bandwidth for each in topology.limits),
        membership=np.array(
            [(i, places[ends]) for i, each in enumerate(topology.limits) for ends in each.links],
            dtype=np.int64,
        )
        .reshape(-1, 2)
        .T,
    )


def number_keys(keys: Iterable[Hashable]) -> np.ndarray:
    """Return a number for each key, equal for equal ones."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def number_pairs(numbers: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Return a number for each pair."""
    other = np.unique(more, return_inverse=True)[1].ravel()
    both = numbers * (int(other.max(initial=0)) + 1) + other
    return np.asarray(np.unique(both, return_inverse=True)[1].ravel())


def scatter_numbers(numbers: np.ndarray) -> np.ndarray:
    """Scatter numbers, so that sums of different ones differ; what collides is checked later."""
    with np.errstate(over="ignore"):
        x = (numbers + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
        x ^= x >> np.uint64(29)
        x *= np.uint64(0x94D049BB133111EB)
        return np.asarray(x ^ (x >> np.uint64(32)))


def _permutes(image: np.ndarray, size: int) -> bool:
    if image.shape != (size,) or (image < 0).any() or (image >= size).any():
        return False
    return bool((np.bincount(image, minlength=size) == 1).all())


def refine_colours(shape: Shape, colours: np.ndarray, *, rounds: int | None = None) -> np.ndarray:
    """Return colours that the neighbours' colours decide too, again and again.

    Parameters
    ----------
    shape
        The cluster.
    colours
        A number for each device to begin with, shape (..., devices); with several rows these are
        coloured alike, so that colours can be compared between them.
    rounds
        After how many rounds to stop; None goes on until nothing changes.
    """
    _, start = np.unique(colours, return_inverse=True)
    colour = start.reshape(colours.shape)
    many, turn = -1, 0
    while (count := int(colour.max(initial=0)) + 1) > many and turn != rounds:
        signs = np.array([_signs(shape, row) for row in np.atleast_2d(colour)])
        _, which = np.unique(signs, return_inverse=True)
        colour = which.reshape(colours.shape)
        many, turn = count, turn + 1
    return colour


def neighbours(shape: Shape) -> np.ndarray:
    """Return a number for each device that its neighbours and the links to them decide."""
    mixed = scatter_numbers(np.arange(shape.size, dtype=np.uint64))
    return _signs(shape, np.arange(shape.size)) - mixed * np.uint64(3)


def _signs(shape: Shape, colours: np.ndarray) -> np.ndarray:
    """Return a number for each device that its colour and its neighbours' decide."""
    mixed = scatter_numbers(colours.astype(np.uint64))
    kinds = scatter_numbers(_capped(shape) + np.uint64(7919))
    total = mixed * np.uint64(3)
    np.add.at(total, shape.src, scatter_numbers(mixed[shape.dst] ^ kinds))
    np.add.at(total, shape.dst, scatter_numbers(mixed[shape.src] + kinds))
    return total


def _capped(shape: Shape) -> np.ndarray:
    """Return a number for each link that its colour and those of its limits decide."""
    total = shape.link.astype(np.uint64)
    if len(shape.limit):
        limit, member = shape.membership
        np.add.at(total, member, scatter_numbers(shape.limit[limit].astype(np.uint64)))
    return total


MOST_DEVICES = 4096
"""Devices above which no symmetry is looked for."""


@dataclass(frozen=True)
class Symmetry:
    """A group of automorphisms of a topology.

    Parameters
    ----------
    topology
        On which it acts.
    devices
        Image of each device under each element, the identity first, shape (order, devices).
        The elements are the products of powers of generators, the power of the last one outermost.
    powers
        How many powers of each generator there are; their product is the order.
    """

    topology: Topology
    devices: np.ndarray
    powers: tuple[int, ...] = ()

    @property
    def order(self) -> int:
        """Number of elements."""
        return len(self.devices)

    @property
    def generators(self) -> tuple[int, ...]:
        """Places of the generators among the elements; what they keep, all of them keep."""
        places, many = [], 1
        for power in self.powers:
            places.append(many)
            many *= power
        return tuple(places)

    @cached_property
    def links(self) -> np.ndarray:
        """Image of each link under each element, shape (order, links)."""
        table = np.full((self.devices.shape[1],) * 2, -1, dtype=np.int64)
        src, dst = self.topology.ends
        table[src, dst] = np.arange(len(src))
        return np.asarray(table[self.devices[:, src], self.devices[:, dst]])

    @cached_property
    def ranks(self) -> np.ndarray:
        """Image of each rank under each element, shape (order, ranks)."""
        gpus = [self.topology.index[name] for name in self.topology.ranks]
        rank = np.full(self.devices.shape[1], -1, dtype=np.int64)
        rank[gpus] = np.arange(len(gpus))
        return np.asarray(rank[self.devices[:, gpus]])

    def orbits(self, images: np.ndarray) -> np.ndarray:
        """Return the smallest image of each: orbits have the same, shape of one element."""
        return np.asarray(images.min(axis=0))

    def cosets(self, part: Symmetry) -> np.ndarray:
        """Return the places of elements by cosets of a subgroup, shape (cosets, its order).

        In a row is what each element of the subgroup makes of the first.
        """
        place = {each.tobytes(): number for number, each in enumerate(self.devices)}
        rows: list[list[int]] = []
        seen: set[int] = set()
        for number, each in enumerate(self.devices):
            if number not in seen:
                rows.append([place[image.tobytes()] for image in part.devices[:, each]])
                seen.update(rows[-1])
        return np.array(rows)

    def moving(self, links: np.ndarray) -> Symmetry:
        """Return the largest subgroup found that leaves none of some links where it is.

        But for the identity; and none of their images. It is put together of powers of generators.

        Parameters
        ----------
        links
            Their numbers.
        """
        every = np.unique(self.links[:, links])
        stays = (self.links[:, every] == every).any(axis=1)
        known = {each.tobytes(): number for number, each in enumerate(self.devices)}
        chosen, generators, powers, base = [0], list[int](), list[int](), 1
        for power in self.powers:
            for step in _divisors(power)[:-1]:
                wider = [base * turn + each for turn in range(0, power, step) for each in chosen]
                ones = [*generators, base * step]
                moved = {
                    known[self.devices[i][self.devices[g]].tobytes()] for i in wider for g in ones
                }
                if not stays[wider[1:]].any() and moved == {*wider}:
                    chosen, generators = wider, ones
                    powers.append(power // step)
                    break
            base *= power
        return Symmetry(self.topology, self.devices[chosen], tuple(powers))

    def chunks(self, collective: Collective) -> np.ndarray | None:
        """Return the image of each chunk under each element, shape (order, chunks), or None.

        There are none where a chunk has no image. Chunks that are alike are taken in the order of
        their numbers.
        """
        turned = self.turned(collective)
        return None if turned is None else self.images(turned, np.arange(turned.shape[1]))

    def turned(self, collective: Collective) -> np.ndarray | None:
        """Return the image of each chunk under each generator, shape (generators, chunks), or None.

        There are none where a chunk has no image.
        """
        names = _Names(collective)
        own = names.of(np.arange(collective.ranks))
        order = np.argsort(own, kind="stable")
        images = np.empty((len(self.powers), len(own)), dtype=np.int64)
        for image, place in zip(images, self.generators, strict=True):
            moved = names.of(self.ranks[place])
            found = np.argsort(moved, kind="stable")
            if (moved[found] != own[order]).any():
                return None
            image[found] = order
        return images

    def images(self, turned: np.ndarray, of: np.ndarray) -> np.ndarray:
        """Return the images of some under each element, shape (order, some).

        `turned` has those of all under each generator, shape (generators, all).
        """
        found = of[None, :]
        for generator, many in zip(turned, self.powers, strict=True):
            blocks = [found]
            for _ in range(many - 1):
                blocks.append(generator[blocks[-1]])
            found = np.concatenate(blocks)
        return found

    def representatives(self, turned: np.ndarray) -> np.ndarray:
        """Return the smallest of each orbit; `turned` has images under each generator."""
        least = np.arange(turned.shape[1])
        for generator, many in zip(turned[::-1], self.powers[::-1], strict=True):
            power = least
            for _ in range(many - 1):
                power = power[generator]
                least = np.minimum(least, power)
        return np.unique(least)


class _Names:
    """Numbers of chunks, the same for those that are alike and, but by chance, for no others.

    A set of ranks is known by the sum of a random number for each.
    """

    def __init__(self, collective: Collective) -> None:
        chance = np.random.default_rng(0)
        chunks = collective.chunks
        self._ends = [_listed(each.holders for each in chunks)]
        self._ends.append(_listed(each.destinations for each in chunks))
        shape = len(self._ends), collective.ranks
        self._codes = chance.integers(1 << 64, size=shape, dtype=np.uint64)
        kinds: dict[tuple[object, ...], int] = {}
        rest = [
            kinds.setdefault((each.size, each.reduced, each.priority, each.tenant), len(kinds))
            for each in chunks
        ]
        self._rest = chance.integers(1 << 64, size=len(kinds), dtype=np.uint64)[rest]

    def of(self, image: np.ndarray) -> np.ndarray:
        """Return those of all chunks whose ranks have been permuted, shape (chunks,)."""
        total = self._rest.copy()
        for (of, rank), codes in zip(self._ends, self._codes, strict=True):
            np.add.at(total, of, codes[image[rank]])
        return total


def _listed(ranks: Iterable[tuple[int, ...]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranks of all chunks, one after the other, behind the chunk of each."""
    every = list(ranks)
    return np.repeat(np.arange(len(every)), [*map(len, every)]), np.array(
        [rank for each in every for rank in each], dtype=np.int64
    )


def symmetry_of(topology: Topology, *, links: bool = False) -> Symmetry:
    """Return the largest group found that leaves no GPU in its place, save by the identity.

    Groups are put together greedily from the candidates, those of highest order first.

    Parameters
    ----------
    topology
        The cluster.
    links
        Whether no link may be left in its place either.
    """
    group = np.arange(len(topology.devices))[None, :]
    powers: list[int] = []
    if len(topology.devices) > MOST_DEVICES:
        return Symmetry(topology, group)
    extender = _Ranks(topology)
    for ranks in sorted(_candidates(len(extender.gpus)), key=_order, reverse=True):
        # A group that leaves no GPU in its place has at most as many elements as there are GPUs.
        if len(group) == len(extender.gpus):
            break
        generator = extender.extended(ranks)
        if generator is None:
            continue
        larger = _joined(group, generator, most=len(extender.gpus))
        if larger is None or (larger[1:, extender.gpus] == extender.gpus).any():
            continue
        if not (links and extender.stays(larger[1:])):
            powers.append(len(larger) // len(group))
            group = larger
    return Symmetry(topology, group, tuple(powers))


def extend_to_devices(topology: Topology, ranks: np.ndarray) -> np.ndarray | None:
    """Return the automorphism of a topology that permutes its ranks so, or None.

    Parameters
    ----------
    topology
        The cluster.
    ranks
        Image of each rank, shape (ranks,).
    """
    return _Ranks(topology).extended(ranks)


def _order(permutation: np.ndarray) -> int:
    """Return how often a permutation is applied until everything is back."""
    power, many = permutation, 1
    while (power != np.arange(len(power))).any():
        power, many = permutation[power], many + 1
    return many


def _joined(group: np.ndarray, generator: np.ndarray, *, most: int) -> np.ndarray | None:
    """Return the group of products of powers of `generator` and elements, if that is one."""
    known = {each.tobytes() for each in group}
    if generator.tobytes() in known:
        return None
    blocks, power = [group], generator
    while power.tobytes() not in known:
        blocks.append(power[group])
        if len(blocks) * len(group) > most:
            return None
        power = generator[power]
    larger = np.concatenate(blocks)
    every = {each.tobytes() for each in larger}
    # It is closed if elements may change places with the generator.
    if len(every) < len(larger) or any(each[generator].tobytes() not in every for each in group):
        return None
    return larger


def _candidates(many: int) -> Iterator[np.ndarray]:
    """Yield permutations of the ranks that turn or exchange one digit."""
    ranks = np.arange(many)
    for low in _divisors(many):
        for base in _divisors(many // low):
            digit = ranks // low % base
            for step in _divisors(base):
                if step < base:
                    yield ranks + ((digit + step) % base - digit) * low
            if base > 2 and base & (base - 1) == 0:
                for bit in range(base.bit_length() - 1):
                    yield ranks + ((digit ^ (1 << bit)) - digit) * low


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]


class _Ranks:
    """Permutations of the ranks of a cluster, extended to its other devices."""

    def __init__(self, topology: Topology) -> None:
        self.shape = shape_of(topology)
        self.gpus = np.array([topology.index[name] for name in topology.ranks], dtype=np.int64)
        self._gpu = np.zeros(self.shape.size, dtype=bool)
        self._gpu[self.gpus] = True
        src, dst = self.shape.src, self.shape.dst
        self._direct = np.flatnonzero(self._gpu[src] & self._gpu[dst])
        keys = src[self._direct] * self.shape.size + dst[self._direct]
        order = np.argsort(keys)
        self._keys, self._links = keys[order], self.shape.link[self._direct[order]]

    def extended(self, ranks: np.ndarray) -> np.ndarray | None:
        """Return the automorphism that permutes the ranks so, or None."""
        image = np.full(self.shape.size, -1, dtype=np.int64)
        image[self.gpus] = self.gpus[ranks]
        if (self.shape.device[image[self.gpus]] != self.shape.device[self.gpus]).any():
            return None
        # What joins two GPUs directly decides most candidates at once.
        if not self._direct_kept(image):
            return None
        if (image < 0).any():
            matched = self._matched(image)
            if matched is None:
                return None
            image = matched
        return image if self.shape.moves(image) is not None else None

    def stays(self, images: np.ndarray) -> bool:
        """Return whether any of the permutations leaves a link where it is."""
        same = images == np.arange(images.shape[1])
        return bool((same[:, self.shape.src] & same[:, self.shape.dst]).any())

    def _direct_kept(self, image: np.ndarray) -> bool:
        src, dst = image[self.shape.src[self._direct]], image[self.shape.dst[self._direct]]
        keys = src * self.shape.size + dst
        order = np.argsort(keys)
        links = self.shape.link[self._direct[order]]
        return bool((keys[order] == self._keys).all() and (links == self._links).all())

    def _matched(self, image: np.ndarray) -> np.ndarray | None:
        """Match the other devices by what they are linked to, again and again."""
        before, after = self.shape.device.copy(), self.shape.device.copy()
        before[self.gpus] = int(before.max()) + 1 + np.arange(len(self.gpus))
        after[image[self.gpus]] = before[self.gpus]
        before, after = refine_colours(self.shape, np.stack([before, after]))
        order, found = np.argsort(before, kind="stable"), np.argsort(after, kind="stable")
        if (before[order] != after[found]).any():
            return None
        matched = np.empty_like(image)
        matched[order] = found
        return matched
