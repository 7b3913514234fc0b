"""Cut bounds under windows: by hand, and never above a plan."""

import numpy as np
import pytest

from benchmarks.random_problems import random_problem
from ccl.collective import Chunk, custom, make_collective
from ccl.errors import CclError
from ccl.problem import Problem, Window
from ccl.simulate.routes import SlowTimes
from ccl.topology import Link, Topology, device, duplex
from formulations import solve
from formulations.bounds import quick_bounds
from formulations.bounds.under_windows import carried

PAIR = Topology("pair", (device("gpu", "a"), device("gpu", "b")), duplex("a", "b", bandwidth=1.0))


def test_bytes_by_a_time_are_counted_by_shares():
    """Half from 2 to 6 µs, nothing from 4 to 5; a limit of 0.7 of the link leaves half of it."""
    ends = (("a", "b"),)
    windows = (Window(ends, 2, 6, 0.5), Window(ends, 4, 5, 0))
    problem = Problem(PAIR, custom(2, [Chunk(2e3, (0,), (1,))]), windows=windows)
    found = carried(SlowTimes(problem), 0, bandwidth=1.0, most=0.7)
    times = np.array([0, 1, 2, 4, 4.5, 5, 6, 8])
    wanted = [0, 0.7, 1.4, 2.4, 2.4, 2.4, 2.9, 4.3]
    assert found.by(times) == pytest.approx([1e3 * each for each in wanted])


@pytest.mark.parametrize(
    ("window", "makespan"),
    [
        (Window((("a", "b"),), 0, 5, 0.0), 7),  # 5 µs of nothing, then 2 kB at 1 GB/s
        (Window((("a", "b"),), 0, 5, 0.2), 6),  # 1 kB in 5 µs, 1 kB in 1 µs
        (Window((("a", "b"),), 1, 3, 0.5), 3),  # 1 kB, then 1 kB at half
        (Window((("a", "b"),), 9, 12, 0.0), 2),  # too late to matter
        (Window((("b", "a"),), 0, 5, 0.0), 2),  # the other way
    ],
)
def test_one_link_is_met_by_a_plan(window, makespan):
    problem = Problem(PAIR, custom(2, [Chunk(2e3, (0,), (1,))]), windows=(window,))
    assert quick_bounds(problem)[0].makespan == pytest.approx(makespan, rel=1e-8)
    found = solve(problem, "list")
    assert found.makespan == pytest.approx(makespan)
    assert found.status == "optimal"


def test_what_comes_later_and_has_far_to_go_misses_some_of_a_window():
    """Over a relay: 3 µs until the second link is of use, which is dead until 4, and 1 µs after."""
    devices = (device("gpu", "a"), device("nic", "n"), device("gpu", "b"))
    links = (Link("a", "n", 10.0, 3.0), Link("n", "b", 1.0, 1.0), Link("b", "a", 10.0))
    topology = Topology("relay", devices, links)
    problem = Problem(
        topology, custom(2, [Chunk(2e3, (0,), (1,))]), windows=(Window((("n", "b"),), 0, 4, 0),)
    )
    assert quick_bounds(problem)[0].makespan == pytest.approx(4 + 2 + 1, rel=1e-8)


def test_without_windows_nothing_changes():
    problem = Problem(PAIR, make_collective("all-gather", 2, 2e3))
    assert not any("windows" in each.reference for each in quick_bounds(problem))


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_no_plan_is_faster(first):
    checked = 0
    for seed in range(first, first + 100):
        problem = random_problem(seed)
        if not problem.windows:
            continue
        try:
            plan = solve(problem, "list", options={"passes": 4}, time_limit=2)
        except CclError:
            continue
        checked += 1
        assert quick_bounds(problem)[0].makespan <= plan.makespan * (1 + 1e-9)
    assert checked
