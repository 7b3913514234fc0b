"""Variables of the model of whole chunks, its size before it is built, and the least horizon.

A variable exists only inside its window: a chunk is sent from a device not before it can be
there, and arrives not after it can still be of use. The windows of a hop are intervals of epochs
(`Windows`), so everything about the size of a model is counted without laying it out.

`crossing` is a lower bound on the epochs of a grid: what must come out of a set of devices for one
of others. Let m chunks be held only inside a set S and wanted by a device d outside. Each of them
crosses, on its path to d, some hop e out of S: it starts there not before the epoch head[e] in
which any of them can be at src(e), and is at d at the earliest dist(dst(e), d) epochs after it
arrived. So in K epochs e serves d with at most

    capacity[e] * (1 + floor((K - delay[e] - dist(dst(e), d) - head[e]) / occupancy[e]))

of them, where that is positive, and K must be so large that all hops together carry m. Other than
bounds in µs this counts that everything rests until the next epoch begins, so it often meets the
fewest epochs there are, for which a solver searches long.

`too_short` says in one sentence why a horizon is too short: hops, cuts, and the smallest that could
work.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ccl.bound import Bound, Cut, Path
from ccl.errors import Infeasible
from ccl.result import ModelSize
from ccl.text import listing
from ccl.topology import Topology
from formulations.core.registry import ModelEstimate
from formulations.engines.epoch_grid.arcs import Arcs, rows
from formulations.engines.epoch_grid.epochs import ROUNDING
from formulations.engines.epoch_grid.plans import Demand
from formulations.engines.epoch_grid.relay_paths import no_path
from formulations.solvers import cp


@dataclass(frozen=True)
class Cells:
    """The variables that exist for one horizon.

    Parameters
    ----------
    horizon
        K.
    epoch, hop, chunk
        Indices of each send variable f, shape (n,).
    held
        Number of the buffer variable b of (epoch, device, chunk), -1 where there is none,
        shape (K + 1, devices, chunks).
    """

    horizon: int
    epoch: np.ndarray
    hop: np.ndarray
    chunk: np.ndarray
    held: np.ndarray

    @property
    def buffers(self) -> int:
        """Number of buffer variables."""
        return int(self.held.max(initial=-1)) + 1


class CellProgram:
    """The rows that all programs of whole chunks have, whatever their objective.

    Attributes
    ----------
    hops, cells
        The grid, and the variables that exist on it.
    most
        The most that each send variable may be, shape (n,).
    """

    hops: Arcs
    cells: Cells
    most: np.ndarray

    @cached_property
    def sends(self) -> cp.Variable:
        """The variables f."""
        if self.most.max(initial=1) == 1:
            return cp.Variable(len(self.most), boolean=True)
        bounds = [np.zeros(len(self.most)), self.most]
        return cp.Variable(len(self.most), integer=True, bounds=bounds)

    @cached_property
    def buffers(self) -> cp.Variable:
        """The variables b."""
        return cp.Variable(self.cells.buffers, bounds=[0, 1])

    @property
    def sent(self) -> np.ndarray:
        """The sends of a solution, each as often as it is made."""
        times = np.rint(np.asarray(self.sends.value)).astype(int)
        return np.repeat(np.arange(len(times)), np.maximum(times, 0))

    def buffer_rows(self) -> list[cp.Constraint]:
        """Let a device hold what it held and what arrives."""
        cells, hops, held, count = self.cells, self.hops, self.cells.held, self.cells.buffers
        arrival = cells.epoch + hops.delay[cells.hop]
        row = held[arrival, hops.dst[cells.hop], cells.chunk]
        stored = np.flatnonzero(row >= 0)
        arrive = rows(row[stored], stored, (count, len(cells.epoch)))
        both = (held[1:] >= 0) & (held[:-1] >= 0)
        every = np.arange(count)
        step = rows(every, every, (count, count)) - rows(
            held[1:][both], held[:-1][both], (count, count)
        )
        return [step @ self.buffers == arrive @ self.sends]

    def held_rows(self, sends: np.ndarray) -> list[cp.Constraint]:
        """Let these sends take what their device holds."""
        if not sends.size:
            return []
        cells, shape = self.cells, (len(sends), self.cells.buffers)
        source = self.hops.src[cells.hop[sends]]
        there = cells.held[cells.epoch[sends], source, cells.chunk[sends]]
        held = rows(np.arange(len(sends)), there, shape, value=self.most[sends])
        return [self.sends[sends] <= held @ self.buffers]

    @cached_property
    def _moments(self) -> tuple[Any, np.ndarray]:
        """What enters each (epoch, device, chunk), and where each send leaves from."""
        cells, hops = self.cells, self.hops
        shape = (cells.horizon + 1, *cells.held.shape[1:])
        columns = np.arange(len(cells.epoch))
        arrival = cells.epoch + hops.delay[cells.hop]
        enters = np.ravel_multi_index((arrival, hops.dst[cells.hop], cells.chunk), shape)
        leaves = np.ravel_multi_index((cells.epoch, hops.src[cells.hop], cells.chunk), shape)
        return rows(enters, columns, (int(np.prod(shape)), len(columns))), np.asarray(leaves)

    def relayed(self, sends: np.ndarray) -> Any:
        """Let these sends carry on only what comes in for their epoch."""
        into, leaves = self._moments
        most = sparse.diags_array(self.most[sends].astype(float))
        return self.sends[sends] <= (most @ into[leaves[sends]]) @ self.sends

    def switch_rows(self) -> list[cp.Constraint]:
        """Let what came in for an epoch leave a device that cannot store, and nothing else."""
        hops, cells = self.hops, self.cells
        source = hops.src[cells.hop]
        copied = np.flatnonzero(~hops.stores[source] & hops.copies[source])
        rules = [self.relayed(copied)] if copied.size else []
        plain = ~hops.stores & ~hops.copies
        if plain.any():
            into, leaves = self._moments
            out = rows(leaves, np.arange(len(leaves)), into.shape)
            used = np.diff(into.indptr) + np.diff(out.indptr)
            every = np.tile(np.repeat(plain, cells.held.shape[2]), cells.horizon + 1)
            touched = np.flatnonzero(every & (used > 0))
            if touched.size:
                rules.append((out[touched] - into[touched]) @ self.sends == 0)
        return rules


@dataclass(frozen=True)
class Windows:
    """The windows of one demand on one grid, for any horizon.

    Parameters
    ----------
    hops
        Links or hyper-edges on the grid.
    demand
        Who has and wants which chunk.
    """

    hops: Arcs
    demand: Demand

    @cached_property
    def earliest(self) -> np.ndarray:
        """First epoch at whose beginning a chunk can be at a device, (devices, chunks)."""
        return self.demand.earliest(self.hops.distance)

    @cached_property
    def tail(self) -> np.ndarray:
        """Fewest epochs from a device to one that wants the chunk, (devices, chunks)."""
        return self.demand.tail(self.hops.distance)

    @property
    def last_to_come(self) -> tuple[int, int, int]:
        """The arrival that takes most epochs at least: these, the device and the chunk.

        Raises
        ------
        Infeasible
            If no path leads to a device that wants a chunk.
        """
        late = np.where(self.demand.wants, self.earliest, 0.0)
        device, chunk = np.unravel_index(int(late.argmax()), late.shape)
        if np.isinf(late.max()):
            raise Infeasible(no_path(self.hops.topology.devices[int(device)].name))
        return int(late.max()), int(device), int(chunk)

    def cells(self, horizon: int) -> Cells:
        """Lay out the variables of a model of `horizon` epochs."""
        hops, demand = self.hops, self.demand
        latest = horizon - self.tail
        start = np.arange(horizon)[:, None, None]
        useful = (
            (start >= self.earliest[hops.src])
            & (start + hops.delay[:, None] <= latest[hops.dst])
            & ~demand.has[hops.dst]
            & hops.open_in(horizon)[:, :, None]
        )
        epoch, hop, chunk = np.nonzero(useful)
        moment = np.arange(horizon + 1)[:, None, None]
        exists = (moment >= self.earliest) & (moment <= latest)
        exists &= ~demand.has & hops.stores[:, None]
        held = np.full(exists.shape, -1)
        held[exists] = np.arange(int(exists.sum()))
        return Cells(horizon, epoch, hop, chunk, held)

    def measure(self, horizon: int) -> ModelSize:
        """Count variables, constraints and nonzeros of a model of `horizon` epochs.

        Where links have less bandwidth at times, it is more than there are.
        """
        return self.estimate(horizon).size

    def estimate(self, horizon: int) -> ModelEstimate:
        """Count the same, the constraints by what they say (`GROUPS` of `te_ccl_milp`)."""
        return _Count(self, horizon).estimate()


class _Count:
    """Counts over the intervals in which each chunk may start over each hop."""

    def __init__(self, windows: Windows, horizon: int) -> None:
        self.windows, self.horizon = windows, horizon
        hops, demand = windows.hops, windows.demand
        self.hops, self.demand = hops, demand
        latest = horizon - windows.tail
        first = windows.earliest[hops.src]
        last = latest[hops.dst] - hops.delay[:, None]
        self.sends = np.where(demand.has[hops.dst], 0.0, np.maximum(last - first + 1, 0.0))
        self.hop, self.chunk = np.nonzero(self.sends)
        self.first = first[self.hop, self.chunk].astype(int)
        self.last = last[self.hop, self.chunk].astype(int)
        kept = np.maximum(latest - windows.earliest + 1, 0.0)
        self.kept = np.where(demand.has | ~hops.stores[:, None], 0.0, kept)

    def estimate(self) -> ModelEstimate:
        """Add up the families of rows, in the order of the model."""
        hops, kept = self.hops, self.kept
        sends, buffers = int(self.sends.sum()), int(kept.sum())
        wants = int(self.demand.wants.sum())
        stored = int(self.sends[hops.stores[hops.dst]].sum())
        later = hops.stores[hops.src][:, None] & ~self.demand.has[hops.src]
        bought = int(self.sends[later].sum())
        # What is held, what was before, what arrives.
        held = 2 * buffers - int((kept > 0).sum()) + stored
        families = {
            "buffer": (buffers, held),
            "wanted": (wants, wants),
            "send what is held": (bought, 2 * bought),
            "switch": self._switches(),
            "capacity of a link": self._capacity(),
            "shared limit": self._limits(),
        }
        entries = sum(each for _, each in families.values())
        rows = {name: many for name, (many, _) in families.items()}
        return ModelEstimate(sends + buffers, entries, rows)

    def _switches(self) -> tuple[int, int]:
        rows = entries = 0
        hops = self.hops
        shape = (self.horizon + 2, self.demand.has.shape[1])
        for device in np.flatnonzero(~hops.stores).tolist():
            into, out = np.zeros(shape, dtype=int), np.zeros(shape, dtype=int)
            enter, leave = hops.dst[self.hop] == device, hops.src[self.hop] == device
            delay = hops.delay[self.hop[enter]]
            _spread(into, self.first[enter] + delay, self.last[enter] + delay, self.chunk[enter])
            _spread(out, self.first[leave], self.last[leave], self.chunk[leave])
            if hops.copies[device]:
                rows += int(out.sum())
                entries += int((out * (1 + into)).sum())
            else:
                rows += int(((into > 0) | (out > 0)).sum())
                entries += int((into + out).sum())
        return rows, entries

    def _capacity(self) -> tuple[int, int]:
        """Count rows that can bind: more sends may hold a link in an epoch than have room."""
        hops = self.hops
        links = len(hops.capacity)
        width = self.horizon + int((hops.begin + hops.occupancy).max()) + 2
        count, load = np.zeros((width, links), dtype=int), np.zeros((width, links), dtype=int)
        many = np.array([len(each) for each in hops.links])[self.hop]
        which = np.repeat(np.arange(len(self.hop)), many)
        link = np.array([each for hop in self.hop.tolist() for each in hops.links[hop]], dtype=int)
        hop = self.hop[which]
        begin, stop = self.first[which] + hops.begin[hop], self.last[which] + hops.begin[hop] + 1
        for table, value in ((count, 1), (load, hops.most[hop])):
            np.add.at(table, (begin, link), value)
            np.subtract.at(table, (stop, link), value)
            np.subtract.at(table, (begin + hops.occupancy[hop], link), value)
            np.add.at(table, (stop + hops.occupancy[hop], link), value)
        count, load = (np.cumsum(np.cumsum(each, axis=0), axis=0) for each in (count, load))
        binding = load > hops.capacity
        return int(binding.sum()), int(count[binding].sum())

    def _limits(self) -> tuple[int, int]:
        topology, hops = self.hops.topology, self.hops
        rows = entries = 0
        for limit in topology.limits:
            under = {topology.link_index[ends] for ends in limit.links}
            epochs = [
                {
                    later
                    for link, span in zip(links, hops.carried(hop), strict=True)
                    if link in under
                    for later in span
                }
                for hop, links in enumerate(hops.links)
            ]
            many = np.array([len(each) for each in epochs])
            if (self.sends.sum(axis=1) * many).any():
                rows += self.horizon + int(hops.delay.max())
                entries += int((self.sends.sum(axis=1) * many).sum())
        return rows, entries


def _spread(table: np.ndarray, first: np.ndarray, last: np.ndarray, column: np.ndarray) -> None:
    """Count in each row of `table` the intervals [first, last] that it is in, by column."""
    np.add.at(table, (first, column), 1)
    np.subtract.at(table, (last + 1, column), 1)
    np.cumsum(table, axis=0, out=table)


DEVICES = 200
"""Most devices for which each of them is a set of its own, and all the others are one."""


@dataclass(frozen=True)
class Crossing:
    """The bound and its witness.

    Parameters
    ----------
    epochs
        K at least; 0 where nothing has to cross any of the sets.
    chunks
        m.
    inside
        Positions of the devices in S.
    device
        Position of d.
    """

    epochs: int
    chunks: int
    inside: tuple[int, ...]
    device: int


def crossing(hops: Arcs, demand: Demand) -> Crossing:
    """Return the largest bound over hosts, single devices and what is left of each."""
    best = Crossing(0, 0, (), -1)
    for inside in _sets(hops):
        found = _out_of(hops, demand, inside)
        if found.epochs > best.epochs:
            best = found
    return best


def _sets(hops: Arcs) -> list[np.ndarray]:
    """Return masks of devices."""
    devices = hops.topology.devices
    hosts: defaultdict[str, list[int]] = defaultdict(list)
    for position, each in enumerate(devices):
        if each.host:
            hosts[each.host].append(position)
    groups = list(hosts.values())
    if len(devices) <= DEVICES:
        groups += [[position] for position in range(len(devices))]
    found = []
    for group in groups:
        mask = np.zeros(len(devices), dtype=bool)
        mask[group] = True
        found += [mask, ~mask]
    return found


def _out_of(hops: Arcs, demand: Demand, inside: np.ndarray) -> Crossing:
    """Return the bound for one set."""
    only = demand.has.any(axis=0) & ~demand.has[~inside].any(axis=0)
    many = np.where(inside, 0, (demand.wants & only).sum(axis=1))
    goals = np.flatnonzero(many)
    out = np.flatnonzero(inside[hops.src] & ~inside[hops.dst])
    if not goals.size or not out.size:
        return Crossing(0, 0, (), -1)
    holders = np.flatnonzero(demand.has[:, only].any(axis=1))
    head = hops.distance[holders][:, hops.src[out]].min(axis=0)
    capacity = np.array([min(hops.capacity[list(hops.links[hop])]) for hop in out.tolist()])
    wait = hops.distance[hops.dst[out]][:, goals] + (head + hops.delay[out])[:, None]
    turn = hops.occupancy[out][:, None]

    def enough(epochs: np.ndarray) -> np.ndarray:
        starts = np.floor((epochs - wait) / turn) + 1
        return np.asarray((capacity[:, None] * np.maximum(starts, 0)).sum(axis=0) >= many[goals])

    # Where no path leads at all, the search for a schedule says so.
    if np.isinf(wait.min(axis=0)).any():
        return Crossing(0, 0, (), -1)
    low = np.zeros(len(goals))
    high = wait.min(axis=0) + many[goals] * float(turn.max())
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        fits = enough(middle)
        low, high = np.where(fits, low, middle), np.where(fits, middle, high)
    worst = int(high.argmax())
    goal = int(goals[worst])
    return Crossing(int(high[worst]), int(many[goal]), tuple(np.flatnonzero(inside).tolist()), goal)


MOST_NAMED = 4
"""Names in a text; the rest are counted."""


@dataclass(frozen=True)
class Need:
    """How many epochs, steps or hops any plan takes at least, and why in words."""

    many: int
    why: str


def too_short(requested: int, need: Need, *, unit: str = "epoch", each: float | None = None) -> str:
    """Return the message that a horizon is too short.

    Parameters
    ----------
    requested
        How many were requested.
    need
        How many it takes at least.
    unit
        ``epoch``, ``step`` or ``hop``.
    each
        µs of one, or None where it has no duration.
    """
    length = "" if each is None else f" of {each:.6g} µs"
    return (
        f"the horizon of {_counted(requested, unit)}{length} is too short: no plan takes fewer "
        f"than {need.many} ({need.why}); allow {_counted(need.many, unit)} or more"
    )


def proved_short(
    requested: int,
    need: int,
    *,
    unit: str = "epoch",
    each: float | None = None,
    what: str = "plan",
    full: Sequence[str] = (),
) -> str:
    """State that a solver proved a horizon too short, although `need` are not ruled out by hand.

    `full` names the devices with limited buffers, whose room may be what is missing.
    """
    length = "" if each is None else f" of {each:.6g} µs"
    return (
        f"the horizon of {_counted(requested, unit)}{length} is too short: the solver proved that "
        f"no {what} takes so few under these options, although hops and bounds would let {need} "
        f"do; allow {_counted(requested + 1, unit)} or more"
        + (f", or more room in the buffer of {listing(full, MOST_NAMED)}" if full else "")
    )


def by_hops(far: np.ndarray, ends: Sequence[tuple[int, int]], topology: Topology) -> Need:
    """Return the need of the pair of devices that are farthest from one another.

    Parameters
    ----------
    far
        Fewest epochs, steps or hops from device to device, shape (devices, devices).
    ends
        From which device to which something has to go; one or more.
    """
    src, dst = max(ends, key=lambda pair: far[pair])
    names = [topology.devices[each].name for each in (src, dst)]
    return Need(max(1, math.ceil(float(far[src, dst]))), f"hops from {names[0]} to {names[1]}")


def by_bound(bound: Bound, each: float) -> Need:
    """Return the need of a lower bound on the makespan, where one takes `each` µs."""
    many = math.ceil(bound.makespan / each * (1 - ROUNDING) - ROUNDING)
    return Need(max(1, many), f"{_why(bound)} {bound.makespan:.6g} µs")


def _why(bound: Bound) -> str:
    """Describe what a lower bound is about, to be read before its µs."""
    if isinstance(bound.witness, Path):
        return f"the path {'->'.join(bound.witness.devices)} takes"
    if isinstance(bound.witness, Cut):
        inside = listing(bound.witness.inside, MOST_NAMED)
        return f"what must leave {inside} at {bound.witness.bandwidth:g} GB/s takes"
    return f"{bound.reference}:"


def _counted(many: int, unit: str) -> str:
    return f"{many:,} {unit}{'' if many == 1 else 's'}"
