"""Small problems drawn by chance, with all that a cluster may have and a collective may ask."""

from __future__ import annotations

import random

from ccl.collective import COLLECTIVES, Chunk, Collective, custom, make_collective
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.topology import Device, Link, SharedLimit, Topology, device

BANDWIDTHS = ((50.0,), (25.0, 50.0), (12.5, 25.0, 100.0), (2.5, 10.0, 50.0, 100.0))
ALPHAS = ((0.0,), (0.7,), (0.0, 0.7, 5.0), (0.7, 5.0, 20.0))


def draw(seed: int) -> Problem | None:
    """Draw a problem, or None where the cluster cannot do what the collective asks."""
    chance = random.Random(seed)
    gpus = [
        device("gpu", f"g{i}", host=f"h{i % 2}", reduces=chance.random() > 0.04)
        for i in range(chance.choice((2, 3, 3, 4, 4, 6)))
    ]
    others = [_other(chance, i) for i in range(chance.choice((0, 1, 1, 2, 2, 3)))]
    links = _links(chance, [each.name for each in gpus], [each.name for each in others])
    if not links:
        return None
    topology = Topology("random", (*gpus, *others), tuple(links), _limits(chance, links))
    try:
        return Problem(topology, _collective(chance, len(gpus)))
    except ProblemError:
        return None


def _other(chance: random.Random, number: int) -> Device:
    """Draw a switch, a NIC or a memory, each of which may store, copy and reduce or not."""
    kind = chance.choice(("switch", "switch", "nic", "memory"))
    usual = chance.random() < 0.5
    flags = [None if usual else chance.random() < 0.5 for _ in range(3)]
    return device(kind, f"x{number}", stores=flags[0], copies=flags[1], reduces=flags[2])


def _links(chance: random.Random, gpus: list[str], others: list[str]) -> list[Link]:
    """Draw links of GPUs and of what joins them, some one way."""
    bandwidths, alphas = chance.choice(BANDWIDTHS), chance.choice(ALPHAS)
    direct = chance.choice((0.0, 0.3, 0.7, 1.0)) if others else 1.0
    pairs = {(a, b) for a in gpus for b in gpus if a < b and chance.random() < direct}
    for number, name in enumerate(others):
        ends = [*gpus, *others[:number]]
        pairs |= {(name, end) for end in chance.sample(ends, chance.randint(2, len(ends)))}
    one_way = chance.choice((0.0, 0.0, 0.2))
    found = []
    for src, dst in sorted(pairs):
        ways = [(src, dst), (dst, src)]
        if chance.random() < one_way:
            ways = [chance.choice(ways)]
        found += [Link(*way, chance.choice(bandwidths), chance.choice(alphas)) for way in ways]
    return found


def _limits(chance: random.Random, links: list[Link]) -> tuple[SharedLimit, ...]:
    """Draw no limit, mostly, or one that binds the links that it is over."""
    if chance.random() < 0.75:
        return ()
    under = chance.sample(links, min(len(links), chance.randint(2, 5)))
    together = sum(link.bandwidth for link in under)
    bandwidth = chance.choice((0.3, 0.6, 0.9)) * together
    return (SharedLimit("limit", tuple(link.ends for link in under), bandwidth),)


def _collective(chance: random.Random, ranks: int) -> Collective:
    size = chance.choice((4096.0, 65536.0, 1e6))
    kind = chance.choice((*COLLECTIVES, "custom", "custom"))
    if kind != "custom":
        fixed = chance.choice((None, None, 2))
        return make_collective(kind, ranks, size, chunks=fixed, root=chance.randrange(ranks))
    reduces, several = chance.random() < 0.4, chance.random() < 0.4
    unequal = chance.random() < 0.3
    chunks = [_chunk(chance, ranks, reduces=reduces, several=several) for _ in range(3)]
    sizes = [size * (chance.choice((0.5, 2.0)) if unequal else 1.0) for _ in chunks]
    return custom(ranks, [Chunk(each, *ends) for each, ends in zip(sizes, chunks, strict=True)])


def _chunk(
    chance: random.Random, ranks: int, *, reduces: bool, several: bool
) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    """Draw holders and destinations; a rank may be both, so that the chunk is there already."""
    reduced = reduces and chance.random() < 0.7
    holders = chance.randint(1, ranks) if several or reduced else 1
    wanted = chance.randint(1, ranks)
    return (
        tuple(chance.sample(range(ranks), holders)),
        tuple(chance.sample(range(ranks), wanted)),
        reduced,
    )
