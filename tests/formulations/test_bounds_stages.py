"""Bounds from two cuts in a row, from copies inside a set, and for sums of several ranks."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gallery
from ccl.collective import Chunk, all_gather, custom, make_collective
from ccl.problem import Problem
from ccl.topology import Link, Topology, device, duplex
from formulations.bounds import best_bound, flow_bounds, lower_bounds, quick_bounds
from formulations.bounds.demand import curve, last, slot, slots
from tests.formulations.test_bounds_whole import TOPOLOGIES, first_come

MB = 1e6

WHOLE = st.lists(st.integers(0, 6), min_size=1, max_size=4)


@given(WHOLE, st.integers(1, 5), st.integers(1, 12))
def test_slots_are_the_smallest_of_all_beginnings(opens, pace, count):
    """Written out: every machine, every k up to the count, sorted."""
    paces = [pace + i % 3 for i in range(len(opens))]
    every = sorted(o + k * p for o, p in zip(opens, paces, strict=True) for k in range(count))

    found = slots(np.array(opens, float), np.array(paces, float), count=count)

    assert found == pytest.approx(every[:count])
    assert slot(np.array(opens, float), np.array(paces, float), count=count) == found[-1]


@given(WHOLE, st.lists(st.integers(0, 20), min_size=1, max_size=10))
def test_a_curve_is_what_serving_jobs_as_they_come_reaches(opens, releases):
    """On machines of one pace, first come, first served is best, and a curve says when it begins.

    Each job, in order of release, takes the machine that can take it first.
    """
    pace, free, begun = 3.0, [float(each) for each in opens], []
    for release in sorted(releases):
        # A machine opens so long after the release of its first job.
        starts = [
            max(release + o, f) if f > o else release + o for o, f in zip(opens, free, strict=True)
        ]
        start = min(starts)
        free[starts.index(start)] = start + pace
        begun.append(start)
    released = np.array(sorted(releases), float)
    given_slots = slots(np.array(opens, float), np.full(len(opens), pace), count=len(releases))

    found = curve(released, given_slots)

    assert (found <= np.array(sorted(begun)) + 1e-9).all()
    assert last(released, given_slots) == pytest.approx(found[-1])
    if len(set(opens)) == 1:
        assert found == pytest.approx(sorted(begun))


def test_two_dgx_2_have_to_take_in_the_last_chunks_one_after_the_other():
    """31.25 KB take 2.5 µs between the boxes, eight at a time, and 0.25 µs inside them.

    Of 16 chunks the last eight begin to cross after 2.5 µs, are across 2.5 + 2.6 µs later and enter
    an odd GPU over the switch, 0.95 µs each and 0.25 µs apart.
    """
    topology = gallery.open_cluster("dgx-2-te-ccl:copies=true")
    bound = best_bound(Problem(topology, all_gather(32, MB)), whole_chunks=True)

    assert bound.makespan == pytest.approx(2.5 + 5.1 + 0.95 + 7 * 0.25)
    assert bound.whole_chunks


def test_copies_that_a_switch_cannot_make_take_time():
    """As above, but each of the last eight chunks is sent to 16 GPUs one by one: 128 transmissions.

    Counted from 2.5 µs: as many as 16 come straight from the other box by 7.6 µs; even GPUs can
    send from 5.1 µs on, odd ones from 6.05 µs, every 0.25 µs, and 0.95 µs later it is there. By
    8.05 µs these are 8 x 9 and 8 x 5; 16 + 72 + 40 = 128, and by 8 µs they are 120.
    """
    topology = gallery.open_cluster("dgx-2-te-ccl")
    bound = best_bound(Problem(topology, all_gather(32, MB)), whole_chunks=True)

    assert bound.makespan == pytest.approx(2.5 + 8.05)


def test_a_switch_that_cannot_copy_is_entered_once_for_each_gpu():
    """1 MB at 10 GB/s to two GPUs: twice 100 µs over the one link, whoever sends, 1 µs twice."""
    topology = gallery.open_cluster("star:gpus=3,bandwidth=10,alpha=1")
    bound = best_bound(Problem(topology, make_collective("broadcast", 3, MB)), whole_chunks=True)

    assert bound.makespan == pytest.approx(202)


def test_a_switch_that_cannot_add_is_left_once_for_each_gpu():
    """The same read backwards: two contributions enter the root one after the other."""
    topology = gallery.open_cluster("star:gpus=3,bandwidth=10,alpha=1")
    bound = best_bound(Problem(topology, make_collective("reduce", 3, MB)), whole_chunks=True)

    assert bound.makespan == pytest.approx(202)


def funnel() -> Problem:
    """Two GPUs of a host send two chunks of 1 MB each, over 10 GB/s each, to t behind a relay.

    Relays c and d pass them on to x at 100 GB/s, x to t at 25 GB/s.
    """
    names = ("a", "b", "c", "d", "x", "t")
    ways = [("a", "c", 10), ("b", "d", 10), ("c", "x", 100), ("d", "x", 100), ("x", "t", 25)]
    ways += [("t", "a", 1), ("t", "b", 1)]
    devices = tuple(device("gpu", name, host="h" if name in "ab" else None) for name in names)
    links = tuple(Link(src, dst, float(rate)) for src, dst, rate in ways)
    chunks = [Chunk(MB, (holder,), (5,)) for holder in (0, 0, 1, 1)]
    return Problem(Topology("funnel", devices, links), custom(6, chunks))


def test_the_last_of_one_cut_queue_at_the_next():
    """The second two leave the host at 100 µs, are at x at 210 µs and enter t 40 µs each: 290.

    The cut around the host alone proves 200 + 10 + 40, that around t alone 110 + 4 x 40.
    """
    assert best_bound(funnel(), whole_chunks=True).makespan == pytest.approx(290)


def test_the_same_holds_backwards():
    """A plan of the mirror read backwards is a plan, so the bound is the same: t now sends."""
    there = funnel()
    back = Problem(there.topology.reversed(), there.collective.reversed())

    assert best_bound(back, whole_chunks=True).makespan == pytest.approx(290)


def test_sums_of_whole_chunks_among_three_gpus():
    """Two chunks, each 2 x 2 times into a GPU: 8 sends over 6 links are two rounds of 100 µs."""
    names = ("a", "b", "c")
    links = [
        link
        for i, src in enumerate(names)
        for dst in names[:i]
        for link in duplex(src, dst, bandwidth=10)
    ]
    topology = Topology("three", tuple(device("gpu", each) for each in names), tuple(links))
    sums = custom(3, [Chunk(MB, (0, 1, 2), (0, 1, 2), reduced=True)] * 2)

    assert best_bound(Problem(topology, sums)).makespan == pytest.approx(800 / 6)
    assert best_bound(Problem(topology, sums), whole_chunks=True).makespan == pytest.approx(200)


def test_sums_between_hosts_wait_for_the_farthest_gpu_and_go_back_to_it():
    """Two hosts of two GPUs in a line a0 - a1 = b1 - b0: what is sent across waits for a0.

    1 MB at 10 GB/s inside (100 µs) and 5 GB/s between (200 µs). a0 and b0 are farthest: 100 µs
    before a sum that needs them can cross, two crossings over two links, 100 µs after.
    """
    gpus = ("a0", "a1", "b1", "b0")
    devices = tuple(device("gpu", name, host=name[0]) for name in gpus)
    links = (
        *duplex("a0", "a1", bandwidth=10),
        *duplex("a1", "b1", bandwidth=5),
        *duplex("b1", "b0", bandwidth=10),
    )
    sums = custom(4, [Chunk(MB, (0, 1, 2, 3), (0, 1, 2, 3), reduced=True)] * 2)
    bound = best_bound(Problem(Topology("hosts", devices, links), sums), whole_chunks=True)

    assert bound.makespan == pytest.approx(100 + 2 * 200 + 100)


@settings(max_examples=30, deadline=None)
@given(TOPOLOGIES, st.integers(1, 2), st.sampled_from([1e3, 1e5, 1e6]))
def test_no_bound_on_sums_is_above_adding_and_then_spreading_by_hand(topology, chunks, size):
    """An all-gather by hand, backwards on the reversed graph and then forwards, is a plan."""
    spread = all_gather(4, size, chunks=chunks)
    plan = first_come(Problem(topology.reversed(), spread)) + first_come(Problem(topology, spread))

    bound = best_bound(
        Problem(topology, make_collective("all-reduce", 4, size, chunks=chunks)), whole_chunks=True
    )
    assert bound.makespan <= plan * (1 + 1e-9)


def test_quick_bounds_and_the_flow_are_all_bounds():
    topology = gallery.open_cluster("torus:shape=4x4")
    problem = Problem(topology, make_collective("all-to-all", 16, MB))
    quick, flow = quick_bounds(problem, whole_chunks=True), flow_bounds(problem)

    assert [each.steady for each in flow] == [False, True]
    assert lower_bounds(problem, whole_chunks=True)[0].makespan == pytest.approx(
        max(quick[0].makespan, flow[0].makespan)
    )


def test_quick_bounds_load_no_solver():
    code = (
        "import sys, gallery; from ccl.problem import Problem; "
        "from ccl.collective import make_collective; "
        "from formulations.bounds import quick_bounds; "
        "asked = Problem(gallery.open_cluster('dgx-1v'), make_collective('all-to-all', 8, 1e6)); "
        "quick_bounds(asked, whole_chunks=True); "
        "print('cvxpy' in sys.modules, 'highspy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", "False"]


def test_a_link_that_some_chunks_cannot_reach_serves_the_others():
    """a and b each send t three chunks over a link of their own, 100 µs each: 300 in all."""
    devices = tuple(device("gpu", name) for name in "abt")
    links = (Link("a", "t", 10), Link("b", "t", 10))
    problem = Problem(
        Topology("apart", devices, links),
        custom(3, [Chunk(MB, (holder,), (2,)) for holder in (0, 0, 0, 1, 1, 1)]),
    )

    assert best_bound(problem, whole_chunks=True).makespan == pytest.approx(300)


def test_chunks_with_unequal_ways_behind_a_link_queue_for_the_link_alone():
    """On s -> a -> b -> c -> d only a -> b is slow, 200 µs against 100 µs.

    a's chunk for c crosses it first, then that of s for d, then that of s for b. They are where
    they must be at 300, at 200 + 200 + 100 + 100 and at 400 + 200 µs, so 600 µs is enough.
    """
    names = ("s", "a", "b", "c", "d")
    devices = tuple(device("gpu", name, host="h" if name in "sa" else None) for name in names)
    rates = (("s", "a", 10), ("a", "b", 5), ("b", "c", 10), ("c", "d", 10))
    links = tuple(Link(src, dst, float(rate)) for src, dst, rate in rates)
    chunks = [Chunk(MB, (1,), (3,)), Chunk(MB, (0,), (4,)), Chunk(MB, (0,), (2,))]
    problem = Problem(Topology("line", devices, links), custom(5, chunks))

    assert best_bound(problem, whole_chunks=True).makespan == pytest.approx(600)
