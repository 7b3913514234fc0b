"""The best rate over the bandwidth of some links, against figures by hand and rates found anew."""

from dataclasses import replace
from fractions import Fraction

import pytest

import formulations
from ccl.collective import make_collective
from ccl.errors import ProblemError
from ccl.problem import Problem
from formulations.analyses.best_rate import optimum
from gallery import open_cluster


def asked(cluster: str, kind: str = "all-gather") -> Problem:
    topology = open_cluster(cluster)
    return Problem(topology, make_collective(kind, len(topology.ranks), 1e9))


def rate(problem: Problem, ends, factor: float) -> float:
    """Return the best algbw of the cluster drawn with another bandwidth of some links."""
    links = tuple(
        replace(each, bandwidth=each.bandwidth * factor) if each.ends in ends else each
        for each in problem.topology.links
    )
    return optimum(replace(problem, topology=replace(problem.topology, links=links))).algbw


def of_medium(problem: Problem, medium: str) -> set[tuple[str, str]]:
    return {each.ends for each in problem.topology.links if each.medium == medium}


def test_two_hosts_gain_from_nvlink_until_their_ports_are_full():
    """A GPU takes 15 of 16 shards in over 300 x + 25: algbw 320 x + 80/3.

    8 shards leave a host over 8 ports of 25: 400, which is met at x = 7/6.
    """
    problem = asked("dgx-a100:hosts=2")
    curve = formulations.rate_curve(problem, of_medium(problem, "NVLink 3"))

    assert curve.exact
    assert curve.words == "NVLink 3 at 300 GB/s"
    assert [x for x, _ in curve.breaks] == [Fraction(1, 4), Fraction(7, 6), 4]
    assert [y for _, y in curve.breaks] == [Fraction(320, 3), 400, 400]
    assert [each.constant for each in curve.pieces] == [Fraction(80, 3), 400]
    assert [each.slope for each in curve.pieces] == [320, 0]
    assert [each.cut.bandwidth for each in curve.pieces if each.cut] == [325.0, 200.0]


@pytest.mark.parametrize(
    ("cluster", "kind", "medium"),
    [
        ("mi250:hosts=2", "all-gather", "InfiniBand"),
        ("dgx-a100:hosts=2", "all-reduce", "NVLink 3"),
        ("dragonfly", "all-to-all", "network"),
        ("pcie-server", "all-gather", "PCIe 4"),
    ],
)
def test_a_curve_is_what_clusters_drawn_anew_have(cluster, kind, medium):
    problem = asked(cluster, kind)
    ends = of_medium(problem, medium)
    curve = formulations.rate_curve(problem, ends, low=0.5, high=3.0)

    slopes = [float(each.slope) for each in curve.pieces]
    assert slopes == sorted(slopes, reverse=True)
    assert len(slopes) > 1
    for factor in (0.5, 0.71, 0.93, 1.0, 1.19, 1.57, 2.3, 3.0):
        assert float(curve.at(factor)) == pytest.approx(rate(problem, ends, factor), rel=1e-8)


def test_shared_limits_have_curves():
    """Twice the memory bus of a host helps its all-to-all until its PCIe links are full."""
    problem = asked("pcie-server:hosts=2", "all-to-all")
    names = [each.name for each in problem.topology.limits]

    curve = formulations.rate_curve(problem, (), limits=names)

    assert curve.limits == tuple(names)
    assert curve.words == "shared limit memory bus 0 and 1 alike at 204.8 GB/s"
    assert curve.pieces[0].constant == pytest.approx(0.0, abs=1e-9)
    assert curve.pieces[-1].slope == pytest.approx(0.0, abs=1e-9)


def test_wrong_questions_are_refused():
    problem = asked("dgx-1v")

    with pytest.raises(ProblemError, match="give 0 < low < high"):
        formulations.rate_curve(problem, [("g0", "g1")], low=2.0, high=1.0)
    with pytest.raises(ProblemError, match="has no link g0->g9"):
        formulations.rate_curve(problem, [("g0", "g9")])
    with pytest.raises(ProblemError, match="no link of DGX-1V is named"):
        formulations.rate_curve(problem, [])
    with pytest.raises(ProblemError, match="has no shared limit bus"):
        formulations.rate_curve(problem, [], limits=["bus"])
    with pytest.raises(ProblemError, match="not to 9; ask for a wider one"):
        formulations.rate_curve(problem, [("g0", "g1")]).at(9)
