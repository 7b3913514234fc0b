"""How long the rest of a sweep takes, from the rows that are there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean

from formulations.campaigns.sweeps.rows import Row
from formulations.campaigns.sweeps.tasks import Task


def estimated(left: Sequence[Task], rows: Iterable[Row], workers: int) -> float | None:
    """Return the seconds that tasks take together, if each takes what its formulation took so far.

    Parameters
    ----------
    left
        Tasks without rows.
    rows
        Those that are there.
    workers
        How many solve at the same time.

    Returns
    -------
        None where a formulation has no row yet.
    """
    took = defaultdict[str, list[float]](list)
    for row in rows:
        took[row.formulation].append(row.wall)
    if not {each.formulation for each in left} <= took.keys():
        return None
    means = {name: fmean(walls) for name, walls in took.items()}
    return sum(means[each.formulation] for each in left) / workers


def at_most(left: Sequence[Task], workers: int) -> float | None:
    """Return the seconds that tasks take if each needs all of its limit; None without a limit."""
    limits = [each.time_limit for each in left]
    return None if None in limits else sum(each or 0.0 for each in limits) / workers
