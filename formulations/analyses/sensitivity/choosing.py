"""Which proof is taken for the rate at other bandwidths: the kinds of `best_rate`.

Each kind is asked until it does not hold for some scales; then the next takes over, and the planes
that were found remain true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ccl.errors import ProblemError
from ccl.problem import Problem
from formulations.analyses.best_rate import programmable
from formulations.analyses.sensitivity.cutting import CutRates, cuts_decide
from formulations.analyses.sensitivity.cutting_planes import (
    Classes,
    Number,
    Plane,
    Rates,
    Scales,
    Undecided,
)
from formulations.analyses.sensitivity.priced import ProgramRates, TreeRates
from formulations.engines.steady_state import demands
from formulations.engines.tree_columns import refusal as trees

AGREE = 1e-6
"""Share by which rates of different kinds of proof may differ."""


class BestRates(Rates):
    """The best rate by the first kind of proof that holds.

    Parameters
    ----------
    problem
        What is asked.
    classes
        What changes together.

    Raises
    ------
    ProblemError
        If fluid models cannot say the problem, or it is too large to be solved again and again;
        so does `at` where only a bound is left to be had.
    """

    def __init__(self, problem: Problem, classes: Classes) -> None:
        super().__init__(classes)
        self._problem = problem
        self._left = _kinds(problem, classes)
        self._next()

    @property
    def exact(self) -> bool:
        """Whether all that was found so far are fractions."""
        return self._rates.exact

    def _found(self, scales: Scales) -> tuple[Plane, ...]:
        while True:
            try:
                self._check()
                return self._rates.at(scales)
            except Undecided:
                self._next()

    def _check(self) -> None:
        """Refuse a kind that took over and says otherwise: a program may only bound the rate."""
        for scales, planes in list(self._known.items())[:1]:
            if not same_rate(self._rates.value(scales), planes[0].at(scales)):
                raise ProblemError(bounded_only(self._problem))

    def _next(self) -> None:
        make = next(self._left, None)
        if make is None:
            msg = (
                f"{self._problem.collective.kind} on {self._problem.topology} is too large to be "
                "solved again for other bandwidths; ask of a smaller cluster of its kind"
            )
            raise ProblemError(msg)
        self._rates = make(self._problem, self.classes)


def same_rate(first: Number, second: Number) -> bool:
    """Whether two rates that different proofs gave are one."""
    return abs(float(first) - float(second)) <= AGREE * float(second)


def bounded_only(problem: Problem) -> str:
    """Say that derivatives are of no rate that a plan has."""
    return (
        f"the best trees of {problem.collective.kind} on {problem.topology} were not proved in "
        "time for all bandwidths, and the linear program only bounds their rate; ask again, or of "
        "a smaller cluster of its kind"
    )


def _kinds(problem: Problem, classes: Classes) -> Iterator[Callable[[Problem, Classes], Rates]]:
    if cuts_decide(problem, classes):
        yield CutRates
    why = demands.refusal(problem)
    if why is not None:
        msg = f"no fluid optimum of {problem.collective.kind} on {problem.topology}: {why}"
        raise ProblemError(msg)
    if not demands.only_pairs(problem) and trees.refusal(problem) is None:
        yield TreeRates
    if programmable(problem):
        yield ProgramRates
