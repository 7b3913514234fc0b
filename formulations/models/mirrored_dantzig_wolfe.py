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
`formulations.engines.fluid_lp.dantzig_wolfe`.

Source: the thesis, section 5.2.
"""

from formulations.engines.fluid_lp.dantzig_wolfe_plan import decomposed

FORMULATION = decomposed(
    "mirrored-dantzig-wolfe",
    "Mirrored Dantzig-Wolfe (a subproblem for each class of GPUs)",
    reference="thesis, section 5.2",
    mirrored=True,
    mathematics=__doc__ or "",
)
