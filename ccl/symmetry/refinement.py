"""Colour refinement: devices that differ in what they are linked to get different colours.

A topology is colours and numbers here (`Shape`): what an automorphism must keep, and whether a
permutation of its devices keeps it. Colours that are equal do not mean that devices are
interchangeable; colours that differ mean that they are not. They are used for finding candidates
only.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

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
