"""What bandwidth of a class of links is worth: re-solved, one side at a time."""

import numpy as np
import pytest

from ccl.collective import make_collective
from ccl.problem import Problem
from ccl.topology import SharedLimit, Topology, device, duplex
from formulations.analyses.sensitivity.changes import ProgramRates, changes, changes_by
from formulations.analyses.sensitivity.cutting_planes import classes_of, link_classes
from formulations.engines.orbit_lp.group import Uniform
from formulations.engines.orbit_lp.lp import solve_orbits
from gallery import open_cluster


def asked(cluster: str, kind: str) -> Problem:
    topology = open_cluster(cluster)
    return Problem(topology, make_collective(kind, len(topology.ranks), 1e9))


@pytest.mark.parametrize("by_program", [False, True])
def test_two_hosts_on_rails_are_held_down_by_what_a_gpu_takes_in(by_program):
    """All but one GPU hold 15 shards, which enter over 300 + 25 GB/s: 300/325 and 25/325."""
    problem = asked("dgx-a100:hosts=2,fabric=rail-only", "all-gather")
    uniform = Uniform(problem.topology, "all-gather", 1e9)
    program = ProgramRates(uniform, classes_of(problem.topology))

    nvlink, port = changes_by(program) if by_program else changes(problem)

    assert nvlink.more == pytest.approx(0.01 * 300 / 325, rel=1e-6)
    assert nvlink.less == pytest.approx(-0.01 * 300 / 325, rel=1e-6)
    assert port.more == pytest.approx(0.01 * 25 / 325, rel=1e-5)
    assert [nvlink.price, port.price] == pytest.approx([300 / 325, 25 / 325])
    assert nvlink.words == "NVLink 3 at 300 GB/s"
    assert len(nvlink.links) == len(port.links) == 32


def test_three_hosts_and_more_are_held_down_by_their_ports():
    nvlink = {
        each.words: (each.more, each.less, each.price)
        for each in changes(asked("dgx-a100:hosts=3,fabric=rail-only", "all-gather"))
    }
    assert nvlink["InfiniBand HDR at 25 GB/s"] == pytest.approx((0.01, -0.01, 1.0))
    assert nvlink["NVLink 3 at 300 GB/s"] == pytest.approx((0.0, 0.0, 0.0))


def test_a_price_is_no_promise():
    """Each GPU of an NDv2 box takes in 150 GB/s, 50 of them over one class of links.

    Less of one class slows the GPUs it ends at by a third of that; more helps nobody, since other
    GPUs are as full. A dual has to be put somewhere and says a third for two classes.
    """
    problem = asked("ndv2:hosts=1", "all-gather")
    rows = changes(problem, classes=link_classes(problem.topology, by="orbit"))

    assert max(each.more for each in rows) == pytest.approx(0.0, abs=1e-12)
    assert min(each.less for each in rows) == pytest.approx(-0.01 / 3, rel=1e-9)
    assert any(each.price == pytest.approx(1 / 3) for each in rows)


def test_links_in_a_row_help_only_together():
    """A port and its way to the PCIe switch are equally full in an all-to-all over two hosts."""
    rows = changes(asked("pcie-server:hosts=2,nvlink=true", "all-to-all"))
    first, second = rows[:2]

    assert {first.words, second.words} == {
        "PCIe 4 at 25 GB/s", "InfiniBand HDR at 25 GB/s"
    }  # fmt: skip
    for each in (first, second):
        assert each.more == pytest.approx(0.0, abs=1e-7)
        assert each.less == pytest.approx(-0.01, rel=1e-5)
    together = np.array([each.bandwidth == 25.0 for each in open_links()])
    both = changes(
        asked("pcie-server:hosts=2,nvlink=true", "all-to-all"), classes=together.astype(int)
    )
    assert both[0].more == pytest.approx(0.01, rel=1e-5)


def open_links():
    return open_cluster("pcie-server:hosts=2,nvlink=true").links


def test_shared_limits_have_effects_too():
    """Two GPUs exchange over 50 GB/s each way, and 60 together: the limit holds them down."""
    both = duplex("g0", "g1", bandwidth=50.0)
    bus = SharedLimit("bus", tuple(each.ends for each in both), 60.0)
    topology = Topology("pair", (device("gpu", "g0"), device("gpu", "g1")), both, (bus,))

    limit, links = changes(Problem(topology, make_collective("all-to-all", 2, 1e9)))

    assert limit.words == "shared limit bus at 60 GB/s"
    assert (limit.more, limit.less, limit.price) == pytest.approx((0.01, -0.01, 1.0))
    assert (links.more, links.less) == pytest.approx((0.0, 0.0), abs=1e-9)


def test_one_direction_alone_is_left_to_the_program():
    """Rails of 4 hosts with only the way up changed: a rail gives out more than it takes in.

    What 8 ports send at 1 % less is 24 GB at 8 x 24.75: 1 % slower, where cuts still say 0.12 s.
    """
    problem = asked("dgx-a100:hosts=4,fabric=rail-only", "all-gather")
    up = np.array([each.dst.startswith("rail") for each in problem.topology.links]).astype(int)

    rows = {each.links[0][1][:4]: each for each in changes(problem, classes=up)}

    assert rows["rail"].less == pytest.approx(-0.01, rel=1e-5)
    assert rows["rail"].more == pytest.approx(0.0, abs=1e-7)


def test_classes_hold_both_directions():
    topology = open_cluster("ndv2:hosts=2")
    for by in ("kind", "orbit"):
        number = link_classes(topology, by=by)
        for link, mine in zip(topology.links, number.tolist(), strict=True):
            back = topology.link_index.get((link.dst, link.src))
            assert back is None or number[back] == mine


def test_prices_of_the_program_add_up_to_one():
    found = solve_orbits(Uniform(open_cluster("ndv2"), "all-to-all", 1e9))

    assert found.prices.sum() == pytest.approx(1.0)
