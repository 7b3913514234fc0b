"""A pattern on a problem: its walks on the links, forwards and backwards, and their formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ccl.closed_form import ClosedForm
from ccl.collective import Chunk, Collective
from ccl.problem import Problem
from ccl.schedule import Schedule
from ccl.topology import Topology
from formulations.engines.closed_forms.messages import EVERYONE, Messages, Task
from formulations.engines.closed_forms.pattern import Pattern
from formulations.engines.closed_forms.steps import Walk, walked
from formulations.engines.closed_forms.ways import Ways
from formulations.engines.list_scheduling.routes import Moves, mirrored, moves_of
from formulations.engines.list_scheduling.timed import (
    TimedMoves,
    backwards,
    in_epochs,
    quickest_hop,
)
from formulations.engines.reverse_time import adding


class Form:
    """A pattern on a problem."""

    def __init__(self, problem: Problem, pattern: Pattern) -> None:
        self.problem = adding(problem) if problem.collective.reduces else problem
        self.pattern = pattern
        chunks = self.problem.collective.chunks
        self.nbytes = np.array([chunk.size for chunk in chunks], dtype=float)
        self.moves = moves_of(self.problem.topology)
        self.back = (
            mirrored(moves_of(self.problem.topology.reversed()))
            if problem.collective.reduces
            else self.moves
        )

    @property
    def back_order(self) -> np.ndarray:
        """Rank at each place on reversed links."""
        return self.pattern.order if self.pattern.back is None else self.pattern.back

    def _walked(
        self, moves: Moves, order: np.ndarray, messages: Messages, *, task: Task | None
    ) -> Walk:
        topology: Topology = moves.topology
        place = np.array([topology.index[topology.ranks[rank]] for rank in order.tolist()])
        there = np.empty((0, 0))
        if task is not None:
            there = np.full((len(self.nbytes), len(topology.devices)), np.inf)
            there[task.chunk, place[task.root]] = 0.0
        ways = Ways(moves, float(self.nbytes.max()))
        return walked(
            ways,
            messages,
            place,
            nbytes=self.nbytes,
            there=there,
            one_port=self.pattern.one_port,
        )

    def spread(self, task: Task) -> Walk:
        """Walk the messages of a task."""
        return self._walked(self.moves, self.pattern.order, self.pattern.spread(task), task=task)

    def added(self, task: Task) -> Walk:
        """Walk those that add up what the task spreads, on reversed links, first step last."""
        spread = self.pattern.turned or self.pattern.spread
        return self._walked(self.back, self.back_order, spread(task), task=task)

    def turned(self, walk: Walk) -> tuple[TimedMoves, float]:
        """Read a walk on reversed links backwards; return it and its makespan in µs."""
        return backwards(self.moves, self.back, walk.timed, self.nbytes)

    def rooted(self, order: np.ndarray) -> Task:
        """Return what an all-reduce spreads, in places of an order, once its sums are there."""
        many, places = len(self.nbytes), len(order)
        roots = self.pattern.roots
        root = np.arange(many) * places // many if roots is None else roots
        root = np.argsort(order)[self.pattern.order[root]]
        return Task(places, np.arange(many), root, np.full(many, EVERYONE))

    def exchanged(self) -> Walk:
        """Walk the messages of an all-reduce that exchanges partial sums."""
        exchange = self.pattern.exchange
        assert exchange is not None
        messages = exchange(self.rooted(self.pattern.order))
        return self._walked(self.moves, self.pattern.order, messages, task=None)

    def in_steps(self, walk: Walk) -> Schedule:
        """Return a schedule in which each step begins when the one before is over."""
        tau = quickest_hop(self.problem, self.moves, walk.timed, self.nbytes)
        sends, horizon = [], 0
        for step in range(len(walk.ends)):
            timed = walk.timed.chosen(np.flatnonzero(walk.step == step))
            plan = self._alone(timed, tau)
            sends += [
                replace(each, epoch=each.epoch + horizon, chunk=int(timed.chunk[each.chunk]))
                for each in plan.sends
            ]
            horizon += plan.horizon
        return Schedule(tuple(sends), tau, horizon)

    def _alone(self, timed: TimedMoves, tau: float) -> Schedule:
        """Return the schedule of one step: its sends wait for links only."""
        topology = self.problem.topology
        rank = {topology.index[name]: rank for name, rank in topology.rank.items()}
        ends = zip(
            self.moves.src[timed.move].tolist(), self.moves.dst[timed.move].tolist(), strict=True
        )
        chunks = tuple(
            Chunk(float(self.nbytes[chunk]), (rank[src],), (rank[dst],))
            for chunk, (src, dst) in zip(timed.chunk.tolist(), ends, strict=True)
        )
        step = Collective("custom", len(topology.ranks), float(len(chunks)), chunks)
        numbered = replace(timed, chunk=np.arange(len(timed)))
        return in_epochs(Problem(topology, step), self.moves, numbered, epoch_duration=tau)

    def closed(self, walks: Sequence[Walk]) -> ClosedForm:
        """Return the formula, and what becomes of it step after step."""
        formula = self.pattern.formula
        costs = np.maximum.reduce([walk.costs for walk in walks])
        alpha, beta = costs.max(axis=0).tolist()
        makespan = (
            formula.makespan(alpha, beta)
            if formula.by_host is None
            else formula.by_host(*costs.ravel().tolist())
        )
        fullest = max(walks, key=lambda walk: walk.crowd)
        busiest = None
        if fullest.crowd > 1:
            busiest = self.problem.topology.links[fullest.busiest].ends
        return ClosedForm(
            expression=formula.expression,
            alpha=alpha,
            beta=beta,
            makespan=makespan,
            alone=sum(float(walk.alone.sum()) for walk in walks),
            in_steps=sum(float(walk.ends[-1]) for walk in walks),
            steps=sum(len(walk.ends) for walk in walks),
            busiest=busiest,
            crowd=max(1, fullest.crowd),
        )
