"""What can be said about a drawing before a solve: counts, bounds, and who would take it.

How large a model would be before it is built, and what would make it smaller.

What the page learns of a solve: nothing new, a better plan, or the end.

Why a solve ended without a schedule, in its place, with what would put it right.
"""

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from dash import html

from ccl import text
from ccl.errors import CclError, Infeasible, Unreachable
from ccl.problem import Problem
from ccl.result import ModelSize, Result
from ccl.serialization.topoloom import result_to_json
from ccl.topology import Topology
from designer.jobs import JobState
from designer.session import topology_of
from designer.shell import ui
from designer.shell.request import (
    DEFAULT_FORMULATION,
    Json,
    Request,
    method_title,
    problem_of,
    read_request,
    unjoined,
)
from designer.views.solve.results import bounds_to_json, summary_of
from formulations import available, formulation, lower_bounds, measure, option_fields
from widgets.charts.load import link_load
from widgets.view_model.scene import STEPS, scene, take

SECONDS = 1.0
"""For cuts in time, while somebody draws."""

LIVE_GPUS = 40
"""Above this many GPUs bounds are proved only when asked, since a max-flow per GPU takes time."""

MOST_GPUS_UNASKED = 256
"""Above this many GPUs only the formulation that is chosen says whether it would take it:
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
    begun
        Whether nothing is wrong but that some GPUs are not linked yet.
    """

    trouble: str | None
    bounds: tuple[Json, ...]
    refusals: Mapping[str, str]
    hint: str = ""
    begun: bool = False


def assess(topology: Mapping[str, Any], data: Mapping[str, Any] | None) -> Assessment:
    """Prove bounds and ask each formulation, as far as the input allows."""
    try:
        request = read_request(data)
        problem = problem_of(topology, request)
        few = len(problem.topology.ranks) <= LIVE_GPUS
        whole = problem.collective.whole
        bounds = lower_bounds(problem, whole_chunks=whole, seconds=SECONDS) if few else ()
    except CclError as error:
        apart = unjoined(topology_of(topology)) if isinstance(error, Unreachable) else ""
        if apart:
            return Assessment(apart, (), {}, "Bounds appear once all GPUs are linked.", begun=True)
        return Assessment(str(error), (), {}, "Bounds appear once the above is put right.")
    told = tuple(bounds_to_json(bounds, problem.topology))
    hint = "" if few else f"With more than {LIVE_GPUS} GPUs the solve proves the bounds."
    return Assessment(None, told, _refusals(problem, request.formulation), hint)


def _refusals(problem: Problem, chosen: str) -> dict[str, str]:
    many = len(problem.topology.ranks) > MOST_GPUS_UNASKED
    asked = [each for each in available() if not many or each.name == chosen != DEFAULT_FORMULATION]
    reasons = {each.name: each.why_not(problem) for each in asked}
    return {name: reason for name, reason in reasons.items() if reason}


def formulation_choices(refusals: Mapping[str, str]) -> list[Json]:
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
    return f"{method_title(request.formulation)} cannot solve this: {reason}" if reason else None


def field_at_fault(topology: Mapping[str, Any], data: Mapping[str, Any] | None) -> str:
    """Return the field of the bar without whose value there would be a problem, or nothing.

    What cannot be read at all is said by its field itself.
    """
    try:
        request, drawn = read_request(data), topology_of(topology)
    except CclError:
        return ""
    usual = Request()
    tries = {
        "": request,
        "chunks": replace(request, chunks=usual.chunks),
        "root": replace(request, root=usual.root),
        "size": replace(request, size=usual.size),
    }
    for field, each in tries.items():
        with suppress(CclError):
            problem_of(drawn, each)
            return field
    return ""


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


MOST_MOVES = 200_000
"""Transfers above which some chunks are played: a page cannot hold so many."""

UNPLAYED = "it has too many transfers to be played here; its trees can be looked at one by one"


@dataclass(frozen=True, slots=True)
class Answer:
    """What changes on the page; None where nothing does.

    Parameters
    ----------
    news
        Whether there is a plan that the page has not seen.
    running
        Whether the solve goes on.
    found
        How many plans have been found.
    scene, summary, load
        Of the best plan: for the canvas, the panel and the heat map.
    document
        The result as it is saved, at the end only.
    remark
        A sentence for the user, or None.
    """

    news: bool
    running: bool
    found: int
    scene: Json | None = None
    summary: Json | None = None
    load: Json | None = None
    document: Json | None = None
    remark: str | None = None

    def job(self, key: str) -> Json | None:
        """Return what the page keeps of the solve; None when it is over."""
        return {"key": key, "found": self.found} if self.running else None


def answer(state: JobState, question: Any, *, seen: int, series: str = "") -> Answer:
    """Say what the page has to change.

    Parameters
    ----------
    state
        Where the solve stands.
    question
        The request, kept beside the schedule so that a changed question shows.
    seen
        How many plans the page has seen already.
    series
        Of the solve, so that the player knows a better schedule from one of another solve.
    """
    best, over = state.best, not state.running
    if best is None:
        remark = "it was stopped before the first schedule was found" if over else None
        return Answer(news=False, running=state.running, found=state.found, remark=remark)
    if state.running and state.found <= seen:
        return Answer(news=False, running=True, found=state.found)
    return Answer(
        news=state.found > seen,
        running=state.running,
        found=state.found,
        document=result_to_json(best) if over else None,
        **views_of(
            best,
            question,
            running=state.running,
            again=state.found <= seen,
            take=take(series, state.found),
        ),
    )


def views_of(
    best: Result,
    question: Any,
    *,
    running: bool = False,
    again: bool = False,
    take: Json | None = None,
) -> Json:
    """Return scene, summary and load of a result.

    Parameters
    ----------
    best, question
        The result and its request.
    running
        Whether a better one may follow.
    again
        Whether the page plays this plan already, so that only the words change.
    take
        Which schedule of which solve it is, as `widgets.view_model.scene.take` says it.
    """
    played = scene(best.problem, best.plan, best.timeline, take=take, most=MOST_MOVES)
    epochs = None if best.epochs is None else played.get("epochs")
    summary = {**summary_of(best), "epochs": epochs, "asked": question, "running": running}
    if told := unplayed(best, played):
        summary["log"] = [*summary["log"], told]
    if running:
        summary["stop"] = "the best so far, the solve goes on"
    if again:
        return {"summary": summary}
    return {
        "scene": played,
        "summary": summary,
        "load": link_load(best.timeline, played.get("epoch_duration", best.makespan / STEPS)),
    }


def unplayed(best: Result, played: Json) -> str:
    """Say what of a plan is not played, nothing where all of it is."""
    if "chunks" not in played:
        return UNPLAYED
    shown, every = len(played["chunks"]), len(best.problem.collective.chunks)
    if shown == every:
        return ""
    return (
        f"{shown:,} of its {every:,} chunks are played, at the times at which they move among all "
        "others: a page cannot hold more"
    )


ENOUGH = re.compile(r"\ballow ([\d,]+) (epoch|step|hop|round)s? (?:and [\d,]+ rounds )?or more")
"""How an error names the smallest horizon that could work."""

OPTIONS = {"epoch": "horizon", "step": "steps", "hop": "hops", "round": "rounds"}
"""The option that an error is about, by what it counts."""


def enough(error: CclError, name: str) -> tuple[str, int, str] | None:
    """Return the option that an error asks for, its value, and what it counts.

    None where it asks for none that the formulation called `name` takes.
    """
    found = ENOUGH.search(str(error)) if isinstance(error, Infeasible) else None
    fields = {each.name for each in option_fields(formulation(name).options)}
    if found is None or OPTIONS[found[2]] not in fields:
        return None
    return OPTIONS[found[2]], int(found[1].replace(",", "")), found[2]


def fault(error: CclError, name: str) -> html.Div:
    """Show why there is no schedule.

    Parameters
    ----------
    error
        What the solve raised.
    name
        The formulation of the request.
    """
    asked = enough(error, name)
    content: list[Any] = [html.Span(text.sentence(str(error)))]
    if asked is not None:
        option, value, unit = asked
        use = ui.button(
            f"Use {text.count(value, unit)}",
            {"remedy": f"{name}.{option}", "value": value},
            size="compact-sm",
            variant="light",
            mt=8,
        )
        content.append(html.Div(use))
    return ui.div("ds-banner ds-bad", ui.icon("warning"), html.Div(content))
