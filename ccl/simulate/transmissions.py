"""Transmissions of a schedule: what crosses which links, in which order, and the schedule's times.

A transmission is one send, or several that cross links together (`ccl.plans`). All are held as
arrays, a row for each, as there may be a million of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ccl.plans import Floats, Integers, Order, Schedule, Send
from ccl.problem import Problem
from ccl.simulate.routes import Held, LaidRoute, Routes, Spans, group_transmissions
from ccl.timeline import Slices, Transfers
from ccl.topology import SharedLimit


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


@dataclass(frozen=True, eq=False)
class Turns:
    """Transmissions in the order in which they are given to their links.

    Parameters
    ----------
    laid
        The different routes that they take, each for so many bytes.
    kind
        Which of these each takes, shape (transmissions,).
    bounds, places
        The sends of transmission i are ``places[bounds[i] : bounds[i + 1]]``.
    """

    laid: Sequence[LaidRoute]
    kind: Integers
    bounds: Integers
    places: Integers

    def __len__(self) -> int:
        """Return the number of transmissions."""
        return len(self.kind)

    @cached_property
    def first(self) -> Integers:
        """Place of the first send of each, shape (transmissions,)."""
        return self.places[self.bounds[:-1]]

    @cached_property
    def of(self) -> tuple[Integers, Integers]:
        """The transmission of each send, and the send's own place in that, shape (sends,)."""
        many = np.diff(self.bounds)
        number, member = np.empty_like(self.places), np.empty_like(self.places)
        number[self.places] = np.repeat(np.arange(len(many)), many)
        member[self.places] = np.arange(len(member)) - np.repeat(self.bounds[:-1], many)
        return number, member

    @cached_property
    def joins(self) -> NDArray[np.bool_]:
        """Whether the sends of each run together, shape (transmissions,)."""
        return np.array([laid.joins for laid in self.laid], dtype=bool)[self.kind]

    @cached_property
    def leads(self) -> Integers:
        """Sends that wait for what they carry; those of a multicast leave with their first."""
        number, member = self.of
        return np.flatnonzero((member == 0) | self.joins[number])

    @cached_property
    def heads(self) -> Integers:
        """Row among the links crossed of the first link of each send, shape (sends,)."""
        return self.hops.bounds[self.of[0]] + self.of_sends("heads").astype(np.int64)

    @cached_property
    def tails(self) -> Integers:
        """Row of the last link of each send, shape (sends,)."""
        return self.hops.bounds[self.of[0]] + self.of_sends("tails").astype(np.int64)

    def of_sends(self, name: str) -> NDArray[Any]:
        """Return what a route has for each of its sends by that name, shape (sends,)."""
        values = [getattr(laid, name) for laid in self.laid]
        base = np.cumsum([0, *map(len, values)])
        number, member = self.of
        return np.array([*chain.from_iterable(values)])[base[self.kind[number]] + member]

    @cached_property
    def hops(self) -> Hops:
        """The links that they cross."""
        return Hops(self)


class Hops:
    """Links that transmissions cross, one row for each, a transmission after the other.

    `owner` is the transmission of each row, `bounds` where those of each begin; `link`, `offset`,
    `busy`, `end` and `nbytes` are those of `ccl.simulate.routes.Hop`; all of shape (rows,).
    `sources` are rows that pass bytes on without a stop, each with one that these come from.
    """

    def __init__(self, turns: Turns) -> None:
        table = [hop for laid in turns.laid for hop in laid.hops]
        bounds = np.cumsum([0, *(len(laid.hops) for laid in turns.laid)])
        of_kind = Slices(bounds[:-1], bounds[1:], np.arange(len(table)))
        self.owner, hop = of_kind.flat(turns.kind)
        self.bounds = np.searchsorted(self.owner, np.arange(len(turns) + 1))
        self.link = np.array([each.link for each in table], dtype=np.int64)[hop]
        self.offset, self.busy, self.end = (
            np.array([getattr(each, name) for each in table], dtype=np.float64)[hop]
            for name in ("offset", "busy", "end")
        )
        nbytes = np.array([laid.nbytes for laid in turns.laid], dtype=np.float64)
        self.nbytes = nbytes[turns.kind[self.owner]]
        row, before = Slices.of(each.after for each in table).flat(hop)
        self.sources = row, self.bounds[self.owner[row]] + before

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.owner)


def transfers_at(
    problem: Problem, plan: Plan, *, start: Floats, sent: Floats, end: Floats
) -> Transfers:
    """Return the crossings of all links, by when each begins, is sent and is there, in µs."""
    hops = plan.turns.hops
    first = plan.turns.first[hops.owner]
    return Transfers(
        ends=[link.ends for link in problem.topology.links],
        link=hops.link,
        chunk=plan.order.chunks[first],
        start=start,
        sent=sent,
        end=end,
        nbytes=hops.nbytes,
        epoch=plan.order.epochs[first],
    )


@dataclass(frozen=True, eq=False)
class Plan:
    """What crosses links, and the schedule's times in µs.

    Parameters
    ----------
    order
        The sends.
    turns
        Transmissions.
    starts, ends
        When each send leaves its device and when it has arrived, shape (sends,).
    begins
        When each transmission starts, shape (transmissions,).
    """

    order: Order
    turns: Turns
    starts: Floats
    ends: Floats
    begins: Floats

    @property
    def sends(self) -> Sequence[Send]:
        """The sends in order."""
        return self.order.sends

    @cached_property
    def of(self) -> list[tuple[int, int]]:
        """The place of each send's transmission, and the send's own place in that."""
        number, member = self.turns.of
        return list(zip(number.tolist(), member.tolist(), strict=True))

    @cached_property
    def crossings(self) -> list[Crossing]:
        """The transmissions, an object for each."""
        turns, places = self.turns, self.turns.places.tolist()
        return [
            Crossing(turns.laid[kind], tuple(places[low:high]), self.sends[places[low]])
            for kind, (low, high) in zip(
                turns.kind.tolist(), pairwise(turns.bounds.tolist()), strict=True
            )
        ]

    def together(self, place: int) -> tuple[int, ...]:
        """Return the places of the sends that arrive as one value with a send: of its sum."""
        crossing = self.crossings[self.of[place][0]]
        return crossing.sends if crossing.route.joins else (place,)


def find_release_times(problem: Problem, plan: Plan) -> Floats:
    """Return the µs before which each transmission must not start.

    What a limited buffer is to receive comes no earlier than in the schedule, since the space for
    it is made by what the schedule lets leave before; everything else may start at once.
    """
    full = {
        each.name
        for each in problem.topology.devices
        if each.stores and each.buffer_bytes is not None
    }
    into = np.array([route[-1] in full for route in plan.order.routes], dtype=bool)
    held = np.zeros(len(plan.turns), dtype=bool)
    held[plan.turns.of[0][into[plan.order.route_of]]] = True
    return np.where(held, plan.begins, 0.0)


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
    order = Order(schedule)
    turns = _turns(problem, order, Routes(problem, caps))
    begins, spread = _times(problem, schedule, order, turns)
    number, _ = turns.of
    starts = begins[number] + turns.of_sends("lags")
    ends = begins[number] + turns.of_sends("durations")
    for place, end in spread.items():
        ends[place] = end
    return Plan(order, turns, starts, ends, begins)


def _turns(problem: Problem, order: Order, routes: Routes) -> Turns:
    """Return the transmissions, turn by turn."""
    sizes = np.array([chunk.size for chunk in problem.collective.chunks], dtype=np.float64)
    amounts, amount = np.unique(sizes[order.chunks] * order.fractions, return_inverse=True)
    kinds, kind = np.unique(order.route_of * len(amounts) + amount, return_inverse=True)
    laid = [
        routes.lay_alone(order.routes[each // len(amounts)], float(amounts[each % len(amounts)]))
        for each in kinds.tolist()
    ]
    together = group_transmissions(problem, order)
    if not together:
        return Turns(laid, kind, np.arange(len(order) + 1), np.arange(len(order)))
    numbers: dict[tuple[tuple[int, ...], int, bool], int] = {}
    groups: list[tuple[int, ...]] = []
    taken: list[int] = []
    route_of = order.route_of.tolist()
    for i, (alone, nbytes) in enumerate(zip(kind.tolist(), amount.tolist(), strict=True)):
        if i not in together:
            groups.append((i,))
            taken.append(alone)
        elif (shared := together[i]).turn == i:
            key = tuple([route_of[place] for place in shared.places]), nbytes, shared.joins
            if key not in numbers:
                numbers[key] = len(laid)
                paths = tuple([order.routes[each] for each in key[0]])
                laid.append(routes.lay(paths, float(amounts[nbytes]), joins=shared.joins))
            groups.append(shared.places)
            taken.append(numbers[key])
    bounds = np.cumsum([0, *map(len, groups)])
    places = np.array([place for group in groups for place in group], dtype=np.int64)
    return Turns(laid, np.array(taken, dtype=np.int64), bounds, places)


def _times(
    problem: Problem, schedule: Schedule, order: Order, turns: Turns
) -> tuple[Floats, dict[int, float]]:
    """Return when each transmission starts, and when sends over limited links are there, in µs.

    Each starts with its epoch, or when its links are free.
    """
    spans = Spans(problem, schedule)
    free = [0.0] * len(problem.topology.links)
    held = [
        [(hop.link, hop.offset, hop.offset + hop.busy) for hop in laid.hops] for laid in turns.laid
    ]
    limited = [laid.limited for laid in turns.laid]
    epochs = order.epochs[turns.first]
    starts = (epochs * schedule.epoch_duration).tolist()
    there: dict[int, float] = {}
    for i, kind in enumerate(turns.kind.tolist()):
        if limited[kind]:
            span = spans.held(turns.laid[kind], int(epochs[i]))
            arrivals = _spread(span, free, route=turns.laid[kind], begin=starts[i])
            places = turns.places[turns.bounds[i] : turns.bounds[i + 1]].tolist()
            there.update((j, starts[i] + end) for j, end in zip(places, arrivals, strict=True))
            continue
        start = starts[i]
        for link, offset, _ in held[kind]:
            if (soonest := free[link] - offset) > start:
                start = soonest
        for link, _, until in held[kind]:
            free[link] = start + until
        starts[i] = start
    return np.array(starts), there


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
