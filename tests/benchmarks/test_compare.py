"""The table of all formulations: every cell has a makespan and a gap, or says why it has none."""

from __future__ import annotations

from typer.testing import CliRunner

from benchmarks.__main__ import app


def test_a_part_of_the_table_is_printed():
    """A ring round a star of 4 takes 6α + 3/4 mβ = 19.2 µs, the bound 2α + 3/4 mβ = 16.4 µs."""
    done = CliRunner().invoke(
        app,
        [
            "compare",
            *("--cluster", "star:gpus=4"),
            *("--collective", "all-gather"),
            *("--sizes", "1MB"),
            *("--formulations", "ring,te-ccl-lp"),
        ],
    )
    rows = [line.split() for line in done.stdout.splitlines()]

    assert done.exit_code == 0, done.output
    assert [row[1:6] for row in rows if row[1:2] == ["bound"]] == [["bound", "│", "16.4", "│", "│"]]
    assert [row[3:6] for row in rows if row[1:2] == ["ring"]] == [["*19.2", "│", "17.1"]]
    assert [row[3:4] for row in rows if row[1:2] == ["te-ccl-lp"]] == [["–"]]
    assert "te-ccl-lp has no schedule: it supports all-to-all" in done.stdout
    assert "direct is not in it: not asked for" in done.stdout


def test_a_collective_that_is_not_in_the_table_is_said():
    done = CliRunner().invoke(app, ["compare", "--collective", "scan"])

    assert done.exit_code == 2
    assert "there is no collective scan" in done.output
