"""Instances are decided in a process of its own, which answers one after the other."""

import os
import signal

import pytest

from ccl.collective import make_collective
from ccl.errors import SolveError
from formulations.engines.cp_sat.search import Effort
from formulations.engines.list_scheduling.search import Side
from formulations.engines.list_scheduling.timed import transfers_of
from formulations.engines.sccl.client import MOST_SENDS, Decided, Solver
from formulations.engines.sccl.instance import Instance, capacities
from gallery import open_cluster

EFFORT = Effort(seconds=20)


def puzzle(cluster: str, *, chunks: int = 1) -> Instance:
    topology = open_cluster(cluster)
    collective = make_collective("all-gather", len(topology.ranks), 4e6, chunks=chunks)
    return Instance(Side(transfers_of(topology), collective).task(), capacities(topology))


def test_one_process_answers_all_requests_and_a_dead_one_is_told():
    ring = puzzle("ring:gpus=4")
    with Solver() as solver:
        found = solver.decide(ring, 2, 2, effort=EFFORT)
        first = solver._child.pid
        impossible = solver.decide(ring, 1, 1, effort=EFFORT)
        assert solver._child.pid == first

        os.kill(first, signal.SIGKILL)
        with pytest.raises(SolveError, match="the constraint solver was ended by signal 9"):
            solver.decide(ring, 2, 2, effort=EFFORT)
        again = solver.decide(ring, 2, 2, effort=EFFORT)

    assert found.decided is again.decided is Decided.FOUND
    assert impossible.decided is Decided.IMPOSSIBLE


def test_a_process_that_does_not_keep_its_time_is_killed(monkeypatch):
    """It is given a second by its request, which it needs to begin with, and none by its parent."""
    monkeypatch.setattr("formulations.engines.cp_sat.search.GRACE", 0.0)
    with Solver() as solver:
        late = solver.decide(puzzle("ring:gpus=4"), 2, 2, effort=Effort(seconds=0.001))

    assert late.decided is Decided.UNDECIDED
    assert late.plan is None


def test_a_model_that_is_too_large_is_not_built():
    """128 chunks over 128 links in 100 steps are 1.6 million sends."""
    large = puzzle("ring:gpus=64", chunks=2)
    assert large.sends(100) == 128 * 128 * 100 > MOST_SENDS

    with Solver() as solver:
        undecided = solver.decide(large, 100, 100, effort=EFFORT)

    assert undecided.decided is Decided.UNDECIDED
    assert "1,638,400 sends" in undecided.why
