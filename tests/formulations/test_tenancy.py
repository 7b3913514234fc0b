"""Several tenants: priorities order them, and how each fares is told. 1 MB takes 20 µs."""

from __future__ import annotations

import pytest

from ccl.collective import Chunk, Tenant, all_reduce, broadcast, custom, tenants
from ccl.problem import Problem, Window
from ccl.timeline import finish_times
from formulations import solve
from formulations.analyses.tenancy import by_priority, tenant_times
from tests.ccl.clusters import MB, line

FAR = custom(3, [Chunk(MB, (0,), (2,))])
NEAR = custom(2, [Chunk(MB, (0,), (1,))])


def crossing(urgent: float) -> Problem:
    """Both leave g0 over one link; far has a second to cross, near counts `urgent` times."""
    jobs = [Tenant("far", FAR, (0, 1, 2)), Tenant("near", NEAR, (0, 1), urgent)]
    return Problem(line(3), tenants(3, jobs))


class TestPriorities:
    """All is done soonest, after 2 epochs of 20 µs, with far first: both end then.

    With near first it ends after 1 epoch and far after 3. Equal tenants so wait 2 + 2 or 1 + 3
    epochs; with near counting five times 5 * 2 + 2 = 12 or 5 * 1 + 3 = 8.
    """

    @pytest.mark.parametrize("objective", ["finish-times", "early-arrivals"])
    def test_let_the_urgent_go_first_though_all_takes_longer(self, objective):
        result = solve(crossing(5.0), "te-ccl-milp", options={"objective": objective})

        assert finish_times(result.problem, result.timeline) == pytest.approx(
            {"far": 60.0, "near": 20.0}
        )

    def test_of_finish_times_are_the_objective(self):
        result = solve(crossing(5.0), "te-ccl-milp", options={"objective": "finish-times"})

        assert (
            "finish-times within 3 epochs: the objective is 8, the solver's bound on it 8"
            in result.log
        )

    def test_of_equal_tenants_keep_the_fewest_epochs(self):
        result = solve(crossing(1.0), "te-ccl-milp", options={"objective": "finish-times"})

        assert result.makespan == pytest.approx(40.0)

    def test_order_amounts_too(self):
        """Bytes of far follow those of near and are passed on in parts: little after 40 µs."""
        result = solve(crossing(5.0), "te-ccl-lp", options={"objective": "early-arrivals"})

        done = finish_times(result.problem, result.timeline)
        assert done["near"] == pytest.approx(20.0)
        assert 40.0 < done["far"] < 43.0

    def test_a_horizon_that_is_given_holds(self):
        options = {"objective": "finish-times", "horizon": 2}

        result = solve(crossing(5.0), "te-ccl-milp", options=options)

        assert result.makespan == pytest.approx(40.0)


class TestChoice:
    def test_is_the_most_direct_that_takes_the_problem(self):
        assert by_priority(crossing(5.0)) == ("te-ccl-milp", {"objective": "finish-times"})

    def test_takes_amounts_where_chunks_differ_in_size(self):
        jobs = [
            Tenant("a", NEAR, (0, 1), 2.0),
            Tenant("b", custom(2, [Chunk(2 * MB, (0,), (1,))]), (0, 1)),
        ]

        found = by_priority(Problem(line(2), tenants(2, jobs)))

        assert found == ("te-ccl-lp", {"objective": "early-arrivals"})

    def test_is_none_for_equal_tenants_and_for_sums(self):
        jobs = [Tenant("a", all_reduce(2, MB), (0, 1), 2.0), Tenant("b", NEAR, (0, 1))]

        assert by_priority(crossing(1.0)) is None
        assert by_priority(Problem(line(2), tenants(2, jobs))) is None


class TestTimes:
    def test_are_told_beside_what_each_needs_alone(self):
        """Alone near takes one hop of 20 µs, far two of them when its chunk stays whole."""
        result = solve(crossing(5.0), "te-ccl-milp", options={"objective": "finish-times"})

        far, near = tenant_times(result)

        assert (far.name, far.priority, far.nbytes) == ("far", 1.0, MB)
        assert [far.finish, far.alone] == pytest.approx([60, 40])
        assert [near.finish, near.alone, near.priority] == pytest.approx([20, 20, 5])

    def test_a_window_delays_a_tenant_and_not_what_it_needs_at_least(self):
        """The link is down for the first 30 µs; 20 µs are needed with all of its bandwidth."""
        jobs = [Tenant("near", NEAR, (0, 1))]
        problem = Problem(line(2), tenants(2, jobs), (Window((("g0", "g1"),), 0, 30, 0),))

        [near] = tenant_times(solve(problem, "te-ccl-milp", options={"epoch_duration": 10.0}))

        assert near.alone == pytest.approx(20)
        assert near.finish == pytest.approx(50)

    def test_who_has_everything_needs_nothing(self):
        chunks = [Chunk(MB, (0,), (1,), tenant="a"), Chunk(MB, (1,), (1,), tenant="b")]

        _, done = tenant_times(solve(Problem(line(2), custom(2, chunks)), "te-ccl-milp"))

        assert (done.finish, done.alone) == (0.0, 0.0)

    def test_of_one_job_without_a_name_nothing_is_told(self):
        assert tenant_times(solve(Problem(line(2), broadcast(2, MB)), "direct")) == ()
