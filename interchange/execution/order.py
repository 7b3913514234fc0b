"""Whether all threads finish, and in words why not.

Counters only grow, so a machine either finishes in every order of its threads or stops in every
order at the same actions: one walk tells.
"""

from __future__ import annotations

from collections.abc import Sequence

from interchange.execution.finding import Finding
from interchange.execution.machine import Machine
from interchange.execution.schedule import LastFirst, Walk


def finishing_order(machine: Machine, *, slots: int | None) -> list[int]:
    """Return the numbers of actions in an order in which they may happen, as far as they do."""
    return list(Walk(machine, slots=slots)(LastFirst()))


def deadlock(machine: Machine, order: Sequence[int], *, slots: int | None) -> Finding | None:
    """Return why a walk stopped before the end, or None if it did not.

    Follows who waits for whom from the first thread that stopped, until it comes to a thread for
    the second time or to somebody who waits for what nobody posts.
    """
    if len(order) == len(machine.actions):
        return None
    halted = _Halt(machine, order, slots=slots)
    chain = halted.chain()
    first = chain[0]
    said = "; ".join(halted.said(action) for action in chain)
    rank, block, step = machine.where(first)
    return Finding("deadlock", f"deadlock: {said}", rank, block, step)


class _Halt:
    """A machine at the point where nobody can go on."""

    def __init__(self, machine: Machine, order: Sequence[int], *, slots: int | None) -> None:
        self._machine = machine
        self._walk = Walk(machine, slots=slots)
        self._at = list(machine.starts[:-1])
        self._reached = [0] * len(machine.counters)
        for action in order:
            self._at[machine.owners[action]] += 1
            for counter in machine.actions[action].posts:
                self._reached[counter] += 1

    def chain(self) -> list[int]:
        """Return the actions of a cycle of waits, or of the way to one that waits in vain."""
        ends = self._machine.starts[1:]
        thread = next(t for t, end in enumerate(ends) if self._at[t] < end)
        seen: dict[int, int] = {}
        while thread not in seen:
            seen[thread] = self._at[thread]
            missing = self._missing(self._at[thread])
            if missing is None:
                return list(seen.values())
            thread = self._machine.owners[missing]
        return list(seen.values())[list(seen).index(thread) :]

    def said(self, action: int) -> str:
        """Return in words what an action waits for and where that stands."""
        machine = self._machine
        counter, value = self._awaited(action)
        words = f"{machine.place(action)} waits for {machine.counters[counter].format(value)}"
        missing = self._missing(action)
        if missing is None:
            return f"{words}, which never comes"
        standing = self._at[machine.owners[missing]]
        if missing == standing:
            return f"{words}, which is up to {machine.place(missing)}"
        behind = machine.actions[standing].step
        return f"{words}, which is up to {machine.place(missing)}, itself behind step {behind}"

    def _awaited(self, action: int) -> tuple[int, int]:
        """Return the first counter that has not reached what an action waits for."""
        guards = self._walk.guards[action]
        return next((c, value) for c, value in guards if self._reached[c] < value)

    def _missing(self, action: int) -> int | None:
        """Return the next action that would post what an action waits for."""
        machine = self._machine
        counter, _ = self._awaited(action)
        still = (
            each for each in machine.posters[counter] if each >= self._at[machine.owners[each]]
        )
        return next(still, None)
