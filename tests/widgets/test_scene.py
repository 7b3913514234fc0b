"""What the canvas is given: drawing, scene and cuts as JSON."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from fractions import Fraction

import pytest

from ccl.bound import Bound, Cut, Path
from ccl.collective import Collective, all_gather, all_reduce, all_to_all, reduce_scatter
from ccl.explain import report
from ccl.plans import Flow, Forest, Rate, Schedule, Send, Tree
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.timeline import Reason, Timeline, Transfer
from ccl.topology import Topology, device, duplex
from tests.ccl.clusters import mesh, ring, ring_all_gather
from tests.ccl.judging import named, summed
from tests.ccl.undirected import on_a_line
from widgets.print.playback import Playback
from widgets.view_model import scene as scenes
from widgets.view_model.scene import MOST_SENTENCES, STEPS, cuts, drawing, scene


def pair(alpha: float = 0.0) -> Topology:
    """Two GPUs, 10 GB/s each way: 1 MB takes 100 µs."""
    return Topology(
        "pair",
        (device("gpu", "a", host="h"), device("gpu", "b", host="h")),
        duplex("a", "b", bandwidth=10.0, alpha=alpha),
    )


def exchange(*, epoch_duration: float = 100.0, alpha: float = 0.0) -> dict[str, object]:
    """Return the scene of an all-gather of 2 x 1 MB between the two."""
    problem = Problem(pair(alpha), all_gather(2, 2e6))
    plan = Schedule((Send(0, 0, "a", "b"), Send(0, 1, "b", "a")), epoch_duration, 2)
    return scene(problem, plan, simulate(problem, plan))


def test_a_scene_tells_who_has_what_and_every_crossing():
    """1 MB at 10 GB/s takes 100 µs and arrives 5 µs of latency later, in the second epoch."""
    made = exchange(alpha=5.0)

    assert made["holds"] == {"a": [0], "b": [1]}
    assert made["transfers"] == [[0, "a", "b", 0.0, 105.0, 1.0], [1, "b", "a", 0.0, 105.0, 1.0]]
    assert (made["makespan"], made["epoch_duration"], made["epochs"]) == (105.0, 100.0, 2)
    assert made["title"] == "All-gather on pair"
    assert [chunk["origin"] for chunk in made["chunks"]] == [0, 1]


def test_a_scene_that_ends_with_an_epoch_has_no_empty_one_after_it():
    assert exchange()["epochs"] == 1


def test_each_epoch_has_its_sentences():
    assert exchange(alpha=5.0)["sentences"] == [
        "2 chunks over 2 links\na sends chunk 0 (a → b) to b\nb sends chunk 1 (b → a) to a",
        "Nothing sets out; what is on its way arrives.",
    ]


def test_a_scene_and_a_drawing_are_json():
    made = {"scene": exchange(), "drawing": drawing(pair(), {"a": (0, 0), "b": (90.5, 0)})}

    assert json.loads(json.dumps(made)) == made
    assert made["drawing"]["positions"]["b"] == [90.5, 0.0]


def test_a_flow_is_shown_in_twenty_steps_with_its_fractions():
    problem = Problem(pair(), all_to_all(2, 2e6))
    plan = Flow((Rate(0, "a", "b", 1.0), Rate(1, "b", "a", 1.0)))
    timeline = simulate(problem, plan, chunks=4)
    made = scene(problem, plan, timeline)

    assert made["epochs"] == 20
    assert made["epoch_duration"] == pytest.approx(timeline.makespan / 20)
    carried = sum(each[5] for each in made["transfers"] if each[0] == 0)
    assert carried == pytest.approx(1.0)


def test_a_forest_is_shown_too():
    problem = Problem(pair(), all_gather(2, 2e6))
    plan = Forest((Tree(0, (("a", "b"),), Fraction(1)), Tree(1, (("b", "a"),), Fraction(1))))
    made = scene(problem, plan, simulate(problem, plan, chunks=2))

    assert {each[1:3][0] for each in made["transfers"]} == {"a", "b"}


@pytest.mark.parametrize(
    ("collective", "origins"),
    [
        (all_gather(2, 2e6, chunks=2), [0, 0, 1, 1]),
        (all_to_all(2, 2e6), [0, 1]),
        (reduce_scatter(2, 2e6), [0, 1]),
        (all_reduce(2, 2e6, chunks=2), [0, 0, 1, 1]),
    ],
    ids=lambda value: value.kind if isinstance(value, Collective) else "",
)
def test_the_colour_is_that_of_the_source_or_of_the_shard_of_a_sum(collective, origins):
    made = scene(Problem(pair(), collective), Schedule((), 1.0, 1), Timeline((), 1.0))

    assert [chunk["origin"] for chunk in made["chunks"]] == origins
    assert [chunk["reduced"] for chunk in made["chunks"]] == [
        chunk.reduced for chunk in collective.chunks
    ]


def test_long_epochs_are_told_in_part():
    problem = Problem(pair(), all_gather(2, 2e6, chunks=100))
    transfers = tuple(
        Transfer(k, "a", "b", start=0.0, sent=1.0, end=1.0, nbytes=1e4) for k in range(100)
    )
    (told,) = scene(problem, Schedule((), 1.0, 1), Timeline(transfers, 1.0))["sentences"]

    lines = told.split("\n")
    assert lines[0] == "100 chunks over 1 link"
    assert lines[-1] == f"and {100 - MOST_SENTENCES} sends more"
    assert len(lines) == MOST_SENTENCES + 2


def filled(template: str, holes: dict[str, object]) -> str:
    """Fill in a template as the canvas does: each name in braces by what it is called."""
    return re.sub(r"\{(\w+)\}", lambda hole: str(holes[hole[1]]), template)


class TestDetails:
    def test_each_transfer_has_its_reason_and_its_cause(self):
        """Rounds of 20.7 µs in epochs of 25: transfer 4 + r passes on what transfer r - 1 brought
        20.7 µs in, 20 of them bytes; it leaves its link at 40.7."""
        problem, schedule = ring_all_gather(ring(4, alpha=0.7), epoch_duration=25)
        made = scene(problem, schedule, simulate(problem, schedule))
        details = made["details"]

        assert json.loads(json.dumps(details)) == details
        assert details["reasons"] == [reason.value for reason in Reason]
        named = [[details["reasons"][row[0]], *row[1:]] for row in details["rows"]]
        assert named[:4] == [[Reason.AT_ONCE, -1, 0.0, 0, 20.0]] * 4
        assert named[4:8] == [[Reason.NOT_THERE, before, 20.7, 1, 40.7] for before in (3, 0, 1, 2)]
        path = [made["transfers"][i] for i in details["critical"]]
        assert [each[3] for each in path] == [0.0, 20.7, 41.4]
        assert len({each[0] for each in path}) == 1

    def test_the_phrases_give_the_sentences_of_the_library(self):
        problem, schedule = ring_all_gather(ring(4, alpha=0.7), epoch_duration=25)
        timeline = simulate(problem, schedule)
        made = scene(problem, schedule, timeline)
        details, label = made["details"], made["chunks"][3]["label"]
        reason, by, ready, epoch, _ = details["rows"][4]
        chunk, src, dst, start, end, _ = made["transfers"][4]

        told = filled(
            details["phrases"][details["reasons"][reason]],
            {"src": src, "dst": dst, "chunk": label, "start": start, "end": end, "ready": ready,
             "from": made["transfers"][by][1]},
        )  # fmt: skip
        told += filled(
            details["phrases"]["earlier"],
            {"epoch": epoch, "planned": int(epoch * made["epoch_duration"])},
        )

        assert chunk == 3
        assert told == report(problem, schedule, timeline).sentence(4)

    def test_plans_without_epochs_have_none(self):
        problem = Problem(pair(), all_to_all(2, 2e6))
        plan = Flow((Rate(0, "a", "b", 1.0), Rate(1, "b", "a", 1.0)))

        rows = scene(problem, plan, simulate(problem, plan, chunks=2))["details"]["rows"]

        assert {row[3] for row in rows} == {-1}

    def test_too_many_transfers_are_shown_without(self, monkeypatch):
        monkeypatch.setattr(scenes, "MOST_DETAILED", 1)

        assert exchange()["details"] is None


CUT = Cut(("a", "b", "c"), (("a", "s"), ("b", "t")), 200.0)


def test_cuts_are_the_witnesses_that_are_cuts_each_once():
    bounds = [
        Bound(9.0, "path", Path(("a", "b")), "longest way"),
        Bound(8.0, "cut", CUT, "what leaves"),
        Bound(7.0, "flow", None, "linear program"),
        Bound(6.0, "cut", CUT, "the same again"),
        Bound(5.0, "injection", replace(CUT, inside=("a",)), "one GPU"),
    ]

    first, second = cuts(bounds)
    assert first == {
        "inside": ["a", "b", "c"],
        "links": [["a", "s"], ["b", "t"]],
        "bandwidth": 200.0,
        "makespan": 8.0,
        "label": "Bottleneck cut · 200 GB/s across · lower bound 8 µs",
    }
    assert second["label"] == "Cut · 200 GB/s out of a · lower bound 5 µs"


def test_a_cut_says_of_which_plans_its_time_is():
    whole, every = cuts(
        [
            Bound(9.0, "cut", CUT, "", whole_chunks=True),
            Bound(5.0, "injection", replace(CUT, inside=("a",)), ""),
        ]
    )

    assert whole["label"] == "Bottleneck cut · 200 GB/s across · lower bound 9 µs for whole chunks"
    assert every["label"] == "Cut · 200 GB/s out of a · lower bound 5 µs"


def test_a_cut_around_all_but_one_is_told_from_the_one():
    (only,) = cuts([Bound(2.0, "ejection", replace(CUT, links=(("a", "d"), ("b", "d"))), "")])

    assert only["label"] == "Bottleneck cut · 200 GB/s into d · lower bound 2 µs"


def test_a_plan_of_more_epochs_than_a_page_can_hold_is_played_in_a_few_steps():
    """100 µs in epochs of 1 ps: a hundred million."""
    made = exchange(epoch_duration=1e-6)

    assert (made["epochs"], made["epoch_duration"]) == (STEPS, pytest.approx(5.0))
    assert len(made["sentences"]) == STEPS


def test_a_scene_says_which_contributions_a_transfer_carries():
    """g1 has all of sum 0 after 40 µs; what it sends to g0 at 20 µs is not all that it has."""
    problem, plan = on_a_line()
    timeline = simulate(problem, plan)
    made = scene(problem, plan, timeline)

    ranks = [made["terms"][place]["ranks"] for place in made["carried"]]
    assert ranks == [sorted(each) for each in timeline.terms]
    assert made["terms"][made["carried"][0]] == {"ranks": [0], "label": "rank 0"}
    assert "carried" not in scene(*ring_all_gather(ring(3)), simulate(*ring_all_gather(ring(3))))


def test_a_picture_fills_a_buffer_by_the_terms_that_come():
    """g0 sends g2 its own alone, though it has got g1's before."""
    problem = summed(mesh(3), range(3), [2])
    sends = named(0, "g1", "g0", 1), named(1, "g0", "g2", 0), named(2, "g1", "g2", 1)
    plan = Schedule(sends, 20.0, 3)
    made = scene(problem, plan, simulate(problem, plan))
    made["transfers"][1][3:5] = [20.0, 40.0]
    made["transfers"][2][3:5] = [40.0, 60.0]
    levels = Playback(made).levels
    assert [round(3 * levels(time)["g2"][0]) for time in (0.0, 40.0, 60.0)] == [1, 2, 3]
