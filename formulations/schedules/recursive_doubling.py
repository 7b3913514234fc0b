"""Recursive doubling: in step t every GPU exchanges all it has with the one 2^t places away.

Places i and j = i xor 2^t are partners in step t = 0 .. log2 p - 1; p is a power of two. (Thakur,
Rabenseifner, Gropp, IJHPCA 2005, sections 4 and 7.)

All-gather: in step t a place has the shards of its block of 2^t places and sends them all, so it
takes  log2 p α + (p-1)/p m β  on one port. Reduce-scatter is the same read backwards: recursive
halving, in which half of what is left is sent in each step.

All-reduce exchanges whole vectors and adds them up:  log2 p (α + m β).  It is the shortest there is
in steps, and sends log2 p times the data; ``halving-doubling`` sends it less than twice. For p that
is no power of two, p' = 2^floor(log2 p): the first 2 (p - p') places pair up, each odd one gives
its vector to the even one before the first step and gets the sum after the last, two steps more
(section 7).

Decisions: partners are ranks joined by paths as fast as can be found, if any order joins all pairs;
else the order of ranks. In an all-reduce two partners must be joined without a GPU between them, as
that would add its own contribution.
"""

import numpy as np

from ccl.problem import Problem
from ccl.result import Result
from formulations.core.registry import Formulation, NoOptions
from formulations.core.run import Run
from formulations.engines.closed_forms import trees
from formulations.engines.closed_forms.hosts import order_for
from formulations.engines.closed_forms.routing import Formula, Pattern, reachability
from formulations.engines.closed_forms.steps import answer
from formulations.engines.closed_forms.steps import refuses as refuses_any


def refuses(problem: Problem) -> str | None:
    """Refuse numbers of ranks that do not double, and partners that are not joined."""
    reason = refuses_any(problem)
    if reason is not None:
        return reason
    ranks = len(problem.topology.ranks)
    if problem.collective.kind == "all-reduce":
        return _apart(problem)
    if trees.is_power_of_two(ranks):
        return None
    return f"it has {ranks} GPUs, and doubling needs a power of two"


def _apart(problem: Problem) -> str | None:
    """Return which partners no path without a GPU joins."""
    ranks = problem.topology.ranks
    order = _order(problem)
    paths = reachability(problem.topology)
    for i, j in trees.partners(len(ranks)):
        src, dst = int(order[i]), int(order[j])
        if not paths.has(src, dst):
            return (
                f"no path without a GPU joins {ranks[src]} to {ranks[dst]}, and a GPU between them "
                "would add its own contribution"
            )
    return None


def run(run: Run, options: NoOptions) -> Result:
    """Double."""
    problem = run.problem
    ranks, size = len(problem.topology.ranks), problem.collective.size
    steps = ranks.bit_length() - 1
    if problem.collective.kind == "all-reduce":
        extra = 0 if ranks == 1 << steps else 2
        text = "(log2 p + 2) (α + mβ), p not a power of two" if extra else "log2 p (α + mβ)"
        formula = Formula(text, lambda alpha, beta: (steps + extra) * (alpha + size * beta))
    else:
        formula = Formula(
            "log2 p α + (p-1)/p mβ",
            lambda alpha, beta: steps * alpha + (ranks - 1) / ranks * size * beta,
        )
    return answer(run, Pattern(_order(problem), trees.doubled, formula, exchange=_exchanged))


def _order(problem: Problem) -> np.ndarray:
    return order_for(problem.topology, trees.partners(len(problem.topology.ranks)))


def _exchanged(task: trees.Task) -> trees.Messages:
    """Every two partners exchange all sums; those left over give before and get after."""
    inside, extra = trees.core(task.places), trees.beside(task.places)
    steps = len(inside).bit_length() - 1
    turns = [(inside, inside[np.arange(len(inside)) ^ (1 << t)]) for t in range(steps)]
    if len(extra):
        turns = [(extra + 1, extra), *turns, (extra, extra + 1)]
    parts = []
    for step, (src, dst) in enumerate(turns):
        chunk = np.repeat(task.chunk, len(src))
        many = len(task.chunk)
        parts.append(
            trees.Messages(np.full(len(chunk), step), chunk, np.tile(src, many), np.tile(dst, many))
        )
    return trees.Messages.joined(parts)


FORMULATION = Formulation(
    name="recursive-doubling",
    title="Recursive doubling",
    reference="Thakur, Rabenseifner, Gropp, IJHPCA 2005",
    collectives=frozenset({"all-gather", "reduce-scatter", "all-reduce"}),
    refuses=refuses,
    run=run,
)
