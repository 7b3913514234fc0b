"""The orbit linear program: the thesis' tables, sizes, collectives of every kind."""

import pytest

from formulations.fluid.costs import link_costs
from formulations.fluid.orbit_loads import Uniform
from formulations.fluid.orbit_lp import solve_orbits
from gallery import open_cluster

ALL_GATHER = {
    ("nvlink-only", 1): (0.0233, 112), ("nvlink-only", 2): (0.0462, 516.9),
    ("nvlink-only", 4): (0.12, 2176), ("nvlink-only", 8): (0.28, 8960),
    ("nvlink-only", 16): (0.60, 36350), ("nvlink-only", 32): (1.24, 146400),
    ("no-nvlink", 2): (0.469, 424), ("no-nvlink", 4): (0.969, 1808),
    ("no-nvlink", 8): (1.97, 7456), ("no-nvlink", 16): (3.97, 30270),
    ("all", 1): (0.0211, 109.7), ("all", 2): (0.0452, 504.9),
}  # fmt: skip
"""Tables 6.3, 6.4 and 6.5 of the thesis: s/GB and objective; the cells known to be wrong are not
here (6.4 of one node prints 0.0219 for 0.219; three objectives of 6.5 are below the optimum)."""

ALL_TO_ALL = {
    ("nvlink-only", 1): (0.0233, 112), ("nvlink-only", 2): (0.32, 960),
    ("nvlink-only", 4): (0.96, 4864), ("nvlink-only", 8): (2.24, 21500),
    ("nvlink-only", 16): (4.80, 90110), ("nvlink-only", 32): (9.92, 368600),
    ("no-nvlink", 1): (0.375, 112), ("no-nvlink", 2): (0.75, 736), ("no-nvlink", 4): (1.5, 3520),
    ("no-nvlink", 8): (3.0, 15230), ("no-nvlink", 16): (6.0, 63230),
    ("no-nvlink", 32): (12.0, 257500),
    ("all", 1): (0.0211, 112), ("all", 2): (0.32, 764.2), ("all", 4): (0.96, 3689),
    ("all", 8): (2.24, 16020), ("all", 16): (4.8, 66610), ("all", 32): (9.92, 271500),
}  # fmt: skip
"""Tables 6.6, 6.7 and 6.8; the first cell of 6.8 is printed as 0.021."""


def solved(used: str, hosts: int, *, kind: str):
    topology = open_cluster(f"thesis-dgx-a100:hosts={hosts},used={used}")
    size = 1e9 * len(topology.ranks)
    costs = link_costs(topology, "ports")
    return solve_orbits(Uniform(topology, kind, size), costs=costs)


def printed(value: float, *, digits: int) -> float:
    """Return a number as the thesis prints it."""
    return float(f"{value:.{digits - 1}e}")


@pytest.mark.parametrize(("used", "hosts"), ALL_GATHER)
def test_all_gather_is_that_of_the_thesis(used: str, hosts: int):
    """Latencies to three digits and objectives to four, as printed."""
    found = solved(used, hosts, kind="all-gather")
    latency, cost = ALL_GATHER[used, hosts]

    assert printed(found.makespan * 1e-6, digits=3) == pytest.approx(latency, rel=1e-9)
    assert printed(found.cost * 1e-9, digits=4) == pytest.approx(cost, rel=1e-9)
    assert found.exact


@pytest.mark.parametrize(("used", "hosts"), ALL_TO_ALL)
def test_all_to_all_is_that_of_the_thesis(used: str, hosts: int):
    found = solved(used, hosts, kind="all-to-all")
    latency, cost = ALL_TO_ALL[used, hosts]

    assert printed(found.makespan * 1e-6, digits=3) == pytest.approx(latency, rel=1e-9)
    assert printed(found.cost * 1e-9, digits=4) == pytest.approx(cost, rel=1e-9)


def test_all_links_cost_more_than_the_thesis_says():
    """Table 6.5 prints 2092 at 4 nodes; no flow at that R costs less than 2126.08.

    Relaxation (3.13), in which switches only keep the sums of what comes in and goes out, costs
    2114.6 at least (FLUID.md, 2.6), so 2092 is no rounding of this model's optimum.
    """
    assert solved("all", 4, kind="all-gather").cost * 1e-9 == pytest.approx(2126.08, rel=1e-6)


@pytest.mark.parametrize("hosts", [4, 16, 64])
def test_rails_have_as_many_columns_at_every_size(hosts: int):
    """87 for an all-gather and 15 for an all-to-all.

    By hand for the latter: of an origin o in host h on rail r there are the links between a GPU
    and its NVSwitch, up and down, for o, others of h, GPUs on r and others: 8 orbits; as many
    between GPUs and rails; less the two that enter o; and R.
    """
    topology = open_cluster(f"dgx-a100:hosts={hosts},fabric=rail-only")

    assert solve_orbits(Uniform(topology, "all-to-all", 1e9)).columns == 8 + 8 - 2 + 1
    assert solve_orbits(Uniform(topology, "all-gather", 1e9)).columns == 87
