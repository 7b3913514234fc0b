"""Sketches as files of their own: TACCL's, and the plain form of ours (`sketches`).

A sketch speaks of the GPUs of a cluster, so that it is read for the topology that is open, and
brings no topology of its own.

Reference: TACCL, NSDI 2023, listing 1; microsoft/taccl, taccl/examples/sketch.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ccl import text
from ccl.errors import FormatError
from ccl.serialization.conditions import document
from ccl.serialization.sketches import MOST_BYTES, Json, Sketch, SketchJson, read_sketch
from ccl.serialization.text import decode_json
from interchange.formats.format import Imported, Reader, Report, Request


class _Head(Struct):
    """The parts by which TACCL's sketches are known."""

    intranode_sketch: dict[str, Any] | None = None
    internode_sketch: dict[str, Any] | None = None


def recognises_taccl(content: bytes) -> bool:
    """Say whether JSON text says how GPUs in a host, or of several, are to send."""
    if b"node_sketch" not in content or len(content) > MOST_BYTES:
        return False
    try:
        head = decode_json(content, _Head)
    except FormatError:
        return False
    return head.intranode_sketch is not None or head.internode_sketch is not None


def recognises(content: bytes) -> bool:
    """Say whether JSON text has parts of a sketch in our plain form, and nothing else."""
    head = content[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    if not head.startswith(b"{") or len(content) > MOST_BYTES:
        return False
    try:
        return bool(decode_json(content, SketchJson) and decode_json(content, Json))
    except FormatError:
        return False


def read(content: bytes, asked: Request) -> Imported:
    """Read a sketch of either form for the topology that is open."""
    if asked.topology is None:
        raise FormatError(
            "a sketch says what to use of a cluster, and none is open; open or draw "
            "the cluster first"
        )
    sketch, sentences = read_sketch(content, asked.topology, name=asked.name)
    report = _sorted(sentences) if sentences else Report(taken=(_parts(sketch),))
    return Imported(document(asked.topology), report, sketch=sketch)


def _sorted(sentences: tuple[str, ...]) -> Report:
    """Return what the reading of a sketch noted, each sentence where its first words say."""
    kinds: dict[str, list[str]] = {"taken": [], "assumed": [], "left out": []}
    for sentence in sentences:
        kind, _, told = sentence.partition(": ")
        kinds[kind].append(told)
    return Report(*(tuple(told) for told in kinds.values()))


def _parts(sketch: Sketch) -> str:
    """Say what a sketch has."""
    pairs = (
        (sketch.between, "pair of GPUs between hosts"),
        (sketch.without, "link that is not used"),
        (sketch.forced, "path that must carry a chunk"),
        (sketch.relays, "GPU with a relay"),
    )
    told = [_many(len(each), what) for each, what in pairs if each is not None and each]
    if sketch.between == ():
        told.append("no pair of GPUs between hosts")
    if sketch.switches != "all":
        told.append(f"{sketch.switches} at switches")
    told += [f"symmetry by {by} in blocks of {block}" for by, block in sketch.offsets]
    if sketch.chunks is not None:
        told.append(text.count(sketch.chunks, "chunk") + " per shard")
    if sketch.instances > 1:
        told.append(f"{sketch.instances} instances")
    return f"a sketch with {', '.join(told) or 'nothing in it'}"


def _many(many: int, what: str) -> str:
    """Return ``1 pair of GPUs`` or ``2 pairs of GPUs``."""
    first, _, rest = what.partition(" ")
    return f"{text.count(many, first)} {rest}"


READERS = (
    Reader(
        name="taccl-sketch",
        title="TACCL sketch",
        endings=("json",),
        recognises=recognises_taccl,
        parse=read,
    ),
    Reader(
        name="sketch", title="Topoloom sketch", endings=("json",), recognises=recognises, parse=read
    ),
)
