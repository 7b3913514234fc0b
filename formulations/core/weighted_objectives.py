"""Weighted objectives of plans with priorities: µs of the replay, weighted.

Reference: TE-CCL (SIGCOMM 2024), section 5, on priorities across tenants.
"""

from ccl.problem import Problem
from ccl.result import Result
from ccl.timeline import finish_times


def prioritised(problem: Problem) -> bool:
    """Return whether any two of its chunks have different priorities."""
    return len({chunk.priority for chunk in problem.collective.chunks}) > 1


def tenant_priorities(problem: Problem) -> dict[str, float]:
    """Return the largest priority among the chunks of each tenant."""
    weight: dict[str, float] = {}
    for chunk in problem.collective.chunks:
        weight[chunk.tenant] = max(chunk.priority, weight.get(chunk.tenant, 0.0))
    return weight


def weighted_finish(result: Result) -> float:
    """Return the µs at which each tenant has all it wants, times its largest priority, added up."""
    weight = tenant_priorities(result.problem)
    finish = finish_times(result.problem, result.timeline)
    return sum(weight[tenant] * time for tenant, time in finish.items())


def weighted_arrivals(result: Result) -> float:
    """Add up the µs of every arrival at a destination, times priority and share of the chunk."""
    ranks, chunks = result.problem.topology.ranks, result.problem.collective.chunks
    wanted = [{ranks[rank] for rank in chunk.destinations} for chunk in chunks]
    return sum(
        each.end * chunks[each.chunk].priority * each.nbytes / chunks[each.chunk].size
        for each in result.timeline.transfers
        if each.dst in wanted[each.chunk]
    )
