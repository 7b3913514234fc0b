"""How long a model of some size takes, in words.

Measured on two cores with HiGHS 1.15 by ``python -m benchmarks classes`` (nonzeros of the first
model, seconds of the whole solve, a limit of 90):

=======================  =======================  ========  =======
formulation              on                       nonzeros  seconds
=======================  =======================  ========  =======
thesis-fluid             mi250, all-to-all           2,745     0.39
thesis-fluid             dgx-1v, all-gather          7,457     1.26
thesis-fluid             6 ndv2, all-to-all         29,581     1.02
thesis-fluid             12 dgx-a100, all-to-all   115,601     3.47
te-ccl-lp                2 ndv2, all-to-all        117,754     1.34
te-ccl-lp                3 ndv2, all-to-all        378,529     > 90
te-ccl-milp              dgx-1v, all-to-all          1,328     18.1
te-ccl-milp              mi250, all-gather          13,120     0.51
te-ccl-milp              2 ndv2, all-gather         34,374     1.44
te-ccl-milp              mi250, all-to-all          83,136     > 90
te-ccl-milp              3 ndv2, all-gather        163,986     > 90
thesis-steps             mi250, all-gather         311,680     60.4
mirrored-dantzig-wolfe   mi250, all-gather           3,360     1.49
mirrored-dantzig-wolfe   2 dgx-a100, all-gather     40,320     8.14
=======================  =======================  ========  =======

What takes an hour was not measured: the last threshold is where a model was far from done, times
about ten. Integer programs vary most: one of 1,328 nonzeros took 18 s, since its bound is not met.
Of 34 solves 27 took what is told, 6 less, 1 more.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal

from ccl.result import ModelSize

Kind = Literal["none", "several", "lp", "milp", "columns", "cp"]
"""What is solved: nothing, what others solve, a linear program, an integer program, a linear
program that grows while it is solved, a constraint program."""


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
    "milp": (5_000, 50_000, 400_000),
    "columns": (3_000, 100_000, 1_000_000),
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
