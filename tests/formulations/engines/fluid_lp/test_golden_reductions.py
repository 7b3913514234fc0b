"""All-reduces whose halves share links: what uneven networks gain, and hardware does not."""

from fractions import Fraction

import pytest

from benchmarks.forests import halves_of, reducing, whole_of
from ccl.result import Status
from formulations import solve

ONE_WIDE = "star:gpus=6,bandwidth=1,wide=1,wide_bandwidth=10,alpha=0"
TWO_WIDE = "star:gpus=8,bandwidth=1,wide=2,wide_bandwidth=4,alpha=0"


@pytest.mark.parametrize(
    ("cluster", "halves", "whole"),
    [
        (ONE_WIDE, 10, 6),
        (TWO_WIDE, 14, 8),
        ("random:gpus=6,switches=2", Fraction(10, 13), Fraction(6, 13)),
        ("random:gpus=16,switches=4", Fraction(15, 2), 4),
    ],
)
def test_uneven_networks_gain_all_that_can_be_gained(cluster, halves, whole):
    """Twice an all-gather takes 2 (n - 1) / B at the narrowest GPU; shared links n / B, the least.

    All of the n GPUs' data passes that GPU's link B in one half or the other.
    """
    found = solve(reducing(cluster), "orbit-trees", time_limit=60)
    ranks = found.problem.collective.ranks

    assert halves_of(cluster) == halves
    assert whole_of(found) == whole
    assert whole_of(found) / halves_of(cluster) == Fraction(ranks, 2 * (ranks - 1))
    assert found.status is not Status.FEASIBLE


@pytest.mark.parametrize(
    "cluster",
    ["thesis-dgx-a100:hosts=2", "torus:shape=4x4", "hypercube:dimension=3", "ndv2:hosts=1"],
)
def test_hardware_gains_nothing(cluster):
    found = solve(reducing(cluster), "orbit-trees", time_limit=60)

    assert whole_of(found) == halves_of(cluster)
    assert found.status is not Status.FEASIBLE
