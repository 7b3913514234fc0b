"""Groups of automorphisms that act freely on GPUs and links.

Such a group lets a schedule be made for one chunk of each orbit: its images are the rest, and no
two of them meet on a link.

Clusters are numbered in an order that shows how they are built: hosts one after the other, a torus
row by row. So candidates are found by counting: of the digits of a rank, written in any mixed
base, one is turned round or, where it has two values, exchanged. Each is extended to the other
devices by refinement (`ccl.symmetry.refinement`) and then checked link by link; what passes is an
automorphism, however it was guessed. A cluster whose numbers show nothing is found to have none.

Switches that are alike may have several images. If those under a leaf of a fat-tree change places
and its upper switches stay, the links between stay too; if planes are exchanged with them, none
does. So choices are tried, round and round like the GPUs first, until every link moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from ccl.collective import Collective
from ccl.symmetry.refinement import refine_colours, shape_of
from ccl.topology import Topology

MOST_DEVICES = 4096
"""Devices above which no symmetry is looked for."""

MOST_CHOICES, MOST_TRIED = 200, 8
"""How often, of switches that are alike, one gets an image for one candidate, and how many of its
automorphisms are tried at most."""


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

    Groups are put together greedily from the candidates, those of highest order first; of two that
    are as large the one whose first generators leave no link in its place either.

    Parameters
    ----------
    topology
        The cluster.
    links
        Whether no element may leave a link in its place.
    """
    alone = Symmetry(topology, np.arange(len(topology.devices))[None, :])
    if len(topology.devices) > MOST_DEVICES:
        return alone
    extender = _Ranks(topology)
    if not extender.relayed:
        return _grown(alone, extender, free=False)
    free = _grown(alone, extender, free=True)
    if links or free.order == len(extender.gpus):
        return free
    found = _grown(free, extender, free=False)
    if found.order == len(extender.gpus):
        return found
    return max(found, _grown(alone, extender, free=False), key=lambda each: each.order)


def _grown(begun: Symmetry, extender: _Ranks, *, free: bool) -> Symmetry:
    """Return a group with more of the candidates, with `free` none that leaves a link in place."""
    group, powers, gpus = begun.devices, [*begun.powers], extender.gpus
    for ranks in extender.candidates:
        # A group that leaves no GPU in its place has at most as many elements as there are GPUs.
        if len(group) == len(gpus):
            break
        if (group[:, gpus] == gpus[ranks]).all(axis=1).any():
            continue  # with an element that moves GPUs alike it would leave them in their places
        for generator in extender.extensions(ranks, free=free):
            larger = _joined(group, generator, most=len(gpus))
            if larger is None or (larger[1:, gpus] == gpus).any():
                continue
            if not (free and extender.stays(larger[1:])):
                powers.append(len(larger) // len(group))
                group = larger
                break
    return Symmetry(begun.topology, group, tuple(powers))


def extend_to_devices(topology: Topology, ranks: np.ndarray) -> np.ndarray | None:
    """Return the automorphism of a topology that permutes its ranks so, or None.

    Parameters
    ----------
    topology
        The cluster.
    ranks
        Image of each rank, shape (ranks,).
    """
    return next(_Ranks(topology).extensions(ranks), None)


def _order(permutation: np.ndarray) -> int:
    """Return how often a permutation is applied until everything is back."""
    power, many = permutation, 1
    while (power != np.arange(len(power))).any():
        power, many = permutation[power], many + 1
    return many


def _joined(group: np.ndarray, generator: np.ndarray, *, most: int) -> np.ndarray | None:
    """Return the group of products of powers of `generator` and elements, if that is one."""
    known = {each.tobytes() for each in group}
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

    @cached_property
    def candidates(self) -> list[np.ndarray]:
        """Permutations of the ranks to try, those of highest order first."""
        return sorted(_candidates(len(self.gpus)), key=_order, reverse=True)

    @cached_property
    def relayed(self) -> bool:
        """Whether links join devices none of which is a GPU: GPUs may move without them."""
        return bool((~self._gpu[self.shape.src] & ~self._gpu[self.shape.dst]).any())

    def extensions(self, ranks: np.ndarray, *, free: bool = False) -> Iterator[np.ndarray]:
        """Yield the first automorphism found that permutes the ranks so, if there is one.

        Parameters
        ----------
        ranks
            Image of each rank, shape (ranks,).
        free
            Yield several of those that leave no link in its place, and no others.
        """
        image = np.full(self.shape.size, -1, dtype=np.int64)
        image[self.gpus] = self.gpus[ranks]
        if (self.shape.device[image[self.gpus]] != self.shape.device[self.gpus]).any():
            return
        # What joins two GPUs directly decides most candidates at once.
        if not self._direct_kept(image):
            return
        matched = self._matched(image, free=free) if (image < 0).any() else iter([image])
        yield from (each for each in matched if self.shape.moves(each) is not None)

    def stays(self, images: np.ndarray) -> bool:
        """Return whether any of the permutations leaves a link where it is."""
        same = images == np.arange(images.shape[-1])
        return bool((same[..., self.shape.src] & same[..., self.shape.dst]).any())

    def _direct_kept(self, image: np.ndarray) -> bool:
        src, dst = image[self.shape.src[self._direct]], image[self.shape.dst[self._direct]]
        keys = src * self.shape.size + dst
        order = np.argsort(keys)
        links = self.shape.link[self._direct[order]]
        return bool((keys[order] == self._keys).all() and (links == self._links).all())

    def _matched(self, image: np.ndarray, *, free: bool) -> Iterator[np.ndarray]:
        """Match the other devices by what they are linked to, again and again."""
        before, after = self.shape.device.copy(), self.shape.device.copy()
        before[self.gpus] = int(before.max()) + 1 + np.arange(len(self.gpus))
        after[image[self.gpus]] = before[self.gpus]
        if free:
            yield from islice(self._choices(before, after, iter(range(MOST_CHOICES))), MOST_TRIED)
            return
        refined = self._refined(before, after)
        if refined is not None:
            matched = np.empty_like(image)
            matched[refined[2]] = refined[3]
            yield matched

    def _refined(self, before: np.ndarray, after: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """Return both refined, and devices of the same colours in the order of these, or None."""
        before, after = refine_colours(self.shape, np.stack([before, after]))
        order, found = np.argsort(before, kind="stable"), np.argsort(after, kind="stable")
        return (before, after, order, found) if (before[order] == after[found]).all() else None

    def _choices(
        self, before: np.ndarray, after: np.ndarray, left: Iterator[int]
    ) -> Iterator[np.ndarray]:
        """Yield what takes devices to those of the same colour and leaves no link in its place.

        Of the first that are still alike one gets a colour of its own, with each image in turn.
        """
        refined = None if next(left, None) is None else self._refined(before, after)
        if refined is None:
            return
        before, after, order, found = refined
        many = np.bincount(before)
        alone = many[before[order]] == 1
        matched = np.full_like(before, -1)
        matched[order[alone]] = found[alone]
        if self.stays(matched):
            return
        if alone.all():
            yield matched
            return
        colour = int(before[order[~alone]][0])
        first = np.flatnonzero(before == colour)[0]
        # The next one, or the first behind the last: what turns round like the GPUs do.
        for other in sorted(np.flatnonzero(after == colour).tolist(), key=lambda i: (i < first, i)):
            one, two = before.copy(), after.copy()
            one[first] = two[other] = len(many)
            yield from self._choices(one, two, left)
