"""Lower bounds on the makespan that hold for every plan, each with its witness.

Unless whole chunks are requested, chunks may be split without end, copied, stored and cut through
switches at will; what is proved here no verified plan can beat.

With no latency, what cuts, shared limits, groups and prices prove holds for the steady state as
well (`Bound.steady`): a plan that repeats a steady state of R µs N times solves N times the size
in N R µs and what it takes to begin and to end, which does not grow with N; these bounds grow with
the size as N does. Where there are latencies the largest of them without is one more bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

import numpy as np

from ccl.bound import Bound
from ccl.errors import ProblemError
from ccl.problem import Problem
from formulations.bounds.cut_times import chosen_cuts, cut_time_bounds
from formulations.bounds.cuts import (
    Network,
    common_cuts,
    cut_bounds,
    joint_bounds,
    leaving_of,
    total_bounds,
)
from formulations.bounds.demand import Floats, Mask
from formulations.bounds.gathering import gathering_bounds
from formulations.bounds.mean_latency import mean_latency_bounds
from formulations.bounds.paths import path_bound
from formulations.bounds.prices import binding_cuts, price_bound, rows_of
from formulations.bounds.under_windows import window_bounds
from formulations.bounds.unsplit import unsplit_bounds

FLOW_SECONDS = 30.0
"""For a program of few amounts (`formulations.bounds.concurrent_flow`), which never takes that."""


def lower_bounds(
    problem: Problem, *, whole_chunks: bool = False, seconds: float = 5.0
) -> tuple[Bound, ...]:
    """Return lower bounds on the makespan, the largest first: all that are known here.

    Parameters
    ----------
    problem
        What is to be solved.
    whole_chunks
        Whether plans that split chunks may be left out; bounds that need this say so.
    seconds
        For a large linear program of `flow_bounds`, and again for cuts of `timed_bounds`.

    Raises
    ------
    ProblemError
        If nothing has to be sent, so that no time can be proved.
    """
    known = initial_bounds(problem, quick=False, whole_chunks=whole_chunks, seconds=seconds)
    return tuple(sorted((*known, *timed_bounds(problem, known=known, seconds=seconds)), key=_order))


def initial_bounds(
    problem: Problem, *, quick: bool, whole_chunks: bool, seconds: float = 0.0
) -> tuple[Bound, ...]:
    """Return the lower bounds with which a solve begins, the largest first.

    Parameters
    ----------
    problem
        What is to be solved.
    quick
        Whether only those that need no solver; else those of `flow_bounds` as well.
    whole_chunks
        Whether plans that split chunks may be left out.
    seconds
        For a large linear program of `flow_bounds`.
    """
    found = quick_bounds(problem, whole_chunks=whole_chunks)
    flow = () if quick else flow_bounds(problem, known=found, seconds=seconds)
    if flow:
        found = tuple(each for each in found if each.kind != "flow")
    return tuple(sorted((*found, *flow), key=_order))


def quick_bounds(problem: Problem, *, whole_chunks: bool = False) -> tuple[Bound, ...]:
    """Return the bounds that need no solver, the largest first.

    Parameters
    ----------
    problem, whole_chunks
        As for `lower_bounds`.

    Raises
    ------
    ProblemError
        If nothing has to be sent.
    """
    network = Network(problem)
    cuts = [*common_cuts(network), *binding_cuts(network)]
    found = [*_repeated(network, cuts), *window_bounds(network, cuts)]
    found += mean_latency_bounds(network)
    found += _paths(network, whole_chunks=whole_chunks)
    if whole_chunks:
        found += unsplit_bounds(network, cuts)
    if not found:
        raise ProblemError(
            f"{problem.collective.kind} moves nothing: all holders are destinations already"
        )
    found += _flow(network, proved=_for_all(found), seconds=None)
    return tuple(sorted(found, key=_order))


def flow_bounds(
    problem: Problem, *, known: Iterable[Bound] = (), seconds: float = 0.0
) -> tuple[Bound, ...]:
    """Return what the best prices of links prove, by a linear program; nothing if it is too large.

    It takes CVXPY, which is slow to load, so call it when `quick_bounds` are not met.

    Parameters
    ----------
    problem
        What is to be solved.
    known
        What is proved already: the latencies of a link count as far as these reach.
    seconds
        For a program of many amounts, links times sources; without, only few are tried.
    """
    return tuple(_flow(Network(problem), proved=_for_all(known), seconds=seconds))


def timed_bounds(problem: Problem, *, known: Iterable[Bound], seconds: float) -> tuple[Bound, ...]:
    """Return what cuts prove where latencies differ; nothing if no more.

    Parameters
    ----------
    problem
        What is to be solved.
    known
        What is proved already.
    seconds
        After which no further cut is tried.
    """
    network = Network(problem)
    cuts = chosen_cuts(network, [*common_cuts(network), *binding_cuts(network)])
    proved = _for_all(known)
    found = gathering_bounds(network, cuts, proved=proved, seconds=seconds)
    proved = max(proved, _for_all(found))
    return (*found, *cut_time_bounds(network, cuts, proved=proved, seconds=seconds))


def best_bound(problem: Problem, *, whole_chunks: bool = False) -> Bound:
    """Return the largest lower bound on the makespan.

    Raises
    ------
    ProblemError
        If nothing has to be sent.
    """
    return lower_bounds(problem, whole_chunks=whole_chunks)[0]


def _order(bound: Bound) -> tuple[float, int]:
    """Sort by makespan; of equal ones those first that show most on a drawing."""
    described: tuple[str, ...] = ("cut", "ejection", "injection", "stages", "path", "group", "flow")
    exponent = math.floor(math.log10(bound.makespan))
    return -round(bound.makespan, 9 - exponent), described.index(bound.kind)


def _repeated(network: Network, cuts: list[Mask]) -> list[Bound]:
    """Return what cuts, limits and groups prove, and the largest of it for the steady state."""
    leaving = leaving_of(network, cuts)
    found = [*cut_bounds(network, cuts, leaving), *joint_bounds(network), *total_bounds(network)]
    if not network.alpha.any():
        return [replace(each, steady=True) for each in found]
    still = _Still(network.problem)
    steady = [*cut_bounds(still, cuts, leaving), *joint_bounds(still), *total_bounds(still)]
    return [*found, _for_steady(_largest(steady))] if steady else found


def _for_all(bounds: Iterable[Bound]) -> float:
    """Return the µs that every plan takes, whether or not it splits chunks."""
    return max((each.makespan for each in bounds if not each.whole_chunks), default=0.0)


def _largest(bounds: Iterable[Bound | None]) -> Bound:
    return max((each for each in bounds if each), key=lambda bound: bound.makespan)


def _for_steady(bound: Bound) -> Bound:
    return replace(bound, steady=True, reference=f"{bound.reference}; without latencies")


class _Still(Network):
    """A network as if no link had a latency."""

    @cached_property
    def alpha(self) -> Floats:
        """(links,): zeros."""
        return np.zeros(len(self.problem.topology.links))


def _paths(network: Network, *, whole_chunks: bool) -> list[Bound]:
    kinds = {False, whole_chunks}
    found = [path_bound(network, whole_chunks=kind) for kind in sorted(kinds)]
    return [each for each in found if each is not None]


def _flow(network: Network, *, proved: float, seconds: float | None) -> list[Bound]:
    """Return what prices of links prove: equal ones, or with seconds the best or equal ones."""
    traffic = network.demand.traffic
    sources, sinks = int(traffic.any(axis=1).sum()), int(traffic.any(axis=0).sum())
    if len(network.demand.sizes) or min(sources, sinks) < 2:
        return []
    links = len(network.bandwidth)
    rows = rows_of(network, proved)
    tried = [(np.arange(len(rows.rates)) < links).astype(float)]
    if seconds is not None:
        # Loading CVXPY takes longer than all other bounds together.
        from formulations.bounds.concurrent_flow import INTERIOR, LARGEST, ConcurrentFlow  # noqa: PLC0415

        few = sources * links <= INTERIOR
        if sources * links > (LARGEST if seconds else INTERIOR):
            return []
        flow = ConcurrentFlow(network, rows)
        flow.solve(seconds=FLOW_SECONDS if few else seconds)
        tried.append(flow.prices)
    found = [price_bound(network, rows, prices) for prices in tried]
    best = _largest(found)
    if not network.alpha.any():
        return [replace(best, steady=True)]
    still = replace(rows, waits=np.zeros_like(rows.waits))
    steady = _largest([price_bound(network, still, prices) for prices in tried])
    return [best, _for_steady(steady)]
