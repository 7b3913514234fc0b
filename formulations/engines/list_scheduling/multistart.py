"""Passes of list scheduling with other weights and other chances, until one meets the bound.

The first passes are a fixed set of weights; afterwards those that gave the best plan are tried
with other random numbers, and now and then others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from formulations.core.shared_limits import binding, numbers
from formulations.engines.kernels.arrays import Net, State, Weights, Work, begin
from formulations.engines.kernels.dispatch import dispatch
from formulations.engines.list_scheduling.routes import Moves
from formulations.engines.list_scheduling.timed import TimedMoves


@dataclass(frozen=True)
class Task:
    """What passes work on.

    Parameters
    ----------
    moves
        Ways between devices.
    nbytes
        Bytes of each chunk, shape (c,).
    there
        When each chunk is at each device, in µs, infinite where it is not, shape (c, devices).
    wants
        Who needs it, shape (c, devices).
    free
        From when on each resource is free, in µs, shape (r,).
    resource
        The resource of each link, shape (links,).
    rank
        Larger is sent before smaller, shape (c,).
    """

    moves: Moves
    nbytes: np.ndarray
    there: np.ndarray
    wants: np.ndarray
    free: np.ndarray
    resource: np.ndarray
    rank: np.ndarray


def net_of(task: Task) -> Net:
    """Return the arrays of the kernel."""
    moves = task.moves
    resource = task.resource[moves.link]
    many = len(task.free)
    order = np.argsort(resource, kind="stable")
    user_first = np.searchsorted(resource[order], np.arange(many + 1))
    sizes = np.unique(task.nbytes)
    far, hop = [], []
    for nbytes in sizes:
        near, via = _quickest(moves, moves.delay(float(nbytes)))
        far.append(near)
        hop.append(via)
    early, early_first = _early(moves, resource, sizes, many)
    caps, cap_first, room, under, under_first = _limits(task)
    devices = len(moves.topology.devices)
    return Net(
        src=moves.src,
        dst=moves.dst,
        first=moves.first,
        link=moves.link,
        resource=resource,
        beta=moves.beta,
        lead=moves.lead,
        drag=moves.drag,
        parts=moves.parts,
        latency=moves.latency,
        slowest=moves.slowest,
        out=np.searchsorted(moves.src, np.arange(devices + 1)),
        users=moves.of_link[order],
        user_first=user_first,
        early=early,
        early_first=early_first,
        far=np.array(far),
        hop=np.array(hop),
        caps=caps,
        cap_first=cap_first,
        room=room,
        under=under,
        under_first=under_first,
    )


def _quickest(moves: Moves, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the quickest ways in µs, and their first moves, both shape (devices, devices)."""
    devices = len(moves.topology.devices)
    order = np.lexsort((cost, moves.dst, moves.src))
    pair = moves.src[order] * devices + moves.dst[order]
    best = order[np.unique(pair, return_index=True)[1]]
    shape = (devices, devices)
    graph = csr_array((cost[best], (moves.src[best], moves.dst[best])), shape=shape)
    far = np.asarray(dijkstra(graph))
    hop = np.full(shape, -1, dtype=np.int64)
    # Of each device's moves the one that lies on the way; the nearest neighbour of equal ones.
    reach = np.full(shape, np.inf)
    for move in best[np.argsort(cost[best], kind="stable")].tolist():
        src, dst = moves.src[move], moves.dst[move]
        through = cost[move] + far[dst]
        nearer = through < reach[src] * (1 - 1e-12)
        reach[src][nearer] = through[nearer]
        hop[src][nearer] = move
    np.fill_diagonal(hop, -1)
    return far, hop


def _early(
    moves: Moves, resource: np.ndarray, sizes: np.ndarray, many: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return how long before each resource is free moves over it may start: flat, and begins."""
    lead = np.concatenate([moves.lead + nbytes * moves.drag for nbytes in sizes])
    which = np.tile(resource, len(sizes))
    pairs = np.unique(np.column_stack([which, np.round(lead, 12)]), axis=0)
    return pairs[:, 1].copy(), np.searchsorted(pairs[:, 0], np.arange(many + 1))


def _limits(task: Task) -> tuple[np.ndarray, ...]:
    """Return the shared limits that bind, by resource and by limit."""
    topology = task.moves.topology
    caps: list[list[int]] = [[] for _ in task.free]
    under: list[list[int]] = []
    room: list[float] = []
    for limit in binding(topology):
        under.append(task.resource[numbers(topology, limit)].tolist())
        for resource in under[-1]:
            caps[resource].append(len(room))
        room.append(1e3 * limit.bandwidth)
    return (*_flat(caps), np.array(room, dtype=float), *_flat(under))


def _flat(lists: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    first = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return np.array([each for some in lists for each in some], dtype=np.int64), first


Deciding = tuple[float, float, float, float]
"""Slack, tail, few and many of `formulations.engines.kernels.dispatch.Weights`."""

FIXED: tuple[Deciding, ...] = (
    (0.0, 1.0, 0.1, 0.0),
    (0.0, 1.0, 0.0, 0.1),
    (0.3, 1.0, 0.1, 0.0),
    (1.0, 1.0, 0.1, 0.0),
    (1.0, 0.0, 1.0, 0.0),
    (3.0, 1.0, 0.1, 0.0),
    (0.0, 0.0, 1.0, 0.0),
    (10.0, 1.0, 0.1, 0.0),
)
"""Weights of the first passes."""

WIDE = 100
"""Destinations of a chunk above which moves are judged by the nearest alone."""

CHOOSY = 0.25
"""Share of passes that look for the best move instead of any; they take longer."""


def passes(
    task: Task,
    *,
    seed: int = 0,
    most: int,
    goal: float,
    limit: float = np.inf,
    steps: float = np.inf,
    needed: bool = True,
    over: Callable[[], bool],
) -> Iterator[tuple[TimedMoves, float]]:
    """Run passes and yield each plan that is better than those before, with its makespan in µs.

    Parameters
    ----------
    task
        What to do.
    seed
        Of the random numbers.
    most
        Passes at most.
    goal
        Lower bound on the makespan in µs; a plan that meets it ends the search.
    limit
        µs of a plan that is known; worse ones are given up.
    steps
        Work of all passes together (`Weights.steps`).
    needed
        Whether passes may take more than that until the first plan is there.
    over
        Whether time is up; the first pass is run in any case.
    """
    chance = np.random.default_rng(seed)
    net = net_of(task)
    sizes, kind = np.unique(task.nbytes, return_inverse=True)
    work = Work(task.nbytes, kind.ravel(), task.rank, task.there, task.wants, task.free)
    scale = float(task.moves.delay(float(sizes[-1])).max())
    best, good = limit, FIXED[0]
    spent = 0.0
    for turn in range(most):
        if (turn and over()) or spent >= steps:
            return
        now, part = _deciding(turn, good, chance)
        left = np.inf if needed and best == np.inf else steps - spent
        weights = _weights(task, now, chance=chance, part=part, limit=(best, left, scale))
        state = begin(net, work)
        makespan = dispatch(net, work, weights, state)
        spent += float(state.tally[4])
        if makespan < best * (1 - 1e-9):
            best, good = makespan, now
            yield _needed(task, _sent(state)), makespan
            if best <= goal * (1 + 1e-9):
                return


def _sent(state: State) -> TimedMoves:
    many = int(state.tally[0])
    return TimedMoves(state.move[:many], state.chunk[:many], state.start[:many], state.group[:many])


def _weights(
    task: Task,
    now: Deciding,
    *,
    chance: np.random.Generator,
    part: float,
    limit: tuple[float, float, float],
) -> Weights:
    """Return how a pass decides; its limits are µs, steps, and the µs of a long hop."""
    return Weights(
        slack=now[0],
        tail=now[1],
        few=now[2],
        many=now[3],
        chance=part,
        choosy=bool(chance.random() < CHOOSY),
        narrow=int(task.wants.sum(axis=1).max()) > WIDE,
        of_chunk=chance.random(len(task.nbytes)),
        of_move=chance.random(len(task.moves)),
        limit=limit[0],
        steps=limit[1],
        scale=limit[2],
    )


def _deciding(turn: int, good: Deciding, chance: np.random.Generator) -> tuple[Deciding, float]:
    """Return the weights of a pass and how much chance counts in it."""
    if turn < len(FIXED):
        return FIXED[turn], 0.0
    part = float(chance.choice([0.01, 0.1, 0.5, 2.0]))
    # Now and then others than those that gave the best plan so far.
    return (FIXED[chance.integers(len(FIXED))] if chance.random() < 0.3 else good), part


def _needed(task: Task, plan: TimedMoves) -> TimedMoves:
    """Leave out what brought a chunk to where nobody used it."""
    moves, kept = task.moves, np.zeros(len(plan), dtype=bool)
    used = task.wants.copy()
    src, dst = moves.src[plan.move].tolist(), moves.dst[plan.move].tolist()
    for place in range(len(plan) - 1, -1, -1):
        chunk = plan.chunk[place]
        if used[chunk, dst[place]]:
            kept[place] = used[chunk, src[place]] = True
    return plan if kept.all() else plan.chosen(np.flatnonzero(kept))
