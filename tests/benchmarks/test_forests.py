"""The drawing of theorem 4: what is committed is what the schedules say."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from benchmarks.forests import Line, drawing, lines
from formulations.engines.fluid_lp.stepwise import Conversion

DRAWN = Path(__file__).parents[2] / "docs" / "images" / "theorem4.svg"


def rows(*durations, rate=10.0):
    return tuple(
        Conversion(2**place, 2 + 2**place, 3, rate, duration, duration)
        for place, duration in enumerate(durations)
    )


def test_a_line_falls_only_if_every_schedule_is_shorter():
    assert Line("a", "#000", 10.0, rows(30, 20, 15)).falls
    assert not Line("a", "#000", 10.0, rows(30, 20, 20)).falls
    assert not Line("a", "#000", 10.0, rows(30, 15, 10)).falls


def test_a_drawing_is_well_formed_and_has_a_dot_for_each_schedule():
    line = Line("a < b", "#000", 10.0, rows(30, 20, 15))

    tree = ET.fromstring(drawing((line,)))

    dots = [each for each in tree.iter() if each.tag.endswith("circle")]
    assert len(dots) == 1 + 3
    assert "a < b, T = 3" in [each.text for each in tree.iter()]


@pytest.mark.slow
def test_the_committed_drawing_is_the_one_that_is_made():
    found = tuple(lines())

    assert all(line.falls and line.proved for line in found)
    assert [line.rows[0].depth for line in found] == [2, 3, 7]
    assert [row.chunks for row in found[0].rows] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert drawing(found) == DRAWN.read_text("utf-8")
