"""Cheapest out-trees against networkx, and the shallow ones against what they promise."""

import networkx
import numpy as np
import pytest

from formulations.engines.kernels.arborescence import FAR, arborescences, breadth, shallow


def drawn(seed, *, ties):
    """Return a complete matrix of 2 to 9 vertices, targets first."""
    draw = np.random.default_rng(seed)
    many = int(draw.integers(2, 10))
    shape = (many, many)
    costs = draw.integers(1, 5, shape).astype(float) if ties else draw.random(shape)
    np.fill_diagonal(costs, FAR)
    return costs


def graph(costs, parents):
    return networkx.DiGraph(
        (parent, vertex, {"weight": costs[vertex, parent]})
        for vertex, parent in enumerate(parents.tolist())
        if parent >= 0
    )


def least(costs, root, members):
    """Return the cost of a cheapest out-tree by networkx: no way leads into the root."""
    full = networkx.DiGraph(
        (src, dst, {"weight": costs[dst, src]})
        for src in members
        for dst in members
        if dst not in {root, src} and costs[dst, src] < FAR
    )
    return networkx.minimum_spanning_arborescence(full).size(weight="weight")


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_all_roots_have_a_cheapest_tree(seed, ties):
    costs = drawn(seed, ties=ties)
    every = np.arange(len(costs))

    for root, parents in zip(every, arborescences(costs, every, every), strict=True):
        tree = graph(costs, parents)
        assert networkx.is_arborescence(tree)
        assert parents[root] == -1
        assert set(tree) == set(every.tolist())
        assert tree.size(weight="weight") == pytest.approx(least(costs, root, every))


@pytest.mark.parametrize("seed", range(20))
def test_a_tree_over_some_vertices_leaves_the_others_out(seed):
    costs = drawn(seed + 100, ties=True)
    members = np.arange(0, len(costs), 2)
    if len(members) < 2:
        members = np.arange(len(costs))

    [parents] = arborescences(costs, members, members[:1])

    tree = graph(costs, parents)
    assert set(tree) == set(members.tolist())
    assert tree.size(weight="weight") == pytest.approx(least(costs, members[0], members.tolist()))


@pytest.mark.parametrize("seed", range(10))
def test_ways_may_be_missing(seed):
    """A closed walk keeps every root able; half of the other ways are taken away."""
    costs = drawn(seed + 200, ties=False)
    many = len(costs)
    gone = np.random.default_rng(seed).random((many, many)) < 0.5
    gone[(np.arange(many) + 1) % many, np.arange(many)] = False
    costs[gone] = FAR
    every = np.arange(many)

    for root, parents in zip(every, arborescences(costs, every, every), strict=True):
        tree = graph(costs, parents)
        assert tree.size(weight="weight") == pytest.approx(least(costs, root, every))


def test_one_way_out_of_a_root_alone():
    """On a line in one direction only the first vertex has a tree, and it gets it."""
    costs = np.full((4, 4), FAR)
    costs[[1, 2, 3], [0, 1, 2]] = 1.0

    [parents] = arborescences(costs, np.arange(4), np.array([0]))

    assert parents.tolist() == [-1, 0, 1, 2]


@pytest.mark.parametrize("seed", range(10))
def test_a_shallow_tree_costs_as_little_where_a_hop_costs_next_to_nothing(seed):
    costs = drawn(seed, ties=True)
    every = np.arange(len(costs))

    plain = arborescences(costs, every, every)
    flat = shallow(costs, every, every, np.full(len(every), 1e-6), 4)

    for parents, other in zip(plain, flat, strict=True):
        cost = graph(costs, parents).size(weight="weight")
        assert graph(costs, other).size(weight="weight") == pytest.approx(cost, abs=1e-3)


def test_among_equal_trees_the_shallow_one_is_taken():
    """All ways between 8 vertices cost the same, so a star is as cheap as a line."""
    costs = np.ones((8, 8))
    np.fill_diagonal(costs, FAR)
    every = np.arange(8)

    for root, parents in enumerate(shallow(costs, every, every, np.full(8, 1e-6), 3)):
        assert set(np.delete(parents, root).tolist()) == {root}


@pytest.mark.parametrize("seed", range(10))
def test_breadth_keeps_every_vertex_as_near_as_it_can_be(seed):
    costs = drawn(seed, ties=False)
    costs[costs > 0.4] = FAR
    many = len(costs)
    ring = (np.arange(many) + 1) % many
    costs[ring, np.arange(many)] = 0.5
    ways = networkx.DiGraph((s, d) for d in range(many) for s in range(many) if costs[d, s] < FAR)

    for root, parents in enumerate(breadth(costs, np.arange(many))):
        tree = graph(costs, parents)
        near = networkx.single_source_shortest_path_length(ways, root)
        assert networkx.single_source_shortest_path_length(tree, root) == near
        for vertex, parent in enumerate(parents.tolist()):
            if parent >= 0:
                before = [s for s in ways.predecessors(vertex) if near[s] == near[vertex] - 1]
                assert costs[vertex, parent] == min(costs[vertex, s] for s in before)
