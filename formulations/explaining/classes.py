"""How long a model of some size takes, in words.

Measured on two cores with HiGHS 1.15 by ``python -m benchmarks classes``.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal

from ccl.result import ModelSize

Kind = Literal["none", "lp", "milp", "columns", "cp"]
"""What is solved: nothing, a linear program, an integer program, a linear program that grows while
it is solved, a constraint program."""


class Speed(Enum):
    """How long solving takes on two cores, building included."""

    INSTANT = "less than a second"
    SECONDS = "seconds"
    MINUTES = "minutes"
    HOURS = "hours, or never, on two cores"

    @property
    def words(self) -> str:
        """As told to people."""
        return self.value


UP_TO: dict[str, tuple[int, int, int]] = {
    "lp": (20_000, 300_000, 3_000_000),
    "milp": (2_000, 20_000, 200_000),
    "columns": (20_000, 300_000, 3_000_000),
}
"""Nonzeros up to which a model takes less than a second, seconds and minutes, by its kind."""


def speed_of(kind: Kind, size: ModelSize) -> Speed | None:
    """Return how long a model takes, None where its kind has no table."""
    if kind not in UP_TO:
        return None
    for speed, most in zip(Speed, UP_TO[kind], strict=False):
        if size.nonzeros <= most:
            return speed
    return Speed.HOURS
