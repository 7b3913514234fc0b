"""A search yields fronts that grow, ends its processes, and says why in figures."""

from dataclasses import dataclass, replace

import psutil
import pytest

from ccl.errors import FormatError, ProblemError
from formulations.proposals import Candidate, Mix, Request, Use, pareto, propose, read_mix, score
from formulations.proposals.families import closed
from formulations.proposals.search import CHEAPER, REWIRED
from gallery import open_cluster
from gallery.costs import Prices

SMALL = Request(gpus=10, ports=3, seconds=60, cores=1)
"""Ends with the graph of Petersen, whose distances are the least that two-way links allow."""


@pytest.fixture(scope="module")
def fronts():
    return list(propose(SMALL))


def test_a_front_grows_and_ends_with_the_last(fronts):
    many = [len(each.candidates) for each in fronts]

    assert [each.done for each in fronts] == [False] * (len(fronts) - 1) + [True]
    assert many[0] == 1
    assert max(many) == many[-1] >= 2
    for front in fronts:
        times = [each.time for each in front.candidates]
        assert times == sorted(times)


def test_no_candidate_crosses_a_bound(fronts):
    for each in fronts[-1].candidates:
        for axis in ("mix", "all-to-all", "all-gather", "all-reduce"):
            assert each.along(axis) >= fronts[-1].bound(axis) * (1 - 1e-9)


def test_the_best_is_better_than_the_torus_and_says_so(fronts):
    last = fronts[-1]
    best = last.candidates[0]

    assert last.reference.name == "Torus 2x5"
    assert best.along("all-to-all") < last.reference.along("all-to-all")
    ratio = last.reference.along("all-to-all") / best.along("all-to-all")
    assert f"all-to-all {ratio:.2f}".rstrip("0") in last.why(best)
    assert "No network of 3 ports for each GPU moves all-to-all faster" in last.why(best)


def test_networks_that_are_too_large_to_be_rewired_are_named_and_others_stand_instead():
    """500,000 amounts are 353 GPUs of 4 ports; up to there nothing is missing."""
    front = next(propose(Request(gpus=512, ports=4, seconds=1, cores=1)))

    assert len(front.candidates) == 1
    assert "512 GPUs with 4 ports are too many for exact rates, 353 GPUs" in front.not_tried
    assert next(propose(SMALL)).not_tried == ""


def test_one_mix_of_latency_alone_ranks_by_it():
    request = replace(SMALL, mix=Mix((Use("latency", 8e3),)))
    *_, last = propose(request)
    best = last.candidates[0]

    assert best.time == pytest.approx(best.score.alpha + 8e3 * best.score.beta)
    assert best.score.alpha == min(each.score.alpha for each in last.candidates)


@pytest.mark.slow
def test_with_prices_there_is_a_network_whose_cables_cost_less():
    """40 GPUs stand in two racks: it is cheaper than the fastest, and faster than the torus."""
    *_, last = propose(replace(SMALL, gpus=40, ports=4, seconds=6), prices=Prices())
    fastest, cheaper, torus = (
        next(each for each in last.candidates if each.family == family)
        for family in (REWIRED, CHEAPER, "torus")
    )

    assert cheaper.along("dollars") < 0.95 * fastest.along("dollars")
    assert fastest.time <= cheaper.time < torus.time


def test_closing_the_iterator_ends_the_processes():
    search = propose(replace(SMALL, gpus=20, cores=2))
    next(search)
    mine = [
        each
        for each in psutil.Process().children()
        if each.status() != psutil.STATUS_ZOMBIE  # of another test
        and "formulations.proposals" in " ".join(each.cmdline())
    ]
    search.close()

    assert len(mine) == 1
    assert not mine[0].is_running() or mine[0].status() == psutil.STATUS_ZOMBIE


def test_switched_networks_of_hosts_pay_for_oversubscription_in_all_to_all_alone():
    """All-gather enters a host once whatever the spines do; all-to-all crosses them."""
    request = Request(gpus=128, ports=1, radix=16, host="dgx-h100", seconds=60, cores=1)
    *_, last = propose(request)
    found = {each.name: each for each in last.candidates}
    full = found["Leaf and spine 1:1, a rail for each port"]
    few = found["Leaf and spine 4:1, a rail for each port"]

    # Of 127 shards 64 go to the other unit, over a quarter of a port; or 120 leave the host by one.
    assert few.along("all-to-all") == pytest.approx(full.along("all-to-all") * 64 * 4 / 120)
    assert few.along("all-gather") == pytest.approx(full.along("all-gather"))
    assert few.score.switches < full.score.switches


@pytest.mark.slow
def test_every_switched_family_has_as_many_planes_as_a_gpu_has_ports():
    """A port in each plane: rates of one port times the ports, and so are switches and cables."""
    ports = 3
    one, several = (
        {
            (draft.family, made.name.removesuffix(f", {ports} planes")): made
            for draft in closed(Request(gpus=128, ports=each, radix=16, bandwidth=200.0))
            if (made := made_of(draft)) is not None
        }
        for each in (1, ports)
    )
    families = {"fat-tree", "dragonfly", "dragonfly+", "HyperX"}
    assert families <= {family for family, _ in one}
    for key in (key for key in one if key[0] in families):
        plain, planes = (score(each[key], ("all-to-all",), seconds=9) for each in (one, several))
        rate = plain.rates["all-to-all"].algbw
        assert planes.rates["all-to-all"].algbw == pytest.approx(ports * rate), key
        assert (planes.cables, planes.switches) == (ports * plain.cables, ports * plain.switches)


def made_of(draft):
    """Return a network, None where there is none of such a size."""
    try:
        return draft.make()
    except ProblemError:
        return None


@pytest.mark.parametrize("ports", [1, 4])
def test_nothing_but_its_ports_limits_a_gpu_that_stands_alone(ports):
    """All links of what is proposed are as fast as a port, or several of them."""
    for draft in closed(Request(gpus=16, ports=ports, radix=16, bandwidth=200.0)):
        made = made_of(draft)
        assert made is None or {each.bandwidth / each.count for each in made.links} == {200.0}


@dataclass(frozen=True)
class Span:
    typical: float


@dataclass(frozen=True)
class Money:
    network_dollars: Span
    network_watts: Span
    metres: float


def priced(time, dollars):
    topology = open_cluster("ring:gpus=4")
    bill = Money(Span(dollars), Span(1.0), 1.0)
    found = score(topology, ("all-gather",), seconds=1)
    return Candidate(topology=topology, family="ring", score=found, time=time, bill=bill)


def test_a_candidate_is_dominated_by_more_than_a_hundredth_of_a_percent():
    cheap, fast, worse = priced(10.0, 1.0), priced(1.0, 10.0), priced(10.5, 1.0)
    as_good = priced(10.0005, 1.0)

    assert pareto([worse, cheap, fast, as_good], "mix", "dollars") == (fast, cheap, as_good)
    assert pareto([replace(cheap, bill=None), fast], "mix", "dollars") == (fast,)


def test_a_mix_is_read_from_yaml(tmp_path):
    path = tmp_path / "mix.yaml"
    path.write_text(
        "- {collective: all-to-all, size: 64MB, times: 8}\n- {collective: latency, size: 8}\n"
    )

    assert read_mix(path) == Mix((Use("all-to-all", 64e6, 8.0), Use("latency", 8.0)))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([], "a mix is empty"),
        ([{"collective": "all-to-some", "size": "1MB"}], "all-to-some"),
        ([{"collective": "all-gather", "size": "1MB", "times": 0}], "times is 0; give more than 0"),
        ([{"collective": "all-gather", "size": "1 apple"}], "apple"),
    ],
)
def test_what_is_no_mix_is_refused_in_a_sentence(content, words):
    with pytest.raises((FormatError, ProblemError), match=words):
        read_mix(content)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"gpus": 2}, "gpus is 2 GPUs; give 4 to 4,096"),
        ({"ports": 0}, "ports is 0 ports of a GPU"),
        ({"bandwidth": 0.0}, "bandwidth is 0 GB/s; give more than 0 GB/s"),
        ({"ports": 1}, "GPUs with 1 port need switches"),
        ({"host": "dgx-h100"}, "hosts need switches"),
    ],
)
def test_what_cannot_be_proposed_is_refused_in_a_sentence(wrong, words):
    with pytest.raises(ProblemError, match=words):
        replace(SMALL, **wrong)


@pytest.mark.parametrize(
    ("host", "gpus", "words"),
    [
        ("ring", 16, "has no inner switch"),
        ("dgx-h100", 12, "12 GPUs are no whole hosts dgx-h100 of 8"),
    ],
)
def test_a_host_that_does_not_fit_is_refused(host, gpus, words):
    with pytest.raises(ProblemError, match=words):
        next(propose(Request(gpus=gpus, ports=1, radix=64, host=host)))
