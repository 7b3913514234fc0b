"""Replay of a schedule: every link keeps the order of its sends, and no send waits for an epoch.

Replay of a schedule whose links share limits: transfers slow one another down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from ccl.plans import Schedule, Send, ranks_of
from ccl.problem import Problem
from ccl.simulate.engine import Engine, Job, Promises
from ccl.simulate.plan import (
    Crossing,
    Named,
    Plan,
    find_carried,
    find_needs,
    find_predecessors,
    find_release_times,
    plan_sends,
)
from ccl.simulate.routes import SAME_MOMENT, SlowTimes, Spans
from ccl.timeline import Terms, Timeline, Transfer, sort_by_start
from ccl.topology import binding_limits


def replay_limited(
    problem: Problem, schedule: Schedule, *, plan: Plan, needs: Sequence[Sequence[int]]
) -> tuple[list[Transfer], list[float]]:
    """Return transfers and the arrival of each send, in µs.

    Each link is sure of the rate that carries in an epoch what the schedule gives it there; what
    the limits have left goes to the transfers in the order of the schedule. What goes to a device
    with a limited buffer starts no earlier than its epoch, but may be there before the end of its
    last, where limits leave it more than its share. A link keeps the order of what it sends, so
    that nothing that starts early, into a window of less bandwidth even, ends later for it.
    """
    jobs: list[Job] = []
    first: list[int] = []
    for each in plan.crossings:
        first.append(len(jobs))
        epoch, nbytes = each.send.epoch, each.route.nbytes
        for hop in each.route.hops:
            job = Job(hop.link, nbytes, epoch=epoch)
            job.follows = [(first[-1] + k, each.route.hops[k].alpha) for k in hop.after]
            jobs.append(job)
    for start, release in zip(first, find_release_times(problem, plan), strict=True):
        jobs[start].release = release
    for (leaving, member), those in zip(plan.of, needs, strict=True):
        route = plan.crossings[leaving].route
        if member and not route.joins:
            continue  # it leaves with the first, which waits for the same
        head = first[leaving] + route.own[member][0]
        for j in those:
            crossing, arriving = plan.of[j]
            brought = plan.crossings[crossing].route
            last = brought.own[arriving][-1]
            jobs[first[crossing] + last].on_end.append((head, brought.hops[last].alpha))
            jobs[head].waits += 1
    slow = SlowTimes(problem) if problem.windows else None
    promises = _promises(problem, schedule, plan.crossings)
    Engine(problem.topology, jobs, in_order=True, promises=promises, slow=slow).run()
    return _results(plan, jobs)


def _results(plan: Plan, jobs: Sequence[Job]) -> tuple[list[Transfer], list[float]]:
    transfers = []
    arrivals = [0.0] * len(plan.sends)
    done = iter(jobs)
    for route, places, send in plan.crossings:
        ends: list[float] = []
        for hop in route.hops:
            job = next(done)
            # Every wait is for what the schedule has before, so none is for ever.
            assert not math.isnan(job.sent)
            ends.append(job.sent + hop.alpha)
            src, dst = hop.ends
            end, epoch = ends[-1], send.epoch
            transfers.append(
                Transfer(send.chunk, src, dst, job.start, job.sent, end, route.nbytes, epoch)
            )
        for place, own in zip(places, route.own, strict=True):
            arrivals[place] = ends[own[-1]]
    return transfers, arrivals


def _promises(problem: Problem, schedule: Schedule, crossings: Sequence[Crossing]) -> Promises:
    """Spread the bytes of each send over a link under a limit evenly over its epochs."""
    spans = Spans(problem, schedule)
    spread = []
    for each in crossings:
        if not each.route.limited:
            continue
        epoch, held = each.send.epoch, spans.held(each.route, each.send.epoch)
        for hop, later, many in zip(each.route.hops, held.first, held.epochs, strict=True):
            if hop.limited:
                rate = each.route.nbytes / many / schedule.epoch_duration
                spread.append((hop.link, epoch + later, epoch + later + many, rate))
    return Promises(spread, schedule.epoch_duration)


_MOST_PASSES = 50


def replay_schedule(problem: Problem, schedule: Schedule) -> Timeline:
    """Replay a schedule.

    A send starts when its links are free, each at its own offset, and what it carries is there.
    What goes to a device with a limited buffer starts when the schedule starts it, no earlier.
    No send starts later than the schedule starts it; where shared limits bind, this holds for
    its epoch, and not for sends that cross several links at once.
    """
    limits = binding_limits(problem.topology)
    plan = plan_sends(problem, schedule, limits)
    named = find_carried(problem, schedule, plan)
    needs = find_needs(problem, schedule, plan, named)
    if limits or problem.windows:
        transfers, arrivals = replay_limited(problem, schedule, plan=plan, needs=needs)
    else:
        slack = SAME_MOMENT * schedule.duration
        waits = _waits(plan, needs, links=len(problem.topology.links))
        starts = _starts(plan, waits, find_release_times(problem, plan), slack=slack)
        transfers, arrivals = _cross(plan, starts)
    makespan = _last_needed(problem, plan.sends, arrivals)
    placed, after = sort_by_start(transfers, find_predecessors(plan, needs))
    terms = _terms(plan, transfers, named) if named else ()
    return Timeline(placed, makespan, after=after, terms=terms)


def _terms(plan: Plan, transfers: Sequence[Transfer], named: Named) -> Terms:
    """Return the ranks whose contributions each transfer carries, in the order of their starts."""
    sets: dict[int, frozenset[int]] = {}
    found: list[tuple[float, frozenset[int] | None]] = []
    done = iter(transfers)
    for route, places, _ in plan.crossings:
        for place in range(len(route.hops)):
            bits = 0
            for send, own in zip(places, route.own, strict=True):
                if send in named and place in own:
                    bits |= named[send].bits
            if bits and bits not in sets:
                sets[bits] = frozenset(ranks_of(bits))
            found.append((next(done).start, sets.get(bits)))
    return tuple([ranks for _, ranks in sorted(found, key=itemgetter(0))])


@dataclass(frozen=True, slots=True)
class _Waits:
    """What transmissions start after: of number i the places from ``bounds[i]`` to its next.

    It starts at least `later` µs after the transmission `who` does, or after the gathering: -1 is
    the first of these, over when each of its transmissions started so many µs ago.
    """

    bounds: list[int]
    who: list[int]
    later: list[float]
    gatherings: list[list[tuple[int, float]]]


FEW = 4
"""Arrivals up to which what waits for the same does not share them."""


def _waits(plan: Plan, needs: Sequence[Sequence[int]], *, links: int) -> _Waits:
    """Return for each transmission the others it starts after, and at least how many µs after."""
    bounds, who, later = [0], list[int](), list[float]()
    gatherings: list[list[tuple[int, float]]] = []
    known: dict[int, int] = {}
    last = [-1] * links
    until = [0.0] * links
    for i, (route, places, _) in enumerate(plan.crossings):
        # All sends of a multicast leave with the first, which waits for the same.
        for member, place in enumerate(places if route.joins else places[:1]):
            those = needs[place]
            if len(those) > FEW:
                if id(those) not in known:
                    gatherings.append([_arrival(plan, j) for j in those])
                    known[id(those)] = -len(gatherings)
                who.append(known[id(those)])
                later.append(-route.lags[member])
                continue
            for j in those:
                crossing, duration = _arrival(plan, j)
                who.append(crossing)
                later.append(duration - route.lags[member])
        for hop in route.hops:
            link = hop.link
            if last[link] >= 0:
                who.append(last[link])
                later.append(until[link] - hop.offset)
            last[link], until[link] = i, hop.offset + hop.busy
        bounds.append(len(who))
    return _Waits(bounds, who, later, gatherings)


def _arrival(plan: Plan, place: int) -> tuple[int, float]:
    """Return the transmission of a send, and how many µs after its start the send is there."""
    crossing, brought = plan.of[place]
    return crossing, plan.crossings[crossing].route.durations[brought]


def _starts(plan: Plan, waits: _Waits, earliest: Sequence[float], *, slack: float) -> list[float]:
    """Start everything as early as it can, in µs, and not before `earliest`.

    In the order in which the schedule starts the sends, all that one waits for has moved before
    it, save where one over several links starts before one that goes first on its second link.
    Then another pass may move it further; after each pass the starts are possible ones.
    """
    bounds, who, later = waits.bounds, waits.who, waits.later
    starts = list(plan.begins)
    order = np.argsort(starts, kind="stable").tolist()
    passes = _MOST_PASSES if any(len(each.route.hops) > 1 for each in plan.crossings) else 1
    for _ in range(passes):
        moved = 0.0
        over = [math.nan] * len(waits.gatherings)
        for i in order:
            start = earliest[i]
            for k in range(bounds[i], bounds[i + 1]):
                if (before := who[k]) >= 0:
                    soonest = starts[before] + later[k]
                else:
                    all_of = -1 - before
                    if math.isnan(over[all_of]):
                        those = waits.gatherings[all_of]
                        over[all_of] = max(starts[j] + took for j, took in those)
                    soonest = over[all_of] + later[k]
                start = max(start, soonest)
            moved = max(moved, starts[i] - start)
            starts[i] = start
        if moved <= slack:
            break
    return starts


def _cross(plan: Plan, starts: Sequence[float]) -> tuple[list[Transfer], list[float]]:
    """Let all cross their links from their starts on; return transfers and arrivals in µs."""
    transfers = []
    arrivals = [0.0] * len(plan.sends)
    for (route, places, send), start in zip(plan.crossings, starts, strict=True):
        chunk, epoch, nbytes = send.chunk, send.epoch, route.nbytes
        for hop in route.hops:
            src, dst = hop.ends
            begin = start + hop.offset
            sent, end = begin + hop.busy, start + hop.end
            transfers.append(Transfer(chunk, src, dst, begin, sent, end, nbytes, epoch))
        for place, duration in zip(places, route.durations, strict=True):
            arrivals[place] = start + duration
    return transfers, arrivals


def _last_needed(problem: Problem, sends: Sequence[Send], arrivals: Sequence[float]) -> float:
    """Return when the last send that brings something to its destination is there, in µs."""
    ranks, chunks = problem.topology.ranks, problem.collective.chunks
    wanted = [{ranks[rank] for rank in chunk.destinations} for chunk in chunks]
    return max(
        (
            arrival
            for send, arrival in zip(sends, arrivals, strict=True)
            if send.dst in wanted[send.chunk]
        ),
        default=0.0,
    )
