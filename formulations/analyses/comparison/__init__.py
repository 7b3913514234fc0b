"""Comparison of methods on one problem: the same replay, the same proved bound, over sizes.

Every row is a whole solve, verified and replayed; a method that refuses or fails keeps its row
with the reason. Gaps are to one bound for each size, which holds for every plan: chunks may be
split without end. What a method proves for whole chunks only stays with its own result.

>>> from formulations import compare
>>> from gallery import open_cluster
>>> from ccl.collective import all_gather
>>> from ccl.problem import Problem
>>> problem = Problem(open_cluster("dgx-1v"), all_gather(8, 1e6))
>>> compare(problem, ("ring", "list:passes=40"), time_limit=10).crossovers()  # doctest: +SKIP
"""

from formulations.analyses.comparison.child import compare
from formulations.analyses.comparison.jobs import (
    ComparisonJob,
    comparison_from_json,
    comparison_to_json,
    start_comparison,
)
from formulations.analyses.comparison.table import (
    SIZES,
    Comparison,
    Crossover,
    Method,
    News,
    Row,
    default_methods,
    parse_method,
    parse_methods,
    resized,
)

__all__ = [
    "SIZES",
    "Comparison",
    "ComparisonJob",
    "Crossover",
    "Method",
    "News",
    "Row",
    "compare",
    "comparison_from_json",
    "comparison_to_json",
    "default_methods",
    "parse_method",
    "parse_methods",
    "resized",
    "start_comparison",
]
