"""What no forest can hold, in words; it loads neither a solver nor a compiler."""

from __future__ import annotations

from ccl.problem import Problem
from ccl.topology import Topology
from formulations.engines.steady_state.demands import demands_of
from formulations.engines.steady_state.demands import refusal as no_groups

LARGEST = 4096
"""Most GPUs for which a table of all pairs is kept."""


def refusal(problem: Problem) -> str | None:
    """Say in words why no forest is sought for a problem, or None."""
    reason = no_groups(problem)
    if reason is not None:
        return reason
    demands, topology = demands_of(problem), problem.topology
    if bool(demands.spreads) + bool(demands.sums) + bool(demands.free) != 1:
        return "data that spreads and data that is added up together are not one forest"
    groups = (*demands.spreads, *demands.sums)
    if len({each.root for each in groups}) < len(groups):
        return "a rank has different data for different ranks, and its trees take all of it to all"
    if len(topology.ranks) > LARGEST:
        return f"it has {len(topology.ranks)} GPUs, and here a table of all pairs is kept"
    for reduces, asked in ((False, not demands.sums), (True, not demands.spreads)):
        reason = _no_tree(topology, reduces=reduces) if asked else None
        if reason is not None:
            return reason
    for device in topology.devices:
        if device.buffer_bytes is not None:
            return f"{device.name} has a limited buffer, and a steady state knows no stores"
    return None


def _no_tree(topology: Topology, *, reduces: bool) -> str | None:
    """Say which GPU cannot be inside of a tree, or None."""
    for each in topology.devices:
        if each.kind == "gpu" and not (each.reduces if reduces else each.copies):
            what = "reduce" if reduces else "copy"
            return f"{each.name} cannot {what}, and here every GPU does"
    return None
