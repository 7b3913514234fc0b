"""TE-CCL's general model: its size before it is built, its objectives, its grids."""

import re
import subprocess
import sys

import pytest

from ccl.collective import Chunk, custom, make_collective
from ccl.errors import Infeasible
from ccl.problem import Problem
from ccl.result import Stop
from ccl.timeline import finish_times
from ccl.topology import Topology, device, duplex
from formulations import measure, solve
from gallery import open_cluster


def problem(cluster: str, kind: str, *, size: float = 1e6, chunks: int = 1) -> Problem:
    topology = open_cluster(cluster)
    return Problem(topology, make_collective(kind, len(topology.ranks), size, chunks=chunks))


def line(*bandwidths: float) -> Topology:
    """GPUs in a line without latency; the links between them in GB/s, both ways."""
    gpus = tuple(device("gpu", f"g{i}") for i in range(len(bandwidths) + 1))
    links = [
        link
        for i, speed in enumerate(bandwidths)
        for link in duplex(f"g{i}", f"g{i + 1}", bandwidth=speed)
    ]
    return Topology("line", gpus, tuple(links))


@pytest.mark.parametrize(
    ("cluster", "kind", "options"),
    [
        ("dgx-1v", "all-gather", {"epoch": "slowest", "horizon": 5}),
        ("dgx-1v", "reduce-scatter", {"epoch": "slowest", "horizon": 5}),
        ("dgx-1v", "all-to-all", {"epoch": "fastest", "horizon": 9}),
        ("star:gpus=5", "all-gather", {"epoch": "slowest", "horizon": 8}),
        ("star:gpus=5,copies=true", "all-gather", {"epoch": "slowest", "horizon": 8}),
        ("star:gpus=5", "broadcast", {"horizon": 9, "switches": "hyper-edges"}),
        ("pcie-server", "broadcast", {"epoch": "slowest", "horizon": 24}),
    ],
)
def test_the_size_told_beforehand_is_that_of_the_compiled_model(cluster, kind, options):
    """Windows are intervals, so every variable, row and nonzero can be counted exactly.

    Any objective but early arrivals adds nothing but rows of its own; that one adds none.
    """
    asked = problem(cluster, kind)
    options = {"greedy_start": False, "objective": "early-arrivals", **options}

    told = measure(asked, "te-ccl-milp", options=options)
    result = solve(asked, "te-ccl-milp", options=options, time_limit=20)

    assert told is not None
    assert result.size == told


def test_a_horizon_left_open_gives_a_lower_estimate():
    asked = problem("ndv2:hosts=2", "all-gather")

    least = measure(asked, "te-ccl-milp", options={"epoch": "slowest"})
    more = measure(asked, "te-ccl-milp", options={"epoch": "slowest", "horizon": 14})

    assert 0 < least.variables < more.variables
    assert more.memory > least.memory > least.nonzeros


def test_measuring_loads_no_solver():
    code = (
        "import sys\n"
        "from ccl.collective import all_gather\n"
        "from ccl.problem import Problem\n"
        "from formulations import measure\n"
        "from gallery import open_cluster\n"
        "asked = Problem(open_cluster('dgx-1v'), all_gather(8, 1e6))\n"
        "assert measure(asked, 'te-ccl-milp').variables > 0\n"
        "assert not {'cvxpy', 'highspy', 'ortools'} & set(sys.modules), 'a solver was loaded'\n"
    )

    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_has_no_model_has_no_size():
    assert measure(problem("ring:gpus=4", "all-gather"), "ring") is None


@pytest.mark.parametrize("objective", ["fewest-epochs", "finish-times"])
def test_both_makespan_objectives_find_the_fewest_epochs(objective):
    """Ring of 4, no latency: 3 chunks into each GPU over 2 links need 2 epochs of one each."""
    asked = problem("ring:gpus=4,alpha=0", "all-gather")
    options = {"objective": objective, "epoch": "slowest", "greedy_start": False, "horizon": 5}

    result = solve(asked, "te-ccl-milp", options=options, time_limit=20)

    assert result.epochs == 2


def tenants(*priorities: float) -> Problem:
    """Jobs a, b .. of a chunk of 1 MB and of the next of two chunks from g0 to g1 at 10 GB/s."""
    chunks = []
    for name, many, priority in zip("ab", (1, 2), priorities, strict=True):
        chunks += [Chunk(1e6, (0,), (1,), priority=priority, tenant=name)] * many
    return Problem(line(10.0), custom(2, chunks))


@pytest.mark.parametrize(
    ("priorities", "finish"), [((1.0, 1.0), (100.0, 300.0)), ((1.0, 3.0), (300.0, 200.0))]
)
def test_finish_times_are_weighted_by_priority(priorities, finish):
    """Three chunks of 100 µs over one link, one of job a and two of job b.

    a first: a ends at 1 epoch and b at 3; b first: b at 2 and a at 3. So equal weights give
    1 + 3 < 3 + 2 with a first, and weights of 1 and 3 give 3 + 3 * 2 < 1 + 3 * 3 with b first.
    """
    options = {"objective": "finish-times"}

    result = solve(tenants(*priorities), "te-ccl-milp", options=options, time_limit=20)

    found = finish_times(result.problem, result.timeline)
    assert tuple(found[name] for name in "ab") == pytest.approx(finish)


def test_early_arrivals_are_weighted_by_priority():
    """One arrival in each of three epochs counts 11/6, 5/6 and 1/3: 1/k from its own epoch on.

    5 (11/6 + 5/6) + 1/3 with b first is more than 11/6 + 5 (5/6 + 1/3) with a first.
    """
    options = {"objective": "early-arrivals"}

    result = solve(tenants(1.0, 5.0), "te-ccl-milp", options=options, time_limit=20)

    found = finish_times(result.problem, result.timeline)
    assert found == pytest.approx({"a": 300.0, "b": 200.0})


def test_an_early_stop_is_told_as_one():
    """At 30 % HiGHS stops with the bound within 1.3 times the reward; each is in the log."""
    asked = problem("dgx-1v", "all-gather", chunks=2)
    options = {"objective": "early-arrivals", "epoch": "slowest", "horizon": 9, "model_gap": 30.0}

    result = solve(asked, "te-ccl-milp", options=options, time_limit=60)

    assert result.stop is Stop.MODEL_GAP
    [line] = [each for each in result.log if "the solver's bound on it" in each]
    reward, bound = (float(each) for each in re.findall(r"(?:is|it) ([0-9.]+)", line))
    assert reward < bound <= 1.3 * reward


def test_an_epoch_multiplier_makes_epochs_longer_and_says_so():
    asked = problem("dgx-1v", "all-gather")
    plain, longer = (
        solve(asked, "te-ccl-milp", options={"epoch": "fastest", "epoch_multiplier": factor})
        for factor in (1, 2)
    )

    assert longer.plan.epoch_duration == pytest.approx(2 * plain.plan.epoch_duration)
    assert "epochs are 2 times as long, as requested" in longer.log


def test_a_latency_of_more_than_200_epochs_makes_them_5_times_as_long():
    """A shard of 1 KB / 2 takes 0.01 µs at 50 GB/s; 2.01 µs are 201 epochs, 1.99 are 199."""

    def solved(alpha, **options):
        links = duplex("g0", "g1", bandwidth=50.0, alpha=alpha)
        topology = Topology("pair", (device("gpu", "g0"), device("gpu", "g1")), links)
        asked = Problem(topology, make_collective("all-gather", 2, 1e3))
        return solve(asked, "te-ccl-milp", options={"epoch": "fastest", **options})

    assert solved(1.99).plan.epoch_duration == pytest.approx(0.01)
    assert solved(2.01).plan.epoch_duration == pytest.approx(0.05)
    assert any("made 5 times as long" in sentence for sentence in solved(2.01).log)
    kept = solved(2.01, lengthen_short=False)
    assert kept.plan.epoch_duration == pytest.approx(0.01)
    assert not any("5 times" in sentence for sentence in kept.log)


def test_a_horizon_too_small_for_the_bandwidth_says_which_cut_needs_more():
    """3 chunks of 1 MB take 300 µs over the only link, 10 GB/s; each alone is there after 100."""
    asked = Problem(line(10.0), custom(2, [Chunk(1e6, (0,), (1,))] * 3))

    with pytest.raises(
        Infeasible,
        match=r"horizon of 2 epochs of 100 µs is too short: no plan takes fewer than 3 \(what must "
        r"leave g0 at 10 GB/s takes 300 µs\); allow 3 epochs or more",
    ):
        solve(asked, "te-ccl-milp", options={"epoch": "slowest", "horizon": 2})


def test_a_horizon_that_the_solver_rules_out_says_so():
    """Three chunks leave the root of a star, one an epoch, the last in epoch 2.

    Each takes 2 epochs over each of two links, so the last is there after 2 + 4. No bound on what
    one GPU receives counts that, since each receives one chunk.
    """
    asked = problem("star:gpus=4", "scatter")

    with pytest.raises(Infeasible, match=r"proved that no schedule .* allow 6 epochs or more"):
        solve(asked, "te-ccl-milp", options={"epoch": "slowest", "horizon": 5}, time_limit=20)
