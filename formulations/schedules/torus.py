"""Torus: all-gather along the rows of one dimension of a grid, then of the next.

GPUs lie in a grid of sides d_1, d_2, ...; its rows are rings, or open, in a mesh. In phase i each
row of dimension i is gathered: everyone has b_i = m/p times the sides of the phases before and
passes it on to its neighbour (Chan, Heimlich, Purkayastha, van de Geijn, Concurrency and
Computation 2007, sections 4 and 7; the bucket algorithm). One way round a ring takes
d_i - 1 steps; both ways at once half of them, rounded up; an open row d_i - 1, each GPU sending
to both sides what came from the other. So all phases take

    Σ s_i (α + b_i β),   s_i = d_i - 1, or ⌈(d_i - 1) / 2⌉ both ways round a ring.

Round a ring of an even side the last step goes one way only, and every second chunk of a shard goes
the other: with an even number of them all links carry (d_i - 1)/2 b_i in those steps.

Reduce-scatter is the time reversal, all-reduce both in turn.

In a phase the links of one dimension are in use. With ``split`` the chunks of a shard are dealt to
as many orders of the dimensions as there are dimensions, each beginning with another and going on
in turn, and all links are in use: in each phase the parts are gathered along different dimensions
side by side, and it takes as many steps as the longest. A step takes as long as the part with most
bytes in it; with sides all d and one chunk for each of D orders that is  Σ s (α + b_i/D β).

Decisions: the shape is found from the links (`formulations.engines.closed_forms.hosts`); split when
there are as many chunks per shard as dimensions, by default.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ccl.options import option
from ccl.problem import Problem
from ccl.result import Result
from formulations.core.registry import Formulation
from formulations.core.run import Run
from formulations.engines.closed_forms.hosts import Grid, by_rank, grid_of
from formulations.engines.closed_forms.routing import Formula, Pattern
from formulations.engines.closed_forms.steps import answer
from formulations.engines.closed_forms.steps import refuses as refuses_any
from formulations.engines.closed_forms.trees import Messages, Task


@dataclass(frozen=True, kw_only=True)
class Options:
    """Directions and orders."""

    both_ways: bool = option(True, "Both directions", "pass on in both directions of a ring")
    split: bool = option(
        True,
        "Split over orders of dimensions",
        "uses all links at once; needs as many chunks per shard as dimensions",
    )


def refuses(problem: Problem) -> str | None:
    """Refuse what is no grid."""
    reason = refuses_any(problem)
    if reason is not None:
        return reason
    if grid_of(problem.topology) is None:
        return (
            "its GPUs make no grid of two dimensions or more: each linked both ways with its "
            "neighbours and nobody else, ranks in order with the last coordinate fastest"
        )
    return None


def run(run: Run, options: Options) -> Result:
    """Gather along one dimension after the other."""
    problem = run.problem
    grid = grid_of(problem.topology)
    assert grid is not None
    chunks = len(problem.collective.chunks) // problem.collective.ranks
    dimensions = len(grid.shape)
    orders = dimensions if options.split and chunks >= dimensions else 1
    if options.split and orders < dimensions:
        run.note(
            f"one dimension of {grid} after the other is in use: to use all at once give each "
            f"shard {dimensions} chunks or more, it has {chunks}"
        )
    plan = _Plan(grid, orders, both_ways=options.both_ways)
    return answer(
        run, Pattern(by_rank(problem.topology), plan.spread, plan.formula(problem, chunks))
    )


@dataclass(frozen=True)
class _Copies:
    """Chunks with a place that has each, and whether each goes backwards; shape (n,)."""

    chunk: np.ndarray
    place: np.ndarray
    turned: np.ndarray

    def chosen(self, which: np.ndarray) -> _Copies:
        """Return some of them."""
        return _Copies(self.chunk[which], self.place[which], self.turned[which])


@dataclass(frozen=True)
class _Plan:
    """A grid and how it is gone along."""

    grid: Grid
    orders: int
    both_ways: bool

    def axis(self, part: int, phase: int) -> int:
        """Return the dimension along which a part of each shard is gathered in a phase.

        Numbers go down, as GPUs of a host mostly lie along the last dimension.
        """
        return (part - 1 - phase) % len(self.grid.shape)

    def onwards(self, axis: int) -> int:
        """Return how many steps everything goes towards larger coordinates, round a ring."""
        side = self.grid.shape[axis]
        return -(-(side - 1) // 2) if self.both_ways else side - 1

    def steps(self, axis: int) -> int:
        """Return how many steps the gathering along a dimension takes."""
        return self.onwards(axis) if self.grid.closed[axis] else self.grid.shape[axis] - 1

    def spread(self, task: Task) -> Messages:
        """Send to everyone, part by part."""
        turn = task.turns()
        turned = (turn // self.orders % 2 == 1) & self.both_ways
        every = _Copies(task.chunk, task.root, turned)
        parts = []
        for part in range(self.orders):
            copies = every.chosen(turn % self.orders == part)
            begin = 0
            for phase in range(len(self.grid.shape)):
                axis = self.axis(part, phase)
                parts += [
                    self._rows(copies, axis, to_larger=to_larger).later(begin)
                    for to_larger in (True, False)
                ]
                begin += self._longest(phase)
                copies = self._everywhere(copies, axis)
        return Messages.joined(parts)

    def _longest(self, phase: int) -> int:
        return max(self.steps(self.axis(part, phase)) for part in range(self.orders))

    def _rows(self, copies: _Copies, axis: int, *, to_larger: bool) -> Messages:
        """Send chunks from their places along one dimension in one direction."""
        grid, side = self.grid, self.grid.shape[axis]
        at = grid.at(copies.place, axis)
        if grid.closed[axis]:
            onwards = self.onwards(axis)
            reach = np.where(copies.turned ^ to_larger, onwards, side - 1 - onwards)
        else:
            reach = side - 1 - at if to_larger else at
        sign = 1 if to_larger else -1
        parts = []
        for step in range(int(reach.max(initial=0))):
            on = copies.chosen(reach > step)
            src, dst = ((at[reach > step] + sign * (step + more)) % side for more in (0, 1))
            parts.append(
                Messages(
                    np.full(len(src), step),
                    on.chunk,
                    grid.moved(on.place, axis, src),
                    grid.moved(on.place, axis, dst),
                )
            )
        return Messages.joined([Messages.of([]), *parts])

    def _everywhere(self, copies: _Copies, axis: int) -> _Copies:
        """Return chunks with their places when all of a row have them."""
        side = self.grid.shape[axis]
        every = copies.chosen(np.repeat(np.arange(len(copies.place)), side))
        to = np.tile(np.arange(side), len(copies.place))
        return replace(every, place=self.grid.moved(every.place, axis, to))

    def formula(self, problem: Problem, chunks: int) -> Formula:
        """Return the sum over phases and steps; a shard has so many chunks."""
        collective = problem.collective
        twice = 2 if collective.kind == "all-reduce" else 1
        turns = self._turns(collective.size / collective.ranks, chunks)

        def makespan(alpha: float, beta: float) -> float:
            return twice * sum(alpha + nbytes * beta for nbytes in turns)

        return Formula("2 " * (twice - 1) + self._written(chunks), makespan)

    def _turns(self, shard: float, chunks: int) -> list[float]:
        """Return the bytes that the busiest link passes in each step; a shard has `shard`."""
        many = [len(range(part, chunks, self.orders)) for part in range(self.orders)]
        block = [shard * each / chunks for each in many]
        turns = []
        for phase in range(len(self.grid.shape)):
            axes = [self.axis(part, phase) for part in range(self.orders)]
            for step in range(self._longest(phase)):
                busy = [
                    b * self._share(axis, step, chunks=each)
                    for b, axis, each in zip(block, axes, many, strict=True)
                ]
                turns.append(max(busy))
            block = [b * self.grid.shape[axis] for b, axis in zip(block, axes, strict=True)]
        return turns

    def _share(self, axis: int, step: int, *, chunks: int) -> float:
        """Return how much of what a place has at first its busiest link passes in a step."""
        steps = self.steps(axis)
        one_way = self.grid.closed[axis] and self.both_ways and self.grid.shape[axis] % 2 == 0
        if one_way and step == steps - 1:
            return -(-chunks // 2) / chunks
        return float(step < steps)

    def _written(self, chunks: int) -> str:
        sides, closed = set(self.grid.shape), set(self.grid.closed)
        alike = self.orders == 1 or (len(sides) == len(closed) == 1 and chunks % self.orders == 0)
        turned = self.both_ways and any(self.grid.closed) and chunks > self.orders
        over = f"/{self.orders}" if self.orders > 1 else ""
        if not alike or (turned and (chunks // self.orders % 2 or closed != {True})):
            return "Σ steps max (α + bᵢβ)"
        if turned:
            return f"Σ (⌈(dᵢ-1)/2⌉ α + (dᵢ-1)/2 bᵢβ{over})"
        steps = "⌈(dᵢ-1)/2⌉" if self.both_ways else "(dᵢ-1)"
        return f"Σ {steps if closed == {True} else 'sᵢ'} (α + bᵢβ{over})"


FORMULATION = Formulation(
    name="torus",
    title="Torus, dimension after dimension",
    reference="Chan, Heimlich, Purkayastha, van de Geijn, Concurrency and Computation 2007",
    collectives=frozenset({"all-gather", "reduce-scatter", "all-reduce"}),
    options=Options,
    refuses=refuses,
    run=run,
)
