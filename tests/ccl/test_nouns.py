"""Topologies, collectives, problems and plans check themselves when they are made."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from ccl.collective import (
    CHUNK_LIMIT,
    COLLECTIVES,
    Chunk,
    Collective,
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    custom,
    gather,
    make_collective,
    reduce,
    reduce_scatter,
    scatter,
)
from ccl.errors import CclError, ProblemError, ScheduleError
from ccl.plans import Rate, Schedule, Send, Tree
from ccl.problem import Problem
from ccl.topology import ABILITIES, Device, Link, SharedLimit, Topology, device, duplex
from gallery import open_cluster
from tests.ccl.clusters import gpus, line, mesh, ring, star

UNKNOWN: Any = "shuffle"
"""No kind of anything, as it may come out of a file."""


class TestDevice:
    @pytest.mark.parametrize(("kind", "abilities"), ABILITIES.items())
    def test_has_the_abilities_of_its_kind(self, kind, abilities):
        made = device(kind, "d")

        assert (made.stores, made.copies, made.reduces) == abilities

    def test_abilities_given_win_over_those_of_the_kind(self):
        made = device("switch", "s", copies=True, reduces=True)

        assert (made.stores, made.copies, made.reduces) == (False, True, True)

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            ({"kind": "gpu", "name": "  "}, "empty name"),
            ({"kind": "tpu", "name": "t"}, "kinds are gpu, switch, memory, nic"),
            ({"kind": "gpu", "name": "g", "stores": False}, "GPU g does not store"),
            ({"kind": "memory", "name": "m", "buffer_bytes": 0.0}, "buffer of 0.0 bytes"),
            ({"kind": "memory", "name": "m", "buffer_bytes": math.nan}, "buffer of nan bytes"),
        ],
    )
    def test_refuses(self, arguments, says):
        with pytest.raises(ProblemError, match=says):
            device(**arguments)

    def test_refuses_an_unknown_kind_also_without_the_helper(self):
        with pytest.raises(ProblemError, match="kinds are"):
            Device(name="t", kind=UNKNOWN, host=None, stores=True, copies=True, reduces=True)


class TestLink:
    def test_time_is_alpha_plus_bytes_times_beta(self):
        """1 MB at 25 GB/s takes 40 µs, and 0.7 µs of latency come on top."""
        link = Link("a", "b", 25.0, 0.7)

        assert link.beta * 1e6 == pytest.approx(40.0)
        assert link.transfer_time(1e6) == pytest.approx(40.7)

    def test_duplex_is_two_links_alike(self):
        there, back = duplex("a", "b", bandwidth=50, alpha=0.7, medium="NVLink", count=2)

        assert there.ends == ("a", "b")
        assert back == replace(there, src="b", dst="a")

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (("a", "a", 1.0), "link a->a enters the device it leaves"),
            (("a", "b", -3.0), "positive bandwidth, got -3.0 GB/s"),
            (("a", "b", math.inf), "positive bandwidth, got inf GB/s"),
            (("a", "b", math.nan), "positive bandwidth, got nan GB/s"),
            (("a", "b", 1.0, -0.1), "alpha of zero or more, got -0.1 µs"),
            (("a", "b", 1.0, 0.0, "", 0), "stands for 0 links"),
        ],
    )
    def test_refuses(self, arguments, says):
        with pytest.raises(ProblemError, match=says):
            Link(*arguments)


class TestSharedLimit:
    @pytest.mark.parametrize(
        ("links", "bandwidth", "says"),
        [
            ((("a", "b"),), 0.0, "limit bus needs a positive bandwidth, got 0.0 GB/s"),
            ((("a", "b"),), math.inf, "positive bandwidth"),
            ((), 1.0, "covers no link"),
            ((("a", "b"), ("a", "b")), 1.0, "names a link twice"),
        ],
    )
    def test_refuses(self, links, bandwidth, says):
        with pytest.raises(ProblemError, match=says):
            SharedLimit("bus", links, bandwidth)


class TestTopology:
    def test_ranks_are_the_gpus_in_order(self):
        topology = star(3)

        assert topology.ranks == ("g0", "g1", "g2")
        assert topology.rank == {"g0": 0, "g1": 1, "g2": 2}

    def test_parallel_links_become_one(self):
        """Bandwidths and counts add up, and the larger latency stays."""
        links = (Link("g0", "g1", 25, 0.7), Link("g0", "g1", 50, 0.9, count=2), Link("g1", "g0", 1))
        topology = Topology("t", gpus(2), links)

        assert topology.links == (Link("g0", "g1", 75, 0.9, count=3), Link("g1", "g0", 1))

    def test_knows_the_links_of_a_device(self):
        topology = line(3)

        assert [str(link) for link in topology.links_out["g1"]] == ["g1->g0", "g1->g2"]
        assert [str(link) for link in topology.links_in["g1"]] == ["g0->g1", "g2->g1"]

    def test_lists_hosts_in_order_of_appearance(self):
        devices = [device("gpu", n, host=h) for n, h in (("a", "y"), ("b", "x"), ("c", "y"))]

        assert Topology("t", (*devices, device("switch", "s")), ()).hosts == ("y", "x")

    def test_finds_devices_and_links_by_name(self):
        topology = ring(3)

        assert topology.device("g2").name == "g2"
        assert topology.link("g2", "g0").bandwidth == 50
        with pytest.raises(ProblemError, match="ring has no device called g7"):
            topology.device("g7")
        with pytest.raises(ProblemError, match="ring has no link g0->g2"):
            topology.link("g0", "g2")

    def test_turned_round_twice_is_itself(self):
        topology = replace(
            star(3, copies=True), limits=(SharedLimit("bus", (("g0", "s"), ("g1", "s")), 60),)
        )

        turned = topology.reversed()

        assert turned.limits[0].links == (("s", "g0"), ("s", "g1"))
        assert turned.device("s").reduces
        assert not turned.device("s").copies
        assert turned.reversed() == topology

    @pytest.mark.parametrize(
        ("parts", "says"),
        [
            ({"devices": (*gpus(2), device("nic", "g1"))}, "two devices are called g1"),
            ({"links": (Link("g0", "g9", 1),)}, "link g0->g9 names g9, which is not a device"),
            (
                {"limits": (SharedLimit("bus", (("g1", "g0"),), 1),)},
                "limit bus names the link g1->g0, which does not exist",
            ),
            (
                {"limits": (SharedLimit("bus", (("g0", "g1"),), 1),) * 2},
                "two limits are called bus",
            ),
        ],
    )
    def test_refuses(self, parts, says):
        given = {"devices": gpus(2), "links": (Link("g0", "g1", 1),), **parts}

        with pytest.raises(ProblemError, match=says):
            Topology("t", **given)


class TestCollective:
    def test_all_gather_splits_the_gathered_vector(self):
        """8 MB over 4 ranks in 2 chunks each are 8 chunks of 1 MB."""
        made = all_gather(4, 8e6, chunks=2)

        assert len(made.chunks) == 8
        assert made.chunks[2] == Chunk(1e6, (1,), (0, 2, 3))
        assert made.copies
        assert not made.reduces

    def test_all_to_all_leaves_out_the_shard_for_itself(self):
        made = all_to_all(4, 8e6)

        assert len(made.chunks) == 12
        assert made.chunks[0] == Chunk(2e6, (0,), (1,))
        assert not made.copies

    def test_reductions_have_every_rank_as_holder(self):
        assert reduce_scatter(2, 2e6).chunks[1] == Chunk(1e6, (0, 1), (1,), reduced=True)
        assert all_reduce(2, 2e6).chunks[1] == Chunk(1e6, (0, 1), (0, 1), reduced=True)
        assert reduce(3, 2e6, root=1).chunks == (Chunk(2e6, (0, 1, 2), (1,), reduced=True),)

    def test_rooted_ones_move_what_is_not_the_roots_own(self):
        assert broadcast(3, 2e6, root=1, chunks=2).chunks == (Chunk(1e6, (1,), (0, 2)),) * 2
        assert gather(3, 3e6, root=1).chunks == (Chunk(1e6, (0,), (1,)), Chunk(1e6, (2,), (1,)))
        assert scatter(3, 3e6, root=1).chunks == (Chunk(1e6, (1,), (0,)), Chunk(1e6, (1,), (2,)))

    @pytest.mark.parametrize("kind", [each for each in COLLECTIVES if each != "custom"])
    def test_is_made_by_name(self, kind):
        made = make_collective(kind, 4, 4e6, chunks=2)

        assert made.kind == kind
        assert made.size == 4e6
        assert sum(chunk.size for chunk in made.chunks) > 0

    def test_chunk_size_is_that_of_the_largest(self):
        made = custom(3, [Chunk(2e6, (0,), (1,)), Chunk(5e6, (1,), (2,))])

        assert made.chunk_size == 5e6
        assert made.size == 7e6

    @pytest.mark.parametrize(
        ("make", "says"),
        [
            (lambda: all_gather(1, 1e6), "needs 2 GPUs or more, got 1"),
            (lambda: all_gather(2, 0), "needs a positive size, got 0 bytes"),
            (lambda: all_gather(2, math.nan), "needs a positive size"),
            (lambda: all_gather(2, 1e6, chunks=0), "1 chunk per shard or more, got 0"),
            (lambda: broadcast(2, 1e6, root=2), "root 2; ranks go from 0 to 1"),
            (lambda: all_to_all(1025, 1e6), "1,049,600 chunks and at most 1,048,576"),
            (lambda: broadcast(2, 1e6, chunks=10**9), "1,000,000,000 chunks"),
            (lambda: make_collective(UNKNOWN, 2, 1e6), "'shuffle' is not one that a name makes"),
            (lambda: make_collective("custom", 2, 1e6), "'custom' is not one that a name makes"),
            (lambda: custom(2, []), "moves nothing"),
            (lambda: custom(2, [Chunk(-1, (0,), (1,))]), "chunk 0 has -1 bytes"),
            (lambda: custom(2, [Chunk(1, (), (1,))]), "needs distinct holders, at least one"),
            (lambda: custom(2, [Chunk(1, (0,), (1, 1))]), "needs distinct destinations"),
            (
                lambda: custom(2, [Chunk(1, (0,), (2,))]),
                r"destinations \[2\]; ranks go from 0 to 1",
            ),
            (lambda: Collective(UNKNOWN, 2, 1, (Chunk(1, (0,), (1,)),)), "'shuffle' is unknown"),
        ],
    )
    def test_refuses(self, make, says):
        with pytest.raises(ProblemError, match=says):
            make()

    def test_the_limit_of_chunks_is_one_that_is_reached(self):
        assert len(broadcast(2, 1e6, chunks=CHUNK_LIMIT).chunks) == CHUNK_LIMIT


class TestMirror:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (reduce_scatter(4, 4e6, chunks=2), all_gather(4, 4e6, chunks=2)),
            (reduce(4, 4e6, root=2), broadcast(4, 4e6, root=2)),
            (gather(4, 4e6, root=1), scatter(4, 4e6, root=1)),
        ],
    )
    def test_pairs_mirror_each_other(self, one, other):
        assert one.reversed() == other
        assert other.reversed() == one

    def test_an_all_to_all_is_sent_back(self):
        made = all_to_all(3, 3e6)

        assert made.reversed().chunks[0] == Chunk(1e6, (1,), (0,))
        assert made.reversed().reversed() == made

    def test_two_ranks_are_mirrored_as_many_are(self):
        """With 2 ranks an all-gather has single destinations, and its mirror still adds up."""
        assert all_gather(2, 2e6).reversed() == reduce_scatter(2, 2e6)
        assert broadcast(2, 2e6).reversed() == reduce(2, 2e6)

    def test_an_all_reduce_has_no_mirror(self):
        with pytest.raises(ProblemError, match="split the collective in two"):
            all_reduce(3, 3e6).reversed()


class TestProblem:
    def test_refuses_other_ranks_than_the_topology_has(self):
        with pytest.raises(ProblemError, match="ring has 4 GPUs and all-gather is for 3 ranks"):
            Problem(ring(4), all_gather(3, 3e6))

    def test_refuses_a_rank_that_cannot_be_reached(self):
        """The line g0 -> g1 -> g2 has no way back."""
        topology = Topology("t", gpus(3), (Link("g0", "g1", 1), Link("g1", "g2", 1)))

        assert Problem(topology, broadcast(3, 1e6)).topology is topology
        with pytest.raises(ProblemError, match=r"rank 0 \(g0\) cannot be reached from g1"):
            Problem(topology, all_gather(3, 3e6))

    def test_of_a_reduced_chunk_every_holder_must_reach(self):
        topology = Topology("t", gpus(3), (Link("g0", "g1", 1), Link("g1", "g2", 1)))
        both = Chunk(1e6, (0, 2), (1,))

        assert Problem(topology, custom(3, [both])).collective.chunks == (both,)
        with pytest.raises(ProblemError, match="cannot be reached from g2"):
            Problem(topology, custom(3, [replace(both, reduced=True)]))

    def test_ways_lead_through_switches(self):
        assert Problem(star(3), all_to_all(3, 3e6)).topology.name == "star"

    def test_the_fingerprint_is_that_of_the_content(self):
        problem = Problem(ring(3), all_gather(3, 3e6))

        assert len(problem.fingerprint) == 16
        assert Problem(replace(ring(3), name="o"), all_gather(3, 3e6)).fingerprint == (
            problem.fingerprint
        )
        for other in (
            Problem(ring(3, alpha=0.1), all_gather(3, 3e6)),
            Problem(ring(3), all_gather(3, 4e6)),
            Problem(ring(3), all_to_all(3, 3e6)),
            Problem(mesh(3), all_gather(3, 3e6)),
        ):
            assert other.fingerprint != problem.fingerprint


class TestPlans:
    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (((), 0.0, 1), "positive epoch duration, got 0.0 µs"),
            (((), math.inf, 1), "positive epoch duration"),
            (((), 1.0, 0), "1 epoch or more, got 0"),
            (((Send(2, 0, "a", "b"),), 1.0, 2), "is in epoch 2; epochs go from 0 to 1"),
            (((Send(-1, 0, "a", "b"),), 1.0, 2), "is in epoch -1"),
            (((Send(0, 0, "a", "b", fraction=0.0),), 1.0, 2), "sends the fraction 0.0"),
            (((Send(0, 0, "a", "b", fraction=1.1),), 1.0, 2), "sends the fraction 1.1"),
        ],
    )
    def test_a_schedule_refuses(self, arguments, says):
        with pytest.raises(ProblemError, match=says):
            Schedule(*arguments)

    def test_a_send_crosses_links_between_its_stops(self):
        send = Send(0, 3, "a", "d", ("b", "c"))

        assert send.hops == (("a", "b"), ("b", "c"), ("c", "d"))
        assert str(send) == "chunk 3 a->b->c->d"

    def test_a_schedule_lasts_for_its_epochs(self):
        assert Schedule((), 2.5, 4).duration == 10.0

    def test_a_tree_refuses(self):
        with pytest.raises(ProblemError, match="weight 0"):
            Tree(0, (("a", "b"),), Fraction(0))
        with pytest.raises(ProblemError, match="route of one device"):
            Tree(0, (("a",),), Fraction(1))

    @pytest.mark.parametrize("amount", [0.0, -0.5, 1.01])
    def test_a_rate_refuses(self, amount):
        with pytest.raises(ProblemError, match=f"carries {amount} of chunk 0"):
            Rate(0, "a", "b", amount)


def test_errors_have_one_root_and_say_where():
    error = ScheduleError("it breaks", where="a->b", time=2.5, epoch=1)

    assert isinstance(error, CclError)
    assert (str(error), error.where, error.time, error.epoch) == ("it breaks", "a->b", 2.5, 1)


def test_ends_are_positions_of_devices():
    """Each link's ends, in the order of the links; none where there is no link."""
    topology = open_cluster("ndv2:hosts=3")
    names = [each.name for each in topology.devices]

    assert [(names[src], names[dst]) for src, dst in topology.ends.T] == [
        each.ends for each in topology.links
    ]
    assert replace(topology, links=()).ends.shape == (2, 0)
