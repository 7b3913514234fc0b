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

Where sends name what they carry (`ccl.plans.Send.terms`), a rank keeps several values of a part.
One that is used in one sum alone is added to that as it comes; one that is used twice or passed on
has a place in scratch until its last use, and is added to each sum from there. What the rank has of
its own is copied if it is still to be used when the output, which covers it in place, is written.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ccl.errors import ProblemError
from ccl.options import option
from ccl.plans import Schedule, bits_of, choose_values
from ccl.problem import Problem
from ccl.result import Plan
from interchange.programs import Operation, Program, Protocol, RankProgram, Slot, Step, ThreadBlock
from interchange.programs.lowering import cells
from interchange.programs.lowering import hops as paths
from interchange.programs.lowering.hops import Message

MOST_COUNT = 71
"""Pieces that one step moves at most; the runtimes count below 72."""

BLOCKS_PER_CHANNEL = 32
"""Thread blocks that send on one channel of a rank at most, and as many that receive."""


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
    problem: Problem,
    hops: paths.Hops,
    messages: paths.Messages,
    *,
    buffers: cells.Buffers,
    limits: Limits,
) -> tuple[RankProgram, ...]:
    """Return the program of every rank.

    Raises
    ------
    TooLong
        If a thread block has more steps than it may have.
    """
    lanes = paths.lanes_of(messages, limits.messages)
    channels = _channels(lanes.values(), joined=limits.joined)
    uses = _uses(problem, hops, messages)
    ranks = [
        _Rank(problem, hops, number, buffers, limits, uses=uses) for number in range(buffers.ranks)
    ]
    for rank in ranks:
        rank.copy_own()
    for event in messages.events:
        message = messages.messages[event.message]
        channel = channels[lanes[event.message]]
        if event.sends:
            ranks[message.src].send(message, channel)
        else:
            ranks[message.dst].receive(message, channel)
    return tuple(rank.program() for rank in ranks)


def _channels(lanes: Iterable[paths.Lane], *, joined: bool) -> dict[paths.Lane, int]:
    """Give each lane the first channel on which both its ranks have room.

    A lane and the one back share theirs where one block does both.
    """
    found: dict[paths.Lane, int] = {}
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


Stock = frozenset[int]
"""Numbers of values of a rank whose sum it has in one place; one alone is a value itself."""


class _Uses:
    """What a rank does with the values of a part.

    `parcels` counts the messages that bring each value, `sends` those that send each stock, `bits`
    has the contributions of each value, and `goal` is the stock that makes up the whole chunk.
    """

    def __init__(self) -> None:
        self.parcels: Counter[int] = Counter()
        self.sends: Counter[Stock] = Counter()
        self.bits: defaultdict[int, int] = defaultdict(int)
        self.goal: Stock = frozenset()

    def sums(self, value: int) -> list[Stock]:
        """Return the stocks of several values of which one is."""
        return [each for each in {self.goal: 0} | self.sends if value in each and len(each) > 1]

    def apart(self, value: int) -> bool:
        """Return whether a value needs a place of its own."""
        alone = frozenset({value})
        return alone in self.sends or alone == self.goal or len(self.sums(value)) != 1

    def count(self, stock: Stock) -> int:
        """Return how often a stock is read: sent, and added to others if it is a value."""
        return self.sends[stock] + (len(self.sums(*stock)) if len(stock) == 1 else 0)


def _uses(
    problem: Problem, hops: paths.Hops, messages: paths.Messages
) -> dict[tuple[int, int], _Uses]:
    """Return by part and rank what is done with values, where sends name what they carry.

    Raises
    ------
    ProblemError
        If what a rank needs is not there in values that add up.
    """
    found: defaultdict[tuple[int, int], _Uses] = defaultdict(_Uses)
    parts = dict.fromkeys(each.part for each in messages.messages if each.named is not None)
    for part in parts:
        for rank in problem.collective.chunks[hops.parts[part].chunk].holders:
            found[part, rank].bits[paths.OWN] = 1 << rank
    for each in messages.messages:
        if each.named is not None:
            found[each.part, each.src].sends[each.named.taken] += 1
            there = found[each.part, each.dst]
            there.parcels[each.named.value] += 1
            there.bits[each.named.value] |= each.named.bits
    for part in parts:
        chunk = problem.collective.chunks[hops.parts[part].chunk]
        for rank in chunk.destinations:
            there = found[part, rank]
            numbers = list(there.bits)
            chosen = choose_values(list(there.bits.values()), bits_of(chunk.holders), adds=True)
            if chosen is None:
                raise ProblemError(
                    f"what comes to rank {rank} does not make up chunk {hops.parts[part].chunk}; "
                    "verify the plan"
                )
            there.goal = frozenset(numbers[place] for place in chosen)
    return dict(found)


_Block = tuple[int, int, int]
"""To whom a thread block sends, from whom it receives, or -1, and its channel."""


class _Rank(cells.Placing):
    """The thread blocks of a rank while they are written."""

    def __init__(
        self,
        problem: Problem,
        hops: paths.Hops,
        number: int,
        buffers: cells.Buffers,
        limits: Limits,
        *,
        uses: Mapping[tuple[int, int], _Uses],
    ) -> None:
        super().__init__(problem, hops, buffers, number=number)
        self._uses = {part: each for (part, rank), each in uses.items() if rank == number}
        self._stocks: dict[tuple[int, Stock], Slot] = {}
        self._came: Counter[tuple[int, int]] = Counter()
        self._read: Counter[tuple[int, Stock]] = Counter()
        self._spare: defaultdict[int, list[Slot]] = defaultdict(list)
        self._limits = limits
        self._blocks: dict[_Block, int] = {}
        self._steps: list[list[Step]] = []
        namings = [lambda slot: slot]
        if buffers.kind in cells.IN_PLACE:
            namings.append(lambda slot: buffers.in_place(number, slot))
        self._waits = cells.Waits(namings)

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
        """Send what the rank holds of a part, or the values that are named."""
        part = message.part
        key = message.dst, self._back(message, message.dst), channel
        if message.named is None:
            self._move(key, part, "s", self._here(part), None)
            return
        self._move(key, part, "s", self._stock(part, message.named.taken), None)
        self._used(part, message.named.taken)

    def receive(self, message: Message, channel: int) -> None:
        """Put what comes in its place, or add it to what is held and put the sum there."""
        part = message.part
        key = self._back(message, message.src), message.src, channel
        if message.named is not None:
            self._receive_value(message.named.value, part, key)
            return
        target = self._target(part)
        held = self._here(part) if message.adds else None
        self._move(key, part, "r" if held is None else "rrc", held, target)
        self._place[part] = target

    def _move(
        self, key: _Block, part: int, operation: Operation, src: Slot | None, dst: Slot | None
    ) -> None:
        """Add the steps of one operation on all pieces of a part."""
        for start, count in _runs(self._parts[part].count):
            self._add(key, Step(operation, _after(src, start), _after(dst, start), count))

    def _receive_value(self, value: int, part: int, key: _Block) -> None:
        """Put a value in its place, or add it to the one sum that it is for."""
        uses = self._uses[part]
        alone = frozenset({value})
        apart = uses.apart(value)
        self._into(part, alone if apart else uses.sums(value)[0], None, key)
        self._came[part, value] += 1
        if not apart or self._came[part, value] < uses.parcels[value]:
            return
        for stock in uses.sums(value):
            self._into(part, stock, self._stock(part, alone), key)
            self._used(part, alone)

    def _into(self, part: int, stock: Stock, src: Slot | None, key: _Block) -> None:
        """Add to a stock what comes now, or what lies in a place."""
        own = frozenset({paths.OWN})
        begun, from_own = (part, stock) in self._stocks, False
        if not begun:
            from_own = paths.OWN in stock
            if stock == self._uses[part].goal and self._unread(part, own) > from_own:
                self._copy_apart(part, key)
        first, target = self._stock(part, own) if from_own else None, self._begin(part, stock)
        if src is None and (begun or from_own):
            self._move(key, part, "rrc", first or target, target)
        elif src is None:
            self._move(key, part, "r", None, target)
        else:
            if not begun:
                self._move(key, part, "cpy", first or src, target)
            if begun or from_own:
                self._move(key, part, "re", src, target)
        if from_own:
            self._used(part, own)

    def _copy_apart(self, part: int, key: _Block) -> None:
        """Copy what the rank has of its own to scratch: in place the output covers it."""
        place = self._free_place(part)
        self._move(key, part, "cpy", self._here(part), place)
        self._stocks[part, frozenset({paths.OWN})] = place

    def _begin(self, part: int, stock: Stock) -> Slot:
        """Return the place of a stock, in the output where that needs it."""
        if (part, stock) not in self._stocks:
            goal = self._goal(part) if stock == self._uses[part].goal else None
            self._stocks[part, stock] = goal or self._free_place(part)
        return self._stocks[part, stock]

    def _stock(self, part: int, stock: Stock) -> Slot:
        """Return where a stock lies: the rank's own in the input unless it was copied."""
        if stock == {paths.OWN} and (part, stock) not in self._stocks:
            return self._here(part)
        return self._stocks[part, stock]

    def _unread(self, part: int, stock: Stock) -> int:
        """Return how often a stock will still be read."""
        return self._uses[part].count(stock) - self._read[part, stock]

    def _used(self, part: int, stock: Stock) -> None:
        """Note that a stock was read; after the last time its place in scratch is free."""
        self._read[part, stock] += 1
        slot = self._stocks.get((part, stock))
        if slot is not None and slot.buffer == "scratch" and not self._unread(part, stock):
            self._spare[self._parts[part].count].append(slot)

    def _free_place(self, part: int) -> Slot:
        """Return a place in scratch that nobody reads any more, or a new one."""
        spare = self._spare[self._parts[part].count]
        return spare.pop() if spare else self._reserved(part)

    def _back(self, message: Message, peer: int) -> int:
        """Return to whom a block does the other direction as well."""
        return peer if self._limits.joined and not message.early else -1

    def _target(self, part: int) -> Slot:
        """Return where a part that comes is put: in the output if it is needed here."""
        goal = self._goal(part)
        if goal is not None:
            return goal
        held = self._place.get(part)
        return held if held and held.buffer == "scratch" else self._reserved(part)

    def _add(self, key: _Block, step: Step) -> None:
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
        place: cells.Place = block, len(steps) - 1
        keep = self._waits.copied if step.operation == "cpy" else self._waits.done
        keep(place, reads=reads, writes=writes)
        if len(steps) > self._limits.steps:
            raise TooLong(
                f"a thread block of rank {self._number} has more than {self._limits.steps} steps; "
                "allow more, or ask for fewer chunks"
            )


def _after(first: Slot | None, start: int) -> Slot | None:
    return None if first is None else Slot(first.buffer, first.index + start)


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
    pieces: int = cells.pieces_row()
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
    smallest: int = cells.smallest_row()
    largest: int = cells.largest_row()


def lower(problem: Problem, plan: Plan, options: Options | None = None) -> Program:
    """Return a program that does what a verified plan says.

    Raises
    ------
    ProblemError
        If a runtime does not know the collective, the sizes are none, or a thread block needs more
        steps than it may have on however many channels. More thread blocks than requested are
        told in the program's notes.
    """
    request = options or Options()
    if isinstance(plan, Schedule):
        problem = problem.cut_into(plan.chunks)
    hops, buffers = cells.cut(
        problem, plan, pieces=request.pieces, smallest=request.smallest, largest=request.largest
    )
    ranks = _ranks(problem, hops, buffers, request)
    return cells.repeated(
        Program(
            name=program_name(problem),
            collective=buffers.kind,
            ranks=ranks,
            chunks_per_loop=buffers.per_loop,
            protocol=request.protocol,
            in_place=request.in_place and buffers.kind in cells.IN_PLACE,
            out_of_place=True,
            smallest=request.smallest,
            largest=request.largest,
            root=buffers.root,
            notes=(*lost_notes(problem, hops), *_crowded(ranks, request)),
        ),
        request.instances,
    )


def _ranks(
    problem: Problem, hops: paths.Hops, buffers: cells.Buffers, request: Options
) -> tuple[RankProgram, ...]:
    """Open more channels until thread blocks are short enough, and join them if they are many."""
    messages = paths.messages_of(problem, hops)
    limits = Limits(steps=request.steps, messages=request.steps)
    while True:
        try:
            ranks = rank_programs(problem, hops, messages, buffers=buffers, limits=limits)
        except TooLong:
            if limits.messages == 1:
                raise
            limits = replace(limits, messages=limits.messages // 2)
            continue
        most = max(len(each.blocks) for each in ranks) * request.instances
        if most <= request.blocks or limits.joined:
            return ranks
        limits = replace(limits, messages=request.steps, joined=True)


def _crowded(ranks: tuple[RankProgram, ...], request: Options) -> tuple[str, ...]:
    """Say where a rank has more thread blocks than were requested."""
    most = max(len(each.blocks) for each in ranks) * request.instances
    if most <= request.blocks:
        return ()
    return (f"the limit of {request.blocks} thread blocks: a rank has {most}, and needs them",)


def program_name(problem: Problem) -> str:
    """Return a name that every runtime takes: 63 plain characters at most."""
    words = f"{problem.collective.kind} {problem.topology.name}"
    plain = "".join(each if each.isascii() and each.isalnum() else "_" for each in words)
    return plain[:63]


def lost_notes(problem: Problem, hops: paths.Hops) -> tuple[str, ...]:
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
