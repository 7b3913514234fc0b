"""MSCCL XML: programs of thread blocks, as the executors of MSCCL load them.

A plan is written as the program that `interchange.programs.lowering` makes of it, looked over first
(`interchange.programs.lint`). A file is read as a program; what its messages do to the chunks of
the collective becomes a schedule on the open cluster or, where none is open, on one with a link
wherever the program sends.

Sources of the format: microsoft/msccl-tools (msccl/language/ir.py), the parsers of microsoft/msccl
(src/graph/topo.cc) and ROCm/rccl (src/misc/msccl/msccl_parser.cc).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ccl.errors import FormatError, ProblemError
from ccl.metrics import busbw
from ccl.serialization.documents import Document, document
from ccl.serialization.size import format_size, parse_size
from ccl.topology import Topology
from interchange.formats.format import (
    Asked,
    Imported,
    Reader,
    Report,
    Writer,
    Written,
    one_file,
    replayed,
)
from interchange.formats.runtimes.msccl_xml.read import given_root, read_program
from interchange.formats.runtimes.msccl_xml.write import program_to_xml
from interchange.formats.xml import begins_with
from interchange.programs import Program, lowering
from interchange.programs.lifting import BANDWIDTH, Lifted, lift, mesh_of
from interchange.programs.lint import EXECUTORS, Executor, lint

__all__ = ["READER", "WRITER", "Options", "program_from_xml", "program_to_xml"]

SIZE = 2.0**20
"""Bytes of the buffer unless the file is for larger or smaller ones."""

MOST_TOLD = 3
"""Complaints of a lint that an error lists."""

SETTINGS = {
    "size": "Bytes of the whole buffer, such as 64MiB; 1 MiB unless the file is for other sizes.",
    "root": "Rank of the root, which most files do not say.",
    "topology": "open, the open cluster; or mesh, a link wherever the program sends.",
}


@dataclass(frozen=True, kw_only=True)
class Options(lowering.Options):
    """How a plan becomes a file."""

    executor: Executor = field(
        default="msccl",
        metadata={
            "label": "For",
            "help": "microsoft/msccl, or Azure's or RCCL; names and limits differ.",
        },
    )


def program_from_xml(content: bytes, name: str = "program") -> Program:
    """Read the program of a file called `name`.

    Raises
    ------
    FormatError
        If it is none, with the line.
    """
    return read_program(content, name=name)[0]


def _read(content: bytes, asked: Asked) -> Imported:
    program, report = read_program(
        content, name=asked.name, root=given_root(asked.settings, asked.name)
    )
    try:
        size, told = _size(program, asked)
        topology, mesh = _topology(program, asked)
        lifted = lift(program, topology, size)
    except FormatError as error:
        msg = f"{asked.name}: {error}"
        raise FormatError(msg) from None
    report = report.joined(Report(assumed=(*mesh, *told)))
    made = _document(lifted, topology)
    return Imported(made, report.joined(_outcome(lifted, made)), program=program)


def _topology(program: Program, asked: Asked) -> tuple[Topology, tuple[str, ...]]:
    """Return the cluster that is meant, and what is assumed of it."""
    chosen = asked.settings.get("topology", "open" if asked.topology else "mesh")
    if chosen not in ("open", "mesh"):
        msg = f"the setting topology is {chosen[:40]!r}; give open or mesh"
        raise FormatError(msg)
    if chosen == "open" and asked.topology is None:
        msg = "no cluster is open; open one, or give mesh for the setting topology"
        raise FormatError(msg)
    if chosen == "open" and asked.topology is not None:
        have, want = len(asked.topology.ranks), len(program.ranks)
        if have != want:
            msg = (
                f"the program is for {want} ranks and {asked.topology} has {have} GPUs; open a "
                f"cluster of {want}, or give mesh for the setting topology"
            )
            raise FormatError(msg)
        return asked.topology, ()
    mesh = mesh_of(program)
    told = (
        f"{len(mesh.links):,} links of {BANDWIDTH:g} GB/s without latency, one for each pair of "
        "ranks of which one sends to the other"
    )
    return mesh, (told,)


def _size(program: Program, asked: Asked) -> tuple[float, tuple[str, ...]]:
    """Return the size of the buffer in bytes, and what is assumed of it."""
    if "size" in asked.settings:
        return parse_size(asked.settings["size"]), ()
    most = program.largest or SIZE  # executors read 0 as no limit
    size = float(max(program.smallest, min(SIZE, most), 1))
    return size, (f"a buffer of {format_size(size)}",)


def _document(lifted: Lifted, topology: Topology) -> Document:
    if lifted.problem is None:
        return document(topology)
    return document(lifted.problem, plan=lifted.schedule)


def _outcome(lifted: Lifted, made: Document) -> Report:
    """Say what the plan is worth, or why there is none."""
    if lifted.schedule is None:
        return Report(left_out=(f"there is no plan: {lifted.why}",))
    problem, _, timeline = replayed(made)
    size = format_size(problem.collective.size)
    told = (
        f"a plan of {len(lifted.schedule.sends):,} sends: {size} in {timeline.makespan:.4g} µs, "
        f"{busbw(problem.collective, timeline.makespan):.4g} GB/s of bus bandwidth"
    )
    return Report((told,), left_out=lifted.notes)


def _recognises(content: bytes) -> bool:
    return begins_with(content, "algo")


READER = Reader(
    name="msccl-xml",
    title="MSCCL XML",
    endings=("xml",),
    recognises=_recognises,
    read=_read,
    settings=SETTINGS,
)


def _write(content: Document, options: Options) -> Written:
    problem, plan, _ = replayed(content)
    most = EXECUTORS[options.executor].steps
    asked = replace(options, steps=min(options.steps, most))
    try:
        program = lowering.lower(problem, plan, asked)
    except ProblemError as error:
        raise FormatError(str(error)) from None
    complaints = lint(program, options.executor)
    errors = [each.text for each in complaints if each.severe]
    if errors:
        more = f"; and {len(errors) - MOST_TOLD} more" if len(errors) > MOST_TOLD else ""
        told = "; ".join(errors[:MOST_TOLD])
        msg = f"{EXECUTORS[options.executor].title} would not take the program: {told}{more}"
        raise FormatError(msg)
    lost = (*program.notes, *(each.text for each in complaints))
    return one_file(program_to_xml(program, options.executor), ending="xml", lost=lost)


WRITER = Writer(
    name="msccl-xml",
    title="MSCCL XML",
    ending="xml",
    needs="plan",
    write=_write,
    options=Options,
)
