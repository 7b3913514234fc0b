"""TE-CCL's general model beginning with a given plan, and how it finds its horizon."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ccl.collective import make_collective
from ccl.errors import Infeasible, LimitReached, ProblemError, ScheduleError
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.result import Stop
from formulations import solve, start
from formulations.engines.epoch_grid.arcs import link_arcs
from formulations.engines.epoch_grid.epochs import EpochGrid
from formulations.engines.epoch_grid.plans import demand
from formulations.engines.te_ccl.chunk_search import Horizons
from formulations.engines.te_ccl.greedy import greedy, onto
from formulations.models.te_ccl_milp import Options
from gallery import open_cluster


def problem(cluster: str, kind: str, *, size: float = 1e6, chunks: int = 1) -> Problem:
    topology = open_cluster(cluster)
    return Problem(topology, make_collective(kind, len(topology.ranks), size, chunks=chunks))


HARD = {"epoch": "fastest", "objective": "early-arrivals", "greedy_start": False}


@pytest.mark.slow
def test_a_plan_given_is_kept_where_the_time_is_too_short_to_find_another():
    """On the fastest grid of NDv2 x 2 HiGHS finds nothing in 100 s from nothing."""
    asked = problem("ndv2:hosts=2", "all-gather", size=64e6)
    given = solve(asked, "te-ccl-milp", options={"epoch": "fastest"}, time_limit=0.01).plan

    with pytest.raises(LimitReached):
        solve(asked, "te-ccl-milp", options=HARD, time_limit=3)
    result = solve(asked, "te-ccl-milp", options=HARD, time_limit=3, begin_with=given)

    assert any("the plan given sets the horizon" in line for line in result.log)
    assert result.plan.horizon <= given.horizon


@pytest.mark.slow
def test_the_solver_begins_with_the_plan_given():
    """HiGHS counts the start as a solution at once, so it never ends with less than its reward.

    An arrival counts 1/k at the beginning of every epoch k from its own to the last.
    Allowed to stop at any gap, HiGHS stops with less when it has no start.
    """
    asked = problem("dgx-1v", "all-gather", chunks=2)
    options = {"epoch": "slowest", "objective": "early-arrivals", "horizon": 9}
    given = solve(asked, "te-ccl-milp", options=options, time_limit=60).plan
    grid = EpochGrid(asked.topology, asked.collective.chunk_size, given.epoch_duration)
    link = asked.topology.link_index
    arrivals = [send.epoch + grid.delay[link[send.src, send.dst]] for send in given.sends]
    reward = sum(1 / k for first in arrivals for k in range(first, 9 + 1))

    def ended(**more):
        loose = {**options, "model_gap": 1000.0, "greedy_start": False}
        result = solve(asked, "te-ccl-milp", options=loose, time_limit=60, **more)
        [line] = [each for each in result.log if "the objective is" in each]
        return float(re.findall(r"is ([0-9.]+)", line)[0])

    assert ended() < reward
    assert ended(begin_with=given) >= reward - 1e-3


def test_a_job_begins_with_a_plan_as_well():
    asked = problem("star:gpus=4", "all-gather")
    given = solve(asked, "te-ccl-milp", options={"epoch": "slowest"}).plan
    options = {"epoch": "slowest", "greedy_start": False}

    result = start(asked, "te-ccl-milp", options=options, begin_with=given).result()

    assert result.makespan == pytest.approx(21.4)
    assert any("the plan given" in line for line in result.log)


@pytest.mark.parametrize(
    "cluster", ["dgx-1v", "star:gpus=5", "star:gpus=5,copies=true", "pcie-server"]
)
def test_a_plan_goes_onto_another_grid(cluster):
    """Each send takes its way anew, as early as the finer or coarser grid lets it."""
    asked = problem(cluster, "all-gather")
    given = solve(asked, "te-ccl-milp", options={"epoch": "slowest"}, time_limit=2).plan

    for factor in (0.4, 1.0, 3.0):
        tau = given.epoch_duration * factor
        hops = link_arcs(EpochGrid(asked.topology, asked.collective.chunk_size, tau))
        moved = onto(given, hops, demand(asked))
        assert moved.epoch_duration == pytest.approx(tau)
        options = {"epoch_duration": tau, "greedy_start": False}
        again = solve(asked, "te-ccl-milp", options=options, time_limit=2, begin_with=moved)
        assert again.epochs <= moved.horizon


def test_a_plan_that_breaks_a_rule_is_not_begun_with():
    asked = problem("dgx-1v", "all-gather")
    given = solve(asked, "te-ccl-milp", options={"epoch": "slowest"}).plan

    with pytest.raises(ScheduleError, match="needs it"):
        solve(asked, "te-ccl-milp", begin_with=replace(given, sends=given.sends[:-1]))


def test_a_formulation_that_cannot_begin_with_a_plan_says_which_can():
    asked = problem("ring:gpus=4", "all-gather")
    given = solve(asked, "ring").plan

    with pytest.raises(ProblemError, match=r"ring cannot begin .* choose from .*te-ccl-milp"):
        solve(asked, "ring", begin_with=given)


def test_a_reduction_keeps_the_plan_given_until_a_better_one_is_found():
    asked = problem("star:gpus=4", "reduce-scatter")
    given = solve(asked, "te-ccl-milp").plan

    result = solve(asked, "te-ccl-milp", begin_with=given)

    assert any("sums are found backwards" in line for line in result.log)


@pytest.mark.parametrize("by", ["greedy", "bisection", "algorithm-1"])
def test_every_way_to_a_horizon_ends_at_the_smallest(by):
    """Three chunks leave the root of a star, one an epoch of 5 µs, the last in epoch 2.

    Each takes 5.7 µs, 2 epochs, over each of two links, so 6 epochs do and 5 do not.
    """
    asked = problem("star:gpus=4", "scatter")
    options = {"epoch": "slowest", "greedy_start": False, "horizon_by": by, "horizon": 9}

    result = solve(asked, "te-ccl-milp", options=options, time_limit=30)

    if by != "algorithm-1":
        assert result.epochs == 6
    told = [line for line in result.log if line.startswith("5 epochs of 5 µs")]
    assert told == ["5 epochs of 5 µs: no schedule exists"]
    assert any(re.match(r"\d+ epochs of 5 µs: a schedule of 6", line) for line in result.log)


class Oracle:
    """Stands for the models of one grid: horizons from `smallest` on have a plan of all epochs."""

    def __init__(self, least: int, smallest: int) -> None:
        self.least, self.smallest = least, smallest
        self.asked: list[int] = []
        grid = SimpleNamespace(epoch_duration=5.0)
        self.hops = SimpleNamespace(grid=grid)
        self.run = SimpleNamespace(
            enough=False,
            expired=False,
            problem=SimpleNamespace(windows=()),
            note=lambda _: None,
            offer=lambda *_, **__: False,
        )

    def solve(self, horizon: int, *, start: Schedule | None) -> Schedule:
        assert start is None or start.horizon <= horizon
        self.asked.append(horizon)
        if horizon < self.smallest:
            raise Infeasible
        return Schedule((), 5.0, horizon)


@pytest.mark.parametrize("smallest", [3, 4, 17, 30])
def test_bisection_halves_what_a_descent_walks(smallest):
    """From a known plan of 30 epochs; below 3 nothing is asked, since latency rules it out.

    A descent asks every horizon down to one below the smallest, unless that is ruled out. Halves
    of the 27 horizons from 3 to 29, and the answer that it is 30, take 5 questions at most.
    """
    walked, halved = Oracle(3, smallest), Oracle(3, smallest)
    options = Options(horizon_by="bisection")

    known = Schedule((), 5.0, 30)
    down = Horizons(walked, replace(options, horizon_by="greedy"), enough=30, known=known)
    halves = Horizons(halved, options, enough=30, known=known)

    assert down.search() is halves.search() is Stop.MODEL_OPTIMAL
    assert down.high == halves.high == smallest
    assert walked.asked == list(range(29, max(smallest - 1, 3) - 1, -1))
    assert len(halved.asked) <= 5


@pytest.mark.parametrize("given", [{"epoch_duration": 4.0}, {"horizon": 9}])
def test_algorithm_1_gives_no_plan_on_its_own_epochs_where_epochs_are_given(given):
    """Its long epochs, 4, 8 or 12 of the whole time, answer another question."""
    asked = problem("star:gpus=4", "all-gather")
    options = {"epoch": "slowest", "horizon_by": "algorithm-1", **given}

    result = solve(asked, "te-ccl-milp", options=options, time_limit=30)

    assert result.plan.epoch_duration == pytest.approx(given.get("epoch_duration", 5.0))
    assert any(line.startswith("algorithm 1, ") for line in result.log)


def test_a_first_greedy_schedule_is_given_up_when_no_time_is_left():
    """On 72 GPUs of a dragonfly one went on for minutes beyond a limit of seconds."""
    asked = problem("ring:gpus=4", "all-gather")
    hops = link_arcs(EpochGrid(asked.topology, asked.collective.chunk_size, 10.0))

    assert greedy(hops, demand(asked), left=lambda: 1.0)
    with pytest.raises(LimitReached, match="longer than there is time"):
        greedy(hops, demand(asked), left=lambda: 0.0)


@pytest.mark.parametrize("name", ["te-ccl-milp", "te-ccl-astar", "thesis-steps"])
def test_methods_that_begin_with_one_say_that_the_limit_came(name, monkeypatch):
    monkeypatch.setattr("formulations.core.run.Run.awaited", -1.0)

    with pytest.raises(LimitReached):
        solve(problem("ring:gpus=4", "all-to-all"), name, time_limit=5)
