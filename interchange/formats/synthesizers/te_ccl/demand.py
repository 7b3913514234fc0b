"""Which problem a schedule of TE-CCL solves, and the clusters that TE-CCL builds from a name.

`wanted` finds who wants what, and how much a chunk is.

Of a cluster (microsoft/TE-CCL:teccl/topologies), devices stand in the order of TE-CCL's numbers, so
that number n of a file is ``devices[n]``; names are those of the gallery. Figures are GB/s one way
and µs. Where the released code slips, `cluster` builds what it means and says so; `as_released`
builds what it does, on which its own plans are.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ccl.collective import CHUNK_LIMIT, CollectiveKind, recognise
from ccl.errors import FormatError
from ccl.problem import Problem
from ccl.topology import Device, Link, Topology, device, duplex
from interchange.formats.synthesizers.te_ccl.file import Cluster, Output, Piece

USUAL: tuple[CollectiveKind, ...] = ("all-gather", "all-to-all")
"""Collectives that TE-CCL knows."""


@dataclass(frozen=True)
class Wanted:
    """A problem, with the chunk that each piece of a file is.

    Parameters
    ----------
    problem
        On the cluster of the file.
    chunks
        Numbers of the chunks.
    names
        Of the devices by number.
    notes
        What was assumed, in sentences.
    """

    problem: Problem
    chunks: Mapping[Piece, int]
    names: Mapping[int, str]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Demands:
    """Rank of the source of each piece, and ranks that want it; those that nobody wants are not."""

    holder: Mapping[Piece, int]
    ends: Mapping[Piece, frozenset[int]]
    ranks: int

    @property
    def order(self) -> list[Piece]:
        """The pieces by the ranks of their sources and their numbers."""
        return sorted(self.ends, key=lambda each: (self.holder[each], each.chunk))


def chunk_bytes(output: Output, gpus: int, *, given: float | None) -> tuple[float, str]:
    """Return the bytes of a chunk, and from where they are known.

    Parameters
    ----------
    output
        The file.
    gpus
        That TE-CCL counts.
    given
        Bytes that the user gives, or None.

    Raises
    ------
    FormatError
        If the file does not say enough.
    """
    if given is not None:
        return given, f"a chunk is {given:,.0f} bytes, as given"
    if output.chunk_size is not None:
        nbytes = _rounded(output.chunk_size)
        return nbytes, f"a chunk is {nbytes:,.0f} bytes, as the file says"
    times = _times(output)
    if output.algbw is None or not times:
        raise FormatError(
            "it does not say how large a chunk is and has no bandwidth and finish time from which "
            "that would follow; set chunk_size in GB"
        )
    # GB/s and µs make kB.
    sizes = {_rounded(output.algbw * time * 1e3 / gpus): time for time in times}
    nbytes = next((size for size in sizes if size * 64 % 1 == 0), next(iter(sizes)))
    return nbytes, (
        f"a chunk is {nbytes:,.0f} bytes: {output.algbw:g} GB/s × {sizes[nbytes]:g} µs ÷ "
        f"{gpus} GPUs, the way TE-CCL counts"
    )


def _times(output: Output) -> list[float]:
    """Return the µs that the whole takes, as the file says; the likelier first."""
    last = max((hop.epoch for _, hop in output.flows), default=0)
    times = []
    if output.epochs is not None and output.epochs > last:
        times.append(output.epochs * output.epoch_duration)
    if output.makespan is not None:
        times.append(output.makespan)
    return times


def _rounded(nbytes: float) -> float:
    """Return the half, quarter, ... or whole number of which the last digits were lost."""
    near = round(nbytes * 64) / 64
    return near if abs(nbytes - near) < 1e-12 * nbytes else nbytes


def wanted(output: Output, cluster: Cluster, chunk_size: float) -> Wanted:
    """Return the problem.

    Raises
    ------
    FormatError
        If nobody wants anything, or what wants it is no GPU.
    """
    demands, notes = _demands(output, cluster)
    signatures = {
        piece: ((demands.holder[piece],), tuple(sorted(demands.ends[piece])), False)
        for piece in demands.order
    }
    # In an all-to-all a chunk has the number of its destination.
    gathered = all(
        each.chunk == 0 or each._replace(chunk=each.chunk - 1) in signatures for each in signatures
    )
    kinds = USUAL if gathered else USUAL[1:]
    made, chunks = recognise(signatures, demands.ranks, chunk_size, kinds=kinds)
    if made.kind == "custom":
        notes = (*notes, _lacking(demands))
    return Wanted(Problem(cluster.topology, made), chunks, cluster.names, notes)


def _demands(output: Output, cluster: Cluster) -> tuple[_Demands, tuple[str, ...]]:
    topology = cluster.topology
    rank = {number: topology.rank.get(name) for number, name in cluster.names.items()}
    ends: dict[Piece, set[int]] = {piece: set() for piece, _ in output.flows}
    notes: tuple[str, ...] = ()
    wants = [(piece, at) for at, piece in output.demands]
    if not wants:
        wants, notes = _guessed(output, rank)
    for piece, at in wants:
        there = rank.get(at)
        if there is None:
            raise FormatError(
                f"{at} wants a chunk of {piece.source} and is no GPU of {topology.name}"
            )
        ends.setdefault(piece, set()).add(there)
    holder = {}
    for piece in ends:
        here = rank.get(piece.source)
        if here is None:
            raise FormatError(f"{piece.source} has a chunk and is no GPU of {topology.name}")
        holder[piece] = here
    kept = {piece: frozenset(those - {holder[piece]}) for piece, those in ends.items()}
    kept = {piece: those for piece, those in kept.items() if those}
    if not kept:
        raise FormatError("nobody wants a chunk in it; Demand_Met or Chunk paths say who does")
    return _Demands(holder, kept, len(topology.ranks)), notes


def _guessed(
    output: Output, rank: Mapping[int, int | None]
) -> tuple[list[tuple[Piece, int]], tuple[str, ...]]:
    """Return who wants what where a file does not say: an all-gather, of amounts an all-to-all."""
    pieces = list(dict.fromkeys(piece for piece, _ in output.flows))
    found = {piece.source for piece in pieces} | {hop.dst for _, hop in output.flows}
    gpus = sorted(number for number in found if rank.get(number) is not None)
    if not gpus or len(gpus) * len(pieces) > CHUNK_LIMIT:
        raise FormatError("it does not say who wants what; Demand_Met or Chunk paths must")
    if output.fluid:
        wants = [(piece, gpus[piece.chunk % len(gpus)]) for piece in pieces]
    else:
        wants = [(piece, gpu) for piece in pieces for gpu in gpus]
    kind = "an all-to-all" if output.fluid else "an all-gather"
    return wants, (f"{kind} among {len(gpus)} GPUs is wanted; the file does not say",)


def _lacking(demands: _Demands) -> str:
    """Say how far a demand is from that of an all-gather or an all-to-all."""
    pairs, ranks = sum(len(ends) for ends in demands.ends.values()), demands.ranks
    what = f"the demand is a custom one of {len(demands.ends)} chunks for {pairs} GPUs in all"
    if len({demands.holder[piece] for piece in demands.ends}) < 2:
        return what
    single = pairs == len(demands.ends)
    whole = ranks * (ranks - 1) if single else len(demands.ends) * (ranks - 1)
    kind = "an all-to-all of one chunk" if single else "an all-gather of these chunks"
    return f"{what}; {kind} would be for {whole}"


CLUSTERS = ("DGX1", "DGX2", "NDv2", "AMD", "Mesh")

MOST_GPUS = 1024
"""Of a cluster that a file names by two numbers."""

_CUBE = (
    (2, ((0, 1), (0, 4), (1, 3), (2, 3), (2, 6), (4, 5), (5, 7), (6, 7))),
    (1, ((0, 2), (0, 3), (1, 2), (1, 5), (3, 7), (4, 6), (4, 7), (5, 6))),
)
_MI250 = (
    (4, ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (10, 11), (12, 13), (14, 15))),
    (2, ((0, 4), (3, 7), (8, 12), (11, 15))),
    (
        1,
        (
            *((0, 8), (1, 5), (1, 9), (1, 10), (2, 6), (2, 9), (2, 10), (3, 11)),
            *((4, 6), (5, 6), (5, 7), (9, 13), (10, 14), (12, 14), (13, 14), (13, 15)),
        ),
    ),
)
"""Pairs of GPUs, by how many links join them."""


@dataclass(frozen=True, kw_only=True)
class Named:
    """What a file says of its cluster.

    Parameters
    ----------
    name
        One of `CLUSTERS`.
    chassis
        Number of hosts.
    side
        GPUs along a side of a mesh.
    alpha
        Latencies in µs of links and of links of switches, where the cluster leaves them open.
    copies
        Whether switches copy.
    """

    name: str
    chassis: int = 1
    side: int = 4
    alpha: tuple[float, float] = (0.0, 0.0)
    copies: bool = True


def out_of_range(named: Named) -> str | None:
    """Say in words what is wrong with the numbers of a cluster, or None."""
    if named.name not in CLUSTERS:
        return f"the topology {named.name[:40]!r} is unknown; there are {', '.join(CLUSTERS)}"
    if named.name == "Mesh":
        most = math.isqrt(MOST_GPUS)
        if not 2 <= named.side <= most:
            return f"a Mesh has a side of 2 to {most} GPUs, got {named.side}"
        return None
    most = {"DGX1": 1, "DGX2": 2, "NDv2": MOST_GPUS // 8, "AMD": MOST_GPUS // 16}[named.name]
    if not 1 <= named.chassis <= most:
        return f"{named.name} has 1 to {most} chassis, got {named.chassis}"
    return None


def cluster(named: Named) -> tuple[Topology, tuple[str, ...]]:
    """Build a cluster whose numbers are in range; say what of TE-CCL's own is mended."""
    if named.name == "DGX1":
        made = Topology("DGX1", _gpus(0, 8, "h0"), tuple(_joined(_CUBE, 0, 25.0, named.alpha[0])))
        return made, ()
    if named.name == "DGX2":
        return _dgx2(named)
    if named.name == "NDv2":
        return _ndv2(named)
    return _amd(named) if named.name == "AMD" else _mesh(named)


def _gpus(first: int, count: int, host: str) -> tuple[Device, ...]:
    return tuple(device("gpu", f"g{first + i}", host=host) for i in range(count))


def _joined(
    pairs: Sequence[tuple[int, Sequence[tuple[int, int]]]], first: int, each: float, alpha: float
) -> list[Link]:
    """Join the GPUs of a host, the first of which has the number `first`."""
    medium = "NVLink 2" if pairs is _CUBE else "Infinity Fabric"
    return [
        link
        for many, ends in pairs
        for a, b in ends
        for link in duplex(
            *(f"g{first + a}", f"g{first + b}"),
            bandwidth=each * many,
            alpha=alpha,
            medium=medium,
            count=many,
        )
    ]


def _ndv2(named: Named) -> tuple[Topology, tuple[str, ...]]:
    devices: list[Device] = []
    links: list[Link] = []
    for host in range(named.chassis):
        devices += _gpus(8 * host, 8, f"h{host}")
        links += _joined(_CUBE, 8 * host, 25.0, 0.7)
    network = "InfiniBand EDR"
    if named.chassis == 1:
        notes = "TE-CCL's switch from GPU 0 to GPU 1 of a single NDv2 is left out; no box has one"
        return Topology("NDv2", tuple(devices), tuple(links)), (notes,)
    if named.chassis == 2:
        links += [Link("g0", "g9", 12.5, 1.3, network), Link("g8", "g1", 12.5, 1.3, network)]
        notes = "GPU 0 is a GPU; TE-CCL marks it as a switch, and its own plans leave it out"
        return Topology("2 × NDv2", tuple(devices), tuple(links)), (notes,)
    for first in range(0, 8 * named.chassis, 8):
        links.append(Link(f"g{first}", "fabric", 12.5, 1.3, network))
        links.append(Link("fabric", f"g{first + 1}", 12.5, 1.3, network))
    hub = device("switch", "fabric", copies=named.copies)
    return Topology(f"{named.chassis} × NDv2", (hub, *devices), tuple(links)), ()


def _dgx2(named: Named) -> tuple[Topology, tuple[str, ...]]:
    devices: list[Device] = []
    links: list[Link] = []
    for host in range(named.chassis):
        hub = f"nvswitch{host}"
        devices.append(device("switch", hub, host=f"h{host}", copies=named.copies))
        box = _gpus(16 * host, 16, f"h{host}")
        devices += box
        for each in box:
            links += duplex(hub, each.name, bandwidth=125.0, alpha=0.35, medium="NVLink 2")
    if named.chassis == 1:
        notes = "TE-CCL builds two DGX2 whatever the number of chassis; here it is one"
        return Topology("DGX2", tuple(devices), tuple(links)), (notes,)
    for i in range(1, 16, 2):
        for here, there in ((0, 16), (16, 0)):
            ends = f"g{here + i}", f"g{there + i - 1}"
            links.append(Link(*ends, 12.5, 2.6, "InfiniBand EDR"))
    return Topology("2 × DGX2", tuple(devices), tuple(links)), ()


def _amd(named: Named) -> tuple[Topology, tuple[str, ...]]:
    inside, between = named.alpha
    if named.chassis == 1:
        return Topology("AMD", _gpus(0, 16, "h0"), tuple(_joined(_MI250, 0, 50.0, inside))), ()
    devices = [device("switch", "fabric", copies=named.copies)]
    links: list[Link] = []
    for host in range(named.chassis):
        devices += _gpus(16 * host, 16, f"h{host}")
        links += _joined(_MI250, 16 * host, 50.0, inside)
        for i in range(8 * host, 8 * host + 8):
            devices.append(device("switch", f"s{i}", host=f"h{host}", copies=named.copies))
            for end in (f"g{2 * i}", f"g{2 * i + 1}", "fabric"):
                links += duplex(f"s{i}", end, bandwidth=25.0, alpha=between, medium="network")
    notes = (
        "switches are those that TE-CCL means, 8 a chassis and 1 between them; its numbers of "
        "them are off by one, which makes GPUs of switches and two links too fast"
    )
    return Topology(f"{named.chassis} × AMD", tuple(devices), tuple(links)), (notes,)


def _mesh(named: Named) -> tuple[Topology, tuple[str, ...]]:
    side = named.side
    devices = tuple(device("gpu", f"g{i}") for i in range(side * side))
    pairs = [
        (i, i + step)
        for i in range(side * side)
        for step, more in ((1, i % side + 1 < side), (side, i + side < side * side))
        if more
    ]
    links = [
        link
        for a, b in pairs
        for link in duplex(f"g{a}", f"g{b}", bandwidth=100.0, alpha=named.alpha[0])
    ]
    notes = (
        "rows of the mesh end where they end; TE-CCL also joins the end of each with the "
        "beginning of the next"
    )
    return Topology(f"Mesh {side}x{side}", devices, tuple(links)), (notes,)


def slip(named: Named) -> str:
    """Say how the released code's cluster differs from the one that is meant."""
    if named.name == "NDv2" and named.chassis < 3:
        return "GPU 0 is a switch" if named.chassis == 2 else "a switch leads from GPU 0 to GPU 1"
    return {
        "AMD": "of each chassis a GPU is a switch and a switch a GPU",
        "DGX2": "it has two chassis",
        "Mesh": "the end of each row is joined with the beginning of the next",
    }.get(named.name, "it is the same")


def as_released(named: Named) -> Topology:
    """Build a cluster whose numbers are in range with the slips of the released code."""
    if named.name == "DGX2":
        return cluster(replace(named, chassis=2))[0]
    made, _ = cluster(named)
    if named.name == "Mesh":
        ends = range(named.side - 1, named.side * (named.side - 1), named.side)
        wraps = [
            link
            for i in ends
            for link in duplex(f"g{i}", f"g{i + 1}", bandwidth=100.0, alpha=named.alpha[0])
        ]
        return replace(made, links=(*made.links, *wraps))
    if named.name == "NDv2" and named.chassis == 1:
        hub = device("switch", "fabric", copies=named.copies)
        ports = (Link("g0", "fabric", 12.5, 1.3), Link("fabric", "g1", 12.5, 1.3))
        return replace(made, devices=(hub, *made.devices), links=(*made.links, *ports))
    if named.name == "NDv2" and named.chassis == 2:
        return _turned(made, switches={"g0"}, gpus=set(), copies=named.copies)
    return _amd_off_by_one(made, named) if named.name == "AMD" and named.chassis > 1 else made


def _amd_off_by_one(made: Topology, named: Named) -> Topology:
    """Take the number before each of a chassis' switches for that switch."""
    chassis = range(named.chassis)
    lost = {("fabric", f"s{8 * i + 7}") for i in chassis}
    fast = {(f"s{8 * i}", f"g{16 * i + j}") for i in chassis for j in (0, 1)}
    links = []
    for link in made.links:
        if link.ends in fast or link.ends[::-1] in fast:
            links.append(replace(link, bandwidth=50.0, alpha=named.alpha[0]))
        elif link.ends not in lost and link.ends[::-1] not in lost:
            links.append(link)
    last = {f"g{16 * i + 15}" for i in chassis}
    for name in sorted(last):
        links += duplex(name, "fabric", bandwidth=25.0, alpha=named.alpha[1], medium="network")
    gpus = {f"s{8 * i + 7}" for i in chassis}
    return _turned(replace(made, links=tuple(links)), switches=last, gpus=gpus, copies=named.copies)


def _turned(made: Topology, *, switches: set[str], gpus: set[str], copies: bool) -> Topology:
    """Make switches of some devices and GPUs of others."""
    devices = [
        device("switch", each.name, host=each.host, copies=copies)
        if each.name in switches
        else device("gpu", each.name, host=each.host)
        if each.name in gpus
        else each
        for each in made.devices
    ]
    return replace(made, devices=tuple(devices), declared=())
