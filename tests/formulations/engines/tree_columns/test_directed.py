"""Trees with a root: fixed partners across switches, and trees of chance.

Which pairs of GPUs switches join, and plans that cross them nowhere else; over which links that
look alike trees of chance scatter.
"""

import numpy as np
import pytest

from ccl.collective import make_collective
from ccl.problem import Problem
from ccl.topology import Link, Topology, device
from formulations import solve
from formulations.engines.list_scheduling.timed import transfers_of
from formulations.engines.tree_columns.directed import paired, partners, scattered
from formulations.engines.tree_columns.search import Search
from formulations.engines.tree_columns.task import task_of
from formulations.solvers.cvxpy_highs import Backend
from gallery import open_cluster
from tests.ccl.clusters import gpus


def asked(topology: Topology, kind: str = "all-gather", size: float = 1e6) -> Problem:
    return Problem(topology, make_collective(kind, len(topology.ranks), size))


def two_rings(*, across: float = 10.0) -> Topology:
    """Two hosts of four GPUs, each a ring, and a network with all GPUs."""
    names = [f"g{rank}" for rank in range(8)]
    rings = [(names[a + i], names[a + (i + 1) % 4]) for a in (0, 4) for i in range(4)]
    links = [Link(*ends, 100.0, 0.7) for one, two in rings for ends in ((one, two), (two, one))]
    both = [ends for name in names for ends in ((name, "net"), ("net", name))]
    links += [Link(*ends, across, 1.3) for ends in both]
    return Topology("two rings", (*gpus(8), device("switch", "net")), tuple(links))


def test_every_gpu_has_a_partner_in_each_other_host():
    for cluster, hosts in (("mi250:hosts=2", 2), ("mi250:hosts=4", 4)):
        pairs = partners(task_of(asked(open_cluster(cluster))))
        assert np.array_equal(pairs, pairs.T)
        of_host = pairs.reshape(16 * hosts, hosts, 16).sum(axis=2)
        own = np.repeat(np.eye(hosts, dtype=int), 16, axis=0)
        assert np.array_equal(of_host, 1 - own)


@pytest.mark.parametrize(
    "cluster",
    [
        "star:gpus=8",  # every GPU is an island
        "dgx-1v",  # all are of one
        "ndv2:hosts=4",  # not every GPU is at the network
        "random:seed=1",  # nothing is alike
        "dgx-h100:hosts=2,copies=true",  # switches that copy are inside of trees
    ],
)
def test_where_there_are_none(cluster):
    assert partners(task_of(asked(open_cluster(cluster)))) is None


def test_transfers_cross_switches_between_partners_alone():
    topology = two_rings()
    pairs = partners(task_of(asked(topology)))
    every = transfers_of(topology)
    kept = {route for route in paired(every, pairs).routes if len(route) == 3}
    assert len(kept) == pairs.sum() == 8
    assert {route for route in every.routes if len(route) == 2} <= {*paired(every, pairs).routes}
    assert paired(every, None) is every


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "all-reduce"])
def test_plans_keep_to_partners(kind):
    """Inside 4 us of data, between hosts 3.1 with 2.6 of latency: the network decides the order."""
    topology = two_rings(across=20.0)
    result = solve(asked(topology, kind, 0.5e6), "pieces", time_limit=2)
    over = {frozenset((send.src, send.dst)) for send in result.plan.sends if send.via}
    assert len(over) == 4
    assert {name for pair in over for name in pair} == {*topology.ranks}


def test_hosts_with_too_little_bandwidth_use_the_network_inside_too():
    """At 400 GB/s the network has more than rings of 100, and partners alone would waste it."""
    result = solve(asked(two_rings(across=400.0), size=16e6), "pieces", time_limit=10)
    assert len({(send.src, send.dst) for send in result.plan.sends if send.via}) > 8


def test_trees_of_chance_scatter_over_links_that_look_alike():
    """On a fat-tree of sixteen GPUs the cheapest trees of one cross few of the links of the cores.

    A pool that was copied before keeps what it had.
    """
    topology = open_cluster("fat-tree")
    alpha = np.array([each.alpha for each in topology.links])
    search = Search(task_of(asked(topology)), Backend())
    search.run()
    before = search.pool.copy()

    scattered(search, np.ones(len(search.task.rows.rates)), alpha, many=100)

    pools = before, search.pool
    few, many = ({*np.concatenate([each.links for each in pool.columns])} for pool in pools)
    assert few < many
    assert len(many) > 0.9 * len(topology.links)
    assert len(before) < len(search.pool) <= len(before) + 100
    for column in search.pool.columns[len(before) :]:
        assert (np.delete(column.parents, column.root) >= 0).all()
