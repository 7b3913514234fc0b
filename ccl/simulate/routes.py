"""Links that a transmission crosses: of one send, or of several that part or run together.

`ccl.plans` says which sends of an epoch cross links together. They are found here by laying
their paths into one another, device by device from the end that they share. `SlowTimes` has the
times in which links have less bandwidth than their own.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from ccl.plans import Order, Route, Schedule, Send
from ccl.problem import Problem, Window

_Ends = tuple[str, str]

_Node: TypeAlias = "dict[str, _Node]"
"""The devices that follow one, each with what follows it."""


@dataclass(frozen=True, slots=True)
class Hop:
    """One link of a path.

    Parameters
    ----------
    link, ends
        Its number and its ends.
    alpha
        Its latency in µs.
    lead
        µs of latency from the common start until its first byte could be there.
    offset
        µs from the common start until its first byte: later than that where it waits until it can
        send without a pause.
    busy
        µs for which it is held, at the rate of the tightest limit that it is under where that is
        less than its own.
    end
        µs from the common start until its last byte has arrived when nothing slows it down.
    limited
        Whether it is under a shared limit that binds.
    after
        Places in the path of the links that its bytes come from.
    """

    link: int
    ends: tuple[str, str]
    alpha: float
    lead: float
    offset: float
    busy: float
    end: float
    limited: bool
    after: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LaidRoute:
    """Links that are crossed together, each once, no link before those that its bytes come from.

    Parameters
    ----------
    hops
        The links.
    nbytes
        Bytes that each of them carries.
    joins
        Whether several sends run together on it, rather than part.
    limited
        Whether any of its links is under a shared limit that binds.
    own
        Of each send the places of the links that it crosses, in order.
    lags
        µs after the common start at which each send leaves its device.
    durations
        µs after the common start at which each is there when nothing slows it down.
    """

    hops: tuple[Hop, ...]
    nbytes: float
    joins: bool
    limited: bool
    own: tuple[tuple[int, ...], ...]
    lags: tuple[float, ...]
    durations: tuple[float, ...]

    @property
    def heads(self) -> list[int]:
        """Place of the first link of each send."""
        return [own[0] for own in self.own]

    @property
    def tails(self) -> list[int]:
        """Place of the last link of each send."""
        return [own[-1] for own in self.own]


class Routes:
    """Lays out routes; `caps` has the GB/s of the tightest limit of each limited link."""

    def __init__(self, problem: Problem, caps: Mapping[tuple[str, str], float]) -> None:
        self._topology = problem.topology
        self._caps = caps
        self._known: dict[tuple[float, tuple[object, ...]], LaidRoute] = {}

    def lay_alone(self, route: Route, nbytes: float) -> LaidRoute:
        """Return the route of a send that crosses its links by itself.

        Of a hundred thousand routes few differ in more than the names of their links.
        """
        topology, every = self._topology, list(pairwise(route))
        if len(set(every)) < len(every):
            return self.lay((route,), nbytes)
        links = [topology.link(*ends) for ends in every]
        rates = [(each.alpha, each.bandwidth, self._caps.get(each.ends)) for each in links]
        alike = nbytes, tuple(rates)
        known = self._known.get(alike)
        if known is None:
            known = self._known[alike] = self.lay((route,), nbytes)
        hops = [
            Hop(
                *(topology.link_index[ends], ends, hop.alpha, hop.lead, hop.offset),
                *(hop.busy, hop.end, hop.limited, hop.after),
            )
            for ends, hop in zip(every, known.hops, strict=True)
        ]
        return replace(known, hops=tuple(hops))

    def lay(self, routes: tuple[Route, ...], nbytes: float, *, joins: bool = False) -> LaidRoute:
        """Return the route of a send, or of several that part or join, for so many bytes."""
        link = self._topology.link
        latency = [sum(link(*ends).alpha for ends in pairwise(route)) for route in routes]
        late = [max(latency) - each if joins else 0.0 for each in latency]
        lead, after = self._trace(routes, late)
        placed = sorted(after, key=lambda ends: _depth(ends, after))
        place = {ends: i for i, ends in enumerate(placed)}
        links = [
            self._hop(ends, nbytes, lead=lead[ends], after=tuple([place[b] for b in after[ends]]))
            for ends in placed
        ]
        limited = any(hop.limited for hop in links)
        stays = _ending_together(links) if joins and not limited else _without_pause(links)
        # The first of the sends leaves at the start.
        soonest = min(
            hop.lead + wait for hop, (wait, _) in zip(links, stays, strict=True) if not hop.after
        )
        hops = [
            replace(
                hop, offset=hop.lead + wait - soonest, end=hop.lead + until + hop.alpha - soonest
            )
            for hop, (wait, until) in zip(links, stays, strict=True)
        ]
        own = [tuple(place[ends] for ends in pairwise(route)) for route in routes]
        return LaidRoute(
            hops=tuple(hops),
            nbytes=nbytes,
            joins=joins,
            limited=limited,
            own=tuple(own),
            lags=tuple([hops[those[0]].offset for those in own] if joins else late),
            durations=tuple(hops[those[-1]].end for those in own),
        )

    def _trace(
        self, routes: Sequence[Route], lags: Sequence[float]
    ) -> tuple[dict[_Ends, float], dict[_Ends, list[_Ends]]]:
        """Return of each link the alphas before it in µs, and the links before it."""
        lead: dict[_Ends, float] = {}
        after: dict[_Ends, list[_Ends]] = {}
        for route, lag in zip(routes, lags, strict=True):
            before: _Ends | None = None
            late = lag
            for ends in pairwise(route):
                lead.setdefault(ends, late)
                those = after.setdefault(ends, [])
                if before is not None and before not in those:
                    those.append(before)
                late += self._topology.link(*ends).alpha
                before = ends
        return lead, after

    def _hop(
        self, ends: tuple[str, str], nbytes: float, *, lead: float, after: tuple[int, ...]
    ) -> Hop:
        """Make a hop that does not wait for more than its first byte."""
        link = self._topology.link(*ends)
        busy = nbytes * 1e-3 / min(link.bandwidth, self._caps.get(ends, link.bandwidth))
        return Hop(
            link=self._topology.link_index[ends],
            ends=ends,
            alpha=link.alpha,
            lead=lead,
            offset=lead,
            busy=busy,
            end=lead + busy + link.alpha,
            limited=ends in self._caps,
            after=after,
        )


_Stays = list[tuple[float, float]]
"""Of each link from when until when it is held after the start, in µs, latency apart."""


def _without_pause(hops: Sequence[Hop]) -> _Stays:
    """Let each link begin and end no earlier than those that its bytes come from.

    It waits until it can send without a pause; a limited one sends what comes.
    """
    found: _Stays = []
    for hop in hops:
        wait = max([found[k][0] for k in hop.after], default=0.0)
        until = max([found[k][1] for k in hop.after], default=0.0)
        if not hop.limited:
            wait = max(wait, until - hop.busy)
        found.append((wait, max(wait + hop.busy, until)))
    return found


def _ending_together(hops: Sequence[Hop]) -> _Stays:
    """Lay out paths that meet as paths that part from their end, read backwards."""
    waits = [0.0] * len(hops)
    for k in reversed(range(len(hops))):
        for j in hops[k].after:
            waits[j] = max(waits[k], waits[k] + hops[k].busy - hops[j].busy)
    last = max(wait + hop.busy for wait, hop in zip(waits, hops, strict=True))
    return [(last - wait - hop.busy, last - wait) for wait, hop in zip(waits, hops, strict=True)]


def _depth(ends: _Ends, after: Mapping[_Ends, list[_Ends]]) -> int:
    """Count the links on the longest path to the end of a link."""
    return 1 + max((_depth(each, after) for each in after[ends]), default=0)


@dataclass(frozen=True, slots=True)
class Shared:
    """Sends that are one transmission, by their places in the order, and whether they join."""

    places: tuple[int, ...]
    joins: bool

    @property
    def turn(self) -> int:
        """Place of the whole: that of its first send, or of its last where they join."""
        return self.places[-1] if self.joins else self.places[0]


def group_transmissions(problem: Problem, order: Order) -> dict[int, Shared]:
    """Return the transmission of each send that is not one by itself, by place."""
    sends = order.sends
    reduced = np.array([chunk.reduced for chunk in problem.collective.chunks], dtype=bool)
    found: dict[int, Shared] = {}
    for joins in (False, True):
        able = {
            each.name
            for each in problem.topology.devices
            if (each.reduces if joins else each.copies)
        }
        meets = np.array([not able.isdisjoint(route[1:-1]) for route in order.routes], dtype=bool)
        if not meets.any():
            continue
        fit = meets[order.route_of] & ~np.isin(order.chunks, list(order.split))
        if joins:
            fit &= reduced[order.chunks]
        places = [i for i in np.flatnonzero(fit).tolist() if i not in found]
        fits: dict[tuple[Route, ...], bool] = {}
        for group in _groups(problem, sends, places, joins=joins):
            if joins and _named_twice([sends[i] for i in group]):
                continue
            routes = tuple([(sends[i].src, *sends[i].via, sends[i].dst) for i in group])
            if routes not in fits:
                turned = [route[::-1] for route in routes] if joins else routes
                fits[routes] = _is_tree(turned, able)
            if fits[routes]:
                found.update(dict.fromkeys(group, Shared(group, joins)))
    return found


def _groups(
    problem: Problem, sends: Sequence[Send], places: Sequence[int], *, joins: bool
) -> Iterator[tuple[int, ...]]:
    """Yield sends of a chunk and an epoch which begin with the same link, or end with it.

    Those that begin with it have the same terms.
    """
    device = problem.topology.device
    found: dict[tuple[int, int, str, str, frozenset[int] | None], list[int]] = {}
    for i in places:
        send = sends[i]
        root, next_one = (send.dst, send.via[-1]) if joins else (send.src, send.via[0])
        terms = None if joins else send.terms
        found.setdefault((send.epoch, send.chunk, root, next_one, terms), []).append(i)
    for (_, _, root, _, _), group in found.items():
        if len(group) > 1 and device(root).stores:
            yield tuple(group)


def _named_twice(sends: Sequence[Send]) -> bool:
    """Return whether a contribution is in the terms of several sends."""
    seen: set[int] = set()
    for send in sends:
        if send.terms is not None:
            if not seen.isdisjoint(send.terms):
                return True
            seen |= send.terms
    return False


def _is_tree(routes: Sequence[Route], able: set[str]) -> bool:
    """Return whether routes from one device branch where they may and meet nowhere again."""
    root: _Node = {}
    for route in routes:
        node = root
        for name in route[1:]:
            node = node.setdefault(name, {})
    links: list[Route] = []
    leaves = 0
    waiting = [(routes[0][0], root)]
    while waiting:
        name, node = waiting.pop()
        if len(node) > 1 and name not in able:
            return False
        leaves += not node
        links += [(name, onward) for onward in node]
        waiting += node.items()
    return leaves == len(routes) and len(set(links)) == len(links)


SAME_MOMENT = 1e-9
"""Times closer than this share of the duration are one moment; likewise shares of a chunk."""


class SlowTimes:
    """The windows of each link, by its number."""

    def __init__(self, problem: Problem) -> None:
        self.of: defaultdict[int, list[Window]] = defaultdict(list)
        for window in problem.windows:
            for ends in window.links:
                self.of[problem.topology.link_index[ends]].append(window)

    def moments(self) -> Iterator[float]:
        """Yield the times in µs at which a window begins or ends."""
        for windows in self.of.values():
            for window in windows:
                yield window.begin
                yield window.end

    def share(self, link: int, begin: float, end: float) -> float:
        """Return the least share that a link has between two times in µs."""
        shares = [
            window.share
            for window in self.of.get(link, ())
            if begin < window.end * (1 - SAME_MOMENT) and window.begin < end * (1 - SAME_MOMENT)
        ]
        return min(shares, default=1.0)

    def at(self, link: int, now: float) -> float:
        """Return the share that a link has from a moment on, in µs."""
        shares = [each.share for each in self.of.get(link, ()) if each.begin <= now < each.end]
        return min(shares, default=1.0)

    def sending(self, link: int, ready: float, full: float) -> tuple[float, float]:
        """Return when a link begins and ends to send what is ready at a moment, in µs.

        It would take `full` µs without windows; it begins when first the link has a share.
        """
        own = self.of.get(link, ())
        ahead = {each for window in own for each in (window.begin, window.end) if each > ready}
        begin = math.nan
        for now, until in pairwise([ready, *sorted(ahead), math.inf]):
            share = self.at(link, now)
            if share > 0:
                begin = now if math.isnan(begin) else begin
                if full <= share * (until - now):
                    return begin, now + full / share
            full -= share * (until - now)
        raise AssertionError("windows end")


@dataclass(frozen=True, slots=True)
class Held:
    """When the links of a limited route are held, one entry for each, from an epoch's begin on.

    Parameters
    ----------
    first, epochs
        Over how many epochs it is spread and from which on, for links that are limited.
    offsets, ends
        µs until its first byte at the earliest, and until the last has left it, both with the
        alphas before it.
    """

    first: tuple[int, ...]
    epochs: tuple[int, ...]
    offsets: tuple[float, ...]
    ends: tuple[float, ...]


class Spans:
    """Over how many epochs a schedule spreads what crosses a limited link."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self._links = problem.topology.links
        self._schedule = schedule
        self._slow = SlowTimes(problem)
        self._held: dict[tuple[int, int], Held] = {}

    def held(self, laid: LaidRoute, epoch: int) -> Held:
        """Return when a route that begins in an epoch holds its links.

        A limited link is spread from its first byte on, and over no fewer epochs than those over
        which the bytes come to it; another waits until it can send without a pause.
        """
        # With windows a route differs from epoch to epoch.
        key = id(laid), epoch if self._slow.of else 0
        if key not in self._held:
            self._held[key] = self._laid(laid, epoch)
        return self._held[key]

    def _laid(self, laid: LaidRoute, epoch: int) -> Held:
        tau = self._schedule.epoch_duration
        first, epochs, waits, ends = [], [], list[float](), list[float]()
        for hop in laid.hops:
            wait = max([waits[k] for k in hop.after], default=0.0)
            until = max([ends[k] for k in hop.after], default=0.0)
            later = math.floor((hop.lead + wait) / tau + SAME_MOMENT)
            many = 0
            if hop.limited:
                least = max(hop.busy, until - wait)
                many = self._epochs(hop, laid.nbytes, epoch + later, least)
            else:
                wait = max(wait, until - hop.busy)
            first.append(later)
            epochs.append(many)
            waits.append(wait)
            ends.append(wait + (many * tau if hop.limited else hop.busy))
        return Held(
            tuple(first),
            tuple(epochs),
            tuple(hop.lead + wait for hop, wait in zip(laid.hops, waits, strict=True)),
            tuple(hop.lead + end for hop, end in zip(laid.hops, ends, strict=True)),
        )

    def _epochs(self, hop: Hop, nbytes: float, first: int, took: float) -> int:
        """Count the epochs from `first` on over which a transmission is spread in equal parts.

        They come to `took` µs at least. Where windows leave too little for it in any number of
        epochs, they are as many as without.
        """
        tau = self._schedule.epoch_duration
        least = max(1, math.ceil(took / tau - SAME_MOMENT))
        if hop.link not in self._slow.of:
            return least
        needed = nbytes * self._links[hop.link].beta * (1 - SAME_MOMENT)
        count = least
        while first + count <= self._schedule.horizon:
            share = self._slow.share(hop.link, first * tau, (first + count) * tau)
            if needed <= count * share * tau:
                return count
            if not share:
                return least
            # What is more than the least share lets through is too much for fewer epochs.
            count = max(count + 1, math.floor(needed / (share * tau)))
        return least
