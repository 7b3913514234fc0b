"""Clusters of the papers that Topoloom builds on: small examples, and those of evaluations.

The figures are pictures; structure and numbers that their texts do not state are assumed here,
and each entry says so. Figures that evaluations leave out are inferred.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from ccl.topology import Device, Link, SharedLimit, Topology, device, duplex
from gallery.build import (
    Wire,
    check,
    count_of,
    gpu_hosts,
    make_gpus,
    network,
    star,
    switched_hosts,
    topology,
)
from gallery.declared import hosts_and_places, interchange, lattice_symmetry
from gallery.entry import Entry, Figure
from gallery.nvidia import dgx_a100
from gallery.servers import pcie_server
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
    devices, boxes = gpu_hosts(hosts, size)
    links = [link for names in boxes for a, b in pairs for link in inner.join(names[a], names[b])]
    joined = network(boxes, port, fabric="flat", copies=copies)
    # A ring of four and a pair are lattices, and these are all the chassis there are.
    inside = lattice_symmetry(boxes[0], (size,), wrap=True)
    declared = [interchange(boxes, *inside)]
    return topology(count_of(hosts, name), devices, links, joined, declared=declared)


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


_THESIS = "Shapley, Algorithmic techniques for optimal collective communication, Cornell, 2025, "
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


Used = Literal["nvlink-only", "no-nvlink", "all"]
"""The three scenarios of the thesis, section 6.1."""


def thesis_dgx_a100(*, hosts: int = 2, used: Used = "nvlink-only", alpha: float = 0.0) -> Topology:
    """DGX A100 on rails as the thesis evaluates it, in the three scenarios of its section 6.1.

    The thesis refers to drawings of the server and prints no bandwidths. What is here was
    inferred from its tables 6.3 to 6.8, mainly from the cells of 1 and 2 nodes, so that those are
    a fit, and larger clusters and the secondary objectives the test of it:

    * ``nvlink-only``: GPU to NVSwitch 300 GB/s (7 shards of 1/300 s/GB: 0.0233), GPU to rail 25
      (15 shards of 1/325: 0.0462);
    * ``no-nvlink``: two GPUs and two network ports on each of four PCIe switches; GPU to PCIe
      switch 32 (7/32, which the thesis prints as 0.0219 for 0.219, and 15/32: 0.469), PCIe switch
      to the one memory of the host 32 (all-to-all in a node: 12 shards out of the two GPUs of a
      PCIe switch, 0.375), to a port 25, port to rail 25. The memory keeps and copies but does not
      add, and has no limit besides its links;
    * ``all``: both, so that a GPU has 332 in (7/332: 0.0211).

    Rails are not joined with one another. Bandwidths are one way; there are no latencies.
    """
    if used == "nvlink-only":
        made = dgx_a100(hosts=hosts, fabric="rail-only", alpha=alpha, network_alpha=alpha)
    else:
        made = pcie_server(
            hosts=hosts,
            nvlink=used == "all",
            memory_bandwidth=0.0,
            alpha=alpha,
            network_alpha=alpha,
        )
    return replace(made, name=f"{count_of(hosts, 'DGX A100')} (thesis, {used})")


def forestcoll_12(
    *,
    hosts: int = 2,
    gpus: int = 4,
    bandwidth: float = 10.0,
    network_bandwidth: float = 1.0,
    alpha: float = 0.0,
) -> Topology:
    """Boxes with a fast switch each, and a slow one that joins all GPUs and limits."""
    check("boxes of ForestColl's figure 12", hosts, least=1, most=2048)
    check("gpus of a box", gpus, least=1, most=256)
    inner = Wire(bandwidth=bandwidth, alpha=alpha, medium="")
    port = Wire(bandwidth=network_bandwidth, alpha=alpha, medium="network")
    devices, links, boxes = switched_hosts(hosts, gpus, inner, switch="local")
    joined = network(boxes, port, fabric="flat")
    whole = [[*names, f"local{host}"] for host, names in enumerate(boxes)]
    name, declared = f"{hosts} × {gpus}", hosts_and_places(whole, boxes, fabric="flat")
    return topology(f"ForestColl, figure 12, {name}", devices, links, joined, declared=declared)


def _thesis(
    number: str, summary: str, more: str, make: Callable[..., Topology], *figures: Figure
) -> Entry:
    """List a figure of the thesis; its source goes on with `more`."""
    source = f"{_THESIS}figure {number}{more}"
    name, title = f"thesis-{number}", f"Thesis, figure {number}"
    return Entry(name, title, "Papers", summary, source, figures=figures, make=make)


def _te_ccl(
    number: str, summary: str, more: str, make: Callable[..., Topology], *figures: Figure
) -> Entry:
    """List a figure of TE-CCL; its source goes on with `more`."""
    source = f"{_TE_CCL}figure {number}{more}"
    name, title = f"te-ccl-{number}", f"TE-CCL, figure {number}"
    return Entry(name, title, "Papers", summary, source, figures=figures, make=make)


ENTRIES = (
    _thesis(
        "2.1",
        "Three GPUs in a row: a broadcast in steps leaves links idle that a fluid keeps busy.",
        "",
        thesis_2_1,
        _PCIE,
    ),
    _thesis(
        "2.2",
        "Three GPUs around a host memory, which keeps and copies what was written once.",
        "",
        thesis_2_2,
        _PCIE,
    ),
    _thesis(
        "2.3",
        "Four GPUs around a memory whose own bandwidth is what limits; the figure's memory is one "
        "with copies=false.",
        "a",
        thesis_2_3,
        _PCIE,
        _BUS,
    ),
    _thesis(
        "2.4",
        "Four GPUs around a limited memory, with one direct link besides; the figure's memory is "
        "one with copies=false.",
        "a; the place of the direct link is inferred from the text",
        thesis_2_4,
        _PCIE,
        _BUS,
    ),
    _thesis(
        "2.5",
        "Figure 2.3 as a tree packing sees it with the links narrowed to a sixth of the memory's "
        "bandwidth.",
        "a; the order of the ring is inferred from the text",
        thesis_2_5,
        Figure("each link", "16 GB/s one way, a sixth of 96", "assumed"),
    ),
    _thesis(
        "2.6",
        "Figure 2.4 with the same links: its direct link now carries what the memory need not.",
        "a; the place of the direct link is inferred from the text",
        thesis_2_6,
        Figure("each link of the ring", "16 GB/s one way, a sixth of 96", "assumed"),
        Figure("direct link", "32 GB/s one way, as PCIe 4 ×16", "assumed"),
    ),
    _thesis(
        "2.7",
        "Two GPUs and a memory beside them: a tree that has to reach the memory too is half as "
        "fast.",
        "; the place and the bandwidth of the memory's link are inferred from the text",
        thesis_2_7,
        _PCIE,
        Figure("the memory's link", "16 GB/s one way", "assumed"),
    ),
    _thesis("3.1", "A server of four GPUs and one memory.", "a", thesis_3_1, _PCIE),
    _te_ccl(
        "1",
        "Four GPUs with equal links in both directions; their ring is assumed.",
        "",
        te_ccl_1,
        Figure("each link", "1 GB/s one way", "assumed"),
    ),
    _te_ccl(
        "2a",
        "A source, a relay and three destinations: what copying along the path saves.",
        "; structure inferred from the text",
        te_ccl_2a,
        _MEGA,
    ),
    _te_ccl(
        "2b",
        "Two chunks arrive at h3 at the same time and one of them queues: latency must be "
        "modelled apart from bandwidth.",
        "; structure inferred from the text",
        te_ccl_2b,
        _MEGA,
        Figure("latency of each link", "1 µs", "assumed"),
    ),
    _te_ccl(
        "2c",
        "Three sources, one relay: holding chunks back opens more schedules.",
        "; structure inferred from the text",
        te_ccl_2c,
        _MEGA,
        Figure("last link", "2 MB/s one way", "assumed"),
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
    Entry(
        "thesis-dgx-a100",
        "DGX A100 of the thesis",
        "Papers",
        "DGX A100 on rails that are not joined, with its NVLinks, with PCIe and host memory, or "
        "with both.",
        "Shapley, Algorithmic techniques for optimal collective communication, Cornell, 2025, "
        "section 6.1; bandwidths inferred from its tables 6.3 to 6.8",
        figures=(
            Figure("a GPU into its NVSwitch", "300 GB/s one way", "assumed"),
            Figure("PCIe, to GPUs and to memory", "32 GB/s one way", "assumed"),
            Figure("network port, on both sides", "25 GB/s one way", "assumed"),
            Figure("latency of each link", "0 µs", "assumed"),
        ),
        make=thesis_dgx_a100,
    ),
    Entry(
        "forestcoll-12",
        "ForestColl, figure 12",
        "Papers",
        "Boxes of four GPUs with a fast switch each, and a slow switch that joins all GPUs.",
        "ForestColl, arXiv 2402.06787, figure 12, where the fast links have ten times the "
        "bandwidth b of the slow ones",
        figures=(
            Figure("a GPU into the switch of its box", "10 GB/s one way", "assumed"),
            Figure("a GPU into the switch between boxes", "1 GB/s one way", "assumed"),
        ),
        make=forestcoll_12,
    ),
)
