"""A first plan on a machine that has not compiled the searches yet, while that is done.

Closed forms, and one pass of list scheduling where the problem is small, are made by the searches
as they are written (`formulations.core.preparing.interpreted`): a second for 16 GPUs, beside a
minute for compiling. The clock of the solve stands still, as no solve would take this time
otherwise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ccl.errors import SolveError
from formulations.core.preparing import begin, compiling, interpreted, ready
from formulations.core.registry import formulation
from formulations.core.run import Run

SMALL, LARGE = 500, 20_000
"""Chunks times destinations above which only closed forms are made, and above which nothing is."""

FORMS: tuple[tuple[str, dict[str, Any]], ...] = (("direct", {}), ("ring", {}), ("tree", {}))

SEARCH: tuple[str, dict[str, Any]] = ("list", {"passes": 1})


def first_plan(run: Run) -> None:
    """Offer what can be made without compiled searches; nothing where they are compiled."""
    if ready():
        return
    begin()
    most = sum(len(chunk.destinations) for chunk in run.problem.collective.chunks)
    tried = (*FORMS, *((SEARCH,) if most <= SMALL else ())) if most <= LARGE else ()
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
