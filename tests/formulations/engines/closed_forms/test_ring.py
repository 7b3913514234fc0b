"""Rings: one way round, both ways, several side by side; how they are found."""

import math
from itertools import pairwise

import pytest

from ccl.collective import make_collective
from ccl.errors import Infeasible
from ccl.problem import Problem
from ccl.result import Status
from ccl.topology import Link, Topology, device
from formulations import formulation
from formulations.engines.closed_forms.rings import MOST, side_by_side
from formulations.engines.closed_forms.routing import reachability, ring_of
from gallery import open_cluster
from tests.formulations.engines.closed_forms.forms import (
    BETA,
    HOP,
    SIZE,
    STAR,
    as_written,
    asked,
    halves,
    solved,
)

SHARDED = ("all-gather", "reduce-scatter", "all-reduce")
ROOTED = ("broadcast", "reduce")


@pytest.mark.parametrize("kind", SHARDED)
@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize(
    ("cluster", "ranks", "alpha"),
    [
        ("star:gpus=2", 2, STAR),
        ("star:gpus=7", 7, STAR),
        ("ring:gpus=6", 6, HOP),
        ("full-mesh:gpus=5", 5, HOP),
        ("hypercube:dimension=3", 8, HOP),
    ],
)
def test_a_shard_goes_around_in_one_step_less_than_there_are_gpus(
    cluster, ranks, alpha, chunks, kind
):
    """In p-1 steps each GPU sends one shard of m/p: (p-1) (α + m/p β), twice for an all-reduce."""
    result = solved("ring", asked(cluster, kind, chunks=chunks))

    as_written(result, halves(kind) * (ranks - 1) * (alpha + SIZE / ranks * BETA))


@pytest.mark.parametrize("kind", ROOTED)
@pytest.mark.parametrize("chunks", [1, 2, 5])
@pytest.mark.parametrize("ranks", [3, 5, 6])
def test_chunks_of_a_root_follow_each_other(ranks, chunks, kind):
    """The first is at the last of p GPUs after p-1 steps, each other one step later."""
    result = solved("ring", asked(f"ring:gpus={ranks}", kind, chunks=chunks, root=1))

    as_written(result, (ranks - 2 + chunks) * (HOP + SIZE / chunks * BETA))


@pytest.mark.parametrize("kind", SHARDED)
@pytest.mark.parametrize("chunks", [1, 2, 3])
@pytest.mark.parametrize("ranks", [3, 4, 6, 7])
def test_both_ways_round_a_shard_goes_half_as_far(ranks, chunks, kind):
    """To (p-1)/2 places either way for p odd, a whole shard in each step.

    For p even, p/2 - 1 places either way; in one more step the place opposite gets half of the
    chunks from either side, the larger half of c odd: ceil(c/2) chunks of m/(p c).
    """
    result = solved("bidirectional-ring", asked(f"ring:gpus={ranks}", kind, chunks=chunks))

    steps = (ranks - 1) // 2 * (HOP + SIZE / ranks * BETA)
    if ranks % 2 == 0:
        steps += HOP + math.ceil(chunks / 2) / chunks * SIZE / ranks * BETA
    as_written(result, halves(kind) * steps)


@pytest.mark.parametrize("kind", ROOTED)
@pytest.mark.parametrize(
    ("ranks", "chunks", "steps"),
    [(5, 1, 2), (5, 4, 5), (6, 1, 3), (6, 4, 6), (6, 9, 9), (6, 10, 9), (5, 20, 13)],
)
def test_both_ways_round_a_root_sends_all_or_every_other_chunk(ranks, chunks, steps, kind):
    """All both ways: p // 2 steps for the first, one more for each other, p // 2 - 1 + c.

    Every other one each way: p - 2 + ceil(c / 2). The fewer of both: 5 GPUs and 4 chunks take
    min(5, 5), 6 and 9 take min(11, 9), 6 and 10 take min(12, 9), 5 and 20 take min(21, 13).
    """
    result = solved("bidirectional-ring", asked(f"ring:gpus={ranks}", kind, chunks=chunks))

    as_written(result, steps * (HOP + SIZE / chunks * BETA))


@pytest.mark.parametrize("name", ["ring", "bidirectional-ring"])
@pytest.mark.parametrize("kind", SHARDED)
def test_without_bytes_a_replay_is_the_latencies_and_without_latency_the_bytes(name, kind):
    """Nine GPUs. A chunk of no bytes waits for 8 latencies one way round, for 4 both ways.

    Without latency every link carries 8 shards one way round, 4 in each direction both ways.
    """
    far = halves(kind) * (8 if name == "ring" else 4)

    small = solved(name, asked("ring:gpus=9", kind, size=1e-6))
    quick = solved(name, asked("ring:gpus=9,alpha=0", kind))

    assert small.makespan == pytest.approx(far * HOP)
    assert quick.makespan == pytest.approx(far * SIZE / 9 * BETA)


def test_both_ways_round_is_an_optimum_for_an_odd_ring():
    """Each of 5 GPUs takes in 4 shards over 2 links, two of them from 2 links away: 2 (α + bβ)."""
    result = solved("bidirectional-ring", asked("ring:gpus=5", "all-gather"))

    assert result.whole_bound.makespan == pytest.approx(result.makespan)
    assert result.status is Status.WHOLE


def one_way(ranks: int) -> Topology:
    names = [f"g{i}" for i in range(ranks)]
    links = tuple(Link(names[i], names[i - 1], 50.0, HOP) for i in range(ranks))
    return Topology("one way", tuple(device("gpu", name) for name in names), links)


@pytest.mark.parametrize("kind", [*SHARDED, *ROOTED])
def test_a_ring_of_one_way_links_serves_sums_too(kind):
    """They are read backwards on reversed links, around the ring turned round."""
    result = solved("ring", Problem(one_way(4), make_collective(kind, 4, SIZE)))

    chunk = SIZE if kind in ROOTED else SIZE / 4
    as_written(result, halves(kind) * 3 * (HOP + chunk * BETA))


def test_what_has_no_ring_is_refused_in_words():
    why = {name: formulation(name).why_not for name in ("ring", "bidirectional-ring", "multi-ring")}
    line = asked("line:gpus=4", "all-gather")
    ahead = Problem(one_way(4), make_collective("all-gather", 4, SIZE))

    assert why["ring"](line) == "no ring through all GPUs was found in it"
    assert why["multi-ring"](line) == why["ring"](line)
    assert "can be gone around in both directions" in why["bidirectional-ring"](ahead)
    assert why["ring"](ahead) is None
    assert "ring of 2 GPUs" in why["bidirectional-ring"](asked("star:gpus=2", "all-gather"))
    with pytest.raises(Infeasible, match="both directions"):
        solved("ring", ahead, directions="both")


@pytest.mark.parametrize("kind", SHARDED)
def test_a_dgx_1_has_six_rings(kind):
    """Six NVLinks of 25 GB/s at each of 8 GPUs; with 6 chunks a shard each ring has one of them."""
    result = solved("multi-ring", asked("dgx-1v", kind, chunks=6))

    as_written(result, halves(kind) * 7 * (HOP + SIZE / 8 / 6 * 1e-3 / 25))


def test_six_rings_of_25_are_three_times_as_fast_as_one_of_50():
    problem = asked("dgx-1v:alpha=0", "all-gather", chunks=6)

    six, one = (solved(name, problem).makespan for name in ("multi-ring", "ring"))

    assert six == pytest.approx(one / 3)


def test_with_fewer_chunks_than_rings_there_are_fewer_rings_and_the_log_says_so():
    """Two chunks go around the ring of double NVLinks, 50 GB/s, one each way."""
    result = solved("multi-ring", asked("dgx-1v", "all-gather", chunks=2))

    as_written(result, 7 * (HOP + SIZE / 8 / 2 * BETA))
    assert any("ask for 6 chunks per shard" in sentence for sentence in result.log)


@pytest.mark.parametrize("rings", [1, 2, 3])
def test_so_many_rings_as_are_asked_for_and_there(rings):
    """A torus of 4x4 has 4 links a GPU, so 2 rings both ways round; each has its share."""
    result = solved("ring", asked("torus", "all-gather", chunks=2), directions="both", rings=rings)

    used = min(rings, 2)
    few = 7 * (HOP + SIZE / 16 / used * BETA)
    as_written(result, few + HOP + (1 if used == 1 else 2) / 2 * SIZE / 16 / used * BETA)
    assert any("3 rings were requested" in each for each in result.log) == (rings == 3)


def test_eight_rings_enter_and_leave_each_host_by_ports_of_their_own():
    """Two DGX A100 have 8 ports of 25 GB/s each; NVLink has room for all that goes on inside."""
    topology = open_cluster("dgx-a100:hosts=2")

    best = side_by_side(topology)[-1]
    rings = best.chosen(both=False)

    assert len(rings) == 8
    assert best.pace == 25.0
    crossed = [
        (src, dst)
        for ring in rings
        for src, dst in pairwise([*ring.tolist(), int(ring[0])])
        if src // 8 != dst // 8
    ]
    assert sorted(src for src, _ in crossed) == sorted(dst for _, dst in crossed) == list(range(16))


@pytest.mark.parametrize("cluster", ["dgx-1v", "mi250:hosts=2", "random:seed=3", "torus"])
def test_rings_side_by_side_take_no_more_of_a_link_than_it_has(cluster):
    """On clusters whose GPUs are neighbours over one link, or one way over the network."""
    topology = open_cluster(cluster)

    for found in side_by_side(topology):
        for ring in found.chosen(both=False):
            assert sorted(ring.tolist()) == list(range(len(topology.ranks)))
        taken: dict[tuple[str, str], float] = {}
        for ring in found.chosen(both=False):
            for src, dst in pairwise([*ring.tolist(), int(ring[0])]):
                ends = topology.ranks[src], topology.ranks[dst]
                if ends in topology.link_index:
                    taken[ends] = taken.get(ends, 0.0) + found.pace
        assert all(load <= topology.link(*ends).bandwidth + 1e-9 for ends, load in taken.items())


def test_rings_are_not_counted_where_one_link_is_a_millionth_of_the_others():
    """Each of these has a million lanes at its pace; some rings are enough."""
    devices = tuple(device("gpu", name) for name in "abcd")
    pairs = [(a, b) for a in "abcd" for b in "abcd" if a != b]
    links = [Link(a, b, 1e-3 if (a, b) == ("a", "c") else 1e3, 0.0) for a, b in pairs]
    fast, slow = side_by_side(Topology("unlike", devices, tuple(links)))

    assert (fast.pace, slow.pace) == (1e3, 1e-3)
    assert 1 < len(fast.chosen(both=False)) < len(slow.chosen(both=False)) <= 3 * MOST


def test_several_rings_are_the_same_ones_again():
    problem = asked("dgx-a100:hosts=2", "all-gather", chunks=8)

    first, second = (solved("multi-ring", problem) for _ in range(2))

    assert first.plan == second.plan


def test_a_ring_crosses_hosts_over_their_rails():
    """Over a rail 7 meets 15; only a way over the spine, twice as long, joins 7 and 8."""
    result = solved("ring", asked("dgx-a100:hosts=2", "all-gather"))

    assert not any("spine" in send.via for send in result.plan.sends)


def test_a_ring_through_hosts_with_one_port_out_and_another_in_is_found():
    """An NDv2 is entered at GPU 1 and left at GPU 0; the path inside goes through all between."""
    ring = ring_of(open_cluster("ndv2:hosts=4"))

    assert ring is not None
    places = ring.tolist()
    crossings = [(a, b) for a, b in pairwise([*places, places[0]]) if a // 8 != b // 8]
    assert sorted(a % 8 for a, _ in crossings) == [0, 0, 0, 0]
    assert sorted(b % 8 for _, b in crossings) == [1, 1, 1, 1]


def test_a_ring_through_1024_gpus_leaves_each_host_once():
    topology = open_cluster("rail-only:hosts=128")

    ring = ring_of(topology)

    assert ring is not None
    places = ring.tolist()
    ways = reachability(topology)
    assert sorted(places) == list(range(1024))
    assert all(ways.has(src, dst) for src, dst in pairwise([*places, places[0]]))
    assert sum(a // 8 != b // 8 for a, b in pairwise([*places, places[0]])) == 128
