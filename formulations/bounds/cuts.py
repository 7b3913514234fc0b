"""Cut bounds: the bytes that must leave a set of devices, or several, over the bandwidth for them.

Let S be a set of devices, D its demand in bytes (`formulations.bounds.demand`), and e = (u, v) a
link that leaves S. A byte that crosses e and is of use

* begins to cross no earlier than the sum of latencies from the nearest GPU of S that holds
  anything to u (``head``): what crosses e last when it leaves S came from inside;
* has crossed no later than the makespan T minus the latency of e and of the nearest path from v
  to a GPU outside S that needs anything (``tail``).

So e is of use from head(e) to T - tail(e) and carries at most b(e) max(0, T - head(e) - tail(e))
useful bytes, whatever is split, copied or cut through along the path. T must be so large that all
of this together is D (`cut_bounds`). This holds for every plan that is verified, at copying and
reducing switches too, since D counts each byte once.

The links of a shared limit L are of use at different times: one may open early, another close
late, and together they keep L busy for longer than either is of use. At the moment t they carry at
most a(t), the least of b(L) and the b(e) of those with head(e) <= t, and at most z(T - t), the same
for the tails. Let h(r) and q(r) be when a and z come to the rate r. They carry r or more only from
h(r) to T - q(r), hence in all at most the integral of max(0, T - h(r) - q(r)) over r from 0 to
b(L), or to the sum of the b(e) if that is less: as if L were a few links of their own (`narrowed`).
Where any of the links could fill L alone that is one link, of use from the least head to T less the
least tail. Links apart and limits are two views; the better one counts.

`joint_bounds`: what several sets of devices must take in together.

Shared limits. Take the links of a limit away and let C1, C2, ... be the parts into which the
cluster falls. Whatever enters or leaves a part does so over links of the limit, and a byte on one
link enters one part and leaves one. So the limit carries, together, at least the sum over parts
of what must enter each, and, where none of its links leads from one part that must send to
another that must receive, also what must leave each. This counts the reads and the writes of a
host memory.

All-reduce over groups. Let G1 ... Gk be disjoint sets of devices with all GPUs among them, and
let no device outside them add. Look at one byte of the reduced data. Each arrival at a group
brings what one group knew when it sent, copied perhaps along the path. Until some group knows every
contribution at least k - 1 arrivals have happened, since fewer do not connect k groups; each of
the k - 1 others then needs one more, later, arrival. So 2 (k - 1) times the size arrives over all
links into groups together. Singles give the bound of Patarasuk and Yuan (JPDC 2009) on a
uniform cluster; hosts give that of the network between them.

Neither has a single cut as its witness, so none is given; the reference says the numbers.

`total_bounds`: the total that all GPUs, or all hosts, must send or receive. Let G1 ... Gk be
disjoint sets of devices with all GPUs among them: the GPUs one by one, or hosts. Look at one byte
of a chunk.

Sums. If no device outside adds, at least |H| + |D| - 2 values arrive at groups, where H are the
groups that contribute and D those that want the sum; one more if no group does both. Proof: a value
that arrives was added up inside a group, and contributions in a sum are distinct, so the first
group that knows all of them has heard of the others by |H| - 1 arrivals (|H| if it contributes
nothing) on whose contents no two agree; every other group of D needs one arrival after that. For
GPUs and a reduce-scatter these are the n - 1 downloads of theorem 16 of the thesis, appendix A; for
an all-reduce the 2 n - 2 of theorem 18.

Copies. If no device outside copies, as many values leave groups as arrive at them, and a chunk
arrives at every group that wants it and has no holder: read backwards in time, the same.

What one GPU or one host takes in or sends by itself (theorems 8 to 13) is a cut, and stronger where
it is the same for all. These bounds are stronger where paths up and paths down differ.

Source: the thesis, appendix A, with groups and every GPU's own bandwidth in place of universal
limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ccl.bound import Bound, BoundKind, Cut
from ccl.problem import Problem
from ccl.symmetry.graphs import igraph
from ccl.topology import SharedLimit
from formulations.bounds.demand import Demand, Floats, Mask, demand_of

BYTES = 1e3
"""Bytes in a microsecond at 1 GB/s."""

_CLASSES = 16
"""More kinds of links than this say nothing about how a cluster is built."""

_REFERENCE = (
    "bytes that must cross over the bandwidth of the cut, with the latencies before and after"
)


@dataclass(frozen=True)
class Network:
    """A problem as arrays; devices, links and ranks are numbered as in the topology."""

    problem: Problem

    @cached_property
    def demand(self) -> Demand:
        """What must cross."""
        return demand_of(self.problem.collective)

    @cached_property
    def ends(self) -> np.ndarray:
        """(links, 2): numbers of the devices that each link leaves and enters."""
        index = self.problem.topology.index
        pairs = [(index[each.src], index[each.dst]) for each in self.problem.topology.links]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    @cached_property
    def bandwidth(self) -> Floats:
        """(links,): GB/s that a link can carry alone, under its limits."""
        rates = np.array([each.bandwidth for each in self.problem.topology.links], dtype=float)
        for limit, members in self.limits:
            rates[members] = np.minimum(rates[members], limit.bandwidth)
        return rates

    @cached_property
    def alpha(self) -> Floats:
        """(links,): µs."""
        return np.array([each.alpha for each in self.problem.topology.links], dtype=float)

    @cached_property
    def gpus(self) -> np.ndarray:
        """(ranks,): the number of the device of each rank."""
        topology = self.problem.topology
        return np.array([topology.index[name] for name in topology.ranks], dtype=np.int64)

    @cached_property
    def limits(self) -> tuple[tuple[SharedLimit, np.ndarray], ...]:
        """Each shared limit with the numbers of its links, the tightest first."""
        topology = self.problem.topology
        return tuple(
            (each, np.array([topology.link_index[ends] for ends in each.links]))
            for each in sorted(topology.limits, key=lambda limit: limit.bandwidth)
        )

    @cached_property
    def graph(self) -> igraph.Graph:
        """The links as edges in their order."""
        return igraph.Graph(
            n=len(self.problem.topology.devices), edges=self.ends.tolist(), directed=True
        )

    @cached_property
    def latency(self) -> Floats:
        """(ranks, devices): least sum of latencies from each rank, in µs."""
        return self._latencies("out")

    @cached_property
    def latency_to(self) -> Floats:
        """(ranks, devices): least sum of latencies to each rank, in µs."""
        return self._latencies("in")

    def _latencies(self, mode: str) -> Floats:
        shape = len(self.gpus), len(self.problem.topology.devices)
        if not self.alpha.any():
            return np.zeros(shape)
        found = self.graph.distances(self.gpus.tolist(), weights=self.alpha.tolist(), mode=mode)
        return np.asarray(found, dtype=float).reshape(shape)

    def crossing(self, inside: Mask) -> np.ndarray:
        """Return the numbers of the links that leave a set of devices, a mask over them."""
        return np.flatnonzero(inside[self.ends[:, 0]] & ~inside[self.ends[:, 1]])


def common_cuts(network: Network) -> list[Mask]:
    """Return every single GPU, host and part, and everything but each of these.

    Parts are what remains joined when all links of a kind are taken away: rails without the
    switches inside hosts, hosts without the network, groups of a dragonfly.
    """
    devices = network.problem.topology.devices
    numbers = np.arange(len(devices))
    found = [numbers == gpu for gpu in network.gpus]
    hosts = np.array([each.host or "" for each in devices])
    found += [hosts == name for name in network.problem.topology.hosts]
    found += _parts(network)
    once = {each.tobytes(): each for each in found if each[network.gpus].any() and not each.all()}
    return [*once.values(), *(~each for each in once.values())]


def _parts(network: Network) -> list[Mask]:
    topology = network.problem.topology
    kind = {each.name: each.kind for each in topology.devices}
    classes = [
        (tuple(sorted((kind[each.src], kind[each.dst]))), each.medium, each.bandwidth, each.alpha)
        for each in topology.links
    ]
    distinct = list(dict.fromkeys(classes))
    if len(distinct) > _CLASSES:
        return []
    found: list[Mask] = []
    for one in distinct:
        kept = np.array([each != one for each in classes])
        parts = igraph.Graph(n=len(kind), edges=network.ends[kept].tolist()).components()
        found += [np.array(parts.membership) == i for i in range(len(parts))]
    return found


def leaving_of(network: Network, cuts: Iterable[Mask]) -> Floats:
    """Return the bytes that must leave each of several sets of devices, shape (sets,)."""
    return network.demand.leaving(np.array(list(cuts))[:, network.gpus])


def cut_bounds(
    network: Network, cuts: Iterable[Mask], leaving: Floats | None = None
) -> list[Bound]:
    """Return the best bound of each kind (injection, ejection, cut) that the cuts prove.

    `leaving` are the bytes that must leave each, where they are known (`leaving_of`).
    """
    sides = np.array(list(cuts))
    leaving = leaving_of(network, sides) if leaving is None else leaving
    best: dict[BoundKind, tuple[float, Mask]] = {}
    for inside, nbytes in zip(sides, leaving, strict=True):
        if nbytes > 0:
            kind = kind_of(network, inside)
            makespan = cut_makespan(network, inside, nbytes)
            if kind not in best or makespan > best[kind][0]:
                best[kind] = makespan, inside
    return [
        Bound(makespan, kind, witness(network, inside), _REFERENCE)
        for kind, (makespan, inside) in best.items()
    ]


def cut_makespan(network: Network, inside: Mask, nbytes: float) -> float:
    """Return the µs that a cut proves when `nbytes` must leave it."""
    links = network.crossing(inside)
    heads, tails = windows(network, inside, links)
    proved = filled(network.bandwidth[links] * BYTES, heads + tails, nbytes)
    joint = throttled(network, links)
    if not joint:
        return proved
    rates, waits = _pipes(network, links, joint, heads=heads, tails=tails)
    return max(proved, filled(rates * BYTES, waits, nbytes))


def windows(network: Network, inside: Mask, links: np.ndarray) -> tuple[Floats, Floats]:
    """Return µs before links that leave a set are of use, and those before the end when not."""
    if not network.alpha.any():
        return np.zeros(len(links)), np.zeros(len(links))
    at_gpus = inside[network.gpus]
    starts = at_gpus & network.demand.holding
    stops = ~at_gpus & network.demand.needing
    tails, heads = network.ends[links, 0], network.ends[links, 1]
    before = network.latency[np.ix_(starts, tails)].min(axis=0)
    after = network.latency_to[np.ix_(stops, heads)].min(axis=0)
    return np.asarray(before), np.asarray(network.alpha[links] + after)


def filled(rates: Floats, waits: Floats, nbytes: float) -> float:
    """Return when pipes of `rates` bytes/µs, each open after its wait, have let `nbytes` pass."""
    order = np.argsort(waits, kind="stable")
    rate = np.cumsum(rates[order])
    times = (nbytes + np.cumsum(rates[order] * waits[order])) / rate
    # With more pipes than are open by then the time comes out later, so the least is right.
    return float(times.min())


def narrowed(most: float, rates: Floats, *, heads: Floats, tails: Floats) -> tuple[Floats, Floats]:
    """Return rates and waits of pipes that carry all that links can under a limit of `most`.

    Parameters
    ----------
    most
        GB/s of the limit.
    rates, heads, tails
        (links,): GB/s, and µs after the start and before the end in which a link is of no use.
    """
    useful = np.isfinite(heads + tails)
    levels, times = [], []
    for each in (heads[useful], tails[useful]):
        order = np.argsort(each, kind="stable")
        levels.append(np.minimum(np.cumsum(rates[useful][order]), most))
        times.append(each[order])
    steps = np.unique(np.concatenate(levels))
    waits = np.zeros(len(steps))
    for level, time in zip(levels, times, strict=True):
        # The sums of both orders may differ in their last digits.
        waits += time[np.minimum(np.searchsorted(level, steps), len(level) - 1)]
    return np.diff(steps, prepend=0.0), waits


def witness(network: Network, inside: Mask) -> Cut:
    """Return the cut as it is shown."""
    topology = network.problem.topology
    links = network.crossing(inside)
    always = np.zeros(len(links))
    rates, _ = _pipes(network, links, throttled(network, links), heads=always, tails=always)
    return Cut(
        inside=tuple(topology.devices[i].name for i in np.flatnonzero(inside)),
        links=tuple(topology.links[i].ends for i in links),
        bandwidth=float(rates.sum()),
    )


def kind_of(network: Network, inside: Mask) -> BoundKind:
    """Return what a cut is called: by the one GPU inside or outside of it, if there is one."""
    count = int(inside.sum())
    if count == 1:
        return "injection"
    if count == len(inside) - 1 and not inside[network.gpus].all():
        return "ejection"
    return "cut"


def passed(network: Network, inside: Mask) -> str:
    """Describe how a set of devices is left: out of it, or into the rest where that is smaller."""
    if inside.sum() <= (~inside).sum():
        return f"out of {side(network, inside)}"
    return f"into {side(network, ~inside)}"


def side(network: Network, inside: Mask) -> str:
    """Name a set of devices in few words."""
    topology = network.problem.topology
    devices = [topology.devices[i] for i in np.flatnonzero(inside)]
    hosts = {each.host for each in topology.devices if each.host is not None}
    within = {each.host for each in devices}
    if len(devices) == 1:
        return devices[0].name
    if len(within) == 1 and within <= hosts:
        everything = [each for each in topology.devices if each.host in within]
        if len(everything) == len(devices):
            return str(devices[0].host)
    gpus = int(inside[network.gpus].sum())
    return f"{gpus} GPUs" if gpus < len(network.gpus) else "all GPUs"


def throttled(network: Network, links: np.ndarray) -> list[tuple[float, Mask]]:
    """Return GB/s of the limits below what some of the links could carry, and which these are.

    A link counts in one limit at most, the tightest, which can only allow more than is true.
    """
    rates = network.bandwidth[links]
    free = np.ones(len(links), dtype=bool)
    found = []
    for limit, members in network.limits:
        shared = free & np.isin(links, members)
        if rates[shared].sum() > limit.bandwidth:
            found.append((limit.bandwidth, shared))
            free &= ~shared
    return found


def _pipes(
    network: Network,
    links: np.ndarray,
    joint: Sequence[tuple[float, Mask]],
    *,
    heads: Floats,
    tails: Floats,
) -> tuple[Floats, Floats]:
    """Return GB/s and waits of links, those that a limit throttles as `narrowed` has them."""
    rates = network.bandwidth[links]
    free = ~np.logical_or.reduce([np.zeros(len(links), dtype=bool), *(each for _, each in joint)])
    found = [(rates[free], (heads + tails)[free])]
    found += [
        narrowed(most, rates[each], heads=heads[each], tails=tails[each]) for most, each in joint
    ]
    return np.concatenate([each for each, _ in found]), np.concatenate([each for _, each in found])


def joint_bounds(network: Network) -> list[Bound]:
    """Return what shared limits and, for sums that all need, groups of GPUs prove."""
    found = [_limit_bound(network, limit, links) for limit, links in network.limits]
    found += [_group_bound(network, groups) for groups in groupings(network)]
    return [each for each in found if each is not None]


def _limit_bound(network: Network, limit: SharedLimit, links: np.ndarray) -> Bound | None:
    """Return what a limit proves, given the numbers of its links."""
    kept = np.ones(len(network.bandwidth), dtype=bool)
    kept[links] = False
    devices = network.problem.topology.devices
    parts = igraph.Graph(n=len(devices), edges=network.ends[kept].tolist()).components()
    part = np.array(parts.membership)
    sides = np.arange(len(parts))[:, None] == part
    leaving = network.demand.leaving(sides[:, network.gpus])
    entering = network.demand.leaving(~sides[:, network.gpus])
    src, dst = part[network.ends[links]].T
    nbytes = entering.sum()
    if not ((leaving[src] > 0) & (entering[dst] > 0) & (src != dst)).any():
        nbytes += leaving.sum()
    if nbytes == 0:
        return None
    return Bound(
        float(nbytes / (limit.bandwidth * BYTES) + network.alpha[links].min()),
        "cut",
        None,
        f"{nbytes * 1e-6:.4g} MB must pass {limit.name}, {limit.bandwidth:.4g} GB/s in all",
    )


def groupings(network: Network) -> list[list[Mask]]:
    """Return the GPUs one by one, and the hosts where all GPUs are in some."""
    demand = network.demand
    whole = demand.reduced & demand.holders.all(axis=1) & demand.destinations.all(axis=1)
    if not whole.any():
        return []
    return [[group == i for i in range(group.max() + 1)] for _, group in families(network)]


def _group_bound(network: Network, groups: list[Mask]) -> Bound | None:
    devices = network.problem.topology.devices
    outside = ~np.logical_or.reduce(groups)
    if any(devices[i].reduces for i in np.flatnonzero(outside)):
        return None
    demand = network.demand
    whole = demand.reduced & demand.holders.all(axis=1) & demand.destinations.all(axis=1)
    nbytes = 2 * (len(groups) - 1) * float(demand.sizes[whole].sum())
    links = np.unique(np.concatenate([network.crossing(~group) for group in groups]))
    rates = network.bandwidth[links]
    what = "GPUs" if len(groups) == len(network.gpus) else "hosts"
    return Bound(
        filled(rates * BYTES, network.alpha[links], nbytes),
        "group",
        None,
        f"the sum must arrive {2 * (len(groups) - 1)} times at {len(groups)} {what}, "
        f"{rates.sum():.4g} GB/s in all",
    )


OUTSIDE = -1
"""The group of a device that is in none."""


def total_bounds(network: Network) -> list[Bound]:
    """Return what arrives at all groups, and what leaves them, for GPUs and for hosts."""
    found = []
    for what, group in families(network):
        devices = network.problem.topology.devices
        outside = [devices[i] for i in np.flatnonzero(group == OUTSIDE)]
        ranks = group[network.gpus]
        src, dst = group[network.ends].T
        between = src != dst
        arriving, leaving = _needs(network, ranks)
        if not any(each.reduces for each in outside):
            links = np.flatnonzero(between & (dst != OUTSIDE))
            found.append(_bound(network, links, arriving, f"arrive at {what}"))
        if not any(each.copies for each in outside):
            links = np.flatnonzero(between & (src != OUTSIDE))
            found.append(_bound(network, links, leaving, f"leave {what}"))
    return [each for each in found if each is not None]


def families(network: Network) -> list[tuple[str, np.ndarray]]:
    """Return the group of each device, (devices,), for GPUs and, where all are in some, hosts."""
    devices = network.problem.topology.devices
    single = np.full(len(devices), OUTSIDE)
    single[network.gpus] = np.arange(len(network.gpus))
    found = [("GPUs", single)]
    hosts = dict.fromkeys(devices[gpu].host for gpu in network.gpus)
    if len(hosts) > 1 and None not in hosts:
        number = {name: i for i, name in enumerate(hosts)}
        found.append(("hosts", np.array([number.get(each.host, OUTSIDE) for each in devices])))
    return found


def _needs(network: Network, ranks: np.ndarray) -> tuple[float, float]:
    """Return the bytes that must arrive at groups and leave them, given the group of each rank."""
    demand = network.demand
    held, wanted = touched(demand.holders, ranks), touched(demand.destinations, ranks)
    givers, takers = held.sum(axis=1), wanted.sum(axis=1)
    both = (held & wanted).sum(axis=1)
    # A group that holds a chunk sends it away unless it alone wants it.
    alone = both * (takers == 1)
    spread = takers - both
    arrivals = np.where(demand.reduced, givers + takers - np.where(both > 0, 2, 1), spread)
    departures = np.where(demand.reduced, givers - alone, spread)
    pairs = _between(network, ranks)
    return pairs + float(demand.sizes @ arrivals), pairs + float(demand.sizes @ departures)


def touched(ends: Mask, ranks: np.ndarray) -> Mask:
    """Return (kinds, groups): whether any of the ends of a kind of chunk is in a group."""
    groups = int(ranks.max()) + 1
    if groups == len(ranks):  # GPUs one by one
        return ends
    member = np.equal.outer(ranks, np.arange(groups)).astype(np.float32)
    return np.asarray(ends.astype(np.float32) @ member > 0)


def _between(network: Network, ranks: np.ndarray) -> float:
    """Return the bytes of pairs whose ends are in two groups."""
    apart = ranks[:, None] != ranks[None, :]
    return float(network.demand.traffic.sum(where=apart))


def _bound(network: Network, links: np.ndarray, nbytes: float, what: str) -> Bound | None:
    if not nbytes or not len(links):
        return None
    rates = network.bandwidth[links]
    return Bound(
        filled(rates * BYTES, network.alpha[links], nbytes),
        "group",
        None,
        f"{nbytes * 1e-6:.4g} MB must {what} in all, {rates.sum():.4g} GB/s",
    )
