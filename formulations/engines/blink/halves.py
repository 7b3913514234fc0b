"""An all-reduce by one root, both halves at once: which part of each link goes down the trees.

Link e of c(e) GB/s lets o(e) of what goes down from the root r through, and c(e) - o(e) of what
goes up to it. Trees of the rate X exist exactly if every cut lets X through (Edmonds):

    maximise    X
    o(S) >= X             S a set of devices with r and without some GPU; o(S) is what leaves it
    c(S) - o(S) >= X      S the same the other way round: links that enter it
    o into v = o out of v                    v a switch
    o(e) + o(back of e) = c(e)               where every link is the same both ways

Then the trees are those of a graph without directions, each up one way and down the other, which
is Blink's packing for all-reduces; the last rows lose nothing, as the mean of a solution and of
its mirror image is as good, and save the second ones. Cuts are added as they are overrun: after
each solve the worst one before each GPU. Of equally good parts those near c(e) / 2 are taken, by
a small price for being apart from it: else links that do not matter would run over cut after cut.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
from scipy import sparse

from ccl.result import ModelSize
from formulations.engines.blink.roots import of_root, same_both_ways, turned_round
from formulations.engines.forestcoll.all_reduce import Shares
from formulations.engines.forestcoll.network import Ints, Network
from formulations.engines.forestcoll.search import BYTES
from formulations.engines.kernels.maxflow import newton, tight_sides
from formulations.solvers.cvxpy_highs import Backend

UNIT = 2**40
"""Whole numbers to the bandwidth of the fastest link, for maximum flows."""

CLOSE = 1e-9
"""A cut that lacks less than this share of X is kept."""

EVEN = 1e-2
"""Price for being apart from one half, all links together; far too little to make X smaller."""

ROUNDS = 200
"""Solves after which the cuts found so far must do."""


def shared_halves(
    network: Network, rank: int, *, backend: Backend, left: Callable[[], float | None]
) -> Shares:
    """Return the shares of links with which an all-reduce by one root is fastest.

    Parameters
    ----------
    network
        Of the all-gather.
    rank
        The root.
    backend
        The solver.
    left
        Returns the seconds left, or None; when none are, the cuts found so far must do.

    Raises
    ------
    SolveError
        If the solver finds nothing.
    """
    program = _Program(of_root(network, rank))
    for _ in range(ROUNDS):
        program.solve(backend)
        seconds = left()
        if not program.grown() or (seconds is not None and seconds <= 0.01):
            break
    speed = program.rate * float(network.capacity.max() * network.unit)
    share = np.zeros(len(network.gpus))
    share[rank] = 1.0
    return Shares(
        makespan=float(network.share * int(network.weight.sum())) / (speed * BYTES),
        roots=share,
        out=np.clip(program.out / program.capacity, 0, 1),
        size=program.size,
    )


@dataclass(frozen=True, eq=False)
class _Side:
    """One half as a network with its own capacities: down, or up on links turned round."""

    network: Network
    up: bool


class _Program:
    """The linear program with the cuts so far; capacities are shares of the fastest link."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.capacity = network.capacity / network.capacity.max()
        self.back = same_both_ways(network)
        self.sides = [_Side(network, up=False)]
        if self.back is None:
            self.sides.append(_Side(turned_round(network), up=True))
        self.cuts: dict[bytes, tuple[np.ndarray, bool]] = {}
        self.rate, self.size = 0.0, ModelSize(0, 0, 0)
        self.out = self.capacity / 2
        for side in self.sides:
            self._add(side, network.weight > 0)
            for sink in network.sinks.tolist():
                inside = np.ones(len(network.weight), dtype=bool)
                inside[sink] = False
                self._add(side, inside)

    def solve(self, backend: Backend) -> None:
        """Find the best parts of links for the cuts so far."""
        network = self.network
        many = len(self.capacity)
        out, apart = cp.Variable(many, nonneg=True), cp.Variable(many, nonneg=True)
        rate = cp.Variable()
        middle = self.capacity / 2
        rows: list[cp.Constraint] = [
            out <= self.capacity,
            out - middle <= apart,
            middle - out <= apart,
        ]
        if self.back is not None:
            rows.append(out + out[self.back] == self.capacity)
        for up in sorted({up for _, up in self.cuts.values()}):
            crossed: Any = sparse.csr_array(
                np.array([cut for cut, of in self.cuts.values() if of == up], dtype=float)
            )
            rows.append(crossed @ (self.capacity - out if up else out) >= rate)
        relays = np.setdiff1d(np.arange(len(network.weight)), network.gpus)
        if len(relays):
            ends = np.concatenate([network.src, network.dst]), np.tile(np.arange(many), 2)
            signs = np.repeat([1.0, -1.0], many)
            leaves: Any = sparse.csr_array((signs, ends), (len(network.weight), many))
            rows.append(leaves[relays] @ out == 0)
        even = np.full(many, EVEN / many)
        found = backend.solve(cp.Problem(cp.Maximize(rate - even @ apart), rows), method="simplex")
        self.rate, self.size = float(np.asarray(rate.value)), found.size
        self.out = np.clip(np.asarray(out.value), 0.0, self.capacity)

    def grown(self) -> bool:
        """Add the worst cut before each GPU; say whether there was a new one."""
        before = len(self.cuts)
        for side in self.sides:
            values = self.capacity - self.out if side.up else self.out
            for inside in _overrun(side.network, np.floor(values * UNIT), self.rate):
                self._add(side, inside)
        return len(self.cuts) > before

    def _add(self, side: _Side, inside: np.ndarray) -> None:
        network = side.network
        crossed = inside[network.src] & ~inside[network.dst]
        self.cuts.setdefault(crossed.tobytes() + bytes([side.up]), (crossed, side.up))


def _overrun(network: Network, values: np.ndarray, rate: float) -> list[np.ndarray]:
    """Return for each sink the side of a cut that lets less than the rate through."""
    arcs = network.arcs
    capacity: Ints = arcs.of_links(values.astype(np.int64))
    graph = arcs.first, arcs.head, arcs.rev, capacity, network.weight
    wanted = int(rate * (1 - CLOSE) * UNIT)
    sides = []
    for sink in network.sinks.tolist():
        above, below, last, _ = newton(*graph, np.array([sink]), wanted, 1)
        if last >= 0:
            sides.append(tight_sides(*graph, sink, above, below, 1)[-1, :-1])
    return sides
