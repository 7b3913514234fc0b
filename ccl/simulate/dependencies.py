"""What each send of a schedule waits for.

The replay keeps this and forgets the epochs. A send waits for

* of a whole chunk, the arrival that the schedule relies on;
* of a reduced chunk, every contribution that the schedule has there before the send starts; where
  sends of it name their terms, the arrivals of the values that it carries, and no others;
* of a part of a chunk, as many of the parts in order of arrival as make up what has left so far
  and leaves now;
* from a device that cannot store, everything that the schedule sends on in the same epoch. Such
  a device keeps the order of the plan and so may queue at its exits, as real switches do.

All of these are there by the time at which the schedule starts the send.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial
from operator import ge
from typing import NamedTuple

import numpy as np

from ccl.plans import Floats, Integers, Schedule, Send, bits_of, choose_values, share_values
from ccl.problem import Problem
from ccl.simulate.routes import SAME_MOMENT
from ccl.simulate.transmissions import Plan
from ccl.timeline import Slices
from ccl.topology import Device

_Moments = list[tuple[float, int]]
"""Times in µs, each with the place of a send."""


Named = Mapping[int, "Carried"]
"""What sends carry by their places, of chunks of which some name their terms."""


def find_needs(problem: Problem, schedule: Schedule, plan: Plan, named: Named) -> Slices:
    """Return for each send the places of those that must have arrived before it starts.

    Sends that wait for the same share them: a sum that goes to many is long. `named` is what
    `find_carried` returns.
    """
    order, slack = plan.order, SAME_MOMENT * schedule.duration
    devices, chunks = problem.topology.devices, problem.collective.chunks
    src, dst = order.devices(problem.topology)
    # What came, by chunk and device and in order of arrival.
    came = np.lexsort((plan.ends, order.chunks * len(devices) + dst))
    where = (order.chunks * len(devices) + dst)[came]
    own = order.chunks * len(devices) + src
    low, high = np.searchsorted(where, own, "left"), np.searchsorted(where, own, "right")
    reduced = np.array([chunk.reduced for chunk in chunks], dtype=bool)[order.chunks]
    sums = np.flatnonzero(reduced)
    high[sums] = _there_by(plan.ends[came], low[sums], high[sums], plan.starts[sums] + slack)
    high[~reduced] = np.minimum(high, low + 1)[~reduced]
    needs = Slices(low, high, came)
    special = ~np.array([each.stores for each in devices], dtype=bool)[src]
    special |= np.isin(order.chunks, list(order.split))
    special[list(named)] = True
    lists = _special(problem, schedule, plan, named, np.flatnonzero(special))
    return _earlier_ones(_replaced(needs, lists), plan.starts)


def _there_by(values: Floats, low: Integers, high: Integers, most: Floats) -> Integers:
    """Return for each sorted slice of values the end of those that are no more than `most`."""
    while (unsure := low < high).any():
        middle = (low + high) // 2
        within = unsure.copy()
        within[unsure] = values[middle[unsure]] <= most[unsure]
        low = np.where(within, middle + 1, low)
        high = np.where(unsure & ~within, middle, high)
    return low


def _special(
    problem: Problem, schedule: Schedule, plan: Plan, named: Named, those: Integers
) -> dict[int, Sequence[int]]:
    """Return what sends wait for that name terms, are parts, or leave what cannot store."""
    needs: dict[int, Sequence[int]] = {}
    departures: defaultdict[tuple[int, str], _Moments] = defaultdict(list)
    for i in those.tolist():
        if i in named:
            needs[i] = named[i].after
        else:
            departures[plan.sends[i].chunk, plan.sends[i].src].append((float(plan.starts[i]), i))
    arrivals: defaultdict[tuple[int, str], _Moments] = defaultdict(list)
    for j, send in enumerate(plan.sends if departures else ()):
        if (send.chunk, send.dst) in departures:
            arrivals[send.chunk, send.dst].append((float(plan.ends[j]), j))
    for (number, device), leaving in departures.items():
        came = sorted(arrivals[number, device])
        chunk = problem.collective.chunks[number]
        if not problem.topology.device(device).stores:
            _forwarded(needs, plan, came=came, leaving=leaving, schedule=schedule)
        else:
            held = float(problem.topology.rank.get(device) in chunk.holders)
            _in_order(needs, plan, came=came, leaving=sorted(leaving), held=held)
    return needs


def _replaced(needs: Slices, lists: Mapping[int, Sequence[int]]) -> Slices:
    """Return needs of which some are other lists."""
    if not lists:
        return needs
    low, high, flat = needs.low.copy(), needs.high.copy(), list[int]()
    # By identity: those that are alike have been made once.
    known: dict[int, tuple[int, int]] = {}
    for i, those in lists.items():
        if id(those) not in known:
            begin = len(needs.places) + len(flat)
            known[id(those)] = begin, begin + len(those)
            flat += those
        low[i], high[i] = known[id(those)]
    return Slices(low, high, np.concatenate([needs.places, np.array(flat, dtype=np.int64)]))


def _earlier_ones(needs: Slices, starts: Floats) -> Slices:
    """Keep of what each send waits for what starts earlier: no slack makes two wait for another."""
    late = np.flatnonzero(needs.most(starts) >= starts)
    return _replaced(
        needs, {i: [j for j in needs[i] if starts[j] < starts[i]] for i in late.tolist()}
    )


def find_sources(plan: Plan, needs: Slices) -> Slices:
    """Return for each link that is crossed the rows of the links that its bytes come from.

    One list for each row of `Turns.hops`; `needs` as `find_needs` returns it.
    """
    turns, hops = plan.turns, plan.turns.hops
    row, source = hops.sources
    known = len(needs.places)
    bounds = known + np.searchsorted(row, np.arange(len(hops) + 1))
    low, high = bounds[:-1].copy(), bounds[1:].copy()
    leads = turns.leads
    heads = turns.heads[leads]
    low[heads], high[heads] = needs.low[leads], needs.high[leads]
    found = Slices(low, high, np.concatenate([turns.tails[needs.places], source]))
    if not turns.joins.any():
        return found
    # What is there as one sum has come over one link.
    lists = {i: those for i, those in enumerate(found) if len(those) > 1}
    once = {those: tuple(dict.fromkeys(those)) for those in lists.values()}
    return _replaced(found, {i: once[those] for i, those in lists.items()})


def _forwarded(
    needs: dict[int, Sequence[int]],
    plan: Plan,
    *,
    came: _Moments,
    leaving: _Moments,
    schedule: Schedule,
) -> None:
    """Wait for all that a device which cannot store sends on in the same epoch."""
    by_epoch: dict[int, list[int]] = {plan.sends[i].epoch: [] for _, i in leaving}
    for end, j in came:
        epoch = _next_epoch(schedule, end, plan.sends[j].epoch, by_epoch)
        if epoch in by_epoch:
            by_epoch[epoch].append(j)
    for _, i in leaving:
        needs[i] = by_epoch[plan.sends[i].epoch]


def _next_epoch(schedule: Schedule, end: float, own: int, leaving: Container[int]) -> int:
    """Return the epoch in which is sent on what arrives at a time from a send of epoch `own`."""
    tau, slack = schedule.epoch_duration, SAME_MOMENT * schedule.duration
    last = math.ceil(end / tau)
    first = math.ceil((end - slack) / tau)
    if first == last:
        return last
    # Where rounding leaves open which epoch is the next, it is seldom its own.
    epochs = sorted(range(first, last + 1), key=partial(ge, own))
    return next((each for each in epochs if each in leaving), last)


def _in_order(
    needs: dict[int, Sequence[int]], plan: Plan, *, came: _Moments, leaving: _Moments, held: float
) -> None:
    """Wait for as much, in order of arrival, as has left so far and leaves now."""
    waited: list[int] = []
    queue = iter(came)
    left = 0.0
    for _, i in leaving:
        left += plan.sends[i].fraction
        while held < left - SAME_MOMENT and (found := next(queue, None)) is not None:
            held += plan.sends[found[1]].fraction
            waited.append(found[1])
        needs[i] = waited[:]


class Carried(NamedTuple):
    """Contributions of a send as bits, and the places of those that bring them to its source."""

    bits: int
    after: tuple[int, ...]


def find_carried(problem: Problem, schedule: Schedule, plan: Plan) -> dict[int, Carried]:
    """Return by place what each send carries, of chunks of which some name their terms.

    Values are followed in the times of the schedule, which is taken to be verified: a send of what
    is not there waits for all that came.
    """
    chunks = {send.chunk for send in plan.sends if send.terms is not None}
    return _Values(problem, schedule, plan, chunks).carried() if chunks else {}


class _Values:
    """What each device has of some chunks: values, each with the places of what brought it."""

    def __init__(
        self, problem: Problem, schedule: Schedule, plan: Plan, chunks: Container[int]
    ) -> None:
        self._schedule = schedule
        self._plan = plan
        self._those = [i for i, send in enumerate(plan.sends) if send.chunk in chunks]
        self._devices = {each.name: each for each in problem.topology.devices}
        self._held: defaultdict[tuple[int, str], list[Carried]] = defaultdict(list)
        for number, chunk in enumerate(problem.collective.chunks):
            for rank in chunk.holders if number in chunks else ():
                name = problem.topology.ranks[rank]
                self._held[number, name].append(Carried(1 << rank, ()))
        # By chunk and device that cannot store, and by epoch: what came, and what leaves.
        self._came: defaultdict[tuple[int, str, int], list[Carried]] = defaultdict(list)
        self._leaving: defaultdict[tuple[int, str], defaultdict[int, list[int]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for i in self._those:
            send = plan.sends[i]
            if not self._devices[send.src].stores:
                self._leaving[send.chunk, send.src][send.epoch].append(i)
        self._found: dict[int, Carried] = {}

    def carried(self) -> dict[int, Carried]:
        """Follow all in order; at one moment what arrives comes before what leaves."""
        slack = SAME_MOMENT * self._schedule.duration
        events = []
        for i in self._those:
            start, end = self._plan.starts[i], self._plan.ends[i]
            events.append((start + slack, True, i))
            events.append((max(end, start + slack), False, i))
        for _, leaves, i in sorted(events):
            if leaves:
                self._leave(i)
            else:
                self._arrive(i)
        return self._found

    def _leave(self, i: int) -> None:
        if i in self._found:
            return
        send, device = self._plan.sends[i], self._devices[self._plan.sends[i].src]
        if not device.stores:
            self._pass(send, device)
            return
        key = send.chunk, send.src
        held = self._held[key]
        terms = None if send.terms is None else bits_of(send.terms)
        chosen = choose_values([each.bits for each in held], terms, adds=device.reduces)
        used = range(len(held)) if chosen is None else chosen
        carried = self._found[i] = _added([held[place] for place in used])
        if not device.copies:
            self._held[key] = [each for place, each in enumerate(held) if place not in used]
        number, _ = self._plan.of[i]
        crossing = self._plan.crossings[number]
        if not crossing.route.joins:
            self._found.update(dict.fromkeys(crossing.sends, carried))

    def _pass(self, send: Send, device: Device) -> None:
        """Give all that leaves a device that cannot store in an epoch what it carries."""
        came = self._came[send.chunk, send.src, send.epoch]
        leaving = self._leaving[send.chunk, send.src][send.epoch]
        named = [self._plan.sends[i].terms for i in leaving]
        shares = share_values(
            [each.bits for each in came],
            [None if each is None else bits_of(each) for each in named],
            copies=device.copies,
            adds=device.reduces,
        )
        for place, i in enumerate(leaving):
            used = range(len(came)) if shares is None else shares[place]
            self._found[i] = _added(came[each] for each in used)

    def _arrive(self, i: int) -> None:
        if i not in self._found:
            self._leave(i)
        send, places = self._plan.sends[i], self._plan.together(i)
        if i != places[-1]:
            return  # a sum is there with the last of its parts
        value = Carried(_added(self._found[each] for each in places).bits, places)
        if self._devices[send.dst].stores:
            self._held[send.chunk, send.dst].append(value)
            return
        epochs = self._leaving[send.chunk, send.dst]
        epoch = _next_epoch(self._schedule, self._plan.ends[i], send.epoch, epochs)
        self._came[send.chunk, send.dst, epoch].append(value)


def _added(values: Iterable[Carried]) -> Carried:
    """Return the sum of values."""
    bits, after = 0, list[int]()
    for each in values:
        bits |= each.bits
        after += each.after
    return Carried(bits, tuple(after))
