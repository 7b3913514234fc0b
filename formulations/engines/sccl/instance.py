"""A task in steps as whole numbers for the solver, and what the solver answers as a plan.

Chunks with one destination are never worth copying, so those that begin at the same devices are
counted, not told apart: a flow. What arrives is dealt out to them afterwards. Everything that
crosses to the other process is a list of whole numbers (`Puzzle.request`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from formulations.engines.list_scheduling.multistart import Task
from formulations.engines.list_scheduling.timed import TimedMoves
from formulations.engines.sccl.rates import distances

NEVER = 1_000_000
"""Steps to where no way leads."""


@dataclass(frozen=True)
class Puzzle:
    """A task in steps.

    Parameters
    ----------
    task
        What has to be done; its times and sizes are not looked at.
    room
        Chunks that each resource carries in a round.
    """

    task: Task
    room: tuple[Fraction, ...]

    @cached_property
    def held(self) -> np.ndarray:
        """Whether each chunk is at each device at the beginning, shape (chunks, devices)."""
        return np.asarray(np.isfinite(self.task.there))

    @cached_property
    def wanted(self) -> np.ndarray:
        """Whether each device needs and lacks each chunk, shape (chunks, devices)."""
        return np.asarray(self.task.wants & ~self.held)

    @cached_property
    def copied(self) -> tuple[int, ...]:
        """Numbers of the chunks that several devices need."""
        return tuple(np.flatnonzero(self.wanted.sum(axis=1) > 1).tolist())

    @cached_property
    def flows(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the chunks that one device needs each, those with the same holders joined."""
        found: dict[bytes, list[int]] = defaultdict(list)
        for chunk in np.flatnonzero(self.wanted.sum(axis=1) == 1).tolist():
            found[self.held[chunk].tobytes()].append(chunk)
        return tuple(tuple(each) for each in found.values())

    @cached_property
    def shares(self) -> np.ndarray:
        """Number of the way up to each crossing that copies may share, -1 for none, shape (m,)."""
        return shared_ways(self.task)

    def sends(self, steps: int) -> int:
        """Return the most sends that a model of so many steps chooses among."""
        return len(self.task.moves) * steps * (len(self.copied) + len(self.flows))

    def request(self, steps: int, rounds: int) -> dict[str, Any]:
        """Return what the solver is told."""
        moves, task = self.task.moves, self.task
        far = np.where(np.isfinite(_far := distances(task)), _far, NEVER).astype(int)
        return {
            "steps": steps,
            "rounds": rounds,
            "src": moves.src.tolist(),
            "dst": moves.dst.tolist(),
            "first": moves.first.tolist(),
            "resource": task.resource[moves.link].tolist(),
            "share": self.shares.tolist(),
            "room": [[each.numerator, each.denominator] for each in self.room],
            "far": far.tolist(),
            "copied": [
                {"have": _places(self.held[chunk]), "want": _places(self.wanted[chunk])}
                for chunk in self.copied
            ],
            "flows": [
                {
                    "have": _places(self.held[chunks[0]]),
                    "want": [
                        [device, int(many)]
                        for device, many in enumerate(self.wanted[list(chunks)].sum(axis=0))
                        if many
                    ],
                }
                for chunks in self.flows
            ],
        }

    def plan(self, copied: Iterable[Sequence[int]], flowing: Iterable[Sequence[int]]) -> TimedMoves:
        """Return a plan whose starts are steps.

        Parameters
        ----------
        copied
            Place among the copied chunks, move and step of each send.
        flowing
            Place among the flows, move, step and number of chunks of each send.
        """
        sends = [(self.copied[place], move, step) for place, move, step in copied]
        by_flow: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for place, move, step, many in flowing:
            by_flow[place].append((step, move, many))
        for place, some in by_flow.items():
            sends += self._dealt(self.flows[place], sorted(some))
        chunks, moves, steps = np.array(sends, dtype=np.int64).reshape(-1, 3).T
        return TimedMoves(moves, chunks, steps.astype(float), self._groups(chunks, moves, steps))

    def _dealt(
        self, chunks: Sequence[int], some: Sequence[tuple[int, int, int]]
    ) -> list[tuple[int, int, int]]:
        """Deal a flow out to its chunks: follow what is sent, then name it by where it ends."""
        moves = self.task.moves
        src, dst, held = moves.src.tolist(), moves.dst.tolist(), self.held[chunks[0]]
        waiting: dict[int, list[_Trace]] = defaultdict(list)
        coming: list[tuple[int, _Trace]] = []
        now = -1
        for step, move, many in some:
            if step > now:
                for device, trace in coming:
                    waiting[device].append(trace)
                coming, now = [], step
            for _ in range(many):
                trace = () if held[src[move]] else waiting[src[move]].pop()
                coming.append((dst[move], _without_loop((*trace, (move, step)), src, dst)))
        for device, trace in coming:
            waiting[device].append(trace)
        sends = []
        for chunk in chunks:
            device = int(np.flatnonzero(self.wanted[chunk])[0])
            sends += [(chunk, move, step) for move, step in waiting[device].pop()]
        return sends

    def _groups(self, chunk: np.ndarray, move: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Return the number of the transmission that each send is part of."""
        first = self.shares[self.task.moves.first[move]]
        alone = -1 - np.arange(len(move))
        keys = np.column_stack(
            [np.where(first < 0, alone, first), np.where(first < 0, 0, chunk), step]
        )
        return np.asarray(np.unique(keys, axis=0, return_inverse=True)[1]).ravel()


_Trace = tuple[tuple[int, int], ...]
"""Moves and steps that brought a chunk where it is."""


def _without_loop(trace: _Trace, src: Sequence[int], dst: Sequence[int]) -> _Trace:
    """Leave out what a chunk does between leaving a device and coming back to it."""
    end = dst[trace[-1][0]]
    for place, (move, _) in enumerate(trace):
        if src[move] == end:
            return trace[:place]
    return trace


def _places(row: np.ndarray) -> list[int]:
    return np.flatnonzero(row).tolist()


def shared_ways(task: Task) -> np.ndarray:
    """Return for each crossing the number of its way from the sender, where copies share it.

    Moves that leave a device over the same link may be one transmission of a chunk if their links
    form a tree and part at devices that copy only. Else all of them cross their links alone.
    """
    moves = task.moves
    prefixes: dict[tuple[int, ...], list[int]] = defaultdict(list)
    alone: set[int] = set()
    onwards: dict[tuple[int, ...], set[int]] = defaultdict(set)
    reached: dict[tuple[int, int], tuple[int, ...]] = {}
    link, parts = moves.link.tolist(), moves.parts.tolist()
    for begin, stop in pairwise(moves.first.tolist()):
        for place in range(begin, stop):
            way = tuple(link[begin:place])
            prefixes[*way, link[place]].append(place)
            onwards[way].add(link[place])
            parted = place > begin and len(onwards[way]) > 1 and not parts[place]
            if parted or reached.setdefault((link[begin], link[place]), way) != way:
                alone.add(link[begin])
    found = np.full(len(link), -1, dtype=np.int64)
    for number, (way, places) in enumerate(prefixes.items()):
        if way[0] not in alone and len(prefixes[way[:1]]) > 1:
            found[places] = number
    return found
