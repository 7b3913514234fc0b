"""Solving with several methods at a few sizes, so that a catalog has something to choose from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ccl.collective import CollectiveKind, make_collective
from ccl.errors import ProblemError, SolveError
from ccl.problem import Problem
from ccl.topology import Topology
from formulations.campaigns.catalog.answering import solve
from formulations.campaigns.catalog.catalog import Catalog
from formulations.core.registry import formulation

SIZES: tuple[float, ...] = (1e4, 1e6, 1e8)
"""Bytes: where latencies, both, and bandwidths count."""


def fill(
    catalog: Catalog,
    topology: Topology,
    kinds: Iterable[CollectiveKind],
    *,
    methods: Sequence[str],
    sizes: Iterable[float] = SIZES,
    time_limit: float | None = None,
    root: int = 0,
) -> tuple[str, ...]:
    """Solve what a catalog cannot answer, and keep it.

    Parameters
    ----------
    catalog
        Where plans are looked up and kept.
    topology, kinds, root
        What is solved.
    methods
        Names of formulations.
    sizes
        Bytes of the whole buffer.
    time_limit
        Seconds for each solve.

    Returns
    -------
        What could not be solved and why, in sentences.

    Raises
    ------
    ProblemError
        If there is no such formulation.
    """
    for name in methods:
        formulation(name)
    listed, said = tuple(sizes), []
    for kind in kinds:
        for name in methods:
            for size in listed:
                made = make_collective(kind, len(topology.ranks), size, root=root)
                try:
                    solve(Problem(topology, made), name, catalog=catalog, time_limit=time_limit)
                except (ProblemError, SolveError) as error:
                    said.append(str(error))
    return tuple(dict.fromkeys(said))
