"""A machine of threads that wait for counters and copy and add up cells; it knows no runtime.

Each thread does its actions one after the other. An action begins when its counters have reached
what it waits for, reads and writes cells, and adds one to the counters it posts. Counters only
grow, so whether all threads finish does not depend on who goes first.

A cell holds one chunk. The first cells are the `Memory`, the buffers of all ranks, which any thread
may use at any time; each cell after them is the mailbox of one message, written once and read after
that.

`Values` are distinct in every input, with what the outputs must hold at the end; `difference` says
what is wrong there. Exact runs use random 64-bit integers, whose sums wrap around without loss: a
sum that lacks a contribution or has one twice differs in every element.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from interchange.programs import Buffer, Program, Slot
from interchange.programs.checks import SHORT_INPUT, SHORT_OUTPUT, SUMS, Promise, place
from interchange.programs.one_sided import PutProgram


@dataclass(frozen=True, slots=True)
class Effect:
    """``target = sum of sources``, `count` cells each, from the cells named onwards.

    Parameters
    ----------
    target
        First cell that is written.
    sources
        First cells that are read; several are added up in this order.
    count
        Cells, one after the other.
    """

    target: int
    sources: tuple[int, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Action:
    """What a thread does at once.

    Parameters
    ----------
    step
        Its number for people.
    guards
        ``(counter, value)``: waits until the counter has reached the value; who posted it has
        been before.
    capacity
        ``(counter, number)``: waits until the counter has reached the number less the slots of a
        connection. How many there are is the runtime's to choose, so nothing is ordered by it.
    posts
        Counters to which it adds one when it is done.
    effects
        What it does with cells, one after the other.
    """

    step: int
    guards: tuple[tuple[int, int], ...] = ()
    capacity: tuple[tuple[int, int], ...] = ()
    posts: tuple[int, ...] = ()
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class Thread:
    """Actions in order, with the rank and the number in it."""

    rank: int
    block: int
    actions: tuple[Action, ...]


@dataclass(frozen=True)
class Machine:
    """Threads over common counters and cells.

    Parameters
    ----------
    threads
        All of them.
    counters
        How each counter is called in a sentence after "waits for", with ``{0}`` where the value
        goes.
    cells
        How many there are.
    memory
        How many of them are memory, the first ones.
    cell_name
        Says how a cell of the memory is called.
    """

    threads: tuple[Thread, ...]
    counters: tuple[str, ...]
    cells: int
    memory: int
    cell_name: Callable[[int], str]

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        """All actions, thread after thread; a place in here is an action's number."""
        return tuple(each for thread in self.threads for each in thread.actions)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Number of each thread's first action, and at the end the number of actions."""
        found = [0]
        for thread in self.threads:
            found.append(found[-1] + len(thread.actions))
        return tuple(found)

    @cached_property
    def owners(self) -> tuple[int, ...]:
        """Thread of each action."""
        return tuple(
            number for number, thread in enumerate(self.threads) for _ in range(len(thread.actions))
        )

    @cached_property
    def posters(self) -> tuple[tuple[int, ...], ...]:
        """Actions that post each counter, by number, which is in order within a thread."""
        found: list[list[int]] = [[] for _ in self.counters]
        for number, action in enumerate(self.actions):
            for counter in action.posts:
                found[counter].append(number)
        return tuple(tuple(each) for each in found)

    def where(self, action: int) -> tuple[int, int, int]:
        """Return rank, thread block and step of an action."""
        thread = self.threads[self.owners[action]]
        return thread.rank, thread.block, self.actions[action].step

    def place(self, action: int) -> str:
        """Return how an action is called in sentences."""
        return place(*self.where(action))

    def touched(self, action: int) -> Iterator[tuple[int, int, bool]]:
        """Yield first cell, count and whether it is written, reads before writes."""
        effects = self.actions[action].effects
        for effect in effects:
            for source in effect.sources:
                yield source, effect.count, False
        for effect in effects:
            yield effect.target, effect.count, True


@dataclass
class Counters:
    """Counters of a machine while it is made, by what they count."""

    counters: list[str] = field(default_factory=list)
    made: dict[tuple[object, ...], int] = field(default_factory=dict)

    def counter(self, name: str, *key: object) -> int:
        """Return the counter of a key, which is new if there is no key."""
        if not key or key not in self.made:
            self.counters.append(name)
            if not key:
                return len(self.counters) - 1
            self.made[key] = len(self.counters) - 1
        return self.made[key]


class Memory:
    """Where each rank's buffers lie among the cells.

    Parameters
    ----------
    program
        Whose buffers they are.
    promised
        Of its collective.
    in_place
        Whether input and output overlap: the shorter is the part of the longer that holds the
        rank's own shard.
    """

    def __init__(self, program: Program | PutProgram, promised: Promise, *, in_place: bool) -> None:
        self.in_place = in_place
        self._bases: list[dict[str, int]] = []
        self._sizes: list[dict[str, int]] = []
        cells = 0
        for rank, each in enumerate(program.ranks):
            sizes = {"input": each.input, "output": each.output, "scratch": each.scratch}
            if promised.kind != "custom":
                sizes["input"] = max(each.input, promised.input * promised.has_input(rank))
                sizes["output"] = max(each.output, promised.output * promised.has_output(rank))
            bases = {"input": cells, "output": cells + sizes["input"]}
            if in_place:
                own = rank * promised.shard
                bases["input"] = cells + own * (promised.kind in SHORT_INPUT)
                bases["output"] = cells + own * (promised.kind in SHORT_OUTPUT)
            cells = max(bases["input"] + sizes["input"], bases["output"] + sizes["output"])
            bases["scratch"] = cells
            cells += each.scratch
            self._bases.append(bases)
            self._sizes.append(sizes)
        self.cells = cells

    @cached_property
    def _starts(self) -> list[int]:
        return [min(bases.values()) for bases in self._bases]

    def cell(self, rank: int, slot: Slot) -> int:
        """Return the cell of a slot."""
        return self._bases[rank][slot.buffer] + slot.index

    def range(self, rank: int, buffer: Buffer) -> range:
        """Return the cells of a buffer."""
        base = self._bases[rank][buffer]
        return range(base, base + self._sizes[rank][buffer])

    def rank(self, cell: int) -> int:
        """Return the rank in whose buffers a cell lies."""
        return bisect_right(self._starts, cell) - 1

    def name(self, cell: int) -> str:
        """Return how a cell is called: ``rank 3's output 4 (input 0)``."""
        rank = self.rank(cell)
        found = []
        for buffer in ("output", "input", "scratch"):
            base = self._bases[rank][buffer]
            if base <= cell < base + self._sizes[rank][buffer]:
                found.append(f"{buffer} {cell - base}")
        also = f" ({', '.join(found[1:])})" if found[1:] else ""
        return f"rank {rank}'s {found[0]}{also}" if found else f"a gap of rank {rank}'s buffers"


Array = np.ndarray[Any, Any]

ELEMENTS = 4
"""Numbers in a chunk."""


@dataclass(frozen=True, eq=False)
class Values:
    """Contents of the buffers before and after.

    Parameters
    ----------
    promised
        Of the collective.
    given
        (ranks, chunks of input, elements) array of what the inputs hold.
    start
        (cells of the memory, elements) array at the start; where nothing is, rubbish.
    defined
        1 for each cell of the memory that holds an input at the start.
    places
        (chunks of outputs,) cells that are compared, rank after rank.
    expected
        (chunks of outputs, elements) array of what they must hold.
    """

    promised: Promise
    given: np.ndarray
    start: np.ndarray
    defined: bytearray
    places: np.ndarray
    expected: np.ndarray

    def owner(self, number: int) -> tuple[int, int]:
        """Return rank and chunk of the output of place `number`."""
        ranks = [each for each in range(self.promised.ranks) if self.promised.has_output(each)]
        rank, chunk = divmod(number, self.promised.output)
        return ranks[rank], chunk


def integers(promised: Promise, memory: Memory, *, seed: int) -> Values:
    """Return exact values."""
    chance = np.random.default_rng(seed)
    bounds = np.iinfo(np.int64)

    def drawn(*shape: int) -> np.ndarray:
        return chance.integers(bounds.min, bounds.max, (*shape, ELEMENTS), np.int64)

    return _values(promised, memory, drawn(promised.ranks, promised.input), drawn(memory.cells))


def reals(promised: Promise, memory: Memory, *, seed: int) -> Values:
    """Return float32 values from 1 to 2; what is expected are their sums in float64."""
    chance = np.random.default_rng(seed)
    given = 1 + chance.random((promised.ranks, promised.input, ELEMENTS), np.float32)
    rubbish = np.full((memory.cells, ELEMENTS), np.nan, np.float32)
    return _values(promised, memory, given, rubbish)


def _values(promised: Promise, memory: Memory, given: np.ndarray, start: np.ndarray) -> Values:
    defined = bytearray(memory.cells)
    for rank in range(promised.ranks):
        if promised.has_input(rank):
            cells = memory.range(rank, "input")[: promised.input]
            start[cells.start : cells.stop] = given[rank, : len(cells)]
            defined[cells.start : cells.stop] = b"\1" * len(cells)
    if promised.kind == "custom":
        compared = [memory.range(rank, "output") for rank in range(promised.ranks)]
        expected = np.empty((0, ELEMENTS), given.dtype)
    else:
        compared = [
            memory.range(rank, "output")[: promised.output]
            for rank in range(promised.ranks)
            if promised.has_output(rank)
        ]
        expected = expected_outputs(promised, given).reshape(-1, ELEMENTS)
    places = np.concatenate([np.array(cells, np.int64) for cells in compared])
    return Values(promised, given, start, defined, places, expected)


def expected_outputs(promised: Promise, given: Array) -> Array:
    """Return (ranks with an output, chunks of output, elements), by the table of `checks`."""
    ranks, root, kind = promised.ranks, promised.root, promised.kind
    shards = (ranks, promised.shard, given.shape[-1])
    found: Array
    if kind in SUMS:
        exact = np.float64 if given.dtype == np.float32 else given.dtype
        total = given.sum(axis=0, dtype=exact)
        if kind == "reduce-scatter":
            found = total.reshape(shards)
        else:
            found = np.broadcast_to(total, (ranks if kind == "all-reduce" else 1, *total.shape))
    elif kind == "all-to-all":
        found = given.reshape(ranks, *shards).swapaxes(0, 1)
    elif kind == "scatter":
        found = given[root].reshape(shards)
    else:
        gathered = given[root] if kind == "broadcast" else given.reshape(-1, given.shape[-1])
        found = np.broadcast_to(gathered, (1 if kind == "gather" else ranks, *gathered.shape))
    return found


def difference(values: Values, number: int, got: np.ndarray) -> str:
    """Say what place `number` should hold and what (elements,) it holds instead."""
    promised, given, want = values.promised, values.given, values.expected[number]
    rank, chunk = values.owner(number)
    sources = promised.sources(rank, chunk)
    _, own = sources[0]
    if len(sources) > 1:
        should = f"the sum of chunk {own} of all {len(sources)} inputs"
    else:
        should = f"chunk {own} of rank {sources[0][0]}'s input"
    words = f"rank {rank}'s output {chunk} should hold {should} and"
    if (got == values.start[values.places[number]]).all():
        return f"{words} is left as it was"
    for src, part in sources if len(sources) > 1 else []:
        if (got == want - given[src, part]).all():
            return f"{words} lacks that of rank {src}"
        if (got == want + given[src, part]).all():
            return f"{words} has that of rank {src} twice"
    held = np.argwhere((given == got).all(axis=2))
    if len(held):
        return f"{words} holds chunk {held[0][1]} of rank {held[0][0]}'s input"
    return f"{words} holds another sum" if len(sources) > 1 else f"{words} holds something else"
