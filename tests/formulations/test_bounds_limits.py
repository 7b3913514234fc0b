"""Links of a shared limit are of use at different times: what they carry, and what it proves.

The windows of the examples are worked out by hand: a link is of use from when the nearest holder
can have sent something to it until a last byte over it could still come to whoever needs it.
"""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from ccl.collective import Collective, make_collective
from ccl.problem import Problem
from ccl.topology import Device, Link, SharedLimit, Topology, device, duplex
from formulations import solve
from formulations.bounds import flow_bounds, lower_bounds
from formulations.bounds.cuts import narrowed

GPUS = device("gpu", "g0"), device("gpu", "g1")


def problem(
    collective: Collective, links: tuple[Link, ...], *others: Device, limit: SharedLimit | None
) -> Problem:
    limits = () if limit is None else (limit,)
    return Problem(Topology("drawn", (*GPUS, *others), links, limits), collective)


def pair_under_a_limit() -> Problem:
    """g0 and g1 on a switch at 50 GB/s and 20 µs; both links of g0 together carry 50 GB/s."""
    links = (*duplex("g0", "s", bandwidth=50, alpha=20), *duplex("g1", "s", bandwidth=50, alpha=20))
    limit = SharedLimit("both", (("g0", "s"), ("s", "g0")), 50)
    collective = make_collective("all-to-all", 2, 1e6)
    return problem(collective, links, device("switch", "s"), limit=limit)


def test_a_limit_over_both_ways_of_a_gpu_waits_for_neither():
    """g0->s is of use until T - 40 and s->g0 from 20 to T - 20, so the limit is until T - 20.

    1 MB at 50 GB/s are 20 µs: the limit proves 40. 0.5 MB over two links take 50 µs.
    """
    asked = pair_under_a_limit()

    assert lower_bounds(asked)[0].makespan == pytest.approx(50)
    assert solve(asked, "direct").makespan == pytest.approx(50)


def test_a_limit_is_busy_with_one_link_while_the_other_waits():
    """Into g0 lead x1->g0, of use from 0 to T - 5, and x0->g0, of use from 5 to T: 12 GB/s in all.

    The limit is of use all the time: 32,768 bytes take 2.73 µs; over each link alone, at 12 GB/s
    and 5 µs late, 5 + 32,768 / 24,000 = 6.365. Out of g1 leads g1->x1 at 25 GB/s alone.
    """
    rows = [
        ("x0", "g0", 25, 0),
        ("g0", "g1", 25, 1),
        ("g1", "x1", 12.5, 0),
        ("x1", "x0", 25, 5),
        ("x0", "g1", 50, 0.7),
        ("x1", "g1", 12.5, 1),
        ("x0", "x1", 10, 0.7),
        ("x1", "g0", 100, 5),
    ]
    under = [("x1", "g0"), ("x0", "g0"), ("x0", "g1"), ("x1", "g1"), ("x0", "x1")]
    asked = problem(
        make_collective("all-gather", 2, 65_536, chunks=4),
        tuple(Link(*row) for row in rows),
        device("switch", "x0"),
        device("nic", "x1"),
        limit=SharedLimit("odd", tuple(under), 12),
    )

    bounds = {each.kind: each.makespan for each in lower_bounds(asked) if not each.steady}

    assert bounds["ejection"] == pytest.approx(5 + 32_768 / 24_000)
    assert max(bounds.values()) <= solve(asked, "direct").makespan


def test_what_whole_chunks_take_is_no_start_for_what_all_plans_take():
    """g1 sends 32,768 bytes straight, 0.7 + 0.328 µs, and g0 with 50 and, by memory, 10 GB/s.

    Whole over g0->g1 that is 1 + 32,768 / 50,000 = 1.655 µs. In parts memory helps from 0.7 µs on,
    at 10 GB/s: 50 (T - 1) + 10 (T - 0.7) = 32.768 at 1.496 µs.
    """
    links = (
        Link("g0", "g1", 50, 1),
        Link("g1", "g0", 100, 0.7),
        Link("g0", "s0", 25, 0),
        Link("s0", "g0", 100, 5),
        Link("g1", "s0", 2.5, 0.7),
        Link("s0", "g1", 10, 0.7),
    )
    collective = make_collective("all-gather", 2, 65_536)
    asked = problem(collective, links, device("memory", "s0"), limit=None)
    split = (32.768 + 50 + 7) / 60

    bounds = lower_bounds(asked, whole_chunks=True)
    whole = [each for each in bounds if each.whole_chunks]
    others = [each for each in bounds if not each.whole_chunks]

    assert max(each.makespan for each in whole) == pytest.approx(1 + 32_768 / 50_000)
    assert max(each.makespan for each in others) == pytest.approx(split)
    assert max(each.makespan for each in others) <= solve(asked, "orbit-trees").makespan
    assert flow_bounds(asked, known=whole)[0].makespan <= split * (1 + 1e-9)


def test_a_limit_adds_the_shortest_latency_of_its_links():
    """0.5 MB each way under 10 GB/s for both, 100 µs; nobody has to go by s, 50 µs away."""
    links = (*duplex("g0", "g1", bandwidth=10), Link("g0", "s", 10, 50), Link("s", "g1", 10))
    limit = SharedLimit("both", (("g0", "g1"), ("g1", "g0"), ("g0", "s")), 10)
    asked = problem(
        make_collective("all-gather", 2, 1e6), links, device("switch", "s"), limit=limit
    )

    assert lower_bounds(asked)[0].makespan == pytest.approx(100)
    assert solve(asked, "direct").makespan == pytest.approx(100)


def test_what_a_limit_could_carry_after_the_end_is_no_wait():
    """0.5 MB each way at 10 GB/s take 50 µs; the way over s opens after 1,000 µs, for nothing.

    The limit over both ways out of g0 is of use 10 GB/s from 0 on and 5 more from then on: it
    waits for these until the 50 µs that every plan takes, and not for 1,000.
    """
    links = (*duplex("g0", "g1", bandwidth=10), Link("g0", "s", 10, 1000), Link("s", "g1", 10))
    limit = SharedLimit("out", (("g0", "g1"), ("g0", "s")), 15)
    asked = problem(
        make_collective("all-to-all", 2, 1e6), links, device("switch", "s"), limit=limit
    )

    bounds = lower_bounds(asked)

    assert "flow" in {each.kind for each in bounds}
    assert bounds[0].makespan == pytest.approx(50)
    assert solve(asked, "direct").makespan == pytest.approx(50)


def carried(most: float, rates: np.ndarray, *, opens: np.ndarray, closes: np.ndarray) -> float:
    """What links can carry of a limit, each from when it opens to when it closes, moment by moment.

    Between two moments nothing changes, so the sum of what is there is exact.
    """
    moments = np.unique(np.concatenate([opens, closes]))
    found = 0.0
    for begin, end in pairwise(moments):
        there = (opens <= begin) & (closes >= end)
        found += min(most, float(rates[there].sum())) * (end - begin)
    return found


@pytest.mark.parametrize("seed", range(200))
def test_pipes_of_a_limit_carry_what_its_links_can(seed):
    random = Random(seed)
    many = random.randint(1, 5)
    rates = np.array([random.choice((5.0, 10.0, 25.0)) for _ in range(many)])
    heads = np.array([random.choice((0.0, 1.0, 3.0, 7.0)) for _ in range(many)])
    tails = np.array([random.choice((0.0, 2.0, 5.0, math.inf)) for _ in range(many)])
    most = random.choice((4.0, 12.0, 30.0, 60.0))
    useful = np.isfinite(tails)

    pipes, waits = narrowed(most, rates, heads=heads, tails=tails)

    assert pipes.sum() == pytest.approx(min(most, rates[useful].sum()))
    for makespan in (1.0, 4.0, 9.0, 20.0):
        closes = np.maximum(makespan - tails[useful], heads[useful])
        least = carried(most, rates[useful], opens=heads[useful], closes=closes)
        allowed = float(pipes @ np.maximum(makespan - waits, 0))
        assert allowed >= least * (1 - 1e-12)
        if useful.sum() == 1 or len({*heads[useful], *tails[useful]}) == 1:
            assert allowed == pytest.approx(least)


def test_a_limit_that_each_of_its_links_fills_is_open_from_the_first_to_the_last():
    """10 GB/s, links of 20 and 50 from 0 and 3 µs on, until 4 and 1 µs before the end: 1 µs off."""
    pipes, waits = narrowed(
        10.0, np.array([20.0, 50.0]), heads=np.array([0.0, 3.0]), tails=np.array([4.0, 1.0])
    )

    assert pipes.tolist() == [10.0]
    assert waits.tolist() == [1.0]


def test_a_limit_that_needs_all_of_its_links_opens_step_by_step():
    """25 GB/s over links of 10 and 20: 10 from 0, the other 15 from 3 µs on; the end is alike."""
    pipes, waits = narrowed(
        25.0, np.array([10.0, 20.0]), heads=np.array([0.0, 3.0]), tails=np.array([2.0, 2.0])
    )

    assert pipes.tolist() == [10.0, 15.0]
    assert waits.tolist() == [2.0, 5.0]
