"""Best steady state of a problem, proved, while somebody draws.

The first of these proofs that applies:

* everything spreads from its roots to all GPUs, or is added up on the return, over relays that
  give out what they take in: the worst cut, an exact fraction
  (`formulations.engines.forestcoll.search`);
* other data that spreads, is added up, or both: trees whose prices prove that none are better
  (`formulations.engines.tree_columns.search`), where they are found at once;
* any other problem that fluid models can say: the orbit linear program
  (`formulations.engines.orbit_lp.lp`), whose prices say which links hold it down;
* pairs whose program would be large, if there is time: prices of a solver that need not have come
  to its end (`formulations.bounds.concurrent_flow`), worked out again in whole numbers;
* what is left: the largest of the quick bounds, which a plan may not reach.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from ccl.bound import Cut
from ccl.collective import Chunk
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.topology import Topology
from formulations.bounds import quick_bounds
from formulations.bounds.prices import best_of_all
from formulations.core.preparing import interpreted
from formulations.engines import steady_state
from formulations.engines.forestcoll import search
from formulations.engines.forestcoll.search import Rate, forest_rate
from formulations.engines.orbit_lp.group import acting, loads_of
from formulations.engines.tree_columns import task

PATIENCE = 2.0
"""Seconds after which trees that are not proved are given up."""

WORK = 20_000
"""Amounts, estimated, above which no linear program is made while somebody waits."""

_CLASS = ", among all plans that add up at roots and spread from there"

PRICED = 1e-6
"""Links with a smaller share of the price hold nothing down."""

Ends = tuple[str, str]


@dataclass(frozen=True)
class Optimum:
    """The best steady state.

    Parameters
    ----------
    makespan
        µs that each of many repetitions takes; latencies are hidden.
    algbw
        GB/s: size over makespan.
    fraction
        `algbw` as an exact fraction, where a cut or trees decide it.
    reached
        Whether a plan has this rate; else none is better, but none may be as good.
    proved_by
        What proves it, in words.
    every
        Whether no plan is better; else, of an all-reduce, none of those that add up at roots and
        spread from there.
    cuts
        Bottleneck cuts; several when tied, none where no cut alone decides.
    prices
        Links that hold it down: by how much of itself the makespan falls for a little more
        bandwidth, where that is unique. Empty where no program was solved.
    """

    makespan: float
    algbw: float
    fraction: Fraction | None
    reached: bool
    proved_by: str
    every: bool = True
    cuts: tuple[Cut, ...] = ()
    prices: Mapping[Ends, float] = field(default_factory=dict)


@interpreted()
def optimum(problem: Problem, *, seconds: float = 0.0) -> Optimum:
    """Return the best steady state of a problem; where the searches are not compiled, at once too.

    Parameters
    ----------
    problem
        What is to be solved.
    seconds
        For the prices of pairs whose linear program is large; without, quick bounds have to do.

    Raises
    ------
    ProblemError
        If fluid models cannot say it, or nothing has to be sent.
    Infeasible
        If a rank cannot be reached.
    """
    if search.cut_decides(problem):
        return _by_cut(problem, forest_rate(problem))
    why = steady_state.refusal(problem)
    if why is not None:
        raise ProblemError(
            f"no fluid optimum of {problem.collective.kind} on {problem.topology}: {why}"
        )
    if not any(map(_moves, problem.collective.chunks)):
        raise ProblemError(
            f"{problem.collective.kind} moves nothing: all holders are destinations already"
        )
    found = _by_trees(problem)
    if found is not None:
        return found
    if _work(problem) <= WORK:
        return _by_prices(problem)
    priced = _by_certificate(problem, seconds) if seconds else None
    return priced or _by_bound(problem)


def priceable(problem: Problem) -> bool:
    """Return whether bandwidth sensitivity (`formulations.analyses.sensitivity`) is quick enough.

    It is where cuts decide, or the orbit linear program is small.
    """
    return search.cut_decides(problem) or programmable(problem)


def programmable(problem: Problem) -> bool:
    """Return whether the orbit linear program is so small that it can be waited for."""
    return steady_state.refusal(problem) is None and _work(problem) <= WORK


def _moves(chunk: Chunk) -> bool:
    """Return whether anything of a chunk has to go anywhere."""
    adds = chunk.reduced and len(chunk.holders) > 1
    return adds or not set(chunk.destinations) <= set(chunk.holders)


def _by_cut(problem: Problem, rate: Rate) -> Optimum:
    fraction = Fraction(problem.collective.size) / rate.makespan / 1000
    return Optimum(
        makespan=float(rate.makespan),
        algbw=float(fraction),
        fraction=fraction,
        reached=True,
        proved_by=rate.bound.reference,
        cuts=rate.cuts,
    )


def _by_trees(problem: Problem) -> Optimum | None:
    """Return the rate of the best trees, or None where they are not sought or not proved."""
    if steady_state.only_pairs(problem) or task.refusal(problem) is not None:
        return None
    # CVXPY takes most of a second to load, and most problems are decided by a cut.
    from formulations.engines.tree_columns.search import best_trees  # noqa: PLC0415

    found = best_trees(problem, seconds=PATIENCE)
    if not found.proved:
        return None
    fold, many = found.task.rows.fold, len(problem.topology.links)
    share = found.prices / found.prices.sum()
    price = (share / fold.sum(axis=1)) @ fold
    fraction = Fraction(problem.collective.size) / found.time / 1000
    every = best_of_all(problem, found.each_price, float(found.time))
    return Optimum(
        makespan=float(found.time),
        algbw=float(fraction),
        fraction=fraction,
        reached=True,
        proved_by="prices of links at which the cheapest trees cost this much"
        + ("" if every else _CLASS),
        every=every,
        prices={
            link.ends: float(each)
            for link, each in zip(problem.topology.links, price, strict=True)
            if each > PRICED / many
        },
    )


def _by_prices(problem: Problem) -> Optimum:
    from formulations.engines.orbit_lp.lp import solve_orbits  # noqa: PLC0415

    found = solve_orbits(problem)
    # All rows of an orbit have the price of one together.
    price = found.prices[found.row_orbits] / np.bincount(found.row_orbits)[found.row_orbits]
    rates = steady_state.row_bandwidths(problem.topology)
    every = best_of_all(problem, price / rates, found.makespan)
    prices = held_by_ends(problem.topology, price.tolist())
    return Optimum(
        makespan=found.makespan,
        algbw=problem.collective.size / found.makespan * 1e-3,
        fraction=None,
        reached=found.exact,
        proved_by=f"the prices of {len(prices)} links in a linear program of "
        f"{found.columns:,} amounts on orbits (thesis, chapters 3 to 5)"
        + ("" if every else _CLASS),
        every=every,
        prices=prices,
    )


def _by_certificate(problem: Problem, seconds: float) -> Optimum | None:
    """Return what prices of pairs prove in so many seconds, None if no more than quick bounds."""
    if not steady_state.only_pairs(problem) or problem.collective.reduces:
        return None
    from formulations.engines.fluid_lp.certified import proved  # noqa: PLC0415  it loads CVXPY

    found = proved(problem, seconds=seconds)
    if found is None or found[0] <= _by_bound(problem).makespan:
        return None
    bound, each, rates = found
    prices = held_by_ends(problem.topology, (each * rates / (each @ rates)).tolist())
    return Optimum(
        makespan=float(bound),
        algbw=problem.collective.size / float(bound) * 1e-3,
        fraction=None,
        reached=False,
        proved_by=f"the prices of {len(prices)} links, at which the cheapest paths cost this much",
        prices=prices,
    )


def held_by_ends(topology: Topology, share: list[float]) -> dict[Ends, float]:
    """Return the shares by ends, those of shared limits with each of their links."""
    found: dict[Ends, float] = {}
    rows: Iterable[tuple[Ends, ...]] = (
        *((each.ends,) for each in topology.links),
        *(each.links for each in topology.limits),
    )
    for ends, part in zip(rows, share, strict=True):
        for link in ends if part > PRICED / len(topology.links) else ():
            found[link] = found.get(link, 0.0) + part
    return found


def _by_bound(problem: Problem) -> Optimum:
    best = next(each for each in quick_bounds(problem) if each.steady)
    return Optimum(
        makespan=best.makespan,
        algbw=problem.collective.size / best.makespan * 1e-3,
        fraction=None,
        reached=False,
        proved_by=best.reference,
        cuts=(best.witness,) if isinstance(best.witness, Cut) else (),
    )


def _work(problem: Problem) -> int:
    """Estimate the amounts of the orbit program: a flow on edges for each pair of orbits."""
    topology, loads = problem.topology, loads_of(problem)
    found = acting(topology, loads, costs=None)
    total = 0.0
    for number, load in enumerate(loads):
        many = float(len(np.unique(found.items(number, load))))
        fixed = found.fixing(number, load, item=0)
        if load.spreads:
            many *= len(np.unique(fixed.ranks)) * _duplicates(topology)
            fixed = fixed.fixing_rank(1 if int(load.roots[0]) == 0 else 0)
        total += many * len(np.unique(fixed.group.link_orbits()))
    return round(total)


def _duplicates(topology: Topology) -> float:
    """Return how many times as many edges there are when relays have a vertex for each next GPU."""
    into = sum(
        len(topology.links_in[each.name]) * len(topology.links_out[each.name])
        for each in topology.devices
        if not each.copies
    )
    return 1 + into / len(topology.links)
