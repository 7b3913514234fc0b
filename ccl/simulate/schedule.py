"""Replay of a schedule: every link keeps the order of its sends, and no send waits for an epoch.

Where links share limits (`replay_limited`) transfers slow one another down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import add, itemgetter

import numpy as np

from ccl.plans import Floats, Integers, Schedule, ranks_of
from ccl.problem import Problem
from ccl.simulate.dependencies import Named, find_carried, find_needs, find_sources
from ccl.simulate.engine import Engine, Job, Promises
from ccl.simulate.routes import SAME_MOMENT, SlowTimes, Spans
from ccl.simulate.transmissions import Crossing, Plan, find_release_times, plan_sends, transfers_at
from ccl.timeline import Slices, Terms, Timeline, Transfer, Transfers, among
from ccl.topology import binding_limits


def replay_limited(
    problem: Problem, schedule: Schedule, *, plan: Plan, needs: Slices
) -> tuple[Transfers, Floats]:
    """Return transfers and the arrival of each send, in µs.

    Each link is sure of the rate that carries in an epoch what the schedule gives it there; what
    the limits have left goes to the transfers in the order of the schedule. What goes to a device
    with a limited buffer starts no earlier than its epoch, but may be there before the end of its
    last, where limits leave it more than its share. A link keeps the order of what it sends, so
    that nothing that starts early, into a window of less bandwidth even, ends later for it.
    """
    jobs: list[Job] = []
    for each in plan.crossings:
        first, epoch, nbytes = len(jobs), each.send.epoch, each.route.nbytes
        for hop in each.route.hops:
            job = Job(hop.link, nbytes, epoch=epoch)
            job.follows = [(first + k, each.route.hops[k].alpha) for k in hop.after]
            jobs.append(job)
    turns, firsts = plan.turns, plan.turns.hops.bounds.tolist()
    for start, release in zip(firsts, find_release_times(problem, plan).tolist(), strict=False):
        jobs[start].release = release
    heads, tails = turns.heads.tolist(), turns.tails.tolist()
    alphas = [link.alpha for link in problem.topology.links]
    for send in turns.leads.tolist():
        head = heads[send]
        for brought in needs[send]:
            before = jobs[tails[brought]]
            before.on_end.append((head, alphas[before.link]))
            jobs[head].waits += 1
    slow = SlowTimes(problem) if problem.windows else None
    promises = _promises(problem, schedule, plan.crossings)
    Engine(problem.topology, jobs, in_order=True, promises=promises, slow=slow).run()
    start, sent = (np.array([getattr(job, name) for job in jobs]) for name in ("start", "sent"))
    # Every wait is for what the schedule has before, so none is for ever.
    assert not np.isnan(sent).any()
    end = sent + np.array(alphas)[turns.hops.link]
    transfers = transfers_at(problem, plan, start=start, sent=sent, end=end)
    return transfers, end[turns.tails]


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
    No send starts later than the schedule starts it; on links under shared limits that bind and
    on links with windows, this holds for its epoch, and not beside sends that cross several links
    at once: such a link counts what crosses it epoch by epoch, but serves one after the other,
    and is held for as long as the bytes of such a send take to come to it.
    """
    limits = binding_limits(problem.topology)
    plan = plan_sends(problem, schedule, limits)
    named = find_carried(problem, schedule, plan)
    needs = find_needs(problem, schedule, plan, named)
    if limits or problem.windows:
        transfers, arrivals = replay_limited(problem, schedule, plan=plan, needs=needs)
    else:
        slack = SAME_MOMENT * schedule.duration
        starts = _starts(plan, _waits(plan, needs), find_release_times(problem, plan), slack=slack)
        transfers, arrivals = _cross(problem, plan, starts)
    makespan = _last_needed(problem, plan, arrivals)
    terms = _terms(plan, transfers, named) if named else ()
    placed, after = transfers.by_start(find_sources(plan, needs))
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


@dataclass(frozen=True, eq=False)
class _Waits:
    """What transmissions start after: of number i the rows from ``bounds[i]`` to its next.

    It starts at least `later` µs after the transmission `who` does, or after the gathering: -1 is
    the first of these, over when each of its transmissions started so many µs ago.
    """

    bounds: Integers
    who: Integers
    later: Floats
    gatherings: list[tuple[Integers, Floats]]

    def earliest(self, starts: Floats, earliest: Floats) -> Floats:
        """Return when each may start if the others start so, and not before `earliest`."""
        over = [float((starts[who] + took).max()) for who, took in self.gatherings]
        moment = np.append(starts, over[::-1])[self.who] + self.later
        found = earliest.copy()
        some = np.flatnonzero(np.diff(self.bounds))
        if some.size:
            soonest = np.maximum.reduceat(moment, self.bounds[some])
            found[some] = np.maximum(found[some], soonest)
        return found


FEW = 4
"""Arrivals up to which what waits for the same does not share them."""


def _waits(plan: Plan, needs: Slices) -> _Waits:
    """Return for each transmission the others it starts after, and at least how many µs after."""
    turns, number, leads = plan.turns, plan.turns.of[0], plan.turns.leads
    durations, lags = turns.of_sends("durations"), turns.of_sends("lags")
    short = needs.lengths[leads] <= FEW
    few, many = leads[short], leads[~short]
    whose, those = needs.flat(few)
    shared, which = needs.distinct(many)
    gatherings = [(number[places], durations[places]) for places in map(np.asarray, shared)]
    link, before, gap = _before_on_links(plan)
    owner = np.concatenate([number[few[whose]], number[many], link])
    by_owner = np.argsort(owner, kind="stable")
    who = np.concatenate([number[those], -1 - which, before])
    later = np.concatenate([durations[those] - lags[few[whose]], -lags[many], gap])
    ends = np.searchsorted(owner[by_owner], np.arange(len(turns) + 1))
    return _Waits(ends, who[by_owner], later[by_owner], gatherings)


def _before_on_links(plan: Plan) -> tuple[Integers, Integers, Floats]:
    """Return transmissions, one before each on a link of it, and by how many µs it is ahead."""
    hops = plan.turns.hops
    by_link = np.argsort(hops.link, kind="stable")
    same = np.flatnonzero(np.diff(hops.link[by_link]) == 0)
    first, second = by_link[same], by_link[same + 1]
    gap = hops.offset[first] + hops.busy[first] - hops.offset[second]
    return hops.owner[second], hops.owner[first], gap


def _starts(plan: Plan, waits: _Waits, earliest: Floats, *, slack: float) -> Floats:
    """Start everything as early as it can, in µs, and not before `earliest`.

    In the order in which the schedule starts the sends, all that one waits for has moved before
    it, save where one over several links starts before one that goes first on its second link.
    Then another pass may move it further; after each pass the starts are possible ones.
    """
    found = plan.begins
    order = np.argsort(found, kind="stable").tolist()
    for _ in range(_MOST_PASSES):
        found = _pass(waits, order, found, earliest)
        if (found - waits.earliest(found, earliest)).max(initial=0.0) <= slack:
            break
    return found


def _pass(waits: _Waits, order: Sequence[int], begins: Floats, earliest: Floats) -> Floats:
    """Start one after the other as early as it can after those that have moved before it."""
    bounds, who, later = waits.bounds.tolist(), waits.who.tolist(), waits.later.tolist()
    starts, least = begins.tolist(), earliest.tolist()
    over = [math.nan] * len(waits.gatherings)
    gatherings = [(those.tolist(), took.tolist()) for those, took in waits.gatherings]
    for i in order:
        start = least[i]
        for k in range(bounds[i], bounds[i + 1]):
            if (before := who[k]) >= 0:
                soonest = starts[before] + later[k]
            else:
                all_of = -1 - before
                if math.isnan(over[all_of]):
                    those, took = gatherings[all_of]
                    over[all_of] = max(map(add, map(starts.__getitem__, those), took))
                soonest = over[all_of] + later[k]
            start = max(start, soonest)
        starts[i] = start
    return np.array(starts)


def _cross(problem: Problem, plan: Plan, starts: Floats) -> tuple[Transfers, Floats]:
    """Let all cross their links from their starts on; return transfers and arrivals in µs."""
    turns, hops = plan.turns, plan.turns.hops
    start = starts[hops.owner]
    begin = start + hops.offset
    sent, end = begin + hops.busy, start + hops.end
    transfers = transfers_at(problem, plan, start=begin, sent=sent, end=end)
    return transfers, starts[turns.of[0]] + turns.of_sends("durations")


def _last_needed(problem: Problem, plan: Plan, arrivals: Floats) -> float:
    """Return when the last send that brings something to its destination is there, in µs."""
    topology, order, chunks = problem.topology, plan.order, problem.collective.chunks
    into = [topology.rank.get(route[-1], len(topology.ranks)) for route in order.routes]
    many = len(topology.ranks) + 1
    wanted = [i * many + rank for i, chunk in enumerate(chunks) for rank in chunk.destinations]
    brought = order.chunks * many + np.array(into, dtype=np.int64)[order.route_of]
    return float(arrivals[among(brought, np.array(wanted))].max(initial=0.0))
