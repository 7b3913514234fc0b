"""JSON of MSCCL-tools and its kin: topologies, and plans in steps and rounds.

SCCL's and TACCL's files are read too; `file` says what they look like, `cluster` what becomes
of counts of links and of switches, `plan` how steps become a schedule. A plan is
verified and replayed; one that breaks a rule is refused with the rule. The writer gives what
MSCCL-tools can load, and a plan that it writes was read back and verified before.

Reference: microsoft/msccl-tools, msccl/serialization.py; microsoft/taccl, taccl/serialization.py.
"""

from ccl import text
from ccl.errors import FormatError
from ccl.problem import Problem
from ccl.serialization.documents import Document, document
from ccl.serialization.quantity import format_size
from ccl.serialization.text import decode_json
from ccl.simulate import simulate
from ccl.topology import Topology
from ccl.verify import verify
from interchange.formats.fields import nbytes
from interchange.formats.format import Imported, Reader, Remarks, Request, Writer
from interchange.formats.format import Report as Report
from interchange.formats.synthesizers.msccl_tools import cluster
from interchange.formats.synthesizers.msccl_tools import file as files
from interchange.formats.synthesizers.msccl_tools import plan as plans

CHUNK = 1e6
"""Bytes of a chunk."""


def read(content: bytes, request: Request) -> Imported:
    """Read a topology, a plan, or the collective of one."""
    kind = files.kind_of(content)
    remarks = Remarks()
    if kind == "topology":
        file = decode_json(content, files.TopologyFile)
        made = cluster.topology_of(file, request, remarks, chunk=_chunk(request), sends=set())
        return Imported(document(made), remarks.report())
    if kind == "algorithm":
        return _plan(decode_json(content, files.AlgorithmFile), request, remarks)
    if kind == "collective":
        return _problem(decode_json(content, files.CollectiveFile), request, remarks)
    if kind == "instance":
        decode_json(content, files.InstanceFile)
        raise FormatError(
            "it is an instance, which has neither topology nor plan; give its algorithm"
        )
    raise FormatError(f"it says of no type that it is {kind!r}; there are {', '.join(files.KINDS)}")


def _chunk(request: Request) -> float:
    return nbytes(request, "chunk_size", CHUNK)


def _open(request: Request, what: str) -> Topology:
    if request.topology is None:
        raise FormatError(
            f"{what} without a topology, and no cluster is open; open its cluster first"
        )
    return request.topology


def _ranks(file: files.TopologyFile) -> int:
    return len(file.links) if file.links is not None else file.copies * file.ngpus_per_node


def _plan(file: files.AlgorithmFile, request: Request, remarks: Remarks) -> Imported:
    chunk = _chunk(request)
    if file.topology is None:
        topology = _open(request, "it is a plan")
        remarks.assumed.append(f"it is for {topology}, which is open; its ranks are the GPUs there")
        steps = plans.parsed(file.steps, len(topology.ranks))
    else:
        steps = plans.parsed(file.steps, _ranks(file.topology))
        ways = {(each.src, each.dst) for step in steps for each in step.sends}
        topology = cluster.topology_of(file.topology, request, remarks, chunk=chunk, sends=ways)
    placed = cluster.placement(file, len(topology.ranks), remarks)
    name = file.collective.name if file.collective is not None else ""
    found, numbers = cluster.collective_of(placed.signatures(), placed.ranks, chunk, name=name)
    problem = Problem(topology, found)
    if file.topology is not None and file.topology.links is not None and not _pipelined(file):
        plans.check_rounds(problem, steps)
    known = placed.holders.keys() | placed.wanted.keys()
    plan = plans.schedule_of(problem, steps, numbers, known=known, remarks=remarks)
    verify(problem, plan)
    _tell_plan(file, steps, request, remarks)
    remarks.taken.append(
        f"{found.kind} of {format_size(found.size)} in {text.count(len(found.chunks), 'chunk')} "
        f"and {text.count(len(plan.sends), 'send')}, verified: its makespan is "
        f"{simulate(problem, plan).makespan:.6g} µs"
    )
    return Imported(document(problem, plan=plan), remarks.report())


def _pipelined(file: files.AlgorithmFile) -> bool:
    """Whether steps overlap, so that a step alone does not say what a link carries."""
    timed = any(len(send) > 3 for step in file.steps for send in step.sends)
    return timed or (file.instance is not None and file.instance.pipeline is not None)


def _tell_plan(
    file: files.AlgorithmFile, steps: tuple[plans.FileStep, ...], request: Request, remarks: Remarks
) -> None:
    rounds = sum(step.rounds for step in steps)
    timed = any(step.timed for step in steps)
    order = ", whose sends have times and are in their order" if timed else ""
    remarks.taken.append(f"{text.count(len(steps), 'step')} of {rounds:g} rounds in all{order}")
    if "chunk_size" not in request.settings:
        remarks.assumed.append(f"chunks of {format_size(CHUNK)}; setting chunk_size is another")
    if any(len(send) > 4 for step in file.steps for send in step.sends):
        remarks.left_out.append("over which of parallel links each send goes, and its operation")
    if file.instance is not None:
        limits = [
            f"{name} {value}"
            for name in ("pipeline", "extra_memory", "allow_exchange")
            if (value := getattr(file.instance, name))
        ]
        remarks.left_out.append(
            f"the instance that the synthesizer was given{': ' if limits else ''}"
            f"{', '.join(limits)[:200]}"
        )


def _problem(file: files.CollectiveFile, request: Request, remarks: Remarks) -> Imported:
    topology = _open(request, "it is a collective")
    placed = cluster.of_collective(file, len(topology.ranks))
    found, _ = cluster.collective_of(
        placed.signatures(), placed.ranks, _chunk(request), name=file.name
    )
    remarks.taken.append(f"{found.kind} in {text.count(len(found.chunks), 'chunk')}, to be solved")
    remarks.assumed.append(
        f"chunks of {format_size(_chunk(request))}, on {topology}, which is open"
    )
    made: Document = document(Problem(topology, found))
    return Imported(made, remarks.report())


SETTINGS = {
    "bandwidth": "GB/s of a link that counts 1",
    "alpha": "Latency of such a link in µs",
    "chunk_size": "Size of a chunk, such as 1MB",
    "direction": "Which side of its matrix is the destination: destination-major as in "
    "MSCCL-tools, or source-major",
}

READER = Reader(
    "msccl-tools", "MSCCL-tools, SCCL and TACCL plans", ("json",), files.recognises, read, SETTINGS
)

WRITER = Writer("msccl-tools", "MSCCL-tools topology or plan", "json", "topology", plans.write)
