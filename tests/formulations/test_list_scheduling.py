"""List scheduling: hardware proved, symmetric plans without conflicts, no plan below a bound."""

from math import inf

import numpy as np
import pytest

from benchmarks.random_problems import random_problem
from ccl.collective import Chunk, Collective, custom, make_collective
from ccl.problem import Problem
from ccl.result import Result, Status, Stop
from ccl.simulate import simulate
from ccl.symmetry import symmetry_of
from ccl.topology import Link, Topology, device, duplex
from ccl.verify import verify
from formulations import formulation, solve
from formulations.bounds import quick_bounds
from formulations.core.run import Progress, Run
from formulations.engines.list_scheduling import search
from formulations.engines.list_scheduling.multistart import Quotient, Task, passes, quotient
from formulations.engines.list_scheduling.search import Side
from formulations.engines.list_scheduling.timed import Transfers, in_epochs, transfers_of
from gallery import open_cluster
from tests.formulations.test_random_clusters import draw

SIZES = (1e9, 256e6, 64e6, 16e6, 4e6, 1e6, 256e3, 64e3, 16e3, 4e3, 1e3)
"""Bytes of the rows of TE-CCL's table 8."""

NDV2_2 = (43752.7, 11202.7, 2802.7, 702.7, 177.7, 46.45, 13.9, 5.96, 4.44, 4.185, 4.12125)
NDV2_4 = (61879.0, 15844.0, 3964.0, 994.0, 251.5, 65.875, 19.84, 8.22, 5.81, 5.5025, 5.42563)
"""µs of each row, optimal: another program found and proved them before this one was written."""


def asked(spec: str, kind: str, size: float, *, chunks: int = 1) -> Problem:
    """Return a collective on a cluster of the gallery."""
    topology = open_cluster(spec)
    return Problem(
        topology, make_collective(kind, len(topology.ranks), size, chunks=chunks, root=0)
    )


def found(spec: str, kind: str, size: float, **options: object) -> Result:
    return solve(asked(spec, kind, size), "list", options=options)


@pytest.mark.parametrize(("size", "makespan"), list(zip(SIZES, NDV2_2, strict=True)))
def test_all_gather_on_two_ndv2_is_proved(size, makespan):
    """At 1 GB eight shards of 62.5 MB cross the network one after the other, 40,000 and 1.3 µs.

    The last goes on over a link of 50 and one of 25 GB/s: 1,250 + 2,500 + 1.4 µs.
    """
    result = found("ndv2:hosts=2", "all-gather", size)

    assert result.makespan == pytest.approx(makespan, rel=1e-6)
    assert result.stop is Stop.PROVED


@pytest.mark.parametrize(("size", "makespan"), list(zip(SIZES, NDV2_4, strict=True)))
def test_all_gather_on_four_ndv2_is_proved(size, makespan):
    """At 1 GB 24 shards of 31.25 MB come into each host, 2,500 µs each, and twice 1.3 µs.

    The last goes on over a link of 50 and one of 25 GB/s: 625 + 1,250 + 1.4 µs; that is 61,879.
    """
    result = found("ndv2:hosts=4", "all-gather", size)

    assert result.makespan == pytest.approx(makespan, rel=2e-6)
    assert result.stop is Stop.PROVED


@pytest.mark.parametrize("size", SIZES)
def test_all_gather_on_two_dgx_2_that_copy_is_proved(size):
    """Where 31 shards into each GPU at 125 GB/s count, it cannot take less than that."""
    result = found("dgx-2-te-ccl:copies=true", "all-gather", size)

    assert result.status in (Status.OPTIMAL, Status.WHOLE)
    assert result.makespan >= 31 * size / 32 / 137.5e3


def test_the_same_seed_gives_the_same_plan():
    """Where no plan is proved, so that all passes are run and chance decides."""
    first, again, other = (
        found("dgx-1v", "all-gather", 1e6, seed=seed, passes=12) for seed in (3, 3, 4)
    )

    assert first.status is Status.FEASIBLE
    assert first.plan == again.plan
    assert other.plan != first.plan
    assert first.options == again.options == {"passes": 12, "symmetry": True, "seed": 3}


def test_more_passes_are_never_worse():
    results = [found("dgx-1v", "all-gather", 1e6, passes=passes) for passes in (1, 4, 40)]

    assert results[0].makespan >= results[1].makespan >= results[2].makespan
    assert {result.stop for result in results} == {Stop.PASSES}


def test_what_is_proved_ends_the_search():
    """A broadcast over one link: 1 MB at 50 GB/s and 0.7 µs; a pass finds it, none can do more."""
    heard: list[Progress] = []
    result = solve(
        asked("line:gpus=2", "broadcast", 1e6),
        "list",
        options={"passes": 1_000_000},
        progress=heard.append,
    )

    assert result.makespan == pytest.approx(20.7)
    assert result.stop is Stop.PROVED
    assert [news.incumbent for news in heard if news.result is not None] == pytest.approx([20.7])


MIRRORED = ("ring:gpus=5", "ring:gpus=8", "hypercube", "torus:shape=4x4", "full-mesh:gpus=5")


@pytest.mark.parametrize("spec", MIRRORED)
@pytest.mark.parametrize("size", [1e4, 1e7])
def test_reduce_scatter_is_as_fast_as_all_gather_where_links_are_the_same_both_ways(spec, size):
    """A plan read backwards is one of the mirror, and the mirrored cluster is the same one."""
    results = [found(spec, kind, size) for kind in ("all-gather", "reduce-scatter")]

    assert {result.stop for result in results} == {Stop.PROVED}
    assert {result.status for result in results} <= {Status.OPTIMAL, Status.WHOLE}
    assert results[0].status is results[1].status
    assert results[0].makespan == pytest.approx(results[1].makespan, rel=1e-6)


def test_sums_in_a_switch_are_as_fast_as_copies():
    """Each GPU takes in, or sends out, three shards of 5 µs and twice 0.7 µs; one is not enough.

    The star that reduces is the mirror of the star that copies.
    """
    gathered = found("star:gpus=4,copies=true", "all-gather", 1e6)
    scattered = found("star:gpus=4,reduces=true", "reduce-scatter", 1e6)

    assert gathered.makespan == pytest.approx(16.4)
    assert scattered.makespan == pytest.approx(16.4)


@pytest.mark.parametrize("size", [1e3, 1e6, 1e8])
@pytest.mark.parametrize(
    "spec", ["ring:gpus=5", "dgx-1v", "torus:shape=4x4", "ndv2:hosts=2", "star:gpus=4,copies=true"]
)
def test_all_reduce_takes_no_longer_than_its_halves(spec, size):
    """The second half may be put behind the first, so together they are never worse."""
    kinds = "all-reduce", "reduce-scatter", "all-gather"
    whole, first, second = (found(spec, kind, size, passes=24) for kind in kinds)

    assert whole.makespan <= (first.makespan + second.makespan) * (1 + 1e-9)


def test_urgent_chunks_go_first():
    """Three chunks of 1 MB over a link of 50 GB/s; the last listed is the most urgent."""
    topology = open_cluster("line:gpus=2,alpha=0")
    wanted = custom(2, [Chunk(1e6, (0,), (1,), priority=each) for each in (1.0, 2.0, 3.0)])

    result = solve(Problem(topology, wanted), "list")

    assert [transfer.chunk for transfer in result.timeline.transfers] == [2, 1, 0]
    assert result.makespan == pytest.approx(60.0)


def test_a_memory_passes_chunks_on():
    """g0 and g1 have no other way: 1 MB at 50 GB/s twice, stored in between."""
    devices = (device("gpu", "g0"), device("memory", "m"), device("gpu", "g1"))
    links = (*duplex("g0", "m", bandwidth=50.0), *duplex("m", "g1", bandwidth=50.0))
    wanted = make_collective("all-to-all", 2, 2e6)

    result = solve(Problem(Topology("memory", devices, links), wanted), "list")

    assert result.makespan == pytest.approx(40.0)
    assert result.status is Status.WHOLE
    assert result.bound.makespan == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"buffer_bytes": 1e6}, "g0 has a limited buffer"),
        ({"copies": False}, "g0 stores and cannot copy"),
    ],
)
def test_what_it_cannot_take_is_refused_in_words(change, why):
    ring = open_cluster("ring:gpus=3")
    devices = (device("gpu", "g0", **change), *ring.devices[1:])
    problem = Problem(Topology("ring", devices, ring.links), make_collective("all-gather", 3, 1e6))

    assert why in formulation("list").why_not(problem)


def passed(problem: Problem, each: Quotient, transfers: Transfers) -> list[tuple[float, float]]:
    """Run passes for representatives; return makespans as planned and as replayed, in µs.

    All images together are verified, so that no two of them are on a link at once.
    """
    made = []
    for plan, makespan in passes(each.task, most=6, goal=0.0, over=lambda: False):
        schedule = in_epochs(problem, transfers, each.lifted(plan))
        verify(problem, schedule)
        made.append((makespan, simulate(problem, schedule).makespan))
    return made


def parts(problem: Problem, *, links: bool) -> tuple[Transfers, Task, Quotient | None]:
    """Return the moves, the whole task, and what symmetry leaves of it."""
    transfers = transfers_of(problem.topology)
    side = Side(transfers, problem.collective)
    symmetry = symmetry_of(problem.topology, links=links)
    turned = symmetry.turned(problem.collective)
    assert turned is not None
    return transfers, side.task(), quotient(lambda of: side.task(of=of), symmetry, turned)


@pytest.mark.parametrize("kind", ["all-gather", "all-to-all"])
@pytest.mark.parametrize("chunks", [1, 2])
@pytest.mark.parametrize(
    ("spec", "order"),
    [
        ("ring:gpus=6", 6),
        ("hypercube", 8),
        ("torus:shape=3x5", 15),
        ("dgx-1v", 4),
        ("ndv2:hosts=2", 2),
        ("star:gpus=5", 5),
        ("star:gpus=5,copies=true", 5),
    ],
)
def test_images_of_a_plan_never_meet_on_a_link(spec, order, kind, chunks):
    """One chunk of each orbit is planned: there are as many as the order divides them into."""
    problem = asked(spec, kind, 1e6, chunks=chunks)
    transfers, task, each = parts(problem, links=True)

    assert each.chunks.shape == (order, len(task.nbytes) // order)
    assert sorted(each.chunks.ravel().tolist()) == list(range(len(task.nbytes)))
    planned = passed(problem, each, transfers)
    assert planned
    for makespan, replayed in planned:
        assert replayed <= makespan * (1 + 1e-9)


@pytest.mark.parametrize(("first", "plans"), [(np.inf, 1), (0.0, 0)])
def test_a_pass_is_broken_off_when_its_time_is_over(first, plans):
    """The first plan has a time of its own."""
    _, task, _ = parts(asked("torus:shape=4x4", "all-to-all", 1e6), links=False)
    found = passes(
        task, most=6, goal=0.0, over=lambda: False, left=lambda: 0.0, first=lambda: first
    )

    assert len(list(found)) == plans


@pytest.mark.parametrize("kind", ["all-gather", "all-reduce"])
@pytest.mark.parametrize(
    ("known", "over", "plans"), [(1.0, True, 0), (inf, True, 1), (1.0, False, 1)]
)
def test_once_it_is_to_stop_nothing_is_planned_that_somebody_else_has(kind, known, over, plans):
    """The first plan of all is waited for."""
    problem = asked("ndv2", kind, 1e6)
    run = Run(problem, "list", {}, quick_bounds(problem), known=lambda: known, over=lambda: over)
    search.search(run, seed=0, passes=1, symmetry=True)

    assert (run.best is not None) == bool(plans)


@pytest.mark.parametrize(("known", "plans"), [(1.0, 0), (inf, 1)])
def test_a_large_plan_that_others_beat_is_not_verified(known, plans, monkeypatch):
    monkeypatch.setattr(search, "LARGE", 0)
    problem = asked("ndv2", "all-gather", 1e6)
    run = Run(problem, "list", {}, quick_bounds(problem), known=lambda: known)
    search.search(run, seed=0, passes=1, symmetry=True)

    assert (run.best is not None) == bool(plans)


def test_representatives_on_a_ring_by_hand():
    """Five shards of 20 µs on a ring that is turned: one is planned, both ways: 40 µs.

    It crosses one link of each of the two orbits, then one again.
    """
    problem = asked("ring:gpus=5,alpha=0", "all-gather", 5e6)
    transfers, _, each = parts(problem, links=True)

    assert len(np.unique(each.task.resource)) == 2
    best = min(passed(problem, each, transfers))
    assert best == pytest.approx((40.0, 40.0))


def boxes() -> Topology:
    """Two GPUs at each of two switches that are joined: turning a box leaves their cable."""
    links = [
        *duplex("g0", "s0", bandwidth=50.0),
        *duplex("g1", "s0", bandwidth=50.0),
        *duplex("g2", "s1", bandwidth=50.0),
        *duplex("g3", "s1", bandwidth=50.0),
        *duplex("s0", "s1", bandwidth=100.0),
    ]
    gpus = [device("gpu", f"g{number}") for number in range(4)]
    return Topology("boxes", (*gpus, device("switch", "s0"), device("switch", "s1")), tuple(links))


def test_moves_over_links_that_stay_are_left_out():
    """Exchanging the GPUs of a box keeps the cable where it is: what crosses it is left out.

    Four moves stay within a box. The group that moves all links only exchanges the boxes, and
    keeps all twelve.
    """
    problem = Problem(boxes(), make_collective("all-gather", 4, 1e6))
    _, _, large = parts(problem, links=False)
    transfers, _, small = parts(problem, links=True)

    assert large.chunks.shape == (4, 1)
    assert sorted(large.task.transfers.routes) == [
        ("g0", "s0", "g1"),
        ("g1", "s0", "g0"),
        ("g2", "s1", "g3"),
        ("g3", "s1", "g2"),
    ]
    assert small.chunks.shape == (2, 2)
    assert len(small.task.transfers) == 12
    assert passed(problem, small, transfers)


@pytest.mark.parametrize(("nbytes", "kept"), [(1e6, 3), (1e3, 6)])
def test_moves_that_meet_their_own_image_are_left_out(nbytes, kept):
    """GPUs at three switches that go round: two steps cross two links of one orbit.

    At 50 GB/s 1 MB holds each for 20 µs and 1 KB for 0.02 µs; the second begins 1 µs after the
    first. From each GPU one move goes a step and one goes two; the latter overlap themselves if
    they are long.
    """
    gpus = [device("gpu", f"g{number}") for number in range(3)]
    switches = [device("switch", f"s{number}") for number in range(3)]
    links = [
        *(link for i in range(3) for link in duplex(f"g{i}", f"s{i}", bandwidth=50.0)),
        *(Link(f"s{i}", f"s{(i + 1) % 3}", 50.0, 1.0) for i in range(3)),
    ]
    topology = Topology("round", (*gpus, *switches), tuple(links))
    wanted = Collective(
        "custom", 3, 3 * nbytes, tuple(Chunk(nbytes, (i,), ((i + 1) % 3,)) for i in range(3))
    )
    transfers, _, each = parts(Problem(topology, wanted), links=True)

    assert len(transfers) == 6
    assert len(each.task.transfers) == kept


def test_symmetry_is_not_needed():
    """NDv2 without it: the same optimum by passes over all 16 chunks."""
    result = found("ndv2:hosts=2", "all-gather", 1e6, symmetry=False, passes=400)

    assert result.makespan <= 46.45 * 1.05
    assert result.makespan >= 46.45 * (1 - 1e-9)


def random_seeds(first: int, many: int) -> list[int]:
    cases = ((seed, draw(seed)) for seed in range(first, first + many))
    return [
        seed
        for seed, case in cases
        if case is not None
        and formulation("list").why_not(case.problem) is None
        and any(
            set(each.destinations) - set(each.holders) for each in case.problem.collective.chunks
        )
    ]


ONCE_WRONG = (412, 438, 476, 761)
"""A switch that copies under shared limits, which a transmission counted in several times; a limit
and links that spoke of different destinations in a bound; events that lay before the present."""


@pytest.mark.parametrize("seed", [*ONCE_WRONG, *random_seeds(2_000, 90)])
def test_on_any_cluster_a_plan_is_verified_and_not_below_a_bound(seed):
    """`solve` verifies and replays every plan; bounds hold for all plans of whole chunks."""
    problem = draw(seed).problem

    result = solve(problem, "list", options={"passes": 6})

    assert result.makespan >= result.bound.makespan * (1 - 1e-9)
    assert result.makespan <= result.plan.duration * (1 + 1e-9)


def test_what_takes_no_time_beside_the_longest_link_is_in_order():
    """A reduce of 1 byte: sends of 0.3 ps beside a latency of 725 µs, which were one moment."""
    problem = random_problem(10_005_633)

    found = solve(problem, "list", time_limit=5)

    assert found.makespan == pytest.approx(simulate(problem, found.plan).makespan)
