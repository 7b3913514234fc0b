"""Programs of TACCL beside all there is to choose, counted out."""

import itertools

import numpy as np
import pytest

from ccl.collective import broadcast
from ccl.serialization.sketches import Sketch
from ccl.topology import Link, Topology, device
from formulations.engines.list_scheduling.timed import transfers_of
from formulations.engines.taccl import program
from formulations.engines.taccl.pairs import pairs_of, parts_of
from formulations.engines.taccl.program import demands_of
from formulations.engines.taccl.sends import Contiguity, Sends, end, times
from formulations.solvers.cvxpy_highs import Backend
from gallery import open_cluster

MB = 1e6


def trees(links: list[Link], names: list[str]) -> list[dict[str, Link]]:
    """All ways of a chunk from the first device to all others: who receives it over which link."""
    into = [[link for link in links if link.dst == name] for name in names[1:]]
    found = []
    for chosen in itertools.product(*into):
        tree = dict(zip(names[1:], chosen, strict=True))
        reached = {names[0]}
        for _ in names:
            reached |= {name for name, link in tree.items() if link.src in reached}
        if len(reached) == len(names):
            found.append(tree)
    return found


def arrival(tree: dict[str, Link], name: str) -> float:
    """µs until a chunk of 1 MB is at a device if it never waits."""
    if name not in tree:
        return 0.0
    return arrival(tree, tree[name].src) + tree[name].transfer_time(MB)


@pytest.mark.parametrize("seed", range(4))
def test_step_1_is_the_best_of_all_trees(seed, monkeypatch):
    """Two chunks from one of four GPUs over random links, all pairs of trees counted out.

    The time is the longest way or the busiest link, whichever is more.
    """
    monkeypatch.setattr(program, "ARRIVALS", 0.0)
    dice = np.random.default_rng(seed)
    names = [f"g{i}" for i in range(4)]
    ends = [pair for pair in itertools.permutations(names, 2) if dice.random() < 0.75]
    links = [
        Link(src, dst, float(dice.choice([10, 20, 25, 50])), alpha=float(dice.integers(0, 9)))
        for src, dst in ends
    ]
    every = trees(links, names)
    assert every
    best = min(
        max(
            *(arrival(tree, name) for tree in both for name in names),
            *(sum(link in tree.values() for tree in both) * 1e3 / link.bandwidth for link in links),
        )
        for both in itertools.combinations_with_replacement(every, 2)
    )
    devices = tuple(device("gpu", name) for name in names)
    transfers = transfers_of(Topology("random", devices, tuple(links)))
    (part,) = parts_of(transfers, broadcast(4, 2 * MB, chunks=2), Sketch())
    pairs = pairs_of(part)
    paths = program.Paths(pairs, demands_of(pairs, Sketch()), "all", holds=False, most=2000.0)

    Backend().solve(paths.model, gap=0.0)

    assert paths.reached == pytest.approx(best, rel=1e-4)


def in_runs(cuts: tuple[tuple[bool, ...], ...], sizes: list[float], alpha: float) -> float:
    """µs over links in a row where runs of chunks go together, one run after the other.

    A run takes alpha plus 20 µs for each MB, and is sent on when all of it is there.
    """
    there = [0.0] * len(sizes)
    for between in cuts:
        free, begin = 0.0, 0
        for stop in range(1, len(sizes) + 1):
            if stop == len(sizes) or between[stop - 1]:
                start = max(free, *there[begin:stop])
                free = start + alpha + 20 * sum(sizes[begin:stop]) / MB
                there[begin:stop] = [free] * (stop - begin)
                begin = stop
    return max(there)


@pytest.mark.parametrize("alpha", [1.0, 15.0, 40.0])
@pytest.mark.parametrize("seed", range(3))
def test_step_3_is_the_best_of_all_runs(seed, alpha):
    """Three chunks of random bytes over two links in a row: four ways to cut each into runs."""
    sizes = (MB * np.random.default_rng(seed).integers(1, 5, size=3) / 2).tolist()
    best = min(
        in_runs(cuts, sizes, alpha)
        for cuts in itertools.product(itertools.product([True, False], repeat=2), repeat=2)
    )
    transfers = transfers_of(open_cluster(f"line:gpus=3,alpha={alpha}"))
    onwards = [transfers.routes.index(pair) for pair in (("g0", "g1"), ("g1", "g2"))]
    sends = Sends(
        transfers,
        transfer=np.repeat(onwards, 3),
        chunk=np.tile([0, 1, 2], 2),
        nbytes=np.tile(sizes, 2),
        after=tuple((n - 3,) if n > 2 else () for n in range(6)),
        members=((0,), (1,), (2,)),
        priority=np.ones(6),
        alike=np.arange(6),
    )
    most = end(sends, times(sends, list(range(6)), holds=True))
    program = Contiguity(sends, list(range(6)), np.ones(len(transfers), dtype=bool), most)

    outcome = Backend().solve(program.model, gap=0.0)

    assert outcome.objective * most == pytest.approx(best, rel=1e-5)
