"""Several jobs on one cluster: their collectives joined into one demand."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ccl.collective import Chunk, Collective, custom
from ccl.errors import ProblemError


@dataclass(frozen=True, slots=True)
class Tenant:
    """One of several jobs that share a cluster.

    Parameters
    ----------
    name
        Of its own among the tenants; every chunk of the job keeps it.
    collective
        What the job runs, over ranks of its own from 0 on.
    ranks
        Which rank of the cluster each of these is.
    priority
        What the priorities of its chunks are multiplied by.
    """

    name: str
    collective: Collective
    ranks: tuple[int, ...]
    priority: float = 1.0


def tenants(ranks: int, jobs: Iterable[Tenant]) -> Collective:
    """Run the collectives of several tenants at the same time, as one custom collective.

    Their chunks follow one another in the order of the jobs; where ranks overlap, demands add up.
    `ccl.metrics.finish_times` tells when each of them is done.

    Parameters
    ----------
    ranks
        Number of ranks of the whole cluster.
    jobs
        The tenants.

    Raises
    ------
    ProblemError
        If two tenants have one name, or the ranks of one do not suit its collective.
    """
    chunks: list[Chunk] = []
    seen: set[str] = set()
    for job in jobs:
        _check_tenant(job, ranks, seen)
        chunks += (_of_tenant(job, chunk) for chunk in job.collective.chunks)
    return custom(ranks, chunks)


def _check_tenant(job: Tenant, ranks: int, seen: set[str]) -> None:
    if not job.name.strip() or job.name in seen:
        msg = f"a tenant is called {job.name!r}; give each tenant a name of its own"
        raise ProblemError(msg)
    seen.add(job.name)
    wanted = job.collective.ranks
    if len(job.ranks) != wanted or len(set(job.ranks)) < wanted:
        msg = (
            f"tenant {job.name} has the ranks {list(job.ranks)} and its {job.collective.kind} is "
            f"for {wanted}; give {wanted} different ones"
        )
        raise ProblemError(msg)
    if not all(0 <= rank < ranks for rank in job.ranks):
        msg = f"tenant {job.name} has the ranks {list(job.ranks)}; ranks go from 0 to {ranks - 1}"
        raise ProblemError(msg)
    if not (job.priority > 0 and math.isfinite(job.priority)):
        msg = f"tenant {job.name} has the priority {job.priority}; give a positive number"
        raise ProblemError(msg)


def _of_tenant(job: Tenant, chunk: Chunk) -> Chunk:
    return replace(
        chunk,
        holders=tuple(job.ranks[rank] for rank in chunk.holders),
        destinations=tuple(job.ranks[rank] for rank in chunk.destinations),
        priority=chunk.priority * job.priority,
        tenant=job.name,
    )
