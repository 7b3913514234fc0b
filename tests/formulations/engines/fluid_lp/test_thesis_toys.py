"""Figures 2.3 to 2.7 of the thesis: a memory is neither a switch nor a GPU.

Links carry x = 32 GB/s, the memory y = 96 GB/s, read and written together; a broadcast of 1 GB.
Figures 2.1 and 2.2, about steps, are in `test_thesis_steps`.
"""

from dataclasses import replace

import pytest

from ccl.problem import Problem
from ccl.topology import DeviceKind, Topology, device
from ccl.verify import verify
from formulations import solve
from formulations.engines.fluid_lp.plain import solve_plain
from gallery import open_cluster
from tests.formulations.engines.fluid_lp.clusters import ask


def taken_for(spec: str, kind: DeviceKind) -> Topology:
    """Return a cluster whose memory is a device of another kind."""
    made = open_cluster(spec)
    devices = tuple(
        device(kind, each.name) if each.kind == "memory" else each for each in made.devices
    )
    return replace(made, devices=devices)


def throughput(asked: Problem) -> float:
    """GB/s of a broadcast, by the exact program."""
    return asked.collective.size * 1e-3 / solve_plain(asked, copies="subsets").makespan


@pytest.mark.parametrize(
    ("spec", "kind", "expected"),
    [
        # Three GPUs, each in and out of the memory: y / 6. Copied there, once in, three times out.
        ("thesis-2.3", "switch", 96 / 6),
        ("thesis-2.3", "memory", 96 / 4),
        # The direct link spares two of the six: y / 4, and one of the four: y / 3, which is x.
        ("thesis-2.4", "switch", 96 / 4),
        ("thesis-2.4", "memory", 32.0),
        # The memory need not have the data; who takes it for a GPU waits for its slower link.
        ("thesis-2.7", "memory", 32.0),
        ("thesis-2.7", "gpu", 32 / 2),
    ],
)
def test_memory_beats_what_it_is_taken_for(spec, kind, expected):
    assert throughput(ask(taken_for(spec, kind), "broadcast")) == pytest.approx(expected)


@pytest.mark.parametrize("figure", ["thesis-2.3", "thesis-2.4"])
def test_a_memory_that_does_not_copy_is_the_switch_of_the_figures(figure):
    """The figures ask to leave copying and keeping aside: y / 6 and y / 4."""
    plain = throughput(ask(open_cluster(f"{figure}:copies=false"), "broadcast"))

    assert plain == pytest.approx(throughput(ask(taken_for(figure, "switch"), "broadcast")))
    assert plain == pytest.approx({"thesis-2.3": 96 / 6, "thesis-2.4": 96 / 4}[figure])


def test_narrower_links_in_place_of_the_memory_do_for_the_simple_server():
    """Figure 2.5: a ring at y / 6 says what 2.3 does as a switch."""
    assert throughput(ask(open_cluster("thesis-2.5"), "broadcast")) == pytest.approx(16.0)


def test_narrower_links_are_wrong_once_there_is_another_way():
    """Figure 2.6: a ring at y / 6 with the direct link says 16 where even a switch lets 24 pass."""
    narrowed = throughput(ask(open_cluster("thesis-2.6"), "broadcast"))
    assert narrowed == pytest.approx(16.0)
    assert throughput(ask(taken_for("thesis-2.4", "switch"), "broadcast")) == pytest.approx(24.0)


@pytest.mark.parametrize(("spec", "expected"), [("thesis-2.3", 24.0), ("thesis-2.4", 32.0)])
def test_a_forest_through_memory_reaches_the_optimum(spec, expected):
    asked = ask(open_cluster(spec), "broadcast")
    result = solve(asked, "thesis-fluid")
    verify(asked, result.plan)
    assert 1e6 / result.steady_makespan == pytest.approx(expected, rel=1e-6)
