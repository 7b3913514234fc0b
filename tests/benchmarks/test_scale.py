"""The benchmark of hundreds of GPUs prints what it found, and why where it found nothing."""

from __future__ import annotations

from typer.testing import CliRunner

from benchmarks.__main__ import app


def test_a_row_has_the_makespan_the_gap_the_seconds_and_the_memory():
    """A ring of 4 sends both ways: 250 KB and 125 KB past a GPU, 7.5 µs and a hop of 0.7."""
    asked = ["scale", "--cluster", "ring:gpus=4", "--collective", "all-gather", "--sizes", "1MB"]
    done = CliRunner().invoke(app, [*asked, "--limit", "10"])
    row = done.stdout.splitlines()[0].split()

    assert done.exit_code == 0, done.output
    assert row[:4] == ["ring:gpus=4", "all-gather", "1MB", "8.2"]
    assert float(row[6]) < 1
    assert 0.05 < float(row[-1]) < 4
    assert "0 not within 60 s and 4 GB; as asked: yes" in done.stdout


def test_what_cannot_be_asked_is_told_in_its_row():
    asked = ["scale", "--cluster", "ring:gpus=4", "--collective", "all-gather", "--sizes", "0B"]
    done = CliRunner().invoke(app, asked)

    assert done.exit_code == 0, done.output
    assert "1 not within 60 s and 4 GB; as asked: no" in done.stdout
