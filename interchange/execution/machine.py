"""A machine of threads that wait for counters and copy and add up cells; it knows no runtime.

Each thread does its actions one after the other. An action begins when its counters have reached
what it waits for, reads and writes cells, and adds one to the counters it posts. Counters only
grow, so whether all threads finish does not depend on who goes first.

A cell holds one chunk. The first `memory` cells are memory, which any thread may use at any time;
each cell after them is the mailbox of one message, written once and read after that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from interchange.execution.finding import place


@dataclass(frozen=True, slots=True)
class Effect:
    """``target = sum of sources``, `count` cells each, from the cells named onwards.

    Parameters
    ----------
    target
        First cell that is written.
    sources
        First cells that are read; several are added up in this order.
    count
        Cells, one after the other.
    """

    target: int
    sources: tuple[int, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Action:
    """What a thread does at once.

    Parameters
    ----------
    step
        Its number for people.
    guards
        ``(counter, value)``: waits until the counter has reached the value; who posted it has
        been before.
    room
        ``(counter, number)``: waits until the counter has reached the number less the slots of a
        connection. How many there are is the runtime's to choose, so nothing is ordered by it.
    posts
        Counters to which it adds one when it is done.
    effects
        What it does with cells, one after the other.
    """

    step: int
    guards: tuple[tuple[int, int], ...] = ()
    room: tuple[tuple[int, int], ...] = ()
    posts: tuple[int, ...] = ()
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class Thread:
    """Actions in order, with the rank and the number in it."""

    rank: int
    block: int
    actions: tuple[Action, ...]


@dataclass(frozen=True)
class Machine:
    """Threads over common counters and cells.

    Parameters
    ----------
    threads
        All of them.
    counters
        How each counter is called in a sentence after "waits for", with ``{0}`` where the value
        goes.
    cells
        How many there are.
    memory
        How many of them are memory, the first ones.
    cell_name
        Says how a cell of the memory is called.
    """

    threads: tuple[Thread, ...]
    counters: tuple[str, ...]
    cells: int
    memory: int
    cell_name: Callable[[int], str]

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        """All actions, thread after thread; a place in here is an action's number."""
        return tuple(each for thread in self.threads for each in thread.actions)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Number of each thread's first action, and at the end the number of actions."""
        found = [0]
        for thread in self.threads:
            found.append(found[-1] + len(thread.actions))
        return tuple(found)

    @cached_property
    def owners(self) -> tuple[int, ...]:
        """Thread of each action."""
        return tuple(
            number for number, thread in enumerate(self.threads) for _ in range(len(thread.actions))
        )

    @cached_property
    def posters(self) -> tuple[tuple[int, ...], ...]:
        """Actions that post each counter, by number, which is in order within a thread."""
        found: list[list[int]] = [[] for _ in self.counters]
        for number, action in enumerate(self.actions):
            for counter in action.posts:
                found[counter].append(number)
        return tuple(tuple(each) for each in found)

    def where(self, action: int) -> tuple[int, int, int]:
        """Return rank, thread block and step of an action."""
        thread = self.threads[self.owners[action]]
        return thread.rank, thread.block, self.actions[action].step

    def place(self, action: int) -> str:
        """Return how an action is called in sentences."""
        return place(*self.where(action))

    def touched(self, action: int) -> Iterator[tuple[int, int, bool]]:
        """Yield first cell, count and whether it is written, reads before writes."""
        effects = self.actions[action].effects
        for effect in effects:
            for source in effect.sources:
                yield source, effect.count, False
        for effect in effects:
            yield effect.target, effect.count, True
