"""Halving and doubling (Rabenseifner): sums are scattered, then gathered, in blocks of powers of 2.

All-reduce: a reduce-scatter by recursive halving, in step t of which partners p/2^(t+1) places
apart exchange half of what each still adds up, then an all-gather by recursive doubling, in whose
steps blocks double again. On one port and for p a power of two, with m bytes at each rank,

    2 log2 p α + 2 (p-1)/p mβ.

All-gather and reduce-scatter are one half of it, as in ``recursive-doubling``. (Thakur,
Rabenseifner, Gropp, IJHPCA 2005, sections 4 and 7.)

For p that is no power of two an all-reduce folds: p' = 2^floor(log2 p), and of the first
2 (p - p') places every odd one gives its whole vector to the even one before it, which takes part
for both and gives the sum back at the end: two more steps of α + mβ. The n chunks are added up at
the p' places in equal shares, or as nearly so as they go:

    (2 log2 p' + 2) α + 2 (1 + (p'-1)/p') mβ      where p' divides n,

else ⌈n 2^t / p'⌉ chunks in the step with blocks of 2^t places.

Decision: partners are ranks joined by paths as fast as can be found, if any order joins all pairs;
else the order of ranks.
"""

import numpy as np

from ccl.problem import Problem
from ccl.result import Result
from formulations.core.registry import Formulation, NoOptions
from formulations.core.run import Run
from formulations.engines.closed_forms.hosts import order_for
from formulations.engines.closed_forms.routing import Formula, Pattern
from formulations.engines.closed_forms.steps import answer
from formulations.engines.closed_forms.steps import refuses as refuses_any
from formulations.engines.closed_forms.trees import core, doubled, is_power_of_two, partners


def refuses(problem: Problem) -> str | None:
    """Refuse numbers of ranks that do not double, except where they fold."""
    reason = refuses_any(problem)
    ranks = len(problem.topology.ranks)
    if reason is not None or problem.collective.kind == "all-reduce" or is_power_of_two(ranks):
        return reason
    return f"it has {ranks} GPUs, and doubling needs a power of two; only an all-reduce folds"


def run(run: Run, options: NoOptions) -> Result:
    """Halve, then double."""
    problem = run.problem
    ranks = len(problem.topology.ranks)
    inside, many = core(ranks), len(problem.collective.chunks)
    return answer(
        run,
        Pattern(
            order=order_for(problem.topology, partners(ranks)),
            spread=doubled,
            formula=_formula(problem),
            roots=inside[np.arange(many) * len(inside) // many],
        ),
    )


def _formula(problem: Problem) -> Formula:
    ranks, size = len(problem.topology.ranks), problem.collective.size
    steps = ranks.bit_length() - 1
    if problem.collective.kind != "all-reduce":
        return Formula(
            "log2 p α + (p-1)/p mβ",
            lambda alpha, beta: steps * alpha + (ranks - 1) / ranks * size * beta,
        )
    if is_power_of_two(ranks):
        return Formula(
            "2 log2 p α + 2 (p-1)/p mβ",
            lambda alpha, beta: 2 * (steps * alpha + (ranks - 1) / ranks * size * beta),
        )
    many, most = len(problem.collective.chunks), 1 << steps
    share = sum(-(-many * (1 << t) // most) for t in range(steps)) / many
    said = "(p'-1)/p'" if many % most == 0 else "Σ_t ⌈n 2^t/p'⌉/n"
    return Formula(
        f"(2 log2 p' + 2) α + 2 (1 + {said}) mβ, p' = {most}",
        lambda alpha, beta: 2 * ((steps + 1) * alpha + (1 + share) * size * beta),
    )


FORMULATION = Formulation(
    name="halving-doubling",
    title="Halving and doubling",
    reference="Thakur, Rabenseifner, Gropp, IJHPCA 2005",
    collectives=frozenset({"all-gather", "reduce-scatter", "all-reduce"}),
    refuses=refuses,
    run=run,
)
