"""What an executor will not take of a program: limits and rules, each broken one in a sentence.

The limits are those of the public executors: microsoft/msccl (src/include/msccl.h and the parser
in src/graph/topo.cc), Azure/msccl-executor-nccl and ROCm/rccl (src/include/msccl/msccl_struct.h,
src/misc/msccl/msccl_parser.cc). A parser keeps the elements of its own rank alone: the <algo>,
every <gpu>, and the thread blocks and steps of its own <gpu>; so they are counted here.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from ccl.collective import CollectiveKind
from ccl.errors import ProblemError
from interchange.programs._lint_limits import (
    BLOCKS_PER_CHANNEL,
    CHILDREN,
    ELEMENTS,
    EXECUTORS,
    NAME,
    Complaint,
    Executor,
    Limits,
)
from interchange.programs._lint_steps import check_blocks
from interchange.programs.program import RECEIVES, SENDS, Program, RankProgram, ThreadBlock

__all__ = ["EXECUTORS", "Complaint", "Executor", "Limits", "lint", "shards"]

MOST_ALIKE = 3
"""Complaints of one kind that are told one by one; of the others there is the number."""

_PLAIN = re.compile(r"[A-Za-z0-9_.,:+ ()-]*")
"""Names that survive parsers which know nothing of escapes."""

_SHARDED: dict[CollectiveKind, tuple[bool, bool]] = {
    "all-gather": (False, True),
    "gather": (False, True),
    "reduce-scatter": (True, False),
    "scatter": (True, False),
    "all-to-all": (True, True),
}
"""Whether the input and the output have a shard for each rank."""


def lint(program: Program, executor: Executor = "msccl") -> tuple[Complaint, ...]:
    """Return what an executor would refuse or do wrong, errors first.

    Raises
    ------
    ProblemError
        If no executor is called so.
    """
    if executor not in EXECUTORS:
        msg = f"no executor is called {executor!r}; there are {', '.join(EXECUTORS)}"
        raise ProblemError(msg)
    limits = EXECUTORS[executor]
    found = [
        list(_about(program, executor, limits)),
        list(_chunks(program, executor)),
        *(list(_rank(program, rank, limits)) for rank in range(len(program.ranks))),
        *(list(check_blocks(program, rank, limits)) for rank in range(len(program.ranks))),
        list(_pairs(program)),
    ]
    flat = [complaint for some in found for complaint in some]
    return tuple(_told(sorted(flat, key=lambda each: not each.severe)))


def shards(kind: CollectiveKind, ranks: int) -> tuple[int, int] | None:
    """Return how many shards the input and the output of a collective have; 1 is no shards.

    None for a custom collective, whose buffers are its own matter.
    """
    if kind == "custom":
        return None
    first, second = _SHARDED.get(kind, (False, False))
    return ranks if first else 1, ranks if second else 1


def _told(complaints: list[Complaint]) -> Iterator[Complaint]:
    """Yield the first few of those that differ in numbers alone, and how many more there are."""
    kinds = [re.sub(r"\d+", "#", each.text) for each in complaints]
    many = Counter(kinds)
    seen: Counter[str] = Counter()
    for each, kind in zip(complaints, kinds, strict=True):
        seen[kind] += 1
        if seen[kind] <= MOST_ALIKE:
            yield each
        elif seen[kind] == MOST_ALIKE + 1:
            more = many[kind] - seen[kind]
            yield replace(each, text=f"{each.text} (and {more} more alike)") if more else each


def _about(program: Program, executor: Executor, limits: Limits) -> Iterator[Complaint]:
    """Yield what is wrong with what a program says of itself."""
    if len(program.name) > NAME:
        yield Complaint(f"the name has {len(program.name)} characters and {NAME} fit; shorten it")
    if not _PLAIN.fullmatch(program.name):
        text = "the name has quotes, brackets or other signs that the parsers misread"
        yield Complaint(f"{text}; use letters, digits and - . _")
    if program.channels > limits.channels:
        text = f"the program has {program.channels} channels and {limits.title} {limits.channels}"
        yield Complaint(f"{text}; use fewer")
    if program.collective not in limits.collectives:
        known = ", ".join(sorted(limits.collectives))
        yield Complaint(f"{limits.title} knows no {program.collective}; it knows {known}")
    if not 0 <= program.smallest <= program.largest:
        text = f"it is for {program.smallest} to {program.largest} bytes, which is no size"
        yield Complaint(f"{text}; give the smallest first")
    if program.largest == 0 and executor == "msccl":
        text = "it is for 0 bytes at most, and microsoft/msccl chooses it never"
        yield Complaint(f"{text}; give the largest size", severe=False)
    yield from _places(program, executor)


def _places(program: Program, executor: Executor) -> Iterator[Complaint]:
    if not program.in_place and not program.out_of_place:
        yield Complaint("it is neither for calls in place nor out of place; choose one or both")
    if program.in_place and program.collective == "all-to-all":
        text = "an all-to-all has no call in place"
        yield Complaint(f"{text}; make it out of place", severe=not program.out_of_place)
    if program.in_place and program.out_of_place and executor == "msccl":
        text = "microsoft/msccl reads inplace alone and may leave calls out of place to others"
        yield Complaint(f"{text}; write a second file that is not in place", severe=False)


def _chunks(program: Program, executor: Executor) -> Iterator[Complaint]:
    """Yield where buffers do not have the sizes that executors reckon with."""
    ranks, loop = len(program.ranks), program.chunks_per_loop
    if loop < 1:
        yield Complaint(f"it has {loop} chunks per loop; give 1 or more")
        return
    parts = shards(program.collective, ranks)
    if parts is None:
        return
    if loop % max(parts):
        text = f"{loop} chunks per loop are no whole number for each of {ranks} ranks"
        yield Complaint(f"{text}; give a multiple of {ranks}")
        return
    if program.collective in ("gather", "scatter") and executor != "msccl":
        text = (
            f"of a {program.collective} the executor takes a chunk as 1 of {loop} of one rank's "
            f"part, {ranks} times too small"
        )
        yield Complaint(f"{text}; use another collective")
    most = max(parts)
    for number, rank in enumerate(program.ranks):
        for name, size, part in (
            ("i_chunks", rank.input, parts[0]),
            ("o_chunks", rank.output, parts[1]),
        ):
            right = loop * part // most
            if size not in (0, right):
                text = (
                    f"rank {number} has {name} {size} and {loop} chunks per loop of a "
                    f"{program.collective} make {right}"
                )
                yield Complaint(f"{text}; give {right} or 0", executor == "msccl", rank=number)


def _rank(program: Program, number: int, limits: Limits) -> Iterator[Complaint]:
    """Yield where a rank has too much."""
    rank = program.ranks[number]
    if min(rank.input, rank.output, rank.scratch) < 0:
        yield Complaint(f"rank {number} has a buffer of less than 0 chunks", rank=number)
    if len(rank.blocks) > limits.blocks:
        text = (
            f"rank {number} has {len(rank.blocks)} thread blocks and {limits.title} takes "
            f"{limits.blocks}; use fewer channels"
        )
        yield Complaint(text, rank=number)
    yield from _per_channel(number, rank)
    steps = [len(block.steps) for block in rank.blocks]
    elements = 1 + len(program.ranks) + len(steps) + sum(steps)
    if elements > ELEMENTS:
        text = (
            f"rank {number} has {elements} elements of XML to read and parsers keep {ELEMENTS}; "
            "use fewer chunks"
        )
        yield Complaint(text, rank=number)
    longest = max((len(program.ranks), len(steps), *steps))
    if longest > CHILDREN:
        text = f"rank {number} has {longest} elements in one and parsers keep {CHILDREN}"
        yield Complaint(f"{text}; use fewer", rank=number)


def _per_channel(number: int, rank: RankProgram) -> Iterator[Complaint]:
    for verb, ends in (
        ("send", [block.channel for block in rank.blocks if block.send >= 0]),
        ("receive", [block.channel for block in rank.blocks if block.receive >= 0]),
    ):
        for channel, many in sorted(Counter(ends).items()):
            if many > BLOCKS_PER_CHANNEL:
                text = (
                    f"rank {number} has {many} thread blocks that {verb} on channel {channel} and "
                    f"executors take {BLOCKS_PER_CHANNEL}; use more channels"
                )
                yield Complaint(text, rank=number)


def _pairs(program: Program) -> Iterator[Complaint]:
    """Yield where sends and receives of a connection do not match."""
    ends: defaultdict[tuple[int, int, int], tuple[list[list[int]], list[list[int]]]]
    ends = defaultdict(lambda: ([], []))
    for rank, _, block in program.blocks():
        sent, received = _counts(block)
        if sent:
            ends[rank, block.send, block.channel][0].append(sent)
        if received:
            ends[block.receive, rank, block.channel][1].append(received)
    for (src, dst, channel), (senders, receivers) in sorted(ends.items()):
        where = f"from rank {src} to rank {dst} on channel {channel}"
        for verb, blocks in (("send", senders), ("receive", receivers)):
            if len(blocks) > 1:
                text = f"{where} {len(blocks)} thread blocks {verb}; make it one, or use channels"
                yield Complaint(text, rank=src if verb == "send" else dst)
        yield from _matched(where, list(chain(*senders)), list(chain(*receivers)))


def _counts(block: ThreadBlock) -> tuple[list[int], list[int]]:
    """Return the chunks of all that a thread block sends, and of all that it receives."""
    sent = [step.count for step in block.steps if step.operation in SENDS]
    received = [step.count for step in block.steps if step.operation in RECEIVES]
    return sent, received


def _matched(where: str, sent: list[int], received: list[int]) -> Iterator[Complaint]:
    if len(sent) != len(received):
        text = f"{where} there are {len(sent)} sends and {len(received)} receives"
        yield Complaint(f"{text}; each send needs its receive")
    for turn, (one, other) in enumerate(zip(sent, received, strict=False)):
        if one != other:
            text = f"{where} send {turn} has {one} chunks and is received as {other}"
            yield Complaint(f"{text}; make them equal")
            return
