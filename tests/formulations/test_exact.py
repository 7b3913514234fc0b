"""Exact search in continuous time: optima by hand and by enumeration, bounds that hold."""

import random
from itertools import pairwise

import numpy as np
import pytest

from ccl.collective import Chunk, custom, make_collective
from ccl.problem import Problem
from ccl.result import Status, Stop
from ccl.simulate import simulate
from ccl.topology import Link, Topology, device
from ccl.verify import verify
from formulations import solve
from formulations.bounds import lower_bounds
from formulations.core.run import Run
from formulations.engines.cp_sat.instance import ticks_for
from formulations.engines.cp_sat.search import (
    Effort,
    TerminationCondition,
    close_gap,
    cut_short,
    prove,
)
from formulations.engines.list_scheduling.search import Side
from formulations.engines.list_scheduling.timed import in_epochs, transfers_of
from gallery import open_cluster


def closed(problem: Problem, *, upper: float, seconds: float = 60.0) -> tuple[float, float]:
    """Return the best makespan and the bound in µs, without any hint."""
    transfers = transfers_of(problem.topology)
    task = Side(transfers, problem.collective).task()
    best, bound, ending = np.inf, 0.0, None
    for news in close_gap(task, upper=upper, effort=Effort(seconds=seconds)):
        bound, ending = news.bound, news.ending
        if news.plan is not None and news.makespan is not None:
            schedule = in_epochs(problem, transfers, news.plan)
            verify(problem, schedule)
            assert simulate(problem, schedule).makespan == pytest.approx(news.makespan)
            best = min(best, news.makespan)
    assert ending is TerminationCondition.PROVED
    return best, bound


def drawn(seed: int) -> Problem:
    """Three or four GPUs, links with any bandwidth and latency, up to six chunk-destinations."""
    chance = random.Random(seed)
    names = [f"g{i}" for i in range(chance.choice((3, 4)))]
    ring = [*pairwise(names), (names[-1], names[0])]
    more = [(a, b) for a in names for b in names if a != b and chance.random() < 0.4]
    speeds = chance.choice(((25.0, 50.0), (7.3, 11.9, 33.3)))
    alphas = chance.choice(((0.0,), (0.7, 2.6), (0.123, 1.77)))
    links = [
        Link(src, dst, chance.choice(speeds), chance.choice(alphas))
        for src, dst in sorted({*ring, *more})
    ]
    topology = Topology("drawn", tuple(device("gpu", name) for name in names), tuple(links))
    chunks, left = [], 6
    while left:
        ranks = chance.sample(range(len(names)), len(names))
        many = chance.randint(1, min(left, len(names) - 1))
        chunks.append(Chunk(chance.choice((1e4, 3e4)), (ranks[0],), tuple(ranks[1 : 1 + many])))
        left -= many
    return Problem(topology, custom(len(names), chunks))


def shortest(problem: Problem) -> float:
    """Return the least makespan in µs by trying all sequences of sends over single links.

    Each send starts as soon as its chunk is there and its link is free of those before it. Every
    order of the sends of every link is that of some sequence, so the best plan is among them.
    """
    topology, chunks = problem.topology, problem.collective.chunks
    names = topology.ranks
    rank = {name: i for i, name in enumerate(names)}
    links = [(rank[link.src], rank[link.dst], link) for link in topology.links]
    best = float("inf")

    def needed(there: dict[tuple[int, int], float]) -> bool:
        return any((c, d) not in there for c, one in enumerate(chunks) for d in one.destinations)

    def go(there: dict[tuple[int, int], float], free: dict[int, float], since: float) -> None:
        nonlocal best
        if not needed(there):
            wanted = [there[c, d] for c, one in enumerate(chunks) for d in one.destinations]
            best = min(best, max(wanted))
            return
        for number, (src, dst, link) in enumerate(links):
            for c, one in enumerate(chunks):
                if (c, src) not in there or (c, dst) in there:
                    continue
                start = max(there[c, src], free.get(number, 0.0))
                busy = one.size * link.beta
                # Sequences in which a send starts before the last one are those of another order.
                if start < since or start + busy + link.alpha >= best:
                    continue
                go(
                    {**there, (c, dst): start + busy + link.alpha},
                    {**free, number: start + busy},
                    start,
                )

    go({(c, h): 0.0 for c, one in enumerate(chunks) for h in one.holders}, {}, 0.0)
    return best


SEEDS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11)
"""Seeds of cases whose enumeration takes a second or two."""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.cover(3)
def test_the_proved_optimum_is_the_best_of_all_plans(seed):
    """Half of the cases have times that are multiples of nothing, so that ticks round them."""
    problem = drawn(seed)
    least = shortest(problem)

    makespan, bound = closed(problem, upper=4 * least)

    assert makespan == pytest.approx(least, rel=1e-6)
    assert bound <= least * (1 + 1e-12)
    assert bound == pytest.approx(least, rel=1e-5)


def test_no_move_starts_before_the_beginning():
    """Two chunks for g2: over g1 in 1 + 1 µs, the second a µs later; on the link in 2.4 + 0.1 µs.

    So one takes each way and 2.5 µs are the least, though the chunk on the link could have been
    there after 2 µs on the other way.
    """
    devices = tuple(device("gpu", name) for name in ("g0", "g1", "g2"))
    quick = (Link("g0", "g1", 100.0), Link("g1", "g2", 100.0))
    topology = Topology("bypass", devices, (*quick, Link("g0", "g2", 1000.0, 2.4)))
    problem = Problem(topology, custom(3, [Chunk(1e5, (0,), (2,))] * 2))

    makespan, bound = closed(problem, upper=10.0)

    assert makespan == pytest.approx(2.5)
    assert bound == pytest.approx(2.5)


def test_a_broadcast_over_a_switch_that_cannot_copy_takes_two_rounds():
    """0.25 MB at 50 GB/s takes 5 µs, a way over the switch 1.4 µs more.

    g1 has it at 6.4 and is the only one that can have passed it on by 12.8; g0's second send ends
    at 11.4 and its third at 16.4. So of three the last has it at 12.8 at the earliest.
    """
    star = open_cluster("star:gpus=4")

    makespan, bound = closed(Problem(star, make_collective("broadcast", 4, 0.25e6)), upper=20.0)

    assert makespan == pytest.approx(12.8)
    assert bound == pytest.approx(12.8)


def test_a_switch_that_copies_serves_all_with_one_transmission():
    """0.25 MB at 50 GB/s and twice 0.7 µs, for all three at the same time."""
    star = open_cluster("star:gpus=4,copies=true")

    makespan, _ = closed(Problem(star, make_collective("broadcast", 4, 0.25e6)), upper=20.0)

    assert makespan == pytest.approx(6.4)


def test_an_all_gather_over_a_switch_that_copies_fills_the_ways_in():
    """Each GPU takes in 3 shards of 5 µs one after the other: 15 µs and twice 0.7 µs."""
    star = open_cluster("star:gpus=4,copies=true")

    makespan, bound = closed(Problem(star, make_collective("all-gather", 4, 1e6)), upper=20.0)

    assert makespan == pytest.approx(16.4)
    assert bound == pytest.approx(16.4)


def test_what_is_proved_of_a_whole_problem_is_a_bound():
    """Links alone join the GPUs of a DGX-1V, so that the model has every plan."""
    problem = Problem(open_cluster("dgx-1v"), make_collective("all-gather", 8, 1e6))

    result = solve(problem, "cp-sat", time_limit=120, options={"symmetry": False})

    assert result.whole_bound.kind == "solver"
    assert result.status is Status.WHOLE
    assert result.stop is Stop.PROVED
    assert result.whole_gap <= 1e-6 < result.makespan / result.bounds[1].makespan - 1
    assert result.gap > 1e-6


def test_a_bound_on_whole_chunks_is_none_for_a_run_that_may_split_them():
    """The linear program splits chunks of an all-to-all, so 1 ms is no bound on its plans."""
    problem = Problem(open_cluster("dgx-1v"), make_collective("all-to-all", 8, 1e6))
    runs = [
        Run(problem, name, {}, bounds=lower_bounds(problem)) for name in ("cp-sat", "te-ccl-lp")
    ]
    for run in runs:
        prove(run, 1000.0)

    assert [run.bounds[0].kind == "solver" for run in runs] == [True, False]


def test_a_reduction_takes_as_long_as_its_mirror():
    """Every link of a DGX-1V has one like it the other way."""
    topology = open_cluster("dgx-1v")
    found = [
        solve(Problem(topology, make_collective(kind, 8, 1e6)), "cp-sat", time_limit=120)
        for kind in ("all-gather", "reduce-scatter")
    ]

    assert [each.status for each in found] == [Status.WHOLE] * 2
    assert found[0].makespan == pytest.approx(found[1].makespan)


@pytest.mark.parametrize(("copies", "makespan"), [(False, 12.8), (True, 6.4)])
def test_over_switches_the_bound_holds_for_plans_that_wait_there_too(copies, makespan):
    """The star above: waiting at the switch does not help.

    Without copies g0's second and third chunk leave it at 10 and 15 at the earliest, so that the
    third way out is g1's again, and that one has it at 6.4.
    """
    star = open_cluster(f"star:gpus=4,copies={str(copies).lower()}")
    problem = Problem(star, make_collective("broadcast", 4, 0.25e6))

    result = solve(problem, "cp-sat", time_limit=60)

    assert result.makespan == pytest.approx(makespan)
    assert result.stop is Stop.PROVED


def held_up(star: Topology) -> Problem:
    """g2 wants two chunks of g0 and one of g1, and g0 and g1 want one of each other's too."""
    wanted = [(0, (2,)), (0, (1, 2)), (1, (2, 0)), (1, (0,))]
    chunks = [Chunk(2e5, (holder,), who) for holder, who in wanted]
    return Problem(star, custom(3, chunks))


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("epoch", ["fastest", "slowest"])
def test_no_plan_that_waits_in_a_switch_is_below_the_bound(copies, epoch):
    """TE-CCL's model sends link by link and lets switches wait for the next epoch."""
    star = open_cluster(f"star:gpus=3,copies={str(copies).lower()}")
    problem = held_up(star)
    task = Side(transfers_of(star), problem.collective).task()
    *_, news = close_gap(task, upper=100.0, effort=Effort(seconds=60), waits=True)

    other = solve(problem, "te-ccl-milp", options={"epoch": epoch}, time_limit=20)

    assert news.ending is TerminationCondition.PROVED
    assert news.bound <= other.makespan * (1 + 1e-9)
    assert news.bound <= closed(problem, upper=100.0)[0] * (1 + 1e-9)


def test_deep_clusters_have_ways_that_are_not_listed():
    """A row of switches longer than the longest way that is listed."""

    def row(switches: int) -> Topology:
        names = ["g0", *(f"s{i}" for i in range(switches)), "g1"]
        kinds = ["gpu", *["switch"] * switches, "gpu"]
        devices = tuple(device(kind, name) for kind, name in zip(kinds, names, strict=True))
        return Topology("row", devices, tuple(Link(a, b, 50.0) for a, b in pairwise(names)))

    assert [cut_short(row(switches)) for switches in (1, 5, 6, 9)] == [False, False, True, True]


def test_times_that_are_multiples_are_counted_exactly():
    """1 MB / 8 at 125 and 12.5 GB/s with 0.35 and 2.6 µs: all are multiples of 0.05 µs."""
    times = np.array([1.0, 10.0, 0.35, 2.6, 0.7])

    ticks = ticks_for(times, longest=32.0)

    assert ticks.exact
    assert ticks.duration == pytest.approx(0.05)
    assert ticks.down(times).tolist() == ticks.up(times).tolist() == [20, 200, 7, 52, 14]


def test_other_times_are_rounded_inwards():
    times = np.array([np.pi, np.exp(1.0), np.sqrt(2.0)])

    ticks = ticks_for(times, longest=32.0)

    assert not ticks.exact
    assert (ticks.down(times) * ticks.duration <= times).all()
    assert (ticks.up(times) * ticks.duration >= times).all()
    assert (ticks.up(times) - ticks.down(times) == 1).all()


def test_a_bound_is_not_above_the_time_that_it_is_counted_from():
    ticks = ticks_for(np.array([0.1, 0.3]), longest=1.0)

    assert ticks.proved(7, waits=100) <= 0.7
    assert ticks.proved(7, waits=100) == pytest.approx(0.7, rel=1e-6)


@pytest.mark.parametrize(
    ("own", "limit", "stop"), [(0.5, None, Stop.EFFORT), (60.0, 0.5, Stop.TIME_LIMIT)]
)
def test_which_limit_ended_it_is_said(own, limit, stop):
    """The all-reduce of a DGX-1 in four pieces takes the search far more than half a second."""
    problem = Problem(open_cluster("dgx-1v"), make_collective("all-reduce", 8, 1e6, chunks=4))

    result = solve(problem, "cp-sat", options={"seconds": own}, time_limit=limit)

    assert result.stop is stop
