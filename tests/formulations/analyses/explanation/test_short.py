"""A horizon that is too short is told with the smallest that could work, and why."""

from __future__ import annotations

from typing import Any

import pytest

from ccl.collective import CollectiveKind, make_collective
from ccl.errors import Infeasible, ProblemError
from ccl.problem import Problem
from ccl.topology import Link, Topology, device
from formulations import solve
from formulations.engines.epoch_grid.windows import Need
from formulations.engines.te_ccl.flow_lp import FlowModel
from formulations.models import thesis_fluid, thesis_steps
from gallery import open_cluster


def asked(cluster: str, kind: CollectiveKind) -> Problem:
    topology = open_cluster(cluster)
    return Problem(topology, make_collective(kind, len(topology.ranks), 1e6, root=0))


CASES: list[tuple[str, dict[str, Any], str, CollectiveKind, str, int]] = [
    # From g0 to g4 of a ring of 8 it is 4 hops, and a hop takes an epoch of a whole chunk.
    ("te-ccl-milp", {"horizon": 3, "epoch": "slowest"}, "ring:gpus=8", "broadcast", "epoch", 4),
    ("thesis-steps", {"steps": 3}, "ring:gpus=8", "broadcast", "step", 4),
    ("thesis-fluid", {"hops": 1}, "ring:gpus=5", "broadcast", "hop", 2),
    ("thesis-fluid", {"hops": 1}, "ring:gpus=5", "reduce", "hop", 2),
    # A chunk of 1/8 MB takes 2.5 µs and 0.7 µs more to arrive, so a hop takes two epochs.
    ("te-ccl-lp", {"horizon": 7, "epoch": "slowest"}, "ring:gpus=8", "scatter", "epoch", 8),
    # All GPUs of a ring of 6 are 3 hops from what is farthest, whoever adds up.
    ("thesis-fluid", {"hops": 2}, "ring:gpus=6", "all-reduce", "hop", 3),
]


@pytest.mark.parametrize(("name", "options", "cluster", "kind", "unit", "least"), CASES)
def test_the_smallest_that_could_work_is_told(
    name: str, options: dict[str, Any], cluster: str, kind: CollectiveKind, unit: str, least: int
) -> None:
    told = rf"too short: no plan takes fewer than {least} \(hops .*allow {least} {unit}s or more"
    with pytest.raises(Infeasible, match=told):
        solve(asked(cluster, kind), name, options=options, time_limit=20)
    field = next(iter(options))
    found = solve(asked(cluster, kind), name, options={**options, field: least}, time_limit=20)
    assert found.makespan > 0


@pytest.mark.parametrize(("name", "options", "cluster", "kind", "unit", "least"), CASES[1:])
def test_what_is_ruled_out_by_hand_the_solver_rules_out(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    options: dict[str, Any],
    cluster: str,
    kind: CollectiveKind,
    unit: str,
    least: int,
) -> None:
    """With the check taken away the program itself has no solution one below."""
    del unit, least
    monkeypatch.setattr(FlowModel, "check", lambda *_: None)
    monkeypatch.setattr(thesis_steps, "_check", lambda *_: None)
    monkeypatch.setattr(thesis_fluid, "fewest_hops", lambda _: Need(1, ""))
    with pytest.raises(Infeasible):
        solve(asked(cluster, kind), name, options=options, time_limit=20)


def test_a_cut_is_named_where_it_takes_longest() -> None:
    """7/8 of 1 MB leave each GPU at 300 GB/s: 2.9 µs and a latency, 9 epochs of a chunk."""
    options = {"horizon": 1, "epoch": "slowest"}
    with pytest.raises(Infeasible, match=r"what must leave .* at 300 GB/s takes 3.6.* allow 9 "):
        solve(asked("dgx-a100", "all-to-all"), "te-ccl-lp", options=options)


def test_steps_and_rounds_say_what_would_do() -> None:
    options = {"mode": "instance", "steps": 2, "rounds": 4}
    with pytest.raises(Infeasible, match=r"takes 4 steps from g0 to g4; allow 4 steps"):
        solve(asked("ring:gpus=8", "all-gather"), "sccl", options=options)
    options = {"mode": "instance", "steps": 4, "rounds": 3}
    with pytest.raises(Infeasible, match=r"a round or more; allow 4 rounds or more"):
        solve(asked("ring:gpus=8", "broadcast"), "sccl", options=options)


def test_all_ranks_that_are_cut_off_are_named() -> None:
    devices = tuple(device("gpu", f"g{i}") for i in range(6))
    pairs = [("g0", "g1"), ("g1", "g0"), ("g1", "g2"), ("g2", "g0"), ("g3", "g0"), ("g4", "g5")]
    links = tuple(Link(a, b, bandwidth=1.0, alpha=0.0) for a, b in pairs)
    topology = Topology("parts", devices, links)
    with pytest.raises(ProblemError, match=r"^3 ranks \(g3, g4, g5\) cannot be reached from g0,"):
        Problem(topology, make_collective("broadcast", 6, 1e6, chunks=1, root=0))
    with pytest.raises(ProblemError, match=r"^5 ranks \(g0, g1, g2, g3 and 1 more\) cannot"):
        Problem(topology, make_collective("broadcast", 6, 1e6, chunks=1, root=5))
    part = Topology("five", devices[:5], (*links[:5], Link("g0", "g3", bandwidth=1.0, alpha=0)))
    with pytest.raises(ProblemError, match=r"^rank 4 \(g4\) cannot be reached from g1"):
        Problem(part, make_collective("broadcast", 5, 1e6, chunks=1, root=1))
