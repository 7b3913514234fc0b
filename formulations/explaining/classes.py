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


LAST = Speed.HOURS

UP_TO: dict[str, tuple[int, int, int]] = {
    "lp": (5_000, 300_000, 3_000_000),
    "milp": (5_000, 50_000, 300_000),
    "columns": (5_000, 100_000, 1_000_000),
}
"""Nonzeros up to which a model takes less than a second, seconds and minutes, by its kind."""


_ENDS = (1.0, 60.0, 3600.0)
"""Seconds at which a class ends."""


def speed_in(seconds: float) -> Speed:
    """Return the class of something that took so long."""
    return next((speed for speed, end in zip(Speed, _ENDS, strict=False) if seconds < end), LAST)


def speed_of(kind: Kind, size: ModelSize) -> Speed | None:
    """Return how long a model takes, None where its kind has no table."""
    if kind not in UP_TO:
        return None
    for speed, most in zip(Speed, UP_TO[kind], strict=False):
        if size.nonzeros <= most:
            return speed
    return LAST
