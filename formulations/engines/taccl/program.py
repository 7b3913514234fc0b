"""Step 1, path encoding (formulation 2): which chunk takes which path, order left open.

`Demands` are what paths have to meet besides spreading chunks: forced pairs, and hosts that are
crossed to.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ccl.errors import Infeasible
from ccl.serialization.sketches import Inclination, Sketch
from formulations.engines.epoch_grid.arcs import flattened, rows
from formulations.engines.taccl.pairs import Pairs
from formulations.solvers import cp


@dataclass(frozen=True)
class Demands:
    """Sets of pairs of which one at least is taken.

    Parameters
    ----------
    pairs
        What there is.
    forced
        Of each forced pair of GPUs the pairs that use it.
    crossings
        Of each chunk and each other host that wants it and that paths from its own host reach: the
        pairs that lead there from its own (inter-node transfer constraints of formulation 2).
    """

    pairs: Pairs
    forced: tuple[np.ndarray, ...]
    crossings: tuple[np.ndarray, ...]

    @cached_property
    def direct(self) -> np.ndarray:
        """Whether each pair stays in its host, or crosses to one to which no crossing leads.

        Or is a crossing, shape (pairs,).
        """
        pairs, host = self.pairs, self.pairs.part.logical.host
        crossing = np.concatenate([*self.crossings, np.empty(0, dtype=np.int64)]).astype(np.int64)
        hosts = int(host.max()) + 2
        key = pairs.chunk * hosts + host[pairs.dst]
        led = np.isin(key, key[crossing])
        usable = ~(pairs.part.logical.away[pairs.transfer] & led)
        usable[crossing] = True
        return np.asarray(usable)

    def spreads(self, taken: np.ndarray) -> bool:
        """Test that every chunk comes once to all who want it, to nobody twice, from a holder."""
        pairs, part = self.pairs, self.pairs.part
        chosen = np.flatnonzero(taken[pairs.orbit])
        came = np.zeros(part.holds.shape, dtype=np.int64)
        np.add.at(came, (pairs.chunk[chosen], pairs.dst[chosen]), 1)
        if (came > 1).any() or (part.wants & (came == 0)).any():
            return False
        there = part.holds.copy()
        for _ in range(there.shape[1]):
            reached = there[pairs.chunk[chosen], pairs.src[chosen]]
            there[pairs.chunk[chosen[reached]], pairs.dst[chosen[reached]]] = True
            if reached.all():
                return True
        return False

    def met(self, taken: np.ndarray) -> bool:
        """Return whether every set has a pair that is taken."""
        every = taken[self.pairs.orbit]
        return all(every[each].any() for each in (*self.forced, *self.crossings))


def demands_of(pairs: Pairs, sketch: Sketch) -> Demands:
    """Return the demands of a sketch and of the hosts.

    Raises
    ------
    Infeasible
        If no chunk can go over a forced pair.
    """
    forced = []
    for src, dst in sketch.forced:
        using = np.flatnonzero(np.isin(pairs.transfer, pairs.part.logical.between(src, dst)))
        if not len(using):
            raise Infeasible(
                f"no chunk can go from {src} to {dst}, which the sketch forces; take it out"
            )
        forced.append(using)
    return Demands(pairs, tuple(forced), tuple(_crossings(pairs)))


def _crossings(pairs: Pairs) -> list[np.ndarray]:
    part, host = pairs.part, pairs.part.logical.host
    away = np.flatnonzero(part.logical.away[pairs.transfer])
    # From a host of a holder to one where somebody wants it and nobody has it.
    hosts = int(host.max()) + 1
    shape = (len(part.nbytes), hosts + 1)
    holding, wanting = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    for device, place in enumerate(host.tolist()):
        holding[:, place] |= part.holds[:, device]
        wanting[:, place] |= part.wants[:, device]
    chunk, begin, end = pairs.chunk[away], host[pairs.src[away]], host[pairs.dst[away]]
    direct = holding[chunk, begin] & wanting[chunk, end] & ~holding[chunk, end]
    away, key = away[direct], (chunk * hosts + end)[direct]
    order = np.argsort(key, kind="stable")
    return np.split(away[order], np.flatnonzero(np.diff(key[order])) + 1) if len(away) else []


INCLINED = 0.01
"""What all pairs at switches together weigh, as a share of the time."""

ARRIVALS = 0.01
"""What the mean arrival weighs, as a share of the time."""


@dataclass(frozen=True)
class Paths:
    """The program; times are shares of `most`.

    Parameters
    ----------
    pairs
        What there is to choose.
    demands
        What has to be met.
    inclination
        Whether different pairs at switches are to be few, many or whatever comes.
    holds
        Whether latency holds a link, as the paper has it.
    most
        µs within which a plan is known, or that are surely enough.
    """

    pairs: Pairs
    demands: Demands
    inclination: Inclination
    holds: bool
    most: float

    @cached_property
    def taken(self) -> cp.Variable:
        """Whether each orbit of pairs is taken: ``sent``."""
        return cp.Variable(self.pairs.many, boolean=True)

    @cached_property
    def time(self) -> cp.Variable:
        """When all would be there if nothing waited, and all links would have sent what they do."""
        return cp.Variable(bounds=[0, 1])

    @property
    def reached(self) -> float:
        """The time of the solution, in µs."""
        return float(np.asarray(self.time.value)) * self.most

    @cached_property
    def model(self) -> cp.Problem:
        """The whole program."""
        time, used = self.time, cp.Variable(max(1, self._used), bounds=[0, 1])
        # What a device can have only after the latest end is in no plan that is looked for.
        latest = np.maximum(self._early, 1.0)
        start = cp.Variable(len(self._cells), bounds=[self._early, latest])
        rules = [
            *self._arriving(),
            *self._timed(start),
            time >= start[np.flatnonzero(self._wanted)],
            time >= load_of(self.pairs, holds=self.holds) / self.most @ self.taken,
            *self._demanded(),
            *self._inclined(used),
        ]
        many = self._members[self._wanted]
        mean = (many / many.sum()) @ start[np.flatnonzero(self._wanted)]
        aim = time + ARRIVALS * mean
        if self.inclination != "all":
            sign = 1.0 if self.inclination == "uc-min" else -1.0
            aim = aim + sign * INCLINED / max(1, self._used) * np.ones(max(1, self._used)) @ used
        return cp.Problem(cp.Minimize(aim), rules)

    @cached_property
    def _into(self) -> np.ndarray:
        """The orbit of the cell (chunk, device) where each pair ends."""
        pairs = self.pairs
        return np.asarray(pairs.cells[pairs.chunk, pairs.dst])

    @cached_property
    def _cells(self) -> np.ndarray:
        """Orbits of cells where a chunk may arrive; the place here is the number of the row."""
        return np.unique(self._into)

    @cached_property
    def _first(self) -> np.ndarray:
        """One cell of each of these orbits, flat."""
        names, first = np.unique(self.pairs.cells.ravel(), return_index=True)
        return np.asarray(first[np.searchsorted(names, self._cells)])

    @cached_property
    def _members(self) -> np.ndarray:
        """How many cells each of these orbits has."""
        return np.asarray(np.bincount(self.pairs.cells.ravel())[self._cells])

    @cached_property
    def _wanted(self) -> np.ndarray:
        return np.asarray(self.pairs.part.wants.ravel()[self._first])

    @cached_property
    def _early(self) -> np.ndarray:
        return np.asarray(self.pairs.early.ravel()[self._first] / self.most)

    @cached_property
    def _arrivals(self) -> tuple[np.ndarray, np.ndarray]:
        """Pairs that end in the first cell of an orbit, and the number of that orbit's row."""
        pairs = self.pairs
        row = np.searchsorted(self._cells, self._into)
        flat = pairs.chunk * pairs.part.holds.shape[1] + pairs.dst
        chosen = np.flatnonzero(flat == self._first[row])
        return chosen, row[chosen]

    @cached_property
    def _arrive(self) -> Any:
        """Matrix of the pairs that end in each cell, shape (cells, many)."""
        chosen, row = self._arrivals
        return rows(row, self.pairs.orbit[chosen], (len(self._cells), self.pairs.many))

    def _arriving(self) -> list[cp.Constraint]:
        """Whoever wants a chunk receives it once, nobody twice, and only what is there leaves.

        The last is not printed in the paper: a start that nothing bounds would let a device send
        what it never received.
        """
        arrive, wanted = self._arrive, self._wanted
        rules: list[cp.Constraint] = [arrive[np.flatnonzero(wanted)] @ self.taken == 1]
        passing = np.flatnonzero(~wanted)
        if not len(passing):
            return rules
        rules.append(arrive[passing] @ self.taken <= 1)
        leaving, place = self._leaving()
        relayed = ~wanted[place]
        if relayed.any():
            leaving, place = leaving[relayed], place[relayed]
            rules.append(self.taken[leaving] <= arrive[place] @ self.taken)
        return rules

    def _leaving(self) -> tuple[np.ndarray, np.ndarray]:
        """Orbits of pairs that leave where the chunk was not at first, and that cell's number."""
        pairs = self.pairs
        single = pairs.single
        chunk, src = pairs.chunk[single], pairs.src[single]
        later = np.flatnonzero(~pairs.part.holds[chunk, src])
        cell = pairs.cells[chunk[later], src[later]]
        return later, np.searchsorted(self._cells, cell)

    def _timed(self, start: cp.Variable) -> list[cp.Constraint]:
        """Let a chunk be there when it was sent and has come: ``start = send + lat`` if it is sent.

        ``send`` is left out: what is sent leaves when it is there, as nothing orders it here.
        """
        pairs, early = self.pairs, self._early
        shape = (len(self._cells), pairs.many)
        chosen, row = self._arrivals
        soonest = pairs.early[pairs.chunk[chosen], pairs.src[chosen]] + pairs.delay[chosen]
        excess = np.maximum(soonest / self.most - early[row], 0.0)
        at_least = rows(row, pairs.orbit[chosen], shape, value=excess)
        rules: list[cp.Constraint] = [start >= early + at_least @ self.taken]
        leaving, place = self._leaving()
        if not len(leaving):
            return rules
        single = pairs.single[leaving]
        ends = np.searchsorted(self._cells, self._into[single])
        big = 1.0 - early[ends]
        took = pairs.delay[single] / self.most + big
        there = rows(np.arange(len(took)), leaving, (len(took), pairs.many), value=took)
        rules.append(start[ends] - start[place] - there @ self.taken >= -big)
        return rules

    def _demanded(self) -> list[cp.Constraint]:
        sets = [*self.demands.forced, *self.demands.crossings]
        if not sets:
            return []
        orbits = {np.unique(self.pairs.orbit[each]).tobytes() for each in sets}
        lists = [np.frombuffer(each, dtype=np.int64) for each in sorted(orbits)]
        row = np.repeat(np.arange(len(lists)), [len(each) for each in lists])
        shape = (len(lists), self.pairs.many)
        return [rows(row, np.concatenate(lists), shape) @ self.taken >= 1]

    @cached_property
    def _joins(self) -> tuple[np.ndarray, np.ndarray]:
        """Orbits of pairs that cross switches, and the number of the two GPUs they join."""
        pairs, logic = self.pairs, self.pairs.part.logical
        crossing = logic.switched[pairs.transfer]
        key = pairs.src * logic.devices + pairs.dst
        names, number = np.unique(key[crossing], return_inverse=True)
        least = np.full((pairs.many, 1), len(names))
        # Images of a pair of GPUs are one: the first that an orbit of pairs has stands for all.
        np.minimum.at(least[:, 0], pairs.orbit[crossing], number.ravel())
        chosen = np.flatnonzero(least[:, 0] < len(names))
        return chosen, np.unique(least[chosen, 0], return_inverse=True)[1].ravel()

    @property
    def _used(self) -> int:
        return int(self._joins[1].max(initial=-1)) + 1

    def _inclined(self, used: cp.Variable) -> list[cp.Constraint]:
        if self.inclination == "all" or not self._used:
            return []
        chosen, number = self._joins
        if self.inclination == "uc-min":
            return [self.taken[chosen] <= used[number]]
        return [used <= rows(number, chosen, (self._used, self.pairs.many)) @ self.taken]


def load_of(pairs: Pairs, *, holds: bool) -> Any:
    """Return the µs for which each chosen pair holds each link, shape (orbits of links, many).

    Equations (1) to (3) for a link that joins two GPUs and for one to or from a switch alike.

    Parameters
    ----------
    pairs
        What may be taken.
    holds
        Whether latency holds a link too, that of the whole path as the paper has it.
    """
    logic = pairs.part.logical
    names, first = np.unique(pairs.links, return_index=True)
    beta = logic.beta[first].tocsc()
    place, which = flattened(beta.indptr, pairs.transfer)
    busy = pairs.part.nbytes[pairs.chunk[which]] * beta.data[place]
    if holds:
        busy = busy + logic.latency[pairs.transfer[which]]
    shape = (len(names), pairs.many)
    return rows(beta.indices[place], pairs.orbit[which], shape, value=busy)
