"""Seconds of one action, repeated."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TypeVar

GB = 1e9
"""Bytes."""

T = TypeVar("T")


def median_of(repeat: int, act: Callable[[], T]) -> tuple[T, float]:
    """Return what `act` returns at last, and the median of the seconds on the wall's clock."""
    seconds = []
    for _ in range(repeat):
        begin = time.perf_counter()
        found = act()
        seconds.append(time.perf_counter() - begin)
    return found, statistics.median(seconds)
