"""The SCCL solver from outside: a child process that decides instances, and plans in steps as µs.

`Solver` is the client: its child process decides one instance after the other.

A plan in steps is a `TimedTransfers` whose starts are the numbers of the steps. `thrifty`,
`in_steps` and `on_time` say what is sent in which step: nothing in vain, in order, and when. SCCL
lets every step begin when the one before has ended everywhere. Here sends keep the order of the
steps on every link and wait for nothing else than what they send and the links that they cross: the
replay of a schedule does the same.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np

from ccl.errors import SolveError
from ccl.result import ModelSize
from formulations.engines.cp_sat.search import Effort, TimedChild
from formulations.engines.epoch_grid.arcs import flattened
from formulations.engines.list_scheduling.multistart import Task
from formulations.engines.list_scheduling.timed import TimedTransfers
from formulations.engines.sccl.instance import Instance


def thrifty(task: Task, plan: TimedTransfers) -> TimedTransfers:
    """Leave out the sends of a plan in steps that bring nobody what it needs."""
    transfers = task.transfers
    stored: list[int] = []
    used: set[tuple[int, int]] = set()
    for turn in np.argsort(-plan.start, kind="stable").tolist():
        chunk, transfer = int(plan.chunk[turn]), int(plan.transfer[turn])
        dst = int(transfers.dst[transfer])
        if task.wants[chunk, dst] or (chunk, dst) in used:
            used.add((chunk, int(transfers.src[transfer])))
            stored.append(turn)
    return plan.chosen(np.array(sorted(stored), dtype=np.int64))


def in_rounds(task: Task, capacity: tuple[Fraction, ...]) -> Task:
    """Return the task as if every path took a round, and time were counted in rounds.

    A resource that carries b chunks in a round is held for 1 / b of it.
    """
    transfers = task.transfers
    beta = np.array([float(1 / each) for each in capacity])[task.resource[transfers.link]]
    slowest = np.maximum.reduceat(beta, transfers.first[:-1])
    still = np.zeros(len(beta))
    return replace(
        task,
        transfers=replace(
            transfers, beta=beta, lead=still, drag=still, latency=1.0 - slowest, slowest=slowest
        ),
        nbytes=np.ones(len(task.nbytes)),
        there=np.where(np.isfinite(task.there), 0.0, np.inf),
        free=np.zeros(len(task.free)),
    )


def in_steps(task: Task, capacity: tuple[Fraction, ...], plan: TimedTransfers) -> TimedTransfers:
    """Return the plan in steps of one round each that keeps the order of a plan in time."""
    loads: defaultdict[tuple[int, int], int] = defaultdict(int)
    there = {(int(chunk), int(at)): 0 for chunk, at in np.argwhere(np.isfinite(task.there))}
    start = np.zeros(len(plan))
    for turns, chunk, src, crossed in _transmissions(task, plan):
        step = there[chunk, src]
        while any(loads[each, step] + 1 > capacity[each] for each in crossed):
            step += 1
        for each in crossed:
            loads[each, step] += 1
        for turn in turns:
            start[turn] = step
            there[chunk, int(task.transfers.dst[plan.transfer[turn]])] = step + 1
    return replace(plan, start=start)


def steps_of(plan: TimedTransfers) -> int:
    """Return how many steps a plan in steps has."""
    return int(plan.start.max(initial=-1.0)) + 1


def on_time(task: Task, plan: TimedTransfers) -> TimedTransfers:
    """Return a plan in steps as one in µs, each send as early as the order of steps lets it.

    Of a step that is sent first what can start first, and of that what is sent on the soonest.
    """
    clock = _Clock(task, plan)
    for step in range(steps_of(plan)):
        clock.run(step)
    return replace(plan, start=clock.start)


class _Clock:
    """Starts transmissions, step after step."""

    def __init__(self, task: Task, plan: TimedTransfers) -> None:
        self.task, self.plan = task, plan
        self.there, self.free = task.there.copy(), task.free.copy()
        self.start = np.zeros(len(plan))
        self.use = _next_uses(task, plan)
        self.steps: defaultdict[int, list[_Waiting]] = defaultdict(list)
        for turns, chunk, src, _ in _transmissions(task, plan):
            transfers, nbytes = task.transfers, task.nbytes[chunk]
            places = flattened(transfers.first, plan.transfer[turns])[0]
            resource = task.resource[transfers.link[places]]
            begin = transfers.lead[places] + nbytes * transfers.drag[places]
            end = begin + nbytes * transfers.beta[places]
            some = _Waiting(turns, chunk, src, resource, begin, end)
            self.steps[int(plan.start[turns[0]])].append(some)

    def run(self, step: int) -> None:
        """Start all transmissions of a step."""
        waiting = [
            (self._soonest(each), min(self.use[each.turns]), number)
            for number, each in enumerate(self.steps[step])
        ]
        heapq.heapify(waiting)
        while waiting:
            promised, use, number = heapq.heappop(waiting)
            each = self.steps[step][number]
            soonest = self._soonest(each)
            # Others have taken its links since: it waits again, as starts only become later.
            if soonest > promised:
                heapq.heappush(waiting, (soonest, use, number))
            else:
                self._begin(each, soonest)

    def _soonest(self, each: _Waiting) -> float:
        free = float((self.free[each.resource] - each.begin).max())
        return max(float(self.there[each.chunk, each.src]), free)

    def _begin(self, each: _Waiting, start: float) -> None:
        transfers = self.task.transfers
        np.maximum.at(self.free, each.resource, start + each.end)
        for turn in each.turns:
            transfer = int(self.plan.transfer[turn])
            self.start[turn] = start
            took = (
                transfers.latency[transfer]
                + self.task.nbytes[each.chunk] * transfers.slowest[transfer]
            )
            self.there[each.chunk, transfers.dst[transfer]] = start + took


@dataclass(frozen=True)
class _Waiting:
    """A transmission: its sends, chunk and sender, and when it holds which resources, in µs."""

    turns: list[int]
    chunk: int
    src: int
    resource: np.ndarray
    begin: np.ndarray
    end: np.ndarray


def _next_uses(task: Task, plan: TimedTransfers) -> np.ndarray:
    """Return the step in which what each send brings is sent on first, shape (n,)."""
    transfers, last = task.transfers, float(steps_of(plan))
    onwards: dict[tuple[int, int], float] = {}
    sent = list(zip(plan.chunk.tolist(), plan.transfer.tolist(), plan.start.tolist(), strict=True))
    for chunk, transfer, step in sent:
        key = chunk, int(transfers.src[transfer])
        onwards[key] = min(onwards.get(key, last), step)
    return np.array(
        [onwards.get((chunk, int(transfers.dst[transfer])), last) for chunk, transfer, _ in sent]
    )


def _transmissions(
    task: Task, plan: TimedTransfers
) -> Iterator[tuple[list[int], int, int, tuple[int, ...]]]:
    """Yield transmissions by start: their sends, the chunk, its sender and the resources."""
    transfers = task.transfers
    members: dict[int, list[int]] = {}
    for turn in np.lexsort((plan.group, plan.start)).tolist():
        members.setdefault(int(plan.group[turn]), []).append(turn)
    for turns in members.values():
        links = np.unique(transfers.link[flattened(transfers.first, plan.transfer[turns])[0]])
        crossed = tuple(sorted(task.resource[links].tolist()))
        yield turns, int(plan.chunk[turns[0]]), int(transfers.src[plan.transfer[turns[0]]]), crossed


MOST_SENDS = 300_000
"""Most sends that a model may choose among: 3 kB for each, and half a minute before the search."""


class Decided(StrEnum):
    """What is known of an instance."""

    FOUND = "found"
    IMPOSSIBLE = "impossible"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Outcome:
    """What came of an instance.

    Parameters
    ----------
    decided
        Whether there is a plan.
    why
        What proves that no plan exists, or leaves it undecided; empty where its time was over.
    plan
        A plan whose starts are steps, or None.
    rounds
        Those of each step of the plan.
    size
        Of the model, or None where there was none.
    """

    decided: Decided
    why: str = ""
    plan: TimedTransfers | None = None
    rounds: tuple[int, ...] = ()
    size: ModelSize | None = None


@dataclass
class Solver:
    """Decides instances in a process that it starts when it is first asked; a context manager."""

    _child: TimedChild | None = None

    def __enter__(self) -> Solver:
        return self

    def __exit__(self, *_: object) -> None:
        if self._child is not None:
            self._child.__exit__()
        self._child = None

    def decide(self, instance: Instance, steps: int, rounds: int, *, effort: Effort) -> Outcome:
        """Decide whether an instance can be solved in so many steps and rounds.

        Raises
        ------
        SolveError
            If the process died.
        """
        if instance.sends(steps) > MOST_SENDS:
            why = (
                f"it would choose among {instance.sends(steps):,} sends, and more than "
                f"{MOST_SENDS:,} take too long; take fewer chunks"
            )
            return Outcome(Decided.UNDECIDED, why)
        request = {**instance.request(steps, rounds), **asdict(effort)}
        answer = self._answered(request, seconds=effort.seconds)
        if answer is None:
            return Outcome(Decided.UNDECIDED)
        size = ModelSize(answer["variables"], answer["constraints"], answer["sends"])
        if answer["status"] != "found":
            decided = Decided(answer["status"])
            why = "constraint programming has searched all" * (decided is Decided.IMPOSSIBLE)
            return Outcome(decided, why, size=size)
        plan = thrifty(instance.task, instance.plan(answer["copied"], answer["flowing"]))
        return Outcome(Decided.FOUND, plan=plan, rounds=tuple(answer["rounds"]), size=size)

    def _answered(self, request: Mapping[str, Any], *, seconds: float) -> dict[str, Any] | None:
        """Return the answer to a request, or None if it took too long."""
        if self._child is None:
            self._child = TimedChild(worker="formulations.engines.sccl.worker")
        child = self._child
        answer = child.answer(request, seconds=seconds)
        if answer is None:
            why = "" if child.late else child.why()
            self.__exit__()
            if why:
                raise SolveError(why)
        return answer
