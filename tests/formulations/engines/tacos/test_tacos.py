"""TACOS: randomised link-chunk matching, beside its published program and by hand."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from ccl.collective import all_gather, make_collective
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.result import Status
from ccl.topology import Link, Topology, device
from formulations import formulation, solve
from formulations.engines.list_scheduling import search
from gallery import open_cluster

GB = 1e9


def asked(cluster: str, kind: str = "all-gather", *, size: float = GB, chunks: int = 1) -> Problem:
    topology = open_cluster(cluster)
    return Problem(topology, make_collective(kind, len(topology.ranks), size=size, chunks=chunks))


@pytest.mark.parametrize(
    ("cluster", "chunks", "published"),
    [
        ("dgx-1v", 1, 7_502.0),
        ("dgx-1v", 6, 5_843.0),
        ("ndv2:hosts=2", 1, 43_762.0),
        ("ndv2:hosts=2", 4, 40_981.0),
        ("ndv2:hosts=2", 16, 40_402.0),
    ],
)
def test_all_gathers_of_1_gb_take_no_longer_than_by_the_published_program(
    cluster, chunks, published
):
    """TACOS's program took these µs, best of 200, 200, 200, 100 and 20 trials.

    It counts in whole µs: the first is 3 x (2500 + 0.7) = 7502.1.
    """
    result = solve(asked(cluster, chunks=chunks), "tacos")

    assert result.makespan < published + 0.5


def test_a_slow_link_had_better_wait():
    """1 MB from g0: over two links of 100 GB/s it is at g2 after 2 x 10 µs, over the third of
    10 GB/s, free at once, after 100 µs."""
    ends = (("g0", "g1", 100.0), ("g1", "g2", 100.0), ("g0", "g2", 10.0))
    topology = Topology(
        "short cut",
        tuple(device("gpu", f"g{i}") for i in range(3)),
        tuple(Link(*each) for each in ends),
    )
    problem = Problem(topology, make_collective("broadcast", 3, 1e6))

    greedy = solve(problem, "tacos", options={"patience": 0.0})
    patient = solve(problem, "tacos")

    assert greedy.makespan == pytest.approx(100.0)
    assert patient.makespan == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("cluster", "makespan"),
    [
        ("ring:gpus=5,alpha=0", 80.0),
        ("full-mesh:gpus=4,alpha=0", 50.0),
        ("star:gpus=4,alpha=0", 150.0),
    ],
)
def test_all_gathers_by_hand(cluster, makespan):
    """Shards of 2 MB (ring) and 2.5 MB at 50 GB/s take 40 and 50 µs on a link.

    Ring: two shards over each of two links into a GPU. Mesh: each shard over its own link. Star:
    three shards one after the other over the link into a GPU.
    """
    result = solve(asked(cluster, size=1e7), "tacos")

    assert result.makespan == pytest.approx(makespan)
    assert result.status is Status.OPTIMAL


def test_a_reduction_is_the_mirror_and_an_all_reduce_both():
    """On a ring all alike with 0.7 µs: four shards of 2 MB over two links, two turns of 40.7 µs."""
    gathered, reduced, both = (
        solve(asked("ring:gpus=5", kind, size=1e7), "tacos")
        for kind in ("all-gather", "reduce-scatter", "all-reduce")
    )

    assert gathered.makespan == pytest.approx(2 * 40.7)
    assert reduced.makespan == pytest.approx(2 * 40.7)
    assert both.makespan == pytest.approx(4 * 40.7)


def test_the_rule_of_the_paper_alone_is_an_option():
    """Without symmetry, order and patience the torus takes more than the optimum of 63 shards of
    15.625 MB over 4 links: 16 turns of 312.5 µs."""
    options = {"symmetry": False, "patience": 0.0, "order": "any", "trials": 3}
    plain = solve(asked("torus:shape=8x8,alpha=0"), "tacos", options=options)
    ours = solve(asked("torus:shape=8x8,alpha=0"), "tacos")

    assert ours.makespan == pytest.approx(16 * 312.5)
    assert plain.makespan > ours.makespan


def test_other_chances_find_other_plans():
    options = {"symmetry": False, "trials": 1}
    plans = {
        solve(asked("dgx-1v", chunks=6), "tacos", options={**options, "seed": seed}).makespan
        for seed in range(6)
    }

    assert len(plans) > 1


def test_what_ranks_would_have_to_relay_is_refused():
    """GPUs that meet only at a memory, which wants nothing; and an all-to-all."""
    with pytest.raises(ProblemError, match="g0 reaches g1 only over what does not want it"):
        solve(asked("thesis-2.3"), "tacos")
    with pytest.raises(ProblemError, match="it supports all-gather"):
        solve(asked("ring", "all-to-all"), "tacos")


def test_ways_over_switches_are_links_that_share_ports_and_it_says_so():
    result = solve(asked("star:gpus=4"), "tacos")

    assert any("share ports" in sentence for sentence in result.log)
    assert all(send.via == ("switch",) for send in result.plan.sends)


def test_a_time_limit_is_kept():
    """Without one this takes some seconds."""
    result = solve(asked("mi250:hosts=2"), "tacos", time_limit=0.5)

    assert result.solve_time < 1.5


def test_a_trial_that_would_take_too_long_is_given_up_where_a_plan_is_known(monkeypatch):
    problem = asked("mi250")
    free = solve(problem, options={"methods": "ring,tacos"}, time_limit=20)
    monkeypatch.setattr(search, "stopping", lambda _: nullcontext(np.ones(1, np.int64)))
    held = solve(problem, options={"methods": "ring,tacos"}, time_limit=20)

    assert (free.found_by, held.found_by) == ("tacos", "ring")


def test_it_takes_chunks_of_several_sizes():
    """Shards of 1 and 2 MB between two GPUs at 50 GB/s: 40 µs one way, 20 µs the other."""
    topology = open_cluster("line:gpus=2,alpha=0")
    whole = all_gather(2, 3e6)
    small, large = whole.chunks
    chunks = (replace(small, size=1e6), replace(large, size=2e6))
    problem = Problem(topology, replace(whole, chunks=chunks))

    assert formulation("tacos").why_not(problem) is None
    assert solve(problem, "tacos").makespan == pytest.approx(40.0)


@pytest.mark.parametrize("cluster", ["fat-tree", "dragonfly"])
def test_ways_over_exchanged_links_leave_plans_without_symmetry(cluster):
    """A way up and down a tree crosses two links of one orbit, so orbits alone have no plan."""
    topology = open_cluster(cluster)
    problem = Problem(topology, all_gather(len(topology.ranks), 1e6))

    assert solve(problem, "tacos", options={"trials": 2}).makespan > 0
