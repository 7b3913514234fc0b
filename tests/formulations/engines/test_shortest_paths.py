"""The shortest paths over switches, of which large fabrics have too many to list all."""

from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from formulations.engines.epoch_grid.relay_paths import relay_paths, shortest_relay_paths
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


@pytest.mark.parametrize("radix", [4, 8])
def test_on_a_fat_tree_those_that_lead_equally_far_around_share_no_link(radix):
    """So that sending straight to all, each GPU first to the next, keeps nobody waiting."""
    topology = open_cluster(f"fat-tree:radix={radix}")
    many, place = len(topology.ranks), topology.rank
    shifts: dict[int, Counter[tuple[str, str]]] = defaultdict(Counter)
    for route in shortest_relay_paths(topology, 1):
        shifts[(place[route[-1]] - place[route[0]]) % many].update(pairwise(route))

    assert len(shifts) == many - 1
    assert all(max(taken.values()) == 1 for taken in shifts.values())


@pytest.mark.parametrize("cluster", ["dragonfly", "fat-tree"])
def test_transfers_over_the_shortest_paths_come_by_the_device_that_they_leave(cluster):
    """Searches look for those of a device between the first and the last of them."""
    topology = open_cluster(cluster)
    src = [topology.index[route[0]] for route in shortest_relay_paths(topology, 2)]
    assert src == sorted(src)
