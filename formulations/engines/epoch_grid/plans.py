"""From the sends of a model to a schedule: what nobody needs goes, the rest is put in order.

Who has and who wants which chunk, as arrays for the models.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ccl.errors import ProblemError
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from formulations.engines.epoch_grid.arcs import Hops


@dataclass(frozen=True)
class Demand:
    """Start and end of a problem without reductions.

    Parameters
    ----------
    has, wants
        Whether a device holds a chunk at the start and must hold it at the end although it does
        not yet, both shape (devices, chunks).
    """

    has: np.ndarray
    wants: np.ndarray

    def earliest(self, distance: np.ndarray) -> np.ndarray:
        """Fewest epochs until a chunk can be at a device, shape (devices, chunks)."""
        return _nearest(distance.T, self.has)

    def tail(self, distance: np.ndarray) -> np.ndarray:
        """Fewest epochs from a device to the nearest that wants the chunk; 0 at one itself."""
        return _nearest(distance, self.wants)


def demand(problem: Problem) -> Demand:
    """Read the arrays off a problem whose chunks are not reduced."""
    topology, chunks = problem.topology, problem.collective.chunks
    place = [topology.index[name] for name in topology.ranks]
    has = np.zeros((len(topology.devices), len(chunks)), dtype=bool)
    wants = np.zeros_like(has)
    for number, chunk in enumerate(chunks):
        has[[place[rank] for rank in chunk.holders], number] = True
        wants[[place[rank] for rank in chunk.destinations], number] = True
    return Demand(has, wants & ~has)


def without_copies(problem: Problem) -> Problem:
    """Return the problem in which every destination is sent a chunk of its own.

    Nothing is gained there by copying on the way: it is the demand of TE-CCL's linear program,
    section 4.1, and of its comparison of plans with and without copies, figure 9.

    Raises
    ------
    ProblemError
        If chunks are reduced, or nothing has to move.
    """
    collective = problem.collective
    if collective.reduces:
        msg = (
            f"{collective.kind} adds up on the way, which is copying read backwards; allow copies "
            "on the way"
        )
        raise ProblemError(msg)
    chunks = tuple(
        replace(chunk, destinations=(rank,))
        for chunk in collective.chunks
        for rank in chunk.destinations
        if rank not in chunk.holders
    )
    return replace(problem, collective=replace(collective, chunks=chunks))


def _nearest(distance: np.ndarray, marked: np.ndarray) -> np.ndarray:
    """Smallest entry of each row of `distance` over the devices marked, per chunk."""
    nearest = np.full(marked.shape, np.inf)
    for chunk in range(marked.shape[1]):
        columns = distance[:, marked[:, chunk]]
        if columns.size:
            nearest[:, chunk] = columns.min(axis=1)
    return nearest


def pruned(sends: Iterable[Send], hops: Hops, demand: Demand) -> list[Send]:
    """Keep only what brings a chunk to a device that wants it, going back from each.

    This is the search from the destinations of TE-CCL, section 3.1. A device that stores keeps
    the earliest arrival of each chunk. At a device that cannot store, what leaves in an epoch is
    matched with what came in for it: one arrival serves all copies where it copies, and one of
    them where it does not.
    """
    index = hops.topology.index
    took = duration_of(hops)
    listed = sorted(sends)
    # Sends by number: two may be equal, where a switch that cannot copy is sent a chunk twice.
    arrivals: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for number, send in enumerate(listed):
        arrived = send.epoch + took(send)
        arrivals[index[send.dst], send.chunk].append((arrived, number))
    kept: set[int] = set()
    done = set()
    stack = [(int(device), int(chunk), -1) for device, chunk in np.argwhere(demand.wants)]
    while stack:
        device, chunk, epoch = stack.pop()
        if demand.has[device, chunk] or (device, chunk, epoch) in done:
            continue
        came = arrivals[device, chunk]
        if hops.stores[device]:
            done.add((device, chunk, -1))
            number = min(came)[1]
        else:
            number = next(each for when, each in came if when == epoch)
            if hops.copies[device]:
                done.add((device, chunk, epoch))
            else:
                came.remove((epoch, number))
        kept.add(number)
        source = index[listed[number].src]
        stack.append((source, chunk, -1 if hops.stores[source] else listed[number].epoch))
    return [listed[number] for number in sorted(kept)]


def schedule(sends: Sequence[Send], hops: Hops, demand: Demand) -> Schedule:
    """Make a schedule of pruned sends: within an epoch, those with the longest way to go first."""
    to_go = farthest(sends, hops)
    took = duration_of(hops)
    needed = pruned(sends, hops, demand)
    ordered = sorted(needed, key=lambda send: (send.epoch, -to_go[send], send.chunk, send))
    last = max(send.epoch + took(send) for send in ordered)
    return Schedule(tuple(ordered), hops.grid.epoch_duration, last)


def farthest(sends: Sequence[Send], hops: Hops) -> dict[Send, float]:
    """µs that still lie before each send's chunk on its longest way onwards in the plan."""
    grid = hops.grid
    time = {
        route: float(max(grid.hold[list(links)]) + sum(grid.alpha[list(links)]))
        for route, links in zip(hops.routes, hops.links, strict=True)
    }
    onwards: dict[tuple[str, int], float] = defaultdict(float)
    to_go = {}
    for send in sorted(sends, key=lambda each: -each.epoch):
        to_go[send] = time[send.src, *send.via, send.dst] + onwards[send.dst, send.chunk]
        start = send.src, send.chunk
        onwards[start] = max(onwards[start], to_go[send])
    return to_go


def duration_of(hops: Hops) -> Callable[[Send], int]:
    """Return what says how many epochs after its own a send is there."""
    if hops.opened is None:
        took = delays(hops)
        return lambda send: took[send.src, *send.via, send.dst]
    numbers: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, route in enumerate(hops.routes):
        numbers[route].append(number)
    opened = hops.opened

    def during(send: Send) -> int:
        row = opened[min(send.epoch, len(opened) - 1)]
        return int(next(hops.delay[hop] for hop in numbers[send.src, send.dst] if row[hop]))

    return during


def delays(hops: Hops) -> dict[tuple[str, ...], int]:
    """Return the epochs of each hop by its route."""
    return {route: int(hops.delay[i]) for i, route in enumerate(hops.routes)}
