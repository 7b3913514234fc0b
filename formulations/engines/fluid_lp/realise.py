"""Whether what a relaxation says of a group's usage can carry the group, and where it cannot.

Thesis, section 3.1, "finding provably optimal algorithms": a relaxation's usage w is checked
against what the data needs. For a group with usage w[l] of each link l,

    minimise    sum over l of x[l]
    subject to  the rows of an exact side of the group (duplicates, or labels)
                usage of l by the side <= w[l] + x[l],   x >= 0

is zero if w carries the group. Else the links with x > 0 are where the relaxation cheated. Groups
are checked one by one, since w is split among them.
"""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np

from formulations.engines.fluid_lp.multicast import spread
from formulations.engines.fluid_lp.plain import Part
from formulations.engines.fluid_lp.subsets import labelled
from formulations.engines.steady_state.graph import FluidGraph
from formulations.solvers.cvxpy_highs import Backend

SHORT = 1e-5
"""Share of a group by which usage may be short: the solver's rounding."""


@dataclass(frozen=True, eq=False)
class Check:
    """What came of a check.

    Parameters
    ----------
    short
        Bytes that each link would have to carry more, shape (links,).
    part
        The group as an exact side has it, in bytes.
    holds
        Whether the usage carries the group.
    """

    short: np.ndarray
    part: Part
    holds: bool


def usage_of(part: Part, number: int) -> np.ndarray:
    """Return the bytes of a group on each link, all steps and duplicates together."""
    links = len(part.graph.topology.links)
    return np.asarray(part.graph.rows[:links] @ part.w[:, number])


def check(
    part: Part,
    number: int,
    graph: FluidGraph,
    *,
    labels: bool,
    backend: Backend,
    time_limit: float | None = None,
) -> Check:
    """Check the usage of a group with labels, or with duplicates.

    Parameters
    ----------
    part
        Of a solved program.
    number
        Which of its groups.
    graph
        Of the same cluster: with labels the bare one, else that of duplicates.
    labels
        Whether data is labelled by its destinations.
    backend
        The solver.
    time_limit
        Seconds for it.

    Raises
    ------
    ProblemError
        If there are too many labels.
    LimitReached
        If the solver gave up.
    """
    group, usage = part.groups[number], usage_of(part, number)
    amounts, links = np.ones(1), len(usage)
    side = (
        labelled(graph, [group], amounts)
        if labels
        else spread(graph, [group], amounts, copies="exact")
    )
    short = cp.Variable(links, nonneg=True)
    loads = cp.Constant(graph.rows[:links]) @ side.total
    fits = loads <= usage / group.nbytes + short
    program = cp.Problem(cp.Minimize(np.ones(links) @ short), [fits, *side.rules])
    backend.solve(program, time_limit=time_limit)
    lacks = np.asarray(short.value, dtype=float)

    def values(variable: cp.Variable | None) -> np.ndarray | None:
        return None if variable is None else np.asarray(variable.value, dtype=float) * group.nbytes

    carried, flows, split = values(side.w), values(side.f), values(side.split)
    assert carried is not None
    found = Part(graph, (group,), part.reduces, carried, flows, side.owner, side.goal, split)
    return Check(lacks * group.nbytes, found, bool(lacks.max(initial=0.0) <= SHORT))
