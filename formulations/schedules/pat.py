"""PAT, parallel aggregated trees: halving distances, for any number of GPUs.

All-gather: every shard goes along a binomial tree from its place, the farthest first: in the step
of distance d = 2^⌈log2 p⌉⁻¹, ..., 2, 1 what is k d places from its root, k even, goes d places
further, unless that is round to the root again. Each step sends, as one message, all shards that
a place has to send in it: 1, 2, 4, ..., and p-1 in all, so on one port

    ⌈log2 p⌉ α + (p-1)/p mβ.

That is Bruck's number of steps, but the largest messages go to the nearest place, not the farthest:
they stay within a host, or on a ring cross few links. Reduce-scatter is its time reversal,
all-reduce both in turn. (Jeaugey, PAT: a new algorithm for all-gather and reduce-scatter operations
at scale, arXiv 2506.20252, 2025; NCCL has it since 2.23.)

Decisions: buffers hold whatever a step sends, so no tree is split into parts that go one after the
other; places are ranks in an order in which paths as fast as can be found join all partners, if
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
    """Send in halving distances."""
    problem = run.problem
    ranks = len(problem.topology.ranks)
    pairs = ((i, (i + hop) % ranks) for hop in _distances(ranks) for i in range(ranks))
    return answer(
        run,
        Pattern(order=order_for(problem.topology, pairs), spread=_sent, formula=_formula(problem)),
    )


def _distances(ranks: int) -> list[int]:
    """Return the distances, the farthest first."""
    return [1 << t for t in reversed(range((ranks - 1).bit_length()))]


def _sent(task: Task) -> Messages:
    """Send every shard to everyone, the farthest place first."""
    p, parts = task.places, []
    for step, hop in enumerate(_distances(p)):
        for come in range(0, p - hop, 2 * hop):
            src = (task.root + come) % p
            parts.append(Messages(np.full(len(src), step), task.chunk, src, (src + hop) % p))
    return Messages.joined(parts)


def _formula(problem: Problem) -> Formula:
    p, size = len(problem.topology.ranks), problem.collective.size
    steps, twice = len(_distances(p)), problem.collective.kind == "all-reduce"
    times = 2 if twice else 1
    return Formula(
        "2 ⌈log2 p⌉ α + 2 (p-1)/p mβ" if twice else "⌈log2 p⌉ α + (p-1)/p mβ",
        lambda alpha, beta: times * (steps * alpha + (p - 1) / p * size * beta),
    )


FORMULATION = Formulation(
    name="pat",
    title="PAT, parallel aggregated trees",
    reference="Jeaugey, arXiv 2506.20252, 2025",
    collectives=frozenset({"all-gather", "reduce-scatter", "all-reduce"}),
    refuses=refuses,
    run=run,
)
