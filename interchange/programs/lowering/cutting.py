"""What every lowering begins with: chunks cut in pieces, and the sizes that a program is for."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.result import Plan
from interchange.programs.lowering.cells import Buffers, buffers_of
from interchange.programs.lowering.hops import Hops, hops_of

MOST_PIECES = 4096
"""Pieces of a chunk at most, whatever is asked for."""


def pieces_row() -> Any:
    """Return the option of how finely chunks are cut."""
    return field(
        default=128,
        metadata={
            "label": "Pieces of a chunk, at most",
            "min": 1,
            "max": MOST_PIECES,
            "help": "Shares that need more are rounded to so many.",
        },
    )


def smallest_row() -> Any:
    """Return the option of the smallest buffer that a program is for."""
    return field(
        default=0,
        metadata={
            "label": "From a size of",
            "unit": "bytes",
            "min": 0,
            "help": "Buffers below are left to other programs.",
        },
    )


def largest_row() -> Any:
    """Return the option of the largest buffer that a program is for."""
    return field(
        default=1 << 40,
        metadata={
            "label": "Up to a size of",
            "unit": "bytes",
            "min": 1,
            "help": "Buffers above are left to other programs.",
        },
    )


def cut(
    problem: Problem, plan: Plan, *, pieces: int, smallest: int, largest: int
) -> tuple[Hops, Buffers]:
    """Return the hops of a plan and the layout of its buffers, once the options are in order.

    Raises
    ------
    ProblemError
        If the sizes are none, or a runtime does not know the collective.
    """
    if smallest > largest:
        msg = (
            f"the program is for {smallest:,} to {largest:,} bytes, which is no size; "
            "give the smaller one first"
        )
        raise ProblemError(msg)
    hops = hops_of(problem, plan, most_pieces=pieces)
    return hops, buffers_of(problem.collective, pieces=hops.pieces)
