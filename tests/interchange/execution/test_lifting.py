"""Programs become schedules that do the same."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccl.collective import all_reduce, make_collective
from ccl.errors import FormatError
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.topology import Link, SharedLimit, Topology, device, duplex
from ccl.verify import verify
from formulations import solve
from gallery import open_cluster
from interchange.execution import execute
from interchange.execution._lift_place import Carry
from interchange.execution.lifting import BANDWIDTH, _values, lift, mesh_of
from interchange.programs import Program, RankProgram, Slot, Step, ThreadBlock
from interchange.programs.lowering import lower
from tests.ccl.test_simulate_terms import trees_on_clusters
from tests.ccl.undirected import planned, question
from tests.interchange.programs.programs import gathered, summed

MB = 1e6


def makespan(lifted) -> float:
    assert lifted.why == ""
    verify(lifted.problem, lifted.schedule)
    return simulate(lifted.problem, lifted.schedule).makespan


@pytest.mark.parametrize(("ranks", "count"), [(2, 1), (3, 1), (5, 2)])
def test_a_ring_all_gather_takes_a_shard_for_each_step(ranks, count):
    """n - 1 steps of a shard of 1 MB over links of 25 GB/s: 40 µs each."""
    program = gathered(ranks, count)
    lifted = lift(program, mesh_of(program), ranks * MB)

    assert makespan(lifted) == pytest.approx((ranks - 1) * MB * 1e-3 / BANDWIDTH)
    assert lifted.problem.collective == make_collective(
        "all-gather", ranks, ranks * MB, chunks=count
    )
    assert len(lifted.schedule.sends) == ranks * (ranks - 1) * count


def test_a_ring_all_reduce_takes_two_rounds():
    """2 (n - 1) steps of a fourth of 4 MB over links of 25 GB/s: 6 times 40 µs."""
    program = summed(4)
    lifted = lift(program, mesh_of(program), 4 * MB)

    assert makespan(lifted) == pytest.approx(6 * 40.0)
    assert all(chunk.reduced for chunk in lifted.problem.collective.chunks)


def _exchanged(ranks: int) -> Program:
    """An all-reduce in one step: everyone sends its whole vector to all, and each adds up."""
    made = []
    for rank in range(ranks):
        others = [each for each in range(ranks) if each != rank]
        sends = [
            ThreadBlock(
                peer,
                peer,
                0,
                (
                    Step("s", Slot("input", 0), None, ranks),
                    Step("r", None, Slot("scratch", place * ranks), ranks),
                ),
            )
            for place, peer in enumerate(others)
        ]
        adds = [Step("cpy", Slot("input", 0), Slot("output", 0), ranks)]
        adds += [
            Step("re", Slot("scratch", place * ranks), Slot("output", 0), ranks, (place + 1, 1))
            for place in range(len(others))
        ]
        blocks = (ThreadBlock(-1, -1, 0, tuple(adds)), *sends)
        made.append(RankProgram(ranks, ranks, len(others) * ranks, blocks))
    return Program("one step", "all-reduce", tuple(made), ranks)


def test_own_contributions_leave_before_others_arrive():
    """Every rank sends its 4 chunks to 3 others, each over a link of its own: 4 times 40 µs.

    A schedule sends what was added up, so all three sends of a chunk must start before the same
    chunk of another arrives, which they do if all ranks send chunk after chunk in step.
    """
    program = _exchanged(4)
    lifted = lift(program, mesh_of(program), 4 * MB)

    assert makespan(lifted) == pytest.approx(4 * 40.0)


def test_own_contributions_that_must_wait_are_named():
    """On a star each rank has one link for its three sends, and others arrive before the last.

    Twelve sends of a rank take 40 µs each, and each carries its rank's own.
    """
    star = Topology(
        "star",
        (*(device("gpu", f"g{i}") for i in range(4)), device("switch", "s")),
        tuple(link for i in range(4) for link in duplex(f"g{i}", "s", bandwidth=25.0)),
    )
    lifted = lift(_exchanged(4), star, 4 * MB)

    assert makespan(lifted) == pytest.approx(12 * 40.0)
    rank = star.rank
    assert all(send.terms == {rank[send.src]} for send in lifted.schedule.sends)


def test_contributions_passed_on_apart_are_named():
    """Rank 1 passes on what rank 0 sent, without its own: two sends over its one link."""
    place = Slot("scratch", 0)
    ranks = (
        RankProgram(1, 1, 1, (ThreadBlock(1, -1, 0, (Step("s", Slot("input", 0)),)),)),
        RankProgram(
            1,
            1,
            1,
            (
                ThreadBlock(2, 0, 0, (Step("rcs", None, place),)),
                ThreadBlock(2, -1, 1, (Step("s", Slot("input", 0)),)),
            ),
        ),
        RankProgram(
            1,
            1,
            2,
            (
                ThreadBlock(-1, 1, 0, (Step("rrc", Slot("input", 0), Slot("output", 0)),)),
                ThreadBlock(
                    -1,
                    1,
                    1,
                    (Step("r", None, place), Step("re", place, Slot("output", 0), after=(0, 0))),
                ),
            ),
        ),
    )
    program = Program("apart", "reduce", ranks, 1, root=2)
    lifted = lift(program, mesh_of(program), MB)

    assert makespan(lifted) == pytest.approx(2 * 40.0)
    found = [(send.src, send.dst, send.terms) for send in sorted(lifted.schedule.sends)]
    assert found == [("gpu0", "gpu1", {0}), ("gpu1", "gpu2", {1}), ("gpu1", "gpu2", {0})]


def test_what_a_program_gets_wrong_is_named():
    """The last step of rank 1 writes to the wrong place, so the place it should write is empty."""
    program = gathered(3)
    block = program.ranks[1].blocks[0]
    wrong = replace(block.steps[-1], dst=Slot("output", 0))
    broken = replace(block, steps=(*block.steps[:-1], wrong))
    rank = replace(program.ranks[1], blocks=(broken, program.ranks[1].blocks[1]))
    program = replace(program, ranks=(program.ranks[0], rank, program.ranks[2]))

    lifted = lift(program, mesh_of(program), 3 * MB)

    assert lifted.schedule is None
    assert lifted.why == (
        "rank 1's output 0 must hold chunk 0 of rank 0 and holds chunk 2 of rank 2"
    )


def test_a_program_that_stands_still_is_named():
    """Both ranks receive before they send."""
    ranks = tuple(
        RankProgram(
            1,
            2,
            0,
            (
                ThreadBlock(
                    1 - rank,
                    1 - rank,
                    0,
                    (Step("r", None, Slot("output", 1 - rank)), Step("s", Slot("input", 0))),
                ),
            ),
        )
        for rank in range(2)
    )
    program = Program("stuck", "all-gather", ranks, 2)

    assert lift(program, mesh_of(program), MB).why == (
        "deadlock: rank 0, thread block 0, step 0 waits for message 1 from rank 1 over channel 0, "
        "which is up to rank 1, thread block 0, step 1, itself behind step 0; rank 1, thread block "
        "0, step 0 waits for message 1 from rank 0 over channel 0, which is up to rank 0, thread "
        "block 0, step 1, itself behind step 0"
    )


def test_what_comes_twice_is_sent_once_and_said():
    """The ring's last step is done twice, by another channel."""
    program = gathered(2)
    again = ThreadBlock(1, -1, 1, (Step("s", Slot("input", 0)),))
    takes = ThreadBlock(-1, 0, 1, (Step("r", None, Slot("output", 0)),))
    ranks = (
        replace(program.ranks[0], blocks=(*program.ranks[0].blocks, again)),
        replace(program.ranks[1], blocks=(*program.ranks[1].blocks, takes)),
    )
    program = replace(program, ranks=ranks)
    lifted = lift(program, mesh_of(program), 2 * MB)

    assert len(lifted.schedule.sends) == 2
    assert lifted.notes == ("1 chunks of messages carry what their receiver has already",)


def test_own_chunks_that_are_not_copied_are_said():
    program = gathered(3)
    program = replace(
        program, ranks=tuple(replace(each, blocks=each.blocks[:1]) for each in program.ranks)
    )
    lifted = lift(program, mesh_of(program), 3 * MB)

    assert lifted.schedule is not None
    assert lifted.notes == ("3 chunks that stay at their rank are not copied to its output",)


def test_in_place_two_names_are_one_cell():
    """In place the input is the rank's part of the output, so nothing needs copying."""
    program = gathered(3)
    program = replace(
        program,
        ranks=tuple(replace(each, blocks=each.blocks[:1]) for each in program.ranks),
        in_place=True,
        out_of_place=False,
    )

    assert lift(program, mesh_of(program), 3 * MB).notes == ()


def test_a_custom_program_is_refused_in_words():
    program = replace(gathered(2), collective="custom")
    lifted = lift(program, mesh_of(program), MB)

    assert lifted.problem is None
    assert "custom" in lifted.why


def test_ranks_without_a_way_are_named():
    """A line of three: rank 0 and rank 2 have a GPU between them, which stores."""
    line = Topology(
        "line",
        tuple(device("gpu", f"g{i}") for i in range(3)),
        (*duplex("g0", "g1", bandwidth=25.0), *duplex("g1", "g2", bandwidth=25.0)),
    )
    with pytest.raises(FormatError, match=r"no path from rank 2 \(g2\) to rank 0 \(g0\)"):
        lift(gathered(3), line, 3 * MB)
    with pytest.raises(FormatError, match="for 2 ranks and line has 3 GPUs"):
        lift(gathered(2), line, 2 * MB)


def test_a_way_may_stop_at_a_memory():
    """Two GPUs on a memory: half of 2 MB goes up and down at 25 GB/s, 40 µs each, both at once.

    A GPU sends to the memory while it reads from there, so the two ways do not wait for each other.
    """
    gpus = (device("gpu", "g0"), device("gpu", "g1"))
    links = [link for name in ("g0", "g1") for link in duplex(name, "m", bandwidth=25.0)]
    topology = Topology("server", (device("memory", "m"), *gpus), tuple(links))
    lifted = lift(gathered(2), topology, 2 * MB)

    assert makespan(lifted) == pytest.approx(80.0)
    assert {(send.src, send.dst) for send in lifted.schedule.sends} == {
        ("g0", "m"),
        ("m", "g1"),
        ("g1", "m"),
        ("m", "g0"),
    }


def test_sums_that_meet_in_a_memory_stay_apart():
    """Two contributions to a chunk for the third rank stop at one memory, which cannot add.

    Each link from and to it carries two for each of three chunks.
    """
    gpus = tuple(device("gpu", f"g{i}") for i in range(3))
    links = [link for each in gpus for link in duplex(each.name, "m", bandwidth=25.0)]
    topology = Topology("server", (*gpus, device("memory", "m")), tuple(links))
    lifted = lift(_exchanged(3), topology, 3 * MB)

    assert makespan(lifted) == pytest.approx((6 + 1) * 40.0)
    assert all(len(send.terms) == 1 for send in lifted.schedule.sends)


def test_what_is_no_sum_of_what_came_is_named():
    """Rank 1 has what rank 0 sent and its own, and sends what rank 2 has of the chunk too."""
    problem = Problem(mesh_of(_exchanged(3)), all_reduce(3, 3 * MB))
    carried = [Carry(0, 1, 0, 0b001), Carry(1, 2, 0, 0b101)]
    with pytest.raises(FormatError, match="2 contributions to chunk 0, which are no sum of the 2"):
        _values(carried, problem)


@given(trees_on_clusters())
@settings(max_examples=20, deadline=None)
def test_undirected_trees_are_lifted_again(drawn):
    """A program keeps the order of a connection, and each send waits for the same."""
    topology, pieces = drawn
    problem = question(topology, pieces, 1e5 * len(pieces))
    plan = planned(problem, pieces)
    lifted = lift(lower(problem, plan), topology, problem.collective.size)

    assert lifted.why == ""
    assert makespan(lifted) == pytest.approx(simulate(problem, plan).makespan, rel=0.5)


def test_shared_limits_are_kept():
    """Two of three links of 25 GB/s share 25 GB/s: their shards of 1 MB take 80 µs each step."""
    mesh = mesh_of(gathered(3))
    limit = SharedLimit("bus", (("gpu0", "gpu1"), ("gpu1", "gpu2")), 25.0)
    topology = Topology("limited", mesh.devices, mesh.links, (limit,))
    lifted = lift(gathered(3), topology, 3 * MB)

    # What the replay has left of a limit it gives away, so it may be quicker than spread evenly.
    assert 2 * 40.0 <= makespan(lifted) <= 4 * 40.0 * 1.5


def test_equally_quick_ways_are_shared():
    """Four pairs of neighbours and two switches that every GPU reaches: two pairs take each."""
    gpus = tuple(device("gpu", f"g{i}") for i in range(4))
    switches = (device("switch", "s0"), device("switch", "s1"))
    links = [
        Link(*ends, 25.0)
        for i in range(4)
        for s in range(2)
        for ends in ((f"g{i}", f"s{s}"), (f"s{s}", f"g{i}"))
    ]
    lifted = lift(gathered(4), Topology("rails", (*gpus, *switches), tuple(links)), 4 * MB)

    ways = {(send.src, send.dst): send.via for send in lifted.schedule.sends}
    assert sorted(ways.values()) == [("s0",), ("s0",), ("s1",), ("s1",)]


@given(st.sampled_from([gathered(3), gathered(4, 2), summed(4), _exchanged(3)]), st.data())
@settings(max_examples=60)
def test_what_executes_right_is_not_called_wrong_and_the_other_way_round(program, data):
    """One place of one step is another: the interpreter of programs says what comes of it.

    It says more, since it looks at hazards too; of what comes out both say the same.
    """
    places = [
        (rank, number, turn)
        for rank, number, block in program.blocks()
        for turn, step in enumerate(block.steps)
        if step.operation != "nop"
    ]
    rank, number, turn = data.draw(st.sampled_from(places))
    block = program.ranks[rank].blocks[number]
    step = block.steps[turn]
    end = data.draw(st.sampled_from([each for each in ("src", "dst") if getattr(step, each)]))
    slot = getattr(step, end)
    size = getattr(program.ranks[rank], slot.buffer)
    moved = replace(slot, index=data.draw(st.integers(0, max(0, size - step.count))))
    steps = (*block.steps[:turn], replace(step, **{end: moved}), *block.steps[turn + 1 :])
    blocks = list(program.ranks[rank].blocks)
    blocks[number] = replace(block, steps=steps)
    ranks = list(program.ranks)
    ranks[rank] = replace(ranks[rank], blocks=tuple(blocks))
    edited = replace(program, ranks=tuple(ranks))

    lifted = lift(edited, mesh_of(edited), 4 * MB)
    found = {each.kind for each in execute(edited, interleavings=3).findings}

    if "must hold" in lifted.why:
        assert found
    elif not found:
        assert lifted.why == ""


@pytest.mark.parametrize("cluster", ["ring", "star", "dgx-1v", "dgx-a100"])
@pytest.mark.parametrize(
    "kind", ["all-gather", "reduce-scatter", "all-reduce", "all-to-all", "broadcast", "reduce"]
)
def test_lowered_and_lifted_a_plan_takes_as_long(cluster, kind):
    """Lowering keeps every order that matters and lifting starts things as early as they can."""
    topology = open_cluster(cluster)
    problem = Problem(topology, make_collective(kind, len(topology.ranks), 8 * MB))
    result = solve(problem, "direct")
    lifted = lift(lower(problem, result.plan), topology, 8 * MB)

    assert makespan(lifted) == pytest.approx(result.timeline.makespan, rel=1e-6)
    assert lifted.problem == problem
