"""How busy links are: the numbers of the heat map, its figure, its picture and its widget."""

from __future__ import annotations

import pytest

from ccl.collective import all_gather
from ccl.problem import Problem
from formulations import solve
from gallery import open_cluster
from widgets.charts.load import link_load, link_load_figure


@pytest.fixture(scope="module")
def result():
    """An all-gather of 8 x 1 MB on a DGX-1 with V100, round a ring."""
    return solve(Problem(open_cluster("dgx-1v"), all_gather(8, 8e6)), "ring")


def test_link_load_is_the_share_of_each_epoch_in_which_a_link_sends(result):
    step = result.plan.epoch_duration
    load = link_load(result.timeline, step)
    total = sum(sum(row) for row in load["busy"]) * load["step"]
    assert total == pytest.approx(sum(result.timeline.link_busy.values()), rel=1e-2)
    assert all(0 <= each <= 1 for row in load["busy"] for each in row)
    assert [sum(row) for row in load["busy"]] == sorted(
        (sum(row) for row in load["busy"]), reverse=True
    )


def test_each_link_has_its_share_of_the_whole_run(result):
    load = link_load(result.timeline, result.plan.epoch_duration)
    busy = result.timeline.link_busy
    shares = [busy[src, dst] / result.makespan for src, dst in load["ends"]]
    assert load["share"] == pytest.approx(shares, abs=1e-3)
    assert load["share"] == sorted(load["share"], reverse=True)
    assert set(load["alike"]) == {1}


def test_many_epochs_are_drawn_in_equal_groups(result):
    load = link_load(result.timeline, result.makespan / 500, columns=50)
    assert len(load["busy"][0]) <= 50
    assert load["step"] == pytest.approx(result.makespan / 50)


def test_figures_take_the_colours_of_the_scheme(result):
    load = link_load(result.timeline, result.plan.epoch_duration)
    light, dark = (link_load_figure(load, each) for each in ("light", "dark"))
    assert light.layout.font.color != dark.layout.font.color
