"""What is left of a cluster and of a collective. Links have 50 GB/s unless said otherwise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ccl.collective import (
    Chunk,
    all_gather,
    broadcast,
    custom,
    find_arguments,
    make_collective,
    reduce,
)
from ccl.errors import ProblemError
from ccl.problem import Problem, Window
from ccl.topology import SharedLimit, Topology, device, duplex
from formulations.analyses.failures.degradation import (
    degrade_problem,
    restrict_collective,
    without_devices,
    without_host,
    without_link,
)
from tests.ccl.clusters import MB, gpus, line, mesh, ring, star


def ends(topology):
    return {each.ends for each in topology.links}


class TestLinks:
    def test_both_directions_go(self):
        left = without_link(mesh(3), "g0", "g1")

        assert ends(mesh(3)) - ends(left) == {("g0", "g1"), ("g1", "g0")}

    def test_or_one(self):
        assert ends(mesh(3)) - ends(without_link(mesh(3), "g0", "g1", both=False)) == {("g0", "g1")}

    def test_of_a_one_way_link_there_is_no_other(self):
        assert ends(ring(3)) - ends(without_link(ring(3), "g0", "g1")) == {("g0", "g1")}

    def test_of_parallel_links_one_goes_with_its_share(self):
        pair = Topology("pair", gpus(2), duplex("g0", "g1", bandwidth=75, count=3))

        left = without_link(pair, "g1", "g0")

        assert [(each.bandwidth, each.count) for each in left.links] == [(50, 2), (50, 2)]

    def test_a_limit_keeps_its_bandwidth_and_goes_with_its_last_link(self):
        limits = (
            SharedLimit("bus", (("g0", "g1"), ("g1", "g2")), 60.0),
            SharedLimit("port", (("g0", "g1"),), 30.0),
        )

        left = without_link(replace(ring(3), limits=limits), "g0", "g1")

        assert left.limits == (SharedLimit("bus", (("g1", "g2"),), 60.0),)

    def test_one_that_is_not_there_cannot_be_lost(self):
        with pytest.raises(ProblemError, match="ring has no link g1->g0"):
            without_link(ring(3), "g1", "g0")


class TestDevices:
    def test_go_with_their_links(self):
        left = without_devices(star(3), ["g1"])

        assert left.ranks == ("g0", "g2")
        assert ends(left) == {
            (a, b) for each in ("g0", "g2") for a, b in ((each, "s"), ("s", each))
        }

    def test_of_a_host_all_go(self):
        hosted = replace(
            line(4), devices=tuple(device("gpu", f"g{r}", host=f"h{r // 2}") for r in range(4))
        )

        left = without_host(hosted, "h0")

        assert (left.ranks, left.hosts, ends(left)) == (
            ("g2", "g3"),
            ("h1",),
            {("g2", "g3"), ("g3", "g2")},
        )

    def test_that_are_not_there_cannot_be_lost(self):
        with pytest.raises(ProblemError, match="star has no device called g7"):
            without_devices(star(3), ["g7"])
        with pytest.raises(ProblemError, match="star has no host called h7"):
            without_host(star(3), "h7")


class TestCollective:
    @pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "all-reduce", "all-to-all"])
    def test_keeps_its_size_over_fewer_ranks(self, kind):
        """As nccl-tests defines it: the same buffer, cut in 3 in place of 4, twice each."""
        before = make_collective(kind, 4, 12 * MB, chunks=2)

        assert restrict_collective(before, [0, 2, 3]) == make_collective(kind, 3, 12 * MB, chunks=2)

    def test_the_root_gets_its_new_number(self):
        assert restrict_collective(broadcast(4, MB, root=2), [1, 2, 3]) == broadcast(3, MB, root=1)

    def test_without_its_root_there_is_none(self):
        with pytest.raises(ProblemError, match="rank 1 is the root of the reduce, which nothing"):
            restrict_collective(reduce(3, MB, root=1), [0, 2])

    def test_of_a_custom_demand_chunks_keep_their_size(self):
        """Chunk 1 only rank 0 holds, chunk 2 only rank 0 wants; of 3 one contribution is lost."""
        before = custom(
            3,
            [
                Chunk(MB, (1,), (0, 2), priority=2.0, tenant="a"),
                Chunk(MB, (0,), (1, 2)),
                Chunk(MB, (1,), (0,)),
                Chunk(3 * MB, (0, 1, 2), (2,), reduced=True),
            ],
        )

        assert restrict_collective(before, [1, 2]) == custom(
            2,
            [
                Chunk(MB, (0,), (1,), priority=2.0, tenant="a"),
                Chunk(3 * MB, (0, 1), (1,), reduced=True),
            ],
        )

    def test_with_priorities_of_its_own_is_a_custom_demand(self):
        """A shard of 1 MB stays one of 1 MB, as no name makes it again."""
        urgent = all_gather(3, 3 * MB)
        urgent = replace(
            urgent, chunks=(replace(urgent.chunks[0], priority=2.0), *urgent.chunks[1:])
        )

        assert find_arguments(urgent) is None
        assert [each.size for each in restrict_collective(urgent, [0, 1]).chunks] == [MB, MB]

    def test_alone_moves_nothing(self):
        with pytest.raises(ProblemError, match="needs 2 GPUs or more, got 1"):
            restrict_collective(all_gather(2, MB), [1])


class TestProblem:
    def test_keeps_its_windows_on_links_that_are_left(self):
        windows = (
            Window((("g0", "g1"), ("g1", "g2")), 0, 5, 0.5),
            Window((("g0", "g1"),), 5, 9, 0),
        )
        problem = Problem(mesh(3), all_gather(3, MB), windows)

        left = degrade_problem(problem, without_link(problem.topology, "g0", "g1"))

        assert left.windows == (Window((("g1", "g2"),), 0, 5, 0.5),)
        assert left.collective == problem.collective

    def test_names_what_is_cut_off(self):
        problem = Problem(line(3), all_gather(3, MB))

        with pytest.raises(ProblemError, match="cannot be reached from"):
            degrade_problem(problem, without_link(problem.topology, "g1", "g2"))
