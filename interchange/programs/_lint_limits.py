"""How much each executor takes, and what a complaint is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ccl.collective import CollectiveKind

Executor = Literal["msccl", "azure", "rccl"]
"""microsoft/msccl, Azure/msccl-executor-nccl and ROCm/rccl."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What an executor takes at most.

    Parameters
    ----------
    title
        For people.
    steps
        Of a thread block.
    blocks
        Thread blocks of a rank.
    channels
        Of a program.
    collectives
        Which it knows.
    """

    title: str
    steps: int
    blocks: int
    channels: int
    collectives: frozenset[CollectiveKind]


BLOCKS_PER_CHANNEL = 32
"""Thread blocks of a rank that send over one channel, and as many that receive."""

COUNT = 71
"""Chunks of a step; the parsers refuse 72 and more."""

NAME = 63
"""Characters of a name."""

FUSION = 16
"""Reductions in a row into one chunk that are done at once."""

ELEMENTS = 4095
"""Elements that a parser keeps; it stops when its 4,096 places are full."""

CHILDREN = 1024
"""Children of one element; a parser does not check that there is a place for another."""

OFFSET = 2**15 - 1
"""Highest place of a chunk in a buffer; offsets are kept in 16 bits."""

AWAITED_BLOCK = 127
"""Highest thread block that a step can wait for; its number is kept in 8 bits."""

_COMMON: frozenset[CollectiveKind] = frozenset(
    {"all-gather", "reduce-scatter", "all-reduce", "all-to-all", "broadcast", "reduce"}
)

EXECUTORS: dict[Executor, Limits] = {
    "msccl": Limits(
        title="microsoft/msccl",
        steps=256,
        blocks=216,
        channels=32,
        collectives=_COMMON | {"custom"},
    ),
    "azure": Limits(
        title="Azure/msccl-executor-nccl",
        steps=64,
        blocks=1024,
        channels=32,
        collectives=_COMMON | {"gather", "scatter"},
    ),
    "rccl": Limits(
        title="ROCm/rccl",
        steps=64,
        blocks=64,
        channels=128,
        collectives=_COMMON | {"gather", "scatter"},
    ),
}


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing that an executor will not take, or may not.

    Parameters
    ----------
    text
        A sentence: where, what, the value, the limit and what to do.
    severe
        Whether the executor refuses it or goes wrong, rather than perhaps.
    rank, block, step
        Where it is, as far as it is anywhere.
    """

    text: str
    severe: bool = True
    rank: int | None = None
    block: int | None = None
    step: int | None = None

    def __str__(self) -> str:
        return self.text
