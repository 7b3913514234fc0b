"""What one step more or less bandwidth of each class of links does to the best rate.

`formulations.sensitivity` tells slopes; a step may go over a kink, so the rate is solved at its end
(`formulations.analyses.sensitivity.choosing` says how). Changes are yielded one class after the
other, so that somebody who waits may stop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ccl.problem import Problem
from formulations.analyses.sensitivity.choosing import BestRates
from formulations.analyses.sensitivity.cutting_planes import Ends, Rates, Scales, classes_of

STEP = 0.01
"""Share of more and of less bandwidth."""


@dataclass(frozen=True)
class Change:
    """What becomes of the best rate when links of one class change by a step.

    Parameters
    ----------
    words
        What they are.
    links
        Their ends; of a shared limit, those it holds.
    more, less
        Change of algbw, as a share of it, for a share of `STEP` more and less bandwidth: ``more``
        is 0 or above, ``less`` 0 or below.
    price
        An optimal dual: by how much of its change algbw would follow, if the dual were unique.
    """

    words: str
    links: tuple[Ends, ...]
    more: float
    less: float
    price: float


def changes(
    problem: Problem, *, classes: np.ndarray | None = None, step: float = STEP
) -> tuple[Change, ...]:
    """Return the effect of a step of each class of links and kind of shared limits, largest first.

    Parameters
    ----------
    problem
        What is asked.
    classes
        A number for each link, from 0 on, shape (links,); by default `link_classes`.
    step
        Share of more and of less bandwidth.

    Raises
    ------
    ProblemError
        If fluid models cannot say the problem.
    """
    found = each_change(problem, classes=classes, step=step)
    return tuple(sorted(found, key=lambda each: each.less - each.more))


def each_change(
    problem: Problem, *, classes: np.ndarray | None = None, step: float = STEP
) -> Iterator[Change]:
    """Yield the effect of each class in order, then of each kind of shared limits.

    Parameters
    ----------
    problem, classes, step
        As for `changes`.

    Raises
    ------
    ProblemError
        If fluid models cannot say the problem.
    """
    yield from changes_by(BestRates(problem, classes_of(problem.topology, classes)), step)


def changes_by(rates: Rates, step: float = STEP) -> Iterator[Change]:
    """Yield the same by one way to find rates."""
    classes, part = rates.classes, Fraction(step).limit_denominator(10_000)
    today: Scales = (Fraction(1),) * classes.many
    held = rates.at(today)[0]
    now = held.at(today)
    for number in range(classes.many):
        more, less = (
            float(rates.value((*today[:number], by, *today[number + 1 :])) / now - 1)
            for by in (1 + part, 1 - part)
        )
        yield Change(
            words=classes.words(number),
            links=classes.ends(number),
            more=max(more, 0.0),
            less=min(less, 0.0),
            price=float(held.weights[number] / now),
        )
