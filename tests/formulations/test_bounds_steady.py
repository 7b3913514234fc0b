"""Bounds on the steady state: which ones hold for it, and that forests that meet them are told."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from ccl.collective import make_collective
from ccl.plans import Forest, Tree
from ccl.problem import Problem
from ccl.result import Status, Stop
from ccl.tree_embedding import steady_makespan
from formulations.bounds import lower_bounds, quick_bounds
from formulations.core.run import Run
from gallery import open_cluster
from tests.ccl.clusters import MB, mesh, ring
from tests.ccl.test_verify_steady import around, both_ways

KINDS = ["all-gather", "reduce-scatter", "all-reduce", "all-to-all", "broadcast", "gather"]
CLUSTERS = ["dgx-1v", "ndv2:hosts=2", "pcie-server", "fat-tree:radix=4", "torus:shape=3x3"]


def still(problem):
    """The same problem without latencies."""
    links = tuple(replace(link, alpha=0.0) for link in problem.topology.links)
    return replace(problem, topology=replace(problem.topology, links=links))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CLUSTERS)
def test_the_largest_is_what_is_proved_without_latencies(name, kind):
    topology = open_cluster(name)
    problem = Problem(topology, make_collective(kind, len(topology.ranks), 12 * MB))
    assert any(link.alpha for link in topology.links)

    found = [each for each in lower_bounds(problem) if each.steady]

    assert max(each.makespan for each in found) == pytest.approx(
        lower_bounds(still(problem))[0].makespan, rel=1e-6
    )
    assert max(each.makespan for each in found) < lower_bounds(problem)[0].makespan


@pytest.mark.parametrize("kind", KINDS)
def test_without_latencies_all_hold_save_those_for_whole_chunks(kind):
    topology = open_cluster("dgx-1v:alpha=0")
    problem = Problem(topology, make_collective(kind, 8, 12 * MB))

    for bound in lower_bounds(problem, whole_chunks=True):
        assert bound.steady == (not bound.whole_chunks and bound.kind != "path")


def test_a_latency_is_no_bound_on_a_rate():
    """2 bytes come in over 100 µs each way: a repetition takes next to nothing."""
    problem = Problem(ring(3, alpha=100.0), make_collective("all-gather", 3, 3.0))

    assert quick_bounds(problem)[0].makespan >= 200
    assert max(b.makespan for b in quick_bounds(problem) if b.steady) == pytest.approx(4e-5)


class TestRun:
    """A ring of 4 both ways with latencies: 30 µs by its cuts, and by its trees."""

    problem = Problem(mesh(4, alpha=1.0), make_collective("all-gather", 4, 4 * MB))
    forest = Forest(both_ways(4))

    def run(self, problem):
        return Run(problem, "by-hand", {}, bounds=lower_bounds(problem))

    def test_a_forest_is_an_offer_like_any(self):
        run = self.run(self.problem)

        assert not run.offer(self.forest)
        assert run.replay(self.forest) == run.best.makespan
        assert run.finish(Stop.MODEL_OPTIMAL).stop is Stop.MODEL_OPTIMAL

    def test_the_best_rate_is_told(self):
        """Every GPU of a mesh sends each other its shard directly: 20 µs, as must come in."""
        trees = tuple(
            Tree(r, tuple((f"g{r}", f"g{o}") for o in range(4) if o != r), Fraction(1))
            for r in range(4)
        )
        run = self.run(self.problem)
        run.offer(Forest(trees))

        result = run.finish(Stop.MODEL_OPTIMAL)

        assert result.steady_makespan == 20
        assert result.makespan == pytest.approx(21)
        assert result.status is Status.OPTIMAL

    def test_a_tree_that_fills_slowly_has_optimal_throughput(self):
        problem = Problem(ring(4, alpha=100.0), make_collective("all-gather", 4, 4 * MB))
        trees = tuple(Tree(r, around(r, 4, 1), Fraction(1)) for r in range(4))
        run = self.run(problem)

        assert not run.offer(Forest(trees))
        result = run.finish(Stop.MODEL_OPTIMAL)

        assert steady_makespan(problem, Forest(trees)) == 60
        assert result.steady_gap == pytest.approx(0)
        assert result.status is Status.THROUGHPUT
        assert result.stop is Stop.RATE

    def test_a_limit_of_time_keeps_its_reason_when_nothing_is_proved(self):
        run = self.run(self.problem)
        run.time_limit = 100.0
        run.offer(self.forest)

        assert run.finish(Stop.TIME_LIMIT).stop is Stop.TIME_LIMIT
