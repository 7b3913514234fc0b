"""Groups of automorphisms that act freely on GPUs and links.

Such a group lets a schedule be made for one chunk of each orbit: its images are the rest, and no
two of them meet on a link.

Clusters are numbered in an order that shows how they are built: hosts one after the other, a torus
row by row. So candidates are found by counting: of the digits of a rank, written in any mixed
base, one is turned round or, where it has two values, exchanged. Each is extended to the other
devices by refinement (`ccl.symmetry.refinement`) and then checked link by link; what passes is an
automorphism, however it was guessed. A cluster whose numbers show nothing is found to have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ccl.collective import Collective
from ccl.symmetry.refinement import refine_colours, shape_of
from ccl.topology import Topology

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
