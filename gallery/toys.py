"""Textbook networks: ring, line, star, full mesh, torus, grid, hypercube, and random ones.

Nothing about a random network is regular, so nothing can lean on it.
"""

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise

from ccl.errors import ProblemError
from ccl.layout.drawing import grid_neighbours
from ccl.topology import Link, Topology, device, duplex
from gallery.build import GPU_LIMIT, Wire, check, clique, make_gpus, star, topology
from gallery.declared import each_alone, lattice_symmetry
from gallery.entry import Entry, Figure

_BANDWIDTH, _ALPHA = 50.0, 0.7


def ring(
    gpus: int = 8,
    *,
    bandwidth: float = _BANDWIDTH,
    alpha: float = _ALPHA,
    chord_bandwidth: float = 0.0,
) -> Topology:
    """GPUs in a circle, each joined with the two beside it, and perhaps by chords with the rest."""
    check("gpus of a ring", gpus, least=3, most=512 if chord_bandwidth else GPU_LIMIT)
    made = lattice(f"Ring of {gpus}", (gpus,), _wire(bandwidth, alpha), wrap=True)
    if not chord_bandwidth:
        return made
    every = clique(made.ranks, _wire(chord_bandwidth, alpha))
    chords = [each for each in every if each.ends not in made.link_index]
    return replace(made, name=f"{made.name} with chords", links=(*made.links, *chords))


def line(gpus: int = 4, *, bandwidth: float = _BANDWIDTH, alpha: float = _ALPHA) -> Topology:
    """GPUs in a row, each joined with the ones beside it."""
    check("gpus of a line", gpus, least=2)
    return lattice(f"Line of {gpus}", (gpus,), _wire(bandwidth, alpha), wrap=False)


def single_switch(
    gpus: int = 8,
    *,
    bandwidth: float = _BANDWIDTH,
    alpha: float = _ALPHA,
    wide: int = 0,
    wide_bandwidth: float = 10 * _BANDWIDTH,
    copies: bool = False,
    reduces: bool = False,
) -> Topology:
    """GPUs around one switch; the first few may have links of another bandwidth."""
    check("gpus of a star", gpus, least=2)
    check("wide gpus of a star", wide, least=0, most=gpus)
    devices = make_gpus(gpus)
    names = [each.name for each in devices]
    hub = device("switch", "switch", copies=copies, reduces=reduces)
    links = star(hub.name, names[:wide], _wire(wide_bandwidth, alpha))
    links += star(hub.name, names[wide:], _wire(bandwidth, alpha))
    alike = [each_alone(each) for each in (names[:wide], names[wide:]) if each]
    return topology(f"Star of {gpus}", [*devices, hub], links, declared=alike)


def full_mesh(gpus: int = 4, *, bandwidth: float = _BANDWIDTH, alpha: float = _ALPHA) -> Topology:
    """GPUs each joined with every other."""
    check("gpus of a full mesh", gpus, least=2, most=512)
    devices = make_gpus(gpus)
    names = [each.name for each in devices]
    links = clique(names, _wire(bandwidth, alpha))
    return topology(f"Full mesh of {gpus}", devices, links, declared=[each_alone(names)])


def torus(
    shape: tuple[int, ...] = (4, 4), *, bandwidth: float = _BANDWIDTH, alpha: float = _ALPHA
) -> Topology:
    """Close the rows and columns of a grid to rings; a side of 2 stays one pair of links."""
    return lattice(f"Torus {written(shape)}", shape, _wire(bandwidth, alpha), wrap=True)


def mesh(
    shape: tuple[int, ...] = (3, 3), *, bandwidth: float = _BANDWIDTH, alpha: float = _ALPHA
) -> Topology:
    """Join each GPU of a grid with its neighbours."""
    return lattice(f"Grid {written(shape)}", shape, _wire(bandwidth, alpha), wrap=False)


def hypercube(
    dimension: int = 3, *, bandwidth: float = _BANDWIDTH, alpha: float = _ALPHA
) -> Topology:
    """GPUs joined where their numbers differ in one binary digit."""
    check("dimension of a hypercube", dimension, least=1, most=12)
    gpus = 1 << dimension
    pairs = ((i, i | 1 << bit) for i in range(gpus) for bit in range(dimension) if not i >> bit & 1)
    shape, wire = (2,) * dimension, _wire(bandwidth, alpha)
    return _joined(f"Hypercube of {gpus}", shape, pairs, wire, wrap=False)


def lattice(name: str, shape: tuple[int, ...], wire: Wire, *, wrap: bool) -> Topology:
    """Make a torus or a grid; GPUs are numbered with the last coordinate fastest.

    Raises
    ------
    ProblemError
        If a side is below 1, or there is but one GPU, or too many.
    """
    if not shape or min(shape) < 1 or len(shape) > 6:
        raise ProblemError(
            f"shape {written(shape)} is not one; give up to 6 whole numbers, such as 4x4"
        )
    gpus = math.prod(shape)
    check(f"GPUs of shape {written(shape)}", gpus, least=2)
    return _joined(name, shape, grid_neighbours(shape, wrap=wrap), wire, wrap=wrap)


def written(shape: tuple[int, ...]) -> str:
    """Return a shape as people write it, such as ``4x4``."""
    return "x".join(map(str, shape))


def _joined(
    name: str, shape: tuple[int, ...], pairs: Iterator[tuple[int, int]], wire: Wire, *, wrap: bool
) -> Topology:
    devices = make_gpus(math.prod(shape))
    links: list[Link] = []
    for first, second in pairs:
        links += wire.join(f"g{first}", f"g{second}")
    declared = lattice_symmetry([each.name for each in devices], shape, wrap=wrap)
    return topology(name, devices, links, declared=declared)


def _wire(bandwidth: float, alpha: float) -> Wire:
    return Wire(bandwidth=bandwidth, alpha=alpha, medium="")


_FIGURES = (
    Figure("each link", "50 GB/s one way", "assumed"),
    Figure("latency of each link", "0.7 µs", "assumed"),
)
_SOURCE = "Textbook shape; its figures are round numbers near those of one NVLink."


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


_shape = partial(Entry, family="Shapes", source=_SOURCE, figures=_FIGURES)

ENTRIES = (
    _shape("ring", "Ring", summary="GPUs in a circle.", make=ring),
    _shape("line", "Line", summary="GPUs in a row.", make=line),
    _shape("star", "Star", summary="GPUs around one switch.", make=single_switch),
    _shape(
        "full-mesh", "Full mesh", summary="Every GPU is joined with every other.", make=full_mesh
    ),
    _shape(
        "torus", "Torus", summary="A grid in any number of dimensions, closed to rings.", make=torus
    ),
    _shape(
        "mesh",
        "Grid",
        summary="A grid in any number of dimensions, open at its borders.",
        make=mesh,
    ),
    _shape(
        "hypercube",
        "Hypercube",
        summary="GPUs are joined where their numbers differ in one binary digit.",
        make=hypercube,
    ),
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
