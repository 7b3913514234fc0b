"""Sizes told before solving, held to the compiled model; and what is said of each formulation."""

from __future__ import annotations

from typing import Any

import pytest

from ccl.bound import Bound
from ccl.collective import CollectiveKind, make_collective
from ccl.options import make_options
from ccl.problem import Problem
from ccl.result import ModelSize
from formulations import available, explain, formulation
from formulations.bounds import quick_bounds
from formulations.solvers import cvxpy_highs as solvers
from formulations.solving.api import solved
from gallery import open_cluster

MILP = {"objective": "early-arrivals", "epoch": "slowest", "horizon": 12}
CASES: list[tuple[str, str, CollectiveKind, dict[str, Any]]] = [
    ("te-ccl-milp", "dgx-1v", "all-gather", MILP),
    ("te-ccl-milp", "dgx-a100", "all-gather", MILP),
    ("te-ccl-lp", "dgx-1v", "all-to-all", {}),
    ("te-ccl-lp", "dgx-1v", "all-to-all", {"symmetry": False}),
    ("te-ccl-lp", "ndv2", "all-to-all", {"epoch": "slowest"}),
    ("te-ccl-lp", "dgx-a100", "gather", {"epoch": "fastest", "horizon": 30}),
    ("orbit-lp", "dgx-1v", "all-to-all", {}),
    ("orbit-lp", "ndv2", "scatter", {"costs": "none"}),
    ("thesis-fluid", "dgx-1v", "broadcast", {"model": "duplicates"}),
    ("thesis-fluid", "ring:gpus=4", "all-gather", {}),
    ("thesis-fluid", "ring:gpus=4", "all-reduce", {"model": "duplicates"}),
    ("thesis-fluid", "dgx-a100", "reduce", {"model": "relaxation"}),
    ("thesis-fluid", "dgx-a100", "all-to-all", {"hops": 2}),
    ("thesis-steps", "dgx-1v", "all-to-all", {"steps": 2}),
    ("thesis-steps", "dgx-a100", "broadcast", {"steps": 3}),
    ("dantzig-wolfe", "dgx-a100", "all-gather", {}),
    ("mirrored-dantzig-wolfe", "dgx-1v", "reduce-scatter", {}),
]


class Built(Exception):
    """The first model was compiled."""


def compiled(monkeypatch: pytest.MonkeyPatch, problem: Problem, case: Any) -> ModelSize:
    """Return the size of the first model that a solve hands to HiGHS."""
    name, _, _, options = case
    seen: list[ModelSize] = []

    def load(run: Any, _matrix: Any) -> Any:
        seen.append(run.size)
        raise Built

    monkeypatch.setattr(solvers.HighsRun, "_load", load)
    chosen = formulation(name)

    def proofs(*, quick: bool, whole_chunks: bool) -> tuple[Bound, ...]:
        # Those that need a solver would be the first model that is compiled.
        assert not quick
        return quick_bounds(problem, whole_chunks=whole_chunks)

    with pytest.raises(Built):
        solved(problem, chosen, make_options(chosen.options, options), bounds=proofs)
    return seen[0]


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case[:3])))
def test_what_is_told_before_is_what_is_compiled(
    monkeypatch: pytest.MonkeyPatch, case: tuple[str, str, CollectiveKind, dict[str, Any]]
) -> None:
    """The counts by groups of rows add up to the rows that HiGHS is given; so do the others."""
    name, cluster, kind, options = case
    topology = open_cluster(cluster)
    problem = Problem(topology, make_collective(kind, len(topology.ranks), 1e6, root=0))
    told = explain(name, problem, options=options)
    assert told.size is not None
    assert sum(each.many or 0 for each in told.groups) == told.size.constraints
    assert told.size == compiled(monkeypatch, problem, case)


@pytest.mark.parametrize("name", [each.name for each in available()])
def test_every_formulation_is_explained(name: str) -> None:
    """Its mathematics is Markdown whose fences close and which has no leftover double backticks."""
    found = explain(name)
    lines = [line.strip() for line in found.mathematics.splitlines()]
    assert lines.count("```text") == lines.count("```")
    assert "\\`" not in found.mathematics
    assert found.title in found.markdown
    assert found.size is None
    assert all(each.many is None and each.words for each in found.groups)


@pytest.mark.parametrize("name", [each.name for each in available()])
def test_a_size_is_told_or_why_there_is_none(name: str) -> None:
    topology = open_cluster("dgx-1v")
    chosen = formulation(name)
    kind = min(chosen.collectives & {"all-gather", "broadcast", "all-to-all"} or {"all-reduce"})
    problem = Problem(topology, make_collective(kind, 8, 1e6, root=0))
    found = explain(name, problem)
    assert found.facts
    if found.size is None:
        assert found.refusal or found.note
    else:
        assert found.speed is not None
        assert sum(each.many or 0 for each in found.groups) == found.size.constraints


def test_a_refusal_is_told_in_its_words() -> None:
    topology = open_cluster("dgx-1v")
    problem = Problem(topology, make_collective("all-gather", 8, 1e6, root=0))
    found = explain("orbit-lp", problem)
    assert found.refusal == formulation("orbit-lp").why_not(problem)
    assert found.size is None
    assert found.facts == [f"it cannot take this: {found.refusal}"]


def test_a_horizon_that_is_given_is_the_one_that_is_counted() -> None:
    topology = open_cluster("dgx-1v")
    problem = Problem(topology, make_collective("all-gather", 8, 1e6, root=0))
    sizes = [explain("te-ccl-milp", problem, options={"horizon": k}).size for k in (4, 8)]
    assert sizes[0] is not None
    assert sizes[1] is not None
    assert sizes[1].variables > sizes[0].variables
