"""``topoloom solve --chunks 1,2,4``: the front is shown, the best is kept."""

from __future__ import annotations

import json
import re

import pytest

from ccl.errors import LimitReached
from ccl.serialization.documents import document, read_document, write_document
from designer.cli import main, request, solve
from tests.ccl.documents import solved

LINE = ("line:gpus=3,bandwidth=50,alpha=0.5", "--collective", "broadcast", "--size", "1MB")


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run the command in an empty folder; return exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main(["solve", *arguments])
        out, err = capsys.readouterr()
        return left.value.code, out, err

    return run


@pytest.mark.slow
def test_the_best_of_several_numbers_is_told_and_kept(run, tmp_path):
    """1 MB over two links of 50 GB/s in k chunks: 20 + 20/k µs and two latencies of 0.5 µs.

    Chunks that may be split without end are bound by 21 µs.
    """
    code, out, err = run(
        *LINE, "--formulation", "list", "--chunks", "4,1,2", "--json", "--out", "kept.json"
    )
    told = json.loads(out)
    kept = read_document(tmp_path / "kept.json").result

    assert (code, err) == (0, "the result is in kept.json\n")
    assert [row["chunks"] for row in told["front"]] == [1, 2, 4]
    assert [row["makespan_us"] for row in told["front"]] == pytest.approx([41, 31, 26])
    assert [row["gap"] for row in told["front"]] == pytest.approx([20 / 21, 10 / 21, 5 / 21])
    assert told["makespan_us"] == pytest.approx(26)
    assert len(kept.problem.collective.chunks) == 4


def test_people_see_the_front_and_then_the_best(run):
    code, out, _ = run(*LINE, "--formulation", "list", "--chunks", "1,2")
    rows = [line.split() for line in out.splitlines()]

    assert code == 0
    assert rows[0][:2] == ["chunks", "makespan"]
    assert [row[:3] for row in rows[1:3]] == [["1", "41", "µs"], ["2", "31", "µs"]]
    assert "tried 1, 2; no number of chunks is below 21 µs" in out
    assert re.search(r"^makespan +31 µs *$", out, re.MULTILINE)


def test_one_number_has_no_front(run):
    code, out, _ = run(*LINE, "--formulation", "list", "--chunks", "2", "--json")

    assert code == 0
    assert "front" not in json.loads(out)
    assert json.loads(out)["makespan_us"] == pytest.approx(31)


def test_no_more_are_tried_than_can_be_better_and_the_front_says_so(run):
    """One link takes 1 MB in 20.5 µs, which meets the bound for any number of chunks."""
    code, out, _ = run(
        "line:gpus=2,bandwidth=50,alpha=0.5", *LINE[1:], "--chunks", "1,2,4", "--json"
    )

    assert code == 0
    assert [row["chunks"] for row in json.loads(out)["front"]] == [1]


@pytest.mark.parametrize("given", ["many", "1,", "1;2", "1.5"])
def test_what_is_no_list_of_whole_numbers_is_said(run, given):
    code, out, err = run(*LINE, "--chunks", given)

    assert (code, out) == (2, "")
    assert f"--chunks is '{given}'; give whole numbers joined by commas, such as 1,2,4" in err


def test_a_number_below_one_is_refused_before_anything_is_solved(run, monkeypatch):
    monkeypatch.setattr(solve.formulations, "start", None)
    code, out, err = run(*LINE, "--chunks", "1,0")

    assert (code, out) == (2, "")
    assert err.count("\n") == 1


def test_a_document_with_its_own_collective_takes_no_numbers(run, tmp_path):
    write_document(tmp_path / "p.json", document(solved().problem))
    code, _, err = run("p.json", "--chunks", "1,2")

    assert code == 2
    assert "leave out --chunks" in err


def test_an_interrupt_ends_the_numbers_and_keeps_what_is_there(run, monkeypatch):
    """The second of three is interrupted: the third is not begun, the better of two is told."""
    asked: list[int] = []
    real = solve.followed

    def followed(job):
        asked.append(len(asked))
        result, _ = real(job)
        return result, len(asked) == 2

    monkeypatch.setattr(solve, "followed", followed)
    code, out, err = run(*LINE, "--formulation", "list", "--chunks", "1,2,4", "--json")

    assert code == request.INTERRUPTED
    assert len(asked) == 2
    assert json.loads(out)["makespan_us"] == pytest.approx(31)
    assert "interrupted; this is the best schedule found so far" in err


def test_an_interrupt_before_any_plan_is_not_taken_for_a_number_without_one(run, monkeypatch):
    asked: list[int] = []

    def followed(_job):
        asked.append(1)
        if len(asked) == 1:
            raise LimitReached("found no schedule within 0 s")
        raise solve.Interrupted("interrupted before the first schedule was found; nothing is kept")

    monkeypatch.setattr(solve.formulations, "start", lambda *_, **__: None)
    monkeypatch.setattr(solve, "followed", followed)
    code, out, _ = run(*LINE, "--formulation", "list", "--chunks", "1,2,4", "--json")

    assert len(asked) == 2
    assert code != 0
    assert out == ""
