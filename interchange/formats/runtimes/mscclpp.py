"""MSCCL++ execution plans: programs of puts, signals and waits as the executor loads them.

A plan is written as the program that `interchange.programs.one_sided` makes of it: tables first,
operations by places in them. A file is read as such a program (`one_sided_from_json`), which is
executed (`interchange.execution.one_sided`) and not drawn; what is not known in it is read past.

Operations name channels by their place among those of their thread block, and remote buffers by
their place among those that their thread block reaches in that way; a program names ranks and the
rank's channels. Where thread blocks share an operation (``tbg_info``), all chunks are cut so that
each share is whole chunks.

The executor knows no root; ``root`` stands in the file beside what it reads, for who reads it
back. Sizes of buffers are never 0 chunks, also where a rank has nothing in them, because it
divides by them.

Sources of the format: microsoft/mscclpp, src/core/executor/execution_plan.cc and docs/dsl.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from ccl.errors import FormatError
from ccl.serialization.documents import Document
from ccl.serialization.text import decode_json, laid_out
from interchange.formats.fields import head_of
from interchange.formats.format import Writer, Written, one_file, replayed
from interchange.formats.runtimes.msccl_xml.read import BUFFERS, COLLECTIVES, ROOTED
from interchange.programs import Buffer
from interchange.programs import one_sided as ir

Amount = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
MOST_BYTES = 2**64 - 1
Bytes = Annotated[int, msgspec.Meta(ge=0)]
"""At most `MOST_BYTES`, which is more than msgspec itself can check."""

Letter = Literal["i", "o", "s"]


class BuffFile(msgspec.Struct, frozen=True):
    """A run of chunks: of an own buffer by its letter, or of a remote buffer by its place."""

    index: Amount
    size: Amount
    type: Letter | None = None
    buffer_id: Amount | None = None
    switch_channel_id: Amount | None = None


class GroupFile(msgspec.Struct, frozen=True):
    """Which share of an operation a thread block of a group does."""

    tb_id: Amount
    tbg_size: Annotated[int, msgspec.Meta(ge=1, le=64)]


class OpFile(msgspec.Struct, frozen=True):
    """An operation."""

    name: str
    channel_type: str | None = None
    channel_ids: tuple[Amount, ...] = ()
    src_buff: tuple[BuffFile, ...] = ()
    dst_buff: tuple[BuffFile, ...] = ()
    tbg_info: GroupFile | None = None
    barrier_id: Amount = 0
    num_threadblocks: Amount = 1
    semaphore_ids: tuple[Amount, ...] = ()
    reduce_op: str = "sum"


class ChannelsFile(msgspec.Struct, frozen=True):
    """Channels that a thread block uses: operations name them by their place here."""

    channel_type: str
    channel_ids: tuple[Amount, ...]


class RefsFile(msgspec.Struct, frozen=True):
    """Remote buffers that a thread block uses."""

    access_channel_type: str
    remote_buffer_ids: tuple[Amount, ...]


class BlockFile(msgspec.Struct, frozen=True):
    """A thread block."""

    id: Amount
    ops: tuple[OpFile, ...]
    channels: tuple[ChannelsFile, ...] = ()
    remote_buffer_refs: tuple[RefsFile, ...] = ()


class LinkFile(msgspec.Struct, frozen=True):
    """Channels of one kind to ranks."""

    channel_type: str
    connected_to: tuple[Amount, ...] = ()


class RemoteFile(msgspec.Struct, frozen=True):
    """A buffer of another rank."""

    rank: Amount
    type: Letter
    access_channel_types: tuple[str, ...]


class SemaphoreFile(msgspec.Struct, frozen=True):
    """A semaphore of a rank."""

    init_value: Amount


class GpuFile(msgspec.Struct, frozen=True):
    """What a rank does."""

    id: Amount
    input_chunks: Amount
    output_chunks: Amount
    scratch_chunks: Amount
    threadblocks: tuple[BlockFile, ...]
    channels: tuple[LinkFile, ...] = ()
    remote_buffers: tuple[RemoteFile, ...] = ()
    semaphores: tuple[SemaphoreFile, ...] = ()


class PlanFile(msgspec.Struct, frozen=True):
    """A file."""

    name: str
    collective: str
    protocol: str
    inplace: bool
    gpus: tuple[GpuFile, ...]
    reuse_resources: bool = False
    min_message_size: Bytes = 0
    max_message_size: Bytes = MOST_BYTES
    root: Amount = 0


MOST_CHUNKS = 8_000_000
"""Of all buffers together."""
MOST_PARTS = 64
"""In how many a chunk is cut at most."""
_KINDS: dict[str, ir.ChannelKind] = {"memory": "memory", "port": "port"}
_NAMES: dict[str, ir.PutOperation] = {name: name for name in ir.PUT_OPERATIONS}


def one_sided_from_json(content: bytes, name: str = "plan") -> ir.PutProgram:
    """Read the program of a file called `name`.

    Raises
    ------
    FormatError
        If it is malformed, with the place, or does what is not executed here.
    """
    try:
        return _program(decode_json(content, PlanFile))
    except FormatError as error:
        raise FormatError(f"{name}: {error}") from None


def _program(file: PlanFile) -> ir.PutProgram:
    if max(file.min_message_size, file.max_message_size) > MOST_BYTES:
        raise FormatError(
            f"its messages have more than {MOST_BYTES:,} bytes, which no machine counts"
        )
    if not file.gpus:
        raise FormatError("gpus is empty; a plan has one GPU or more")
    if file.protocol != "Simple":
        raise FormatError(
            f"the protocol is {file.protocol[:40]!r}; only plans of Simple are executed here"
        )
    if file.reuse_resources:
        raise FormatError(
            "it reuses its scratch buffer in turns (reuse_resources); that is not executed here"
        )
    for place, gpu in enumerate(file.gpus):
        if gpu.id != place:
            raise FormatError(
                f"at gpus[{place}]: its id is {gpu.id}; GPUs are listed by their rank from 0"
            )
    parts = _parts(file)
    chunks = sum(gpu.input_chunks + gpu.output_chunks + gpu.scratch_chunks for gpu in file.gpus)
    if chunks * parts > MOST_CHUNKS:
        raise FormatError(
            f"it has {chunks * parts:,} chunks in its buffers; at most {MOST_CHUNKS:,} are read"
        )
    kind = COLLECTIVES.get(file.collective.lower(), "custom")
    factor = len(file.gpus) if kind == "gather" else 1
    return ir.PutProgram(
        name=file.name,
        collective=kind,
        ranks=tuple(_Gpu(gpu, place, parts).rank() for place, gpu in enumerate(file.gpus)),
        in_place=file.inplace,
        smallest=file.min_message_size * factor,
        largest=file.max_message_size * factor,
        root=file.root,
        parts=parts,
    )


def _parts(file: PlanFile) -> int:
    """Return in how many chunks are cut so that thread blocks share them evenly."""
    parts = 1
    for gpu in file.gpus:
        for block in gpu.threadblocks:
            for op in block.ops:
                if op.tbg_info is not None:
                    parts = math.lcm(parts, op.tbg_info.tbg_size)
                    if parts > MOST_PARTS:
                        raise FormatError(
                            f"thread blocks share operations in more than {MOST_PARTS} parts"
                        )
    return parts


class _Reach:
    """Channels and remote buffers of a thread block by kind of channel, in their order there."""

    def __init__(self, block: BlockFile) -> None:
        self.channels: defaultdict[str, list[int]] = defaultdict(list)
        self.buffers: defaultdict[str, list[int]] = defaultdict(list)
        for some in block.channels:
            self.channels[some.channel_type] += some.channel_ids
        for each in block.remote_buffer_refs:
            self.buffers[each.access_channel_type] += each.remote_buffer_ids


class _Gpu:
    """One rank of a file."""

    def __init__(self, gpu: GpuFile, place: int, parts: int) -> None:
        self._gpu = gpu
        self._parts = parts
        self._place = place
        self._channels = [
            ir.Channel(self._kind(link.channel_type, "its channels"), peer)
            for link in gpu.channels
            for peer in link.connected_to
        ]
        self._own = {
            kind: [n for n, each in enumerate(self._channels) if each.kind == kind]
            for kind in _KINDS
        }

    def rank(self) -> ir.PutRank:
        """Return what it does."""
        gpu, parts = self._gpu, self._parts
        blocks = []
        for place, block in enumerate(gpu.threadblocks):
            if block.id != place:
                self._refuse(f"threadblocks[{place}] has the id {block.id}; they go from 0")
            reach = _Reach(block)
            at = f"threadblocks[{place}].ops"
            blocks.append(
                tuple(self._op(reach, f"{at}[{n}]", op) for n, op in enumerate(block.ops))
            )
        return ir.PutRank(
            gpu.input_chunks * parts,
            gpu.output_chunks * parts,
            gpu.scratch_chunks * parts,
            tuple(self._channels),
            tuple(each.init_value for each in gpu.semaphores),
            tuple(blocks),
        )

    def _refuse(self, words: str) -> None:
        raise FormatError(f"at gpus[{self._place}]: {words}")

    def _kind(self, name: str, where: str) -> ir.ChannelKind:
        if name not in _KINDS:
            self._refuse(f"{where} are of type {name[:40]!r}; memory and port are executed here")
        return _KINDS[name]

    def _op(self, reach: _Reach, where: str, op: OpFile) -> ir.Op:
        if op.name not in _NAMES:
            self._refuse(f"{where} is {op.name[:40]!r}; executed here are {', '.join(_NAMES)}")
        if op.reduce_op != "sum":
            self._refuse(f"{where} reduces by {op.reduce_op[:40]!r}; only sums are executed here")
        kind = None
        if op.channel_type not in (None, "none"):
            kind = self._kind(op.channel_type or "", f"the channels of {where}")
        elif op.channel_ids:
            self._refuse(f"{where} uses channels and has no channel_type")
        return ir.Op(
            _NAMES[op.name],
            tuple(self._cells(reach, where, op, buff) for buff in op.src_buff),
            tuple(self._cells(reach, where, op, buff) for buff in op.dst_buff),
            kind,
            self._used(reach, where, op, kind),
            op.semaphore_ids,
            op.barrier_id,
            op.num_threadblocks,
        )

    def _used(
        self, reach: _Reach, where: str, op: OpFile, kind: ir.ChannelKind | None
    ) -> tuple[int, ...]:
        """Return the numbers of an operation's channels; moves through memory need none."""
        if kind is None or (op.name in ir.MOVES and kind == "memory"):
            return ()
        own, told = self._own[kind], reach.channels[kind]
        found = []
        for place in op.channel_ids:
            if place >= len(told) or told[place] >= len(own):
                self._refuse(f"{where} uses {kind} channel {place}, which its thread block has not")
            found.append(own[told[place]])
        return tuple(found)

    def _cells(self, reach: _Reach, where: str, op: OpFile, buff: BuffFile) -> ir.Cells:
        index, count = buff.index * self._parts, buff.size * self._parts
        if op.tbg_info is not None:
            turn, many = op.tbg_info.tb_id, op.tbg_info.tbg_size
            if turn >= many:
                self._refuse(f"{where} is share {turn} of {many}; shares go from 0")
            count //= many
            index += turn * count
        if buff.type is not None:
            return ir.Cells(BUFFERS[buff.type], index, count)
        if buff.buffer_id is None:
            self._refuse(f"{where} has a buffer with neither type nor buffer_id")
        told = reach.buffers[op.channel_type or ""]
        place = buff.buffer_id or 0
        if place >= len(told) or told[place] >= len(self._gpu.remote_buffers):
            self._refuse(f"{where} uses remote buffer {place}, which its thread block has not")
        remote = self._gpu.remote_buffers[told[place]]
        if op.channel_type not in remote.access_channel_types:
            self._refuse(f"{where} uses remote buffer {place} by a channel that does not reach it")
        return ir.Cells(BUFFERS[remote.type], index, count, remote.rank)


ALIGNMENT = 16
"""Bytes: buffers are a multiple of this and of their chunks."""
THREADS = 1024
"""Of a thread block; the executor's default."""

_LETTERS = {buffer: letter for letter, buffer in BUFFERS.items()}
_WRITTEN_KINDS = ("memory", "port")
_Remote = tuple[int | None, Buffer, str]
"""Rank, buffer, kind of channel."""
_SUMS = frozenset({"re", "rre", "res", "rres"})


def one_sided_to_json(program: ir.PutProgram) -> dict[str, Any]:
    """Return a program as the object of a file."""
    named = [name for name, kind in COLLECTIVES.items() if kind == program.collective]
    # A gather's buffer is recognised by its output, and the executor looks at the input.
    factor = len(program.ranks) if program.collective == "gather" else 1
    root = {"root": program.root} if program.collective in ROOTED else {}
    return {
        "name": program.name,
        "collective": named[-1],
        "protocol": "Simple",
        "inplace": program.in_place,
        "reuse_resources": False,
        **root,
        "gpus": [_gpu(number, rank) for number, rank in enumerate(program.ranks)],
        "num_threads_per_block": THREADS,
        "use_double_scratch_buffer": False,
        "buffer_alignment": ALIGNMENT,
        "min_message_size": -(-program.smallest // factor),
        "max_message_size": program.largest // factor,
    }


def _gpu(number: int, rank: ir.PutRank) -> dict[str, Any]:
    places: dict[int, int] = {}
    for kind in _WRITTEN_KINDS:
        own = [n for n, each in enumerate(rank.channels) if each.kind == kind]
        places |= {channel: place for place, channel in enumerate(own)}
    remote: dict[_Remote, int] = {}
    for ops in rank.blocks:
        for op in ops:
            for cells in (*op.src, *op.dst):
                if cells.rank is not None:
                    key = cells.rank, cells.buffer, op.kind or "memory"
                    remote.setdefault(key, len(remote))
    blocks = [_block(n, ops, places, remote=remote) for n, ops in enumerate(rank.blocks)]
    kinds = [kind for kind in _WRITTEN_KINDS if any(each.kind == kind for each in rank.channels)]
    return {
        "id": number,
        "input_chunks": rank.input,
        "output_chunks": rank.output,
        "scratch_chunks": rank.scratch,
        "threadblocks": blocks,
        "channels": [
            {
                "channel_type": kind,
                "connected_to": [each.peer for each in rank.channels if each.kind == kind],
            }
            for kind in kinds
        ],
        "remote_buffers": [
            {"rank": peer, "type": _LETTERS[buffer], "access_channel_types": [kind]}
            for peer, buffer, kind in remote
        ],
        "semaphores": [{"init_value": value} for value in rank.semaphores],
    }


def _block(
    number: int, ops: tuple[ir.Op, ...], places: dict[int, int], *, remote: dict[_Remote, int]
) -> dict[str, Any]:
    """Return a thread block; `places` of channels among their kind, numbers of remote buffers."""
    channels: dict[str, list[int]] = {}
    buffers: dict[str, list[int]] = {}
    written = []
    for op in ops:
        kind = op.kind or "memory"
        for channel in op.channels:
            _enlist(channels.setdefault(kind, []), places[channel])
        for cells in (*op.src, *op.dst):
            if cells.rank is not None:
                _enlist(buffers.setdefault(kind, []), remote[cells.rank, cells.buffer, kind])
        here = [channels.get(kind, []).index(places[each]) for each in op.channels]
        there = [
            _run(each, buffers.get(kind, []), remote.get((each.rank, each.buffer, kind)))
            for each in (*op.src, *op.dst)
        ]
        written.append(_op(op, here, there))
    return {
        "id": number,
        "ops": written,
        "channels": [
            {"channel_type": kind, "channel_ids": each} for kind, each in channels.items()
        ],
        "remote_buffer_refs": [
            {"access_channel_type": kind, "remote_buffer_ids": each}
            for kind, each in buffers.items()
        ],
    }


def _op(op: ir.Op, channels: list[int], runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an operation; `runs` are its sources, then its destinations."""
    told: dict[str, Any] = {"name": op.name}
    if op.src:
        told["src_buff"] = runs[: len(op.src)]
    if op.dst:
        told["dst_buff"] = runs[len(op.src) :]
    if channels:
        told["channel_ids"] = channels
    if op.kind is not None:
        told["channel_type"] = op.kind
    if op.name in _SUMS:
        told["reduce_op"] = "sum"
    if op.semaphores:
        told["semaphore_ids"] = list(op.semaphores)
    if op.name == "barrier":
        told |= {"barrier_id": op.barrier, "num_threadblocks": op.blocks}
    return told


def _run(cells: ir.Cells, buffers: list[int], remote: int | None) -> dict[str, Any]:
    """Return a run of chunks; `remote` is the number of its buffer if that is another rank's."""
    where: dict[str, Any] = {"type": _LETTERS[cells.buffer]}
    if remote is not None:
        where = {"buffer_id": buffers.index(remote)}
    return {**where, "index": cells.index, "size": cells.count}


def _enlist(listed: list[int], value: int) -> None:
    """Add a value that is new."""
    if value not in listed:
        listed.append(value)


__all__ = ["WRITER", "Options", "one_sided_from_json", "one_sided_to_text", "recognises"]

MANY_BLOCKS = 64
"""Thread blocks of a rank up to which nothing is said; an H100 has 132 places for them."""


@dataclass(frozen=True, kw_only=True)
class Options(ir.Options):
    """How a plan becomes a file."""


class _Looked(msgspec.Struct, frozen=True):
    """What tells a plan of MSCCL++ from other JSON."""

    collective: str
    inplace: bool
    gpus: list[msgspec.Raw]


def recognises(content: bytes) -> bool:
    """Say whether content is an execution plan."""
    return b'"threadblocks"' in content and head_of(content, _Looked) is not None


def one_sided_to_text(program: ir.PutProgram) -> str:
    """Return a program as the text of a file."""
    return f"{laid_out(one_sided_to_json(program))}\n"


def _write(content: Document, options: Options) -> Written:
    problem, plan, _ = replayed(content)
    program = ir.lower_one_sided(problem, plan, options)
    return one_file(one_sided_to_text(program), ending="json", lost=_lost(program))


def _lost(program: ir.PutProgram) -> tuple[str, ...]:
    """Say what the format cannot carry and what the executor asks for."""
    first = program.ranks[0]
    step = ALIGNMENT * max(first.input, first.output)
    lost = [*program.notes, f"sizes that are no multiple of {step:,} bytes: the executor refuses"]
    most = max(len(rank.blocks) for rank in program.ranks)
    if most > MANY_BLOCKS:
        lost.append(
            f"{most:,} thread blocks of a rank wait for one another: the GPU must have room for "
            "all of them at once; ask for fewer pieces"
        )
    return tuple(lost)


WRITER = Writer("mscclpp", "MSCCL++ execution plan", "json", "plan", _write, Options)
