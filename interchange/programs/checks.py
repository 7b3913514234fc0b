"""What is wrong with a program before anything runs: its sizes, places, waits and connections.

What is wrong is said in a sentence and with the step to point at. Sizes are wrong where they are
not those that a collective promises.
With n ranks and L chunks a loop, in chunks (the layout of NCCL's collectives):

==============  =======  =======  ===============================================
kind            input    output   chunk of rank r's output
==============  =======  =======  ===============================================
all-gather      k = L/n  L        s k + i: chunk i of rank s
reduce-scatter  L        k = L/n  i: sum of all ranks' chunks r k + i
all-reduce      L        L        i: sum of all ranks' chunks i
all-to-all      L        L        s k + i: chunk r k + i of rank s, k = L/n
broadcast       L        L        i: the root's chunk i; only the root has an input
reduce          L        L        of the root i: sum of all ranks' chunks i
gather          k = L/n  L        of the root s k + i: chunk i of rank s
scatter         L        k = L/n  i: the root's chunk r k + i; only the root has an input
==============  =======  =======  ===============================================
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Literal

from ccl.collective import CollectiveKind
from interchange import programs as ir
from interchange.programs.one_sided import PutProgram

BeforeRunning = Literal["call", "size", "slot", "after", "connection", "unmatched", "count"]
WhileRunning = Literal["deadlock", "overlap", "hazard", "unwritten", "result", "again"]
Remark = Literal["input", "room", "custom", "limit", "cut"]
FindingKind = Literal[BeforeRunning, WhileRunning, Remark]


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
    severe
        Whether an executor refuses it or goes wrong, rather than perhaps.
    """

    kind: FindingKind
    sentence: str
    rank: int | None = None
    block: int | None = None
    step: int | None = None
    severe: bool = True

    def prefixed(self, words: str) -> Finding:
        """Return it with `words` before its sentence."""
        return replace(self, sentence=words + self.sentence)


def place(rank: int, block: int, step: int) -> str:
    """Return how a step is called in sentences."""
    return f"rank {rank}, thread block {block}, step {step}"


SHORT_INPUT = frozenset({"all-gather", "gather"})
SHORT_OUTPUT = frozenset({"reduce-scatter", "scatter"})
SHARDED = SHORT_INPUT | SHORT_OUTPUT | {"all-to-all"}
SUMS = frozenset({"reduce-scatter", "all-reduce", "reduce"})
INPUT_OF_ROOT = frozenset({"broadcast", "scatter"})
OUTPUT_OF_ROOT = frozenset({"reduce", "gather"})


@dataclass(frozen=True, slots=True)
class Promise:
    """What a collective gives and takes, in chunks a rank.

    Parameters
    ----------
    kind
        Of the collective.
    ranks, root
        How many there are, and which is the root.
    input, output
        Chunks of a rank's buffers, where it has them.
    """

    kind: CollectiveKind
    ranks: int
    root: int
    input: int
    output: int

    @property
    def shard(self) -> int:
        """Chunks of one rank's part."""
        return max(self.input, self.output) // self.ranks

    def has_input(self, rank: int) -> bool:
        """Whether the rank's input holds anything."""
        return self.kind not in INPUT_OF_ROOT or rank == self.root

    def has_output(self, rank: int) -> bool:
        """Whether the rank's output must hold anything at the end."""
        return self.kind not in OUTPUT_OF_ROOT or rank == self.root

    def sources(self, rank: int, chunk: int) -> list[tuple[int, int]]:
        """Return the rank and chunk of each input that a chunk of an output is the sum of."""
        everyone = range(self.ranks)
        if self.kind in SUMS:
            own = rank * self.shard + chunk if self.kind == "reduce-scatter" else chunk
            return [(each, own) for each in everyone]
        if self.kind == "broadcast":
            return [(self.root, chunk)]
        if self.kind == "scatter":
            return [(self.root, rank * self.shard + chunk)]
        src, own = divmod(chunk, self.shard)
        return [(src, rank * self.shard + own if self.kind == "all-to-all" else own)]


def promise(program: ir.Program | PutProgram) -> Promise | Finding:
    """Return what a program must keep, or why there is no telling; None of a custom collective."""
    ranks, whole, kind = len(program.ranks), program.chunks_per_loop, program.collective
    if not 0 <= program.root < ranks:
        words = f"the root is rank {program.root}; ranks go from 0 to {ranks - 1}"
        return Finding("size", words)
    if kind == "custom":
        return Promise(kind, ranks, program.root, program.longest, program.longest)
    if whole < 1 or (kind in SHARDED and whole % ranks):
        words = f"{kind} over {ranks} ranks has {whole} chunks a loop; give a multiple of {ranks}"
        return Finding("size", words)
    shard = whole // ranks
    given = shard if kind in SHORT_INPUT else whole
    taken = shard if kind in SHORT_OUTPUT else whole
    return Promise(kind, ranks, program.root, given, taken)


def wrong_sizes(program: ir.Program | PutProgram, promised: Promise) -> Iterator[Finding]:
    """Yield the ranks whose buffers are not as long as the collective has them.

    A buffer may have no chunk where the collective gives a rank none, and in place, where it is
    a part of the other one.
    """
    if program.collective == "custom":
        return
    for rank, each in enumerate(program.ranks):
        spare_input = not promised.has_input(rank) or not program.out_of_place
        spare_output = not promised.has_output(rank) or not program.out_of_place
        spare_input &= promised.input <= promised.output or not promised.has_input(rank)
        spare_output &= promised.output <= promised.input or not promised.has_output(rank)
        for buffer, has, needs, spare in (
            ("input", each.input, promised.input, spare_input),
            ("output", each.output, promised.output, spare_output),
        ):
            if has != needs and not (spare and has == 0):
                words = (
                    f"rank {rank} has {has} chunks of {buffer}; {promised.kind} of "
                    f"{program.chunks_per_loop} chunks a loop over {promised.ranks} ranks "
                    f"has {needs}"
                )
                yield Finding("size", words, rank)


Key = tuple[int, int, int]
"""Sending rank, receiving rank, channel."""
Where = tuple[int, int, int]
"""Rank, thread block, step."""


@dataclass
class Connection:
    """Who sends and who receives, message by message, with the chunks of each."""

    sends: list[tuple[Where, int]] = field(default_factory=list)
    receives: list[tuple[Where, int]] = field(default_factory=list)


def connections(program: ir.Program) -> dict[Key, Connection]:
    """Return the connections that steps use; steps of one end are in order within a block."""
    found: dict[Key, Connection] = defaultdict(Connection)
    for rank, number, block in program.blocks():
        for at, step in enumerate(block.steps):
            end = ((rank, number, at), step.count)
            if step.operation in ir.SENDS:
                found[rank, block.send, block.channel].sends.append(end)
            if step.operation in ir.RECEIVES:
                found[block.receive, rank, block.channel].receives.append(end)
    return found


def misplaced(program: ir.Program) -> Iterator[Finding]:
    """Yield what is wrong with single thread blocks and steps."""
    for rank, number, block in program.blocks():
        yield from _peers(program, (rank, number), block)
        for at, step in enumerate(block.steps):
            where = (rank, number, at)
            yield from _slots(program.ranks[rank], where, step)
            yield from _after(program.ranks[rank], where, step)


def mismatched(program: ir.Program) -> Iterator[Finding]:
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


def _peers(program: ir.Program, at: tuple[int, int], block: ir.ThreadBlock) -> Iterator[Finding]:
    ranks = len(program.ranks)
    for peer, does, used in (
        (block.send, "sends to", ir.SENDS),
        (block.receive, "receives from", ir.RECEIVES),
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


def _slots(program: ir.RankProgram, where: Where, step: ir.Step) -> Iterator[Finding]:
    if step.operation not in ir.OPERATIONS:
        words = f"{place(*where)} is {step.operation!r}; there are {', '.join(ir.OPERATIONS)}"
        yield Finding("slot", words, *where)
        return
    if step.count < 1 and step.operation != "nop":
        words = f"{place(*where)} is {step.operation} of {step.count} chunks; give 1 or more"
        yield Finding("slot", words, *where)
        return
    for slot, what, used in ((step.src, "source", ir.READS), (step.dst, "destination", ir.WRITES)):
        if step.operation not in used:
            continue
        if slot is None:
            words = f"{place(*where)} is {step.operation} and has no {what}"
            yield Finding("slot", words, *where)
        else:
            yield from _in_range(program, where, slot, count=step.count)


def _in_range(
    program: ir.RankProgram, where: Where, slot: ir.Slot, *, count: int
) -> Iterator[Finding]:
    size = {"input": program.input, "output": program.output, "scratch": program.scratch}
    has = size[slot.buffer]
    if slot.index < 0 or slot.index + count > has:
        last = f" to {slot.index + count - 1}" if count > 1 else ""
        words = f"{place(*where)} uses {slot.buffer} {slot.index}{last}"
        yield Finding("slot", f"{words}; rank {where[0]} has {_chunks(has)} of it", *where)


def _after(program: ir.RankProgram, where: Where, step: ir.Step) -> Iterator[Finding]:
    if step.after is None:
        return
    block, number = step.after
    there = 0 <= block < len(program.blocks) and 0 <= number < len(program.blocks[block].steps)
    if not there:
        words = f"{place(*where)} waits for thread block {block}, step {number}, which is not there"
        yield Finding("after", words, *where)


def _chunks(count: int) -> str:
    return f"{count} chunk" if count == 1 else f"{count} chunks"
