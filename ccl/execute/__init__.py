"""Programs executed as their runtimes do, and everything that is wrong with them in words."""

from ccl.execute.execution import Execution, execute
from ccl.execute.finding import Finding

__all__ = ["Execution", "Finding", "execute"]
