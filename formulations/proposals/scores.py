"""What a network can do, exactly: rates of collectives, distances, and what ports allow at most.

All-to-all, by what is declared of the symmetry and checked: `Uniform` names the traffic without
its pairs, and the orbit linear program has one GPU of each orbit as a source, so that a thousand
GPUs of one orbit are a program of hundreds of amounts (`formulations.engines.orbit_lp`). Without
symmetry: a flow that was made good, and a bound proved by prices in whole numbers
(`formulations.engines.fluid_lp.certified`). All-gather is the best steady state of
`formulations.analyses.best_rate`. An all-reduce counts as a reduce-scatter followed by an
all-gather.

Bounds for any network of n GPUs with p ports of b GB/s each, in hosts of h GPUs or alone (h = 1), S
bytes the whole buffer:

    all-to-all    S (n - h) / (n p b)            what a host sends to others leaves by its ports
    all-to-all    S (n - 1) mean / (n p b)       GPUs alone and no switch: each byte takes as many
                                                 links as its destination is far (Moore)
    all-gather    S (n - h) / (n h p b)          every host takes in the shards of all others once
    all-reduce    2 S (n - h) / (n h p b)        hosts add up, and all of them get the sum; switches
                                                 do not add

Sources: the orbit program: averaging over a group (`formulations.engines.orbit_lp.program`);
all-reduce: Patarasuk, Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations,
JPDC 2009.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from ccl.bound import moore_mean
from ccl.collective import all_gather, all_to_all, reduce_scatter
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.symmetry import Group, automorphisms
from ccl.topology import Link, Topology
from formulations.analyses.best_rate import optimum
from formulations.engines.fluid_lp.certified import certified_flows, too_large
from formulations.engines.orbit_lp.group import Uniform
from formulations.engines.orbit_lp.lp import solve_orbits
from formulations.proposals.request import Kind, Mix, Request, Use

AMOUNTS = 60_000
"""Links times sources above which an orbit program of many sources is not made."""

FEW = 4
"""Sources of which an orbit program is small all the same, as those links are few orbits."""

NEAR, NEAR_LARGE, LARGE = 1e-3, 5e-3, 100
"""Share by which a flow without symmetry may be above its bound: of fewer GPUs, and of more."""

SHARD = 1e6
"""Bytes of a shard in what is solved; rates do not depend on it."""

INSIDE = ("NVLink", "PCIe")
"""Media of links inside a host, which are no cables."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How fast a collective runs, in the steady state.

    Parameters
    ----------
    algbw
        GB/s, the whole buffer over the time; a plan reaches it.
    most
        GB/s that no plan on this network is above.
    """

    algbw: float
    most: float

    def time(self, size: float) -> float:
        """Return the µs of so many bytes."""
        return size / self.algbw * 1e-3

    @property
    def gap(self) -> float:
        """By how much it may be below the best, as a share."""
        return self.most / self.algbw - 1


@dataclass(frozen=True, kw_only=True)
class Score:
    """What a network can do.

    Parameters
    ----------
    rates
        Of the kinds of collectives that were requested.
    alpha
        µs of the latencies between the two GPUs that are farthest apart.
    beta
        µs for each byte over the slowest link.
    hops
        Cables between two GPUs, on average.
    diameter
        Cables between the two GPUs that have most between them.
    cables
        Network links, both directions as one and parallel ones singly.
    switches
        How many, those inside hosts left out.
    """

    rates: Mapping[Kind, Rate]
    alpha: float
    beta: float
    hops: float
    diameter: int
    cables: int
    switches: int

    def time(self, use: Use) -> float:
        """Return the µs of one of a use."""
        if use.collective == "latency":
            return self.alpha + use.size * self.beta
        return self.rates[use.collective].time(use.size)

    def mixed(self, mix: Mix) -> float:
        """Return the µs of a mix."""
        return sum(each.times * self.time(each) for each in mix.uses)


def score(topology: Topology, kinds: tuple[Kind, ...], *, seconds: float) -> Score:
    """Return what a network can do.

    Parameters
    ----------
    topology
        The network.
    kinds
        Collectives whose rates are wanted.
    seconds
        For a flow without symmetry, which need not be as near as usual then.

    Raises
    ------
    ProblemError
        If it is too large to be exact.
    """
    group = automorphisms(topology, method="declared", steady=True)
    rates: dict[Kind, Rate] = {}
    if "all-to-all" in kinds:
        rates["all-to-all"] = all_to_all_rate(topology, group, seconds=seconds)
    if {"all-gather", "all-reduce"} & {*kinds}:
        gathered = _best(Problem(topology, all_gather(len(topology.ranks), _whole(topology))))
        rates["all-gather"] = Rate(gathered, gathered)
        if "all-reduce" in kinds:
            rates["all-reduce"] = _all_reduce(topology, gathered)
    return _scored(topology, group, {kind: rates[kind] for kind in kinds})


def all_to_all_rate(topology: Topology, group: Group | None = None, *, seconds: float) -> Rate:
    """Return the rate of an all-to-all, without a list of its pairs where there is symmetry.

    Parameters
    ----------
    topology
        The network.
    group
        Automorphisms that have been checked; by default those that are declared and true.
    seconds
        For a flow without symmetry.

    Raises
    ------
    ProblemError
        If it is too large to be exact.
    """
    if group is None:
        group = automorphisms(topology, method="declared", steady=True)
    size, sources = _whole(topology), len(_representatives(topology, group))
    if sources <= FEW or sources * len(topology.links) <= AMOUNTS:
        found = solve_orbits(Uniform(topology, "all-to-all", size), group=group)
        algbw = size / found.makespan * 1e-3
        return Rate(algbw, algbw)
    problem = Problem(topology, all_to_all(len(topology.ranks), size))
    if (words := too_large(problem)) is not None:
        raise ProblemError(f"no exact all-to-all of {topology}: {words}")
    near = NEAR if len(topology.ranks) <= LARGE else NEAR_LARGE
    *_, flow = certified_flows(problem, seconds=seconds, near=near)
    return Rate(size / flow.makespan * 1e-3, size / float(flow.bound) * 1e-3)


def _whole(topology: Topology) -> float:
    return SHARD * len(topology.ranks)


def _best(problem: Problem) -> float:
    """Return the GB/s of the best steady state."""
    found = optimum(problem)
    if not found.reached:
        kind, topology = problem.collective.kind, problem.topology
        raise ProblemError(f"no exact {kind} of {topology}: its links are not balanced")
    return found.algbw


def _all_reduce(topology: Topology, gathered: float) -> Rate:
    """Return the rate of adding up and spreading one after the other."""
    there = {(*each.ends, each.bandwidth) for each in topology.links}
    scattered = gathered
    if any((each.dst, each.src, each.bandwidth) not in there for each in topology.links):
        scattered = _best(Problem(topology, reduce_scatter(len(topology.ranks), _whole(topology))))
    return Rate(1 / (1 / gathered + 1 / scattered), min(gathered, scattered))


def _representatives(topology: Topology, group: Group) -> np.ndarray:
    """Return the device of one GPU of each orbit."""
    gpus = np.array([topology.index[name] for name in topology.ranks])
    return gpus[np.unique(group.orbits()[gpus], return_index=True)[1]]


def cabled(link: Link) -> bool:
    """Return whether a link is a cable, rather than one inside a host."""
    return not link.medium.startswith(INSIDE)


def _scored(topology: Topology, group: Group, rates: Mapping[Kind, Rate]) -> Score:
    """Return a score, with distances, cables and switches."""
    gpus = np.array([topology.index[name] for name in topology.ranks])
    first, orbits = _representatives(topology, group), group.orbits()
    weights = np.array([(orbits[gpus] == orbits[each]).sum() for each in first], dtype=float)
    many, ends = len(topology.devices), topology.ends

    def far(costs: np.ndarray) -> np.ndarray:
        graph = sparse.csr_array((costs, (ends[0], ends[1])), shape=(many, many))
        return np.asarray(csgraph.dijkstra(graph, indices=first)[:, gpus])

    # A cost of 0 would be no link to scipy.
    hops = far(np.array([float(cabled(each)) for each in topology.links]) + 1e-12)
    latencies = far(np.array([each.alpha for each in topology.links]) + 1e-12)
    cables = [each for each in topology.links if cabled(each)]
    twins = {each.ends for each in cables}
    return Score(
        rates=rates,
        alpha=round(float(latencies.max()), 9),
        beta=max(each.beta * each.count for each in cables),
        hops=float(weights @ hops.sum(axis=1)) / (len(gpus) * (len(gpus) - 1)),
        diameter=round(float(hops.max())),
        cables=sum(each.count * (1 if each.ends[::-1] in twins else 2) for each in cables) // 2,
        switches=sum(
            any(cabled(link) for link in topology.links_out[each.name])
            for each in topology.devices
            if each.kind == "switch"
        ),
    )


def ports_bound(request: Request, use: Use, *, per_host: int = 1) -> float:
    """Return µs that a use takes on any network with such ports.

    Parameters
    ----------
    request
        GPUs, ports, and whether there are switches.
    use
        A collective with its size, or a message, which takes at least one link.
    per_host
        GPUs of each host.
    """
    gpus, into = request.gpus, request.ports * request.bandwidth * 1e3
    if use.collective == "latency":
        return request.alpha + use.size / (request.bandwidth * 1e3)
    if use.collective == "all-to-all":
        far = 1.0
        if not request.radix and per_host == 1:
            # Where there is a full mesh nobody is farther than one link.
            degree = min(request.ports, gpus - 1)
            far = moore_mean(gpus, degree, duplex=not request.one_way)
        return use.size * (gpus - per_host) / gpus * far / into
    once = use.size * (gpus - per_host) / gpus / (into * per_host)
    return once * (2 if use.collective == "all-reduce" else 1)
