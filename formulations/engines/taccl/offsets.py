"""Symmetry offsets of a sketch: verified on the logical topology and on the collective.

An offset that is no symmetry of both would make the program ask for what cannot be; it is left
out, with a sentence that says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ccl.sketch import Pair, Sketch
from ccl.symmetry import Symmetry
from ccl.symmetry.free import extended
from ccl.topology import Topology
from formulations.engines.taccl.logical import Logical
from formulations.engines.taccl.pairs import Pairs, joined
from formulations.engines.taccl.parts import Part

Images = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Image of each chunk, move, device and link under a symmetry."""


def turned(ranks: int, by: int, block: int) -> np.ndarray:
    """Return the image of each rank under an offset, shape (ranks,)."""
    rank = np.arange(ranks)
    return np.asarray(rank // block * block + (rank % block + by) % block)


def with_offsets(pairs: Pairs, sketch: Sketch, note: Callable[[str], None]) -> Pairs:
    """Return pairs joined by the offsets of a sketch that hold, and say which do not."""
    kept: list[Images] = []
    best = pairs
    for by, block in sketch.offsets:
        found = images_of(pairs.part, sketch, by=by, block=block)
        if isinstance(found, str):
            note(f"the offset ({by}, {block}) is left out: {found}")
            continue
        more = joined(pairs, [*kept, found])
        if more is None:
            note(f"the offset ({by}, {block}) is left out: it moves ways to where none lead")
            continue
        kept.append(found)
        best = more
    return best


def images_of(part: Part, sketch: Sketch, *, by: int, block: int) -> Images | str:
    """Return what an offset does to chunks, moves, devices and links, or why it is no symmetry."""
    ways = part.logical
    topology = _used(ways)
    ranks = turned(len(topology.ranks), by, block)
    devices = extended(topology, ranks)
    if devices is None:
        return "the logical topology does not look the same after it"
    if not _keeps(sketch, topology, ranks):
        return "relays and forced pairs do not look the same after it"
    both = Symmetry(topology, np.stack([np.arange(len(devices)), devices]), (2,))
    chunks = both.chunks(part.collective)
    if chunks is None:
        return f"the {part.collective.kind} does not look the same after it"
    whole = ways.moves.topology
    position = [whole.link_index[link.ends] for link in topology.links]
    link = np.arange(len(whole.links))
    link[position] = np.array(position)[both.links[1]]
    moves = _moved(ways, link)
    if moves is None:
        return "it moves ways to where none lead"
    return chunks[1], moves, devices, link


def _used(ways: Logical) -> Topology:
    """Return the topology with the links that are crossed by moves, without limits."""
    topology = ways.moves.topology
    crossed = np.flatnonzero(np.diff(ways.beta.indptr))
    links = tuple(topology.links[number] for number in crossed.tolist())
    return replace(topology, links=links, limits=(), declared=())


def _keeps(sketch: Sketch, topology: Topology, ranks: np.ndarray) -> bool:
    """Whether relays and forced pairs look the same after a permutation of the ranks."""
    image = {name: topology.ranks[ranks[rank]] for name, rank in topology.rank.items()}

    def kept(pairs: tuple[Pair, ...]) -> bool:
        return {(image[src], image[dst]) for src, dst in pairs} == set(pairs)

    return kept(sketch.relays) and kept(sketch.forced)


def _moved(ways: Logical, link: np.ndarray) -> np.ndarray | None:
    """Return the image of each move under a permutation of the links; None if one has none."""
    moves = ways.moves
    chance = np.random.default_rng(0)
    code: np.ndarray = chance.integers(1, 1 << 62, size=len(link), dtype=np.int64)
    # A way is known by its links whatever their order, as no two ways have the same ones.
    names, images = (
        np.add.reduceat(values[moves.link], moves.first[:-1])[ways.kept]
        for values in (code, code[link])
    )
    order = np.argsort(names)
    place = np.searchsorted(names[order], images)
    found = order[np.minimum(place, len(order) - 1)]
    return None if (names[found] != images).any() else np.asarray(found)
