"""The line of those who wait is fair, and knows its end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccl.errors import ProblemError
from ccl.text import ordinal
from designer.jobs import Limits, Line, cores


def test_turns_go_round_among_those_who_ask():
    """Ann asks for four first; Bob and Cem for one each pass between as soon as one has ended."""
    line = Line("solve", most=1, waiting=40)
    for key in ("ann1", "ann2", "ann3", "ann4", "bob1", "cem1"):
        line.join(key, key[:3])
    begun = []
    while turn := line.called():
        begun += turn
        line.leave(turn[0])

    assert begun == ["ann1", "bob1", "cem1", "ann2", "ann3", "ann4"]


def test_who_runs_several_already_waits_behind_who_runs_none():
    line = Line("solve", most=2, waiting=40)
    for key in ("ann1", "ann2", "ann3", "bob1"):
        line.join(key, key[:3])
    assert line.called() == ["ann1", "bob1"]
    line.leave("bob1")
    line.join("bob2", "bob")

    assert [line.place(key) for key in ("ann1", "bob2", "ann2", "ann3")] == [0, 1, 2, 3]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=60),
    st.integers(1, 3),
    st.integers(1, 9),
)
def test_no_more_run_or_wait_than_may_and_each_place_is_one_persons(steps, most, waiting):
    """Whatever comes and goes: counted beside the line by hand."""
    line = Line("solve", most=most, waiting=waiting)
    running: list[str] = []
    joined: list[str] = []
    for number, (owner, leaves) in enumerate(steps):
        if leaves and joined:
            gone = joined.pop(number % len(joined))
            line.leave(gone)
            running = [key for key in running if key != gone]
        else:
            try:
                line.join(f"{owner}{number}", owner)
            except ProblemError:
                continue
            joined.append(f"{owner}{number}")
        running += line.called()
        places = sorted(line.place(key) for key in joined if key not in running)
        assert len(running) == min(most, len(joined))
        assert places == list(range(1, len(places) + 1))
        assert len(places) <= waiting


def test_by_default_each_core_has_a_solve_up_to_four():
    assert Limits().solves == min(cores(), 4)
    assert Limits(at_once=1).comparisons == 1
    assert Limits(at_once=8).comparisons == 4


@pytest.mark.parametrize(
    ("number", "words"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (22, "22nd"), (113, "113th")],
)
def test_places_are_said_as_people_say_them(number, words):
    assert ordinal(number) == words
