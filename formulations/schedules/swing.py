"""Swing: halving and doubling on rings and tori, whose partners swing to both sides.

On a ring of d = 2^L GPUs the partner of place a in step s is a + ρ(s) for even a and a - ρ(s) for
odd, round the ring, with

    ρ(s) = Σ_{i <= s} (-2)^i = (1 - (-2)^(s+1)) / 3 = 1, -1, 3, -5, 11, ...

So partners are about a third nearer than those of halving and doubling, 2^s places apart, and both
directions of the ring carry the same. A reduce-scatter exchanges halves, the largest with the
nearest; an all-gather is its time reversal, an all-reduce both in turn. On a torus steps take the
dimensions by turns, a dimension that is at its end left out; the chunks of a shard are dealt to as
many parts as there are dimensions, each beginning with another one, and again as many that swing
the other way, so that all links are in use. (De Sensi, Bonato, Saam, Hoefler, NSDI 2024.)

GPUs between partners pass messages on as they came, hop by hop, so with n parts each step takes

    |ρ| (α + m_s/n β),   m_s = m/2, m/4, ... in a reduce-scatter of m bytes at each rank,

or less, as what they pass on need not be sent to them again.

Decisions: each side of the torus is a power of two, as in the paper's main part; parts that the
chunks of a shard do not suffice for are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ccl.problem import Problem
from ccl.result import Result
from ccl.topology import Topology
from formulations.core.registry import Formulation, NoOptions
from formulations.core.run import Run
from formulations.engines.closed_forms.hosts import Grid, by_rank, grid_of
from formulations.engines.closed_forms.routing import Formula, Pattern
from formulations.engines.closed_forms.steps import answer
from formulations.engines.closed_forms.steps import refuses as refuses_any
from formulations.engines.closed_forms.trees import Messages, Task, is_power_of_two


def refuses(problem: Problem) -> str | None:
    """Refuse what is no torus of powers of two."""
    reason = refuses_any(problem)
    if reason is not None:
        return reason
    grid = _torus(problem.topology)
    if grid is None:
        return "its GPUs make no ring and no torus, numbered with the last coordinate fastest"
    if not all(map(is_power_of_two, grid.shape)):
        return f"its GPUs make a torus of {grid}, and swinging needs powers of two"
    if len(problem.collective.chunks) % len(problem.topology.ranks):
        return "its GPUs have different numbers of chunks, and here shards are alike"
    return None


def _torus(topology: Topology) -> Grid | None:
    """Return the torus that links make, a ring in the order of ranks being one of one dimension."""
    grid = grid_of(topology)
    if grid is not None:
        closed = all(
            round_ or side == 2 for side, round_ in zip(grid.shape, grid.closed, strict=True)
        )
        return grid if closed else None
    ranks = topology.ranks
    ring = zip(ranks, (*ranks[1:], ranks[0]), strict=True)
    along = {pair for a, b in ring for pair in ((a, b), (b, a))}
    linked = {each.ends for each in topology.links if {*each.ends} <= {*ranks}}
    return Grid((len(ranks),), (True,)) if along == linked else None


def run(run: Run, options: NoOptions) -> Result:
    """Swing."""
    problem = run.problem
    grid = _torus(problem.topology)
    assert grid is not None
    chunks = len(problem.collective.chunks) // problem.collective.ranks
    # Between two GPUs there is but one side to swing to.
    sides = 2 if min(grid.shape) > 2 else 1
    plan = _Plan(grid, min(chunks, sides * len(grid.shape)))
    return answer(
        run, Pattern(by_rank(problem.topology), plan.spread, plan.formula(problem, chunks))
    )


@dataclass(frozen=True)
class _Plan:
    """A torus, and into how many parts shards are dealt."""

    grid: Grid
    parts: int

    def steps(self, part: int) -> list[tuple[int, int]]:
        """Return the dimension of each step of an all-gather and ρ, that of the last step first."""
        sides = [side.bit_length() - 1 for side in self.grid.shape]
        done = [0] * len(sides)
        axis, found = part % len(sides), list[tuple[int, int]]()
        while len(found) < sum(sides):
            if done[axis] < sides[axis]:
                rho = (1 - (-2) ** (done[axis] + 1)) // 3
                found.append((axis, -rho if part // len(sides) % 2 else rho))
                done[axis] += 1
            axis = (axis + 1) % len(sides)
        return found[::-1]

    def spread(self, task: Task) -> Messages:
        """Send to everyone, part by part."""
        turn = task.turns() % self.parts
        found = []
        for part in range(self.parts):
            chunk, place = task.chunk[turn == part], task.root[turn == part]
            for step, (axis, rho) in enumerate(self.steps(part)):
                at = self.grid.at(place, axis)
                to = (at + np.where(at % 2, -rho, rho)) % self.grid.shape[axis]
                other = self.grid.moved(place, axis, to)
                found.append(Messages(np.full(len(chunk), step), chunk, place, other))
                chunk, place = np.tile(chunk, 2), np.concatenate([place, other])
        return Messages.joined(found)

    def formula(self, problem: Problem, chunks: int) -> Formula:
        """Return the sum over steps, of which each part of a shard has its own."""
        collective = problem.collective
        times = 2 if collective.kind == "all-reduce" else 1
        ways = [self.steps(part) for part in range(self.parts)]
        shard = collective.size / collective.ranks
        share = -(-chunks // self.parts) / chunks

        def makespan(alpha: float, beta: float) -> float:
            far = [max(abs(way[step][1]) for way in ways) for step in range(len(ways[0]))]
            sent = (shard * share * (1 << step) for step in range(len(far)))
            return times * sum(n * (alpha + m * beta) for n, m in zip(far, sent, strict=True))

        said = f"Σ |ρ| (α + mₛ/{self.parts} β)" if self.parts > 1 else "Σ |ρ| (α + mₛβ)"
        if chunks % self.parts:
            said = "Σ |ρ| max (α + bₛβ)"
        return Formula("2 " * (times - 1) + said, makespan)


FORMULATION = Formulation(
    name="swing",
    title="Swing",
    reference="De Sensi, Bonato, Saam, Hoefler, NSDI 2024",
    collectives=frozenset({"all-gather", "reduce-scatter", "all-reduce"}),
    refuses=refuses,
    run=run,
)
