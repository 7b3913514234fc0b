"""ForestColl: spanning trees at the rate of the worst cut, an exact fraction.

The cluster is a graph of devices V with links e of b(e) GB/s; C are the GPUs, w(r) the bytes that
root r gives to all of C (all-gather: a shard each; broadcast: one root). B+(S) is the bandwidth of
the links that leave S.

1. Rate. x = min of B+(S) / w(S) over the sets S of devices that leave out a GPU (1). For each GPU t
   a flow from a source that gives x w(r) to every root r says whether a cut before t holds less,
   and which: x is lowered from cut to cut until all flows are full (Newton; the paper bisects). The
   time of the steady state is 1 / x. Reported: the cut, as the bound that proves it.
2. Trees. Let y be the largest rate of which all b(e) and x w(r) are whole multiples: link e carries
   c(e) = b(e) / y trees, root r has k(r) = x w(r) / y, all of the same weight. With a fixed number
   of k trees c(e) is U b(e) rounded down, for the least U at which they fit (section 4.5).
3. Switches. A unit of u -> w and one of w -> t become a unit of u -> t, past the switch w. So many
   can be split off at once that all flows to all GPUs stay full (theorem 8):

       min(c(u, w), c(w, t), min over t' in C of F(u, w; t') - k, min over t' of F(w, t; t') - k)

   F being maximum flows between these with some vertices joined. All of w's capacity can be split
   off like this if it gives out what it takes in. The path of every unit is recorded.
4. Trees packed. From k(r) copies of {r}, an arc u -> v is added to m copies of a tree that has
   reached u and not v, m at most (theorem 12)

       min(c(u, v), copies, F(u, v) - copies of all other trees)

   until all trees reach all GPUs. Arcs near the root are tried first, and those that can be added
   to all copies. The depth is in the log: shallowest trees are NP-hard to find.

Reduce and reduce-scatter are the same on the reversed cluster, with trees turned round. All-reduce
is both, each root adding up and spreading an equal share, along the same trees where every link has
its like the other way, unless the linear program of appendix E
(`formulations.engines.forestcoll.plans`), in which roots have shares of their own and the
bandwidth of each link is parted between the halves, is faster. That is the best of what goes up
trees to a root and down trees from it, and no bound for others.

Switches only relay, also those that could copy or add up: where a cut decides, copies along the
path gain nothing; in an all-reduce, adding up in switches may.

Source: Zhao et al., ForestColl, arXiv 2402.06787, sections 3 and 4, appendices C and E.
Decisions: GPUs may give out other than they take in; the paper requires balance of all devices, but
splitting off needs it of the vertex that is split alone, if the others are as well connected as the
flows to the GPUs (Bang-Jensen, Frank, Jackson 1995). A flow to each GPU is stored and repaired
where the paper pushes a new one for every pair and every arc: the same numbers, hundreds of times
quicker. A switch's capacity is first spread evenly, in bundles of all trees of a root, and trees
grow level by level, all at once, so that they become shallow; one root's data is cut finer where
that makes its trees shallower.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ccl.errors import LimitReached
from ccl.options import option
from ccl.problem import Problem
from ccl.result import Result
from formulations.core.registry import Formulation
from formulations.core.run import Run

if TYPE_CHECKING:
    from formulations.engines.forestcoll.plans import Planned
    from formulations.engines.forestcoll.search import Rate

Roots = Literal["auto", "equal", "free"]

SMALL = 8_000
"""Variables of a linear program of an all-reduce that takes a few seconds."""

GAIN = 1e-6
"""Shares of their own justify a linear program's trees if they save more of the time."""

GRACE = 2.0
"""Seconds that packing may take whatever the limit: loading compiled code may have used it up."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How many trees."""

    trees_per_root: int = option(
        0,
        "Trees per root",
        "The best rate with so many trees of each root; 0: as many as the best of all takes",
        min=0,
        max=1000,
    )
    scan: int = option(
        0,
        "Scan trees up to",
        "If the best rate takes more trees per root than this, the best number of "
        "trees up to it; 0: no limit",
        min=0,
        max=1000,
    )
    roots: Roots = option(
        "auto",
        "Roots of an all-reduce",
        "equal: a reduce-scatter and an all-gather; free: shares of roots and links "
        "by a linear program where that is faster; auto: the program where it is small",
    )


def refuses(problem: Problem) -> str | None:
    """Refuse what trees of relays cannot do at the rate of the worst cut."""
    from formulations.engines.forestcoll.search import refusal  # noqa: PLC0415  it loads numba

    return refusal(problem)


def run(run: Run, options: Options) -> Result:
    """Find rate, trees and paths."""
    from formulations.engines.forestcoll.search import forest_rate  # noqa: PLC0415  numba takes a while

    _say_relays(run)
    if not run.problem.adds_for_several:
        rate = forest_rate(run.problem)
        run.prove([rate.bound])
        planned = _half(run, rate, options)
    else:
        planned = _all_reduce(run, options)
    _say(run, planned)
    run.offer(planned.forest, message="a forest")
    return run.finish_rate()


def _half(run: Run, rate: Rate, options: Options) -> Planned:
    """Return the trees of a collective that spreads or adds up."""
    from formulations.engines.forestcoll.plans import best_forest, fixed_forest, load_of  # noqa: PLC0415

    run.report(f"at most {float(rate.shards):.6g} GB/s of each root, {rate.flows} flows")
    trees = options.trees_per_root
    many = int(load_of(rate).trees.max())
    if not trees and 0 < options.scan < many:
        trees = _scanned(run, rate, options.scan)
    watch = _watch(run)
    return fixed_forest(rate, trees, watch=watch) if trees else best_forest(rate, watch=watch)


def _watch(run: Run) -> Callable[[int, int], None]:
    begin = time.perf_counter()

    def watch(done: int, of: int) -> None:
        run.report(f"{done} of {of} roots have their trees")
        if run.expired and done < of and time.perf_counter() - begin > GRACE:
            raise LimitReached(
                f"{run.formulation} had trees for {done} of {of} roots after {run.seconds:.0f} s"
            )

    return watch


def _scanned(run: Run, rate: Rate, most: int) -> int:
    """Return the number of trees per root, up to `most`, with the best rate."""
    from formulations.engines.forestcoll.plans import makespan_of  # noqa: PLC0415
    from formulations.engines.forestcoll.search import fixed_rate  # noqa: PLC0415

    best = rate.speed / rate.network.unit
    times = {
        many: makespan_of(rate.network, fixed_rate(rate.network, many, best=best))
        for many in range(1, most + 1)
    }
    chosen = min(times, key=lambda many: (times[many], many))
    short = float(times[chosen] / rate.makespan - 1)
    run.note(f"{chosen} trees per root are {short:.2%} slower than the best rate")
    return chosen


def _all_reduce(run: Run, options: Options) -> Planned:
    from formulations.engines.forestcoll.plans import combined, halves, mirrored  # noqa: PLC0415
    from formulations.engines.forestcoll.search import forest_rate, symmetric_links  # noqa: PLC0415

    up, down = halves(run.problem)
    gather = forest_rate(down)
    alike = symmetric_links(gather.network) is not None
    reduce = gather if alike else forest_rate(up)
    free = _free(run, options, equal=float(reduce.makespan + gather.makespan))
    if free is not None:
        return free
    gathering = _half(run, gather, options)
    return combined(mirrored(gathering) if alike else _half(run, reduce, options), gathering)


def _free(run: Run, options: Options, *, equal: float) -> Planned | None:
    """Return the trees of a linear program if it is requested and faster than `equal` µs."""
    if options.roots == "equal" or options.trees_per_root or options.scan:
        return None
    small = 2 * len(run.problem.topology.ranks) * len(run.problem.topology.links) <= SMALL
    if options.roots == "auto" and not small:
        run.note("the linear program of free roots is large and was not tried (option roots)")
        return None
    from formulations.engines.forestcoll.plans import shared_forest, shares_of  # noqa: PLC0415

    shares = shares_of(run.problem, backend=run.backend, time_limit=run.left)
    run.met(shares.size)
    run.note(f"no trees up to roots and down again take less than {shares.makespan:.6g} µs")
    if shares.makespan >= equal * (1 - GAIN):
        return None
    found = shared_forest(run.problem, shares, backend=run.backend, watch=_watch(run))
    return found if found is not None and found.makespan < equal * (1 - GAIN) else None


def _say(run: Run, planned: Planned) -> None:
    forest = planned.forest
    kinds = len(forest.trees) + len(forest.spread)
    run.note(
        f"{planned.trees} trees per root, {kinds} different ones in all, "
        f"{forest.depth} GPUs deep, {float(planned.makespan):.6g} µs in the steady state"
    )


def _say_relays(run: Run) -> None:
    """Report that switches could do more than the plan needs."""
    adding = run.problem.adds_for_several
    for device in run.problem.topology.devices:
        if not device.stores and (device.copies or device.reduces):
            gain = "in an all-reduce that may be beaten" if adding else "the cut allows no more"
            run.note(f"{device.name} could copy or add up, and relays here: {gain}")
            return


FORMULATION = Formulation(
    name="forestcoll",
    title="ForestColl (spanning trees at the rate of the worst cut)",
    reference="Zhao et al., ForestColl, arXiv 2402.06787",
    collectives=frozenset(
        {"all-gather", "reduce-scatter", "all-reduce", "broadcast", "reduce", "custom"}
    ),
    options=Options,
    refuses=refuses,
    run=run,
    whole_chunks=False,
    searched_by="own search",
)
