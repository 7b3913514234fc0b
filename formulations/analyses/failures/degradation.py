"""Degraded clusters: what is left of a cluster and its collective, and links that lag.

`without_link`, `without_devices` and `without_host` take away what fails, `degrade_problem` adapts
the collective. `add_stragglers` lets links lag, by scaling their latency and their time per byte.
"""

import math
from collections.abc import Iterable
from dataclasses import replace

from ccl.collective import Chunk, Collective, custom, find_arguments, make_collective
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.topology import Link, Topology

ROOTED = ("broadcast", "reduce", "gather", "scatter")
"""Collectives that one rank begins or ends."""


def without_link(topology: Topology, src: str, dst: str, *, both: bool = True) -> Topology:
    """Return the cluster without one physical link.

    Parameters
    ----------
    topology
        The cluster as it is.
    src, dst
        Ends of the link. One that stands for several parallel links loses one of them, with its
        share of the bandwidth. Shared limits keep their bandwidth.
    both
        Whether the opposite direction fails too, as when a cable does.

    Raises
    ------
    ProblemError
        If there is no such link.
    """
    lost = {topology.link(src, dst).ends, *([(dst, src)] if both else [])}
    links = [_fewer(each) if each.ends in lost else each for each in topology.links]
    return _kept(topology, {each.name for each in topology.devices}, filter(None, links))


def without_devices(topology: Topology, names: Iterable[str]) -> Topology:
    """Return the cluster without some devices and all their links.

    Raises
    ------
    ProblemError
        If there is no such device.
    """
    lost = {topology.device(each).name for each in names}
    kept = {each.name for each in topology.devices} - lost
    links = (each for each in topology.links if each.src in kept and each.dst in kept)
    return _kept(topology, kept, links)


def without_host(topology: Topology, host: str) -> Topology:
    """Return the cluster without a host and all that it holds.

    Raises
    ------
    ProblemError
        If there is no such host.
    """
    if host not in topology.hosts:
        raise ProblemError(f"{topology} has no host called {host}")
    return without_devices(topology, [e.name for e in topology.devices if e.host == host])


def restrict_collective(collective: Collective, ranks: Iterable[int]) -> Collective:
    """Return the same collective over the ranks that are left, numbered from 0 on in order.

    The size stays, as nccl-tests defines it: fewer ranks have larger shards of the same buffer. Of
    a custom demand every chunk stays as large as it is; what only lost ranks hold or want goes.

    Parameters
    ----------
    collective
        As it was.
    ranks
        Those that are left, by their numbers so far.

    Raises
    ------
    ProblemError
        If its root is lost, or nothing is left to send.
    """
    place = {rank: i for i, rank in enumerate(sorted(set(ranks)))}
    made = find_arguments(collective)
    if made is None:
        left = custom(len(place), filter(None, (_left(e, place) for e in collective.chunks)))
        return replace(left, whole=collective.whole)
    count, root = made
    if collective.kind in ROOTED and root not in place:
        raise ProblemError(
            f"rank {root} is the root of the {collective.kind}, which nothing replaces"
        )
    left = make_collective(collective.kind, len(place), collective.size, root=place.get(root, 0))
    return replace(left.cut(count), whole=collective.whole)


def degrade_problem(problem: Problem, topology: Topology) -> Problem:
    """Return a problem on a cluster from which something is lost.

    Parameters
    ----------
    problem
        As it was.
    topology
        What is left of its cluster. If all GPUs are, the collective stays as it is.

    Raises
    ------
    ProblemError
        If `restrict_collective` has nothing left, or a rank cannot be reached any more.
    """
    before = problem.topology.rank
    collective = problem.collective
    if len(topology.ranks) < len(before):
        collective = restrict_collective(collective, [before[name] for name in topology.ranks])
    windows = [
        replace(each, links=links)
        for each in problem.windows
        if (links := tuple(ends for ends in each.links if ends in topology.link_index))
    ]
    return Problem(topology, collective, tuple(windows))


def _fewer(link: Link) -> Link | None:
    """Return a link less one of those that it stands for."""
    left = link.count - 1
    return replace(link, bandwidth=link.bandwidth * left / link.count, count=left) if left else None


def _kept(topology: Topology, devices: set[str], links: Iterable[Link]) -> Topology:
    """Return a part of a cluster; limits keep what is left of their links."""
    chosen = tuple(links)
    ends = {each.ends for each in chosen}
    limits = tuple(
        replace(each, links=under)
        for each in topology.limits
        if (under := tuple(pair for pair in each.links if pair in ends))
    )
    return replace(
        topology,
        devices=tuple(each for each in topology.devices if each.name in devices),
        links=chosen,
        limits=limits,
    )


def _left(chunk: Chunk, place: dict[int, int]) -> Chunk | None:
    """Return a chunk over the ranks that are left, or None where nobody holds or wants it."""
    holders = tuple(place[each] for each in chunk.holders if each in place)
    destinations = tuple(place[each] for each in chunk.destinations if each in place)
    return (
        replace(chunk, holders=holders, destinations=destinations)
        if holders and (destinations)
        else None
    )


def add_stragglers(
    topology: Topology,
    where: Iterable[str | tuple[str, str]],
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
) -> Topology:
    """Return the same cluster with stragglers, as in TE-CCL (SIGCOMM 2024), section 5.

    Parameters
    ----------
    topology
        The cluster as it should be.
    where
        Names of devices, all of whose links straggle, or ends ``(src, dst)`` of links; a link
        named twice straggles once.
    alpha
        Factor of the latency of these links: lags that do not grow with what is sent.
    beta
        Factor of their time per byte: lags that do. Shared limits stay as they are.

    Raises
    ------
    ProblemError
        If a device or link is not there or a factor is not positive.
    """
    for what, factor in (("alpha", alpha), ("beta", beta)):
        if not (factor > 0 and math.isfinite(factor)):
            raise ProblemError(
                f"stragglers of {topology.name} have {what} times {factor}; give a positive one"
            )
    slow: set[tuple[str, str]] = set()
    for each in where:
        if isinstance(each, str):
            name = topology.device(each).name
            slow |= {link.ends for link in topology.links_out[name] + topology.links_in[name]}
        else:
            slow.add(topology.link(*each).ends)
    links = tuple(
        replace(link, bandwidth=link.bandwidth / beta, alpha=link.alpha * alpha)
        if link.ends in slow
        else link
        for link in topology.links
    )
    return replace(topology, links=links)
