"""Derivatives of the best rate agree with clusters that really have other bandwidths."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import hypothesis
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import formulations
from ccl.collective import Chunk, Collective, make_collective
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.topology import SharedLimit, Topology, device, duplex
from formulations.analyses.best_rate import optimum
from formulations.analyses.sensitivity.changes import BestRates, ProgramRates, TreeRates
from formulations.analyses.sensitivity.cutting_planes import (
    Plane,
    Rates,
    Undecided,
    classes_of,
    link_classes,
)
from formulations.analyses.sensitivity.sensitivity import Slopes, described
from gallery import open_cluster

STEP = Fraction(1, 1000)


def asked(cluster: str, kind: str = "all-gather") -> Problem:
    topology = open_cluster(cluster)
    return Problem(topology, make_collective(kind, len(topology.ranks), 1e9))


def slope(problem: Problem, effects, by: Fraction) -> float:
    """Return what `by` more bandwidth of some classes gives, drawn and solved anew, per `by`."""
    links = {ends for each in effects if not each.limits for ends in each.links}
    names = {name for each in effects for name in each.limits}
    topology = problem.topology
    other = replace(
        topology,
        links=tuple(
            replace(each, bandwidth=float(Fraction(each.bandwidth) * (1 + by)))
            if each.ends in links
            else each
            for each in topology.links
        ),
        limits=tuple(
            replace(each, bandwidth=float(Fraction(each.bandwidth) * (1 + by)))
            if each.name in names
            else each
            for each in topology.limits
        ),
    )
    now, then = (optimum(replace(problem, topology=each)) for each in (topology, other))
    if now.fraction is not None and then.fraction is not None:
        return float((then.fraction / now.fraction - 1) / by)
    return (then.algbw / now.algbw - 1) / float(by)


CASES = [
    (cluster, kind)
    for cluster in ("dgx-a100:hosts=2", "dgx-a100:hosts=4", "mi250:hosts=2", "ndv2:hosts=2")
    for kind in ("all-gather", "all-to-all", "all-reduce")
    if (cluster, kind) != ("mi250:hosts=2", "all-reduce")
]
CASES += [("dgx-a100:hosts=8", "all-gather"), ("dgx-a100:hosts=16", "all-gather")]
LARGE = [
    *(("dgx-a100:hosts=16", kind) for kind in ("all-to-all", "all-reduce")),
    *((cluster, "broadcast") for cluster in ("mi250:hosts=2", "ndv2:hosts=2")),
    ("mi250:hosts=2", "all-reduce"),
]


@pytest.mark.parametrize(("cluster", "kind"), CASES)
@pytest.mark.cover(4)
def test_derivatives_are_differences(cluster, kind):
    """The best rate is straight between kinks: a difference of 0.1 % is the derivative exactly."""
    agrees(asked(cluster, kind))


@pytest.mark.slow
@pytest.mark.parametrize(("cluster", "kind"), LARGE)
@pytest.mark.cover(1)
def test_derivatives_are_differences_on_more(cluster, kind):
    """As above."""
    agrees(asked(cluster, kind))


@pytest.mark.parametrize(
    ("cluster", "kind", "by"),
    [
        ("ndv2:hosts=1", "all-gather", "orbit"),  # seven cuts are tied
        ("pcie-server:hosts=2,nvlink=true", "all-to-all", "kind"),  # two classes in a row
        ("pcie-server:hosts=2", "all-to-all", "kind"),  # shared limits hold it down
        ("thesis-2.3", "all-gather", "kind"),  # so they do with a memory that copies
    ],
)
def test_derivatives_are_differences_where_much_is_tied(cluster, kind, by):
    """On a kink the two sides differ, and so do the two differences."""
    agrees(asked(cluster, kind), by=by)


def agrees(problem: Problem, **how):
    found = formulations.sensitivity(problem, **how)

    assert sum(each.price for each in found.effects) == pytest.approx(1.0)
    for each in found.effects:
        assert float(each.more) == pytest.approx(slope(problem, [each], STEP), abs=1e-6)
        assert float(each.less) == pytest.approx(slope(problem, [each], -STEP), abs=1e-6)
        assert each.more - 1e-9 <= each.price <= each.less + 1e-9
    for several in found.together:
        members = [found.effects[i] for i in several.effects]
        assert float(several.more) == pytest.approx(slope(problem, members, STEP), abs=1e-6)


@st.composite
def networks(draw):
    """Cables between a few GPUs, of few bandwidths, so that much is tied."""
    many = draw(st.integers(2, 5))
    pairs = list(combinations(range(many), 2))
    chosen = [pair for pair in pairs if draw(st.booleans()) or pair[1] == pair[0] + 1]
    rates = {pair: draw(st.sampled_from((1.0, 2.0, 3.0, 5.0))) for pair in chosen}
    links = [
        link
        for (a, b), rate in rates.items()
        for link in duplex(f"g{a}", f"g{b}", bandwidth=rate, medium=f"{draw(st.integers(0, 1))}")
    ]
    gpus = tuple(device("gpu", f"g{i}") for i in range(many))
    return Problem(Topology("net", gpus, tuple(links)), make_collective("all-gather", many, 6e9))


def lines_of(problem: Problem, number: np.ndarray) -> list[list[Fraction]]:
    """Return of every cut there is what each class lets through, as GB/s of algbw."""
    topology, many = problem.topology, len(problem.topology.ranks)
    found = []
    for size in range(1, many):
        for inside in combinations(topology.ranks, size):
            line = [Fraction(0)] * (int(number.max()) + 1)
            for link, k in zip(topology.links, number.tolist(), strict=True):
                if link.src in inside and link.dst not in inside:
                    line[k] += Fraction(link.bandwidth) * Fraction(many, size)
            found.append(line)
    return found


@given(networks())
@settings(max_examples=40)
def test_every_cut_agrees(problem):
    """Of all cuts, the tight one that rises least is the derivative: here they are listed."""
    number = link_classes(problem.topology)
    lines = lines_of(problem, number)
    now = min(map(sum, lines))
    tight = [line for line in lines if sum(line) == now]

    slopes = Slopes(BestRates(problem, classes_of(problem.topology, number)))

    assert slopes.now == now
    for k in range(int(number.max()) + 1):
        assert slopes.more((k,))[0] == min(line[k] for line in tight) / now
        assert slopes.less((k,))[0] == max(line[k] for line in tight) / now
    for pair in combinations(range(int(number.max()) + 1), 2):
        assert slopes.more(pair)[0] == min(sum(line[k] for k in pair) for line in tight) / now


@given(networks(), st.integers(0, 7))
@settings(max_examples=40)
def test_a_curve_is_the_lower_envelope_of_every_cut(problem, chosen):
    """A quarter to four times the bandwidth of one cable: no kink of the listed cuts is missed."""
    link = problem.topology.links[chosen % len(problem.topology.links)]
    ends = {link.ends, link.ends[::-1]}
    number = np.array([int(each.ends in ends) for each in problem.topology.links])
    lines = lines_of(problem, number) if not number.all() else []
    hypothesis.assume(lines)

    curve = formulations.rate_curve(problem, ends)

    def best(x: Fraction) -> Fraction:
        return min(a + b * x for a, b in lines)

    assert curve.exact
    met = {(c[0] - d[0]) / (d[1] - c[1]) for c, d in combinations(lines, 2) if c[1] != d[1]}
    kinks = sorted(x for x in met if Fraction(1, 4) < x < 4 and kinked(best, x, met))
    assert [x for x, _ in curve.breaks] == [Fraction(1, 4), *kinks, 4]
    assert all(y == best(x) for x, y in curve.breaks)


def kinked(best, x: Fraction, met: set[Fraction]) -> bool:
    """Whether a function whose kinks are all among `met` has one at x."""
    near = min((abs(x - each) for each in met if each != x), default=Fraction(1)) / 2
    near = min(near, x / 2)
    return best(x - near) + best(x + near) < 2 * best(x)


@pytest.mark.parametrize("kind", [TreeRates, ProgramRates])
def test_all_kinds_of_proof_agree(kind):
    """Cuts, trees and the linear program have one optimum, so one derivative on each side."""
    problem = asked("ndv2:hosts=1")
    classes = classes_of(problem.topology, link_classes(problem.topology, by="orbit"))
    exact, other = Slopes(BestRates(problem, classes)), Slopes(kind(problem, classes))

    assert other.now == pytest.approx(float(exact.now))
    for k in (0, 1, 7):
        assert other.more((k,))[0] == pytest.approx(float(exact.more((k,))[0]), abs=1e-8)
        assert other.less((k,))[0] == pytest.approx(float(exact.less((k,))[0]), abs=1e-8)


def test_two_hosts_follow_what_a_gpu_takes_in():
    """All but one GPU hold 15 of 16 shards, which enter over 300 + 25 GB/s: 325 * 16 / 15."""
    found = formulations.sensitivity(asked("dgx-a100:hosts=2"))
    nvlink, port, uplink = found.effects

    assert found.exact
    assert (nvlink.more, nvlink.less) == (Fraction(12, 13), Fraction(12, 13))
    assert (port.more, port.less) == (Fraction(1, 13), Fraction(1, 13))
    assert nvlink.gain == pytest.approx(16 / 15)
    assert (nvlink.many, nvlink.bandwidth) == (16, 300.0)
    assert not uplink.matters
    assert found.words[0].endswith("the bottleneck cut is 325 GB/s into g0.")
    assert found.words[-1] == "More or a little less of InfiniBand HDR at 50 GB/s changes nothing."


def test_links_in_a_row_help_only_together():
    """A port and its way to the PCIe switch are equally full in an all-to-all over two hosts."""
    found = formulations.sensitivity(asked("pcie-server:hosts=2,nvlink=true", "all-to-all"))
    [both] = found.together

    assert {found.effects[i].words for i in both.effects} == {
        "PCIe 4 at 25 GB/s", "InfiniBand HDR at 25 GB/s"
    }  # fmt: skip
    assert both.more == pytest.approx(1.0)
    assert any(each.startswith("Only together do PCIe 4 at 25 GB/s and") for each in found.words)


def test_three_classes_in_a_row_help_only_all_at_once():
    """A chain of three kinds of cables, each of them a cut that is as full: only all three help."""
    gpus = tuple(device("gpu", f"g{i}") for i in range(4))
    links = tuple(
        link
        for i in range(3)
        for link in duplex(
            f"g{i}", f"g{i + 1}", bandwidth=(15.0, 10.0, 15.0)[i], medium=f"kind {i}"
        )
    )
    problem = Problem(Topology("chain", gpus, links), make_collective("all-gather", 4, 1e9))

    found = formulations.sensitivity(problem)

    # A middle of 10 lets 2 of 4 shards out: 20. Each end of 15 lets 3 in: 15 * 4 / 3 = 20.
    assert found.algbw == 20.0
    assert [each.more for each in found.effects] == [0, 0, 0]
    assert [each.less for each in found.effects] == [1, 1, 1]
    [all_of_them] = found.together
    assert (all_of_them.effects, all_of_them.more) == ((0, 1, 2), 1)


def test_what_is_too_fine_for_cuts_is_left_to_prices():
    """Parts of 10^17 do not fit whole numbers of 64 bits; trees take over, with the right rate."""
    problem = asked("dgx-1v")
    rates = BestRates(problem, classes_of(problem.topology))
    scales = (1 + Fraction(1, 10**17 + 3), *[Fraction(1)] * (rates.classes.many - 1))

    assert rates.exact
    assert float(rates.value(scales)) == pytest.approx(1200 / 7, rel=1e-9)
    assert not rates.exact


def test_a_limit_that_does_not_bind_may_come_to():
    """Two links of 50 under a limit of 100: more of the links alone gives nothing."""
    both = duplex("g0", "g1", bandwidth=50.0)
    bus = SharedLimit("bus", tuple(each.ends for each in both), 100.0)
    topology = Topology("pair", (device("gpu", "g0"), device("gpu", "g1")), both, (bus,))

    found = formulations.sensitivity(Problem(topology, make_collective("all-gather", 2, 1e9)))

    assert [float(each.more) for each in found.effects] == pytest.approx([0.0, 0.0], abs=1e-9)
    assert [float(each.less) for each in found.effects] == pytest.approx([1.0, 1.0])
    assert [float(each.more) for each in found.together] == pytest.approx([1.0])


def test_custom_data_that_no_fluid_holds_is_refused():
    topology = open_cluster("dgx-1v")
    chunk = Chunk(1e6, (0, 1), (2,), reduced=False)
    problem = Problem(topology, Collective("custom", 8, 1e6, (chunk,)))

    with pytest.raises(ProblemError, match="no fluid optimum of custom"):
        formulations.sensitivity(problem)


def test_derivatives_of_another_rate_than_the_best_are_refused():
    """Where trees are not proved in time the program may only bound the rate."""
    problem = asked("dgx-1v")
    best = optimum(problem)
    rates = BestRates(problem, classes_of(problem.topology))

    with pytest.raises(ProblemError, match="only bounds their rate"):
        described(problem, replace(best, algbw=0.9 * best.algbw), rates)


class Today(Rates):
    """Knows today's rate alone."""

    exact = True

    def __init__(self, _problem, classes):
        super().__init__(classes)

    def _found(self, scales):
        if any(each != 1 for each in scales):
            raise Undecided
        return (Plane((Fraction(1),) * self.classes.many),)


class Doubled(Today):
    """Says twice as much."""

    def _found(self, scales):
        return (Plane((Fraction(2),) * self.classes.many),)


def test_a_proof_that_takes_over_must_agree(monkeypatch):
    problem = asked("dgx-1v")
    monkeypatch.setattr(
        "formulations.analyses.sensitivity.changes._kinds", lambda *_: iter((Today, Doubled))
    )
    rates = BestRates(problem, classes_of(problem.topology))

    assert rates.value((1,) * rates.classes.many) == rates.classes.many
    with pytest.raises(ProblemError, match="only bounds their rate"):
        rates.at((2,) * rates.classes.many)
