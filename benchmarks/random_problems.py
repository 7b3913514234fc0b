"""Random problems that are small and odd: what drawings of users can be and galleries are not.

Each is made from its number alone, so that a number is a reproduction. From `UNUSUAL` on devices
are in hosts and are able to do what few are, buffers end, bandwidths are far apart, chunks have
priorities and stay whole.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random

from ccl.collective import COLLECTIVES, Chunk, Collective, CollectiveKind, custom, make_collective
from ccl.errors import ProblemError
from ccl.problem import Problem, Window
from ccl.topology import Device, Link, SharedLimit, Topology, device

BANDWIDTHS = (2.5, 5.0, 10.0, 12.5, 25.0, 50.0, 100.0)
"""GB/s."""

ALPHAS = (0.0, 0.0, 0.7, 1.0, 5.0, 20.0)
"""µs."""

SIZES = (1.0, 3000.0, 20_000.0, 65_536.0, 2.5e5, 1e6, 1e7)
"""Bytes; at most of these, latencies and bandwidths count alike."""

UNUSUAL = 10_000_000
"""Number of the first problem that is odd in every respect."""

TRIES = 100
"""Drawings that are made until one lets everything arrive."""


def random_problem(seed: int) -> Problem:
    """Return the problem of a number."""
    random, unusual = Random(seed), seed >= UNUSUAL
    kind = random.choice(COLLECTIVES)
    for _ in range(TRIES):
        topology = _topology(random, unusual=unusual)
        try:
            collective = _collective(random, kind, len(topology.ranks))
            problem = Problem(topology, _demanding(random, collective) if unusual else collective)
        except ProblemError:
            continue
        if any(map(_moves, problem.collective.chunks)):
            often = 0.3 if unusual else 0.1
            return replace(problem, windows=_windows(random, problem, often=often))
    raise ProblemError(f"no drawing of {TRIES} is connected; add links")


def _moves(chunk: Chunk) -> bool:
    """Whether anything has to be sent."""
    lacking = set(chunk.destinations) - set(chunk.holders)
    return bool(lacking) or (chunk.reduced and len(chunk.holders) > 1)


def _topology(random: Random, *, unusual: bool) -> Topology:
    devices = _devices(random)
    if unusual:
        devices = [_strange(random, each) for each in devices]
    # As in real clusters: both ways are the same, and many links are alike.
    even, alike = random.random() < 0.4, random.random() < 0.4
    ends = _ends(random, [each.name for each in devices], one_way=0.0 if even else 0.3)
    kinds = [_rate(random) for _ in range(random.randint(1, 2))]
    rates = {pair: random.choice(kinds) if alike else _rate(random) for pair in ends}
    if even:
        rates = {pair: rates[min(pair, pair[::-1])] for pair in ends}
    links = [Link(*pair, *rates[pair]) for pair in ends]
    if unusual and random.random() < 0.4:
        links = [_scaled(random, each) for each in links]
    return Topology("random", tuple(devices), tuple(links), tuple(_limits(random, links)))


def _devices(random: Random) -> list[Device]:
    """Two to six GPUs, and some of what has no rank; a few are able to do unusual things."""
    gpus = random.choice((2, 2, 3, 3, 4, 4, 5, 6))
    hosts = random.choice((None, None, None, 2))
    found = [
        device("gpu", f"g{i}", host=f"h{i % hosts}" if hosts and gpus > hosts else None)
        for i in range(gpus)
    ]
    found += [
        device(
            "switch",
            f"s{i}",
            copies=random.random() < 0.3,
            reduces=random.random() < 0.3,
            stores=random.random() < 0.1,
        )
        for i in range(random.choice((0, 0, 1, 1, 2)))
    ]
    if random.random() < 0.2:
        found.append(device("memory", "m0", copies=random.random() < 0.8))
    if random.random() < 0.2:
        found.append(device("nic", "n0", stores=random.random() < 0.2))
    random.shuffle(found)
    # Ranks stay in the order of their names, which is easier to read.
    names = iter(sorted((e for e in found if e.kind == "gpu"), key=lambda each: each.name))
    return [next(names) if each.kind == "gpu" else each for each in found]


def _strange(random: Random, each: Device) -> Device:
    """Put a device into a host, a NIC or switch, too; let it be able to do what few are."""
    plain = each.kind == "gpu"
    return replace(
        each,
        host=random.choice((each.host, "h0", "h1")),
        stores=plain or random.random() < (0.8 if each.kind == "memory" else 0.15),
        copies=random.random() < (0.97 if plain else 0.5),
        reduces=random.random() < (0.97 if plain else 0.5),
        buffer_bytes=random.choice((None,) * 30 + (1e5, 2e6)) if each.stores else None,
    )


def _scaled(random: Random, link: Link) -> Link:
    """Make a link up to a thousand times as fast or slow, and as near or far."""
    alpha = link.alpha * 10 ** random.uniform(-3, 3)
    return replace(link, bandwidth=link.bandwidth * 10 ** random.uniform(-3, 3), alpha=alpha)


def _demanding(random: Random, collective: Collective) -> Collective:
    """Give chunks priorities, and let them stay whole."""
    if collective.kind == "custom" and random.random() < 0.4:
        ranked = [replace(each, priority=random.choice((0.1, 1, 9))) for each in collective.chunks]
        collective = custom(collective.ranks, ranked)
    return replace(collective, whole=True) if random.random() < 0.3 else collective


def _ends(random: Random, names: list[str], *, one_way: float) -> list[tuple[str, str]]:
    """Draw links, a share of them one-way; mostly each device has a way in and out."""
    pairs = list(itertools.combinations(names, 2))
    share = random.choice((0.3, 0.5, 0.8))
    found: dict[tuple[str, str], None] = {}
    for pair in pairs:
        if random.random() < share:
            turned = pair if random.random() < 0.5 else pair[::-1]
            found |= dict.fromkeys([turned] if random.random() < one_way else [pair, pair[::-1]])
    if random.random() < 0.7:
        around = random.sample(names, len(names))
        ring = list(zip(around, around[1:] + around[:1], strict=True))
        found |= dict.fromkeys(ring if one_way else [*ring, *(pair[::-1] for pair in ring)])
    return random.sample(list(found), len(found))


def _rate(random: Random) -> tuple[float, float]:
    """GB/s and µs."""
    if random.random() < 0.1:
        return round(random.uniform(1, 120), 3), round(random.uniform(0, 30), 3)
    return random.choice(BANDWIDTHS), random.choice(ALPHAS)


def _limits(random: Random, links: list[Link]) -> list[SharedLimit]:
    """None, one or two, over any links; most of them bind."""
    found = []
    for i in range(random.choice((0, 0, 0, 1, 1, 2)) if links else 0):
        members = random.sample(links, random.randint(1, len(links)))
        total = sum(each.bandwidth for each in members)
        most = random.choice(
            (
                max(each.bandwidth for each in members),
                min(each.bandwidth for each in members),
                round(total * random.uniform(0.1, 1.1), 2),
                12.0,
            )
        )
        found.append(SharedLimit(f"l{i}", tuple(each.ends for each in members), most))
    return found


def _collective(random: Random, kind: CollectiveKind, ranks: int) -> Collective:
    size = random.choice((*SIZES, round(10 ** random.uniform(2, 7))))
    if kind == "custom":
        return custom(ranks, [_chunk(random, ranks, size) for _ in range(random.randint(1, 4))])
    chunks = random.choice((None, None, 1, 2, 3, 4))
    return make_collective(kind, ranks, size, chunks=chunks, root=random.randrange(ranks))


def _chunk(random: Random, ranks: int, size: float) -> Chunk:
    """Draw a chunk with any ends; it may be in some of its places already."""
    holders = random.sample(range(ranks), random.choice((1, 1, random.randint(1, ranks))))
    many = random.choice((1, 1, random.randint(1, ranks)))
    size *= random.choice((1, 1, 1, 2, 0.3))
    reduced = random.random() < 0.4
    stops = random.sample(range(ranks), many)
    return Chunk(size, tuple(sorted(holders)), tuple(sorted(stops)), reduced)


def _windows(random: Random, problem: Problem, *, often: float) -> tuple[Window, ...]:
    """Seldom some time in which links have less bandwidth."""
    if random.random() < 1 - often:
        return ()
    links = problem.topology.links
    alpha = sum(each.alpha for each in links) / len(links)
    size = problem.collective.chunk_size
    typical = alpha + size * sum(each.beta for each in links) / len(links)
    found = []
    for _ in range(random.randint(1, 2)):
        members = random.sample(links, random.randint(1, len(links)))
        begin = random.choice((0.0, typical * random.random()))
        share = random.choice((0.0, 0.25, 0.5, 0.9))
        end = begin + typical * random.uniform(0.1, 5)
        found.append(Window(tuple(each.ends for each in members), begin, end, share))
    return tuple(found)
