"""Proposed networks in a notebook: what is chosen is drawn, axes rank anew, words stay."""

from __future__ import annotations

from dataclasses import replace

import pytest

from formulations.proposals import Front, Request
from widgets import ProposeView
from widgets.notebook.proposals import found


@pytest.fixture(scope="module")
def front() -> Front:
    """A short search of 16 GPUs with 4 ports each."""
    return found(Request(gpus=16, ports=4, seconds=3, cores=1))


def test_the_best_is_drawn_first_and_whatever_is_chosen_is_a_topology(front):
    view = ProposeView(front)
    assert view.chosen == view.canvas.topology == front.candidates[0].topology

    view.choice.value = len(front.candidates) - 1
    assert view.chosen == view.canvas.topology == front.candidates[-1].topology
    big = [size for trace in view.plot.data for size in trace.marker.size or () if size == 15]
    assert len(big) == 1


def test_a_click_on_a_dot_chooses_its_network(front):
    view = ProposeView(front)
    trace = next(each for each in view.plot.data if each.customdata and "1" in each.customdata)
    view._clicked(trace, type("Points", (), {"point_inds": [trace.customdata.index("1")]}), None)

    assert view.chosen == front.candidates[1].topology


def test_two_respects_mark_those_that_none_beats_in_both(front):
    view = ProposeView(front, axes=("cables", "all-to-all"))
    best = {each.name for each in front.pareto("cables", "all-to-all")}
    starred = {row[1] for _, row in view._rows() if row[0].endswith("*")}
    assert starred == best
    assert view.plot.layout.xaxis.title.text == "Cables"

    view.across.value = "dollars"
    assert view.plot.layout.xaxis.title.text == "Cost of the network"
    assert view._heads()[2:4] == ["All-to-all per GB", "Cost of the network"]


def test_another_front_keeps_the_network_that_is_drawn(front):
    """The second of three is the first of the two that are left."""
    view = ProposeView(front)
    view.choice.value = 1
    fewer = Front(request=front.request, candidates=front.candidates[1:], stage="", seconds=1.0)
    view.hear(fewer)

    assert view.choice.value == 0
    assert view.chosen == front.candidates[1].topology


def test_what_has_no_price_has_no_axis_of_dollars_and_nothing_found_draws_nothing(front):
    bare = tuple(replace(each, bill=None) for each in front.candidates)
    view = ProposeView(replace(front, candidates=bare))
    assert view.axes == ("latency", "mix")
    assert "dollars" not in {value for _, value in view.across.options}

    assert ProposeView(replace(front, candidates=())).chosen is None


def test_a_saved_notebook_keeps_the_table_and_the_network(front):
    data, _ = ProposeView(front)._repr_mimebundle_()
    best = front.candidates[0]

    assert front.why(best) in data["text/plain"]
    assert all(each.name in data["text/plain"] for each in front.pareto("dollars", "mix"))
    assert data["image/svg+xml"].count("g15") >= 1
    assert "application/vnd.jupyter.widget-view+json" in data
