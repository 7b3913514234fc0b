"""What a sketch asks for is what a plan of TACCL does, or it is said why not."""

import pytest

from ccl.collective import all_gather, broadcast, make_collective
from ccl.errors import Infeasible, ProblemError
from ccl.problem import Problem
from ccl.serialization.sketches import Sketch
from ccl.topology import Topology, device, duplex
from formulations import solve
from formulations.engines.taccl.sketching import default_sketch
from gallery import open_cluster

MB = 1e6


def taccl(topology, collective, sketch=None, **options):
    asked = Problem(topology, collective)
    return solve(asked, "taccl", options={"quick": False, "sketch": sketch, **options})


def joined(result) -> set[tuple[str, str]]:
    """Pairs of GPUs of which one sends to the other."""
    return {(send.src, send.dst) for send in result.plan.sends}


@pytest.fixture
def two_hosts() -> Topology:
    """Two hosts of two GPUs, all four joined with each other."""
    devices = tuple(device("gpu", f"g{i}", host=f"h{i // 2}") for i in range(4))
    links = [
        link
        for i in range(4)
        for j in range(i + 1, 4)
        for link in duplex(f"g{i}", f"g{j}", bandwidth=50.0, alpha=0.7)
    ]
    return Topology("two hosts", devices, tuple(links))


def test_a_link_that_is_left_out_is_not_used():
    """A ring of 4 without g0->g1: what g0 has for g1 goes the other way round, three links."""
    ring = open_cluster("ring:gpus=4,alpha=0")

    result = taccl(ring, all_gather(4, 4 * MB), Sketch(without=(("g0", "g1"),)))

    assert ("g0", "g1") not in joined(result)
    assert result.makespan >= 3 * 20


def test_a_forced_pair_is_used():
    """Straight from the root is quickest in a mesh; forced, one GPU has it from another."""
    mesh = open_cluster("full-mesh:gpus=4")

    free = taccl(mesh, broadcast(4, MB))
    forced = taccl(mesh, broadcast(4, MB), Sketch(forced=(("g2", "g3"),)))

    assert ("g2", "g3") not in joined(free)
    assert ("g2", "g3") in joined(forced)


def test_only_pairs_between_hosts_that_are_named_are_used(two_hosts):
    pairs = (("g0", "g2"), ("g3", "g1"))

    result = taccl(two_hosts, all_gather(4, 4 * MB), Sketch(between=pairs))

    within = {("g0", "g1"), ("g1", "g0"), ("g2", "g3"), ("g3", "g2")}
    assert joined(result) <= within | set(pairs)


def test_what_has_a_relay_leaves_its_host_from_there(two_hosts):
    """Chunk 1 is g1's: only g0 sends it to the other host."""
    result = taccl(two_hosts, all_gather(4, 4 * MB), Sketch(relays=(("g1", "g0"),)))

    leaving = {
        send.src
        for send in result.plan.sends
        if send.chunk == 1 and {send.src, send.dst} & {"g0", "g1"} and send.dst in ("g2", "g3")
    }
    assert leaving == {"g0"}


def test_contributions_with_a_relay_leave_their_host_from_there(two_hosts):
    sketch = Sketch(relays=(("g1", "g0"), ("g3", "g2")))

    result = taccl(two_hosts, make_collective("reduce-scatter", 4, 4 * MB), sketch)

    away = {(src, dst) for src, dst in joined(result) if (src in "g0g1") != (dst in "g0g1")}
    assert {src for src, _ in away} <= {"g0", "g2"}


@pytest.mark.parametrize(("inclination", "pairs"), [("uc-min", 4), ("uc-max", 12)])
def test_inclination_counts_different_pairs_at_a_switch(inclination, pairs):
    """All-gather of 4 GPUs around a switch without latency: any ways fill the ports for 60 µs.

    Every GPU has to send to one other and receive from one: 4 different pairs, a ring, are the
    fewest. All 12 are used where each sends to each, or shards pass by others in turn.
    """
    star = open_cluster("star:gpus=4,alpha=0")

    result = taccl(star, all_gather(4, 4 * MB), Sketch(switches=inclination))

    assert len(joined(result)) == pairs


def test_a_plan_is_as_symmetric_as_the_sketch_asks():
    """Turned by one, the ways of a ring of 6 are the same set: chunk c goes as chunk c + 1 does."""
    ring = open_cluster("ring:gpus=6")

    result = taccl(ring, all_gather(6, 6 * MB), Sketch(offsets=((1, 6),)))

    ways = {(send.chunk, int(send.src[1:]), int(send.dst[1:])) for send in result.plan.sends}
    turned = {((c + 1) % 6, (u + 1) % 6, (v + 1) % 6) for c, u, v in ways}
    assert ways == turned
    assert len(ways) == 6 * 5


@pytest.mark.parametrize(
    ("cluster", "kind", "offset", "why"),
    [
        ("dgx-1v", "all-gather", (1, 8), "topology does not look the same"),
        ("ring:gpus=4", "broadcast", (1, 4), "the broadcast does not look the same"),
    ],
)
def test_an_offset_that_is_no_symmetry_is_left_out_with_a_word(cluster, kind, offset, why):
    topology = open_cluster(cluster)
    collective = make_collective(kind, len(topology.ranks), MB)

    result = taccl(topology, collective, Sketch(offsets=(offset,)))

    assert any(f"offset {offset} is left out" in line and why in line for line in result.log)


def test_offsets_count_the_links_that_are_left_out():
    """A ring of 4 that lacks g0->g1 only is the same after no turn."""
    ring = open_cluster("ring:gpus=4")
    sketch = Sketch(without=(("g0", "g1"),), offsets=((2, 4),))

    result = taccl(ring, all_gather(4, 4 * MB), sketch)

    assert any("is left out" in line for line in result.log)


def test_instances_go_the_way_of_their_parent():
    """Four chunks a shard in instances of two: chunks 0 and 1 take the same links, 2 and 3 too."""
    dgx = open_cluster("dgx-1v")

    result = taccl(dgx, all_gather(8, 8 * MB, chunks=4), Sketch(chunks=2, instances=2))

    ways: dict[int, set[tuple[str, str]]] = {}
    for send in result.plan.sends:
        ways.setdefault(send.chunk, set()).add((send.src, send.dst))
    assert all(ways[first] == ways[first + 1] for first in range(0, 32, 2))


def test_other_chunks_than_the_sketch_has_are_refused_in_words():
    with pytest.raises(ProblemError, match=r"3 chunks per shard in 1 instances.* 1; ask for 3"):
        taccl(open_cluster("ring:gpus=4"), all_gather(4, MB), Sketch(chunks=3))


def test_what_a_sketch_cuts_off_is_named():
    line = open_cluster("line:gpus=3")

    with pytest.raises(Infeasible, match="no path from g0 to g1"):
        taccl(line, broadcast(3, MB), Sketch(without=(("g0", "g1"),)))


def test_a_pair_that_nothing_can_cross_cannot_be_forced():
    """Nothing of a broadcast from g0 goes back to it."""
    with pytest.raises(Infeasible, match="no chunk can go from g1 to g0"):
        taccl(open_cluster("line:gpus=3"), broadcast(3, MB), Sketch(forced=(("g1", "g0"),)))


def test_a_sketch_of_another_cluster_is_refused():
    with pytest.raises(ProblemError, match="the sketch names g9"):
        taccl(open_cluster("ring:gpus=4"), all_gather(4, MB), Sketch(forced=(("g9", "g0"),)))


def test_the_derived_sketch_is_said_in_the_log():
    result = taccl(open_cluster("ring:gpus=4"), all_gather(4, MB))

    assert any(line.startswith("sketch: ") and "(1, 4)" in line for line in result.log)


def test_one_receiver_per_nic_and_host_is_derived():
    """DGX A100 x 2: over its NIC a GPU reaches 8 in the other host, and is given its like."""
    topology = open_cluster("dgx-a100:hosts=2")
    asked = Problem(topology, all_gather(16, 16 * MB))

    sketch = default_sketch(asked)

    local = {name: rank % 8 for name, rank in topology.rank.items()}
    assert len(sketch.between or ()) == 16
    assert all(local[src] == local[dst] for src, dst in sketch.between or ())
    assert set(sketch.offsets) == {(1, 8), (8, 16)}


def test_hosts_alone_are_turned_where_gpus_differ():
    """In NDv2 x 2 only g0 sends and g1 receives over the network; the hosts are alike."""
    asked = Problem(open_cluster("ndv2:hosts=2"), all_gather(16, 16 * MB))

    sketch = default_sketch(asked)

    assert sketch.offsets == ((8, 16),)
    assert sketch.between is None


@pytest.mark.parametrize(("size", "inclination"), [(1e9, "uc-min"), (1e3, "uc-max")])
def test_large_chunks_take_few_pairs_and_small_ones_many(size, inclination):
    """On a star at 50 GB/s a quarter of 1 GB takes 5 ms, of 1 KB 5 ns; latency is 1.4 µs."""
    asked = Problem(open_cluster("star:gpus=4"), all_gather(4, size))

    assert default_sketch(asked).switches == inclination


def test_a_sketch_may_come_in_plain_form():
    ring = open_cluster("ring:gpus=4")

    result = taccl(ring, all_gather(4, MB), {"without": [["g0", "g1"]]})

    assert ("g0", "g1") not in joined(result)
