"""Registry of formulations, the contract of each, and how long models take.

Every module in `formulations.models` and `formulations.schedules` that has a ``FORMULATION`` is
one. Modules are imported when they are first needed, and import their solver when they run.

A `ModelEstimate` says what the rows of a model mean, and how many of each kind a problem has.

`speed_of` says in words how long a model of some size takes. Measured on two cores with HiGHS 1.15
by ``python -m benchmarks classes`` (nonzeros of the first model, seconds of the whole solve, a
limit of 90):

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
Of 34 solves 27 took the estimate, 6 less, 1 more.
"""

from __future__ import annotations

import difflib
import pkgutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from ccl.collective import CollectiveKind
from ccl.errors import ProblemError
from ccl.options import option_fields
from ccl.problem import Problem
from ccl.result import ModelSize
from ccl.text import enumerate_words

if TYPE_CHECKING:
    from ccl.result import Result
    from formulations.core.run import Run

CONSTRUCTIONS = "formulations.schedules"
FOLDERS = ("formulations.models", CONSTRUCTIONS)
PORTFOLIO = "formulations.solving.auto"
"""It tries the others, so it lies beside their packages."""

MODULES = {"list": "list_scheduling"}
"""Name of a formulation -> its module, where that has another name."""

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
class NoOptions:
    """There is nothing to choose."""


@dataclass(frozen=True, kw_only=True)
class Formulation:
    """A method that finds a schedule.

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
        Finds a plan; its `Run` holds the problem and takes the reports.
    model
        What is solved: ``none`` where the plan is constructed, ``several`` where others are
        tried, a linear program (``lp``), one that grows while it is solved (``columns``), an
        integer program or a constraint program.
    estimate
        Counts the variables and rows of the model before it is built, or says None where nothing
        has to be chosen; None where nobody knows.
    groups
        What the constraints of each group say, by its name; `estimate` counts by these names.
    takes_start
        Whether it can begin with a given plan.
    windows
        Whether it knows that links may have less bandwidth for a time (`ccl.problem`); the plans
        of others are re-timed (`formulations.solving.windows`).
    whole_chunks
        Whether its plans never split a chunk, so that stronger bounds hold for them; for some it
        depends on the problem.
    quick
        Whether it begins with the bounds that need no solver and computes the others itself.
    searched_by
        What finds its plans where its kind of model does not say it: no construction, but a
        search of our own.
    mathematics
        Shown beside the solve; the docstring of the module of `run` unless given.
    """

    name: str
    title: str
    reference: str
    collectives: frozenset[CollectiveKind]
    options: type = NoOptions
    refuses: Callable[[Problem], str | None]
    run: Callable[[Run, Any], Result]
    model: Kind = "none"
    estimate: Callable[[Problem, Any], ModelEstimate | None] | None = None
    groups: Mapping[str, str] = field(default_factory=dict, repr=False)
    takes_start: bool = False
    windows: bool = False
    quick: bool = False
    whole_chunks: bool | Callable[[Problem], bool] = True
    searched_by: str = ""
    mathematics: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not self.mathematics:
            own = sys.modules[self.run.__module__].__doc__
            object.__setattr__(self, "mathematics", own or "")

    @property
    def solver(self) -> str:
        """What finds its plans, in words: a solver, a search of our own or a construction."""
        return self.searched_by or SOLVERS[self.model]

    def keeps_chunks(self, problem: Problem) -> bool:
        """Return whether its plans of `problem` never split a chunk."""
        whole = self.whole_chunks
        return whole if isinstance(whole, bool) else whole(problem)

    def options_within(self, seed: int, seconds: float | None) -> Any:
        """Return its own options, with the seed and the time, stopped by a proof."""
        given: dict[str, Any] = {"seed": seed, "stop_at_proof": True}
        if seconds is not None:
            given["seconds"] = seconds
        names = {row.name for row in option_fields(self.options)}
        return self.options(**{name: value for name, value in given.items() if name in names})

    def why_not(self, problem: Problem) -> str | None:
        """Explain why it cannot take `problem`, or None if it can."""
        kind = problem.collective.kind
        if kind not in self.collectives:
            supported = enumerate_words(sorted(self.collectives), len(self.collectives))
            return f"it supports {supported} only"
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
    return (
        import_module(PORTFOLIO).FORMULATION,
        *(each for folder in FOLDERS for each in of(folder)),
    )


@cache
def of(folder: str) -> tuple[Formulation, ...]:
    """Return the formulations of one of `FOLDERS`, by the names of their modules."""
    package = import_module(folder)
    names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    modules = [import_module(f"{folder}.{each}") for each in names]
    return tuple(each.FORMULATION for each in modules if hasattr(each, "FORMULATION"))


def formulation(name: str) -> Formulation:
    """Return the formulation called `name`.

    Raises
    ------
    ProblemError
        If no formulation has the name.
    """
    found = _of_module(name) or next((each for each in available() if each.name == name), None)
    if found is not None:
        return found
    names = [each.name for each in available()]
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}"
    raise ProblemError(f"no formulation is called {name!r}; {hint}")


@cache
def _of_module(name: str) -> Formulation | None:
    """Return the formulation whose module has its name, as most have, without loading others."""
    module = MODULES.get(name, name.replace("-", "_"))
    for place in (PORTFOLIO, *(f"{folder}.{module}" for folder in FOLDERS)):
        if place.endswith(f".{module}") and module.isidentifier() and find_spec(place) is not None:
            found: Formulation | None = getattr(import_module(place), "FORMULATION", None)
            if found is not None and found.name == name:
                return found
    return None


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
        """As text."""
        return self.value


LAST = Speed.HOURS

UP_TO: dict[str, tuple[int, int, int]] = {
    "lp": (5_000, 300_000, 3_000_000),
    "milp": (5_000, 50_000, 400_000),
    "columns": (3_000, 100_000, 1_000_000),
}
"""Nonzeros up to which a model takes less than a second, seconds and minutes, by its kind."""


def speed_of(kind: Kind, size: ModelSize) -> Speed | None:
    """Return how long a model takes, None where its kind has no table."""
    if kind not in UP_TO:
        return None
    for speed, most in zip(Speed, UP_TO[kind], strict=False):
        if size.nonzeros <= most:
            return speed
    return LAST


@dataclass(frozen=True)
class ModelEstimate:
    """A model before it is built.

    Parameters
    ----------
    variables, nonzeros
        How many it has.
    rows
        Rows of each group of constraints, by its name (`Formulation.groups` says what it means);
        they add up to all constraints.
    note
        Which of several models it is, and what was left out or assumed.
    """

    variables: int
    nonzeros: int
    rows: Mapping[str, int]
    note: str = ""

    @property
    def size(self) -> ModelSize:
        """The size as solvers report it."""
        return ModelSize(self.variables, sum(self.rows.values()), self.nonzeros)
