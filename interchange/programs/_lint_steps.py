"""What an executor will not take of the steps of a thread block."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from interchange.programs._lint_limits import (
    AWAITED_BLOCK,
    COUNT,
    FUSION,
    OFFSET,
    Complaint,
    Limits,
)
from interchange.programs.program import (
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


def check_blocks(program: Program, rank: int, limits: Limits) -> Iterator[Complaint]:
    """Yield what is wrong with the thread blocks of a rank."""
    blocks = program.ranks[rank].blocks
    awaited = {step.after for block in blocks for step in block.steps}
    for number, block in enumerate(blocks):
        yield from _block(program, (rank, number), block, limits=limits)
        ends = {turn for turn in range(len(block.steps)) if (number, turn) in awaited}
        yield from _fusions((rank, number), block, ends)


def _block(
    program: Program, place: tuple[int, int], block: ThreadBlock, *, limits: Limits
) -> Iterator[Complaint]:
    rank, number = place
    where = f"rank {rank}, thread block {number}"
    if len(block.steps) > limits.steps:
        text = (
            f"{where} has {len(block.steps)} steps and {limits.title} takes {limits.steps}; use "
            "more channels or fewer chunks"
        )
        yield Complaint(text, rank=rank, block=number)
    if not 0 <= block.channel < limits.channels:
        text = (
            f"{where} is on channel {block.channel} and {limits.title} has channels 0 to "
            f"{limits.channels - 1}; use fewer"
        )
        yield Complaint(text, rank=rank, block=number)
    for peer, verb in ((block.send, "sends to"), (block.receive, "receives from")):
        if peer == rank or not -1 <= peer < len(program.ranks):
            other = "itself" if peer == rank else f"rank {peer}, which is not there"
            yield Complaint(f"{where} {verb} {other}; name another rank", rank=rank, block=number)
    for turn, step in enumerate(block.steps):
        for told in (*_step(program, place, block, step=step), *_waits(program, place, turn)):
            text = f"{where}, step {turn} ({step.operation}) {told}"
            yield Complaint(text, rank=rank, block=number, step=turn)
    yield from _nops(place, block)


def _step(
    program: Program, place: tuple[int, int], block: ThreadBlock, *, step: Step
) -> Iterator[str]:
    """Yield what is wrong with one step by itself."""
    if step.operation in SENDS and block.send == -1:
        yield "sends, and its thread block has nobody to send to; name a rank"
    if step.operation in RECEIVES and block.receive == -1:
        yield "receives, and its thread block has nobody to receive from; name a rank"
    if step.operation != "nop" and not 1 <= step.count <= COUNT:
        yield f"moves {step.count} chunks; executors take 1 to {COUNT}; split it"
    for slot, used, name in (
        (step.src, step.operation in READS, "source"),
        (step.dst, step.operation in WRITES, "destination"),
    ):
        if used:
            yield from _slot(program.ranks[place[0]], slot, name=name, count=step.count)


def _slot(rank: RankProgram, slot: Slot | None, *, name: str, count: int) -> Iterator[str]:
    if slot is None:
        yield f"has no {name}; give one"
        return
    size = {"input": rank.input, "output": rank.output, "scratch": rank.scratch}[slot.buffer]
    if slot.index < 0 or slot.index + count > size:
        yield (
            f"uses the chunks {slot.index} to {slot.index + count - 1} of the {slot.buffer} and "
            f"there are {size}; stay below"
        )
    if slot.index > OFFSET:
        yield f"uses chunk {slot.index} and executors count up to {OFFSET}; use fewer chunks"


def _waits(program: Program, place: tuple[int, int], turn: int) -> Iterator[str]:
    """Yield what is wrong with what a step waits for."""
    rank, number = place
    blocks = program.ranks[rank].blocks
    after = blocks[number].steps[turn].after
    if after is None:
        return
    block, step = after
    what = f"waits for step {step} of thread block {block}"
    if not (0 <= block < len(blocks) and 0 <= step < len(blocks[block].steps)):
        yield f"{what}, which is not there; name one that is"
    elif block == number and step >= turn:
        yield f"{what}, its own and no earlier; name an earlier one"
    elif blocks[block].steps[step].operation == "nop":
        yield f"{what}, a nop, which executors never call done; name the step after it"
    elif block > AWAITED_BLOCK:
        yield f"{what}, and executors know those up to {AWAITED_BLOCK} there; use fewer"


def _nops(place: tuple[int, int], block: ThreadBlock) -> Iterator[Complaint]:
    """Yield where a chain of nops is none: executors give its waits to the step after it."""
    rank, number = place
    waiting = False
    for turn, step in enumerate(block.steps):
        where = f"rank {rank}, thread block {number}, step {turn}"
        if step.operation == "nop":
            waiting = True
            if step.after is None:
                text = f"{where} is a nop that waits for nothing, which executors do not count"
                yield Complaint(f"{text}; take it out", rank=rank, block=number, step=turn)
            continue
        if waiting and step.after is None:
            text = (
                f"{where} follows a nop and waits for nothing itself, which executors refuse; let "
                "it wait for what the last nop waits for"
            )
            yield Complaint(text, rank=rank, block=number, step=turn)
        waiting = False
    if waiting:
        text = f"rank {rank}, thread block {number} ends with a nop, which executors leave out"
        yield Complaint(f"{text}; take it out", severe=False, rank=rank, block=number)


def _fusions(
    place: tuple[int, int], block: ThreadBlock, ends: Collection[int]
) -> Iterator[Complaint]:
    """Yield where reductions that executors do at once are too many or not alike.

    As the parsers do it: a reduction into the same place, from the same buffer and waiting for
    nothing, joins the one before it, unless a step waits for that one (it is in `ends`).
    """
    rank, number = place
    before: Step | None = None
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
            yield Complaint(text, rank=rank, block=number, step=turn)
        if joins and run == FUSION + 1:
            text = f"{where} is the {run}th in a row into one chunk and executors take {FUSION}"
            yield Complaint(text, severe=False, rank=rank, block=number, step=turn)
        before = None if turn in ends else step


def _joins(before: Step | None, step: Step) -> bool:
    """Say whether a reduction joins the step before it."""
    if before is None or before.operation != "re" or step.operation != "re":
        return False
    same = before.src and step.src and before.src.buffer == step.src.buffer
    return bool(same) and before.dst == step.dst and step.after is None
