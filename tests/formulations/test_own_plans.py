"""No formulation makes a plan that breaks a rule, whatever the devices on the way can do."""

import itertools
import json
import os
from contextlib import suppress
from dataclasses import replace

import pytest

from ccl.collective import Chunk, custom, make_collective
from ccl.errors import ProblemError, ScheduleError, SolveError
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.serialization.topoloom import problem_from_json
from ccl.topology import Topology, device, duplex
from formulations import available, formulation, solve
from formulations.solving.api import solved
from gallery import open_cluster
from tests.formulations.random_problems import draw

MANY = int(os.environ.get("TOPOLOOM_PROBLEMS", "240"))
"""Problems drawn; give more for a search that takes longer."""

SEARCHES = ("auto", "cp-sat", "sccl", "te-ccl-astar", "te-ccl-lp", "te-ccl-milp", "thesis-steps")
"""What takes all the time that it is given, and gets every fourth problem."""


def bugs(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return what was logged of plans that break a rule."""
    lines = [each.getMessage() for each in caplog.records if each.name == "topoloom"]
    return [each for each in lines if each.startswith("bug: a plan")]


@pytest.mark.parametrize("name", [each.name for each in available()])
@pytest.mark.cover(4)
def test_no_plan_of_its_own_breaks_a_rule(name, caplog):
    """It is a plan, a sentence before, or no plan in so little time."""
    answered = 0
    for seed in range(0, MANY, 4 if name in SEARCHES else 1):
        problem = draw(seed)
        if problem is None or formulation(name).why_not(problem) is not None:
            continue
        with suppress(SolveError):
            solve(problem, name, time_limit=0.3)
            answered += 1
        assert not bugs(caplog), seed
    assert answered or name == "torus"


def over(*between: str, stores: bool, alpha: float = 0.0) -> Topology:
    """Two GPUs joined at 50 GB/s over devices of some kinds that neither copy nor add up."""
    inner = [
        device(kind, f"x{i}", stores=stores, copies=False, reduces=False)
        for i, kind in enumerate(between)
    ]
    names = ["g0", *(each.name for each in inner), "g1"]
    links = [
        link
        for pair in itertools.pairwise(names)
        for link in duplex(*pair, bandwidth=50.0, alpha=alpha)
    ]
    return Topology("chain", (device("gpu", "g0"), *inner, device("gpu", "g1")), tuple(links))


@pytest.mark.parametrize("kind", ["broadcast", "reduce", "all-reduce"])
@pytest.mark.parametrize("between", [("nic",), ("switch",), ("nic", "switch", "memory")])
def test_trees_cross_what_stores_and_cannot_branch(between, kind):
    """It passes on what comes as any relay does: 1 MB at 50 GB/s, halves of it both ways at once.

    Of an all-reduce each GPU adds up a half, so a link carries 0.5 MB up and 0.5 MB down.
    """
    problem = Problem(over(*between, stores=True), make_collective(kind, 2, 1e6))

    result = solve(problem, "orbit-trees")

    assert result.steady_makespan == pytest.approx(20.0)


def test_chunks_in_place_take_no_trees():
    """What g0 and g1 have and want alone does not move; 1 MB goes each way at 50 GB/s."""
    moving = [Chunk(1e6, (0,), (1,)), Chunk(1e6, (1,), (0, 1))]
    staying = [Chunk(4e6, (0,), (0,)), Chunk(9e6, (0, 1), (1, 0)), Chunk(1e6, (1,), (1,), True)]
    problem = Problem(over("switch", stores=False), custom(2, [staying[0], *moving, *staying[1:]]))

    for name in ("orbit-trees", "thesis-fluid"):
        result = solve(problem, name)
        assert result.steady_makespan == pytest.approx(20.0)
        assert {each.chunk for each in result.timeline.transfers} <= {1, 2}


def test_sums_beside_chunks_in_place():
    """Three sums that all want, and data that stays: as an all-reduce of 3 MB on two links."""
    sums = [Chunk(1e6, ends, (0, 1), True) for ends in ((0, 1), (1, 0), (0, 1))]
    problem = Problem(over(stores=False), custom(2, [Chunk(5e6, (0,), (0,)), *sums]))

    result = solve(problem, "orbit-trees", options={"symmetry": False})

    assert result.steady_makespan == pytest.approx(60.0)
    assert {each.chunk for each in result.timeline.transfers} == {1, 2, 3}


def test_where_nothing_moves_that_is_said():
    problem = Problem(over(stores=False), custom(2, [Chunk(1e6, (0, 1), (1,))]))

    for each in available():
        with pytest.raises(ProblemError, match="cannot take custom"):
            solve(problem, each.name)


@pytest.mark.parametrize("kind", ["all-reduce", "reduce-scatter"])
@pytest.mark.parametrize("name", ["hierarchical", "halving-doubling", "ring", "tree"])
def test_nothing_is_left_in_a_memory_for_nobody(name, kind, caplog):
    """Two hosts of two GPUs that meet over memories that add up; one GPU has a port of its own."""
    gpus = [device("gpu", f"g{i}", host=f"h{i // 2}") for i in range(4)]
    memories = [device("memory", f"m{i}", host=f"h{i}", reduces=True) for i in range(2)]
    links = [*duplex("m0", "s", bandwidth=10.0), *duplex("m1", "s", bandwidth=10.0)]
    for i in range(4):
        links += duplex(f"g{i}", f"m{i // 2}", bandwidth=(50.0, 10.0)[i % 2])
    links += duplex("g1", "s", bandwidth=10.0)
    cluster = Topology("two", (*gpus, *memories, device("switch", "s")), tuple(links))
    problem = Problem(cluster, make_collective(kind, 4, 1e6))
    if formulation(name).why_not(problem) is None:
        solve(problem, name)

    assert not bugs(caplog)


def made(name: str, run):
    """Return a formulation that does something else under its name."""
    return replace(formulation(name), run=run)


WRONG = Schedule((Send(0, 1, "g0", "g1"),), 20.0, 1)
"""Rank 0 sends the chunk that rank 1 has."""


@pytest.mark.logs_a_bug
def test_a_plan_that_breaks_a_rule_is_logged_and_never_an_answer(caplog):
    """The log has what makes it again; the user learns that it is a bug, and no traceback."""
    problem = Problem(over(stores=False), make_collective("all-gather", 2, 2e6))
    chosen = made("direct", lambda run, options: (run.offer(WRONG), run.finish(run.reached))[1])

    with pytest.raises(SolveError, match=r"a bug and was logged: .*chunk 1"):
        solved(problem, chosen, chosen.options())

    [line] = bugs(caplog)
    assert "direct" in line
    assert problem_from_json(json.loads(line[line.index('{"topology') :])) == problem


@pytest.mark.logs_a_bug
def test_a_plan_that_breaks_a_rule_loses_no_other(caplog):
    problem = Problem(over(stores=False), make_collective("all-gather", 2, 2e6))

    def run(run, options):
        run.offer(WRONG)
        return formulation("direct").run(run, options)

    chosen = made("direct", run)
    result = solved(problem, chosen, chosen.options())

    assert result.makespan == pytest.approx(20.0)
    assert any("bug" in line for line in result.log)
    assert len(bugs(caplog)) == 1


def test_a_plan_given_by_the_user_is_no_bug(caplog):
    problem = Problem(open_cluster("ring:gpus=3"), make_collective("all-gather", 3, 3e6))

    with pytest.raises(ScheduleError):
        solve(problem, "te-ccl-milp", begin_with=WRONG)

    assert not bugs(caplog)
