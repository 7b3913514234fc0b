"""What is wrong with a program before anything runs: its places, waits and connections.

What is wrong with a program, in a sentence and with the step to point at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Literal

from interchange.programs import (
    OPERATIONS,
    READS,
    RECEIVES,
    SENDS,
    WRITES,
    Program,
    RankProgram,
    Slot,
    Step,
    ThreadBlock,
)

FindingKind = Literal[
    "call",
    "size",
    "slot",
    "after",
    "connection",
    "unmatched",
    "count",
    "deadlock",
    "overlap",
    "hazard",
    "unwritten",
    "result",
    "input",
    "room",
    "custom",
    "limit",
    "again",
    "cut",
]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong, or that a user should know.

    Parameters
    ----------
    kind
        ``call`` (nobody may call it), ``size`` (of a buffer), ``slot`` (a step's places),
        ``after`` (a wait for a step that is not there), ``connection`` (who sends to whom),
        ``unmatched`` (a send or receive without its other end), ``count`` (the two ends differ),
        ``deadlock``, ``overlap`` (a step's source and destination share chunks), ``hazard`` (two
        steps that nothing orders), ``unwritten`` (a step reads what nothing wrote), ``result``
        (not what the collective promises); as remarks ``input`` (it is written), ``room`` (of
        connections), ``custom`` (nothing to compare with) and ``limit`` (of the runtime); ``again``
        (a second call meets the first) and, as a remark, ``cut`` (chunks are counted in parts).
    sentence
        For the user.
    rank, block, step
        Where it is, as far as it has a place.
    """

    kind: FindingKind
    sentence: str
    rank: int | None = None
    block: int | None = None
    step: int | None = None

    def prefixed(self, words: str) -> Finding:
        """Return it with `words` before its sentence."""
        return replace(self, sentence=words + self.sentence)


def place(rank: int, block: int, step: int) -> str:
    """Return how a step is called in sentences."""
    return f"rank {rank}, thread block {block}, step {step}"


Key = tuple[int, int, int]
"""Sending rank, receiving rank, channel."""
Where = tuple[int, int, int]
"""Rank, thread block, step."""


@dataclass
class Connection:
    """Who sends and who receives, message by message, with the chunks of each."""

    sends: list[tuple[Where, int]] = field(default_factory=list)
    receives: list[tuple[Where, int]] = field(default_factory=list)


def connections(program: Program) -> dict[Key, Connection]:
    """Return the connections that steps use; steps of one end are in order within a block."""
    found: dict[Key, Connection] = defaultdict(Connection)
    for rank, number, block in program.blocks():
        for at, step in enumerate(block.steps):
            end = ((rank, number, at), step.count)
            if step.operation in SENDS:
                found[rank, block.send, block.channel].sends.append(end)
            if step.operation in RECEIVES:
                found[block.receive, rank, block.channel].receives.append(end)
    return found


def misplaced(program: Program) -> Iterator[Finding]:
    """Yield what is wrong with single thread blocks and steps."""
    for rank, number, block in program.blocks():
        yield from _peers(program, (rank, number), block)
        for at, step in enumerate(block.steps):
            where = (rank, number, at)
            yield from _slots(program.ranks[rank], where, step)
            yield from _after(program.ranks[rank], where, step)


def mismatched(program: Program) -> Iterator[Finding]:
    """Yield what is wrong between the two ends of connections."""
    for (src, dst, channel), each in sorted(connections(program).items()):
        name = f"from rank {src} to rank {dst} over channel {channel}"
        yield from _one_block(each.sends, f"sends {name}")
        yield from _one_block(each.receives, f"receives {name}")
        for number, (send, receive) in enumerate(zip_longest(each.sends, each.receives), 1):
            if receive is None:
                words = f"{place(*send[0])} sends message {number} {name}, and nobody receives it"
                yield Finding("unmatched", words, *send[0])
            elif send is None:
                words = f"{place(*receive[0])} receives message {number} {name}, and nobody sends"
                yield Finding("unmatched", f"{words} it", *receive[0])
            elif send[1] != receive[1]:
                words = (
                    f"{place(*receive[0])} receives {_chunks(receive[1])} in message {number} "
                    f"{name}, and {place(*send[0])} sends {_chunks(send[1])}"
                )
                yield Finding("count", words, *receive[0])


def _one_block(ends: list[tuple[Where, int]], words: str) -> Iterator[Finding]:
    """Yield a finding if several thread blocks are one end of a connection."""
    first: dict[int, Where] = {}
    for where, _ in ends:
        first.setdefault(where[1], where)
    if len(first) > 1:
        one, other = list(first.values())[:2]
        told = f"{place(*other)} {words}, and so does {place(*one)}; only one thread block may"
        yield Finding("connection", told, *other)


def _peers(program: Program, at: tuple[int, int], block: ThreadBlock) -> Iterator[Finding]:
    ranks = len(program.ranks)
    for peer, does, used in (
        (block.send, "sends to", SENDS),
        (block.receive, "receives from", RECEIVES),
    ):
        if peer >= ranks or peer < -1 or peer == at[0]:
            words = f"rank {at[0]}, thread block {at[1]} {does} rank {peer}"
            right = f"others go from 0 to {ranks - 1}" if peer != at[0] else "that is itself"
            yield Finding("connection", f"{words}; {right}", *at)
        if peer == -1:
            for number, step in enumerate(block.steps):
                if step.operation in used:
                    words = f"{place(*at, number)} is {step.operation}, and its thread block"
                    told = f"{words} {does} nobody"
                    yield Finding("connection", told, *at, number)
    if block.channel < 0:
        words = f"rank {at[0]}, thread block {at[1]} has the channel {block.channel}"
        yield Finding("connection", f"{words}; channels go from 0", *at)


def _slots(program: RankProgram, where: Where, step: Step) -> Iterator[Finding]:
    if step.operation not in OPERATIONS:
        words = f"{place(*where)} is {step.operation!r}; there are {', '.join(OPERATIONS)}"
        yield Finding("slot", words, *where)
        return
    if step.count < 1 and step.operation != "nop":
        words = f"{place(*where)} is {step.operation} of {step.count} chunks; give 1 or more"
        yield Finding("slot", words, *where)
        return
    for slot, what, used in ((step.src, "source", READS), (step.dst, "destination", WRITES)):
        if step.operation not in used:
            continue
        if slot is None:
            words = f"{place(*where)} is {step.operation} and has no {what}"
            yield Finding("slot", words, *where)
        else:
            yield from _in_range(program, where, slot, count=step.count)


def _in_range(program: RankProgram, where: Where, slot: Slot, *, count: int) -> Iterator[Finding]:
    size = {"input": program.input, "output": program.output, "scratch": program.scratch}
    has = size[slot.buffer]
    if slot.index < 0 or slot.index + count > has:
        last = f" to {slot.index + count - 1}" if count > 1 else ""
        words = f"{place(*where)} uses {slot.buffer} {slot.index}{last}"
        yield Finding("slot", f"{words}; rank {where[0]} has {_chunks(has)} of it", *where)


def _after(program: RankProgram, where: Where, step: Step) -> Iterator[Finding]:
    if step.after is None:
        return
    block, number = step.after
    there = 0 <= block < len(program.blocks) and 0 <= number < len(program.blocks[block].steps)
    if not there:
        words = f"{place(*where)} waits for thread block {block}, step {number}, which is not there"
        yield Finding("after", words, *where)


def _chunks(count: int) -> str:
    return f"{count} chunk" if count == 1 else f"{count} chunks"
