"""Execution plans of MSCCL++ as programs of puts.

Operations name channels by their place among those of their thread block, and remote buffers by
their place among those that their thread block reaches in that way; a program names ranks and the
rank's channels. Where thread blocks share an operation (``tbg_info``), all chunks are cut so that
each share is whole chunks.
"""

from __future__ import annotations

import math
from collections import defaultdict

from ccl.errors import FormatError
from ccl.serialization.text import decode_json
from interchange.formats.runtimes._mscclpp_shape import (
    MOST_BYTES,
    BlockFile,
    BuffFile,
    GpuFile,
    OpFile,
    PlanFile,
)
from interchange.formats.runtimes.msccl_xml.names import BUFFERS, COLLECTIVES
from interchange.programs.puts.program import (
    MOVES,
    PUT_OPERATIONS,
    Cells,
    Channel,
    ChannelKind,
    Op,
    PutOperation,
    PutProgram,
    PutRank,
)

MOST_CHUNKS = 8_000_000
"""Of all buffers together."""
MOST_PARTS = 64
"""In how many a chunk is cut at most."""
_KINDS: dict[str, ChannelKind] = {"memory": "memory", "port": "port"}
_NAMES: dict[str, PutOperation] = {name: name for name in PUT_OPERATIONS}


def read_puts(content: bytes, *, name: str) -> PutProgram:
    """Read the program of a file called `name`.

    Raises
    ------
    FormatError
        If it is none, with the place, or does what is not executed here.
    """
    try:
        return _program(decode_json(content, PlanFile))
    except FormatError as error:
        msg = f"{name}: {error}"
        raise FormatError(msg) from None


def _program(file: PlanFile) -> PutProgram:
    if max(file.min_message_size, file.max_message_size) > MOST_BYTES:
        msg = f"its messages have more than {MOST_BYTES:,} bytes, which no machine counts"
        raise FormatError(msg)
    if not file.gpus:
        msg = "gpus is empty; a plan has one GPU or more"
        raise FormatError(msg)
    if file.protocol != "Simple":
        msg = f"the protocol is {file.protocol[:40]!r}; only plans of Simple are executed here"
        raise FormatError(msg)
    if file.reuse_resources:
        msg = "it reuses its scratch buffer in turns (reuse_resources); that is not executed here"
        raise FormatError(msg)
    for place, gpu in enumerate(file.gpus):
        if gpu.id != place:
            msg = f"at gpus[{place}]: its id is {gpu.id}; GPUs are listed by their rank from 0"
            raise FormatError(msg)
    parts = _parts(file)
    chunks = sum(gpu.input_chunks + gpu.output_chunks + gpu.scratch_chunks for gpu in file.gpus)
    if chunks * parts > MOST_CHUNKS:
        msg = f"it has {chunks * parts:,} chunks in its buffers; at most {MOST_CHUNKS:,} are read"
        raise FormatError(msg)
    kind = COLLECTIVES.get(file.collective.lower(), "custom")
    factor = len(file.gpus) if kind == "gather" else 1
    return PutProgram(
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
                        msg = f"thread blocks share operations in more than {MOST_PARTS} parts"
                        raise FormatError(msg)
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
            Channel(self._kind(link.channel_type, "its channels"), peer)
            for link in gpu.channels
            for peer in link.connected_to
        ]
        self._own = {
            kind: [n for n, each in enumerate(self._channels) if each.kind == kind]
            for kind in _KINDS
        }

    def rank(self) -> PutRank:
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
        return PutRank(
            gpu.input_chunks * parts,
            gpu.output_chunks * parts,
            gpu.scratch_chunks * parts,
            tuple(self._channels),
            tuple(each.init_value for each in gpu.semaphores),
            tuple(blocks),
        )

    def _refuse(self, words: str) -> None:
        msg = f"at gpus[{self._place}]: {words}"
        raise FormatError(msg)

    def _kind(self, name: str, where: str) -> ChannelKind:
        if name not in _KINDS:
            self._refuse(f"{where} are of type {name[:40]!r}; memory and port are executed here")
        return _KINDS[name]

    def _op(self, reach: _Reach, where: str, op: OpFile) -> Op:
        if op.name not in _NAMES:
            self._refuse(f"{where} is {op.name[:40]!r}; executed here are {', '.join(_NAMES)}")
        if op.reduce_op != "sum":
            self._refuse(f"{where} reduces by {op.reduce_op[:40]!r}; only sums are executed here")
        kind = None
        if op.channel_type not in (None, "none"):
            kind = self._kind(op.channel_type or "", f"the channels of {where}")
        elif op.channel_ids:
            self._refuse(f"{where} uses channels and has no channel_type")
        return Op(
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
        self, reach: _Reach, where: str, op: OpFile, kind: ChannelKind | None
    ) -> tuple[int, ...]:
        """Return the numbers of an operation's channels; moves through memory need none."""
        if kind is None or (op.name in MOVES and kind == "memory"):
            return ()
        own, told = self._own[kind], reach.channels[kind]
        found = []
        for place in op.channel_ids:
            if place >= len(told) or told[place] >= len(own):
                self._refuse(f"{where} uses {kind} channel {place}, which its thread block has not")
            found.append(own[told[place]])
        return tuple(found)

    def _cells(self, reach: _Reach, where: str, op: OpFile, buff: BuffFile) -> Cells:
        index, count = buff.index * self._parts, buff.size * self._parts
        if op.tbg_info is not None:
            turn, many = op.tbg_info.tb_id, op.tbg_info.tbg_size
            if turn >= many:
                self._refuse(f"{where} is share {turn} of {many}; shares go from 0")
            count //= many
            index += turn * count
        if buff.type is not None:
            return Cells(BUFFERS[buff.type], index, count)
        if buff.buffer_id is None:
            self._refuse(f"{where} has a buffer with neither type nor buffer_id")
        told = reach.buffers[op.channel_type or ""]
        place = buff.buffer_id or 0
        if place >= len(told) or told[place] >= len(self._gpu.remote_buffers):
            self._refuse(f"{where} uses remote buffer {place}, which its thread block has not")
        remote = self._gpu.remote_buffers[told[place]]
        if op.channel_type not in remote.access_channel_types:
            self._refuse(f"{where} uses remote buffer {place} by a channel that does not reach it")
        return Cells(BUFFERS[remote.type], index, count, remote.rank)
