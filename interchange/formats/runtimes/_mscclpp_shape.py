"""The JSON of an execution plan of MSCCL++, field by field; what is not told is read past.

Source: microsoft/mscclpp, src/core/executor/execution_plan.cc.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

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
