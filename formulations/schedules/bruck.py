"""Bruck: in step t every place sends on what it has to the place 2^t further on, for any p.

All-gather: in step t = 0 .. ⌈log2 p⌉ - 1 the place i has the shards of min(2^t, p) places up to
its own and sends as many of them as are new there to i + 2^t: 2^t shards, in the last step what is
left, p - 2^t. On one port  ⌈log2 p⌉ α + (p-1)/p mβ.  Reduce-scatter is its time reversal,
all-reduce both in turn,  2 ⌈log2 p⌉ α + 2 (p-1)/p mβ.

All-to-all: a chunk that has to go d places goes 2^t of them in every step t whose bit is set in d,
so it travels over other ranks and log2 p steps suffice. In step t a place sends the n_t shards
whose distance 1 <= d < p has bit t:

    ⌈log2 p⌉ α + Σ_t n_t/p mβ  =  log2 p (α + m/2 β)      p a power of two.

(Bruck, Ho, Kipnis, Upfal, Weathersby, IEEE TPDS 8, 1997; Thakur, Rabenseifner, Gropp, IJHPCA 2005,
sections 4 and 6. There shards go to lower places; here all go to higher ones.)

Decision: places are ranks in an order in which paths as fast as can be found join all partners, if
there is one; else the order of ranks.
"""

import numpy as np

from ccl.problem import Problem
from ccl.result import Result
from formulations.core.registry import Formulation, NoOptions
from formulations.core.run import Run
from formulations.engines.closed_forms.hosts import order_for
from formulations.engines.closed_forms.routing import Formula, Pattern
from formulations.engines.closed_forms.steps import answer, refuses
from formulations.engines.closed_forms.trees import Messages, Task


def run(run: Run, options: NoOptions) -> Result:
    """Send in doubling distances."""
    problem = run.problem
    ranks = len(problem.topology.ranks)
    pairs = ((i, (i + (1 << t)) % ranks) for t in range(_steps(ranks)) for i in range(ranks))
    return answer(
        run,
        Pattern(order=order_for(problem.topology, pairs), spread=_sent, formula=_formula(problem)),
    )


def _steps(ranks: int) -> int:
    return (ranks - 1).bit_length()


def _sent(task: Task) -> Messages:
    """Send shards to everyone, or chunks each to its own goal."""
    parts = []
    p = task.places
    far = (task.goal - task.root) % p
    for t in range(_steps(p)):
        hop = 1 << t
        for passed in range(min(hop, p - hop) if task.spreads else 1):
            # How far a chunk has come, and whether it goes on in this step.
            come = np.full(len(far), passed) if task.spreads else far % hop
            going = np.ones(len(far), dtype=bool) if task.spreads else far & hop > 0
            src = (task.root + come)[going] % p
            chunk = task.chunk[going]
            parts.append(Messages(np.full(len(chunk), t), chunk, src, (src + hop) % p))
    return Messages.joined(parts)


def _formula(problem: Problem) -> Formula:
    p, size = len(problem.topology.ranks), problem.collective.size
    steps = _steps(p)
    kind = problem.collective.kind
    if kind == "all-to-all":
        share = sum(int(d).bit_count() for d in range(1, p)) / p
        power = p & (p - 1) == 0
        text = "log2 p (α + m/2 β)" if power else "⌈log2 p⌉ α + Σ_t n_t/p mβ"
        return Formula(text, lambda alpha, beta: steps * alpha + share * size * beta)
    times = 2 if kind == "all-reduce" else 1
    return Formula(
        "2 ⌈log2 p⌉ α + 2 (p-1)/p mβ" if times == 2 else "⌈log2 p⌉ α + (p-1)/p mβ",
        lambda alpha, beta: times * (steps * alpha + (p - 1) / p * size * beta),
    )


FORMULATION = Formulation(
    name="bruck",
    title="Bruck",
    reference="Bruck et al., IEEE TPDS 8, 1997; Thakur, Rabenseifner, Gropp, IJHPCA 2005",
    collectives=frozenset({"all-gather", "reduce-scatter", "all-reduce", "all-to-all"}),
    refuses=refuses,
    run=run,
)
