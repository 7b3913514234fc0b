"""Bounds on plans that never split a chunk, from cuts, pairs of cuts and groups.

Any choice gives a bound, so on large clusters one cut of each class is enough, and collectives with
too many chunks are left to other bounds. For the `Classes` devices are coloured by what they are
and what they hold and need, then again and again by the colours at the other ends of their links,
until no more colours appear. Cuts with the same colours inside and on their links most likely prove
the same. Where they do not, a bound that was left out is not proved; none that is proved is wrong.

Cuts (`cut_makespan`): links take chunks one after the other, with heads and tails. Let S be a set
of devices and c a chunk that must leave it (`formulations.bounds.demand`). Take a destination d
outside and, where contributions are added up, a holder h inside. What d gets from h (of a chunk
that is not reduced: from some holder) comes along a chain of sends of the whole chunk, and the last
hop on it that leaves S is over some link e = (u, v) that leaves S. On e

* c begins no earlier than it can be at u: all of it if u stores, else its first byte (`head`);
* d has c no earlier than the quickest path over e and on from v allows after that (`tail`).

From when it begins, e is busy with c for bytes times beta, and one link can be busy with distinct
chunks only one after the other. So for any set C of such chunks of n bytes or more, with the least
head and the least tail on e of those in C, the chunks of C that cross e keep the makespan T at
head + tail + k n beta or more, k one less than their number: T is at least the |C|-th smallest of
all these over links e and k >= 0 (`formulations.bounds.demand`).
Every choice of C, h and d gives a bound; tried are all chunks, and those whose heads or tails
are large, with the farthest h and d of each.

Links under a shared limit L carry at most b(L) bytes a second together, between the least head of
any and T less the quickest path on from the end of any. Each carries whole chunks, so k chunks need
this head, k n over b(L), and this way: as if L were one link. Both views are tried.

This is the bound of parallel processors with heads and tails (Carlier, EJOR 1987); it holds at
copying switches, as chunks are counted once.

Groups (`group_makespan`), for an all-reduce: what enters and leaves groups as jobs. Let G1 ... Gk
be disjoint sets of devices with all GPUs among them, no device outside them adding, and c a chunk
that all ranks add to and all need. Choose in each group one rank x whose contribution is looked at.
A crossing is a send of c over a link into a group that carries any of these k contributions of
other groups; take the crossings in the order in which they begin, and say that a group knows a
contribution once a crossing with it into the group has begun. What one crossing carries came last
from a single group, which knew it then. So, as in `formulations.bounds.cuts`, k - 1 crossings at
least are needed until some group knows all, since fewer do not connect k groups, and each other
group lacks something then and needs one more, later. That makes 2 (k - 1) crossings of c, each a
job on the link by which it enters a group:

* it begins no earlier than the nearest x allows (`head`, of the link);
* one of the later k - 1 is the first to bring its group G something. Each rank y of G has that over
  a link into G, no earlier, so T is at least the time from the best link into G to the farthest y
  after this crossing begins. The others of c begin before one of these does, so that the least of
  this over all groups is a `tail` for all.

The machines of `formulations.bounds.demand` do the rest. Read backwards in time the same holds
for the links that leave groups, if no device outside copies: each chunk leaves 2 (k - 1) times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ccl.bound import Bound
from formulations.bounds.cuts import Network, groupings, kind_of, passed, side, throttled, witness
from formulations.bounds.demand import Floats, Kinds, Mask, kinds_of, slot, steady
from formulations.bounds.paths import Direction, QuickestPaths, Stages

_ROUNDS = 12
"""Colours travel at most so many links."""


@dataclass(frozen=True)
class Classes:
    """Colours of devices and links of a network."""

    network: Network

    @cached_property
    def devices(self) -> np.ndarray:
        """(devices,): colours, numbered from 0."""
        colours = self._first
        for _ in range(_ROUNDS):
            ends = colours[self.network.ends]
            refined = [colours]
            for here, there in ((0, 1), (1, 0)):
                seen = np.zeros(len(colours), dtype=np.uint64)
                marks = _marks(self._kinds, ends[:, there])
                np.add.at(seen, self.network.ends[:, here], marks)
                refined.append(seen)
            found = _numbered(np.array(refined, dtype=np.uint64).T)
            if found.max() == colours.max():
                break
            colours = found
        return colours

    @cached_property
    def links(self) -> np.ndarray:
        """(links,): marks of the links, equal for links of the same colour."""
        src, dst = self.devices[self.network.ends].T
        return _marks(_numbered(np.array([self._kinds, src]).T), dst)

    def of(self, inside: Mask) -> tuple[int, int]:
        """Return the class of a set of devices."""
        crossing = self.links[self.network.crossing(inside)]
        within = _marks(self.devices[inside], np.zeros(int(inside.sum()), dtype=np.int64))
        return int(within.sum()), int(crossing.sum())

    @cached_property
    def _first(self) -> np.ndarray:
        """What a device is, and what a GPU holds and needs."""
        topology, demand = self.network.problem.topology, self.network.demand
        abilities = [
            (each.kind == "gpu", each.stores, each.copies, each.reduces)
            for each in topology.devices
        ]
        roles = np.zeros((len(abilities), 2))
        gpus = self.network.gpus
        held = np.append(demand.sizes @ demand.holders, 0.0)[: len(gpus)]
        needed = np.append(demand.sizes @ demand.destinations, 0.0)[: len(gpus)]
        roles[gpus, 0] = demand.traffic.sum(axis=1) + held
        roles[gpus, 1] = demand.traffic.sum(axis=0) + needed
        return _numbered(np.hstack([np.array(abilities, dtype=float), roles]))

    @cached_property
    def _kinds(self) -> np.ndarray:
        """(links,): what a link is."""
        return _numbered(np.array([self.network.bandwidth, self.network.alpha]).T)


def _numbered(rows: np.ndarray) -> np.ndarray:
    """Return a number for each row, the same for equal rows."""
    found = np.unique(rows, axis=0, return_inverse=True)[1]
    return np.asarray(found).reshape(-1).astype(np.int64)


def _marks(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return a mark for each pair of small numbers, whose sums distinguish sets of pairs."""
    mixed = (first.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed += second.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


Times = Callable[[np.ndarray], Floats]
"""µs between ranks and links, (ranks, links), for the numbers of some links."""


def group_makespan(
    network: Network, quickest: QuickestPaths, groups: Sequence[Mask], *, chunks: int
) -> float:
    """Return the µs that groups prove when so many chunks are added up by all for all."""
    devices = network.problem.topology.devices
    outside = [devices[i] for i in np.flatnonzero(~np.logical_or.reduce(groups))]
    ranks = [np.flatnonzero(group[network.gpus]) for group in groups]
    into = [network.crossing(~group) for group in groups]
    out = [network.crossing(group) for group in groups]
    jobs = 2 * (len(groups) - 1) * chunks
    proved = 0.0
    if not any(each.reduces for each in outside):
        chosen = _farthest(quickest.begins, ranks, out)
        links = np.unique(np.concatenate(into))
        opens = quickest.begins(links)[chosen].min(axis=0) + _tail(quickest.brings, ranks, into)
        proved = max(proved, _last(network, quickest, links, opens=opens, jobs=jobs))
    if not any(each.copies for each in outside):
        chosen = _farthest(quickest.brings, ranks, into)
        links = np.unique(np.concatenate(out))
        opens = quickest.brings(links)[chosen].min(axis=0) + _tail(quickest.begins, ranks, out)
        proved = max(proved, _last(network, quickest, links, opens=opens, jobs=jobs))
    return proved


def _times(times: Times, ranks: Sequence[np.ndarray], links: Sequence[np.ndarray]) -> list[Floats]:
    """Return for each group the µs between its ranks and the best of its links for each."""
    return [times(own)[members].min(axis=1) for members, own in zip(ranks, links, strict=True)]


def _farthest(times: Times, ranks: Sequence[np.ndarray], links: Sequence[np.ndarray]) -> np.ndarray:
    """Return the rank of each group that is farthest from all of its links."""
    took = _times(times, ranks, links)
    return np.array([own[each.argmax()] for own, each in zip(ranks, took, strict=True)])


def _tail(times: Times, ranks: Sequence[np.ndarray], links: Sequence[np.ndarray]) -> float:
    """Return the µs to the farthest rank of the group where that is least."""
    return float(min(each.max() for each in _times(times, ranks, links)))


def _last(
    network: Network, quickest: QuickestPaths, links: np.ndarray, *, opens: Floats, jobs: int
) -> float:
    pace = quickest.nbytes * 1e-3 / network.bandwidth[links]
    return slot(opens, pace, count=jobs)


_THRESHOLDS = 6
"""Most values of heads, and of tails, that sets of chunks are formed by."""


def cut_makespan(
    network: Network, quickest: QuickestPaths, kinds: Kinds, *, inside: Mask, beaten: float = 0.0
) -> float:
    """Return the most µs that a cut proves over the sets of chunks tried, or what is beaten."""
    at = inside[network.gpus]
    crossing, links = kinds.leaving(at), network.crossing(inside)
    if not crossing.any():
        return beaten
    leaving = kinds.chosen(crossing)
    head = leaving.opening(quickest.begins(links), at)
    brings = quickest.brings(links)
    tail = leaving.closing(brings, at)
    # To the same destination, else both kinds of machines would not speak of one chain of sends.
    follow = leaving.closing(brings, at, of=quickest.follows(links)) if network.limits else tail
    pace = quickest.nbytes * 1e-3 / network.bandwidth[links]
    joint = throttled(network, links)
    best = beaten
    for chosen in _sets(head.min(axis=1), tail.min(axis=1)):
        heads, count = head[chosen].min(axis=0), int(leaving.counts[chosen].sum())
        tried = [(heads + tail[chosen].min(axis=0), pace)]
        if joint:
            waits = heads, follow[chosen].min(axis=0)
            tried.append(_as_one(tried[0], joint, waits=waits, nbytes=quickest.nbytes))
        for opens, busy in tried:
            usable = np.isfinite(opens)
            if steady(opens[usable], busy[usable], count=count) > best:
                best = max(best, slot(opens, busy, count=count))
    return best


def _as_one(
    machines: tuple[Floats, Floats],
    joint: Sequence[tuple[float, Mask]],
    *,
    waits: tuple[Floats, Floats],
    nbytes: float,
) -> tuple[Floats, Floats]:
    """Return the machines when links that a limit throttles together are one.

    `waits` are the µs before a chunk begins to cross each link, and after it has left it.
    """
    opens, pace = machines
    free = ~np.logical_or.reduce([links for _, links in joint])
    busy = [nbytes * 1e-3 / bandwidth for bandwidth, _ in joint]
    waited = [sum(float(each[links].min()) for each in waits) for _, links in joint]
    return (np.concatenate([opens[free], np.add(waited, busy)]), np.concatenate([pace[free], busy]))


def _sets(heads: Floats, tails: Floats) -> Iterator[Mask]:
    """Yield sets of chunks with at least some head and at least some tail."""
    for head in _levels(heads):
        for tail in _levels(tails):
            chosen = (heads >= head) & (tails >= tail)
            if chosen.any():
                yield chosen


def _levels(values: Floats) -> Floats:
    """Return a few of the values, the smallest and the largest among them."""
    distinct = np.unique(values)
    places = np.linspace(0, len(distinct) - 1, min(len(distinct), _THRESHOLDS))
    return np.asarray(distinct[np.rint(places).astype(int)])


_WORK = 30_000_000
"""Most kinds of chunks times ranks times cuts, or pairs of cuts, that are looked at."""

_SIZES = 5
"""Most sizes of chunks."""

_ALIKE = 64
"""With more GPUs than this one cut of each class is tried, else two."""


def unsplit_bounds(network: Network, cuts: Sequence[Mask]) -> list[Bound]:
    """Return what single cuts, pairs of cuts and groups prove, the best of each."""
    found: list[Bound] = []
    for nbytes in _sizes(network):
        search = _Search(network, tuple(cuts), nbytes)
        found += [each for each in (search.single(), search.staged(), search.grouped()) if each]
    best = {each.reference: each for each in sorted(found, key=lambda bound: bound.makespan)}
    return list(best.values())


def _sizes(network: Network) -> list[float]:
    sizes = sorted({each.size for each in network.problem.collective.chunks})
    places = np.linspace(0, len(sizes) - 1, min(len(sizes), _SIZES))
    return [sizes[round(place)] for place in places]


@dataclass(frozen=True)
class _Search:
    """Chunks of `nbytes` or more, taken as chunks of `nbytes`."""

    network: Network
    cuts: tuple[Mask, ...]
    nbytes: float

    def single(self) -> Bound | None:
        """Return what the best cut proves."""
        best, cut = 0.0, None
        for inside in self._few[: self._affordable]:
            makespan = cut_makespan(
                self.network, self.paths, self.kinds, inside=inside, beaten=best
            )
            if makespan > best:
                best, cut = makespan, inside
        if cut is None:
            return None
        what = "whole chunks crossing one after the other, from their holders to destinations"
        kind = kind_of(self.network, cut)
        return Bound(best, kind, witness(self.network, cut), what, whole_chunks=True)

    def staged(self) -> Bound | None:
        """Return what the best two cuts prove, or the copies that one set needs."""
        best, found = 0.0, None
        pairs = list(self._pairs())[: self._affordable]
        for backwards in (False, True):
            kinds = self.kinds.turned() if backwards else self.kinds
            stages = Stages(Direction(self.network, self.paths, kinds, backwards))
            tried: list[tuple[float, Mask, Mask | None]]
            tried = [(stages.makespan(*pair), *pair) for pair in pairs]
            tried += [(stages.spread(each), ~each, None) for each in self._around]
            for makespan, inner, outer in tried:
                if makespan > best:
                    best, found = makespan, (backwards, inner, outer)
        if found is None:
            return None
        backwards, inner, outer = found
        described = witness(self.network, ~inner if backwards else inner)
        what = self._description(inner, outer, backwards=backwards)
        return Bound(best, "stages", described, what, whole_chunks=True)

    def _description(self, inner: Mask, outer: Mask | None, *, backwards: bool) -> str:
        """Describe what chunks have to pass, in the order of time."""
        if outer is None:
            near = side(self.network, ~inner)
            if backwards:
                return f"a sum needs a send from each GPU of {near}, where switches cannot add"
            return f"a chunk needs a send to each GPU of {near}, where switches cannot copy"
        if not backwards:
            first, then = passed(self.network, inner), passed(self.network, outer)
        else:
            first, then = passed(self.network, ~outer), passed(self.network, ~inner)
        return f"whole chunks go {first}, then {then}, on each link one at a time"

    def grouped(self) -> Bound | None:
        """Return what groups prove about sums that all ranks add to and need."""
        full = self.kinds.starts.all(axis=1) & self.kinds.stops.all(axis=1) & self.kinds.any_start
        chunks = int(self.kinds.counts[full].sum())
        if not chunks:
            return None
        best, what = 0.0, ""
        for groups in groupings(self.network):
            makespan = group_makespan(self.network, self.paths, groups, chunks=chunks)
            if makespan > best:
                names = "GPUs" if len(groups) == len(self.network.gpus) else "hosts"
                best = makespan
                what = f"each sum must cross {2 * (len(groups) - 1)} times among {names}, whole"
        return Bound(best, "group", None, what, whole_chunks=True) if best else None

    @cached_property
    def paths(self) -> QuickestPaths:
        """The quickest paths of these chunks."""
        return QuickestPaths(self.network, self.nbytes)

    @cached_property
    def kinds(self) -> Kinds:
        """The chunks by their ends."""
        return kinds_of(self.network.problem.collective, self.nbytes)

    @cached_property
    def _classes(self) -> list[tuple[int, ...]]:
        """The class of each cut."""
        classes = Classes(self.network)
        return [(*classes.of(each), *classes.of(~each)) for each in self.cuts]

    @property
    def _affordable(self) -> int:
        return _WORK // self.kinds.starts.size

    @property
    def _each(self) -> int:
        return 2 if len(self.network.gpus) <= _ALIKE else 1

    @cached_property
    def _few(self) -> list[Mask]:
        """Cuts, a few of each class."""
        return [self.cuts[i] for i in _first(self._classes, each=self._each)]

    @property
    def _around(self) -> list[Mask]:
        """Sets inside which chunks have to be copied, all devices among them."""
        every = np.ones(len(self.network.problem.topology.devices), dtype=bool)
        few = [self.cuts[i] for i in _first(self._classes, each=1)]
        several = [each for each in few if each[self.network.gpus].sum() > 1]
        return [*several, every][: self._affordable]

    def _pairs(self) -> Iterator[tuple[Mask, Mask]]:
        """Yield pairs of cuts, the first inside the second."""
        sides = np.array(self.cuts)
        ranks = sides[:, self.network.gpus].sum(axis=1)
        # One GPU justifies a stage of its own where few have anything to send, or to receive.
        alone = min(self.kinds.starts.any(axis=0).sum(), self.kinds.stops.any(axis=0).sum()) <= 2
        for i in _first(self._classes, each=1):
            inner = sides[i]
            if ranks[i] < 2 and not alone:
                continue
            around = ~(inner & ~sides).any(axis=1) & (ranks > ranks[i])
            exits = np.zeros(sides.shape[1], dtype=bool)
            exits[self.network.ends[self.network.crossing(inner), 1]] = True
            places = np.flatnonzero(around)
            beyond = (exits & ~sides[places]).sum(axis=1)
            kinds = [(*self._classes[j], int(n)) for j, n in zip(places, beyond, strict=True)]
            yield from ((inner, sides[places[j]]) for j in _first(kinds, each=1))


def _first(kinds: Sequence[tuple[int, ...]], *, each: int) -> list[int]:
    """Return the places of the first of every kind, at most so many of each."""
    seen: dict[tuple[int, ...], int] = {}
    places = []
    for place, kind in enumerate(kinds):
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= each:
            places.append(place)
    return places
