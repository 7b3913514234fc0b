"""Passes of list scheduling with other weights and other chances, until one meets the bound.

The first passes are a fixed set of weights; afterwards the best of them is tried with other random
numbers, and links that were busy longest are made dear, so that ways around them are taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from formulations.compiled.dispatch import Net, Weights, Work, dispatch
from formulations.moves import Moves
from formulations.timed import TimedMoves


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


def net_of(task: Task, price: np.ndarray | None = None) -> Net:
    """Return the arrays of the kernel; `price` in µs is added to each move, shape (n,)."""
    moves = task.moves
    resource = task.resource[moves.link]
    many = len(task.free)
    order = np.argsort(resource, kind="stable")
    user_first = np.searchsorted(resource[order], np.arange(many + 1))
    sizes = np.unique(task.nbytes)
    far, hop = [], []
    for nbytes in sizes:
        cost = moves.delay(float(nbytes))
        near, via = _quickest(moves, cost if price is None else cost + price)
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
    for limit in topology.limits:
        links = [topology.link_index[ends] for ends in limit.links]
        if limit.bandwidth < sum(topology.links[link].bandwidth for link in links) * (1 - 1e-9):
            for resource in task.resource[links].tolist():
                caps[resource].append(len(room))
            under.append(task.resource[links].tolist())
            room.append(1e3 * limit.bandwidth)
    return (*_flat(caps), np.array(room, dtype=float), *_flat(under))


def _flat(lists: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    first = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return np.array([each for some in lists for each in some], dtype=np.int64), first


FIXED = (
    # slack, tail, few, many
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

CHOOSY = 0.25
"""Share of passes that look for the best move instead of any; they take longer."""


def passes(
    task: Task,
    *,
    seed: int = 0,
    goal: float,
    over: Callable[[], bool],
    found: Callable[[TimedMoves, float], bool],
) -> None:
    """Run passes and hand over each plan that is better than those before.

    Parameters
    ----------
    task
        What to do.
    seed
        Of the random numbers.
    goal
        Lower bound on the makespan in µs; a plan that meets it ends the search.
    over
        Whether time is up.
    found
        Takes a plan and its makespan in µs and says whether it is good enough.
    """
    chance = np.random.default_rng(seed)
    net = net_of(task)
    work = Work(
        task.nbytes,
        np.searchsorted(np.unique(task.nbytes), task.nbytes),
        task.rank,
        task.there,
        task.wants,
        task.free,
    )
    scale = float(task.moves.delay(float(task.nbytes.max())).max())
    best = np.inf
    weights = [(*each, 0.0) for each in FIXED]
    turn = 0
    chosen = weights[0]
    while not over():
        if turn < len(weights):
            now = weights[turn]
        else:
            now = (*chosen[:4], float(chance.choice([0.01, 0.1, 0.5, 2.0])))
            if chance.random() < 0.3:
                now = (*FIXED[chance.integers(len(FIXED))], now[4])
        turn += 1
        makespan, move, chunk, start, group = dispatch(
            net,
            work,
            Weights(
                *now,
                choosy=bool(chance.random() < CHOOSY),
                of_chunk=chance.random(len(task.nbytes)),
                of_move=chance.random(len(task.moves)),
                limit=best,
                scale=scale,
            ),
        )
        if makespan < best * (1 - 1e-9):
            best, chosen = makespan, now
            if found(TimedMoves(move, chunk, start, group), makespan):
                return
            if best <= goal * (1 + 1e-9):
                return
