"""Random networks: nothing about them is regular, so nothing can lean on it."""

from __future__ import annotations

import random
from itertools import pairwise

from ccl.topology import Link, Topology, device, duplex
from gallery.build import check, make_gpus, topology
from gallery.entry import Entry, Figure


def random_graph(
    *,
    gpus: int = 8,
    switches: int = 2,
    degree: int = 4,
    bandwidth: float = 1.0,
    spread: int = 9,
    alpha: float = 0.0,
    one_way: bool = False,
    copies: bool = False,
    seed: int = 0,
) -> Topology:
    """Draw a network in which as much can enter each device as can leave it.

    Links both ways run along a closed walk through all devices and between further pairs, until
    `degree` leave a device on average. With `one_way` there are `degree` closed walks instead,
    each in one direction; where two of them use the same link, it is one with both bandwidths.
    """
    check("gpus of a random network", gpus, least=2, most=2048)
    check("switches of a random network", switches, least=0, most=2048)
    check("devices of a random network", gpus + switches, least=3)
    check("degree of a random network", degree, least=2, most=gpus + switches - 1)
    check("spread of a random network", spread, least=1)
    draw = random.Random(seed)
    devices = [
        *make_gpus(gpus),
        *(device("switch", f"s{i}", copies=copies) for i in range(switches)),
    ]
    names = [each.name for each in devices]

    def rate() -> float:
        return bandwidth * draw.randint(1, spread)

    links: list[Link] = []
    if one_way:
        for _ in range(degree):
            walk, same = _closed_walk(draw, names), rate()
            links += [Link(src, dst, same, alpha) for src, dst in walk]
    else:
        for src, dst in _pairs(draw, names, len(names) * degree // 2):
            links += duplex(src, dst, bandwidth=rate(), alpha=alpha)
    return topology(f"Random network of {gpus} + {switches}", devices, links)


def _closed_walk(draw: random.Random, names: list[str]) -> list[tuple[str, str]]:
    """Return the links of a walk through all devices and back, in a random order."""
    order = draw.sample(names, len(names))
    return list(pairwise([*order, order[0]]))


def _pairs(draw: random.Random, names: list[str], count: int) -> list[tuple[str, str]]:
    """Return pairs of devices, each pair once: a closed walk and more up to `count`."""
    pairs = _closed_walk(draw, names)
    known = {frozenset(each) for each in pairs}
    while len(pairs) < count:
        src, dst = draw.sample(names, 2)
        if frozenset((src, dst)) not in known:
            known.add(frozenset((src, dst)))
            pairs.append((src, dst))
    return pairs


ENTRIES = (
    Entry(
        "random",
        "Random network",
        "Shapes",
        "GPUs and switches joined by chance with links of random bandwidth; as much can enter "
        "each device as can leave it. The seed says which.",
        "Drawn by a generator of random numbers, the same for the same seed.",
        figures=(
            Figure("each link", "1 to 9 times 1 GB/s one way, at random", "assumed"),
            Figure("latency of each link", "0 µs", "assumed"),
        ),
        make=random_graph,
    ),
)
