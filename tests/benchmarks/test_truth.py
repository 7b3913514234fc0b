"""What is told of random problems is true; and what is not true is found out."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from benchmarks import truth
from benchmarks.__main__ import app
from benchmarks.random_problems import random_problem
from benchmarks.truth import KINDS, Answer, Examination, Seen, examined, faults
from ccl.bound import Bound
from ccl.collective import Chunk, custom, make_collective
from ccl.problem import Problem
from ccl.result import Result
from ccl.simulate import simulate
from ccl.timeline import Timeline, Transfer
from ccl.topology import Link, SharedLimit, Topology, device, duplex
from formulations import solve
from gallery import open_cluster
from tests.ccl.test_simulate_steady import copies_for_a_plain_switch

PROBLEMS = 240
BATCH = 20


@pytest.mark.parametrize("first", range(0, PROBLEMS, BATCH))
@pytest.mark.cover(1)
def test_nothing_that_is_told_of_random_problems_is_false(first):
    found = [examined(seed) for seed in range(first, first + BATCH)]

    assert [each for seen in found for each in seen.violations] == []
    assert sum(seen.plans for seen in found) > 3 * BATCH


def test_random_problems_are_of_every_kind():
    problems = [random_problem(seed) for seed in range(600)]
    topologies = [each.topology for each in problems]
    kinds = {device.kind for each in topologies for device in each.devices}
    chunks = [chunk for each in problems for chunk in each.collective.chunks]

    assert problems[:5] == [random_problem(seed) for seed in range(5)]
    assert kinds == {"gpu", "switch", "memory", "nic"}
    assert len({each.collective.kind for each in problems}) == 9
    assert {each.collective.whole for each in problems} == {False, True}
    assert any(each.windows for each in problems)
    assert any(len(each.limits) == 2 for each in topologies)
    assert any(len(chunk.holders) > 1 and not chunk.reduced for chunk in chunks)
    assert any(set(chunk.holders) & set(chunk.destinations) for chunk in chunks)
    assert {len(each.ranks) for each in topologies} == {2, 3, 4, 5, 6}
    assert any(
        (link.dst, link.src) not in each.link_index for each in topologies for link in each.links
    )


def line() -> Problem:
    """Broadcast of 1 MB along three GPUs at 50 GB/s: 40 µs whole, little more than 20 in parts."""
    topology = open_cluster("line:gpus=3,alpha=0")
    return Problem(topology, make_collective("broadcast", 3, 1e6))


def judged(problem: Problem, *results: Result) -> Seen:
    """What an examination says of results that are given."""
    examination = Examination(0, problem)
    for each in results:
        whole = each.formulation == "list"
        examination.answers.append(Answer(each.formulation, each, whole))
        examination._note(each.formulation, each.bounds)
    return examination.run([], limit=1.0)


def test_true_bounds_and_true_words_are_let_pass():
    problem = line()

    assert judged(problem, solve(problem, "list"), solve(problem, "orbit-trees")).violations == []


@pytest.mark.parametrize(
    ("whole_chunks", "share", "false"),
    [(False, 1.01, True), (True, 1.01, False), (False, 0.99, False)],
)
def test_a_bound_above_a_plan_is_found_out(whole_chunks, share, false):
    """A bound of whole chunks says nothing of a forest."""
    problem = line()
    forest = solve(problem, "orbit-trees")
    bound = Bound(forest.makespan * share, "flow", None, "made up", whole_chunks)

    found = judged(problem, replace(forest, bounds=(bound, *forest.bounds)))

    assert any(each.kind == "false bound" for each in found.violations) == false


@pytest.mark.logs_a_bug
def test_a_bound_above_a_steady_state_is_found_out():
    problem = line()
    forest = solve(problem, "orbit-trees")
    assert forest.steady_makespan is not None
    between = (forest.steady_makespan + forest.makespan) / 2
    bound = Bound(between, "flow", None, "made up", steady=True)

    found = judged(problem, replace(forest, bounds=(bound, *forest.bounds)))

    assert [each.kind for each in found.violations] == ["false bound"]
    assert "steady state" in found.violations[0].words


@pytest.mark.parametrize(("whole_chunks", "false"), [(False, True), (True, False)])
def test_an_optimum_that_is_beaten_is_found_out(whole_chunks, false):
    """Of whole chunks the schedule may be the best, though a forest is quicker."""
    problem = line()
    schedule, forest = solve(problem, "list"), solve(problem, "orbit-trees")
    assert forest.makespan < schedule.makespan
    proof = Bound(schedule.makespan, "solver", None, "made up", whole_chunks)
    told = replace(schedule, bounds=(proof, *schedule.bounds))

    found = judged(problem, told, forest)

    assert any(each.kind == "false optimum" for each in found.violations) == false


@pytest.mark.parametrize(
    ("seed", "name"), [(49_129, "direct"), (52_898, "taccl"), (55_694, "taccl")]
)
def test_problems_that_had_a_wrong_answer_once(seed, name):
    """One took long to be placed under a limit, of two the ways of tiny chunks went in circles."""
    assert examined(seed, names=(name,)).violations == []


def test_what_is_raised_and_what_is_logged_is_found_out(monkeypatch):
    def failing(*_args, **_options):
        logging.getLogger("topoloom").error("a bound was false")
        raise RuntimeError("a bug")

    monkeypatch.setattr(truth, "solved", failing)
    found = {each.kind: each.words for each in examined(0, names=("auto",)).violations}

    assert found == {"own refusal": "auto: RuntimeError: a bug", "bug logged": "a bound was false"}


def slow_then_fast() -> Problem:
    """g0 - s at 1 GB/s, s - g1 and s - g2 at 2, 3 in all; each of g1 and g2 wants 1 MB of g0."""
    links = (
        Link("g0", "s", 1.0),
        Link("s", "g1", 2.0),
        Link("s", "g2", 2.0, 3.0),
        *duplex("g1", "g2", bandwidth=2.0, alpha=3.0),
    )
    devices = (*(device("gpu", each) for each in ("g0", "g1", "g2")), device("switch", "s"))
    limit = SharedLimit("both", (("s", "g1"), ("s", "g2")), 3.0)
    collective = custom(3, [Chunk(1e6, (0,), (1,)), Chunk(1e6, (0,), (2,))])
    return Problem(Topology("drawn", devices, links, (limit,)), collective)


FIRST = Transfer(0, "g0", "s", 0.0, 1000.0, 1000.0, 1e6)
SECOND = Transfer(1, "g0", "s", 1000.0, 2000.0, 2000.0, 1e6)
ON = Transfer(0, "s", "g1", 500.0, 1000.0, 1000.0, 1e6)
LAST = Transfer(1, "s", "g2", 1500.0, 2000.0, 2003.0, 1e6)


def told(*transfers: Transfer, makespan: float = 2003.0) -> list[str]:
    return list(faults(slow_then_fast(), Timeline(transfers, makespan)))


def test_a_replay_that_can_be_so_is_let_pass():
    """The fast link takes 500 µs for what comes in 1,000, so it begins half-way."""
    assert told(FIRST, ON, SECOND, LAST) == []


def test_a_switch_may_copy_for_one_that_does_not():
    """Two copies of a part leave s over one link, the second before the next part has come."""
    problem, forest = copies_for_a_plain_switch()

    assert list(faults(problem, simulate(problem, forest, chunks=4))) == []


@pytest.mark.parametrize(
    ("transfers", "fault"),
    [
        (
            (FIRST, replace(ON, start=400.0, sent=900.0), SECOND, LAST),
            "s sends on bytes of chunk 0",
        ),
        ((FIRST, replace(ON, start=600.0), SECOND, LAST), "link s->g1 carries more than 2 GB/s"),
        ((FIRST, ON, replace(SECOND, start=900.0, sent=1900.0), LAST), "link g0->s sends two"),
        ((FIRST, ON, replace(LAST, start=500.0, sent=1000.0)), "limit both is exceeded"),
        ((FIRST, ON, SECOND, replace(LAST, end=2002.0)), "in less than its 3 µs"),
        ((FIRST, ON, SECOND), "chunk 1 has not come to g2"),
    ],
)
def test_a_replay_that_cannot_be_so_is_found_out(transfers, fault):
    assert any(fault in each for each in told(*transfers))


def test_what_comes_after_the_makespan_has_not_come():
    assert told(FIRST, ON, SECOND, LAST, makespan=2002.0) == [
        "chunk 1 has not come to g2 by 2002 µs"
    ]


def test_the_command_counts_what_it_finds():
    command = ["truth", "--problems", "2", "--workers", "1", "--only", "list"]
    done = CliRunner().invoke(app, command)

    last = done.output.strip().splitlines()[-1]
    assert last.startswith("2 problems, ")
    assert all(f" {kind}" in last for kind in KINDS)
    assert done.exit_code == (": 0 false bound, 0 false optimum, 0 own" not in last)
