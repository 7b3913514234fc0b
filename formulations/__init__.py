"""Formulations: methods that find a schedule and prove a bound.

>>> from formulations import solve
>>> from gallery import open_cluster
>>> from ccl.collective import all_gather
>>> from ccl.problem import Problem
>>> problem = Problem(open_cluster("dgx-1v"), all_gather(8, 1e6))
>>> solve(problem).makespan  # doctest: +SKIP

Importing this package loads no solver; a formulation loads its own when it runs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ccl.options import OptionField, option_fields
from formulations.core.registry import Formulation, available, formulation
from formulations.solving.api import DEFAULT, measure, solve, start

if TYPE_CHECKING:
    from formulations.analyses.chunk_counts import pareto, sweep_counts
    from formulations.analyses.comparison import compare, start_comparison
    from formulations.analyses.expansion.front import cost_front
    from formulations.analyses.expansion.upgrade import cheapest_upgrade
    from formulations.analyses.explanation import explain, prices
    from formulations.analyses.failures.study import failures, stragglers
    from formulations.analyses.sensitivity.curve import rate_curve
    from formulations.analyses.sensitivity.sensitivity import sensitivity
    from formulations.bounds import lower_bounds, quick_bounds
    from formulations.campaigns.sweeps.running import sweep
    from formulations.core.preparing import prepare_searches
    from formulations.core.registry import Speed
    from formulations.core.run import Progress
    from formulations.core.weighted_objectives import prioritised
    from formulations.engines.taccl.sketching import default_sketch
    from formulations.jobs.child import (
        Child,
        ResourceLimits,
        end_tree,
        leave,
        memory_each,
        until_abandoned,
    )
    from formulations.jobs.solve_job import SolveJob, ended

__all__ = [
    "DEFAULT",
    "Child",
    "Formulation",
    "OptionField",
    "Progress",
    "ResourceLimits",
    "SolveJob",
    "Speed",
    "available",
    "cheapest_upgrade",
    "compare",
    "cost_front",
    "default_sketch",
    "end_tree",
    "ended",
    "explain",
    "failures",
    "formulation",
    "leave",
    "lower_bounds",
    "measure",
    "memory_each",
    "option_fields",
    "pareto",
    "prepare_searches",
    "prices",
    "prioritised",
    "quick_bounds",
    "rate_curve",
    "sensitivity",
    "solve",
    "start",
    "start_comparison",
    "stragglers",
    "sweep",
    "sweep_counts",
    "until_abandoned",
]

_LATER = {
    "Child": "formulations.jobs.child",
    "Progress": "formulations.core.run",
    "ResourceLimits": "formulations.jobs.child",
    "SolveJob": "formulations.jobs.solve_job",
    "Speed": "formulations.core.registry",
    "cheapest_upgrade": "formulations.analyses.expansion.upgrade",
    "compare": "formulations.analyses.comparison",
    "cost_front": "formulations.analyses.expansion.front",
    "default_sketch": "formulations.engines.taccl.sketching",
    "end_tree": "formulations.jobs.child",
    "ended": "formulations.jobs.solve_job",
    "explain": "formulations.analyses.explanation",
    "failures": "formulations.analyses.failures.study",
    "leave": "formulations.jobs.child",
    "lower_bounds": "formulations.bounds",
    "memory_each": "formulations.jobs.child",
    "pareto": "formulations.analyses.chunk_counts",
    "prepare_searches": "formulations.core.preparing",
    "prices": "formulations.analyses.explanation",
    "prioritised": "formulations.core.weighted_objectives",
    "quick_bounds": "formulations.bounds",
    "rate_curve": "formulations.analyses.sensitivity.curve",
    "sensitivity": "formulations.analyses.sensitivity.sensitivity",
    "start_comparison": "formulations.analyses.comparison",
    "stragglers": "formulations.analyses.failures.study",
    "sweep": "formulations.campaigns.sweeps.running",
    "sweep_counts": "formulations.analyses.chunk_counts",
    "until_abandoned": "formulations.jobs.child",
}


def __getattr__(name: str) -> Any:
    """Return what needs `solve` itself, once it is there."""
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
