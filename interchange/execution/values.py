"""Distinct values in every input, what the outputs must hold at the end, and what is wrong there.

Exact runs use random 64-bit integers, whose sums wrap around without loss: a sum that lacks a
contribution or has one twice differs in every element.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from interchange.execution.memory import SUMS, Memory, Promise

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
        expected = _expected(promised, given).reshape(-1, ELEMENTS)
    places = np.concatenate([np.array(cells, np.int64) for cells in compared])
    return Values(promised, given, start, defined, places, expected)


def _expected(promised: Promise, given: Array) -> Array:
    """Return (ranks with an output, chunks of output, elements), by the table of `memory`."""
    ranks, root, kind = promised.ranks, promised.root, promised.kind
    shards = (ranks, promised.shard, ELEMENTS)
    found: Array
    if kind in SUMS:
        exact = np.float64 if given.dtype == np.float32 else given.dtype
        total = given.sum(axis=0, dtype=exact)
        if kind == "reduce-scatter":
            found = total.reshape(shards)
        else:
            found = np.tile(total, (ranks if kind == "all-reduce" else 1, 1, 1))
    elif kind == "all-to-all":
        found = given.reshape(ranks, *shards).swapaxes(0, 1)
    elif kind == "scatter":
        found = given[root].reshape(shards)
    else:
        gathered = given[root] if kind == "broadcast" else given.reshape(-1, ELEMENTS)
        found = np.tile(gathered, (1 if kind == "gather" else ranks, 1, 1))
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
