"""Prices of links in a notebook: marks, words, bars."""

from __future__ import annotations

import pytest

from ccl.bound import Prices
from ccl.topology import Link, SharedLimit, Topology, device
from widgets.notebook.marked_drawings import PriceView
from widgets.print.diagrams import price_svg
from widgets.view_model.classes import MOST_GROUPS, price_marks, price_words


def line(values: list[float], *, limit: float = 0.0) -> Prices:
    """GPUs in a line with links of 10 GB/s and these prices, in µs per GB/s."""
    devices = tuple(device("gpu", f"g{i}") for i in range(len(values) + 1))
    links = tuple(Link(f"g{i}", f"g{i + 1}", bandwidth=10.0, alpha=0.0) for i in range(len(values)))
    limits = (SharedLimit("nic", (links[0].ends,), 5.0),)
    topology = Topology("line", devices, links, limits)
    own = {each.ends: value for each, value in zip(links, values, strict=True)}
    return Prices(topology, 10 * sum(values) + 5 * limit or 1.0, own, {"nic": limit})


def test_the_dearest_is_hottest_and_equal_ones_are_one_group():
    marks = price_marks(line([1.0, 4.0, 0.0, 4.0]))
    assert [each["label"] for each in marks["groups"]] == ["4 on 2 links", "1 on g0→g1"]
    assert [each["tone"]["heat"] for each in marks["groups"]] == [1.0, pytest.approx(0.4375)]
    assert marks["title"] == "µs saved per GB/s, none on 1 link"


def test_more_prices_than_a_legend_holds_share_the_last():
    groups = price_marks(line([float(i + 1) for i in range(12)]))["groups"]
    assert len(groups) == MOST_GROUPS
    assert groups[-1]["label"] == "6 or less on 6 links"
    assert sum(len(each["links"]) for each in groups) == 12


def test_limits_and_nothing_are_said():
    assert "Limit nic: 2 µs saved per GB/s." in price_words(line([0.0, 0.0], limit=2.0))
    assert "No link alone holds it down." in price_words(line([0.0, 0.0]))
    assert price_svg(line([0.0])) is None


def test_a_notebook_has_a_view_with_bars_and_words_beside_it():
    found = line([1.0, 4.0])
    view = PriceView(found)
    assert view.canvas.marks == price_marks(found)
    data, _ = found._repr_mimebundle_() or pytest.fail("nobody draws")
    assert "4 µs saved per GB/s" in data["text/plain"]
    assert "g1→g2" in data["image/svg+xml"]
    assert "application/vnd.jupyter.widget-view+json" in data
