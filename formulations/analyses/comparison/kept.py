"""A comparison as plain JSON and back; every plan of it is verified and replayed again.

Results are those of ``topoloom/1`` without the problem, which stands once for all sizes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import msgspec

from ccl.bound import Bound
from ccl.errors import FormatError
from ccl.problem import Problem
from ccl.result import PROOF_TOLERANCE, Result
from ccl.serialization import wire
from ccl.serialization.topoloom import (
    bound_of,
    bound_to_json,
    named_by,
    problem_of,
    problem_to_json,
    result_from_json,
    result_to_json,
    shaped,
)
from formulations.analyses.comparison.table import Comparison, Method, Question, Row, sharing

FORMAT = "topoloom-comparison/1"


class _MethodJson(msgspec.Struct, forbid_unknown_fields=True):
    formulation: str
    options: dict[str, Any]


class _RowJson(msgspec.Struct, forbid_unknown_fields=True):
    """A row; method and size by their places.

    Its plan answers the problem with every chunk in so many `parts`.
    """

    method: int
    size: int
    result: dict[str, Any] | None
    why_not: str
    parts: int = 1


class _ComparisonJson(msgspec.Struct, forbid_unknown_fields=True):
    format: Literal["topoloom-comparison/1"]
    problem: wire.ProblemJson
    methods: list[_MethodJson]
    sizes: list[float]
    bounds: list[wire.BoundJson]
    rows: list[_RowJson]


def comparison_to_json(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as plain JSON values."""
    places = {str(each): place for place, each in enumerate(comparison.methods)}
    return {
        "format": FORMAT,
        "problem": problem_to_json(comparison.problem),
        "methods": [
            {"formulation": each.formulation, "options": dict(each.options)}
            for each in comparison.methods
        ],
        "sizes": list(comparison.sizes),
        "bounds": [bound_to_json(each) for each in comparison.bounds],
        "rows": [
            {
                "method": places[str(each.method)],
                "size": comparison.sizes.index(each.size),
                "result": None if each.result is None else _without_problem(each.result),
                "why_not": each.why_not,
                **_parts(each, len(comparison.problem.collective.chunks)),
            }
            for each in comparison.rows
        ],
    }


def comparison_from_json(value: Any) -> Comparison:
    """Read a comparison; each plan is verified and replayed again.

    Raises
    ------
    FormatError
        If the shape is wrong, or a plan beats a bound.
    ProblemError
        If it has the shape of a comparison and its problem is none.
    ScheduleError
        If a plan breaks a rule of its problem.
    """
    shape = shaped(value, _ComparisonJson, "comparison")
    methods = tuple(Method(each.formulation, each.options) for each in shape.methods)
    sizes = tuple(shape.sizes)
    if sizes != tuple(sorted(set(sizes))) or not sizes or sizes[0] <= 0:
        msg = f"comparison, at sizes: {list(sizes)}; give positive ones, ascending"
        raise FormatError(msg)
    if len(shape.bounds) != len(sizes):
        msg = f"comparison, at bounds: there are {len(shape.bounds)} for {len(sizes)} sizes"
        raise FormatError(msg)
    problems = Question(problem_of(shape.problem), methods, sizes).problems
    bounds = tuple(bound_of(each) for each in shape.bounds)
    for place, bound in enumerate(bounds):
        _check_names(place, bound, problems[place])
    rows = []
    for number, each in enumerate(shape.rows):
        if not (0 <= each.method < len(methods) and 0 <= each.size < len(sizes)):
            msg = f"comparison, at rows[{number}]: there is no method {each.method} or size "
            msg += f"{each.size}; both are places in their lists"
            raise FormatError(msg)
        result = _result(each.result, problems[each.size], parts=each.parts)
        if result is not None:
            _check_beaten(number, result, bounds[each.size])
        rows.append(Row(methods[each.method], sizes[each.size], result, each.why_not))
    return Comparison(problems[0], methods, sizes, bounds, tuple(rows))


def _parts(row: Row, chunks: int) -> dict[str, int]:
    """Return into how many parts the chunks that were asked for are cut, where they are."""
    many = 0 if row.result is None else len(row.result.problem.collective.chunks)
    return {"parts": many // chunks} if many > chunks else {}


def _without_problem(result: Result) -> dict[str, Any]:
    value = result_to_json(result)
    del value["problem"]
    return value


def _result(value: dict[str, Any] | None, problem: Problem, *, parts: int) -> Result | None:
    if value is None:
        return None
    if parts != 1:
        problem = replace(problem, collective=problem.collective.cut(parts))
    return sharing(result_from_json({**value, "problem": problem_to_json(problem)}), problem)


def _check_names(place: int, bound: Bound, problem: Problem) -> None:
    for name in named_by(bound):
        if name not in problem.topology.index:
            msg = (
                f"comparison, at bounds[{place}]: its witness names {name!r}, which is not a "
                f"device of {problem.topology}; compare again"
            )
            raise FormatError(msg)


def _check_beaten(number: int, result: Result, bound: Bound) -> None:
    if bound.makespan > result.makespan * (1 + PROOF_TOLERANCE):
        msg = (
            f"comparison, at rows[{number}]: nothing is faster than {bound.makespan:g} µs, and "
            f"the plan, verified, takes {result.makespan:g} µs; compare again"
        )
        raise FormatError(msg)
