"""Steps and phases of a plan, and what the captions say."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from ccl.collective import all_gather, all_reduce, all_to_all
from ccl.plans import Flow, Rate, Schedule, Send
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.timeline import Timeline, Transfer
from formulations import solve
from gallery import open_cluster
from tests.ccl.clusters import (
    line,
    line_all_gather,
    mesh,
    ring,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
    star,
)
from tests.ccl.undirected import on_a_line
from widgets.view_model import steps
from widgets.view_model.scene import scene
from widgets.view_model.steps import marks


def marked(problem: Problem, plan: Schedule) -> dict[str, list[dict[str, object]]]:
    return marks(problem, simulate(problem, plan))


def starts(found: dict[str, list[dict[str, object]]]) -> list[object]:
    return [step["start"] for step in found["steps"]]


def captions(found: dict[str, list[dict[str, object]]]) -> list[object]:
    return [step["caption"] for step in found["steps"]]


@pytest.mark.parametrize("count", [3, 4, 8])
def test_a_ring_has_a_step_less_than_gpus(count):
    """Each round is 1 MB at 50 GB/s, 20 µs, and waits for the round before."""
    found = marked(*ring_all_gather(ring(count)))

    assert starts(found) == [20.0 * round for round in range(count - 1)]
    assert captions(found) == [
        "each GPU sends data of its own",
        *["each GPU passes on what it just received"] * (count - 2),
    ]
    assert "phases" not in found


def test_a_ring_all_reduce_has_twice_as_many_in_two_phases():
    """The sum of a shard is whole after p - 1 = 3 rounds; the fourth sends whole sums."""
    found = marked(*ring_all_reduce(ring(4)))

    assert starts(found) == [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    assert found["phases"] == [
        {"start": 0.0, "label": "reduce-scatter"},
        {"start": 60.0, "label": "all-gather"},
    ]
    assert captions(found) == [
        "each GPU sends data of its own",
        *["each GPU adds to what it just received and sends the sum on"] * 2,
        "each GPU completes the sum that it just received and sends it on",
        *["each GPU passes on what it just received"] * 2,
    ]


def test_a_reduce_scatter_has_steps_and_no_phases():
    found = marked(*ring_reduce_scatter(ring(4)))

    assert len(found["steps"]) == 3
    assert "phases" not in found


def test_an_all_reduce_that_sends_whole_sums_before_others_are_whole_has_no_phases():
    """Sum 0 is whole at g0 after 20 µs and goes back; the parts of sum 1 follow at 40 µs."""
    problem, _ = ring_all_reduce(mesh(2))
    sends = Send(0, 0, "g1", "g0"), Send(1, 0, "g0", "g1")
    more = Send(2, 1, "g0", "g1"), Send(3, 1, "g1", "g0")

    assert "phases" not in marked(problem, Schedule((*sends, *more), 20.0, 4))


def test_a_send_over_a_switch_is_one_step():
    """Two sends of g0 one after the other up to the switch and on: two steps, not four."""
    problem = Problem(star(3), all_to_all(3, 9e6))
    sends = Send(0, 0, "g0", "g1", via=("s",)), Send(1, 1, "g0", "g2", via=("s",))
    found = marked(problem, Schedule(sends, 40.0, 3))

    assert captions(found) == ["g0 sends data of its own"] * 2


def test_what_waits_for_a_link_alone_is_a_step_where_no_data_is_waited_for():
    """g0 sends three shares to g1 over one link, one after the other: three steps."""
    problem = Problem(mesh(2), all_gather(2, 6e6, chunks=3))
    sends = tuple(Send(k, k, "g0", "g1") for k in range(3))

    assert starts(marked(problem, Schedule(sends, 20.0, 3))) == [0.0, 20.0, 40.0]


def test_pieces_that_keep_step_are_not_steps_of_their_own():
    """Two pieces a round, one after the other: the second round waits for data of the first."""
    problem = Problem(ring(3), all_gather(3, 6e6, chunks=2))
    sends = tuple(
        Send(2 * k + piece, 2 * ((r - k) % 3) + piece, f"g{r}", f"g{(r + 1) % 3}")
        for k in range(2)
        for piece in range(2)
        for r in range(3)
    )

    assert starts(marked(problem, Schedule(sends, 20.0, 4))) == [0.0, 40.0]


def test_a_step_in_which_few_send_names_how_many_and_who():
    """On a line of three the middle passes both ends on; alone it sends both ways at first."""
    found = marked(*line_all_gather(line(3)))

    assert captions(found) == [
        "each GPU sends data of its own",
        "g1 passes on what it just received",
    ]


def test_named_terms_say_whether_a_sum_is_whole():
    """g1 sends its own part ahead of the sum; only who adds is said to add."""
    problem, plan = on_a_line()
    found = marked(problem, plan)

    assert all("add" in text or "complete" in text or "own" in text for text in captions(found))


def test_a_replay_that_does_not_say_what_waits_has_none():
    problem = Problem(mesh(2), all_gather(2, 2e6))

    assert marks(problem, Timeline((), 1.0)) == {}
    assert marks(problem, Timeline((Transfer(0, "g0", "g1", 0.0, 1.0, 1.0, 1e6),), 1.0)) == {}


def test_one_step_is_not_marked():
    problem = Problem(mesh(2), all_gather(2, 2e6))
    plan = Schedule((Send(0, 0, "g0", "g1"), Send(0, 1, "g1", "g0")), 20.0, 1)

    assert marked(problem, plan) == {}


def test_too_many_are_not_marked(monkeypatch):
    monkeypatch.setattr(steps, "MOST_STEPS", 2)

    assert "steps" not in marked(*ring_all_gather(ring(4)))
    assert "steps" in marked(*ring_all_gather(ring(3)))


def test_the_pieces_of_a_pipeline_are_not_marked_where_they_are_many(monkeypatch):
    """Three shares over one link are three steps of links, none of them one of data."""
    problem = Problem(mesh(2), all_gather(2, 6e6, chunks=3))
    plan = Schedule(tuple(Send(k, k, "g0", "g1") for k in range(3)), 20.0, 3)
    monkeypatch.setattr(steps, "MOST_QUEUED", 2)

    assert marked(problem, plan) == {}


def test_a_flow_has_steps_too_where_its_pieces_are_few():
    problem = Problem(mesh(2), all_to_all(2, 2e6))
    plan = Flow((Rate(0, "g0", "g1", 1.0), Rate(1, "g1", "g0", 1.0)))

    assert len(marks(problem, simulate(problem, plan, chunks=4))["steps"]) == 4


def test_a_scene_has_them_as_json():
    problem, plan = ring_all_reduce(ring(4))
    made = scene(problem, plan, simulate(problem, plan))

    assert json.loads(json.dumps(made)) == made
    assert len(made["steps"]) == 6
    assert [phase["label"] for phase in made["phases"]] == ["reduce-scatter", "all-gather"]


@pytest.mark.parametrize("chunks", [1, 2, 4])
def test_halving_and_doubling_in_pieces_has_the_steps_of_the_algorithm(chunks):
    """On a hypercube of 8 each piece takes 3 steps down and 3 up; pieces run into one another."""
    problem = Problem(open_cluster("hypercube"), all_reduce(8, 8e6, chunks=chunks))
    result = solve(problem, "halving-doubling")
    found = marks(result.problem, result.timeline)

    assert len(found["steps"]) == 6
    assert all(one["start"] < two["start"] for one, two in pairwise(found["steps"]))
    assert result.closed_form is not None
    assert result.closed_form.steps == 6
