"""The buffers of a rank, filled by chance, and what a collective makes of them.

Every rank makes the inputs of all ranks from the seed, so none has to be told them: what comes by
the wires can only be right if the program is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from interchange.programs.program import Program
from interchange.running.wires import Array

DType = np.dtype[Any]


@dataclass(frozen=True)
class Buffers:
    """Arrays of a rank; in place, the shorter of input and output is a part of the other.

    Parameters
    ----------
    given
        The input as it was, a copy.
    input, output, scratch
        What the program works on.
    """

    given: Array
    input: Array
    output: Array
    scratch: Array

    @property
    def by_name(self) -> dict[str, Array]:
        """The three by the names of `interchange.programs`."""
        return {"input": self.input, "output": self.output, "scratch": self.scratch}


def buffers_of(
    program: Program, rank: int, *, dtype: DType, elements: int, in_place: bool, seed: int
) -> Buffers:
    """Return the buffers of a rank; what is not given holds numbers that nobody sent."""
    own = program.ranks[rank]
    given = _given(program, rank, dtype=dtype, elements=elements, seed=seed)
    scratch = np.full(own.scratch * elements, -77, dtype=dtype)
    if not in_place:
        output = np.full(own.output * elements, -55, dtype=dtype)
        return Buffers(given.copy(), given, output, scratch)
    longer = max(own.input, own.output) * elements
    whole = np.full(longer, -55, dtype=dtype)

    def part(chunks: int) -> Array:
        size = chunks * elements
        first = rank * size if size < longer else 0
        return whole[first : first + size]

    part(own.input)[:] = given
    return Buffers(given.copy(), part(own.input), part(own.output), scratch)


def expected(
    program: Program, rank: int, *, dtype: DType, elements: int, seed: int
) -> Array | None:
    """Return what the output must be by the definition of the collective; None if anything may.

    Sums are made in the next wider type, rank after rank.
    """
    ranks = range(len(program.ranks))
    inputs = [_given(program, each, dtype=dtype, elements=elements, seed=seed) for each in ranks]
    size = program.ranks[rank].output * elements
    kind, mine = program.collective, slice(rank * size, (rank + 1) * size)
    if kind in ("reduce", "gather") and rank != program.root:
        return None
    if kind in ("all-gather", "gather"):
        return np.concatenate(inputs)
    if kind == "broadcast":
        return inputs[program.root]
    if kind == "scatter":
        return inputs[program.root][mine]
    if kind == "all-to-all":
        shard = size // len(inputs)
        return np.concatenate([each[rank * shard : (rank + 1) * shard] for each in inputs])
    wide = np.float64 if dtype.kind == "f" else np.int64
    total = np.sum([each.astype(wide) for each in inputs], axis=0)
    return np.asarray(total[mine] if kind == "reduce-scatter" else total).astype(dtype)


def _given(program: Program, rank: int, *, dtype: DType, elements: int, seed: int) -> Array:
    """Return the input of a rank: whole numbers that sums of them hold exactly, or real ones."""
    chance = np.random.default_rng([seed, rank])
    size = program.ranks[rank].input * elements
    if dtype.kind == "f":
        return chance.uniform(1.0, 2.0, size).astype(dtype)
    return chance.integers(0, 1_000_000, size).astype(dtype)
