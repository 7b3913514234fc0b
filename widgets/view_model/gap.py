"""The gap plot: the best makespan and the bound of a solve over time, and the gap between them.

All numbers and words of the plot are found here. The page and the notebook
(`widgets/static/gap_plot.js`) and print (`widgets.print.plots`) draw the same of them.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TypedDict

from ccl import text

Point = tuple[float, float | None, float | None]
"""Seconds, best makespan in µs and largest bound in µs, None before the first."""

POINTS = 400
"""Rows sent to a page; more cannot be distinguished."""

Tick = tuple[float, str]

_PAST = (2, 3)
"""Of the whole gap: how much of what is over is still shown below and above."""
_ENDS = (0.5, 1, 2, 5, 10, 20, 30, 60, 90, 120, 180, 300, 600, 900, 1200, 1800, 3600)
"""Seconds at which the axis of a running solve ends, so that it stands still for a while."""
_PROVED = 1e-6
"""Share of the bound below which no gap is left."""


class Readout(TypedDict):
    """What is known at a time, in words."""

    best: str
    bound: str
    gap: str
    proved: bool


class Axes(TypedDict):
    """What the axes show: seconds from left to right, µs from bottom to top."""

    left: float
    right: float
    bottom: float
    top: float
    columns: list[Tick]
    rows: list[Tick]


class Course(TypedDict):
    """What the plot draws; ``readouts`` has the words of each row, and before the first."""

    points: list[list[float | None]]
    readouts: list[Readout]
    before: Readout
    seconds: float
    running: bool
    even: Axes
    log: Axes


def thinned(points: Iterable[Point], limit: int = POINTS) -> tuple[Point, ...]:
    """Keep the first, the last and every row at which a value changes; at most `limit`."""
    kept: list[Point] = []
    rows = list(points)
    for i, row in enumerate(rows):
        if i in {0, len(rows) - 1} or row[1:] != rows[i - 1][1:]:
            kept.append(row)
    if len(kept) > limit:
        apart = -(-len(kept) // (limit - 1))
        kept = [*kept[:-1:apart], kept[-1]]
    return tuple(kept)


def course(points: Sequence[Point], *, seconds: float, running: bool) -> Course:
    """Return what the plot draws.

    Parameters
    ----------
    points
        In order of time.
    seconds
        How far the solve is.
    running
        Whether it goes on.
    """
    rows = thinned(points)
    return {
        "points": [list(row) for row in rows],
        "readouts": [readout(*row[1:]) for row in rows],
        "before": readout(None, None),
        "seconds": round(seconds, 3),
        "running": running,
        "even": axes(rows, seconds=seconds, running=running),
        "log": axes(rows, seconds=seconds, running=running, log=True),
    }


def gap_of(best: float | None, bound: float | None) -> float | None:
    """Return what a makespan is above its bound, as a share of the bound."""
    return None if best is None or not bound else max(0.0, best / bound - 1)


def readout(best: float | None, bound: float | None) -> Readout:
    """Say what is known."""
    gap = gap_of(best, bound)
    proved = gap is not None and gap < _PROVED
    return {
        "best": text.duration(best),
        "bound": text.duration(bound),
        "gap": text.share(0.0 if proved else gap),
        "proved": proved,
    }


def gap_words(rows: Sequence[Point]) -> str:
    """Say what is known last: ``best 15 µs, bound 10 µs, gap 50 %``."""
    last = readout(*rows[-1][1:]) if rows else readout(None, None)
    words = f"best {last['best']}, bound {last['bound']}"
    return words if last["gap"] == text.NONE else f"{words}, gap {last['gap']}"


def axes(
    rows: Sequence[Point], *, seconds: float, running: bool = False, log: bool = False
) -> Axes:
    """Return what the axes show: a bad first plan must not flatten all that came after it.

    Parameters
    ----------
    rows, seconds, running
        As for `course`.
    log
        Whether seconds are on a logarithmic axis, which begins where something is known.
    """
    end = max(seconds, rows[-1][0] if rows else 0.0, 1e-3)
    right = end
    if running:
        right = next((each for each in _ENDS if each >= end * 1.02), end * 1.1)
    first = next((row[0] for row in rows if row[1] is not None), right / 100)
    left = max(1e-3, min(first * 0.8, right / 10)) if log else 0.0
    bests = [row[1] for row in rows if row[1] is not None]
    bounds = [row[2] for row in rows if row[2] is not None]
    known = bool(bests or bounds)
    bottom, top = _upright(bests, bounds) if known else (0.0, 1.0)
    columns = log_ticks(left, right) if log else ticks(0.0, right, 5)
    return {
        "left": left,
        "right": right,
        "bottom": bottom,
        "top": top,
        "columns": [(each, f"{text.number(each, 3)} s") for each in columns],
        "rows": list(_rows(bottom, top)) if known else [],
    }


def _upright(bests: Sequence[float], bounds: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the axis of makespans: around the last gap, with some of what is over."""
    if not bests:
        return bounds[-1] * 0.9, bounds[-1] * 1.4
    best = bests[-1]
    low = bounds[-1] if bounds else best * 0.8
    gap = max(best - low, best * 0.04)
    top = min(max(bests), best + _PAST[1] * gap)
    bottom = max(min(low, *bounds) if bounds else low, low - _PAST[0] * gap, 0.0)
    air = max((top - bottom) * 0.12, (gap - (top - bottom)) / 2)
    return max(0.0, bottom - air), top + air


def _rows(bottom: float, top: float) -> Iterator[Tick]:
    """Yield makespans beside the axis, all in the unit of the largest."""
    size, unit = next(
        each for each in ((1e6, "s"), (1e3, "ms"), (1.0, "µs")) if top >= each[0] or each[0] == 1
    )
    for each in ticks(bottom / size, top / size, 5):
        yield each * size, f"{text.number(each)} {unit}"


def ticks(low: float, high: float, count: int) -> list[float]:
    """Return round numbers from `low` to `high`, about `count` of them."""
    rough = (high - low) / max(1, count)
    if rough <= 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in (1, 2, 2.5, 5, 10) if each * power >= rough or each == 10)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step * (1 + 1e-12))
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten, with two and five between them where they are few."""
    powers = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    values = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    found = [each for each in values if low * 0.999 <= each <= high * 1.001]
    tens = [each for each in found if f"{each:e}".startswith("1.")]
    return tens if len(found) > 7 and len(tens) > 1 else found


def known(course: Course) -> bool:
    """Say whether a course has anything to draw."""
    return bool(course["even"]["rows"])
