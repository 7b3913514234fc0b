"""Forward and backward passes over plans whose paths stay."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from ccl.collective import make_collective
from ccl.problem import Problem
from ccl.topology import SharedLimit, Topology, device, duplex
from formulations import solve
from formulations.engines.kernels import arrays
from formulations.engines.kernels.precedence import ordered
from formulations.engines.list_scheduling.reordering import Passes, mirrored, reordered
from formulations.engines.list_scheduling.timed import TimedTransfers, ends, relied, transfers_of
from gallery import open_cluster


def line() -> Topology:
    """Return three GPUs in a row, 1 GB/s."""
    devices = tuple(device("gpu", name) for name in "abc")
    links = (*duplex("a", "b", bandwidth=1.0), *duplex("b", "c", bandwidth=1.0))
    return Topology("line", devices, links)


def timed(transfers, *sends: tuple[str, str, int, float]) -> TimedTransfers:
    """Return transfers over one link each: from, to, chunk, start."""
    number = {route: place for place, route in enumerate(transfers.routes)}
    return TimedTransfers(
        np.array([number[src, dst] for src, dst, _, _ in sends]),
        np.array([chunk for _, _, chunk, _ in sends]),
        np.array([start for *_, start in sends]),
        np.arange(len(sends)),
    )


def test_what_goes_on_goes_first():
    """Of two chunks of 1 kB for b the one that c wants too is sent first: 2 µs, not 3."""
    transfers = transfers_of(line())
    plan = timed(transfers, ("a", "b", 0, 0.0), ("a", "b", 1, 1.0), ("b", "c", 1, 2.0))
    sizes = np.full(2, 1e3)

    better = reordered(transfers, plan, sizes, goal=0.0, over=lambda: False)

    assert ends(transfers, plan, sizes).max() == pytest.approx(3.0)
    assert better.start.tolist() == pytest.approx([1.0, 0.0, 1.0])


def test_a_plan_that_meets_the_goal_or_has_no_time_left_stays():
    transfers = transfers_of(line())
    plan = timed(transfers, ("a", "b", 0, 0.0), ("a", "b", 1, 1.0), ("b", "c", 1, 2.0))
    for given in ({"goal": 3.0, "over": lambda: False}, {"goal": 0.0, "over": lambda: True}):
        assert reordered(transfers, plan, np.full(2, 1e3), **given).start is plan.start


def test_under_a_shared_limit_the_times_of_passes_meet_no_goal():
    """They are those of links that share nothing: a bound of the problem says nothing of them."""
    topology = line()
    limit = SharedLimit("all", tuple(link.ends for link in topology.links), bandwidth=1.0)
    sizes, over = np.full(3, 1e3), lambda: False
    later = {}
    for limits in ((), (limit,)):
        transfers = transfers_of(replace(topology, limits=limits))
        plan = timed(transfers, ("a", "b", 0, 0.0), ("a", "b", 1, 1.0), ("b", "c", 1, 2.0))
        waits = relied(transfers, plan, sizes, np.arange(3))
        passes = Passes(transfers, plan.transfer, sizes, *waits)
        first = plan.start, ends(transfers, plan, sizes)
        later[bool(limits)] = passes.improved(first, goal=3.0, over=over)[1].max()
    assert later == pytest.approx({False: 3.0, True: 2.0})


def test_what_is_there_at_the_same_moment_is_waited_for():
    """A moment of list scheduling is a share of its longest transfer, though no plan has that."""
    a, b, c = (device("gpu", name) for name in "abc")
    links = (
        *duplex("a", "b", bandwidth=1.0),
        *duplex("b", "c", bandwidth=1.0),
        *duplex("a", "c", bandwidth=1.0, alpha=100.0),
    )
    transfers = transfers_of(Topology("far", (a, b, c), links))
    early = 1.0 - 5e-8
    plan = timed(transfers, ("a", "b", 0, 0.0), ("b", "c", 0, early), ("b", "c", 1, 3.0))

    better = reordered(transfers, plan, np.full(2, 1e3), goal=0.0, over=lambda: False)

    assert better.start[1] >= 1.0


def test_shared_transmissions_stay():
    transfers = transfers_of(line())
    plan = timed(transfers, ("a", "b", 0, 0.0), ("a", "b", 1, 1.0), ("b", "c", 1, 2.0))
    joined = TimedTransfers(plan.transfer, plan.chunk, plan.start, np.array([0, 1, 1]))
    same = reordered(transfers, joined, np.full(2, 1e3), goal=0.0, over=lambda: False)
    assert same is joined


def test_time_runs_backwards_over_links_of_different_speed():
    """Held links and arrivals of a transfer over a switch, seen from its end."""
    devices = (device("gpu", "a"), device("switch", "s"), device("gpu", "b"))
    links = (
        *duplex("a", "s", bandwidth=2.0, alpha=1.0),
        *duplex("s", "b", bandwidth=5.0, alpha=3.0),
    )
    transfers = transfers_of(Topology("two", devices, links))
    first, link, beta, lead, drag, latency, slowest = transfers.arrays
    _, _, _, back, slack, _, _ = mirrored(transfers)
    size = 1e4
    of = np.repeat(np.arange(len(transfers)), np.diff(first))
    took = latency[of] + size * slowest[of]
    begin = lead + size * drag
    # What is held from `begin` to `begin + size beta` is held, backwards, from the rest of it on.
    assert back + size * slack == pytest.approx(took - begin - size * beta)
    assert len(link) == len(back)


@pytest.mark.parametrize("seed", range(5))
def test_as_written_and_compiled_it_is_the_same_and_each_link_takes_one_at_a_time(seed):
    topology = open_cluster("ndv2:hosts=2")
    transfers, chance = transfers_of(topology), np.random.default_rng(seed)
    many = 300
    path = chance.integers(0, len(transfers), many)
    nbytes = chance.choice([1e3, 5e4], many)
    # Each waits for up to two that come before it in number.
    pairs = {(int(chance.integers(0, job)), job) for job in range(1, many) for _ in range(2)}
    before, after = np.array(sorted(pairs)).T
    first = np.searchsorted(before, np.arange(many + 1)).astype(np.int64)
    given = (
        (*transfers.arrays, len(topology.links)),
        (path, nbytes, np.bincount(after, minlength=many)),
        (first, after.astype(np.int64)),
        chance.random(many),
    )
    start, end = ordered(*given)
    written = arrays.as_written(ordered.compiled)(*given)
    assert written[0] == pytest.approx(start)
    assert written[1] == pytest.approx(end)
    assert (start[after] >= end[before] - 1e-9).all()
    held: dict[int, list[tuple[float, float]]] = {}
    for job in range(many):
        for place in range(transfers.first[path[job]], transfers.first[path[job] + 1]):
            begin = start[job] + transfers.lead[place] + nbytes[job] * transfers.drag[place]
            until = begin + nbytes[job] * transfers.beta[place]
            held.setdefault(int(transfers.link[place]), []).append((begin, until))
    for spans in held.values():
        spans.sort()
        assert all(a[1] <= b[0] + 1e-9 for a, b in pairwise(spans))


def test_an_all_reduce_on_a_torus_gains():
    """Sums and copies in one order: 10.9 µs in the order of list scheduling."""
    topology = open_cluster("torus")
    problem = Problem(topology, make_collective("all-reduce", len(topology.ranks), 1e6, chunks=4))
    assert solve(problem, "list", options={"passes": 20}).makespan < 10.3
