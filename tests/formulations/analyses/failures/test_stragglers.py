"""What single stragglers cost. Links have 50 GB/s: 1 MB takes 20 µs."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice

import pytest

from ccl.collective import all_gather, broadcast
from ccl.errors import ProblemError
from ccl.problem import Problem, Window
from ccl.topology import SharedLimit, Topology, device, duplex
from ccl.verify import verify
from formulations import solve, stragglers
from formulations.analyses.failures.degradation import add_stragglers
from formulations.analyses.failures.study import LagStudy, replayed, slower
from gallery import open_cluster
from tests.ccl.clusters import MB, gpus, line, mesh, ring, star


def gathered(topology):
    return Problem(topology, all_gather(len(topology.ranks), len(topology.ranks) * MB))


class TestSteady:
    def test_a_slow_gpu_of_a_star_slows_all_by_its_factor(self):
        """It takes in 3/4 of the buffer over a link that has a third of its bandwidth."""
        found = stragglers(gathered(star(4)), beta=3.0, lagging=["gpu"])

        [row] = found.rows
        assert row.alike == 4
        assert row.algbw == pytest.approx(50 / 3 / 0.75)
        assert row.lost == pytest.approx(2 / 3)
        assert (row.replayed, row.result, row.wins) == (None, None, None)
        assert found.words == (
            "What hurts most when it lags is a GPU, such as g0: 22.22 GB/s, of 66.67 GB/s today."
        )

    def test_of_parallel_links_one_lags(self):
        """Of 3 x 25 GB/s one has half: 62.5 GB/s are left."""
        pair = Topology("pair", gpus(2), duplex("g0", "g1", bandwidth=75.0, count=3))

        [row] = stragglers(gathered(pair), beta=2.0, lagging=["link"]).rows

        assert [each.bandwidth for each in row.topology.links] == pytest.approx([62.5, 62.5])
        assert row.lost == pytest.approx(1 / 6)

    def test_latency_costs_no_steady_state_anything(self):
        [row] = stragglers(gathered(ring(3, alpha=1.0)), alpha=9.0, beta=1.0, lagging=["gpu"]).rows

        assert row.lost == pytest.approx(0)
        assert max(each.alpha for each in row.topology.links) == 9.0

    def test_of_a_host_all_links_lag(self):
        hosted = replace(
            line(4), devices=tuple(device("gpu", f"g{r}", host=f"h{r // 2}") for r in range(4))
        )

        [row] = stragglers(gathered(hosted), beta=2.0, lagging=["host"]).rows

        assert row.topology == add_stragglers(hosted, ["g0", "g1"], beta=2.0)


class TestPlans:
    def test_replanning_wins_half_where_a_detour_does(self):
        """Shards of 1 MB between any two of 3 GPUs take 20 µs, over the slow link 100 µs.

        Re-planned they go round by the third, after its own shard: 40 µs. Today's plan replayed
        takes the 100 µs, so that 60 % are won.
        """
        found = stragglers(
            gathered(mesh(3)),
            beta=5.0,
            lagging=["link"],
            schedule=True,
            formulation="te-ccl-milp",
            time_limit=30,
        )

        [row] = found.rows
        assert found.result.makespan == pytest.approx(20)
        assert row.replayed == pytest.approx(100)
        assert row.result.makespan == pytest.approx(40)
        assert row.wins == pytest.approx(0.6)
        verify(row.problem, row.result.plan)
        assert found.words == (
            "What hurts most when it lags is a link (50 GB/s), such as g0 – g1: today's plan takes "
            "100 µs in place of 20 µs, and re-planning wins 60 % of it."
        )

    def test_replanning_never_loses_as_todays_plan_is_one_too(self):
        """A plan found in no time may be worse; then nothing is won."""
        study = LagStudy(gathered(ring(4)), beta=3.0, lagging=["link"], schedule=True)

        [row] = study.rows()
        worse = replace(row, replayed=row.result.makespan / 2)

        assert worse.replanned == worse.replayed
        assert worse.wins == 0


class TestReplay:
    def test_a_pipeline_waits_for_its_slow_link(self):
        """A chunk of 1 MB crosses 20 + 60 + 20 µs, the next follows 60 µs later on the slow link.

        The first is at the end after 100 µs, the second after 160 µs.
        """
        problem = Problem(line(4), broadcast(4, 2 * MB, chunks=2))
        today = solve(problem, "te-ccl-milp", time_limit=20)
        slow = add_stragglers(problem.topology, [("g1", "g2"), ("g2", "g1")], beta=3.0)

        assert today.makespan == pytest.approx(80)
        assert replayed(today, replace(problem, topology=slow)) == pytest.approx(160)

    def test_epochs_grow_with_what_is_slowest_and_are_forgotten_again(self):
        problem = gathered(ring(3, alpha=0.5))
        today = solve(problem, "te-ccl-milp", time_limit=20)
        slow = add_stragglers(problem.topology, [("g0", "g1")], alpha=7.0, beta=2.0)

        plan = slower(today.plan, problem.topology, slow)

        assert plan.epoch_duration == pytest.approx(7 * today.plan.epoch_duration)
        assert replayed(today, replace(problem, topology=slow)) < plan.duration / 2

    @pytest.mark.parametrize("name", ["star:gpus=4", "dgx-1v", "ndv2:hosts=2"])
    def test_every_plan_of_every_straggler_is_one(self, name):
        """The stretched plan is verified on the slowed cluster, whatever lags by however much."""
        problem = gathered(open_cluster(name))
        today = solve(problem, "ring")
        for row in LagStudy(problem, alpha=3.0, beta=1.7).rows():
            assert today.makespan - 1e-9 <= replayed(today, row.problem)
            assert replayed(today, row.problem) <= 3.0 * today.makespan + 1e-9

    def test_limits_hold_on(self):
        """Both links out of g0 share 50 GB/s; a plan takes at most as much longer as one lags."""
        limits = (SharedLimit("port", (("g0", "g1"), ("g0", "g2")), 50.0),)
        problem = Problem(replace(mesh(3), limits=limits), all_gather(3, 3 * MB))
        today = solve(problem, "te-ccl-milp", time_limit=20)

        slow = replace(problem, topology=add_stragglers(problem.topology, [("g0", "g1")], beta=2.0))

        took = replayed(today, slow)
        assert today.makespan * (1 - 1e-9) <= took <= 2 * today.makespan * (1 + 1e-9)


class TestRefusals:
    @pytest.mark.parametrize("beta", [0.0, -1.0, math.inf])
    def test_factors_are_positive(self, beta):
        with pytest.raises(ProblemError, match=f"beta times {beta}; give a positive one"):
            stragglers(gathered(ring(3)), beta=beta)

    def test_windows_have_no_steady_state(self):
        problem = replace(gathered(ring(3)), windows=(Window((("g0", "g1"),), 0, 5, 0.5),))

        with pytest.raises(ProblemError, match="leave out its windows"):
            stragglers(problem)


def test_rows_come_one_by_one():
    study = LagStudy(gathered(open_cluster("dgx-1v")), beta=2.0)

    first = list(islice(study.rows(), 2))

    assert study.so_far(first).rows == tuple(first)
    assert len(first) < len(study.parts)
