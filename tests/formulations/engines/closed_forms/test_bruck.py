"""Bruck: any number of GPUs in the fewest steps, shards to everyone and chunks each to its goal."""

import math

import pytest

from tests.formulations.engines.closed_forms.forms import (
    BETA,
    HOP,
    SIZE,
    STAR,
    as_written,
    asked,
    halves,
    solved,
)

RANKS = (2, 3, 5, 8, 11)


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter", "all-reduce"])
@pytest.mark.parametrize("chunks", [1, 2])
@pytest.mark.parametrize("ranks", RANKS)
def test_shards_for_everyone_take_ceil_log2_p_steps(ranks, chunks, kind):
    """Steps send 1, 2, 4, ... shards, the last what is left of p-1."""
    result = solved("bruck", asked(f"star:gpus={ranks}", kind, chunks=chunks))

    steps = math.ceil(math.log2(ranks))
    as_written(result, halves(kind) * (steps * STAR + (ranks - 1) / ranks * SIZE * BETA))


@pytest.mark.parametrize("chunks", [1, 2])
@pytest.mark.parametrize(
    ("ranks", "shards"), [(2, 1), (3, 1 + 1), (4, 2 + 2), (5, 2 + 2 + 1), (7, 3 + 3 + 3), (8, 12)]
)
def test_chunks_with_a_goal_go_by_the_bits_of_their_distance(ranks, shards, chunks):
    """Step t moves the distances 1 .. p-1 that have bit t.

    For p = 5: 1, 3 in the first, 2, 3 in the second, 4 in the third. For p a power of two half of
    all p shards in each of log2 p steps: log2 p (α + m/2 β).
    """
    result = solved("bruck", asked(f"star:gpus={ranks}", "all-to-all", chunks=chunks))

    steps = math.ceil(math.log2(ranks))
    as_written(result, steps * STAR + shards / ranks * SIZE * BETA)


@pytest.mark.parametrize("ranks", [4, 6])
def test_a_full_mesh_has_all_partners(ranks):
    result = solved("bruck", asked(f"full-mesh:gpus={ranks}", "all-gather"))

    steps = math.ceil(math.log2(ranks))
    as_written(result, steps * HOP + (ranks - 1) / ranks * SIZE * BETA)


@pytest.mark.parametrize(
    ("kind", "steps", "shards"),
    [("all-gather", 3, 7), ("reduce-scatter", 3, 7), ("all-reduce", 6, 14), ("all-to-all", 3, 12)],
)
def test_a_replay_meets_either_term(kind, steps, shards):
    """Of 8 GPUs on a star: the chunk for the GPU 7 further on takes 3 hops; a port sends 12."""
    small = solved("bruck", asked("star:gpus=8", kind, size=1e-6))
    quick = solved("bruck", asked("star:gpus=8,alpha=0", kind))

    assert small.makespan == pytest.approx(steps * STAR)
    assert quick.makespan == pytest.approx(shards / 8 * SIZE * BETA)


@pytest.mark.parametrize("kind", ["all-gather", "all-reduce", "all-to-all"])
def test_where_partners_are_not_joined_chunks_go_over_those_between(kind):
    """On a line the steps share links; the plan is verified, the same again, and explained."""
    problem = asked("line:gpus=5", kind, chunks=2)

    first, second = (solved("bruck", problem) for _ in range(2))

    assert first.plan == second.plan
    assert "its messages take longer paths" in first.closed_form.why(first.makespan)
