"""What an executor will not take of a program: limits and rules, each broken one in a sentence.

`Limits` are those of the public executors: microsoft/msccl (src/include/msccl.h and the parser
in src/graph/topo.cc), Azure/msccl-executor-nccl and ROCm/rccl (src/include/msccl/msccl_struct.h,
src/misc/msccl/msccl_parser.cc). A parser keeps the elements of its own rank alone: the <algo>,
every <gpu>, and the thread blocks and steps of its own <gpu>; so they are counted here.
`check_blocks` looks at the steps of thread blocks.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from ccl.collective import CollectiveKind
from ccl.errors import ProblemError
from interchange import programs as ir
from interchange.programs.checks import Finding, mismatched, misplaced, promise

Executor = Literal["msccl", "azure", "rccl"]
"""microsoft/msccl, Azure/msccl-executor-nccl and ROCm/rccl."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an executor takes at most.

    Parameters
    ----------
    title
        For people.
    steps
        Of a thread block.
    blocks
        Thread blocks of a rank.
    channels
        Of a program.
    collectives
        Which it knows.
    """

    title: str
    steps: int
    blocks: int
    channels: int
    collectives: frozenset[CollectiveKind]


BLOCKS_PER_CHANNEL = 32
"""Thread blocks of a rank that send over one channel, and as many that receive."""

COUNT = 71
"""Chunks of a step; the parsers refuse 72 and more."""

NAME = 63
"""Characters of a name."""

FUSION = 16
"""Reductions in a row into one chunk that are done at once."""

ELEMENTS = 4095
"""Elements that a parser keeps; it stops when its 4,096 places are full."""

CHILDREN = 1024
"""Children of one element; a parser does not check that there is a place for another."""

OFFSET = 2**15 - 1
"""Highest place of a chunk in a buffer; offsets are kept in 16 bits."""

AWAITED_BLOCK = 127
"""Highest thread block that a step can wait for; its number is kept in 8 bits."""

_COMMON: frozenset[CollectiveKind] = frozenset(
    {"all-gather", "reduce-scatter", "all-reduce", "all-to-all", "broadcast", "reduce"}
)

_ROOTED: frozenset[CollectiveKind] = frozenset({"gather", "scatter"})

EXECUTORS: dict[Executor, Limits] = {
    "msccl": Limits("microsoft/msccl", 256, 216, 32, _COMMON | {"custom"}),
    "azure": Limits("Azure/msccl-executor-nccl", 64, 1024, 32, _COMMON | _ROOTED),
    "rccl": Limits("ROCm/rccl", 64, 64, 128, _COMMON | _ROOTED),
}
"""By executor the most steps, thread blocks and channels, in this order, and its collectives."""


_limit = partial(Finding, "limit")


def check_blocks(program: ir.Program, rank: int, limits: Limits) -> Iterator[Finding]:
    """Yield what is wrong with the thread blocks of a rank."""
    blocks = program.ranks[rank].blocks
    awaited = {step.after for block in blocks for step in block.steps}
    for number, block in enumerate(blocks):
        yield from _block(program, (rank, number), block, limits=limits)
        ends = {turn for turn in range(len(block.steps)) if (number, turn) in awaited}
        yield from _fusions((rank, number), block, ends)


def _block(
    program: ir.Program, place: tuple[int, int], block: ir.ThreadBlock, *, limits: Limits
) -> Iterator[Finding]:
    rank, number = place
    where = f"rank {rank}, thread block {number}"
    if len(block.steps) > limits.steps:
        text = (
            f"{where} has {len(block.steps)} steps and {limits.title} takes {limits.steps}; use "
            "more channels or fewer chunks"
        )
        yield _limit(text, rank=rank, block=number)
    if not 0 <= block.channel < limits.channels:
        text = (
            f"{where} is on channel {block.channel} and {limits.title} has channels 0 to "
            f"{limits.channels - 1}; use fewer"
        )
        yield _limit(text, rank=rank, block=number)
    for turn, step in enumerate(block.steps):
        for told in (*_step(step), *_waits(program, place, turn)):
            text = f"{where}, step {turn} ({step.operation}) {told}"
            yield _limit(text, rank=rank, block=number, step=turn)
    yield from _nops(place, block)


def _step(step: ir.Step) -> Iterator[str]:
    """Yield what is too much of one step by itself."""
    if step.operation != "nop" and step.count > COUNT:
        yield f"moves {step.count} chunks; executors take 1 to {COUNT}; split it"
    for slot, used in ((step.src, ir.READS), (step.dst, ir.WRITES)):
        if slot is not None and step.operation in used and slot.index > OFFSET:
            yield f"uses chunk {slot.index} and executors count up to {OFFSET}; use fewer chunks"


def _waits(program: ir.Program, place: tuple[int, int], turn: int) -> Iterator[str]:
    """Yield what is wrong with what a step waits for."""
    rank, number = place
    blocks = program.ranks[rank].blocks
    after = blocks[number].steps[turn].after
    if after is None:
        return
    block, step = after
    what = f"waits for step {step} of thread block {block}"
    if not (0 <= block < len(blocks) and 0 <= step < len(blocks[block].steps)):
        return  # `checks` says so
    if block == number and step >= turn:
        yield f"{what}, its own and no earlier; name an earlier one"
    elif blocks[block].steps[step].operation == "nop":
        yield f"{what}, a nop, which executors never call done; name the step after it"
    elif block > AWAITED_BLOCK:
        yield f"{what}, and executors know those up to {AWAITED_BLOCK} there; use fewer"


def _nops(place: tuple[int, int], block: ir.ThreadBlock) -> Iterator[Finding]:
    """Yield where a chain of nops is none: executors give its waits to the step after it."""
    rank, number = place
    waiting = False
    for turn, step in enumerate(block.steps):
        where = f"rank {rank}, thread block {number}, step {turn}"
        if step.operation == "nop":
            waiting = True
            if step.after is None:
                text = f"{where} is a nop that waits for nothing, which executors do not count"
                yield _limit(f"{text}; take it out", rank=rank, block=number, step=turn)
            continue
        if waiting and step.after is None:
            text = (
                f"{where} follows a nop and waits for nothing itself, which executors refuse; let "
                "it wait for what the last nop waits for"
            )
            yield _limit(text, rank=rank, block=number, step=turn)
        waiting = False
    if waiting:
        text = f"rank {rank}, thread block {number} ends with a nop, which executors leave out"
        yield _limit(f"{text}; take it out", severe=False, rank=rank, block=number)


def _fusions(
    place: tuple[int, int], block: ir.ThreadBlock, ends: Collection[int]
) -> Iterator[Finding]:
    """Yield where reductions that executors do at once are too many or not alike.

    As the parsers do it: a reduction into the same place, from the same buffer and waiting for
    nothing, joins the one before it, unless a step waits for that one (it is in `ends`).
    """
    rank, number = place
    before: ir.Step | None = None
    run = 0
    for turn, step in enumerate(block.steps):
        if step.operation == "nop":
            continue
        joins = _joins(before, step)
        run = run + 1 if joins else 1
        where = f"rank {rank}, thread block {number}, step {turn} (re)"
        if joins and before is not None and before.count != step.count:
            text = (
                f"{where} adds {step.count} chunks where the step before it adds {before.count}, "
                "and executors do both at once with one count; let it wait for something"
            )
            yield _limit(text, rank=rank, block=number, step=turn)
        if joins and run == FUSION + 1:
            text = f"{where} is the {run}th in a row into one chunk and executors take {FUSION}"
            yield _limit(text, severe=False, rank=rank, block=number, step=turn)
        before = None if turn in ends else step


def _joins(before: ir.Step | None, step: ir.Step) -> bool:
    """Say whether a reduction joins the step before it."""
    if before is None or before.operation != "re" or step.operation != "re":
        return False
    same = before.src and step.src and before.src.buffer == step.src.buffer
    return bool(same) and before.dst == step.dst and step.after is None


__all__ = ["EXECUTORS", "Executor", "Limits", "lint"]

MOST_ALIKE = 3
"""Findings of one kind that are listed one by one; of the others there is the number."""

_PLAIN = re.compile(r"[A-Za-z0-9_.,:+ ()-]*")
"""Names that survive parsers which know nothing of escapes."""


def lint(program: ir.Program, executor: Executor = "msccl") -> tuple[Finding, ...]:
    """Return what an executor would refuse or do wrong, errors first.

    Raises
    ------
    ProblemError
        If no executor is called so.
    """
    if executor not in EXECUTORS:
        raise ProblemError(f"no executor is called {executor!r}; there are {', '.join(EXECUTORS)}")
    limits = EXECUTORS[executor]
    found = [
        list(_about(program, executor, limits)),
        list(_chunks(program, executor)),
        *(list(_rank(program, rank, limits)) for rank in range(len(program.ranks))),
        *(list(check_blocks(program, rank, limits)) for rank in range(len(program.ranks))),
        [*misplaced(program), *mismatched(program)],
    ]
    flat = [complaint for some in found for complaint in some]
    return tuple(_told(sorted(flat, key=lambda each: not each.severe)))


def _told(complaints: list[Finding]) -> Iterator[Finding]:
    """Yield the first few of those that differ in numbers alone, and how many more there are."""
    kinds = [re.sub(r"\d+", "#", each.sentence) for each in complaints]
    many = Counter(kinds)
    seen: Counter[str] = Counter()
    for each, kind in zip(complaints, kinds, strict=True):
        seen[kind] += 1
        if seen[kind] <= MOST_ALIKE:
            yield each
        elif seen[kind] == MOST_ALIKE + 1:
            more = many[kind] - seen[kind]
            yield (
                replace(each, sentence=f"{each.sentence} (and {more} more alike)") if more else each
            )


def _about(program: ir.Program, executor: Executor, limits: Limits) -> Iterator[Finding]:
    """Yield what is wrong with what a program says of itself."""
    if len(program.name) > NAME:
        yield _limit(f"the name has {len(program.name)} characters and {NAME} fit; shorten it")
    if not _PLAIN.fullmatch(program.name):
        text = "the name has quotes, brackets or other signs that the parsers misread"
        yield _limit(f"{text}; use letters, digits and - . _")
    if program.channels > limits.channels:
        text = f"the program has {program.channels} channels and {limits.title} {limits.channels}"
        yield _limit(f"{text}; use fewer")
    if program.collective not in limits.collectives:
        known = ", ".join(sorted(limits.collectives))
        yield _limit(f"{limits.title} knows no {program.collective}; it knows {known}")
    if not 0 <= program.smallest <= program.largest:
        text = f"it is for {program.smallest} to {program.largest} bytes, which is no size"
        yield _limit(f"{text}; give the smallest first")
    if program.largest == 0 and executor == "msccl":
        text = "it is for 0 bytes at most, and microsoft/msccl chooses it never"
        yield _limit(f"{text}; give the largest size", severe=False)
    yield from _places(program, executor)


def _places(program: ir.Program, executor: Executor) -> Iterator[Finding]:
    if not program.in_place and not program.out_of_place:
        yield _limit("it is neither for calls in place nor out of place; choose one or both")
    if program.in_place and program.collective == "all-to-all":
        text = "an all-to-all has no call in place"
        yield _limit(f"{text}; make it out of place", severe=not program.out_of_place)
    if program.in_place and program.out_of_place and executor == "msccl":
        text = "microsoft/msccl reads inplace alone and may leave calls out of place to others"
        yield _limit(f"{text}; write a second file that is not in place", severe=False)


def _chunks(program: ir.Program, executor: Executor) -> Iterator[Finding]:
    """Yield where buffers do not have the sizes that executors reckon with."""
    ranks, loop = len(program.ranks), program.chunks_per_loop
    if loop < 1:
        yield _limit(f"it has {loop} chunks per loop; give 1 or more")
        return
    promised = promise(program)
    if isinstance(promised, Finding):
        yield promised
        return
    if program.collective == "custom":
        return
    if program.collective in ("gather", "scatter") and executor != "msccl":
        text = (
            f"of a {program.collective} the executor takes a chunk as 1 of {loop} of one rank's "
            f"part, {ranks} times too small"
        )
        yield _limit(f"{text}; use another collective")
    for number, rank in enumerate(program.ranks):
        for name, size, right in (
            ("i_chunks", rank.input, promised.input),
            ("o_chunks", rank.output, promised.output),
        ):
            if size not in (0, right):
                text = (
                    f"rank {number} has {name} {size} and {loop} chunks per loop of a "
                    f"{program.collective} make {right}"
                )
                severe = executor == "msccl"
                yield _limit(f"{text}; give {right} or 0", severe=severe, rank=number)


def _rank(program: ir.Program, number: int, limits: Limits) -> Iterator[Finding]:
    """Yield where a rank has too much."""
    rank = program.ranks[number]
    if min(rank.input, rank.output, rank.scratch) < 0:
        yield _limit(f"rank {number} has a buffer of less than 0 chunks", rank=number)
    if len(rank.blocks) > limits.blocks:
        text = (
            f"rank {number} has {len(rank.blocks)} thread blocks and {limits.title} takes "
            f"{limits.blocks}; use fewer channels"
        )
        yield _limit(text, rank=number)
    yield from _per_channel(number, rank)
    steps = [len(block.steps) for block in rank.blocks]
    elements = 1 + len(program.ranks) + len(steps) + sum(steps)
    if elements > ELEMENTS:
        text = (
            f"rank {number} has {elements} elements of XML to read and parsers keep {ELEMENTS}; "
            "use fewer chunks or pieces"
        )
        yield _limit(text, rank=number)
    longest = max((len(program.ranks), len(steps), *steps))
    if longest > CHILDREN:
        text = f"rank {number} has {longest} elements in one and parsers keep {CHILDREN}"
        yield _limit(f"{text}; use fewer", rank=number)


def _per_channel(number: int, rank: ir.RankProgram) -> Iterator[Finding]:
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
                yield _limit(text, rank=number)
