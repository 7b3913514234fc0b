"""Programs of puts as execution plans of MSCCL++: tables first, operations by places in them."""

from __future__ import annotations

from typing import Any

from interchange.formats.runtimes.msccl_xml.names import BUFFERS, COLLECTIVES, ROOTED
from interchange.programs import Buffer
from interchange.programs.puts.program import Cells, Op, PutProgram, PutRank

ALIGNMENT = 16
"""Bytes: buffers are a multiple of this and of their chunks."""
THREADS = 1024
"""Of a thread block; the executor's default."""

_LETTERS = {buffer: letter for letter, buffer in BUFFERS.items()}
_KINDS = ("memory", "port")
_Remote = tuple[int | None, Buffer, str]
"""Rank, buffer, kind of channel."""
_SUMS = frozenset({"re", "rre", "res", "rres"})


def puts_to_json(program: PutProgram) -> dict[str, Any]:
    """Return a program as the object of a file."""
    named = [name for name, kind in COLLECTIVES.items() if kind == program.collective]
    # A gather's buffer is told by its output, and the executor looks at the input.
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


def _gpu(number: int, rank: PutRank) -> dict[str, Any]:
    places: dict[int, int] = {}
    for kind in _KINDS:
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
    kinds = [kind for kind in _KINDS if any(each.kind == kind for each in rank.channels)]
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
    number: int,
    ops: tuple[Op, ...],
    places: dict[int, int],
    *,
    remote: dict[_Remote, int],
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


def _op(op: Op, channels: list[int], runs: list[dict[str, Any]]) -> dict[str, Any]:
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


def _run(cells: Cells, buffers: list[int], remote: int | None) -> dict[str, Any]:
    """Return a run of chunks; `remote` is the number of its buffer if that is another rank's."""
    where: dict[str, Any] = {"type": _LETTERS[cells.buffer]}
    if remote is not None:
        where = {"buffer_id": buffers.index(remote)}
    return {**where, "index": cells.index, "size": cells.count}


def _enlist(listed: list[int], value: int) -> None:
    """Add a value that is new."""
    if value not in listed:
        listed.append(value)
