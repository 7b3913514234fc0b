"""What can be said about a drawing before a solve: counts, bounds, and who would take it.

How large a model would be before it is built, and what would make it smaller.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ccl import text
from ccl.errors import CclError
from ccl.problem import Problem
from ccl.result import ModelSize
from ccl.topology import Topology
from designer.shell.request import DEFAULT_FORMULATION, Request, problem_of, read_request
from designer.views.solve.results import bounds_to_json
from formulations import available, formulation, lower_bounds, measure, option_fields

LIVE_GPUS = 40
"""Above this many GPUs bounds are proved only when asked, since a max-flow per GPU takes time."""

ASKED_GPUS = 256
"""Above this many GPUs only the formulation that is chosen is asked whether it would take it:
some look for a ring of all GPUs or count their model first."""


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a drawing and a request amount to.

    Parameters
    ----------
    trouble
        Why no formulation could begin, in a sentence, or None.
    bounds
        Lower bounds as the page keeps them, the largest first.
    refusals
        Why each formulation would not take it, by name; absent if it would.
    hint
        Why there are no bounds though nothing is wrong.
    """

    trouble: str | None
    bounds: tuple[dict[str, Any], ...]
    refusals: Mapping[str, str]
    hint: str = ""


def assess(topology: Mapping[str, Any], data: Mapping[str, Any] | None) -> Assessment:
    """Prove bounds and ask each formulation, as far as the input allows."""
    try:
        request = read_request(data)
        problem = problem_of(topology, request)
        few = len(problem.topology.ranks) <= LIVE_GPUS
        bounds = lower_bounds(problem, whole_chunks=problem.collective.whole) if few else ()
    except CclError as error:
        return Assessment(str(error), (), {}, "Bounds are back once the above is put right.")
    told = tuple(bounds_to_json(bounds, problem.topology))
    hint = "" if few else f"With more than {LIVE_GPUS} GPUs the solve proves the bounds."
    return Assessment(None, told, _refusals(problem, request.formulation), hint)


def _refusals(problem: Problem, chosen: str) -> dict[str, str]:
    many = len(problem.topology.ranks) > ASKED_GPUS
    asked = [each for each in available() if not many or each.name == chosen != DEFAULT_FORMULATION]
    reasons = {each.name: each.why_not(problem) for each in asked}
    return {name: reason for name, reason in reasons.items() if reason}


def formulation_choices(refusals: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the menu of formulations, the usual one first; those that refuse last, with why."""
    return [
        {
            "value": each.name,
            "label": each.title,
            "note": refusals.get(each.name, each.reference),
            "disabled": each.name in refusals,
        }
        for each in sorted(
            available(), key=lambda each: (each.name in refusals, each.name != DEFAULT_FORMULATION)
        )
    ]


def can_solve(assessment: Assessment, request: Request) -> str | None:
    """Say why this request cannot be solved, or None if it can be tried."""
    if assessment.trouble:
        return assessment.trouble
    reason = assessment.refusals.get(request.formulation)
    return f"{request.formulation} cannot solve this: {reason}" if reason else None


LARGE = 200_000
"""Variables above which a proof takes minutes or more on two cores."""
HUGE = 10_000_000
"""Variables or rows that no model is built with."""
WORTH = 0.6
"""A remedy leaves at most this share of the variables."""
MULTIPLIERS = (2, 4, 8, 16)
"""Factors for longer epochs."""
LIGHT = ("auto", "list")
"""Methods that need no model, or build none that is too large."""
PATIENCE = 2.0
"""Seconds in which remedies are looked for."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """What would make the model smaller.

    Parameters
    ----------
    label
        As on its button.
    what, value
        What the button sets: ``chunks``, ``formulation`` or ``<formulation>.<option>``.
    variables
        Of the smaller model; None where the method has no model.
    """

    label: str
    what: str
    value: int | str
    variables: int | None


@dataclass(frozen=True, slots=True)
class Sizing:
    """The size of a model, and a warning where it is large.

    Parameters
    ----------
    size
        As `formulations.measure` tells.
    warning
        A sentence, or nothing.
    remedies
        For a large one, the least change first.
    """

    size: ModelSize
    warning: str = ""
    remedies: tuple[Remedy, ...] = ()


def sizing(topology: Topology, request: Request) -> Sizing | None:
    """Measure the model that a request leads to; None where there is none or nobody knows.

    Raises
    ------
    CclError
        If it cannot be solved as it stands.
    """
    problem = problem_of(topology, request)
    size = _measured(problem, request)
    if size is None:
        return None
    warning = warning_of(size, memory_here())
    return Sizing(size, warning, tuple(remedies(topology, request, size)) if warning else ())


def warning_of(size: ModelSize, memory: float | None) -> str:
    """Say what is wrong with a size, or nothing.

    Parameters
    ----------
    size
        Of the model.
    memory
        Bytes that this machine has, or None where it does not say.
    """
    if max(size.variables, size.constraints) > HUGE:
        return f"Too large: no model of more than {HUGE:,} variables is built."
    if memory is not None and size.memory > memory:
        has, takes = text.size(memory), text.size(size.memory)
        return f"Too large: it takes about {takes}, and this machine has {has}."
    if size.variables > LARGE:
        return f"Large: above {LARGE:,} variables a proof takes minutes or more."
    return ""


def memory_here() -> float | None:
    """Return the bytes of memory of this machine, None where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def remedies(topology: Topology, request: Request, size: ModelSize) -> list[Remedy]:
    """Return what makes the model much smaller: longer epochs, fewer chunks, another method.

    Of each, the least change that leaves a model that is not large, or else the largest change.
    """
    found: list[Remedy] = []
    end = time.monotonic() + PATIENCE
    for ways in (_longer(request), _fewer(request), _others(topology, request)):
        best: Remedy | None = None
        for label, what, value, changed in ways:
            remedy = _tried(topology, changed, Remedy(label, what, value, None))
            if remedy is not None and (remedy.variables or 0) <= WORTH * size.variables:
                best = remedy
            if time.monotonic() > end or (best and (best.variables or 0) <= LARGE):
                break
        if best is not None:
            found.append(best)
    return found


_Way = tuple[str, str, int | str, Request]


def _longer(request: Request) -> Iterator[_Way]:
    name = request.formulation
    fields = {each.name for each in option_fields(formulation(name).options)}
    now = int(request.options.get("epoch_multiplier") or 1)
    for factor in MULTIPLIERS if "epoch_multiplier" in fields else ():
        options = {**request.options, "epoch_multiplier": now * factor}
        changed = replace(request, options=options)
        yield f"Epochs {factor} times as long", f"{name}.epoch_multiplier", now * factor, changed


def _fewer(request: Request) -> Iterator[_Way]:
    if request.collective == "custom":
        return
    chunks = (request.chunks or 1) // 2
    while chunks >= 1:
        label = f"{text.count(chunks, 'chunk')} per shard"
        yield label, "chunks", chunks, replace(request, chunks=chunks)
        chunks //= 2


def _others(topology: Topology, request: Request) -> Iterator[_Way]:
    problem = problem_of(topology, request)
    for each in sorted(available(), key=lambda each: each.name):
        other = each.name in LIGHT and each.name != request.formulation
        if other and each.why_not(problem) is None:
            changed = replace(request, formulation=each.name, options={})
            yield each.title, "formulation", each.name, changed


def _tried(topology: Topology, request: Request, remedy: Remedy) -> Remedy | None:
    """Return the remedy with the size that it leads to, None where it leads nowhere."""
    try:
        size = _measured(problem_of(topology, request), request)
    except CclError:
        return None
    return remedy if size is None else replace(remedy, variables=size.variables)


def _measured(problem: Problem, request: Request) -> ModelSize | None:
    return measure(problem, request.formulation, options=request.options)
