"""What a replay is worth: bandwidths as nccl-tests prints them, use of links, critical path."""

from __future__ import annotations

from ccl.collective import Collective


def bus_factor(collective: Collective) -> float:
    """Return busbw / algbw of a collective.

    Reference: NVIDIA/nccl-tests, doc/PERFORMANCE.md and the GetBw functions in src/; a custom
    demand, which it does not know, has the factor 1.
    """
    n = collective.ranks
    if collective.kind == "all-reduce":
        return 2 * (n - 1) / n
    if collective.kind in ("custom", "broadcast", "reduce"):
        return 1.0
    return (n - 1) / n
