"""Lower bounds for plans that never split a chunk, against optima known to be reached."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gallery
from ccl.bound import Cut, Path
from ccl.collective import Chunk, all_gather, custom, make_collective
from ccl.problem import Problem
from ccl.topology import Link, SharedLimit, Topology, device, duplex
from formulations.bounds import best_bound, lower_bounds

MB = 1e6

REACHED = [
    (1e9, 43_752.7, 61_879),
    (256e6, 11_202.7, 15_844),
    (64e6, 2_802.7, 3_964),
    (16e6, 702.7, 994),
    (4e6, 177.7, 251.5),
    (1e6, 46.45, 65.875),
    (256e3, 13.9, 19.84),
    (64e3, 5.96, 8.22),
    (16e3, 4.44, 5.81),
    (4e3, 4.185, 5.5025),
    (1e3, 4.12125, 5.42563),
]
"""Bytes and the makespans in µs that all-gathers of one chunk per rank reach on two and on four
NDv2: own schedules, replayed in continuous time."""


@pytest.mark.parametrize(("size", "two", "four"), REACHED)
def test_ndv2_all_gathers_that_are_reached_are_proved_optimal(size, two, four):
    for hosts, makespan in ((2, two), (4, four)):
        topology = gallery.open_cluster(f"ndv2:hosts={hosts}")
        bound = best_bound(Problem(topology, all_gather(8 * hosts, size)), whole_chunks=True)

        assert bound.makespan == pytest.approx(makespan, rel=1e-6)
        assert bound.kind == "cut"
        assert bound.whole_chunks


def test_the_cut_between_two_ndv2_with_its_tail():
    """8 chunks of 62.5 MB at 12.5 GB/s, then 1.3 µs, then 2500 and 1250 µs to the farthest GPU."""
    topology = gallery.open_cluster("ndv2")
    bound = best_bound(Problem(topology, all_gather(16, 1e9)), whole_chunks=True)

    assert bound.makespan == pytest.approx(8 * 5000 + 1.3 + 2500 + 0.7 + 1250 + 0.7)
    assert isinstance(bound.witness, Cut)
    assert bound.witness.links in ((("g0", "g9"),), (("g8", "g1"),))


def test_a_link_takes_no_half_chunks():
    """3 chunks of 1 MB over two links of 10 GB/s: 100 µs for one each, 200 for the third."""
    devices = (device("gpu", "a"), device("switch", "s"), device("gpu", "b"))
    links = (
        *duplex("a", "b", bandwidth=10),
        *duplex("a", "s", bandwidth=10),
        *duplex("s", "b", bandwidth=10),
    )
    problem = Problem(
        Topology("two ways", devices, links), make_collective("broadcast", 2, 3 * MB, chunks=3)
    )

    assert best_bound(problem).makespan == pytest.approx(150)
    assert best_bound(problem, whole_chunks=True).makespan == pytest.approx(200)


def test_a_cut_is_like_another_only_if_it_needs_as_much():
    """Four GPUs on two rails of 10 GB/s: the last gathers three chunks over its two links, 200 µs.

    Of cuts that look alike a few are tried; around the first GPUs each has one chunk to let out.
    """
    devices = (
        *(device("gpu", f"g{i}") for i in range(4)),
        *(device("switch", f"s{i}") for i in range(2)),
    )
    links = [
        link
        for i, rail in itertools.product(range(4), ("s0", "s1"))
        for link in duplex(f"g{i}", rail, bandwidth=10)
    ]
    problem = Problem(
        Topology("rails", devices, tuple(links)), make_collective("gather", 4, 4 * MB, root=3)
    )

    bounds = lower_bounds(problem, whole_chunks=True)

    assert best_bound(problem).makespan == pytest.approx(150)
    assert bounds[0].makespan == pytest.approx(200)
    assert bounds[0].kind == "ejection"


def test_links_of_unequal_speed_and_latency_take_what_they_can():
    """A link of 10 GB/s done at 100, 200, 300 and one of 4 GB/s, 60 µs long, at 310: 4th is 310."""
    devices = (device("gpu", "a"), device("switch", "s"), device("gpu", "b"))
    links = (Link("a", "b", 10), Link("a", "s", 4, 60), Link("s", "b", 4), Link("b", "a", 10))
    problem = Problem(
        Topology("unequal", devices, links), make_collective("broadcast", 2, 4 * MB, chunks=4)
    )

    assert best_bound(problem, whole_chunks=True).makespan == pytest.approx(310)


def test_links_under_a_limit_are_one_machine():
    """Two links of 10 GB/s under 15 GB/s have brought 1 MB three times by 67, 133 and 200 µs.

    The fourth would take them to 267 µs, a third link of 4 GB/s 250 µs. Without the limit the two
    are done with four at 200 µs; flowing, 4 MB take 4 / 19 ms, which is 211 µs.
    """
    switches = tuple(device("switch", f"s{i}") for i in range(3))
    ways = [
        link
        for i, rate in ((0, 10), (1, 10), (2, 4))
        for link in (Link("a", f"s{i}", rate), Link(f"s{i}", "b", rate))
    ]
    limit = SharedLimit("bus", (("a", "s0"), ("a", "s1")), 15)
    devices = (device("gpu", "a"), *switches, device("gpu", "b"))
    topology = Topology("bus", devices, (*ways, Link("b", "a", 10)), (limit,))
    problem = Problem(topology, make_collective("broadcast", 2, 4 * MB, chunks=4))

    assert best_bound(problem).makespan == pytest.approx(4000 / 19)
    assert best_bound(problem, whole_chunks=True).makespan == pytest.approx(250)


def test_late_chunks_cross_late():
    """Line g0 g1 g2, gather to g2: the chunk of g0 is at g1 after 100 µs and crosses then."""
    topology = gallery.open_cluster("line:gpus=3,bandwidth=10,alpha=0")
    near = Problem(topology, custom(3, [Chunk(MB, (1,), (2,))]))
    far = Problem(topology, custom(3, [Chunk(MB, (0,), (2,)), Chunk(MB, (0,), (2,))]))

    assert best_bound(near, whole_chunks=True).makespan == pytest.approx(100)
    assert best_bound(far, whole_chunks=True).makespan == pytest.approx(300)


def test_whole_chunks_pay_for_their_bytes_at_every_storing_device():
    """Line of 3: 1 MB at 10 GB/s and 1 µs twice, once after the other at g1."""
    topology = gallery.open_cluster("line:gpus=3,bandwidth=10,alpha=1")
    problem = Problem(topology, make_collective("broadcast", 3, MB))
    ways = [each for each in lower_bounds(problem, whole_chunks=True) if each.kind == "path"]

    assert best_bound(problem).makespan == pytest.approx(102)
    assert ways[0].makespan == pytest.approx(202)
    assert ways[0].witness == Path(("g0", "g1", "g2"))
    assert [each.whole_chunks for each in ways] == [True, False]


def test_whole_chunks_are_cut_through_switches():
    """A star passes the bytes on as they come: 1 MB at 10 GB/s once, 1 µs twice."""
    topology = gallery.open_cluster("star:gpus=3,bandwidth=10,alpha=1,copies=true")
    problem = Problem(topology, make_collective("broadcast", 3, MB))
    ways = [each for each in lower_bounds(problem, whole_chunks=True) if each.kind == "path"]

    assert ways[0].makespan == pytest.approx(102)
    assert best_bound(problem, whole_chunks=True).makespan == pytest.approx(102)


@pytest.mark.parametrize(("first", "then"), [(10, 5), (5, 10)])
def test_the_slowest_link_of_a_cut_through_is_paid_for(first, then):
    """Through a switch from 10 to 5 GB/s, or to 10: 200 µs for 1 MB, not 100 and not 300."""
    devices = (device("gpu", "a"), device("switch", "s"), device("gpu", "b"))
    links = (Link("a", "s", first, 1), Link("s", "b", then, 2), Link("b", "a", 1))
    problem = Problem(Topology("narrow", devices, links), make_collective("broadcast", 2, MB))
    way = next(e for e in lower_bounds(problem, whole_chunks=True) if e.kind == "path")

    assert way.makespan == pytest.approx(203)


def test_a_wide_detour_beats_a_narrow_link():
    """1 MB directly at 1 GB/s takes 1000 µs, over a switch at 10 GB/s with 50 µs twice 200."""
    devices = (device("gpu", "a"), device("switch", "s"), device("gpu", "b"))
    links = (Link("a", "b", 1), Link("a", "s", 10, 50), Link("s", "b", 10, 50), Link("b", "a", 1))
    problem = Problem(Topology("detour", devices, links), make_collective("broadcast", 2, MB))
    bound = best_bound(problem, whole_chunks=True)
    way = next(e for e in lower_bounds(problem, whole_chunks=True) if e.kind == "path")

    assert bound.makespan == pytest.approx(200)
    assert way.witness == Path(("a", "s", "b"))


def drawn(rates, alphas) -> Topology:
    """A ring of four GPUs with one chord each way, as drawn."""
    pairs = [("g0", "g1"), ("g1", "g2"), ("g2", "g3"), ("g3", "g0"), ("g0", "g2")]
    ends = [way for a, b in pairs for way in ((a, b), (b, a))]
    links = [Link(*end, float(r), float(a)) for end, r, a in zip(ends, rates, alphas, strict=True)]
    return Topology("drawn", tuple(device("gpu", f"g{i}") for i in range(4)), tuple(links))


TOPOLOGIES = st.builds(
    drawn,
    st.lists(st.integers(1, 9), min_size=10, max_size=10),
    st.lists(st.integers(0, 30), min_size=10, max_size=10),
)


def first_come(problem: Problem) -> float:
    """Makespan of sending every chunk to every neighbour that lacks it, as soon as one can.

    A plan by hand that shares nothing with the bounds: store and forward, one chunk on a link at
    a time, each GPU taking what comes first.
    """
    topology, collective = problem.topology, problem.collective
    has = {(rank, c): 0.0 for c, chunk in enumerate(collective.chunks) for rank in chunk.holders}
    free = dict.fromkeys(topology.link_index, 0.0)
    numbers = range(len(collective.chunks))
    while True:
        offers = [
            (
                max(has[topology.rank[link.src], c], free[link.ends])
                + link.transfer_time(collective.chunks[c].size),
                link.ends,
                c,
            )
            for link, c in itertools.product(topology.links, numbers)
            if (topology.rank[link.src], c) in has and (topology.rank[link.dst], c) not in has
        ]
        if not offers:
            break
        arrival, ends, c = min(offers)
        free[ends] = arrival - topology.link(*ends).alpha
        has[topology.rank[ends[1]], c] = arrival
    return max(has[rank, c] for c in numbers for rank in collective.chunks[c].destinations)


@settings(max_examples=60, deadline=None)
@given(
    TOPOLOGIES,
    st.sampled_from(["all-gather", "broadcast", "gather", "scatter", "all-to-all"]),
    st.integers(1, 3),
    st.sampled_from([1e3, 1e5, 1e6]),
)
def test_no_bound_is_above_a_plan_by_hand(topology, kind, chunks, size):
    problem = Problem(topology, make_collective(kind, 4, size, chunks=chunks))

    for whole in (False, True):
        bound = best_bound(problem, whole_chunks=whole)
        assert bound.makespan <= first_come(problem) * (1 + 1e-9)


@settings(max_examples=30, deadline=None)
@given(TOPOLOGIES, st.sampled_from(["all-gather", "broadcast", "gather"]), st.integers(1, 2))
def test_no_bound_is_above_a_plan_by_hand_read_backwards(topology, kind, chunks):
    """Read backwards a plan of one is a plan of the other, so a bound of each holds for both."""
    collective = make_collective(kind, 4, MB, chunks=chunks)
    forth = Problem(topology, collective)
    back = Problem(topology.reversed(), collective.reversed())

    for whole in (False, True):
        bound = best_bound(back, whole_chunks=whole)
        assert bound.makespan <= first_come(forth) * (1 + 1e-9)


def test_bounds_for_whole_chunks_are_never_below_the_others():
    topology = gallery.open_cluster("dgx-a100:hosts=2")
    problem = Problem(topology, all_gather(16, 16 * MB, chunks=2))

    assert best_bound(problem, whole_chunks=True).makespan >= best_bound(problem).makespan * (
        1 - 1e-9
    )
    assert not any(each.whole_chunks for each in lower_bounds(problem))


def test_a_sum_may_end_in_the_group_with_the_shorter_tail():
    """Two pairs, joined by their first GPUs; only from a0 to a1 there are 50 µs of latency.

    Four shards of 10 KB, 0.1 µs within a pair, 1 µs from b0 to a0 and 10 µs back. All four sums of
    pair b reach a0 at 0.1 + 4 x 1 µs, and a1 has the last 50.1 µs later: 54.2 µs. Meanwhile the
    totals go back, the first at 1.1 µs, the last until 41.1 µs. Each shard crosses twice, eight
    times in all, and the last crossing leads to pair b: its tail counts, not that of pair a.
    """
    pairs = Topology(
        "two pairs",
        tuple(device("gpu", name, host=name[0]) for name in ("a0", "a1", "b0", "b1")),
        (
            Link("a0", "b0", 1.0), Link("b0", "a0", 10.0), Link("a1", "a0", 100.0),
            Link("a0", "a1", 100.0, 50.0), Link("b0", "b1", 100.0), Link("b1", "b0", 100.0),
        ),
    )  # fmt: skip

    bounds = lower_bounds(Problem(pairs, make_collective("all-reduce", 4, 40e3)), whole_chunks=True)

    assert max(each.makespan for each in bounds) == pytest.approx(54.2)
