"""Solving with a catalog: a problem that was solved before is not solved again.

`fill` solves with several methods at a few sizes, so that a catalog has something to choose from.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ccl.collective import CollectiveKind, make_collective
from ccl.errors import ProblemError, SolveError
from ccl.problem import Problem
from ccl.result import Result
from ccl.topology import Topology
from formulations.campaigns.catalog.catalog import Catalog
from formulations.core.registry import formulation
from formulations.core.run import Progress
from formulations.solving import api


def solve(
    problem: Problem,
    formulation: str = api.DEFAULT,
    *,
    catalog: Catalog,
    options: Mapping[str, Any] | None = None,
    time_limit: float | None = None,
    gap: float | None = None,
    any_method: bool = False,
    progress: Callable[[Progress], None] | None = None,
    solver: str = api.SOLVER,
) -> Result:
    """Answer from a catalog what solving again could not better, else solve and keep.

    Parameters
    ----------
    problem, formulation, options, time_limit, gap, progress, solver
        As for `formulations.solve`, and so are its errors.
    catalog
        Where plans are looked up and stored.
    any_method
        Whether a plan of any formulation will do, the best there is, and not only one of this
        formulation with these options.

    Returns
    -------
        A result whose log begins its last sentence with ``from the catalog`` where it is.
    """
    found = catalog.find(
        problem,
        None if any_method else formulation,
        options=None if any_method else options,
        time_limit=time_limit,
        gap=gap,
        enough=True,
    )
    if found is not None:
        return found
    result = api.solve(
        problem,
        formulation,
        options=options,
        time_limit=time_limit,
        gap=gap,
        progress=progress,
        solver=solver,
    )
    catalog.keep(result, time_limit=time_limit)
    return result


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
        Where plans are looked up and stored.
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
