"""From a program back to a plan: what its messages do to the chunks of a collective.

A program's machine is run once with marks in the place of data (`run`), so that it is known which
contributions every message carries. All threads that can go on do one action, turn after turn, so
that what comes out is in an order in which things may happen. Messages never wait for room; what
stands still then stands still in every executor.

Messages take quickest paths over a topology (`Routes`: links, and devices that pass on or store
between ranks) and get epochs in which everything a send needs is there and nothing else is
(`_lift_place`). A program may keep what it received apart from its own and send either. Where it
does, sends of the schedule name what they carry (`ccl.plans.Send.terms`). What no schedule can say
has none, and the reason is reported.

A chunk of a program is a chunk of the collective (`Layout`), so with n ranks and L chunks per loop
there are L/n chunks per shard, and L where there are no shards. Where a program works in place
alone, the shorter buffer of a rank is the part of the longer one that holds its own shard, and two
names of one cell are made one.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain, pairwise

from ccl.collective import Chunk, Collective, make_collective
from ccl.errors import FormatError, ProblemError, ScheduleError
from ccl.plans import Schedule, choose_values
from ccl.problem import Problem
from ccl.topology import Device, Link, Topology, device
from ccl.verify import verify
from interchange.execution._lift_place import Apart, Carry, Held, Key, Placer, ordered
from interchange.execution.blocks import TurnByTurn, Walk, deadlock, machine_of
from interchange.execution.machine import Machine, Memory
from interchange.programs import SENDS, Program, Slot
from interchange.programs.checks import SHARDED, Finding, Promise, mismatched, misplaced, promise
from interchange.programs.lowering.cells import Buffers

Piece = tuple[int, int]
"""A chunk and, as bits, whose contributions are in it; of what is not added up, its holder.

Chunks that stay where they are have numbers from that of the collective's chunks on.
"""

Content = Piece | None
"""What a cell holds; None is nothing yet."""

MOST_CELLS = 500_000
"""Cells of all ranks that are followed at most."""


@dataclass(frozen=True)
class Layout:
    """The collective of a program, and where its chunks lie.

    Parameters
    ----------
    program
        Whose buffers they are.
    collective
        With one chunk for each chunk of the program.
    buffers
        Where a runtime has the chunks.
    memory
        The buffers of all ranks as cells.
    promised
        What the collective gives and takes.
    """

    program: Program
    collective: Collective
    buffers: Buffers
    memory: Memory
    promised: Promise

    @cached_property
    def held(self) -> dict[int, Content]:
        """What the cells of inputs hold at the start."""
        found: dict[int, Content] = {
            self.memory.cell(rank, self.buffers.source(number)): (number, 1 << rank)
            for number, chunk in enumerate(self.collective.chunks)
            for rank in chunk.holders
        }
        for rank in range(len(self.program.ranks)):
            own = self.buffers.own_copy(rank)
            for index in range(own.src, own.src + own.count) if own is not None else ():
                stays = len(self.collective.chunks) + index
                found.setdefault(self.memory.cell(rank, Slot("input", index)), (stays, 1 << rank))
        return found

    def wanted(self) -> dict[int, Content]:
        """Return what the cells of outputs must hold at the end."""
        cell, promised = self.memory.cell, self.promised
        return {
            cell(rank, Slot("output", chunk)): reduce(
                _sum,
                (
                    self.held[cell(src, Slot("input", own))]
                    for src, own in promised.sources(rank, chunk)
                ),
            )
            for rank in filter(promised.has_output, range(promised.ranks))
            for chunk in range(promised.output)
        }


def layout_of(program: Program, size: float) -> Layout:
    """Return the layout of a program for a buffer of `size` bytes.

    Raises
    ------
    FormatError
        If it is of no collective that is known here, or its chunks do not go into its shards.
    ProblemError
        If there is nothing to move.
    """
    n, loop, kind = len(program.ranks), program.chunks_per_loop, program.collective
    promised = promise(program)
    if isinstance(promised, Finding):
        raise FormatError(promised.sentence)
    if kind == "custom":
        raise FormatError(
            "the program is a custom one, of which nobody says what must be where at the end"
        )
    if loop * n > MOST_CELLS:
        raise FormatError(
            f"{loop:,} chunks at {n} ranks are more than the {MOST_CELLS:,} that are followed"
        )
    per_shard = promised.shard if kind in SHARDED else loop
    if kind == "all-reduce":
        everyone = tuple(range(n))
        chunk = Chunk(size / loop, everyone, everyone, reduced=True)
        whole = make_collective("all-reduce", n, size)
        collective = Collective("all-reduce", whole.ranks, whole.size, (chunk,) * loop)
    else:
        collective = make_collective(kind, n, size, chunks=per_shard, root=program.root)
    memory = Memory(program, promised, in_place=not program.out_of_place)
    buffers = Buffers(kind, n, per_shard, 1, program.root)
    return Layout(program, collective, buffers, memory, promised)


MOST_PIECES = 200_000
"""Chunks that all steps together move at most."""

SPOILT: Piece = (-1, 0)
"""A sum of what does not belong together."""


@dataclass(frozen=True)
class Ran:
    """What a run showed.

    Parameters
    ----------
    carried
        What messages carried, in the order in which they were sent.
    empty
        Chunks of messages that carried nothing that a collective knows.
    unwritten
        Places of outputs that were to hold a rank's own chunk and do not.
    wrong
        The first place of an output that does not hold what it must, in words, or empty.
    """

    carried: tuple[Carry, ...]
    empty: int
    unwritten: int
    wrong: str


def run(layout: Layout) -> Ran:
    """Run a program.

    Raises
    ------
    FormatError
        If it stands still, a place or the other end of a message is not there, or it is too long.
    """
    program = layout.program
    pieces = sum(step.count for _, _, block in program.blocks() for step in block.steps)
    if pieces > MOST_PIECES:
        raise FormatError(
            f"its steps move {pieces:,} chunks, more than the {MOST_PIECES:,} that are followed"
        )
    for wrong in chain(misplaced(program), mismatched(program)):
        raise FormatError(wrong.sentence)
    machine = machine_of(program, layout.memory)
    order = list(Walk(machine, slots=None)(TurnByTurn()))
    stuck = deadlock(machine, order, slots=None)
    if stuck is not None:
        raise FormatError(stuck.sentence)
    content: list[Content] = [layout.held.get(cell) for cell in range(machine.cells)]
    sent = [each for number in order for each in _act(layout, machine, number, content)]
    many = len(layout.collective.chunks)
    carried = tuple(
        Carry(src, dst, *piece) for src, dst, piece in sent if piece and 0 <= piece[0] < many
    )
    return _compared(layout, content, carried, empty=len(sent) - len(carried))


def _act(
    layout: Layout, machine: Machine, number: int, content: list[Content]
) -> Iterator[tuple[int, int, Content]]:
    """Do an action; yield what it sends, with its rank and the one that it sends to."""
    rank, block, _ = machine.where(number)
    for effect in machine.actions[number].effects:
        rows = (content[first : first + effect.count] for first in effect.sources)
        made = [reduce(_sum, each) for each in zip(*rows, strict=True)]
        content[effect.target : effect.target + effect.count] = made
        if effect.target >= machine.memory:
            peer = layout.program.ranks[rank].blocks[block].send
            yield from ((rank, peer, piece) for piece in made)


def _compared(
    layout: Layout, content: list[Content], carried: tuple[Carry, ...], *, empty: int
) -> Ran:
    """Compare the outputs with what they must hold."""
    unwritten, wrong = 0, ""
    for cell, piece in layout.wanted().items():
        found = content[cell]
        if found is None and piece and piece[1] == 1 << layout.memory.rank(cell):
            unwritten += 1
        elif found != piece and not wrong:
            wrong = (
                f"{layout.memory.name(cell)} must hold {_words(piece)} and holds {_words(found)}"
            )
    return Ran(carried, empty, unwritten, wrong)


def _sum(one: Content, other: Content) -> Content:
    """Add two contents: of one chunk, and of nobody twice."""
    if one is None or other is None or one[0] != other[0] or one[1] & other[1]:
        return SPOILT
    return one[0], one[1] | other[1]


def _words(piece: Content) -> str:
    if piece is None:
        return "nothing"
    if piece == SPOILT:
        return "a sum of what does not belong together"
    chunk, mask = piece
    ranks = [str(rank) for rank in range(mask.bit_length()) if mask >> rank & 1]
    if len(ranks) > 6:
        return f"chunk {chunk} of {len(ranks)} ranks"
    return f"chunk {chunk} of rank{'s' * (len(ranks) > 1)} {', '.join(ranks)}"


BANDWIDTH = 25.0
"""GB/s, one way, of a link between two ranks about which nothing is known."""


Pair = tuple[int, int]
"""Where a message leaves and arrives."""

_SAME = 1e-9
"""Share of a time by which paths that are equally quick may differ."""


@dataclass(frozen=True)
class Routes:
    """Ways of pairs of ranks.

    Parameters
    ----------
    legs
        For each pair the places where a way begins, stops and ends, two by two. Places are ranks,
        and other devices that store by their place among the devices after all ranks.
    links
        The links of each leg.
    """

    legs: dict[Pair, tuple[Pair, ...]]
    links: dict[Pair, tuple[Link, ...]]


def routes_of(topology: Topology, pairs: Iterable[Pair], nbytes: float) -> Routes:
    """Return the quickest way of `nbytes` bytes for each pair of ranks, the direct link if any.

    Where devices that only pass on do not join two ranks, a way may stop at memories and whatever
    else stores, but GPUs. Of paths that are equally quick, a pair takes one over devices that the
    fewest others take.

    Raises
    ------
    FormatError
        If there is none.
    """
    ranks = topology.ranks
    trees: dict[tuple[int, bool], dict[str, list[str]]] = {}
    taken: Counter[str] = Counter()
    found = Routes({}, {})
    for src, dst in sorted(set(pairs)):
        way: list[str] | None = None
        if (ranks[src], ranks[dst]) in topology.link_index:
            way = [ranks[src], ranks[dst]]
        for stops in (False, True):
            if way is None:
                if (src, stops) not in trees:
                    trees[src, stops] = _tree(topology, ranks[src], nbytes, stops=stops)
                way = _back(trees[src, stops], ranks[src], ranks[dst], taken=taken)
        if way is None:
            raise FormatError(
                f"{topology} has no path from rank {src} ({ranks[src]}) to rank {dst} "
                f"({ranks[dst]}) but over other GPUs, and the program sends there; add links, or "
                "read it for another cluster or a mesh"
            )
        taken.update(way[1:-1])
        _laid(found, (src, dst), topology, way)
    return found


def _laid(found: Routes, pair: Pair, topology: Topology, way: list[str]) -> None:
    """Add a way, in legs from one device that stores to the next."""
    many = len(topology.ranks)
    stops = [turn for turn, name in enumerate(way) if topology.device(name).stores]
    legs = []
    for begin, end in pairwise(stops):
        ends = [topology.rank.get(way[at], many + topology.index[way[at]]) for at in (begin, end)]
        legs.append((ends[0], ends[1]))
        links = tuple(topology.link(*each) for each in pairwise(way[begin : end + 1]))
        found.links.setdefault(legs[-1], links)
    found.legs[pair] = tuple(legs)


def mesh(name: str, ranks: int, pairs: Iterable[Pair]) -> Topology:
    """Return a cluster with a link for each pair of ranks, of `BANDWIDTH` and no latency."""
    devices = tuple(device("gpu", f"gpu{rank}") for rank in range(ranks))
    links = tuple(Link(f"gpu{src}", f"gpu{dst}", BANDWIDTH) for src, dst in sorted(set(pairs)))
    return Topology(name, devices, links)


def _tree(topology: Topology, start: str, nbytes: float, *, stops: bool) -> dict[str, list[str]]:
    """Return from where each device is reached the quickest, over no other GPU.

    What stores is on the way only where it may stop there.
    """
    import networkx  # noqa: PLC0415  heavy, and only who lifts programs needs it

    def leads_on(name: str) -> bool:
        passed = topology.device(name)
        return name == start or not passed.stores or (stops and passed.kind != "gpu")

    times = {link: link.transfer_time(nbytes) for link in topology.links if leads_on(link.src)}
    # Whole numbers, so that the order of a sum does not distinguish paths.
    unit = _SAME * min(times.values(), default=1.0) or 1.0
    graph: networkx.DiGraph[str] = networkx.DiGraph()
    graph.add_node(start)
    graph.add_weighted_edges_from((*link.ends, round(took / unit)) for link, took in times.items())
    before, _ = networkx.dijkstra_predecessor_and_distance(graph, start)
    return dict(before)


def _back(
    before: dict[str, list[str]], start: str, end: str, *, taken: Counter[str]
) -> list[str] | None:
    """Return the devices from `start` to `end`, of equal paths that over the least taken."""
    if end not in before:
        return None
    way = [end]
    while way[-1] != start:
        way.append(min(before[way[-1]], key=taken.__getitem__))
    return way[::-1]


__all__ = ["BANDWIDTH", "Lifted", "lift", "mesh_of"]


@dataclass(frozen=True)
class Lifted:
    """What became of a program.

    Parameters
    ----------
    problem
        Its collective on the topology, or None if it has none.
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
        raise FormatError(
            f"the program is for {len(program.ranks)} ranks and {topology} has "
            f"{len(topology.ranks)} GPUs; read it for a cluster of {len(program.ranks)}"
        )
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
        schedule = _scheduled(problem, carried, routes)
        verify(problem, schedule)
    except (FormatError, ScheduleError) as error:
        return Lifted(problem, None, str(error))
    return Lifted(problem, schedule, notes=_notes(ran, again=len(ran.carried) - len(once)))


def _scheduled(problem: Problem, carried: Sequence[Carry], routes: Routes) -> Schedule:
    """Return the schedule of what is carried; sends name it where sums alone do not say it.

    Raises
    ------
    FormatError
        If a rank sends what does not add up from what came to it.
    """
    sizes = [chunk.size for chunk in problem.collective.chunks]
    placer = Placer(problem.topology, routes.links, sizes)
    try:
        held = _levels(carried, problem)
        return placer.schedule(ordered(carried, held, placer.routes), held)
    except FormatError:
        if not problem.collective.reduces:
            raise
    held = _values(carried, problem)
    return placer.schedule(ordered(carried, held, placer.routes), held)


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
                raise FormatError("a rank sends what is not all that it has added up so far")
            before = sum_
        held[key] = Held(sums)
    return held


def _values(carried: Sequence[Carry], problem: Problem) -> dict[Key, Held]:
    """Return what each rank has of each chunk, as values apart from one another.

    Raises
    ------
    FormatError
        If a rank sends what is no sum of values that came to it before.
    """
    came: dict[Key, list[int]] = defaultdict(list)
    made: dict[Key, dict[int, list[int]]] = defaultdict(dict)
    for carry in carried:
        key = carry.chunk, carry.src
        if carry.mask not in made[key]:
            values = [mask for mask in (_own(problem, key), *came[key]) if mask]
            chosen = choose_values(values, carry.mask, adds=_device(problem, key).reduces)
            if chosen is None:
                raise FormatError(_apart(problem, key, sum_=carry.mask, values=values))
            own = _own(problem, key)
            made[key][carry.mask] = [values[i] for i in chosen if values[i] != own]
        came[carry.chunk, carry.dst].append(carry.mask)
    return {key: Apart(came[key], made[key]) for key in came.keys() | made.keys()}


def _device(problem: Problem, key: Key) -> Device:
    """Return the device at a place: ranks come first, then what else stores."""
    place, topology = key[1], problem.topology
    many = len(topology.ranks)
    return (
        topology.device(topology.ranks[place]) if place < many else topology.devices[place - many]
    )


def _apart(problem: Problem, key: Key, *, sum_: int, values: Sequence[int]) -> str:
    chunk, place = key
    who = f"rank {place}" if place < len(problem.topology.ranks) else _device(problem, key).name
    return (
        f"{who} sends {sum_.bit_count()} contributions to chunk {chunk}, which are no sum of the "
        f"{len(values)} values that it has then"
    )
