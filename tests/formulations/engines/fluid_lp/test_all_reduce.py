"""The thesis' programs of an all-reduce: subsets of contributions, and a weak relaxation."""

import pytest

from ccl.errors import Infeasible, ProblemError
from ccl.topology import Topology, device, duplex
from formulations.engines.fluid_lp.plain import solve_plain
from tests.formulations.engines.fluid_lp.clusters import around, ask, star
from tests.formulations.engines.fluid_lp.thesis_programs import steps_cost, usage_bound

GB = 1e9
STEP = 1e6
"""µs of a GB at 1 GB/s."""


def joined(*pairs: tuple[int, int], gpus: int = 3) -> Topology:
    """GPUs joined in pairs at 1 GB/s each way."""
    links = [link for a, b in pairs for link in duplex(f"g{a}", f"g{b}", bandwidth=1.0)]
    return Topology("joined", tuple(device("gpu", f"g{i}") for i in range(gpus)), tuple(links))


def fewest(topology: Topology) -> int:
    for steps in range(1, 8):
        try:
            steps_cost(topology, GB, steps=steps, duration=STEP)
        except Infeasible:
            continue
        return steps
    raise AssertionError


def test_three_gpus_joined_all_to_all_need_one_step_and_six_sends():
    """Each sends its data to both others, which add it: 6 sends between GPUs, at 2 a byte."""
    triangle = joined((0, 1), (1, 2), (0, 2))
    assert fewest(triangle) == 1
    assert steps_cost(triangle, GB, steps=1, duration=STEP) == pytest.approx(12 * GB)


def test_with_two_steps_four_sends_are_enough():
    """Theorem 18: 2 n - 2 = 4 downloads: two to one GPU, then the sum to both."""
    triangle = joined((0, 1), (1, 2), (0, 2))
    assert steps_cost(triangle, GB, steps=2, duration=STEP) == pytest.approx(8 * GB)


def test_in_a_row_the_middle_adds_up_and_spreads():
    row = joined((0, 1), (1, 2))
    assert fewest(row) == 2
    assert steps_cost(row, GB, steps=2, duration=STEP) == pytest.approx(8 * GB)


def test_a_switch_that_adds_and_copies_needs_two_steps_and_a_plain_one_three():
    """All up, the sum down. Without, each GPU is sent the two others' data, one after the other."""
    able = around(device("switch", "s", copies=True, reduces=True), 3)
    plain = around(device("switch", "s"), 3)
    assert fewest(able) == 2
    assert fewest(plain) == 3


def test_a_memory_copies_and_does_not_add():
    """Written once by each GPU, read one after the other: 1 + 2 steps; 3 up and 6 down."""
    memory = around(device("memory", "m"), 3)
    assert fewest(memory) == 3
    assert steps_cost(memory, GB, steps=3, duration=STEP) == pytest.approx(9 * GB)


@pytest.mark.parametrize("gpus", [3, 4, 5])
def test_the_first_relaxation_is_weak(gpus):
    """On a star at 1 GB/s each pair flows at once: 1 s. Truth: 2 (n - 1) / n, as two halves say."""
    topology = star(*[1.0] * gpus)
    assert usage_bound(topology, GB) == pytest.approx(1e6)
    both = solve_plain(ask(topology, "all-reduce"))
    assert both.makespan == pytest.approx(1e6 * 2 * (gpus - 1) / gpus, rel=1e-6)


def test_subsets_of_many_gpus_are_refused_in_words():
    with pytest.raises(ProblemError, match="5 GPUs, whose subsets"):
        steps_cost(star(*[1.0] * 5), GB, steps=3, duration=STEP)
