"""Plans as text: why each send waited, the path of a chunk, the breakdown of a makespan.

`explain` describes all of it as text, `report` gives the parts: sentences, causes, the critical
path, and `breakdown` of its times. `difference` compares two results of one problem.
"""

from ccl.explain.difference import Difference, difference
from ccl.explain.narration import Breakdown, PlanReport, breakdown, report
from ccl.explain.text import explain

__all__ = ["Breakdown", "Difference", "PlanReport", "breakdown", "difference", "explain", "report"]
