"""The shortest paths over switches, of which large fabrics have too many to list all."""

from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from formulations.engines.epoch_grid.arcs import relay_paths, shortest_relay_paths
from gallery import open_cluster

CLUSTERS = ("fat-tree", "dgx-h100:hosts=2", "mi250", "ndv2:hosts=2", "random:seed=1")


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_they_are_the_shortest_of_all_and_as_many_as_there_may_be(cluster):
    topology = open_cluster(cluster)
    every = defaultdict(list)
    for route in relay_paths(topology):
        every[route[0], route[-1]].append(route)
    found = defaultdict(list)
    for route in shortest_relay_paths(topology, 3):
        found[route[0], route[-1]].append(route)

    assert found.keys() == every.keys()
    for pair, routes in found.items():
        short = [each for each in every[pair] if len(each) == min(map(len, every[pair]))]
        assert len(set(routes)) == len(routes) == min(3, len(short))
        assert set(routes) <= set(short)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_on_reversed_links_they_are_the_same_reversed(cluster):
    """As sums are planned backwards in time on reversed links."""
    topology = open_cluster(cluster)
    back = {route[::-1] for route in shortest_relay_paths(topology.reversed(), 2)}

    assert back == set(shortest_relay_paths(topology, 2))


def test_parallel_ones_are_shared_by_pairs():
    """A fat-tree of 128 GPUs: each link between switches has nearly as many paths as any other."""
    topology = open_cluster("fat-tree:radix=8")
    stores = {each.name for each in topology.devices if each.stores}
    taken = Counter(pair for route in shortest_relay_paths(topology, 1) for pair in pairwise(route))
    between = [many for pair, many in taken.items() if not stores & {*pair}]

    assert max(between) < 1.2 * min(between)
