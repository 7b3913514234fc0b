"""A machine's effects on numpy arrays, in any order of its actions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from interchange.execution.machine import Effect, Machine


class Interpreter:
    """One matrix of cells and every effect bound to its rows.

    Parameters
    ----------
    machine
        Whose actions are done.
    start
        (memory, elements) array of what the memory holds at the start; it is not changed.
    """

    def __init__(self, machine: Machine, start: np.ndarray) -> None:
        self._start = start
        self._cells = np.zeros((machine.cells, start.shape[1]), start.dtype)
        self._effects = [
            tuple(self._bound(effect) for effect in action.effects) for action in machine.actions
        ]

    def run(self, order: Iterable[int]) -> np.ndarray:
        """Return the (memory, elements) array after the actions; the next run changes it."""
        memory = self._cells[: len(self._start)]
        memory[:] = self._start
        effects = self._effects
        for action in order:
            for effect in effects[action]:
                effect()
        return memory

    def _bound(self, effect: Effect) -> Callable[[], object]:
        target = self._rows(effect.target, effect.count)
        sources = [self._rows(source, effect.count) for source in effect.sources]
        if len(sources) == 1:
            return partial(np.copyto, target, sources[0])
        if len(sources) == 2:
            return partial(np.add, sources[0], sources[1], target)
        return partial(_add_up, target, sources)

    def _rows(self, first: int, count: int) -> np.ndarray:
        return self._cells[first : first + count]


def _add_up(target: np.ndarray, sources: list[np.ndarray]) -> None:
    """Add several arrays in their order; the target may be among them."""
    total = sources[0] + sources[1]
    for source in sources[2:]:
        total += source
    target[:] = total
