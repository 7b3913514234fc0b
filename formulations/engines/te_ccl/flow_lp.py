"""The linear program of amounts on a grid of epochs, built with sparse matrices.

Its mathematics is the docstring of `formulations.models.te_ccl_lp`. Variables are entries of
flat vectors, inside their windows only; every family of rows is one sparse matrix. `count_amounts`
says how many variables and rows the model has, uncompiled.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ccl.errors import Infeasible, LimitReached
from ccl.plans import Schedule, Send
from formulations.core.registry import ModelEstimate
from formulations.core.run import Run
from formulations.engines.epoch_grid.arcs import Arcs, rows
from formulations.engines.epoch_grid.decompose import Amounts, Commodities, paths, sends_of
from formulations.engines.epoch_grid.epochs import ROUNDING
from formulations.engines.epoch_grid.windows import Need, by_bound, by_hops, too_short
from formulations.solvers import cp

Aim = Literal["thrift", "haste", "arrivals"]

HASTE = 1.0
"""What an arrival in the last epoch costs beside its share of busy time; a quarter of it one
epoch before, and so on."""


SPARE = 1e-6
"""Share of the bandwidth that is left to the solver's tolerance where a plan has failed for it."""


@dataclass(frozen=True)
class _Cells:
    """The variables of one horizon: number of each, -1 where it has none.

    Parameters
    ----------
    sent
        Shape (K, links, sources).
    held
        Shape (K, devices, sources).
    read
        Shape (K + 1, demands).
    """

    sent: np.ndarray
    held: np.ndarray
    read: np.ndarray

    @property
    def horizon(self) -> int:
        """K."""
        return len(self.sent)

    def variables(self) -> tuple[cp.Variable, ...]:
        """Return the amounts sent, held and read."""
        return tuple(
            cp.Variable(int(table.max(initial=-1)) + 1, nonneg=True)
            for table in (self.sent, self.held, self.read)
        )


class FlowModel:
    """Models of one problem on one grid, for any horizon.

    Parameters
    ----------
    hops
        The links on a grid for fluid amounts.
    run
        Gives the problem and limits, and hears news.
    flows
        What flows, in units of the grid's chunk size.
    """

    def __init__(self, hops: Arcs, run: Run, flows: Commodities) -> None:
        self.hops, self.run, self.flows = hops, run, flows
        self.earliest = hops.distance[flows.sources].T
        self.build_seconds = self.solve_seconds = 0.0

    @property
    def checked(self) -> bool:
        """Whether a plan may break a rule: buffers are limited, or bandwidths vary."""
        return bool(self.hops.grid.windows) or self.buffered

    @property
    def buffered(self) -> bool:
        """Whether any buffer is limited."""
        return any(each.buffer_bytes is not None for each in self.hops.topology.devices)

    @property
    def width(self) -> int:
        """Links times sources: the variables of one epoch at most."""
        return len(self.hops.topology.links) * len(self.flows.sources)

    def least(self) -> int:
        """Return a horizon below which there is no solution."""
        return self._need.many

    @cached_property
    def _need(self) -> Need:
        hops, flows = self.hops, self.flows
        pairs = list(zip(flows.sources[flows.source].tolist(), flows.goal.tolist(), strict=True))
        found = (
            by_hops(hops.distance, pairs, hops.topology),
            by_bound(self.run.bounds[0], hops.grid.epoch_duration),
        )
        return max(found, key=lambda each: each.many)

    def check(self, horizon: int) -> None:
        """Explain why a horizon is too short before a solver has to find out.

        Raises
        ------
        Infeasible
            If hops or a lower bound need more epochs.
        """
        if horizon < self._need.many:
            tau = self.hops.grid.epoch_duration
            raise Infeasible(too_short(horizon, self._need, each=tau))

    def solve(self, horizon: int, *, aim: Aim = "thrift", careful: bool = False) -> Schedule:
        """Return a schedule of fractions within `horizon` epochs.

        Parameters
        ----------
        horizon
            K.
        aim
            What is least or most: ``thrift``, the time for which links are busy; ``haste``, the
            same, but of the last epochs more than of others; ``arrivals``, rewards for early ones.
        careful
            Whether what may arrive in an epoch is stored together with all that leaves in it, and
            links are filled a little less than they could be.

        Raises
        ------
        Infeasible
            If there is no plan.
        LimitReached
            If the time limit came first.
        """
        run, begin = self.run, time.perf_counter()
        if run.expired:
            raise LimitReached(f"{run.formulation} was out of time before {horizon} epochs")
        run.report(f"building the model of {horizon} epochs")
        cells = self._cells(horizon)
        sent, held, read = cells.variables()
        rules = self._balance(cells, sent, held, read)
        rules += self._capacity(cells, sent, spare=SPARE if careful else 0.0)
        rules += self._buffers(cells, (sent, held, read), careful=careful)
        objective: cp.Maximize | cp.Minimize = self._reward(cells, read)
        if aim != "arrivals":
            objective = self._busy(cells, sent, late=HASTE if aim == "haste" else 0.0)
        model = cp.Problem(objective, rules)
        built = time.perf_counter() - begin
        run.report(f"solving for {horizon} epochs")
        outcome = run.backend.solve(model, time_limit=run.left)
        self.build_seconds += built + outcome.build_seconds
        self.solve_seconds += outcome.solve_seconds
        run.met(outcome.size)
        return self._schedule(cells, sent, held, read)

    def _cells(self, horizon: int) -> _Cells:
        return _Cells(*map(_numbered, _masks(self.hops, self.flows, horizon)))

    def _balance(
        self, cells: _Cells, sent: cp.Variable, held: cp.Variable, read: cp.Variable
    ) -> list[cp.Constraint]:
        """Balance what comes to a device with what it holds back, reads and sends on."""
        hops, flows = self.hops, self.flows
        shape = (cells.horizon + 1, *self.earliest.shape)
        many = int(np.prod(shape))

        def at(*index: np.ndarray) -> np.ndarray:
            return np.asarray(np.ravel_multi_index(index, shape))

        k, e, s = np.nonzero(cells.sent >= 0)
        cell = cells.sent[k, e, s]
        flow = rows(at(k + hops.delay[e], hops.dst[e], s), cell, (many, sent.size))
        flow -= rows(at(k, hops.src[e], s), cell, (many, sent.size))
        k, v, s = np.nonzero(cells.held >= 0)
        cell = cells.held[k, v, s]
        kept = rows(at(k + 1, v, s), cell, (many, held.size))
        kept -= rows(at(k, v, s), cell, (many, held.size))
        k, d = np.nonzero(cells.read >= 0)
        cell = cells.read[k, d]
        taken = rows(at(k, flows.goal[d], flows.source[d]), cell, (many, read.size))
        supply = np.zeros(many)
        number = np.arange(len(flows.sources))
        supply[at(np.zeros_like(number), flows.sources, number)] = flows.supply()
        touched = np.flatnonzero(
            np.diff(flow.indptr) + np.diff(kept.indptr) + np.diff(taken.indptr) + (supply > 0)
        )
        total = rows(d, cell, (len(flows.amount), read.size))
        return [
            flow[touched] @ sent + kept[touched] @ held - taken[touched] @ read == -supply[touched],
            total @ read == flows.amount,
        ]

    def _capacity(self, cells: _Cells, sent: cp.Variable, *, spare: float) -> list[cp.Constraint]:
        """Capacity of each link and shared limit in each epoch, images of what is sent counted."""
        found = self._capacities(cells, sent.size)
        return [matrix @ sent <= capacity * (1 - spare) for matrix, capacity, _ in found]

    def _capacities(
        self, cells: _Cells, columns: int
    ) -> Iterator[tuple[Any, np.ndarray, list[int]]]:
        """Yield rows of capacity with their right-hand sides, and their links or limits.

        Rows that cannot bind and, of links or limits that are images of one another, all but one
        are left out. Limits are numbered after all links.
        """
        hops, topology, grid = self.hops, self.hops.topology, self.hops.grid
        k, e, s = np.nonzero(cells.sent >= 0)
        cell = cells.sent[k, e, s]
        orbit, times = _orbits(self.flows.links)
        many = len(topology.links)
        matrix = rows(k * many + orbit[e], cell, (cells.horizon * many, columns), value=times[e])
        used = np.flatnonzero(np.diff(matrix.indptr))
        capacity = (hops.capacity * grid.shares(cells.horizon)).ravel()
        yield matrix[used], capacity[used], (used % many).tolist()
        for bandwidth, carried, members in _limits(hops, self.flows):
            matrix = rows(k, cell, (cells.horizon, columns), value=carried[e])
            most = 1e3 * bandwidth * grid.epoch_duration / grid.chunk_size
            yield matrix, np.full(cells.horizon, most), [many + number for number in members]

    def _buffers(
        self, cells: _Cells, values: tuple[cp.Variable, ...], *, careful: bool
    ) -> list[cp.Constraint]:
        """Keep what each device has before it sends in an epoch within its buffer.

        That is what it holds back or sends then and all it has read; `careful` adds what may
        arrive before the epoch ends.
        """
        hops, flows = self.hops, self.flows
        sent, held, read = values
        size = [each.buffer_bytes for each in hops.topology.devices]
        limited = np.array([each is not None for each in size])
        orbit, times = _orbits(flows.devices)
        if not limited.any():
            return []
        epochs, many = cells.horizon + 1, len(size)
        shape = (epochs * many, sent.size)
        k, e, s = np.nonzero(cells.sent >= 0)
        cell, src, dst = cells.sent[k, e, s], hops.src[e], hops.dst[e]
        leaving = rows(k * many + orbit[src], cell, shape, value=times[src])
        if careful:
            first = np.floor(hops.grid.alpha / hops.grid.epoch_duration + ROUNDING).astype(int)
            for late in range(int(hops.delay.max())):
                now = (late >= first[e]) & (late < hops.delay[e])
                place = (k + late) * many + orbit[dst]
                leaving += rows(place[now], cell[now], shape, value=times[dst[now]])
        k, v, s = np.nonzero(cells.held >= 0)
        shape = (epochs * many, held.size)
        back = rows(k * many + orbit[v], cells.held[k, v, s], shape, value=times[v])
        k, d = np.nonzero(cells.read >= 0)
        spread = np.arange(epochs)[:, None] >= k
        later, which = np.nonzero(spread)
        goal = flows.goal[d[which]]
        place, cell = later * many + orbit[goal], cells.read[k, d][which]
        had = rows(place, cell, (epochs * many, read.size), value=times[goal])
        capacity = (
            np.array([np.inf if each is None else each for each in size]) / hops.grid.chunk_size
        )
        # At the beginning everything is where the problem says, whatever fits.
        row = np.arange(many, epochs * many)
        row = row[limited[row % many] & (orbit[row % many] == row % many)]
        most = (capacity - flows.stored)[row % many]
        return [leaving[row] @ sent + back[row] @ held + had[row] @ read <= most]

    def _busy(self, cells: _Cells, sent: cp.Variable, *, late: float) -> cp.Minimize:
        cost = np.zeros(sent.size)
        k, e, s = np.nonzero(cells.sent >= 0)
        # In shares of the longest hop, plus a little for every hop, so that no path is free.
        hold = self.hops.grid.hold
        left = cells.horizon - k - self.hops.delay[e]
        cost[cells.sent[k, e, s]] = (hold / hold.max() + 0.01)[e] * (1 + late * 4.0**-left)
        return cp.Minimize(cost @ sent)

    def _reward(self, cells: _Cells, read: cp.Variable) -> cp.Maximize:
        weight = np.zeros(read.size)
        k, d = np.nonzero(cells.read >= 0)
        # What is read at k counts in every epoch from then on.
        harmonic = np.cumsum(1.0 / np.arange(cells.horizon, 0, -1))[::-1]
        weight[cells.read[k, d]] = self.flows.priority[d] * harmonic[np.maximum(k, 1) - 1]
        return cp.Maximize(weight @ read)

    def _schedule(
        self, cells: _Cells, sent: cp.Variable, held: cp.Variable, read: cp.Variable
    ) -> Schedule:
        flows = self.flows
        arrived = np.zeros((cells.horizon + 1, *self.earliest.shape))
        for demand, amount in enumerate(_filled(cells.read, read).T):
            arrived[:, flows.goal[demand], flows.source[demand]] += amount
        amounts = Amounts(
            sent=_filled(cells.sent, sent), held=_filled(cells.held, held), read=arrived
        )
        found = paths(amounts, self.hops, flows)
        sends, horizon = sends_of(found, self.hops, self.run.problem)
        tau = self.hops.grid.epoch_duration
        # Windows begin and end where they do, so with them epochs cannot become longer.
        if not self.hops.grid.windows:
            tau *= self._overload(sends, horizon)
        return Schedule(sends, tau, horizon)

    def _overload(self, sends: tuple[Send, ...], horizon: int) -> float:
        """Return by which factor the solver's tolerance overfills an epoch, 1 or hardly more."""
        topology, capacity = self.hops.topology, self.hops.capacity
        chunks, unit = self.run.problem.collective.chunks, self.hops.grid.chunk_size
        load = np.zeros((len(topology.links), horizon))
        for send in sends:
            link = topology.link_index[send.src, send.dst]
            load[link, send.epoch] += send.fraction * chunks[send.chunk].size / unit
        most = float((load / capacity[:, None]).max())
        for limit in topology.limits:
            links = [topology.link_index[ends] for ends in limit.links]
            through = 1e3 * limit.bandwidth * self.hops.grid.epoch_duration / unit
            most = max(most, float(load[links].sum(axis=0).max()) / through)
        return max(1.0, most)


def _orbits(images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest image of each, and how often an element of its orbit comes to that."""
    orbit = images.min(axis=0)
    return orbit, len(images) / np.bincount(orbit)[orbit]


def _numbered(mask: np.ndarray) -> np.ndarray:
    numbers = np.full(mask.shape, -1)
    numbers[mask] = np.arange(int(mask.sum()))
    return numbers


def _filled(cells: np.ndarray, variable: cp.Variable) -> np.ndarray:
    """Return the values in the shape of the table, 0 where there is no variable."""
    values = np.append(np.maximum(np.asarray(variable.value), 0.0), 0.0)
    return np.asarray(values[cells])


GROUPS = {
    "balance": "what comes to a device in an epoch is held back, read or sent on",
    "demand": "who wants an amount reads all of it, sooner or later",
    "capacity of a link": "what is sent over a link in an epoch fits into it",
    "shared limit": "what is sent under a shared limit in an epoch fits into it",
    "any row": "windows are left out, so no rows are distinguished",
}
"""What the constraints say."""


def count_amounts(hops: Arcs, flows: Commodities, horizon: int) -> ModelEstimate:
    """Count the model of `horizon` epochs; rows of limited buffers are left out."""
    sent, held, read = _masks(hops, flows, horizon)
    many = [int(each.sum()) for each in (sent, held, read)]
    # Every send, wait and read stands in the balance of where it is from and where it goes.
    touched = np.zeros((horizon + 1, *held.shape[1:]), dtype=bool)
    k, e, s = np.nonzero(sent)
    touched[k + hops.delay[e], hops.dst[e], s] = touched[k, hops.src[e], s] = True
    k, v, s = np.nonzero(held)
    touched[k, v, s] = touched[k + 1, v, s] = True
    k, d = np.nonzero(read)
    touched[k, flows.goal[d], flows.source[d]] = True
    touched[0, flows.sources, np.arange(len(flows.sources))] = True
    orbit = flows.links.min(axis=0)
    k, e, _ = np.nonzero(sent)
    capacities = len(np.unique(k * len(orbit) + orbit[e]))
    limits, per_link = _limits(hops, flows), sent.sum(axis=(0, 2))
    entries = sum(int(per_link[carried > 0].sum()) for _, carried, _ in limits)
    rows = {
        "balance": int(touched.sum()),
        "demand": len(flows.amount),
        "capacity of a link": capacities,
        "shared limit": len(limits) * horizon,
    }
    nonzeros = 2 * many[0] + 2 * many[1] + many[2] + many[2] + many[0] + entries
    return ModelEstimate(sum(many), nonzeros, rows)


def _masks(
    hops: Arcs, flows: Commodities, horizon: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where there are variables: of (epoch, link, source), waits, and reads."""
    earliest = hops.distance[flows.sources].T
    goals = [flows.goal[flows.source == s] for s in range(len(flows.sources))]
    latest = horizon - np.stack([hops.distance[:, goal].min(axis=1) for goal in goals], axis=1)
    start = np.arange(horizon)[:, None, None]
    home = np.zeros(earliest.shape, dtype=bool)
    home[flows.sources, np.arange(len(flows.sources))] = True
    sent = (start >= earliest[hops.src]) & (start + hops.delay[:, None] <= latest[hops.dst])
    held = (start >= earliest) & (start < latest) & hops.stores[:, None]
    read = np.arange(horizon + 1)[:, None] >= earliest[flows.goal, flows.source]
    return sent & ~home[hops.dst], held, read


def _limits(hops: Arcs, flows: Commodities) -> list[tuple[float, np.ndarray, list[int]]]:
    """Return the bandwidths of unlike limits, what of each link counts, and which are alike."""
    topology = hops.topology
    found: dict[tuple[float, bytes], tuple[float, np.ndarray, list[int]]] = {}
    for number, limit in enumerate(topology.limits):
        inside = np.zeros(len(topology.links))
        inside[[topology.link_index[ends] for ends in limit.links]] = 1.0
        carried = inside[flows.links].sum(axis=0)
        key = limit.bandwidth, carried.tobytes()
        found.setdefault(key, (limit.bandwidth, carried, []))[2].append(number)
    return list(found.values())
