"""Programs of thread blocks, as the executors of MSCCL know them.

Every rank has an input, an output and a scratch buffer, counted in chunks, and thread blocks that
run side by side. A thread block does its steps one after the other; it may send to one rank and
receive from one rank, over one channel. What a block sends to a rank over a channel is received
there by the one block that receives from it over that channel, in order: the k-th send is taken by
the k-th receive. A step may wait for one step of another block of its rank; where it must wait for
more, steps that do nothing (``nop``) wait before it.

What the operations do with the chunks ``src``, ``dst`` and what is received, `count` chunks each:

====  ==============================  =====================================
s     send                            sends src
r     receive                         dst = received
rcs   receive, copy, send             dst = received; sends it on
rrs   receive, reduce, send           sends received + src; keeps nothing
rrc   receive, reduce, copy           dst = received + src
rrcs  receive, reduce, copy, send     dst = received + src; sends it on
cpy   copy                            dst = src
re    reduce                          dst = dst + src
nop   nothing                         waits
====  ==============================  =====================================

Source of the semantics: the public executors of MSCCL (microsoft/msccl, src/include/msccl.h and
the interpreter beside it).
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import Generic, Literal, TypeVar, get_args

from ccl.collective import CollectiveKind
from ccl.errors import ProblemError

Buffer = Literal["input", "output", "scratch"]
BUFFERS: tuple[Buffer, ...] = get_args(Buffer)

Operation = Literal["s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)

Protocol = Literal["Simple", "LL", "LL128"]
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)

SENDS = frozenset({"s", "rcs", "rrs", "rrcs"})
RECEIVES = frozenset({"r", "rcs", "rrs", "rrc", "rrcs"})
READS = frozenset({"s", "rrs", "rrc", "rrcs", "cpy", "re"})
"""Operations that read src."""
WRITES = frozenset({"r", "rcs", "rrc", "rrcs", "cpy", "re"})
"""Operations that write dst."""


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """The place of a chunk in a buffer, counted in chunks from 0."""

    buffer: Buffer
    index: int


@dataclass(frozen=True, slots=True)
class Step:
    """What a thread block does at once.

    Parameters
    ----------
    operation
        One of `OPERATIONS`.
    src, dst
        First chunk that is read and written, or None where there is none.
    count
        Chunks, one after the other.
    after
        ``(block, step)`` of the same rank that must be done before, or None.
    """

    operation: Operation
    src: Slot | None = None
    dst: Slot | None = None
    count: int = 1
    after: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ThreadBlock:
    """Steps in order; `send` and `receive` are ranks, or -1 for none."""

    send: int
    receive: int
    channel: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class RankBuffers:
    """Sizes of the buffers of a rank, in chunks."""

    input: int
    output: int
    scratch: int


@dataclass(frozen=True, slots=True)
class RankProgram(RankBuffers):
    """What one rank does."""

    blocks: tuple[ThreadBlock, ...]


Does = TypeVar("Does", bound=RankBuffers)


@dataclass(frozen=True)
class Routine(Generic[Does]):
    """What all ranks do in a call, whatever a rank does.

    Parameters
    ----------
    name
        For people and for the runtime.
    collective
        What it does.
    ranks
        One for each rank.
    in_place
        Whether it may be called with overlapping buffers. In place, the shorter buffer is the part
        of the longer one that holds the rank's own shard; of an all-reduce both are the same.
    smallest, largest
        Sizes in bytes of the buffer for which a runtime is to choose it.
    root
        Rank of the root where the collective has one.
    notes
        What it does not keep of the plan that it was made from, in sentences.

    Raises
    ------
    ProblemError
        If it has no rank.
    """

    name: str
    collective: CollectiveKind
    ranks: tuple[Does, ...]
    _: KW_ONLY
    in_place: bool = False
    smallest: int = 0
    largest: int = 1 << 40
    root: int = 0
    notes: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if not self.ranks:
            raise ProblemError(f"program {self.name} has no rank; give one or more")

    @property
    def longest(self) -> int:
        """Chunks of the longest input or output of a rank."""
        return max(max(each.input, each.output) for each in self.ranks)


@dataclass(frozen=True)
class Program(Routine[RankProgram]):
    """What all ranks do, thread block by thread block.

    Parameters
    ----------
    chunks_per_loop
        Into how many chunks the larger of a rank's input and output is cut.
    protocol
        Of NCCL.
    out_of_place
        Whether it may be called with separate buffers.
    """

    chunks_per_loop: int
    protocol: Protocol = "Simple"
    _: KW_ONLY
    out_of_place: bool = True

    @property
    def channels(self) -> int:
        """Channels that its thread blocks use."""
        return 1 + max((block.channel for _, _, block in self.blocks()), default=0)

    @property
    def steps(self) -> int:
        """Steps of all thread blocks."""
        return sum(len(block.steps) for _, _, block in self.blocks())

    def blocks(self) -> Iterator[tuple[int, int, ThreadBlock]]:
        """Yield all thread blocks with their rank and their number in it."""
        for rank, program in enumerate(self.ranks):
            for number, block in enumerate(program.blocks):
                yield rank, number, block
