"""Every cell of the thesis' tables 6.3 to 6.8 that can be right is reproduced, the others refuted.

The cluster and the costs are inferred from the cells of one and two nodes (`gallery.papers`,
`formulations.engines.fluid_lp.plain`); all others are out of sample.
"""

import pytest

from benchmarks.thesis import CELLS, Cell, matches, optimum
from ccl.collective import all_gather
from ccl.problem import Problem
from formulations.engines.fluid_lp.plain import link_costs, solve_plain
from gallery import open_cluster

PRINTED = [cell for cell in CELLS if cell.latency]


def named(cell: Cell) -> str:
    return f"{cell.table}-{8 * cell.hosts}"


def found(cell: Cell) -> tuple[float, float]:
    """Return s/GB and GB; where a memory copies no plan is better, which is what a slip needs."""
    best = optimum(open_cluster(cell.cluster), cell.kind, weighted=True)
    assert best.cost is not None
    return best.makespan * 1e-6, best.cost * 1e-9


@pytest.mark.parametrize("cell", [each for each in PRINTED if not each.slip], ids=named)
def test_latency_and_objective_round_to_what_is_printed(cell):
    """Latency to three digits, objective to four."""
    assert matches(cell, *found(cell)) == (True, True)


def test_one_node_without_nvlink_is_printed_a_factor_of_ten_too_fast():
    """Seven shards enter a GPU through 32 GB/s: 0.219 s/GB at least, and 0.0219 is printed.

    The objective of the same row is right, and so are its other rows: 15/32, 31/32, 63/32.
    """
    (cell,) = (each for each in PRINTED if each.table == "6.4" and each.hosts == 1)
    latency, objective = found(cell)

    assert matches(cell, latency, objective) == (False, True)
    assert latency == pytest.approx(7 / 32)
    assert f"{latency:.3g}" == "0.219"
    assert float(cell.latency) * 10 == pytest.approx(0.219)


@pytest.mark.parametrize(
    ("hosts", "printed", "least"), [(4, 2092, 2126.08), (8, 8600, 8696.32), (16, 33640, 35179.054)]
)
def test_three_objectives_with_all_links_are_below_the_optimum(hosts, printed, least):
    """Their latency is right, and at that latency no rate of this cluster costs so little.

    One and two nodes agree to all four digits, and the all-to-alls of the same cluster to 32 nodes,
    so that neither bandwidths nor costs can be far from those of the thesis.
    """
    (cell,) = (each for each in PRINTED if each.table == "6.5" and each.hosts == hosts)
    latency, objective = found(cell)

    assert cell.objective == str(printed)
    assert matches(cell, latency, objective) == (True, False)
    assert objective == pytest.approx(least, rel=1e-6)
    assert objective > printed * 1.01


def test_forestcoll_at_two_nodes_cannot_have_both_figures_of_table_6_9():
    """It prints 0.0462 s/GB with 512 GB. Seven remote shards in eight then cross a port:

    every GPU takes 15 shards in through 325 GB/s without a pause, so 25/325 of them, 15/13, come
    over its port, at 4 GB for each instead of 2: 16 (2 x 15 + 2 x 15/13) = 516.92 and not 512.
    """
    (cell,) = (each for each in PRINTED if each.table == "6.3" and each.hosts == 2)
    _, objective = found(cell)

    assert objective == pytest.approx(16 * (2 * 15 + 2 * 15 / 13), rel=1e-6)
    assert objective > 516


def test_the_relaxation_3_10_is_far_below_the_objective():
    """It lets NVSwitches copy: an upload for 8 GPUs counts once, so 64 GB and not 112."""
    topology = open_cluster("thesis-dgx-a100:hosts=1")
    asked = Problem(topology, all_gather(8, 8e9))
    costs = link_costs(topology, "ports")

    assert solve_plain(asked, copies="free", costs=costs).cost == pytest.approx(64e9, rel=1e-6)
    assert solve_plain(asked, copies="relaxed", costs=costs).cost == pytest.approx(112e9, rel=1e-6)
