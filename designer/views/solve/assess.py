"""What can be said about a drawing before a solve: counts, bounds, and who would take it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ccl.errors import CclError
from ccl.problem import Problem
from designer.shell.presets import ROOTED
from designer.shell.request import DEFAULT_FORMULATION, Request, problem_of, read_request
from designer.views.solve.results import bounds_to_json
from formulations import available, lower_bounds

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


QUESTION = ("collective", "size", "chunks", "root")


def same_question(summary: Mapping[str, Any] | None, request: Mapping[str, Any] | None) -> bool:
    """Whether a schedule answers what is asked now, whatever it was found with."""
    if summary is None or request is None:
        return True
    asked = summary.get("asked") or {}
    rooted = request.get("collective") in ROOTED
    keys = QUESTION if rooted else QUESTION[:-1]
    return all(asked.get(key) == request.get(key) for key in keys)
