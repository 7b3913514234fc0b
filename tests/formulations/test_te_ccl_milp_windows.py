"""TE-CCL's general model where links have less bandwidth for a time (section 5)."""

import random
from dataclasses import replace

import pytest

from ccl.collective import Chunk, custom, make_collective
from ccl.errors import CclError, ProblemError, SolveError
from ccl.problem import Problem, Window
from ccl.topology import Topology, device, duplex
from formulations import formulation, solve
from gallery import open_cluster

MB = 1e6


def pair(*windows: Window, chunks: int = 3) -> Problem:
    """Chunks of 1 MB from g0 to g1 at 10 GB/s without latency: 100 µs each."""
    topology = Topology(
        "pair", (device("gpu", "g0"), device("gpu", "g1")), duplex("g0", "g1", bandwidth=10.0)
    )
    return Problem(topology, custom(2, [Chunk(MB, (0,), (1,))] * chunks), windows)


def there(begin: float, end: float, share: float) -> Window:
    return Window((("g0", "g1"),), begin, end, share)


@pytest.mark.parametrize(
    ("window", "makespan"),
    [
        (there(100.0, 300.0, 0.0), 500.0),
        (there(0.0, 200.0, 0.5), 400.0),
        (there(100.0, 500.0, 0.25), 600.0),
        (there(900.0, 1000.0, 0.0), 300.0),
    ],
)
def test_a_window_delays_what_it_takes_away(window, makespan):
    """In epochs of 100 µs. Shut in epochs 1 and 2: one chunk before and two after, 3 and 4.

    Half of it in epochs 0 and 1: the first chunk takes both, two more follow. A quarter in epochs
    1 to 4: the first in 0, the second takes all four, the third takes 5. Later it touches nothing.
    """
    result = solve(pair(window), "te-ccl-milp", options={"epoch": "slowest"}, time_limit=20)

    assert result.makespan == pytest.approx(makespan)


def test_a_way_around_a_link_that_is_shut_is_taken():
    """Directly 100 µs, shut for 900 µs; over g2 twice 100 µs."""
    gpus = tuple(device("gpu", f"g{i}") for i in range(3))
    ends = (("g0", "g1"), ("g0", "g2"), ("g2", "g1"))
    links = tuple(link for a, b in ends for link in duplex(a, b, bandwidth=10.0))
    asked = Problem(
        Topology("triangle", gpus, links),
        custom(3, [Chunk(MB, (0,), (1,))]),
        (there(0.0, 900.0, 0.0),),
    )

    result = solve(asked, "te-ccl-milp", options={"epoch": "slowest"}, time_limit=20)

    assert result.makespan == pytest.approx(200.0)


def test_two_sends_share_what_a_window_leaves():
    """Epochs of 200 µs have room for two chunks, in the window for one: 4 chunks in 1 + 1 + 2.

    The window covers epochs 0 and 1, so the third and fourth leave together in epoch 2 and the
    last is there at 600 µs.
    """
    options = {"epoch_duration": 200.0}

    result = solve(
        pair(there(0.0, 400.0, 0.5), chunks=4), "te-ccl-milp", options=options, time_limit=20
    )

    assert result.makespan == pytest.approx(600.0)


def test_reductions_and_hyper_edges_know_no_windows():
    topology = open_cluster("star:gpus=4")
    window = Window((topology.links[0].ends,), 0.0, 10.0, 0.5)
    summed = Problem(topology, make_collective("reduce", 4, MB), (window,))
    spread = Problem(topology, make_collective("broadcast", 4, MB), (window,))

    assert "backwards" in (formulation("te-ccl-milp").why_not(summed) or "")
    with pytest.raises(ProblemError, match="hyper-edges know no links"):
        solve(spread, "te-ccl-milp", options={"switches": "hyper-edges"})


def test_windows_of_too_many_epochs_are_named():
    with pytest.raises(SolveError, match="make epochs longer"):
        solve(pair(there(0.0, 1e8, 0.5)), "te-ccl-milp", time_limit=5)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.cover(10)
def test_every_plan_is_verified_and_none_is_faster_than_without_windows(seed):
    """`conclude` verifies; the bounds of full bandwidth hold all the more."""
    chance = random.Random(seed)
    cluster = chance.choice(("ring:gpus=4", "star:gpus=4", "dgx-1v", "pcie-server", "thesis-3.1"))
    topology = open_cluster(cluster)
    kind = chance.choice(("all-gather", "broadcast", "all-to-all", "scatter"))
    plain = Problem(topology, make_collective(kind, len(topology.ranks), MB))
    windows = []
    for _ in range(chance.randint(1, 3)):
        links = chance.sample(topology.links, chance.randint(1, 3))
        begin = chance.uniform(0.0, 20.0)
        end = begin + chance.uniform(1.0, 40.0)
        share = chance.choice((0.0, 0.1, 0.5, 0.9))
        windows.append(Window(tuple(link.ends for link in links), begin, end, share))
    options = {
        "epoch": chance.choice(("auto", "fastest", "slowest")),
        "objective": chance.choice(("fewest-epochs", "early-arrivals")),
    }

    try:
        result = solve(
            replace(plain, windows=tuple(windows)), "te-ccl-milp", options=options, time_limit=1.5
        )
    except CclError as error:
        assert isinstance(error, SolveError)  # noqa: PT017  it may find no time
        return

    assert result.bound.makespan <= result.makespan * (1 + 1e-9)
    assert result.makespan <= result.plan.duration * (1 + 1e-9)
