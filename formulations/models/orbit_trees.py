"""Orbit column generation with trees: the best rate, proved, and a forest that has it.

Sets: roots o, one of each orbit of a group H that leaves no GPU in its place; out-trees T of each
root over all ranks that want its data; rows i, orbits of links or of shared limits, with rate(i)
the bandwidth of all members over the order of H.

    minimise R
    sum over T of o of w[T] = 1                                       each root o
    sum over T of w[T] bytes(o(T)) count[i, T] <= R rate(i)           each row i
    w >= 0

The forest is every image of every T with the weight of T: what a link of orbit i carries is the
left side exactly, so nothing is averaged. Columns come by pricing: with the duals p of the rows as
lengths of links, a missing tree is a cheapest out-tree over cheapest paths through switches, found
for all roots at once by contracting cycles (`formulations.engines.kernels.arborescence`). What the
cheapest trees cost is a lower bound on R for any plan, so the rate is proved.

A reduction is its time reversal on the reversed cluster. All-reduce has in-trees and out-trees of
every root and shares x[o] of the data that the roots may choose:

    sum over in-trees of o of w[T] = sum over out-trees of o of w[T] = x[o],    sum of x[o] = 1,

both loads in one row; it is the best among plans that add up at roots and spread from there.
Memory and switches that copy are vertices which trees may pass or not; few are tried in all
combinations, many are searched, and then the bound is only what other arguments prove.

Weights are exact: the last basis is solved in whole numbers.

Source: thesis, section 5.2, "Additional thoughts"; arborescences by Edmonds in the form of
Gabow, Galil, Spencer and Tarjan, Combinatorica 6, 1986.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ccl.bound import Bound
from ccl.options import option
from ccl.problem import Problem
from ccl.result import ModelSize, Result, Stop
from formulations.core.preparing import clock
from formulations.core.registry import Formulation
from formulations.core.run import Run

if TYPE_CHECKING:
    from formulations.engines.tree_columns.search import Optimum

QUICK = 5.0
"""Seconds for making trees less deep where no limit was set."""

WHOLE = 20.0
"""Seconds for choosing a given number of trees where no limit was set."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Which of the forests of the best rate."""

    symmetry: bool = option(True, "Symmetry", "Roots that look alike share their trees")
    trees_per_root: int = option(
        0,
        "Trees per root",
        "That many trees of equal weight, for few chunks; 0: as many as it takes",
        min=0,
        max=256,
    )
    prefer: Literal["shallow", "gpus", "ports", "links", "any"] = option(
        "shallow",
        "Of the best, prefer",
        "shallow: few hops; gpus: little that GPUs upload and download; ports: and "
        "hosts; links: bytes times hops; any: the first found",
    )


def refuses(problem: Problem) -> str | None:
    """Explain why no forest is sought, or None."""
    from formulations.engines.tree_columns.task import refusal  # noqa: PLC0415  it loads numba

    return refusal(problem)


def run(run: Run, options: Options) -> Result:
    """Generate columns and offer the forest."""
    from formulations.engines.tree_columns.search import Search, forest_of  # noqa: PLC0415  it loads a solver
    from formulations.engines.tree_columns.task import task_of  # noqa: PLC0415

    task = task_of(run.problem, symmetric=options.symmetry)
    found = Search(
        task,
        run.backend,
        deadline=run.begin + 0.7 * run.time_limit if run.time_limit else math.inf,
        report=lambda time, bound: run.report(f"{time:.6g} µs, at least {bound:.6g}"),
    ).run()
    _prove(run, found)
    found = _second(run, found, options)
    columns, rows = len(found.pool), len(task.rows.rates) + len(task.demands)
    run.met(ModelSize(columns, rows, sum(int((each > 0).sum()) for each in found.pool.counts)))
    forest = forest_of(found)
    many = len(forest.trees) + len(forest.spread)
    run.note(
        f"{many} tree{'s' * (many > 1)}, times {forest.images} by symmetry, at most "
        f"{forest.depth} GPUs deep: {float(found.time):.9g} µs in the steady state"
    )
    run.offer(forest, message="a forest of the best rate")
    return run.end(_why(found))


def _why(found: Optimum) -> Stop:
    """Return why a search stopped."""
    if found.proved:
        return Stop.MODEL_OPTIMAL
    if found.late:
        return Stop.TIME_LIMIT
    return Stop.SEARCHED if found.rounds else Stop.EFFORT


def _second(run: Run, found: Optimum, options: Options) -> Optimum:
    """Choose among the forests of the best rate."""
    from formulations.engines.tree_columns.search import refined  # noqa: PLC0415

    if options.trees_per_root:
        return _whole(run, found, options.trees_per_root)
    if options.prefer == "any" or not found.proved:
        return found
    deadline = run.begin + 0.9 * run.time_limit if run.time_limit else clock() + QUICK
    costs = None
    if options.prefer != "shallow":
        from formulations.engines.fluid_lp.plain import link_costs  # noqa: PLC0415

        costs = link_costs(run.problem.topology, options.prefer)
        deadline = deadline if run.time_limit else math.inf
    return refined(found, costs=costs, deadline=deadline)


def _whole(run: Run, found: Optimum, trees: int) -> Optimum:
    """Take a given number of trees of equal weight for every root."""
    from formulations.engines.tree_columns.integral import integral  # noqa: PLC0415

    left = WHOLE if run.left is None else 0.8 * run.left
    made = integral(found, trees, backend=run.backend, time_limit=left)
    best = "the best of the trees found" if made.best else "the best found in time"
    run.note(f"{trees} trees per root take {made.ratio:.6g} times the time of any number, {best}")
    return made.optimum


def _prove(run: Run, found: Optimum) -> None:
    """Add the bound by prices where it holds for any plan, and say how it stands."""
    from formulations.bounds.prices import MARGIN, spanning_bounds  # noqa: PLC0415

    free = bool(len(found.task.paired))
    more: list[Bound] = []
    if free and found.bound > 0:
        proved = max(each.makespan for each in run.bounds if not each.whole_chunks)
        more = spanning_bounds(run.problem, found.each_price, proved=proved)
    elif found.bound > 0:
        words = "prices of links at which the cheapest trees of all roots cost this much"
        more = [Bound(found.bound * (1 - MARGIN), "flow", None, words, steady=True)]
    run.prove(more)
    if found.proved and free and not any(found.met_by(each) for each in more):
        run.note("no forest that adds up at roots and spreads from there has a higher rate")
    if not found.proved and found.bound:
        gap = float(found.time) / found.bound - 1
        run.note(f"trees are within {gap:.2%} of what prices prove")
    if not found.bound:
        run.note("too many devices may be passed or not for all choices: prices prove nothing")
    if not found.rounds:
        run.note("weights are those of first steps towards equal loads: no program was solved")
    elif not found.weights.basic:
        run.note("weights are rounded: the last basis has no exact solution")


FORMULATION = Formulation(
    name="orbit-trees",
    title="Orbit column generation with trees (best rate)",
    reference="thesis, section 5.2",
    collectives=frozenset(
        {"all-gather", "reduce-scatter", "all-reduce", "broadcast", "reduce", "custom"}
    ),
    options=Options,
    refuses=refuses,
    run=run,
    model="columns",
    whole_chunks=False,
)
