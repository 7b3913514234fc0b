"""Larger networks of small ones: line graph, product, degree expansion, concentration, planes.

Each takes topologies and returns one. The first three keep what makes a small network good: Zhao et
al., arXiv 2202.03356, which calls them expansions of direct-connect topologies. What is known of
the symmetry of the parts is carried over: only declarations that `ccl.symmetry` found to be true.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ccl import text
from ccl.errors import ProblemError
from ccl.symmetry import automorphisms
from ccl.topology import Declared, Link, Topology, device
from gallery.build import Wire, check, make_gpus, star, topology
from gallery.declared import each_alone, interchange, moved


def line_graph(base: Topology) -> Topology:
    """Return a network with a GPU for each one-way link, joined to those that begin where it ends.

    Of n GPUs with d links out of each it makes n d, again with d links out of each; parallel links
    count singly. Links are one way, but where the base has one in each direction. The diameter
    grows by 1, and so do the steps of an all-gather; its rate stays that of d links, up to what
    more GPUs take. The line graph of a full mesh of d + 1 is a Kautz graph, and so is that of a
    Kautz graph. Source: Zhao et al., arXiv 2202.03356; Fiol, Yebra, Alegre, IEEE Transactions on
    Computers 1984.

    Raises
    ------
    ProblemError
        If there are other devices than GPUs, links of several kinds, or too many links.
    """
    _gpus_alone(base, "a line graph")
    wire = _only_kind(base)
    copies = [(link.src, link.dst, i) for link in base.links for i in range(link.count)]
    check(f"one-way links of {base}", len(copies), least=2)
    number = {copy: i for i, copy in enumerate(copies)}
    names = [each.name for each in make_gpus(len(copies))]
    leaving: dict[str, list[int]] = {name: [] for name in base.ranks}
    for (src, _, _), i in number.items():
        leaving[src].append(i)
    links = [
        Link(names[i], names[j], wire.bandwidth, wire.alpha, wire.medium)
        for (_, dst, _), i in number.items()
        for j in leaving[dst]
    ]
    declared: list[Declared] = [
        moved(names, [number[image[src], image[dst], i] for src, dst, i in copies])
        for image in _generators(base)
    ]
    declared += [
        each_alone(names[number[*link.ends, i]] for i in range(link.count))
        for link in base.links
        if link.count > 1
    ]
    made = make_gpus(len(copies))
    return topology(f"Line graph of {base}", made, links, declared=declared)


def cartesian_product(first: Topology, second: Topology) -> Topology:
    """Return a network of copies of the second, whose GPUs of equal rank are joined as the first.

    GPU i of the first and j of the second make GPU i m + j, with m GPUs in the second. Numbers of
    GPUs multiply; degrees, diameters and the steps of an all-gather add up. The product of rings is
    a torus, that of full meshes HyperX. Source: Zhao et al., arXiv 2202.03356.

    Raises
    ------
    ProblemError
        If there are other devices than GPUs, or too many.
    """
    for each in (first, second):
        _gpus_alone(each, "a Cartesian product")
    rows, columns = len(first.ranks), len(second.ranks)
    check(f"GPUs of {first} × {second}", rows * columns, least=2)
    names = [each.name for each in make_gpus(rows * columns)]
    tables = {
        "first": {a: names[i * columns : (i + 1) * columns] for a, i in first.rank.items()},
        "second": {b: names[j::columns] for b, j in second.rank.items()},
    }
    links, declared = [], []
    for part, table in ((first, tables["first"]), (second, tables["second"])):
        links += list(_in_parallel(part, table))
        declared += list(_carried(part, table))
    made = make_gpus(len(names))
    return topology(f"{first} × {second}", made, links, declared=declared)


def expand_degree(base: Topology, copies: int) -> Topology:
    """Return a network with several copies of each GPU, all of them linked as the GPUs are.

    Copy i of GPU v is GPU v m + i of m copies, and has a link to every copy of each GPU that v has
    one to. Of n GPUs with d links it makes n m with d m; the diameter stays, except that two copies
    of one GPU are 2 apart. Source: Zhao et al., arXiv 2202.03356.

    Raises
    ------
    ProblemError
        If there are other devices than GPUs, or too many.
    """
    _gpus_alone(base, "a degree expansion")
    check("copies of each GPU", copies, least=1, most=64)
    check(f"GPUs of {copies} copies of {base}", copies * len(base.ranks), least=2)
    names = [each.name for each in make_gpus(copies * len(base.ranks))]
    table = {a: names[i * copies : (i + 1) * copies] for a, i in base.rank.items()}
    links = [
        replace(link, src=src, dst=dst)
        for link in base.links
        for src in table[link.src]
        for dst in table[link.dst]
    ]
    declared = [*_carried(base, table), *map(each_alone, table.values())]
    made = make_gpus(len(names))
    return topology(f"{base}, {copies} copies each", made, links, declared=declared)


def concentrate(base: Topology, gpus: int, *, wire: Wire) -> Topology:
    """Return the network with routers in place of its GPUs, and so many GPUs at each router.

    Parameters
    ----------
    base
        A network of GPUs alone.
    gpus
        GPUs of each router, p of the literature; 0 returns the network as it is.
    wire
        Links between a router and its GPUs.

    Raises
    ------
    ProblemError
        If there are other devices than GPUs, or too many.
    """
    _gpus_alone(base, "a network of routers")
    check("GPUs of each router", gpus, least=0, most=256)
    if not gpus:
        return base
    check(f"GPUs of {base}", gpus * len(base.ranks), least=2)
    attached = make_gpus(gpus * len(base.ranks))
    routers = [device("switch", f"r{i}") for i in range(len(base.ranks))]
    table = {
        a: [f"r{i}", *(each.name for each in attached[i * gpus : (i + 1) * gpus])]
        for a, i in base.rank.items()
    }
    links = [replace(link, src=table[link.src][0], dst=table[link.dst][0]) for link in base.links]
    for router, *names in table.values():
        links += star(router, names, wire)
    declared = list(_carried(base, table))
    orbits = automorphisms(base, method="declared").orbits()
    declared += [each_alone(table[base.devices[i].name][1:]) for i in sorted(set(orbits))]
    name = f"{base}, {gpus} GPUs at each router"
    return topology(name, [*attached, *routers], links, declared=declared)


def in_planes(base: Topology, planes: int) -> Topology:
    """Return a network with several copies of all switches, and a port of each GPU in every one.

    Switch s is s, s-1, s-2, ... of the planes. Links between GPUs become parallel ones; what hosts
    have inside, all that NVLink joins, stays as it is. Of every flow in the planes the sum over the
    copies of each link is one in the base, where its links are so many times as fast, and the other
    way round: so rates are those of the base, times the planes, as long as its ports limit them.

    Raises
    ------
    ProblemError
        If there are shared limits, or out of range many planes.
    """
    check("planes of a network", planes, least=1, most=64)
    if base.limits:
        raise ProblemError(f"{base} has shared limits, which planes cannot have")
    if planes == 1:
        return base
    within = {end for link in base.links if link.medium.startswith("NVLink") for end in link.ends}
    above = [each for each in base.devices if each.kind == "switch" and each.name not in within]
    copied = {e.name: [e.name, *(f"{e.name}-{i}" for i in range(1, planes))] for e in above}
    table = {e.name: copied.get(e.name, [e.name] * planes) for e in base.devices}
    links: list[Link] = []
    for link in base.links:
        if link.src in copied or link.dst in copied:
            ends = zip(table[link.src], table[link.dst], strict=True)
            links += (replace(link, src=src, dst=dst) for src, dst in ends)
        elif {link.src, link.dst} <= within:
            links.append(link)
        else:
            many = link.count * planes
            links.append(replace(link, bandwidth=link.bandwidth * planes, count=many))
    devices = [
        replace(each, name=name)
        for each in base.devices
        for name in dict.fromkeys(table[each.name])
    ]
    declared: list[Declared] = [_moved_in_planes(image, table) for image in _generators(base)]
    declared.append(interchange(zip(*copied.values(), strict=True)))
    return topology(f"{base}, {planes} planes", devices, links, declared=declared)


def _moved_in_planes(image: dict[str, str], table: dict[str, list[str]]) -> Declared:
    """Return a symmetry of the base as one that moves all planes alike."""
    pairs = {
        a: b for name, to in image.items() for a, b in zip(table[name], table[to], strict=True)
    }
    names = [*pairs]
    place = {name: i for i, name in enumerate(names)}
    return moved(names, [place[pairs[name]] for name in names])


def _in_parallel(part: Topology, table: dict[str, list[str]]) -> Iterator[Link]:
    """Yield the links of a part between the devices at equal places of its rows of a table."""
    for link in part.links:
        for src, dst in zip(table[link.src], table[link.dst], strict=True):
            yield replace(link, src=src, dst=dst)


def _carried(part: Topology, table: dict[str, list[str]]) -> Iterator[Declared]:
    """Yield the symmetry of a part as one of the devices in the rows of a table."""
    names = [name for row in table.values() for name in row]
    number = {name: i for i, name in enumerate(names)}
    for image in _generators(part):
        yield moved(names, [number[name] for a in table for name in table[image[a]]])


def _generators(base: Topology) -> Iterator[dict[str, str]]:
    """Yield what is declared of the symmetry of a network, as far as it is true."""
    names = [each.name for each in base.devices]
    for image in automorphisms(base, method="declared").generators:
        yield {name: names[i] for name, i in zip(names, image, strict=True)}


def _gpus_alone(base: Topology, what: str) -> None:
    if len(base.ranks) < len(base.devices) or base.limits:
        raise ProblemError(
            f"{what} is made of GPUs and their links alone; {base} has other devices or limits"
        )


def _only_kind(base: Topology) -> Wire:
    """Return the kind of link that all are, parallel ones singly."""
    kinds = {(each.bandwidth / each.count, each.alpha, each.medium) for each in base.links}
    if len(kinds) != 1:
        raise ProblemError(
            f"a line graph needs links of one kind, {base} has {text.count(len(kinds), 'kind')}"
        )
    [(bandwidth, alpha, medium)] = kinds
    return Wire(bandwidth=bandwidth, alpha=alpha, medium=medium)
