"""From a plan to a program that a runtime loads.

In four stages, a module each: the plan's sends, trees or flows become hops of parts of chunks
(`hops`), these become messages between ranks in an order in which they can all be done
(`messages`), chunks get their places in the buffers (`cells`), and the messages become steps of
thread blocks that wait for one another (`steps`, `waits`). A program for parts of parts
(`instances`) does the same several times side by side, each on channels of its own.

`Program.notes` says what the program does not keep of the plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.result import Plan
from interchange.programs.lowering.cells import (
    IN_PLACE,
    Buffers,
    cut,
    largest_row,
    pieces_row,
    repeated,
    smallest_row,
)
from interchange.programs.lowering.hops import Hops, messages_of
from interchange.programs.lowering.steps import Limits, TooLong, rank_programs
from interchange.programs.program import Program, Protocol, RankProgram


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a plan becomes a program."""

    protocol: Protocol = field(
        default="Simple",
        metadata={"label": "Protocol", "help": "Of NCCL; LL and LL128 are for small sizes."},
    )
    instances: int = field(
        default=1,
        metadata={
            "label": "Instances",
            "min": 1,
            "max": 16,
            "help": "The program as often side by side, each with its share of every chunk.",
        },
    )
    pieces: int = pieces_row()
    steps: int = field(
        default=256,
        metadata={
            "label": "Steps of a thread block, at most",
            "min": 4,
            "max": 256,
            "help": "More channels are opened where there are more. RCCL takes 64.",
        },
    )
    blocks: int = field(
        default=127,
        metadata={
            "label": "Thread blocks of a rank, at most",
            "min": 1,
            "max": 216,
            "help": "Where there are more, one does both directions. RCCL takes 64.",
        },
    )
    in_place: bool = field(
        default=True,
        metadata={
            "label": "Also in place",
            "help": "It may be called with overlapping buffers, where the collective allows it.",
        },
    )
    smallest: int = smallest_row()
    largest: int = largest_row()


def lower(problem: Problem, plan: Plan, options: Options | None = None) -> Program:
    """Return a program that does what a verified plan says.

    Raises
    ------
    ProblemError
        If a runtime does not know the collective, the sizes are none, or a thread block needs more
        steps than it may have on however many channels. More thread blocks than asked for are
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
    """Say where a rank has more thread blocks than were asked for."""
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
