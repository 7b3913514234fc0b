"""What messages carry becomes sends in epochs, in the order of the run.

A program says in which order a connection carries its messages, and nothing about messages of
different connections that meet on a link. `ordered` lets each wait for what it needs, and a link
goes to the one that can start first, of several to the one that came first in the run.

Every send takes the first epoch in which its rank holds what the program sends, and no more
(`Placer`): a schedule sends of a sum what its rank has added up so far, so what the program adds
later must arrive after the send has started. Links keep the order of the run. Epochs are as long as
the quickest hop; under shared limits, where sends are spread over their epochs, a quarter of it.

The epochs are the least that fulfil all of this, found by going over the sends until none moves.
"""

import heapq
import math
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ccl.errors import FormatError
from ccl.plans import Schedule, Send, ranks_of
from ccl.topology import Link, Topology

MOST_PASSES = 64
FINE = 4
"""Epochs of the quickest hop where a shared limit binds."""

_NEAR = 1e-9
"""Shares of an epoch that are none."""

_MARGIN = 0.01
"""Of an epoch by which what is added later must arrive after a send has started."""

Key = tuple[int, int]
"""A chunk and a rank."""


@dataclass(frozen=True, slots=True)
class Carry:
    """A chunk of a message from a rank to another; `mask` has the contributions in it, as bits."""

    src: int
    dst: int
    chunk: int
    mask: int


class Held:
    """What a rank holds of a chunk, in the steps in which it grows.

    Parameters
    ----------
    sent
        The sums that it sends, smallest first: each is a level.

    Attributes
    ----------
    came
        For each level µs until all that it needs has arrived.
    left
        For each level µs at which the last send of it has started.
    """

    def __init__(self, sent: Sequence[int]) -> None:
        self.sent = sent
        self.came = [0.0] * (len(sent) + 1)
        self.left = [0.0] * (len(sent) + 1)

    def level(self, mask: int) -> int:
        """Return the first level that contributions are part of."""
        for level, sum_ in enumerate(self.sent):
            if not mask & ~sum_:
                return level
        return len(self.sent)

    def needs(self, mask: int) -> Sequence[int]:
        """Return the levels of which all must have arrived before a sum is sent."""
        return range(self.level(mask) + 1)

    def precedes(self, mask: int) -> Sequence[int]:
        """Return the levels of which all must have started before a sum arrives."""
        return range(self.level(mask))

    def terms(self, _mask: int) -> frozenset[int] | None:
        """Return the ranks that a send of a sum names: none, it is all that was added up."""
        return None


class Apart(Held):
    """What a rank holds of a chunk in values that it keeps apart and names when it sends them.

    Parameters
    ----------
    came
        The values that come, each a level.
    made
        For each sum that is sent the values that make it up, its own left out.
    """

    def __init__(self, came: Sequence[int], made: Mapping[int, Sequence[int]]) -> None:
        super().__init__(came)
        self._level = {mask: level for level, mask in enumerate(came)}
        self._made = made

    def level(self, mask: int) -> int:
        """Return the level of a value; what does not come has the last."""
        return self._level.get(mask, len(self.sent))

    def needs(self, mask: int) -> Sequence[int]:
        """Return the levels of the values that make up a sum."""
        return [self._level[each] for each in self._made[mask]]

    def precedes(self, mask: int) -> Sequence[int]:
        """Return no level: what is held apart is not changed by what comes."""
        return ()

    def terms(self, mask: int) -> frozenset[int] | None:
        """Return the ranks whose contributions a sum is."""
        return frozenset(ranks_of(mask))


@dataclass(frozen=True, slots=True)
class Hop:
    """A link of a way: its number, µs after the start until its first byte, µs it is held.

    Where it has caps, it is spread over `many` epochs from the one that is `first` after its own.
    """

    link: int
    offset: float
    busy: float
    caps: tuple[int, ...]
    alpha: float
    first: int = 0
    many: int = 1


@dataclass(frozen=True, slots=True)
class Route:
    """The hops of a way and names of the devices along it.

    It takes `duration` µs from its start, and where it has caps at least `spread` µs from the
    beginning of its epoch.
    """

    hops: tuple[Hop, ...]
    stops: tuple[str, ...]
    duration: float
    spread: float = 0.0


class Placer:
    """Gives sends their epochs.

    Parameters
    ----------
    topology
        Over which they go.
    routes
        The links from rank to rank.
    sizes
        Bytes of each chunk.

    Attributes
    ----------
    routes
        The way of each pair of ranks.
    """

    def __init__(
        self,
        topology: Topology,
        routes: dict[tuple[int, int], tuple[Link, ...]],
        sizes: Sequence[float],
    ) -> None:
        self._topology = topology
        self._sizes = sizes
        self._caps, self._room = _caps(topology)
        size = max(sizes)
        self.routes = {pair: self._way(links, size) for pair, links in routes.items()}
        quickest = min(way.duration for way in self.routes.values())
        self._tau = quickest / (FINE if self._room else 1)
        for pair, way in self.routes.items():
            if any(hop.caps for hop in way.hops):
                hops, spread = _laid(way.hops, self._tau)
                self.routes[pair] = replace(way, hops=hops, spread=spread)
        self._meets = any((each.copies or each.reduces) > each.stores for each in topology.devices)
        self._free: dict[int, float] = {}
        self._last: dict[int, int] = {}
        self._apart: dict[tuple[int, int], int] = {}
        self._load: defaultdict[tuple[int, int], float] = defaultdict(float)

    def schedule(self, carried: Sequence[Carry], held: dict[Key, Held]) -> Schedule:
        """Return the schedule of what is carried.

        Raises
        ------
        FormatError
            If sends of sums and what is added to them cannot be put in an order.
        """
        epochs = [0] * len(carried)
        for _ in range(MOST_PASSES):
            self._free, self._last, self._apart = {}, {}, {}
            self._load.clear()
            moved, latest = False, 0.0
            for turn, carry in enumerate(carried):
                epoch, start, end = self._place(carry, held, epochs[turn])
                moved |= self._noted(carry, held, start=start, end=end) or epoch > epochs[turn]
                epochs[turn] = epoch
                latest = max(latest, end)
            if not moved:
                return self._made(carried, held, epochs=epochs, latest=latest)
        raise FormatError(
            "ranks send parts of sums to one another that cannot all leave before others come"
        )

    def _made(
        self,
        carried: Sequence[Carry],
        held: Mapping[Key, Held],
        *,
        epochs: Sequence[int],
        latest: float,
    ) -> Schedule:
        sends = []
        for turn in sorted(range(len(carried)), key=epochs.__getitem__):
            carry = carried[turn]
            stops = self.routes[carry.src, carry.dst].stops
            terms = held[carry.chunk, carry.src].terms(carry.mask)
            sends.append(
                Send(epochs[turn], carry.chunk, stops[0], stops[-1], stops[1:-1], 1.0, terms)
            )
        horizon = max(max(epochs) + 1, math.ceil(latest / self._tau - _NEAR))
        return Schedule(tuple(sends), self._tau, horizon)

    def _place(self, carry: Carry, held: dict[Key, Held], epoch: int) -> tuple[int, float, float]:
        """Return the first epoch from one on in which a send can go, its start and its end."""
        way = self.routes[carry.src, carry.dst]
        tau = self._tau
        here, there = held[carry.chunk, carry.src], held[carry.chunk, carry.dst]
        need = max([here.came[level] for level in here.needs(carry.mask)], default=0.0)
        others = [there.left[level] for level in there.precedes(carry.mask)]
        if others:
            need = max(need, max(others) - way.duration + _MARGIN * tau)
        epoch = max(epoch, math.ceil(need / tau - _NEAR), *self._order(carry, way))
        while True:
            start = max(epoch * tau, *(self._free.get(h.link, 0.0) - h.offset for h in way.hops))
            spare = min(self._epochs(hop) * tau - hop.busy for hop in way.hops)
            if start > epoch * tau + spare + _NEAR * tau:
                epoch = max(epoch + 1, math.ceil((start - spare) / tau - _NEAR))
            elif not self._fits(way, carry, epoch):
                epoch += 1
            else:
                return self._taken(way, carry, epoch=epoch, start=start)

    def _order(self, carry: Carry, way: Route) -> list[int]:
        """Return the epochs before which a send may not go, for the order of its links."""
        least = [self._last.get(hop.link, 0) for hop in way.hops]
        if self._meets:
            # In one epoch, sends of a chunk over one link would be one where switches copy or add.
            least += [self._apart.get((carry.chunk, hop.link), -1) + 1 for hop in way.hops]
        return least

    def _epochs(self, hop: Hop) -> int:
        return max(1, math.ceil(hop.busy / self._tau - _NEAR))

    def _shares(self, way: Route, carry: Carry, epoch: int) -> list[tuple[tuple[int, int], float]]:
        """Return the bytes that a send puts on each cap in each epoch."""
        shares: defaultdict[tuple[int, int], float] = defaultdict(float)
        for hop in way.hops:
            for cap in hop.caps:
                for each in range(epoch + hop.first, epoch + hop.first + hop.many):
                    shares[cap, each] += self._sizes[carry.chunk] / hop.many
        return list(shares.items())

    def _fits(self, way: Route, carry: Carry, epoch: int) -> bool:
        return all(
            self._load[key] == 0.0  # what is too much even alone is for the verifier to say
            or self._load[key] + more <= self._room[key[0]] * self._tau * (1 + _NEAR)
            for key, more in self._shares(way, carry, epoch)
        )

    def _taken(
        self, way: Route, carry: Carry, *, epoch: int, start: float
    ) -> tuple[int, float, float]:
        """Hold the links for a send."""
        for key, more in self._shares(way, carry, epoch):
            self._load[key] += more
        begin = epoch * self._tau
        for hop in way.hops:
            self._free[hop.link] = start + hop.offset + hop.busy
            self._last[hop.link] = epoch
            self._apart[carry.chunk, hop.link] = epoch
        limited = any(hop.caps for hop in way.hops)
        end = max(start + way.duration, begin + way.spread)
        return epoch, begin if limited else start, end

    @staticmethod
    def _noted(carry: Carry, held: dict[Key, Held], *, start: float, end: float) -> bool:
        """Note when a send started and arrived; say whether either is later than was known."""
        here, there = held[carry.chunk, carry.src], held[carry.chunk, carry.dst]
        out, into = here.level(carry.mask), there.level(carry.mask)
        later = start > here.left[out] or end > there.came[into]
        here.left[out] = max(here.left[out], start)
        there.came[into] = max(there.came[into], end)
        return later

    def _way(self, links: tuple[Link, ...], size: float) -> Route:
        hops: list[Hop] = []
        for link in links:
            number = self._topology.link_index[link.ends]
            caps = self._caps.get(number, ())
            rates = [1e3 * link.bandwidth, *(self._room[cap] for cap in caps)]
            hops.append(Hop(number, 0.0, size / min(rates), caps, link.alpha))
        laid, duration = _laid(hops, None)
        return Route(laid, (links[0].src, *(link.dst for link in links)), duration)


def _laid(hops: Sequence[Hop], tau: float | None) -> tuple[tuple[Hop, ...], float]:
    """Return the hops of a way with their times (`ccl.plans.Send.via`), and when it is over.

    A link waits until it can send without a pause, or is spread over epochs of `tau` µs, if there
    are any, as long as bytes come to it.
    """
    found = []
    late = begin = until = 0.0
    for hop in hops:
        first, many = 0, 1
        if not hop.caps:
            begin = max(begin, until - hop.busy)
        took = max(hop.busy, until - begin)
        if hop.caps and tau is not None:
            first = math.floor((late + begin) / tau + _NEAR)
            many = max(1, math.ceil(took / tau - _NEAR))
            took = many * tau
        found.append(replace(hop, offset=late + begin, first=first, many=many))
        until = begin + took
        late += hop.alpha
    return tuple(found), late + until


def _caps(topology: Topology) -> tuple[dict[int, tuple[int, ...]], list[float]]:
    """Return the caps of each link under a limit that binds, and bytes per µs of each cap.

    Such a link is a cap of its own: sends are spread over their epochs there.
    """
    caps: defaultdict[int, list[int]] = defaultdict(list)
    room: list[float] = []
    for limit in topology.limits:
        whole = sum(topology.link(*ends).bandwidth for ends in limit.links)
        if limit.bandwidth < whole * (1 - _NEAR):
            for ends in limit.links:
                caps[topology.link_index[ends]].append(len(room))
            room.append(1e3 * limit.bandwidth)
    for link in sorted(caps):
        caps[link].append(len(room))
        room.append(1e3 * topology.links[link].bandwidth)
    return {link: tuple(those) for link, those in caps.items()}, room


MOST_ORDERED = 50_000
"""Carried chunks at most that are ordered; more keep the order of the run."""


def ordered(
    carried: Sequence[Carry], held: dict[Key, Held], routes: dict[tuple[int, int], Route]
) -> list[Carry]:
    """Return what is carried in the order in which it goes over the links."""
    links = [hop.link for way in routes.values() for hop in way.hops]
    if len(set(links)) == len(links) or len(carried) > MOST_ORDERED:
        return list(carried)
    found = _Order(carried, held, routes).run()
    return found if len(found) == len(carried) else list(carried)


class _Order:
    """The first of each connection that has not gone waits for what it needs, or for its links."""

    def __init__(
        self, carried: Sequence[Carry], held: dict[Key, Held], routes: dict[tuple[int, int], Route]
    ) -> None:
        self._carried = carried
        self._held = held
        self._ways = routes
        self._lines: defaultdict[tuple[int, int], deque[int]] = defaultdict(deque)
        self._lacks = {key: [0] * len(each.came) for key, each in held.items()}
        self._came = {key: [0.0] * len(each.came) for key, each in held.items()}
        for turn, carry in enumerate(carried):
            self._lines[carry.src, carry.dst].append(turn)
            self._lacks[carry.chunk, carry.dst][self._level(carry, carry.dst)] += 1
        self._free: defaultdict[int, float] = defaultdict(float)
        self._waiting: defaultdict[Key, list[int]] = defaultdict(list)
        self._queue: list[tuple[float, int]] = []

    def run(self) -> list[Carry]:
        """Return what could go, in order."""
        order = []
        for line in self._lines.values():
            self._offer(line[0])
        while self._queue:
            told, turn = heapq.heappop(self._queue)
            start = self._start(turn)
            if start > told:
                heapq.heappush(self._queue, (start, turn))
                continue
            order.append(self._carried[turn])
            self._go(turn, start)
        return order

    def _level(self, carry: Carry, rank: int) -> int:
        return self._held[carry.chunk, rank].level(carry.mask)

    def _offer(self, turn: int) -> None:
        """Queue the first of a connection, or let it wait for what it needs."""
        carry = self._carried[turn]
        key = carry.chunk, carry.src
        if any(self._lacks[key][level] for level in self._held[key].needs(carry.mask)):
            self._waiting[key].append(turn)
        else:
            heapq.heappush(self._queue, (self._start(turn), turn))

    def _start(self, turn: int) -> float:
        """Return the µs at which one can start as things stand."""
        carry = self._carried[turn]
        key = carry.chunk, carry.src
        came = [self._came[key][level] for level in self._held[key].needs(carry.mask)]
        way = self._ways[carry.src, carry.dst]
        return max(*came, 0.0, *(self._free[hop.link] - hop.offset for hop in way.hops))

    def _go(self, turn: int, start: float) -> None:
        carry = self._carried[turn]
        way = self._ways[carry.src, carry.dst]
        for hop in way.hops:
            self._free[hop.link] = start + hop.offset + hop.busy
        key = carry.chunk, carry.dst
        level = self._level(carry, carry.dst)
        self._lacks[key][level] -= 1
        self._came[key][level] = max(self._came[key][level], start + way.duration)
        line = self._lines[carry.src, carry.dst]
        line.popleft()
        again = self._waiting.pop(key, [])
        if line:
            again.append(line[0])
        for each in again:
            self._offer(each)
