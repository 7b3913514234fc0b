"""The front of latency against bandwidth, by hand."""

from fractions import Fraction

import pytest

from ccl.collective import make_collective
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.verify import verify
from formulations.engines.sccl.client import Decided
from formulations.engines.sccl.search import front, pareto
from gallery import open_cluster


def shown(points) -> list[tuple[int, int, int]]:
    return [(each.steps, each.rounds, each.chunks) for each in points]


def test_the_front_of_a_ring_of_4_is_one_point():
    """No plan has 1 step, as the opposite GPU is two links away.

    3 c chunks come to a GPU over 2 a round, 3 / 2 rounds a chunk. In 2 steps and 2 chunks a
    shard: both chunks go to both neighbours, on each link first both of its own GPU (2 rounds),
    then one of the other's (1 round). So 2 steps of 3 rounds are best in both.
    """
    points = pareto(open_cluster("ring:gpus=4"), "all-gather", 4e6)

    assert shown(front(points)) == [(2, 3, 2)]


def test_one_chunk_per_shard_cannot_reach_the_cut_of_a_ring_of_4():
    """Rounds are whole: 2 for one chunk, 3 for two."""
    points = pareto(open_cluster("ring:gpus=4"), "all-gather", 4e6, most_chunks=1)

    assert shown(front(points)) == [(2, 2, 1)]


def test_the_front_of_a_star_needs_one_step_and_no_more():
    """Every shard goes straight to everyone in one step of 3 rounds, which is the cut."""
    (only,) = pareto(open_cluster("star:gpus=4"), "all-gather", 4e6, most_chunks=2)

    assert shown([only]) == [(1, 3, 1)]
    assert only.cost == Fraction(3)
    verify(only.result.problem, only.result.plan)


def test_a_reduction_has_the_front_of_its_mirror():
    points = pareto(open_cluster("ring:gpus=4"), "reduce-scatter", 4e6)

    (only,) = front(points)
    assert shown([only]) == [(2, 3, 2)]
    problem = Problem(
        open_cluster("ring:gpus=4"), make_collective("reduce-scatter", 4, 4e6, chunks=2)
    )
    verify(problem, only.result.plan)


def test_more_steps_for_less_bandwidth_on_a_star():
    """Broadcast over a star of 4 that does not copy, c chunks: in 1 step the root sends 3 c copies.

    In 2 steps of r and s rounds let k chunks leave the root in the first, k <= r. The others are
    sent three times by the root in the second, 3 (c - k) <= s. Each of the three receives a share
    of r, then s at most, so that r + 3 s >= 3 c. The least r + s is 3 c / 2, where k = r = s =
    3 c / 4, which takes c = 4; c = 1, 2, 3 have 2, 4 and 5 rounds, more for each chunk.
    """
    points = pareto(open_cluster("star:gpus=4"), "broadcast", 1e6, most_chunks=4, most_steps=2)

    assert shown(front(points)) == [(1, 3, 1), (2, 6, 4)]
    assert {each.decided for each in points} == {Decided.FOUND, Decided.IMPOSSIBLE}


def test_what_was_not_decided_in_time_is_told():
    (only,) = pareto(open_cluster("ring:gpus=4"), "all-gather", 4e6, time_limit=1e-6)

    assert only.decided is Decided.UNDECIDED
    assert "allow more" in only.why
    assert front([only]) == ()


def test_a_sum_for_everybody_has_two_fronts():
    with pytest.raises(ProblemError, match="adds up first, then spreads"):
        pareto(open_cluster("ring:gpus=4"), "all-reduce", 4e6)
