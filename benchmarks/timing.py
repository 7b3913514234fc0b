"""Seconds of one action, repeated."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

GB = 1e9
"""Bytes."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Seconds:
    """Medians: on the wall's clock, and of the processor, which a busy machine does not stretch."""

    wall: float
    processor: float

    def __str__(self) -> str:
        return f"{self.wall:.3g}"


def median_of(repeat: int, act: Callable[[], T]) -> tuple[T, Seconds]:
    """Return what `act` returns at last, and the medians of the seconds it takes."""
    walls, processors = [], []
    for _ in range(repeat):
        begin, work = time.perf_counter(), time.process_time()
        found = act()
        walls.append(time.perf_counter() - begin)
        processors.append(time.process_time() - work)
    return found, Seconds(statistics.median(walls), statistics.median(processors))
