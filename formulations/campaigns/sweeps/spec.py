"""Request of a sweep: candidate clusters, collectives, sizes, methods and their limits."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ccl.errors import CclError, FormatError
from ccl.serialization.quantity import parse_size
from ccl.serialization.text import describe_misfit, read_bytes
from ccl.serialization.topoloom import topology_to_json
from ccl.topology import Topology

LIMIT = 10.0
"""Seconds for each task when nothing is said: some methods would go on for hours."""

MOST_RETRIES = 100


class LinkChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Factors for the links of one class.

    Parameters
    ----------
    of
        ``all``, ``between hosts``, ``within hosts``, or how the name of a medium begins, such as
        ``NVLink``.
    bandwidth, alpha
        Factors; of several each is tried. A shared limit changes with its links where all of them
        do.
    """

    of: str = "all"
    bandwidth: float | list[float] = 1.0
    alpha: float | list[float] = 1.0


class Candidate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One cluster, or as many as its lists multiply to.

    Parameters
    ----------
    open
        A name with arguments, such as ``dgx-a100:hosts=[2,4]``, or the path of a document (.json).
    topology
        A topology in its plain form, instead.
    vary
        Arguments of the name with their values: a list, or a range such as ``2..8``.
    links
        Changes to classes of links; their factors multiply.
    """

    open: str = ""
    topology: dict[str, Any] | None = None
    vary: dict[str, Any] = msgspec.field(default_factory=dict)
    links: list[LinkChange] = msgspec.field(default_factory=list)


class Kind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A collective with its root: a rank, or several of which each is tried."""

    kind: str
    root: int | list[int] = 0


class Solver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A formulation with options; of a list of values each is tried."""

    name: str
    options: dict[str, Any] = msgspec.field(default_factory=dict)


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sweep: the product of its lists; make it with `read_spec`.

    Parameters
    ----------
    clusters
        Names, paths of documents (.json) or candidates.
    collectives
        Kinds, such as ``all-gather``.
    sizes
        Bytes of the whole buffer: numbers, texts such as ``1MB``, ranges such as ``1KB..1GB x4``.
    chunks
        Chunks per shard that stay whole; None, the default, lets a plan cut as it likes.
    formulations
        Names, ``name:option=value``, ``name:option=[value,value]``, or names with options.
    time_limit
        Seconds for each task, None for no limit.
    memory_limit
        Bytes that solving each task may take, as a number or a text such as ``4GB``; None for an
        equal part of the machine's.
    gap
        Share above the bound at which a plan is good enough.
    retries
        How often a task is tried again whose process died.
    seed
        Of every formulation that has one among its options.
    """

    clusters: list[str | Candidate]
    collectives: list[str | Kind]
    sizes: list[str | float]
    chunks: list[int | None] = msgspec.field(default_factory=lambda: [None])
    formulations: list[str | Solver] = msgspec.field(default_factory=lambda: ["auto"])
    time_limit: float | None = LIMIT
    memory_limit: str | float | None = None
    gap: float | None = None
    retries: int = 2
    seed: int | None = None

    @property
    def memory(self) -> float | None:
        """Bytes that solving each task may take, or None."""
        return None if self.memory_limit is None else parse_size(str(self.memory_limit))


_LISTS = ("clusters", "collectives", "sizes", "chunks", "formulations")


def read_spec(given: str | Path | Mapping[str, Any] | Spec) -> Spec:
    """Read a spec and check it once.

    Parameters
    ----------
    given
        The path of a YAML file, its content as a mapping, or a spec. Where there is one value a
        list may be left out, and in Python a cluster may be a topology.

    Raises
    ------
    FormatError
        If it cannot be read or is not of the shape, with the place.
    """
    if isinstance(given, Spec):
        return _checked(given, "the sweep")
    if isinstance(given, Mapping):
        return _shaped(dict(given), "the sweep")
    return _shaped(_yaml(Path(given)), str(given))


def _yaml(path: Path) -> dict[str, Any]:
    import yaml  # noqa: PLC0415  most sweeps of programs read no file

    try:
        value = yaml.safe_load(read_bytes(path))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
        reason = getattr(error, "problem", None) or "it is not YAML text"
        raise FormatError(f"{path}{where}: {reason}") from None
    if not isinstance(value, dict):
        raise FormatError(
            f"{path}: a sweep says clusters, collectives and sizes; see docs/sweeps.md"
        )
    return value


def _shaped(value: dict[str, Any], name: str) -> Spec:
    for key in _LISTS:
        if key in value and not isinstance(value[key], (list, tuple)):
            value[key] = [value[key]]
    if "clusters" in value:
        value["clusters"] = [_plain(each) for each in value["clusters"]]
    try:
        return _checked(msgspec.convert(value, Spec), name)
    except msgspec.ValidationError as error:
        raise FormatError(f"{name}, {describe_misfit(error)}") from None


def _plain(cluster: Any) -> Any:
    return {"topology": topology_to_json(cluster)} if isinstance(cluster, Topology) else cluster


def _checked(spec: Spec, name: str) -> Spec:
    """Return the spec once its numbers are in range."""
    for key in _LISTS:
        if not getattr(spec, key):
            raise FormatError(f"{name}, at {key}: there is none; give at least one")
    fewest = min((each for each in spec.chunks if each is not None), default=1)
    wrong = [
        (key, value, unit, right)
        for key, value, unit, right, fits in (
            ("time_limit", spec.time_limit, " s", "more than 0 s", _above(spec.time_limit)),
            ("gap", spec.gap, "", "0 or more", spec.gap is None or 0 <= spec.gap < math.inf),
            (
                "retries",
                spec.retries,
                "",
                f"0 to {MOST_RETRIES}",
                0 <= spec.retries <= MOST_RETRIES,
            ),
            ("chunks", fewest, "", "1 or more", fewest >= 1),
        )
        if not fits
    ]
    for key, value, unit, right in wrong:
        raise FormatError(f"{name}, at {key}: it is {value:g}{unit}; give {right}")
    try:
        _ = spec.memory
    except CclError as error:
        raise FormatError(f"{name}, at memory_limit: {error}") from None
    return spec


def _above(value: float | None) -> bool:
    return value is None or 0 < value < math.inf
