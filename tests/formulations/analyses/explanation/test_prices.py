"""Prices of links: duals with a sign and a unit, held to finite differences of the optimum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from ccl.bound import Prices
from ccl.collective import CollectiveKind, make_collective
from ccl.errors import Infeasible, ProblemError
from ccl.problem import Problem, Window
from ccl.topology import Link, SharedLimit, Topology, device
from formulations import prices
from formulations.analyses.best_rate import optimum
from gallery import open_cluster

SIZE = 1e8
CLOSE = 1e-6

Make = Callable[[], Problem]


def asked(topology: Topology, kind: CollectiveKind) -> Problem:
    return Problem(topology, make_collective(kind, len(topology.ranks), SIZE, root=0))


def star(gpus: int = 4, rates: tuple[float, ...] = ()) -> Topology:
    """GPUs around a switch that may not copy, 10 GB/s both ways unless `rates` says otherwise."""
    rates = rates or (10.0,) * gpus
    names = [f"g{i}" for i in range(gpus)]
    switch = device("switch", "s")
    devices = [*(device("gpu", each) for each in names), switch]
    ends = [(name, "s") for name in names] + [("s", name) for name in names]
    links = [
        Link(a, b, bandwidth=rate, alpha=0.7) for (a, b), rate in zip(ends, rates * 2, strict=True)
    ]
    return Topology("star", tuple(devices), tuple(links))


def changed(problem: Problem, ends: tuple[str, str], by: float) -> Problem:
    """Return the problem with a link of `by` more GB/s."""
    topology = problem.topology
    links = tuple(
        replace(each, bandwidth=each.bandwidth + by) if each.ends == ends else each
        for each in topology.links
    )
    return replace(problem, topology=replace(topology, links=links))


CASES = [
    pytest.param(lambda: asked(open_cluster("dgx-1v"), "broadcast"), id="dgx-1, broadcast"),
    pytest.param(lambda: asked(open_cluster("dgx-1v"), "all-to-all"), id="dgx-1, all-to-all"),
    pytest.param(lambda: asked(open_cluster("ndv2"), "all-to-all"), id="ndv2, all-to-all"),
    pytest.param(lambda: asked(open_cluster("mi250"), "all-to-all"), id="mi250, all-to-all"),
    pytest.param(lambda: asked(star(4, (10.0, 12.0, 8.0, 25.0)), "all-gather"), id="uneven star"),
    pytest.param(lambda: asked(star(4, (10.0, 12.0, 8.0, 25.0)), "all-reduce"), id="star, sums"),
]


@pytest.mark.parametrize("make", CASES)
def test_one_sided_differences_bracket_every_price(make: Make) -> None:
    """T is convex in b, so (T(b) - T(b+h)) / h <= price <= (T(b-h) - T(b)) / h for any h.

    The makespan is a largest of quotients D(y) / (y . b), each convex; a price is the slope of one
    that is largest at b. Bandwidths change by a fifth here, so that kinks are met too.
    """
    problem = make()
    now = prices(problem)
    dear = now.dearest[:1]
    idle = [each for each in now.links if each not in now.dearest][:1]
    for ends in [*dear, *idle]:
        step = 0.2 * problem.topology.link(*ends).bandwidth
        more = prices(changed(problem, ends, step)).makespan
        less = prices(changed(problem, ends, -step)).makespan
        slack = CLOSE * now.makespan / step
        assert (now.makespan - more) / step <= now[ends] + slack
        assert now[ends] <= (less - now.makespan) / step + slack


@pytest.mark.parametrize(
    ("make", "ends"),
    [
        # The links between the two boxes are all there is between them: one each way.
        (lambda: asked(open_cluster("ndv2"), "all-to-all"), ("g8", "g1")),
        (lambda: asked(open_cluster("mi250"), "all-to-all"), ("g0", "g8")),
        (lambda: asked(open_cluster("dgx-1v"), "all-to-all"), ("g0", "g4")),
        # Three shards of a gather have to come down to the root, over one link.
        (lambda: asked(star(4, (10.0, 12.0, 8.0, 25.0)), "gather"), ("s", "g0")),
    ],
)
def test_a_unique_price_is_the_derivative(make: Make, ends: tuple[str, str]) -> None:
    """Where both one-sided slopes agree the price is -dT/db.

    As long as the same dual y is optimal T(b) = D / (y . b), so it is the rate 1 / T that is linear
    in b, with the slope price / T^2; its differences are exact whatever the step, up to the
    solver's tolerance, and T's own central difference is off by (step share)^2.
    """
    problem = make()
    now = prices(problem)
    width = problem.topology.link(*ends).bandwidth
    other = _partner(now, ends)
    for step in (1e-3 * width, -1e-3 * width):
        # One direction alone would leave the other as tight; both together are the derivative.
        both = changed(problem, ends, step)
        for each in other:
            both = changed(both, each, step)
        rate = 1 / prices(both).makespan
        slope = (rate - 1 / now.makespan) / step
        expected = (now[ends] + sum(now[each] for each in other)) / now.makespan**2
        assert slope == pytest.approx(expected, rel=CLOSE)


def _partner(found: Prices, ends: tuple[str, str]) -> list[tuple[str, str]]:
    """Return the other links that are as dear: what symmetry makes equal is raised together."""
    return [each for each in found.dearest if each != ends]


@pytest.mark.parametrize("make", CASES)
def test_prices_times_bandwidths_add_up_to_the_makespan(make: Make) -> None:
    """T(c b) = T(b) / c; by Euler's theorem sum of b dT/db = -T, and no latency is counted."""
    problem = make()
    found = prices(problem)
    assert found.total == pytest.approx(found.makespan, rel=1e-9)
    assert found.makespan == pytest.approx(optimum(problem).makespan, rel=CLOSE)
    assert min(found.links.values()) >= 0
    assert set(found.links) == {each.ends for each in problem.topology.links}


def test_the_two_links_between_boxes_bear_it_all() -> None:
    """NDv2's boxes exchange 8 of 16 shards over one link each way: T = SIZE / 2 / b.

    Both ways are as tight, so any dual with y1 b + y2 b = 1 is optimal, and the symmetric one has
    half of it on each: T / (2 b). For both together -dT/db = T / b.
    """
    found = prices(asked(open_cluster("ndv2"), "all-gather"))
    width = found.topology.link("g0", "g9").bandwidth
    least = SIZE / 2 / (1e3 * width)
    assert found.makespan == pytest.approx(least, rel=1e-9)
    assert found["g0", "g9"] == pytest.approx(least / (2 * width), rel=1e-9)
    assert set(found.dearest) == {("g0", "g9"), ("g8", "g1")}
    assert found.share(("g0", "g9")) == pytest.approx(0.5)


def test_a_shared_limit_has_a_price_of_its_own() -> None:
    """Two links of 10 GB/s into one GPU under a limit of 12: only the limit holds.

    A gather of two shards of SIZE / 3 into g0 takes 2 SIZE / 3 / 12e3 µs, so the limit's price is
    that over 12, and no link has one.
    """
    devices = tuple(device("gpu", f"g{i}") for i in range(3))
    links = (
        Link("g1", "g0", bandwidth=10.0, alpha=0.0),
        Link("g2", "g0", bandwidth=10.0, alpha=0.0),
        Link("g0", "g1", bandwidth=10.0, alpha=0.0),
    )
    limit = SharedLimit("nic", (("g1", "g0"), ("g2", "g0")), 12.0)
    found = prices(asked(Topology("two", devices, links, (limit,)), "gather"))
    least = 2 * SIZE / 3 / 12e3
    assert found.makespan == pytest.approx(least, rel=1e-9)
    assert found.limits["nic"] == pytest.approx(least / 12, rel=1e-9)
    assert found.share_of_limit("nic") == pytest.approx(1.0)
    assert not found.dearest
    assert "limit nic" in str(found)


def test_twice_the_size_has_twice_the_price() -> None:
    problem = asked(star(), "all-gather")
    twice = Problem(problem.topology, make_collective("all-gather", 4, 2 * SIZE, root=0))
    one, two = prices(problem), prices(twice)
    assert two["g0", "s"] == pytest.approx(2 * one["g0", "s"], rel=1e-9)


def test_what_has_no_steady_state_has_no_prices() -> None:
    problem = asked(star(), "all-gather")
    window = Window((("g0", "s"),), 0.0, 5.0, 0.5)
    with pytest.raises(ProblemError, match="a steady state knows no time"):
        prices(replace(problem, windows=(window,)))


def test_epochs_have_prices_that_are_the_slope_of_their_time() -> None:
    """A scatter from g0 of a star without latencies: T = K tau rho, and only delays hold it back.

    In K = 8 epochs of one hop each, 7 are left for either of two hops. 3 shards of SIZE / 4 leave
    g0 at 10 GB/s in 7 epochs, so T = 8 / 7 * 3 SIZE / 4 / 10e3 us; its price is T / 10.
    """
    links = tuple(replace(each, alpha=0.0) for each in star().links)
    problem = asked(replace(star(), links=links), "scatter")
    duration = 3 * SIZE / 4 / 10e3 / 8
    found = prices(problem, horizon=8, epoch_duration=duration)
    least = 8 / 7 * 3 * SIZE / 4 / 10e3
    assert found.makespan == pytest.approx(least, rel=1e-9)
    assert found["g0", "s"] == pytest.approx(least / 10, rel=1e-9)
    assert found.total == pytest.approx(found.makespan, rel=1e-9)
    for step in (1e-3, -1e-3):
        other = prices(changed(problem, ("g0", "s"), step), horizon=8, epoch_duration=duration)
        slope = (1 / other.makespan - 1 / found.makespan) / step
        assert slope == pytest.approx(found["g0", "s"] / found.makespan**2, rel=CLOSE)


def test_prices_on_epochs_come_near_the_steady_state_with_more_of_them() -> None:
    """The fluid needs a hop to begin: K epochs lose at most the few of the longest way."""
    problem = asked(open_cluster("dgx-1v"), "all-to-all")
    steady = prices(problem)
    found = prices(problem, horizon=40)
    assert found.total == pytest.approx(found.makespan, rel=1e-9)
    assert steady.makespan <= found.makespan <= 1.1 * steady.makespan
    assert set(steady.dearest) <= set(found.dearest)


def test_a_horizon_without_a_price_is_too_short() -> None:
    with pytest.raises(Infeasible, match=r"no plan takes fewer than 2 \(hops from g0"):
        prices(asked(star(), "scatter"), horizon=1, epoch_duration=1e6)
