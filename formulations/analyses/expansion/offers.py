"""Offers on a cluster: classes of links, and of shared limits, that are upgraded together.

An `Upgrade` says which links get how much more bandwidth, what it costs and what it gains.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ccl import text
from ccl.bound import Cut
from ccl.errors import ProblemError
from ccl.topology import Link, SharedLimit, Topology
from formulations.analyses.expansion.costs import Costs, Price
from formulations.analyses.sensitivity.cutting_planes import link_classes

PROVED = 1e-5
"""A cost within this share of its lower bound is the least."""


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a class of links, or of shared limits, that are given more together.

    Parameters
    ----------
    words
        What they are.
    links
        Ends of the links, both directions; empty of shared limits.
    limits
        Names of the shared limits; empty of links.
    count
        How many there are; the two directions of a link are one.
    before, after
        GB/s of each, one way.
    cost
        Of all of them together.
    whole
        How many more parallel links each has, where whole links are bought; else 0.
    """

    words: str
    links: tuple[tuple[str, str], ...]
    limits: tuple[str, ...]
    count: int
    before: float
    after: float
    cost: float
    whole: int = 0

    @property
    def added(self) -> float:
        """GB/s more on each."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Gain:
    """What becomes of one collective.

    Parameters
    ----------
    collective
        Its kind.
    before, after
        algbw in GB/s of the best steady state, today and upgraded.
    target
        algbw in GB/s that was requested.
    cut
        A bottleneck cut of the upgraded cluster; None where no cut alone decides.
    held
        Classes of links that hold it down after the upgrade, and by how much of itself algbw
        would follow more bandwidth of each, where that is unique; the largest first.
    """

    collective: str
    before: float
    after: float
    target: float
    cut: Cut | None
    held: tuple[tuple[str, float], ...]

    @property
    def factor(self) -> float:
        """How many times as fast it is."""
        return self.after / self.before


@dataclass(frozen=True)
class Upgrade:
    """The cheapest upgrade that reaches a target.

    Parameters
    ----------
    cost
        Of all that is bought.
    bound
        No upgrade that reaches the target costs less.
    changes
        One for each class of links that is for sale, bought or not.
    topology
        The upgraded cluster.
    gains
        One for each collective.
    currency
        Unit of costs.
    factor
        How many times as fast as today the collectives should become; the least of the
        gains' targets over today's algbw.
    """

    cost: float
    bound: float
    changes: tuple[Change, ...]
    topology: Topology
    gains: tuple[Gain, ...]
    currency: str
    factor: float

    @property
    def bought(self) -> tuple[Change, ...]:
        """The classes that get more, the most expensive first."""
        some = [each for each in self.changes if each.added > 0]
        return tuple(sorted(some, key=lambda each: -each.cost))

    @property
    def proved(self) -> bool:
        """Whether nothing cheaper reaches the target."""
        return math.isclose(self.cost, self.bound, rel_tol=PROVED, abs_tol=1e-9)


FrontKind = Literal["breaks", "steps", "samples"]


@dataclass(frozen=True)
class Front:
    """Cost against speed: no upgrade is cheaper and as fast as one of these.

    Parameters
    ----------
    points
        Cheapest upgrades by factor, the first is today's cluster.
    kind
        ``breaks``: any amount can be bought, the front is convex and straight between the
        points, which are its corners; ``steps``: everything is bought in steps, and these are all
        the upgrades that nothing beats; ``samples``: some is bought in steps and some is not, and
        these are cheapest upgrades at some factors.
    complete
        Whether the front ends where it should; else a limit came first, and points of
        ``breaks`` may have corners between them, those of ``steps`` more behind the last.
    today
        Cost of the cluster as it is.
    currency
        Unit of costs.
    """

    points: tuple[Upgrade, ...]
    kind: FrontKind
    complete: bool
    today: float
    currency: str


By = Literal["kind", "orbit"]
"""Links change together that have one bandwidth and medium, or only those that look alike."""

SIMPLE = 1e-9
"""Bandwidths this near to a simple fraction stand for it, relative."""

GRAIN = 10**6
"""Any other bandwidth that is bought is rounded up to whole parts of a GB/s this fine."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Goods:
    """A class of links, or of shared limits.

    Parameters
    ----------
    words
        What they are.
    links, limits
        Their numbers in the topology.
    count
        How many are bought; the two directions of a link are one.
    bandwidth
        GB/s of each today; where a link's directions differ, of the first.
    price
        Of 1 GB/s more on all of them.
    step
        GB/s that are bought at once, or None.
    most
        GB/s more of each that can be had, `math.inf` where there is no end.
    whole
        Whether a step is one more parallel link.
    """

    words: str
    links: tuple[int, ...] = ()
    limits: tuple[int, ...] = ()
    count: int
    bandwidth: float
    price: float
    step: float | None
    most: float
    whole: bool = False


@dataclass(frozen=True, eq=False)
class Offers:
    """All goods of a cluster.

    Parameters
    ----------
    topology
        The cluster today.
    goods
        What is for sale.
    of_link, of_limit
        Number of the goods that each is, shape (links,) and (limits,); -1 where it is not for sale.
    """

    topology: Topology
    goods: tuple[Goods, ...]
    of_link: np.ndarray
    of_limit: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """Number of the goods of each capacity row: links, then limits."""
        return np.concatenate([self.of_link, self.of_limit])

    @property
    def labels(self) -> np.ndarray:
        """A number for each link; symmetries that keep it take goods to the same goods."""
        under: defaultdict[int, list[int]] = defaultdict(list)
        for limit, number in zip(self.topology.limits, self.of_limit.tolist(), strict=True):
            for ends in limit.links:
                under[self.topology.link_index[ends]].append(number)
        numbers: dict[tuple[int, ...], int] = {}
        keys = [(mine, *sorted(under[i])) for i, mine in enumerate(self.of_link.tolist())]
        return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)

    def rounded(self, extra: np.ndarray) -> np.ndarray:
        """Return amounts that people can read and that are no less, but for rounding.

        Parameters
        ----------
        extra
            GB/s more of each of the goods, shape (goods,).
        """
        return np.array(
            [_simple(each, mine) for each, mine in zip(extra.tolist(), self.goods, strict=True)]
        )

    def cost(self, extra: np.ndarray) -> float:
        """Return what amounts cost."""
        return float(sum(g.price * y for g, y in zip(self.goods, extra.tolist(), strict=True)))

    def upgraded(self, extra: np.ndarray) -> Topology:
        """Return the cluster with these amounts more."""
        more = np.append(extra, 0.0)
        links = tuple(
            self._more(link, number, float(more[number]))
            for link, number in zip(self.topology.links, self.of_link.tolist(), strict=True)
        )
        limits = tuple(
            replace(limit, bandwidth=limit.bandwidth + float(more[number]))
            for limit, number in zip(self.topology.limits, self.of_limit.tolist(), strict=True)
        )
        labels = self.labels
        kinds = link_classes(self.topology)
        # What is declared of symmetries holds as long as links that looked alike still do.
        alike = len({*zip(kinds.tolist(), labels.tolist(), strict=True)}) == len({*kinds.tolist()})
        declared = self.topology.declared if alike else ()
        return replace(self.topology, links=links, limits=limits, declared=declared)

    def changes(self, extra: np.ndarray) -> tuple[Change, ...]:
        """Return what becomes of each of the goods."""
        topology = self.topology
        return tuple(
            Change(
                words=mine.words,
                links=tuple(topology.links[i].ends for i in mine.links),
                limits=tuple(topology.limits[i].name for i in mine.limits),
                count=mine.count,
                before=mine.bandwidth,
                after=mine.bandwidth + more,
                cost=mine.price * more,
                whole=round(more / mine.step) if mine.whole and mine.step else 0,
            )
            for mine, more in zip(self.goods, extra.tolist(), strict=True)
        )

    def _more(self, link: Link, number: int, more: float) -> Link:
        if not more:
            return link
        mine = self.goods[number]
        new = round(more / mine.step) if mine.whole and mine.step else 0
        return replace(link, bandwidth=link.bandwidth + more, count=link.count + new)


def offers_of(topology: Topology, costs: Costs, *, by: By = "kind") -> Offers:
    """Return what is for sale on a cluster.

    Parameters
    ----------
    topology
        The cluster.
    costs
        Prices.
    by
        ``kind``: links of one bandwidth and medium get the same; ``orbit``: only those that
        symmetries of the cluster exchange do, which can be cheaper.

    Raises
    ------
    ProblemError
        If the costs name what is not there, or fit nothing.
    """
    costs.named(topology)
    goods: list[Goods] = []
    of_link = np.full(len(topology.links), -1)
    of_limit = np.full(len(topology.limits), -1)
    for price, places in _linked(topology, costs, by=by):
        of_link[places] = len(goods)
        goods.append(_of_links(topology, price, places=places))
    for price, places in _limited(topology, costs):
        of_limit[places] = len(goods)
        goods.append(_of_limits(topology.limits, price, places=places))
    if not goods:
        media = ", ".join(sorted({each.medium or "no medium" for each in topology.links}))
        raise ProblemError(
            f"costs fit no link of {topology}, whose links are of {media}; name one of these"
        )
    return Offers(topology, _distinguished(topology, goods), of_link, of_limit)


def _linked(topology: Topology, costs: Costs, *, by: By) -> list[tuple[Price, list[int]]]:
    """Return the links of one class and price together."""
    kinds = link_classes(topology, by=by)
    found: defaultdict[tuple[int, int, float], list[int]] = defaultdict(list)
    for i, link in enumerate(topology.links):
        back = topology.link_index.get((link.dst, link.src), i)
        first = topology.links[min(i, back)]
        fits = [costs.of_link(each) for each in (first, topology.links[max(i, back)])]
        place = next((each for each in fits if each is not None), None)
        if place is not None:
            whole = costs.links[place].step == "link"
            key = place, int(kinds[i]), first.bandwidth / first.count if whole else 0.0
            found[key].append(i)
    return [(costs.links[place], found[place, kind, size]) for place, kind, size in sorted(found)]


def _limited(topology: Topology, costs: Costs) -> list[tuple[Price, list[int]]]:
    found: defaultdict[tuple[int, float], list[int]] = defaultdict(list)
    for i, limit in enumerate(topology.limits):
        place = costs.of_limit(limit)
        if place is not None:
            found[place, limit.bandwidth].append(i)
    return [(costs.links[place], found[place, size]) for place, size in sorted(found)]


def _of_links(topology: Topology, price: Price, *, places: list[int]) -> Goods:
    first = topology.links[places[0]]
    widest = max(topology.links[i].bandwidth for i in places)
    count = len({frozenset(topology.links[i].ends) for i in places})
    whole = isinstance(price.step, str)
    step = first.bandwidth / first.count if isinstance(price.step, str) else price.step
    return Goods(
        words=f"{first.medium or 'links'} at {text.number(first.bandwidth, 4)} GB/s",
        links=tuple(places),
        count=count,
        bandwidth=first.bandwidth,
        price=price.cost * count,
        step=step,
        most=_most(price, widest),
        whole=whole,
    )


def _of_limits(limits: Sequence[SharedLimit], price: Price, *, places: list[int]) -> Goods:
    first = limits[places[0]]
    step = price.step
    assert not isinstance(step, str), "a price of limits has none"
    others = f" and {len(places) - 1} alike" if len(places) > 1 else ""
    return Goods(
        words=f"shared limit {first.name}{others} at {text.number(first.bandwidth, 4)} GB/s",
        limits=tuple(places),
        count=len(places),
        bandwidth=first.bandwidth,
        price=price.cost * len(places),
        step=step,
        most=_most(price, first.bandwidth),
    )


def _most(price: Price, bandwidth: float) -> float:
    return math.inf if price.most is None else max(price.most - bandwidth, 0.0)


def _distinguished(topology: Topology, goods: list[Goods]) -> tuple[Goods, ...]:
    """Return the goods, those of the same words with the ends of one link."""
    words: list[str] = [each.words for each in goods]
    return tuple(
        replace(each, words=f"{each.words}, as {'-'.join(topology.links[each.links[0]].ends)}")
        if each.links and words.count(each.words) > 1
        else each
        for each in goods
    )


def _simple(more: float, goods: Goods) -> float:
    """Return an amount as a whole number of steps or a simple number that is no less."""
    if goods.step is not None:
        return round(more / goods.step) * goods.step
    if more <= SIMPLE * goods.bandwidth:
        return 0.0
    near = round(more, 3)
    if abs(near - more) <= SIMPLE * (goods.bandwidth + more):
        return near
    return min(math.ceil(more * GRAIN) / GRAIN, goods.most)
