"""Mirrored Dantzig-Wolfe: one subproblem for each class of origins that look alike.

Sets: classes k of ranks that symmetries of the cluster and the problem exchange, with a
representative o[k] and elements pi[k, i], i = 1 .. |k|, one of which takes o[k] to each rank of the
class; links and shared limits L with b(L) GB/s.

Subproblem of class k, LP (5.2): the cheapest usage w of edges on which the data of o[k] reaches
every rank that wants it, where an edge e costs the sum over i of the price of pi[k, i] e.
Master: shares lambda[j] >= 0 of the usages j that were found, 1 for each class in all, with

    sum over j of k and i, and e in L, of lambda[j] w[j, e'] <= R b(L),   e = pi[k, i] e'
    minimise R, then with R held there the bytes on each link times its cost

Prices are the duals of the rows of L, lambda is optimal when no subproblem has a usage that costs
less than its class pays. The average of an optimum over all symmetries is an optimum, and in it
the usages of a class are images of one; so nothing is lost by choosing them so from the start.

The plan is a forest: a usage of zeros and ones holds a tree, whose images under pi[k, i] have its
share as weight. All steps and what the text of the thesis leaves open stand in
`formulations.fluid.dantzig_wolfe`.

Source: the thesis, section 5.2.
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

    return solve_by_columns(run, options.costs, mirrored=True)


FORMULATION = Formulation(
    name="mirrored-dantzig-wolfe",
    title="Mirrored Dantzig-Wolfe (a subproblem for each class of GPUs)",
    reference="thesis, section 5.2",
    collectives=frozenset({"all-gather", "reduce-scatter", "broadcast", "reduce", "custom"}),
    options=Options,
    refuses=refuses,
    run=run,
    whole_chunks=False,
    mathematics=__doc__ or "",
)
