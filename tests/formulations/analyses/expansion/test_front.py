"""Cost against speed: corners by hand, lists by brute force, and limits that are told."""

import itertools
from itertools import pairwise

import numpy as np
import pytest

from ccl.collective import make_collective
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.topology import Topology, device, duplex
from formulations import cheapest_upgrade, cost_front
from formulations.analyses.expansion.costs import EVEN, Costs, Price, read_costs
from formulations.analyses.expansion.offers import offers_of
from formulations.analyses.expansion.rates import rates_of
from gallery import open_cluster

NETWORK = read_costs(
    {
        "links": [{"medium": "InfiniBand", "cost": 400}, {"cost": 60}],
        "devices": {"gpu": 1000},
        "currency": "$",
    }
)


def asked(cluster, *kinds):
    topology = open_cluster(cluster) if isinstance(cluster, str) else cluster
    return [Problem(topology, make_collective(each, len(topology.ranks), 1e9)) for each in kinds]


def triangle():
    """Return three GPUs, two of them with a switch between them as well."""
    links = (
        *duplex("a", "b", bandwidth=5, medium="straight"),
        *duplex("b", "c", bandwidth=5, medium="straight"),
        *duplex("a", "s", bandwidth=3, medium="round"),
        *duplex("c", "s", bandwidth=3, medium="round"),
    )
    gpus = tuple(device("gpu", name) for name in "abc")
    return Topology("triangle", (*gpus, device("switch", "s")), links)


def test_a_front_turns_where_the_next_links_become_full():
    """All-gather of two hosts of 8: a GPU takes in 325 f GB/s, a port carries 325 f / 15.

    Ports have 25 GB/s to spare until f = 15/13, so only NVLinks are bought: then 50 GB/s for each
    of 16 GPUs. At f = 3 ports have 65 GB/s and NVLinks 975 - 65 = 910.
    """
    problems = asked("dgx-a100:hosts=2", "all-gather")
    front = cost_front(problems, NETWORK, most=3)

    assert (front.kind, front.complete, front.currency) == ("breaks", True, "$")
    assert front.today == 16 * 1000 + 16 * 300 * 60 + (16 * 25 + 8 * 50) * 400
    assert [each.factor for each in front.points] == pytest.approx([1, 15 / 13, 3])
    assert [each.cost for each in front.points] == pytest.approx(
        [0, 16 * 50 * 60, 16 * (610 * 60 + 40 * 400)]
    )


def test_between_corners_the_front_is_straight_and_they_are_the_cheapest():
    problems = asked("mi250:hosts=1", "all-gather", "all-to-all")
    front = cost_front(problems, EVEN, most=2.5)

    assert len(front.points) > 2
    slopes = []
    for left, right in pairwise(front.points):
        half = cheapest_upgrade(problems, EVEN, target=f"{(left.factor + right.factor) / 2}x")
        assert half.cost == pytest.approx((left.cost + right.cost) / 2, rel=1e-6)
        slopes.append((right.cost - left.cost) / (right.factor - left.factor))
    assert all(before < after * (1 - 1e-6) for before, after in pairwise(slopes))
    for each in front.points:
        assert min(gain.factor for gain in each.gains) == pytest.approx(each.factor, rel=1e-6)


def test_in_steps_the_front_is_what_brute_force_leaves():
    """Every pair of amounts up to twice the speed, and of these what nothing beats."""
    problems = asked(triangle(), "all-gather", "all-to-all")
    costs = Costs(
        links=(Price(cost=5, medium="straight", step=1), Price(cost=3, medium="round", step=2))
    )
    front = cost_front(problems, costs, most=2)
    assert (front.kind, front.complete) == ("steps", True)

    sale = offers_of(problems[0].topology, costs)
    engines = [rates_of(each, sale) for each in problems]
    now = [each.at(np.zeros(2)).algbw for each in engines]
    tried: dict[float, float] = {}
    for units in itertools.product(range(14), range(9)):
        extra = np.array(units) * [each.step for each in sale.goods]
        factor = min(e.at(extra).algbw / before for e, before in zip(engines, now, strict=True))
        cost = round(sale.cost(extra), 6)
        tried[cost] = max(tried.get(cost, 0.0), factor)
    best, left = 0.0, []
    for cost in sorted(tried):
        if tried[cost] > best * (1 + 1e-9):
            best = tried[cost]
            left.append((cost, best))
        if best >= 2 * (1 - 1e-9):
            break

    assert len(left) > 4
    assert [(each.cost, each.factor) for each in front.points] == [
        pytest.approx(each, rel=1e-6) for each in left
    ]


def test_some_in_steps_and_some_not_are_cheapest_upgrades_at_some_factors():
    problems = asked(triangle(), "all-gather")
    costs = Costs(links=(Price(cost=2, medium="straight", step=1), Price(cost=3)))
    front = cost_front(problems, costs, most=1.5)

    assert front.kind == "samples"
    assert [each.factor for each in front.points] == pytest.approx(np.linspace(1, 1.5, 9))
    one = front.points[4]
    assert one.cost == pytest.approx(cheapest_upgrade(problems, costs, target="1.25x").cost)
    assert one.gains[0].factor >= 1.25 * (1 - 1e-6)


def test_weights_say_who_gains_more():
    """All-to-all of two hosts of 8 needs ports alone, all-gather at weight 0 nothing."""
    problems = asked("dgx-a100:hosts=2", "all-gather", "all-to-all")
    last = cost_front(problems, NETWORK, most=2, weights=[0, 1]).points[-1]
    alone = cost_front(problems[1:], NETWORK, most=2).points[-1]

    assert last.cost == pytest.approx(alone.cost)
    assert [each.target / each.before for each in last.gains] == pytest.approx([1, 2])


def test_a_front_ends_where_no_more_can_be_had():
    """Links end at 8 GB/s, so each GPU takes in 16 of them; today a and c take in 5 + 3."""
    problems = asked(triangle(), "all-gather")
    costs = Costs(links=(Price(cost=1, most=8),))
    front = cost_front(problems, costs, most=9)

    assert front.complete
    assert front.points[-1].factor == pytest.approx(2.0)
    stepped = Costs(links=(Price(cost=1, most=8, step=1),))
    assert cost_front(problems, stepped, most=9).points[-1].factor == pytest.approx(2.0)


def test_a_limit_leaves_what_is_proved_and_says_so():
    problems = asked(triangle(), "all-gather")
    stepped = Costs(links=(Price(cost=1, step=1),))
    some = cost_front(problems, stepped, most=3, points=3)
    whole = cost_front(problems, stepped, most=3)
    none = cost_front(problems, EVEN, time_limit=0.0)

    assert (some.complete, whole.complete, none.complete) == (False, True, False)
    assert [e.cost for e in some.points] == [e.cost for e in whole.points[:3]]
    assert [(e.factor, e.cost) for e in none.points] == [(1, 0)]


def test_what_is_no_front_is_refused():
    problems = asked(triangle(), "all-gather")
    for said, words in (
        ({"most": 1.0}, "more than 1"),
        ({"points": 1}, "2 at least"),
        ({"weights": [1, 1]}, "2 weights for 1"),
        ({"weights": [0]}, "some above 0"),
    ):
        with pytest.raises(ProblemError, match=words):
            cost_front(problems, EVEN, **said)
