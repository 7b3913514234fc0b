"""MSCCL XML: programs of thread blocks, as the executors of MSCCL load them.

A plan is written as the program that `interchange.programs.lowering` makes of it, looked over first
(`interchange.programs.lint`). A file is read as a program; what its messages do to the chunks of
the collective becomes a schedule on the open cluster or, where none is open, on one with a link
wherever the program sends.

What is written has the attributes that any of the public executors wants. A send names where its
peer puts what it sends, and a receipt where its peer has it from: nobody runs by that, but checkers
compare the two ends. What a step has nothing for is written as the compilers of MSCCL write it
(``srcbuf="i" srcoff="-1"``, ``dstbuf="o" dstoff="-1"``): the executors' parsers ask for the
attributes and look at the buffers' names. They read neither a declaration of XML nor line breaks
between attributes, and skip what they do not know, which is why ``root`` may stand there.

Sources of the format: microsoft/msccl-tools (msccl/language/ir.py), the parsers of microsoft/msccl
(src/graph/topo.cc) and ROCm/rccl (src/misc/msccl/msccl_parser.cc).
"""

from dataclasses import dataclass, replace

from ccl.errors import FormatError, ProblemError
from ccl.options import option
from ccl.serialization.documents import Document, document
from ccl.serialization.quantity import format_size, parse_size
from ccl.timeline import busbw
from ccl.topology import Topology
from interchange import programs as ir
from interchange.execution.lifting import BANDWIDTH, Lifted, lift, mesh_of
from interchange.formats import format as formats
from interchange.formats.format import Imported, Reader, Report, Request, Writer, Written
from interchange.formats.runtimes.msccl_xml import read
from interchange.formats.xml import Element, begins_with, xml_text
from interchange.programs import lowering
from interchange.programs.checks import Where, connections
from interchange.programs.lint import EXECUTORS, Executor, lint

_LETTERS = {buffer: letter for letter, buffer in read.BUFFERS.items()}


def program_to_xml(program: ir.Program, executor: Executor = "msccl") -> str:
    """Return a program as the text of a file for one of the executors, which differ in names.

    Raises
    ------
    FormatError
        If its name has characters that XML does not allow.
    """
    peers = _Peers(program)
    gpus = [_gpu(number, rank, peers) for number, rank in enumerate(program.ranks)]
    return xml_text(Element("algo", _algo(program, executor), gpus))


def _algo(program: ir.Program, executor: Executor) -> dict[str, str]:
    kind = program.collective
    told: dict[str, object] = {
        "name": program.name,
        "proto": program.protocol,
        "nchannels": program.channels,
        "nchunksperloop": program.chunks_per_loop,
        "ngpus": len(program.ranks),
        "coll": read.collective_name(kind, executor),
        "inplace": int(program.in_place),
        "outofplace": int(program.out_of_place),
        "minBytes": program.smallest,
        "maxBytes": program.largest,
    }
    if kind in read.SUMS:
        told["redop"] = "sum"
    if kind in read.ROOTED or program.root:
        told["root"] = program.root
    return _texts(told)


class _Peers:
    """What the other end of a message does: the k-th send is taken by the k-th receipt."""

    def __init__(self, program: ir.Program) -> None:
        steps = {
            (rank, number, place): step
            for rank, number, block in program.blocks()
            for place, step in enumerate(block.steps)
        }
        self._dst: dict[Where, ir.Slot | None] = {}
        self._src: dict[Where, ir.Slot | None] = {}
        for each in connections(program).values():
            for (sender, _), (receiver, _) in zip(each.sends, each.receives, strict=False):
                self._dst[sender] = _used(steps[receiver].dst, steps[receiver], ir.WRITES)
                self._src[receiver] = _used(steps[sender].src, steps[sender], ir.READS)

    def src(self, place: Where, step: ir.Step) -> ir.Slot | None:
        """Return what a step reads, or where its peer has what it receives from."""
        return _used(step.src, step, ir.READS) or self._src.get(place)

    def dst(self, place: Where, step: ir.Step) -> ir.Slot | None:
        """Return what a step writes, or where its peer puts what it sends."""
        return _used(step.dst, step, ir.WRITES) or self._dst.get(place)


def _used(slot: ir.Slot | None, step: ir.Step, operations: frozenset[str]) -> ir.Slot | None:
    return slot if step.operation in operations else None


def _gpu(number: int, rank: ir.RankProgram, peers: _Peers) -> Element:
    awaited = {step.after for block in rank.blocks for step in block.steps}
    told = {"id": number, "i_chunks": rank.input, "o_chunks": rank.output, "s_chunks": rank.scratch}
    blocks = [
        _block((number, place), block, awaited, peers=peers)
        for place, block in enumerate(rank.blocks)
    ]
    return Element("gpu", _texts(told), blocks)


def _block(
    where: tuple[int, int],
    block: ir.ThreadBlock,
    awaited: set[tuple[int, int] | None],
    *,
    peers: _Peers,
) -> Element:
    number = where[1]
    told = {"id": number, "send": block.send, "recv": block.receive, "chan": block.channel}
    steps = [
        Element("step", _step((*where, place), step, peers, awaited=(number, place) in awaited))
        for place, step in enumerate(block.steps)
    ]
    return Element("tb", _texts(told), steps)


def _step(where: Where, step: ir.Step, peers: _Peers, *, awaited: bool) -> dict[str, str]:
    src, dst = peers.src(where, step), peers.dst(where, step)
    block, place = step.after or (-1, -1)
    told: dict[str, object] = {
        "s": where[2],
        "type": step.operation,
        "srcbuf": _letter(src, "i"),
        "srcoff": -1 if src is None else src.index,
        "dstbuf": _letter(dst, "o"),
        "dstoff": -1 if dst is None else dst.index,
        "cnt": 0 if step.operation == "nop" else step.count,
        "depid": block,
        "deps": place,
        "hasdep": int(awaited),
    }
    return _texts(told)


def _letter(slot: ir.Slot | None, unused: str) -> str:
    return unused if slot is None else _LETTERS[slot.buffer]


def _texts(told: dict[str, object] | dict[str, int]) -> dict[str, str]:
    return {name: str(value) for name, value in told.items()}


__all__ = ["READER", "WRITER", "Options", "ProblemError", "program_from_xml", "program_to_xml"]

SIZE = 2.0**20
"""Bytes of the buffer unless the file is for larger or smaller ones."""

MOST_NAMED = 3
"""Complaints of a lint that an error lists."""

SETTINGS = {
    "size": "Bytes of the whole buffer, such as 64MiB; 1 MiB unless the file is for other sizes.",
    "root": "Rank of the root, which most files do not say.",
    "topology": "open, the open cluster; or mesh, a link wherever the program sends.",
}


@dataclass(frozen=True, kw_only=True)
class Options(lowering.Options):
    """How a plan becomes a file."""

    executor: Executor = option(
        "msccl", "For", "microsoft/msccl, or Azure's or RCCL; names and limits differ."
    )


def program_from_xml(content: bytes, name: str = "program") -> ir.Program:
    """Read the program of a file called `name`.

    Raises
    ------
    FormatError
        If it is malformed, with the line.
    """
    return read.read_program(content, name=name)[0]


def _read(content: bytes, request: Request) -> Imported:
    root = read.given_root(request.settings, request.name)
    program, report = read.read_program(content, name=request.name, root=root)
    size, told = _size(program, request)
    topology, mesh = _topology(program, request)
    lifted = lift(program, topology, size)
    report = report.joined(Report(assumed=(*mesh, *told)))
    problem = lifted.problem
    made = document(problem, plan=lifted.schedule) if problem else document(topology)
    return Imported(made, report.joined(_outcome(lifted, made)), program=program)


def _topology(program: ir.Program, request: Request) -> tuple[Topology, tuple[str, ...]]:
    """Return the cluster that is meant, and what is assumed of it."""
    chosen = request.settings.get("topology", "open" if request.topology else "mesh")
    if chosen not in ("open", "mesh"):
        raise FormatError(f"the setting topology is {chosen[:40]!r}; give open or mesh")
    if chosen == "open" and request.topology is None:
        raise FormatError("no cluster is open; open one, or give mesh for the setting topology")
    if chosen == "open" and request.topology is not None:
        have, want = len(request.topology.ranks), len(program.ranks)
        if have != want:
            raise FormatError(
                f"the program is for {want} ranks and {request.topology} has {have} GPUs; open a "
                f"cluster of {want}, or give mesh for the setting topology"
            )
        return request.topology, ()
    mesh = mesh_of(program)
    told = (
        f"{len(mesh.links):,} links of {BANDWIDTH:g} GB/s without latency, one for each pair of "
        "ranks of which one sends to the other"
    )
    return mesh, (told,)


def _size(program: ir.Program, request: Request) -> tuple[float, tuple[str, ...]]:
    """Return the size of the buffer in bytes, and what is assumed of it."""
    if "size" in request.settings:
        return parse_size(request.settings["size"]), ()
    most = program.largest or SIZE  # executors read 0 as no limit
    size = float(max(program.smallest, min(SIZE, most), 1))
    return size, (f"a buffer of {format_size(size)}",)


def _outcome(lifted: Lifted, made: Document) -> Report:
    """Say how good the plan is, or why there is none."""
    if lifted.schedule is None:
        return Report(left_out=(f"there is no plan: {lifted.why}",))
    problem, _, timeline = formats.replayed(made)
    size = format_size(problem.collective.size)
    told = (
        f"a plan of {len(lifted.schedule.sends):,} sends: {size} in {timeline.makespan:.4g} µs, "
        f"{busbw(problem.collective, timeline.makespan):.4g} GB/s of bus bandwidth"
    )
    return Report((told,), left_out=lifted.notes)


def _recognises(content: bytes) -> bool:
    return begins_with(content, "algo")


READER = Reader("msccl-xml", "MSCCL XML", ("xml",), _recognises, _read, SETTINGS)


def _write(content: Document, options: Options) -> Written:
    problem, plan, _ = formats.replayed(content)
    most = EXECUTORS[options.executor].steps
    request = replace(options, steps=min(options.steps, most))
    program = lowering.lower(problem, plan, request)
    complaints = lint(program, options.executor)
    errors = [each.sentence for each in complaints if each.severe]
    if errors:
        more = f"; and {len(errors) - MOST_NAMED} more" if len(errors) > MOST_NAMED else ""
        told = "; ".join(errors[:MOST_NAMED])
        raise FormatError(
            f"{EXECUTORS[options.executor].title} would not take the program: {told}{more}"
        )
    lost = (*program.notes, *(each.sentence for each in complaints))
    return formats.one_file(program_to_xml(program, options.executor), ending="xml", lost=lost)


WRITER = Writer("msccl-xml", "MSCCL XML", "xml", "plan", _write, Options)
