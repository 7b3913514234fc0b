"""Pieces along trees: patterns, weights, whole numbers of pieces, and the plans."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.random_problems import random_problem
from ccl.collective import make_collective
from ccl.errors import ProblemError, ScheduleError
from ccl.problem import Problem
from ccl.result import Status
from ccl.topology import Link, Topology, binding_limits, device
from formulations import solve
from formulations.core.preparing import clock
from formulations.core.registry import formulation
from formulations.engines.list_scheduling.timed import transfers_of
from formulations.engines.tree_columns import cuts
from formulations.engines.tree_columns.cuts import MOST_WORK, Kind, Limits, Waiting, by_turns
from formulations.engines.tree_columns.heads_tails import counted
from formulations.engines.tree_columns.patterns import Pattern, Undirected, met
from formulations.engines.tree_columns.pieces import Jobs
from formulations.engines.tree_columns.routes import ends_of
from gallery import open_cluster


def asked(cluster: str, kind: str, size: float, **options) -> Problem:
    topology = open_cluster(cluster)
    return Problem(topology, make_collective(kind, len(topology.ranks), size, **options))


@pytest.mark.parametrize(
    ("kind", "makespan"),
    [
        # Out of a GPU's 6 links of 25 GB/s goes 1/8 MB, in come 7/8 MB: 5.83 us and 0.7 of latency.
        ("all-gather", 0.7 + 7 / 8 * 1e6 / 150e3),
        ("reduce-scatter", 0.7 + 7 / 8 * 1e6 / 150e3),
        # In and out again.
        ("all-reduce", 0.7 + 2 * 7 / 8 * 1e6 / 150e3),
    ],
)
def test_a_dgx_1_is_optimal_with_pieces_of_twelfths(kind, makespan):
    result = solve(asked("dgx-1v", kind, 1e6), "pieces", time_limit=30)
    assert result.makespan == pytest.approx(makespan, rel=1e-6)
    assert result.status is Status.OPTIMAL
    assert result.plan.chunks % (8 * 12) == 0


@pytest.mark.parametrize(
    ("cluster", "size", "most"), [("mi250", 64e3, 4.3), ("dgx-a100:hosts=2", 1e6, 9.6)]
)
@pytest.mark.slow
def test_where_latency_counts_all_reduce_takes_undirected_trees(cluster, size, most):
    """Over each edge of the tree of a piece goes what is on either side of it, both ways."""
    result = solve(asked(cluster, "all-reduce", size), "pieces", time_limit=20)
    assert result.makespan < most
    edges = {(send.chunk, send.src, send.dst) for send in result.plan.sends}
    assert edges == {(chunk, dst, src) for chunk, src, dst in edges}
    ranks = len(result.problem.topology.ranks)
    assert len(edges) == 2 * (ranks - 1) * len(result.problem.collective.chunks)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "most"), [(256e3, 13.2), (1e6, 41.1)])
def test_direct_sends_over_levels_of_switches_stand_for_one_another(size, most):
    """Sums come from near GPUs first, and go to them last; 16.8 and 43.6 us without."""
    found = solve(asked("fat-tree", "all-reduce", size), "pieces", time_limit=12.0)

    assert found.makespan <= most * 1.001
    assert found.makespan >= found.bounds[0].makespan


@pytest.mark.slow
def test_where_few_gpus_are_at_the_network_roots_are_free():
    """By a share each 10.1 us; the GPUs at the ports add up more than the others do."""
    result = solve(asked("ndv2:hosts=2", "all-reduce", 64e3), "pieces", time_limit=12)
    assert result.makespan < 9.4
    assert not any(send.terms for send in result.plan.sends)


@pytest.mark.parametrize("kind", ["broadcast", "reduce"])
def test_one_root_is_a_chain_of_pieces(kind):
    """A line of 4 GPUs, 3 hops of 0.7 us at 50 GB/s: the more pieces the nearer to 22.1 us."""
    result = solve(asked("line", kind, 1e6), "pieces", time_limit=20)
    assert 22.1 <= result.makespan <= 22.1 * 1.02


def test_chunks_that_are_to_stay_whole_are_left_to_others():
    problem = asked("dgx-1v", "all-gather", 1e6, chunks=2)
    with pytest.raises(ProblemError, match="stay whole"):
        solve(problem, "pieces")


def test_a_number_of_pieces_is_kept():
    result = solve(asked("ring", "all-gather", 1e6), "pieces", options={"pieces": 3})
    assert result.plan.chunks == 3 * 8


@pytest.mark.parametrize(
    ("cluster", "why"), [("dgx-h100:hosts=128", "2,095,104 crossings of trees")]
)
def test_what_it_refuses(cluster, why):
    assert why in formulation("pieces").why_not(asked(cluster, "all-reduce", 1e6))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(1, 10_000),
    kind=st.sampled_from(["all-gather", "reduce-scatter", "all-reduce", "broadcast", "reduce"]),
    size=st.sampled_from([1e3, 64e3, 1e6, 1e8]),
)
def test_on_random_clusters_plans_are_verified_and_above_their_bounds(seed, kind, size):
    """`solve` verifies and replays, and logs a bug where a bound is above a plan."""
    result = solve(asked(f"random:seed={seed},gpus=5", kind, size), "pieces", time_limit=0.5)
    assert not result.log
    assert result.makespan >= result.bounds[0].makespan * (1 - 1e-9)


def test_where_a_switch_copies_and_cannot_add_partners_of_one_half_are_not_those_of_the_other():
    """The switch is a place to branch in one half alone; GPUs of two islands have partners."""
    problem = random_problem(724260)
    assert any(each.copies and not each.stores for each in problem.topology.devices)

    result = solve(problem, "pieces", time_limit=2)

    assert result.bound.makespan <= result.makespan


def test_under_a_shared_limit_plans_are_compared_as_they_are_replayed():
    """All links share a limit, which orders do not know: 18 us, where 23 are proved elsewhere."""
    problem = random_problem(600174)
    assert binding_limits(problem.topology)
    alone = solve(problem, "pieces", time_limit=30)
    found = solve(problem, "auto", options={"methods": "orbit-trees,pieces"}, time_limit=30)
    assert found.makespan <= alone.makespan * (1 + 1e-6)


def test_over_an_edge_of_an_undirected_tree_goes_the_sum_of_the_side_behind_it():
    topology = open_cluster("line:gpus=4")
    trees = Undirected(topology)
    index = topology.link_index
    edges = [
        (topology.index[a], topology.index[b], (index[a, b],), (index[b, a],))
        for a, b in (("g0", "g1"), ("g1", "g2"), ("g2", "g3"))
    ]
    pattern = trees.pattern(edges)
    ends = [
        (topology.links[links[0]].src, topology.links[links[-1]].dst) for links in pattern.routes
    ]
    assert dict(zip(ends, pattern.terms, strict=True)) == {
        ("g0", "g1"): {0},
        ("g1", "g2"): {0, 1},
        ("g2", "g3"): {0, 1, 2},
        ("g3", "g2"): {3},
        ("g2", "g1"): {2, 3},
        ("g1", "g0"): {1, 2, 3},
    }
    head, tail = pattern.heads([1.0] * 6)
    # The longest path has three hops, both ways.
    assert dict(zip(ends, (head + 1 + tail).tolist(), strict=True)) == dict.fromkeys(ends, 3.0)
    assert head[ends.index(("g2", "g1"))] == 1.0


def test_what_spreads_from_a_root_waits_for_all_that_came_to_it():
    def waits(*pairs):
        return np.array(pairs, dtype=np.int64).reshape(-1, 2).T

    # 3 -> 2 -> 0 and 1 -> 0; then 0 -> 1 and 0 -> 2 -> 3.
    inward = Pattern(0, ((0,), (1,), (2,)), *waits((0, 1)))
    outward = Pattern(1, ((3,), (4,), (5,)), *waits((1, 2)))
    both = met(inward, outward)
    assert both.routes == ((0,), (1,), (2,), (3,), (4,), (5,))
    assert [sorted(each) for each in both.waits] == [[], [0], [], [1, 2], [1, 2], [4]]


def test_random_trees_reach_everybody_by_links_that_have_links_back():
    topology = open_cluster("torus")
    trees = Undirected(topology)
    for edges in trees.random(transfers_of(topology), many=30, nbytes=1e3, seed=0):
        assert len(edges) == 15
        assert len({end for edge in edges for end in edge[:2]}) == 16
        pattern = trees.pattern(edges)
        ends = [ends_of(topology, links) for links in pattern.routes]
        terms = dict(zip(ends, pattern.terms, strict=True))
        assert len(terms) == 30
        for (one, other), there in terms.items():
            assert there | terms[other, one] == frozenset(range(16))
            assert not there & terms[other, one]


def test_every_third_random_tree_crosses_between_hosts_but_once():
    topology = open_cluster("mi250:hosts=2")
    host = [each.host for each in topology.devices]
    found = Undirected(topology).random(transfers_of(topology), many=90, nbytes=1e3, seed=0)
    between = [sum(host[one] != host[other] for one, other, *_ in edges) for edges in found]
    assert len(between) == 90
    assert between.count(1) >= 30


def test_random_trees_are_none_where_links_one_way_alone_join_the_hosts():
    topology = open_cluster("ndv2:hosts=2")
    found = Undirected(topology).random(transfers_of(topology), many=30, nbytes=1e3, seed=0)
    assert not list(found)


def test_two_gpus_that_no_link_joins_both_ways_have_no_random_trees():
    devices = (device("gpu", "g0"), device("gpu", "g1"), device("switch", "s0"))
    ends = (("g1", "g0"), ("g0", "s0"), ("s0", "g1"))
    topology = Topology("one way round", devices, tuple(Link(*each, 10.0, 1.0) for each in ends))
    found = Undirected(topology).random(transfers_of(topology), many=30, nbytes=1e3, seed=0)
    assert not list(found)
    result = solve(Problem(topology, make_collective("all-reduce", 2, 1e3)), "pieces")
    assert result.makespan > 0


@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=12), st.integers(1, 300))
def test_whole_numbers_of_pieces_are_within_one_of_their_shares(weights, pieces):
    shares = np.array(weights) / sum(weights)
    found = counted(shares, pieces)
    assert found.sum() == pieces
    assert (np.abs(found - shares * pieces) < 1).all()


def test_numbers_of_pieces_are_climbed_with_the_cheap_ones_before_the_far_ones():
    """48 is the best: its neighbours come before 192, and 8 before 48, which takes longer."""
    tried: list[int] = []

    def attempt(number: int) -> float:
        tried.append(number)
        return abs(number - 48) + 1.0

    kind = Kind(0, attempt, [8, 24, 48, 96, 192])
    while kind.left:
        kind.step(24)

    assert tried == [24, 8, 48, 96, 192]


def turns(
    kinds: list[tuple[int, str, dict[int, float]]], many: int, *, known: float = math.inf
) -> list[tuple[str, int]]:
    """Return the styles and numbers of pieces of the first attempts, four pieces first."""
    tried: list[tuple[str, int]] = []

    def kind(family: int, style: str, makespans: dict[int, float]) -> Kind:
        def attempt(number: int) -> float:
            tried.append((style, number))
            return makespans[number]

        return Kind(family, attempt, [*makespans])

    limits = SimpleNamespace(
        verify=lambda now: None,
        reached=lambda: len(tried) >= many,
        exchange_in_time=lambda: None,
        exchange=lambda: tried.append(("exchange", 0)),
        known=known,
        left=1.0,
    )
    by_turns([kind(*each) for each in kinds], 4, limits)
    assert tried.pop() == ("exchange", 0)
    return tried


@pytest.mark.parametrize(("known", "many"), [(math.inf, 3), (9.0, 1)])
def test_time_that_is_over_ends_it_once_there_is_a_plan_here_or_elsewhere(known, many):
    """The first two attempts come to nothing, as plans that cannot be verified in time do."""
    kinds = [(0, "a", {4: math.inf, 8: 7.0}), (1, "b", {4: math.inf, 8: math.inf})]

    assert len(turns(kinds, 1, known=known)) == many


def test_a_plan_that_seems_to_take_all_the_time_is_verified_and_the_others_follow():
    """The first plan that is verified brings much that others do not need again."""
    limits = SimpleNamespace(left=1.0, known=math.inf, exchange_in_time=list, exchange=list)
    limits.reached = lambda: limits.left == 0

    def attempt(number: int) -> float:
        limits.left = 0.0 if number == 4 else 1.0
        return 10.0 - number

    def verify(*, now: bool) -> None:
        limits.left = 1.0 if now else limits.left

    limits.verify = verify
    tried = Kind(0, attempt, [4, 8])
    by_turns([tried], 4, limits)

    assert tried.found == {4: 6.0, 8: 2.0}


@pytest.mark.parametrize(("known", "times"), [(9.0, [(3, True), (6, False)]), (8.5, [(6, False)])])
def test_plans_are_changed_for_a_while_if_the_best_is_one_and_later_at_length(
    monkeypatch, known, times
):
    """Of ten seconds: after two nothing, after three if the plan of 9 µs is the best, after six."""
    run = SimpleNamespace(best=None, enough=False, latency=0.5, over=lambda: False)
    run.best_known, found = lambda: known, []
    now = clock()
    limits = Limits(now + 10.0, run)
    plan: Any = SimpleNamespace(least=9.0, worth=lambda known: True)
    plan.begun = SimpleNamespace(plan=(np.zeros(10), np.zeros(10)))
    limits.changing["kind"], limits.since = plan, now

    def exchanged(exchanges: list[Any], *, briefly: bool, **_: object) -> None:
        assert exchanges == [plan]
        found.append((round(cuts.clock() - now), briefly))

    monkeypatch.setattr(cuts, "exchanged", exchanged)
    for seconds in (2.0, 3.0, 4.0, 6.0, 7.0):
        monkeypatch.setattr(cuts, "clock", lambda seconds=seconds: now + seconds)
        limits.exchange_in_time()

    assert found == times


def test_what_had_to_begin_with_few_pieces_goes_on_to_more_before_other_styles():
    """Each family once, then the better one up to where more pieces are worse."""
    kinds = [
        (0, "a", {4: 12.0, 8: 12.5, 16: 12.5}),
        (1, "b", {4: 10.0, 8: 9.0, 16: 9.5}),
        (1, "c", {4: 10.5, 8: 11.0, 16: 11.0}),
    ]

    assert turns(kinds, 5) == [("a", 4), ("b", 4), ("b", 8), ("b", 16), ("c", 4)]


def test_a_family_a_quarter_behind_with_few_pieces_is_tried_with_more_before_other_styles():
    """In few pieces stages of hundreds of messages are behind trees, and in many before them."""
    kinds = [
        (0, "a", {4: 11.5, 8: 11.0, 16: 8.0}),
        (1, "b", {4: 10.0, 8: 9.0, 16: 9.5}),
        (1, "c", {4: 10.5, 8: 11.0, 16: 11.0}),
    ]
    first = [("a", 4), ("b", 4), ("b", 8), ("a", 8), ("b", 16), ("a", 16)]

    assert turns(kinds, 6) == first


def test_a_family_a_little_behind_with_few_pieces_is_tried_with_more():
    """The better one gains little by more pieces, and it much."""
    kinds = [
        (0, "a", {4: 10.0, 8: 9.9, 16: 9.95}),
        (1, "b", {4: 11.0, 8: 8.5, 16: 9.0}),
        (1, "c", {4: 13.0, 8: 13.0, 16: 13.0}),
    ]

    assert turns(kinds, 6) == [("a", 4), ("b", 4), ("a", 8), ("a", 16), ("b", 8), ("b", 16)]


def test_what_is_slower_than_a_plan_elsewhere_is_neither_kept_nor_verified():
    waiting: Any = SimpleNamespace(time=9.0, jobs=None)
    run = SimpleNamespace(best=None, enough=False, best_known=lambda: inf)
    limits = Limits(clock() + 5.0, run)
    assert not limits.beaten(9.0)

    run.best_known = lambda: 8.0
    limits.waiting = waiting
    limits.verify(now=True)

    assert limits.waiting is None
    assert limits.beaten(8.0)
    assert not limits.beaten(7.9)


@pytest.mark.parametrize(
    ("time", "overtaking", "kept"),
    [(10.5, True, 9.0), (10.5, False, None), (10.7, True, None), (9.9, False, 9.9)],
)
def test_what_is_hardly_behind_is_replayed_where_data_overtakes(
    monkeypatch, time, overtaking, kept
):
    """Replays take 9 us here, and elsewhere a plan of 10 us is known."""
    proof = SimpleNamespace(makespan=8.0)
    run = SimpleNamespace(best_known=lambda: 10.0, replay=lambda plan: 9.0, problem=None)
    run.merit, run.gap, run.proof = None, 0.0, proof
    limits = Limits(clock() + 50.0, run)
    monkeypatch.setattr(Waiting, "schedule", lambda self, problem: None)
    monkeypatch.setattr(Limits, "verify", lambda self, **_: None)
    monkeypatch.setattr(Limits, "shared", False)
    jobs: Any = SimpleNamespace(work=10, effort=10, terms=None)
    cut: Any = SimpleNamespace(model=SimpleNamespace(routes=None))
    ends = np.array([0.0, time])

    assert limits.offer(jobs, cut, (ends, ends), overtaking=overtaking) == (kept or time)
    assert kept == (limits.waiting and limits.waiting.time)


@dataclass
class Named:
    """What Limits look at of jobs."""

    terms: tuple[frozenset[int], ...] | None = (frozenset({0}),)
    effort: int = 10
    work: int = 10


def test_what_could_not_be_verified_in_time_is_not_put_into_order():
    """Verifying ten thousand sends takes ten seconds here; without a plan yet it is done."""
    run = SimpleNamespace(best=None, enough=False, best_known=lambda: inf)
    limits = Limits(clock() + 5.0, run)
    limits.rates[False] = 1e-3
    few, many, named = Named(None, 1_000), Named(None, 10_000), Named(effort=1_000)

    assert not limits.too_many(many)
    run.best_known = lambda: 1.0
    assert limits.too_many(many)
    assert not limits.too_many(few)
    assert limits.too_many(named)  # names take longer


def verifying(
    offer: Any, known: Callable[[], float], *, seconds: float, staged: bool
) -> tuple[Limits, Any, Any]:
    """Return limits whose run takes plans by `offer`, jobs with names, and how they are cut."""
    run: Any = SimpleNamespace(best=None, enough=False, best_known=known, problem=None)
    run.offer, run.met, run.over = offer, lambda size: None, lambda: False
    run.gap, run.proof = 0.0, SimpleNamespace(makespan=5.0)
    cut = SimpleNamespace(model=SimpleNamespace(size=None), staged=staged)
    return Limits(clock() + seconds, run), Named(), cut


def test_a_plan_that_needs_names_is_verified_with_them_at_once(monkeypatch):
    """It had waited until a better one took longer to verify than there was time."""
    offered = []

    def offer(plan, *, doubted=False):
        offered.append(plan)
        if doubted:
            raise ScheduleError("a sum comes twice", where="g0")

    monkeypatch.setattr(Waiting, "schedule", lambda self, problem: self.jobs.terms)
    limits, jobs, cut = verifying(offer, lambda: 10.0, seconds=50.0, staged=True)
    limits.waiting = Waiting(9.0, jobs, cut, np.zeros(1), cut, bare=True)

    limits.verify(now=False)

    assert offered == [None, jobs.terms]
    assert limits.named == {True}  # trees alone may need no names


@pytest.mark.parametrize(("without", "names"), [(9.05, 1), (12.0, 2)])
def test_names_that_gain_a_little_are_not_verified_for_long(without, names, monkeypatch):
    """On GB200 NVL72 they took 4.2 of 5.7 s, for 0.3 %; without them the next plan is optimal."""
    offered, found = [], [20.0]

    def offer(plan, *, doubted=False):
        del doubted
        offered.append(plan)
        found.append(without)

    monkeypatch.setattr(Waiting, "schedule", lambda self, problem: self.jobs.terms)
    limits, jobs, cut = verifying(offer, lambda: found[-1], seconds=20.0, staged=False)
    limits.rates = {False: 1e-3, True: 1.0}
    limits.waiting = Waiting(9.0, jobs, cut, np.zeros(1), cut, bare=True)

    limits.verify(now=True)

    assert offered == [None, jobs.terms][:names]


def test_of_a_plan_sends_take_long_to_verify_and_waits_little():
    one, two = np.arange(100), np.arange(1, 101)
    jobs: Any = Jobs(np.zeros(101), np.zeros((101, 3)), one, one, two, one, one)

    assert jobs.effort == pytest.approx(105)
    assert jobs.work == 201


def test_what_memory_does_not_hold_is_not_written_down_even_as_the_first_plan():
    limits = Limits(clock() + 5.0, SimpleNamespace(best_known=lambda: inf))

    assert limits.too_many(Named(None, work=MOST_WORK + 1))
