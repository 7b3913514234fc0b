"""Gathering bounds: by hand, as linear programs have them, at any size, and never above a plan."""

import numpy as np
import pytest

from ccl.collective import make_collective
from ccl.errors import CclError
from ccl.problem import Problem
from ccl.topology import Topology, device, duplex
from formulations import solve
from formulations.bounds import common_cuts, initial_bounds, timed_bounds
from formulations.bounds.cut_times import chosen_cuts, cut_time_bounds
from formulations.bounds.cuts import Network
from formulations.bounds.gathering import gathering_bounds
from gallery import open_cluster
from tests.formulations.random_problems import draw


def gathered(problem: Problem, *, proved: float = 0.01) -> float:
    """Return what is proved, 0 if no more than is known."""
    network = Network(problem)
    cuts = chosen_cuts(network, common_cuts(network))
    found = gathering_bounds(network, cuts, proved=proved, seconds=20)
    return max((each.makespan for each in found), default=0.0)


def asked(cluster: str, kind: str, size: float) -> Problem:
    topology = open_cluster(cluster)
    return Problem(topology, make_collective(kind, len(topology.ranks), size))


def test_a_switch_that_cannot_add_brings_one_contribution_after_the_other():
    """8 GPUs, 50 GB/s and 1.4 µs from one to another, and S bytes of each.

    A GPU waits 1.4 µs, then has one of the other seven contributions in each S / 50 kB µs, and from
    2.8 µs on all of them, as they may have been added up elsewhere.
    """
    assert gathered(asked("star:gpus=8", "all-reduce", 1e3)) == pytest.approx(1.4 + 7 * 0.02)
    late = 2.8 + (0.4 - 1.4 / 7)
    assert gathered(asked("star:gpus=8", "all-reduce", 20e3)) == pytest.approx(late)


def test_switches_that_add_bring_all_at_once():
    together = gathered(asked("dgx-h100:reduces=true,copies=true", "all-reduce", 1e3))
    assert together < 0.703 < gathered(asked("dgx-h100", "all-reduce", 1e3))


def test_what_a_host_takes_in_is_added_up_before_or_spread_after():
    """Two hosts of GPUs a, b and c, d, joined by a switch; 1 µs inside a host, 4 µs between.

    1 kB of each crosses at 1 GB/s. Until 1 µs a link carries one contribution of two, and in the
    last 1 µs it serves one GPU of two: so of the four pairs one may wait for 4 µs alone, two for
    5 µs and one for 6 µs. On two links, 2 (T - 4 + 2 (T - 5)) / 4 = 1 where T is less than 6.
    """
    gpus = "abcd"
    devices = (
        *(device("gpu", name, host=f"h{name in 'cd'}") for name in gpus),
        device("switch", "s"),
    )
    near = [duplex(*pair, bandwidth=1000.0, alpha=1.0) for pair in ("ab", "cd")]
    far = [duplex(name, "s", bandwidth=1.0, alpha=2.0) for name in gpus]
    links = tuple(link for each in (*near, *far) for link in each)
    problem = Problem(Topology("hosts", devices, links), make_collective("all-reduce", 4, 1e3))
    assert gathered(problem) == pytest.approx(16 / 3)
    assert solve(problem, "auto", time_limit=5).makespan >= 16 / 3


@pytest.mark.parametrize(
    ("cluster", "size"), [("mi250", 256e3), ("dgx-h100:hosts=2", 1e6), ("dgx-a100:hosts=2", 64e3)]
)
def test_no_weights_are_better_where_gpus_look_alike(cluster, size):
    """The linear program finds the best weights."""
    problem = asked(cluster, "all-reduce", size)
    network = Network(problem)
    cuts = chosen_cuts(network, common_cuts(network))
    program = cut_time_bounds(network, cuts, proved=1.0, seconds=20)
    assert gathered(problem) == pytest.approx(program[0].makespan, rel=1e-4)


def test_hundreds_of_gpus():
    """64 hosts of 8 GPUs: to a host 8 x 50 GB/s bring one contribution of 1 KB, then sums of 8.

    1 KB takes 0.02 µs on a link, and from GPU to GPU it is 3.3 µs, in a host 0.7 µs. In the first
    0.7 µs come 35 x 8 of 504; the rest follows within 28 / 8 x 0.02 µs, half a link for each GPU.
    """
    problem = asked("dgx-h100:hosts=64", "all-reduce", 1e3)
    known = initial_bounds(problem, quick=True, whole_chunks=False)
    assert known[0].makespan < 3.4
    found = timed_bounds(problem, known=known, seconds=5)
    assert max(each.makespan for each in found) == pytest.approx(3.925, abs=0.01)


def test_broadcasts_are_read_backwards():
    """What one GPU sends to a switch goes to one GPU after the other, or is passed on by those."""
    problem = asked("star:gpus=8", "broadcast", 1e3)
    assert gathered(problem) == pytest.approx(1.4 + 7 * 0.02)
    network = Network(problem)
    for inside in common_cuts(network):
        for bound in gathering_bounds(network, [inside], proved=0.01, seconds=20):
            assert "sums" not in bound.reference


def test_without_latencies_there_is_nothing_to_prove():
    assert gathered(asked("te-ccl-1", "all-reduce", 1e6)) == 0.0


@pytest.mark.parametrize("begin", range(0, 200, 40))
def test_no_plan_is_faster(begin):
    """Of problems drawn by chance, from nothing known, so that these bounds prove all."""
    checked = 0
    for seed in range(begin, begin + 40):
        problem = draw(seed)
        if problem is None or not np.any([link.alpha for link in problem.topology.links]):
            continue
        try:
            plan = solve(problem, "list", options={"passes": 4})
        except CclError:
            continue
        bound = gathered(problem)
        checked += bound > 0
        assert bound <= plan.makespan * (1 + 1e-9)
    assert checked > 3
