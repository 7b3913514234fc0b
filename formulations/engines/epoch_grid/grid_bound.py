"""A lower bound on the epochs of a grid: what must come out of a set of devices for one of others.

Let m chunks be held only inside a set S and wanted by a device d outside. Each of them crosses, on
its way to d, some hop e out of S: it starts there not before the epoch head[e] in which any of
them can be at src(e), and is at d at the earliest dist(dst(e), d) epochs after it arrived. So in K
epochs e serves d with at most

    room[e] * (1 + floor((K - delay[e] - dist(dst(e), d) - head[e]) / occupancy[e]))

of them, where that is positive, and K must be so large that all hops together carry m. Other than
bounds in µs this counts that everything rests until the next epoch begins, so it often meets the
fewest epochs there are, for which a solver searches long.

Why a horizon is too short, in one sentence: hops, cuts, and the smallest that could work.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ccl.bound import Bound, Cut, Path
from ccl.topology import Topology
from formulations.engines.epoch_grid.arcs import Hops
from formulations.engines.epoch_grid.epochs import ROUNDING
from formulations.engines.epoch_grid.plans import Demand

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


def crossing(hops: Hops, demand: Demand) -> Crossing:
    """Return the largest bound over hosts, single devices and what is left of each."""
    best = Crossing(0, 0, (), -1)
    for inside in _sets(hops):
        found = _out_of(hops, demand, inside)
        if found.epochs > best.epochs:
            best = found
    return best


def _sets(hops: Hops) -> list[np.ndarray]:
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


def _out_of(hops: Hops, demand: Demand, inside: np.ndarray) -> Crossing:
    """Return the bound for one set."""
    only = demand.has.any(axis=0) & ~demand.has[~inside].any(axis=0)
    many = np.where(inside, 0, (demand.wants & only).sum(axis=1))
    goals = np.flatnonzero(many)
    out = np.flatnonzero(inside[hops.src] & ~inside[hops.dst])
    if not goals.size or not out.size:
        return Crossing(0, 0, (), -1)
    holders = np.flatnonzero(demand.has[:, only].any(axis=1))
    head = hops.distance[holders][:, hops.src[out]].min(axis=0)
    room = np.array([min(hops.room[list(hops.links[hop])]) for hop in out.tolist()])
    wait = hops.distance[hops.dst[out]][:, goals] + (head + hops.delay[out])[:, None]
    turn = hops.occupancy[out][:, None]

    def enough(epochs: np.ndarray) -> np.ndarray:
        starts = np.floor((epochs - wait) / turn) + 1
        return np.asarray((room[:, None] * np.maximum(starts, 0)).sum(axis=0) >= many[goals])

    # Where no way leads at all, the search for a schedule says so.
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


TOLD = 4
"""Names that are told; the rest are counted."""


@dataclass(frozen=True)
class Need:
    """How many epochs, steps or hops any plan takes at least, and why in words."""

    many: int
    why: str


def too_short(asked: int, need: Need, *, unit: str = "epoch", each: float | None = None) -> str:
    """Say that a horizon is too short.

    Parameters
    ----------
    asked
        How many were asked for.
    need
        How many it takes at least.
    unit
        ``epoch``, ``step`` or ``hop``.
    each
        µs of one, or None where it has no duration.
    """
    length = "" if each is None else f" of {each:.6g} µs"
    return (
        f"the horizon of {_counted(asked, unit)}{length} is too short: no plan takes fewer than "
        f"{need.many} ({need.why}); allow {_counted(need.many, unit)} or more"
    )


def proved_short(
    asked: int,
    need: int,
    *,
    unit: str = "epoch",
    each: float | None = None,
    what: str = "plan",
    full: Sequence[str] = (),
) -> str:
    """Say that a solver proved a horizon too short, although `need` are not ruled out by hand.

    `full` names the devices with limited buffers, whose room may be what is missing.
    """
    length = "" if each is None else f" of {each:.6g} µs"
    return (
        f"the horizon of {_counted(asked, unit)}{length} is too short: the solver proved that no "
        f"{what} takes so few under these options, although hops and bounds would let {need} do; "
        f"allow {_counted(asked + 1, unit)} or more"
        + (f", or more room in the buffer of {few(full)}" if full else "")
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


def few(names: Sequence[str]) -> str:
    """Name the first of many."""
    more = f" and {len(names) - TOLD} more" if len(names) > TOLD else ""
    return ", ".join(names[:TOLD]) + more


def _why(bound: Bound) -> str:
    """Say what a lower bound is about, to be read before its µs."""
    if isinstance(bound.witness, Path):
        return f"the way {'->'.join(bound.witness.devices)} takes"
    if isinstance(bound.witness, Cut):
        inside = few(bound.witness.inside)
        return f"what must leave {inside} at {bound.witness.bandwidth:g} GB/s takes"
    return f"{bound.reference}:"


def _counted(many: int, unit: str) -> str:
    return f"{many:,} {unit}{'' if many == 1 else 's'}"
