"""The best rate by prices: of trees, or of the orbit linear program, at any scales of the classes.

Prices found at symmetric scales are alike on orbits. They are optimal prices of every single link
all the same, so their planes hold whichever links change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ccl.problem import Problem
from ccl.topology import Topology
from formulations.analyses.sensitivity.cutting_planes import (
    Classes,
    Ends,
    Plane,
    Rates,
    Scales,
    Undecided,
)
from formulations.engines.orbit_lp.group import Uniform

PATIENCE = 2.0
"""Seconds after which trees that are not proved are given up."""

PRICED = 1e-6
"""Links with a smaller share of the price hold nothing down."""


class TreeRates(Rates):
    """Best trees (`tree_columns.search`) of the cluster with other bandwidths."""

    exact = False

    def __init__(self, problem: Problem, classes: Classes) -> None:
        super().__init__(classes)
        self._problem = problem

    def _found(self, scales: Scales) -> tuple[Plane, ...]:
        # CVXPY takes most of a second to load.
        from formulations.engines.tree_columns.search import best_trees  # noqa: PLC0415
        from formulations.engines.tree_columns.task import limit_orbits  # noqa: PLC0415

        topology = self.classes.scaled(scales)
        found = best_trees(replace(self._problem, topology=topology), seconds=PATIENCE)
        if not found.proved:
            msg = f"no best trees were proved on {topology} within {PATIENCE:g} s"
            raise Undecided(msg)
        rows = found.task.rows
        share = found.prices / found.prices.sum()
        fold = rows.fold[: rows.links]
        links = (share[: rows.links] / fold.sum(axis=1)) @ fold
        limits = np.zeros(0)
        if topology.limits:
            orbit = np.array(limit_orbits(topology, found.task.symmetry))
            limits = (share[rows.links :] / np.bincount(orbit))[orbit]
        algbw = self._problem.collective.size / float(found.time) * 1e-3
        return (_plane(self.classes, algbw, np.concatenate([links, limits]), scales=scales),)


class ProgramRates(Rates):
    """The orbit linear program, which is compiled once.

    Parameters
    ----------
    problem
        One that fluid models can say.
    classes
        What changes together; symmetries that mix them are not used.
    """

    exact = False

    def __init__(self, problem: Problem | Uniform, classes: Classes) -> None:
        super().__init__(classes)
        from formulations.engines.orbit_lp.lp import orbit_program  # noqa: PLC0415
        from formulations.solvers.cvxpy_highs import Backend  # noqa: PLC0415

        size = problem.size if isinstance(problem, Uniform) else problem.collective.size
        self._size, self._backend = size, Backend()
        self._program = orbit_program(problem, classes=classes.links).program
        rows = self._program.rows
        self._class = np.zeros(int(rows.max()) + 1, dtype=np.int64)
        self._class[rows] = classes.rows
        self._many = np.bincount(rows)

    def _found(self, scales: Scales) -> tuple[Plane, ...]:
        program = self._program
        scale = np.array([float(each) for each in scales])[self._class]
        program.scale.value = scale
        makespan = program.fastest(self._backend)
        # Duals are per unit of a row's right hand side, which is its scale.
        share = program.prices * scale
        row = (share / share.sum() / self._many)[program.rows]
        return (_plane(self.classes, self._size / makespan * 1e-3, row, scales=scales),)


def _plane(classes: Classes, algbw: float, share: np.ndarray, *, scales: Scales) -> Plane:
    """Return the plane of prices.

    Parameters
    ----------
    classes
        What changes together.
    algbw
        The best, in GB/s, at `scales`.
    share
        Of each link, then of each shared limit, in what everything costs there; they add up to 1.
    scales
        Where it is tight.
    """
    each = np.bincount(classes.rows, share, minlength=classes.many)
    weights = algbw * each / np.array([float(scale) for scale in scales])
    return Plane(tuple(weights.tolist()), prices=_held(classes.topology, share.tolist()))


def _held(topology: Topology, share: list[float]) -> dict[Ends, float]:
    """Return the shares by ends, those of shared limits with each of their links."""
    found: dict[Ends, float] = {}
    rows: Iterable[tuple[Ends, ...]] = (
        *((each.ends,) for each in topology.links),
        *(each.links for each in topology.limits),
    )
    for ends, part in zip(rows, share, strict=True):
        for link in ends if part > PRICED / len(topology.links) else ():
            found[link] = found.get(link, 0.0) + part
    return found
