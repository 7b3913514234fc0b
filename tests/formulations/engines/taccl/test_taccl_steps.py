"""The three steps of TACCL on instances whose optimum is known."""

from dataclasses import replace

import numpy as np
import pytest

from ccl.collective import Chunk, all_gather, broadcast, custom, make_collective
from ccl.problem import Problem
from ccl.serialization.sketches import Sketch
from ccl.topology import Link, Topology, device
from formulations import solve
from formulations.engines.list_scheduling.timed import transfers_of
from formulations.engines.taccl.pairs import pairs_of, parts_of
from formulations.engines.taccl.program import Paths, demands_of
from formulations.engines.taccl.search import route
from formulations.engines.taccl.sends import Contiguity, Sends, end, times
from formulations.solvers.cvxpy_highs import Backend
from gallery import open_cluster

MB = 1e6
FULL = {"quick": False}
"""All steps, nothing offered before them."""


def taccl(cluster, collective, **options):
    return solve(Problem(open_cluster(cluster), collective), "taccl", options=FULL | options)


def test_a_broadcast_down_a_line_passes_every_link_once():
    """1 MB from g0 over three links of 50 GB/s and 0.7 µs: 3 (20 + 0.7) µs."""
    result = taccl("line:gpus=4", broadcast(4, MB))

    assert result.makespan == pytest.approx(3 * 20.7)


@pytest.mark.parametrize(("gpus", "hops"), [(4, 2), (5, 2), (6, 3)])
def test_an_all_gather_on_a_ring_takes_its_longest_way_and_its_loads(gpus, hops):
    """1 MB shards, 20 µs a link, no latency.

    Both links into a GPU carry n - 1 shards together: ceil((n - 1) / 2) slots. The farthest shard
    is as many hops away, so that no plan is shorter and the rotation of one shard's ways is one.
    """
    result = taccl(f"ring:gpus={gpus},alpha=0", all_gather(gpus, gpus * MB))

    assert result.makespan == pytest.approx(20 * hops)


def test_all_to_all_over_a_switch_fills_every_port():
    """Each GPU sends 3 chunks of 1 MB over its one link: 3 x 20 µs, and two latencies."""
    result = taccl("star:gpus=4", make_collective("all-to-all", 4, 4 * MB))

    assert result.makespan == pytest.approx(60 + 2 * 0.7)


@pytest.mark.parametrize(
    ("ordering", "link_order", "makespan"),
    [
        ("shortest-until-now", "along", 80.0),
        ("longest-from-now", "along", 60.0),
        ("shortest-until-now", "against", 60.0),
    ],
)
def test_orderings_differ_where_one_chunk_goes_on(ordering, link_order, makespan):
    """On a line g0 has 1 MB for g1, listed first, and 1 MB for g3; every link takes 20 µs.

    Both chunks have no way behind them at g0, so the shortest way until now sends the first one
    first: the other is at g3 after 20 + 3 x 20. The longest way from now sends that one first: it
    is there after 60, the other one after 40. Backwards in time the link from g0 is the last of
    the longer way, which has 40 µs behind it then and comes after the other: forwards, before it.
    """
    demand = custom(4, [Chunk(MB, (0,), (1,)), Chunk(MB, (0,), (3,))])

    result = taccl("line:gpus=4,alpha=0", demand, ordering=ordering, link_order=link_order)

    assert result.makespan == pytest.approx(makespan)


def two_chunks(hops: int, alpha: float) -> tuple[Sends, list[int]]:
    """Two chunks of 1 MB over links of 50 GB/s in a row, each sent on as soon as it is there."""
    transfers = transfers_of(open_cluster(f"line:gpus={hops + 1},alpha={alpha}"))
    onwards = [transfers.routes.index((f"g{i}", f"g{i + 1}")) for i in range(hops)]
    sends = Sends(
        transfers,
        transfer=np.repeat(onwards, 2),
        chunk=np.tile([0, 1], hops),
        nbytes=np.full(2 * hops, MB),
        after=tuple((n - 2,) if n > 1 else () for n in range(2 * hops)),
        members=((0,), (1,)),
        priority=np.ones(2 * hops),
        alike=np.arange(2 * hops),
    )
    return sends, list(range(2 * hops))


def contiguous(sends: Sends, order: list[int]) -> tuple[float, int]:
    """µs of step 3 in the paper's model, and how many sends go with the one before."""
    most = end(sends, times(sends, order, holds=True))
    program = Contiguity(sends, order, np.ones(len(sends.transfers), dtype=bool), most)
    outcome = Backend().solve(program.model)
    return outcome.objective * most, program.found()[1]


def test_two_chunks_together_on_a_link_share_one_latency():
    """Alpha + 2 beta s = 10 + 2 x 20 µs, not 2 (alpha + beta s) = 60, where latency holds links."""
    sends, order = two_chunks(1, alpha=10.0)

    assert end(sends, times(sends, order, holds=True)) == pytest.approx(60.0)
    together, near = contiguous(sends, order)
    assert together == pytest.approx(50.0)
    assert near == 1


@pytest.mark.parametrize(("alpha", "makespan", "near"), [(10.0, 90.0, 0), (30.0, 140.0, 2)])
def test_going_together_is_weighed_against_pipelining(alpha, makespan, near):
    """Two chunks over two links, T = alpha + beta s with beta s = 20 µs.

    One after the other they take 3 T; together on both links 2 (alpha + 2 beta s); on one of them
    only alpha + 2 beta s + 2 T, which is never less than both: of 90 and 100 µs the first is
    shorter, of 150 and 140 the second.
    """
    sends, order = two_chunks(2, alpha)

    found, together = contiguous(sends, order)

    assert found == pytest.approx(makespan)
    assert together == near


def test_in_the_replay_going_together_gains_nothing():
    """Latency does not hold a link: both chunks are there after alpha + 2 beta s anyhow."""
    two = broadcast(2, 2 * MB, chunks=2)

    apart = taccl("line:gpus=2,alpha=10", two, contiguity="off")
    together = taccl("line:gpus=2,alpha=10", two, contiguity="everywhere")

    assert apart.makespan == pytest.approx(50.0)
    assert together.makespan == pytest.approx(50.0)


def test_chunks_to_one_device_with_another_between_may_not_go_together():
    """Over a switch g0 sends to g1, g2, g1, g1: only the last two are neighbours of one way."""
    transfers = transfers_of(open_cluster("star:gpus=3"))
    first, second = (transfers.routes.index(("g0", "switch", f"g{i}")) for i in (1, 2))
    sends = Sends(
        transfers,
        transfer=np.array([first, second, first, first]),
        chunk=np.arange(4),
        nbytes=np.full(4, MB),
        after=((), (), (), ()),
        members=tuple((i,) for i in range(4)),
        priority=np.ones(4),
        alike=np.arange(4),
    )

    program = Contiguity(sends, [0, 1, 2, 3], np.ones(len(transfers), dtype=bool), 1e3)

    assert set(program.pairs) == {(2, 3)}


@pytest.mark.parametrize(("holds", "makespan"), [(True, 3 * 30.0), (False, 60.0)])
def test_relaxed_bandwidth_adds_up_what_a_link_carries(holds, makespan):
    """Three chunks of 20 µs over one link of 10 µs latency: 3 (alpha + beta s), as in equation 1.

    Where latency holds no link it is 3 beta s, which no chunk's own 30 µs exceeds.
    """
    transfers = transfers_of(open_cluster("line:gpus=2,alpha=10"))
    (part,) = parts_of(transfers, broadcast(2, 3 * MB, chunks=3), Sketch())
    pairs = pairs_of(part)
    paths = Paths(pairs, demands_of(pairs, Sketch()), "all", holds=holds, most=1e3)

    Backend().solve(paths.model, gap=0.0)

    assert paths.reached == pytest.approx(makespan, rel=1e-5)


def test_both_the_quick_ways_and_the_program_bring_every_chunk_once():
    """On a DGX-1, where the program begins with the quick ways and takes others."""
    topology = open_cluster("dgx-1v")
    (part,) = parts_of(transfers_of(topology), all_gather(8, 8 * MB), Sketch())
    pairs = pairs_of(part)
    demands = demands_of(pairs, Sketch())
    quick = route(pairs, demands, direct=True)
    paths = Paths(pairs, demands, "all", holds=False, most=1e3)

    Backend().solve(paths.model, gap=1e-3, start=(paths.taken, quick.astype(float)))

    taken = np.asarray(paths.taken.value) > 0.5
    for ways in (quick, taken):
        assert demands.spreads(ways)
        for pair in np.flatnonzero(ways)[:5]:
            lost = ways.copy()
            lost[pair] = False
            assert not demands.spreads(lost)


def test_every_host_that_wants_a_chunk_is_crossed_to_from_its_own():
    """Three hosts of one GPU in a full mesh: with a slow link the way round it is quicker.

    g0 to g2 takes 100 µs directly and 40 µs over g1; the demand of the paper that a chunk crosses
    directly to each host that wants it holds all the same, so the program keeps 100 µs.
    """
    devices = tuple(device("gpu", f"g{i}", host=f"h{i}") for i in range(3))
    links = tuple(
        Link(f"g{i}", f"g{j}", 10.0 if {i, j} == {0, 2} else 50.0)
        for i in range(3)
        for j in range(3)
        if i != j
    )
    asked = Problem(Topology("slow chord", devices, links), broadcast(3, MB))

    result = solve(asked, "taccl", options=FULL)

    assert result.makespan == pytest.approx(100.0)


def test_without_hosts_the_way_round_is_taken():
    """The same links where nothing is a host: 2 x 20 µs over g1."""
    devices = tuple(device("gpu", f"g{i}") for i in range(3))
    links = tuple(
        Link(f"g{i}", f"g{j}", 10.0 if {i, j} == {0, 2} else 50.0)
        for i in range(3)
        for j in range(3)
        if i != j
    )
    asked = Problem(Topology("slow chord", devices, links), broadcast(3, MB))

    assert solve(asked, "taccl", options=FULL).makespan == pytest.approx(40.0)


def test_a_chunk_goes_only_over_gpus_on_a_shortest_way():
    """On a ring of 6 a chunk from g0 to g2 goes over g1, by hops and by costs: two pairs."""
    topology = open_cluster("ring:gpus=6")
    (part,) = parts_of(transfers_of(topology), custom(6, [Chunk(MB, (0,), (2,))]), Sketch())

    pairs = pairs_of(part)

    names = [device.name for device in topology.devices]
    ends = {(names[src], names[dst]) for src, dst in zip(pairs.src, pairs.dst, strict=True)}
    assert ends == {("g0", "g1"), ("g1", "g2"), ("g2", "g1")}


def test_a_larger_priority_goes_first():
    """Two chunks for one link: the second listed weighs more and is there after 20 µs, not 40."""
    demand = custom(2, [Chunk(MB, (0,), (1,)), replace(Chunk(MB, (0,), (1,)), priority=2.0)])

    result = taccl("line:gpus=2,alpha=0", demand)

    first = min(result.plan.sends, key=lambda send: send.epoch)
    assert first.chunk == 1
