"""What every kind of execution says in the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from ccl.errors import CclError
from interchange.execution.finding import Finding
from interchange.programs import Program
from interchange.programs.puts.program import PutProgram

Executed = TypeVar("Executed", Program, PutProgram)


@dataclass(frozen=True)
class Verdict(Generic[Executed]):
    """Whether a program is right.

    Parameters
    ----------
    program
        What was executed.
    findings
        What is wrong with it; none if it is right.
    """

    program: Executed
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def check(self) -> Self:
        """Return itself if nothing is wrong.

        Raises
        ------
        CclError
            If something is; the sentence is the first finding's.
        """
        if self.findings:
            msg = f"program {self.program.name}: {self.findings[0].sentence}"
            raise CclError(msg)
        return self
