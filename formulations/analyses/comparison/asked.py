"""Which methods are compared at which sizes."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ccl.collective import Collective, custom, make_collective
from ccl.errors import ProblemError
from ccl.options import OptionField, make_options, option_fields, plain
from ccl.problem import Problem
from ccl.result import Result
from formulations.analyses.comparison.table import Method
from formulations.core.registry import CONSTRUCTIONS, Formulation, available, formulation, of

SIZES = (1e3, 16e3, 256e3, 4e6, 64e6, 1e9)
"""Bytes at which methods are compared unless others are asked for: about a factor of 16 apart."""

_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True)
class Question:
    """What is compared; make it with `question`.

    Parameters
    ----------
    problem
        At the first size.
    methods
        Each of them once.
    sizes
        Bytes, ascending.
    time_limit
        Seconds for each solve, or None.
    """

    problem: Problem
    methods: tuple[Method, ...]
    sizes: tuple[float, ...]
    time_limit: float | None = None

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """The problem at each size."""
        return tuple(_at(self.problem, size) for size in self.sizes)

    @property
    def cells(self) -> tuple[tuple[int, int], ...]:
        """Places of method and size, in the order in which they are solved."""
        sizes = range(len(self.sizes))
        return tuple((method, size) for method in range(len(self.methods)) for size in sizes)


def question(
    problem: Problem,
    formulations: Iterable[str | Method] | None,
    *,
    sizes: Iterable[float] | None,
    time_limit: float | None,
) -> Question:
    """Check what is asked for, before anything is solved.

    Raises
    ------
    ProblemError
        If a formulation or an option does not exist, or there is no method or size.
    """
    ordered = tuple(sorted({float(size) for size in (SIZES if sizes is None else sizes)}))
    if not ordered:
        msg = "no size is given to compare at; give at least one in bytes, such as 1e6"
        raise ProblemError(msg)
    wrong = [size for size in ordered if not (size > 0 and math.isfinite(size))]
    if wrong:
        msg = f"a size to compare at is {wrong[0]:g} bytes; give more than 0 and a finite number"
        raise ProblemError(msg)
    if time_limit is not None and not (time_limit > 0 and math.isfinite(time_limit)):
        msg = f"the time limit of each solve is {time_limit:g} s; give more than 0 s"
        raise ProblemError(msg)
    first = _at(problem, ordered[0])
    given = default_methods(first) if formulations is None else formulations
    methods = {str(each): each for each in map(_method, given)}
    if not methods:
        names = ", ".join(each.name for each in available())
        msg = f"no formulation is given to compare; choose from {names}"
        raise ProblemError(msg)
    return Question(first, tuple(methods.values()), ordered, time_limit)


def default_methods(problem: Problem) -> tuple[Method, ...]:
    """Return every formulation that takes `problem`: constructions, models, and last `auto`.

    Constructions take milliseconds, so that there is much to see soon; `auto` tries others of
    them, so that its row is the sum.
    """
    portfolio, *others = available()
    constructed = of(CONSTRUCTIONS)
    models = [each for each in others if each not in constructed]
    taken = [each for each in (*constructed, *models, portfolio) if each.why_not(problem) is None]
    return tuple(Method(each.name) for each in taken)


Reader = Callable[[str], Mapping[str, Any]]
"""Returns the plain form of the sketch that a text names, such as a file."""


def parse_method(text: str, *, sketch: Reader | None = None) -> Method:
    """Read ``name`` or ``name:option=value,option=value``.

    Parameters
    ----------
    text
        What was typed.
    sketch
        Reads the value of an option that is a sketch; without it none can be given.

    Raises
    ------
    ProblemError
        If there is no such formulation or option, or a value is wrong.
    """
    name, _, rest = text.strip().partition(":")
    chosen = formulation(name.strip())
    rows = {row.name: row for row in option_fields(chosen.options)}
    values: dict[str, Any] = {}
    for part in filter(None, (each.strip() for each in rest.split(","))):
        option, equals, value = (each.strip() for each in part.partition("="))
        option = option.replace("-", "_")
        if not equals:
            msg = f"method {text!r}: {part!r} has no value; write {chosen.name}:option=value"
            raise ProblemError(msg)
        if option not in rows:
            raise ProblemError(_unknown(chosen, option, list(rows)))
        values[option] = _value(rows[option], value, sketch)
    return checked_method(chosen, values)


def parse_methods(text: str, *, sketch: Reader | None = None) -> tuple[Method, ...]:
    """Read several methods joined by commas; ``option=value`` belongs to the method before it.

    Parameters
    ----------
    text, sketch
        As for `parse_method`.

    Raises
    ------
    ProblemError
        As `parse_method`.
    """
    found: list[str] = []
    for part in text.split(","):
        head, equals, _ = part.partition("=")
        if found and equals and ":" not in head:
            found[-1] += f",{part}"
        elif part.strip():
            found.append(part)
    return tuple(parse_method(each, sketch=sketch) for each in found)


def resized(collective: Collective, size: float) -> Collective:
    """Return the same collective of `size` bytes in as many chunks.

    Parameters
    ----------
    collective
        What is made larger or smaller; every chunk of it by the same factor.
    size
        Bytes of the whole buffer.

    Raises
    ------
    ProblemError
        If the size is not positive.
    """
    if size == collective.size:
        return collective
    factor = size / collective.size
    chunks = tuple(replace(each, size=each.size * factor) for each in collective.chunks)
    if collective.kind == "custom":
        return replace(custom(collective.ranks, chunks), whole=collective.whole)
    first = chunks[0]
    rooted = {"broadcast": first.holders, "scatter": first.holders}
    rooted |= {"reduce": first.destinations, "gather": first.destinations}
    root = rooted.get(collective.kind, (0,))[0]
    one = make_collective(collective.kind, collective.ranks, size, root=root)
    many = max(1, len(chunks) // len(one.chunks))
    made = make_collective(collective.kind, collective.ranks, size, chunks=many, root=root)
    # Made by name it is the one that the name makes, to the last digit; but it may have been
    # given chunks, priorities or tenants of its own.
    named = len(made.chunks) == len(chunks) and all(
        math.isclose(one.size, each.size) and replace(one, size=each.size) == each
        for one, each in zip(made.chunks, chunks, strict=True)
    )
    return replace(collective, size=size, chunks=made.chunks if named else chunks)


def sharing(result: Result, problem: Problem) -> Result:
    """Return a result that holds `problem` where it answers just that: one for all takes less.

    Where chunks are automatic it may answer the problem with its chunks cut, and keeps that.
    """
    return replace(result, problem=problem) if result.problem == problem else result


def _at(problem: Problem, size: float) -> Problem:
    made = resized(problem.collective, size)
    return problem if made is problem.collective else replace(problem, collective=made)


def _method(given: str | Method) -> Method:
    if isinstance(given, str):
        return parse_method(given)
    return checked_method(formulation(given.formulation), given.options)


def checked_method(chosen: Formulation, values: Mapping[str, Any]) -> Method:
    """Return a method with options as the formulation reads them, those that say something.

    Raises
    ------
    ProblemError
        If there is no such option, or a value is wrong.
    """
    rows = option_fields(chosen.options)
    try:
        made = make_options(chosen.options, values)
    except ProblemError as error:
        msg = f"{chosen.name}: {error}"
        raise ProblemError(msg) from None
    told = {row.name: getattr(made, row.name) for row in rows}
    return Method(
        chosen.name,
        plain({row.name: told[row.name] for row in rows if told[row.name] != row.default}),
    )


def _unknown(chosen: Formulation, option: str, names: list[str]) -> str:
    close = difflib.get_close_matches(option, names, n=1)
    there = f"there are {', '.join(names)}" if names else "it has no options"
    return (
        f"{chosen.name} has no option {option!r}; {f'did you mean {close[0]}?' if close else there}"
    )


def _value(row: OptionField, text: str, sketch: Reader | None) -> Any:
    """Read what was typed; what cannot be read is refused by the form of the options."""
    if row.kind == "sketch" and sketch is not None:
        return sketch(text)
    if row.kind == "choice":
        return next((each for each in row.choices if each.replace(" ", "-") == text), text)
    if row.kind == "bool":
        return _TRUTHS.get(text.lower(), text)
    return text
