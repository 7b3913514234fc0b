"""Classes and trees as they are told and drawn."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from ccl.collective import all_gather
from ccl.plans import Forest
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.symmetry import Group, automorphisms, symmetry_of
from formulations import prices
from gallery import open_cluster
from tests.designer.forests import RANKS, gathered, path, reduced, ring_of_gpus
from widgets import TopologyWidget
from widgets.view_model.classes import (
    class_marks,
    gpu_classes,
    letters,
    levels,
    link_classes,
    price_marks,
    roots,
    routes,
    tree_marks,
)
from widgets.view_model.scene import moves, scene


def test_the_classes_of_two_ndv2_hosts_are_pairs():
    """Hosts can change places; inside one, the ports of the network tell the GPUs apart."""
    topology = open_cluster("ndv2:hosts=2")
    classes = gpu_classes(topology, automorphisms(topology))
    assert [each.badge for each in classes] == list("ABCDEFGH")
    assert [each.devices for each in classes] == [(f"g{i}", f"g{i + 8}") for i in range(8)]
    assert classes[0].words == "2 GPUs: g0, g8"


def test_links_are_told_by_bandwidth_ends_and_medium():
    topology = open_cluster("dgx-a100:hosts=2")
    words = [each.words for each in link_classes(topology, automorphisms(topology))]
    assert "16 links of 300 GB/s, GPU to nvswitch (NVLink 3)" in words
    assert "16 links of 25 GB/s, GPU to rail (InfiniBand HDR)" in words


def test_classes_that_have_all_but_their_place_in_common_are_told_apart_by_a_link():
    topology = open_cluster("dgx-1v")
    words = [each.words for each in link_classes(topology, automorphisms(topology))]
    assert len(set(words)) == len(words) == 6
    assert "4 links of 25 GB/s, GPU to GPU (NVLink 2)" in words
    assert "2 links of 25 GB/s, GPU to GPU (NVLink 2), such as g0–g2" in words


def test_every_link_is_in_one_class_with_its_opposite():
    topology = open_cluster("mi250:hosts=2")
    classes = link_classes(topology, automorphisms(topology))
    seen = [ends for each in classes for ends in each.links]
    assert sorted(seen) == sorted(link.ends for link in topology.links)
    for each in classes:
        assert {(dst, src) for src, dst in each.links} == set(each.links)


def test_who_is_alone_is_not_coloured():
    topology = ring_of_gpus()
    none = Group(topology, np.empty((0, RANKS), dtype=np.int64))
    assert class_marks(gpu_classes(topology, none), title="t") is None
    marks = class_marks(gpu_classes(topology, automorphisms(topology)), title="t")
    assert marks is not None
    assert [each["label"] for each in marks["groups"]] == ["4 GPUs: g0, g1, g2, g3"]


@pytest.mark.parametrize(("number", "said"), [(0, "A"), (25, "Z"), (26, "AA"), (701, "ZZ")])
def test_letters_go_on_after_z(number, said):
    assert letters(number) == said


def test_a_root_has_its_trees_and_a_tree_its_depths():
    result = gathered()
    found = routes(result.plan, result.problem.topology, 1)
    assert [each.weight for each in found] == [Fraction(1, 2)] * 2
    assert levels(found[0].down, up=False) == {"g2": 1, "g3": 2, "g0": 3}
    marks = tree_marks(found[0], result.problem.topology)
    assert marks["groups"][0] == {"tone": {"origin": [1, RANKS]}, "devices": ["g1"]}
    assert marks["badges"] == {"g1": "root", "g2": "1", "g3": "2", "g0": "3"}


def test_an_all_reduce_pairs_in_trees_with_out_trees():
    """One in-tree of 1/4 and two out-trees of 1/8: what goes up together comes down in two."""
    result = reduced()
    found = routes(result.plan, result.problem.topology, 0)
    assert [each.weight for each in found] == [Fraction(1, 8)] * 2
    assert found[0].up == found[1].up
    assert found[0].down != found[1].down
    assert [each.depth(half) for each in found for half in ("both", "up", "down")] == [6, 3, 3] * 2


def test_images_of_a_symmetric_forest_are_made_for_the_root_asked_for():
    """One tree and the rotations of the ring are the trees of all roots."""
    topology = ring_of_gpus()
    turns = symmetry_of(topology)
    if turns.order < RANKS:
        pytest.fail("the rotations of the ring were not found")
    forest = Forest((path(0, 1, Fraction(1)),), symmetry=turns)
    assert roots(forest) == list(range(RANKS))
    every = {tree.root: tree.routes for tree in forest.every(topology)}
    for rank in range(RANKS):
        (way,) = routes(forest, topology, rank)
        assert way.down.root == rank
        assert way.down.routes == every[rank]


def test_a_symmetric_forest_is_played_whole():
    """One path round the ring and its rotations: every GPU ends with the shard of every other."""
    topology = ring_of_gpus()
    forest = Forest((path(0, 1, Fraction(1)),), symmetry=symmetry_of(topology))
    problem = Problem(topology, all_gather(RANKS, 4e6))
    timeline = simulate(problem, forest)
    played = scene(problem, forest, timeline)
    moved = {(chunk, dst) for chunk, _, dst, *_ in played["transfers"]}
    assert moved == {(i, f"g{j}") for i in range(RANKS) for j in range(RANKS) if i != j}
    assert moves(timeline) == timeline.images * len(timeline.transfers)
    assert played["makespan"] == pytest.approx(timeline.makespan)


def test_a_drawing_is_marked_with_a_group_with_prices_or_with_a_forest():
    """At the start, or afterwards with `mark`; of a forest the heaviest tree of a root is drawn."""
    topology = open_cluster("dgx-1v")
    found = prices(Problem(topology, all_gather(8, 8e6)))
    group = automorphisms(topology)
    canvas = TopologyWidget(topology, marked=group)
    assert canvas.marks == class_marks(gpu_classes(topology, group), title="classes of GPUs")
    canvas.mark(found)
    assert canvas.marks == price_marks(found)

    forest = gathered()
    canvas = TopologyWidget(forest.problem.topology, marked=forest.plan)
    canvas.mark(forest.plan, root=1)
    [way, *_] = routes(forest.plan, forest.problem.topology, 1)
    assert canvas.marks == tree_marks(way, forest.problem.topology)
