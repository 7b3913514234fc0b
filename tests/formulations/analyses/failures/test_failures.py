"""What single losses cost. Links have 50 GB/s; all-gathers are of 12 MB."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from ccl.collective import Chunk, all_gather, all_reduce, broadcast, custom, reduce
from ccl.errors import ProblemError
from ccl.problem import Problem, Window
from ccl.symmetry import automorphisms
from ccl.topology import Topology, device, duplex
from ccl.verify import verify
from formulations import failures
from formulations.analyses.best_rate import optimum
from formulations.analyses.failures.nouns import PARTS, Failures, parts_of, with_hosts
from formulations.analyses.failures.study import Study, without
from gallery import open_cluster
from tests.ccl.clusters import MB, gpus, line, ring, star


def both_ways(count):
    """A ring of GPUs with links in both directions."""
    pairs = [duplex(f"g{r}", f"g{(r + 1) % count}", bandwidth=50.0) for r in range(count)]
    return Topology("ring", gpus(count), tuple(link for pair in pairs for link in pair))


def two_rails():
    """Two hosts of two GPUs at 300 GB/s, whose GPUs meet those of the other at 25 GB/s a rail."""
    names = [f"g{rank}" for rank in range(4)]
    links = [*duplex("g0", "g1", bandwidth=300.0), *duplex("g2", "g3", bandwidth=300.0)]
    for rank, name in enumerate(names):
        links += duplex(name, f"rail{rank % 2}", bandwidth=25.0)
    devices = (
        *(device("gpu", name, host=f"h{rank // 2}") for rank, name in enumerate(names)),
        device("switch", "rail0"),
        device("switch", "rail1"),
    )
    return Topology("two rails", devices, tuple(links))


def gathered(topology):
    return Problem(topology, all_gather(len(topology.ranks), 12 * MB))


class TestByHand:
    def test_a_ring_of_4_without_a_link_is_a_line(self):
        """Every GPU takes in 3/4: by two links of 50 GB/s today, at the ends of a line by one."""
        found = failures(gathered(both_ways(4)), losing=["link"])

        assert found.today.algbw == pytest.approx(100 / 0.75)
        [row] = found.rows
        assert (row.names, row.alike) == (("g0", "g1"), 4)
        assert row.algbw == pytest.approx(50 / 0.75)
        assert row.lost == pytest.approx(0.5)
        assert row.cut.bandwidth == 50
        assert row.makespan == pytest.approx(180)
        assert found.words == (
            "The worst case: losing a link (50 GB/s), such as g0 – g1 costs 50 %: 66.67 GB/s is "
            "left, of 133.3 GB/s today."
        )

    def test_one_direction_of_a_ring_of_4_costs_as_much_as_both(self):
        """Without the link from g0 to g1, g1 still takes in its 3/4 by one link of 50 GB/s."""
        [row] = failures(gathered(both_ways(4)), losing=["link"], both=False).rows

        assert row.alike == 8
        assert row.algbw == pytest.approx(50 / 0.75)

    def test_a_star_that_loses_a_gpu_has_larger_shards_but_takes_in_less(self):
        """2/3 in place of 3/4 of the buffer enters each GPU at 50 GB/s."""
        found = failures(gathered(star(4)), losing=["gpu"])

        [row] = found.rows
        assert (row.alike, row.problem.collective) == (4, all_gather(3, 12 * MB))
        assert row.algbw == pytest.approx(75)
        assert row.lost == pytest.approx(1 - 75 * 0.75 / 50)
        assert found.words == "None of 4 single losses costs any of 66.67 GB/s."

    def test_two_hosts_that_lose_one_of_two_rails_have_half(self):
        """Half of the buffer enters each host, over 2 x 25 GB/s, or over one."""
        found = failures(gathered(two_rails()), losing=["switch"])

        assert found.today.algbw == pytest.approx(100)
        [row] = found.rows
        assert row.alike == 2
        assert row.lost == pytest.approx(0.5)

    def test_of_three_parallel_links_a_third_is_lost(self):
        pair = Topology("pair", gpus(2), duplex("g0", "g1", bandwidth=75.0, count=3))

        [row] = failures(gathered(pair), losing=["link"]).rows

        assert (row.alike, row.part.parallel) == (3, 3)
        assert row.lost == pytest.approx(1 / 3)
        assert row.words == "one of 3 parallel links (75 GB/s), g0 – g1"


class TestCutOff:
    def test_ranks_are_named(self):
        found = failures(gathered(line(3)), losing=["link", "gpu"])

        link, end, middle = found.rows
        assert (link.cut_off, link.algbw, link.lost, link.makespan) == (("g0",), 0.0, 1.0, None)
        assert (end.cut_off, end.lost < 1) == ((), True)
        assert (middle.names, middle.cut_off) == (("g1",), ("g2",))
        assert "losing a link (50 GB/s), such as g0 – g1 cuts off g0" in found.words

    def test_the_most_that_hang_together_are_not(self):
        [_, low, _] = failures(gathered(line(5)), losing=["gpu"]).rows

        assert (low.names, low.cut_off) == (("g1",), ("g0",))

    def test_a_star_without_its_switch_is_none(self):
        found = failures(gathered(star(6)), losing=["switch"])

        assert found.rows[0].cut_off == ("g1", "g2", "g3", "g4", "g5")
        assert found.words == "The worst case: losing switch s cuts off g1, g2, g3, g4 and 1 more."

    @pytest.mark.parametrize("make", [broadcast, reduce])
    def test_from_a_root_are_those_beyond(self, make):
        """From g1 of a line of 5 a lost link to g2 takes three ranks, though they are more."""
        problem = Problem(line(5), make(5, MB, root=1))

        cut = {row.names: row.cut_off for row in failures(problem, losing=["link"]).rows}

        assert cut["g1", "g2"] == ("g2", "g3", "g4")
        assert cut["g0", "g1"] == ("g0",)

    def test_a_broadcast_keeps_whom_it_reaches_one_way(self):
        """On a one-way ring from g0 only the link back to g0 is needed by nobody."""
        rows = failures(Problem(ring(3), broadcast(3, MB)), losing=["link"]).rows

        assert {row.names: row.cut_off for row in rows} == {
            ("g0", "g1"): ("g1", "g2"),
            ("g1", "g2"): ("g2",),
            ("g2", "g0"): (),
        }

    def test_without_its_root_a_broadcast_ends(self):
        rows = failures(Problem(star(3), broadcast(3, MB)), losing=["gpu"]).rows

        root, other = rows
        assert (root.names, root.lost, root.cut_off) == (("g0",), 1.0, ())
        assert "root of the broadcast" in root.why
        assert (other.names, other.alike, other.why) == (("g1",), 2, "")

    def test_who_is_left_alone_is_told_but_never_the_worst(self):
        """Losing the only host leaves nobody; the lost link is what says something."""
        hosted = replace(
            both_ways(4), devices=tuple(device("gpu", f"g{r}", host="h") for r in range(4))
        )

        found = failures(gathered(hosted), losing=["host", "link"])

        assert found.rows[1].why == "no GPU is left, and a collective needs two"
        assert found.worst is found.rows[0]


class TestClasses:
    @pytest.mark.parametrize("make", [lambda: open_cluster("dgx-1v"), two_rails, lambda: line(4)])
    def test_one_stands_for_all_of_its_class(self, make):
        """Each loss of each class is solved by itself and has the rate of the one that is told."""
        problem = gathered(make())
        study = Study(problem)

        for row in study.rows():
            if row.optimum is None:
                continue
            for names in row.part.members:
                left = without(problem.topology, replace(row.part, names=names))
                again = Problem(left, all_gather(len(left.ranks), 12 * MB))
                assert optimum(again).algbw == pytest.approx(row.algbw), (row.words, names)

    @pytest.mark.parametrize("name", ["dgx-1v", "dgx-a100:hosts=2", "ndv2:hosts=2"])
    def test_every_part_is_in_one_class(self, name):
        problem = gathered(open_cluster(name))
        topology = problem.topology

        found = parts_of(problem)

        members = [(each.kind, names) for each in found for names in each.members]
        wanted = [(each.kind, (each.name,)) for each in topology.devices]
        wanted += [("host", (host,)) for host in topology.hosts]
        pairs = {frozenset(each.ends) for each in topology.links}
        assert sorted(each for each in members if each[0] != "link") == sorted(wanted)
        assert sorted(sorted(names) for kind, names in members if kind == "link") == sorted(
            map(sorted, pairs)
        )

    def test_a_host_is_one_though_a_switch_tells_none_apart(self):
        """On one switch all GPUs are alike, but a host of two costs other than a host of one."""
        hosts = ["a", "a", "b", "b", "c"]
        devices = tuple(device("gpu", f"g{r}", host=host) for r, host in enumerate(hosts))
        cluster = replace(star(5), devices=(*devices, star(5).devices[-1]))

        found = parts_of(gathered(cluster), ["host"])

        assert [(each.names, each.alike) for each in found] == [(("a",), 2), (("c",), 1)]

    def test_a_large_cluster_is_told_by_what_its_builder_declared(self):
        """96 hosts of 8 GPUs on rails: five kinds of links and devices, each told once."""
        topology = open_cluster("dgx-a100:hosts=96")
        problem = Problem(topology, broadcast(len(topology.ranks), MB, root=0))

        found = parts_of(problem, ["host", "gpu"])

        # The root, the others of its host, those on its rail, the rest.
        assert sorted(each.alike for each in found if each.kind == "gpu") == [1, 7, 95, 665]
        assert sorted(each.alike for each in found if each.kind == "host") == [1, 95]

    def test_what_a_builder_declared_holds_with_hosts_too(self):
        """Beyond thousands of devices it is all that is known of a cluster."""
        larger = with_hosts(open_cluster("dgx-a100:hosts=3"))

        group = automorphisms(larger, method="declared")

        assert group.whole
        hosts = [larger.index[name] for name in larger.index if name.startswith("host ")]
        assert len(set(group.orbits()[hosts].tolist())) == 1

    def test_kinds_are_known(self):
        with pytest.raises(ProblemError, match="'cable' is nothing that fails; choose from link"):
            failures(gathered(ring(3)), losing=["cable"])

    def test_a_kind_that_is_not_there_gives_no_row(self):
        found = failures(gathered(ring(3)), losing=["nic"])

        assert (found.rows, found.worst) == ((), None)
        assert "nothing of the requested kinds" in found.words


class TestPlans:
    def test_are_verified_and_told_beside_what_is_left_of_todays(self):
        """Two GPUs on a link, two on another pair of links: nothing of one needs the other."""
        found = failures(
            gathered(both_ways(3)),
            losing=["link"],
            schedule=True,
            formulation="te-ccl-milp",
            time_limit=20,
        )

        [row] = found.rows
        verify(row.problem, row.result.plan)
        assert row.result.problem.topology == row.topology
        # 4 MB at 50 GB/s are 80 µs: all at once today, and in two rounds on a line of 3.
        assert found.result.makespan == pytest.approx(80)
        assert row.result.makespan == pytest.approx(160)
        survival = row.survival
        assert (survival.runs, survival.sends, len(survival.gone)) == (False, 6, 2)
        assert survival.share == pytest.approx(1 / 3)
        assert {ends for send in survival.gone for ends in send.hops} == {
            ("g0", "g1"),
            ("g1", "g0"),
        }

    def test_todays_goes_on_over_fewer_parallel_links_but_slower(self):
        """6 MB at 100 GB/s are 60 µs, at 50 GB/s 120 µs."""
        pair = Topology("pair", gpus(2), duplex("g0", "g1", bandwidth=100.0, count=2))

        found = failures(gathered(pair), losing=["link"], schedule=True, formulation="te-ccl-milp")

        [row] = found.rows
        assert found.result.makespan == pytest.approx(60)
        assert row.survival.makespan == pytest.approx(120)
        assert (row.survival.share, row.survival.gone) == (0.0, ())

    def test_todays_is_for_other_ranks_when_a_gpu_is_lost(self):
        [row] = failures(
            gathered(star(3)), losing=["gpu"], schedule=True, formulation="te-ccl-milp"
        ).rows

        assert not row.survival.runs
        assert len(row.survival.gone) > 0
        assert row.result.problem.collective == all_gather(2, 12 * MB)

    def test_without_time_rows_say_so(self):
        found = failures(gathered(both_ways(3)), losing=["link"], schedule=True, time_limit=1e-9)

        [row] = found.rows
        assert (found.result, row.result, row.survival) == (None, None, None)
        assert row.why == "the time limit is reached before it was its turn"
        assert row.lost == pytest.approx(0.5)

    def test_a_forest_loses_the_share_of_its_bytes(self):
        """12 MB over 4 links both ways of a ring of 4: one of four pairs of links is a quarter."""
        [row] = failures(
            gathered(both_ways(4)), losing=["link"], schedule=True, formulation="forestcoll"
        ).rows

        assert (row.survival.gone, row.survival.sends) == ((), 0)
        assert row.survival.share == pytest.approx(0.25)


class TestStudy:
    def test_rows_come_one_by_one_and_may_be_left(self):
        study = Study(gathered(open_cluster("dgx-1v")))

        first = list(islice(study.rows(), 2))

        table = study.so_far(first)
        assert isinstance(table, Failures)
        assert table.rows == tuple(first)
        assert len(first) < len(study.parts)

    def test_windows_have_no_steady_state(self):
        problem = replace(gathered(ring(3)), windows=(Window((("g0", "g1"),), 0, 5, 0.5),))

        with pytest.raises(ProblemError, match="ring has links with less bandwidth for a time"):
            failures(problem)

    def test_sums_and_pairs_of_a_custom_demand_are_told_apart(self):
        """g0 sends to g1 alone: on a star their losses end it, that of g2 costs nothing."""
        problem = Problem(star(3), custom(3, [Chunk(MB, (0,), (1,))]))

        rows = {row.names: row for row in failures(problem, losing=["gpu"]).rows}

        assert (rows["g0",].lost, rows["g1",].lost) == (1.0, 1.0)
        assert rows["g2",].lost == pytest.approx(0)

    def test_a_demand_of_which_nothing_is_left_ends(self):
        """Without g0 or g1 only what g2 has already is wanted: nothing has to move."""
        chunks = [Chunk(MB, (0,), (1,)), Chunk(MB, (2,), (2,))]

        rows = failures(Problem(star(3), custom(3, chunks)), losing=["gpu"]).rows

        ended = {row.names: row.why for row in rows if row.optimum is None}
        assert set(ended) == {("g0",), ("g1",)}
        assert "moves nothing" in ended["g1",]

    def test_an_all_reduce_of_a_ring_of_4_loses_a_quarter(self):
        """Of a ring 2 x 3/4 of the buffer leaves each GPU over 2 x 50 GB/s.

        A line adds up at one GPU and spreads from there: all of it crosses each link each way.
        """
        found = failures(Problem(both_ways(4), all_reduce(4, 12 * MB)), losing=["link"])

        assert found.today.algbw == pytest.approx(100 / 1.5)
        assert found.rows[0].algbw == pytest.approx(50)

    def test_where_only_a_bound_is_known_the_sentence_says_so(self):
        [row] = failures(gathered(both_ways(4)), losing=["link"]).rows
        assert row.optimum is not None
        bound = replace(row, optimum=replace(row.optimum, reached=False))

        assert (row.reached, bound.reached) == (True, False)
        assert bound.sentence.endswith("costs at least 50 %: at most 66.67 GB/s is left")
        assert replace(bound, lost=0.0).sentence.endswith("costs perhaps nothing")
        assert "gains at most 10 %" in replace(bound, lost=-0.1).sentence

    def test_all_kinds_are_asked_about_unless_some_are_named(self):
        kinds = {row.part.kind for row in failures(gathered(two_rails())).rows}

        assert kinds == {"link", "gpu", "switch", "host"}
        assert kinds <= set(PARTS)
