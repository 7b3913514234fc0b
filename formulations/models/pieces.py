"""Pieces along trees: shards are cut, every piece takes a tree, and passes put them into order.

1. Trees come from column generation for the best rate, with less deep ones and ones of chance
   added (`formulations.engines.tree_columns.patterns`).
2. How much of the data each carries is a linear program that counts what comes before a crossing
   and what has to follow it (`formulations.engines.tree_columns.heads_tails`), so latency counts
   as much as bandwidth does at this size.
3. Shards are cut into as many pieces as make the shares whole numbers, or nearly: few large ones
   are quick to fill links, many small ones come close to the best rate.
4. List scheduling forwards and backwards orders the pieces on the links
   (`formulations.engines.tree_columns.pieces`).
5. Where the best order takes longer than the weights promise, pieces of the best plans take other
   trees one by one, for the rest of the time (`formulations.engines.tree_columns.exchanges`).

All-reduce is a reduce-scatter and an all-gather whose pieces are matched, so that they overlap; or
in-trees and out-trees that meet at free roots; or undirected trees, over each edge of which goes,
both ways, the sum of the side behind it; or stages in which groups exchange, add up and spread,
whose pieces may take trees as well (`formulations.engines.tree_columns.all_reduce`).

Where switches copy or add, trees branch there, and what parts or joins is one transmission
(`formulations.engines.tree_columns.routes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from ccl.errors import Infeasible
from ccl.options import option
from ccl.problem import Problem
from ccl.result import Result, Stop
from ccl.symmetry import symmetry_of
from formulations.core.preparing import clock
from formulations.core.registry import Formulation
from formulations.engines.reverse_time import adding, irreversible
from formulations.engines.tree_columns import CROSSINGS, SENDS

if TYPE_CHECKING:
    from formulations.core.run import Run

SECONDS = 10.0
"""For everything where no limit was set."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Into what shards are cut, and which trees are tried."""

    pieces: int = option(
        0, "Pieces per shard", "0: several numbers are tried, and the best counts", min=0, max=4096
    )
    seed: int = option(0, "Seed", "Of random trees", min=0)


def refuses(problem: Problem) -> str | None:
    """Explain why no trees are sought, or None."""
    from formulations.engines.tree_columns.task import refusal  # noqa: PLC0415  it loads numba

    reason = refusal(problem)
    if reason is not None:
        return reason
    collective = problem.collective
    spreads = collective.kind == "all-reduce" or not collective.reduces
    for each in problem.topology.devices:
        if each.stores and not each.copies and spreads:
            return f"{each.name} stores and cannot copy, and trees here branch where data is stored"
    many = sum(len({*each.holders, *each.destinations}) - 1 for each in collective.chunks)
    many *= 2 if collective.kind == "all-reduce" else 1
    most = SENDS if many > SENDS else CROSSINGS
    if SENDS >= many > CROSSINGS:
        most = min(SENDS, CROSSINGS * symmetry_of(problem.topology).order)
    if many > most:
        return f"whole shards make {many:,} crossings of trees, and {most:,} are the most here"
    if len({each.size for each in collective.chunks}) > 1:
        return "its chunks have several sizes, and here all pieces of a shard are alike"
    return irreversible(problem)


def run(run: Run, options: Options) -> Result:
    """Try numbers of pieces until a plan meets the bound or the time is over."""
    from formulations.engines.tree_columns.all_reduce import AllReduce  # noqa: PLC0415  it loads a solver
    from formulations.engines.tree_columns.cuts import COUNTS, Limits  # noqa: PLC0415  likewise
    from formulations.engines.tree_columns.directed import Directed  # noqa: PLC0415  likewise

    seconds = SECONDS if run.left is None else run.left
    limits = Limits(clock() + seconds, run)
    counts = (options.pieces,) if options.pieces else COUNTS
    problem = adding(run.problem) if run.problem.collective.reduces else run.problem
    if problem.collective.kind == "all-reduce":
        AllReduce(limits, seed=options.seed).offer(counts)
    else:
        Directed(problem, limits).fixed().offer(counts)
    if run.enough:
        return run.finish(run.reached)
    # Where a better plan is known elsewhere, none of its own is offered.
    if run.best is None and not run.broken and not run.late and run.best_known() == inf:
        raise Infeasible(
            f"more than {CROSSINGS:,} crossings are left to put into order, since trees that look "
            "alike meet on links; use list or orbit-trees"
        )
    return run.finish(Stop.TIME_LIMIT if run.late else Stop.PASSES)


FORMULATION = Formulation(
    name="pieces",
    title="Pieces along trees, in the best order",
    reference=(
        "Jackson, 1955 (heads and tails); Li and Willis, EJOR 56, 1992 (passes); Kirkpatrick, "
        "Gelatt and Vecchi, Science 220, 1983 (exchanges); Thakur, Rabenseifner, Gropp, IJHPCA "
        "2005 (stages); our own cut"
    ),
    collectives=frozenset({"all-gather", "reduce-scatter", "all-reduce", "broadcast", "reduce"}),
    options=Options,
    refuses=refuses,
    run=run,
    model="columns",
    whole_chunks=False,
)
