"""Pairwise exchange: p - 1 steps, in each of which every place has one partner to send to.

All-to-all: in step t = 1 .. p-1 the place i exchanges shards with i xor t, if p is a power of two;
else it sends to i + t and takes in from i - t. On one port  (p-1) (α + m/p β).  Every byte goes
straight to where it is wanted, so it sends least data of all forms, in most steps.

Reduce-scatter: in step t a place sends its contribution to its partner's shard straight there,
(p-1) (α + m/p β)  as well, which suits any reduction operator. All-gather is its time reversal;
all-reduce both in turn,  2 (p-1) (α + m/p β).  (Thakur, Rabenseifner, Gropp, IJHPCA 2005, sections
5 and 6.)

Decision: places are ranks in their order. Where no path joins two ranks, a chunk goes over those
between them, which keep a copy or add it to their own.
"""

import numpy as np

from ccl.problem import Problem
from ccl.result import Result
from formulations.core.registry import Formulation, NoOptions
from formulations.core.run import Run
from formulations.engines.closed_forms.hosts import by_rank
from formulations.engines.closed_forms.routing import Formula, Pattern
from formulations.engines.closed_forms.steps import answer
from formulations.engines.closed_forms.steps import refuses as refused
from formulations.engines.closed_forms.trees import Messages, Task, is_power_of_two


def refuses(problem: Problem) -> str | None:
    """Refuse what no form takes whose chunks go straight to where they are wanted."""
    return refused(problem, straight=True)


def run(run: Run, options: NoOptions) -> Result:
    """Exchange with one partner after the other."""
    problem = run.problem
    p, size = len(problem.topology.ranks), problem.collective.size
    times = 2 if problem.collective.kind == "all-reduce" else 1
    formula = Formula(
        "2 " * (times - 1) + "(p-1) (α + m/p β)",
        lambda alpha, beta: times * (p - 1) * (alpha + size / p * beta),
    )
    return answer(run, Pattern(by_rank(problem.topology), _exchanged, formula))


def _exchanged(task: Task) -> Messages:
    """Send each chunk to its goal, or to all, in the step of that partner."""
    p = task.places
    if not task.spreads:
        turn = task.root ^ task.goal if is_power_of_two(p) else (task.goal - task.root) % p
        return Messages(turn - 1, task.chunk, task.root, task.goal)
    parts = []
    for turn in range(1, p):
        partner = task.root ^ turn if is_power_of_two(p) else (task.root + turn) % p
        step = np.full(len(task.chunk), turn - 1)
        parts.append(Messages(step, task.chunk, task.root, partner))
    return Messages.joined(parts)


FORMULATION = Formulation(
    name="pairwise",
    title="Pairwise exchange",
    reference="Thakur, Rabenseifner, Gropp, IJHPCA 2005",
    collectives=frozenset({"all-gather", "reduce-scatter", "all-reduce", "all-to-all"}),
    refuses=refuses,
    run=run,
)
