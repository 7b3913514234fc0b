"""The benchmark of schedules asks for what there is, and says truly what was reached."""

from __future__ import annotations

import re

import pytest
from typer.testing import CliRunner

from benchmarks import measuring, schedules
from benchmarks.__main__ import app
from benchmarks.measuring import Goal, Measured, Request, Settings, measured

RING = Request(cluster="ring:gpus=3,bandwidth=50,alpha=0", size="3MB")
"""Each GPU takes in 1 MB over each of its two links of 50 GB/s: 20 µs."""


@pytest.mark.parametrize("part", schedules.PARTS)
def test_every_row_of_a_part_asks_for_a_problem_that_exists(part, monkeypatch):
    """Each row is made into its problem; nothing is solved."""
    asked = []

    def opened(row, _settings):
        asked.append(row)
        assert row.problem.collective.kind == row.kind
        return Measured(row, None, 0.0, "not solved")

    monkeypatch.setattr(measuring, "measured", opened)
    monkeypatch.setattr(schedules, "measured", opened)
    tables = list(schedules.PARTS[part](Settings()))

    assert tables
    assert len({str(row) for row in asked}) >= 8


def test_a_row_is_solved_as_often_as_asked_and_timed():
    done = measured(RING, Settings(repeat=3))

    assert done.makespan == pytest.approx(20.0)
    assert done.seconds > 0
    assert done.reached is None


@pytest.mark.parametrize(
    ("goal", "reached"),
    [
        (Goal(makespan=20.0, gap=1e-6, seconds=60.0), True),
        (Goal(makespan=19.9), False),
        (Goal(seconds=0.0), False),
    ],
)
def test_what_was_asked_for_is_compared(goal, reached):
    row = Request(cluster=RING.cluster, size=RING.size, goal=goal)

    assert measured(row, Settings(repeat=1)).reached is reached


def test_a_gap_above_the_goal_is_not_reached():
    """The ring that goes one way leaves every second link idle, so it is far from the bound."""
    row = Request(cluster=RING.cluster, size=RING.size, formulation="ring", goal=Goal(gap=0.01))

    assert measured(row, Settings(repeat=1)).reached is False


def test_a_row_that_cannot_be_solved_says_why_and_does_not_end_the_part():
    row = Request(cluster=RING.cluster, size="3MB", formulation="te-ccl-lp", goal=Goal())
    done = measured(row, Settings(repeat=1))

    assert done.result is None
    assert done.reached is False
    assert "te-ccl-lp cannot take all-gather" in done.failure
    assert done.failure in measuring.figures(done)


def test_only_some_rows_are_run_and_with_another_limit():
    rows = [RING, Request(cluster="torus", size="1KB", time_limit=20.0)]

    assert [row.cluster for row in Settings(only="torus").chosen(rows)] == ["torus"]
    assert [row.time_limit for row in Settings(time_limit=3.0).chosen(rows)] == [3.0, 3.0]
    assert Settings().chosen(rows) == rows


def test_an_unknown_part_is_said():
    told = CliRunner().invoke(app, ["schedules", "abc"])

    assert told.exit_code == 2
    assert re.search(r"there is no part 'abc'", told.output)
