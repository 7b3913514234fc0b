"""Replay of sends that name what they carry: each waits for that, and for nothing else."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccl.collective import make_collective
from ccl.errors import ScheduleError
from ccl.plans import Schedule, Send, ranks_of
from ccl.problem import Problem
from ccl.simulate.dependencies import _Values
from ccl.simulate.transmissions import plan_sends
from ccl.timeline import Reason, causes
from ccl.topology import Link, SharedLimit, Topology, binding_limits, device, duplex
from ccl.verify import verify
from formulations import solve
from gallery import open_cluster
from tests.ccl.clusters import MB, gpus, line, mesh, star
from tests.ccl.judging import named, replay, summed
from tests.ccl.undirected import before, jobs_of, one_by_one, planned, precedence, question


@pytest.mark.parametrize(
    ("tree", "longest"),
    [([(0, 1), (1, 2), (2, 3)], 3), ([(0, 1), (0, 2), (0, 3)], 2), ([(1, 0), (1, 2), (2, 3)], 3)],
)
def test_one_tree_takes_as_long_as_its_longest_path(tree, longest):
    """20 µs and 1 µs a hop; what an edge brings one way waits for nothing of the other side."""
    problem = summed(mesh(4, alpha=1.0), range(4), range(4))
    assert replay(problem, planned(problem, [tree])).makespan == pytest.approx(21 * longest)


def test_two_trees_that_cross_take_turns_on_their_links():
    trees = [[(0, 1), (1, 2), (2, 3)], [(1, 0), (0, 2), (2, 3)]] * 2
    problem = question(mesh(4, alpha=1.0), trees, 4 * MB)
    schedule = planned(problem, trees)
    timeline = replay(problem, schedule)
    assert timeline.makespan == pytest.approx(precedence(problem, trees, schedule))
    assert len(timeline.terms) == len(timeline.transfers)
    for transfer, terms in zip(timeline.transfers, timeline.terms, strict=True):
        assert problem.topology.rank[transfer.src] in terms
        assert problem.topology.rank[transfer.dst] not in terms


def path_from(topology, root):
    """Return the edges of the first path from a rank that comes to all others."""
    paths = [[root]]
    while len(paths[-1]) < len(topology.ranks):
        path = paths.pop()
        near = [topology.rank[each.dst] for each in topology.links_out[topology.ranks[path[-1]]]]
        paths += [[*path, rank] for rank in reversed(near) if rank not in path]
    return list(pairwise(paths[-1]))


def test_undirected_trees_on_dgx_1v_at_64_kb():
    """A tree from every GPU takes as long as its jobs alone, however late the epochs of the plan.

    Without terms each send waits for all that the plan has at its source before: where every send
    has epochs of its own that is the message from the other side too.
    """
    topology = open_cluster("dgx-1v")
    trees = [path_from(topology, root) for root in range(8)]
    problem = question(topology, trees, 65536)
    schedule = planned(problem, trees)
    alone = precedence(problem, trees, schedule)
    assert replay(problem, schedule).makespan == pytest.approx(alone)
    late = one_by_one(schedule, 6)
    assert replay(problem, late).makespan == pytest.approx(alone)
    plain = tuple(replace(send, terms=None) for send in late.sends)
    assert replay(problem, replace(late, sends=plain)).makespan > 1.1 * alone


def test_each_transfer_waits_for_the_values_that_it_carries():
    """On a line g1 -> g2 waits for g0 alone, though g2 has sent to g1 long before it starts."""
    problem = summed(line(3), range(3), range(3))
    sends = (
        named(0, "g0", "g1", 0),
        named(0, "g2", "g1", 2),
        named(4, "g1", "g2", 0, 1),
        named(4, "g1", "g0", 1, 2),
    )
    timeline = replay(problem, Schedule(sends, 20.0, 5))
    assert timeline.makespan == pytest.approx(40.0)
    ends = [(each.src, each.dst) for each in timeline.transfers]
    by = {ends[i]: [ends[j] for j in those] for i, those in enumerate(timeline.after)}
    assert by["g1", "g2"] == [("g0", "g1")]
    assert by["g1", "g0"] == [("g2", "g1")]
    assert causes(problem, timeline)[3].reason is Reason.NOT_THERE


def test_without_terms_a_send_waits_for_what_it_adds_up():
    """The sum {0, 1} holds g0's contribution, so that what came alone is not waited for."""
    problem = summed(mesh(4), range(4), [3])
    sends = (
        named(0, "g0", "g1", 0),
        named(1, "g1", "g2", 0, 1),
        named(3, "g0", "g2", 0),
        Send(5, 0, "g2", "g3"),
    )
    timeline = replay(problem, Schedule(sends, 20.0, 6))
    assert timeline.terms[-1] == {0, 1, 2}
    assert timeline.after[-1] == (
        next(i for i, terms in enumerate(timeline.terms) if terms == {0, 1}),
    )


def test_a_switch_passes_on_what_it_is_sent_each_by_itself():
    """s has g1's part late: g0's does not wait for it, though the plan has both in one epoch."""
    topology = Topology(
        "s",
        (*gpus(4), device("switch", "s")),
        tuple(
            link
            for r, bandwidth in enumerate((50.0, 25.0, 50.0, 50.0))
            for link in duplex(f"g{r}", "s", bandwidth=bandwidth)
        ),
    )
    problem = summed(topology, [0, 1], [2])
    sends = (
        named(0, "g0", "s", 0),
        named(0, "g1", "s", 1),
        named(2, "s", "g3", 0),
        named(2, "s", "g2", 1),
        named(3, "g3", "g2", 0, via=("s",)),
    )
    first = replace(sends[0], epoch=1)
    timeline = replay(problem, Schedule((first, *sends[1:]), 20.0, 6))
    begins = {(each.src, each.dst): each.start for each in timeline.transfers[:4]}
    assert begins["s", "g3"] == pytest.approx(20.0)
    assert begins["s", "g2"] == pytest.approx(40.0)


def test_a_sum_on_the_path_brings_the_union_of_its_terms():
    topology = star(4, reduces=True)
    problem = summed(topology, range(4), [0, 3])
    sends = [named(0, f"g{i}", "g3", i, via=("s",)) for i in range(3)]
    last = named(1, "g3", "g0", 1, 3), named(1, "g3", "g0", 0, 1, 2, 3, via=("s",))
    timeline = replay(problem, Schedule((*sends, last[1]), 20.0, 2))
    by_link = {(each.src, each.dst): k for k, each in enumerate(timeline.transfers)}
    assert timeline.terms[by_link["s", "g3"]] == {0, 1, 2}
    assert timeline.terms[by_link["g1", "s"]] == {1}
    assert timeline.makespan == pytest.approx(40.0)
    with pytest.raises(ScheduleError, match="none add up to chunk 0"):
        verify(problem, Schedule((*sends, replace(last[0], via=("s",))), 20.0, 2))


def test_under_a_shared_limit_sends_wait_for_their_terms_too():
    """g1 sends both ways at 50 GB/s together: 20 µs to hear of both, then 20 µs for each sum."""
    both = SharedLimit("out", (("g1", "g0"), ("g1", "g2")), 50.0)
    problem = summed(replace(line(3), limits=(both,)), range(3), range(3))
    sends = (
        named(0, "g0", "g1", 0),
        named(0, "g2", "g1", 2),
        named(2, "g1", "g2", 0, 1),
        named(5, "g1", "g0", 1, 2),
    )
    timeline = replay(problem, Schedule(sends, 20.0, 6))
    assert timeline.makespan == pytest.approx(60.0)
    assert [sorted(terms) for terms in timeline.terms] == [[0], [2], [0, 1], [1, 2]]


@st.composite
def trees_on_clusters(draw):
    """Return a cluster of links of several speeds and a spanning tree for each piece."""
    count = draw(st.integers(2, 6))
    edges = draw(trees(count))
    more = [(u, v) for u in range(count) for v in range(u) if draw(st.booleans())]
    joined = {(max(edge), min(edge)) for edge in [*edges, *more]}
    links: list[Link] = []
    for u, v in sorted(joined):
        bandwidth = draw(st.sampled_from([12.5, 25.0, 50.0]))
        alpha = draw(st.sampled_from([0.0, 0.7, 5.0]))
        links += duplex(f"g{u}", f"g{v}", bandwidth=bandwidth, alpha=alpha)
    topology = Topology("drawn", gpus(count), tuple(links))
    pieces = count * draw(st.integers(1, 2))
    return topology, [draw(spanning(count, sorted(joined))) for _ in range(pieces)]


@st.composite
def trees(draw, count):
    """Return the edges of a tree: each rank hangs on one before it."""
    return [(rank, draw(st.integers(0, rank - 1))) for rank in range(1, count)]


@st.composite
def spanning(draw, count, edges):
    """Return a spanning tree of a graph: edges in a drawn order, those that close no circle."""
    group = list(range(count))
    tree = []
    for u, v in draw(st.permutations(edges)):
        if group[u] != group[v]:
            tree.append((u, v))
            old = group[v]
            group = [group[u] if each == old else each for each in group]
    return tree


@settings(max_examples=60, deadline=None)
@given(trees_on_clusters())
def test_undirected_trees_take_as_long_as_their_jobs(drawn):
    topology, pieces = drawn
    problem = question(topology, pieces, 1e5 * len(pieces))
    schedule = planned(problem, pieces)
    timeline = replay(problem, schedule)
    assert timeline.makespan == pytest.approx(precedence(problem, pieces, schedule))


@st.composite
def trees_on_stars(draw):
    """Return a star round a switch of any ability, and a tree for each piece."""
    count = draw(st.integers(2, 6))
    topology = star(count, alpha=0.7, copies=draw(st.booleans()), reduces=draw(st.booleans()))
    return topology, [draw(trees(count)) for _ in range(count)]


@settings(max_examples=60, deadline=None)
@given(trees_on_stars())
def test_undirected_trees_share_no_links_of_a_switch(drawn):
    """What it could copy or add is not the same: each edge of a tree carries other ranks."""
    topology, pieces = drawn
    problem = question(topology, pieces, 1e5 * len(pieces))
    schedule = planned(problem, pieces)
    timeline = replay(problem, schedule)
    assert timeline.makespan == pytest.approx(precedence(problem, pieces, schedule))


@settings(max_examples=60, deadline=None)
@given(trees_on_clusters(), st.data())
def test_a_contribution_too_few_or_another_twice_is_refused(drawn, data):
    """What is behind an edge comes over it alone, so that none of it may be left out."""
    topology, pieces = drawn
    problem = question(topology, pieces, 1e5 * len(pieces))
    schedule = planned(problem, pieces)
    place = data.draw(st.integers(0, len(schedule.sends) - 1))
    send = schedule.sends[place]
    terms = send.terms - {data.draw(st.sampled_from(sorted(send.terms)))}
    if not terms or data.draw(st.booleans()):
        others = frozenset(range(len(topology.ranks))) - send.terms
        terms |= {data.draw(st.sampled_from(sorted(others)))}
    sends = (*schedule.sends[:place], replace(send, terms=terms), *schedule.sends[place + 1 :])
    with pytest.raises(ScheduleError):
        verify(problem, replace(schedule, sends=sends))


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        *product(["all-reduce", "reduce-scatter", "reduce"], ["ring", "list"]),
        ("all-reduce", "tree"),
        ("reduce", "tree"),
    ],
)
@pytest.mark.parametrize(
    "cluster", ["ring:gpus=4", "star:gpus=4", "star:gpus=4,copies=true,reduces=true", "dgx-1v"]
)
def test_a_plan_of_sums_is_the_same_with_their_terms(cluster, kind, method):
    """Each send names what it carries: it is let through, and nothing comes later for it."""
    topology = open_cluster(cluster)
    problem = Problem(topology, make_collective(kind, len(topology.ranks), 1e6))
    result = solve(problem, method, time_limit=0.5)
    schedule, cut = result.plan, result.problem
    plan = plan_sends(cut, schedule, binding_limits(topology))
    sums = {number for number, chunk in enumerate(cut.collective.chunks) if chunk.reduced}
    carried = _Values(cut, schedule, plan, sums).carried()
    sends = tuple(
        replace(send, terms=frozenset(ranks_of(carried[i].bits))) if i in carried else send
        for i, send in enumerate(plan.sends)
    )
    timeline = replay(cut, replace(schedule, sends=sends))
    assert timeline.makespan <= result.makespan * (1 + 1e-9)


def test_the_helper_waits_for_all_others():
    tree = [(0, 1), (1, 2), (1, 3)]
    assert before([tree], (0, 1, 2)) == [(0, 0, 1), (0, 3, 1)]
    assert jobs_of([tree])[:3] == [(0, 0, 1), (0, 2, 1), (0, 3, 1)]
