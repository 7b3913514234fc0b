"""The arrays of a fluid model, and what steps and duplicates make of them."""

import numpy as np
import pytest

from ccl.collective import all_gather, all_reduce, all_to_all, reduce_scatter
from ccl.problem import Problem
from ccl.topology import Topology, device, duplex
from formulations.engines.steady_state import (
    NOWHERE,
    Group,
    demands_of,
    graph_of,
    in_steps,
    without_copies,
)


def star(gpus: int = 3, *, copies: bool = False) -> Topology:
    devices = [device("gpu", f"g{i}") for i in range(gpus)]
    switch = device("switch", "s", copies=copies)
    links = [each for i in range(gpus) for each in duplex(f"g{i}", "s", bandwidth=10)]
    return Topology("star", (*devices, switch), tuple(links))


def chain() -> Topology:
    """Two GPUs on each of two switches, which are linked."""
    devices = [device("gpu", f"g{i}") for i in range(4)]
    switches = [device("switch", "s0"), device("switch", "s1")]
    links = [each for i in range(4) for each in duplex(f"g{i}", f"s{i // 2}", bandwidth=10)]
    links += duplex("s0", "s1", bandwidth=5)
    return Topology("chain", (*devices, *switches), tuple(links))


def test_a_switch_becomes_a_vertex_for_each_gpu_that_it_leads_to():
    """Of 3 GPUs: each of 3 duplicates is entered by 3 and left to 1, so 9 + 3 edges."""
    graph = without_copies(graph_of(star()))
    assert graph.vertices == 3 + 3
    assert graph.edges == 9 + 3
    assert (np.asarray(graph.rows.sum(axis=1)) == [3, 1] * 3).all()


def test_a_switch_that_copies_stays_as_it_is():
    graph = without_copies(graph_of(star(copies=True)))
    assert graph.vertices == 4
    assert (graph.toward == NOWHERE).all()


def test_duplicates_follow_switches_in_a_row():
    """From s0 data can next reach all four GPUs: g0 and g1 at once, g2 and g3 over s1."""
    graph = without_copies(graph_of(chain()))
    assert graph.vertices == 4 + 2 * 4
    trunk = chain().link_index["s0", "s1"]
    # The trunk leads to g2 and g3, and through s1 nothing comes back to g0 and g1 but over it.
    assert graph.rows[[trunk], :].sum() == 4


def test_steps_have_layers_and_those_who_store_may_wait():
    graph = in_steps(graph_of(star()), 2)
    assert graph.vertices == 4 * 3
    assert graph.edges == (6 + 3) * 2
    assert (np.asarray(graph.rows.sum(axis=1)) == 2).all()
    assert (graph.origins == [0, 1, 2]).all()
    assert (graph.goals == [8, 9, 10]).all()


@pytest.mark.parametrize("made", ["plain", "duplicates", "steps"])
def test_a_permutation_of_devices_moves_every_edge_to_one_with_moved_ends(made: str):
    topology = chain()
    graph = graph_of(topology)
    if made != "plain":
        graph = without_copies(graph)
    if made == "steps":
        graph = in_steps(graph, 3)
    swap = np.array([2, 3, 0, 1, 5, 4])
    vertices, edges = graph.moved(swap)
    assert (np.sort(edges) == np.arange(graph.edges)).all()
    assert (vertices[graph.src] == graph.src[edges]).all()
    assert (vertices[graph.dst] == graph.dst[edges]).all()
    assert (swap[graph.device] == graph.device[vertices]).all()


def test_demands_add_up_the_chunks_of_a_group():
    ranks, size = 3, 3e6
    spread = demands_of(Problem(star(), all_gather(ranks, size, chunks=2))).spreads
    assert spread[0] == Group(0, (1, 2), 1e6)
    assert len(spread) == 3
    pairs = demands_of(Problem(star(), all_to_all(ranks, size)))
    assert pairs.only_pairs
    assert len(pairs.spreads) == 6
    sums = demands_of(Problem(star(), reduce_scatter(ranks, size)))
    assert sums.sums[1] == Group(1, (0, 2), 1e6)
    assert demands_of(Problem(star(), all_reduce(ranks, size))).free == size
