"""The first plan on a machine that has not compiled the searches yet, while that is done.

Closed forms, and one pass of list scheduling where the problem is small, are made by the searches
as they are written (`formulations.core.preparing.interpreted`): a second for 16 GPUs, beside half
a minute for compiling. The clock of the solve stands still, as no solve would take this time
otherwise. After that small problems are searched as the searches are written, but for finer chunks,
which wait for the compiler as larger problems do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ccl.errors import SolveError
from ccl.problem import Problem
from formulations.core.preparing import compiling, interpreted, prepare_searches, ready
from formulations.core.registry import formulation
from formulations.core.run import Run

TINY, LARGE = 500, 20_000
"""Pairs of a chunk and a rank above which only closed forms are made, and then nothing is."""

FORMS: tuple[tuple[str, dict[str, Any]], ...] = (("direct", {}), ("ring", {}), ("tree", {}))

SEARCH: tuple[str, dict[str, Any]] = ("list", {"passes": 1})


def first_plan(run: Run) -> None:
    """Offer what can be made without compiled searches; nothing where they are compiled."""
    if ready():
        return
    prepare_searches()
    most = pairs_of(run.problem)
    tried = (*FORMS, *((SEARCH,) if most <= TINY else ())) if most <= LARGE else ()
    with compiling(), interpreted():
        for name, options in tried:
            _offered(run, name, options)


def _offered(run: Run, name: str, options: dict[str, Any]) -> None:
    """Let a formulation offer its plan to a run, and keep the best."""
    chosen = formulation(name)
    if run.enough or chosen.why_not(run.problem) is not None:
        return
    from formulations.solving.windows import answer  # noqa: PLC0415  it replays

    inner = replace(run, method=name, log=[], time_limit=None)
    try:
        answer(chosen, inner, chosen.options(**options))
    except SolveError as error:
        run.note(f"{name}: {error}")
    run.best = inner.best


def pairs_of(problem: Problem) -> int:
    """Return how many ranks chunks come to, and how many contributions of others are added up."""
    chunks = problem.collective.chunks
    return sum(max(len(each.destinations), len(each.holders) - 1) for each in chunks)
