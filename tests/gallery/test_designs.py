"""Counts of published designs, and LIBRA's cost of its networks."""

import pytest

from ccl.errors import ProblemError
from gallery import open_cluster
from gallery.costs import bill_of, read_parts
from gallery.costs.designs import (
    Dimension,
    clos,
    compare_rail_only,
    libra_dollars,
    rail_only,
    saving,
    superpod,
)

SUPERPODS = {
    2: ((16, 8), (512, 512)),
    4: ((32, 16), (1024, 1024)),
    8: ((64, 32), (2048, 2048)),
    16: ((128, 128, 64), (4096, 4096, 4096)),
    32: ((256, 256, 128), (8192, 8192, 8192)),
    64: ((512, 512, 256), (16384, 16384, 16384)),
}
"""Units -> switches and cables of each tier; NVIDIA, DGX SuperPOD reference architecture (B200),
table of larger ones: leaf, spine and core switches, node-leaf, leaf-spine, spine-core cables."""


def test_superpods_have_the_switches_and_cables_that_nvidia_counts():
    """6 of 6 rows, by the rule of its units and by that of Clos networks of 64 ports."""
    for units, (switches, links) in SUPERPODS.items():
        for network in (superpod(units), clos(units * 256, 64)):
            assert (network.switches, network.links) == (switches, links)


def test_a_drawn_superpod_has_the_switches_and_cables_that_nvidia_counts():
    """Four units: 32 leaves, 16 spines, 1,024 cables below the leaves and as many above."""
    made = bill_of(open_cluster("rail-optimised:units=4,unit_hosts=32,gpus=8,spines=16,trunk=2"))

    assert {row.part: row.count for row in made.rows}["switch-64"] == 48
    assert len(made.cables) == 2048


def test_rails_alone_save_what_is_published():
    """32,768 GPUs in domains of 256, arXiv 2307.12169: 38 to 77 % of cost and 37 to 75 % of power.

    64 ports: 2,560 switches become 1,536 and 196,608 transceivers 131,072, so 40 and 33.3 % less;
    128 ports: 1,280 become 256 and 196,608 become 65,536, so 80 and 66.7 % less. One share of the
    switches, 0.74 of cost and 0.58 of power, brings all four ends within a point.
    """
    ends = {}
    for radix, counts in ((64, (2560, 1536, 196608, 131072)), (128, (1280, 256, 196608, 65536))):
        before, after = clos(32768, radix), rail_only(32768, 256, radix)
        found = [sum(each.switches) for each in (before, after)]
        assert (*found, before.transceivers, after.transceivers) == counts
        ends[radix] = [100 * saving(before, after, share) for share in (0.74, 0.58)]

    assert ends[64] == pytest.approx([38, 37], abs=1)
    assert ends[128] == pytest.approx([77, 75], abs=1)


def test_rails_alone_save_nothing_at_1024_gpus_with_64_ports():
    """A rail of 128 ports takes 4 leaves and 2 spines: 8 rails 48 switches, as 1,024 ports do."""
    assert rail_only(1024, 8, 64) == clos(128, 64).times(8)
    sentence = compare_rail_only(1024, 8, 64)

    assert "48 switches against 48" in sentence
    assert "nothing is saved, as a rail has 128 ports and a switch 64" in sentence
    assert "8 switches against 24" in compare_rail_only(1024, 8, 128)
    assert "less, if switches are 74 % of the cost" in compare_rail_only(1024, 8, 128)


def test_drawn_rails_without_large_switches_are_networks_of_their_own():
    """As counted above: 48 switches and 2,048 cables, and the bill says why."""
    made = bill_of(
        open_cluster("dgx-h100:hosts=128,fabric=rail-only"),
        read_parts({"parts": {"switch-128": None}}),
    )

    assert len(made.switches) == 48
    assert len(made.cables) == 2048
    assert any("rail0 has 128 ports" in each and "6 switches" in each for each in made.assumed)


def libra(*bandwidths):
    """Ring of 4, full mesh of 8, ring of 4, switch of 32, at the prices of its released model."""
    prices = (
        ("ring", 4, {"link": 2.0}),
        ("mesh", 8, {"link": 4.0}),
        ("ring", 4, {"link": 4.0}),
        ("switch", 32, {"link": 7.8, "switch": 18.0, "card": 31.6}),
    )
    return libra_dollars(
        [
            Dimension(block=block, size=size, bandwidth=bandwidth, **price)
            for (block, size, price), bandwidth in zip(prices, bandwidths, strict=True)
        ]
    )


def test_libra_prices_its_network_of_4096_npus_to_the_cent():
    """At 4 x 125 GB/s: 1,024 rings x 8 links x 62.5 GB/s x $2 = $1,024,000; 512 meshes x 56 links x
    125 / 7 GB/s x $4 = $2,048,000; 1,024 x 8 x 62.5 x $4 = $2,048,000; 4,096 links x 125 GB/s x
    $57.4 = $29,388,800. At 250, 125, 75, 50 GB/s twice, once, 0.6 and 0.4 times as much.
    """  # fmt: skip
    assert libra(125, 125, 125, 125) == pytest.approx(
        [1_024_000, 2_048_000, 2_048_000, 29_388_800], abs=0.005
    )
    assert sum(libra(125, 125, 125, 125)) == pytest.approx(34_508_800.00, abs=0.005)
    assert sum(libra(250, 125, 75, 50)) == pytest.approx(17_080_320.00, abs=0.005)


def test_what_no_rule_counts_is_refused():
    with pytest.raises(ProblemError, match="more than three tiers of switches of 4 ports"):
        clos(17, 4)
    with pytest.raises(ProblemError, match="no whole number of domains of 8"):
        rail_only(12, 8, 64)
