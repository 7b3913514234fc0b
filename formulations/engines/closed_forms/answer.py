"""From a closed form to a verified schedule, with the formula beside it.

A form only spreads. A sum to one rank is the mirrored form on reversed links read backwards; a sum
that all want is added up first and spread from where it is, unless the form exchanges partial
sums. Schedules keep the order that the steps give the links and what each send waits for; the
replay then lets steps overlap. Where sums are exchanged a step begins when the one before is over,
as what a rank sends on is what it has added up by then.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ccl.collective import Collective
from ccl.problem import Problem
from ccl.result import Result, Stop
from formulations.core.refusals import no_stores
from formulations.core.run import Run
from formulations.engines.closed_forms.messages import EVERYONE, Task
from formulations.engines.closed_forms.pattern import Pattern
from formulations.engines.reverse_time import no_mirror

MOST_PLACES = 50_000_000
"""Chunks times devices above which there is not enough memory."""

PERSONAL = frozenset({"gather", "scatter", "all-to-all"})
"""Kinds whose chunks have one destination each."""


def refuses(problem: Problem) -> str | None:
    """Say in words what no closed form takes, or None."""
    chunks, devices = len(problem.collective.chunks), len(problem.topology.devices)
    if chunks * devices > MOST_PLACES:
        return f"{chunks:,} chunks on {devices:,} devices are too many to be followed one by one"
    if len(problem.topology.ranks) < 2:
        return "it has fewer than 2 GPUs"
    return no_stores(problem) or no_mirror(problem)


def answer(run: Run, pattern: Pattern) -> Result:
    """Offer the schedule of a form.

    Raises
    ------
    Infeasible
        If no way leads from one place to another.
    """
    # They load numba and SciPy's graphs, which a menu of formulations does without.
    from formulations.engines.closed_forms.form import Form  # noqa: PLC0415
    from formulations.engines.list_scheduling.timed import in_epochs, one_after  # noqa: PLC0415

    collective = run.problem.collective
    form = Form(run.problem, pattern)
    if not collective.reduces:
        walks = [form.spread(task_of(collective, pattern.order))]
        timed = walks[0].timed
        plan = in_epochs(form.problem, form.moves, timed)
    elif len(collective.chunks[0].destinations) == 1:
        walks = [form.added(task_of(collective.reversed(), form.back_order))]
        timed, _ = form.turned(walks[0])
        plan = in_epochs(form.problem, form.moves, timed)
    elif pattern.exchange is not None:
        walks = [form.exchanged()]
        plan = form.in_steps(walks[0])
    else:
        walks = [form.added(form.rooted(form.back_order)), form.spread(form.rooted(pattern.order))]
        first, last = form.turned(walks[0])
        second = replace(walks[1].timed, start=walks[1].timed.start + last)
        plan = in_epochs(form.problem, form.moves, one_after(first, second))
    run.closed_form = form.closed(walks)
    run.offer(plan)
    return run.finish(Stop.CONSTRUCTED)


def task_of(collective: Collective, order: np.ndarray) -> Task:
    """Return what a collective without sums spreads, in places of an order."""
    place = np.argsort(order)
    holders = np.array([chunk.holders[0] for chunk in collective.chunks])
    goals = np.array([chunk.destinations[0] for chunk in collective.chunks])
    alone = collective.kind in PERSONAL
    return Task(
        places=len(order),
        chunk=np.arange(len(holders)),
        root=place[holders],
        goal=place[goals] if alone else np.full(len(goals), EVERYONE),
    )
