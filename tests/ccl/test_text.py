"""Quantities are written by Python as the canvas writes them: one table for both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ccl import text

GOLDEN = json.loads(
    (Path(__file__).resolve().parents[2] / "widgets/js/test/text.json").read_text("utf-8")
)

WRITTEN = {
    "duration": text.duration,
    "bytes": text.size,
    "bandwidth": lambda value: f"{text.bandwidth(value)} ({text.gigabits(value)})",
    "digits": text.digits,
    "share": text.share,
    "short": lambda values: text.number(*values),
    "moment": lambda values: text.moment(*values),
}


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [(name, *case) for name, cases in GOLDEN.items() for case in cases],
    ids=str,
)
def test_a_quantity_is_written_as_the_canvas_writes_it(name, given, words):
    assert WRITTEN[name](given) == words
