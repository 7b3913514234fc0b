"""Chunks per shard as a decision: what more of them bring, and the bound that holds for any."""

import pytest

import formulations
from ccl.collective import all_gather, broadcast, make_collective
from ccl.errors import Infeasible, LimitReached, ProblemError
from ccl.problem import Problem
from formulations import pareto, solve, sweep_counts
from formulations.analyses.chunk_counts import chunks_per_shard, common_bound, common_gap, tried
from formulations.bounds import lower_bounds
from gallery import open_cluster
from tests.ccl.clusters import line


def makespan(chunks: int) -> float:
    """Return the µs of a broadcast over two links of 50 GB/s.

    1 MB takes 20 µs a link; of k chunks the last leaves after 20 µs and takes one 20/k more,
    and each of the two hops costs 0.5 µs.
    """
    return 20.0 + 20.0 / chunks + 1.0


def test_more_chunks_overlap_on_a_line():
    """Two links one after the other: `makespan` has the derivation."""
    results = sweep_counts(
        line(3, alpha=0.5), "broadcast", 1e6, counts=(4, 1, 2, 2), formulation="list"
    )

    assert [chunks_per_shard(each) for each in results] == [1, 2, 4]
    assert [each.makespan for each in results] == pytest.approx([makespan(k) for k in (1, 2, 4)])
    assert pareto(reversed(results)) == results


def test_the_bound_for_any_count_lets_chunks_be_split():
    """1 MB over a link of 50 GB/s in pieces without end: 20 µs and two latencies.

    One chunk is bound by 41 µs, which plans of two chunks beat.
    """
    results = sweep_counts(line(3, alpha=0.5), "broadcast", 1e6, counts=(1, 2), formulation="list")

    assert results[0].whole_bound.makespan == pytest.approx(41.0)
    assert results[0].bound.makespan <= 21.0 * (1 + 1e-9)
    assert common_bound(results).makespan == pytest.approx(21.0)
    assert not common_bound(results).whole_chunks
    assert [common_gap(each, results) for each in results] == pytest.approx([20 / 21, 10 / 21])


@pytest.mark.parametrize("kind", ["all-gather", "all-to-all", "reduce-scatter", "all-reduce"])
def test_it_is_the_bound_of_every_count(kind):
    """Splitting chunks that may be split without end changes nothing."""
    topology = open_cluster("dgx-1v")
    bounds = [
        lower_bounds(Problem(topology, make_collective(kind, 8, 1e6, chunks=count)))[0].makespan
        for count in (1, 3, 4)
    ]

    assert bounds == pytest.approx([bounds[0]] * 3)


def test_latency_alone_gains_nothing_by_more_chunks():
    """A direct send meets 20 + 0.5 µs with one chunk, so no other count is tried."""
    results = sweep_counts(line(2, alpha=0.5), "broadcast", 1e6, formulation="list")

    assert [chunks_per_shard(each) for each in results] == [1]
    assert results[0].makespan == pytest.approx(20.5)


def test_a_gap_to_the_bound_for_any_count_ends_the_sweep():
    """`makespan` is 41, 31, 27.7 and 26 µs, and 26 is the first within a quarter of 21."""
    results = sweep_counts(
        line(3, alpha=0.5), "broadcast", 1e6, counts=range(1, 9), formulation="list", gap=0.25
    )

    assert [chunks_per_shard(each) for each in results] == [1, 2, 3, 4]


def test_who_is_no_shorter_with_more_chunks_is_not_on_the_front():
    """Over one link both take 20.5 µs: the second half leaves when the first is on its way."""
    one, two = (
        solve(Problem(line(2, alpha=0.5), broadcast(2, 1e6, chunks=count)), "list")
        for count in (1, 2)
    )

    assert two.makespan == pytest.approx(one.makespan) == pytest.approx(20.5)
    assert pareto((two, one)) == (one,)
    assert pareto((two,)) == (two,)
    assert pareto(()) == ()


def test_a_count_without_a_plan_is_left_out_and_all_of_them_are_an_error():
    asked: list[int] = []
    plan = solve(Problem(line(3), all_gather(3, 3e6)), "list")

    def solved(count, _seconds):
        asked.append(count)
        if count != 2:
            raise LimitReached(f"no plan in {count}")
        return plan

    assert tried(solved, (1, 2)) == (plan,)
    assert asked == [1, 2]
    with pytest.raises(LimitReached, match="no plan in 3"):
        tried(solved, (4, 3))


def test_each_count_gets_its_share_of_the_time_that_is_left():
    """Nothing takes any time here: a third of 6 s, a half of it, and all of it."""
    shares: list[float] = []

    def solved(_count, seconds):
        shares.append(seconds)
        raise Infeasible("none")

    with pytest.raises(Infeasible):
        tried(solved, (1, 2, 3), time_limit=6.0)

    assert shares == pytest.approx([2.0, 3.0, 6.0], rel=0.05)


def test_no_count_at_all_is_said():
    with pytest.raises(ProblemError, match="give at least one"):
        sweep_counts(line(2), "broadcast", 1e6, counts=())


def test_the_package_offers_what_it_names():
    assert formulations.sweep_counts is sweep_counts
    assert formulations.pareto is pareto
    assert set(formulations.__all__) >= {"pareto", "sweep_counts"}
    with pytest.raises(AttributeError, match="no attribute 'sweeps'"):
        formulations.sweeps  # noqa: B018
