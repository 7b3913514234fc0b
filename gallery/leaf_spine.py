"""Leaf and spine: as many switches and links as radix and oversubscription ask for.

With D links down from the fullest leaf, b and c the bandwidths of a link down and of one up, and r
the oversubscription, a leaf needs u = ceil(D b / (r c)) links up. They are spread evenly over the
fewest spines whose ports take them all; the leaves are the fewest whose ports take D + u.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from ccl.errors import ProblemError
from ccl.topology import Declared, Device, Link, Topology, device
from gallery.build import GPU_LIMIT, Wire, clique, gpu_hosts, star, switched_hosts, topology
from gallery.declared import each_alone, interchange
from gallery.entry import Entry, Figure

Joined = Literal["switch", "mesh", "ring"]
"""How the GPUs of a host are joined: by a switch, each to each, or each to the next."""

PCIE = 64.0
"""GB/s of PCIe 5 ×16, one way."""

LIMITS: dict[str, tuple[str, float, float]] = {
    "hosts": ("hosts", 2, 2048),
    "gpus": ("GPUs in each host", 1, 64),
    "nics": ("NICs in each host", 1, 64),
    "leaf_radix": ("radix of a leaf", 2, 1024),
    "leaves": ("leaves, 0 for as few as fit,", 0, 1024),
    "spine_radix": ("radix of a spine", 2, 1024),
    "oversubscription": ("oversubscription", 0.1, 64),
}
"""Of each number that is planned: what it is called, the least and the most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a cluster of leaves and spines is to be.

    Parameters
    ----------
    hosts, gpus, nics
        Hosts, and GPUs and NICs in each.
    joined
        How the GPUs of a host are joined.
    rails
        Whether NIC i of every host goes to a leaf of rail i; else all of a host go to one leaf.
    leaf_radix, spine_radix
        Ports of each switch.
    leaves
        How many there are; 0 for as few as fit.
    oversubscription
        Bandwidth into a leaf from below over that to the spines, at most.
    inner, bus, port, uplink
        Links between the GPUs of a host, from GPU to NIC, from NIC to leaf, from leaf to spine.
    """

    hosts: int
    gpus: int
    nics: int
    joined: Joined = "switch"
    rails: bool = True
    leaf_radix: int = 64
    spine_radix: int = 64
    leaves: int = 0
    oversubscription: float = 1.0
    inner: Wire
    bus: Wire
    port: Wire
    uplink: Wire

    def down(self, groups: int) -> int:
        """Return the ports of the fullest leaf that hosts take, if these are in `groups`."""
        return math.ceil(self.hosts / groups) * (1 if self.rails else self.nics)

    def up(self, groups: int) -> int:
        """Return the links up that each leaf needs; a single leaf needs none."""
        if self.count(groups) == 1:
            return 0
        needed = self.down(groups) * self.port.bandwidth
        return math.ceil(needed / (self.oversubscription * self.uplink.bandwidth) - 1e-9)

    def count(self, groups: int) -> int:
        """Return the leaves of `groups` groups of hosts."""
        return groups * (self.nics if self.rails else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """The switches that a plan needs.

    Parameters
    ----------
    groups
        Hosts of each group; the hosts of a group share its leaf, or its leaf of each rail.
    leaves, spines
        How many there are.
    down
        Ports of the fullest leaf that hosts take.
    parallel
        Links from each leaf to each spine.
    oversubscription
        Bandwidth into the fullest leaf over that to the spines; 0 without spines.
    bisection
        GB/s one way between two halves of the hosts, where it is least.
    """

    groups: tuple[int, ...]
    leaves: int
    spines: int
    down: int
    parallel: int
    oversubscription: float
    bisection: float

    @property
    def leaf_ports(self) -> int:
        """Ports in use of the fullest leaf."""
        return self.down + self.spines * self.parallel

    @property
    def spine_ports(self) -> int:
        """Ports in use of each spine."""
        return self.leaves * self.parallel


def find_faults(plan: Plan) -> dict[str, str]:
    """Return what is wrong with a plan: by the name of its field a sentence; empty if it fits."""
    found = {}
    for name, (what, least, most) in LIMITS.items():
        value = getattr(plan, name)
        if not least <= value <= most:
            found[name] = f"{what} must be from {least:,} to {most:,}, got {value:,}"
    if found:
        return found
    gpus, nics = plan.gpus, plan.nics
    if plan.hosts * gpus > GPU_LIMIT:
        words = f"{plan.hosts:,} hosts of {gpus} GPUs are {plan.hosts * gpus:,}"
        return {"gpus": f"{words} GPUs; at most {GPU_LIMIT:,} are drawn"}
    if max(gpus, nics) % min(gpus, nics):
        words = f"{nics} NICs cannot be shared evenly by {gpus} GPUs"
        return {"nics": f"{words}; give a divisor or a multiple of {gpus}"}
    return _find_leaf_fault(plan) or _find_spine_fault(plan)


def _find_leaf_fault(plan: Plan) -> dict[str, str]:
    """Return whether leaves are too many, too few or too small."""
    most = plan.count(plan.hosts)
    if plan.leaves > most:
        return {"leaves": f"{plan.hosts} hosts can use at most {most} leaves, got {plan.leaves}"}
    if plan.rails and plan.leaves % plan.nics:
        words = f"{plan.nics} rails need a multiple of {plan.nics} leaves"
        return {"leaves": f"{words}, got {plan.leaves}"}
    fewest = _fewest_groups(plan)
    if fewest is None:
        down, up = plan.down(plan.hosts), plan.up(plan.hosts)
        words = f"a leaf needs {down} ports for one host and {up} up, more than its radix"
        return {"leaf_radix": f"{words} of {plan.leaf_radix}; give {down + up} or more"}
    if 0 < plan.leaves < plan.count(fewest):
        down, up = plan.down(_groups(plan)), plan.up(_groups(plan))
        words = f"with {plan.leaves} leaves each needs {down} ports down and {up} up"
        return {
            "leaves": f"{words}, more than its radix of {plan.leaf_radix}; "
            f"give {plan.count(fewest)} leaves or more"
        }
    return {}


def _find_spine_fault(plan: Plan) -> dict[str, str]:
    """Return whether a spine has too few ports to reach every leaf."""
    leaves = plan.count(_groups(plan))
    if leaves <= plan.spine_radix:
        return {}
    words = f"a spine needs a port for each of {leaves} leaves, more than its radix"
    return {"spine_radix": f"{words} of {plan.spine_radix}; give {leaves} or more"}


def _fewest_groups(plan: Plan) -> int | None:
    """Return the fewest groups of hosts whose leaves have ports enough, None if none are."""
    fits = (n for n in range(1, plan.hosts + 1) if plan.down(n) + plan.up(n) <= plan.leaf_radix)
    return next(fits, None)


def _groups(plan: Plan) -> int:
    """Return the groups of hosts of a plan whose leaves have ports enough."""
    if plan.leaves:
        return plan.leaves // (plan.nics if plan.rails else 1)
    return _fewest_groups(plan) or 1


def size_fabric(plan: Plan) -> Fabric:
    """Return the switches that a plan needs.

    Raises
    ------
    ProblemError
        If a number is out of range or ports do not suffice.
    """
    if faults := find_faults(plan):
        raise ProblemError(f"leaf and spine: {next(iter(faults.values()))}")
    groups = _groups(plan)
    leaves, down, up = plan.count(groups), plan.down(groups), plan.up(groups)
    spines = next((n for n in range(1, up + 1) if _spread(plan, leaves, down, up=up, spines=n)), 0)
    parallel = -(-up // spines) if spines else 0
    rest = plan.hosts % groups
    sizes = tuple(plan.hosts // groups + (each < rest) for each in range(groups))
    above = spines * parallel * plan.uplink.bandwidth
    return Fabric(
        groups=sizes,
        leaves=leaves,
        spines=spines,
        down=down,
        parallel=parallel,
        oversubscription=down * plan.port.bandwidth / above if spines else 0.0,
        bisection=_bisection(
            sizes, host=plan.nics * plan.port.bandwidth, above=above * leaves / groups
        ),
    )


def _spread(plan: Plan, leaves: int, down: int, *, up: int, spines: int) -> bool:
    """Return whether ports suffice if each leaf has equally many links to each spine."""
    parallel = -(-up // spines)
    return leaves * parallel <= plan.spine_radix and down + spines * parallel <= plan.leaf_radix


def _bisection(sizes: Sequence[int], *, host: float, above: float) -> float:
    """Return the least bandwidth between two halves of the hosts.

    With the spines on the far side, a group of n hosts with a of them in the near half costs
    min(a host, (n - a) host + above), which is concave in a. So where it is least, all groups but
    one are whole; how many of either size they are is tried.
    """
    half, most = sum(sizes) // 2, max(sizes)
    large = sizes.count(most)
    small = len(sizes) - large
    found = []
    for big in range(min(large, half // most) + 1):
        left = half - big * most
        little = min(small, left // max(1, most - 1))
        left -= little * (most - 1)
        cost = big * min(most * host, above) + little * min((most - 1) * host, above)
        sizes_left = [most] * (big < large) + [most - 1] * (little < small)
        found += [
            cost + min(left * host, (size - left) * host + above)
            for size in sizes_left
            if left <= size
        ]
    return min(found)


def build(plan: Plan, name: str) -> Topology:
    """Return the cluster of a plan.

    Raises
    ------
    ProblemError
        If a number is out of range or ports do not suffice.
    """
    fabric = size_fabric(plan)
    devices, links, boxes = _hosts(plan)
    leaves = [f"leaf{i}" for i in range(fabric.leaves)]
    spines = [f"spine{i}" for i in range(fabric.spines)]
    for host, group in enumerate(_group_of(fabric)):
        for i in range(plan.nics):
            place = group * plan.nics + i if plan.rails else group
            links += plan.port.join(leaves[place], f"nic{host * plan.nics + i}")
    above = plan.uplink.times(max(1, fabric.parallel))
    for spine in spines:
        links += star(spine, leaves, above)
    devices += [device("switch", each) for each in (*leaves, *spines)]
    return topology(name, devices, links, declared=_alike(plan, fabric, boxes=boxes))


def _hosts(plan: Plan) -> tuple[list[Device], list[Link], list[list[str]]]:
    """Return devices and links inside the hosts, and the names of each host's GPUs."""
    links: list[Link] = []
    if plan.joined == "switch" and plan.gpus > 1:
        devices, links, boxes = switched_hosts(plan.hosts, plan.gpus, plan.inner, switch="nvswitch")
    else:
        devices, boxes = gpu_hosts(plan.hosts, plan.gpus)
        for names in boxes:
            links += _joined(names, plan)
    for host, names in enumerate(boxes):
        for i, nic in enumerate(_nics(plan, host)):
            devices.append(device("nic", nic, host=f"h{host}"))
            first = i * plan.gpus // plan.nics
            links += star(nic, names[first : first + max(1, plan.gpus // plan.nics)], plan.bus)
    return devices, links, boxes


def _joined(names: Sequence[str], plan: Plan) -> list[Link]:
    if plan.joined == "mesh" or len(names) < 4:
        return clique(names, plan.inner)
    pairs = zip(names, (*names[1:], names[0]), strict=True)
    return [link for first, second in pairs for link in plan.inner.join(first, second)]


def _nics(plan: Plan, host: int) -> list[str]:
    return [f"nic{host * plan.nics + i}" for i in range(plan.nics)]


def _group_of(fabric: Fabric) -> list[int]:
    """Return the group of each host."""
    return [group for group, hosts in enumerate(fabric.groups) for _ in range(hosts)]


def _alike(plan: Plan, fabric: Fabric, *, boxes: Sequence[Sequence[str]]) -> list[Declared]:
    """Declare that spines, groups, hosts and rails of a group may be permuted.

    So may be what is alike in a host. A ring of four or more turns with all its rails at once,
    which is not declared.
    """
    places = [_places(plan, names, _nics(plan, host)) for host, names in enumerate(boxes)]
    own = [[*chain(*each), *_inner_switch(plan, host)] for host, each in enumerate(places)]
    groups: list[list[int]] = [[] for _ in fabric.groups]
    for host, group in enumerate(_group_of(fabric)):
        groups[group].append(host)
    per_group = plan.count(1)
    leaves = [[f"leaf{g * per_group + i}" for i in range(per_group)] for g in range(len(groups))]
    loose = plan.joined != "ring" or plan.gpus < 4
    found: list[Declared] = []
    for size in sorted(set(fabric.groups)):
        same = [group for group, hosts in enumerate(groups) if len(hosts) == size]
        first = groups[same[0]]
        inner: list[Declared] = [
            interchange([own[host] for host in first], *_in_host(plan, places[first[0]], loose))
        ]
        if plan.rails and loose:
            inner.append(_rails(plan, [places[host] for host in first], leaves[same[0]]))
        blocks = [[*chain(*(own[host] for host in groups[g])), *leaves[g]] for g in same]
        found.append(interchange(blocks, *inner))
    if fabric.spines > 1:
        found.append(each_alone(f"spine{i}" for i in range(fabric.spines)))
    return found


def _places(plan: Plan, gpus: Sequence[str], nics: Sequence[str]) -> list[list[str]]:
    """Return the GPUs and NICs of a host that are linked to one another, GPUs first."""
    places = min(plan.gpus, plan.nics)
    a, b = plan.gpus // places, plan.nics // places
    return [[*gpus[i * a : i * a + a], *nics[i * b : i * b + b]] for i in range(places)]


def _inner_switch(plan: Plan, host: int) -> list[str]:
    return [f"nvswitch{host}"] if plan.joined == "switch" and plan.gpus > 1 else []


def _in_host(plan: Plan, places: Sequence[Sequence[str]], loose: bool) -> list[Declared]:
    """Declare what may be permuted within a host: with rails GPUs of a NIC, else all places."""
    sharing = max(1, plan.gpus // plan.nics)
    if not loose:
        return []
    if plan.rails:
        return [each_alone(each[:sharing]) for each in places if sharing > 1]
    return [interchange(places, each_alone(places[0][:sharing]), each_alone(places[0][sharing:]))]


def _rails(
    plan: Plan, places: Sequence[Sequence[Sequence[str]]], leaves: Sequence[str]
) -> Declared:
    """Declare that rails of a group may be permuted, and those of one GPU among themselves."""
    nics = max(1, plan.nics // plan.gpus)
    blocks = [
        [*chain(*(host[i] for host in places)), *leaves[i * nics : i * nics + nics]]
        for i in range(len(places[0]))
    ]
    one_gpu = [[*(host[0][j - nics] for host in places), leaves[j]] for j in range(nics)]
    return interchange(blocks, *([interchange(one_gpu)] if nics > 1 else []))


def leaf_spine(  # noqa: PLR0913  each is a parameter of the entry
    *,
    hosts: int = 4,
    gpus: int = 4,
    nics: int = 4,
    joined: Joined = "switch",
    rails: bool = True,
    leaf_radix: int = 8,
    leaves: int = 0,
    spine_radix: int = 8,
    oversubscription: float = 1.0,
    bandwidth: float = 450.0,
    bus_bandwidth: float = 0.0,
    network_bandwidth: float = 50.0,
    spine_bandwidth: float = 50.0,
    alpha: float = 0.7,
    network_alpha: float = 1.3,
) -> Topology:
    """Make hosts with NICs under leaves and spines, whose number follows from the radix of both.

    Raises
    ------
    ProblemError
        If a number is out of range or ports do not suffice.
    """
    # A GPU that stands alone has its port itself, and no bus of a host before it.
    bus = bus_bandwidth or (network_bandwidth if gpus == 1 else PCIE)
    plan = Plan(
        hosts=hosts,
        gpus=gpus,
        nics=nics,
        joined=joined,
        rails=rails,
        leaf_radix=leaf_radix,
        leaves=leaves,
        spine_radix=spine_radix,
        oversubscription=oversubscription,
        inner=Wire(bandwidth=bandwidth, alpha=alpha, medium="NVLink"),
        bus=Wire(bandwidth=bus, alpha=alpha, medium="PCIe"),
        port=Wire(bandwidth=network_bandwidth, alpha=network_alpha, medium="network"),
        uplink=Wire(bandwidth=spine_bandwidth, alpha=network_alpha, medium="network"),
    )
    return build(plan, f"Leaf and spine, {hosts} hosts")


ENTRIES = (
    Entry(
        "leaf-spine",
        "Leaf and spine",
        "Networks",
        "Hosts with NICs on leaves, in rails or a leaf for all of a host; the leaves and the links "
        "to the spines follow from radix and oversubscription.",
        "Clos, Bell System Technical Journal 1953, in the two levels of Al-Fares, Loukissas, "
        "Vahdat, SIGCOMM 2008",
        figures=(
            Figure("between the GPUs of a host", "450 GB/s one way, as H100", "spec"),
            Figure("GPU to NIC", "64 GB/s one way, PCIe 5 ×16; of a GPU alone its port", "spec"),
            Figure("each network link", "400 Gb/s, 50 GB/s one way", "spec"),
            Figure("latency inside and between hosts", "0.7 and 1.3 µs", "assumed"),
        ),
        make=leaf_spine,
    ),
)
