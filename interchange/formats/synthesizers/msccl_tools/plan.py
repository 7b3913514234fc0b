"""Steps of MSCCL-tools and TACCL as a schedule, and plans with their topologies as such files.

A step is an epoch, all of them equally long (`schedule_of`). What is sent in a step was there when
the step began. An epoch lasts as long as the longest step takes on the links, latency included, so
that every step fits; the replay, which keeps the order and forgets the epochs, says what the plan
takes. TACCL's sends have times: they are in that order, and a step in which something is sent on
that the step brought becomes two.

`write` gives topologies and schedules as JSON of MSCCL-tools.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ccl import text
from ccl.errors import FormatError, ProblemError, ScheduleError
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.serialization.documents import Document
from ccl.serialization.text import laid_out
from ccl.topology import Link, SharedLimit, Topology, device
from ccl.verify import verify
from interchange.formats.fields import select_sentences
from interchange.formats.format import Remarks, Written, one_file
from interchange.formats.synthesizers.msccl_tools import file as files


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


def parsed(steps: Sequence[files.StepFile], ranks: int) -> tuple[FileStep, ...]:
    """Return the steps of a file.

    Raises
    ------
    FormatError
        If a send is none, with its place.
    """
    found = []
    for number, step in enumerate(steps):
        if not 0 < step.rounds <= 1e12:
            raise FormatError(f"at steps[{number}]: {step.rounds:g} rounds; give more than 0")
        sends = [
            _send(items, f"steps[{number}].sends[{place}]", ranks)
            for place, items in enumerate(step.sends)
        ]
        sends.sort(key=lambda each: each.time or 0.0)
        found.append(FileStep(tuple(sends), step.rounds))
    return tuple(found)


def _send(items: list[files.Item], place: str, ranks: int) -> FileSend:
    if not 3 <= len(items) <= 6:
        raise FormatError(
            f"at {place}: it has {len(items)} items; a send is [address, src, dst] and 3 at most"
        )
    address, src, dst = items[:3]
    time = items[3] if len(items) > 3 else None
    if not (isinstance(address, int) and isinstance(src, int) and isinstance(dst, int)):
        raise FormatError(
            f"at {place}: address, source and destination are whole numbers; one is not"
        )
    if not (0 <= src < ranks and 0 <= dst < ranks) or src == dst:
        raise FormatError(
            f"at {place}: it goes from {src} to {dst}; give two ranks from 0 to {ranks - 1}"
        )
    if isinstance(time, str):
        raise FormatError(f"at {place}: its time is {time[:20]!r}; give a number")
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
    shared = _limits_by_link(topology)
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


def _limits_by_link(topology: Topology) -> defaultdict[tuple[str, str], list[int]]:
    """Return the places of the shared limits of each link, by its ends."""
    shared: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for place, limit in enumerate(topology.limits):
        for ends in limit.links:
            shared[ends].append(place)
    return shared


def _enough(number: int, rounds: float, many: int, *, room: float, of: str) -> None:
    if many > rounds * room * (1 + 1e-9):
        raise FormatError(
            f"its plan breaks a rule: step {number} sends {text.count(many, 'chunk')} over {of}, "
            f"which carries {room:g} in a round, and it has {rounds:g} rounds"
        )


def schedule_of(
    problem: Problem,
    steps: Sequence[FileStep],
    numbers: dict[int, int],
    *,
    known: set[int],
    remarks: Remarks,
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
    remarks
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
            remarks.left_out.append(f"{text.count(many, 'send')} of what is {why}")
    return _laid(problem, slots)


def _known(
    number: int, step: FileStep, numbers: dict[int, int], *, known: set[int], there: list[int]
) -> list[Move]:
    """Return a step with chunks for addresses, and count what has none."""
    moves = []
    for address, src, dst, _ in step.sends:
        if address in numbers:
            moves.append(Move(numbers[address], src, dst))
        elif address in known:
            there[0] += 1
        else:
            raise FormatError(
                f"step {number} sends address {address}, which no rank holds at first or wants"
            )
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
            raise FormatError(
                f"its plan breaks a rule: step {number} sends chunk {move.chunk} from {move.src} "
                f"to {move.dst}, and {move.src} does not hold it when the step begins"
            )
    for move in moves:
        if problem.collective.chunks[move.chunk].reduced or move.dst not in holds[move.chunk]:
            kept.append(move)
            holds[move.chunk].add(move.dst)
    return kept


def _laid(problem: Problem, slots: Sequence[Sequence[Move]]) -> Schedule:
    """Give every slot an epoch."""
    topology = problem.topology
    names, chunks = topology.ranks, problem.collective.chunks
    shared = _limits_by_link(topology)
    longest, sends = 0.0, []
    for epoch, slot in enumerate(slots):
        busy: defaultdict[tuple[str, str], float] = defaultdict(float)
        over: defaultdict[int, float] = defaultdict(float)
        for chunk, src, dst in slot:
            ends, nbytes = (names[src], names[dst]), chunks[chunk].size
            if ends not in topology.link_index:
                raise FormatError(
                    f"its plan breaks a rule: step {epoch} sends chunk {chunk} over "
                    f"{ends[0]}->{ends[1]}, which is not a link of {topology}"
                )
            busy[ends] += nbytes * topology.link(*ends).beta
            for place in shared[ends]:
                over[place] += nbytes * 1e-3 / topology.limits[place].bandwidth
            sends.append(Send(epoch, chunk, *ends))
        longest = max(longest, *busy.values(), *over.values())
    if not sends:
        raise FormatError("its plan sends nothing; a step needs a send")
    latest = max(topology.link(each.src, each.dst).alpha for each in sends)
    # A little longer than the sum, in which the last digits are lost.
    return Schedule(tuple(sends), (longest + latest) * (1 + 1e-9), len(slots))


Json = dict[str, Any]
Sends = list[tuple[int, int, int]]


class _NoPlan(Exception):
    """The plan of a document cannot be written, for the reason that is its text."""


def write(content: Document) -> Written:
    """Write a plan with its topology, or the topology alone where there is none or it cannot be.

    Raises
    ------
    FormatError
        If the topology has no two GPUs that are joined.
    ScheduleError
        If the plan breaks a rule.
    """
    topology = content.topology
    links = files.counted_links(topology)
    if not links.counts:
        raise FormatError(
            f"{topology} has no two GPUs that are joined, and MSCCL-tools counts such links"
        )
    value = _topology(topology, links)
    lost = _lost(topology, links)
    if content.problem is not None:
        try:
            value, more = _algorithm(content, links, value)
            lost += more
        except _NoPlan as reason:
            lost.append(f"the {content.kind}, because {reason}; the topology alone is written")
    return one_file(laid_out(value) + "\n", ending="json", lost=tuple(lost))


def _topology(topology: Topology, links: files.Counted) -> Json:
    return {
        "msccl_type": "topology",
        "name": topology.name,
        "switches": [[*each.sides, rate, each.name] for each, rate in links.switches],
        "links": links.matrix(len(topology.ranks)),
    }


def _lost(topology: Topology, links: files.Counted) -> list[str]:
    wires, devices, ranks = topology.links, topology.devices, topology.ranks
    other = [links.counts.get(_ranks(topology, each), each.count) != each.count for each in wires]
    gpus = [each for each in devices if each.kind == "gpu"]
    unable = [not each.copies or not each.reduces or each.buffer_bytes for each in gpus]
    others = len(devices) - len(ranks)
    over = (
        f"{others} devices that are no GPU: {links.over} pairs of GPUs are joined over them, and "
        "what they share is limited as switches of MSCCL-tools are"
    )
    share, stricter = f"{links.rounded:.1%}", links.stricter
    return select_sentences(
        (True, f"bandwidths in GB/s: a link that counts 1 is {links.unit:.9g} GB/s"),
        (links.rounded, f"bandwidths that are no whole numbers of it, by up to {share}"),
        (any(each.alpha for each in wires), "latencies of links"),
        (any(each.medium for each in wires), "what links are made of"),
        (any(each.host is not None for each in devices), "which host a device is in"),
        (ranks != tuple(f"g{i}" for i in range(len(ranks))), "names of GPUs; their order is kept"),
        (any(other), "how many parallel links a link stands for"),
        (others, over),
        (stricter, f"{stricter} limits are on more pairs of GPUs than in the topology"),
        (any(unable), "what GPUs cannot do, and their buffers"),
    )


def _ranks(topology: Topology, link: Link) -> tuple[int, int]:
    return topology.rank.get(link.src, -1), topology.rank.get(link.dst, -1)


def _algorithm(content: Document, links: files.Counted, topology: Json) -> tuple[Json, list[str]]:
    """Return a plan, and what more is lost."""
    problem, plan = content.problem, content.plan
    assert problem is not None  # the caller looked
    if not isinstance(plan, Schedule):
        has = (
            "there is no plan" if plan is None else f"a {type(plan).__name__.lower()} has no steps"
        )
        raise _NoPlan(has)
    verify(problem, plan)
    kinds = {chunk.size for chunk in problem.collective.chunks}
    if max(kinds) > min(kinds) * (1 + 1e-9):
        raise _NoPlan("its chunks are of different sizes")
    steps = _steps(problem, plan)
    rounds = [_rounds(step, links) for step in steps]
    _check(problem, links, steps, rounds)
    return _written(problem, steps, rounds, topology=topology), _lost_plan(problem, plan)


def _written(problem: Problem, steps: list[Sends], rounds: list[int], *, topology: Json) -> Json:
    """Return the algorithm."""
    addresses = files.Addresses(problem.collective)
    return {
        "msccl_type": "algorithm",
        "name": f"{addresses.name}-{problem.topology.name}",
        "instance": {
            "msccl_type": "instance",
            "steps": len(steps),
            "extra_rounds": sum(rounds) - len(steps),
            "chunks": addresses.per_rank,
            "pipeline": None,
            "extra_memory": None,
            "allow_exchange": False,
        },
        "input_map": addresses.input_map(),
        "output_map": addresses.output_map(),
        "steps": [
            {
                "msccl_type": "step",
                "rounds": many,
                "sends": [[addresses.of[chunk], src, dst] for chunk, src, dst in step],
            }
            for step, many in zip(steps, rounds, strict=True)
        ],
        "collective": addresses.collective(),
        "topology": topology,
    }


def _lost_plan(problem: Problem, plan: Schedule) -> list[str]:
    marked = [each.priority != 1 or each.tenant for each in problem.collective.chunks]
    paths = "paths over other devices: a send is from GPU to GPU"
    return [
        "times: a step begins when all of the one before it is there",
        f"the size: a chunk is {problem.collective.chunk_size:.9g} bytes",
        *select_sentences(
            (any(each.via for each in plan.sends), paths),
            (problem.windows, "times in which links have less bandwidth"),
            (any(marked), "priorities and tenants of chunks"),
        ),
    ]


def _steps(problem: Problem, plan: Schedule) -> list[Sends]:
    """Return the sends between GPUs, by steps in which nothing is sent on that they bring."""
    epochs: defaultdict[int, list[Send]] = defaultdict(list)
    for send in plan.sends:
        if send.fraction < 1:
            raise _NoPlan("it sends parts of chunks")
        if send.terms is not None:
            raise _NoPlan("its sends name the contributions that they carry")
        epochs[send.epoch].append(send)
    run = _Run(problem)
    for epoch in sorted(epochs):
        run.epoch(epochs[epoch])
    return run.steps


class _Run:
    """Follows chunks from GPU to GPU, past devices at which they stop on the way."""

    def __init__(self, problem: Problem) -> None:
        self.rank = problem.topology.rank
        self.chunks = problem.collective.chunks
        self.steps: list[Sends] = []
        names = problem.topology.ranks
        self.origin = {
            (number, names[rank]): rank
            for number, chunk in enumerate(self.chunks)
            for rank in chunk.holders
        }

    def epoch(self, sends: list[Send]) -> None:
        """Add the steps of an epoch: what is held goes first, and then what that brings."""
        left = sends
        while left:
            step: Sends = []
            brought: dict[tuple[int, str], int] = {}
            wait: list[Send] = []
            for send in left:
                if not self._ready(send, brought):
                    wait.append(send)
                    continue
                here = self.origin[send.chunk, send.src]
                if send.dst in self.rank:
                    step.append((send.chunk, here, self.rank[send.dst]))
                    here = self.rank[send.dst]
                brought[send.chunk, send.dst] = here
            if len(wait) == len(left):
                raise _NoPlan(f"{left[0]} is of what its device does not hold yet")
            self.origin |= brought
            self.steps += [step] if step else []
            left = wait

    def _ready(self, send: Send, brought: dict[tuple[int, str], int]) -> bool:
        """Say whether a send is of what was held when the step began."""
        if self.chunks[send.chunk].reduced:
            for end in (send.src, send.dst):
                if end not in self.rank:
                    raise _NoPlan(f"sums of chunk {send.chunk} stop at {end}, which is no GPU")
            # A sum that has just come belongs to what its device sends on.
            return (send.chunk, send.src) in self.origin and (send.chunk, send.src) not in brought
        return (send.chunk, send.src) in self.origin


def _rounds(step: Sends, links: files.Counted) -> int:
    """Return the rounds that the busiest link or limit needs."""
    used: defaultdict[tuple[int, int], int] = defaultdict(int)
    for _, src, dst in step:
        used[src, dst] += 1
    lacks = next((pair for pair in used if pair not in links.counts), None)
    if lacks is not None:
        raise _NoPlan(f"it sends from rank {lacks[0]} to rank {lacks[1]} past another GPU")
    most = max(many / links.counts[pair] for pair, many in used.items())
    over: defaultdict[int, int] = defaultdict(int)
    for pair, many in used.items():
        for place in links.covering[pair]:
            over[place] += many
    most = max([most, *(many / links.switches[place][1] for place, many in over.items())])
    return max(1, math.ceil(most - 1e-9))


def _check(problem: Problem, links: files.Counted, steps: list[Sends], rounds: list[int]) -> None:
    """Read the steps as MSCCL-tools would, and verify that they solve the problem."""
    ranks = len(problem.topology.ranks)
    made = Topology(
        "written",
        tuple(device("gpu", f"g{rank}") for rank in range(ranks)),
        tuple(Link(f"g{s}", f"g{d}", float(n), count=n) for (s, d), n in links.counts.items()),
        tuple(
            SharedLimit(
                str(place),
                tuple((f"g{src}", f"g{dst}") for src, dst in sorted(each.pairs)),
                float(rate),
            )
            for place, (each, rate) in enumerate(links.switches)
        ),
    )
    file = [
        FileStep(tuple(FileSend(*send, None) for send in step), many)
        for step, many in zip(steps, rounds, strict=True)
    ]
    numbers = {number: number for number in range(len(problem.collective.chunks))}
    try:
        copy = Problem(made, problem.collective)
        check_rounds(copy, file)
        verify(copy, schedule_of(copy, file, numbers, known=set(numbers), remarks=Remarks()))
    except (FormatError, ProblemError, ScheduleError) as error:
        raise _NoPlan(f"in steps it would be another: {error}") from None
