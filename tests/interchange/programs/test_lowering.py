"""Plans of every kind become programs that do what the collective says."""

from dataclasses import replace
from fractions import Fraction

import pytest

from ccl.collective import Chunk, custom, make_collective
from ccl.errors import ProblemError
from ccl.plans import Flow, Forest, Rate, Schedule, Send, Tree
from ccl.problem import Problem
from ccl.topology import Link, Topology, device
from ccl.verify import verify
from formulations import formulation, solve
from gallery import open_cluster
from interchange.execution import execute
from interchange.programs.lowering import Options, lower
from interchange.programs.lowering.cells import IN_PLACE
from tests.ccl.clusters import mesh, ring
from tests.interchange.programs.running import Stuck, check, run, wanted

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
CLUSTERS = (
    "ring:gpus=4",
    "star:gpus=4",
    "star:gpus=4,copies=true,reduces=true",
    "thesis-2.3",
    "thesis-2.4",
    "te-ccl-1",
    "dgx-1v",
    "dgx-a100:hosts=2",
)
METHODS = ("list", "forestcoll", "orbit-trees", "orbit-lp", "te-ccl-lp")


def planned(problem, name):
    """Solve; list scheduling searches as long as it may, the others end by themselves."""
    return solve(problem, name, time_limit=0.3 if name == "list" else 60).plan


def asked(cluster, kind, *, chunks=None, root=0):
    topology = open_cluster(cluster)
    ranks = len(topology.ranks)
    return Problem(topology, make_collective(kind, ranks, 1e6, chunks=chunks, root=root))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.cover(8)
def test_plans_of_all_kinds_do_the_collective(cluster, kind):
    """Schedules, forests and flows; contributions are traced cell by cell, in random order."""
    problem = asked(cluster, kind, root=1 if kind in ("broadcast", "gather") else 0)
    methods = [name for name in METHODS if formulation(name).why_not(problem) is None]
    assert methods
    for name in methods:
        program = lower(problem, planned(problem, name))
        check(program, seeds=2)
        assert program.in_place == (kind in IN_PLACE)


@pytest.mark.parametrize("kind", KINDS)
def test_several_chunks_and_instances_do_the_collective(kind):
    problem = asked("dgx-1v", kind, chunks=3)
    plan = planned(problem, "list")

    program = lower(problem, plan, Options(instances=2))

    check(program, seeds=2)
    assert program.chunks_per_loop == 2 * lower(problem, plan).chunks_per_loop


def test_shares_of_trees_become_runs_of_pieces():
    """Root 0 of a ring of 3 both ways sends 2/3 of its shard one way round: 2 pieces of 3."""
    topology = mesh(3)
    two, one = Fraction(2, 3), Fraction(1, 3)
    names = topology.ranks
    trees = []
    for root in range(3):
        a, b, c = (names[(root + i) % 3] for i in range(3))
        trees += [Tree(root, ((a, b), (b, c)), two), Tree(root, ((a, c), (c, b)), one)]
    problem = Problem(topology, make_collective("all-gather", 3, 9e6))
    forest = Forest(tuple(trees))
    verify(problem, forest)

    program = lower(problem, forest)

    check(program)
    assert program.chunks_per_loop == 9
    assert {step.count for _, _, block in program.blocks() for step in block.steps} == {1, 2, 3}


def test_shares_that_need_too_many_pieces_are_rounded_and_said():
    """1/7 and 6/7 of a chunk in 4 pieces at most are 1 and 3 of 4: 4/7 and 24/7 rounded."""
    problem = Problem(mesh(3), make_collective("broadcast", 3, 7e6))
    trees = (
        Tree(0, (("g0", "g1"), ("g1", "g2")), Fraction(1, 7)),
        Tree(0, (("g0", "g2"), ("g2", "g1")), Fraction(6, 7)),
    )

    program = lower(problem, Forest(trees), Options(pieces=4))

    check(program)
    assert any("rounded to 4 pieces" in note for note in program.notes)
    sent = [s.count for _, _, b in program.blocks() for s in b.steps if s.operation == "s"]
    assert sorted(sent) == [1, 1, 3, 3]


def test_parts_of_a_chunk_take_their_paths():
    """Half of each chunk goes straight and half over the third GPU, as a flow and as sends."""
    problem = Problem(mesh(3), make_collective("scatter", 3, 3e6))
    rates, sends = [], []
    for chunk, (dst, other) in enumerate((("g1", "g2"), ("g2", "g1"))):
        rates += [Rate(chunk, *ends, 0.5) for ends in (("g0", dst), ("g0", other), (other, dst))]
        sends += [
            Send(0, chunk, "g0", dst, fraction=0.5),
            Send(0, chunk, "g0", other, fraction=0.5),
        ]
        sends += [Send(1, chunk, other, dst, fraction=0.5)]
    schedule = Schedule(tuple(sorted(sends)), epoch_duration=20.0, horizon=2)
    verify(problem, schedule)
    for plan in (Flow(tuple(rates)), schedule):
        program = lower(problem, plan)
        check(program)
        assert program.chunks_per_loop == 6


def test_what_a_rank_has_added_up_since_is_not_sent():
    """g0's contribution is under way to g1 for 5 ms while g0 adds g2's: g1 must not get that.

    It gets g2's from g2 itself, has all, and what it sends back takes the place of the sums there.
    """
    links = (
        Link("g0", "g1", 1.0, alpha=5000.0),
        Link("g2", "g0", 1.0),
        Link("g2", "g1", 1.0),
        Link("g1", "g0", 1.0),
        Link("g1", "g2", 1.0),
    )
    topology = Topology("t", tuple(device("gpu", f"g{i}") for i in range(3)), links)
    problem = Problem(topology, make_collective("all-reduce", 3, 3e6))
    sends = [
        Send(epoch + chunk, chunk, src, dst)
        for chunk in range(3)
        for epoch, src, dst in (
            (0, "g0", "g1"),
            (0, "g2", "g0"),
            (20, "g2", "g1"),
            (30, "g1", "g0"),
            (30, "g1", "g2"),
        )
    ]
    schedule = Schedule(tuple(sorted(sends)), 1000.0, 40)
    verify(problem, schedule)

    check(lower(problem, schedule), seeds=20)


@pytest.mark.parametrize("own", [True, False])
def test_a_collective_of_its_own_is_refused(own):
    problem = Problem(mesh(3), make_collective("broadcast", 3, 2e6, chunks=2))
    chunks = (Chunk(1.5e6, (0,), (1, 2)), Chunk(0.5e6, (0,), (1, 2)))
    collective = custom(3, chunks) if own else replace(problem.collective, chunks=chunks)
    problem = replace(problem, collective=collective)
    sends = tuple(Send(0, chunk, "g0", dst) for chunk in (0, 1) for dst in ("g1", "g2"))
    with pytest.raises(ProblemError, match="by name alone"):
        lower(problem, Schedule(sends, 1000.0, 1))


def test_a_connection_of_many_messages_is_spread_over_channels():
    problem = asked("ring:gpus=4", "all-gather", chunks=8)
    plan = planned(problem, "list")
    long, short = lower(problem, plan), lower(problem, plan, Options(steps=8))

    check(short)
    assert max(len(block.steps) for _, _, block in short.blocks()) <= 8
    assert short.channels > long.channels


def test_more_thread_blocks_than_a_channel_takes_open_another():
    """39 other GPUs, at most 32 thread blocks that send on one channel: 2 channels or 3."""
    problem = Problem(mesh(40), make_collective("all-to-all", 40, 4e7))
    program = lower(problem, planned(problem, "direct"))

    sending = [
        [block.channel for block in rank.blocks if block.send >= 0] for rank in program.ranks
    ]
    assert all(channels.count(each) <= 32 for channels in sending for each in channels)
    assert 2 <= program.channels <= 3
    check(program, seeds=1)


def test_bad_limits_are_told():
    problem = Problem(ring(3), make_collective("all-gather", 3, 3e6))
    plan = planned(problem, "list")
    with pytest.raises(ProblemError, match="10 to 5 bytes"):
        lower(problem, plan, Options(smallest=10, largest=5))


def test_the_plain_interpreter_sees_what_is_wrong():
    """A dropped wait, a dropped send and a swapped offset are each seen in some order."""
    problem = asked("dgx-1v", "all-reduce")
    program = lower(problem, planned(problem, "list"))

    def broken(change):
        ranks = list(program.ranks)
        for number, own in enumerate(ranks):
            blocks = list(own.blocks)
            for place, block in enumerate(blocks):
                steps = change(block.steps)
                if steps != block.steps:
                    blocks[place] = replace(block, steps=steps)
                    ranks[number] = replace(own, blocks=tuple(blocks))
                    return replace(program, ranks=tuple(ranks))
        raise AssertionError

    def without_a_wait(steps):
        for i, step in enumerate(steps):
            if step.operation == "s" and step.after:
                return (*steps[:i], replace(step, after=None), *steps[i + 1 :])
        return steps

    def without_a_send(steps):
        return steps[1:] if steps[0].operation == "s" else steps

    goal = wanted(program)
    assert any(_differs(broken(without_a_wait), goal, seed) for seed in range(60))
    assert any(_differs(broken(without_a_send), goal, seed) for seed in range(3))


def _differs(program, goal, seed):
    try:
        got = run(program, seed)
    except (AssertionError, KeyError, Stuck):
        return True
    return any(got[rank][i] != what for rank, cells in enumerate(goal) for i, what in cells.items())


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_is_executed_without_a_race_in_and_out_of_place(kind):
    """The own shard of an all-gather is copied; in place that is a copy onto itself."""
    problem = asked("dgx-1v", kind)
    plan = planned(problem, "list")

    for instances in (1, 2):
        done = execute(lower(problem, plan, Options(instances=instances)), interleavings=20)
        done.check()
        assert done.manners == (
            ("out of place", "in place") if kind in IN_PLACE else ("out of place",)
        )


@pytest.mark.parametrize("kind", KINDS)
def test_one_block_does_both_directions_where_there_are_too_many(kind):
    """8 GPUs with 14 blocks for 7 others, or 7 where one does both; one more copies."""
    problem = asked("star:gpus=8", kind)
    plan = planned(problem, "direct")

    program = lower(problem, plan, Options(blocks=8))

    assert all(len(rank.blocks) <= 8 for rank in program.ranks)
    check(program, seeds=2)
    assert execute(program, interleavings=10).check().slots_needed == 1
