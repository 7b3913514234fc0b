"""Costs of bandwidth and of devices, and what is no such thing."""

import pytest

from ccl.errors import CclError, FormatError, ProblemError
from ccl.topology import Link, SharedLimit, Topology, device, duplex
from formulations.analyses.expansion.costs import Costs, Price, costs_of, read_costs

FILE = b"""
currency: $
links:                      # the first that fits counts
  - {medium: InfiniBand, cost: 400, step: 12.5, most: 100}
  - {between: [[a, b]], cost: 90}
  - {medium: NVLink 3, bandwidth: 300, cost: 60, step: link}
  - {limits: [bus], cost: 20}
devices: {gpu: 15000, switch: 9000}
"""


def pair():
    return Topology(
        "pair",
        (device("gpu", "a"), device("gpu", "b"), device("switch", "s")),
        (
            *duplex("a", "b", bandwidth=300, medium="NVLink 3", count=12),
            *duplex("a", "s", bandwidth=25, medium="InfiniBand HDR"),
            *duplex("b", "s", bandwidth=25, medium="InfiniBand HDR"),
        ),
        (SharedLimit("bus", (("a", "b"), ("a", "s")), 310),),
    )


def test_a_file_says_what_the_mapping_says(tmp_path):
    (tmp_path / "costs.yaml").write_bytes(FILE)
    costs = read_costs(tmp_path / "costs.yaml")

    assert costs.links == (
        Price(cost=400, medium="InfiniBand", step=12.5, most=100),
        Price(cost=90, between=(("a", "b"),)),
        Price(cost=60, medium="NVLink 3", bandwidth=300, step="link"),
        Price(cost=20, limits=("bus",)),
    )
    assert (costs.devices, costs.currency) == ({"gpu": 15000, "switch": 9000}, "$")
    assert costs == read_costs(
        {
            "currency": "$",
            "links": [
                {"medium": "InfiniBand", "cost": 400, "step": 12.5, "most": 100},
                {"between": [["a", "b"]], "cost": 90},
                {"medium": "NVLink 3", "bandwidth": 300, "cost": 60, "step": "link"},
                {"limits": ["bus"], "cost": 20},
            ],
            "devices": {"gpu": 15000, "switch": 9000},
        }
    )


def test_the_first_price_that_fits_counts():
    """A word at the beginning of the medium is enough; a part of a word is not."""
    costs, links = costs_of(FILE), pair().link
    assert costs.of_link(links("a", "s")) == 0
    assert costs.of_link(links("b", "a")) == 1
    assert costs.of_link(Link("x", "y", 300, medium="nvlink 3")) == 2
    assert costs.of_link(Link("x", "y", 299, medium="NVLink 3")) is None
    assert costs.of_link(Link("x", "y", 25, medium="InfiniBandit")) is None
    assert costs.of_limit(pair().limits[0]) == 3


def test_the_cluster_of_today_is_devices_and_links_each_paid_once():
    """2 GPUs, 1 switch, 300 GB/s between GPUs at 90 and two ports of 25 GB/s at 400."""
    assert costs_of(FILE).today(pair()) == 2 * 15000 + 9000 + 300 * 90 + 2 * 25 * 400


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"links": []}, "no price of links"),
        ({"links": [{"cost": 0}]}, "above 0"),
        ({"links": [{"cost": float("nan")}]}, "above 0"),
        ({"links": [{"cost": 1, "step": -1}]}, "step of -1 GB/s"),
        ({"links": [{"cost": 1, "step": "box"}]}, "step of 'box'"),
        ({"links": [{"cost": 1, "limits": ["bus"], "medium": "x"}]}, "a line each"),
        ({"links": [{"cost": 1, "limits": ["bus"], "step": "link"}]}, "whole links"),
        ({"links": [{"cost": 1}], "devices": {"gpus": 3}}, "kind 'gpus'"),
        ({"links": [{"cost": 1}], "devices": {"gpu": -3}}, "0 or more"),
    ],
)
def test_numbers_out_of_range_are_refused(value, said):
    with pytest.raises(ProblemError, match=said):
        read_costs(value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"links: [", "not YAML"),
        (b"links: &a [1]\ndevices: *a", "alias"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"3", "an object"),
        (b"", "an object"),
        (b"links: [{cost: 1, price: 2}]", r"links\[0\]: object contains unknown field `price`"),
        (b"links: [{cost: much}]", r"links\[0\].cost: expected a number, got a text"),
        (b"links: 2020-13-45", "not YAML"),
        (b"x" * 2_000_000, "at most"),
    ],
)
def test_what_is_no_file_of_costs_is_refused_with_the_place(content, said):
    with pytest.raises(FormatError, match=f"costs.yaml.*{said}"):
        costs_of(content, name="costs.yaml")


def test_names_that_the_cluster_does_not_have_are_refused():
    for price in (Price(cost=1, between=(("a", "c"),)), Price(cost=1, limits=("roof",))):
        with pytest.raises(ProblemError, match="which pair does not have"):
            Costs(links=(price,)).named(pair())


def test_no_file_is_one_sentence(tmp_path):
    with pytest.raises(CclError, match="cannot be read"):
        read_costs(tmp_path / "none.yaml")
