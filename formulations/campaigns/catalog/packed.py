"""A result as it lies in a catalog: in the names of one drawing of its problem, compressed.

What follows from the problem and the plan is not kept: on the way out the plan is verified and
replayed on the problem that is asked, and a bound that it beats is refused.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import Any

import msgspec

from ccl.bound import Bound
from ccl.errors import CatalogError
from ccl.problem import Problem
from ccl.result import (
    PROOF_TOLERANCE,
    ClosedForm,
    ModelSize,
    Plan,
    Result,
    Stop,
    conclude,
    keeps_chunks,
)
from ccl.serialization import wire
from ccl.serialization.text import MOST_BYTES
from ccl.serialization.topoloom import (
    bound_of,
    plan_of,
    problem_from_json,
    problem_to_json,
    result_to_json,
)
from formulations.campaigns.catalog.relabelling import Relabelling

_LEVEL = 6
"""Of zlib; beyond it files shrink by little."""


class _Packed(msgspec.Struct):
    """A result of ``topoloom/1`` without its problem."""

    plan: wire.PlanJson
    bounds: list[wire.BoundJson]
    stop: str
    formulation: str
    options: dict[str, Any]
    solve_time: float
    log: list[str]
    size: wire.SizeJson | None = None
    found_by: str = ""
    closed_form: wire.ClosedFormJson | None = None


def pack(result: Result, onto: Relabelling | None) -> bytes:
    """Return a result without its problem, relabelled if `onto` is given."""
    if onto is not None:
        result = relabelled(result, onto)
    value = result_to_json(result)
    del value["problem"]
    return squeezed(value)


def unpack(content: bytes, onto: Relabelling) -> Result:
    """Return a result of the problem that `onto` leads to, verified and replayed.

    Raises
    ------
    CclError
        If the content is damaged, or the plan breaks a rule or beats a bound.
    """
    read = _read(content)
    plan: Plan = plan_of(read.plan, onto.source.topology)
    bounds = tuple(map(bound_of, read.bounds))
    formula = None
    if read.closed_form is not None:
        formula = ClosedForm(**msgspec.structs.asdict(read.closed_form))
    log = tuple(read.log)
    if not onto.identical:
        plan, bounds = onto.plan(plan), tuple(map(onto.bound, bounds))
        formula = None if formula is None else onto.closed_form(formula)
        log = tuple(map(onto.words, log))
    size = read.size
    result = conclude(
        onto.target,
        plan,
        bounds=bounds,
        stop=Stop[read.stop],
        formulation=read.formulation,
        options=read.options,
        solve_time=read.solve_time,
        log=log,
        size=None if size is None else ModelSize(size.variables, size.constraints, size.nonzeros),
        ours=False,
    )
    about = [each.makespan for each in bounds if not each.whole_chunks or keeps_chunks(plan)]
    if max(about, default=0.0) > result.makespan * (1 + PROOF_TOLERANCE):
        msg = (
            f"nothing is said to be faster than {max(about):g} µs, and the plan takes "
            f"{result.makespan:g} µs"
        )
        raise CatalogError(msg)
    return replace(result, found_by=read.found_by, closed_form=formula)


def plan_in(content: bytes, problem: Problem) -> Plan:
    """Return the plan alone, not verified, in the names of the problem that it is kept for."""
    return plan_of(_read(content).plan, problem.topology)


def bounds_in(content: bytes) -> tuple[Bound, ...]:
    """Return the bounds alone, in the names of the problem that the plan is kept for."""
    return tuple(map(bound_of, _read(content).bounds))


def relabelled(result: Result, onto: Relabelling) -> Result:
    """Return what is kept of a result in other names; problem and replay stay as they are."""
    formula = result.closed_form
    return replace(
        result,
        plan=onto.plan(result.plan),
        bounds=tuple(map(onto.bound, result.bounds)),
        log=tuple(map(onto.words, result.log)),
        closed_form=None if formula is None else onto.closed_form(formula),
    )


def squeezed(value: dict[str, Any]) -> bytes:
    """Return plain JSON values as bytes, short and always the same."""
    return zlib.compress(msgspec.json.encode(value, order="sorted"), _LEVEL)


def problem_in(content: bytes) -> Problem:
    """Return a problem that `problem_bytes` has written."""
    return problem_from_json(msgspec.json.decode(_unsqueezed(content)))


def problem_bytes(problem: Problem) -> bytes:
    """Return a problem as bytes."""
    return squeezed(problem_to_json(problem))


def _unsqueezed(content: bytes) -> bytes:
    """Return what was compressed, no more of it than a file of ours may have."""
    reader = zlib.decompressobj()
    plain = reader.decompress(content, MOST_BYTES)
    if not reader.eof:
        msg = f"what is kept of it was cut off, or has more than {MOST_BYTES:,} bytes"
        raise CatalogError(msg)
    return plain


def _read(content: bytes) -> _Packed:
    try:
        read = msgspec.json.decode(_unsqueezed(content), type=_Packed)
    except (zlib.error, msgspec.DecodeError) as error:
        msg = f"what is kept of it is damaged: {error}"
        raise CatalogError(msg) from error
    if not read.bounds or read.stop not in Stop.__members__:
        msg = f"what is kept of it has no bound, or stopped for an unknown reason: {read.stop}"
        raise CatalogError(msg)
    return read
