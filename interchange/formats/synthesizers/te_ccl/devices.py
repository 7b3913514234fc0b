"""Which devices the numbers of a TE-CCL schedule are, and what those must be able to do.

A number is a row of TE-CCL's matrix: its switches are among them. On a cluster that is open it is
the place among all devices, or among the GPUs, or GPUs and switches each count in their order;
the first of these on which every link of the file exists is taken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, pairwise

from ccl.errors import FormatError
from ccl.topology import Link, Topology, device
from interchange.formats.synthesizers.te_ccl.file import Hop, Output, Piece


@dataclass(frozen=True)
class Cluster:
    """A topology with the number that each device has in a file.

    Parameters
    ----------
    topology
        On which the flows exist, with the abilities that they need.
    names
        Of the devices by number.
    told
        What was changed or assumed, in sentences.
    """

    topology: Topology
    names: Mapping[int, str]
    told: tuple[str, ...] = ()


def route(hop: Hop) -> tuple[int, ...]:
    """Return the numbers of the devices of a hop, both ends included."""
    return hop.src, *hop.via, hop.dst


def hops(output: Output) -> Iterator[tuple[Piece, Hop]]:
    """Yield all hops of the flows and of the ways."""
    yield from output.flows
    for (_, piece), ways in output.ways.items():
        yield from ((piece, hop) for hop in chain.from_iterable(ways))


def sources_and_ends(output: Output) -> set[int]:
    """Return the numbers that can only be GPUs: they have chunks first or last."""
    found = {piece.source for piece, _ in output.flows}
    for at, piece in output.demands:
        found |= {at, piece.source}
    return found


def placed(output: Output, topology: Topology) -> Cluster | str:
    """Find the devices on a topology, or say which link it lacks."""
    ends = dict.fromkeys(ends for _, hop in hops(output) for ends in pairwise(route(hop)))
    gpus = sources_and_ends(output)
    numbers = gpus | {number for each in ends for number in each}
    lacks = ""
    for names in _numberings(topology, gpus, numbers):
        missing = [
            (src, dst)
            for src, dst in ends
            if (names.get(src, ""), names.get(dst, "")) not in topology.link_index
        ]
        strange = [number for number in gpus if names.get(number) not in topology.rank]
        if not missing and not strange:
            return Cluster(topology, names)
        if missing and not lacks:
            more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            lacks = "it uses the link {}->{}".format(*missing[0]) + more
    return lacks or f"it has {len(gpus)} GPUs, of which {max(gpus, default=0)} is the last number"


def _numberings(
    topology: Topology, gpus: set[int], numbers: set[int]
) -> Iterator[Mapping[int, str]]:
    yield dict(enumerate(each.name for each in topology.devices))
    yield dict(enumerate(topology.ranks))
    others = [each.name for each in topology.devices if each.kind != "gpu"]
    rest = sorted(numbers - gpus)
    if len(gpus) == len(topology.ranks) and len(rest) <= len(others):
        yield dict(
            [
                *zip(sorted(gpus), topology.ranks, strict=True),
                *zip(rest, others, strict=False),
            ]
        )


def derived(output: Output, chunk_size: float) -> Cluster:
    """Make a topology of the links that the flows use, as wide as the most that one carries.

    In an epoch at the most; of what a chunk of `chunk_size` bytes takes longer than an epoch for,
    a file says nothing.
    """
    gpus = sources_and_ends(output)
    found = {number for _, hop in hops(output) for number in route(hop)}
    crossed = {number for _, hop in output.flows for number in hop.via}
    passed = crossed | (found - gpus if not output.fluid else set())
    names = {
        number: f"s{number}" if number in passed - gpus else f"g{number}"
        for number in sorted(found | gpus)
    }
    loads: defaultdict[tuple[int, int], defaultdict[int, float]] = defaultdict(
        lambda: defaultdict(float)
    )
    once = set()
    for piece, hop in output.flows:
        for depth, ends in enumerate(pairwise(route(hop))):
            # What parts at a switch has crossed the links before it once.
            key = piece, hop.epoch, route(hop)[: depth + 2]
            if hop.volume is not None or key not in once:
                once.add(key)
                loads[ends][hop.epoch] += 1.0 if hop.volume is None else hop.volume
    each = chunk_size * 1e-3 / output.epoch_duration
    most = {ends: max(*load.values(), 1e-6) for ends, load in loads.items()}
    widest: defaultdict[int, float] = defaultdict(float)
    for ends, load in most.items():
        for number in passed.intersection(ends):
            widest[number] = max(widest[number], load)
    # A chunk crosses both links of a switch at once here, one after the other in the file.
    links = tuple(
        Link(names[src], names[dst], max(load, widest[src], widest[dst]) * each)
        for (src, dst), load in most.items()
    )
    devices = tuple(device("switch" if name[0] == "s" else "gpu", name) for name in names.values())
    told = (
        f"{len(links)} links are those of the flows, each as wide as the most that it carries in "
        "an epoch and without latency; name the cluster to know better"
    )
    return Cluster(Topology("TE-CCL", devices, links), names, (told,))


def crossed_gpus(output: Output, cluster: Cluster) -> set[int]:
    """Return the numbers of devices that store and are crossed as switches all the same."""
    crossed = {number for _, hop in hops(output) for number in hop.via}
    return {each for each in crossed if cluster.topology.device(cluster.names[each]).stores}


def able(output: Output, cluster: Cluster) -> Cluster:
    """Make switches of GPUs that the file crosses, and let switches copy where its flows part.

    Raises
    ------
    FormatError
        If a device is crossed as a switch and has chunks of its own.
    """
    names, topology = cluster.names, cluster.topology
    crossed = {number: hop for _, hop in hops(output) for number in hop.via}
    stores = crossed_gpus(output, cluster)
    for number in sorted(stores & sources_and_ends(output)):
        msg = (
            f"GPU {number} ({names[number]}) has chunks of its own and is crossed as a switch in "
            f"epoch {crossed[number].epoch}; a device is one of both"
        )
        raise FormatError(msg)
    turned = {names[number] for number in stores}
    parting = {names[number] for number in _parting(output)}
    parting = {name for name in parting if not topology.device(name).copies} | turned & parting
    if not turned and not parting:
        return cluster
    devices = []
    for each in topology.devices:
        if each.name in turned:
            copies = each.name in parting
            devices.append(device("switch", each.name, host=each.host, copies=copies))
        else:
            devices.append(replace(each, copies=each.copies or each.name in parting))
    told = list(cluster.told)
    if turned:
        told.append(
            f"GPU {', '.join(sorted(turned))} is a switch, because the file crosses it as one and "
            "wants nothing from it or for it (TE-CCL's NDv2 of 2 chassis marks GPU 0 so)"
        )
    if parting - turned:
        some = sorted(parting - turned)
        told.append(f"{_listed(some)} cop{'ies' if len(some) == 1 else 'y'}, as the flows need")
    made = replace(topology, devices=tuple(devices), declared=())
    return Cluster(made, names, tuple(told))


def _parting(output: Output) -> set[int]:
    """Return the numbers of switches at which whole chunks part."""
    onward: defaultdict[tuple[Piece, int, tuple[int, ...]], set[int]] = defaultdict(set)
    came: defaultdict[tuple[Piece, int], int] = defaultdict(int)
    left: defaultdict[tuple[Piece, int], int] = defaultdict(int)
    sources = sources_and_ends(output)
    for piece, hop in output.flows:
        if hop.volume is not None and hop.volume < 1:
            continue
        way = route(hop)
        for depth in range(1, len(way) - 1):
            onward[piece, hop.epoch, way[: depth + 1]].add(way[depth + 1])
        came[piece, hop.dst] += 1
        left[piece, hop.src] += 1
    found = {way[-1] for (_, _, way), ends in onward.items() if len(ends) > 1}
    stops = {number for (piece, number), many in left.items() if many > came[piece, number] > 0}
    return found | (stops - sources)


def _listed(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
