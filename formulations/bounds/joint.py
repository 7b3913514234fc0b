"""Bounds from what several sets of devices must take in together.

Shared limits. Take the links of a limit away and let C1, C2, ... be the parts into which the
cluster falls. Whatever enters or leaves a part does so over links of the limit, and a byte on one
link enters one part and leaves one. So the limit carries, together, at least the sum over parts
of what must enter each, and, where none of its links leads from one part that must send to
another that must receive, also what must leave each. This counts the reads and the writes of a
host memory.

All-reduce over groups. Let G1 ... Gk be disjoint sets of devices with all GPUs among them, and
let no device outside them add. Look at one byte of the reduced data. Each arrival at a group
brings what one group knew when it sent, copied perhaps on the way. Until some group knows every
contribution at least k - 1 arrivals have happened, since fewer do not connect k groups; each of
the k - 1 others then needs one more, later, arrival. So 2 (k - 1) times the size arrives over all
links into groups together. Singles give the bound of Patarasuk and Yuan (JPDC 2009) on a
uniform cluster; hosts give that of the network between them.

Neither has a single cut as its witness, so none is given; the reference says the numbers.
"""

from __future__ import annotations

import igraph
import numpy as np

from ccl.bound import Bound
from ccl.topology import SharedLimit
from formulations.bounds.cuts import BYTES, Network, filled
from formulations.bounds.demand import Mask


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
    devices = network.problem.topology.devices
    numbers = np.arange(len(devices))
    found = [[numbers == gpu for gpu in network.gpus]]
    hosts = [each.host for each in devices]
    if len({hosts[gpu] for gpu in network.gpus}) > 1 and None not in (
        hosts[gpu] for gpu in network.gpus
    ):
        names = {hosts[gpu]: None for gpu in network.gpus}
        found.append([np.array([each == name for each in hosts]) for name in names])
    return found


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
