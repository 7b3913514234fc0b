"""From moves in continuous time to a schedule in epochs, and back to front for reductions.

A plan in continuous time says when each move starts. The schedule keeps the order of the moves on
every link and what each of them waits for, and gives each the first epoch from which on it can
go; the replay then forgets the epochs and is as early as the plan was, or earlier. So the epoch
duration is a matter of taste where no shared limit binds: it is that of the quickest hop. Where
one binds, a schedule spreads sends evenly over their epochs, and short epochs lose less.

Moves of one transmission (a chunk that parts at devices that copy) share their epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ccl.problem import Problem
from ccl.schedule import Schedule, Send
from formulations.compiled.placing import place
from formulations.limits import binding, numbers
from formulations.moves import Moves

FINE = 16
"""Epochs of the quickest hop where a shared limit binds."""

SAME = 1e-9
"""Shares of an epoch that are none."""


@dataclass(frozen=True)
class TimedMoves:
    """What a method in continuous time found; n moves.

    Parameters
    ----------
    move, chunk
        Numbers, each shape (n,).
    start
        µs, shape (n,).
    group
        Number of the transmission; moves of one have the same, shape (n,).
    """

    move: np.ndarray
    chunk: np.ndarray
    start: np.ndarray
    group: np.ndarray

    def __len__(self) -> int:
        return len(self.move)

    def chosen(self, which: np.ndarray) -> TimedMoves:
        """Return those at some places."""
        return TimedMoves(self.move[which], self.chunk[which], self.start[which], self.group[which])


def ends(moves: Moves, timed: TimedMoves, sizes: np.ndarray) -> np.ndarray:
    """µs at which each move is there, shape (n,); `sizes` are the bytes of all chunks."""
    took = moves.latency[timed.move] + sizes[timed.chunk] * moves.slowest[timed.move]
    return np.asarray(timed.start + took)


def one_after(first: TimedMoves | None, second: TimedMoves) -> TimedMoves:
    """Return both as one plan; their starts stay."""
    if first is None:
        return second
    later = int(first.group.max(initial=0)) + 1
    return TimedMoves(
        np.concatenate([first.move, second.move]),
        np.concatenate([first.chunk, second.chunk]),
        np.concatenate([first.start, second.start]),
        np.concatenate([first.group, second.group + later]),
    )


def backwards(
    moves: Moves, back: Moves, timed: TimedMoves, sizes: np.ndarray
) -> tuple[TimedMoves, float]:
    """Read moves on a reversed topology backwards: they end at the makespan that is returned.

    Parameters
    ----------
    moves, back
        Those of the topology and of the reversed one, on which `timed` was planned.
    """
    stop = ends(back, timed, sizes)
    last = float(stop.max(initial=0.0))
    order = {route: number for number, route in enumerate(moves.routes)}
    same = np.array([order[back.routes[move][::-1]] for move in timed.move.tolist()], dtype=int)
    return TimedMoves(same, timed.chunk, last - stop, timed.group), last


def in_epochs(
    problem: Problem, moves: Moves, timed: TimedMoves, *, epoch_duration: float | None = None
) -> Schedule:
    """Return the schedule that keeps the order and the dependences of `timed`.

    The epoch duration in µs is chosen unless given.
    """
    sizes = np.array([chunk.size for chunk in problem.collective.chunks])
    tau = epoch_duration or quickest_hop(problem, moves, timed, sizes)
    timed = _parted(problem, moves, timed)
    placed = timed.chosen(_ordered(timed))
    lag, joins = _aligned(moves, placed)
    meets = any(
        (each.copies or each.reduces) and not each.stores for each in problem.topology.devices
    )
    caps, cap_first, room = _limits(problem)
    epochs, horizon = place(
        (moves.src, moves.dst, moves.first, moves.link, moves.beta, moves.lead),
        (placed.move, placed.chunk, placed.group, lag, joins),
        (sizes, moves.latency, meets),
        (caps, cap_first, room),
        (len(problem.topology.links), len(problem.topology.devices), tau),
    )
    by_epoch = np.argsort(epochs, kind="stable")
    routes = moves.routes
    sends = tuple(
        Send(epoch, chunk, routes[move][0], routes[move][-1], via=routes[move][1:-1])
        for epoch, chunk, move in zip(
            epochs[by_epoch].tolist(),
            placed.chunk[by_epoch].tolist(),
            placed.move[by_epoch].tolist(),
            strict=True,
        )
    )
    return Schedule(sends, tau, int(horizon))


def _parted(problem: Problem, moves: Moves, timed: TimedMoves) -> TimedMoves:
    """Part transmissions that are too much for a shared limit by themselves."""
    limits = [
        (numbers(problem.topology, limit), limit.bandwidth) for limit in binding(problem.topology)
    ]
    if not limits:
        return timed
    members: dict[int, list[int]] = {}
    for turn, number in enumerate(timed.group.tolist()):
        members.setdefault(number, []).append(turn)
    group = timed.group.copy()
    after = int(group.max(initial=0)) + 1
    for turns in members.values():
        rate: dict[int, float] = {}
        for move in timed.move[turns].tolist():
            span = slice(moves.first[move], moves.first[move + 1])
            rate |= dict(zip(moves.link[span].tolist(), 1e-3 / moves.beta[span], strict=True))
        loads = [(sum(rate.get(link, 0.0) for link in links), most) for links, most in limits]
        if any(load > most * (1 + SAME) for load, most in loads):
            group[turns] = range(after, after + len(turns))
            after += len(turns)
    return replace(timed, group=group)


def quickest_hop(problem: Problem, moves: Moves, timed: TimedMoves, sizes: np.ndarray) -> float:
    """µs of an epoch: the quickest hop of the plan, or a part of it where a limit binds."""
    hop = moves.latency[timed.move] + sizes[timed.chunk] * moves.slowest[timed.move]
    return float(hop.min()) / (FINE if binding(problem.topology) else 1)


def _limits(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return caps of each link, flat and where they begin, and bytes per µs of each cap.

    A link under a limit that binds is a cap of its own: sends over it are spread over epochs.
    """
    topology = problem.topology
    caps: list[list[int]] = [[] for _ in topology.links]
    room: list[float] = []
    under: set[int] = set()
    for limit in binding(topology):
        for link in numbers(topology, limit):
            caps[link].append(len(room))
            under.add(link)
        room.append(1e3 * limit.bandwidth)
    for link in sorted(under):
        caps[link].append(len(room))
        room.append(1e3 * topology.links[link].bandwidth)
    first = np.cumsum([0, *map(len, caps)])
    flat = np.array([cap for each in caps for cap in each], dtype=np.int64)
    return flat, first.astype(np.int64), np.array(room, dtype=float)


def _aligned(moves: Moves, timed: TimedMoves) -> tuple[np.ndarray, np.ndarray]:
    """Return how much later than the first each move of a sum starts, and whether it is in one.

    What is added up on the way has several sources; the longest way starts first.
    """
    _, which = np.unique(timed.group, return_inverse=True)
    latency, src = moves.latency[timed.move], moves.src[timed.move]
    longest, least, most = (np.zeros(int(which.max(initial=0)) + 1) for _ in range(3))
    least[:] = np.inf
    np.maximum.at(longest, which, latency)
    np.minimum.at(least, which, src)
    np.maximum.at(most, which, src)
    joins = (least < most)[which]
    return np.where(joins, longest[which] - latency, 0.0), joins


def _ordered(timed: TimedMoves) -> np.ndarray:
    """Return the places of the moves by start, those of one transmission together."""
    _, which = np.unique(timed.group, return_inverse=True)
    latest = np.full(int(which.max(initial=0)) + 1, -np.inf)
    np.maximum.at(latest, which, timed.start)
    return np.lexsort((timed.start, which, latest[which]))
