"""Cutting planes of the best rate, a concave function of the bandwidths of classes of links.

Let s be the scales of the classes, 1 today, and A(s) the best algbw when every bandwidth b of class
k is s[k] b. A witness of one optimum, a cut or prices, bounds all others:

* a cut with what c[k] of class k leaves, and with the data w inside, says
  A(s) <= sum over k of s[k] c[k] (size / w), in fractions;
* prices y >= 0 of a byte on each link, at which moving everything costs D(y) along the cheapest
  paths or trees, say A(s) <= sum over k of s[k] g[k] with g[k] = size / D(y) times the sum of y b
  over class k: what sends everything in the time T has paid D(y) <= T (y . b) at least.

So each is a *plane* through the origin that A never exceeds, and one that touches A at s is tight
there. A is the least of its planes: concave, never falling, and A(c s) = c A(s).

`Classes` are links and shared limits that change together, and make the cluster in which they have
changed. A class of links holds both directions: one alone would let a switch take in more than it
gives out, where no cut decides. Shared limits of one bandwidth are a class, after those of links.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from ccl import text
from ccl.bound import Cut
from ccl.errors import CclError, ProblemError
from ccl.symmetry import automorphisms
from ccl.topology import Topology


def link_classes(topology: Topology, *, by: Literal["kind", "orbit"] = "kind") -> np.ndarray:
    """Return a number for each link, equal for links that change together, shape (links,).

    Parameters
    ----------
    topology
        The cluster.
    by
        ``kind``: bandwidth and medium; ``orbit``: links that symmetries exchange. In both the two
        directions of a link are together.
    """
    if by == "orbit":
        group = automorphisms(topology, steady=True)
        label = np.unique(group.link_orbits(), return_inverse=True)[1].ravel()
    else:
        kinds: dict[tuple[float, str], int] = {}
        label = np.array(
            [kinds.setdefault((e.bandwidth, e.medium), len(kinds)) for e in topology.links]
        )
    place = topology.link_index
    back = np.array([place.get((e.dst, e.src), i) for i, e in enumerate(topology.links)])
    many = int(label.max()) + 1
    joined = sparse.coo_array((np.ones(len(label)), (label, label[back])), shape=(many, many))
    return np.asarray(csgraph.connected_components(joined, directed=False)[1][label])


@dataclass(frozen=True, eq=False)
class Classes:
    """What changes together in a cluster.

    Parameters
    ----------
    topology
        The cluster.
    links
        Class of each link, numbers from 0 on, shape (links,).
    limits
        Class of each shared limit, numbers after those of links, shape (limits,).
    """

    topology: Topology
    links: np.ndarray
    limits: np.ndarray

    @cached_property
    def many(self) -> int:
        """How many classes there are."""
        return int(max(self.links.max(initial=-1), self.limits.max(initial=-1))) + 1

    @property
    def rows(self) -> np.ndarray:
        """Class of each link, then of each shared limit, shape (links + limits,)."""
        return np.concatenate([self.links, self.limits])

    def ends(self, number: int) -> tuple[Ends, ...]:
        """Return the ends of the links of a class; of shared limits, those that they hold."""
        topology = self.topology
        own = [topology.links[i].ends for i in np.flatnonzero(self.links == number)]
        held = [ends for i in self._limits(number) for ends in topology.limits[i].links]
        return (*own, *held)

    def names(self, number: int) -> tuple[str, ...]:
        """Return the names of the shared limits of a class, none where it is of links."""
        return tuple(self.topology.limits[i].name for i in self._limits(number))

    def bandwidths(self, number: int) -> list[float]:
        """Return the bandwidth of each link or limit of a class, in GB/s."""
        topology = self.topology
        own = [topology.links[i].bandwidth for i in np.flatnonzero(self.links == number)]
        return own + [topology.limits[i].bandwidth for i in self._limits(number)]

    def words(self, number: int) -> str:
        """Describe a class: ``NVLink 3 at 300 GB/s``, and a link of it where texts are alike."""
        return self._words[number]

    def lines(self, number: int) -> int:
        """Return how many links people would count: both directions, or a limit, are one."""
        pairs = {(min(ends), max(ends)) for ends in self.ends(number)}
        return len(self.names(number)) or len(pairs)

    @cached_property
    def _words(self) -> tuple[str, ...]:
        plain = [self._plain(each) for each in range(self.many)]
        often = Counter(plain)
        return tuple(
            words if often[words] == 1 else f"{words} ({' → '.join(self.ends(number)[0])})"
            for number, words in enumerate(plain)
        )

    def _plain(self, number: int) -> str:
        topology = self.topology
        found = dict.fromkeys(
            f"{link.medium or 'links'} at {text.number(link.bandwidth, 4)} GB/s"
            for link in (topology.links[i] for i in np.flatnonzero(self.links == number))
        )
        limits = self.names(number)
        if limits:
            alike = f" and {len(limits) - 1} alike" if len(limits) > 1 else ""
            bandwidth = text.number(self.bandwidths(number)[-1], 4)
            found[f"shared limit {limits[0]}{alike} at {bandwidth} GB/s"] = None
        return ", ".join(found)

    def scaled(self, scales: Sequence[Fraction | float]) -> Topology:
        """Return the cluster with each class at its scale; bandwidths are rounded once."""
        topology = self.topology
        return replace(
            topology,
            links=tuple(
                replace(each, bandwidth=_times(each.bandwidth, scales[k]))
                for each, k in zip(topology.links, self.links.tolist(), strict=True)
            ),
            limits=tuple(
                replace(each, bandwidth=_times(each.bandwidth, scales[k]))
                for each, k in zip(topology.limits, self.limits.tolist(), strict=True)
            ),
        )

    def _limits(self, number: int) -> list[int]:
        return np.flatnonzero(self.limits == number).tolist()


def classes_of(topology: Topology, links: np.ndarray | None = None) -> Classes:
    """Return the classes of a cluster.

    Parameters
    ----------
    topology
        The cluster.
    links
        A number for each link, from 0 on, shape (links,); by default `link_classes`.
    """
    number = link_classes(topology) if links is None else np.asarray(links, dtype=np.int64)
    kinds = np.unique([each.bandwidth for each in topology.limits], return_inverse=True)[1]
    return Classes(topology, number, int(number.max()) + 1 + kinds.ravel().astype(np.int64))


def chosen(topology: Topology, links: Iterable[Ends], limits: Iterable[str] = ()) -> Classes:
    """Return two classes: 1 is some links and shared limits, 0 all others.

    Raises
    ------
    ProblemError
        If one of them is not there, or none is named.
    """
    number = np.zeros(len(topology.links), dtype=np.int64)
    for ends in links:
        if tuple(ends) not in topology.link_index:
            raise ProblemError(
                f"{topology} has no link {'->'.join(ends)} to change; name one that it has"
            )
        number[topology.link_index[ends]] = 1
    wanted = set(limits)
    unknown = wanted - {each.name for each in topology.limits}
    if unknown:
        raise ProblemError(
            f"{topology} has no shared limit {min(unknown)} to change; name one that it has"
        )
    held = np.array([each.name in wanted for each in topology.limits], dtype=np.int64)
    if not number.any() and not held.any():
        raise ProblemError(
            f"no link of {topology} is named whose bandwidth is to change; name at least one"
        )
    return Classes(topology, number, held)


def _times(bandwidth: float, scale: Fraction | float) -> float:
    return bandwidth if scale == 1 else float(Fraction(bandwidth) * Fraction(scale))


Number = Fraction | float
"""Exact where cuts decide."""

Scales = tuple[Number, ...]
"""One for each class."""

Ends = tuple[str, str]

SLACK = 1e-9
"""Rates of linear programs are the same within this share."""


class Undecided(CclError):
    """One kind of proof does not hold for some scales; another is to be taken."""


@dataclass(frozen=True, eq=False)
class Plane:
    """A linear function of the scales that the best rate never exceeds.

    Parameters
    ----------
    weights
        GB/s of algbw for each unit of each class's scale.
    cut
        What proves it, with the bandwidths of today, or None where prices do.
    prices
        Share of each link in what holds the rate down, where prices prove it; they add up to 1,
        those of shared limits counted with each of their links.
    """

    weights: tuple[Number, ...]
    cut: Cut | None = None
    prices: Mapping[Ends, float] = field(default_factory=dict)

    def at(self, scales: Sequence[Number]) -> Number:
        """Return its value in GB/s."""
        return self.along(scales)

    def along(self, direction: Sequence[Number]) -> Number:
        """Return by how much it rises along a change of the scales, in GB/s."""
        total: Number = Fraction(0)
        for weight, each in zip(self.weights, direction, strict=True):
            if each:
                total = total + weight * each
        return total


class Rates(ABC):
    """The best rate at any scales, with planes that are tight there; each is found once.

    Parameters
    ----------
    classes
        What changes together.
    """

    def __init__(self, classes: Classes) -> None:
        self.classes = classes
        self._known: dict[Scales, tuple[Plane, ...]] = {}

    def at(self, scales: Scales) -> tuple[Plane, ...]:
        """Return at least one plane that is tight at some scales, all positive.

        Raises
        ------
        Undecided
            If this kind of proof does not hold there.
        """
        if scales not in self._known:
            self._known[scales] = self._found(scales)
        return self._known[scales]

    def value(self, scales: Scales) -> Number:
        """Return the best algbw in GB/s."""
        return self.at(scales)[0].at(scales)

    def same(self, first: Number, second: Number, *, of: Number) -> bool:
        """Return whether two rates are equal, as shares of a third: exactly where cuts decide."""
        if first == second:
            return True
        return not self.exact and abs(float(first) - float(second)) <= SLACK * float(of)

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether its numbers are fractions."""

    @abstractmethod
    def _found(self, scales: Scales) -> tuple[Plane, ...]: ...
