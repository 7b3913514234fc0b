"""Times in which links have less bandwidth: maintenance, other jobs, a link that is down.

Reference: TE-CCL (SIGCOMM 2024), section 5, whose capacity of a link may vary from epoch to epoch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ccl.errors import ProblemError


@dataclass(frozen=True, slots=True)
class Window:
    """Links that have only a share of their bandwidth for a time.

    Where windows of a link overlap, the least share holds. Latencies stay.

    Parameters
    ----------
    links
        The ends ``(src, dst)`` of its links.
    begin, end
        µs from the start of the collective.
    share
        Of their bandwidth, from 0 (nothing gets through) to 1.

    Raises
    ------
    ProblemError
        If it covers no link, one twice or no time, or the share is out of range.
    """

    links: tuple[tuple[str, str], ...]
    begin: float
    end: float
    share: float

    def __post_init__(self) -> None:
        if not self.links:
            msg = f"{self} covers no link; name at least one"
            raise ProblemError(msg)
        if len(set(self.links)) < len(self.links):
            msg = f"{self} names a link twice; name each once"
            raise ProblemError(msg)
        if not (0 <= self.begin < self.end and math.isfinite(self.end)):
            msg = f"{self} covers no time; give a beginning of 0 µs or more and a later end"
            raise ProblemError(msg)
        if not 0 <= self.share <= 1:
            msg = f"{self} leaves {self.share} of the bandwidth; give a share from 0 to 1"
            raise ProblemError(msg)

    def __str__(self) -> str:
        return f"window from {self.begin:g} to {self.end:g} µs"
