"""Fewest epochs that a grid allows: never more than a schedule takes, and often as many."""

import numpy as np
import pytest

from ccl.collective import make_collective
from ccl.errors import Infeasible
from ccl.problem import Problem
from formulations import formulation, solve
from formulations.engines.epoch_grid.arcs import hyper_edges, link_arcs
from formulations.engines.epoch_grid.epochs import EpochGrid, durations
from formulations.engines.epoch_grid.plans import demand, schedule
from formulations.engines.epoch_grid.windows import crossing
from formulations.engines.reverse_time import parts
from formulations.engines.te_ccl.greedy import greedy
from gallery import open_cluster
from tests.formulations.test_random_clusters import draw


def test_the_last_chunk_over_the_only_link_still_has_two_hops_to_go():
    """NDv2 x 2, epochs of the slowest link: 8 shards leave a host over one link, one an epoch.

    The last leaves in epoch 7 and arrives at the beginning of 8; a GPU of the other host that the
    one at the link is not joined to has it 2 epochs later, at the beginning of 10.
    """
    topology = open_cluster("ndv2:hosts=2")
    asked = Problem(topology, make_collective("all-gather", 16, 1e9))
    [tau] = durations(topology, asked.collective.chunk_size, by="slowest")
    hops = link_arcs(EpochGrid(topology, asked.collective.chunk_size, tau))

    found = crossing(hops, demand(asked))

    assert (found.epochs, found.chunks, len(found.inside)) == (10, 8, 8)
    assert not np.isin(found.device, found.inside)


def test_it_proves_what_a_solver_searches_long_for():
    """10 epochs are found, and no model of 9 is asked for."""
    asked = Problem(open_cluster("ndv2:hosts=2"), make_collective("all-gather", 16, 1e9))
    options = {"epoch": "slowest", "greedy_start": False}

    result = solve(asked, "te-ccl-milp", options=options, time_limit=60)

    assert result.epochs == 10
    assert not any(line.startswith("9 epochs") for line in result.log)


def test_a_horizon_below_it_is_answered_with_the_cut():
    asked = Problem(open_cluster("ndv2:hosts=2"), make_collective("all-gather", 16, 1e9))

    with pytest.raises(
        Infeasible,
        match=r"epochs of 5001.3 µs is too short: no plan takes fewer than 10 \(8 chunks of g0, "
        r"g1, g2, g3 and 4 more cannot all be at g\d+ sooner, .*\); allow 10 epochs or more",
    ):
        solve(asked, "te-ccl-milp", options={"epoch": "slowest", "horizon": 9})


@pytest.mark.parametrize("seed", range(400, 520))
@pytest.mark.cover(30)
def test_no_schedule_takes_fewer_epochs(seed):
    """A greedy schedule is one: over links, hyper-edges, limits, occupancies, and backwards."""
    case = draw(seed)
    if case is None or formulation("te-ccl-milp").why_not(case.problem) is not None:
        return
    for part, reverse_time in parts(case.problem):
        size = part.collective.chunk_size
        for tau in durations(part.topology, size, by="auto"):
            grid = EpochGrid(part.topology, size, tau, reverse_time=reverse_time)
            for through, make in enumerate((link_arcs, hyper_edges)):
                hops, wanted = make(grid), demand(part)
                if not wanted.wants.any():
                    continue
                try:
                    sends = greedy(hops, wanted, through=bool(through), patience=0.0)
                except Infeasible:
                    continue
                assert crossing(hops, wanted).epochs <= schedule(sends, hops, wanted).horizon
