"""Programs of thread blocks as machines: one thread a block, one action a step.

Each message has its own mailbox; a counter for each connection says how many were sent and one how
many were taken. A step for which others wait posts a counter of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from interchange.execution.checks import Key, Where, connections
from interchange.execution.machine import Action, Effect, Machine, Thread
from interchange.execution.memory import Memory
from interchange.programs import Program, Step, ThreadBlock
from interchange.programs.program import READS, RECEIVES, SENDS, WRITES


@dataclass
class _Wires:
    """Mailboxes and counters, as they are handed out.

    Parameters
    ----------
    mailboxes
        First cell of each message of a connection.
    sent, taken
        Counters of messages, by connection.
    done
        Counters of steps that others wait for.
    counters
        How each is called.
    """

    mailboxes: dict[Key, list[int]] = field(default_factory=dict)
    sent: dict[Key, int] = field(default_factory=dict)
    taken: dict[Key, int] = field(default_factory=dict)
    done: dict[Where, int] = field(default_factory=dict)
    counters: list[str] = field(default_factory=list)

    def counter(self, name: str) -> int:
        """Return a new counter."""
        self.counters.append(name)
        return len(self.counters) - 1


def machine_of(program: Program, memory: Memory) -> Machine:
    """Return the machine of a program that `checks` has nothing to say about."""
    wires, cells = _Wires(), memory.cells
    for key, each in connections(program).items():
        src, dst, channel = key
        first = list(accumulate((count for _, count in each.sends), initial=cells))
        wires.mailboxes[key], cells = first[:-1], first[-1]
        over = f"over channel {channel}"
        wires.sent[key] = wires.counter(f"message {{0}} from rank {src} {over}")
        wires.taken[key] = wires.counter(f"room in the connection to rank {dst} {over}")
    for rank, _, block in program.blocks():
        for step in block.steps:
            if step.after is not None and (rank, *step.after) not in wires.done:
                other, number = step.after
                name = f"thread block {other}, step {number}"
                wires.done[rank, other, number] = wires.counter(name)
    threads = tuple(
        _Translation(memory, wires, rank, number, block).thread()
        for rank, number, block in program.blocks()
    )
    return Machine(threads, tuple(wires.counters), cells, memory.cells, memory.name)


@dataclass
class _Translation:
    """One thread block on its way."""

    memory: Memory
    wires: _Wires
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
        guards, room, posts = [], [], []
        cells: dict[str, int] = {}
        if step.after is not None:
            guards.append((self.wires.done[self.rank, *step.after], 1))
        if step.operation in RECEIVES:
            guards.append((self.wires.sent[into], taken + 1))
            posts.append(self.wires.taken[into])
            cells["received"] = self.wires.mailboxes[into][taken]
        if step.operation in SENDS:
            room.append((self.wires.taken[out], sent + 1))
            posts.append(self.wires.sent[out])
            cells["sent"] = self.wires.mailboxes[out][sent]
        if step.src is not None and step.operation in READS:
            cells["src"] = self.memory.cell(self.rank, step.src)
        if step.dst is not None and step.operation in WRITES:
            cells["dst"] = self.memory.cell(self.rank, step.dst)
        done = self.wires.done.get((self.rank, self.number, number))
        if done is not None:
            posts.append(done)
        return Action(number, tuple(guards), tuple(room), tuple(posts), _effects(step, cells))


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
