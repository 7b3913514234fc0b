"""Plans in words. 1 MB takes 20 µs at 50 GB/s."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from ccl.collective import Chunk, all_gather, all_reduce, broadcast, custom
from ccl.errors import ProblemError, ScheduleError
from ccl.explain import difference, explain, report
from ccl.explain import narration as telling
from ccl.explain.narration import TEMPLATES
from ccl.plans import Flow, Forest, Rate, Schedule, Send, Tree
from ccl.problem import Problem
from ccl.symmetry import Symmetry
from ccl.text import MOST_LINES, number
from ccl.timeline import Reason
from ccl.topology import Link, Topology, device, duplex
from tests.ccl.clusters import MB, gpus, line, ring, ring_all_gather, ring_all_reduce, star
from tests.ccl.documents import solved


def queue():
    """g1 sends two chunks of its own before that of g0, which is there at 20 µs."""
    chunks = [Chunk(MB, (0,), (2,)), Chunk(MB, (1,), (2,)), Chunk(MB, (1,), (2,))]
    sends = Send(0, 0, "g0", "g1"), *(Send(k, (k + 1) % 3, "g1", "g2") for k in range(3))
    return Problem(line(3), custom(3, chunks)), Schedule(sends, 25, 3)


def lines(text):
    return [each.strip() for each in text.split("\n")]


class TestNumbers:
    @pytest.mark.parametrize(
        ("value", "digits", "text"),
        [
            (0.0, 6, "0"),
            (20.7, 6, "20.7"),
            (0.1 + 0.2, 6, "0.3"),
            (1234567.0, 6, "1234570"),
            (0.00012345, 3, "0.000123"),
            (2.5, 1, "3"),
            (99.96, 3, "100"),
            (-0.5, 6, "-0.5"),
        ],
    )
    def test_are_written_as_the_canvas_writes_them(self, value, digits, text):
        """JavaScript: ``String(Number(value.toPrecision(digits)))``, whose halves go up."""
        assert number(value, digits) == text


class TestSentences:
    def test_a_wait_is_told_with_what_was_in_the_way(self):
        """The link is free at 40 µs, 20 µs after the chunk came; its epoch begins at 50."""
        told = report(*queue())

        assert told.sentence(3) == (
            "g1 sends chunk 0 (g0 → g2) to g2 at 40 µs, there at 60 µs: it was at g1 from 20 µs on "
            "and waited 20 µs for the link, busy with chunk 2 (g1 → g2). "
            "Planned for epoch 2, from 50 µs on."
        )
        assert told.waited(3) == pytest.approx(20)

    def test_what_starts_in_its_epoch_is_not_said_to_be_planned(self):
        assert report(*queue()).sentence(0) == (
            "g0 sends chunk 0 (g0 → g2) to g1 at 0 µs, there at 20 µs: at once."
        )

    def test_each_reason_has_its_sentence(self):
        assert set(TEMPLATES) == set(Reason)

    def test_parts_of_chunks_are_said_to_be_parts(self):
        problem = Problem(line(2), custom(2, [Chunk(MB, (0,), (1,))]))

        told = report(problem, Flow((Rate(0, "g0", "g1", 1.0),)))

        assert told.sentence(0).startswith("g0 sends 1.56 % of chunk 0 (g0 → g1) to g1 at 0 µs")

    def test_a_plan_that_breaks_a_rule_is_not_told(self):
        problem, schedule = queue()

        with pytest.raises(ScheduleError, match="chunk 0"):
            explain(problem, Schedule(schedule.sends[1:], 25, 3))


class TestChunk:
    def test_the_way_of_a_chunk_has_its_hops_waits_and_arrivals(self):
        problem, schedule = queue()

        told = lines(explain(problem, schedule, chunk=0))

        assert told[0] == "chunk 0 (g0 → g2), 1 MB: at g0 from the start, needed at g2."
        assert [each.split(" to ")[0] for each in told[1:3]] == [
            "g0 sends chunk 0 (g0 → g2)",
            "g1 sends chunk 0 (g0 → g2)",
        ]
        assert told[3:] == ["It is complete: g2 at 60 µs.", "On 2 hops it waited 20 µs in all."]

    def test_of_a_chunk_that_goes_to_all_each_has_its_time(self):
        problem, schedule = ring_all_gather(ring(4))

        told = lines(explain(problem, schedule, chunk=2))

        assert told[-2:] == [
            "It is complete: g0 at 40 µs, g1 at 60 µs and g3 at 20 µs.",
            "On 3 hops it waited nowhere.",
        ]

    def test_a_sum_is_complete_with_its_last_part(self):
        """Added up on the way round until 60 µs at g0, then passed on to the other three."""
        problem, schedule = ring_all_reduce(ring(4))

        told = explain(problem, schedule, chunk=0)

        assert "a part of it at g0, g1, g2 and g3" in told
        assert "It is complete: g0 at 60 µs, g1 at 80 µs, g2 at 100 µs and g3 at 120 µs." in told

    def test_of_a_tree_the_routes_and_the_parts_are_told(self):
        """The second link takes twice as long: part i of 64 is there at 20 (i + 1) / 64 µs and
        waits until 20 / 64 + 40 i / 64, in all 20 / 64 times the sum of i up to 63: 630 µs."""
        links = Link("g0", "g1", 50), Link("g1", "g2", 25)
        problem = Problem(Topology("t", gpus(3), links), broadcast(3, MB))
        forest = Forest((Tree(0, (("g0", "g1"), ("g1", "g2")), Fraction(1)),))

        told = lines(explain(problem, forest, chunk=0))

        assert told[1:3] == [
            "It takes 1 tree, each with its share of it:",
            "1: g0 → g1 and g1 → g2",
        ]
        assert told[4] == (
            "g1 → g2: chunk 0 of g0 in 64 parts from 0.3125 to 40.3125 µs; "
            "parts waited 630 µs in all: the link was busy"
        )

    def test_of_an_all_reduce_both_trees_of_a_chunk_are_told(self):
        problem = Problem(line(2), all_reduce(2, 2 * MB))
        down = tuple(Tree(r, ((f"g{r}", f"g{1 - r}"),), Fraction(1, 2)) for r in (0, 1))
        up = tuple(Tree(r, ((f"g{1 - r}", f"g{r}"),), Fraction(1, 2)) for r in (0, 1))

        told = explain(problem, Forest(up, reduces=True, spread=down), chunk=1)

        assert "1: g0 → g1 and g1 → g0" in told

    def test_of_a_flow_the_paths_have_their_shares(self):
        links = Link("g0", "g1", 50), Link("g1", "g2", 50), Link("g0", "g2", 25)
        problem = Problem(Topology("t", gpus(3), links), custom(3, [Chunk(MB, (0,), (2,))]))
        rates = Rate(0, "g0", "g1", 0.6), Rate(0, "g1", "g2", 0.6), Rate(0, "g0", "g2", 0.4)

        told = lines(explain(problem, Flow(rates), chunk=0))

        assert told[1:4] == ["It takes 2 paths:", "40 %: g0 → g2", "60 %: g0 → g1 → g2"]


class TestRows:
    def test_the_row_of_a_link_has_its_gaps_and_why(self):
        """0.7 µs of latency keep the next chunk away while the link is free."""
        problem, schedule = ring_all_gather(ring(4, alpha=0.7), epoch_duration=20.7)

        told = lines(explain(problem, schedule, link=("g0", "g1")))

        idle = "idle 0.7 µs before: nothing was there to send"
        assert told == [
            "g0 → g1, 50 GB/s, alpha 0.7 µs: 3 transfers, 3 MB, busy 60 of 62.1 µs (96.6 %).",
            "0 – 20 µs chunk 0 of g0, there at 20.7",
            f"20.7 – 40.7 µs chunk 3 of g3, there at 41.4, {idle}",
            f"41.4 – 61.4 µs chunk 2 of g2, there at 62.1, {idle}",
        ]

    def test_parts_that_follow_at_once_are_one_row(self):
        problem = Problem(line(2), custom(2, [Chunk(MB, (0,), (1,))]))

        told = lines(explain(problem, Flow((Rate(0, "g0", "g1", 1.0),)), link=("g0", "g1")))

        assert told[1:] == ["0 – 20 µs chunk 0 (g0 → g1) in 64 parts, there at 20"]

    def test_a_rank_has_gets_and_sends(self):
        problem, schedule = queue()

        told = lines(explain(problem, schedule, rank=2))

        assert told == [
            "Rank 2 (g2) has nothing at the start and all that it needs at 60 µs.",
            "It gets 3 transfers, 3 MB:",
            "20 µs chunk 1 (g1 → g2) from g1",
            "40 µs chunk 2 (g1 → g2) from g1",
            "60 µs chunk 0 (g0 → g2) from g1",
            "It sends nothing.",
        ]

    def test_a_host_has_what_comes_in_and_what_leaves(self):
        """Of 4 MB on 2 links one leaves host a and three stay in b."""
        problem, schedule = queue()
        hosts = {"g0": "a", "g1": "b", "g2": "b"}
        topology = Topology(
            "t", tuple(device("gpu", name, host=host) for name, host in hosts.items()),
            (*duplex("g0", "g1", bandwidth=50), *duplex("g1", "g2", bandwidth=50)),
        )  # fmt: skip
        problem = Problem(topology, problem.collective)

        told = lines(explain(problem, schedule, host="b"))

        assert told[0] == (
            "Host b with 2 devices: 1 MB come in over 1 link, 0 B leave over 0 links, "
            "3 MB stay inside."
        )
        assert told[1] == "Comes in:"
        assert told[2].startswith("g0 sends chunk 0")
        assert len(told) == 3

    def test_several_filters_leave_what_concerns_all(self):
        problem, schedule = queue()

        told = lines(explain(problem, schedule, chunk=0, rank=2))

        assert told[0] == "1 send:"
        assert told[1].startswith("g1 sends chunk 0")

    @pytest.mark.parametrize(
        ("asked", "words"),
        [
            ({"chunk": 3}, "there is no chunk 3; chunks go from 0 to 2"),
            ({"chunk": -1, "rank": 0}, "there is no chunk -1"),
            ({"rank": 3}, "there is no rank 3 on line; ranks go from 0 to 2"),
            ({"host": "a"}, "there is no host 'a' on line; hosts are none"),
            ({"link": ("g0", "g2")}, "line has no link g0->g2"),
        ],
    )
    def test_what_is_not_there_is_named(self, asked, words):
        with pytest.raises(ProblemError, match=words):
            explain(*queue(), **asked)


class TestWhole:
    def test_a_plan_is_told_from_its_makespan_to_its_sends(self):
        told = lines(explain(*queue()))

        assert told[:2] == [
            "custom of 3 MB on line: 4 transfers in 60 µs.",
            "Along the critical path: 60 µs = bytes 60 µs.",
        ]
        assert "at once: 2" in told
        assert "the link was busy: 2, 40 µs of waiting in all" in told
        assert "Busiest, 100 % of the time: g1 → g2." in told
        assert len(told) == 2 + 3 + 3 + 1 + 1 + 4

    def test_long_plans_end_with_how_much_is_left_out(self):
        problem, schedule = ring_all_gather(ring(12))

        told = lines(explain(problem, schedule))

        assert told[-1] == f"and {12 * 11 - MOST_LINES} transfers more"
        assert len(told) < 2 * MOST_LINES

    def test_a_replay_that_is_there_is_used(self):
        result = solved().result
        replayed = partial(explain, result.problem, result.plan, timeline=result.timeline)

        assert replayed() == explain(result.problem, result.plan)
        assert replayed(rank=0) == explain(result.problem, result.plan, rank=0)

    def test_of_a_switch_that_adds_the_meeting_is_told(self):
        links = *star(3).links, Link("g3", "g1", 50)
        topology = Topology("t", (*gpus(4), device("switch", "s", reduces=True)), links)
        problem = Problem(topology, custom(4, [Chunk(MB, (1, 2, 3), (0,), reduced=True)]))
        parts = tuple(Send(1, 0, name, "g0", ("s",)) for name in ("g1", "g2"))

        told = explain(problem, Schedule((Send(0, 0, "g3", "g1"), *parts), 20, 2))

        assert (
            "g2 sends sum 0 to s at 20 µs, there at 40 µs: it was at g2 from 0 µs on and waited "
            "20 µs to meet what comes from g1 in a switch that adds."
        ) in told


class TestSymmetry:
    @pytest.fixture
    def folded(self):
        """In a ring of 4 one tree stands for four."""
        topology = ring(4)
        turn = np.array([(np.arange(4) + k) % 4 for k in range(4)])
        tree = Tree(0, (("g0", "g1"), ("g1", "g2"), ("g2", "g3")), Fraction(1))
        forest = Forest((tree,), symmetry=Symmetry(topology, turn, (4,)))
        return Problem(topology, all_gather(4, 4 * MB)), forest

    def test_all_trees_are_told(self, folded):
        told = report(*folded)

        assert told.timeline.images == 1
        assert {each.chunk for each in told.transfers} == {0, 1, 2, 3}
        text = explain(*folded, chunk=2)
        assert "1: g2 → g3, g3 → g0 and g0 → g1" in text
        assert "It is complete: g0 at" in text

    def test_of_too_many_one_of_each_kind_is_told(self, folded, monkeypatch):
        monkeypatch.setattr(telling, "MOST_UNFOLDED", 100)

        told = explain(*folded)

        assert (
            "Only the transfers of one tree of each kind are listed; each stands for 4 alike."
            in (told)
        )
        with pytest.raises(ProblemError, match="transfers that can be compared"):
            difference(report(*folded), report(*folded))
