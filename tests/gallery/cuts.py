"""The all-gather rate of small clusters by maximal flows, written apart from what is tested."""

from fractions import Fraction
from math import lcm

import igraph


def rate(topology):
    """Return R in s/GB, each GPU giving 1 GB: the largest share of GPUs over what leaves them.

    ForestColl's theorem 1: with as much bandwidth into each device as out of it, an all-gather
    takes the maximum over sets S that miss a GPU of (GPUs in S) / (bandwidth out of S). From below:
    a set that a flow into some GPU shows to be worse raises the guess to its own value.
    """
    links = [(each.src, each.dst, Fraction(each.bandwidth)) for each in topology.links]
    best = max(
        Fraction(len(topology.ranks) - 1)
        / sum(bandwidth for _src, dst, bandwidth in links if dst == gpu)
        for gpu in topology.ranks
    )
    for sink in topology.ranks:
        while (worse := _worse(topology, links, sink, best)) is not None:
            assert worse > best
            best = worse
    return best


def _worse(topology, links, sink, guess):
    """Return the value of a set without `sink` that is above the guess, or None.

    Each GPU but the sink puts 1 GB a period of `guess` seconds in. All of it reaches the sink
    unless some set has more GPUs than its links carry away in that period.
    """
    index = topology.index
    root = len(index)
    others = [gpu for gpu in topology.ranks if gpu != sink]
    scale = lcm(guess.denominator, *((bandwidth * guess).denominator for *_, bandwidth in links))
    edges = [(index[src], index[dst]) for src, dst, _bandwidth in links]
    carried = [int(bandwidth * guess * scale) for _src, _dst, bandwidth in links]
    edges += [(root, index[gpu]) for gpu in others]
    carried += [scale] * len(others)
    graph = igraph.Graph(root + 1, edges, directed=True)
    cut = graph.mincut(root, index[sink], capacity=carried)
    if cut.value >= scale * len(others):
        return None
    inside = set(cut.partition[0]) - {root}
    leaving = sum(
        bandwidth
        for src, dst, bandwidth in links
        if index[src] in inside and index[dst] not in inside
    )
    return Fraction(sum(index[gpu] in inside for gpu in topology.ranks)) / leaving
