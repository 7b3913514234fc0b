"""Lower bounds on the makespan with their witnesses, and prices of links and of shared limits.

Each `Bound` carries its witness, so that it can be drawn and checked; the bounds themselves are
proved in `formulations.bounds`. `across` describes where a cut is: by whole hosts where it consists
of hosts, from its smaller side.

`Prices` say what a little more bandwidth of each link would save. The makespan T of a linear
program in which latencies are hidden depends on the bandwidths b alone. By duality it is the
largest value, over prices y >= 0 of a byte on each link and limit, of

    T(b) = max over y of   D(y) / (y . b)

with D(y) the cost of all transfers at these prices along the cheapest paths or trees, whatever
b is. For an optimal y, scaled so that y . b = 1 (b in bytes per µs), T = D(y), and the derivative
is dT/db[i] = -T y[i]: with more bandwidth T falls, so a price is

    price[i] = -dT/db[i] = T y[i]           µs saved for each GB/s added,

never negative. Two facts follow, which `formulations` tests:

* all bandwidths times c make T / c, so the sum of price[i] b[i] over links and limits is T;
* T is convex in b, as a largest of convex functions. So where several y are optimal, the prices of
  any one of them are a subgradient: added bandwidth saves at most the price, and bandwidth that is
  taken away costs at least the price, for each GB/s.

The price is that of one link's bandwidth alone: links that look alike have the same price,
and a low one where only more bandwidth of all of them would help.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ccl.display import mime_bundle
from ccl.errors import ProblemError
from ccl.topology import Topology

BoundKind = Literal["path", "injection", "ejection", "cut", "stages", "group", "flow", "solver"]


@dataclass(frozen=True, slots=True)
class Cut:
    """A set of devices and what leaves it.

    Parameters
    ----------
    inside
        Names of the devices inside, sorted as in the topology.
    links
        Ends of the links that leave it.
    bandwidth
        GB/s of these together, shared limits counted.
    """

    inside: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    bandwidth: float


@dataclass(frozen=True, slots=True)
class Path:
    """A path that some data must take at least: the devices in order."""

    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """No plan is faster than this.

    Parameters
    ----------
    makespan
        µs.
    kind
        ``path``: the longest of the quickest paths; ``injection`` and ``ejection``: what one
        GPU must send or receive; ``cut``: what must leave a set of devices; ``stages``: what
        must pass two cuts one after the other, or be copied inside a set; ``group``: what must
        arrive at all GPUs or hosts together; ``flow``: the largest rate at which all demands
        flow together; ``solver``: an optimization model's own bound, for the model named in
        `reference`.
    witness
        The cut or path that proves it; None where no single one does (`reference` then has the
        numbers) and for a solver's.
    reference
        Where the argument comes from, in words for the user.
    whole_chunks
        Whether it holds only for plans that never split a chunk.
    steady
        Whether it holds for the steady state too (`ccl.tree_embedding`): bytes over bandwidth, in
        which no latency is counted.
    """

    makespan: float
    kind: BoundKind
    witness: Cut | Path | None
    reference: str
    whole_chunks: bool = False
    steady: bool = False

    _repr_mimebundle_ = mime_bundle


def moore_mean(vertices: int, degree: int, *, duplex: bool = False) -> float:
    """Return the least mean distance from a vertex to the others in a network of such a degree.

    At the distance k there are at most d times as many vertices as at k - 1, so that no network has
    a smaller mean than one with d^k each, the rest as near as that allows (the bound of Moore). In
    an all-to-all every byte uses as many links as it goes far: with links of b GB/s it takes at
    least vertices x (vertices - 1) x mean bytes of one pair over the d b of each vertex. The graphs
    of Petersen and of Hoffman and Singleton, Kautz graphs of diameter 2 and full meshes reach it.

    Parameters
    ----------
    vertices
        How many there are, n.
    degree
        Links out of each, d.
    duplex
        Whether each link has one in the opposite direction. Then one of a vertex's links leads
        back, and at the distance k there are at most d (d - 1)^(k - 1).

    Raises
    ------
    ProblemError
        If so many vertices cannot hang together.
    """
    branching = degree - 1 if duplex else degree
    if vertices < 2 or degree < 1 or (branching < 1 and vertices > 2):
        raise ProblemError(f"{vertices} vertices with {degree} links each do not hang together")
    left, total, distance, most = vertices - 1, 0, 1, degree
    while left:
        here = min(left, most)
        total += here * distance
        left, distance, most = left - here, distance + 1, most * branching
    return total / (vertices - 1)


def across(cut: Cut, topology: Topology) -> tuple[str, list[str]]:
    """Return ``into`` or ``out of``, and the names of what is on that side of a cut."""
    within = set(cut.inside)
    beyond = {each.name for each in topology.devices} - within
    if len(beyond) == 1 or len(beyond) < len(within):
        return "into", _hosts_first(topology, beyond)
    return "out of", _hosts_first(topology, within)


def _hosts_first(topology: Topology, names: set[str]) -> list[str]:
    """Name devices in the order of the topology, a host instead where all of it is among them."""
    hosts = {each.name: each.host for each in topology.devices}
    broken = {host for name, host in hosts.items() if name not in names} | {None}
    whole = {str(hosts[name]): None for name in hosts if hosts[name] not in broken}
    return [*whole, *(name for name in hosts if name in names and hosts[name] in broken)]


Ends = tuple[str, str]

IDLE = 1e-7
"""A link whose price times bandwidth is a smaller share of the makespan holds nothing down."""


@dataclass(frozen=True)
class Prices:
    """The prices at one optimum.

    Parameters
    ----------
    topology
        Whose links are priced.
    makespan
        µs of the optimum: of the steady state, latencies hidden, unless `model` says otherwise.
    links
        µs saved for each GB/s added to a link, by its ends; every link is there.
    limits
        The same for each shared limit, by its name.
    model
        Which linear program they are the duals of, in words.
    exact
        Whether plans reach `makespan`; else no plan is faster, but perhaps none is as fast.
    """

    topology: Topology
    makespan: float
    links: Mapping[Ends, float]
    limits: Mapping[str, float] = field(default_factory=dict)
    model: str = "linear program of a fluid"
    exact: bool = True

    def __getitem__(self, ends: Ends) -> float:
        """Return the price of a link by its ends: µs for each GB/s."""
        return self.links[ends]

    def share(self, ends: Ends) -> float:
        """Return by how much of its change the makespan follows a link's bandwidth, 0 to 1."""
        return self.links[ends] * self.topology.link(*ends).bandwidth / self.makespan

    def share_of_limit(self, name: str) -> float:
        """Return the same for a shared limit."""
        [limit] = (each for each in self.topology.limits if each.name == name)
        return self.limits[name] * limit.bandwidth / self.makespan

    @property
    def dearest(self) -> tuple[Ends, ...]:
        """Ends of the links that hold the makespan down, the dearest first."""
        found = [ends for ends in self.links if self.share(ends) > IDLE]
        # Prices that differ by rounding alone are equal, and equal ones stay in the links' order.
        return tuple(sorted(found, key=lambda ends: -float(f"{self.links[ends]:.9g}")))

    @property
    def total(self) -> float:
        """µs: price times bandwidth of all links and limits, which is the makespan."""
        links = sum(self.links[each.ends] * each.bandwidth for each in self.topology.links)
        return links + sum(self.limits[e.name] * e.bandwidth for e in self.topology.limits)

    def __str__(self) -> str:
        """Return the dearest links in a few lines."""
        lines = [f"{self.makespan:.6g} µs on {self.topology.name}: {self.model}"]
        for ends in self.dearest[:MOST_NAMED]:
            src, dst = ends
            lines.append(f"  {src}->{dst}  {self.links[ends]:.4g} µs saved per GB/s at most")
        more = len(self.dearest) - MOST_NAMED
        if more > 0:
            lines.append(f"  and {more} more links")
        lines += [
            f"  limit {name}  {price:.4g} µs saved per GB/s at most"
            for name, price in self.limits.items()
            if self.share_of_limit(name) > IDLE
        ]
        idle = sum(self.share(ends) <= IDLE for ends in self.links)
        lines += [f"  {idle} links would save nothing"] if idle else []
        return "\n".join(lines)

    _repr_mimebundle_ = mime_bundle


MOST_NAMED = 8
"""Links that a text lists by name."""
