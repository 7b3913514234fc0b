"""How a schedule is found and how a bound is proved.

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
    from formulations.analyses.explanation.explanation import explain
    from formulations.analyses.explanation.pricing import prices
    from formulations.analyses.failures.stragglers import stragglers
    from formulations.analyses.failures.study import failures
    from formulations.analyses.sensitivity.curve import rate_curve
    from formulations.analyses.sensitivity.sensitivity import sensitivity
    from formulations.campaigns.sweeps.running import sweep

__all__ = [
    "DEFAULT",
    "Formulation",
    "OptionField",
    "available",
    "cheapest_upgrade",
    "compare",
    "cost_front",
    "explain",
    "failures",
    "formulation",
    "measure",
    "option_fields",
    "pareto",
    "prices",
    "rate_curve",
    "sensitivity",
    "solve",
    "start",
    "start_comparison",
    "stragglers",
    "sweep",
    "sweep_counts",
]

_LATER = {
    "cheapest_upgrade": "formulations.analyses.expansion.upgrade",
    "compare": "formulations.analyses.comparison",
    "cost_front": "formulations.analyses.expansion.front",
    "explain": "formulations.analyses.explanation.explanation",
    "failures": "formulations.analyses.failures.study",
    "pareto": "formulations.analyses.chunk_counts",
    "prices": "formulations.analyses.explanation.pricing",
    "rate_curve": "formulations.analyses.sensitivity.curve",
    "sensitivity": "formulations.analyses.sensitivity.sensitivity",
    "start_comparison": "formulations.analyses.comparison",
    "stragglers": "formulations.analyses.failures.stragglers",
    "sweep": "formulations.campaigns.sweeps.running",
    "sweep_counts": "formulations.analyses.chunk_counts",
}


def __getattr__(name: str) -> Any:
    """Return what needs `solve` itself, once it is there."""
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
