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
share as weight. All steps stand in `formulations.engines.fluid_lp.dantzig_wolfe`.

Source: the thesis, section 5.1.
"""

from formulations.engines.fluid_lp.dantzig_wolfe_plan import decomposed

FORMULATION = decomposed(
    "dantzig-wolfe",
    "Dantzig-Wolfe decomposition (a subproblem for each GPU)",
    reference="thesis, section 5.1",
    mirrored=False,
    mathematics=__doc__ or "",
)
