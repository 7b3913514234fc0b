"""Plans made without windows, in later epochs that keep to windows of less bandwidth.

A plan made without windows is preserved send by send and link by link, with the order of each, and
all its times are drawn out: what started at t starts in the first epoch after F t. F is twice what
the smallest share requires, and an epoch a small part of the shortest send, so that each send, at
the share that windows leave it, is there before F times the time at which it was there. A time in
which a link lets nothing through is waited out first. The replay forgets the epochs and is as
early as the order allows (`ccl.simulate`): no later than on links that are slowed for ever, since
what has a link for itself, and more of it, is done earlier. Where the other links lead everywhere,
plans are also made without those that windows make dead, and nothing is waited for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ccl.errors import ProblemError, ScheduleError, SolveError
from ccl.plans import Schedule
from ccl.problem import Problem, Window
from ccl.result import Result, Stop, conclude
from ccl.simulate.transmissions import plan_sends
from ccl.topology import Topology, binding_limits
from ccl.verify import verify
from formulations.bounds import initial_bounds
from formulations.core.front import Front
from formulations.core.registry import Formulation

if TYPE_CHECKING:
    from formulations.core.run import Progress, Run

SPARE = 2.0
"""How much more time than the smallest share requires."""

PARTS = 8
"""Epochs of the shortest send."""

LEAST = 1e-4
"""Of the plan's own epoch, what an epoch is at least: sends that take no time set none."""


def slowed_for_ever(problem: Problem) -> Topology | None:
    """Return the links with the least of their windows for ever, without those that are dead then.

    None where all would be.
    """
    topology, least = problem.topology, dict[tuple[str, str], float]()
    for window in problem.windows:
        for ends in window.links:
            least[ends] = min(window.share, least.get(ends, 1.0))
    links = tuple(
        replace(link, bandwidth=link.bandwidth * least.get(link.ends, 1.0))
        for link in topology.links
        if least.get(link.ends, 1.0) > 0
    )
    left = {link.ends for link in links}
    limits = tuple(
        replace(limit, links=tuple(ends for ends in limit.links if ends in left))
        for limit in topology.limits
        if left.intersection(limit.links)
    )
    return replace(topology, links=links, limits=limits) if links else None


def under_windows(problem: Problem, schedule: Schedule) -> Schedule | None:
    """Return a plan of the problem without its windows as one with them; None where none fits.

    Parameters
    ----------
    problem
        With windows.
    schedule
        A verified plan of the same problem without windows, or with links slowed for ever.
    """
    for candidate in (schedule, *_drawn_out(problem, schedule)):
        try:
            verify(problem, candidate)
        except ScheduleError:
            continue
        return candidate
    return None


def without_windows(
    chosen: Formulation, run: Run, options: Any, *, rest: int = 0
) -> list[SolveError]:
    """Let a formulation solve a problem with windows as if it had none.

    It makes plans for links that are slowed for ever and for links without windows; each is offered
    as it is under the windows.

    Parameters
    ----------
    chosen, run, options
        What is run, on what, and how.
    rest
        How many more equal shares of the time are added.

    Returns
    -------
        Why it found none, for those links for which it did not.
    """
    problem, failed = run.problem, list[SolveError]()
    every = list(_easier(problem))
    for place, easier in enumerate(every):
        if run.enough or (place and run.expired):
            break
        if chosen.why_not(easier) is not None:
            continue  # links that are slowed for ever may be out of balance
        left = None if run.left is None else run.left / (len(every) - place + rest)
        whole = chosen.keeps_chunks(easier)
        inner = replace(
            run,
            problem=easier,
            bounds=initial_bounds(easier, quick=chosen.quick, whole_chunks=whole),
            time_limit=None if left is None else run.seconds + left,
            progress=partial(_heard, run),
            best=None,
            front=Front(),
            log=[],
        )
        try:
            _offered(run, chosen.run(inner, options))
        except SolveError as error:
            failed.append(error)
    return failed


def _easier(problem: Problem) -> Iterator[Problem]:
    """Yield it on links that are slowed for ever, where these lead everywhere, and as it is."""
    slowed = slowed_for_ever(problem)
    if slowed is not None:
        with suppress(ProblemError):
            yield Problem(slowed, problem.collective)
    yield Problem(problem.topology, problem.collective)


def answer(chosen: Formulation, run: Run, options: Any) -> Result:
    """Run a formulation; under windows that it does not know, re-time what it finds without them.

    Raises
    ------
    SolveError
        If it finds none.
    """
    if chosen.windows or not run.problem.windows:
        return chosen.run(run, options)
    failed = without_windows(chosen, run, options)
    if run.best is None and failed and not run.expired:
        raise failed[0]
    stop = Stop.TIME_LIMIT if run.expired else Stop.EFFORT
    return run.finish(run.reached if run.enough else stop)


def _offered(run: Run, found: Result) -> None:
    """Offer a plan without windows as it is under those of a run's problem, if it can be."""
    best = run.best
    same = found.problem.topology is run.problem.topology
    if same and best is not None and found.makespan >= best.makespan:
        return  # windows make no plan faster
    problem = replace(run.problem, collective=found.problem.collective)
    given = found.plan
    plan = under_windows(problem, given) if isinstance(given, Schedule) else given
    if plan is None:
        return
    try:
        made = conclude(
            problem,
            plan,
            bounds=(),
            stop=Stop.EFFORT,
            formulation=run.formulation,
            options=run.options,
            solve_time=run.seconds,
            log=found.log,
            size=found.size,
        )
    except (ScheduleError, ProblemError):
        return  # such as a plan in the steady state of links that are dead for a time
    run.take(made, by=run.method or found.found_by)


def _heard(run: Run, news: Progress) -> None:
    """Pass on the reports of an easier run."""
    if news.result is not None:
        _offered(run, news.result)
    else:
        run.report(news.message)


def _drawn_out(problem: Problem, schedule: Schedule) -> Iterator[Schedule]:
    """Yield the plan in later epochs: each transmission by itself, then every epoch by itself."""
    free = replace(problem, windows=())
    limits = binding_limits(problem.topology)
    plan = plan_sends(free, schedule, limits)
    shares = [window.share for window in problem.windows if window.share > 0]
    longer = SPARE / min(shares, default=1.0)
    busy = [hop.busy for each in plan.crossings for hop in each.route.hops if hop.busy > 0]
    tau = max(min(busy, default=math.inf) / PARTS, LEAST * schedule.epoch_duration)
    tau = min(tau, schedule.epoch_duration)
    begins = [0.0] * len(plan.sends)
    for crossing, begin in zip(plan.crossings, plan.begins.tolist(), strict=True):
        late = max(crossing.route.lags) if crossing.route.joins else 0.0
        for place in crossing.sends:
            begins[place] = begin + late
    wait = _waited(problem, longer * schedule.duration)
    epochs = [math.ceil((wait + longer * begin) / tau - 1e-9) for begin in begins]
    sends = [replace(send, epoch=epoch) for send, epoch in zip(plan.sends, epochs, strict=True)]
    horizon = math.ceil((wait + longer * schedule.duration) / tau) + 1
    yield Schedule(tuple(sends), tau, horizon)
    if limits:
        tau = longer * schedule.epoch_duration
        later = math.ceil(wait / tau)
        moved = tuple(replace(send, epoch=later + 2 * send.epoch) for send in schedule.sends)
        yield Schedule(moved, tau, later + 2 * schedule.horizon)


def _waited(problem: Problem, duration: float) -> float:
    """Return the µs until no link is dead for as long as a plan takes."""
    wait = 0.0
    for window in sorted((each for each in problem.windows if not each.share), key=_begin):
        if window.begin < wait + duration:
            wait = max(wait, window.end)
    return wait


def _begin(window: Window) -> float:
    return window.begin
