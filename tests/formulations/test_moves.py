"""Moves by hand, and plans in continuous time that keep their times when they are put in epochs."""

import random
from itertools import pairwise

import numpy as np
import pytest

from ccl.collective import Chunk, all_gather, broadcast, custom
from ccl.errors import Infeasible, SolveError
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.topology import Device, Link, SharedLimit, Topology, device, duplex
from ccl.verify import verify
from formulations.core.refusals import betas
from formulations.engines.epoch_grid import relay_paths
from formulations.engines.list_scheduling.multistart import passes
from formulations.engines.list_scheduling.search import Side
from formulations.engines.list_scheduling.timed import (
    TimedTransfers,
    Transfers,
    backwards,
    ends,
    in_epochs,
    reverse_transfers,
    transfers_of,
)
from gallery import open_cluster
from tests.formulations.test_random_clusters import draw


def gpus(count: int) -> tuple[Device, ...]:
    return tuple(device("gpu", f"g{number}") for number in range(count))


def crossed(transfers: Transfers, *route: str) -> tuple[int, slice]:
    """Return the number of a move and where its links lie."""
    number = transfers.routes.index(route)
    return number, slice(transfers.first[number], transfers.first[number + 1])


def plan_of(transfers: Transfers, *sends: tuple[int, float, int, str]) -> TimedTransfers:
    """Make a plan of (chunk, start in µs, transmission, route such as "g0 s g1")."""
    return TimedTransfers(
        np.array([transfers.routes.index(tuple(route.split())) for *_, route in sends]),
        np.array([chunk for chunk, *_ in sends]),
        np.array([start for _, start, *_ in sends]),
        np.array([group for _, _, group, _ in sends]),
    )


def in_time(problem: Problem, transfers: Transfers, plan: TimedTransfers) -> float:
    """Put a plan in epochs, verify it, and return the makespan of its replay in µs."""
    schedule = in_epochs(problem, transfers, plan)
    verify(problem, schedule)
    made = simulate(problem, schedule).makespan
    assert made <= schedule.duration * (1 + 1e-9)
    return made


@pytest.mark.parametrize("copies", [False, True])
def test_moves_over_a_star_are_all_ordered_pairs(copies):
    """Four GPUs: 12 moves of two links, 0.7 µs each at 50 GB/s, 2e-5 µs a byte."""
    transfers = transfers_of(open_cluster(f"star:gpus=4,copies={str(copies).lower()}"))

    assert len(transfers) == 12
    assert sorted(transfers.routes) == sorted(
        (f"g{a}", "switch", f"g{b}") for a in range(4) for b in range(4) if a != b
    )
    assert transfers.latency.tolist() == pytest.approx([1.4] * 12)
    assert transfers.slowest.tolist() == pytest.approx([2e-5] * 12)
    assert transfers.lead.tolist() == pytest.approx([0.0, 0.7] * 12)
    assert transfers.parts.tolist() == [True, copies] * 12
    assert transfers.delay(1e6).tolist() == pytest.approx([21.4] * 12)
    assert transfers.of_link.tolist() == [number for number in range(12) for _ in range(2)]
    assert (np.diff(transfers.src) >= 0).all()


def two_levels() -> Topology:
    """g0, g1 at s0 and g2, g3 at s1; 50 GB/s and 0.5 µs there, 10 GB/s and 2 µs to the top."""
    switches = [device("switch", name) for name in ("s0", "s1", "top")]
    links = [
        *duplex("g0", "s0", bandwidth=50.0, alpha=0.5),
        *duplex("g1", "s0", bandwidth=50.0, alpha=0.5),
        *duplex("g2", "s1", bandwidth=50.0, alpha=0.5),
        *duplex("g3", "s1", bandwidth=50.0, alpha=0.5),
        *duplex("s0", "top", bandwidth=10.0, alpha=2.0),
        *duplex("s1", "top", bandwidth=10.0, alpha=2.0),
    ]
    return Topology("two levels", (*gpus(4), *switches), tuple(links))


def test_moves_over_two_levels_of_switches():
    """2 x 2 within, 8 across; across a link is held 0, 0.5, 2.5 and 4.5 µs after the start.

    The top is the slowest: 1e-4 µs a byte, and 5 µs of latency in all. The last link takes 2e-5
    µs a byte, and so begins 8e-5 µs a byte later than its first byte comes.
    """
    transfers = transfers_of(two_levels())
    near, _ = crossed(transfers, "g0", "s0", "g1")
    far, links = crossed(transfers, "g0", "s0", "top", "s1", "g3")

    assert len(transfers) == 12
    assert transfers.latency[near] == pytest.approx(1.0)
    assert transfers.latency[far] == pytest.approx(5.0)
    assert transfers.slowest[far] == pytest.approx(1e-4)
    assert transfers.lead[links].tolist() == pytest.approx([0.0, 0.5, 2.5, 4.5])
    assert transfers.beta[links].tolist() == pytest.approx([2e-5, 1e-4, 1e-4, 2e-5])
    assert transfers.drag[links].tolist() == pytest.approx([0.0, 0.0, 0.0, 8e-5])


def test_a_way_that_gets_faster_and_slower_again_takes_longer_than_its_slowest_link():
    """40 µs, then 20 in the second half of them, then 40 from when those begin: 60 in all."""
    links = (
        Link("g0", "s", 25.0),
        Link("s", "t", 50.0),
        Link("t", "g1", 25.0),
        Link("g1", "g0", 1),
    )
    switches = device("switch", "s"), device("switch", "t")
    transfers = transfers_of(Topology("uneven", (*gpus(2), *switches), links))
    number, crossings = crossed(transfers, "g0", "s", "t", "g1")

    assert (1e6 * transfers.drag[crossings]).tolist() == pytest.approx([0.0, 20.0, 20.0])
    assert 1e6 * transfers.slowest[number] == pytest.approx(60.0)


def test_a_move_ends_at_a_device_that_stores():
    """Over a memory there are two moves, to it and from it, and none past it."""
    links = (*duplex("g0", "m", bandwidth=10.0), *duplex("m", "g1", bandwidth=10.0))
    transfers = transfers_of(Topology("memory", (*gpus(2), device("memory", "m")), links))

    assert sorted(transfers.routes) == [("g0", "m"), ("g1", "m"), ("m", "g0"), ("m", "g1")]


def one_way() -> Topology:
    """g0 to g1 over s: 1 µs and 10 GB/s to it, 3 µs and 50 GB/s from it; and a way back."""
    links = (Link("g0", "s", 10.0, 1.0), Link("s", "g1", 50.0, 3.0), Link("g1", "g0", 10.0, 0.0))
    return Topology("one way", (*gpus(2), device("switch", "s")), links)


def test_mirrored_moves_hold_links_when_the_send_that_they_stand_for_does():
    """n bytes from t: g0->s is held from t on for n * 1e-4, s->g1 from t + 1 + n * 8e-5 on for
    n * 2e-5; all is there at t + 4 + n * 1e-4.

    Seen from that end, s->g1 is held from 3 µs before it on, and g0->s from 4 µs before it on.
    """
    back = reverse_transfers(transfers_of(one_way().reversed()))
    number, links = crossed(back, "g1", "s", "g0")

    assert back.lead[links].tolist() == pytest.approx([3.0, 4.0])
    assert back.drag[links].tolist() == pytest.approx([0.0, 0.0])
    assert back.latency[number] == pytest.approx(4.0)
    assert back.slowest[number] == pytest.approx(1e-4)


def test_a_link_is_as_slow_as_the_tightest_limit_that_it_is_under():
    """Links of 10 and 50 GB/s under a limit of 20: the first keeps its 10."""
    limit = SharedLimit("limit", (("g0", "s"), ("g1", "g0"), ("s", "g1")), 20.0)
    topology = Topology("limited", one_way().devices, one_way().links, (limit,))

    assert betas(topology).tolist() == pytest.approx([1e-4, 5e-5, 1e-4])


def chain(bandwidth: float) -> Topology:
    """g0 and g1 over s at 100 GB/s, or at 10 GB/s directly; the way there is under one limit."""
    links = (
        *duplex("g0", "s", bandwidth=100.0),
        *duplex("s", "g1", bandwidth=100.0),
        *duplex("g0", "g1", bandwidth=10.0),
    )
    limit = SharedLimit("bus", (("g0", "s"), ("s", "g1")), bandwidth)
    return Topology("chain", (*gpus(2), device("switch", "s")), links, (limit,))


def test_a_way_that_one_chunk_alone_overloads_is_no_move():
    """Both links of the way carry 100 GB/s at once: 200 of 200 is possible, of 199 it is not."""
    assert ("g0", "s", "g1") in transfers_of(chain(200.0)).routes
    assert ("g0", "s", "g1") not in transfers_of(chain(199.0)).routes
    assert ("g1", "s", "g0") in transfers_of(chain(199.0)).routes
    assert ("g0", "g1") in transfers_of(chain(199.0)).routes


def test_too_many_ways_are_refused_in_words(monkeypatch):
    monkeypatch.setattr(relay_paths, "MOST", 11)

    with pytest.raises(SolveError, match=r"more than 11 paths .* fewer levels of switches"):
        transfers_of(open_cluster("star:gpus=4"))


@pytest.mark.parametrize("switches", [5, 6])
def test_no_ways_at_all_are_said_in_words(switches):
    """A way has at most six links: over five switches there is one, over six there is none."""
    names = ["g0", *(f"s{number}" for number in range(switches)), "g1"]
    kinds = ["gpu", *["switch"] * switches, "gpu"]
    devices = tuple(device(kind, name) for kind, name in zip(kinds, names, strict=True))
    row = Topology("row", devices, tuple(Link(a, b, 50.0) for a, b in pairwise(names)))

    if switches == 5:
        assert transfers_of(row).routes == (tuple(names),)
    else:
        with pytest.raises(Infeasible, match=r"no path of at most 6 links .* leads to g1"):
            transfers_of(row)


def test_ends_are_latency_and_the_slowest_link_after_the_start():
    """10,000 bytes over s: 1 + 3 µs, and 1 µs at 10 GB/s."""
    transfers = transfers_of(one_way())

    assert ends(
        transfers, plan_of(transfers, (0, 2.0, 1, "g0 s g1")), np.array([1e4])
    ).tolist() == (pytest.approx([7.0]))


def test_one_transmission_serves_all_behind_a_switch_that_copies():
    """0.25 MB at 50 GB/s and twice 0.7 µs, for all three at once."""
    problem = Problem(open_cluster("star:gpus=4,copies=true"), broadcast(4, 0.25e6))
    transfers = transfers_of(problem.topology)
    plan = plan_of(transfers, *((0, 0.0, 1, f"g0 switch g{number}") for number in (1, 2, 3)))

    assert in_time(problem, transfers, plan) == pytest.approx(6.4)


def test_sends_that_a_switch_cannot_copy_follow_one_another():
    """The same without copies: three times 5 µs out of g0, and 1.4 µs."""
    problem = Problem(open_cluster("star:gpus=4"), broadcast(4, 0.25e6))
    transfers = transfers_of(problem.topology)
    sends = [(0, 5.0 * turn, turn, f"g0 switch g{turn + 1}") for turn in range(3)]

    assert in_time(problem, transfers, plan_of(transfers, *sends)) == pytest.approx(16.4)


def test_sums_in_a_switch_are_the_mirror_of_a_multicast():
    """Three contributions of 5 µs meet at the switch: 6.4 µs; one after the other 16.4 µs."""
    wanted = custom(4, [Chunk(0.25e6, (0, 1, 2, 3), (0,), reduced=True)])
    problem = Problem(open_cluster("star:gpus=4,reduces=true"), wanted)
    transfers = transfers_of(problem.topology)
    together = [(0, 0.0, 1, f"g{number} switch g0") for number in (1, 2, 3)]
    apart = [(0, 5.0 * turn, turn, f"g{turn + 1} switch g0") for turn in range(3)]

    assert in_time(problem, transfers, plan_of(transfers, *together)) == pytest.approx(6.4)
    assert in_time(problem, transfers, plan_of(transfers, *apart)) == pytest.approx(16.4)


def test_backwards_a_plan_ends_when_it_began():
    """A chunk of 10,000 bytes crosses g1->s->g0 from 2 to 7 µs on the reversed cluster.

    A second one from 0 to 5 there is the last here: both are 5 µs long, and all ends at 7 µs.
    """
    topology = one_way()
    transfers, back = transfers_of(topology), reverse_transfers(transfers_of(topology.reversed()))
    plan = plan_of(back, (0, 2.0, 1, "g1 s g0"), (1, 0.0, 2, "g1 s g0"))

    turned, last = backwards(transfers, back, plan, np.array([1e4, 1e4]))

    assert last == pytest.approx(7.0)
    assert [transfers.routes[transfer] for transfer in turned.transfer] == [("g0", "s", "g1")] * 2
    assert turned.start.tolist() == pytest.approx([0.0, 2.0])
    assert turned.chunk.tolist() == [0, 1]


def test_chunks_of_different_sizes_keep_their_times():
    """30,000 bytes at 10 GB/s take 3 µs, 10,000 take 1 µs behind it, 5,000 0.5 µs and on.

    The last one waits at g1 from 4.5 µs until the first has been passed on, from 3 to 6 µs.
    """
    links = [link for a, b in (("g0", "g1"), ("g1", "g2")) for link in duplex(a, b, bandwidth=10.0)]
    wanted = custom(
        3, [Chunk(3e4, (0,), (2,)), Chunk(1e4, (0,), (1,)), Chunk(5e3, (0,), (2,), priority=2.0)]
    )
    problem = Problem(Topology("row", gpus(3), tuple(links)), wanted)
    transfers = transfers_of(problem.topology)
    plan = plan_of(
        transfers,
        (0, 0.0, 0, "g0 g1"),
        (1, 3.0, 1, "g0 g1"),
        (2, 4.0, 2, "g0 g1"),
        (0, 3.0, 3, "g1 g2"),
        (2, 6.0, 4, "g1 g2"),
    )

    assert in_time(problem, transfers, plan) == pytest.approx(6.5)


@pytest.mark.parametrize(("bandwidth", "least"), [(30.0, 10.0), (20.0, 10.0), (10.0, 20.0)])
def test_a_shared_limit_is_kept(bandwidth, least):
    """g0 sends 0.1 MB to each of two at 10 GB/s: 10 µs, if 20 GB/s may leave it, else 20 µs.

    Sends under a limit are spread over epochs of a 16th of a hop, and lose less than one each.
    """
    links = [link for name in ("g1", "g2") for link in duplex("g0", name, bandwidth=10.0)]
    limit = SharedLimit("out", (("g0", "g1"), ("g0", "g2")), bandwidth)
    topology = Topology("fork", gpus(3), tuple(links), (limit,))
    wanted = custom(3, [Chunk(1e5, (0,), (1,)), Chunk(1e5, (0,), (2,))])
    transfers = transfers_of(topology)
    plan = plan_of(transfers, (0, 0.0, 0, "g0 g1"), (1, 0.0, 1, "g0 g2"))

    made = in_time(Problem(topology, wanted), transfers, plan)

    assert least * (1 - 1e-9) <= made <= least * (1 + 2 / 16)


def limited_star(out: float, into: float) -> Problem:
    """A broadcast of 0.1 MB over a switch that copies; limits on g0's link and on all ways out."""
    star = open_cluster("star:gpus=4,copies=true,bandwidth=10,alpha=0")
    limits = (
        SharedLimit("out", (("g0", "switch"), ("g1", "switch")), out),
        SharedLimit("in", tuple(("switch", f"g{number}") for number in (1, 2, 3)), into),
    )
    return Problem(Topology("star", star.devices, star.links, limits), broadcast(4, 1e5))


def multicast(transfers: Transfers) -> TimedTransfers:
    return plan_of(transfers, *((0, 0.0, 1, f"g0 switch g{number}") for number in (1, 2, 3)))


def test_a_transmission_counts_once_in_a_limit_on_the_link_that_it_leaves_by():
    """10 of the 15 GB/s that g0 and g1 have together are enough for one send, not for three."""
    problem = limited_star(15.0, 30.0)
    transfers = transfers_of(problem.topology)

    assert in_time(problem, transfers, multicast(transfers)) == pytest.approx(10.0, rel=2 / 16)


def test_a_transmission_that_a_limit_cannot_take_is_parted():
    """Into three GPUs it would take 30 GB/s; of 15 there is room for one after the other."""
    problem = limited_star(20.0, 15.0)
    transfers = transfers_of(problem.topology)

    assert in_time(problem, transfers, multicast(transfers)) == pytest.approx(30.0, rel=6 / 16)


def at_random(
    problem: Problem, transfers: Transfers, chance: random.Random
) -> tuple[TimedTransfers, float]:
    """Make a plan of moves that chance chooses, and its makespan in µs.

    They start one after the other, each when its chunk is there and all its links are free.
    """
    collective, topology = problem.collective, problem.topology
    place = [topology.index[name] for name in topology.ranks]
    sizes = [chunk.size for chunk in collective.chunks]
    there = {
        (number, place[rank]): 0.0
        for number, chunk in enumerate(collective.chunks)
        for rank in chunk.holders
    }
    lacking = {
        (number, place[rank])
        for number, chunk in enumerate(collective.chunks)
        for rank in chunk.destinations
    } - there.keys()
    free, now = np.zeros(len(topology.links)), 0.0
    found: list[tuple[int, int, float, int]] = []
    while lacking:
        able = [
            (transfer, number)
            for transfer in range(len(transfers))
            for number in range(len(sizes))
            if (number, transfers.src[transfer]) in there
            and (number, transfers.dst[transfer]) not in there
        ]
        transfer, number = chance.choice(able)
        span = slice(transfers.first[transfer], transfers.first[transfer + 1])
        begin = transfers.lead[span] + sizes[number] * transfers.drag[span]
        clear = (free[transfers.link[span]] - begin).max()
        now = max(now, there[number, transfers.src[transfer]], clear)
        free[transfers.link[span]] = now + begin + sizes[number] * transfers.beta[span]
        end = now + transfers.latency[transfer] + sizes[number] * transfers.slowest[transfer]
        there[number, transfers.dst[transfer]] = end
        lacking.discard((number, transfers.dst[transfer]))
        found.append((transfer, number, now, len(found)))
    columns = [np.array(column) for column in zip(*found, strict=True)]
    last = max(there[n, place[r]] for n, c in enumerate(collective.chunks) for r in c.destinations)
    return TimedTransfers(*columns), last


def drawn(limits: bool) -> list[int]:
    """Return seeds of clusters with or without limits, and collectives without sums."""
    found = []
    for seed in range(400):
        case = draw(seed)
        if case is None or case.problem.collective.reduces:
            continue
        chunks = case.problem.collective.chunks
        moved = any(set(chunk.destinations) - set(chunk.holders) for chunk in chunks)
        if moved and len(chunks) <= 12 and bool(case.problem.topology.limits) == limits:
            found.append(seed)
    return found[:40]


@pytest.mark.parametrize("seed", drawn(limits=False))
def test_in_epochs_nothing_is_later_than_it_was(seed):
    """The replay is as early as the order of sends on links lets it; the plan was at most that."""
    problem = draw(seed).problem
    transfers = transfers_of(problem.topology)

    plan, makespan = at_random(problem, transfers, random.Random(seed))

    assert in_time(problem, transfers, plan) <= makespan * (1 + 1e-9)


@pytest.mark.parametrize("seed", drawn(limits=True))
def test_in_epochs_shared_limits_are_kept(seed):
    """Times of its own it cannot keep: sends at the same time may be too much for a limit."""
    problem = draw(seed).problem
    transfers = transfers_of(problem.topology)
    plan, _ = at_random(problem, transfers, random.Random(seed))

    assert in_time(problem, transfers, plan) > 0.0


def switched(seed: int) -> Topology:
    """Two to four GPUs on two unequal switches, of which one may copy."""
    chance = random.Random(seed)
    names = [f"g{number}" for number in range(chance.randint(2, 4))]
    switches = [
        device("switch", name, copies=chance.random() < 0.5, reduces=chance.random() < 0.5)
        for name in "st"
    ]
    ends = [*((name, "s") for name in names), *((name, "t") for name in names), ("s", "t")]
    kept = [pair for pair in ends if pair[1] == "s" or chance.random() < 0.5]
    links = [
        Link(*way, chance.choice([5.0, 12.5, 25.0, 50.0]), chance.choice([0.0, 0.7, 5.0]))
        for pair in kept
        for way in (pair, pair[::-1])
    ]
    return Topology("unequal", (*gpus(len(names)), *switches), tuple(links))


@pytest.mark.parametrize("seed", range(100))
def test_a_mirrored_plan_is_as_long_as_its_turned_replay(seed):
    """Read backwards, what spreads adds up: no link is held longer or at other times."""
    topology = switched(seed)
    spreads = all_gather(len(topology.ranks), 1e6, chunks=1 + seed % 2)
    turned = Problem(topology.reversed(), spreads.reversed())
    back, transfers = reverse_transfers(transfers_of(topology)), transfers_of(turned.topology)
    sizes = np.array([chunk.size for chunk in spreads.chunks])

    found = list(passes(Side(back, spreads).task(), most=4, goal=0.0, over=lambda: False))

    assert found
    for plan, makespan in found:
        timed, last = backwards(transfers, back, plan, sizes)
        assert last == pytest.approx(makespan)
        assert in_time(turned, transfers, timed) <= makespan * (1 + 1e-9)


def test_links_a_million_times_apart_take_no_million_epochs_of_every_limit():
    """One chunk at 1 MB/s beside others at 1,000 GB/s: 1 s beside 1 µs, under one limit."""
    links = [Link("g0", "g1", 1000.0), Link("g1", "g0", 1000.0), Link("g0", "g2", 1e-3)]
    links += [Link("g2", "g0", 1e-3), Link("g1", "g2", 1000.0), Link("g2", "g1", 1000.0)]
    limit = SharedLimit("bus", tuple(link.ends for link in links[:3]), 1500.0)
    problem = Problem(Topology("apart", gpus(3), tuple(links), (limit,)), all_gather(3, 3e6))
    transfers = transfers_of(problem.topology)
    routes = ("g0 g1", "g1 g0", "g0 g2", "g1 g2", "g2 g1", "g2 g0")
    timed = plan_of(
        transfers, *((int(route[1]), 0.0, number, route) for number, route in enumerate(routes))
    )

    plan = in_epochs(problem, transfers, timed)

    verify(problem, plan)
    assert plan.horizon < 4e6
    assert simulate(problem, plan).makespan == pytest.approx(1e6)
