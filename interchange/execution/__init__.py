"""Programs executed as their runtimes do, and everything that is wrong with them in words."""

from interchange.execution.execution import Execution, execute
from interchange.execution.finding import Finding

__all__ = ["Execution", "Finding", "execute"]
