"""Solving with a catalog: what was solved before is not solved again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ccl.problem import Problem
from ccl.result import Result
from formulations.campaigns.catalog.catalog import Catalog
from formulations.solving import api

if TYPE_CHECKING:
    from formulations.core.run import Progress


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
        Where plans are looked up and kept.
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
