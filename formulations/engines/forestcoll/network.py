"""A problem as a graph with whole capacities, and what trees of relays cannot take.

Trees start at a root and reach every GPU; switches and NICs pass on what one GPU sends another and
copy nothing, even those that could: where a cut decides the rate, copying on the way gains nothing.
A reduction is the same on the reversed cluster (`formulations.engines.forestcoll.plans` turns it
back).
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.steady import exact
from ccl.topology import Device, Topology
from formulations.core.refusals import no_stores, no_sums
from formulations.core.shared_limits import binding

Ints = np.ndarray
"""An array of whole numbers."""

OTHERS = "orbit-trees"
"""The formulation that takes what is refused here."""

_DENOMINATOR = 10**5
_ROUNDING = 1e-12
"""Sums of floats differ by a larger share from what they stand for only if they are very long."""

WHOLE = 2**61
"""Flows stay below this, so that they fit 64 bits."""


@dataclass(frozen=True, eq=False)
class Network:
    """Capacities and demands in whole numbers.

    Parameters
    ----------
    topology
        The cluster; of a reduction, the reversed one.
    src, dst
        Numbers of the devices that each link leaves and enters, shape (links,).
    capacity
        What each link carries, in `unit`, shape (links,).
    unit
        GB/s.
    weight
        What has to go from each device to all GPUs, in `share`, shape (devices,); 0 where nothing.
    share
        Bytes.
    gpus
        Number of the device of each rank, shape (ranks,).
    """

    topology: Topology
    src: Ints
    dst: Ints
    capacity: Ints
    unit: Fraction
    weight: Ints
    share: Fraction
    gpus: Ints

    @cached_property
    def sinks(self) -> Ints:
        """GPUs that wait for something from another root."""
        others = self.weight.sum() - self.weight[self.gpus]
        return np.asarray(self.gpus[others > 0])

    @cached_property
    def arcs(self) -> Arcs:
        """The graph for `formulations.engines.kernels.maxflow`."""
        return arcs_of(len(self.topology.devices), self.src, self.dst, roots=self.gpus)

    @cached_property
    def capacities(self) -> Ints:
        """Capacity of each arc."""
        return self.arcs.of_links(self.capacity)


@dataclass(frozen=True, eq=False)
class Arcs:
    """Arcs in both directions of each pair of linked devices, sorted by tail; the source is last.

    Parameters
    ----------
    first, head, rev
        As `formulations.engines.kernels.maxflow` wants them.
    place
        Arc of each link, shape (links,).
    """

    first: Ints
    head: Ints
    rev: Ints
    place: Ints

    def of_links(self, values: Ints) -> Ints:
        """Spread a value per link over the arcs, 0 where there is no link, shape (arcs,)."""
        spread = np.zeros(len(self.head), dtype=np.int64)
        spread[self.place] = values
        return spread


def arcs_of(devices: int, src: Ints, dst: Ints, *, roots: Ints) -> Arcs:
    """Return the arcs of links between `devices` devices, and of a source before `roots`."""
    count = devices + 1
    source = np.full(len(roots), devices)
    tail, head = np.concatenate([src, source]), np.concatenate([dst, roots])
    keys = np.unique(np.concatenate([tail * count + head, head * count + tail]))
    tails, heads = keys // count, keys % count
    return Arcs(
        first=np.searchsorted(tails, np.arange(count + 1)).astype(np.int64),
        head=heads.astype(np.int64),
        rev=np.searchsorted(keys, heads * count + tails).astype(np.int64),
        place=np.searchsorted(keys, src * count + dst).astype(np.int64),
    )


def refusal(problem: Problem) -> str | None:
    """Say in words why trees of relays cannot take a problem, or None."""
    return (
        no_stores(problem)
        or no_sums(problem)
        or _no_spread(problem)
        or _no_relays(problem)
        or _no_unit(problem)
    )


def cut_decides(problem: Problem) -> bool:
    """Whether the worst cut is the best rate: one network, which is not refused."""
    return not problem.adds_for_several and refusal(problem) is None


def network_of(problem: Problem) -> Network:
    """Return the network of a problem that spreads or adds up; a reduction is turned round.

    Raises
    ------
    ProblemError
        If it is refused, or is an all-reduce: that is two networks.
    """
    why = refusal(problem)
    if why is None and problem.adds_for_several:
        why = "what is added up goes to many; take its two halves"
    if why is not None:
        msg = f"no forest of {problem.collective.kind} on {problem.topology}: {why}"
        raise ProblemError(msg)
    chunks = problem.collective.chunks
    reduces = chunks[0].reduced
    topology = problem.topology.reversed() if reduces else problem.topology
    nbytes: defaultdict[int, Fraction] = defaultdict(Fraction)
    for chunk in chunks:
        nbytes[(chunk.destinations if reduces else chunk.holders)[0]] += exact(chunk.size)
    return _network(topology, nbytes)


def _network(topology: Topology, nbytes: dict[int, Fraction]) -> Network:
    capacity, unit = whole([_bandwidth(each.bandwidth) for each in topology.links])
    demands, share = whole(list(nbytes.values()))
    gpus = np.array([topology.index[name] for name in topology.ranks], dtype=np.int64)
    weight = np.zeros(len(topology.devices), dtype=np.int64)
    weight[gpus[list(nbytes)]] = demands
    ends = np.array([[topology.index[end] for end in each.ends] for each in topology.links])
    return Network(
        topology=topology,
        src=ends[:, 0],
        dst=ends[:, 1],
        capacity=np.array(capacity, dtype=np.int64),
        unit=unit,
        weight=weight,
        share=share,
        gpus=gpus,
    )


def whole(values: list[Fraction]) -> tuple[list[int], Fraction]:
    """Return whole numbers and the unit in which they are `values`."""
    below = math.lcm(*(each.denominator for each in values))
    above = [int(each * below) for each in values]
    common = math.gcd(*above)
    return [each // common for each in above], Fraction(common, below)


def _bandwidth(value: float) -> Fraction:
    """Return the simple fraction that a bandwidth stands for: `exact`, or one as close as rounding.

    0.1 + 0.2 is 3/10, though as a float it is not; what is simple to no one stays as it is.
    """
    near = Fraction(value).limit_denominator(_DENOMINATOR)
    return near if abs(near - Fraction(value)) <= _ROUNDING * near else exact(value)


def _no_spread(problem: Problem) -> str | None:
    """Say which chunk does not go from one root to all others, or back, as all chunks must."""
    everyone = frozenset(range(len(problem.topology.ranks)))
    chunks = problem.collective.chunks
    for number, chunk in enumerate(chunks):
        ends, others = chunk.holders, chunk.destinations
        if chunk.reduced:
            ends, others = others, ends
        whole = len(ends) == 1 and everyone <= {*ends, *others}
        both = chunk.reduced and everyone == set(ends) == set(others)
        if chunk.reduced != chunks[0].reduced or not (whole or both):
            return (
                f"chunk {number} does not go from one GPU to all others, or from all to one or "
                f"all; {OTHERS} takes others"
            )
        if both != (len(chunks[0].destinations) > 1 and chunks[0].reduced):
            return f"chunk {number} goes to other ranks than those before; {OTHERS} takes it"
    return None


def _no_relays(problem: Problem) -> str | None:
    """Say which device is more than a relay, or takes in other than what it gives out."""
    topology = problem.topology
    for device in topology.devices:
        if device.kind == "gpu":
            continue
        if device.stores and (topology.links_in[device.name] or topology.links_out[device.name]):
            return (
                f"{device.name} stores and copies without wanting anything, so trees may or may "
                f"not reach it; here they reach GPUs alone. {OTHERS} takes it"
            )
        why = _unbalanced(topology, device)
        if why is not None:
            return why
    for limit in binding(topology):
        return (
            f"{limit.name} allows {limit.bandwidth:g} GB/s for links that have more together, and "
            f"here every link has its own; {OTHERS} takes it"
        )
    return None


def _unbalanced(topology: Topology, device: Device) -> str | None:
    into, out = (
        sum((_bandwidth(link.bandwidth) for link in links[device.name]), Fraction(0))
        for links in (topology.links_in, topology.links_out)
    )
    if into == out:
        return None
    return (
        f"{device.name} takes in {float(into):g} GB/s and gives out {float(out):g} GB/s, and the "
        f"cut is the rate only where a switch gives out what it takes in; {OTHERS} takes it"
    )


def _no_unit(problem: Problem) -> str | None:
    """Say that bandwidths or sizes have no common unit that is not tiny."""
    _, unit = whole([_bandwidth(each.bandwidth) for each in problem.topology.links])
    sizes, _ = whole([exact(each.size) for each in problem.collective.chunks])
    capacity = sum(Fraction(each.bandwidth) for each in problem.topology.links) / unit
    if capacity * sum(sizes) < WHOLE:
        return None
    return (
        f"its bandwidths are multiples of {float(unit):.3g} GB/s and of nothing more, too fine for "
        f"whole numbers; round them, or take {OTHERS}"
    )
