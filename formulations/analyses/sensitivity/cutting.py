"""The best rate by its worst cut, an exact fraction, at any scales of the classes."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ccl.problem import Problem
from ccl.steady import exact
from ccl.symmetry import automorphisms
from formulations.analyses.sensitivity.cutting_planes import (
    Classes,
    Plane,
    Rates,
    Scales,
    Undecided,
)
from formulations.engines.forestcoll.search import (
    SYMMETRIC,
    WHOLE,
    Network,
    Rate,
    cut_decides,
    network_of,
    rate_of,
)
from formulations.engines.steady_state.graph import balanced


def cuts_decide(problem: Problem, classes: Classes) -> bool:
    """Whether the worst cut is the best rate whichever class changes.

    A switch must give out what it takes in of every class, and no shared limit may come to bind.
    """
    topology = problem.topology
    relays = {each.name for each in topology.devices if each.kind != "gpu"}
    return (
        not topology.limits
        and cut_decides(problem)
        and balanced(topology, relays, classes=classes.links)
    )


class CutRates(Rates):
    """Worst cuts (`formulations.engines.forestcoll.search`), in fractions.

    Parameters
    ----------
    problem
        One whose rate cuts decide (`cuts_decide`).
    classes
        What changes together.
    """

    exact = True

    def __init__(self, problem: Problem, classes: Classes) -> None:
        super().__init__(classes)
        self._network = network_of(problem)
        self._reduces = problem.collective.reduces
        self._sinks = _sinks(self._network, classes.links)
        self._speed = exact(problem.collective.size) / self._network.share

    def _found(self, scales: Scales) -> tuple[Plane, ...]:
        found = rate_of(self._scaled(scales), sinks=self._sinks, reduces=self._reduces)
        now = Rate(self._network, found.speed, found.sides, found.flows, self._reduces)
        # The largest side comes first; the smallest says most to people.
        pairs = list(zip(now.sides, now.cuts, strict=True))[::-1]
        return tuple(
            Plane(weights=self._weights(side.astype(bool)), cut=cut) for side, cut in pairs
        )

    def _weights(self, inside: np.ndarray) -> tuple[Fraction, ...]:
        network, number = self._network, self.classes.links
        crossing = inside[network.src] & ~inside[network.dst]
        leaving = np.zeros(self.classes.many, dtype=np.int64)
        np.add.at(leaving, number[crossing], network.capacity[crossing])
        each = self._speed * network.unit / int(network.weight[inside].sum())
        return tuple(many * each for many in leaving.tolist())

    def _scaled(self, scales: Scales) -> Network:
        network = self._network
        parts = [Fraction(each) for each in scales]
        below = math.lcm(*(each.denominator for each in parts))
        above = [int(each * below) for each in parts]
        common = math.gcd(*above)
        factor = [each // common for each in above]
        most = int(network.capacity.sum()) * max(factor) * int(network.weight.sum())
        if most >= WHOLE:
            finest = max(each.denominator for each in parts)
            msg = f"flows at scales in parts of {finest} are too fine for whole numbers of 64 bits"
            raise Undecided(msg)
        scale = np.array(factor, dtype=np.int64)[self.classes.links]
        return replace(
            network,
            capacity=network.capacity * scale,
            unit=network.unit * Fraction(common, below),
        )


def _sinks(network: Network, number: np.ndarray) -> np.ndarray:
    """Return one sink of each orbit of symmetries that keep the classes."""
    if len(network.sinks) < SYMMETRIC:
        return network.sinks
    group = automorphisms(
        network.topology, colours=network.weight.tolist(), links=number.tolist(), steady=True
    )
    _, chosen = np.unique(group.orbits()[network.sinks], return_index=True)
    return np.asarray(network.sinks[chosen])
