"""Steps of MSCCL-tools and TACCL as a schedule: a step is an epoch, all of them equally long.

What is sent in a step was there when the step began. An epoch lasts as long as the longest step
takes on the links, latency included, so that every step fits; the replay, which keeps the order
and forgets the epochs, says what the plan takes. TACCL's sends have times: they are in that order,
and a step in which something is sent on that the step brought becomes two.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ccl.errors import FormatError
from ccl.problem import Problem
from ccl.schedule import Schedule, Send
from interchange.formats.synthesizers._asking import counted
from interchange.formats.synthesizers.msccl_tools.file import Item, StepFile
from interchange.formats.synthesizers.taccl.host import Told


class FileSend(NamedTuple):
    """A send as the file has it; the time is None where there is none."""

    address: int
    src: int
    dst: int
    time: float | None


class Move(NamedTuple):
    """A send of a chunk, between ranks."""

    chunk: int
    src: int
    dst: int


@dataclass(frozen=True)
class FileStep:
    """A step: its sends in the order of their times, and how many rounds it takes."""

    sends: tuple[FileSend, ...]
    rounds: float

    @property
    def timed(self) -> bool:
        """Whether its sends have times."""
        return any(each.time is not None for each in self.sends)


def parsed(steps: Sequence[StepFile], ranks: int) -> tuple[FileStep, ...]:
    """Return the steps of a file.

    Raises
    ------
    FormatError
        If a send is none, with its place.
    """
    found = []
    for number, step in enumerate(steps):
        if not 0 < step.rounds <= 1e12:
            msg = f"at steps[{number}]: {step.rounds:g} rounds; give more than 0"
            raise FormatError(msg)
        sends = [
            _send(items, f"steps[{number}].sends[{place}]", ranks)
            for place, items in enumerate(step.sends)
        ]
        sends.sort(key=lambda each: each.time or 0.0)
        found.append(FileStep(tuple(sends), step.rounds))
    return tuple(found)


def _send(items: list[Item], place: str, ranks: int) -> FileSend:
    if not 3 <= len(items) <= 6:
        msg = f"at {place}: it has {len(items)} items; a send is [address, src, dst] and 3 at most"
        raise FormatError(msg)
    address, src, dst = items[:3]
    time = items[3] if len(items) > 3 else None
    if not (isinstance(address, int) and isinstance(src, int) and isinstance(dst, int)):
        msg = f"at {place}: address, source and destination are whole numbers; one is not"
        raise FormatError(msg)
    if not (0 <= src < ranks and 0 <= dst < ranks) or src == dst:
        msg = f"at {place}: it goes from {src} to {dst}; give two ranks from 0 to {ranks - 1}"
        raise FormatError(msg)
    if isinstance(time, str):
        msg = f"at {place}: its time is {time[:20]!r}; give a number"
        raise FormatError(msg)
    return FileSend(address, src, dst, time)


def check_rounds(problem: Problem, steps: Sequence[FileStep]) -> None:
    """Refuse a step that sends more over a link or limit than its rounds carry.

    Raises
    ------
    FormatError
        With the step and the link.
    """
    topology = problem.topology
    unit = topology.links[0].bandwidth / topology.links[0].count if topology.links else 1.0
    shared: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for place, limit in enumerate(topology.limits):
        for ends in limit.links:
            shared[ends].append(place)
    for number, step in enumerate(steps):
        used = Counter((f"g{each.src}", f"g{each.dst}") for each in step.sends)
        over: Counter[int] = Counter()
        for ends, many in used.items():
            if ends not in topology.link_index:
                continue  # the verifier says it better
            _enough(
                number,
                step.rounds,
                many,
                room=topology.link(*ends).count,
                of=f"{ends[0]}->{ends[1]}",
            )
            over.update(dict.fromkeys(shared[ends], many))
        for place, many in over.items():
            limit = topology.limits[place]
            _enough(number, step.rounds, many, room=limit.bandwidth / unit, of=limit.name)


def _enough(number: int, rounds: float, many: int, *, room: float, of: str) -> None:
    if many > rounds * room * (1 + 1e-9):
        msg = (
            f"its plan breaks a rule: step {number} sends {counted(many, 'chunk')} over {of}, "
            f"which carries {room:g} in a round, and it has {rounds:g} rounds"
        )
        raise FormatError(msg)


def schedule_of(
    problem: Problem,
    steps: Sequence[FileStep],
    numbers: dict[int, int],
    *,
    known: set[int],
    told: Told,
) -> Schedule:
    """Return the schedule that steps are.

    Parameters
    ----------
    problem
        What they solve.
    steps
        Of the file.
    numbers
        Chunk of each address that moves.
    known
        All addresses; those without a chunk are where they are wanted from the first.
    told
        Takes what the report says.

    Raises
    ------
    FormatError
        If a send names no address, or what its source does not hold.
    """
    holds = [set(each.holders) for each in problem.collective.chunks]
    slots: list[list[Move]] = []
    there: list[int] = [0, 0]
    for number, step in enumerate(steps):
        moves = _known(number, step, numbers, known=known, there=there)
        for part in _parts(moves) if step.timed else (moves,):
            kept = _needed(problem, number, part, holds)
            there[1] += len(part) - len(kept)
            if kept:
                slots.append(kept)
    for many, why in zip(
        there, ("wanted where it is", "held at its destination already"), strict=True
    ):
        if many:
            told.left_out.append(f"{counted(many, 'send')} of what is {why}")
    return _laid(problem, slots)


def _known(
    number: int,
    step: FileStep,
    numbers: dict[int, int],
    *,
    known: set[int],
    there: list[int],
) -> list[Move]:
    """Return a step with chunks for addresses, and count what has none."""
    moves = []
    for address, src, dst, _ in step.sends:
        if address in numbers:
            moves.append(Move(numbers[address], src, dst))
        elif address in known:
            there[0] += 1
        else:
            msg = f"step {number} sends address {address}, which no rank holds at first or wants"
            raise FormatError(msg)
    return moves


def _parts(moves: list[Move]) -> Iterator[list[Move]]:
    """Cut a step before a send of what it has brought."""
    part: list[Move] = []
    brought: set[tuple[int, int]] = set()
    for move in moves:
        if (move.chunk, move.src) in brought:
            yield part
            part, brought = [], set()
        part.append(move)
        brought.add((move.chunk, move.dst))
    yield part


def _needed(
    problem: Problem, number: int, moves: Sequence[Move], holds: list[set[int]]
) -> list[Move]:
    """Return the moves without those of what is there already, and note what is brought."""
    kept = []
    for move in moves:
        if move.src not in holds[move.chunk]:
            msg = (
                f"its plan breaks a rule: step {number} sends chunk {move.chunk} from {move.src} "
                f"to {move.dst}, and {move.src} does not hold it when the step begins"
            )
            raise FormatError(msg)
    for move in moves:
        if problem.collective.chunks[move.chunk].reduced or move.dst not in holds[move.chunk]:
            kept.append(move)
            holds[move.chunk].add(move.dst)
    return kept


def _laid(problem: Problem, slots: Sequence[Sequence[Move]]) -> Schedule:
    """Give every slot an epoch."""
    topology = problem.topology
    names, chunks = topology.ranks, problem.collective.chunks
    shared: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for place, limit in enumerate(topology.limits):
        for ends in limit.links:
            shared[ends].append(place)
    longest, sends = 0.0, []
    for epoch, slot in enumerate(slots):
        busy: defaultdict[tuple[str, str], float] = defaultdict(float)
        over: defaultdict[int, float] = defaultdict(float)
        for chunk, src, dst in slot:
            ends, nbytes = (names[src], names[dst]), chunks[chunk].size
            if ends not in topology.link_index:
                msg = (
                    f"its plan breaks a rule: step {epoch} sends chunk {chunk} over "
                    f"{ends[0]}->{ends[1]}, which is not a link of {topology}"
                )
                raise FormatError(msg)
            busy[ends] += nbytes * topology.link(*ends).beta
            for place in shared[ends]:
                over[place] += nbytes * 1e-3 / topology.limits[place].bandwidth
            sends.append(Send(epoch, chunk, *ends))
        longest = max(longest, *busy.values(), *over.values())
    if not sends:
        msg = "its plan sends nothing; a step needs a send"
        raise FormatError(msg)
    latest = max(topology.link(each.src, each.dst).alpha for each in sends)
    # A little longer than the sum, in which the last digits are lost.
    return Schedule(tuple(sends), (longest + latest) * (1 + 1e-9), len(slots))
