"""A plain interpreter of programs: what lowering is tried with, knowing nothing of `execution`.

Blocks are run in a random order, one step at a time; contents of cells are sets of contributions
(rank, input index), so that a contribution added twice is seen.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque

from interchange.programs import Program, Slot


class Stuck(Exception):
    """No thread block can go on."""


def run(program: Program, seed: int, *, in_place: bool = False) -> list[dict[int, frozenset]]:
    """Return what the output cells of every rank hold at the end."""
    chance = random.Random(seed)
    memory: list[dict[Slot, frozenset]] = []
    for rank, each in enumerate(program.ranks):
        cells = {Slot("input", i): frozenset({(rank, i)}) for i in range(each.input)}
        memory.append({named(program, rank, slot, in_place): x for slot, x in cells.items()})
    queues: defaultdict[tuple[int, int, int], deque] = defaultdict(deque)
    blocks = [(rank, number, block) for rank, number, block in program.blocks()]
    done = {(rank, number): 0 for rank, number, _ in blocks}
    left = sum(len(block.steps) for _, _, block in blocks)
    idle = 0
    while left:
        rank, number, block = chance.choice(blocks)
        moved = _go_on(program, rank, block, number, done, memory, queues, in_place)
        left -= moved
        idle = 0 if moved else idle + 1
        if idle > 20 * len(blocks) + 200:
            raise Stuck
    assert not any(queues.values())
    return [
        {
            i: memory[rank].get(named(program, rank, Slot("output", i), in_place), frozenset())
            for i in range(each.output)
        }
        for rank, each in enumerate(program.ranks)
    ]


def named(program: Program, rank: int, slot: Slot, in_place: bool) -> Slot:
    """Return the one name of a cell when both buffers lie in one."""
    if not in_place or slot.buffer == "scratch":
        return slot
    own = program.ranks[rank]
    shift = {"input": 0, "output": 0}
    if own.input < own.output:
        shift["input"] = rank * own.input
    elif own.output < own.input:
        shift["output"] = rank * own.output
    return Slot("output", slot.index + shift[slot.buffer])


def _go_on(program, rank, block, number, done, memory, queues, in_place) -> int:
    """Do as many steps of a block as can be done; return how many."""
    first = done[rank, number]
    for step in block.steps[first:]:
        if step.after and done[rank, step.after[0]] <= step.after[1]:
            break
        if not _do(program, rank, block, step, memory=memory, queues=queues, at=in_place):
            break
        done[rank, number] += 1
    return done[rank, number] - first


def _do(program, rank, block, step, *, memory, queues, at) -> bool:
    """Do a step if what it receives is there."""

    def cells(first):
        return [
            named(program, rank, Slot(first.buffer, first.index + i), at) for i in range(step.count)
        ]

    here = memory[rank]
    came = None
    if step.operation in ("r", "rrc"):
        queue = queues[block.receive, rank, block.channel]
        if not queue:
            return False
        came = queue.popleft()
        assert len(came) == step.count
    if step.operation == "s":
        content = [here[cell] for cell in cells(step.src)]
        queues[rank, block.send, block.channel].append(content)
    elif step.operation == "r":
        here.update(zip(cells(step.dst), came, strict=True))
    elif step.operation == "cpy":
        here.update({d: here[s] for s, d in zip(cells(step.src), cells(step.dst), strict=True)})
    elif step.operation in ("re", "rrc"):
        more = came if came is not None else [here[cell] for cell in cells(step.src)]
        held = cells(step.dst if came is None else step.src)
        for one, dst, other in zip(held, cells(step.dst), more, strict=True):
            assert not here[one] & other, "added twice"
            here[dst] = here[one] | other
    else:
        assert step.operation == "nop", step.operation
    return True


def wanted(program: Program) -> list[dict[int, frozenset]]:
    """Return what the outputs must hold, by the definitions of the collectives."""
    n = len(program.ranks)
    kind, root = program.collective, program.root
    size = program.chunks_per_loop
    shard = size // n
    every = range(n)
    table = {
        "all-gather": lambda r, i: {(i // shard, i % shard)},
        "reduce-scatter": lambda r, i: {(s, r * shard + i) for s in every},
        "all-reduce": lambda r, i: {(s, i) for s in every},
        "all-to-all": lambda r, i: {(i // shard, r * shard + i % shard)},
        "broadcast": lambda r, i: {(root, i)},
        "reduce": lambda r, i: {(s, i) for s in every} if r == root else None,
        "gather": lambda r, i: {(i // shard, i % shard)} if r == root else None,
        "scatter": lambda r, i: {(root, r * shard + i)},
    }
    found: list[dict[int, frozenset]] = []
    for rank, own in enumerate(program.ranks):
        cells = {i: table[kind](rank, i) for i in range(own.output)}
        found.append({i: frozenset(what) for i, what in cells.items() if what is not None})
    return found


def check(program: Program, *, seeds: int = 3) -> None:
    """Run a program and compare, out of place and in place where it may be."""
    goal = wanted(program)
    for seed in range(seeds):
        for in_place in (False, True)[: 1 + program.in_place]:
            got = run(program, seed, in_place=in_place)
            for rank, cells in enumerate(goal):
                for i, what in cells.items():
                    assert got[rank][i] == what, (rank, i, got[rank][i], what, in_place)
