"""Relaxations, made stronger round by round until they are proved."""

import pytest

from formulations.engines.fluid_lp.plain import solve_plain
from formulations.engines.fluid_lp.strengthened import strengthened
from tests.formulations.engines.fluid_lp.clusters import (
    ask,
    butterfly,
    pcie_costs,
    small_pcie,
    star,
)


def test_without_any_rule_the_switch_cheats_once_and_is_duplicated():
    """A star of 3 at 1 GB/s: 2 GB come in either way. Free, each GPU uploads 1 GB: 9 GB in all;
    a switch that does not copy is sent 2: 12 GB."""
    found = strengthened(ask(star(1.0, 1.0, 1.0), "all-gather"), relaxation="free")
    assert found.proved
    assert found.solution.cost == pytest.approx(12e9, rel=1e-6)
    assert len(found.log) == 2
    assert "9e+09 weighted bytes; s copied and are duplicated" in found.log[0]
    assert found.log[1].endswith("proved")


@pytest.mark.parametrize("relaxation", ["relaxed", "counted"])
def test_the_rows_for_switches_are_enough_on_a_star(relaxation):
    found = strengthened(ask(star(1.0, 1.0, 1.0), "all-gather"), relaxation=relaxation)
    assert found.proved
    assert len(found.log) == 1


def test_where_flows_were_combined_labels_end_the_loop():
    """The butterfly: (3.13) says 1/2 s, and what its memories would send cannot be."""
    found = strengthened(ask(butterfly(), "broadcast"))
    assert found.proved
    assert found.solution.makespan == pytest.approx(2e6 / 3)
    assert "combined what cannot be" in found.log[0]


def test_counting_destinations_needs_no_second_round_there():
    found = strengthened(ask(butterfly(), "broadcast"), relaxation="counted")
    assert found.proved
    assert len(found.log) == 1


def test_pcie_and_nvlink_together_end_at_the_duplicates():
    """On "all links" the usage of (3.13) is not always possible: a second round makes it so."""
    topology = small_pcie(2)
    asked, costs = ask(topology, "all-gather"), pcie_costs(topology)
    exact = solve_plain(asked, costs=costs)
    found = strengthened(asked, costs=costs)
    assert found.proved
    assert len(found.log) == 2
    assert found.solution.makespan == pytest.approx(exact.makespan, rel=1e-6)
    assert found.solution.cost == pytest.approx(exact.cost, rel=1e-6)
