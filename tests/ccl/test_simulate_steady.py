"""Replays of forests and flows in parts, against pipelines in closed form. 1 MB takes 20 µs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

from ccl.collective import Chunk, all_gather, all_to_all, broadcast, custom, reduce, reduce_scatter
from ccl.errors import ScheduleError
from ccl.plans import Flow, Forest, Rate, Tree
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.simulate.engine import Engine, Job
from ccl.simulate.steady import Parts, track
from ccl.topology import Link, SharedLimit, Topology, device
from ccl.verify import verify_timeline
from tests.ccl.clusters import MB, gpus, line, mesh, star
from tests.ccl.judging import replay
from tests.ccl.test_verify_steady import both_ways, upside_down

ONE = Fraction(1)


def chain(count):
    return Forest((Tree(0, tuple((f"g{r}", f"g{r + 1}") for r in range(count - 1)), ONE),))


def over_the_switch(count):
    return Forest((Tree(0, tuple(("g0", "s", f"g{r}") for r in range(1, count)), ONE),))


def copies_for_a_plain_switch():
    """s copies, and t behind it does not: two copies of everything cross s->t."""
    switches = device("switch", "s", copies=True), device("switch", "t")
    links = (Link("g0", "s", 50), Link("s", "t", 50), Link("t", "g1", 50), Link("t", "g2", 50))
    problem = Problem(Topology("t", (*gpus(3), *switches), links), broadcast(3, MB))
    return problem, Forest((Tree(0, (("g0", "s", "t", "g1"), ("g0", "s", "t", "g2")), ONE),))


def mirrored(forest):
    return Forest(tuple(upside_down(tree) for tree in forest.trees), reduces=True)


class TestForest:
    @pytest.mark.parametrize("parts", [1, 4, 50])
    @pytest.mark.parametrize("alpha", [0.0, 0.7])
    def test_a_chain_is_a_pipeline(self, parts, alpha):
        """The last of P parts leaves the root after all others and then crosses n - 2 links more:
        (P + n - 2) times 20 / P µs, and n - 1 latencies."""
        problem = Problem(line(5, alpha=alpha), broadcast(5, MB))

        timeline = replay(problem, chain(5), chunks=parts)

        assert timeline.makespan == pytest.approx((parts + 3) * 20 / parts + 4 * alpha)
        assert timeline.chunks == parts
        assert len(timeline.transfers) == 4 * parts

    @pytest.mark.parametrize("parts", [1, 4, 50])
    def test_so_is_its_mirror(self, parts):
        problem = Problem(line(5, alpha=0.7), reduce(5, MB))

        timeline = replay(problem, mirrored(chain(5)), chunks=parts)

        assert timeline.makespan == pytest.approx((parts + 3) * 20 / parts + 4 * 0.7)

    def test_a_plain_switch_gets_a_part_for_each(self):
        """3 MB go up in 60 µs, and the last part of 1 / 4 MB goes down in 5."""
        problem = Problem(star(4), broadcast(4, MB))

        assert replay(problem, over_the_switch(4), chunks=4).makespan == pytest.approx(65)

    def test_a_copying_switch_gets_it_once(self):
        problem = Problem(star(4, copies=True), broadcast(4, MB))

        timeline = replay(problem, over_the_switch(4), chunks=4)

        assert timeline.makespan == pytest.approx(25)
        assert timeline.link_busy["g0", "s"] == pytest.approx(20)

    def test_a_reducing_switch_sends_on_one_sum(self):
        problem = Problem(star(4, reduces=True), reduce(4, MB))

        timeline = replay(problem, mirrored(over_the_switch(4)), chunks=4)

        assert timeline.makespan == pytest.approx(25)
        assert timeline.link_busy["s", "g0"] == pytest.approx(20)

    def test_a_plain_switch_sends_on_each_contribution(self):
        problem = Problem(star(4), reduce(4, MB))

        timeline = replay(problem, mirrored(over_the_switch(4)), chunks=4)

        assert timeline.makespan == pytest.approx(65)

    def test_copies_are_made_at_the_last_switch_that_can(self):
        """The first switch copies for the second one not before; the second sends two copies."""
        switches = device("switch", "s"), device("switch", "t", copies=True)
        links = (Link("g0", "s", 50), Link("s", "t", 50), Link("t", "g1", 50), Link("t", "g2", 50))
        problem = Problem(Topology("t", (*gpus(3), *switches), links), broadcast(3, MB))
        forest = Forest((Tree(0, (("g0", "s", "t", "g1"), ("g0", "s", "t", "g2")), ONE),))

        timeline = replay(problem, forest, chunks=1)

        assert timeline.link_busy == pytest.approx(dict.fromkeys(timeline.link_busy, 20))
        assert timeline.makespan == pytest.approx(60)

    def test_copies_for_a_plain_switch_cross_the_same_link(self):
        """The second of a part leaves s before all of the chunk has come, as the first does."""
        problem, forest = copies_for_a_plain_switch()

        timeline = replay(problem, forest, chunks=4)

        assert timeline.link_busy["s", "t"] == pytest.approx(40)
        assert timeline.makespan == pytest.approx(5 + 40 + 5)

    def test_none_of_them_is_ahead_of_what_it_copies(self):
        """The copies of the last part leave from 35 µs on; it has come by 20, or not before 42."""
        problem, forest = copies_for_a_plain_switch()
        timeline = simulate(problem, forest, chunks=4)
        last = max(
            (each.start, place) for place, each in enumerate(timeline.transfers) if each.src == "g0"
        )[1]
        late = replace(timeline.transfers[last], start=37.0, sent=42.0, end=42.0)
        transfers = (*timeline.transfers[:last], late, *timeline.transfers[last + 1 :])

        with pytest.raises(ScheduleError, match="s stores nothing"):
            verify_timeline(problem, replace(timeline, transfers=transfers))

    @pytest.mark.parametrize("mirror", [False, True])
    def test_a_ring_both_ways_is_in_its_steady_state_from_the_start(self, mirror):
        """Half of 7 shards of 1 MB over each link: 70 µs; a GPU sends its own half while the
        first one of another comes, so the links are never idle."""
        collective = reduce_scatter(8, 8 * MB) if mirror else all_gather(8, 8 * MB)
        forest = Forest(both_ways(8))

        timeline = replay(Problem(mesh(8), collective), mirrored(forest) if mirror else forest)

        assert timeline.makespan == pytest.approx(70)

    @pytest.mark.parametrize("mirror", [False, True])
    def test_many_parts_come_close_to_the_steady_state(self, mirror):
        """7 shards of 1 MB go up each link of a star, 140 µs, and then the last part goes down."""
        collective = reduce_scatter(8, 8 * MB) if mirror else all_gather(8, 8 * MB)
        trees = tuple(
            Tree(root, tuple((f"g{root}", "s", f"g{r}") for r in range(8) if r != root), ONE)
            for root in range(8)
        )
        forest = mirrored(Forest(trees)) if mirror else Forest(trees)
        problem = Problem(star(8), collective)

        spans = [replay(problem, forest, chunks=parts).makespan for parts in (2, 8, 64)]

        assert spans[0] > spans[1] > spans[2] >= 140
        assert spans[2] < 143

    def test_trees_take_their_exact_shares(self):
        """A third goes directly and two thirds by g2, in 6 parts of a sixth."""
        problem = Problem(mesh(3), custom(3, [Chunk(MB, (0,), (1,))]))
        trees = (
            Tree(0, (("g0", "g1"),), Fraction(1, 3)),
            Tree(0, (("g0", "g2"), ("g2", "g1")), Fraction(2, 3)),
        )

        timeline = replay(problem, Forest(trees), chunks=6)

        assert timeline.link_busy == pytest.approx(
            {("g0", "g1"): 20 / 3, ("g0", "g2"): 40 / 3, ("g2", "g1"): 40 / 3}
        )
        assert [each.nbytes for each in timeline.transfers] == pytest.approx([MB / 6] * 10)
        assert timeline.makespan == pytest.approx(40 / 3 + 20 / 6)

    def test_trees_take_turns(self):
        """Three parts of 2/9 at 1/6, 1/2 and 5/6 of the one, and one of 1/3 at 1/2 of the other."""
        trees = (
            Tree(0, (("g0", "g1"), ("g1", "g2")), Fraction(2, 3)),
            Tree(0, (("g0", "g1"), ("g0", "g2")), Fraction(1, 3)),
        )

        timeline = replay(Problem(mesh(3), broadcast(3, MB)), Forest(trees), chunks=4)

        sizes = [each.nbytes for each in timeline.transfers if each.dst == "g1"]
        assert sizes == pytest.approx([MB * part for part in (2 / 9, 2 / 9, 1 / 3, 2 / 9)])

    def test_no_tree_is_left_out_when_there_are_fewer_parts_than_trees(self):
        timeline = replay(Problem(mesh(4), all_gather(4, 4 * MB)), Forest(both_ways(4)), chunks=1)

        assert {each.nbytes for each in timeline.transfers} == {MB / 2}
        assert len(timeline.transfers) == 4 * 2 * 3

    def test_every_chunk_of_a_root_takes_its_trees(self):
        problem = Problem(line(3), broadcast(3, 2 * MB, chunks=2))

        timeline = replay(problem, chain(3), chunks=2)

        assert {each.chunk for each in timeline.transfers} == {0, 1}
        assert timeline.makespan == pytest.approx(50)

    def test_only_arrivals_that_are_needed_count(self):
        problem = Problem(line(3), custom(3, [Chunk(MB, (0,), (1,))]))

        assert replay(problem, chain(3), chunks=1).makespan == pytest.approx(20)

    def test_a_shared_limit_slows_the_trees_down(self):
        """12 MB under 100 GB/s take 120 µs, and the limit is used all the time."""
        links = (Link("g0", "g1", 60), Link("g0", "g2", 60))
        limit = SharedLimit("bus", (("g0", "g1"), ("g0", "g2")), 100)
        problem = Problem(Topology("t", gpus(3), links, (limit,)), broadcast(3, 6 * MB))
        forest = Forest((Tree(0, (("g0", "g1"), ("g0", "g2")), ONE),))

        assert 120 <= replay(problem, forest, chunks=20).makespan <= 122


class TestFlow:
    def test_is_taken_apart_into_paths(self):
        """Half a MB goes directly in 10 µs and half by g1, in parts of 1 / 4 MB, in 15."""
        problem = Problem(mesh(3), custom(3, [Chunk(MB, (0,), (2,))]))
        rates = Rate(0, "g0", "g2", 0.5), Rate(0, "g0", "g1", 0.5), Rate(0, "g1", "g2", 0.5)

        timeline = replay(problem, Flow(rates), chunks=4)

        assert timeline.makespan == pytest.approx(15)
        assert len(timeline.transfers) == 6
        assert sum(each.nbytes for each in timeline.transfers if each.dst == "g2") == MB

    def test_paths_part_where_the_flow_does(self):
        """All goes to g1, half from there to g3 and half by g2."""
        problem = Problem(mesh(4), custom(4, [Chunk(MB, (0,), (3,))]))
        rates = (
            Rate(0, "g0", "g1", 1.0),
            Rate(0, "g1", "g3", 0.5),
            Rate(0, "g1", "g2", 0.5),
            Rate(0, "g2", "g3", 0.5),
        )

        busy = replay(problem, Flow(rates), chunks=2).link_busy

        assert busy == pytest.approx(
            {("g0", "g1"): 20, ("g1", "g3"): 10, ("g1", "g2"): 10, ("g2", "g3"): 10}
        )

    def test_rates_of_one_link_add_up(self):
        problem = Problem(mesh(2), custom(2, [Chunk(MB, (0,), (1,))]))

        timeline = replay(problem, Flow((Rate(0, "g0", "g1", 0.5),) * 2), chunks=2)

        assert timeline.makespan == pytest.approx(20)

    def test_circles_are_left_out(self):
        problem = Problem(mesh(3), custom(3, [Chunk(MB, (0,), (1,))]))
        circle = Rate(0, "g1", "g2", 0.5), Rate(0, "g2", "g1", 0.5)

        timeline = replay(problem, Flow((Rate(0, "g0", "g1", 1.0), *circle)), chunks=2)

        assert {(each.src, each.dst) for each in timeline.transfers} == {("g0", "g1")}

    def test_an_all_to_all_over_a_line_is_as_fast_as_its_middle(self):
        """Over each middle link go 2 * 2 shards of 1 MB: 80 µs, and the pipeline's fill."""
        problem = Problem(line(4), all_to_all(4, 4 * MB))
        rates = [
            Rate(number, f"g{r}", f"g{r + step}", 1.0)
            for number, chunk in enumerate(problem.collective.chunks)
            for step in ((1,) if chunk.holders < chunk.destinations else (-1,))
            for r in range(chunk.holders[0], chunk.destinations[0], step)
        ]

        assert 80 <= replay(problem, Flow(tuple(rates)), chunks=64).makespan <= 81


class TestParts:
    def test_there_are_64_where_more_gain_nothing(self):
        """Over one link all parts together take as long as the whole."""
        assert replay(Problem(line(2), broadcast(2, MB)), chain(2)).chunks == 64

    def test_there_are_twice_as_many_as_long_as_that_gains(self):
        """k parts over two links take 20 (1 + 1/k) µs: 64 gain 1.5 % over 32, 128 only 0.8 %."""
        timeline = replay(Problem(line(3), broadcast(3, MB)), chain(3))

        assert timeline.chunks == 128
        assert timeline.makespan == pytest.approx(20 * (1 + 1 / 128))

    def test_every_link_of_a_way_is_a_crossing(self):
        """100 chunks cross 63 links each: 7 parts of each are less than 50,000 crossings, and four
        times as many, which gain, less than 300,000."""
        problem = Problem(line(64), broadcast(64, MB, chunks=100))

        assert simulate(problem, chain(64)).chunks == 28

    def test_there_are_fewer_where_all_crossings_would_be_too_many(self):
        """All 4,032 chunks of 64 GPUs cross a link once: 12 parts each are less than 50,000."""
        problem = Problem(mesh(64), all_to_all(64, 64 * MB))
        rates = tuple(
            Rate(number, f"g{chunk.holders[0]}", f"g{chunk.destinations[0]}", 1.0)
            for number, chunk in enumerate(problem.collective.chunks)
        )

        timeline = simulate(problem, Flow(rates))

        assert timeline.chunks == 12
        assert len(timeline.transfers) == 12 * 4032
        assert timeline.makespan == pytest.approx(20)


class TestOrder:
    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.parametrize("alpha", [0.0, 0.7])
    def test_are_sent_as_the_engine_sends_them(self, seed, alpha):
        """Random ways with random sizes, many of the same: each crossing at the same time."""
        random = Random(seed)
        topology = mesh(5, alpha=alpha)
        many = len(topology.links)
        free = Parts()
        judged: list[Job] = []
        for _ in range(40):
            count = random.randint(1, 6)
            links = tuple(random.randrange(many) for _ in range(count))
            after = tuple(
                tuple(sorted(random.sample(range(place), random.randint(0, min(place, 2)))))
                for place in range(count)
            )
            nbytes, base = random.choice([MB, 2 * MB, 3 * MB]), len(judged)
            free.add(track(links, (1,) * count, after), nbytes)
            judged += [
                Job(link, nbytes, len(before)) for link, before in zip(links, after, strict=True)
            ]
            for place, before in enumerate(after):
                for each in before:
                    judged[base + each].on_end.append((base + place, alpha))

        free.send(topology, None)
        Engine(topology, judged, in_order=False).run()

        assert free.start == [job.start for job in judged]
        assert free.sent == [job.sent for job in judged]


def test_a_chunk_that_is_where_it_must_be_is_not_sent():
    """Of two chunks one stays at home; the other takes 1 MB over 50 GB/s."""
    topology = Topology("pair", gpus(2), (Link("g0", "g1", 50.0), Link("g1", "g0", 50.0)))
    problem = Problem(topology, custom(2, [Chunk(MB, (0,), (0,)), Chunk(MB, (0,), (1,))]))

    timeline = simulate(problem, Flow((Rate(1, "g0", "g1", 1.0),)))

    assert timeline.makespan == pytest.approx(20.0)
    assert {each.chunk for each in timeline.transfers} == {1}
