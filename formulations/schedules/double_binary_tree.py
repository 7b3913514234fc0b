"""Double binary tree: two binary trees, each for half of the chunks, that share no inner GPU.

In one binary tree half of the GPUs only receive, and the others send everything twice. In two
trees over the same GPUs, the second one turned so that whoever has children in the first has none
in it, each GPU sends every chunk of one half twice and none of the other (Sanders, Speck, Traeff,
Parallel Computing 2009; NCCL since 2.4). Edges have two colours, used in turn step after step, such
that no GPU sends or receives two chunks in one step
(`formulations.engines.closed_forms.trees`).

An edge is used every second step, and a place sends on what it received in the next step or the one
after. With h steps until the last place of the last tree has its first chunk, n chunks of m/n
bytes, n even, are everywhere after h + n - 2 steps:

    (h + n - 2) (α + m/n β),   h <= 2 D for trees of D levels below their roots.

Broadcast: the root stands above both trees, which are those of the p - 1 others, D = 1 +
floor(log2(p-1)). Reduce is the same on reversed links, read backwards. All-reduce: each tree has a
root of its own, at which its half of the p c chunks is added up, and from which it is spread:
2 (h + n - 2) (α + m/n β) with D = floor(log2 p), about 4 log2 p α + 2 m β for many chunks: both
halves send m bytes per GPU over one port, as a ring does.

Steps in which nothing is sent are left out, so with two GPUs, few chunks or an odd number of them
there may be fewer, and the formula says how many; with one chunk only one tree has work.

Decisions: hosts are rows of places, and parents and children are joined by paths as fast as were
found.
"""

import numpy as np

from ccl.problem import Problem
from ccl.result import Result
from formulations.core.registry import Formulation, NoOptions
from formulations.core.run import Run
from formulations.engines.closed_forms.hosts import from_first, laid
from formulations.engines.closed_forms.routing import Formula, Pattern
from formulations.engines.closed_forms.steps import answer, refuses
from formulations.engines.closed_forms.trees import Tree, double_tree, spread


def run(run: Run, options: NoOptions) -> Result:
    """Lay both trees and send."""
    problem = run.problem
    topology, collective = problem.topology, problem.collective
    kind, many = collective.kind, len(collective.chunks)
    if many < 2:
        run.note("one chunk goes along one tree only; ask for two or more")
    trees = double_tree(collective.ranks, above=kind != "all-reduce")
    pairs = [edge for tree in trees for edge in tree.edges]
    links = topology.reversed() if kind == "reduce" else topology
    roots = np.array([np.flatnonzero(tree.parent < 0)[0] for tree in trees])
    return answer(
        run,
        Pattern(
            laid(links, from_first(topology, _first(problem)), pairs),
            lambda task: spread(trees, task.chunk),
            _formula(problem, trees),
            roots=roots[np.arange(many) % 2],
            one_port=True,
        ),
    )


def _first(problem: Problem) -> int:
    """Return the rank of the root, or the first where each tree has its own."""
    first = problem.collective.chunks[0]
    if problem.collective.kind == "broadcast":
        return first.holders[0]
    return first.destinations[0]


def _formula(problem: Problem, trees: tuple[Tree, Tree]) -> Formula:
    collective = problem.collective
    many = len(collective.chunks)
    part = collective.size / many
    twice = 2 if collective.kind == "all-reduce" else 1
    steps, height = spread(trees, np.arange(many)).steps, max(tree.height for tree in trees)
    whole = many % 2 == 0 and steps == height + many - 2
    text = "2 " * (twice - 1) + f"(h + n - 2) (α + mβ/n), h = {height}"
    return Formula(
        text if whole else f"{twice * steps} (α + mβ/n)",
        lambda alpha, beta: twice * steps * (alpha + part * beta),
    )


FORMULATION = Formulation(
    name="double-binary-tree",
    title="Double binary tree",
    reference="Sanders, Speck, Traeff, Parallel Computing 2009",
    collectives=frozenset({"broadcast", "reduce", "all-reduce"}),
    refuses=refuses,
    run=run,
)
