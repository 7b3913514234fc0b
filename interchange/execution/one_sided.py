"""Programs of puts executed: as `execution`, with what one-sided puts can do wrong.

Before anything runs, places, channels and semaphores are checked (`misplaced`, `mismatched`,
`beyond_limits`).

In the machine of a program (`one_sided_machine`) threads of a block go on by themselves until they
meet. A thread block is several threads of the machine: one for each channel or semaphore and what
is done with it, since different threads of the kernel do that, and one for each move of data
between two meetings of its threads, since all of them share in it and nothing says who is how far.
What nothing but their order in the block separates is in no order here. A port channel is a thread
as well, which carries out its instructions in order.

Of several calls one after the other, a rank begins the next one when all its thread blocks are
done and its caller has read the outputs and filled the inputs anew.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ccl.errors import ProblemError
from interchange.execution import CUSTOM, MOST, Execution, Run, check_size, examined
from interchange.execution.blocks import finishing_order
from interchange.execution.hazards import Hazard, hazards
from interchange.execution.machine import Action, Counters, Effect, Machine, Memory, Thread
from interchange.programs import Slot
from interchange.programs import one_sided as puts
from interchange.programs.checks import Finding, FindingKind, Promise, Where, place, wrong_sizes
from interchange.programs.one_sided import MOVES, Cells, Op, PutProgram

CALLER = -1
"""In place of the number of a thread block."""

_End = tuple[int, int]
"""Rank and one of its channels or semaphores."""


@dataclass(kw_only=True)
class _Wires(Counters):
    """Counters by what they count, and how far they have been used while blocks are written."""

    program: PutProgram
    uses: defaultdict[tuple[object, ...], int] = field(default_factory=lambda: defaultdict(int))
    proxies: defaultdict[_End, list[tuple[int, Action]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def next(self, *key: object) -> int:
        """Return how often this was requested, from 1."""
        self.uses[key] += 1
        return self.uses[key]

    def signalled(self, rank: int, channel: int) -> int:
        """Return the counter of signals that come to an end of a channel."""
        end = self.program.ranks[rank].channels[channel]
        words = f"signal {{0}} from rank {end.peer} over {end.kind} channel {channel}"
        return self.counter(words, "signal", rank, channel)

    def far(self, rank: int, channel: int) -> int:
        """Return the counter of signals at the other end."""
        there = self.program.other_end(rank, channel)
        return self.signalled(*there) if there else self.counter("nothing", "nobody")


def one_sided_machine(program: PutProgram, memory: Memory, *, calls: int = 1) -> Machine:
    """Return the machine of a program whose checks found nothing, called so often in a row."""
    wires = _Wires(program=program)
    lanes: defaultdict[tuple[int, int, str], list[Action]] = defaultdict(list)
    for call in range(calls):
        for rank, each in enumerate(program.ranks):
            own: list[tuple[tuple[int, int, str], list[Action]]] = []
            for number, ops in enumerate(each.blocks):
                block = _Block(wires, memory, rank, number, call)
                for at, op in enumerate(ops):
                    block.add(at, op)
                own += [((rank, number, lane), acts) for lane, acts in block.lanes.items()]
            if call + 1 < calls:
                done = wires.counter("the end of the call before", "done", rank, call)
                for _, acts in own:
                    acts[-1] = replace(acts[-1], posts=(*acts[-1].posts, done))
                last = _caller(wires, memory, rank, call, finished=(done, len(own)))
                lanes[rank, CALLER, ""].append(last)
            for key, acts in own:
                lanes[key] += acts
    for (rank, channel), queue in wires.proxies.items():
        lanes[rank, queue[0][0], f"proxy {channel}"] = [action for _, action in queue]
    threads = tuple(Thread(*key[:2], tuple(acts)) for key, acts in lanes.items())
    scrap = max(max(each.input, each.output) for each in program.ranks) if calls > 1 else 0
    return Machine(threads, tuple(wires.counters), memory.cells + scrap, memory.cells, memory.name)


def _caller(
    wires: _Wires, memory: Memory, rank: int, call: int, *, finished: tuple[int, int]
) -> Action:
    """Return how the caller reads a rank's output and fills its input between two calls."""
    effects, scrap = [], memory.cells
    output, given = memory.range(rank, "output"), memory.range(rank, "input")
    if len(output):
        effects.append(Effect(scrap, (output.start,), len(output)))
    if len(given):
        effects.append(Effect(given.start, (scrap,), len(given)))
    launch = wires.counter("the call", "launch", rank, call + 1)
    guards = (finished,) if finished[1] else ()
    return Action(0, guards, posts=(launch,), effects=tuple(effects))


class _Block:
    """What the threads of one thread block do in one call, by `lanes`."""

    def __init__(self, wires: _Wires, memory: Memory, rank: int, number: int, call: int) -> None:
        self._wires = wires
        self._memory = memory
        self._rank = rank
        self._number = number
        self._call = call
        self.lanes: defaultdict[str, list[Action]] = defaultdict(list)
        self._together = wires.counter("the threads of its block to meet {0} times")
        self._meetings = 0
        self._since: list[int] = []
        self._arrived: int | None = None

    def add(self, at: int, op: Op) -> None:
        """Add an operation."""
        if op.name in ("nop", "barrier"):
            self._meet(at, op)
        elif op.name in MOVES and op.kind == "port":
            self._push(at, op)
        elif op.name in MOVES:
            self._act(f"data {len(self._since)}", Action(at, effects=self._effects(op)))
        elif op.name in ("sem_release", "sem_acquire"):
            self._count(at, op)
        else:
            self._talk(at, op)

    def _act(self, lane: str, action: Action) -> None:
        """Let a thread do an action after the last meeting."""
        if self._arrived is None:
            self._arrived = self._wires.counter("other threads of its block")
        self._since.append(self._arrived)
        self.lanes[lane].append(
            replace(
                action,
                guards=(*self._begin(), *action.guards),
                posts=(*action.posts, self._arrived),
            )
        )

    def _begin(self) -> tuple[tuple[int, int], ...]:
        if self._meetings:
            return ((self._together, self._meetings),)
        if self._call:
            launch = self._wires.counter("the call", "launch", self._rank, self._call)
            return ((launch, 1),)
        return ()

    def _meet(self, at: int, op: Op) -> None:
        """Let all threads of the block meet, at a barrier with those of others."""
        guards = self._begin()
        if self._arrived is not None:
            guards = (*guards, (self._arrived, len(self._since)))
        lane = self.lanes["meeting"]
        if op.name == "barrier" and op.blocks > 1:
            turn = self._wires.next("barrier", self._rank, op.barrier, self._number)
            name = f"thread blocks at barrier {op.barrier} of rank {self._rank}"
            met = self._wires.counter(name, "met", self._rank, op.barrier, turn)
            lane.append(Action(at, guards, posts=(met,)))
            guards = ((met, op.blocks),)
        lane.append(Action(at, guards, posts=(self._together,)))
        self._meetings += 1
        self._since, self._arrived = [], None

    def _push(self, at: int, op: Op) -> None:
        """Let the port channels put, each what has its number, and signal if that is said."""
        for src, dst, channel in zip(op.src, op.dst, op.channels, strict=True):
            posts = (self._wires.far(self._rank, channel),) if op.name != "put" else ()
            self._tell(channel, Action(at, posts=posts, effects=(self._moved((src,), dst),)))
            if op.name == "pwsf":
                self._flush(at, channel)

    def _tell(self, channel: int, action: Action) -> None:
        """Leave an action to a port channel, which does one after the other."""
        told = self._wires.counter("work for a port channel", "told", self._rank, channel)
        done = self._wires.counter("the port channel", "read", self._rank, channel)
        turn = self._wires.next("told", self._rank, channel)
        later = replace(action, guards=((told, turn),), posts=(*action.posts, done))
        self._wires.proxies[self._rank, channel].append((self._number, later))
        self._act(f"port {channel}", Action(action.step, posts=(told,)))

    def _flush(self, at: int, channel: int) -> None:
        done = self._wires.counter("the port channel", "read", self._rank, channel)
        turn = self._wires.uses["told", self._rank, channel]
        self._act(f"port {channel}", Action(at, guards=((done, turn),) if turn else ()))

    def _talk(self, at: int, op: Op) -> None:
        """Signal, wait or flush on each channel, a thread for each."""
        for channel in op.channels:
            if op.name == "wait":
                turn = self._wires.next("wait", self._rank, channel)
                counter = self._wires.signalled(self._rank, channel)
                self._act(f"wait {channel}", Action(at, guards=((counter, turn),)))
            elif op.name == "flush":
                self._flush(at, channel)
            else:
                told = Action(at, posts=(self._wires.far(self._rank, channel),))
                if op.kind == "port":
                    self._tell(channel, told)
                else:
                    self._act(f"signal {channel}", told)

    def _count(self, at: int, op: Op) -> None:
        """Release or acquire each semaphore, a thread for each."""
        for number in op.semaphores:
            words = f"release {{0}} of semaphore {number}"
            counter = self._wires.counter(words, "semaphore", self._rank, number)
            if op.name == "sem_release":
                self._act(f"{op.name} {number}", Action(at, posts=(counter,)))
                continue
            first = self._wires.program.ranks[self._rank].semaphores[number]
            turn = self._wires.next("acquire", self._rank, number) - first
            guards = ((counter, turn),) if turn > 0 else ()
            self._act(f"{op.name} {number}", Action(at, guards=guards))

    def _effects(self, op: Op) -> tuple[Effect, ...]:
        """Return what a move does; a copy onto itself changes nothing."""
        if op.name in ("put", "get"):
            return tuple(self._moved((src,), dst) for src, dst in zip(op.src, op.dst, strict=True))
        first = self._moved(op.src, op.dst[0])
        if op.name == "copy" and first.sources == (first.target,):
            return ()
        return (first, *(self._moved((op.dst[0],), each) for each in op.dst[1:]))

    def _moved(self, sources: tuple[Cells, ...], target: Cells) -> Effect:
        return Effect(self._cell(target), tuple(map(self._cell, sources)), target.count)

    def _cell(self, cells: Cells) -> int:
        rank = self._rank if cells.rank is None else cells.rank
        return self._memory.cell(rank, Slot(cells.buffer, cells.index))


Sides = tuple[str, str]

SHAPES: Mapping[str, Sides] = {
    "put": ("l+", "r+"),
    "pws": ("l+", "r+"),
    "pwsf": ("l+", "r+"),
    "get": ("r+", "l+"),
    "copy": ("l", "l"),
    "re": ("ll+", "l"),
    "rre": ("lr+", "l"),
    "res": ("ll+", "lr+"),
    "rres": ("lr+", "lr+"),
}
"""Of each move its sources and destinations: l here, r at another rank; + once or more often."""


Fault = tuple[FindingKind, str]
"""What is wrong with an operation; its place comes before the words."""


def misplaced(program: PutProgram) -> Iterator[Finding]:
    """Yield what is wrong with single operations."""
    for rank, block, number, op in program.ops():
        where = rank, block, number
        for kind, words in _faults(program, rank, op):
            yield Finding(kind, f"{place(*where)} {words}", *where)


def _faults(program: PutProgram, rank: int, op: Op) -> Iterator[Fault]:
    yield from _shape(op)
    for cells in (*op.src, *op.dst):
        yield from _in_range(program, rank, op, cells)
    yield from _channels(program, rank, op)
    for semaphore in op.semaphores:
        if not 0 <= semaphore < len(program.ranks[rank].semaphores):
            yield "connection", f"is {op.name} of semaphore {semaphore}, which is not there"


def _shape(op: Op) -> Iterator[Fault]:
    """Yield a fault if the sources and destinations are not those of the operation."""
    if op.name not in MOVES:
        return
    told = "".join("l" if each.rank is None else "r" for each in op.src)
    into = "".join("l" if each.rank is None else "r" for each in op.dst)
    sources, targets = SHAPES[op.name]
    paired = op.name not in puts.PAIRED or len(op.src) == len(op.dst)
    if not (_fits(told, sources) and _fits(into, targets) and paired):
        yield (
            "slot",
            f"is {op.name} from {_said(told)} to {_said(into)}, which the executor has not",
        )
    counts = [each.count for each in (*op.src, *op.dst)]
    if len(set(counts)) > 1 or min(counts, default=1) < 1:
        listed = ", ".join(map(str, counts))
        yield "count", f"is {op.name} of {listed} chunks; all must be as many"
    if op.name == "put" and op.kind != "port" and len({each.buffer for each in op.src}) > 1:
        yield "slot", "puts from several buffers; through memory it may from one"


def _fits(letters: str, shape: str) -> bool:
    least = shape.rstrip("+")
    rest = letters[len(least) :]
    return letters.startswith(least) and (
        not rest or (shape.endswith("+") and set(rest) == {least[-1]})
    )


def _said(letters: str) -> str:
    return f"{letters.count('l')} places here and {letters.count('r')} at other ranks"


def _in_range(program: PutProgram, own: int, op: Op, cells: Cells) -> Iterator[Fault]:
    rank = own if cells.rank is None else cells.rank
    if not 0 <= rank < len(program.ranks):
        highest = len(program.ranks) - 1
        yield "slot", f"uses memory of rank {rank}; ranks go from 0 to {highest}"
        return
    has = getattr(program.ranks[rank], cells.buffer)
    if cells.index < 0 or cells.index + cells.count > has:
        last = f" to {cells.index + cells.count - 1}" if cells.count > 1 else ""
        what = f"is {op.name} of rank {rank}'s {cells.buffer} {cells.index}{last}"
        yield "slot", f"{what}; there are {has} chunks of it"


def _channels(program: PutProgram, rank: int, op: Op) -> Iterator[Fault]:
    """Yield what is wrong with the channels that an operation names."""
    own = program.ranks[rank].channels
    pushes = op.name in MOVES and op.kind == "port"
    for each in op.channels:
        if not 0 <= each < len(own) or own[each].kind != op.kind:
            yield "connection", f"uses {op.kind} channel {each}, which is not there"
            continue
        turn, peer = op.channels.index(each), own[each].peer
        if program.other_end(rank, each) is None:
            yield "connection", f"uses a channel to rank {peer}, which has none back"
        elif pushes and turn < len(op.dst) and op.dst[turn].rank != peer:
            to = op.dst[turn].rank
            yield "connection", f"puts to rank {to} through a channel to rank {peer}"
    if pushes and len(op.channels) != len(op.dst):
        many = len(op.dst)
        yield "connection", f"puts {many} times through {len(op.channels)} port channels"
    if op.name in ("pws", "pwsf", "flush") and op.kind != "port":
        yield "connection", f"is {op.name}, which only port channels have"


def mismatched(program: PutProgram) -> Iterator[Finding]:
    """Yield what does not go together: signals and waits, semaphores, barriers."""
    signals: Counter[tuple[int, int]] = Counter()
    waits: Counter[tuple[int, int]] = Counter()
    users: dict[tuple[str, int, int], Where] = {}
    for rank, block, number, op in program.ops():
        where = rank, block, number
        for channel in op.channels:
            end = rank, channel
            if op.name == "wait":
                waits[end] += 1
                yield from _one_block(users, ("waits on", *end), where)
            elif op.name in ("signal", "pws", "pwsf") or op.kind == "port":
                yield from _one_block(users, ("uses", *end), where)
            if op.name in ("signal", "pws", "pwsf"):
                signals[program.other_end(*end) or end] += 1
    for rank, channel in sorted({*signals, *waits}):
        sent, taken = signals[rank, channel], waits[rank, channel]
        if sent != taken:
            peer = program.ranks[rank].channels[channel].peer
            words = (
                f"rank {rank} waits {taken} times on channel {channel} and rank {peer} signals "
                f"{sent} times; what is left over counts in the next call"
            )
            yield Finding("unmatched", words, rank)
    yield from _semaphores(program)
    yield from _barriers(program)


def _one_block(
    users: dict[tuple[str, int, int], Where], key: tuple[str, int, int], where: Where
) -> Iterator[Finding]:
    first = users.setdefault(key, where)
    if first[1] != where[1]:
        words = f"{place(*where)} {key[0]} channel {key[2]}, and so does {place(*first)}"
        yield Finding("connection", f"{words}; only one thread block may", *where)


def _semaphores(program: PutProgram) -> Iterator[Finding]:
    released: Counter[tuple[int, int]] = Counter()
    acquired: Counter[tuple[int, int]] = Counter()
    takers: dict[tuple[int, int], Where] = {}
    for rank, block, number, op in program.ops():
        counted = {"sem_release": released, "sem_acquire": acquired}.get(op.name)
        for each in op.semaphores if counted is not None else ():
            assert counted is not None
            counted[rank, each] += 1
            if op.name == "sem_acquire":
                first = takers.setdefault((rank, each), (rank, block, number))
                if first[1] != block:
                    words = f"thread blocks {first[1]} and {block} of rank {rank} acquire semaphore"
                    told = f"{words} {each}; who of them gets it is open"
                    yield Finding("connection", told, rank, block, number)
    for rank, each in sorted({*released, *acquired}):
        gives, takes = released[rank, each], acquired[rank, each]
        if gives != takes:
            words = (
                f"semaphore {each} of rank {rank} is released {gives} times and acquired {takes} "
                "times; what is left over counts in the next call"
            )
            yield Finding("unmatched", words, rank)


def _barriers(program: PutProgram) -> Iterator[Finding]:
    uses: defaultdict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    request: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for rank, block, _, op in program.ops():
        if op.name == "barrier":
            uses[rank, op.barrier][block] += 1
            request[rank, op.barrier].add(op.blocks)
    for (rank, barrier), blocks in uses.items():
        wanted = request[rank, barrier]
        if wanted != {len(blocks)} or len(set(blocks.values())) > 1:
            listed = ", ".join(f"{number} ({times} times)" for number, times in blocks.items())
            words = (
                f"barrier {barrier} of rank {rank} is for {', '.join(map(str, sorted(wanted)))} "
                f"thread blocks, and there come {listed}"
            )
            yield Finding("connection", words, rank)


def beyond_limits(program: PutProgram) -> Iterator[Finding]:
    """Yield where a thread block has more of something than the executor takes."""
    for rank, each in enumerate(program.ranks):
        for number, ops in enumerate(each.blocks):
            at = f"rank {rank}, thread block {number} has"
            for has, most, what in _amounts(ops):
                if has > most:
                    yield Finding("limit", f"{at} {has} {what}; the executor takes {most}", rank)


def _amounts(ops: tuple[Op, ...]) -> Iterator[tuple[int, int, str]]:
    yield len(ops), puts.MOST_OPERATIONS, "operations"
    for kind in ("memory", "port"):
        used = {each for op in ops if op.kind == kind for each in op.channels}
        buffers = {
            (each.rank, each.buffer)
            for op in ops
            if op.kind == kind
            for each in (*op.src, *op.dst)
            if each.rank is not None
        }
        yield len(used), puts.MOST_CHANNELS, f"{kind} channels"
        yield len(buffers), puts.MOST_CHANNELS, f"remote buffers by {kind}"
    most = max((len(op.channels) for op in ops), default=0)
    yield most, puts.MOST_CHANNELS_AT_ONCE, "channels in one operation"
    semaphores = max((len(op.semaphores) for op in ops), default=0)
    yield semaphores, puts.MOST_SEMAPHORES, "semaphores in one operation"


def execute_one_sided(
    program: PutProgram, *, interleavings: int = 100, seed: int = 0
) -> Execution[PutProgram]:
    """Execute a program with distinct values and compare them with what its collective promises.

    First its places, channels and semaphores are checked. Then it is run: does it finish, are any
    two accesses to a chunk unordered, is the result right in every one of many orders. Last, two
    calls in a row: a rank that is fast must not put into the memory of one that is still at the
    first.

    Raises
    ------
    ProblemError
        If a setting is out of range or the program's buffers have too many chunks to be kept.
    """
    began = time.perf_counter()
    if interleavings < 1:
        raise ProblemError(f"{interleavings} interleavings are not run; give 1 or more")
    promised = examined(program, _before_running)
    if isinstance(promised, tuple):
        return Execution(program, promised, seconds=time.perf_counter() - began)
    kept = sum(each.input + each.output + each.scratch for each in program.ranks)
    moves = (op for _, _, _, op in program.ops() if op.name in MOVES)
    check_size(program, kept, sum(cells.count for op in moves for cells in op.dst))
    memory = Memory(program, promised, in_place=program.in_place)
    run = Run(one_sided_machine(program, memory), memory, promised, slots=None)
    run.execute(interleavings, seed=seed, keep_input=False)
    findings = run.findings or _again(one_sided_machine(program, memory, calls=2))
    remarks = run.remarks
    if program.parts > 1:
        words = (
            f"thread blocks share operations: of each chunk of the file {program.parts} are made"
        )
        remarks = [*remarks, Finding("cut", words)]
    if program.collective == "custom" and not findings:
        remarks = [*remarks, CUSTOM]
    return Execution(
        program,
        tuple(findings[:MOST]),
        tuple(dict.fromkeys(remarks)),
        interleavings=run.interleavings,
        deviation=None if findings else run.deviation,
        seconds=time.perf_counter() - began,
    )


def _before_running(program: PutProgram, promised: Promise) -> Iterator[Finding]:
    """Yield what is wrong before anything runs; connections only if every place is right."""
    for rank, own in enumerate(program.ranks):
        if not (own.input and own.output):
            words = f"rank {rank} has {own.input} chunks of input and {own.output} of output"
            yield Finding("size", f"{words}; the executor divides by both", rank)
    placed = True
    for each in (*wrong_sizes(program, promised), *misplaced(program)):
        placed = False
        yield each
    if placed:
        yield from mismatched(program)
    yield from beyond_limits(program)


def _again(machine: Machine) -> list[Finding]:
    """Return where a second call meets the first one."""
    order = finishing_order(machine, slots=None)
    return [_told(machine, each) for each in hazards(machine, order)]


def _told(machine: Machine, hazard: Hazard) -> Finding:
    does = {True: "writes", False: "reads"}
    cell = machine.cell_name(hazard.cell)
    words = (
        f"called twice, {_who(machine, hazard.after)} {does[hazard.after_writes]} {cell} and "
        f"{_who(machine, hazard.before)} {does[hazard.before_writes]} it, and nothing says which "
        "comes first"
    )
    return Finding("again", words, *machine.where(hazard.after))


def _who(machine: Machine, action: int) -> str:
    rank, block, _ = machine.where(action)
    return f"the caller of rank {rank}" if block == CALLER else machine.place(action)
