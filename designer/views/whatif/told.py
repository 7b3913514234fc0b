"""What becomes of a cluster when its knobs are moved, as plain values for the page.

The best rate and its bottleneck cuts come from `formulations.analyses.best_rate`, exact where a cut
decides. What one collective takes at least, its latencies counted, is the largest of the bounds
that need no solver and of the time that it takes when repeated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ccl import text
from ccl.errors import CclError
from ccl.problem import Problem
from ccl.topology import Topology
from designer.shell.request import problem_of, read_request
from designer.views.solve.live import MOST_PAIRS, cut_told
from formulations import quick_bounds
from formulations.analyses.best_rate import Optimum, optimum
from widgets.words.comparison import BOUND_LABELS

LATENCY_GPUS = 96
"""GPUs above which no bound with latencies is proved while a slider moves: one max-flow each."""

NAMED_CUTS = 24
"""Tied cuts that are told; more are counted."""

Json = dict[str, Any]


def told(problem: Problem | str) -> Json:
    """Return the best rate, the bounds and the cuts, or ``{"trouble": ...}``.

    Parameters
    ----------
    problem
        What is asked, or why nothing can be.

    Returns
    -------
    dict
        ``algbw`` in GB/s and ``fraction``, ``each`` µs when repeated, ``once`` µs at least with
        latencies and ``once_by`` what proves that, or None; ``cuts`` and how many ``ties``.
    """
    if isinstance(problem, str):
        return {"trouble": problem}
    try:
        best = optimum(problem)
        once, once_by = _once(problem, best)
    except CclError as error:
        return {"trouble": text.sentence(str(error))}
    cuts = best.cuts[:NAMED_CUTS]
    return {
        "algbw": best.algbw,
        "fraction": None if best.fraction is None else str(best.fraction),
        "each": best.makespan,
        "once": once,
        "once_by": once_by,
        "reached": best.reached,
        "proved_by": best.proved_by,
        "size": problem.collective.size,
        "ranks": len(problem.topology.ranks),
        "cuts": [cut_told(each, problem.topology, best.makespan) for each in cuts],
        "ties": len(best.cuts),
        "held": [list(ends) for ends in best.prices],
    }


def asked(topology: Topology, request: Mapping[str, Any] | None) -> Problem | str:
    """Return the problem of a cluster and of the header's settings, or why there is none."""
    ranks = len(topology.ranks)
    if ranks < 2:
        return "Two linked GPUs have a best rate."
    if (request or {}).get("collective") == "all-to-all" and ranks**2 > MOST_PAIRS:
        return f"With {ranks:,} GPUs the solve finds the best rate of an all-to-all."
    try:
        return problem_of(topology, read_request(request))
    except CclError as error:
        return text.sentence(str(error))


def _once(problem: Problem, best: Optimum) -> tuple[float | None, str]:
    """Return µs that one collective takes at least, latencies counted, and what proves it."""
    if len(problem.topology.ranks) > LATENCY_GPUS:
        return None, f"left out above {LATENCY_GPUS} GPUs"
    bound = quick_bounds(problem)[0]
    # Of an all-reduce the optimum is the best of one kind of plan, and no bound for all.
    if best.makespan > bound.makespan and not problem.adds_for_several:
        return best.makespan, "the rate: no latency adds to it"
    return bound.makespan, BOUND_LABELS[bound.kind]
