"""How many variables and rows the model of steps has: `fluid_lp.stepwise`, uncompiled."""

from __future__ import annotations

import numpy as np

from ccl.problem import Problem
from formulations.core.model_size import Anatomy
from formulations.engines.steady_state.graph import graph_of, in_steps, without_copies

GROUPS = {
    "conservation": "what flows into a vertex for one destination flows out of it, or stays there",
    "usage": "a chunk crosses an edge if any flow of it does",
    "room": "what a link or a shared limit carries in a step fits into it",
    "switch": "a chunk leaves what may neither copy nor store once",
}
"""What the constraints say."""


def count_steps(problem: Problem, steps: int) -> Anatomy:
    """Count the model of so many steps."""
    graph = in_steps(without_copies(graph_of(problem.topology)), steps)
    chunks = problem.collective.chunks
    pairs = sum(len({*each.destinations} - {*each.holders}) for each in chunks)
    carrying = np.flatnonzero(graph.link >= 0)
    stores = np.array([each.stores for each in graph.topology.devices])[graph.device]
    held = ~graph.copies & ~stores
    leaving = int(held[graph.src[carrying]].sum())
    rows = {
        "conservation": graph.vertices * pairs,
        "usage": len(carrying) * pairs,
        "room": steps * graph.rows.shape[0],
        "switch": int(held.sum()) * len(chunks),
    }
    variables = len(carrying) * len(chunks) + graph.edges * pairs
    nonzeros = 2 * graph.edges * pairs + 2 * len(carrying) * pairs
    nonzeros += (graph.rows.nnz + leaving) * len(chunks)
    return Anatomy(variables, nonzeros, rows)
