"""A group of automorphisms by its generators: orbits, stabilisers, and who brings whom where.

Any subgroup of all automorphisms is as good: what is constant on its orbits is a larger problem
with the same optimum. So nothing here needs to know how large the group is. Permutations are arrays
of images, of which `orbits_of`, `inverse` and `random_elements` make orbits, inverses and random
products.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ccl.errors import ProblemError
from ccl.symmetry.refinement import Moves, Shape, shape_of
from ccl.topology import Topology

_SLOTS = 12
"""Elements that random products are made of."""

_ROUNDS = 60
"""Products after which an element is taken for random."""


def orbits_of(permutations: np.ndarray) -> np.ndarray:
    """Return the smallest member of the orbit of each point, shape (points,).

    Parameters
    ----------
    permutations
        Image of each point under each generator, shape (generators, points).
    """
    many = permutations.shape[1]
    row, left = np.nonzero(permutations != np.arange(many))
    return components(many, left, permutations[row, left])


def components(many: int, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the smallest member of the connected component of each point, shape (many,).

    In each round every root hangs itself below a smaller one that it meets, and all paths are
    made short.

    Parameters
    ----------
    many
        Number of points.
    left, right
        Points that are connected, shape (pairs,).
    """
    label = np.arange(many)
    while True:
        first, second = label[left], label[right]
        apart = first != second
        if not apart.any():
            return label
        left, right, first, second = left[apart], right[apart], first[apart], second[apart]
        np.minimum.at(label, np.maximum(first, second), np.minimum(first, second))
        while (label[label] != label).any():
            label = label[label]


def inverse(permutation: np.ndarray) -> np.ndarray:
    """Return what leads each point back, shape (points,)."""
    back = np.empty_like(permutation)
    back[permutation] = np.arange(len(permutation))
    return back


def random_elements(generators: np.ndarray, many: int, *, seed: int) -> np.ndarray:
    """Return elements of the group, nearly uniform, shape (many, points).

    Product replacement with an accumulator (Celler, Leedham-Green, Murray, Niemeyer, O'Brien:
    Generating random elements of a finite group, Communications in Algebra 23, 1995), which
    begins with the generators or, of many, with random subproducts of them (Babai, Cooperman,
    Finkelstein, Luks, Seress: Fast Monte Carlo algorithms for permutation groups, 1991).
    """
    if not len(generators):
        return generators
    dice = np.random.default_rng(seed)
    if len(generators) > _SLOTS:
        slots = [_subproduct(generators, dice) for _ in range(_SLOTS)]
    else:
        slots = [generators[i % len(generators)] for i in range(_SLOTS)]
    turns = _ROUNDS + many
    left = dice.integers(_SLOTS, size=turns)
    right = (left + dice.integers(1, _SLOTS, size=turns)) % _SLOTS
    turned, before = dice.integers(2, size=(2, turns)).astype(bool)
    total, found = slots[0], []
    for turn in range(turns):
        here, there = slots[left[turn]], slots[right[turn]]
        other = inverse(there) if turned[turn] else there
        slots[left[turn]] = other[here] if before[turn] else here[other]
        total = total[slots[left[turn]]]
        if turn >= _ROUNDS:
            found.append(total)
    return np.array(found)


def _subproduct(generators: np.ndarray, dice: np.random.Generator) -> np.ndarray:
    """Return the product of about half of the generators, in any order."""
    product = np.arange(generators.shape[1])
    order = dice.permutation(len(generators))
    for each in order[dice.integers(2, size=len(order)).astype(bool)]:
        product = generators[each][product]
    return product


class Group:
    """A group of automorphisms of a topology.

    Parameters
    ----------
    topology
        On which it acts.
    generators
        Where each takes each device, shape (generators, devices).
    shape
        What they must keep; by default all that a topology says.

    Raises
    ------
    ProblemError
        If a generator is no automorphism.
    """

    def __init__(
        self, topology: Topology, generators: np.ndarray, *, shape: Shape | None = None
    ) -> None:
        shape = shape_of(topology) if shape is None else shape
        rows = np.asarray(generators, dtype=np.int64).reshape(-1, shape.size)
        arrays = [shape.moves(each) for each in rows]
        found = [each for each in arrays if each is not None]
        if len(found) < len(arrays):
            raise ProblemError(
                f"a permutation of the devices of {topology} does not keep its links"
            )
        self._set(shape, rows, found)

    @classmethod
    def _of(cls, shape: Shape, generators: np.ndarray) -> Group:
        """Make a group of products of automorphisms, which need no check."""
        made = cls.__new__(cls)
        made._set(shape, generators)
        return made

    def _set(
        self, shape: Shape, generators: np.ndarray, arrays: Sequence[Moves] | None = None
    ) -> None:
        self.topology = shape.topology
        self.shape = shape
        self.generators = generators
        """Where each generator takes each device, shape (generators, devices)."""
        self._known = arrays

    @property
    def trivial(self) -> bool:
        """Whether it has no generator."""
        return not len(self.generators)

    @cached_property
    def _moves(self) -> Sequence[Moves]:
        if self._known is not None:
            return self._known
        found = [self.shape.moves(each) for each in self.generators]
        return [each for each in found if each is not None]

    @cached_property
    def links(self) -> np.ndarray:
        """Where each generator takes each link, shape (generators, links)."""
        links = np.tile(np.arange(len(self.shape.src)), (len(self.generators), 1))
        for row, (moved, images) in zip(links, self._moves, strict=True):
            row[moved] = images
        return links

    @cached_property
    def _orbits(self) -> np.ndarray:
        return orbits_of(self.generators)

    @cached_property
    def _link_orbits(self) -> np.ndarray:
        none = np.empty(0, dtype=np.int64)
        return components(
            len(self.shape.src),
            np.concatenate([none, *(moved for moved, _ in self._moves)]),
            np.concatenate([none, *(images for _, images in self._moves)]),
        )

    def orbits(self) -> np.ndarray:
        """Return the smallest device of the orbit of each device, shape (devices,)."""
        return self._orbits

    def link_orbits(self) -> np.ndarray:
        """Return the smallest link of the orbit of each link, shape (links,)."""
        return self._link_orbits

    def carriers(self, device: int) -> Carriers:
        """Return elements that bring a device to each device of its orbit."""
        return Carriers(self, device)

    def stabiliser(self, *devices: int) -> Group:
        """Return a group of elements that leave the devices where they are.

        It may be smaller than the group of all of them. Its generators are random elements, led
        back as in Schreier's lemma, and those of this group that fix the devices.
        """
        group: Group = self
        for each in devices:
            group = group._fixing(each)
        return group

    def _fixing(self, device: int) -> Group:
        still = self.generators[:, device] == device
        if still.all():
            return self
        carriers = Carriers(self, device)
        many = 8 + int(self.shape.size).bit_length()
        back = np.array(
            [
                inverse(carriers.to(int(each[device])))[each]
                for each in random_elements(self.generators, many, seed=device)
            ]
        )
        return Group._of(self.shape, _completed(back, self.generators[still]))

    def fewer(self) -> Group:
        """Return a group with few generators and, as good as always, the same elements.

        BLISS may find hundreds, and work is in proportion to them.
        """
        many = 8 + int(self.shape.size).bit_length()
        if len(self.generators) <= many:
            return self
        found = random_elements(self.generators, many, seed=0)
        return Group._of(self.shape, _completed(found, self.generators))


def _completed(elements: np.ndarray, generators: np.ndarray) -> np.ndarray:
    """Return elements, but the identity, and those generators that add to their orbits."""
    moving = elements[(elements != np.arange(elements.shape[1])).any(axis=1)]
    label = orbits_of(moving)
    adding = (label[generators] != label).any(axis=1)
    return np.concatenate([moving, generators[adding]])


class Carriers:
    """For each device of an orbit an element that brings one of them there: a Schreier tree.

    Parameters
    ----------
    group
        Whose elements are used.
    device
        The device that is brought.
    """

    def __init__(self, group: Group, device: int) -> None:
        self.device = device
        self._shape = group.shape
        orbit = group.orbits()
        self.orbit = np.flatnonzero(orbit == orbit[device])
        """Devices that can be reached, in ascending order."""
        # With random elements the tree is shallow, whatever the generators are.
        many = int(group.shape.size).bit_length()
        self._grow(random_elements(group.generators, many, seed=device))
        if sum(map(len, self.levels)) < len(self.orbit):
            self._grow(np.concatenate([self._steps, group.generators]))

    def _grow(self, steps: np.ndarray) -> None:
        self._steps = steps
        self._step = np.full(self._shape.size, -1, dtype=np.int64)
        self._from = np.full(self._shape.size, -1, dtype=np.int64)
        self._from[self.device] = self.device
        self.levels = [np.array([self.device])]
        """Devices by the number of steps to them."""
        while len(self.levels[-1]):
            self.levels.append(self._next(self.levels[-1]))
        self.levels.pop()

    def _next(self, level: np.ndarray) -> np.ndarray:
        reached = [np.empty(0, dtype=np.int64)]
        for step, images in enumerate(self._steps):
            there = images[level]
            new = self._from[there] < 0
            there = there[new]
            self._from[there] = level[new]
            self._step[there] = step
            reached.append(there)
        return np.concatenate(reached)

    def to(self, target: int) -> np.ndarray:
        """Return an element that brings the device to `target`, shape (devices,).

        Raises
        ------
        ProblemError
            If no element brings it there.
        """
        if self._from[target] < 0:
            names = [self._shape.topology.devices[each].name for each in (self.device, target)]
            raise ProblemError(f"no symmetry brings {names[0]} to {names[1]}")
        element = np.arange(self._shape.size)
        while target != self.device:
            element = element[self._steps[self._step[target]]]
            target = int(self._from[target])
        return element

    def elements(self) -> np.ndarray:
        """Return an element for each device of `orbit`, shape (orbit, devices)."""
        place = np.full(self._shape.size, -1, dtype=np.int64)
        place[self.orbit] = np.arange(len(self.orbit))
        found = np.empty((len(self.orbit), self._shape.size), dtype=np.int64)
        found[place[self.device]] = np.arange(self._shape.size)
        for level in self.levels[1:]:
            before = found[place[self._from[level]]]
            found[place[level]] = self._steps[self._step[level][:, None], before]
        return found
