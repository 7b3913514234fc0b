"""Every formulation on every small instance: `conclude` verifies, the rest is claimed here."""

import math
from dataclasses import replace

import pytest

from ccl.collective import COLLECTIVES, Chunk, custom, make_collective
from ccl.errors import Infeasible, LimitReached, ProblemError, SolverMissing
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.result import Status
from ccl.timeline import bus_factor
from ccl.topology import Link, SharedLimit, Topology, device, duplex
from ccl.verify import verify
from formulations import available, formulation, solve
from gallery import open_cluster

CLUSTERS = (
    "ring:gpus=4",
    "line:gpus=3",
    "star:gpus=4",
    "star:gpus=4,copies=true,reduces=true",
    "full-mesh:gpus=4",
    "thesis-2.3",
    "thesis-2.4",
    "pcie-server",
    "pcie-server:nvlink=true",
    "thesis-3.1",
    "te-ccl-1",
    "dgx-1v",
)
KINDS = tuple(kind for kind in COLLECTIVES if kind != "custom")
NAMES = tuple(each.name for each in available())
OF_PAIRS = ("certified-flow", "te-ccl-lp", "orbit-lp")
"""Formulations that take no copies."""
FOR_FEW = ("thesis-fluid",)
"""Formulations that refuse the copies of 16 GPUs."""
ON_GRIDS = ("blink", "torus", "swing")
"""Formulations that refuse clusters with switches."""
LEFT_TO_DIRECT = (("one-shot", "reduce-scatter"),)
"""Refused where each GPU can add what it takes in: `direct` sends the same messages."""
ELSEWHERE = {"torus": "torus:shape=3x3", "swing": "torus", "hierarchical": "dgx-a100:hosts=2"}
"""Clusters for those that refuse a DGX-1."""


@pytest.fixture(scope="module", autouse=True)
def _loaded():
    """Load the solver once; the first time takes as long as some of the limits here."""
    import cvxpy  # noqa: F401, PLC0415


def a_kind_of(name: str) -> str:
    """Return a kind that a formulation takes."""
    spread = ("all-gather", "broadcast", "all-to-all", "all-reduce")
    kinds = ("all-to-all",) if name in OF_PAIRS else spread
    return next(kind for kind in kinds if kind in formulation(name).collectives)


def problem(cluster: str, kind: str, *, size: float = 1e6, chunks: int | None = None) -> Problem:
    topology = open_cluster(cluster)
    ranks = len(topology.ranks)
    return Problem(topology, make_collective(kind, ranks, size, chunks=chunks))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.cover(240)
def test_a_plan_is_verified_and_no_faster_than_its_bounds(name, cluster, kind):
    asked = problem(cluster, kind)
    if formulation(name).why_not(asked) is not None:
        with pytest.raises(ProblemError, match=name):
            solve(asked, name)
        return

    result = solve(asked, name, time_limit=1.5)

    verify(asked, result.plan)
    assert all(bound.makespan <= result.makespan * (1 + 1e-9) for bound in result.bounds)
    assert result.gap == pytest.approx(result.makespan / result.bound.makespan - 1, abs=1e-9)
    assert (result.status is Status.OPTIMAL) == (result.gap <= 1e-6)
    assert result.busbw == pytest.approx(result.algbw * bus_factor(asked.collective))
    if isinstance(result.plan, Schedule):
        # The replay closes gaps of the grid and opens none.
        assert result.makespan <= result.plan.duration * (1 + 1e-9)
    else:
        assert result.steady_makespan <= result.makespan * (1 + 1e-9)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (each.name, kind)
        for each in available()
        for kind in ("all-gather", "reduce-scatter", "all-reduce", "broadcast")
        if kind in each.collectives
        and each.name not in OF_PAIRS + FOR_FEW + ON_GRIDS
        and (each.name, kind) not in LEFT_TO_DIRECT
    ],
)
@pytest.mark.cover(12)
def test_a_plan_over_switches_and_rails_is_verified(name, kind):
    """Two hosts of 8 GPUs: ways of one, three and four switches, none of which stores."""
    asked = problem("dgx-a100:hosts=2", kind)

    result = solve(asked, name, time_limit=2)

    assert result.bound.makespan <= result.makespan * (1 + 1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.cover(6)
def test_the_same_question_has_the_same_answer(name):
    asked = problem(ELSEWHERE.get(name, "dgx-1v"), a_kind_of(name))

    first, second = (solve(asked, name, time_limit=60) for _ in range(2))

    assert first.plan == second.plan


@pytest.mark.parametrize("chunks", [1, 2, 3])
def test_all_gather_on_a_ring_of_4_at_its_bound(chunks):
    """Each GPU takes in 3 shards of 1 MB over 2 links of 50 GB/s without latency: 30 µs.

    In whole chunks, 3 c chunks over 2 links need ceil(3 c / 2) of 20 / c µs each.
    """
    asked = Problem(
        open_cluster("ring:gpus=4,alpha=0"), make_collective("all-gather", 4, 4e6, chunks=chunks)
    )

    result = solve(asked, "te-ccl-milp", time_limit=30)

    assert result.makespan == pytest.approx(math.ceil(3 * chunks / 2) * 20 / chunks)
    assert result.bound.makespan == pytest.approx(30.0)
    assert result.status is (Status.OPTIMAL if chunks == 2 else Status.WHOLE)
    assert result.whole_gap in (None, pytest.approx(0.0, abs=1e-6))


def test_ring_takes_its_formula():
    """(n-1) (alpha + size / n * beta) on a ring of 5 at 50 GB/s and 0.7 µs, both halves alike."""
    gathered = solve(problem("ring:gpus=5", "all-gather"), "ring")
    reduced = solve(problem("ring:gpus=5", "all-reduce"), "ring")

    assert gathered.makespan == pytest.approx(4 * (0.7 + 4.0))
    assert reduced.makespan == pytest.approx(2 * gathered.makespan)


def test_direct_all_to_all_on_a_star_takes_its_formula():
    """n-1 shards of 0.25 MB at 50 GB/s one after the other, through the switch as they come."""
    result = solve(problem("star:gpus=4", "all-to-all"), "direct")

    assert result.makespan == pytest.approx(3 * 5.0 + 2 * 0.7)


def test_a_copying_switch_beats_one_that_does_not():
    """From a root over a switch to 7 others at 50 GB/s: the root sends once, or seven times."""
    plain = solve(problem("star:gpus=8,alpha=0", "broadcast"), "te-ccl-milp", time_limit=20)
    copying = solve(
        problem("star:gpus=8,alpha=0,copies=true", "broadcast"), "te-ccl-milp", time_limit=20
    )

    assert copying.makespan == pytest.approx(40.0)
    assert plain.makespan > 2 * copying.makespan


def test_hyper_edges_cross_a_switch_without_stopping():
    """One transmission of 20 µs rather than two, plus both latencies."""
    asked = problem("star:gpus=4", "all-to-all", size=4e6)

    result = solve(asked, "te-ccl-milp", options={"switches": "hyper-edges"}, time_limit=20)

    assert all(send.via == ("switch",) for send in result.plan.sends)
    assert result.makespan == pytest.approx(3 * 20.0 + 2 * 0.7)


def test_a_shared_limit_is_kept_by_every_formulation():
    """Two GPUs exchange 1 MB under a limit of 50 GB/s for both ways together: 40 µs, not 20."""
    both = duplex("g0", "g1", bandwidth=50.0)
    topology = Topology(
        "pair",
        (device("gpu", "g0"), device("gpu", "g1")),
        both,
        (SharedLimit("bus", (("g0", "g1"), ("g1", "g0")), 50.0),),
    )
    asked = Problem(topology, make_collective("all-to-all", 2, 2e6))

    for name in ("te-ccl-milp", "te-ccl-lp", "direct"):
        assert solve(asked, name, time_limit=20).makespan == pytest.approx(40.0, rel=1e-6)


def test_the_paper_objective_delivers_as_early_as_the_other():
    asked = problem("te-ccl-1", "all-gather")

    fewest = solve(asked, "te-ccl-milp", time_limit=20)
    early = solve(asked, "te-ccl-milp", options={"objective": "early-arrivals"}, time_limit=20)

    assert early.plan.horizon <= fewest.plan.horizon


def test_without_the_greedy_start_the_model_finds_as_few_epochs():
    asked = problem("dgx-1v", "all-gather")

    started = solve(asked, "te-ccl-milp", options={"epoch": "slowest"}, time_limit=30)
    alone = solve(
        asked, "te-ccl-milp", options={"epoch": "slowest", "greedy_start": False}, time_limit=30
    )

    assert alone.size is not None
    assert alone.epochs <= started.epochs


def test_a_custom_demand_without_copies_is_a_flow():
    """1 MB from g0 to g2 and 0.5 MB from g1 to g2 on a line at 50 GB/s: the last link's 30 µs."""
    topology = open_cluster("line:gpus=3,alpha=0")
    asked = Problem(topology, custom(3, [Chunk(1e6, (0,), (2,)), Chunk(0.5e6, (1,), (2,))]))

    result = solve(asked, "te-ccl-lp", time_limit=20)

    assert 30.0 <= result.makespan <= 33.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 1}, r"horizon of 1 epoch of .* too short: .* fewer than \d+ \(hops from .*"),
        ({"horizon": 0}, "horizon is 0; give at least 1"),
        ({"epoch": "sometimes"}, "epoch is 'sometimes'; choose one of"),
        ({"epoch_duration": -1.0}, "epoch_duration is -1.0; give at least 0.0 µs"),
        ({"epoch_duration": 0.0}, "epoch duration is 0.0 µs; give a positive one"),
        ({"colour": 1}, "option 'colour' is unknown"),
        ({"horizon": float("inf")}, "horizon is inf; give a finite number"),
        ({"horizon": 1.5}, "horizon is 1.5; give a whole number"),
    ],
)
def test_a_wrong_option_is_answered_in_a_sentence(options, message):
    with pytest.raises((Infeasible, ProblemError), match=message):
        solve(problem("line:gpus=3", "all-gather"), "te-ccl-milp", options=options)


def test_a_solver_that_is_not_installed_is_named():
    with pytest.raises(SolverMissing, match="solver NOSUCH is not installed here; installed are"):
        solve(problem("line:gpus=3", "all-gather"), "te-ccl-milp", solver="NOSUCH")


def test_an_epoch_duration_that_is_given_is_used():
    asked = problem("dgx-1v", "all-gather")

    result = solve(asked, "te-ccl-milp", options={"epoch_duration": 2.5}, time_limit=5)

    assert result.plan.epoch_duration == pytest.approx(2.5)


def test_an_unknown_formulation_is_answered_with_the_nearest():
    with pytest.raises(ProblemError, match="did you mean te-ccl-milp"):
        solve(problem("line:gpus=3", "all-gather"), "te-ccl-milb")


def test_a_limit_before_the_first_plan_says_so():
    asked = problem("ndv2:hosts=2", "all-to-all")

    with pytest.raises(LimitReached, match="allow more"):
        solve(asked, "te-ccl-lp", time_limit=0.01)


def test_several_holders_and_buffers_are_refused_in_words():
    topology = open_cluster("line:gpus=3")
    held_twice = Problem(topology, custom(3, [Chunk(1e6, (0, 1), (2,))]))
    small = replace(topology.devices[1], buffer_bytes=1.0)
    tight = replace(topology, devices=(topology.devices[0], small, topology.devices[2]))

    with pytest.raises(ProblemError, match="several holders"):
        solve(held_twice, "te-ccl-lp")
    for each in available():
        collective = make_collective(a_kind_of(each.name), 3, 1e6)
        assert "buffer" in (each.why_not(Problem(tight, collective)) or "")


def test_one_way_links_make_no_ring():
    names = ("g0", "g1", "g2")
    topology = Topology(
        "fork",
        tuple(device("gpu", name) for name in names),
        (
            Link("g0", "g1", 1.0),
            Link("g1", "g0", 1.0),
            Link("g0", "g2", 1.0),
            Link("g2", "g0", 1.0),
        ),
    )

    asked = Problem(topology, make_collective("all-gather", 3, 3.0))

    assert "ring" in (formulation("ring").why_not(asked) or "")
