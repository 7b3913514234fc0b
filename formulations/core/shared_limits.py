"""Shared limits that bind, and how slow they make links."""

from __future__ import annotations

import numpy as np

from ccl.topology import SharedLimit, Topology

SAME = 1e-9
"""A limit within this share of the sum of its links never slows anything."""


def binding(topology: Topology) -> tuple[SharedLimit, ...]:
    """Return the limits that are below the sum of their links: the others never bind."""
    return tuple(
        limit
        for limit in topology.limits
        if limit.bandwidth
        < sum(topology.link(*ends).bandwidth for ends in limit.links) * (1 - SAME)
    )


def numbers(topology: Topology, limit: SharedLimit) -> list[int]:
    """Return the numbers of the links under a limit."""
    return [topology.link_index[ends] for ends in limit.links]


def betas(topology: Topology) -> np.ndarray:
    """µs per byte of each link, of the tightest shared limit that it is under where that is more.

    Shape (links,).
    """
    beta = np.array([each.beta for each in topology.links], dtype=float)
    for limit in binding(topology):
        under = numbers(topology, limit)
        beta[under] = np.maximum(beta[under], 1e-3 / limit.bandwidth)
    return beta
