"""From a program back to a plan: what its messages do to the chunks of a collective.

A program is run once with marks in the place of data (`_lift_run`), so that it is known which
contributions every message carries. Messages go the quickest ways over a topology (`_lift_routes`)
and get epochs in which everything a send needs is there and nothing else is (`_lift_place`). A
program does more than a schedule can say: it may keep what it received apart from its own and
send either. Where it does, there is no schedule of it, and the reason is told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ccl.errors import FormatError, ProblemError, ScheduleError
from ccl.problem import Problem
from ccl.schedule import Schedule
from ccl.topology import Topology
from ccl.verify import verify
from interchange.programs._lift_cells import layout_of
from interchange.programs._lift_order import ordered
from interchange.programs._lift_place import Held, Key, Placer
from interchange.programs._lift_routes import BANDWIDTH, Routes, mesh, routes_of
from interchange.programs._lift_run import Carry, Ran, run
from interchange.programs.program import SENDS, Program

__all__ = ["BANDWIDTH", "Lifted", "lift", "mesh_of"]


@dataclass(frozen=True)
class Lifted:
    """What became of a program.

    Parameters
    ----------
    problem
        Its collective on the topology, or None if that is none.
    schedule
        A verified schedule that does what it does, or None.
    why
        Why there is none, in words, or empty.
    notes
        What the schedule leaves out, in sentences.
    """

    problem: Problem | None
    schedule: Schedule | None
    why: str = ""
    notes: tuple[str, ...] = ()


def lift(program: Program, topology: Topology, size: float) -> Lifted:
    """Return the schedule of a program on a topology, for a buffer of `size` bytes.

    Raises
    ------
    FormatError
        If the topology has other ranks, or no way for what the program sends.
    """
    if len(topology.ranks) != len(program.ranks):
        msg = (
            f"the program is for {len(program.ranks)} ranks and {topology} has "
            f"{len(topology.ranks)} GPUs; read it for a cluster of {len(program.ranks)}"
        )
        raise FormatError(msg)
    nbytes = size / max(1, program.chunks_per_loop)
    routes = routes_of(topology, _pairs(program), nbytes)
    try:
        layout = layout_of(program, size)
        problem = Problem(topology, layout.collective)
    except (FormatError, ProblemError) as error:
        return Lifted(None, None, str(error))
    try:
        ran = run(layout)
        if ran.wrong:
            return Lifted(problem, None, ran.wrong)
        once = _fresh(ran.carried, problem)
        if not once:
            return Lifted(problem, None, "it sends nothing")
        carried = _fresh(_legs(once, routes), problem)
        held = _levels(carried, problem)
        sizes = [chunk.size for chunk in problem.collective.chunks]
        placer = Placer(topology, routes.links, sizes)
        schedule = placer.schedule(ordered(carried, held, placer.ways), held)
        verify(problem, schedule)
    except (FormatError, ScheduleError) as error:
        return Lifted(problem, None, str(error))
    return Lifted(problem, schedule, notes=_notes(ran, again=len(ran.carried) - len(once)))


def mesh_of(program: Program) -> Topology:
    """Return a cluster with a link of `BANDWIDTH` GB/s wherever the program sends."""
    return mesh(f"Mesh of {program.name or 'a program'}", len(program.ranks), _pairs(program))


def _pairs(program: Program) -> set[tuple[int, int]]:
    return {
        (rank, block.send)
        for rank, _, block in program.blocks()
        if any(step.operation in SENDS for step in block.steps)
        and block.send != rank
        and 0 <= block.send < len(program.ranks)
    }


def _notes(ran: Ran, *, again: int) -> tuple[str, ...]:
    notes = []
    if again:
        notes.append(f"{again:,} chunks of messages carry what their receiver has already")
    if ran.empty:
        notes.append(f"{ran.empty:,} chunks of messages carry nothing of the collective")
    if ran.unwritten:
        notes.append(
            f"{ran.unwritten:,} chunks that stay at their rank are not copied to its output"
        )
    return tuple(notes)


def _legs(carried: Sequence[Carry], routes: Routes) -> list[Carry]:
    """Part what stops at memories on its way."""
    return [
        Carry(*leg, carry.chunk, carry.mask)
        for carry in carried
        for leg in routes.legs[carry.src, carry.dst]
    ]


def _own(problem: Problem, key: Key) -> int:
    """Return what a rank has of a chunk from the start, as bits."""
    chunk, rank = key
    return (1 << rank) * (rank in problem.collective.chunks[chunk].holders)


def _fresh(carried: Sequence[Carry], problem: Problem) -> list[Carry]:
    """Leave out what a rank has received before, or had from the start."""
    known: set[tuple[int, int, int]] = set()
    fresh = []
    for carry in carried:
        place = carry.chunk, carry.dst, carry.mask
        if place not in known and carry.mask != _own(problem, place[:2]):
            fresh.append(carry)
            known.add(place)
    return fresh


def _levels(carried: Sequence[Carry], problem: Problem) -> dict[Key, Held]:
    """Return what each rank sends of each chunk, as sums that grow.

    Raises
    ------
    FormatError
        If a rank sends what is not all that it has added up so far.
    """
    sent: defaultdict[Key, set[int]] = defaultdict(set)
    came: defaultdict[Key, set[int]] = defaultdict(set)
    for carry in carried:
        sent[carry.chunk, carry.src].add(carry.mask)
        came[carry.chunk, carry.dst].add(carry.mask)
    held = {}
    for key in sent.keys() | came.keys():
        own = _own(problem, key)
        sums = sorted(sent[key], key=int.bit_count)
        before = 0
        for sum_ in sums:
            total = own
            for mask in came[key]:
                total |= 0 if mask & ~sum_ else mask
            if total != sum_ or before & ~sum_:
                raise FormatError(_apart(problem, key, sum_=sum_, total=total | before))
            before = sum_
        held[key] = Held(sums, [0.0] * (len(sums) + 1), [0.0] * (len(sums) + 1))
    return held


def _apart(problem: Problem, key: Key, *, sum_: int, total: int) -> str:
    chunk, place = key
    many = len(problem.topology.ranks)
    who = f"rank {place}" if place < many else problem.topology.devices[place - many].name
    return (
        f"{who} sends {sum_.bit_count()} contributions to chunk {chunk} apart from the others of "
        f"the {(total | sum_).bit_count()} that it has then, and a schedule sends all that was "
        "added up"
    )
