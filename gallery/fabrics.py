"""Networks as they are built: fat-tree, dragonfly, rail-only, the torus of a TPU pod."""

from dataclasses import replace
from itertools import chain

from ccl.errors import ProblemError
from ccl.topology import Declared, Device, Link, Topology, device
from gallery.build import Wire, check, clique, make_gpus, network, star, switched_hosts, topology
from gallery.declared import each_alone, hosts_and_places, interchange, moved
from gallery.entry import Entry, Figure
from gallery.toys import lattice, written


def fat_tree(
    *, radix: int = 4, bandwidth: float = 50.0, alpha: float = 0.6, copies: bool = False
) -> Topology:
    """Three levels of equal switches with full bisection, one GPU per port below.

    Raises
    ------
    ProblemError
        If the radix is odd or out of range.
    """
    check("radix of a fat-tree", radix, least=2, most=32)
    if radix % 2:
        raise ProblemError(f"radix of a fat-tree must be even, got {radix}")
    half = radix // 2
    wire = Wire(bandwidth=bandwidth, alpha=alpha, medium="network")
    devices: list[Device] = make_gpus(radix * half * half)
    links: list[Link] = []
    cores = [f"core{i}" for i in range(half * half)]
    for pod in range(radix):
        uppers = [f"agg{pod * half + i}" for i in range(half)]
        lowers = [f"edge{pod * half + i}" for i in range(half)]
        devices += [device("switch", name, copies=copies) for name in (*lowers, *uppers)]
        for i, lower in enumerate(lowers):
            first = (pod * half + i) * half
            links += star(lower, [f"g{first + j}" for j in range(half)], wire)
            links += star(lower, uppers, wire)
        for i, upper in enumerate(uppers):
            links += star(upper, cores[i * half : (i + 1) * half], wire)
    devices += [device("switch", name, copies=copies) for name in cores]
    return topology(f"Fat-tree of radix {radix}", devices, links, declared=_alike(radix))


def _alike(radix: int) -> list[Declared]:
    """Declare that pods, switches of a level and GPUs of a switch may be permuted."""
    half = radix // 2
    edges = [[f"edge{i}", *(f"g{i * half + j}" for j in range(half))] for i in range(radix * half)]
    pods = [
        [*(f"agg{i}" for i in range(first, first + half)), *chain(*edges[first : first + half])]
        for first in range(0, radix * half, half)
    ]
    cores = [[f"core{i * half + j}" for j in range(half)] for i in range(half)]
    planes = [[*cores[i], *(f"agg{pod * half + i}" for pod in range(radix))] for i in range(half)]
    leaves = interchange(edges[:half], each_alone(edges[0][1:]))
    return [interchange(pods, leaves), interchange(planes, each_alone(cores[0]))]


def dragonfly(
    *,
    groups: int = 5,
    routers: int = 4,
    gpus: int = 2,
    uplinks: int = 2,
    bandwidth: float = 25.0,
    alpha: float = 0.6,
) -> Topology:
    """Join groups of fully joined routers, as many links between groups as their ports allow.

    Raises
    ------
    ProblemError
        If a number is out of range, or there are more groups than uplinks can join.
    """
    for what, value in (("routers", routers), ("gpus", gpus), ("uplinks", uplinks)):
        check(f"{what} of a dragonfly", value, least=1, most=64)
    check("groups of a dragonfly", groups, least=2, most=routers * uplinks + 1)
    check("GPUs of a dragonfly", groups * routers * gpus, least=2)
    wire = Wire(bandwidth=bandwidth, alpha=alpha, medium="network")
    devices: list[Device] = []
    links: list[Link] = []
    for group in range(groups):
        names = [f"r{group * routers + i}" for i in range(routers)]
        devices += [device("switch", name, host=f"group{group}") for name in names]
        links += clique(names, wire)
        for i, name in enumerate(names):
            first = (group * routers + i) * gpus
            attached = make_gpus(gpus, host=f"group{group}", first=first)
            devices += attached
            links += star(name, [each.name for each in attached], wire)
    for group in range(groups):
        for port, peer, entry in global_ports(group, groups, routers * uplinks):
            src = f"r{group * routers + port // uplinks}"
            dst = f"r{peer * routers + entry // uplinks}"
            links.append(Link(src, dst, bandwidth, alpha, "optical"))
    # The groups may be turned: a global link only knows how many groups on it ends.
    names = [each.name for each in devices]
    turn = moved(names, [(i + len(names) // groups) % len(names) for i in range(len(names))])
    alike = (each_alone(f"g{i * gpus + j}" for j in range(gpus)) for i in range(routers))
    return topology(f"Dragonfly of {groups} groups", devices, links, declared=[turn, *alike])


def rail_only(
    *,
    hosts: int = 4,
    gpus: int = 8,
    bandwidth: float = 450.0,
    network_bandwidth: float = 50.0,
    alpha: float = 0.35,
    network_alpha: float = 1.3,
) -> Topology:
    """Hosts with an inner switch; GPU i of every host on rail i, and no spine above."""
    check("hosts of a rail-only cluster", hosts, least=2, most=2048)
    check("gpus of a host", gpus, least=2, most=256)
    inner = Wire(bandwidth=bandwidth, alpha=alpha, medium="NVLink")
    port = Wire(bandwidth=network_bandwidth, alpha=network_alpha, medium="network")
    devices, links, boxes = switched_hosts(hosts, gpus, inner, switch="nvswitch")
    joined = network(boxes, port, fabric="rail-only")
    inner_names = [[*names, f"nvswitch{host}"] for host, names in enumerate(boxes)]
    declared = hosts_and_places(inner_names, boxes, fabric="rail-only")
    return topology(f"Rail-only, {hosts} hosts", devices, links, joined, declared=declared)


def global_ports(group: int, groups: int, ports: int) -> list[tuple[int, int, int]]:
    """Return each used port of a group with the group and port at its other end.

    Ports go round the other groups, nearest following group first; in every round the port for
    the group `ahead` places on meets the one for `groups` - `ahead` places on.
    """
    found = []
    for port in range(ports):
        turn, ahead = divmod(port, groups - 1)
        entry = turn * (groups - 1) + groups - 2 - ahead
        if entry < ports:
            found.append((port, (group + ahead + 1) % groups, entry))
    return found


def tpu_v4(*, shape: tuple[int, ...] = (4, 4, 4), alpha: float = 1.0) -> Topology:
    """Make a slice of a TPU v4 pod; slices of whole 4×4×4 cubes are closed to a torus.

    Raises
    ------
    ProblemError
        If it has not three sides or more chips than a pod.
    """
    if len(shape) != 3 or max(shape, default=0) > 64:
        raise ProblemError(
            f"shape {written(shape)} is no TPU v4 slice; give three sides, such as 4x4x4"
        )
    wire = Wire(bandwidth=45.0, alpha=alpha, medium="ICI")
    cubes = all(side % 4 == 0 for side in shape)
    made = lattice(f"TPU v4 {written(shape)}", shape, wire, wrap=cubes)
    return replace(
        made,
        devices=tuple(
            replace(each, host=_board(number, shape)) for number, each in enumerate(made.devices)
        ),
    )


def _board(number: int, shape: tuple[int, ...]) -> str:
    """Return the host of a chip: hosts hold squares of 2×2 chips."""
    rows, columns = -(-shape[1] // 2), -(-shape[2] // 2)
    layer, rest = divmod(number, shape[1] * shape[2])
    row, column = divmod(rest, shape[2])
    return f"h{(layer * rows + row // 2) * columns + column // 2}"


_PORT = Figure("latency of each link", "0.6 µs", "assumed")

ENTRIES = (
    Entry(
        "tpu-v4",
        "TPU v4 slice",
        "Google",
        "Chips with six links each in a 3D torus; four chips to a host. Slices that are not made "
        "of whole 4×4×4 cubes are open grids.",
        "cloud.google.com/tpu/docs/v4; jax-ml.github.io/scaling-book",
        figures=(
            Figure("each link", "45 GB/s one way", "spec"),
            Figure("latency of each link", "1 µs", "assumed"),
        ),
        make=tpu_v4,
    ),
    Entry(
        "fat-tree",
        "Fat-tree",
        "Networks",
        "Three levels of equal switches with full bisection; radix cubed over four GPUs.",
        "Al-Fares, Loukissas, Vahdat, SIGCOMM 2008",
        figures=(Figure("each link", "400 Gb/s, 50 GB/s one way", "assumed"), _PORT),
        make=fat_tree,
    ),
    Entry(
        "dragonfly",
        "Dragonfly",
        "Networks",
        "Groups of fully joined routers; the uplinks of a group go round all other groups.",
        "Kim, Dally, Scott, Abts, ISCA 2008; a balanced one has routers = 2 gpus = 2 uplinks",
        figures=(Figure("each link", "200 Gb/s, 25 GB/s one way", "assumed"), _PORT),
        make=dragonfly,
    ),
    Entry(
        "rail-only",
        "Rail-only",
        "Networks",
        "GPU i of every host is on rail switch i; between rails data goes through the hosts.",
        "Wang et al., arXiv 2307.12169",
        figures=(
            Figure("a GPU into the switch of its host", "450 GB/s one way, as H100", "spec"),
            Figure("network port of a GPU", "400 Gb/s, 50 GB/s one way", "spec"),
            Figure("latency inside and between hosts", "0.35 and 1.3 µs", "assumed"),
        ),
        make=rail_only,
    ),
)
