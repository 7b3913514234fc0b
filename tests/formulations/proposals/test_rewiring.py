"""Annealing shortens distances and keeps degrees; prices refuse what is no better."""

import math
from collections import Counter

import networkx
import numpy as np
import pytest

from ccl.bound import moore_mean
from formulations.engines.fluid_lp.certified import certified_flows
from formulations.proposals import Request
from formulations.proposals.families import expansions, lattices
from formulations.proposals.rewiring import (
    Annealing,
    Distances,
    all_to_all_of,
    network_of,
    price_bound,
    rewire,
)
from gallery.lattices import hermite_forms, hermite_matrix, moves_of


def summed(graph):
    return sum(sum(far.values()) for _, far in networkx.all_pairs_shortest_path_length(graph))


@pytest.mark.parametrize("gpus", [10, 64, 70])
def test_distances_by_rows_of_bits_are_those_of_networkx(gpus):
    graph = networkx.random_regular_graph(3, gpus, seed=gpus)
    table = np.array([list(graph[i]) for i in range(gpus)]).T

    assert Distances(gpus).total(table) == summed(graph)


def test_what_does_not_hang_together_is_infinitely_far():
    table = np.array([[1, 2, 0, 4, 5, 3], [2, 0, 1, 5, 3, 4]])

    assert Distances(6).total(table) == math.inf


def test_annealing_keeps_degrees_and_comes_near_the_bound_of_moore():
    annealing = Annealing(32, 4, seed=3)
    first = annealing.total
    annealing.advance(runs=1)
    degrees = Counter(end for pair in annealing.pairs for end in pair)
    graph = networkx.Graph(annealing.pairs)

    assert set(degrees.values()) == {4}
    assert graph.number_of_edges() == 64  # none twice
    assert annealing.total == summed(graph) < first
    least = 32 * 31 * moore_mean(32, 4, duplex=True)
    assert least <= annealing.total <= 1.05 * least


def test_a_seed_gives_the_same_network_however_often_it_is_interrupted():
    whole, parts = Annealing(20, 3, seed=5), Annealing(20, 3, seed=5)
    whole.advance(runs=1)
    while parts.run < 1:
        parts.advance(seconds=1e-3)

    assert parts.pairs == whole.pairs


def two_racks(gpus):
    """Return costs of 1 inside each half of the GPUs and of 9 between the halves."""
    rack = np.arange(gpus) // (gpus // 2)
    return np.where(rack[:, None] == rack, 1.0, 9.0)


def cost_of(pairs, costs):
    return sum(costs[a, b] for a, b in pairs)


def test_annealing_with_costs_makes_time_times_costs_less():
    """Links between the racks are dear, so that as many cross as distances have work for."""
    costs = two_racks(24)
    plain, cheap = Annealing(24, 4, seed=1), Annealing(24, 4, seed=1, costs=costs)
    for each in (plain, cheap):
        each.advance(runs=1)
    graph = networkx.Graph(cheap.pairs)

    assert set(dict(graph.degree).values()) == {4}
    assert cheap.total == pytest.approx(merit_of(cheap.pairs, costs))
    assert cheap.total < 0.9 * merit_of(plain.pairs, costs)
    assert cost_of(cheap.pairs, costs) < 0.9 * cost_of(plain.pairs, costs)


def merit_of(pairs, costs):
    """Return cost times distances, or times what crosses between the halves on 48 links."""
    half = len(costs) // 2
    crossing = sum((a < half) != (b < half) for a, b in pairs)
    busiest = 2 * len(pairs) * half * half / crossing
    return cost_of(pairs, costs) * max(summed(networkx.Graph(pairs)), busiest)


@pytest.mark.slow
def test_swaps_by_prices_make_time_times_cost_less():
    """Each network is better than the one before it, and its cost is that of its cables."""
    costs = two_racks(12)
    graph = networkx.random_regular_graph(3, 12, seed=4)
    topology = network_of(sorted(graph.edges()), gpus=12, name="", bandwidth=50.0, alpha=0.0)
    found = list(rewire(topology, seconds=5, seed=2, costs=costs))
    merits = [each.merit for each in found]

    assert len(found) > 1, "no swap was an improvement"
    assert merits == sorted(merits, reverse=True)
    for each in found:
        rank = each.topology.rank
        pairs = [(rank[link.src], rank[link.dst]) for link in each.topology.links]
        assert 2 * each.cost == pytest.approx(cost_of(pairs, costs))


def test_prices_prove_in_floats_what_they_prove_in_fractions():
    topology = network_of(
        Annealing(12, 3, seed=2).pairs, gpus=12, name="", bandwidth=50.0, alpha=0.0
    )
    *_, flow = certified_flows(all_to_all_of(topology), seconds=20, near=1e-4)

    assert price_bound(topology, flow.prices) == pytest.approx(float(flow.bound), rel=1e-6)


@pytest.mark.slow
def test_swaps_by_prices_speed_up_links_that_differ():
    """Of 12 GPUs with 4 links each, half of the links have a quarter of the bandwidth."""
    graph = networkx.random_regular_graph(4, 12, seed=1)
    rates = [50.0 if i % 2 else 12.5 for i in range(24)]
    pairs = sorted(graph.edges())
    topology = network_of(pairs, gpus=12, name="uneven", bandwidth=rates, alpha=0.0)
    first, *others = rewire(topology, seconds=6, seed=1)

    assert others, "no swap was an improvement"
    last = others[-1]
    assert last.flow.makespan < 0.99 * first.flow.makespan
    assert last.refused + last.solved <= last.tries
    assert sorted(link.bandwidth for link in last.topology.links) == sorted(2 * rates)
    assert {len(each) for each in last.topology.links_out.values()} == {4}


def test_refused_swaps_are_no_faster():
    """What the prices of a Petersen graph refuse is solved here all the same."""
    graph = networkx.petersen_graph()
    topology = network_of(sorted(graph.edges()), gpus=10, name="", bandwidth=50.0, alpha=0.0)
    *_, flow = certified_flows(all_to_all_of(topology), seconds=20, near=1e-5)
    seen = 0
    for seed in range(6):
        changed = networkx.Graph(graph)
        networkx.double_edge_swap(changed, seed=seed)
        made = network_of(sorted(changed.edges()), gpus=10, name="", bandwidth=50.0, alpha=0.0)
        bound = price_bound(made, flow.prices[_same_order(topology, made)])
        if bound >= flow.makespan:
            *_, other = certified_flows(all_to_all_of(made), seconds=20, near=1e-4)
            assert other.makespan >= flow.makespan * (1 - 1e-6)
            seen += 1
    assert seen >= 3


def _same_order(before, after):
    """Return a price of the old network for each link of the new: its own, or any of those left."""
    left = [i for i, link in enumerate(before.links) if link.ends not in after.link_index]
    return np.array(
        [
            before.link_index[link.ends] if link.ends in before.link_index else left.pop()
            for link in after.links
        ]
    )


@pytest.mark.parametrize(("gpus", "ports"), [(12, 4), (16, 4), (18, 6)])
def test_the_first_lattice_has_the_least_distances_of_all(gpus, ports):
    """Every Hermite form is measured here by breadth-first search."""
    totals = []
    for form in hermite_forms(gpus, ports // 2):
        graph: networkx.Graph[int] = networkx.Graph()
        for step in moves_of(hermite_matrix(*form))[:-1]:
            graph.add_edges_from(enumerate(step.tolist()))
        graph.remove_edges_from(networkx.selfloop_edges(graph))
        if graph.number_of_edges() == gpus * ports // 2 and networkx.is_connected(graph):
            totals.append(summed(graph))

    assert lattices(Request(gpus=gpus, ports=ports))[0].total == min(totals)


def test_distances_of_products_and_copies_follow_from_those_of_their_parts():
    drafts = list(expansions(Request(gpus=24, ports=5)))

    assert {each.family for each in drafts} >= {"product"}
    for draft in drafts:
        made = draft.make()
        graph = networkx.DiGraph([link.ends for link in made.links])
        assert summed(graph) == draft.total
