"""What can be sent, in continuous time: every way between two devices that store, as arrays.

A move crosses one link, or several through devices that cannot store, which let it through as it
comes. A chunk of n bytes that starts a move at time t

* holds its j-th link from ``t + lead[j] + n * drag[j]`` on for ``n * beta[j]``;
* is there at ``t + latency + n * slowest``, the sum of alphas plus the slowest transmission.

``lead`` is the sum of the alphas before the link. A link that is faster than one before it waits
until it can send without a pause (`ccl.plans.Send.via`): ``drag`` grows along the way by what
each link is faster than the one before it, and ``slowest`` is that of the last link plus its beta.
So it is the beta of the slowest link, or more where a way gets faster and then slower again.

Read backwards in time all this is the same, save that each alpha is then passed before its link is
held and not after: plans that will be read backwards (reductions,
`formulations.engines.reverse_time`) are made on reversed links with `mirrored` moves.

All methods in continuous time (list scheduling, constraint programming, their quotients) choose
among these moves and from nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from ccl.errors import Infeasible, SolveError
from ccl.topology import Topology
from formulations.core.refusals import betas
from formulations.engines.epoch_grid.arcs import no_way, ways

MOST_MOVES = 3_000_000
"""Most moves that are listed; more take more memory and time than there is."""


@dataclass(frozen=True)
class Moves:
    """Moves as arrays; n moves, m links crossed by all of them together.

    Parameters
    ----------
    topology
        Devices and links are numbered as there.
    routes
        Device names along each move, n of them.
    src, dst
        Numbers of the devices at its ends, each shape (n,).
    first
        Where the links of each move begin in the arrays of shape (m,), shape (n + 1,).
    link
        Numbers of the links, shape (m,).
    beta
        µs per byte of each, the tightest shared limit that it is under counted, shape (m,).
    lead, drag
        When each link is held after the move starts: µs, and µs per byte, shape (m,).
    parts
        Whether the device before the link copies, so that a move that comes with another up to
        there may part from it, shape (m,).
    latency, slowest
        µs, and µs per byte, until the chunk is there, each shape (n,).
    """

    topology: Topology
    routes: tuple[tuple[str, ...], ...]
    src: np.ndarray
    dst: np.ndarray
    first: np.ndarray
    link: np.ndarray
    beta: np.ndarray
    lead: np.ndarray
    drag: np.ndarray
    parts: np.ndarray
    latency: np.ndarray
    slowest: np.ndarray

    def __len__(self) -> int:
        return len(self.routes)

    def delay(self, nbytes: float) -> np.ndarray:
        """µs that each move of a chunk of `nbytes` takes, shape (n,)."""
        return np.asarray(self.latency + nbytes * self.slowest)

    @cached_property
    def of_link(self) -> np.ndarray:
        """The move that each entry of the arrays of shape (m,) belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))


def moves_of(topology: Topology) -> Moves:
    """List the moves of a topology, sorted by the devices that they leave.

    A way that crosses a shared limit so often that one chunk on it is too much is left out.

    Raises
    ------
    SolveError
        If there are too many.
    Infeasible
        If there are none.
    """
    routes = _routes(topology)
    crossed = [len(route) - 1 for route in routes]
    first = np.concatenate([[0], np.cumsum(crossed)]).astype(np.int64)
    position = topology.link_index
    pairs = [position[pair] for route in routes for pair in pairwise(route)]
    link = np.array(pairs, dtype=np.int64)
    copies = np.array([each.copies for each in topology.devices], dtype=bool)
    index = topology.index
    before = np.array([index[each.src] for each in topology.links], dtype=np.int64)
    alpha = np.array([each.alpha for each in topology.links], dtype=float)
    beta = betas(topology)[link]
    starts = first[:-1]
    total = np.add.reduceat(alpha[link], starts)
    until = np.cumsum(alpha[link]) - alpha[link]
    lead = until - np.repeat(until[starts], crossed)
    drag = _drags(beta, first)
    return Moves(
        topology=topology,
        routes=tuple(routes),
        src=np.array([index[route[0]] for route in routes], dtype=np.int64),
        dst=np.array([index[route[-1]] for route in routes], dtype=np.int64),
        first=first,
        link=link,
        beta=beta,
        lead=lead,
        drag=drag,
        parts=copies[before[link]],
        latency=total,
        slowest=(drag + beta)[first[1:] - 1],
    )


def _drags(beta: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Return how much later each link begins than alphas ask for, in µs per byte, shape (m,)."""
    faster = np.maximum(0.0, -np.diff(beta, prepend=0.0))
    faster[first[:-1]] = 0.0
    drag = np.cumsum(faster)
    # What came before the first link of a move is not its own.
    return np.asarray(drag - np.repeat(drag[first[:-1]], np.diff(first)))


def _routes(topology: Topology) -> list[tuple[str, ...]]:
    """List the ways of the moves, not too many and not none."""
    routes: list[tuple[str, ...]] = []
    for route in filter(passable(topology), ways(topology)):
        routes.append(route)
        if len(routes) > MOST_MOVES:
            msg = (
                f"{topology} has more than {MOST_MOVES:,} ways from GPU to GPU over its switches; "
                "draw fewer levels of switches or join parallel ones"
            )
            raise SolveError(msg)
    if not routes:
        raise Infeasible(no_way(topology.ranks[-1]))
    return routes


def passable(topology: Topology) -> Callable[[tuple[str, ...]], bool]:
    """Return what says whether shared limits let a chunk through on all links of a way at once."""
    rate = 1e-3 / betas(topology)
    index = topology.link_index
    limits = [
        (limit.bandwidth * (1 + 1e-9), {index[ends] for ends in limit.links})
        for limit in topology.limits
    ]

    def fits(route: tuple[str, ...]) -> bool:
        links = [index[pair] for pair in pairwise(route)] if limits else []
        return all(
            sum(rate[link] for link in links if link in under) <= most for most, under in limits
        )

    return fits


def mirrored(moves: Moves) -> Moves:
    """Return the same moves for plans that will be read backwards.

    Read backwards, a move that starts at t and is there at ``t + d`` is a send that starts at
    ``T - t - d``, and a link that the move holds until u is one that the send holds from ``T - u``
    on. With n bytes, latencies ``a[j]`` and drags ``D[j]`` of the send, that is

        T - t - d + (sum of a[i] for i < j) + n D[j],     d = (sum of a) + n slowest,

    so the move begins to hold it ``(sum of a[i] for i >= j) + n (slowest - D[j] - beta[j])`` after
    t. The last bracket is the drag of the move itself, as ``D[j] + beta[j]`` grows along the send
    by what each link is slower than the one before it: only the alpha of the link is added.
    """
    alpha = np.array([each.alpha for each in moves.topology.links])
    return replace(moves, lead=moves.lead + alpha[moves.link])
