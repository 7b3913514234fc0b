"""A comparison: which methods at which sizes, their rows, and where another becomes the fastest.

Makespans are known at some sizes. Between two neighbouring ones, m0 < m1, each method's is drawn
on logarithmic axes as a straight line: with x = ln(m / m0) / ln(m1 / m0) from 0 to 1,

    ln T(x) = (1 - x) ln T(m0) + x ln T(m1).

For a method that is the fastest and one that will be, d(x) = ln T_after(x) - ln T_before(x) is a
straight line, too, with d0 = d(0) >= 0 and d1 = d(1) < 0. It is zero at

    x = d0 / (d0 - d1),    m = m0 (m1 / m0)^x,    ln T = (1 - x) ln T_after(m0) + x ln T_after(m1).

Of all methods that are faster at m1 than the one that is the fastest now, the one that meets it
first takes over, and so on until none is left: the lower envelope of straight lines. A method that
takes the same as the fastest does not take over, but where several take the same at the first size,
the one leads that does so after it. Nothing is interpolated where a method has no
result at one of the two sizes.
"""

import difflib
import json
import math
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ccl.bound import Bound
from ccl.collective import Collective, custom, make_collective
from ccl.errors import ProblemError
from ccl.options import OptionField, make_options, option_fields, plain
from ccl.problem import Problem
from ccl.result import PROOF_TOLERANCE, Result, verdict_of
from formulations.core.registry import CONSTRUCTIONS, Formulation, available, formulation, of
from formulations.core.run import Progress

Times = Mapping[str, float]
"""Logarithms of makespans in µs, by method."""

_NOBODY: Times = {}

SAME = math.log1p(PROOF_TOLERANCE)
"""Logarithms this close are the same makespan, and shares the same place."""


@dataclass(frozen=True, slots=True)
class Method:
    """A formulation with options, as ``name`` or ``name:option=value,option=value``.

    `formulations.analyses.comparison.parse_method` reads one.

    Parameters
    ----------
    formulation
        Its name.
    options
        By name, those that differ from the default; a sketch in its plain form.
    """

    formulation: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        given = ",".join(f"{name}={_written(value)}" for name, value in self.options.items())
        return f"{self.formulation}:{given}" if given else self.formulation


def _written(value: Any) -> str:
    """Write an option as a command line takes it: a choice with hyphens for its spaces.

    A sketch has no name; eight digits distinguish it from others.
    """
    if isinstance(value, Mapping):
        return f"{zlib.crc32(json.dumps(value, sort_keys=True).encode()):08x}"
    return str(value).lower() if isinstance(value, bool) else str(value).replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Row:
    """One method at one size.

    Parameters
    ----------
    method
        Who.
    size
        Bytes of the whole buffer.
    result
        Its result, or None.
    why_not
        Why it has none: what it refuses, or what went wrong; else empty.
    """

    method: Method
    size: float
    result: Result | None
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class News:
    """Where a comparison stands.

    Parameters
    ----------
    done, cells
        How many rows are there, and how many there will be.
    method, size
        Who is being solved at how many bytes; no method while the common bounds are proved.
    progress
        How that solve stands; None when it begins or has ended.
    row
        Its row when it has ended, else None.
    """

    done: int
    cells: int
    method: Method | None
    size: float
    progress: Progress | None = None
    row: Row | None = None


@dataclass(frozen=True, slots=True)
class Crossover:
    """Where another method becomes the fastest as the size grows.

    Parameters
    ----------
    size
        Bytes at which both take the same, interpolated on logarithmic axes between two sizes.
    makespan
        µs there.
    before, after
        The fastest below and above.
    """

    size: float
    makespan: float
    before: Method
    after: Method


@dataclass(frozen=True)
class Comparison:
    """Rows for every method and size, and the bound for every size.

    One that was cancelled has rows only for what was solved.

    Parameters
    ----------
    problem
        The problem at the first size.
    methods
        In the order asked.
    sizes
        Bytes, ascending.
    bounds
        For each size the largest bound that holds for every plan.
    rows
        By method, then by size.
    """

    problem: Problem
    methods: tuple[Method, ...]
    sizes: tuple[float, ...]
    bounds: tuple[Bound, ...]
    rows: tuple[Row, ...]

    def row(self, method: Method | str, size: float) -> Row | None:
        """Return the row of a method at a size of `sizes`, None if it has no row."""
        rows = (each for each in self.rows if each.size == size)
        return next((each for each in rows if str(each.method) == str(method)), None)

    def at(self, size: float) -> tuple[Row, ...]:
        """Return the rows of a size: the fastest first, those without a result last."""
        found = (each for each in self.rows if each.size == size)
        return tuple(sorted(found, key=_makespan))

    def bound(self, size: float) -> Bound:
        """Return the largest bound that holds for every plan of a size of `sizes`."""
        return self.bounds[self.sizes.index(size)]

    def best(self, size: float) -> Row | None:
        """Return the row of the fastest, one of several by `leaders`; None without any result."""
        leader = self.leaders()[self.sizes.index(size)]
        return None if leader is None else self.row(leader, size)

    def gap(self, row: Row) -> float | None:
        """Return how far a row is above the common bound of its size, as a share of that bound.

        None where the row has no result.
        """
        if row.result is None:
            return None
        return max(0.0, row.result.makespan / self.bound(row.size).makespan - 1.0)

    def verdict(self, row: Row) -> str:
        """Return the status of a row in words, against the common bound of its size as `gap` is.

        Its own bounds may be lower, and then two columns would contradict each other.
        """
        result, gap = row.result, self.gap(row)
        if result is None or gap is None:
            return row.why_not
        return verdict_of(result.status, gap=gap, chunk=result.problem.collective.chunk_size)

    def crossovers(self) -> tuple[Crossover, ...]:
        """Return where another method becomes the fastest, by size."""
        return _walk(self)[1]

    def leaders(self) -> tuple[Method | None, ...]:
        """Return who is the fastest at each size, in step with `crossovers`.

        Where several take the same, it is who was the fastest before, else the first that was
        asked; None where no method has a result.
        """
        return _walk(self)[0]

    def table(self) -> list[dict[str, Any]]:
        """Return plain values for printing: size by size, the fastest first, refusals last."""
        leaders = dict(zip(self.sizes, map(str, self.leaders()), strict=True))
        return [
            self._line(row, fastest=str(row.method) == leaders[size])
            for size in self.sizes
            for row in self.at(size)
        ]

    def _line(self, row: Row, *, fastest: bool) -> dict[str, Any]:
        result = row.result
        line: dict[str, Any] = {
            "size": row.size,
            "method": str(row.method),
            "bound_us": self.bound(row.size).makespan,
        }
        if result is None:
            return line | {"status": None, "why_not": row.why_not}
        size, formula = result.size, result.closed_form
        return line | {
            "status": self.verdict(row),
            "whole_gap": result.whole_gap,
            "fastest": fastest,
            "makespan_us": result.makespan,
            "algbw_GBps": result.algbw,
            "busbw_GBps": result.busbw,
            "gap": self.gap(row),
            "own_gap": result.gap,
            "found_by": result.found_by or result.formulation,
            "stop": result.stop.name,
            "solve_s": result.solve_time,
            "variables": None if size is None else size.variables,
            "constraints": None if size is None else size.constraints,
            "formula": None if formula is None else formula.expression,
            "formula_us": None if formula is None else formula.makespan,
            "why": None if formula is None else formula.why(result.makespan),
        }


def _makespan(row: Row) -> float:
    return float("inf") if row.result is None else row.result.makespan


def _walk(comparison: Comparison) -> tuple[tuple[Method | None, ...], tuple[Crossover, ...]]:
    """Go from size to size; return who leads at each, and where another takes over."""
    methods = {str(each): each for each in comparison.methods}
    lead: list[Method | None] = []
    found: list[Crossover] = []
    now, before = "", (0.0, _NOBODY)
    for size in comparison.sizes:
        times = _times(comparison, size)
        both = {name: (before[1][name], times[name]) for name in before[1] if name in times}
        for after, share, time in _taken_over(both, now):
            if len(lead) == 1 and _fastest(before[1], after) == after:
                # It takes the same at the first size, so that it leads from there.
                lead[0], now = methods[after], after
                continue
            place = math.exp((1 - share) * math.log(before[0]) + share * math.log(size))
            found.append(Crossover(place, math.exp(time), methods[now], methods[after]))
            now = after
        now, before = _fastest(times, now), (size, times)
        lead.append(methods.get(now))
    return tuple(lead), tuple(found)


def _times(comparison: Comparison, size: float) -> Times:
    order = [str(each) for each in comparison.methods]
    there = [row for row in comparison.at(size) if row.result is not None]
    there.sort(key=lambda row: order.index(str(row.method)))
    return {str(row.method): math.log(row.result.makespan) for row in there if row.result}


def _fastest(times: Times, now: str) -> str:
    """Return the fastest method: `now` if it is among them, else the first in the request."""
    if not times:
        return ""
    least = min(times.values()) + SAME
    near = [name for name, time in times.items() if time <= least]
    return now if now in near else near[0]


def _taken_over(
    both: Mapping[str, tuple[float, float]], now: str
) -> list[tuple[str, float, float]]:
    """Return the next fastest, the fraction of the interval, and the logarithm of its time there.

    Parameters
    ----------
    both
        Logarithms of the makespans at both ends, by method.
    now
        The fastest at the first end.
    """
    found: list[tuple[str, float, float]] = []
    while now in both:
        begin, end = both[now]
        faster = {
            name: _meet(max(0.0, first - begin), last - end)
            for name, (first, last) in both.items()
            if last < end - SAME
        }
        if not faster:
            break
        soon = [name for name, share in faster.items() if share <= min(faster.values()) + SAME]
        # Of those that meet it at the same place, which will be the fastest and comes first in the
        # request.
        least = min(both[name][1] for name in soon)
        now = next(name for name in soon if both[name][1] <= least + SAME)
        share, (first, last) = faster[now], both[now]
        found.append((now, share, (1 - share) * first + share * last))
    return found


def _meet(over: float, under: float) -> float:
    """Return the fraction of the interval at which a line goes from `over` zero to `under` it."""
    return over / (over - under)


SIZES = (1e3, 16e3, 256e3, 4e6, 64e6, 1e9)
"""Bytes at which methods are compared unless others are requested: about a factor of 16 apart."""

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
    """Check what is requested, before anything is solved.

    Raises
    ------
    ProblemError
        If a formulation or an option does not exist, or there is no method or size.
    """
    ordered = tuple(sorted({float(size) for size in (SIZES if sizes is None else sizes)}))
    if not ordered:
        raise ProblemError(
            "no size is given to compare at; give at least one in bytes, such as 1e6"
        )
    wrong = [size for size in ordered if not (size > 0 and math.isfinite(size))]
    if wrong:
        raise ProblemError(
            f"a size to compare at is {wrong[0]:g} bytes; give more than 0 and a finite number"
        )
    if time_limit is not None and not (time_limit > 0 and math.isfinite(time_limit)):
        raise ProblemError(f"the time limit of each solve is {time_limit:g} s; give more than 0 s")
    first = _at(problem, ordered[0])
    given = default_methods(first) if formulations is None else formulations
    methods = {str(each): each for each in map(_method, given)}
    if not methods:
        names = ", ".join(each.name for each in available())
        raise ProblemError(f"no formulation is given to compare; choose from {names}")
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
            raise ProblemError(
                f"method {text!r}: {part!r} has no value; write {chosen.name}:option=value"
            )
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
        raise ProblemError(f"{chosen.name}: {error}") from None
    given = ((row, getattr(made, row.name)) for row in rows)
    return Method(chosen.name, plain({row.name: v for row, v in given if v != row.default}))


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
