"""What commands are given: a cluster or a file, and the collective to run on it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

import typer

from ccl.collective import COLLECTIVES, CollectiveKind, make_collective
from ccl.errors import FormatError, ProblemError
from ccl.formats.documents import Document, document, read_document
from ccl.formats.size import parse_size
from ccl.layout import layout
from ccl.problem import Problem
from gallery import open_cluster

Cluster = Annotated[
    str,
    typer.Argument(
        metavar="CLUSTER",
        help="A cluster of the gallery with arguments, such as ndv2:hosts=2, or a .json file.",
    ),
]
Collective = Annotated[
    str | None,
    typer.Option(
        "--collective", "-c", help=f"One of {', '.join(COLLECTIVES[:-1])}.", metavar="KIND"
    ),
]
Size = Annotated[
    str | None,
    typer.Option(
        "--size",
        "-s",
        help="Of the whole buffer as nccl-tests counts it: 1MB, 64KiB, 4096.",
        metavar="BYTES",
    ),
]
Chunks = Annotated[int, typer.Option("--chunks", help="Chunks per shard.", metavar="COUNT")]
Root = Annotated[int, typer.Option("--root", help="Rank of the root, where there is one.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="File to write.", metavar="FILE")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The collective as the command line gave it.

    Parameters
    ----------
    collective
        Its kind, or None.
    size
        The whole buffer as typed, or None.
    chunks
        Chunks per shard.
    root
        Rank of the root.
    """

    collective: str | None
    size: str | None
    chunks: int = 1
    root: int = 0


def open_any(cluster: str) -> Document:
    """Open a file, or a cluster of the gallery, which is laid out.

    Raises
    ------
    CclError
        If there is no such file or cluster, or it cannot be read.
    """
    if cluster.lower().endswith(".json") or Path(cluster).is_file():
        return read_document(cluster)
    topology = open_cluster(cluster)
    return document(topology, positions=layout(topology))


def problem_of(opened: Document, asked: Asked) -> Problem:
    """Make the problem: the collective asked for, or the one that the file holds.

    Raises
    ------
    CclError
        If neither says which collective and how large, or they do not fit the cluster.
    """
    held = opened.problem
    if asked.collective is None:
        if held is None or asked.size is not None:
            msg = f"no collective is given; give --collective, one of {', '.join(COLLECTIVES[:-1])}"
            raise ProblemError(msg)
        return held
    if asked.size is None:
        msg = f"no size is given for {asked.collective}; give --size, such as 1MB"
        raise ProblemError(msg)
    collective = make_collective(
        cast(CollectiveKind, asked.collective),
        len(opened.topology.ranks),
        parse_size(asked.size),
        chunks=asked.chunks,
        root=asked.root,
    )
    return Problem(opened.topology, collective)


def check_number(flag: str, value: float | None, *, above: float, unit: str) -> None:
    """Refuse a number that is not finite or not above a limit.

    Raises
    ------
    ProblemError
        With the value and its unit.
    """
    if value is not None and not (value > above and math.isfinite(value)):
        msg = f"{flag} is {value:g}{unit}; give a finite number above {above:g}{unit}"
        raise ProblemError(msg)


def check_out(out: Path | None) -> None:
    """Refuse a file that cannot be written before there is anything to lose.

    Raises
    ------
    FormatError
        If its folder is not there or the path is a folder.
    """
    if out is None:
        return
    if not out.resolve().parent.is_dir():
        msg = f"{out} cannot be written: there is no folder {out.parent}; make it first"
        raise FormatError(msg)
    if out.is_dir():
        msg = f"{out} cannot be written: it is a folder; give the name of a file"
        raise FormatError(msg)
