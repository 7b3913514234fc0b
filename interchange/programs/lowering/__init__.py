"""From a plan to a program that a runtime loads.

In four stages: the plan's sends, trees or flows become hops of parts of chunks, these become
messages between ranks in an order in which they can all be done (`hops`), chunks get their places
in the buffers (`cells`), and the messages become steps of thread blocks that wait for one another
(here). Instances of a program do the same several times side by side, each on channels of its own.

`Program.notes` says what the program does not keep of the plan.

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
from dataclasses import dataclass, replace

from ccl.errors import ProblemError
from ccl.options import option
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.result import Plan
from interchange.programs import Program, Protocol, RankProgram, Slot, Step, ThreadBlock
from interchange.programs.lowering.cells import (
    IN_PLACE,
    Buffers,
    Place,
    Waits,
    cut,
    largest_row,
    pieces_row,
    repeated,
    smallest_row,
)
from interchange.programs.lowering.hops import Hops, Message, Messages, messages_of

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


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a plan becomes a program."""

    protocol: Protocol = option("Simple", "Protocol", "Of NCCL; LL and LL128 are for small sizes.")
    instances: int = option(
        1,
        "Instances",
        "The program as often side by side, each with its share of every chunk.",
        min=1,
        max=16,
    )
    pieces: int = pieces_row()
    steps: int = option(
        256,
        "Steps of a thread block, at most",
        "More channels are opened where there are more. RCCL takes 64.",
        min=4,
        max=256,
    )
    blocks: int = option(
        127,
        "Thread blocks of a rank, at most",
        "Where there are more, one does both directions. RCCL takes 64.",
        min=1,
        max=216,
    )
    in_place: bool = option(
        True,
        "Also in place",
        "It may be called with overlapping buffers, where the collective allows it.",
    )
    smallest: int = smallest_row()
    largest: int = largest_row()


def lower(problem: Problem, plan: Plan, options: Options | None = None) -> Program:
    """Return a program that does what a verified plan says.

    Raises
    ------
    ProblemError
        If a runtime does not know the collective, the sizes are none, or a thread block needs more
        steps than it may have on however many channels. More thread blocks than requested are
        told in the program's notes.
    """
    asked = options or Options()
    if isinstance(plan, Schedule):
        problem = problem.cut_into(plan.chunks)
    hops, buffers = cut(
        problem, plan, pieces=asked.pieces, smallest=asked.smallest, largest=asked.largest
    )
    ranks = _ranks(problem, hops, buffers, asked)
    return repeated(
        Program(
            name=program_name(problem),
            collective=buffers.kind,
            ranks=ranks,
            chunks_per_loop=buffers.per_loop,
            protocol=asked.protocol,
            in_place=asked.in_place and buffers.kind in IN_PLACE,
            out_of_place=True,
            smallest=asked.smallest,
            largest=asked.largest,
            root=buffers.root,
            notes=(*lost_notes(problem, hops), *_crowded(ranks, asked)),
        ),
        asked.instances,
    )


def _ranks(
    problem: Problem, hops: Hops, buffers: Buffers, asked: Options
) -> tuple[RankProgram, ...]:
    """Open more channels until thread blocks are short enough, and join them if they are many."""
    messages = messages_of(problem, hops)
    limits = Limits(steps=asked.steps, messages=asked.steps)
    while True:
        try:
            ranks = rank_programs(problem, hops, messages, buffers=buffers, limits=limits)
        except TooLong:
            if limits.messages == 1:
                raise
            limits = replace(limits, messages=limits.messages // 2)
            continue
        most = max(len(each.blocks) for each in ranks) * asked.instances
        if most <= asked.blocks or limits.joined:
            return ranks
        limits = replace(limits, messages=asked.steps, joined=True)


def _crowded(ranks: tuple[RankProgram, ...], asked: Options) -> tuple[str, ...]:
    """Say where a rank has more thread blocks than were requested."""
    most = max(len(each.blocks) for each in ranks) * asked.instances
    if most <= asked.blocks:
        return ()
    return (f"the limit of {asked.blocks} thread blocks: a rank has {most}, and needs them",)


def program_name(problem: Problem) -> str:
    """Return a name that every runtime takes: 63 plain characters at most."""
    words = f"{problem.collective.kind} {problem.topology.name}"
    plain = "".join(each if each.isascii() and each.isalnum() else "_" for each in words)
    return plain[:63]


def lost_notes(problem: Problem, hops: Hops) -> tuple[str, ...]:
    """Return what programs do not keep of a plan, in sentences."""
    notes = ["epochs and times: the runtime does each step as soon as it can"]
    if any(device.kind != "gpu" for device in problem.topology.devices):
        notes.append("paths through switches, NICs and memories: a runtime chooses its own")
    meeting = [each for each in problem.topology.devices if each.kind == "switch"]
    if any(each.copies or each.reduces for each in meeting):
        notes.append("copies and sums made in switches: ranks make them")
    if hops.rounded:
        notes.append(f"shares of chunks as they are: they are rounded to {hops.pieces} pieces")
    return tuple(notes)


__all__ = ["Options", "lost_notes", "lower", "program_name"]
