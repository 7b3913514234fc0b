"""Order in a schedule: the time of each send, and what each send waits for.

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
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter, ge
from typing import NamedTuple

from ccl.plans import Schedule, Send, bits_of, choose_values, share_values
from ccl.problem import Problem
from ccl.simulate.routes import SAME_MOMENT, Held, LaidRoute, Routes, Spans, group_transmissions
from ccl.topology import Device, SharedLimit

_Moments = list[tuple[float, int]]
"""Times in µs, each with the place of a send."""


class Crossing(NamedTuple):
    """A transmission: one send, or several that cross links together.

    Parameters
    ----------
    route
        Its links.
    sends
        Places in the plan of its sends.
    send
        The first of them.
    """

    route: LaidRoute
    sends: tuple[int, ...]
    send: Send


@dataclass(frozen=True, slots=True)
class Plan:
    """What crosses links, and the schedule's times in µs.

    Parameters
    ----------
    sends
        In order.
    starts, ends
        When each of them leaves its device and when it has arrived.
    crossings
        Transmissions in the order in which they are given to their links.
    of
        The place of each send's transmission, and the send's own place in that.
    begins
        When each transmission starts.
    """

    sends: Sequence[Send]
    starts: Sequence[float]
    ends: Sequence[float]
    crossings: Sequence[Crossing]
    of: Sequence[tuple[int, int]]
    begins: Sequence[float]

    def together(self, place: int) -> tuple[int, ...]:
        """Return the places of the sends that arrive as one value with a send: of its sum."""
        crossing = self.crossings[self.of[place][0]]
        return crossing.sends if crossing.route.joins else (place,)


def find_release_times(problem: Problem, plan: Plan) -> list[float]:
    """Return the µs before which each transmission must not start.

    What a limited buffer is to receive comes no earlier than in the schedule, since the space for
    it is made by what the schedule lets leave before; everything else may start at once.
    """
    full = {
        each.name
        for each in problem.topology.devices
        if each.stores and each.buffer_bytes is not None
    }
    if not full:
        return [0.0] * len(plan.crossings)
    return [
        begin if any(plan.sends[place].dst in full for place in each.sends) else 0.0
        for each, begin in zip(plan.crossings, plan.begins, strict=True)
    ]


def plan_sends(problem: Problem, schedule: Schedule, limits: Sequence[SharedLimit]) -> Plan:
    """Return what crosses links, in the order in which it is given to them.

    Over links under `limits` or with windows a send takes the whole of its epochs.
    """
    caps: dict[tuple[str, str], float] = {}
    for limit in limits:
        for link in limit.links:
            caps[link] = min(limit.bandwidth, caps.get(link, limit.bandwidth))
    for window in problem.windows:
        for link in window.links:
            caps.setdefault(link, problem.topology.link(*link).bandwidth)
    routes, spans = Routes(problem, caps), Spans(problem, schedule)
    sends = sorted(schedule.sends, key=attrgetter("epoch"))
    crossings = list(_crossings(problem, sends, routes))
    free = [0.0] * len(problem.topology.links)
    starts, ends = [0.0] * len(sends), [0.0] * len(sends)
    begins: list[float] = []
    of = [(0, 0)] * len(sends)
    for number, (route, places, send) in enumerate(crossings):
        begin = start = send.epoch * schedule.epoch_duration
        if route.limited:
            arrivals = _spread(spans.held(route, send.epoch), free, route=route, begin=begin)
        else:
            start = max([begin, *[free[hop.link] - hop.offset for hop in route.hops]])
            for hop in route.hops:
                free[hop.link] = start + hop.offset + hop.busy
            arrivals = route.durations
        begins.append(start)
        for member, place in enumerate(places):
            starts[place] = start + route.lags[member]
            ends[place] = start + arrivals[member]
            of[place] = number, member
    return Plan(sends, starts, ends, crossings, of, begins)


def _crossings(problem: Problem, sends: Sequence[Send], routes: Routes) -> Iterator[Crossing]:
    """Yield the transmissions, turn by turn."""
    sizes = [chunk.size for chunk in problem.collective.chunks]
    together = group_transmissions(problem, sends)
    for i, send in enumerate(sends):
        nbytes = sizes[send.chunk] * send.fraction
        if i not in together:
            yield Crossing(routes.alone(send, nbytes), (i,), send)
        elif together[i].turn == i:
            places = together[i].places
            group = [sends[place] for place in places]
            route = routes.together(group, nbytes, joins=together[i].joins)
            yield Crossing(route, places, group[0])


def _spread(held: Held, free: list[float], *, route: LaidRoute, begin: float) -> tuple[float, ...]:
    """Hold the links of a limited route; return how many µs after its epoch's begin each is there.

    Links that are not limited may serve it later than that, as they do what they have before.
    """
    start = begin
    for hop, offset in zip(route.hops, held.offsets, strict=True):
        start = max(start, free[hop.link] - offset)
    for hop, offset in zip(route.hops, held.offsets, strict=True):
        free[hop.link] = start + offset + hop.busy
    last = [own[-1] for own in route.own]
    return tuple(
        max(held.ends[k] + route.hops[k].alpha, start - begin + route.hops[k].end) for k in last
    )


Named = Mapping[int, "Carried"]
"""What sends carry by their places, of chunks of which some name their terms."""


def find_needs(
    problem: Problem, schedule: Schedule, plan: Plan, named: Named
) -> list[Sequence[int]]:
    """Return for each send the places of those that must have arrived before it starts.

    Sends that wait for the same share them: a sum that goes to many is long. `named` is what
    `find_carried` returns.
    """
    first, rest = _arrivals(problem, plan)
    simple = {key: (j,) for key, (_, j) in first.items()}
    needs: list[Sequence[int]] = [()] * len(plan.sends)
    departures: defaultdict[tuple[int, str], _Moments] = defaultdict(list)
    for i, send in enumerate(plan.sends):
        key = send.chunk, send.src
        if i in named:
            needs[i] = named[i].after
        elif key in simple:
            needs[i] = simple[key]
        elif key in rest:
            departures[key].append((plan.starts[i], i))
    slack = SAME_MOMENT * schedule.duration
    for (number, device), leaving in departures.items():
        came = sorted(rest[number, device])
        chunk = problem.collective.chunks[number]
        if not problem.topology.device(device).stores:
            _forwarded(needs, plan, came=came, leaving=leaving, schedule=schedule)
        elif chunk.reduced:
            _all_that_came(needs, came=came, leaving=leaving, slack=slack)
        else:
            held = float(problem.topology.rank.get(device) in chunk.holders)
            _in_order(needs, plan, came=came, leaving=sorted(leaving), held=held)
    _earlier_ones(needs, plan.starts)
    return needs


def _earlier_ones(needs: list[Sequence[int]], starts: Sequence[float]) -> None:
    """Keep of what each send waits for what starts earlier: no slack makes two wait for another."""
    latest: dict[int, float] = {}
    for i, those in enumerate(needs):
        if id(those) not in latest:
            latest[id(those)] = max((starts[j] for j in those), default=-math.inf)
        if latest[id(those)] >= starts[i]:
            needs[i] = [j for j in those if starts[j] < starts[i]]


def find_predecessors(plan: Plan, needs: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return for each link that is crossed the places of the crossings that its bytes come from.

    One entry for each hop of each transmission, in order; `needs` as `find_needs` returns it.
    """
    first = [0]
    for each in plan.crossings:
        first.append(first[-1] + len(each.route.hops))
    last = [
        first[crossing] + plan.crossings[crossing].route.own[member][-1]
        for crossing, member in plan.of
    ]
    of_needs: dict[int, tuple[int, ...]] = {}
    found: list[tuple[int, ...]] = []
    for base, (route, places, _) in zip(first[:-1], plan.crossings, strict=True):
        after = [tuple([base + k for k in hop.after]) for hop in route.hops]
        # All sends of a multicast leave with the first, which waits for the same.
        for member, place in enumerate(places if route.joins else places[:1]):
            those = needs[place]
            if id(those) not in of_needs:
                of_needs[id(those)] = tuple(dict.fromkeys([last[j] for j in those]))
            own = route.own[member][0]
            after[own] = after[own] + of_needs[id(those)] if after[own] else of_needs[id(those)]
        found += after
    return found


def _arrivals(
    problem: Problem, plan: Plan
) -> tuple[dict[tuple[int, str], tuple[float, int]], defaultdict[tuple[int, str], _Moments]]:
    """Return by chunk and device the first arrival of what is whole and stored, and all others."""
    chunks = problem.collective.chunks
    whole = {number for number, chunk in enumerate(chunks) if not chunk.reduced}
    whole -= {send.chunk for send in plan.sends if send.fraction < 1}
    stores = {each.name for each in problem.topology.devices if each.stores}
    first: dict[tuple[int, str], tuple[float, int]] = {}
    rest: defaultdict[tuple[int, str], _Moments] = defaultdict(list)
    for i, (send, end) in enumerate(zip(plan.sends, plan.ends, strict=True)):
        key = send.chunk, send.dst
        if send.chunk not in whole or send.dst not in stores:
            rest[key].append((end, i))
        elif key not in first or (end, i) < first[key]:
            first[key] = end, i
    return first, rest


def _all_that_came(
    needs: list[Sequence[int]], *, came: _Moments, leaving: _Moments, slack: float
) -> None:
    """Wait for every contribution that is there by the start."""
    ends, places = [end for end, _ in came], [j for _, j in came]
    by_many: dict[int, Sequence[int]] = {}
    for start, i in leaving:
        many = bisect_right(ends, start + slack)
        if many not in by_many:
            by_many[many] = places[:many]
        needs[i] = by_many[many]


def _forwarded(
    needs: list[Sequence[int]], plan: Plan, *, came: _Moments, leaving: _Moments, schedule: Schedule
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
    needs: list[Sequence[int]], plan: Plan, *, came: _Moments, leaving: _Moments, held: float
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
