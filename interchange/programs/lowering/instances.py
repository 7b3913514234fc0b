"""A program several times side by side, so that more thread blocks share the work.

Every chunk of the program is cut in as many parts as there are instances, and each instance moves
one part on channels of its own. A run of n chunks from i on becomes, of instance k among m, the
run of n parts from i m + k n on: the parts of a run lie one after the other, so that a run stays
one. The same chunks are always moved in the same runs, or else the parts would not meet.
"""

from __future__ import annotations

from dataclasses import replace

from interchange.programs.program import Program, RankProgram, Slot, Step, ThreadBlock


def repeated(program: Program, instances: int) -> Program:
    """Return the program in so many instances."""
    if instances == 1:
        return program
    many = program.channels
    return replace(
        program,
        ranks=tuple(_rank(each, instances, channels=many) for each in program.ranks),
        chunks_per_loop=program.chunks_per_loop * instances,
    )


def _rank(rank: RankProgram, instances: int, *, channels: int) -> RankProgram:
    many = len(rank.blocks)
    blocks = [
        ThreadBlock(
            block.send,
            block.receive,
            block.channel + k * channels,
            tuple(
                _step(step, k, instances=instances, first_block=k * many) for step in block.steps
            ),
        )
        for k in range(instances)
        for block in rank.blocks
    ]
    return RankProgram(
        rank.input * instances, rank.output * instances, rank.scratch * instances, tuple(blocks)
    )


def _step(step: Step, k: int, *, instances: int, first_block: int) -> Step:
    after = None if step.after is None else (step.after[0] + first_block, step.after[1])

    def moved(slot: Slot | None) -> Slot | None:
        if slot is None:
            return None
        return Slot(slot.buffer, slot.index * instances + k * step.count)

    return replace(step, src=moved(step.src), dst=moved(step.dst), after=after)
