"""How fast files are read, and plans made programs, executed and run.

``reading``
    Large files, written here first: node-link JSON of 1,024 GPUs on rails and in a full mesh, a
    topology of NCCL that names 256 hosts, and one host of it taken 256 times.
``programs``
    Plans of clusters as programs of thread blocks: lowered, written and read as MSCCL XML, linted,
    executed in 100 interleavings (in place and out of place each).

Seconds on a clock on the wall, the median of three.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from rich.table import Table

from benchmarks.measuring import PartArgument, median_of, parts_named, show, table
from ccl.collective import CollectiveKind, make_collective
from ccl.problem import Problem
from ccl.serialization.documents import document
from ccl.topology import Link, Topology, device
from formulations import solve
from gallery import open_cluster
from interchange.execution import execute
from interchange.formats.catalogue import reader
from interchange.formats.format import Request
from interchange.formats.graphs.node_link import node_link_text
from interchange.formats.runtimes.msccl_xml import program_from_xml, program_to_xml
from interchange.programs import Program
from interchange.programs.lint import lint
from interchange.programs.lowering import lower

TIMES = 3

HOST = """ <cpu host_hash="0x{host:x}" numaid="0" affinity="ff" arch="x86_64" vendor="GenuineIntel"
   familyid="6" modelid="85">
  <pci busid="0000:{host:02x}:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
{cards}  </pci>
 </cpu>
"""
CARD = """   <pci busid="0000:{bus}:0{number}.0" class="0x030200" link_speed="32.0 GT/s PCIe"
     link_width="16">
    <gpu dev="{number}" sm="90" rank="{rank}" gdr="1">
     <nvlink target="0000:ff:00.0" count="18" tclass="0x068000"/>
    </gpu>
   </pci>
   <nic>
    <net name="mlx5_{number}" dev="{number}" speed="400000" port="1" guid="0x{rank:x}" gdr="1"/>
   </nic>
"""
PROGRAMS: tuple[tuple[str, CollectiveKind, str], ...] = (
    ("dgx-1v", "all-gather", "list"),
    ("dgx-a100:hosts=2", "all-reduce", "forestcoll"),
    ("dgx-a100:hosts=2", "all-to-all", "orbit-lp"),
    ("mi250:hosts=2", "all-gather", "forestcoll"),
    ("tpu-v4", "all-to-all", "list"),
    ("gb200-nvl72", "all-reduce", "list"),
)
"""Cluster, collective and formulation."""


def _reading() -> Table:
    """Return the seconds of reading each file."""
    rails = open_cluster("dgx-a100:hosts=128,fabric=rail")
    names = [f"gpu{rank}" for rank in range(1024)]
    mesh = Topology(
        "mesh",
        tuple(device("gpu", name) for name in names),
        tuple(Link(a, b, 25.0) for a in names for b in names if a != b),
    )
    files = [
        ("node-link", "1,024 GPUs on rails", node_link_text(document(rails)).encode(), {}),
        ("node-link", "1,024 GPUs, full mesh", node_link_text(document(mesh)).encode(), {}),
        ("nccl", "256 hosts in one file", _system(256), {}),
        ("nccl", "one host, 256 times", _system(1), {"hosts": "256"}),
    ]
    rows = table("Reading", ("format", "file", "MB", "GPUs", "links", "s"))
    for name, what, content, settings in files:
        read = reader(name).read
        asked = Request(name=what, settings=settings)

        found, seconds = median_of(TIMES, partial(read, content, asked))
        topology = found.document.topology
        counts = f"{len(topology.ranks):,}", f"{len(topology.links):,}"
        rows.add_row(name, what, f"{len(content) / 1e6:.2f}", *counts, f"{seconds.wall:.2f}")
    return rows


def _system(hosts: int) -> bytes:
    """Write a topology of hosts of 8 GPUs as NCCL does."""
    found = []
    for host in range(hosts):
        cards = [
            CARD.format(bus=f"{host:02x}", number=number, rank=8 * host + number)
            for number in range(8)
        ]
        found.append(HOST.format(host=host + 1, cards="".join(cards)))
    return f'<system version="1">\n{"".join(found)}</system>\n'.encode()


def _through_xml(program: Program) -> Program:
    return program_from_xml(program_to_xml(program).encode())


def _programs() -> Table:
    """Return the seconds of making programs of plans, and of what is done with them."""
    rows = table(
        "Programs", ("cluster", "collective", "plan", "steps", "lower s", "XML s", "lint", "100 s")
    )
    for cluster, kind, method in PROGRAMS:
        topology = open_cluster(cluster)
        problem = Problem(topology, make_collective(kind, len(topology.ranks), 1e6))
        plan = solve(problem, method, time_limit=1).plan
        program, lowered = median_of(TIMES, partial(lower, problem, plan))
        loaded, text = median_of(TIMES, partial(_through_xml, program))
        complaints = [each for each in lint(loaded) if each.severe]
        began = time.perf_counter()
        done = execute(loaded, interleavings=100)
        took = time.perf_counter() - began
        verdict = f"{took:.1f}" if done.ok else "wrong"
        clean = "clean" if not complaints else f"{len(complaints)} limits"
        cells = f"{program.steps:,}", f"{lowered.wall:.2f}", f"{text.wall:.2f}", clean, verdict
        rows.add_row(cluster, kind, method, *cells)
    return rows


PARTS: dict[str, Callable[[], Table]] = {"reading": _reading, "programs": _programs}


def main(part: PartArgument = "all") -> None:
    """Files read; plans made programs and executed."""
    show(each() for each in parts_named(part, PARTS))
