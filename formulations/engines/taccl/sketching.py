"""Sketch derived when none is given, its description for the log, and its symmetry offsets.

* `between`: of the GPUs of another host that a GPU reaches over one link of its own, one: that
  with its place in the host, so that there is one connection per NIC and host (section 6.1).
  Where every GPU reaches one GPU of each other host only, nothing has to be chosen.
* `switches`: few different pairs where sending a chunk takes longer than its latency, many where
  it does not (section 4.2).
* `offsets`: of all offsets that are symmetries of the logical topology and of the collective as
  many as leave no GPU in its place together, those that move most first.

Offsets of any sketch are verified on the logical topology and on the collective (`with_offsets`):
one that is no symmetry of both would make the program infeasible; it is left out, with a sentence
that says why.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ccl.errors import Infeasible
from ccl.problem import Problem
from ccl.serialization.sketches import Inclination, Pair, Sketch
from ccl.symmetry import Symmetry
from ccl.symmetry.free import extend_to_devices
from ccl.topology import Topology
from formulations.engines.list_scheduling.timed import Transfers, transfers_of
from formulations.engines.reverse_time import adding
from formulations.engines.taccl.pairs import (
    Logical,
    Pairs,
    Part,
    logical,
    pairs_of,
    parts_of,
    symmetric_pairs,
)

Images = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Image of each chunk, transfer, device and link under a symmetry."""


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
        more = symmetric_pairs(pairs, [*kept, found])
        if more is None:
            note(f"the offset ({by}, {block}) is left out: it maps paths to where none lead")
            continue
        kept.append(found)
        best = more
    return best


def images_of(part: Part, sketch: Sketch, *, by: int, block: int) -> Images | str:
    """Return an offset's images of chunks, transfers, devices and links, or why it has none."""
    logic = part.logical
    topology = _used(logic)
    ranks = turned(len(topology.ranks), by, block)
    devices = extend_to_devices(topology, ranks)
    if devices is None:
        return "the logical topology does not look the same after it"
    if not _keeps(sketch, topology, ranks):
        return "relays and forced pairs do not look the same after it"
    both = Symmetry(topology, np.stack([np.arange(len(devices)), devices]), (2,))
    chunks = both.chunks(part.collective)
    if chunks is None:
        return f"the {part.collective.kind} does not look the same after it"
    whole = logic.transfers.topology
    position = [whole.link_index[link.ends] for link in topology.links]
    link = np.arange(len(whole.links))
    link[position] = np.array(position)[both.links[1]]
    transfers = _moved(logic, link)
    if transfers is None:
        return "it maps paths to where none lead"
    return chunks[1], transfers, devices, link


def _used(logic: Logical) -> Topology:
    """Return the topology with the links that are crossed by transfers, without limits."""
    topology = logic.transfers.topology
    crossed = np.flatnonzero(np.diff(logic.beta.indptr))
    links = tuple(topology.links[number] for number in crossed.tolist())
    return replace(topology, links=links, limits=(), declared=())


def _keeps(sketch: Sketch, topology: Topology, ranks: np.ndarray) -> bool:
    """Return whether relays and forced pairs look the same after a permutation of the ranks."""
    image = {name: topology.ranks[ranks[rank]] for name, rank in topology.rank.items()}

    def kept(pairs: tuple[Pair, ...]) -> bool:
        return {(image[src], image[dst]) for src, dst in pairs} == set(pairs)

    return kept(sketch.relays) and kept(sketch.forced)


def _moved(logic: Logical, link: np.ndarray) -> np.ndarray | None:
    """Return the image of each transfer under a permutation of the links; None if one has none."""
    transfers = logic.transfers
    chance = np.random.default_rng(0)
    code: np.ndarray = chance.integers(1, 1 << 62, size=len(link), dtype=np.int64)
    # A path is known by its links whatever their order, as no two paths have the same ones.
    names, images = (
        np.add.reduceat(values[transfers.link], transfers.first[:-1])[logic.chosen]
        for values in (code, code[link])
    )
    order = np.argsort(names)
    place = np.searchsorted(names[order], images)
    found = order[np.minimum(place, len(order) - 1)]
    return None if (names[found] != images).any() else np.asarray(found)


MOST_RANKS = 512
"""GPUs above which no offsets are looked for."""


def default_sketch(problem: Problem) -> Sketch:
    """Derive a sketch from a topology, a collective and the size of its chunks.

    Raises
    ------
    Infeasible
        If no path joins two GPUs.
    SolveError
        If there are too many paths.
    """
    whole = adding(problem) if problem.collective.reduces else problem
    return derived(problem, transfers_of(whole.topology))


def derived(problem: Problem, transfers: Transfers) -> Sketch:
    """Derive a sketch where the transfers are known."""
    everything = logical(transfers, Sketch())
    between = _between(everything)
    plain = Sketch(between=between)
    if between is not None and not _joins(problem, transfers, plain):
        plain = Sketch()
    logic = logical(transfers, plain)
    plain = replace(plain, switches=_inclination(logic, problem.collective.chunk_size))
    return replace(plain, offsets=_offsets(problem, transfers, plain))


def _between(logic: Logical) -> tuple[Pair, ...] | None:
    """Choose a receiver for each GPU, link that it sends on and other host; None if none can be."""
    topology = logic.transfers.topology
    local = _local(logic)
    found: dict[tuple[int, int, int], set[int]] = defaultdict(set)
    first = logic.transfers.link[logic.transfers.first[:-1]][logic.chosen]
    for transfer in np.flatnonzero(logic.away & logic.switched).tolist():
        src, dst = int(logic.src[transfer]), int(logic.dst[transfer])
        found[src, int(first[transfer]), int(logic.host[dst])].add(dst)
    if all(len(each) == 1 for each in found.values()):
        return None
    taken: dict[int, int] = defaultdict(int)
    pairs: set[tuple[int, int]] = set()
    for (src, _, _), receivers in sorted(found.items()):
        dst = min(receivers, key=lambda each: (local[each] != local[src], taken[each], each))
        taken[dst] += 1
        pairs.add((src, dst))
    direct = np.flatnonzero(logic.away & ~logic.switched)
    pairs |= set(zip(logic.src[direct].tolist(), logic.dst[direct].tolist(), strict=True))
    names = [each.name for each in topology.devices]
    return tuple((names[src], names[dst]) for src, dst in sorted(pairs))


def _joins(problem: Problem, transfers: Transfers, sketch: Sketch) -> bool:
    """Return whether a sketch leaves paths to all destinations."""
    try:
        for part in parts_of(transfers, problem.collective, sketch):
            pairs_of(part)
    except Infeasible:
        return False
    return True


def _local(logic: Logical) -> list[int]:
    """Return the place of each device among those of its kind in its host."""
    counted: dict[tuple[int, str], int] = defaultdict(int)
    place = []
    for host, device in zip(logic.host.tolist(), logic.transfers.topology.devices, strict=True):
        place.append(counted[host, device.kind])
        counted[host, device.kind] += 1
    return place


def _inclination(logic: Logical, nbytes: float) -> Inclination:
    """Prefer few pairs for large chunks, many for small ones, where switches leave a choice."""
    if not logic.switched.any():
        return "all"
    sent = float(np.median(nbytes * logic.slowest[logic.switched]))
    return "uc-min" if sent > float(np.median(logic.latency[logic.switched])) else "uc-max"


def _offsets(problem: Problem, transfers: Transfers, sketch: Sketch) -> tuple[tuple[int, int], ...]:
    """Choose offsets that hold for every part and leave no GPU in its place together."""
    many = len(problem.topology.ranks)
    if many > MOST_RANKS:
        return ()
    parts = parts_of(transfers, problem.collective, sketch)
    kept: list[tuple[int, int]] = []
    group = np.arange(many)[None, :]
    for by, block in _candidates(many):
        larger = _closed(group, turned(many, by, block))
        if larger is None:
            continue
        if all(not isinstance(images_of(each, sketch, by=by, block=block), str) for each in parts):
            kept.append((by, block))
            group = larger
        if len(group) == many:
            break
    return tuple(kept)


def _candidates(many: int) -> list[tuple[int, int]]:
    """List offsets, those of highest order first, of one order those of the largest blocks."""
    found = [
        (by, block)
        for block in range(2, many + 1)
        if many % block == 0
        for by in range(1, block)
        if block % by == 0
    ]
    return sorted(found, key=lambda each: (-(each[1] // each[0]), -each[1]))


def _closed(group: np.ndarray, generator: np.ndarray) -> np.ndarray | None:
    """Return a commutative group with a generator more if it moves all but by the identity."""
    known = {each.tobytes() for each in group}
    if generator.tobytes() in known:
        return None
    if any((each[generator] != generator[each]).any() for each in group):
        return None
    blocks, power = [group], generator
    while power.tobytes() not in known:
        blocks.append(power[group])
        power = generator[power]
    larger = np.unique(np.concatenate(blocks), axis=0)
    still = (larger == np.arange(larger.shape[1])).any(axis=1)
    return None if still.sum() > 1 else larger


def words(sketch: Sketch) -> str:
    """Describe a sketch."""
    said = ["every pair of GPUs in two hosts that a path connects"]
    if sketch.between is not None:
        said = [f"{len(sketch.between)} pairs of GPUs in two hosts"]
    for name, pairs in (
        ("links left out", sketch.without),
        ("forced pairs", sketch.forced),
        ("relays", sketch.relays),
    ):
        if pairs:
            said.append(f"{name} {', '.join(f'{src}->{dst}' for src, dst in pairs)}")
    if sketch.switches != "all":
        few = sketch.switches == "uc-min"
        said.append(f"{'few' if few else 'many'} pairs at switches ({sketch.switches})")
    if sketch.offsets:
        said.append(f"the same after {', '.join(f'{each}' for each in sketch.offsets)}")
    if sketch.chunks is not None:
        said.append(f"{sketch.chunks} chunks per shard")
    if sketch.instances > 1:
        said.append(f"{sketch.instances} instances")
    return "sketch: " + "; ".join(said)
