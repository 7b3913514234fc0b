"""A topology as MSCCL-tools counts it: links between GPUs, and limits on what goes together.

GPUs that no link joins are joined by their shortest way over other devices, of these the widest,
as fast as its narrowest link. A link that several such ways share, and a shared limit, is a switch
of MSCCL-tools: it limits what goes from any of its sources to any of its destinations.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product

from ccl.topology import Topology

MOST_EXACT = 10_000
"""Links that one entry may count; above, bandwidths are rounded to whole ones of the slowest."""

MOST_COUNT = 10**9
"""Links that one entry counts in any case."""

Pair = tuple[int, int]


@dataclass(frozen=True)
class Switch:
    """A limit: GB/s for all pairs of a source and a destination together."""

    pairs: frozenset[Pair]
    bandwidth: float
    name: str

    @property
    def sides(self) -> tuple[list[int], list[int]]:
        """Sources and destinations."""
        return sorted({src for src, _ in self.pairs}), sorted({dst for _, dst in self.pairs})


@dataclass(frozen=True)
class Counted:
    """What MSCCL-tools can say of a topology.

    Parameters
    ----------
    counts
        Links between each two ranks that are joined.
    switches
        Limits, with their bandwidth in links.
    unit
        GB/s that a link stands for.
    rounded
        Largest share by which a bandwidth is off.
    over
        Pairs of ranks that are joined over other devices.
    stricter
        How many limits are on more pairs than in the topology.
    covering
        Places of the switches that a pair is under.
    """

    counts: dict[Pair, int]
    switches: tuple[tuple[Switch, float], ...]
    unit: float
    rounded: float
    over: int
    stricter: int
    covering: dict[Pair, list[int]]

    def matrix(self, side: int) -> list[list[int]]:
        """Return the counts, shape (destinations, sources)."""
        rows = [[0] * side for _ in range(side)]
        for (src, dst), many in self.counts.items():
            rows[dst][src] = many
        return rows


def counted_links(topology: Topology) -> Counted:
    """Return a topology as counts of links and limits."""
    ways = {
        (src, dst): way
        for src, name in enumerate(topology.ranks)
        for dst, way in _ways(topology, name).items()
    }
    rates = {
        pair: min(topology.link(*ends).bandwidth for ends in pairwise(way))
        for pair, way in ways.items()
    }
    unit = _unit(rates.values())
    counts = {pair: max(1, round(rate / unit)) for pair, rate in rates.items()}
    rounded = max((abs(counts[pair] * unit / rate - 1) for pair, rate in rates.items()), default=0)
    switches = _switches(topology, ways)
    covering: dict[Pair, list[int]] = {pair: [] for pair in ways}
    stricter = 0
    for place, each in enumerate(switches):
        srcs, dsts = each.sides
        covered = [pair for pair in product(srcs, dsts) if pair in covering]
        stricter += len(covered) > len(each.pairs)
        for pair in covered:
            covering[pair].append(place)
    return Counted(
        counts=counts,
        switches=tuple((each, _plain(each.bandwidth / unit)) for each in switches),
        unit=unit,
        rounded=rounded if rounded > 1e-9 else 0.0,
        over=sum(len(way) > 2 for way in ways.values()),
        stricter=stricter,
        covering=covering,
    )


def _plain(value: float) -> float:
    """Return a whole number where rounding alone has made it none."""
    near = round(value)
    return near if near and math.isclose(value, near, rel_tol=1e-9) else value


def _unit(rates: Collection[float]) -> float:
    """Return the largest bandwidth of which all are whole multiples, or that of the slowest."""
    exact = {Fraction(rate).limit_denominator(10**6) for rate in rates}
    exact.discard(Fraction(0))
    if not exact:
        return max(min(rates), max(rates) / MOST_COUNT) if rates else 1.0
    bottom = math.lcm(*(each.denominator for each in exact))
    unit = Fraction(math.gcd(*(int(each * bottom) for each in exact)), bottom)
    if max(exact) / unit <= MOST_EXACT:
        return float(unit)
    return float(max(min(exact), max(exact) / MOST_COUNT))


def _ways(topology: Topology, name: str) -> dict[int, tuple[str, ...]]:
    """Return the way from a GPU to each that it reaches past no other GPU."""
    found: dict[int, tuple[str, ...]] = {}
    front: dict[str, tuple[float, tuple[str, ...]]] = {name: (math.inf, (name,))}
    seen = {name}
    while front:
        after: dict[str, tuple[float, tuple[str, ...]]] = {}
        for width, way in front.values():
            for link in topology.links_out[way[-1]]:
                wide = min(width, link.bandwidth)
                if link.dst not in seen and wide > after.get(link.dst, (0.0, ()))[0]:
                    after[link.dst] = wide, (*way, link.dst)
        seen |= after.keys()
        found |= {
            topology.rank[end]: way for end, (_, way) in after.items() if end in topology.rank
        }
        front = {end: each for end, each in after.items() if end not in topology.rank}
    return found


def _switches(topology: Topology, ways: dict[Pair, tuple[str, ...]]) -> list[Switch]:
    crossing: defaultdict[tuple[str, str], set[Pair]] = defaultdict(set)
    for pair, way in ways.items():
        for ends in pairwise(way):
            crossing[ends].add(pair)
    switches = [
        Switch(frozenset(pairs), topology.link(*ends).bandwidth, f"{ends[0]}->{ends[1]}")
        for ends, pairs in crossing.items()
        if len(pairs) > 1
    ]
    for limit in topology.limits:
        pairs = {pair for ends in limit.links for pair in crossing.get(ends, ())}
        if pairs:
            switches.append(Switch(frozenset(pairs), limit.bandwidth, limit.name))
    return switches
