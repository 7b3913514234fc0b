"""Formulations: methods that find a schedule and prove a bound.

>>> from formulations import solve
>>> from gallery import open_cluster
>>> from ccl.collective import all_gather
>>> from ccl.problem import Problem
>>> problem = Problem(open_cluster("dgx-1v"), all_gather(8, 1e6))
>>> solve(problem).makespan  # doctest: +SKIP

Importing this package loads nothing, so that a process can be begun before what it is begun for;
a formulation loads its solver when it runs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ccl.options import OptionField, option_fields
    from formulations.analyses.best_rate import optimum
    from formulations.analyses.chunk_counts import pareto, sends_front, sweep_counts
    from formulations.analyses.comparison import compare, start_comparison
    from formulations.analyses.expansion.front import cost_front
    from formulations.analyses.expansion.upgrade import cheapest_upgrade
    from formulations.analyses.explanation import explain, prices
    from formulations.analyses.failures.study import failures, stragglers
    from formulations.analyses.sensitivity.changes import rate_curve
    from formulations.analyses.sensitivity.sensitivity import sensitivity
    from formulations.bounds import lower_bounds, quick_bounds
    from formulations.campaigns.sweeps.running import sweep
    from formulations.core.preparing import prepare_searches
    from formulations.core.registry import Formulation, Speed, available, formulation
    from formulations.core.run import Progress
    from formulations.core.weighted_objectives import prioritised
    from formulations.engines.taccl.sketching import default_sketch
    from formulations.jobs.child import (
        Child,
        ResourceLimits,
        answer_one,
        begun_ahead,
        end_tree,
        memory_each,
    )
    from formulations.jobs.solve_job import SolveJob, ended
    from formulations.solving.api import DEFAULT, measure, solve, start

__all__ = [
    "DEFAULT",
    "Child",
    "Formulation",
    "OptionField",
    "Progress",
    "ResourceLimits",
    "SolveJob",
    "Speed",
    "answer_one",
    "available",
    "begun_ahead",
    "cheapest_upgrade",
    "compare",
    "cost_front",
    "default_sketch",
    "end_tree",
    "ended",
    "explain",
    "failures",
    "formulation",
    "lower_bounds",
    "measure",
    "memory_each",
    "optimum",
    "option_fields",
    "pareto",
    "prepare_searches",
    "prices",
    "prioritised",
    "quick_bounds",
    "rate_curve",
    "sends_front",
    "sensitivity",
    "solve",
    "start",
    "start_comparison",
    "stragglers",
    "sweep",
    "sweep_counts",
]

_LATER = {
    name: module
    for module, names in {
        "ccl.options": "OptionField option_fields",
        "formulations.analyses.best_rate": "optimum",
        "formulations.analyses.chunk_counts": "sends_front pareto sweep_counts",
        "formulations.analyses.comparison": "compare start_comparison",
        "formulations.analyses.expansion.front": "cost_front",
        "formulations.analyses.expansion.upgrade": "cheapest_upgrade",
        "formulations.analyses.explanation": "explain prices",
        "formulations.analyses.failures.study": "failures stragglers",
        "formulations.analyses.sensitivity.changes": "rate_curve",
        "formulations.analyses.sensitivity.sensitivity": "sensitivity",
        "formulations.bounds": "lower_bounds quick_bounds",
        "formulations.campaigns.sweeps.running": "sweep",
        "formulations.core.preparing": "prepare_searches",
        "formulations.core.registry": "Formulation Speed available formulation",
        "formulations.core.run": "Progress",
        "formulations.core.weighted_objectives": "prioritised",
        "formulations.engines.taccl.sketching": "default_sketch",
        "formulations.jobs.child": "Child ResourceLimits answer_one begun_ahead end_tree "
        "memory_each",
        "formulations.jobs.solve_job": "SolveJob ended",
        "formulations.solving.api": "DEFAULT measure solve start",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> Any:
    """Return what is requested, loaded now."""
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
