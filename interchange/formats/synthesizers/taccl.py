"""TACCL's topologies, with latencies and times per chunk in a host and between hosts, and sketches.

A file describes one host. Times are in µs for the size of chunk that it was made for, so that a
link of β µs has chunk / β bytes a µs; the setting ``chunk_size`` says the size, and where it is
silent the end of the name does (``NDv2_1MB``), or 1 MB is assumed.

How the GPUs of a host are joined is in the file only in its custom form, which has matrices by
destination and source: ``links`` counts links, ``betas`` has the β of each, ``invbws`` α + β. The
other form lists the β of each kind of link, and the program that reads it learns the shape from
name: two kinds and eight GPUs are an NDv2 (the hybrid cube mesh, the faster kind where it has two
NVLinks), one kind is a hub, as in a DGX-2; ``inside=mesh`` makes a link of every pair instead.
Across a hub a send pays α once, half on each link.

Hosts are joined by ``nics_per_node`` ports each, which their GPUs share evenly in the order of
their numbers: a port is a device, as fast as ``remote_beta`` says in each direction, joined to its
GPUs, each as fast as the port, and to one switch between all hosts, which never limits. A way
between hosts pays ``remote_alpha`` once. Which GPUs are to send is in a sketch, not here.

Sketches are files of their own: TACCL's, and the plain form of ours (`ccl.serialization.sketches`).
A sketch speaks of the GPUs of a cluster, so that it is read for the topology that is open, and
brings no topology of its own.

References: microsoft/taccl, INPUT_GUIDE.md, taccl/topologies and taccl/examples/topo; for sketches
TACCL, NSDI 2023, listing 1, and taccl/examples/sketch.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from ccl import text
from ccl.errors import FormatError
from ccl.serialization.documents import document
from ccl.serialization.quantity import format_size, parse_size
from ccl.serialization.sketches import MOST_BYTES, Sketch, SketchJson, read_sketch
from ccl.serialization.text import Integer, decode_json
from ccl.topology import Device, Link, Topology, device, duplex
from interchange.formats.fields import choice, head_of, nbytes, number, whole
from interchange.formats.format import Imported, Reader, Remarks, Report, Request
from interchange.formats.synthesizers._matrices import Matrix, direction, square, turned

MOST_LINKS = 250_000
"""Of all hosts together."""

_DOUBLE = ((0, 1), (0, 4), (1, 3), (2, 3), (2, 6), (4, 5), (5, 7), (6, 7))
_SINGLE = ((0, 2), (0, 3), (1, 2), (1, 5), (3, 7), (4, 6), (4, 7), (5, 6))
"""Pairs of an NDv2 that two NVLinks join, and those that one joins."""

_INSIDE = {
    "switch": "every GPU reaches the others through one switch",
    "mesh": "every two GPUs have a link of their own",
}


class TacclFile(Struct):
    """The file; what TACCL writes as -1 is not there."""

    gpus_per_node: Integer
    alpha: float
    name: str = "TACCL topology"
    nics_per_node: Integer = -1
    node_betas_list: list[float] | None = None
    node_invbws_list: list[float] | None = None
    links: list[list[Integer]] | None = None
    betas: list[list[float]] | None = None
    invbws: list[list[float]] | None = None
    remote_alpha: float = -1
    remote_beta: float = -1
    remote_invbw: float = -1


@dataclass(frozen=True)
class Join:
    """Two GPUs of a host, by number, and what joins them one way: µs for a chunk on all of it."""

    src: int
    dst: int
    beta: float
    count: int = 1
    medium: str = ""


def listed(file: TacclFile, request: Request, remarks: Remarks) -> tuple[list[Join], float | None]:
    """Return the joins of a host whose kinds of links are listed, or the β of its hub."""
    inside = choice(request, "inside", _INSIDE)
    betas = file.node_betas_list
    if betas is None:
        invbws = file.node_invbws_list or []
        betas = [each - file.alpha for each in invbws]
        remarks.assumed.append("β is node_invbws_list less alpha, for there is no node_betas_list")
    elif file.node_invbws_list is not None:
        pairs = [(file.alpha, each) for each in betas]
        compare("node_invbws_list", file.node_invbws_list, pairs, remarks)
    if len(betas) == 1:
        if inside == "mesh":
            return list(_mesh(file.gpus_per_node, betas[0])), None
        if not inside:
            remarks.assumed.append(
                "one switch joins the GPUs of a host, as one β means in TACCL; setting "
                "inside=mesh gives every two a link"
            )
        return [], betas[0]
    if len(betas) == 2 and file.gpus_per_node == 8:
        remarks.assumed.append(
            "the hybrid cube mesh of an NDv2, as two β of 8 GPUs mean in TACCL; the first is of "
            "pairs with two NVLinks"
        )
        return [
            Join(*ends, beta, many, "NVLink 2")
            for pairs, beta, many in ((_DOUBLE, betas[0], 2), (_SINGLE, betas[1], 1))
            for pair in pairs
            for ends in (pair, pair[::-1])
        ], None
    raise FormatError(
        f"at node_betas_list: {len(betas)} kinds of links among {file.gpus_per_node} GPUs, and "
        "nothing says which GPUs they join; give the matrices links and betas"
    )


def _mesh(gpus: int, beta: float) -> Iterator[Join]:
    if gpus * (gpus - 1) > MOST_LINKS:
        raise FormatError(
            f"a mesh of {gpus:,} GPUs has more than {MOST_LINKS:,} links; take inside=switch"
        )
    return (Join(src, dst, beta) for src in range(gpus) for dst in range(gpus) if src != dst)


def custom(file: TacclFile, request: Request, remarks: Remarks) -> list[Join]:
    """Return the joins of a host of which the file has matrices."""
    side = file.gpus_per_node
    if file.links is None or (file.betas is None and file.invbws is None):
        raise FormatError(
            "it has no matrix links, or neither betas nor invbws; add them, or node_betas_list"
        )
    square(file.links, "links", side)
    times = "betas" if file.betas is not None else "invbws"
    betas = file.betas if file.betas is not None else file.invbws
    assert betas is not None  # one of the two is there
    square(betas, times, side)
    linked = [(d, s) for d, row in enumerate(file.links) for s, many in enumerate(row) if many]
    if any(d == s for d, s in linked):
        place = next(d for d, s in linked if d == s)
        raise FormatError(f"at links[{place}][{place}]: GPU {place} is linked with itself; give 0")
    _check_counts(file.links, betas, linked, times)
    matrices: list[Matrix[int] | Matrix[float]] = [file.links, betas]
    if file.betas is None:
        remarks.assumed.append("β is invbws less alpha, for there is no matrix betas")
    elif file.invbws is not None:
        square(file.invbws, "invbws", side)
        matrices.append(file.invbws)
        pairs = [(file.alpha, file.betas[d][s]) for d, s in linked]
        compare("invbws", [file.invbws[d][s] for d, s in linked], pairs, remarks)
    by_row, how = direction(request, matrices)
    remarks.assumed += how
    links, rows = (file.links, betas) if by_row else (turned(file.links), turned(betas))
    less = file.alpha if file.betas is None else 0.0
    return [
        Join(src, dst, (rows[dst][src] - less) / many, many)
        for dst, row in enumerate(links)
        for src, many in enumerate(row)
        if many
    ]


def _check_counts(
    links: list[list[int]], betas: list[list[float]], linked: list[tuple[int, int]], times: str
) -> None:
    """Refuse links without a time, and more parallel links than there are."""
    for row, column in linked:
        if links[row][column] > 10_000:
            raise FormatError(
                f"at links[{row}][{column}]: {links[row][column]:,} links; give 10,000 at most"
            )
        if not betas[row][column] > 0:
            raise FormatError(
                f"at {times}[{row}][{column}]: 0 µs where links has a link; give its time for a "
                "chunk in µs"
            )


def compare(
    place: str, said: list[float], pairs: list[tuple[float, float]], remarks: Remarks
) -> None:
    """Report where a file's α + β is not what it says elsewhere; TACCL rounds these down."""
    if len(said) != len(pairs):
        raise FormatError(
            f"at {place}: it has {len(said)} values, and there are {len(pairs)} kinds of links"
        )
    wrong = [
        (each, alpha + beta)
        for each, (alpha, beta) in zip(said, pairs, strict=True)
        if each >= 0
        and not math.isclose(each, alpha + beta, rel_tol=0.01)
        and each not in (math.floor(alpha + beta), math.ceil(alpha + beta))
    ]
    if wrong:
        each, made = wrong[0]
        remarks.left_out.append(
            f"{place}, which says {each:g} µs where α + β are {made:g} µs "
            f"({len(wrong)} of {len(said)}); α and β are kept"
        )


MOST_GPUS = 1_024
"""Of a host; the file may say any number in a few bytes."""

MOST_HOSTS = 1_024
_SIZE = re.compile(r"(\d+ ?[KMG]i?B)$", re.IGNORECASE)


class _Head(Struct):
    """What tells these files from other JSON."""

    gpus_per_node: Any = None
    alpha: Any = None
    node_betas_list: Any = None
    node_invbws_list: Any = None
    betas: Any = None
    invbws: Any = None


@dataclass(frozen=True)
class _Units:
    """What the times of the file mean: bytes of a chunk, and how many times too large they are."""

    chunk: float
    scale: float

    def bandwidth(self, beta: float, place: str) -> float:
        """Return GB/s of a link that takes `beta` of the file for a chunk.

        Raises
        ------
        FormatError
            If it is out of range.
        """
        rate = self.chunk * self.scale * 1e-3 / beta if beta > 0 else math.inf
        if not 1e-9 <= rate <= 1e9:
            raise FormatError(
                f"at {place}: β is {beta:g} µs for {format_size(self.chunk)}, a link of {rate:g} "
                "GB/s; give a β above 0, or another chunk_size"
            )
        return rate

    def latency(self, alpha: float, place: str) -> float:
        """Return the µs of an α of the file; errors as `bandwidth`."""
        if not 0 <= alpha <= 1e9:
            raise FormatError(f"at {place}: α is {alpha:g} µs; give 0 to 10^9")
        return alpha / self.scale


def recognises(content: bytes) -> bool:
    """Say whether JSON text has the GPUs and the latency of a host, and times of its links."""
    if b"gpus_per_node" not in content:
        return False
    head = head_of(content, _Head) or _Head()
    times = (head.node_betas_list, head.node_invbws_list, head.betas, head.invbws)
    return None not in (head.gpus_per_node, head.alpha) and any(each is not None for each in times)


def read(content: bytes, request: Request) -> Imported:
    """Read a topology."""
    file: TacclFile = decode_json(content, TacclFile)
    if not 2 <= file.gpus_per_node <= MOST_GPUS:
        raise FormatError(f"at gpus_per_node: {file.gpus_per_node:,} GPUs; give 2 to {MOST_GPUS:,}")
    remarks = Remarks()
    units = _units(file, request, remarks)
    hosts = _hosts(file, request, remarks)
    if file.node_betas_list is None and file.node_invbws_list is None:
        joins, hub = custom(file, request, remarks), None
    else:
        joins, hub = listed(file, request, remarks)
    many = hosts * (len(joins) if hub is None else 2 * file.gpus_per_node)
    if many > MOST_LINKS:
        raise FormatError(
            f"{hosts} hosts would have {many:,} links; {MOST_LINKS:,} at most are made"
        )
    alpha = units.latency(file.alpha, "alpha")
    devices: list[Device] = []
    links: list[Link] = []
    for host in range(hosts):
        names = [f"g{host * file.gpus_per_node + i}" for i in range(file.gpus_per_node)]
        devices += [device("gpu", name, host=f"h{host}") for name in names]
        for each in joins:
            rate = units.bandwidth(each.beta, "betas")
            ends = names[each.src], names[each.dst]
            links.append(Link(*ends, rate, alpha, each.medium, each.count))
        if hub is not None:
            switch = f"switch{host}"
            devices.append(device("switch", switch, host=f"h{host}"))
            rate = units.bandwidth(hub, "node_betas_list")
            for name in names:
                links += duplex(name, switch, bandwidth=rate, alpha=alpha / 2)
    if hosts > 1:
        _join_hosts(file, units, devices, links, hosts=hosts)
    topology = Topology(file.name or "TACCL topology", tuple(devices), tuple(links))
    return Imported(document(topology), _report(topology, remarks, alpha))


def _report(topology: Topology, remarks: Remarks, alpha: float) -> Report:
    slowest = min((each.bandwidth for each in topology.links), default=1.0)
    if slowest < 1:
        remarks.assumed.append(
            f"the slowest link has {slowest:.3g} GB/s as written; TACCL asks to scale small times "
            "up, and setting scale divides them again"
        )
    first = (
        f"{text.count(len(topology.ranks), 'GPU')} in {text.count(len(topology.hosts), 'host')}, "
        f"{text.count(len(topology.links), 'link')}, α {alpha:g} µs in a host"
    )
    return Report((first, *remarks.taken), tuple(remarks.assumed), tuple(remarks.left_out))


def _units(file: TacclFile, request: Request, remarks: Remarks) -> _Units:
    named = _SIZE.search(file.name[-20:])
    if named and not named[1].strip("0 ")[:1].isdigit():
        named = None
    chunk = nbytes(request, "chunk_size", parse_size(named[1]) if named else 1e6)
    if "chunk_size" not in request.settings:
        why = f"the name {file.name[-20:]}" if named else "the usual size"
        remarks.assumed.append(
            f"times are for chunks of {format_size(chunk)}, after {why}; setting chunk_size is "
            "another"
        )
    return _Units(chunk, number(request, "scale", 1.0, most=1e9))


def _hosts(file: TacclFile, request: Request, remarks: Remarks) -> int:
    """Return how many hosts to make: two where the file says how they are joined."""
    joined = file.nics_per_node > 0
    hosts = whole(request, "hosts", 2 if joined else 1, most=MOST_HOSTS)
    if hosts > 1 and not joined:
        raise FormatError(
            f"{hosts} hosts are set and it has no nics_per_node to join them; take 1 host"
        )
    if file.nics_per_node > MOST_GPUS:
        raise FormatError(
            f"at nics_per_node: {file.nics_per_node:,} ports; give {MOST_GPUS:,} at most"
        )
    if "hosts" not in request.settings:
        remarks.assumed.append(f"{text.count(hosts, 'host')}; setting hosts is another number")
    if hosts == 1 and joined:
        remarks.left_out.append(
            f"{text.count(file.nics_per_node, 'port')} of the host, for there is no other host"
        )
        return 1
    if joined:
        alpha, beta = file.remote_alpha, file.remote_beta
        compare("remote_invbw", [file.remote_invbw], [(alpha, beta)], remarks)
        remarks.taken.append(
            f"{text.count(file.nics_per_node, 'port')} of each host, α {alpha:g} µs and "
            f"β {beta:g} µs in the file's units"
        )
        remarks.assumed.append(
            "the GPUs of a host share its ports evenly by number, reach them as fast as the ports "
            "are, and one switch joins all ports"
        )
    return hosts


def _join_hosts(
    file: TacclFile, units: _Units, devices: list[Device], links: list[Link], *, hosts: int
) -> None:
    """Add the ports of all hosts and the switch between them."""
    if file.remote_beta < 0 or file.remote_alpha < 0:
        raise FormatError(
            "it has nics_per_node, and no remote_alpha or remote_beta; add both, in µs"
        )
    rate = units.bandwidth(file.remote_beta, "remote_beta")
    alpha = units.latency(file.remote_alpha, "remote_alpha")
    gpus, ports = file.gpus_per_node, file.nics_per_node
    most = max(gpus, ports)
    if hosts * 2 * (most + ports) + len(links) > MOST_LINKS:
        raise FormatError(
            f"{hosts} hosts of {ports} ports would have more than {MOST_LINKS:,} links; take fewer"
        )
    devices.append(device("switch", "network"))
    for host in range(hosts):
        names = [f"nic{host * ports + i}" for i in range(ports)]
        devices += [device("nic", name, host=f"h{host}") for name in names]
        for i in range(most):
            gpu = f"g{host * gpus + i * gpus // most}"
            links += duplex(gpu, names[i * ports // most], bandwidth=rate)
        for name in names:
            links += duplex(name, "network", bandwidth=rate, alpha=alpha / 2)


SETTINGS = {
    "chunk_size": "Size of the chunks that its times are for, such as 1MB",
    "hosts": "How many hosts to make",
    "inside": "What one β means: switch (a hub) or mesh (a link of every two GPUs)",
    "direction": "Which side of its matrices is the destination: destination-major as in "
    "TACCL, or source-major",
    "scale": "By how much its times were multiplied, which TACCL asks for where they are small",
}

READER = Reader("taccl-topology", "TACCL topology", ("json",), recognises, read, SETTINGS)


class _SketchHead(Struct):
    """The parts by which TACCL's sketches are known."""

    intranode_sketch: dict[str, Any] | None = None
    internode_sketch: dict[str, Any] | None = None


def _is_taccl(content: bytes) -> bool:
    """Say whether JSON text says how GPUs in a host, or of several, are to send."""
    if b"node_sketch" not in content or len(content) > MOST_BYTES:
        return False
    head = head_of(content, _SketchHead) or _SketchHead()
    return head.intranode_sketch is not None or head.internode_sketch is not None


def _is_plain(content: bytes) -> bool:
    """Say whether JSON text has parts of a sketch in our plain form, and nothing else."""
    head = content[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    if not head.startswith(b"{") or len(content) > MOST_BYTES:
        return False
    return bool(head_of(content, SketchJson) and head_of(content, dict))


def _read_sketch(content: bytes, request: Request) -> Imported:
    """Read a sketch of either form for the topology that is open."""
    if request.topology is None:
        raise FormatError(
            "a sketch says what to use of a cluster, and none is open; open or draw "
            "the cluster first"
        )
    sketch, sentences = read_sketch(content, request.topology, name=request.name)
    report = _sorted(sentences) if sentences else Report(taken=(_parts(sketch),))
    return Imported(document(request.topology), report, sketch=sketch)


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
    Reader("taccl-sketch", "TACCL sketch", ("json",), _is_taccl, _read_sketch),
    Reader("sketch", "Topoloom sketch", ("json",), _is_plain, _read_sketch),
)
