"""A group of automorphisms by its generators: orbits, stabilisers, and who brings whom where.

Any subgroup of all automorphisms is as good: what is constant on its orbits is a larger problem
with the same optimum. So nothing here needs to know how large the group is.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ccl.errors import ProblemError
from ccl.symmetry.shape import Shape, shape_of
from ccl.topology import Topology

_ROUNDS = 40
"""Products after which an element is taken for random."""


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
        points = []
        for each in np.asarray(generators, dtype=np.int64).reshape(-1, shape.size):
            links = shape.links_under(each)
            if links is None:
                msg = f"a permutation of the devices of {topology} does not keep its links"
                raise ProblemError(msg)
            points.append(np.concatenate([each, links + shape.size]))
        size = shape.size + len(shape.src)
        self._set(shape, np.array(points, dtype=np.int64).reshape(-1, size))

    @classmethod
    def _of(cls, shape: Shape, points: np.ndarray) -> Group:
        """Make a group of known automorphisms, devices and links in one row, as in `points`."""
        made = cls.__new__(cls)
        made._set(shape, points)
        return made

    def _set(self, shape: Shape, points: np.ndarray) -> None:
        self.topology = shape.topology
        self.shape = shape
        self.points = points
        """Generators on devices and, numbered after them, links: (generators, devices + links)."""

    @property
    def generators(self) -> np.ndarray:
        """Where each generator takes each device, shape (generators, devices)."""
        return self.points[:, : self.shape.size]

    @cached_property
    def links(self) -> np.ndarray:
        """Where each generator takes each link, shape (generators, links)."""
        return self.points[:, self.shape.size :] - self.shape.size

    @property
    def trivial(self) -> bool:
        """Whether it has no generator."""
        return not len(self.generators)

    @cached_property
    def _orbits(self) -> np.ndarray:
        return orbits_of(self.generators)

    @cached_property
    def _link_orbits(self) -> np.ndarray:
        return orbits_of(self.links)

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

        It may be smaller than the group of all of them. Its generators are those of this group
        that fix the devices and, by Schreier's lemma, random elements led back.
        """
        group: Group = self
        for each in devices:
            group = group._fixing(each)
        return group

    def _fixing(self, device: int) -> Group:
        points = self.points
        still = points[:, device] == device
        if still.all():
            return self
        carriers = Carriers(self, device)
        many = 16 + 2 * int(self.shape.size).bit_length()
        back = [
            _inverse(carriers.points_to(int(each[device])))[each]
            for each in _random(points, many, seed=device)
        ]
        moving = [each for each in back if (each != np.arange(len(each))).any()]
        kept = np.array([*points[still], *moving], dtype=np.int64)
        return Group._of(self.shape, kept.reshape(-1, points.shape[1]))


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
        points = group.points
        # Random elements first: with them the tree is shallow, whatever the generators are.
        self._steps = np.concatenate(
            [_random(points, int(group.shape.size).bit_length(), seed=device), points]
        )
        size = group.shape.size
        self._step = np.full(size, -1, dtype=np.int64)
        self._from = np.full(size, -1, dtype=np.int64)
        self._from[device] = device
        self.levels = [np.array([device])]
        """Devices by the number of steps to them."""
        while len(self.levels[-1]):
            self.levels.append(self._next(self.levels[-1]))
        self.levels.pop()

    def _next(self, level: np.ndarray) -> np.ndarray:
        reached = []
        for step, points in enumerate(self._steps):
            there = points[level]
            new = self._from[there] < 0
            there = there[new]
            self._from[there] = level[new]
            self._step[there] = step
            reached.append(there)
        return np.concatenate(reached) if reached else np.empty(0, dtype=np.int64)

    @property
    def orbit(self) -> np.ndarray:
        """Devices that can be reached, in ascending order."""
        return np.flatnonzero(self._from >= 0)

    def to(self, target: int) -> np.ndarray:
        """Return an element that brings the device to `target`, on devices, shape (devices,)."""
        return self.points_to(target)[: self._shape.size]

    def links_to(self, target: int) -> np.ndarray:
        """Return the same element on links, shape (links,)."""
        return self.points_to(target)[self._shape.size :] - self._shape.size

    def points_to(self, target: int) -> np.ndarray:
        """Return the same element on devices and, numbered after them, links.

        Raises
        ------
        ProblemError
            If no element brings it there.
        """
        if self._from[target] < 0:
            names = [self._shape.topology.devices[each].name for each in (self.device, target)]
            msg = f"no symmetry brings {names[0]} to {names[1]}"
            raise ProblemError(msg)
        element = np.arange(self._shape.size + len(self._shape.src))
        while target != self.device:
            element = element[self._steps[self._step[target]]]
            target = int(self._from[target])
        return element

    def elements(self) -> np.ndarray:
        """Return an element for each device of `orbit`, on devices, shape (orbit, devices)."""
        place = np.full(self._shape.size, -1, dtype=np.int64)
        place[self.orbit] = np.arange(len(self.orbit))
        found = np.empty((len(self.orbit), self._shape.size), dtype=np.int64)
        found[place[self.device]] = np.arange(self._shape.size)
        steps = self._steps[:, : self._shape.size]
        for level in self.levels[1:]:
            before = found[place[self._from[level]]]
            found[place[level]] = steps[self._step[level][:, None], before]
        return found


def orbits_of(permutations: np.ndarray) -> np.ndarray:
    """Return the smallest member of the orbit of each point, shape (points,).

    Orbits are the connected components of the pairs of a point and an image of it. In each round
    every root hangs itself below a smaller one that it meets, and all paths are made short.

    Parameters
    ----------
    permutations
        Image of each point under each generator, shape (generators, points).
    """
    label = np.arange(permutations.shape[1])
    row, left = np.nonzero(permutations != label)
    right = permutations[row, left]
    while True:
        first, second = label[left], label[right]
        apart = first != second
        if not apart.any():
            return label
        left, right, first, second = left[apart], right[apart], first[apart], second[apart]
        np.minimum.at(label, np.maximum(first, second), np.minimum(first, second))
        while (label[label] != label).any():
            label = label[label]


def _inverse(permutation: np.ndarray) -> np.ndarray:
    inverse = np.empty_like(permutation)
    inverse[permutation] = np.arange(len(permutation))
    return inverse


def _random(generators: np.ndarray, many: int, *, seed: int) -> np.ndarray:
    """Return products of generators that are nearly uniform in their group (product replacement).

    Celler, Leedham-Green, Murray, Niemeyer, O'Brien: Generating random elements of a finite
    group, Communications in Algebra 23 (1995), with an accumulator as in Leedham-Green and Murray.
    """
    if not len(generators):
        return generators
    dice = np.random.default_rng(seed)
    slots = [generators[i % len(generators)] for i in range(max(8, len(generators)))]
    total = slots[0]
    found = []
    for turn in range(_ROUNDS + len(slots) + many):
        left, right = dice.choice(len(slots), 2, replace=False)
        other = slots[right] if dice.random() < 0.5 else _inverse(slots[right])
        slots[left] = slots[left][other] if dice.random() < 0.5 else other[slots[left]]
        total = total[slots[left]]
        if turn >= _ROUNDS + len(slots):
            found.append(total)
    return np.array(found)
