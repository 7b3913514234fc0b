"""What the rows of a model say, and how many of each kind a problem has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ccl.result import ModelSize


@dataclass(frozen=True)
class Anatomy:
    """A model before it is built.

    Parameters
    ----------
    variables, nonzeros
        How many it has.
    rows
        Rows of each group of constraints, by its name (`Formulation.groups` says what it means);
        they add up to all constraints.
    note
        Which of several models it is, and what was left out or assumed.
    """

    variables: int
    nonzeros: int
    rows: Mapping[str, int]
    note: str = ""

    @property
    def size(self) -> ModelSize:
        """The size as solvers tell it."""
        return ModelSize(self.variables, sum(self.rows.values()), self.nonzeros)
