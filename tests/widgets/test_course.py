"""What the gap plot is given: every change, few rows, and how it ended."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

import widgets
from ccl.collective import all_gather
from ccl.problem import Problem
from formulations import solve
from gallery import open_cluster
from widgets import GapChart, GapPlot
from widgets.view_model.scene import course, thinned


@dataclass
class News:
    seconds: float
    incumbent: float | None
    bound: float | None
    message: str = ""
    result: object = None


def test_thinning_keeps_every_change_and_the_end():
    rows = [(k / 10, 50.0 if k < 5 else 40.0, 10.0) for k in range(10)]
    assert thinned(rows) == ((0.0, 50.0, 10.0), (0.5, 40.0, 10.0), (0.9, 40.0, 10.0))


def test_thinning_never_exceeds_its_limit():
    rows = [(float(k), 1000.0 - k, 10.0) for k in range(1000)]
    kept = thinned(rows, 50)
    assert len(kept) <= 50
    assert kept[0] == rows[0]
    assert kept[-1] == rows[-1]


def test_a_pause_takes_one_row_however_long_it_is():
    """Three values, each a change, and the last piece of news: four rows of the hundred."""
    plot = GapPlot()
    for k in range(100):
        plot.hear(News(k / 10, None if k < 10 else 40.0 if k < 60 else 30.0, 10.0))

    assert plot.course["points"] == [
        [0.0, None, 10.0],
        [1.0, 40.0, 10.0],
        [6.0, 30.0, 10.0],
        [9.9, 30.0, 10.0],
    ]
    assert (plot.course["seconds"], plot.course["running"]) == (9.9, True)


def test_a_plot_that_hears_a_solve_ends_with_its_result():
    plot = GapPlot()
    problem = Problem(open_cluster("ring:gpus=4"), all_gather(4, 4e6))
    result = solve(problem, "te-ccl-milp", time_limit=20, progress=plot.hear)
    plot.end(result)

    last = plot.course["points"][-1]
    assert last == pytest.approx([result.solve_time, result.makespan, result.bound.makespan])
    assert not plot.course["running"]
    plot.clear()
    assert plot.course == course((), seconds=0.0, running=False)


def test_the_plot_reads_no_property_that_python_does_not_know():
    text = (Path(widgets.__file__).parent / "static/gap_plot.js").read_text(encoding="utf-8")
    read = set(re.findall(r'model\.get\("(\w+)"\)', text))

    assert read == {"course"}
    assert read <= set(GapPlot.class_traits(sync=True))
    assert GapChart(id="x").available_properties == ["id", "className", "style", "course"]
