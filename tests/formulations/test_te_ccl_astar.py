"""Rounds: what one hands on to the next, how good their plans are, and that they come to an end."""

from dataclasses import replace

import numpy as np
import pytest

from ccl.collective import Chunk, all_gather, all_to_all, broadcast, custom, make_collective
from ccl.errors import LimitReached, ProblemError, SolveError
from ccl.problem import Problem
from ccl.topology import Link, SharedLimit, Topology, device, duplex
from formulations import solve
from formulations.engines.epoch_grid.arcs import capacity_rows, link_arcs
from formulations.engines.epoch_grid.epochs import EpochGrid
from formulations.engines.epoch_grid.plans import demand
from formulations.engines.te_ccl.round_milp import STALLS, Journey, Rounds, first_state
from formulations.solvers.cvxpy_highs import Backend
from gallery import open_cluster

ALONE = {"greedy_start": False}
BARE = {"shorten_end": False, **ALONE}


def journey(problem: Problem, tau: float) -> Journey:
    """Rounds that are not run."""
    hops = link_arcs(EpochGrid(problem.topology, problem.collective.chunk_size, tau))
    rounds = Rounds(hops, demand(problem), 0.9)
    return Journey(None, rounds, length=None, gap=0.0, seconds=10.0, shorten=False)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 7])
def test_what_is_in_flight_when_a_round_ends_arrives_in_a_later_one(length):
    """1 MB at 50 GB/s and 30 µs of latency are 5 epochs of 10 µs a hop: two hops are 100 µs."""
    asked = Problem(open_cluster("line:gpus=3,alpha=30"), broadcast(3, 1e6))
    options = {"epoch_duration": 10.0, "round_epochs": length, **BARE}

    result = solve(asked, "te-ccl-astar", options=options, time_limit=60)

    assert result.makespan == pytest.approx(100.0)


def test_what_is_on_its_way_is_not_sent_on_before_it_is_there():
    """From g0 to g1 it takes 70 µs; to g2 20, from there to g1 10, from g1 to g3 20.

    In rounds of two epochs of 10 µs the first sends to g1 and to g2. That g2 could bring it to g1
    by 30 µs is too late then: what comes there at 70 µs is at g3 at 90 µs.
    """
    topology = Topology(
        "detour",
        tuple(device("gpu", f"g{i}") for i in range(4)),
        (
            Link("g0", "g1", 50.0, 50.0),
            Link("g0", "g2", 50.0),
            Link("g2", "g1", 100.0),
            Link("g1", "g3", 50.0),
        ),
    )
    options = {"epoch_duration": 10.0, "round_epochs": 2, **BARE}

    result = solve(Problem(topology, broadcast(4, 1e6)), "te-ccl-astar", options=options)

    assert result.makespan == pytest.approx(90.0)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_link_stays_occupied_in_the_next_round(length):
    """Three chunks of 1 MB at 50 GB/s are two epochs of 10 µs each on the one link: 60 µs.

    A send that began while another held the link would break a rule, which the verifier tells.
    """
    asked = Problem(open_cluster("line:gpus=2,alpha=0"), broadcast(2, 3e6, chunks=3))
    options = {"epoch_duration": 10.0, "round_epochs": length, **BARE}

    result = solve(asked, "te-ccl-astar", options=options, time_limit=60)

    assert result.makespan == pytest.approx(60.0)


@pytest.mark.parametrize("length", [1, 3])
def test_a_shared_limit_stays_taken_in_the_next_round(length):
    """Two GPUs exchange 1 MB under 50 GB/s for both ways together: 20 µs after 20 µs."""
    topology = Topology(
        "pair",
        (device("gpu", "g0"), device("gpu", "g1")),
        duplex("g0", "g1", bandwidth=50.0),
        (SharedLimit("bus", (("g0", "g1"), ("g1", "g0")), 50.0),),
    )
    asked = Problem(topology, make_collective("all-to-all", 2, 2e6))
    options = {"epoch_duration": 10.0, "round_epochs": length, **BARE}

    result = solve(asked, "te-ccl-astar", options=options, time_limit=60)

    assert result.makespan == pytest.approx(40.0)


def test_sends_of_earlier_rounds_are_counted_on_every_link_they_hold():
    """At 10 µs an epoch, 1 MB at 50 GB/s holds its link for two: epochs 3 and 4 of send 1."""
    grid = EpochGrid(open_cluster("line:gpus=2,alpha=0"), 1e6, 10.0)
    matrix, room = capacity_rows(link_arcs(grid), np.array([0, 3]), np.array([0, 1]))

    held = [sorted(int(row) for row in matrix[:, [send]].nonzero()[0]) for send in (0, 1)]

    assert held == [[0, 1], [5 + 3, 5 + 4]]
    assert room.tolist() == [1.0] * 10


def test_a_round_brings_a_chunk_nearer_that_no_round_can_deliver():
    """From one end of five to the other in rounds of one hop: only the distance is rewarded."""
    asked = Problem(open_cluster("line:gpus=5,alpha=0"), custom(5, [Chunk(1e6, (0,), (4,))]))
    options = {"epoch": "slowest", "round_epochs": 1, **BARE}

    result = solve(asked, "te-ccl-astar", options=options, time_limit=60)

    moves = [(send.epoch, send.dst) for send in result.plan.sends]
    assert moves == [(0, "g1"), (1, "g2"), (2, "g3"), (3, "g4")]
    assert result.makespan == pytest.approx(4 * 20.0)


def test_two_copies_of_a_chunk_do_not_count_as_two_chunks():
    """Two chunks, two ways of two hops: each takes its own way, 40 µs.

    In rounds of one epoch no copy arrives in the first. Were copies counted, as the paper prints
    it, both ways might carry the same chunk, and the other would need a third epoch.
    """
    pairs = (("g0", "g1"), ("g0", "g2"), ("g1", "g3"), ("g2", "g3"))
    topology = Topology(
        "diamond",
        tuple(device("gpu", f"g{i}") for i in range(4)),
        tuple(Link(src, dst, 50.0) for src, dst in pairs),
    )
    asked = Problem(topology, custom(4, [Chunk(1e6, (0,), (3,))] * 2))
    options = {"epoch": "slowest", "round_epochs": 1, **BARE}

    result = solve(asked, "te-ccl-astar", options=options, time_limit=60)

    assert result.makespan == pytest.approx(40.0)


@pytest.mark.parametrize("length", [1, 2, 5])
def test_what_enters_a_switch_leaves_it_although_the_round_is_over(length):
    """A switch cannot hold: in rounds of one epoch each hop into it is followed by one out of it.

    A copying switch sends the one transmission of the root to all seven: two hops of 20 µs.
    """
    asked = Problem(open_cluster("star:gpus=8,alpha=0,copies=true"), broadcast(8, 1e6))
    options = {"epoch": "slowest", "round_epochs": length, **BARE}

    result = solve(asked, "te-ccl-astar", options=options, time_limit=60)

    assert result.makespan == pytest.approx(40.0)
    assert result.plan.horizon == 2


@pytest.mark.parametrize("switches", ["as drawn", "hyper-edges"])
def test_a_plain_switch_takes_one_transmission_for_each_copy(switches):
    """Every GPU takes in 3 shards of 20 µs from the switch; crossing it adds at most one more."""
    asked = Problem(open_cluster("star:gpus=4,alpha=0"), all_gather(4, 4e6))
    options = {"epoch": "slowest", "round_epochs": 2, "switches": switches, **BARE}

    result = solve(asked, "te-ccl-astar", options=options, time_limit=60)

    assert result.makespan == pytest.approx(80.0 if switches == "as drawn" else 60.0)


def test_two_chassis_of_ndv2_are_solved_to_the_optimum():
    """46.45 µs is what the single link between the chassis allows, so it is the lower bound."""
    asked = Problem(open_cluster("ndv2:hosts=2"), all_gather(16, 1e6))
    options = {"epoch_duration": 5.0, "round_epochs": 2, **BARE}

    result = solve(asked, "te-ccl-astar", options=options, time_limit=120)

    assert result.makespan == pytest.approx(46.45)


@pytest.mark.parametrize("chunks", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("size", [64e6, 1e6, 64e3, 8e3])
@pytest.mark.parametrize("cluster", ["te-ccl-internal-1", "te-ccl-internal-2"])
@pytest.mark.cover(1)
def test_rounds_are_within_a_fifth_of_the_general_model_on_two_chassis(cluster, size, chunks):
    """The paper has 10 % without and 20 % with latency; the general model ends by itself here."""
    topology = open_cluster(cluster)
    asked = Problem(topology, all_gather(len(topology.ranks), size, chunks=chunks))

    rounds = solve(asked, "te-ccl-astar", options=ALONE, time_limit=120)
    general = solve(asked, "te-ccl-milp", time_limit=20)

    assert rounds.makespan <= 1.2 * general.makespan


@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("kind", ["reduce-scatter", "all-reduce", "reduce"])
def test_sums_are_found_backwards_whatever_the_length_of_a_round(kind, length):
    """`solve` verifies; on a ring of 4 the mirror of a reduce-scatter is an all-gather."""
    asked = Problem(open_cluster("ring:gpus=4,alpha=5"), make_collective(kind, 4, 4e6))
    options = {"epoch_duration": 10.0, "round_epochs": length, **BARE}

    result = solve(asked, "te-ccl-astar", options=options, time_limit=60)

    assert result.bound.makespan <= result.makespan * (1 + 1e-9)


def test_progress_tells_the_round_and_what_is_delivered():
    asked = Problem(open_cluster("line:gpus=3,alpha=0"), broadcast(3, 1e6))
    told = []

    solve(
        asked,
        "te-ccl-astar",
        options={"epoch": "slowest", "round_epochs": 1, **BARE},
        progress=lambda news: told.append(news.message),
    )

    rounds = list(dict.fromkeys(each for each in told if each.startswith("round ")))
    assert rounds == ["round 1: 0 of 2 chunks delivered", "round 2: 1 of 2 chunks delivered"]


@pytest.fixture
def lazy(monkeypatch):
    """Make the solver come back with nothing so many times; return what it was asked."""

    def make(times: int) -> list[tuple[int, float]]:
        asked: list[tuple[int, float]] = []
        solve_at_once = Backend.solve

        def slowly(self, model, *, time_limit, **more):
            asked.append((sum(each.size for each in model.variables()), time_limit))
            if len(asked) <= times:
                raise LimitReached("nothing")
            return solve_at_once(self, model, time_limit=time_limit, **more)

        monkeypatch.setattr(Backend, "solve", slowly)
        return asked

    return make


def test_a_round_that_is_cut_off_is_asked_again_shorter_and_then_with_more_time(lazy):
    """From 4 epochs to 2 and 1, each a smaller model, and then once with twice the 10 seconds."""
    problem = Problem(open_cluster("line:gpus=3,alpha=0"), broadcast(3, 1e6))
    asked = lazy(3)

    result = solve(problem, "te-ccl-astar", options={"epoch": "slowest", **BARE})

    sizes = [size for size, _ in asked[:4]]
    assert sizes[0] > sizes[1] > sizes[2] == sizes[3]
    assert [limit for _, limit in asked[:4]] == [10.0, 10.0, 10.0, 20.0]
    assert result.makespan == pytest.approx(40.0)


def test_rounds_that_bring_nothing_come_to_an_end(lazy):
    problem = Problem(open_cluster("line:gpus=3,alpha=0"), broadcast(3, 1e6))
    lazy(1000)

    with pytest.raises(SolveError, match=f"{STALLS} rounds in a row brought no chunk on"):
        solve(problem, "te-ccl-astar", options={"epoch": "slowest", **BARE})


def test_a_limit_before_the_last_round_says_so():
    asked = Problem(open_cluster("ndv2:hosts=2"), all_gather(16, 1e6))

    with pytest.raises(LimitReached, match="allow more"):
        solve(asked, "te-ccl-astar", options={"epoch": "slowest", **BARE}, time_limit=0.01)


def test_rounds_are_as_long_as_their_model_allows():
    """Four hops for a small model; for any larger one no more than the most sends allow."""
    small = Problem(open_cluster("line:gpus=3,alpha=0"), broadcast(3, 1e6))
    large = Problem(open_cluster("ndv2:hosts=4"), all_gather(32, 32e6))
    alone, many = (journey(each, tau) for each, tau in ((small, 20.0), (large, 80.0)))

    assert alone._length(first_state(demand(small))) == 4
    length = many._length(first_state(demand(large)))
    count = many.rounds.count(first_state(demand(large)), length)
    assert length < 4 * many.rounds.ahead
    assert count == len(many.rounds.cells(first_state(demand(large)), length).epoch)


def test_the_last_rounds_end_as_early_as_the_general_model():
    """DGX-1 with 1 MB: the rewards alone lead to 10.7 µs on these grids, fewest epochs to 9.6.

    Every GPU takes in 7 shards of 0.125 MB over 150 GB/s, two of its four links being of 25.
    """
    asked = Problem(open_cluster("dgx-1v"), all_gather(8, 1e6))

    rounds = solve(asked, "te-ccl-astar", options=ALONE, time_limit=120)
    general = solve(asked, "te-ccl-milp", time_limit=20)

    assert rounds.makespan == pytest.approx(general.makespan)


@pytest.mark.parametrize("length", [1, 4])
def test_every_send_of_a_model_is_of_what_is_there_or_may_come(length):
    """In an all-to-all over a switch, GPUs that a chunk does not concern never have it."""
    rounds = journey(Problem(open_cluster("star:gpus=4"), all_to_all(4, 4e6)), 20.0).rounds
    state = first_state(rounds.demand)

    cells = rounds.cells(state, length)

    source = rounds.hops.src[cells.hop]
    stores = rounds.hops.stores[source]
    there = np.isfinite(state.arrives[source, cells.chunk])
    may_come = cells.held[cells.epoch, source, cells.chunk] >= 0
    assert (there | may_come | ~stores).all()
    assert there.any()


def test_limited_buffers_and_unequal_chunks_are_refused_in_words():
    topology = open_cluster("line:gpus=3")
    tight = replace(
        topology, devices=(replace(topology.devices[0], buffer_bytes=1.0), *topology.devices[1:])
    )
    mixed = custom(3, [Chunk(1e6, (0,), (1,)), Chunk(2e6, (0,), (2,))])

    with pytest.raises(ProblemError, match="limited buffer"):
        solve(Problem(tight, broadcast(3, 1.0)), "te-ccl-astar")
    with pytest.raises(ProblemError, match="differ in size"):
        solve(Problem(topology, mixed), "te-ccl-astar")
