"""Switched networks: HammingMesh, dragonfly+, and rails in units with spines above.

Every docstring gives the rule, degree, diameter, bisection or a known optimum, and the source.
Leaves and spines sized by radix and oversubscription, fat-tree, dragonfly and rail-only stand in
modules of their own.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

from ccl.errors import ProblemError
from ccl.topology import Declared, Device, Link, Permutation, Topology, device
from gallery.build import Wire, check, make_gpus, star, switched_hosts, topology
from gallery.declared import each_alone, interchange, moved
from gallery.entry import Entry, Figure
from gallery.fabrics import global_ports
from gallery.toys import written


def hamming_mesh(
    *,
    board: tuple[int, ...] = (2, 2),
    shape: tuple[int, ...] = (2, 2),
    bandwidth: float = 50.0,
    network_bandwidth: float = 50.0,
    alpha: float = 0.6,
) -> Topology:
    """Make boards, GPUs in a grid, whose rows and columns end at switches that all boards share.

    Boards stand in rows and columns themselves. Both ends of a row of GPUs on a board have a link
    to one switch, which all boards of that row share for this row of GPUs; columns likewise. Each
    GPU has 4 links, and a switch two ports for each of its boards. Some path from one GPU to
    another passes at most one switch of a row and one of a column. The cut between the left and the
    right half of the boards has 1 / (2 a) of the bandwidth into the GPUs of a half, with a GPUs
    along a row of a board. What is one switch here is a tree of them where its radix is too small.
    Source: Hoefler et al., HammingMesh, SC 2022, arXiv 2209.01346.

    Raises
    ------
    ProblemError
        If board or shape are not two numbers each, or there are too many GPUs.
    """
    _check_two_sides(board, shape)
    places = [
        [f"g{row * board[1] * shape[1] + column}" for column in range(board[1] * shape[1])]
        for row in range(board[0] * shape[0])
    ]
    rows = [f"row{i}" for i in range(len(places))]
    columns = [f"column{i}" for i in range(len(places[0]))]
    inner = Wire(bandwidth=bandwidth, alpha=alpha, medium="board")
    outer = Wire(bandwidth=network_bandwidth, alpha=alpha, medium="network")
    links: list[Link] = []
    for switch, line in zip(rows, places, strict=True):
        links += _on_boards(switch, line, board[1], (inner, outer))
    for switch, upright in zip(columns, zip(*places, strict=True), strict=True):
        links += _on_boards(switch, upright, board[0], (inner, outer))
    gpus = make_gpus(len(rows) * len(columns))
    devices = [*gpus, *(device("switch", name) for name in (*rows, *columns))]
    declared = _boards_alike(places, rows, columns, board)
    name = f"HammingMesh {written(shape)} (boards {written(board)})"
    return topology(name, devices, links, declared=declared)


def _check_two_sides(board: tuple[int, ...], shape: tuple[int, ...]) -> None:
    for what, sides in (("board", board), ("shape", shape)):
        if len(sides) != 2 or min(sides) < 1:
            raise ProblemError(
                f"{what} {written(sides)} of a HammingMesh must be two whole numbers, such as 2x2"
            )
    gpus = board[0] * board[1] * shape[0] * shape[1]
    check("GPUs of a HammingMesh", gpus, least=2)


def _on_boards(
    switch: str, line: Sequence[str], side: int, wires: tuple[Wire, Wire]
) -> Iterator[Link]:
    """Yield the links of a row or column of GPUs, on each board and to its switch."""
    inner, outer = wires
    for first in range(0, len(line), side):
        on_board = line[first : first + side]
        for one, other in pairwise(on_board):
            yield from inner.join(one, other)
        for end in (on_board[0], on_board[-1]):
            yield from outer.join(switch, end)


def _boards_alike(
    places: list[list[str]], rows: list[str], columns: list[str], board: tuple[int, ...]
) -> list[Declared]:
    """Declare that rows and columns of boards may be permuted, each turned over on its own.

    Where boards and their arrangement are square, rows and columns may change places as well.
    """
    down = [[switch, *line] for switch, line in zip(rows, places, strict=True)]
    across = [
        [switch, *line] for switch, line in zip(columns, zip(*places, strict=True), strict=True)
    ]
    found: list[Declared] = []
    for lines, side in ((down, board[0]), (across, board[1])):
        blocks = [
            [name for line in lines[first : first + side] for name in line]
            for first in range(0, len(lines), side)
        ]
        turned = [
            (side - 1 - line) * len(lines[0]) + i
            for line in range(side)
            for i in range(len(lines[0]))
        ]
        inner = [moved(blocks[0], turned)] if side > 1 else []
        found.append(interchange(blocks, *inner))
    if board[0] == board[1] and len(rows) == len(columns):
        names = [*chain(*down), *columns]
        found.append(Permutation(tuple(names), (*chain(*across), *rows)))
    return found


def dragonfly_plus(
    *,
    groups: int = 3,
    group_leaves: int = 2,
    group_spines: int = 2,
    gpus: int = 2,
    uplinks: int = 2,
    bandwidth: float = 25.0,
    alpha: float = 0.6,
) -> Topology:
    """Join groups of leaves and spines by the spines, as many links as their ports allow.

    In a group every leaf is joined with every spine, and has GPUs below; the links between groups
    go round all other groups as those of a dragonfly. Leaves of two groups are 3 links apart, those
    of one group 2. A group has leaves x GPUs to send from and spines x uplinks to send by: where
    these are equal, and an all-to-all sends over them evenly, neither slows the other. There are at
    most spines x uplinks + 1 groups. Source: Shpiner et al., Dragonfly+: low cost topology for
    scaling datacenters, HiPINEB 2017.

    Raises
    ------
    ProblemError
        If a number is out of range, or there are more groups than uplinks can join.
    """
    counts = {"leaves": group_leaves, "spines": group_spines, "gpus": gpus, "uplinks": uplinks}
    for what, value in counts.items():
        check(f"{what} of a dragonfly+", value, least=1, most=64)
    check("groups of a dragonfly+", groups, least=2, most=group_spines * uplinks + 1)
    check("GPUs of a dragonfly+", groups * group_leaves * gpus, least=2)
    wire = Wire(bandwidth=bandwidth, alpha=alpha, medium="network")
    devices: list[Device] = []
    links: list[Link] = []
    for group in range(groups):
        host = f"group{group}"
        spines = [f"spine{group * group_spines + i}" for i in range(group_spines)]
        devices += [device("switch", name, host=host) for name in spines]
        for leaf in range(group * group_leaves, (group + 1) * group_leaves):
            attached = make_gpus(gpus, host=host, first=leaf * gpus)
            devices += [device("switch", f"leaf{leaf}", host=host), *attached]
            links += star(f"leaf{leaf}", [*spines, *(each.name for each in attached)], wire)
        for port, peer, entry in global_ports(group, groups, group_spines * uplinks):
            src = spines[port // uplinks]
            dst = f"spine{peer * group_spines + entry // uplinks}"
            links.append(Link(src, dst, bandwidth, alpha, "optical"))
    names = [each.name for each in devices]
    turn = moved(names, [(i + len(names) // groups) % len(names) for i in range(len(names))])
    leaves = [[f"leaf{i}", *(f"g{i * gpus + j}" for j in range(gpus))] for i in range(group_leaves)]
    alike = interchange(leaves, each_alone(leaves[0][1:]))
    return topology(f"Dragonfly+ of {groups} groups", devices, links, declared=[turn, alike])


def rail_optimised(
    *,
    units: int = 2,
    unit_hosts: int = 2,
    gpus: int = 4,
    spines: int = 2,
    trunk: int = 1,
    bandwidth: float = 450.0,
    network_bandwidth: float = 50.0,
    alpha: float = 0.35,
    network_alpha: float = 1.3,
) -> Topology:
    """Make units of hosts with a leaf for each rail, and spines that join all leaves.

    Hosts have an inner switch; GPU i of every host of a unit is on leaf i of that unit. So GPUs of
    one rail of a unit are 2 links apart, as those of a host, all others 4. A leaf has the hosts of
    a unit below and spines x trunk links above: the oversubscription is one over the other, and the
    bisection between two halves of the units half the units x GPUs of a host x spines x trunk
    links. NVIDIA's units have 32 hosts of 8 GPUs, with 8 spines and 4 links to each for 512 GPUs,
    16 and 2 for 1,024, 32 and 1 for 2,048. Source:
    NVIDIA, DGX SuperPOD reference architecture.

    Raises
    ------
    ProblemError
        If a number is out of range.
    """
    check("units of a rail-optimised cluster", units, least=1, most=512)
    check("hosts of a unit", unit_hosts, least=1, most=512)
    check("gpus of a host", gpus, least=2, most=256)
    check("GPUs of a rail-optimised cluster", units * unit_hosts * gpus, least=2)
    check("spines of a rail-optimised cluster", spines, least=1, most=512)
    check("parallel links of a leaf and a spine", trunk, least=1, most=512)
    inner = Wire(bandwidth=bandwidth, alpha=alpha, medium="NVLink")
    port = Wire(bandwidth=network_bandwidth, alpha=network_alpha, medium="network")
    devices, links, boxes = switched_hosts(units * unit_hosts, gpus, inner, switch="nvswitch")
    upper = [f"spine{i}" for i in range(spines)]
    blocks: list[list[str]] = []
    for unit in range(units):
        mine = boxes[unit * unit_hosts : (unit + 1) * unit_hosts]
        leaves = [f"leaf{unit * gpus + i}" for i in range(gpus)]
        devices += [device("switch", name) for name in leaves]
        for leaf, members in zip(leaves, zip(*mine, strict=True), strict=True):
            links += star(leaf, members, port)
            links += star(leaf, upper, port.times(trunk))
        inside = [f"nvswitch{unit * unit_hosts + i}" for i in range(unit_hosts)]
        blocks.append([*leaves, *inside, *chain(*mine)])
    devices += [device("switch", name) for name in upper]
    hosts = [[f"nvswitch{i}", *boxes[i]] for i in range(unit_hosts)]
    rails = [[f"leaf{i}", *(box[i] for box in boxes[:unit_hosts])] for i in range(gpus)]
    alike = interchange(blocks, interchange(hosts), interchange(rails))
    name = f"Rail-optimised ({units} units of {unit_hosts} hosts of {gpus} GPUs, {spines} spines)"
    return topology(name, devices, links, declared=[alike, each_alone(upper)])


_PORT = Figure("latency of each link", "0.6 µs", "assumed")

ENTRIES = (
    Entry(
        "rail-optimised",
        "Rail-optimised with spines",
        "Networks",
        "Units of hosts with a leaf for each rail, and spines above that join the leaves.",
        "NVIDIA, DGX SuperPOD reference architecture, whose units have 32 hosts",
        figures=(
            Figure("a GPU into the switch of its host", "450 GB/s one way, as H100", "spec"),
            Figure("each network link", "400 Gb/s, 50 GB/s one way", "spec"),
            Figure("latency inside and between hosts", "0.35 and 1.3 µs", "assumed"),
        ),
        make=rail_optimised,
    ),
    Entry(
        "dragonfly-plus",
        "Dragonfly+",
        "Networks",
        "Groups of leaves and spines; the uplinks of a group's spines go round all other groups.",
        "Shpiner et al., HiPINEB 2017",
        figures=(Figure("each link", "200 Gb/s, 25 GB/s one way", "assumed"), _PORT),
        make=dragonfly_plus,
    ),
    Entry(
        "hamming-mesh",
        "HammingMesh",
        "Networks",
        "Boards of GPUs in a grid; the rows and columns of all boards end at shared switches.",
        "Hoefler et al., SC 2022, arXiv 2209.01346",
        figures=(Figure("each link", "400 Gb/s, 50 GB/s one way", "assumed"), _PORT),
        make=hamming_mesh,
    ),
)
