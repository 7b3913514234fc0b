"""The JSON objects of MSCCL-tools, SCCL and TACCL as they stand in a file.

An object says what it is in ``msccl_type``, in older files and in TACCL's in ``sccl_type``. A
topology has ``links[dst][src]``, which counts links, and switches ``[srcs, dsts, bandwidth,
name]``, each a limit on what goes from any of srcs to any of dsts; TACCL's has the matrices of one
host and how hosts are joined. An algorithm has steps, each of some rounds: in a round a link of
count n carries n chunks. A send is ``[address, src, dst]``, TACCL's has the time and the link as
well, ``[address, src, dst, time, link]``, or a sixth item for the
operation. ``input_map`` and ``output_map`` have the addresses that each
rank holds at first and in the end; chunks of the collective that share an address are added up.

Reference: microsoft/msccl-tools, msccl/serialization.py, msccl/algorithm.py and msccl/topologies;
microsoft/taccl, taccl/serialization.py and taccl/reduce_scheduler.py.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from ccl.errors import FormatError
from ccl.serialization.text import Integer, decode_json

Kind = Literal["topology", "algorithm", "collective", "instance"]
KINDS: tuple[Kind, ...] = ("topology", "algorithm", "collective", "instance")

Item = Integer | float | str | None


class TopologyFile(Struct):
    """A topology; the second half is TACCL's."""

    name: str = ""
    links: list[list[Integer]] | None = None
    switches: list[tuple[list[Integer], list[Integer], float, str]] = []
    copies: Integer = 1
    ngpus_per_node: Integer = 0
    node_links: list[list[Integer]] | None = None
    node_invbws: list[list[float]] | None = None
    remote_invbw: float | None = None
    remote_alpha: float | None = None
    remote_beta: float | None = None
    internode_conn: dict[str, list[Integer]] | None = None
    local_switches: list[list[Integer]] = []


class StepFile(Struct):
    """A step."""

    sends: list[list[Item]]
    rounds: float = 1


class ChunkFile(Struct):
    """Data of one origin: who has it, who wants it, and where it is kept."""

    pre: list[Integer]
    post: list[Integer]
    addr: Integer


class CollectiveFile(Struct):
    """A collective."""

    chunks: list[ChunkFile]
    name: str = ""
    nodes: Integer = 0


class InstanceFile(Struct):
    """What a synthesizer was asked to stay within."""

    steps: Integer | None = None
    extra_rounds: Integer | None = None
    chunks: Integer | None = None
    pipeline: Any = None
    extra_memory: Any = None
    allow_exchange: bool | None = None


class AlgorithmFile(Struct):
    """A plan."""

    steps: list[StepFile]
    name: str = ""
    input_map: dict[str, list[Integer]] = {}
    output_map: dict[str, list[Integer]] = {}
    collective: CollectiveFile | None = None
    topology: TopologyFile | None = None
    instance: InstanceFile | None = None


class _Head(Struct):
    """What says what an object is."""

    msccl_type: Any = None
    sccl_type: Any = None


def kind_of(content: bytes) -> str | None:
    """Return what JSON text says that it is, None where it says nothing.

    Raises
    ------
    FormatError
        If it is not JSON.
    """
    head = decode_json(content, _Head)
    kind = head.sccl_type if head.msccl_type is None else head.msccl_type
    return None if kind is None else str(kind)


def recognises(content: bytes) -> bool:
    """Say whether JSON text names one of the types."""
    if b"sccl_type" not in content:
        return False
    try:
        return kind_of(content) is not None
    except FormatError:
        return False
