"""Automorphisms by hand: judged link by link, and all of them by trying every permutation."""

import itertools
import random
from collections import Counter

import numpy as np

from ccl.topology import Device, Link, SharedLimit, Topology, device


def looks(each: Device) -> tuple:
    """Return what a device must have in common with its image."""
    return each.kind, each.stores, each.copies, each.reduces, each.buffer_bytes


def keeps(topology: Topology, row: list[int], *, steady: bool = False) -> bool:
    """Whether a permutation leaves devices, links and limits as they are."""
    names = [each.name for each in topology.devices]
    image = {name: names[place] for name, place in zip(names, row, strict=True)}
    if sorted(row) != list(range(len(names))):
        return False
    if any(looks(topology.device(image[each.name])) != looks(each) for each in topology.devices):
        return False

    def links(of: dict[str, str]) -> Counter:
        return Counter(
            (of[each.src], of[each.dst], each.bandwidth, 0 if steady else each.alpha)
            for each in topology.links
        )

    def limits(of: dict[str, str]) -> Counter:
        return Counter(
            (each.bandwidth, frozenset((of[src], of[dst]) for src, dst in each.links))
            for each in topology.limits
        )

    same = {name: name for name in names}
    return links(image) == links(same) and limits(image) == limits(same)


def every(topology: Topology, *fixed: int) -> list[tuple[int, ...]]:
    """Return all automorphisms that fix some devices."""
    rows = itertools.permutations(range(len(topology.devices)))
    return [
        row for row in rows if all(row[each] == each for each in fixed) and keeps(topology, row)
    ]


def orbits(rows: list[tuple[int, ...]]) -> list[int]:
    """Return the smallest image of each device under a whole group."""
    return np.min(rows, axis=0).tolist()


def link_orbits(topology: Topology, rows: list[tuple[int, ...]]) -> list[int]:
    """Return the smallest image of each link under a whole group."""
    index, place = topology.index, topology.link_index
    names = [each.name for each in topology.devices]
    return [
        min(place[names[row[index[each.src]]], names[row[index[each.dst]]]] for row in rows)
        for each in topology.links
    ]


def scribbled(seed: int, *, gpus: int = 4, switches: int = 2) -> Topology:
    """Return a small cluster with few kinds of links, so that it may be symmetric, and limits."""
    dice = random.Random(seed)
    devices = [device("gpu", f"g{i}") for i in range(gpus)]
    devices += [device("switch", f"s{i}", copies=dice.random() < 0.3) for i in range(switches)]
    density = dice.choice((0.3, 0.6, 1.0))
    one_way, mixed = dice.random() < 0.4, dice.random() < 0.5
    links: list[Link] = []
    for first, second in itertools.combinations([each.name for each in devices], 2):
        if dice.random() > density:
            continue
        rate = dice.choice((1.0, 2.0)) if mixed else 1.0
        links.append(Link(first, second, rate, dice.choice((0.0, 0.0, 1.0))))
        if not one_way or dice.random() < 0.3:
            links.append(Link(second, first, rate if dice.random() < 0.8 else 2.0))
    limits = [
        SharedLimit(
            f"limit {i}",
            tuple(dice.sample([each.ends for each in links], dice.randint(1, min(3, len(links))))),
            dice.choice((1.0, 2.0)),
        )
        for i in range(dice.choice((0, 0, 1, 2)) if links else 0)
    ]
    return Topology(f"scribble {seed}", tuple(devices), tuple(links), tuple(limits))
