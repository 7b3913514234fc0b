"""Several methods on one question: the same replay, the same proved bound, over sizes.

Every row is a whole solve, verified and replayed; a method that refuses or fails keeps its row
with the reason. Gaps are to one bound for each size, which holds for every plan: chunks may be
split without end. What a method proves for whole chunks only stays with its own result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ccl.bound import Bound
from ccl.problem import Problem
from ccl.result import Result


@dataclass(frozen=True, slots=True)
class Method:
    """A formulation with options, as ``name`` or ``name:option=value,option=value``.

    Parameters
    ----------
    formulation
        Its name.
    options
        By name, those that differ from the default.
    """

    formulation: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        given = ",".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.formulation}:{given}" if given else self.formulation


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
        Its result, or None where it has none.
    why_not
        Why it has none: what it refuses, or what went wrong; else empty.
    """

    method: Method
    size: float
    result: Result | None
    why_not: str = ""


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

    Parameters
    ----------
    problem
        What was asked, at the first size.
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
