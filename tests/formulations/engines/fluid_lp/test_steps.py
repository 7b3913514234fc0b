"""Theorem 4 of the thesis: schedules of K staggered chunks are verified and tend to the rate."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import pytest

from ccl.collective import Chunk, all_gather, all_reduce, broadcast, custom, reduce, reduce_scatter
from ccl.errors import ProblemError, ScheduleError
from ccl.plans import Forest, Tree
from ccl.problem import Problem, Window
from ccl.simulate import simulate
from ccl.topology import Link, SharedLimit, Topology, device, duplex
from ccl.tree_embedding import steady_makespan
from ccl.verify import verify
from formulations.engines.fluid_lp.stepwise import COUNTS, conversion, staggered
from tests.ccl.clusters import MB, gpus, line, mesh, ring, star
from tests.ccl.test_forest import rails, ring_sums, sums_at_one, symmetric
from tests.ccl.test_verify_steady import around, both_ways, upside_down

ONE = Fraction(1)


def over_the_switch(count, *, copies=False, reduces=False):
    """Every GPU sends its shard to every other over one switch."""
    trees = tuple(
        Tree(root, tuple((f"g{root}", "s", f"g{r}") for r in range(count) if r != root), ONE)
        for root in range(count)
    )
    topology = star(count, copies=copies, reduces=reduces)
    return Problem(topology, all_gather(count, count * MB)), Forest(trees)


def added_over_the_switch(count, *, reduces=False):
    problem, forest = over_the_switch(count, reduces=reduces)
    collective = reduce_scatter(count, count * MB)
    turned = tuple(upside_down(tree) for tree in forest.trees)
    return Problem(problem.topology, collective), Forest(turned, reduces=True)


def under_a_limit():
    """6 MB to each of two under 100 GB/s in all: 120 µs, though each link has 60 GB/s."""
    links = (Link("g0", "g1", 60), Link("g0", "g2", 60))
    limit = SharedLimit("bus", (("g0", "g1"), ("g0", "g2")), 100)
    problem = Problem(Topology("t", gpus(3), links, (limit,)), broadcast(3, 6 * MB))
    return problem, Forest((Tree(0, (("g0", "g1"), ("g0", "g2")), ONE),))


def in_the_chain(*, backwards=False):
    tree = Tree(0, tuple((f"g{r}", f"g{r + 1}") for r in range(4)), ONE)
    if backwards:
        return Problem(line(5), reduce(5, MB)), Forest((upside_down(tree),), reduces=True)
    return Problem(line(5), broadcast(5, MB)), Forest((tree,))


def over_a_memory():
    """Three GPUs write their shards to a memory, from which the others read them."""
    links = [link for r in range(3) for link in duplex(f"g{r}", "m", bandwidth=50.0)]
    topology = Topology("t", (*gpus(3), device("memory", "m")), tuple(links))
    trees = tuple(
        Tree(root, ((f"g{root}", "m"), *(("m", f"g{r}") for r in range(3) if r != root)), ONE)
        for root in range(3)
    )
    return Problem(topology, all_gather(3, 3 * MB)), Forest(trees)


def sums_over_a_switch(count, *, able):
    """Every GPU adds up its share over a switch and spreads it; able, the switch does both."""
    weight = Fraction(1, count)
    downs = tuple(replace(tree, weight=weight) for tree in over_the_switch(count)[1].trees)
    ups = tuple(upside_down(tree) for tree in downs)
    topology = star(count, copies=able, reduces=able)
    problem = Problem(topology, all_reduce(count, count * MB))
    return problem, Forest(ups, reduces=True, spread=downs)


FORESTS = {
    "ring both ways": lambda: (Problem(mesh(6), all_gather(6, 6 * MB)), Forest(both_ways(6))),
    "chain": in_the_chain,
    "chain that adds": lambda: in_the_chain(backwards=True),
    "plain switch": lambda: over_the_switch(4),
    "copying switch": lambda: over_the_switch(4, copies=True),
    "plain switch that is added over": lambda: added_over_the_switch(4),
    "adding switch": lambda: added_over_the_switch(4, reduces=True),
    "ring that adds and spreads": lambda: ring_sums(4),
    "sums at one": lambda: sums_at_one(4),
    "torus, by symmetry": lambda: symmetric("torus:shape=3x3,alpha=0"),
    "hypercube that adds, by symmetry": lambda: symmetric(
        "hypercube:dimension=3,alpha=0", reduces=True
    ),
    "rails, by symmetry": lambda: rails(2),
    "shared limit": under_a_limit,
    "memory": over_a_memory,
    "sums over a plain switch": lambda: sums_over_a_switch(4, able=False),
    "sums in a switch": lambda: sums_over_a_switch(4, able=True),
}

DEPTHS = {
    "ring both ways": 5,
    "chain": 4,
    "chain that adds": 4,
    "plain switch": 2,
    "copying switch": 2,
    "plain switch that is added over": 2,
    "adding switch": 2,
    "ring that adds and spreads": 6,
    "sums at one": 2,
    "torus, by symmetry": 2,
    "hypercube that adds, by symmetry": 3,
    "rails, by symmetry": 4,
    "shared limit": 1,
    "memory": 2,
    "sums over a plain switch": 4,
    "sums in a switch": 4,
}
"""Links one after the other, counted by hand."""


@pytest.mark.parametrize("name", FORESTS)
def test_takes_as_long_as_the_theorem_says(name):
    """T + K - 1 steps of R / K; every schedule is verified where it is made, and here once more."""
    problem, forest = FORESTS[name]()
    rate, depth = steady_makespan(problem, forest), DEPTHS[name]
    before = None

    for chunks in (1, 2, 3, 8):
        divided, schedule = staggered(problem, forest, chunks=chunks)

        verify(divided, schedule)
        assert schedule.horizon == depth + chunks - 1
        assert schedule.duration == pytest.approx(float(rate * (depth + chunks - 1) / chunks))
        replayed = simulate(divided, schedule).makespan
        assert float(rate) * (1 - 1e-9) <= replayed <= schedule.duration * (1 + 1e-9)
        assert before is None or depth == 1 or schedule.duration < before
        before = schedule.duration


@pytest.mark.parametrize("name", FORESTS)
def test_the_problem_is_the_same_in_smaller_chunks(name):
    problem, forest = FORESTS[name]()

    divided, _ = staggered(problem, forest, chunks=3)

    assert divided.topology == problem.topology
    assert divided.collective.kind == problem.collective.kind
    of: dict[object, float] = {}
    for chunk in problem.collective.chunks:
        key = chunk.holders, chunk.destinations, chunk.reduced
        of[key] = of.get(key, 0.0) + chunk.size
    for chunk in divided.collective.chunks:
        of[chunk.holders, chunk.destinations, chunk.reduced] -= chunk.size
    assert list(of.values()) == pytest.approx([0.0] * len(of), abs=1e-3)


@pytest.mark.parametrize("name", ["ring both ways", "plain switch", "sums at one"])
def test_no_step_can_be_spared(name):
    """From K = T on there is a step with all crossings of the busiest link; it fills the step."""
    problem, forest = FORESTS[name]()
    divided, schedule = staggered(problem, forest, chunks=6)

    with pytest.raises(ScheduleError):
        verify(divided, replace(schedule, epoch_duration=schedule.epoch_duration * 0.999))


def test_a_tree_takes_its_exact_share():
    """A third and two thirds are chunks of these sizes: no common denominator is needed."""
    problem = Problem(mesh(3), custom(3, [Chunk(MB, (0,), (1,))]))
    trees = (
        Tree(0, (("g0", "g1"),), Fraction(10**9, 3 * 10**9 + 1)),
        Tree(0, (("g0", "g2"), ("g2", "g1")), 1 - Fraction(10**9, 3 * 10**9 + 1)),
    )

    divided, schedule = staggered(problem, Forest(trees), chunks=2)

    assert len(divided.collective.chunks) == 4
    assert divided.collective.chunks[0].size == pytest.approx(MB / 6)
    assert len(schedule.sends) == 2 * 3


def test_latencies_make_steps_longer():
    """R = 60 µs, T = 3, 5 µs: steps of 60 / K + 5; many chunks are not the best then."""
    problem = Problem(ring(4, alpha=5.0), all_gather(4, 4 * MB))
    forest = Forest(tuple(Tree(root, around(root, 4, 1), ONE) for root in range(4)))

    table = conversion(problem, forest, counts=(1, 4, 64))

    assert [each.duration for each in table] == pytest.approx([195, 120, 66 * (60 / 64 + 5)])
    assert [each.latency for each in table] == pytest.approx([15, 30, 330])
    assert [each.fill for each in table] == pytest.approx([120, 30, 120 / 64])
    assert all(each.makespan < each.duration for each in table)


def test_a_switch_behind_latencies_is_left_in_time():
    topology = star(3, alpha=2.0)
    forest = over_the_switch(3)[1]

    divided, schedule = staggered(Problem(topology, all_gather(3, 3 * MB)), forest, chunks=5)

    assert schedule.duration == pytest.approx(6 * (40 / 5 + 2))
    assert simulate(divided, schedule).makespan < schedule.duration


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"chunks": 0}, "a schedule of 0 chunks cannot be made"),
        ({"chunks": 10**6}, "60,000,000 sends, and 2,000,000 are the most"),
    ],
)
def test_what_cannot_be_made_is_refused(change, says):
    problem, forest = FORESTS["ring both ways"]()

    with pytest.raises(ProblemError, match=says):
        staggered(problem, forest, **({"chunks": 1} | change))


def test_windows_have_no_steady_state():
    problem, forest = in_the_chain()
    slow = replace(problem, windows=(Window((("g0", "g1"),), 0.0, 10.0, 0.5),))

    with pytest.raises(ProblemError, match="no steady state"):
        staggered(slow, forest, chunks=2)


def test_a_forest_that_is_wrong_is_refused():
    problem, forest = in_the_chain()

    with pytest.raises(ScheduleError, match="does not reach"):
        staggered(problem, Forest((replace(forest.trees[0], routes=()),)), chunks=2)


@pytest.mark.parametrize(
    "name",
    [
        "plain switch",
        pytest.param("rails, by symmetry", marks=pytest.mark.slow),
        "ring that adds and spreads",
    ],
)
@pytest.mark.cover(1)
def test_256_chunks_come_within_a_few_per_cent(name):
    """K = 1, 2, 4, ..., 256, all verified: (T - 1) / K above the rate, less each time."""
    problem, forest = FORESTS[name]()

    table = conversion(problem, forest)

    assert [each.chunks for each in table] == list(COUNTS) == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    rate = float(steady_makespan(problem, forest))
    for before, after in itertools.pairwise(table):
        assert rate < after.duration < before.duration
    for each in table:
        assert each.duration / rate - 1 == pytest.approx((DEPTHS[name] - 1) / each.chunks)
        assert each.latency == pytest.approx(0, abs=1e-6 * rate)
        assert each.duration == pytest.approx(each.rate + each.fill)
