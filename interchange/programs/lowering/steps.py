"""Messages become steps of thread blocks.

Every connection, from a rank to another over a channel, has a thread block of its own at either
end, so that nothing waits for what it does not need. Where these are too many, one block does both
directions between two ranks, in the order of the messages, so that it cannot stand still (what is
sent early keeps blocks of its own). A connection of more messages than a thread block has steps is
spread over several channels, message after message; a channel takes so many thread blocks of a rank
each way. Runs of more pieces than one step may have are several messages.

The data of a part lies in the input of its holders, then in the output of those that need it, and
in scratch at ranks that only pass it on. What is added up is added where it will stay: the first
contribution that comes is added to the rank's own on its way there, so that no input changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ccl.errors import ProblemError
from ccl.problem import Problem
from interchange.programs.lowering.cells import IN_PLACE, Buffers, Place, Waits
from interchange.programs.lowering.hops import Hops, Message, Messages
from interchange.programs.program import RankProgram, Slot, Step, ThreadBlock

MOST_COUNT = 71
"""Pieces that one step moves at most; the runtimes count below 72."""

BLOCKS_PER_CHANNEL = 32
"""Thread blocks that send on one channel of a rank at most, and as many that receive."""


_Lane = tuple[int, int, int]
"""From a rank to a rank, and which of several; below 0 for what is sent early."""


class TooLong(ProblemError):
    """A thread block has more steps than it may have."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much goes into a thread block.

    Parameters
    ----------
    steps
        That a thread block may have.
    messages
        That a connection has before another channel is opened.
    joined
        Whether one block sends to a rank and receives from it.
    """

    steps: int
    messages: int
    joined: bool = False


def rank_programs(
    problem: Problem, hops: Hops, messages: Messages, *, buffers: Buffers, limits: Limits
) -> tuple[RankProgram, ...]:
    """Return the program of every rank.

    Raises
    ------
    TooLong
        If a thread block has more steps than it may have.
    """
    lanes = _lanes(messages, limits)
    ranks = [_Rank(problem, hops, number, buffers, limits) for number in range(buffers.ranks)]
    for rank in ranks:
        rank.copy_own()
    for event in messages.events:
        message = messages.messages[event.message]
        channel = lanes[event.message]
        if event.sends:
            ranks[message.src].send(message, channel)
        else:
            ranks[message.dst].receive(message, channel)
    return tuple(rank.program() for rank in ranks)


def _lanes(messages: Messages, limits: Limits) -> list[int]:
    """Return the channel of each message.

    What is sent early has channels of its own, since on one channel what is sent first is
    received first.
    """
    count: defaultdict[tuple[int, int], int] = defaultdict(int)
    order = {event.message: place for place, event in enumerate(messages.events) if event.sends}
    received = {e.message: place for place, e in enumerate(messages.events) if not e.sends}
    last: defaultdict[_Lane, int] = defaultdict(lambda: -1)
    lanes: dict[int, _Lane] = {}
    for number in sorted(order, key=order.__getitem__):
        message = messages.messages[number]
        pair = message.src, message.dst
        if message.early:
            which = -1
            while last[*pair, which] > received[number]:
                which -= 1
        else:
            which = count[pair] // limits.messages
            count[pair] += 1
        last[*pair, which] = received[number]
        lanes[number] = (*pair, which)
    lane = [lanes[number] for number in range(len(messages.messages))]
    channels = _channels(lane, joined=limits.joined)
    return [channels[each] for each in lane]


def _channels(lanes: list[_Lane], *, joined: bool) -> dict[_Lane, int]:
    """Give each lane the first channel on which both its ranks have room.

    A lane and the one back share theirs where one block does both.
    """
    found: dict[_Lane, int] = {}
    used: defaultdict[tuple[str, int, int], int] = defaultdict(int)
    taken: set[tuple[int, int, int]] = set()
    for lane in sorted(set(lanes), key=lambda lane: (abs(lane[2]), lane)):
        if lane in found:
            continue
        src, dst, which = lane
        both = [lane, (dst, src, which)] if joined and which >= 0 else [lane]
        ends = [end for src, dst, _ in both for end in (("out", src), ("in", dst))]
        channel = 0
        while any((*each[:2], channel) in taken for each in both) or any(
            used[*end, channel] >= BLOCKS_PER_CHANNEL for end in ends
        ):
            channel += 1
        for each in both:
            taken.add((*each[:2], channel))
            found[each] = channel
        for end in ends:
            used[*end, channel] += 1
    return found


class _Rank:
    """The thread blocks of a rank while they are written."""

    def __init__(
        self, problem: Problem, hops: Hops, number: int, buffers: Buffers, limits: Limits
    ) -> None:
        self._number = number
        self._chunks = problem.collective.chunks
        self._parts = hops.parts
        self._buffers = buffers
        self._limits = limits
        self._place: dict[int, Slot] = {}
        self._summed: set[int] = set()
        self._scratch = 0
        self._blocks: dict[tuple[int, int, int], int] = {}
        self._steps: list[list[Step]] = []
        namings = [lambda slot: slot]
        if buffers.kind in IN_PLACE:
            namings.append(lambda slot: buffers.in_place(number, slot))
        self._waits = Waits(namings)

    def program(self) -> RankProgram:
        """Return what was written."""
        blocks = [
            ThreadBlock(send, receive, channel, tuple(self._steps[place]))
            for (send, receive, channel), place in self._blocks.items()
        ]
        number = self._number
        return RankProgram(
            self._buffers.input(number), self._buffers.output(number), self._scratch, tuple(blocks)
        )

    def copy_own(self) -> None:
        """Copy what the rank has and needs itself, in a thread block of its own."""
        own = self._buffers.own_copy(self._number)
        if own is None:
            return
        for start, count in _runs(own.count):
            src, dst = Slot("input", own.src + start), Slot("output", own.dst + start)
            self._add((-1, -1, 0), Step("cpy", src, dst, count))

    def send(self, message: Message, channel: int) -> None:
        """Send what the rank holds of a part."""
        place = self._here(message.part)
        for start, count in _runs(self._parts[message.part].count):
            step = Step("s", Slot(place.buffer, place.index + start), None, count)
            self._add((message.dst, self._back(message, message.dst), channel), step)

    def receive(self, message: Message, channel: int) -> None:
        """Put what comes in its place, or add it to what is held and put the sum there."""
        part = message.part
        target = self._target(part)
        held = self._here(part) if message.adds else None
        for start, count in _runs(self._parts[part].count):
            dst = Slot(target.buffer, target.index + start)
            if held is None:
                step = Step("r", None, dst, count)
            else:
                step = Step("rrc", Slot(held.buffer, held.index + start), dst, count)
            self._add((self._back(message, message.src), message.src, channel), step)
        self._place[part] = target

    def _back(self, message: Message, peer: int) -> int:
        """Return to whom a block does the other direction as well."""
        return peer if self._limits.joined and not message.early else -1

    def _here(self, part: int) -> Slot:
        """Return where the part lies: in the input unless something has come."""
        if part not in self._place:
            told = self._parts[part]
            first = self._buffers.source(told.chunk)
            self._place[part] = Slot(first.buffer, first.index + told.start)
        return self._place[part]

    def _target(self, part: int) -> Slot:
        """Return where a part that comes is put: in the output if it is needed here."""
        told = self._parts[part]
        if self._number in self._chunks[told.chunk].destinations:
            first = self._buffers.goal(told.chunk)
            return Slot(first.buffer, first.index + told.start)
        if part in self._place and self._place[part].buffer == "scratch":
            return self._place[part]
        self._scratch += told.count
        return Slot("scratch", self._scratch - told.count)

    def _add(self, key: tuple[int, int, int], step: Step) -> None:
        """Add a step to a thread block, and steps that wait where it waits for several."""
        block = self._blocks.setdefault(key, len(self._blocks))
        if block == len(self._steps):
            self._steps.append([])
        steps = self._steps[block]
        reads, writes = _cells(step.src, step.count), _cells(step.dst, step.count)
        needs = self._waits.needs(block, reads=reads, writes=writes)
        steps += [Step("nop", after=place) for place in needs[:-1]]
        after = needs[-1] if needs else None
        steps.append(Step(step.operation, step.src, step.dst, step.count, after))
        place: Place = block, len(steps) - 1
        keep = self._waits.copied if step.operation == "cpy" else self._waits.done
        keep(place, reads=reads, writes=writes)
        if len(steps) > self._limits.steps:
            raise TooLong(
                f"a thread block of rank {self._number} has more than {self._limits.steps} steps; "
                "allow more, or ask for fewer chunks"
            )


def _cells(first: Slot | None, count: int) -> list[Slot]:
    if first is None:
        return []
    return [Slot(first.buffer, first.index + i) for i in range(count)]


def _runs(count: int) -> Iterator[tuple[int, int]]:
    """Cut a run of pieces in runs that a step can move."""
    for start in range(0, count, MOST_COUNT):
        yield start, min(MOST_COUNT, count - start)
