"""Sketches as JSON: our own plain form, and what is read of TACCL's.

The plain form has a key for each field of `ccl.sketch.Sketch` and leaves out what says nothing; it
is what the options of a result hold. TACCL's files (NSDI 2023, section 3 and listing 1) count the
GPUs of a host from 0, so that they are read for a topology; what cannot be carried over is said.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from ccl.errors import FormatError, ProblemError
from ccl.serialization.taccl_sketch import KEYS, sketch_of_taccl
from ccl.serialization.text import Integer, decode_json, laid_out
from ccl.serialization.topoloom import shaped
from ccl.serialization.wire import Ends
from ccl.sketch import Inclination, Sketch
from ccl.topology import Topology

Json = dict[str, Any]

MOST_BYTES = 4_000_000
"""Bytes of a file; one with more holds something else."""

MOST_PAIRS = 100_000
"""Pairs of devices of one kind that a sketch may name."""

Pairs = Annotated[list[Ends], Meta(max_length=MOST_PAIRS)]
Count = Annotated[int, Meta(ge=1, le=10_000)]


class SketchJson(Struct, forbid_unknown_fields=True):
    """The plain form; pairs are lists of two names."""

    between: Pairs | None = None
    without: Pairs = []
    forced: Pairs = []
    relays: Pairs = []
    switches: Inclination = "all"
    offsets: Annotated[list[tuple[Integer, Integer]], Meta(max_length=100)] = []
    chunks: Count | None = None
    instances: Count = 1


class _Head(Struct):
    """What tells TACCL's sketches from ours."""

    nnodes: Any = None
    intranode_sketch: Any = None
    internode_sketch: Any = None
    hyperparameters: Any = None


def sketch_to_json(sketch: Sketch) -> Json:
    """Return the plain form of a sketch, without what says nothing."""
    value: Json = {}
    if sketch.between is not None:
        value["between"] = [list(pair) for pair in sketch.between]
    for name in ("without", "forced", "relays", "offsets"):
        pairs = getattr(sketch, name)
        if pairs:
            value[name] = [list(pair) for pair in pairs]
    if sketch.switches != "all":
        value["switches"] = sketch.switches
    if sketch.chunks is not None:
        value["chunks"] = sketch.chunks
    if sketch.instances != 1:
        value["instances"] = sketch.instances
    return value


def sketch_from_json(value: Any) -> Sketch:
    """Read the plain form.

    Raises
    ------
    FormatError
        If the shape is wrong, with the place.
    ProblemError
        If it has the shape of a sketch and is none.
    """
    if isinstance(value, dict) and not value.keys() <= set(SketchJson.__struct_fields__):
        wrong = next(key for key in value if key not in SketchJson.__struct_fields__)
        known = ", ".join(SketchJson.__struct_fields__)
        msg = f"{wrong!r} is no part of a sketch; there are {known}, or those of TACCL's files"
        raise FormatError(msg)
    return _sketch(shaped(value, SketchJson, "sketch"))


def sketch_text(sketch: Sketch) -> str:
    """Return the text of a file in the plain form."""
    return laid_out(sketch_to_json(sketch)) + "\n"


def read_sketch(
    content: bytes | str, topology: Topology, *, name: str = "sketch"
) -> tuple[Sketch, tuple[str, ...]]:
    """Read the content of a file called `name`, in our form or TACCL's, for a topology.

    Returns
    -------
        The sketch, and in sentences what was taken, assumed and left out.

    Raises
    ------
    FormatError
        If it is not JSON, neither form, or too large.
    ProblemError
        If it names what the topology does not have.
    """
    try:
        _bounded(content)
        head = decode_json(content, _Head)
        if any(getattr(head, key) is not None for key in _Head.__struct_fields__):
            return read_taccl_sketch(content, topology)
        sketch = sketch_from_json(decode_json(content, Json))
        sketch.check(topology)
    except (FormatError, ProblemError) as error:
        msg = f"{name}: {error}"
        raise type(error)(msg) from None
    return sketch, ()


def read_taccl_sketch(content: bytes | str, topology: Topology) -> tuple[Sketch, tuple[str, ...]]:
    """Read the text of one of TACCL's sketches for a topology.

    Returns
    -------
        The sketch, and in sentences what was taken, assumed and left out.

    Raises
    ------
    FormatError
        If it is not JSON, not a sketch, or too large.
    ProblemError
        If it counts GPUs that a host does not have, or contradicts itself.
    """
    _bounded(content)
    unknown = _unknown(decode_json(content, Json))
    sketch, sentences = sketch_of_taccl(content, topology, most=MOST_PAIRS)
    sketch.check(topology)
    return sketch, (*sentences, *unknown)


def _sketch(value: SketchJson) -> Sketch:
    return Sketch(
        between=None if value.between is None else tuple(value.between),
        without=tuple(value.without),
        forced=tuple(value.forced),
        relays=tuple(value.relays),
        switches=value.switches,
        offsets=tuple(value.offsets),
        chunks=value.chunks,
        instances=value.instances,
    )


def _bounded(content: bytes | str) -> None:
    nbytes = len(content)
    if nbytes > MOST_BYTES:
        msg = f"it has {nbytes:,} bytes, and a sketch has {MOST_BYTES:,} at most"
        raise FormatError(msg)


def _unknown(value: Json, place: str = "") -> list[str]:
    """Name the keys that nobody reads here."""
    known = KEYS[place]
    return [
        f"left out: {key!r}{f' of {place}' if place else ''}, which is not known here"
        for key in value
        if key not in known
    ] + [
        sentence
        for key, each in value.items()
        if key in KEYS and isinstance(each, dict)
        for sentence in _unknown(each, key)
    ]
