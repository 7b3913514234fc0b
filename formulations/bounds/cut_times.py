"""Cut-time bounds: what must cross a cut, counted only while it is in time at both ends.

A cut bound (`formulations.bounds.cuts`) counts what a link carries from the moment at which the
nearest source reaches it until the nearest destination is out of reach. Far sources come later, and
far destinations must be served earlier. Let a pair (s, d) be a source inside the cut and a
destination outside that needs it. A byte on link e = (u, v) that is there at the time t is of use
to the pair only if

    head(s, e) <= t <= T - tail(e, d),

the least sum of latencies from s to u, and that of e and from v to d. Bytes of different items (the
shards of an all-gather, the shards to be summed of a reduce-scatter) are different bytes; of one
item a byte may serve many pairs, since what is beyond the cut may copy it on, and contributions may
be added up before. Of an item with several holders that is not added up the nearest one is the
source, and there is a pair only if none of them is beyond the cut.

For a horizon T split the time of each link at all heads and T - tails into intervals k, and let
x[i, e, k] be the bytes of item i that begin to cross e within k. A plan of makespan T satisfies

    sum over (e, k) of use to p of x[i, e, k]  >=  bytes of i        for every pair p of i
    sum over i of x[i, e, k]                   <=  b(e) |k|          for every interval.

Weights m(p) >= 0 of the pairs that add up, times bytes, to 1 prove that there is none if

    V(T) = sum over e of b(e) * integral over t of max over i of
           (sum of m(p) over the pairs p of i to which e is of use at t)   <  1.

V does not fall as T grows, so weights prove the largest T with V(T) < 1. They are taken from the
linear program at a T just above what is proved, and this is repeated until no weights prove more:
Newton's method, in which the solver is never trusted. Shared limits are left out but for what they
let a single link carry, which makes the bound weaker, never wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter

import numpy as np
from scipy import sparse

from ccl.bound import Bound
from ccl.errors import SolveError
from ccl.symmetry.graphs import igraph
from formulations.bounds.cuts import (
    BYTES,
    Network,
    cut_makespan,
    filled,
    kind_of,
    leaving_of,
    witness,
)
from formulations.bounds.demand import Floats, Mask
from formulations.bounds.gathering import GRAIN, Relays, rounded
from formulations.solvers import cp
from formulations.solvers.cvxpy_highs import Backend

CUTS = 40
"""Cuts that are tried, those that prove most by themselves first."""

LARGEST, APART = 200_000, 45_000
"""Rows times links above which a cut is left out, and above which ends are not distinguished."""

STEP = 1e-6
"""How far above what is proved, as a share, weights are sought that prove more."""

GPUS, CENTERS = 200, 4
"""Up to which there are balls around all; and around how many that are unlike if there are more,
as there were tens of thousands."""

ROUNDS = 12
"""Most programs for one cut."""

FAR = 4.0
"""Most by which the bound of a cut is raised, as a multiple of what was known."""

SAME = 1e-9
"""Share of the bytes that may be left out."""

_WORDS = "bytes that must cross the cut in time for far destinations, from far sources"


def cut_time_bounds(
    network: Network, cuts: Iterable[Mask], *, proved: float, seconds: float
) -> list[Bound]:
    """Return the largest bound by cuts in time, or nothing if none is above `proved`.

    Parameters
    ----------
    network
        The problem.
    cuts
        Sets of devices that something must leave (`chosen_cuts`).
    proved
        µs that every plan is known to take.
    seconds
        After which no further cut is tried.
    """
    if not network.alpha.any():
        return []
    end = perf_counter() + seconds
    best: Mask | None = None
    time = proved
    for inside in cuts:
        if perf_counter() > end:
            break
        for apart in (False, True):
            crossing = crossing_of(network, inside, apart=apart)
            found = 0.0 if crossing is None else crossing.least(time)
            if found > time * (1 + STEP):
                best, time = inside, found
    if best is None:
        return []
    return [Bound(time, kind_of(network, best), witness(network, best), _WORDS)]


def balls(network: Network) -> list[Mask]:
    """Return the devices within each latency of each GPU, or from which it is within that.

    Of many GPUs a few from which others are at other latencies stand for all.
    """
    centers = np.arange(len(network.gpus))
    if len(centers) > GPUS:
        apart = np.sort(rounded(network.latency), axis=1)
        centers = np.sort(np.unique(apart, axis=0, return_index=True)[1])[:CENTERS]
    found = [
        distances <= radius + GRAIN
        for each in (network.latency, network.latency_to)
        for distances in each[centers]
        for radius in np.unique(rounded(distances))
    ]
    return [*found, *(~each for each in found)]


def chosen_cuts(network: Network, cuts: Iterable[Mask]) -> list[Mask]:
    """Return cuts and balls that prove most by themselves, one of those that look alike.

    None where there are no latencies, as in time all cuts prove what they prove without it.
    """
    if not network.alpha.any():
        return []
    every = [*cuts, *balls(network)]
    once = {each.tobytes(): each for each in every if each.any() and not each.all()}
    masks = list(once.values())
    leaving = leaving_of(network, masks)
    rated = [
        (cut_makespan(network, inside, nbytes), inside)
        for inside, nbytes in zip(masks, leaving, strict=True)
        if nbytes > 0
    ]
    rated.sort(key=lambda each: -each[0])
    kept: dict[bytes, Mask] = {}
    for _, inside in rated:
        kept.setdefault(_looks(network, inside), inside)
        if len(kept) >= CUTS:
            break
    return list(kept.values())


def _looks(network: Network, inside: Mask) -> bytes:
    """Return what is equal for cuts that a symmetry takes to each other."""
    links = network.crossing(inside)
    at_gpus = inside[network.gpus]
    rows = [network.bandwidth[links], network.alpha[links]]
    rows += list(np.sort(network.latency[np.ix_(at_gpus, network.ends[links, 0])], axis=0))
    rows += list(np.sort(network.latency_to[np.ix_(~at_gpus, network.ends[links, 1])], axis=0))
    table = np.round(np.array(rows), 6)
    return bytes([at_gpus.sum() % 256]) + table[:, np.lexsort(table)].tobytes()


@dataclass(frozen=True)
class Crossing:
    """What has to get over a cut.

    Parameters
    ----------
    rates
        Bytes per µs of each link, shape (links,).
    heads, tails
        µs after the start from which, and before the end until which, each link is of use to the
        pair of each row, shape (rows, links).
    pair
        Of each row, shape (rows,).
    first
        Where the rows of each mode begin, shape (modes + 1,): what crosses is of one item, and of
        one sender and receiver where these are distinguished.
    needs
        Bytes that have to cross for each pair, shape (pairs,).
    unit
        Bytes of all items.
    """

    rates: Floats
    heads: Floats
    tails: Floats
    pair: np.ndarray
    first: np.ndarray
    needs: Floats
    unit: float

    def least(self, proved: float) -> float:
        """Return µs that every plan takes, given those that are known."""
        time = proved
        # Were all pairs as far apart as the farthest, links would be of use to all of them.
        latest = self.heads.max(axis=0) + self.tails.max(axis=0)
        if filled(self.rates, latest, self.unit) <= proved:
            return time
        for _ in range(ROUNDS):
            beyond = time * (1 + STEP)
            weights = None if self._fits(beyond) else self._weights(beyond)
            if weights is None or self._worth(beyond, weights) >= 1:
                return time
            low, high = beyond, proved * FAR
            if self._worth(high, weights) < 1:
                return high
            while high - low > STEP * low / 10:
                middle = (low + high) / 2
                low, high = (middle, high) if self._worth(middle, weights) < 1 else (low, middle)
            time = low
        return time

    def _fits(self, time: float) -> bool:
        """Return whether all fits into intervals that are of use to all pairs of its item.

        Then no weights prove more, and no solver has to be loaded to see it.
        """
        capacity, useful = self._grid(time)
        items = [useful[begin:end].all(axis=0) for begin, end in pairwise(self.first.tolist())]
        source, sink, many = len(items), len(items) + 1, len(items) + 2
        nbytes = self.needs[self.pair[self.first[:-1]]]
        if nbytes.sum() > self.unit * (1 + SAME):
            return False  # senders or receivers are distinguished
        edges = [(source, number) for number in range(len(items))]
        edges += [(many + int(k), sink) for k in range(len(capacity))]
        edges += [
            (row, many + int(k)) for row, fits in enumerate(items) for k in np.flatnonzero(fits)
        ]
        room = np.full(len(edges), self.unit)
        room[: len(items) + len(capacity)] = [*nbytes, *capacity]
        graph = igraph.Graph(n=many + len(capacity), edges=edges, directed=True)
        most = graph.maxflow_value(source, sink, room.tolist())
        return bool(most >= self.unit * (1 - SAME))

    def _worth(self, time: float, weights: Floats) -> float:
        """Return V, rounded up, of weights that are scaled here to need 1."""
        capacity, useful = self._grid(time)
        each = weights[self.pair]
        most = np.zeros(len(capacity))
        for begin, end in pairwise(self.first.tolist()):
            np.maximum(most, each[begin:end] @ useful[begin:end], out=most)
        return float(capacity @ most) / float(weights @ self.needs) * (1 + 1e-9)

    def _grid(self, time: float) -> tuple[Floats, Mask]:
        """Return the bytes of each interval of each link, and to which rows it is of use."""
        capacity, useful = [], []
        for link, rate in enumerate(self.rates):
            heads, ends = self.heads[:, link], time - self.tails[:, link]
            marks = np.unique(np.concatenate([heads, ends, [0.0, time]]))
            marks = marks[(marks >= 0) & (marks <= time)]
            # Whatever is rounded, an interval is of use to whom it is in the middle.
            middle = (marks[:-1] + marks[1:]) / 2
            capacity.append(rate * np.diff(marks))
            useful.append((heads[:, None] <= middle) & (middle <= ends[:, None]))
        return np.concatenate(capacity), np.concatenate(useful, axis=1)

    def _weights(self, time: float) -> Floats | None:
        """Return the weights of the linear program, None if it was not solved."""
        capacity, useful = self._grid(time)
        some = useful.any(axis=0)
        capacity, useful = capacity[some], useful[:, some]
        columns, pairs = len(capacity), len(self.needs)
        if not columns:
            return np.ones(pairs)
        row, column = np.nonzero(useful)
        mode = np.searchsorted(self.first, row, side="right") - 1
        modes = len(self.first) - 1
        every = np.arange(modes * columns)
        matrix = sparse.csr_array(
            (
                np.repeat([-1.0, 1.0], [len(row), len(every)]),
                (
                    np.concatenate([mode * columns + column, every]),
                    np.concatenate([self.pair[row], pairs + every % columns]),
                ),
            ),
            shape=(len(every), pairs + columns),
        )
        values = cp.Variable(pairs + columns, nonneg=True)
        weights, prices = values[:pairs], values[pairs:]
        covers = cp.Constant(matrix) @ values >= 0
        scaled = cp.Constant(self.needs / self.unit) @ weights == 1
        model = cp.Problem(
            cp.Minimize(cp.Constant(capacity / self.unit) @ prices), [covers, scaled]
        )
        try:
            Backend().solve(model, time_limit=_SECONDS)
        except SolveError:
            return None
        found = np.maximum(np.asarray(weights.value, dtype=float), 0.0)
        return found if found @ self.needs > 0 else None


_SECONDS = 10.0
"""For one linear program."""


@dataclass(frozen=True)
class _Points:
    """Latencies to the links that leave a set of devices, and from them.

    Parameters
    ----------
    before
        From each rank, over each sender, shape (ranks, senders, links).
    after
        To each rank, over each receiver, shape (ranks, receivers, links).
    """

    before: Floats
    after: Floats


def crossing_of(network: Network, inside: Mask, *, apart: bool) -> Crossing | None:
    """Return what has to leave a set of devices, or None if nothing has or it is too much.

    With `apart` senders and receivers are distinguished where relays cannot add or copy.
    """
    links = network.crossing(inside)
    if not len(links):
        return None
    most = APART if apart else LARGEST
    points = _points(network, links, apart=apart, most=most)
    if points is None:
        return None
    at_gpus, demand = inside[network.gpus], network.demand
    kinds = _Kinds(points.after)
    for holders, stops, reduced, nbytes in zip(
        demand.holders, demand.destinations, demand.reduced, demand.sizes, strict=True
    ):
        starts, ends = holders & at_gpus, stops & ~at_gpus
        if not starts.any() or not ends.any() or not (reduced or at_gpus[holders].all()):
            continue
        heads = points.before[starts]
        # Of what is not added up the nearest holder is the sender.
        kinds.add(heads if reduced else heads.min((0, 1), keepdims=True), ends, float(nbytes))
    for start in np.flatnonzero(at_gpus):
        for stop in np.flatnonzero((demand.traffic[start] > 0) & ~at_gpus):
            heads = points.before[start].min(0, keepdims=True)[None]
            alone = np.arange(len(at_gpus)) == stop
            kinds.add(heads, alone, float(demand.traffic[start, stop]))
    merged = kinds.merged()
    size = sum(heads[..., 0].size * tails[..., 0].size for heads, tails, _ in merged)
    if not merged or size * len(links) > most:
        return None
    return _crossing(network.bandwidth[links] * BYTES, merged)


def _points(network: Network, links: np.ndarray, *, apart: bool, most: int) -> _Points | None:
    """Return latencies to and from links; None if told apart they are one, or too many."""
    tails, heads = network.ends[links, 0], network.ends[links, 1]
    relays = Relays(network)
    adds, copies = relays.adds, relays.copies
    senders = int(adds.sum()) if apart and not adds[tails].all() else 1
    receivers = int(copies.sum()) if apart and not copies[heads].all() else 1
    pairs = senders * receivers
    if pairs * len(links) > most or (apart and pairs == 1):
        return None
    before = network.latency[:, tails][:, None]
    after = (network.alpha[links] + network.latency_to[:, heads])[:, None]
    if senders > 1:
        near = np.array([relays.near(each, back=False)[adds] for each in tails.tolist()]).T
        before = network.latency[:, adds][:, :, None] + near
    if receivers > 1:
        near = np.array([relays.near(each, back=True)[copies] for each in heads.tolist()]).T
        after = network.alpha[links] + near + network.latency_to[:, copies][:, :, None]
    return _Points(rounded(before), rounded(after))


class _Kinds:
    """What has to cross: items whose pairs are alike are one, and so are pairs that are alike."""

    def __init__(self, after: Floats) -> None:
        self._after = after
        self._table: dict[tuple[bytes, bytes], tuple[Floats, Mask, float]] = {}

    def add(self, heads: Floats, stops: Mask, nbytes: float) -> None:
        """Add an item by latencies from its senders, (pairs, senders, links), and its stops."""
        key = heads.tobytes(), stops.tobytes()
        known = self._table[key][2] if key in self._table else 0.0
        self._table[key] = heads, stops, known + nbytes

    def merged(self) -> list[tuple[Floats, Floats, float]]:
        """Return latencies from senders and to receivers, and bytes."""
        table: dict[tuple[frozenset[bytes], frozenset[bytes]], tuple[Floats, Floats, float]] = {}
        for heads, stops, nbytes in self._table.values():
            early = {each.tobytes(): each for each in heads}
            late = {each.tobytes(): each for each in self._after[stops]}
            key = frozenset(early), frozenset(late)
            known = table[key][2] if key in table else 0.0
            ends = np.array(list(early.values())), np.array(list(late.values()))
            table[key] = *ends, known + nbytes
        return list(table.values())


def _crossing(rates: Floats, items: Sequence[tuple[Floats, Floats, float]]) -> Crossing:
    """Write down all modes: of each item those of each sender and receiver."""
    heads: list[Floats] = []
    tails: list[Floats] = []
    pairs: list[np.ndarray] = []
    needs: list[Floats] = []
    for early, late, nbytes in items:
        many = len(early) * len(late)
        place = np.arange(many) + sum(len(each) for each in needs)
        needs.append(np.full(many, nbytes))
        for sender in range(early.shape[1]):
            for receiver in range(late.shape[1]):
                begin = np.repeat(early[:, sender], len(late), axis=0)
                end = np.tile(late[:, receiver], (len(early), 1))
                if np.isfinite(begin + end).any():
                    heads.append(begin)
                    tails.append(end)
                    pairs.append(place)
    return Crossing(
        rates=rates,
        heads=np.concatenate(heads),
        tails=np.concatenate(tails),
        pair=np.concatenate(pairs),
        first=np.cumsum([0, *(len(each) for each in pairs)]),
        needs=np.concatenate(needs),
        unit=sum(nbytes for *_, nbytes in items),
    )
