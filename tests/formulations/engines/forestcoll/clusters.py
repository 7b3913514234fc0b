"""Random clusters whose switches give out what they take in, and cuts by trying all."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np

from ccl.problem import Problem
from ccl.topology import Link, Topology, device
from formulations.engines.forestcoll.plans import (
    Planned,
    best_forest,
    combined,
    fixed_forest,
    halves,
)
from formulations.engines.forestcoll.search import forest_rate


def random_cluster(seed: int, *, gpus: int = 4, switches: int = 2, even: bool = False) -> Topology:
    """Lay walks of whole GB/s: closed ones, and from GPU to GPU unless `even`.

    The first walk is closed and passes all GPUs, so that each reaches each. Walks keep switches
    balanced whatever they do; closed ones keep GPUs balanced too.
    """
    rng = np.random.default_rng(seed)
    names = [f"g{i}" for i in range(gpus)] + [f"s{i}" for i in range(switches)]
    bandwidth: Counter[tuple[str, str]] = Counter()
    order = rng.permutation(gpus).tolist()
    walks = [[*order, order[0]]]
    for number in range(3 + gpus):
        middle = rng.integers(0, len(names), rng.integers(1, 4)).tolist()
        src, dst = rng.integers(0, gpus, 2).tolist()
        walks.append([src, *middle, src if even or number % 2 else dst])
    for walk in walks:
        way = [names[each] for each in walk]
        times = int(rng.integers(1, 7))
        for ends in itertools.pairwise(_with_switches(way, rng, switches)):
            if ends[0] != ends[1]:
                bandwidth[ends] += times
    devices = [device("gpu" if name[0] == "g" else "switch", name) for name in names]
    used = {name for ends in bandwidth for name in ends}
    links = [Link(*ends, float(each)) for ends, each in sorted(bandwidth.items())]
    kept = tuple(each for each in devices if each.kind == "gpu" or each.name in used)
    return Topology(f"random {seed}", kept, tuple(links))


def _with_switches(way: list[str], rng: np.random.Generator, switches: int) -> list[str]:
    """Put a switch into some of the steps of a walk."""
    found = way[:1]
    for name in way[1:]:
        if switches and rng.random() < 0.5:
            found.append(f"s{rng.integers(0, switches)}")
        found.append(name)
    return found


def worst_cut(topology: Topology, weight: dict[str, int]) -> Fraction:
    """Return the least quotient of what leaves and the weight inside, by trying every set."""
    names = [each.name for each in topology.devices]
    best: Fraction | None = None
    for inside in itertools.product((False, True), repeat=len(names)):
        within = {name for name, here in zip(names, inside, strict=True) if here}
        held = sum(weight.get(name, 0) for name in within)
        if held and not within.issuperset(topology.ranks):
            leaving = sum(
                (
                    Fraction(each.bandwidth)
                    for each in topology.links
                    if each.src in within and each.dst not in within
                ),
                Fraction(0),
            )
            best = leaving / held if best is None else min(best, leaving / held)
    assert best is not None
    return best


def forest_of(problem: Problem, *, trees: int = 0) -> Planned:
    """Return a forest at the best rate, or at the best with `trees` trees of each root."""
    if problem.adds_for_several:
        return combined(*(forest_of(half, trees=trees) for half in halves(problem)))
    rate = forest_rate(problem)
    return fixed_forest(rate, trees) if trees else best_forest(rate)
