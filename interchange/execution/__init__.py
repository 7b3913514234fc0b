"""Programs executed as their runtimes do, and everything that is wrong with them in words."""

from interchange.execution.checks import Finding
from interchange.execution.execution import Execution, execute

__all__ = ["Execution", "Finding", "execute"]
