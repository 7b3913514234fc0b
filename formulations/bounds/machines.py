"""Links as machines: when chunks that cross one after the other can begin to.

A machine e takes its first job `opens[e]` µs after the job is released at the earliest, and then
another every `pace[e]` µs, whatever the jobs. So of m jobs released at r or later the last begins
no earlier than r plus the m-th smallest of opens[e] + k pace[e] over machines e and k >= 0 (its
`slots`). With N jobs of which, for every i, at least N - i + 1 are released at r_i or later, this
holds for any i and any j - i + 1 of the first j to begin: the j-th to begin does so no earlier than

    c_j = max over i <= j of r_i + w_(j - i + 1),    w the slots in order.

That is a curve of the same kind, the releases of whatever these jobs have to pass next.
"""

from __future__ import annotations

import numpy as np

from formulations.bounds.demand import Floats

_STEPS = 48
"""Most releases that a curve is worked out from; leaving some out only lowers it."""


def slots(opens: Floats, pace: Floats, *, count: int) -> Floats:
    """Return the `count` smallest of opens + k pace over machines and k = 0, 1, ... in order."""
    usable = np.isfinite(opens)
    opens, pace = opens[usable], pace[usable]
    enough = steady(opens, pace, count=count)
    # One more than are due by then, so that no rounding loses any.
    many = np.clip(np.floor((enough - opens) / pace) + 2, 0, count).astype(int)
    place = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    found = np.repeat(opens, many) + place * np.repeat(pace, many)
    return np.asarray(np.sort(found)[:count])


def slot(opens: Floats, pace: Floats, *, count: int) -> float:
    """Return the `count`-th smallest of opens + k pace, without making all of them."""
    usable = np.isfinite(opens)
    opens, pace = opens[usable], pace[usable]
    before = steady(opens, pace, count=count) - pace.max()
    # Slots until then, but for the last of each machine, which rounding might have let in.
    passed = np.maximum(np.floor((before - opens) / pace), 0)
    return float(slots(opens + passed * pace, pace, count=count - int(passed.sum()))[-1])


def steady(opens: Floats, pace: Floats, *, count: float) -> float:
    """Return when a steady flow of jobs over all machines has brought `count`.

    The `count`-th slot is not later, and less than the longest pace earlier.
    """
    order = np.argsort(opens, kind="stable")
    rate = np.cumsum(1 / pace[order])
    return float(((count + np.cumsum(opens[order] / pace[order])) / rate).min())


def last(releases: Floats, given: Floats) -> float:
    """Return when the last of all jobs begins at the earliest; releases and slots in order."""
    return float((releases + given[: len(releases)][::-1]).max())


def curve(releases: Floats, given: Floats) -> Floats:
    """Return when the first, second, ... job begins at the earliest."""
    count = len(releases)
    firsts = np.flatnonzero(np.diff(releases, prepend=-np.inf) > 0)
    if len(firsts) > _STEPS:
        firsts = firsts[np.linspace(0, len(firsts) - 1, _STEPS).astype(int)]
    found = np.full(count, -np.inf)
    for i in firsts:
        np.maximum(found[i:], releases[i] + given[: count - i], out=found[i:])
    return found
