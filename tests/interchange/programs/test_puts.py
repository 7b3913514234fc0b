"""Plans of every kind become programs of puts that do what the collective says, call after call."""

from dataclasses import replace

import pytest

from ccl.collective import Chunk, custom, make_collective
from ccl.errors import ProblemError
from ccl.problem import Problem
from formulations import formulation, solve
from gallery import open_cluster
from interchange.execution.one_sided import execute_one_sided
from interchange.programs.lowering.cells import IN_PLACE
from interchange.programs.one_sided import Cells, Channel, Op, Options, lower_one_sided
from tests.ccl.clusters import mesh, ring

KINDS = (
    "all-gather",
    "reduce-scatter",
    "all-reduce",
    "all-to-all",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
)
CLUSTERS = {
    "ring:gpus=4": ("list", "forestcoll", "orbit-lp"),
    "star:gpus=4,copies=true,reduces=true": ("list", "orbit-trees"),
    "thesis-2.3": ("list", "orbit-trees", "orbit-lp"),
    "dgx-1v": ("list",),
}
"""With how plans are found there."""


def asked(cluster, kind, *, chunks=None, root=0):
    topology = open_cluster(cluster) if isinstance(cluster, str) else cluster
    return Problem(
        topology, make_collective(kind, len(topology.ranks), 1e6, chunks=chunks, root=root)
    )


def planned(problem, name="list"):
    return solve(problem, name, time_limit=0.5 if name == "list" else 60).plan


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.cover(8)
def test_plans_of_all_kinds_do_the_collective(cluster, kind):
    """Schedules, forests and flows, in place as well: right in every order, also called twice."""
    problem = asked(cluster, kind, root=1 if kind in ("broadcast", "gather") else 0)
    methods = [name for name in CLUSTERS[cluster] if formulation(name).why_not(problem) is None]
    assert methods
    for name in methods:
        plan = planned(problem, name)
        for in_place in {False, kind in IN_PLACE}:
            program = lower_one_sided(problem, plan, Options(in_place=in_place))
            assert program.in_place == in_place
            assert execute_one_sided(program, interleavings=4).check().interleavings == 4


@pytest.mark.parametrize("kind", ["all-gather", "all-to-all", "reduce", "scatter"])
def test_channels_between_hosts_are_ports(kind):
    problem = asked("dgx-a100:hosts=2", kind)
    plan = planned(problem)

    program = lower_one_sided(problem, plan)

    execute_one_sided(program, interleavings=3).check()
    host = [problem.topology.device(name).host for name in problem.topology.ranks]
    for number, rank in enumerate(program.ranks):
        for each in rank.channels:
            assert (each.kind == "port") == (host[number] != host[each.peer])
    assert any(each.kind == "port" for rank in program.ranks for each in rank.channels)
    alone = lower_one_sided(problem, plan, Options(ports=False))
    assert all(each.kind == "memory" for rank in alone.ranks for each in rank.channels)


@pytest.mark.parametrize(("cluster", "kind"), [("mi250", "broadcast"), ("dgx-1v", "all-gather")])
def test_trees_with_shares_of_a_chunk_are_programs(cluster, kind):
    problem = asked(cluster, kind)
    program = lower_one_sided(problem, planned(problem, "orbit-trees"))
    execute_one_sided(program, interleavings=2).check()
    assert {op.src[0].count for _, _, _, op in program.ops() if op.name == "put"} != {1}


def test_two_that_gather_put_straight_into_the_output():
    """By hand, for each of two GPUs with one chunk.

    One block copies the own chunk. One says that it is called and waits for the other's chunk. One
    waits until the other is called, puts the input to the place of its rank in the other's output,
    lets its threads meet and signals. Channel 0 is for what rank 0 puts, 1 for what rank 1 puts.
    """
    problem = asked(mesh(2), "all-gather")

    program = lower_one_sided(problem, planned(problem))

    for number, rank in enumerate(program.ranks):
        other = 1 - number
        out, back = (number,), (other,)
        assert (rank.input, rank.output, rank.scratch, rank.semaphores) == (1, 2, 0, ())
        assert rank.channels == (Channel("memory", other), Channel("memory", other))
        own = (Op("copy", (Cells("input", 0),), (Cells("output", number),)),)
        put = Op("put", (Cells("input", 0),), (Cells("output", number, 1, other),), "memory")
        sends = (
            Op("wait", kind="memory", channels=out),
            Op("nop"),
            put,
            Op("nop"),
            Op("signal", kind="memory", channels=out),
        )
        receives = (
            Op("signal", kind="memory", channels=back),
            Op("wait", kind="memory", channels=back),
        )
        assert set(rank.blocks) == {own, sends, receives}


@pytest.mark.parametrize("most", [16, 64])
def test_a_thread_block_is_never_longer_than_asked(most):
    problem = asked(ring(4), "all-reduce", chunks=8)

    program = lower_one_sided(problem, planned(problem), Options(operations=most))

    execute_one_sided(program, interleavings=3).check()
    longest = max(len(ops) for rank in program.ranks for ops in rank.blocks)
    assert most / 2 < longest <= most


def test_sums_land_in_scratch_of_their_own():
    """Each of three GPUs gets two contributions to its shard, on a mesh, in no order of their own.

    So its scratch has two chunks, and nobody puts into its output.
    """
    problem = asked(mesh(3), "reduce-scatter")

    program = lower_one_sided(problem, planned(problem))

    landed = [op.dst[0] for _, _, _, op in program.ops() if op.name == "put"]
    assert {each.buffer for each in landed} == {"scratch"}
    assert len(set(landed)) == len(landed) == 6
    assert [rank.scratch for rank in program.ranks] == [2, 2, 2]


@pytest.mark.parametrize(("kind", "sizes"), [("scatter", (6, 2)), ("gather", (2, 6))])
def test_no_buffer_has_no_chunks(kind, sizes):
    """The executor divides by both: also ranks that have nothing there say as many as the root."""
    program = lower_one_sided(
        asked(mesh(3), kind, chunks=2), planned(asked(mesh(3), kind, chunks=2))
    )
    assert {(rank.input, rank.output) for rank in program.ranks} == {sizes}


def test_limits_and_collectives_that_no_runtime_knows_are_refused():
    problem = asked(mesh(3), "all-gather")
    plan = planned(problem)
    with pytest.raises(ProblemError, match="which is no size"):
        lower_one_sided(problem, plan, Options(smallest=2, largest=1))
    demand = replace(problem, collective=custom(3, [Chunk(1e6, (0,), (1,))]))
    with pytest.raises(ProblemError, match="knows collectives by name alone"):
        lower_one_sided(demand, planned(demand))
