"""What the two Dantzig-Wolfe decompositions share as formulations: options, refusals, the run."""

from __future__ import annotations

from dataclasses import dataclass, field

from ccl.problem import Problem
from ccl.result import Result
from formulations.core.model_size import Anatomy
from formulations.core.refusals import no_crumbs, no_stores
from formulations.core.registry import Formulation
from formulations.core.run import Run
from formulations.engines.fluid_lp.costs import COST_ROW, CostKind
from formulations.engines.fluid_lp.forests import no_forest
from formulations.engines.reverse_time import no_mirror
from formulations.engines.steady_state.demands import demands_of, refusal
from formulations.engines.steady_state.graph import graph_of, without_copies


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is wanted beside the best rate."""

    costs: CostKind = field(default="gpus", metadata=COST_ROW)


GROUPS = {
    "conservation": "what flows into a vertex for one destination flows out of it, or stays there",
    "usage": "what crosses an edge is as much as any flow that shares it",
}
"""What the constraints of a subproblem say."""


def anatomy(problem: Problem, options: Options) -> Anatomy:
    """Count the first subproblem; the master has a row for each link and each subproblem."""
    del options
    demands = demands_of(problem)
    group = (*demands.spreads, *demands.sums)[0]
    topology = problem.topology if demands.spreads else problem.topology.reversed()
    graph = without_copies(graph_of(topology))
    goals = len(group.others)
    rows = {"conservation": graph.vertices * goals, "usage": graph.edges * goals}
    note = "each of its subproblems, solved again and again; the master's columns come of them"
    return Anatomy(graph.edges * (1 + goals), 4 * graph.edges * goals, rows, note)


def decomposed(
    name: str, title: str, *, reference: str, mirrored: bool, mathematics: str
) -> Formulation:
    """Return the decomposition per origin, or mirrored per class of origins."""

    def run(run: Run, options: Options) -> Result:
        """Decompose, and offer the forest of the columns."""
        from formulations.engines.fluid_lp.dantzig_wolfe_plan import (  # noqa: PLC0415  it loads the solver
            solve_by_columns,
        )

        return solve_by_columns(run, options.costs, mirrored=mirrored)

    return Formulation(
        name=name,
        title=title,
        reference=reference,
        collectives=frozenset({"all-gather", "reduce-scatter", "broadcast", "reduce", "custom"}),
        options=Options,
        refuses=_refuses,
        run=run,
        model="columns",
        anatomy=anatomy,
        groups=GROUPS,
        whole_chunks=False,
        mathematics=mathematics,
    )


def _refuses(problem: Problem) -> str | None:
    """Leave what no forest says to others."""
    reason = no_stores(problem) or no_mirror(problem) or no_crumbs(problem) or refusal(problem)
    if reason is not None:
        return reason
    demands = demands_of(problem)
    if demands.free:
        return "a sum for everybody has no origin of its own: use thesis-fluid or orbit-trees"
    if any(len(each.others) == 1 for each in (*demands.spreads, *demands.sums)):
        return "some data goes from one rank to one other, which takes no tree: use orbit-lp"
    return no_forest(demands)
