"""Mean-latency bounds: while bytes are under way, the links at which they arrive wait for them.

Let G1 ... Gk be disjoint sets of devices with all GPUs among them, the GPUs one by one or hosts,
and let no device outside them copy or add. So each byte that arrives at a group left one over a
link of its own use: at t the one, at t' >= t + l the other, where l is the least latency from group
to group. Links out of groups carry C bytes/µs together, links into them C', and K = (C + C') / 2.

Let the price of leaving at t be max(0, z - t), and that of arriving at t' be max(0, t' - (T - z)),
with z = (T + p) / 2 and p >= 0. An arrival costs at least z - t + t' - T + z >= p + l. All that
links can carry in a plan of makespan T costs at most (C + C') z^2 / 2 = K z^2, so with N arrivals
of bytes that have to be, and M the sum of their latencies,

    N p + M  <=  K (T + p)^2 / 4,    hence    T >= 2 sqrt((N p + M) / K) - p,

for p = N / K - M / N, where that is not negative,

    T >= N / K + M / N:  the time that links are busy and the mean latency of what they carry.

What has to be:

* a chunk that one group holds and all others want arrives at each, and who sends is joined to who
  receives, so that latencies add up to a spanning tree of the groups at least; likewise, read
  backwards in time, what all hold and one wants added up;
* what all hold and all want added up arrives twice as often, and costs at least twice the minimum
  spanning tree (`formulations.bounds.prices`), whatever is paid for one arrival;
* of a chunk with one holder and one destination in another group N counts one arrival, and M the
  least latency between the two: a path over more groups pays p more often.

All else is left out, and so may be any of these: those with the longest latencies may prove more by
themselves. A cut counts the latency of its nearest ends only; here, where the links of all
GPUs are equally busy and others are far, the mean counts: on fat-trees and dragonflies.
"""

from __future__ import annotations

import numpy as np

from ccl.bound import Bound
from ccl.symmetry.graphs import igraph
from formulations.bounds.cuts import BYTES, OUTSIDE, Network, families, touched
from formulations.bounds.demand import Floats, Mask

MOST = 600
"""Groups; the latencies between all of more take long."""

_MARGIN = 1e-10
"""Share by which a bound is lowered, for the rounding of sums."""


def mean_latency_bounds(network: Network) -> list[Bound]:
    """Return what the mean latency between GPUs proves, and that between hosts."""
    if not network.alpha.any():
        return []
    found = [_bound(network, what, group) for what, group in families(network)]
    return [each for each in found if each is not None]


def _bound(network: Network, what: str, group: np.ndarray) -> Bound | None:
    devices = network.problem.topology.devices
    outside = [devices[i] for i in np.flatnonzero(group == OUTSIDE)]
    ranks = group[network.gpus]
    src, dst = group[network.ends].T
    between = src != dst
    if int(ranks.max()) >= MOST or any(each.copies or each.reduces for each in outside):
        return None
    latencies = _latencies(network, group, inner=(src == dst) & (src != OUTSIDE))
    weights, arrivals = _arrivals(network, ranks, latencies)
    out, into = (float(network.bandwidth[between & (each != OUTSIDE)].sum()) for each in (src, dst))
    rate = (out + into) / 2 * BYTES
    if not len(weights) or rate <= 0:
        return None
    farthest = np.argsort(-arrivals)
    nbytes = np.cumsum(weights[farthest])
    summed = np.cumsum((weights * arrivals)[farthest])
    waits = np.maximum(nbytes / rate - summed / nbytes, 0.0)
    proved = 2 * np.sqrt((nbytes * waits + summed) / rate) - waits
    most = int(proved.argmax())
    words = (
        f"{nbytes[most] * 1e-6:.4g} MB must arrive at {what} in all, {rate / BYTES:.4g} GB/s, "
        f"{summed[most] / nbytes[most]:.4g} µs after they leave in the mean"
    )
    return Bound(float(proved[most]) * (1 - _MARGIN), "group", None, words)


def _latencies(network: Network, group: np.ndarray, *, inner: Mask) -> Floats:
    """Return the least µs from group to group, (groups, groups); within groups nothing counts.

    From any device of a group: bytes may go through one that its GPUs do not reach.
    """
    counted = np.where(inner, 0.0, network.alpha)
    devices = np.flatnonzero(group != OUTSIDE)
    ends, groups = devices.tolist(), group[devices]
    found = np.asarray(network.graph.distances(ends, ends, weights=counted.tolist()), dtype=float)
    many = int(groups.max()) + 1
    least = np.full((many, many), np.inf)
    np.minimum.at(least, (groups[:, None], groups[None, :]), found)
    return least


def _arrivals(network: Network, ranks: np.ndarray, latencies: Floats) -> tuple[Floats, Floats]:
    """Return bytes that must arrive at a group, and the µs that they take from another."""
    demand, many = network.demand, len(latencies)
    held, wanted = touched(demand.holders, ranks), touched(demand.destinations, ranks)
    givers, takers = held.sum(axis=1), wanted.sum(axis=1)
    joined = (held | wanted).all(axis=1)
    spread = joined & ~demand.reduced & (givers == 1) & (takers >= many - 1)
    added = joined & demand.reduced & (takers == 1) & (givers >= many - 1)
    both = demand.reduced & (givers == many) & (takers == many)
    nbytes = float(demand.sizes @ (spread.astype(float) + added + 2 * both))
    tree = _spanning_tree(latencies) if nbytes else np.empty(0)
    between = (demand.traffic > 0) & (ranks[:, None] != ranks[None, :])
    pairs = np.broadcast_to(latencies[np.ix_(ranks, ranks)], between.shape)[between]
    weights = np.concatenate([np.full(len(tree), nbytes), demand.traffic[between]])
    return weights, np.concatenate([tree, pairs])


def _spanning_tree(latencies: Floats) -> Floats:
    """Return the µs of each edge of the minimum spanning tree, the cheaper way of each."""
    pairs = np.triu_indices(len(latencies), 1)
    cheapest = np.minimum(latencies, latencies.T)[pairs]
    graph = igraph.Graph(n=len(latencies), edges=np.column_stack(pairs).tolist())
    return np.asarray(cheapest[graph.spanning_tree(cheapest.tolist(), return_tree=False)])
