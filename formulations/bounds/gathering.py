"""Gathering: what crosses a cut early carries few contributions, what crosses late serves few.

`formulations.bounds.cut_times` asks when a link is of use to a pair of a source s inside a cut and
a destination d outside. Where sums are added up, one byte may serve many pairs; but a switch that
does not add lets through what one device, u, has added up, and that had to be there before: a byte
on link e = (x, y) at the time t carries no more contributions than

    a(t) = max over u of the number of sources s with latency(s, u) + near(u, x) <= t,

near being the least latency over devices that do not add. Likewise one device w is the first that
can copy it, so that it serves no more destinations than

    z(T - t) = max over w of the number of d with alpha(e) + near(y, w) + latency(w, d) <= T - t.

So it serves at most a z of the n m pairs. Let E(1) <= E(2) <= ... be the times at which a comes to
1, 2, ... and Z(1) <= Z(2) <= ... those at which z does, and D the bytes that each pair needs. What
all links of the cut can do in a plan of makespan T is enough for all pairs only if

    sum over e of b(e) * mean over i <= n, j <= m of max(0, T - E(e, i) - Z(e, j))  >=  D,

and the least such T is a bound. In the words of `formulations.bounds.cut_times` all pairs have
equal weights there, with senders and receivers apart: no linear program is solved, so it takes any
size, and where all pairs are alike no weights are better. It says why an all-reduce of many hosts
takes more than one exchange between all GPUs: into a host comes one contribution after the other,
or what its own host has added up before.

Every pair is served by a byte that leaves the cut first, so u is inside; or, where the links begin
at devices that add, by one that leaves it last, and then w is outside. Items with different sources
are as if all came from the nearest, and alike with destinations. Pairs may be left out, so far
sources are also taken alone, and single destinations. Shared limits are left out but for what they
let a single link carry, which makes the bound weaker, never wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter

import numpy as np

from ccl.bound import Bound
from ccl.symmetry.graphs import igraph
from formulations.bounds.cuts import BYTES, Network, filled, kind_of, witness
from formulations.bounds.demand import Floats, Mask

LEVELS, ALONE = 3, 8
"""Distances of sources from which on they are taken alone, and destinations that are, at most."""

GRAIN = 1e-9
"""µs to which latencies are rounded down."""

LARGEST = 2_000_000
"""Waits of all links together above which a cut is left out."""

_MARGIN = 1e-9
"""Share by which a bound is lowered, for the rounding of sums."""

_SUMS = "sums that must cross the cut once contributions are gathered, in time to be spread"
_COPIES = "bytes that must cross the cut in time to be spread beyond it"


def gathering_bounds(
    network: Network, cuts: Iterable[Mask], *, proved: float, seconds: float
) -> list[Bound]:
    """Return the largest bound by pairs of equal weight, or nothing if none is above `proved`.

    Parameters
    ----------
    network
        The problem.
    cuts
        Sets of devices that something must leave.
    proved
        µs that every plan is known to take.
    seconds
        After which no further cut is tried.
    """
    if not network.alpha.any() or not len(network.demand.sizes):
        return []
    end, relays = perf_counter() + seconds, Relays(network)
    best: Bound | None = None
    time = proved
    for inside in relays.drawn(cuts):
        if perf_counter() > end:
            break
        for pairs in _pairs(network, inside):
            found = relays.least(inside, pairs, time)
            if found > time:
                time, words = found, _SUMS if pairs.gathered else _COPIES
                best = Bound(time, kind_of(network, inside), witness(network, inside), words)
    return [] if best is None else [best]


@dataclass(frozen=True)
class Pairs:
    """Sources inside a cut and destinations outside.

    Parameters
    ----------
    starts, stops
        (ranks,): which they are.
    gathered, served
        Whether one byte is worth the more the more of these it carries, and serves.
    nbytes
        That each pair needs.
    """

    starts: Mask
    stops: Mask
    gathered: bool
    served: bool
    nbytes: float


def _pairs(network: Network, inside: Mask) -> Iterator[Pairs]:
    """Yield all pairs, and those whose sources, or destinations, are far from the others."""
    demand, within = network.demand, inside[network.gpus]
    starts, stops = demand.holders & within, demand.destinations & ~within
    able = demand.reduced | (demand.holders == starts).all(axis=1)
    able &= starts.any(axis=1) & stops.any(axis=1)
    if not able.any():
        return
    starts, stops = starts[able], stops[able]
    gathered = bool(demand.reduced[able].all() and (starts == starts[0]).all())
    served = bool((stops == stops[0]).all())
    if not gathered and not served:
        return
    first, last = starts.any(axis=0), stops.any(axis=0)
    nbytes = float(demand.sizes[able].sum())
    between = rounded(network.latency[:, network.gpus][np.ix_(first, last)].min(axis=1))
    for ends in _alone(network, last) if served else [last]:
        for far in np.unique(between)[:LEVELS] if gathered else [0.0]:
            some = first.copy()
            some[first] = between >= far
            yield Pairs(some, ends, gathered, served, nbytes)


def _alone(network: Network, stops: Mask) -> list[Mask]:
    """Return all destinations, and one alone of those that are equally far from all devices."""
    apart = np.sort(rounded(network.latency_to[stops]), axis=1)
    unlike = np.unique(apart, axis=0, return_index=True)[1][:ALONE]
    ranks = np.arange(len(stops))
    return [stops, *(ranks == each for each in np.flatnonzero(stops)[unlike].tolist())]


class Relays:
    """What devices that neither add nor copy let through.

    Parameters
    ----------
    network
        The problem.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        devices = network.problem.topology.devices
        self.adds = np.array([each.kind == "gpu" or each.reduces for each in devices])
        self.copies = np.array([each.kind == "gpu" or each.copies for each in devices])
        self._near: dict[tuple[int, bool], Floats] = {}

    def drawn(self, cuts: Iterable[Mask]) -> list[Mask]:
        """Return cuts as they are, close to those that add, and close to those that copy."""
        found = [
            mask
            for inside in cuts
            for mask in (inside, inside & self.adds, inside | ~self.copies)
            if mask.any() and not mask.all()
        ]
        return list({each.tobytes(): each for each in found}.values())

    def least(self, inside: Mask, pairs: Pairs, proved: float) -> float:
        """Return the µs that a cut proves, or those that are known if that is not more."""
        network = self.network
        links = network.crossing(inside)
        tails, heads = network.ends[links].T
        if not len(links):
            return proved
        last = bool(self.adds[tails].all())
        senders = self.adds if last else self.adds & inside
        receivers = self.copies & ~inside if last else self.copies
        before = self._times(tails, pairs.starts, senders, gathered=pairs.gathered)
        after = self._times(heads, pairs.stops, receivers, gathered=pairs.served, back=True)
        rates: defaultdict[tuple[bytes, bytes, float], float] = defaultdict(float)
        alike: dict[tuple[bytes, bytes, float], tuple[Floats, Floats]] = {}
        for link, tail, head in zip(links.tolist(), tails.tolist(), heads.tolist(), strict=True):
            key = before[tail].tobytes(), after[head].tobytes(), float(network.alpha[link])
            alike[key] = before[tail], after[head]
            rates[key] += float(network.bandwidth[link]) * BYTES
        longest = [float(e.max() + z.max()) + key[2] for key, (e, z) in alike.items()]
        rate = np.array(list(rates.values()))
        if _filled(rate, np.array(longest), pairs.nbytes) <= proved / (1 - _MARGIN):
            return proved
        shares, waits = [], []
        for key, (early, late) in alike.items():
            (e, many), (z, more) = (np.unique(each, return_counts=True) for each in (early, late))
            waits.append((key[2] + e[:, None] + z).ravel())
            shares.append((many[:, None] * more / (len(early) * len(late)) * rates[key]).ravel())
        if sum(map(len, waits)) > LARGEST:
            return proved
        found = _filled(np.concatenate(shares), np.concatenate(waits), pairs.nbytes)
        return max(proved, found * (1 - _MARGIN))

    def _times(
        self, at: np.ndarray, ranks: Mask, points: Mask, *, gathered: bool, back: bool = False
    ) -> dict[int, Floats]:
        """Return, for each end of a link, when it can be of use to 1, 2, ... of the ranks.

        Parameters
        ----------
        at
            The ends.
        ranks
            Sources, or backwards in time destinations.
        points
            Devices that may have added up what comes there, or first copy it.
        gathered
            Whether more than the nearest count.
        back
            Whether time runs backwards.
        """
        network, own = self.network, self.copies if back else self.adds
        far = (network.latency_to if back else network.latency)[ranks]
        numbers = np.flatnonzero(points)
        ranked: Floats | None = None
        found = {}
        for device in np.unique(at).tolist():
            if own[device]:
                times = np.sort(far[:, device])
            else:
                ranked = np.sort(far[:, numbers], axis=0) if ranked is None else ranked
                near = self.near(device, back=back)[numbers]
                times = (ranked + near).min(axis=1, initial=np.inf)
            found[device] = rounded(times if gathered else times[:1])
        return found

    def near(self, device: int, *, back: bool) -> Floats:
        """Return the least latencies over relays, from what adds or to what copies, (devices,)."""
        if (device, back) not in self._near:
            graph, own = (self._leaving, self.copies) if back else (self._entering, self.adds)
            start = device if back or not own[device] else device + len(own)
            found = graph.distances(
                [start],
                self._goals if back else None,
                weights=self.network.alpha.tolist(),
                mode="out" if back else "in",
            )
            known = np.asarray(found[0], dtype=float)[: len(own)]
            known[device] = 0.0
            self._near[device, back] = known
        return self._near[device, back]

    @cached_property
    def _entering(self) -> igraph.Graph:
        return self._ended(self.adds)

    @cached_property
    def _leaving(self) -> igraph.Graph:
        return self._ended(self.copies)

    @property
    def _goals(self) -> list[int]:
        """The twin of what copies, as what enters that ends there."""
        many = np.arange(len(self.copies))
        return [*np.where(self.copies, many + len(many), many).tolist()]

    def _ended(self, points: Mask) -> igraph.Graph:
        """Return the links, of which those into points end at a twin of theirs."""
        src, dst = self.network.ends.T
        ends = np.column_stack([src, np.where(points[dst], dst + len(points), dst)])
        return igraph.Graph(n=2 * len(points), edges=ends.tolist(), directed=True)


def _filled(rates: Floats, waits: Floats, nbytes: float) -> float:
    """Return when pipes have let so many bytes pass; those that never open are none."""
    opens = np.isfinite(waits)
    return filled(rates[opens], waits[opens], nbytes) if opens.any() else 0.0


def rounded(latencies: Floats) -> Floats:
    """Return latencies rounded down, so that equal ones are equal."""
    return np.asarray(np.floor(latencies / GRAIN + 1e-3) * GRAIN)
