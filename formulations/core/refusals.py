"""Refusals that several formulations share, and what shared limits that bind do to links."""

from collections import defaultdict

import numpy as np

from ccl.problem import Problem
from ccl.topology import SharedLimit, Topology, binding_limits


def numbers(topology: Topology, limit: SharedLimit) -> list[int]:
    """Return the numbers of the links under a limit."""
    return [topology.link_index[ends] for ends in limit.links]


def betas(topology: Topology) -> np.ndarray:
    """Return the µs per byte of each link, or of its tightest shared limit where that is more.

    Shape (links,).
    """
    beta = np.array([each.beta for each in topology.links], dtype=float)
    for limit in binding_limits(topology):
        under = numbers(topology, limit)
        beta[under] = np.maximum(beta[under], 1e-3 / limit.bandwidth)
    return beta


SEEN = 1e-6
"""Share of the largest amount that counts as zero in a linear program; solvers allow a tenth."""


def host_numbers(topology: Topology) -> np.ndarray:
    """Return the number of each device's host, -1 where it has none, shape (devices,)."""
    names = {name: number for number, name in enumerate(topology.hosts)}
    return np.array([names.get(each.host or "", -1) for each in topology.devices])


def no_stores(problem: Problem) -> str | None:
    """Return which device keeps less than a formulation counts on: everything, and copies of it."""
    for device in problem.topology.devices:
        if device.buffer_bytes is not None:
            return f"{device.name} has a limited buffer, and here buffers are unlimited"
        if device.stores and not device.copies:
            return f"{device.name} stores and cannot copy, and here all that stores copies"
    return None


def no_sums(problem: Problem) -> str | None:
    """Return which GPU cannot add up, where something is added up."""
    for device in problem.topology.devices:
        if problem.collective.reduces and device.kind == "gpu" and not device.reduces:
            return f"{device.name} cannot reduce, and here every GPU adds up what it receives"
    return None


def no_crumbs(problem: Problem) -> str | None:
    """State that one amount is so small beside another that a linear program would lose it."""
    chunks = problem.collective.chunks
    if len({each.size for each in chunks}) == 1:
        return None
    amounts: defaultdict[object, float] = defaultdict(float)
    for each in chunks:
        if not each.in_place:
            amounts[each.reduced, each.holders, each.destinations] += each.size
    least, most = min(amounts.values()), max(amounts.values())
    if least >= SEEN * most:
        return None
    return (
        f"{least:g} bytes are too little beside {most:g}: the solver of a linear program cannot "
        "distinguish them from zero"
    )


def only_pairs(problem: Problem) -> str | None:
    """Return which chunk is more than a pair in a flow, or which device keeps less than all."""
    for number, chunk in enumerate(problem.collective.chunks):
        if chunk.reduced:
            return f"chunk {number} is reduced, which takes trees: use orbit-trees"
        if len(chunk.destinations) > 1:
            return f"chunk {number} has several destinations, which takes trees: use orbit-trees"
        if len(chunk.holders) > 1:
            return f"chunk {number} has several holders, and a flow begins at one"
    for device in problem.topology.devices:
        if device.buffer_bytes is not None:
            return f"{device.name} has a limited buffer, and a steady state knows no stores"
    return None


def no_limits(problem: Problem) -> str | None:
    """Return which shared limit binds, with its GB/s and those of its links."""
    for limit in binding_limits(problem.topology):
        together = sum(problem.topology.link(*ends).bandwidth for ends in limit.links)
        return (
            f"limit {limit.name} of {limit.bandwidth:g} GB/s is below its links' {together:g} GB/s"
        )
    return None
