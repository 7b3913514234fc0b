"""How much connections must hold, and what large buffers make of it.

A connection has NCCL_STEPS = 8 slots (NVIDIA/nccl:src/include/device.h). A message takes one of
them under LL and LL128 and MSCCL_CHUNKSTEPS = NCCL_STEPS / 2 under Simple, however short it is
(microsoft/msccl:src/include/msccl.h and src/collectives/device/msccl_interpreter.h). Chunks as
large as a message go alone: a step of several is then as many messages, one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from interchange.execution.blocks import finishing_order, machine_of
from interchange.execution.checks import Finding, place
from interchange.execution.machine import Machine, Memory
from interchange.programs import Program, Protocol, RankProgram, Slot, Step, ThreadBlock
from interchange.programs.program import RECEIVES, SENDS

SLOTS: Mapping[Protocol, int] = {"Simple": 2, "LL": 8, "LL128": 8}
"""Messages that a connection holds."""
MOST_MESSAGES = 200_000
"""Chunks moved by all steps up to which it is tried what single ones do."""


def slots_needed(machine: Machine, *, most: int) -> int:
    """Return the messages a connection must hold for a machine that finishes with `most`."""
    every = len(machine.actions)
    for slots in range(1, most):
        if len(finishing_order(machine, slots=slots)) == every:
            return slots
    return most


def full_chunks(program: Program, memory: Memory, *, slots: int) -> Finding | None:
    """Return what hangs if every chunk is a message of its own, or None if nothing."""
    steps = [step for _, _, block in program.blocks() for step in block.steps]
    if not any(step.count > slots and step.operation in SENDS | RECEIVES for step in steps):
        return None
    parts = sum(map(_parts, steps))
    if parts > MOST_MESSAGES:
        words = (
            f"whether it hangs with large buffers is open: it moves {parts:,} chunks, and at most "
            f"{MOST_MESSAGES:,} are tried as messages of their own"
        )
        return Finding("room", words)
    machine = machine_of(_alone(program), memory)
    order = finishing_order(machine, slots=slots)
    if len(order) == len(machine.actions):
        return None
    at = list(machine.starts[:-1])
    for action in order:
        at[machine.owners[action]] += 1
    first = next(at[t] for t, end in enumerate(machine.starts[1:]) if at[t] < end)
    rank, block, number = machine.where(first)
    step = _origins(program.ranks[rank].blocks[block])[number]
    words = (
        f"large buffers hang: when a chunk fills a message, a step of several chunks sends them "
        f"one by one and a connection of protocol {program.protocol} holds {slots}; "
        f"{place(rank, block, step)} comes to a stop"
    )
    return Finding("room", words, rank, block, step)


def _alone(program: Program) -> Program:
    """Return a program whose steps move one chunk each."""
    return replace(program, ranks=tuple(_alone_in(rank) for rank in program.ranks))


def _alone_in(rank: RankProgram) -> RankProgram:
    last = [
        {origin: number for number, origin in enumerate(_origins(block))} for block in rank.blocks
    ]
    blocks = []
    for block in rank.blocks:
        steps = []
        for step in block.steps:
            after = step.after and (step.after[0], last[step.after[0]][step.after[1]])
            steps += [
                Step(
                    step.operation,
                    _moved(step.src, part),
                    _moved(step.dst, part),
                    after=None if part else after,
                )
                for part in range(_parts(step))
            ]
        blocks.append(replace(block, steps=tuple(steps)))
    return replace(rank, blocks=tuple(blocks))


def _parts(step: Step) -> int:
    return step.count if step.operation != "nop" else 1


def _origins(block: ThreadBlock) -> list[int]:
    """Return the step that each step of the block came from, once they move one chunk each."""
    return [number for number, step in enumerate(block.steps) for _ in range(_parts(step))]


def _moved(slot: Slot | None, by: int) -> Slot | None:
    return None if slot is None else Slot(slot.buffer, slot.index + by)
