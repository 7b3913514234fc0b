"""Plans run for real: a process of the operating system per rank, over loopback."""

from dataclasses import replace

import pytest

from ccl.collective import make_collective
from ccl.errors import ProblemError
from ccl.problem import Problem
from formulations import solve
from gallery import open_cluster
from interchange.programs import Program, RankProgram, Slot, Step, ThreadBlock
from interchange.programs.lowering import lower
from interchange.programs.lowering.cells import IN_PLACE
from interchange.running import job_of, run, run_all
from interchange.running.child import installed

KINDS = ("all-gather", "reduce-scatter", "all-reduce", "all-to-all")
ROOTED = ("broadcast", "reduce", "gather", "scatter")
CLUSTERS = {4: "ring:gpus=4", 8: "dgx-1v"}
TRANSPORTS = [
    "sockets",
    pytest.param(
        "gloo", marks=pytest.mark.skipif(not installed(), reason="torch is not installed")
    ),
]


def program_of(ranks, kind, *, root=0, method="list"):
    topology = open_cluster(CLUSTERS[ranks])
    problem = Problem(topology, make_collective(kind, ranks, 1e6, root=root))
    return lower(problem, solve(problem, method, time_limit=0.3).plan)


@pytest.mark.parametrize("ranks", CLUSTERS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_every_element_is_what_the_collective_says(transport, ranks):
    """All-gather, reduce-scatter, all-reduce and all-to-all of int32 and float32.

    Of sums of float32 the order may differ, so at most ranks * 2^-24 of them.
    """
    jobs = [
        job_of(program_of(ranks, kind), dtype=dtype, nbytes=64e3)
        for kind in KINDS
        for dtype in ("int32", "float32")
    ]

    for ran in run_all(jobs, transport=transport):
        assert ran.sentences() == []
        assert ran.compared == (transport == "gloo")
        assert ran.deviation <= ranks * 2**-24
        assert len(ran.outcomes) == ranks


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_collectives_with_a_root_run(transport):
    jobs = [job_of(program_of(4, kind, root=2), nbytes=4e3) for kind in ROOTED]

    assert [ran.sentences() for ran in run_all(jobs, transport=transport)] == [[]] * 4


def test_programs_run_in_place():
    jobs = [job_of(program_of(4, kind), nbytes=4e3, in_place=True) for kind in sorted(IN_PLACE)]

    assert [ran.sentences() for ran in run_all(jobs)] == [[]] * len(jobs)


def test_trees_run_as_well():
    """Three trees of different roots and shares on the switches of ForestColl's figure."""
    topology = open_cluster("forestcoll-12")
    problem = Problem(topology, make_collective("all-reduce", len(topology.ranks), 1e6))

    assert run(lower(problem, solve(problem, "forestcoll").plan), nbytes=64e3).ok


def changed(program: Program, rank: int, change) -> Program:
    """Return a program with one step of a rank changed, the first that can be."""
    own = program.ranks[rank]
    for number, block in enumerate(own.blocks):
        for place, step in enumerate(block.steps):
            other = change(step)
            if other != step:
                steps = (*block.steps[:place], other, *block.steps[place + 1 :])
                blocks = list(own.blocks)
                blocks[number] = replace(block, steps=steps)
                ranks = list(program.ranks)
                ranks[rank] = RankProgram(own.input, own.output, own.scratch, tuple(blocks))
                return replace(program, ranks=tuple(ranks))
    raise AssertionError


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    ("cluster", "method", "options"),
    [
        ("dgx-1v", "one-shot", {}),
        pytest.param("hypercube", "pieces", {"pieces": 2}, marks=pytest.mark.slow),
    ],
)
def test_sends_that_name_what_they_carry_run_as_well(transport, cluster, method, options):
    """Vectors that are relayed, and sums over undirected trees."""
    problem = Problem(open_cluster(cluster), make_collective("all-reduce", 8, 16e3))
    plan = solve(problem, method, options=options, time_limit=30).plan
    assert any(send.terms for send in plan.sends)
    jobs = [
        job_of(lower(problem, plan), dtype=dtype, nbytes=64e3) for dtype in ("int32", "float32")
    ]

    assert [ran.sentences() for ran in run_all(jobs, transport=transport)] == [[], []]


def test_a_wrong_place_is_seen():
    """A rank puts what comes in the place of another shard."""

    def elsewhere(step):
        if step.operation != "r":
            return step
        return replace(step, dst=Slot("output", (step.dst.index + 1) % 4))

    ran = run(changed(program_of(4, "all-gather"), 1, elsewhere), nbytes=4e3)

    assert not ran.ok
    assert any("not what they should be" in each for each in ran.sentences())


@pytest.mark.slow
def test_a_program_that_waits_for_ever_is_ended():
    """Two ranks that each receive before they send."""
    steps = (Step("r", None, Slot("output", 0)), Step("s", Slot("input", 0), None))
    rank = RankProgram(1, 2, 0, (ThreadBlock(1, 1, 0, steps),))
    other = RankProgram(1, 2, 0, (ThreadBlock(0, 0, 0, steps),))
    program = Program("stuck", "all-gather", (rank, other), 2)

    ran = run(program, nbytes=64, time_limit=4)

    assert any("not done after 4 s" in each for each in ran.sentences())


def test_an_error_in_a_rank_is_told():
    """A step reads past the end of its buffer."""

    def beyond(step):
        return replace(step, src=Slot("input", 99)) if step.operation == "s" else step

    ran = run(changed(program_of(4, "all-gather"), 0, beyond), nbytes=4e3, time_limit=20)

    assert any("input 99 is past the end" in each for each in ran.sentences())


@pytest.mark.parametrize(
    ("given", "told"),
    [({"nbytes": 1e12}, "would take"), ({"in_place": True}, "not for calls in place")],
)
def test_what_cannot_be_run_is_told(given, told):
    with pytest.raises(ProblemError, match=told):
        run(program_of(4, "all-to-all"), **given)


def test_too_many_ranks_are_told():
    rank = RankProgram(1, 65, 0, ())
    with pytest.raises(ProblemError, match="65 ranks"):
        run(Program("many", "all-gather", (rank,) * 65, 65))
