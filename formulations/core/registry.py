"""What a formulation is, and where all of them are found.

Every module in `formulations.models` and `formulations.schedules` that has a ``FORMULATION`` is
one. Modules are imported when they are first needed, and import their solver when they run.
"""

from __future__ import annotations

import difflib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ccl.collective import CollectiveKind
from ccl.errors import ProblemError
from ccl.problem import Problem

if TYPE_CHECKING:
    from ccl.result import Result
    from formulations.core.model_classes import Kind
    from formulations.core.model_size import Anatomy
    from formulations.core.run import Run

CONSTRUCTIONS = "formulations.schedules"
ROOMS = ("formulations.models", CONSTRUCTIONS)
PORTFOLIO = "formulations.solving.auto"
"""It tries the others, so it lies beside their rooms."""

SOLVERS: Mapping[str, str] = {
    "none": "closed form",
    "lp": "HiGHS",
    "milp": "HiGHS",
    "columns": "HiGHS",
    "cp": "CP-SAT",
    "several": "several methods",
}
"""What finds the plans of each kind of model."""


@dataclass(frozen=True, kw_only=True)
class Formulation:
    """A way to find a schedule.

    Parameters
    ----------
    name
        As typed on a command line.
    title
        As shown in a menu.
    reference
        Where it comes from.
    collectives
        Kinds that it takes.
    options
        Frozen keyword-only dataclass; each field's metadata describes a row of a form.
    refuses
        Says in words why it cannot take a problem, or None.
    run
        Finds a plan; told by its `Run` what to ask and report to.
    model
        What is solved: ``none`` where the plan is constructed, ``several`` where others are
        tried, a linear program (``lp``), one that grows while it is solved (``columns``), an
        integer program or a constraint program.
    anatomy
        Counts the variables and rows of the model before it is built, or says None where nothing
        has to be chosen; None where nobody knows.
    groups
        What the constraints of each group say, by its name; `anatomy` counts by these names.
    takes_start
        Whether it can begin with a given plan.
    windows
        Whether it knows that links may have less bandwidth for a time (`ccl.window`); the plans
        of others are re-timed (`formulations.solving.windows`).
    whole_chunks
        Whether its plans never split a chunk, so that stronger bounds hold for them; for some it
        depends on the problem.
    quick
        Whether it begins with the bounds that need no solver and asks for the others itself.
    searched_by
        What finds its plans where its kind of model does not say it: no construction, but a
        search of our own.
    mathematics
        Its module's docstring, shown beside the solve.
    """

    name: str
    title: str
    reference: str
    collectives: frozenset[CollectiveKind]
    options: type
    refuses: Callable[[Problem], str | None]
    run: Callable[[Run, Any], Result]
    model: Kind = "none"
    anatomy: Callable[[Problem, Any], Anatomy | None] | None = None
    groups: Mapping[str, str] = field(default_factory=dict, repr=False)
    takes_start: bool = False
    windows: bool = False
    quick: bool = False
    whole_chunks: bool | Callable[[Problem], bool] = True
    searched_by: str = ""
    mathematics: str = field(default="", repr=False)

    @property
    def solver(self) -> str:
        """What finds its plans, in words: a solver, a search of our own or a construction."""
        return self.searched_by or SOLVERS[self.model]

    def keeps_chunks(self, problem: Problem) -> bool:
        """Say whether its plans of `problem` never split a chunk."""
        whole = self.whole_chunks
        return whole if isinstance(whole, bool) else whole(problem)

    def why_not(self, problem: Problem) -> str | None:
        """Say in words why it cannot take `problem`, or None if it can."""
        kind = problem.collective.kind
        if kind not in self.collectives:
            return f"it does not solve {kind}; it solves {', '.join(sorted(self.collectives))}"
        if all(chunk.in_place for chunk in problem.collective.chunks):
            return f"{kind} moves nothing: all holders are destinations already"
        if problem.collective.whole and not self.keeps_chunks(problem):
            return "chunks are to stay whole, and its plans split them; leave their number open"
        if problem.windows and not self.windows:
            # What it finds without them is re-timed.
            return self.refuses(replace(problem, windows=()))
        return self.refuses(problem)


@cache
def available() -> tuple[Formulation, ...]:
    """Return every formulation: the portfolio, those of papers, the others."""
    return (import_module(PORTFOLIO).FORMULATION, *(each for room in ROOMS for each in of(room)))


@cache
def of(room: str) -> tuple[Formulation, ...]:
    """Return the formulations of one of `ROOMS`, by the names of their modules."""
    package = import_module(room)
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    modules = [import_module(f"{room}.{each}") for each in names]
    return tuple(each.FORMULATION for each in modules if hasattr(each, "FORMULATION"))


def formulation(name: str) -> Formulation:
    """Return the formulation called `name`.

    Raises
    ------
    ProblemError
        If there is none.
    """
    for each in available():
        if each.name == name:
            return each
    names = [each.name for each in available()]
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}"
    msg = f"no formulation is called {name!r}; {hint}"
    raise ProblemError(msg)
