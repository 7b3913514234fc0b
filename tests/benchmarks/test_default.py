"""The benchmarks of the default print its gaps and who is ahead of it, and remember answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app

RING = ("--cluster", "ring:gpus=4", "--sizes", "1MB")


def test_a_row_of_the_gallery_has_makespan_and_gap(tmp_path: Path):
    """A ring of 4 sends both ways: 250 KB and 125 KB past a GPU, 7.5 µs and a hop of 0.7."""
    keep = tmp_path / "answers"
    asked = ["gallery", *RING, "--collective", "all-gather", "--seconds", "5", "--keep", str(keep)]
    done = CliRunner().invoke(app, asked)
    row = json.loads(keep.read_text("utf-8"))

    assert done.exit_code == 0, done.output
    assert row["makespan"] == pytest.approx(8.2, rel=0.01)
    assert (
        f"{row['makespan']:.5g} ({100 * (row['makespan'] / row['bound'] - 1):.1f})" in done.stdout
    )
    assert "% of 1; 1 MB" in done.stdout


@pytest.fixture
def known(tmp_path: Path) -> str:
    """A file in which `auto` had 18 µs, 80 % above a bound of 10, as none on this ring has."""
    question = {"question": "ring:gpus=4 all-gather 1e+06 2", "method": "auto"}
    answer = {"makespan": 18.0, "found_by": "a file", "status": "feasible", "bound": 10.0}
    keep = tmp_path / "answers"
    keep.write_text(json.dumps(question | answer) + "\n", encoding="utf-8")
    return str(keep)


def test_what_was_answered_is_not_asked_again(known: str):
    asked = ["gallery", *RING, "--collective", "all-gather", "--seconds", "2", "--keep", known]
    done = CliRunner().invoke(app, asked)

    assert done.exit_code == 0, done.output
    assert "18 (80.0)" in done.stdout
    assert "all-gather: median gap 80.00 % of 1; 1 MB 80.00" in done.stdout


def test_a_method_ahead_of_the_default_is_told(known: str):
    """The others are asked, and find 8.2 µs."""
    asked = ["auto", *RING, "--collective", "all-gather", "--seconds", "2", "--keep", known]
    done = CliRunner().invoke(app, asked)

    assert done.exit_code == 0, done.output
    assert "1 questions, 2 s each: auto is behind by more than 0.5% in 1;" in done.stdout
    assert "as asked: no" in done.stdout
