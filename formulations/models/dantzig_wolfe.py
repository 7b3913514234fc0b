"""Dantzig-Wolfe decomposition: one subproblem for the data of each GPU.

Sets: origins o; links and shared limits L with b(L) GB/s; edges e, with a duplicate of each switch
that may not copy for every GPU it leads to next.

Subproblem of o, LP (5.1): the cheapest usage w of edges on which the data of o reaches every rank
that wants it. Variables w[e] >= 0 and, for every destination d, f[e, d] >= 0:

    f[., d] is a flow of one unit from o to d,  w[e] >= f[e, d],  minimise sum of price[e] w[e]

Master: shares lambda[o, j] >= 0 of the usages j that were found, 1 for each origin in all, with

    sum over o, j and e in L of lambda[o, j] w[o, j, e] <= R b(L)
    minimise R, then with R held there the bytes on each link times its cost

Prices are the duals of the rows of L; lambda is optimal when no subproblem has a usage that costs
less than its origin pays. The plan is a forest: a usage of zeros and ones holds a tree, with its
share as weight. All steps stand in `formulations.fluid.dantzig_wolfe`.

Source: the thesis, section 5.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ccl.problem import Problem
from ccl.result import Result
from formulations.fluid.costs import CostKind
from formulations.fluid.demands import demands_of, refusal
from formulations.fluid.forests import no_forest
from formulations.mirror import no_mirror
from formulations.refusals import no_stores
from formulations.registry import Formulation
from formulations.run import Run


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is wanted beside the best rate."""

    costs: CostKind = field(
        default="gpus",
        metadata={
            "label": "Of the best, least",
            "help": "gpus: what GPUs upload and download; ports: and what hosts do; "
            "links: bytes times hops; none: any",
        },
    )


def refuses(problem: Problem) -> str | None:
    """Leave what no forest says to others."""
    reason = no_stores(problem) or no_mirror(problem) or refusal(problem)
    if reason is not None:
        return reason
    demands = demands_of(problem)
    if any(len(each.others) == 1 for each in (*demands.spreads, *demands.sums)):
        return "some data goes from one rank to one other, which takes no tree: use orbit-lp"
    return no_forest(problem, demands)


def run(run: Run, options: Options) -> Result:
    """Decompose, and offer the forest of the columns."""
    from formulations.fluid.dantzig_wolfe_plan import (  # noqa: PLC0415  it loads the solver
        solve_by_columns,
    )

    return solve_by_columns(run, options.costs, mirrored=False)


FORMULATION = Formulation(
    name="dantzig-wolfe",
    title="Dantzig-Wolfe decomposition (a subproblem for each GPU)",
    reference="thesis, section 5.1",
    collectives=frozenset({"all-gather", "reduce-scatter", "broadcast", "reduce", "custom"}),
    options=Options,
    refuses=refuses,
    run=run,
    whole_chunks=False,
    mathematics=__doc__ or "",
)
