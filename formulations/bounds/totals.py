"""Bounds on the total that all GPUs, or all hosts, must send or receive.

Let G1 ... Gk be disjoint sets of devices with all GPUs among them: the GPUs one by one, or hosts.
Look at one byte of a chunk.

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

import numpy as np

from ccl.bound import Bound
from formulations.bounds.cuts import BYTES, Network, filled
from formulations.bounds.demand import Mask

OUTSIDE = -1
"""The group of a device that is in none."""


def total_bounds(network: Network) -> list[Bound]:
    """Return what arrives at all groups, and what leaves them, for GPUs and for hosts."""
    found = []
    for what, group in _families(network):
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


def _families(network: Network) -> list[tuple[str, np.ndarray]]:
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
    held, wanted = _touched(demand.holders, ranks), _touched(demand.destinations, ranks)
    givers, takers = held.sum(axis=1), wanted.sum(axis=1)
    both = (held & wanted).sum(axis=1)
    # A group that holds a chunk sends it away unless it alone wants it.
    alone = both * (takers == 1)
    spread = takers - both
    arrivals = np.where(demand.reduced, givers + takers - np.where(both > 0, 2, 1), spread)
    departures = np.where(demand.reduced, givers - alone, spread)
    pairs = _between(network, ranks)
    return pairs + float(demand.sizes @ arrivals), pairs + float(demand.sizes @ departures)


def _touched(ends: Mask, ranks: np.ndarray) -> Mask:
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
