"""Trees: from the root to all, to the root from all, and up and down again.

Broadcast of m bytes in n chunks over a tree of p GPUs whose ports send and receive one thing at a
time (Thakur, Rabenseifner, Gropp, IJHPCA 2005; Sanders, Speck, Traeff, Parallel Computing 2009):

* ``binomial``: who has the data sends all of it to one who has not:  ⌈log2 p⌉ (α + m β);
* ``chain``: each passes on chunk after chunk; the last has the first chunk after p - 1 steps and
  one more in each of n - 1 others:  (p + n - 2) (α + m/n β);
* ``binary``: each sends a chunk to one child and in the next step to the other, so it sends in
  every step and receives in every second. With h steps until the last has the first chunk it
  takes  (h + 2n - 2) (α + m/n β);  h = 2 log2((p+1)/2) where p + 1 is a power of two;
* ``flat``: the root sends to all, one after the other:  α + (p-1) m β.

Reduce is the same on reversed links, read backwards; all-reduce is a reduce to one root and a
broadcast from it, in p c chunks of m / (p c) bytes, twice the time. Scatter of shards of m/p bytes:
on the binomial tree each subtree's shards go in one message, ⌈log2 p⌉ α + (p-1)/p m β; on the flat
one α + (p-1)/p m β; on chain and binary tree shards leave the root one in each step, those with
the longest path first, and are in flight while the others leave:  (p-1) (α + m/p β).  Gather is
scatter read backwards.

An all-gather as a gather and a broadcast has one GPU send everything several times, where all could
send from the beginning; it is not offered.

Decisions: GPUs of a host lie together, and the halves of a binary tree are parted between hosts, so
that one of them receives from outside (on a binomial tree where hosts have a power of two of GPUs).
Parents and children are joined by paths as fast as were found. An all-reduce is added up at the GPU
with the most GB/s to and from the others unless `all_reduce_root` says which.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import numpy as np

from ccl.errors import ProblemError
from ccl.options import option
from ccl.problem import Problem
from ccl.result import Result
from formulations.core.registry import Formulation
from formulations.core.run import Run
from formulations.engines.closed_forms.hosts import best_connected, from_first, laid
from formulations.engines.closed_forms.routing import Formula, Pattern
from formulations.engines.closed_forms.steps import answer, refuses
from formulations.engines.closed_forms.trees import SHAPES, Messages, Task, Tree

Shape = Literal["binomial", "binary", "chain", "flat"]

UP = frozenset({"reduce", "gather"})
"""Kinds that only go up the tree."""

WRITTEN = ("⌈log2 p⌉ (α + mβ)", "(p + n - 2) (α + mβ/n)", "(h + 2n - 2) (α + mβ/n), h = {h}")
"""Formulas of broadcasts in which so many steps lie between chunks; two GPUs are a chain."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The tree."""

    shape: Shape = option(
        "binomial",
        "Shape",
        "binomial has the fewest steps; binary and chain pass on chunk after chunk",
    )
    all_reduce_root: int | None = option(
        None,
        "Root of an all-reduce",
        "where sums are added up; by default the GPU with the fastest paths",
        unit="rank",
        min=0,
    )


def run(run: Run, options: Options) -> Result:
    """Lay the tree and send."""
    problem = run.problem
    topology, collective = problem.topology, problem.collective
    blocks = from_first(topology, _root(problem, options))
    starts = list(accumulate((len(block) for block in blocks), initial=0))
    tree = SHAPES[options.shape](starts[:-1], len(topology.ranks))
    down, up = (
        laid(each, blocks, tree.edges) if wanted else None
        for each, wanted in (
            (topology, collective.kind not in UP),
            (topology.reversed(), collective.reduces or collective.kind in UP),
        )
    )
    order = up if down is None else down
    assert order is not None
    return answer(
        run,
        Pattern(
            order,
            _sent(tree),
            _formula(problem, tree, options.shape),
            roots=np.zeros(len(collective.chunks), dtype=np.int64),
            back=up,
            one_port=True,
        ),
    )


def _root(problem: Problem, options: Options) -> int:
    """Return the rank of the root: given by the collective, or chosen."""
    collective = problem.collective
    first = collective.chunks[0]
    if collective.kind in ("broadcast", "scatter"):
        return first.holders[0]
    if collective.kind in UP:
        return first.destinations[0]
    ranks = range(collective.ranks)
    wanted = options.all_reduce_root
    if wanted is None:
        return best_connected(problem.topology, ranks, ranks)
    if wanted not in ranks:
        raise ProblemError(
            f"option all_reduce_root is {wanted}; ranks go from 0 to {collective.ranks - 1}"
        )
    return wanted


def _sent(tree: Tree) -> Callable[[Task], Messages]:
    """Return what sends the chunks of a task over a tree."""

    def sent(task: Task) -> Messages:
        if task.spreads:
            return tree.spread(task.chunk)
        return tree.gather(task) if (task.goal == 0).all() else tree.scatter(task)

    return sent


def _formula(problem: Problem, tree: Tree, shape: Shape) -> Formula:
    collective = problem.collective
    ranks, size, chunks = collective.ranks, collective.size, len(collective.chunks)
    if collective.kind in ("gather", "scatter"):
        part = (ranks - 1) / ranks * size
        if tree.stride:
            return Formula(
                "(p-1) (α + mβ/p)", lambda alpha, beta: (ranks - 1) * alpha + part * beta
            )
        turns = "⌈log2 p⌉ " if shape == "binomial" else ""
        return Formula(
            f"{turns}α + (p-1)/p mβ", lambda alpha, beta: tree.height * alpha + part * beta
        )
    twice = 2 if collective.kind == "all-reduce" else 1
    steps, part = tree.steps(chunks), size / chunks if tree.stride else size
    if shape == "flat":
        text = "α + (p-1) mβ"
        return Formula(
            f"2 ({text})" if twice > 1 else text,
            lambda alpha, beta: twice * (alpha + (ranks - 1) * size * beta),
        )
    return Formula(
        "2 " * (twice - 1) + WRITTEN[tree.stride].format(h=tree.height),
        lambda alpha, beta: twice * steps * (alpha + part * beta),
    )


FORMULATION = Formulation(
    name="tree",
    title="Tree",
    reference="Thakur, Rabenseifner, Gropp, IJHPCA 2005",
    collectives=frozenset({"broadcast", "reduce", "all-reduce", "gather", "scatter"}),
    options=Options,
    refuses=refuses,
    run=run,
)
