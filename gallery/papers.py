"""Small examples of the papers that Topoloom builds on.

The figures are pictures; structure and numbers that their texts do not state are assumed here,
and each entry says so.
"""

from __future__ import annotations

from dataclasses import replace

from ccl.topology import Device, Link, SharedLimit, Topology, device, duplex
from gallery.build import Wire, check, count_of, make_gpus, network, star, topology
from gallery.declared import interchange, lattice_symmetry
from gallery.entry import Entry, Figure
from gallery.toys import line

_SLOW = 1e-3
"""1 MB/s in GB/s, the unit of the links in TE-CCL's figure 2."""


def thesis_2_1(*, bandwidth: float = 32.0, alpha: float = 0.0) -> Topology:
    """Three GPUs in a row: only a fluid keeps both links busy to the end."""
    made = line(3, bandwidth=bandwidth, alpha=alpha)
    return replace(made, name="Thesis, figure 2.1")


def thesis_2_2(*, bandwidth: float = 32.0, alpha: float = 0.0) -> Topology:
    """Three GPUs that reach one another through a host memory."""
    return _around_memory("Thesis, figure 2.2", 3, bandwidth, alpha)


def thesis_2_3(
    *,
    bandwidth: float = 32.0,
    memory_bandwidth: float = 96.0,
    alpha: float = 0.0,
    copies: bool = True,
) -> Topology:
    """Four GPUs around a host memory whose own bandwidth is below what its links carry.

    The figure leaves aside that a memory copies: that is ``copies=false``, y / 6 and not y / 4.
    """
    made = _around_memory("Thesis, figure 2.3", 4, bandwidth, alpha, copies=copies)
    return _limited(made, memory_bandwidth)


def thesis_2_4(
    *,
    bandwidth: float = 32.0,
    memory_bandwidth: float = 96.0,
    alpha: float = 0.0,
    copies: bool = True,
) -> Topology:
    """Make the same with a direct link between two of the GPUs.

    As the figure has it that is ``copies=false``, y / 4; with copies it is y / 3.
    """
    made = _around_memory("Thesis, figure 2.4", 4, bandwidth, alpha, copies=copies)
    extra = duplex("g1", "g3", bandwidth=bandwidth, alpha=alpha)
    return _limited(topology(made.name, made.devices, (*made.links, *extra)), memory_bandwidth)


def thesis_2_5(
    *, bandwidth: float = 32.0, memory_bandwidth: float = 96.0, alpha: float = 0.0
) -> Topology:
    """Figure 2.3 without its memory: a one-way ring, its links as fast as the memory lets them."""
    rate = min(memory_bandwidth / 6, bandwidth)
    links = [Link(f"g{i}", f"g{(i + 1) % 4}", rate, alpha) for i in range(4)]
    return topology("Thesis, figure 2.5", make_gpus(4), links)


def thesis_2_6(
    *, bandwidth: float = 32.0, memory_bandwidth: float = 96.0, alpha: float = 0.0
) -> Topology:
    """Make the same of figure 2.4, whose direct link keeps its bandwidth."""
    made = thesis_2_5(bandwidth=bandwidth, memory_bandwidth=memory_bandwidth, alpha=alpha)
    extra = duplex("g1", "g3", bandwidth=bandwidth, alpha=alpha)
    return topology("Thesis, figure 2.6", made.devices, (*made.links, *extra))


def thesis_2_7(*, bandwidth: float = 32.0, alpha: float = 0.0) -> Topology:
    """Two joined GPUs, and a memory that nothing has to pass, on a link half as fast."""
    links = [
        *duplex("g0", "g1", bandwidth=bandwidth, alpha=alpha),
        *duplex("g1", "mem0", bandwidth=bandwidth / 2, alpha=alpha),
    ]
    devices = [*make_gpus(2, host="h0"), device("memory", "mem0", host="h0")]
    return topology("Thesis, figure 2.7", devices, links)


def thesis_3_1(*, bandwidth: float = 32.0, alpha: float = 0.0) -> Topology:
    """Make a server of four GPUs and one memory."""
    return _around_memory("Thesis, figure 3.1", 4, bandwidth, alpha)


def te_ccl_1(*, bandwidth: float = 1.0, alpha: float = 0.0) -> Topology:
    """Four GPUs in a ring with links of equal bandwidth in both directions."""
    devices = [device("gpu", f"n{i}") for i in range(1, 5)]
    wire = Wire(bandwidth=bandwidth, alpha=alpha, medium="")
    pairs = (("n1", "n2"), ("n2", "n3"), ("n3", "n4"), ("n4", "n1"))
    return topology(
        "TE-CCL, figure 1", devices, [link for pair in pairs for link in wire.join(*pair)]
    )


def te_ccl_2a(*, alpha: float = 0.0) -> Topology:
    """One source behind a relay, three destinations: copying at the relay saves its sends."""
    return _relay("TE-CCL, figure 2a", (("s", "h"), ("h", "d1"), ("h", "d2"), ("h", "d3")), alpha)


def te_ccl_2b(*, alpha: float = 1.0) -> Topology:
    """Two sources whose chunks meet at h3, where one of them queues."""
    ways = (("s1", "h1"), ("s2", "h2"), ("h1", "h3"), ("h2", "h3"), ("h3", "d"))
    return _relay("TE-CCL, figure 2b", ways, alpha)


def te_ccl_2c(*, alpha: float = 0.0) -> Topology:
    """Three sources and one relay that may hold chunks back for the doubly wide last link."""
    made = _relay("TE-CCL, figure 2c", (("s1", "h"), ("s2", "h"), ("s3", "h")), alpha)
    last = Link("h", "d", 2 * _SLOW, alpha)
    return topology(made.name, [*made.devices, device("gpu", "d")], [*made.links, last])


def te_ccl_internal_1(
    *,
    hosts: int = 2,
    bandwidth: float = 25.0,
    network_bandwidth: float = 25.0,
    alpha: float = 0.6,
    network_alpha: float = 0.75,
    copies: bool = False,
) -> Topology:
    """Chassis of four GPUs in a ring; every GPU reaches one switch between them."""
    inner = Wire(bandwidth=bandwidth, alpha=alpha, medium="")
    port = Wire(bandwidth=network_bandwidth, alpha=network_alpha, medium="network")
    pairs = ((0, 1), (1, 2), (2, 3), (3, 0))
    return _chassis("TE-CCL internal 1", hosts, pairs, (inner, port), copies=copies)


def te_ccl_internal_2(
    *,
    hosts: int = 2,
    bandwidth: float = 25.0,
    network_bandwidth: float = 25.0,
    alpha: float = 0.6,
    network_alpha: float = 0.75,
    copies: bool = False,
) -> Topology:
    """Chassis of two joined GPUs; every GPU reaches one switch between them."""
    inner = Wire(bandwidth=bandwidth, alpha=alpha, medium="")
    port = Wire(bandwidth=network_bandwidth, alpha=network_alpha, medium="network")
    return _chassis("TE-CCL internal 2", hosts, ((0, 1),), (inner, port), copies=copies)


def _chassis(
    name: str,
    hosts: int,
    pairs: tuple[tuple[int, int], ...],
    wires: tuple[Wire, Wire],
    *,
    copies: bool,
) -> Topology:
    """Join `pairs` of each chassis with the first wire, and all GPUs by a switch with the other."""
    check(f"chassis of {name}", hosts, least=1, most=512)
    inner, port = wires
    size = max(max(pair) for pair in pairs) + 1
    devices: list[Device] = []
    links: list[Link] = []
    boxes: list[list[str]] = []
    for host in range(hosts):
        gpus = make_gpus(size, host=f"h{host}", first=size * host)
        devices += gpus
        boxes.append([each.name for each in gpus])
        for a, b in pairs:
            links += inner.join(boxes[-1][a], boxes[-1][b])
    joined = network(boxes, port, fabric="flat", copies=copies)
    # A ring of four and a pair are lattices, and these are all the chassis there are.
    inside = lattice_symmetry(boxes[0], (size,), wrap=True)
    return topology(
        count_of(hosts, name),
        [*devices, *joined[0]],
        [*links, *joined[1]],
        declared=[interchange(boxes, *inside)],
    )


def _around_memory(
    name: str, gpus: int, bandwidth: float, alpha: float, *, copies: bool = True
) -> Topology:
    devices: list[Device] = make_gpus(gpus, host="h0")
    wire = Wire(bandwidth=bandwidth, alpha=alpha, medium="PCIe 4")
    links = star("mem0", [each.name for each in devices], wire)
    memory = device("memory", "mem0", host="h0", copies=copies)
    return topology(name, [*devices, memory], links)


def _limited(made: Topology, memory_bandwidth: float) -> Topology:
    """Add the limit of the memory, which counts what it reads and writes together."""
    bus = tuple(each.ends for each in made.links if "mem0" in each.ends)
    limit = SharedLimit("memory bus", bus, memory_bandwidth)
    return Topology(made.name, made.devices, made.links, (limit,))


def _relay(name: str, ways: tuple[tuple[str, str], ...], alpha: float) -> Topology:
    names = dict.fromkeys(end for way in ways for end in way)
    links = [Link(src, dst, _SLOW, alpha) for src, dst in ways]
    return topology(name, [device("gpu", each) for each in names], links)


_THESIS = "Dissertation on linear programming for collectives (sources in the README), "
_TE_CCL = "TE-CCL, doi.org/10.1145/3651890.3672249, "
_PCIE = Figure("each link", "32 GB/s one way, as PCIe 4 ×16", "assumed")
_BUS = Figure(
    "memory, read and written together", "96 GB/s, half of what its links carry", "assumed"
)
_MEGA = Figure("each link", "1 MB/s one way", "assumed")

_INTERNAL = (
    Figure("each link", "25 GB/s one way", "assumed"),
    Figure("latency of links between GPUs and to the switch", "0.6 and 0.75 µs", "measured"),
)
_TABLE_2 = f"{_TE_CCL}table 2, which has GPUs, one-way links and latencies of a chassis; "

ENTRIES = (
    Entry(
        "thesis-2.1",
        "Thesis, figure 2.1",
        "Papers",
        "Three GPUs in a row: a broadcast in steps leaves links idle that a fluid keeps busy.",
        f"{_THESIS}figure 2.1",
        figures=(_PCIE,),
        make=thesis_2_1,
    ),
    Entry(
        "thesis-2.2",
        "Thesis, figure 2.2",
        "Papers",
        "Three GPUs around a host memory, which keeps and copies what was written once.",
        f"{_THESIS}figure 2.2",
        figures=(_PCIE,),
        make=thesis_2_2,
    ),
    Entry(
        "thesis-2.3",
        "Thesis, figure 2.3",
        "Papers",
        "Four GPUs around a memory whose own bandwidth is what limits; the figure's memory is one "
        "with copies=false.",
        f"{_THESIS}figure 2.3a",
        figures=(_PCIE, _BUS),
        make=thesis_2_3,
    ),
    Entry(
        "thesis-2.4",
        "Thesis, figure 2.4",
        "Papers",
        "Four GPUs around a limited memory, with one direct link besides; the figure's memory is "
        "one with copies=false.",
        f"{_THESIS}figure 2.4a; the place of the direct link is inferred from the text",
        figures=(_PCIE, _BUS),
        make=thesis_2_4,
    ),
    Entry(
        "thesis-2.5",
        "Thesis, figure 2.5",
        "Papers",
        "Figure 2.3 as a tree packing sees it with the links narrowed to a sixth of the memory's "
        "bandwidth.",
        f"{_THESIS}figure 2.5a; the order of the ring is inferred from the text",
        figures=(Figure("each link", "16 GB/s one way, a sixth of 96", "assumed"),),
        make=thesis_2_5,
    ),
    Entry(
        "thesis-2.6",
        "Thesis, figure 2.6",
        "Papers",
        "Figure 2.4 with the same links: its direct link now carries what the memory need not.",
        f"{_THESIS}figure 2.6a; the place of the direct link is inferred from the text",
        figures=(
            Figure("each link of the ring", "16 GB/s one way, a sixth of 96", "assumed"),
            Figure("direct link", "32 GB/s one way, as PCIe 4 ×16", "assumed"),
        ),
        make=thesis_2_6,
    ),
    Entry(
        "thesis-2.7",
        "Thesis, figure 2.7",
        "Papers",
        "Two GPUs and a memory beside them: a tree that has to reach the memory too is half as "
        "fast.",
        f"{_THESIS}figure 2.7; the place and the bandwidth of the memory's link are inferred from "
        "the text",
        figures=(_PCIE, Figure("the memory's link", "16 GB/s one way", "assumed")),
        make=thesis_2_7,
    ),
    Entry(
        "thesis-3.1",
        "Thesis, figure 3.1",
        "Papers",
        "A server of four GPUs and one memory.",
        f"{_THESIS}figure 3.1a",
        figures=(_PCIE,),
        make=thesis_3_1,
    ),
    Entry(
        "te-ccl-1",
        "TE-CCL, figure 1",
        "Papers",
        "Four GPUs with equal links in both directions; their ring is assumed.",
        f"{_TE_CCL}figure 1",
        figures=(Figure("each link", "1 GB/s one way", "assumed"),),
        make=te_ccl_1,
    ),
    Entry(
        "te-ccl-2a",
        "TE-CCL, figure 2a",
        "Papers",
        "A source, a relay and three destinations: what copying along the path saves.",
        f"{_TE_CCL}figure 2a; structure inferred from the text",
        figures=(_MEGA,),
        make=te_ccl_2a,
    ),
    Entry(
        "te-ccl-2b",
        "TE-CCL, figure 2b",
        "Papers",
        "Two chunks arrive at h3 at the same time and one of them queues: latency must be "
        "modelled apart from bandwidth.",
        f"{_TE_CCL}figure 2b; structure inferred from the text",
        figures=(_MEGA, Figure("latency of each link", "1 µs", "assumed")),
        make=te_ccl_2b,
    ),
    Entry(
        "te-ccl-2c",
        "TE-CCL, figure 2c",
        "Papers",
        "Three sources, one relay: holding chunks back opens more schedules.",
        f"{_TE_CCL}figure 2c; structure inferred from the text",
        figures=(_MEGA, Figure("last link", "2 MB/s one way", "assumed")),
        make=te_ccl_2c,
    ),
    Entry(
        "te-ccl-internal-1",
        "TE-CCL, internal 1",
        "Papers",
        "Chassis of four GPUs with eight links, assumed to be a ring, around one switch.",
        f"{_TABLE_2}section 6 adds that many GPUs of a chassis reach a switch",
        figures=_INTERNAL,
        make=te_ccl_internal_1,
    ),
    Entry(
        "te-ccl-internal-2",
        "TE-CCL, internal 2",
        "Papers",
        "Chassis of two GPUs with two links around one switch.",
        f"{_TABLE_2}section 6 adds that many GPUs of a chassis reach a switch",
        figures=_INTERNAL,
        make=te_ccl_internal_2,
    ),
)
