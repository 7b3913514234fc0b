"""Recursive doubling, and halving and doubling: formulas, folding, partners, refusals."""

import math

import pytest

from ccl.problem import Problem
from formulations import formulation
from formulations.engines.closed_forms.hosts import arranged
from formulations.engines.closed_forms.routing import reachability
from formulations.engines.closed_forms.trees import partners
from gallery import open_cluster
from tests.formulations.engines.closed_forms.forms import (
    BETA,
    HOP,
    SIZE,
    STAR,
    as_written,
    asked,
    solved,
)

ONE_PORT = [
    ("star:gpus=2", 2, STAR),
    ("star:gpus=4", 4, STAR),
    ("star:gpus=8", 8, STAR),
    ("full-mesh:gpus=4", 4, HOP),
    ("hypercube:dimension=3", 8, HOP),
    ("hypercube:dimension=4", 16, HOP),
]


@pytest.mark.parametrize("name", ["recursive-doubling", "halving-doubling"])
@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter"])
@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize(("cluster", "ranks", "alpha"), ONE_PORT)
def test_blocks_double_in_each_step(cluster, ranks, alpha, chunks, kind, name):
    """Step t sends a block of 2^t shards: in all p-1 of them, log2 p α + (p-1)/p mβ."""
    result = solved(name, asked(cluster, kind, chunks=chunks))

    as_written(result, math.log2(ranks) * alpha + (ranks - 1) / ranks * SIZE * BETA)


@pytest.mark.parametrize("chunks", [1, 2])
@pytest.mark.parametrize(("cluster", "ranks", "alpha"), ONE_PORT)
def test_an_all_reduce_halves_and_doubles(cluster, ranks, alpha, chunks):
    """Both halves of the above: 2 log2 p α + 2 (p-1)/p mβ; or whole vectors in log2 p steps."""
    problem = asked(cluster, "all-reduce", chunks=chunks)
    steps = math.log2(ranks)

    as_written(
        solved("halving-doubling", problem), 2 * (steps * alpha + (ranks - 1) / ranks * SIZE * BETA)
    )
    as_written(solved("recursive-doubling", problem), steps * (alpha + SIZE * BETA))


@pytest.mark.parametrize("ranks", [3, 5, 6, 7, 11])
def test_ranks_left_over_give_before_and_get_after(ranks):
    """Two steps more, of the whole vector each; p' = 2^floor(log2 p) double.

    With p' chunks a shard, the p p' chunks are added up at p' places in equal shares.
    """
    steps = int(math.log2(ranks))
    core = 2**steps
    problem = asked(f"star:gpus={ranks}", "all-reduce", chunks=core)
    whole = STAR + SIZE * BETA

    as_written(solved("recursive-doubling", problem), (steps + 2) * whole)
    as_written(
        solved("halving-doubling", problem),
        2 * (whole + steps * STAR + (core - 1) / core * SIZE * BETA),
    )


@pytest.mark.parametrize(("ranks", "most"), [(3, 2), (5, 2 + 3), (6, 2 + 3), (7, 2 + 4)])
def test_chunks_that_do_not_divide_are_added_up_as_evenly_as_they_go(ranks, most):
    """One chunk a shard, p of m/p each: of 3 on 2 places 2 are sent; of 5 on 4 places, 2 and 3.

    6 chunks lie 2, 1, 2, 1, so the largest blocks are 2, and 3 in pairs; 7 lie 2, 2, 2, 1: 2 and 4.
    """
    result = solved("halving-doubling", asked(f"star:gpus={ranks}", "all-reduce"))

    steps = int(math.log2(ranks))
    whole = STAR + SIZE * BETA
    as_written(result, 2 * (whole + steps * STAR + most / ranks * SIZE * BETA))


@pytest.mark.parametrize(
    ("name", "kind", "steps", "vectors"),
    [
        ("recursive-doubling", "all-gather", 3, 7 / 8),
        ("recursive-doubling", "reduce-scatter", 3, 7 / 8),
        ("recursive-doubling", "all-reduce", 3, 3),
        ("halving-doubling", "all-reduce", 6, 14 / 8),
    ],
)
def test_a_replay_meets_either_term(name, kind, steps, vectors):
    """8 GPUs on a star: nothing to send leaves the latencies, no latency leaves one full port."""
    small = solved(name, asked("star:gpus=8", kind, size=1e-6))
    quick = solved(name, asked("star:gpus=8,alpha=0", kind))

    assert small.makespan == pytest.approx(steps * STAR)
    assert quick.makespan == pytest.approx(vectors * SIZE * BETA)


@pytest.mark.parametrize("cluster", ["hypercube:dimension=4", "torus", "dgx-1v"])
def test_partners_are_neighbours_where_an_order_makes_them(cluster):
    """A torus of 4x4 is a hypercube of 4 dimensions, and a cube mesh has one of 3 in it."""
    topology = open_cluster(cluster)
    ways = reachability(topology)

    order = arranged(topology, partners(len(topology.ranks)))

    assert order is not None
    assert all(ways.has(int(order[i]), int(order[j])) for i, j in partners(len(order)))


def test_partners_that_are_not_joined_go_over_others_or_are_refused():
    """On a ring of 8 a GPU has 2 neighbours and 3 partners: no order joins all pairs.

    Shards go over the GPUs between; a partial sum would have theirs in it.
    """
    spread, exchanged = (asked("ring:gpus=8", kind) for kind in ("all-gather", "all-reduce"))

    assert arranged(spread.topology, partners(8)) is None
    result = solved("recursive-doubling", spread)
    assert "longer paths" in result.closed_form.why(result.makespan)
    why = formulation("recursive-doubling").why_not(exchanged)
    assert "no path without a GPU joins" in why
    assert "would add its own contribution" in why
    assert formulation("halving-doubling").why_not(exchanged) is None


@pytest.mark.parametrize("name", ["recursive-doubling", "halving-doubling"])
@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter"])
def test_a_number_of_gpus_that_does_not_double_is_refused(name, kind):
    why = formulation(name).why_not(asked("star:gpus=6", kind))

    assert "it has 6 GPUs, and doubling needs a power of two" in why


@pytest.mark.parametrize("name", ["recursive-doubling", "halving-doubling"])
@pytest.mark.parametrize("size", [1e3, 1e8])
def test_sums_on_two_hosts_that_share_rails_are_verified_and_explained(name, size):
    """Partners of other hosts meet on rails of 25 GB/s, those inside on NVLink of 300."""
    problem = asked("dgx-a100:hosts=2", "all-reduce", size=size)

    result = solved(name, problem)

    form = result.closed_form
    assert form.alone < form.makespan
    assert "some links are faster than the slowest" in form.why(result.makespan)
    assert result.makespan <= form.in_steps * (1 + 1e-9)


@pytest.mark.parametrize("name", ["recursive-doubling", "halving-doubling"])
def test_the_same_question_has_the_same_plan(name):
    problem: Problem = asked("star:gpus=6", "all-reduce", chunks=2)

    first, second = (solved(name, problem) for _ in range(2))

    assert first.plan == second.plan
