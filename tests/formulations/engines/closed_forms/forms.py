"""What the tests of closed forms share: problems, and formulas held against what they come to."""

from typing import Any

import pytest

from ccl.collective import CollectiveKind, make_collective
from ccl.problem import Problem
from ccl.result import Result
from formulations import solve
from gallery import open_cluster

SIZE = 1e6
HOP = 0.7
"""µs of a link of the gallery's shapes."""
STAR = 2 * HOP
"""µs of a way over a star: two links."""
BETA = 1e-3 / 50.0
"""µs per byte of both, 50 GB/s; a way over a star goes through its switch as it comes."""


def asked(
    cluster: str, kind: CollectiveKind, *, size: float = SIZE, chunks: int = 1, root: int = 0
) -> Problem:
    topology = open_cluster(cluster)
    ranks = len(topology.ranks)
    return Problem(topology, make_collective(kind, ranks, size, chunks=chunks, root=root))


def solved(name: str, problem: Problem, **options: Any) -> Result:
    return solve(problem, name, options=options)


def halves(kind: CollectiveKind) -> int:
    """An all-reduce adds up and then spreads; all others do one of both."""
    return 2 if kind == "all-reduce" else 1


def as_written(result: Result, makespan: float) -> None:
    """The formula, its steps here and what the test derives agree; the replay is no later."""
    form = result.closed_form
    assert form is not None
    assert form.makespan == pytest.approx(makespan, rel=1e-9)
    assert form.in_steps == pytest.approx(makespan, rel=1e-9)
    assert form.alone == pytest.approx(makespan, rel=1e-9)
    assert result.makespan <= form.in_steps * (1 + 1e-9)
