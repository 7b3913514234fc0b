"""The command line tells plans in words and says what differs between two."""

from __future__ import annotations

import json

import pytest

from ccl.explain import explain
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.serialization.documents import document, write_document
from designer.cli import main
from tests.ccl.clusters import ring, ring_all_gather


@pytest.fixture
def run(capsys):
    """Run the command line; return exit code, output and errors."""

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main([str(each) for each in arguments])
        out, err = capsys.readouterr()
        return left.value.code, out, err

    return run


@pytest.fixture
def plans(tmp_path) -> tuple[Problem, Schedule]:
    """Write a ring of four, the same with its sends in another order, and one of three."""
    problem, schedule = ring_all_gather(ring(4))
    write_document(tmp_path / "ring.json", document(problem, plan=schedule))
    first, *rest = schedule.sends
    turned = Schedule((*rest[:3], first, *rest[3:]), 20.0, 3)
    write_document(tmp_path / "turned.json", document(problem, plan=turned))
    other, third = ring_all_gather(ring(3))
    write_document(tmp_path / "three.json", document(other, plan=third))
    return problem, schedule


def test_explain_prints_what_the_library_tells(run, plans, tmp_path):
    problem, schedule = plans
    file = tmp_path / "ring.json"

    assert run("explain", file) == (0, f"{explain(problem, schedule)}\n", "")
    asked = ("--chunk", 2, "--rank", 1)
    assert run("explain", file, *asked)[1] == f"{explain(problem, schedule, chunk=2, rank=1)}\n"
    told = f"{explain(problem, schedule, link=('g0', 'g1'))}\n"
    assert run("explain", file, "--link", "g0->g1")[1] == told


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("--chunk", 9), "there is no chunk 9; chunks go from 0 to 3"),
        (("--link", "g0"), "--link is 'g0'; write SRC->DST, such as g0->g1"),
        (("--link", "g0->g2"), "ring has no link g0->g2"),
        (("--host", "x"), "there is no host 'x' on ring; hosts are none"),
    ],
)
def test_what_is_not_there_is_one_sentence(run, plans, tmp_path, asked, words):
    assert run("explain", tmp_path / "ring.json", *asked) == (2, "", f"topoloom: {words}\n")


def test_diff_says_what_differs(run, plans, tmp_path):
    """The order of sends on different links is no difference."""
    code, out, err = run("diff", tmp_path / "ring.json", tmp_path / "turned.json")

    assert (code, err) == (0, "")
    assert out == (
        "ring.json: 60 µs, turned.json: 60 µs, the same.\nThey move the same: 12 sends.\n"
    )
    told = json.loads(run("diff", tmp_path / "ring.json", tmp_path / "turned.json", "--json")[1])
    assert told == {
        "makespans_us": [60.0, 60.0],
        "parts_at_us": None,
        "same": 12,
        "rows": [],
        "links": [],
    }


def test_diff_refuses_different_problems(run, plans, tmp_path):
    code, out, err = run("diff", tmp_path / "ring.json", tmp_path / "three.json")

    assert (code, out) == (2, "")
    assert "plans of different problems, all-gather of 4 MB on ring and all-gather of 3 MB" in err
