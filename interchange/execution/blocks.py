"""Programs of thread blocks as machines, and the orders in which the actions of any machine may go.

`machine_of` makes one thread of a block, and one action of a step. Each message has its own
mailbox; a counter for each connection says how many were sent and one how many were taken. A step
for which others wait posts a counter of its own.

`Walk` finds an order in which a machine's actions may happen: one thread at a time, chosen by a
`Queue`. `Interpreter` carries out their effects on numpy arrays, in any order.

`deadlock` says whether all threads finish, and in words why not. Counters only grow, so a machine
either finishes in every order of its threads or stops in every order at the same actions: one walk
tells.
"""

import heapq
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Protocol

import numpy as np

from interchange.execution.machine import Action, Counters, Effect, Machine, Memory, Thread
from interchange.programs import READS, RECEIVES, SENDS, WRITES, Program, Step, ThreadBlock
from interchange.programs.checks import Finding, Key, Where, connections


def machine_of(program: Program, memory: Memory) -> Machine:
    """Return the machine of a program that `checks` has nothing to say about."""
    mailboxes: dict[Key, list[int]] = {}
    cells = memory.cells
    for key, each in connections(program).items():
        first = list(accumulate((count for _, count in each.sends), initial=cells))
        mailboxes[key], cells = first[:-1], first[-1]
    wires, awaited = (
        Counters(),
        {
            (rank, *step.after)
            for rank, _, block in program.blocks()
            for step in block.steps
            if step.after is not None
        },
    )
    threads = tuple(
        _Translation(memory, wires, mailboxes, awaited, rank, number, block).thread()
        for rank, number, block in program.blocks()
    )
    return Machine(threads, tuple(wires.counters), cells, memory.cells, memory.name)


@dataclass
class _Translation:
    """One thread block on its way."""

    memory: Memory
    wires: Counters
    mailboxes: Mapping[Key, Sequence[int]]
    awaited: Collection[Where]
    rank: int
    number: int
    block: ThreadBlock

    def thread(self) -> Thread:
        """Return its thread."""
        sent = taken = 0
        actions = []
        for number, step in enumerate(self.block.steps):
            actions.append(self._action(number, step, messages=(sent, taken)))
            sent += step.operation in SENDS
            taken += step.operation in RECEIVES
        return Thread(self.rank, self.number, tuple(actions))

    def _action(self, number: int, step: Step, *, messages: tuple[int, int]) -> Action:
        """Return a step's action; `messages` were sent and taken by its block before."""
        sent, taken = messages
        out = (self.rank, self.block.send, self.block.channel)
        into = (self.block.receive, self.rank, self.block.channel)
        guards, capacity, posts = [], [], []
        cells: dict[str, int] = {}
        if step.after is not None:
            guards.append((self._done((self.rank, *step.after)), 1))
        if step.operation in RECEIVES:
            guards.append((self._sent(into), taken + 1))
            posts.append(self._taken(into))
            cells["received"] = self.mailboxes[into][taken]
        if step.operation in SENDS:
            capacity.append((self._taken(out), sent + 1))
            posts.append(self._sent(out))
            cells["sent"] = self.mailboxes[out][sent]
        if step.src is not None and step.operation in READS:
            cells["src"] = self.memory.cell(self.rank, step.src)
        if step.dst is not None and step.operation in WRITES:
            cells["dst"] = self.memory.cell(self.rank, step.dst)
        if (self.rank, self.number, number) in self.awaited:
            posts.append(self._done((self.rank, self.number, number)))
        return Action(number, tuple(guards), tuple(capacity), tuple(posts), _effects(step, cells))

    def _sent(self, key: Key) -> int:
        src, _, channel = key
        return self.wires.counter(
            f"message {{0}} from rank {src} over channel {channel}", "sent", key
        )

    def _taken(self, key: Key) -> int:
        _, dst, channel = key
        words = f"room in the connection to rank {dst} over channel {channel}"
        return self.wires.counter(words, "taken", key)

    def _done(self, where: Where) -> int:
        _, block, step = where
        return self.wires.counter(f"thread block {block}, step {step}", "done", where)


EFFECTS: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "s": (("sent", ("src",)),),
    "r": (("dst", ("received",)),),
    "rcs": (("sent", ("received",)), ("dst", ("received",))),
    "rrs": (("sent", ("received", "src")),),
    "rrc": (("dst", ("received", "src")),),
    # What is sent on comes first: the destination may be the source.
    "rrcs": (("sent", ("received", "src")), ("dst", ("sent",))),
    "cpy": (("dst", ("src",)),),
    "re": (("dst", ("dst", "src")),),
    "nop": (),
}
"""Of each operation what it writes and what that is the sum of, in this order."""


def _effects(step: Step, cells: Mapping[str, int]) -> tuple[Effect, ...]:
    """Return what a step does to cells; a copy onto itself changes none and disturbs nobody."""
    if step.operation == "cpy" and cells["src"] == cells["dst"]:
        return ()
    return tuple(
        Effect(cells[target], tuple(cells[source] for source in sources), step.count)
        for target, sources in EFFECTS[step.operation]
    )


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


class Queue(Protocol):
    """Threads that can go on, and which of them does."""

    def push(self, thread: int) -> None:
        """Take a thread that can go on."""

    def pop(self) -> int:
        """Return the one that goes on."""

    def __len__(self) -> int: ...


class LastFirst:
    """The thread that came last goes on, so that each goes as far as it can."""

    def __init__(self) -> None:
        self._threads: list[int] = []
        self.push = self._threads.append

    def pop(self) -> int:
        """Return the last one."""
        return self._threads.pop()

    def __len__(self) -> int:
        return len(self._threads)


class AnyOfThem(LastFirst):
    """Any thread goes on, each as likely as the other."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._random = chance.random

    def pop(self) -> int:
        """Return a thread by chance."""
        threads = self._threads
        chosen = int(self._random() * len(threads))
        threads[chosen], threads[-1] = threads[-1], threads[chosen]
        return threads.pop()


class TurnByTurn:
    """All that can go on do so once, by their numbers, before any of them does again."""

    def __init__(self) -> None:
        self._turn: list[int] = []
        self._next: list[int] = []

    def push(self, thread: int) -> None:
        """Take a thread for the next turn."""
        self._next.append(thread)

    def pop(self) -> int:
        """Return the next of this turn."""
        if not self._turn:
            self._turn, self._next = sorted(self._next, reverse=True), []
        return self._turn.pop()

    def __len__(self) -> int:
        return len(self._turn) + len(self._next)


class AsFarAsItGoes(AnyOfThem):
    """A thread goes on until it must wait, then any other does."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(chance)
        self._current = -1

    def pop(self) -> int:
        """Return the same thread as before if it came back last."""
        same = self._threads[-1] == self._current
        self._current = self._threads.pop() if same else super().pop()
        return self._current


class Ranked:
    """The thread of the least weight goes on; the heavy ones wait until nobody else can."""

    def __init__(self, weights: Sequence[float]) -> None:
        self._weights = weights
        self._heap: list[tuple[float, int]] = []

    def push(self, thread: int) -> None:
        """Take a thread that can go on."""
        heapq.heappush(self._heap, (self._weights[thread], thread))

    def pop(self) -> int:
        """Return the lightest."""
        return heapq.heappop(self._heap)[1]

    def __len__(self) -> int:
        return len(self._heap)


def shuffled(machine: Machine, *, number: int, seed: int) -> Queue:
    """Return the queue of interleaving `number`: four manners in turn, each drawn by the seed.

    Any thread at any time; one thread as far as it goes, then any other; ranks of random speed;
    thread blocks of random speed. A step that waits for too little shows when what it should wait
    for is slow, which the last two bring about far more often than the first.
    """
    chance = random.Random(f"{seed}/{number}")
    manner = number % 4
    if manner == 0:
        return AnyOfThem(chance)
    if manner == 1:
        return AsFarAsItGoes(chance)
    if manner == 2:
        ranks = {thread.rank: chance.random() for thread in machine.threads}
        return Ranked([ranks[thread.rank] for thread in machine.threads])
    return Ranked([chance.random() for _ in machine.threads])


class Walk:
    """What of a machine decides who may go on, laid flat for speed.

    Parameters
    ----------
    machine
        Whose actions are walked.
    slots
        Messages that a connection holds; None for as many as come.
    """

    def __init__(self, machine: Machine, *, slots: int | None) -> None:
        self.starts = machine.starts
        self.posts = [action.posts for action in machine.actions]
        self.counters = len(machine.counters)
        self.guards = [
            action.guards
            if slots is None
            else action.guards + tuple((c, n - slots) for c, n in action.capacity if n > slots)
            for action in machine.actions
        ]

    def __call__(self, queue: Queue) -> Iterator[int]:
        """Yield the numbers of actions as they happen, until nobody can go on."""
        guards, posts, ends = self.guards, self.posts, self.starts[1:]
        at = list(self.starts[:-1])
        reached = [0] * self.counters
        waiting: list[list[int]] = [[] for _ in range(self.counters)]

        def line_up(thread: int) -> None:
            if at[thread] == ends[thread]:
                return
            for counter, value in guards[at[thread]]:
                if reached[counter] < value:
                    waiting[counter].append(thread)
                    return
            queue.push(thread)

        for thread in range(len(ends)):
            line_up(thread)
        while len(queue):
            thread = queue.pop()
            action = at[thread]
            yield action
            at[thread] = action + 1
            for counter in posts[action]:
                reached[counter] += 1
                if waiting[counter]:
                    woken, waiting[counter] = waiting[counter], []
                    for each in woken:
                        line_up(each)
            line_up(thread)


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
