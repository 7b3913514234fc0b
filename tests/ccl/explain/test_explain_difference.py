"""Differences of plans. 1 MB takes 20 µs at 50 GB/s."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from ccl.collective import Chunk, all_gather, broadcast, custom
from ccl.errors import ProblemError
from ccl.explain import difference, report
from ccl.explain.difference import Kind, deliveries_of
from ccl.plans import Flow, Forest, Rate, Schedule, Send, Tree
from ccl.problem import Problem
from ccl.topology import Topology, device
from tests.ccl.clusters import MB, gpus, line, mesh, ring, ring_all_gather, star
from tests.ccl.documents import solved
from tests.ccl.judging import named, summed
from tests.ccl.undirected import on_a_line


def two(problem, first, second):
    return difference(report(problem, first), report(problem, second))


def kinds(found):
    return [(row.kind, row.chunk, row.src, row.dst) for row in found.rows]


def relays():
    """The chunk of g0 goes to g2 by g1, or to g1 alone over the mesh and to g2 at once."""
    problem = Problem(mesh(3), broadcast(3, MB))
    chain = Schedule((Send(0, 0, "g0", "g1"), Send(1, 0, "g1", "g2")), 20, 2)
    fan = Schedule((Send(0, 0, "g0", "g1"), Send(0, 0, "g0", "g2")), 20, 2)
    return problem, chain, fan


def test_a_plan_does_not_differ_from_itself():
    problem, schedule = ring_all_gather(ring(4))

    found = two(problem, schedule, schedule)

    assert (found.rows, found.links, found.parts_at, found.same) == ((), {}, None, 12)
    assert found.text() == ("first: 60 µs, second: 60 µs, the same.\nThey move the same: 12 sends.")


def test_what_only_one_has_is_told_with_makespans_and_bytes():
    """g0->g1 is in both; then g1->g2 at 20 µs against g0->g2 at 0, which is earlier."""
    found = two(*relays())

    assert kinds(found) == [(Kind.ONLY_SECOND, 0, "g0", "g2"), (Kind.ONLY_FIRST, 0, "g1", "g2")]
    assert (found.same, found.parts_at) == (1, 0)
    assert found.makespans == pytest.approx((40, 20))
    assert found.links == {("g1", "g2"): (MB, 0), ("g0", "g2"): (0, MB)}
    assert found.text().split("\n") == [
        "first: 40 µs, second: 20 µs, 20 µs less (50 %).",
        "The same in both: 1 send; the first that differs sets out at 0 µs.",
        "Only in first: 1 send",
        "  chunk 0 of g0 from g1 to g2 at 20 µs (epoch 1)",
        "Only in second: 1 send",
        "  chunk 0 of g0 from g0 to g2 at 0 µs (epoch 0)",
        "Bytes of links:",
        "  g1 → g2: 1 MB, second: 0 B",
        "  g0 → g2: 0 B, second: 1 MB",
    ]


def test_another_epoch_is_another_time():
    """Two chunks over one link in turn, the other way round."""
    problem = Problem(line(2), custom(2, [Chunk(MB, (0,), (1,)) for _ in range(2)]))
    turns = [
        Schedule((Send(0, first, "g0", "g1"), Send(1, 1 - first, "g0", "g1")), 20, 2)
        for first in (0, 1)
    ]

    found = two(problem, *turns)

    assert kinds(found) == [(Kind.TIME, c, "g0", "g1") for c in (0, 1)]
    assert found.rows[0].first.epochs == (0,)
    assert "chunk 0 (g0 → g1) from g0 to g1, first: at 0 µs (epoch 0), second: at 20 µs" in (
        found.text()
    )


def test_epochs_of_different_length_are_compared_by_the_replay():
    """The replay forgets epochs, so a ring in epochs of 20 µs is one in epochs of 30."""
    problem, schedule = ring_all_gather(ring(4))

    assert not two(problem, schedule, replace(schedule, epoch_duration=30.0)).rows
    later = Schedule(tuple(replace(each, epoch=each.epoch + 1) for each in schedule.sends), 20.0, 4)
    assert len(two(problem, schedule, later).rows) == 12


def test_another_switch_is_another_way():
    devices = *gpus(2), device("switch", "s"), device("switch", "t")
    links = (*star(2).links, *(replace(each, src="t" if each.src == "s" else each.src,
                                       dst="t" if each.dst == "s" else each.dst)
                               for each in star(2).links))  # fmt: skip
    problem = Problem(Topology("t", devices, links), custom(2, [Chunk(MB, (0,), (1,))]))
    over = [Schedule((Send(0, 0, "g0", "g1", (name,)),), 20, 1) for name in ("s", "t")]

    found = two(problem, *over)

    assert kinds(found) == [(Kind.PATH, 0, "g0", "g1")]
    assert found.text().split("\n")[3] == (
        "  chunk 0 (g0 → g1) from g0 to g1, first: over s at 0 µs (epoch 0), "
        "second: over t at 0 µs (epoch 0)"
    )


def test_a_stop_at_a_switch_is_the_same_way_as_none():
    """What a plain switch stores and forwards takes longer and goes the same way."""
    problem = Problem(star(2), custom(2, [Chunk(MB, (0,), (1,))]))
    through = Schedule((Send(0, 0, "g0", "g1", ("s",)),), 20, 2)
    stopping = Schedule((Send(0, 0, "g0", "s"), Send(1, 0, "s", "g1")), 20, 2)

    assert two(problem, through, stopping).rows == ()
    assert two(problem, through, stopping).makespans == pytest.approx((20, 40))


def test_parts_of_a_forest_count_together():
    """Both send all of it along the line; the forest in 128 parts from the same moment on the
    first link, and long before all of it is there on the second."""
    problem = Problem(line(3), broadcast(3, MB))
    schedule = Schedule((Send(0, 0, "g0", "g1"), Send(1, 0, "g1", "g2")), 20, 2)
    forest = Forest((Tree(0, (("g0", "g1"), ("g1", "g2")), Fraction(1)),))

    found = two(problem, schedule, forest)

    assert kinds(found) == [(Kind.TIME, 0, "g1", "g2")]
    assert found.links == {}
    assert found.rows[0].second.share == pytest.approx(1)
    assert found.rows[0].second.start == pytest.approx(20 / 128)


def test_another_share_is_told():
    problem = Problem(mesh(3), custom(3, [Chunk(MB, (0,), (2,))]))

    def by(part):
        return Flow(
            (
                Rate(0, "g0", "g2", part),
                Rate(0, "g0", "g1", 1 - part),
                Rate(0, "g1", "g2", 1 - part),
            )
        )

    found = two(problem, by(0.5), by(0.75))

    assert {kind for kind, *_ in kinds(found)} == {Kind.SHARE}
    assert "from g0 to g2, first: 50 %, second: 75 %" in found.text()


def test_a_sum_in_a_switch_is_a_move_of_each_part():
    problem = Problem(star(3, reduces=True), custom(3, [Chunk(MB, (1, 2), (0,), reduced=True)]))
    schedule = Schedule(tuple(Send(0, 0, f"g{r}", "g0", ("s",)) for r in (1, 2)), 20, 1)

    found = deliveries_of(report(problem, schedule))

    assert {ends: list(ways) for ends, ways in found.items()} == {
        (0, "g1", "g0"): [("s",)],
        (0, "g2", "g0"): [("s",)],
    }


def test_different_problems_are_not_compared():
    problem, schedule = ring_all_gather(ring(3))
    larger = Problem(problem.topology, all_gather(3, 6 * MB))

    with pytest.raises(ProblemError, match="all-gather of 3 MB on ring and all-gather of 6 MB"):
        difference(
            report(problem, schedule), report(larger, replace(schedule, epoch_duration=40.0))
        )
    slower, again = ring_all_gather(ring(3, bandwidth=25), epoch_duration=40)
    with pytest.raises(ProblemError, match="two that are both all-gather of 3 MB on ring"):
        difference(report(problem, schedule), report(slower, again))


def test_a_notebook_shows_its_text_at_least():
    found = two(*relays())

    data, _ = found._repr_mimebundle_()

    assert data["text/plain"] == str(found) == found.text()


def test_results_are_compared_and_rows_are_plain():
    result = solved().result

    assert not difference(result, result, names=("mine", "yours")).rows
    rows = two(*relays()).as_rows()
    assert json.loads(json.dumps(rows))[0] == {
        "kind": "only in the second",
        "chunk": 0,
        "label": "chunk 0 of g0",
        "src": "g0",
        "dst": "g2",
        "first": None,
        "second": {"way": [], "epochs": [0], "start": 0.0, "end": 20.0, "share": 1.0},
    }


def test_the_same_send_with_other_contributions_differs():
    """g1 sends g2 its own and g0's, or what it holds without a name."""
    problem = summed(mesh(3), range(3), [2])
    sends = named(0, "g0", "g1", 0), named(1, "g0", "g2", 0), named(1, "g1", "g2", 1)
    first = Schedule(sends, 20, 2)
    other = replace(first, sends=(sends[0], named(1, "g1", "g2", 0, 1)))
    plain = replace(other, sends=tuple(replace(send, terms=None) for send in other.sends))

    found = two(problem, first, other)
    assert kinds(found) == [(Kind.ONLY_FIRST, 0, "g0", "g2"), (Kind.TERMS, 0, "g1", "g2")]
    assert "first: that of rank 1, second: those of ranks 0 and 1" in found.text()
    assert "second: all that is added up" in two(problem, other, plain).text()
    assert json.dumps(found.as_rows())


def test_a_send_is_told_with_the_ranks_that_it_carries():
    problem, plan = on_a_line()
    described = report(problem, plan)
    sentences = [described.sentence(i) for i in range(len(described.transfers))]
    assert sentences[0].startswith("g0 sends sum 0 of rank 0 to g1")
    assert any("sends sum 0 of ranks 0 and 1 to g2" in each for each in sentences)
