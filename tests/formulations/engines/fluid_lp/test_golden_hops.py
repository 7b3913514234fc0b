"""How many hops a steady state needs: with few it is slower or there is none, with enough as fast.

The numbers were computed on time-expanded graphs by another program, and each small one has an
argument in its test.
"""

import pytest

from ccl.errors import Infeasible
from formulations.engines.orbit_lp.group import Uniform
from formulations.engines.orbit_lp.lp import solve_orbits
from gallery import open_cluster

BOXES = "forestcoll-12:hosts="
CHORDS = "ring:gpus=8,bandwidth=10,chord_bandwidth=1"


def rate(cluster: str, steps: int | None) -> float:
    """Return s/GB of an all-gather in which no data takes more hops than `steps`."""
    topology = open_cluster(cluster)
    asked = Uniform(topology, "all-gather", len(topology.ranks) * 1e9)
    return solve_orbits(asked, steps=steps).makespan * 1e-6


@pytest.mark.parametrize(
    ("cluster", "steps"),
    [
        ("thesis-dgx-a100:hosts=2", 3),
        ("thesis-dgx-a100:hosts=4", 3),
        ("ndv2:hosts=1", 1),
        ("ring:gpus=6", 2),
    ],
)
def test_too_few_hops_reach_not_everybody(cluster, steps):
    """A GPU on another host and rail is two NVLinks and two ports away."""
    with pytest.raises(Infeasible):
        rate(cluster, steps)


@pytest.mark.parametrize(
    ("cluster", "steps", "seconds"),
    [
        ("thesis-dgx-a100:hosts=2", 4, 15 / 325),
        ("thesis-dgx-a100:hosts=4", 4, 0.12),
        ("ndv2:hosts=1", 2, 7 / 150),
        ("torus:shape=4x4,bandwidth=1", 4, 15 / 4),
        ("torus:shape=5x5,bandwidth=1", 4, 24 / 4),
        ("torus:shape=4x4x4,bandwidth=1", 6, 63 / 6),
        ("hypercube:dimension=4,bandwidth=1", 4, 15 / 4),
        ("ring:gpus=6,bandwidth=1", 3, 5 / 2),
        ("fat-tree:radix=4,bandwidth=1", 6, 15),
    ],
)
def test_as_many_hops_as_the_diameter_are_enough_on_regular_networks(cluster, steps, seconds):
    """The rate is what enters a GPU, or 8 (N - 1) shards through 8 ports of 25 GB/s."""
    assert rate(cluster, steps) == pytest.approx(seconds, rel=1e-6)
    assert rate(cluster, None) == pytest.approx(seconds, rel=1e-6)


@pytest.mark.parametrize(
    ("boxes", "steps", "seconds"),
    [
        (2, 2, 4.0),
        (2, 3, 4.0),
        (2, 4, 1.0),
        (2, 6, 1.0),
        (2, None, 1.0),
        (4, 2, 12.0),
        (4, 4, 3.0),
        (4, 8, 3.0),
        (4, None, 3.0),
    ],
)
def test_boxes_with_a_slow_switch_need_four_hops(boxes, steps, seconds):
    """ForestColl, figure 12. In two hops, each of the 4 (N - 1) shards comes over the own port.

    In three there is still no GPU between two switches that could hand a shard on to the box, which
    takes four: each shard enters a box once, over any of its 4 ports.
    """
    assert rate(f"{BOXES}{boxes}", steps) == pytest.approx(seconds, rel=1e-6)


@pytest.mark.parametrize(
    ("steps", "seconds"), [(1, 1.0), (2, 1 / 3), (3, 0.28), (4, 0.28), (None, 0.28)]
)
def test_a_ring_with_chords_needs_three_hops(steps, seconds):
    """In one hop a shard takes a chord of 1 GB/s; 7 shards through 25 GB/s take 0.28 s/GB."""
    assert rate(CHORDS, steps) == pytest.approx(seconds, rel=1e-6)
