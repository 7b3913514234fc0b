"""The root of an all-reduce: the rank that reaches all and is reached at the best rates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import shortest_path

from formulations.engines.forestcoll.network import Network
from formulations.engines.forestcoll.search import rate_of


@dataclass(frozen=True)
class Root:
    """A root and the rates of its trees.

    Parameters
    ----------
    rank
        Which.
    out, into
        GB/s at which all that it has goes to all, and all comes to it, each alone on the links.
    """

    rank: int
    out: Fraction
    into: Fraction


def of_root(network: Network, rank: int) -> Network:
    """Return the network in which this rank alone has all the data."""
    weight = np.zeros_like(network.weight)
    weight[network.gpus[rank]] = 1
    return replace(network, weight=weight, share=network.share * int(network.weight.sum()))


def turned_round(network: Network) -> Network:
    """Return the network with every link the other way."""
    return replace(network, src=network.dst, dst=network.src)


def same_both_ways(network: Network) -> np.ndarray | None:
    """Return the number of the link back of each, None where one lacks or has another bandwidth."""
    many = len(network.weight)
    keys, back = network.src * many + network.dst, network.dst * many + network.src
    order = np.argsort(keys)
    place = order[np.minimum(np.searchsorted(keys[order], back), len(keys) - 1)]
    same = (keys[place] == back) & (network.capacity[place] == network.capacity)
    return place if same.all() else None


def best_root(network: Network, rank: int | None) -> Root:
    """Return the root asked for, or the one whose two halves take least alone on the links.

    Where every link is the same both ways all roots are as good; of equal ones the one from which
    the farthest GPU is fewest links away is taken.
    """
    if rank is not None:
        return _root(network, rank)
    far = _far(network)
    if same_both_ways(network) is not None:
        return _root(network, int(np.argmin(far)))
    roots = [_root(network, each) for each in range(len(network.gpus))]
    return min(roots, key=lambda each: (1 / each.out + 1 / each.into, far[each.rank]))


def _root(network: Network, rank: int) -> Root:
    out, into = (
        rate_of(each, sinks=each.sinks, reduces=False).speed
        for each in (of_root(network, rank), of_root(turned_round(network), rank))
    )
    return Root(rank, out, into)


def _far(network: Network) -> np.ndarray:
    """Return how many links each rank is from the farthest one, shape (ranks,)."""
    many = len(network.weight)
    links = sparse.csr_array(
        (np.ones(len(network.src)), (network.src, network.dst)), shape=(many, many)
    )
    hops = np.asarray(shortest_path(links, unweighted=True, indices=network.gpus))
    return np.asarray(hops[:, network.gpus].max(axis=1))
