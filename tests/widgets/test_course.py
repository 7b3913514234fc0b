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
from widgets.view_model.gap import axes, course, gap_of, log_ticks, readout, thinned, ticks


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


def test_the_gap_is_what_the_makespan_is_above_the_bound():
    """15 µs are half of 10 µs above them; there is no gap of one that is not known."""
    assert gap_of(15, 10) == 0.5
    assert gap_of(None, 10) is None
    assert readout(15, 10) == {"best": "15 µs", "bound": "10 µs", "gap": "50 %", "proved": False}
    assert readout(10, 10)["gap"] == "0 %"
    assert readout(10, 10)["proved"]


def test_a_bad_first_plan_does_not_flatten_what_came_after_it():
    """Best 20, bound 10: the gap of 10 fills the view up to 20 + 3 * 10, not up to 1000."""
    view = axes([(0.1, 1000, 10), (1, 20, 10)], seconds=1)

    assert 50 < view["top"] < 60
    assert view["bottom"] < 10
    assert (view["left"], view["right"]) == (0, 1)


def test_a_plan_that_meets_its_bound_at_once_is_in_the_middle_of_a_wide_enough_view():
    """Four per cent of 50 µs around it, so that the axis has whole numbers."""
    view = axes([(0.1, 50, 50)], seconds=0.1)

    assert (view["bottom"], view["top"]) == (49, 51)


def test_a_running_solve_has_an_axis_that_stands_still():
    ends = [axes([(1, 20, 10)], seconds=s, running=True)["right"] for s in (3.1, 3.6, 4.4)]

    assert ends == [5, 5, 5]


def test_a_logarithmic_axis_begins_where_something_is_known():
    view = axes([(0.1, 20, 10), (60, 15, 10)], seconds=60, log=True)

    assert 0 < view["left"] < 0.1


def test_ticks_are_round_and_within_the_axis():
    assert ticks(7.2, 14.1, 4) == [8, 10, 12, 14]
    assert log_ticks(0.08, 60) == [0.1, 1, 10]
    assert log_ticks(0.9, 6) == [1, 2, 5]
    rows = axes([(1, 2e4, 1e4)], seconds=1)["rows"]
    assert "10 ms" in [label for _, label in rows]
    assert all(label.endswith(" ms") for _, label in rows)
