"""Tenants that share a cluster: methods that order them by priority, and the time of each.

Reference: TE-CCL (SIGCOMM 2024), section 5: the demands of all tenants are added up, and their
priorities weigh in the objective.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ccl.collective import Chunk, custom
from ccl.errors import ProblemError
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.result import Plan, Result
from ccl.timeline import finish_times
from formulations.core.registry import formulation
from formulations.core.weighted_objectives import prioritised
from formulations.solving.api import measure

ORDERING: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("te-ccl-milp", MappingProxyType({"objective": "finish-times"})),
    ("te-ccl-lp", MappingProxyType({"objective": "early-arrivals"})),
)
"""Formulations with the options by which they order tenants, the most direct first."""

MOST_NONZEROS = 1_000_000
"""Size of a model above which nothing is ordered unless it is chosen by name."""


@dataclass(frozen=True)
class TenantTime:
    """How one tenant fares.

    Parameters
    ----------
    name
        Of the tenant.
    priority
        The largest of its chunks, without unit.
    nbytes
        Bytes of all of its chunks.
    finish
        µs at which it has all that it wants.
    alone
        µs that it would need at least with the cluster for itself and no windows, its chunks whole
        if the plan sends them so; 0 where nothing has to be sent.
    """

    name: str
    priority: float
    nbytes: float
    finish: float
    alone: float


def by_priority(problem: Problem) -> tuple[str, dict[str, str]] | None:
    """Return the formulation, with options, that orders tenants by their priorities.

    None where all priorities are equal, nothing that does takes the problem, or its model would
    be large. Sums are found backwards in time, where an early end is a late one, so that they are
    not ordered.
    """
    if not prioritised(problem) or problem.collective.reduces:
        return None
    for name, options in ORDERING:
        if formulation(name).why_not(problem) is None:
            size = measure(problem, name, options=options)
            if size is None or size.nonzeros <= MOST_NONZEROS:
                return name, dict(options)
    return None


def tenant_times(result: Result) -> tuple[TenantTime, ...]:
    """Return how each tenant of a result fares, in the order of their chunks.

    Chunks without a tenant are together under the empty name; nothing where all are.
    """
    problem = result.problem
    chunks: defaultdict[str, list[Chunk]] = defaultdict(list)
    for chunk in problem.collective.chunks:
        chunks[chunk.tenant].append(chunk)
    if set(chunks) == {""}:
        return ()
    finish = finish_times(problem, result.timeline)
    return tuple(
        TenantTime(
            name=name,
            priority=max(each.priority for each in own),
            nbytes=sum(each.size for each in own),
            finish=finish[name],
            alone=_alone(problem, own, whole=_whole(result.plan)),
        )
        for name, own in chunks.items()
    )


def _whole(plan: Plan) -> bool:
    """Return whether a plan sends every chunk whole."""
    return isinstance(plan, Schedule) and all(each.fraction == 1 for each in plan.sends)


def _alone(problem: Problem, chunks: list[Chunk], *, whole: bool) -> float:
    """Return the µs that some chunks take at least, nothing else being on the cluster."""
    from formulations.bounds import quick_bounds  # noqa: PLC0415  it loads scipy

    own = Problem(problem.topology, custom(problem.collective.ranks, chunks))
    try:
        return quick_bounds(own, whole_chunks=whole)[0].makespan
    except ProblemError:
        return 0.0  # nothing of it has to be sent
