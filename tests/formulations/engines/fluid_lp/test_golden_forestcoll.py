"""ForestColl's rates, as its paper, its program and the thesis print them, as exact fractions."""

from dataclasses import replace
from fractions import Fraction

import pytest

from benchmarks.forests import PUBLISHED, algbw_of
from benchmarks.thesis import agrees
from ccl.collective import all_gather
from ccl.problem import Problem
from ccl.topology import Topology, device
from formulations.engines.forestcoll.search import forest_rate
from gallery import open_cluster
from tests.formulations.engines.fluid_lp.golden import rows

EXACT = {
    "dgx-a100 1 box (300 GB/s NVSwitch)": Fraction(8 * 300, 7),
    "dgx-a100 2 boxes (300 + 25 GB/s per GPU)": Fraction(16 * 325, 15),
    "dgx-a100 4 boxes": Fraction(32 * 200, 24),
    "mi250 1 box": Fraction(16 * 300, 14),
    "mi250 2 boxes (16 GB/s per GPU to the IB switch)": Fraction(32 * 332, 30),
    "mi250 2 boxes fixed k=2": Fraction(1024, 3),
}
"""What enters a GPU, a box with its 8 ports, or the two dies of a package, over its shards."""

USED = {"nvlink-only": "nvlink-only", "no-nvlink": "no-nvlink", "all-links": "all"}
SLIPS = {("6.10", "1"): 10.0, ("6.10", "32"): 7.97 / 7.87}
"""Table and nodes -> by what the latency that is printed has to be multiplied."""


def test_every_golden_algbw_is_the_exact_fraction():
    golden = rows("forestcoll_optimal_allgather_algbw")

    assert [row["algbw_GBps"] for row in golden] == [each.algbw for each in PUBLISHED]
    for row, published in zip(golden, PUBLISHED, strict=True):
        found = algbw_of(published)
        assert found == EXACT[row["topology"]]
        assert f"{float(found):.3f}" == row["algbw_GBps"]


@pytest.mark.parametrize(
    "row",
    [row for row in rows("thesis_tables_6_3_to_6_20_dgx_a100") if row["method"] == "forestcoll"],
    ids=lambda row: f"{row['table']}-{row['gpus']}",
)
def test_the_thesis_prints_the_same_latencies_for_forestcoll(row):
    """Tables 6.9 to 6.11, memories taken for switches, but for two slips.

    In 6.10, one node prints 0.0219 for 0.219, as 6.4 does, and 32 nodes 7.87: 255 shards through
    32 GB/s take 7.97.
    """
    topology = open_cluster(f"thesis-dgx-a100:hosts={row['nodes']},used={USED[row['links']]}")
    relayed = without_memories(topology)
    ranks = len(relayed.ranks)
    latency = forest_rate(Problem(relayed, all_gather(ranks, ranks * 1e9))).makespan / 10**6
    slip = SLIPS.get((row["table"], row["nodes"]), 1.0)

    printed = row["latency_s_per_GB"]
    assert agrees(float(latency), printed, digits=3) == (slip == 1.0)
    assert agrees(float(latency) / slip, printed, digits=3)


def without_memories(topology: Topology) -> Topology:
    """Return the cluster as ForestColl takes it: what is no GPU is a switch."""
    return replace(
        topology,
        devices=tuple(
            device("switch", each.name, host=each.host) if each.kind == "memory" else each
            for each in topology.devices
        ),
        declared=(),
    )
