"""Torus and mesh: shapes found from links, formulas of phases, dimensions side by side."""

from dataclasses import replace
from math import prod

import pytest

from ccl.collective import make_collective
from ccl.problem import Problem
from ccl.topology import Topology
from formulations import formulation, solve
from formulations.engines.closed_forms.hosts import grid_of
from gallery import open_cluster

SIZE = 1e6
ALPHA, BETA = 0.7, 1 / 50e3
"""µs, and µs per byte at 50 GB/s, of every link."""

KINDS = ("all-gather", "reduce-scatter", "all-reduce")


def asked(topology: Topology, kind: str, *, chunks: int = 1) -> Problem:
    ranks = len(topology.ranks)
    return Problem(topology, make_collective(kind, ranks, SIZE, chunks=chunks))


def as_written(result, makespan: float) -> None:
    """The formula, the steps on the grid and what is derived agree; the replay is not later."""
    twice = 2 if result.problem.collective.kind == "all-reduce" else 1
    form = result.closed_form
    assert form.makespan == pytest.approx(twice * makespan, rel=1e-9)
    assert form.in_steps == pytest.approx(twice * makespan, rel=1e-9)
    assert result.makespan <= form.in_steps * (1 + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 5), (3, 3, 3)])
def test_rings_of_one_dimension_after_the_other(shape, kind):
    """Phase i passes blocks of m/p times the sides before d_i - 1 times on: (p-1)/p m in all.

    The blocks add up: (d_1 - 1) + d_1 (d_2 - 1) + ... = p - 1 shards.
    """
    topology = open_cluster(f"torus:shape={'x'.join(map(str, shape))}")

    result = solve(asked(topology, kind), "torus", options={"both_ways": False})

    steps, ranks = sum(side - 1 for side in shape), prod(shape)
    as_written(result, steps * ALPHA + (ranks - 1) / ranks * SIZE * BETA)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("shape", "steps", "shards"), [("3x3", 2, 4), ("4x4", 4, 10), ("5x5", 4, 12)]
)
def test_both_ways_round_a_ring_halve_its_steps(shape, steps, shards, kind):
    """Half of the others are reached in each direction, rounded up in one.

    Sides of 3: one step of 1 shard, then one of 3. Of 4: two of 1 and two of 4. Of 5: two of 1
    and two of 5.
    """
    topology = open_cluster(f"torus:shape={shape}")
    result = solve(asked(topology, kind), "torus")

    as_written(result, steps * ALPHA + shards * SIZE / len(topology.ranks) * BETA)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_a_mesh_take_their_length_less_one(kind):
    """3 rows of 4: along the last dimension 3 steps of a shard, then 2 of four: 11 shards."""
    result = solve(asked(open_cluster("mesh:shape=3x4"), kind), "torus")

    as_written(result, 5 * ALPHA + 11 / 12 * SIZE * BETA)


def test_a_hypercube_is_a_grid_of_sides_of_two():
    """3 dimensions: a step of 1, of 2 and of 4 shards, recursive doubling."""
    result = solve(asked(open_cluster("hypercube:dimension=3"), "all-gather"), "torus")

    as_written(result, 3 * ALPHA + 7 / 8 * SIZE * BETA)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", ["4x4", "3x3x3"])
def test_chunks_dealt_to_orders_of_dimensions_use_all_links(shape, kind):
    """With one chunk for each order, steps are those of one order and bytes a D-th of them.

    Every link of the torus in one direction is then busy in every step: the time without
    latencies is the bound of what a GPU has to take in over its D links of that direction.
    """
    topology = open_cluster(f"torus:shape={shape}")
    dimensions, side = len(shape.split("x")), int(shape[0])

    options = {"both_ways": False}
    result = solve(asked(topology, kind, chunks=dimensions), "torus", options=options)

    ranks = side**dimensions
    bytes_in = (ranks - 1) / ranks * SIZE / dimensions
    as_written(result, dimensions * (side - 1) * ALPHA + bytes_in * BETA)


def test_orders_of_unequal_sides_wait_for_the_longest_dimension():
    """2×3, one way, two chunks: one goes along 3 then 2, the other along 2 then 3.

    m = 12 MB, a chunk is 1 MB. First phase: both send 1 chunk in its first step, one of them 1 in
    its second. Second phase: the first sends 3 chunks at once along the side of 2, while the
    other sends 2; then the other sends 2 in its second step. 1 + 1 + 3 + 2 = 7 MB, 4 steps.
    """
    problem = asked(open_cluster("torus:shape=2x3"), "all-gather", chunks=2)
    problem = replace(problem, collective=make_collective("all-gather", 6, 12e6, chunks=2))

    result = solve(problem, "torus", options={"both_ways": False})

    as_written(result, 4 * ALPHA + 7e6 * BETA)


def test_too_few_chunks_for_all_dimensions_are_said_in_the_log():
    result = solve(asked(open_cluster("torus:shape=3x3"), "all-gather"), "torus")

    assert any("to use all at once give each shard 2 chunks or more" in each for each in result.log)


@pytest.mark.parametrize("kind", ["all-gather", "reduce-scatter"])
@pytest.mark.parametrize(("side", "chunks"), [(5, 2), (4, 4), (6, 4)])
def test_two_ways_and_two_orders_reach_the_bound_of_a_torus(side, chunks, kind):
    """A GPU takes in (p-1)/p of 100 MB over four links of 50 GB/s; no latencies.

    Both ways round 5 a phase has 2 steps with all links busy. Round 4 the second of 2 steps, round
    6 the third of 3, has half of the chunks going each way, half as long.
    """
    topology, ranks = open_cluster(f"torus:shape={side}x{side},alpha=0"), side**2
    problem = Problem(topology, make_collective(kind, ranks, 100e6, chunks=chunks))

    result = solve(problem, "torus")

    as_written(result, (ranks - 1) / ranks * 100e6 / 200e3)
    assert result.gap == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("chunks", [2, 3])
def test_every_second_chunk_goes_the_other_way_round_an_even_ring(chunks):
    """4×4, one order, shards of 1 MB: in the last step of each phase a link has 1 or 2 chunks.

    1 + 1/2 shards, then 4 + 4/2; with 3 chunks 2/3 of a shard in the last steps.
    """
    problem = Problem(
        open_cluster("torus:shape=4x4"), make_collective("all-gather", 16, 16e6, chunks=chunks)
    )

    result = solve(problem, "torus", options={"split": False})

    last = {2: 1 / 2, 3: 2 / 3}[chunks]
    as_written(result, 4 * ALPHA + 5 * (1 + last) * 1e6 * BETA)


@pytest.mark.parametrize(
    ("cluster", "shape", "closed"),
    [
        ("torus:shape=4x3", (4, 3), (True, True)),
        ("torus:shape=2x5", (2, 5), (False, True)),
        ("mesh:shape=3x4", (3, 4), (False, False)),
        ("torus:shape=3x4x5", (3, 4, 5), (True, True, True)),
        ("hypercube:dimension=4", (2, 2, 2, 2), (False,) * 4),
        ("tpu-v4", (4, 4, 4), (True, True, True)),
        ("tpu-v4:shape=2x4x2", (2, 4, 2), (False, False, False)),
    ],
)
def test_the_shape_of_a_grid_is_found_from_its_links(cluster, shape, closed):
    """Sides of two are one link, so not closed.

    2×2×... of 16 is also 4×4 closed to rings, but not with ranks in this order.
    """
    grid = grid_of(open_cluster(cluster))

    assert grid is not None
    assert (grid.shape, grid.closed) == (shape, closed)


@pytest.mark.parametrize("cluster", ["ring:gpus=6", "star:gpus=4", "full-mesh:gpus=4", "dgx-1v"])
def test_what_is_no_grid_is_refused_in_words(cluster):
    why = formulation("torus").why_not(asked(open_cluster(cluster), "all-gather"))

    assert "no grid of two dimensions or more" in (why or "")


def test_a_torus_that_lacks_a_link_is_none():
    whole = open_cluster("torus:shape=3x3")
    broken = replace(whole, links=whole.links[1:], declared=())

    assert grid_of(whole) is not None
    assert grid_of(broken) is None


def test_the_same_torus_has_the_same_plan():
    problem = asked(open_cluster("torus:shape=3x4"), "all-reduce", chunks=2)

    assert solve(problem, "torus").plan == solve(problem, "torus").plan
