"""Programs of puts as machines: threads of a block that go their own way until they meet.

A thread block is several threads of the machine: one for each channel or semaphore and what is done
with it, since different threads of the kernel do that, and one for each move of data between two
meetings of its threads, since all of them share in it and nothing says who is how far. What
nothing but their order in the block separates is in no order here. A port channel is a thread as
well, which carries out its instructions in order.

Of several calls one after the other, a rank begins the next one when all its thread blocks are
done and its caller has read the outputs and filled the inputs anew.
"""

from collections import defaultdict
from dataclasses import dataclass, field, replace

from interchange.execution.machine import Action, Counters, Effect, Machine, Memory, Thread
from interchange.programs import Slot
from interchange.programs.one_sided.program import MOVES, Cells, Op, PutProgram

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
