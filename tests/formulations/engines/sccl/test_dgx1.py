"""Published instances on the DGX-1: TE-CCL's table 7, the front and broadcasts of SCCL."""

from dataclasses import dataclass

import pytest

from ccl.collective import make_collective
from ccl.errors import Infeasible
from ccl.problem import Problem
from ccl.result import Status
from ccl.simulate import simulate
from ccl.verify import verify
from formulations import solve
from formulations.engines.cp_sat.search import Effort
from formulations.engines.list_scheduling.search import Side
from formulations.engines.list_scheduling.timed import in_epochs, transfers_of
from formulations.engines.sccl.client import Decided, Outcome, Solver, on_time
from formulations.engines.sccl.search import Question, front, pareto
from gallery import open_cluster

CHUNK = 25e3
"""Bytes; 1 µs on the slowest link, so that table 7's epochs are rounds."""


@pytest.fixture(scope="module")
def solver():
    with Solver() as opened:
        yield opened


@dataclass(frozen=True)
class Decision:
    """What became of an instance, and the µs of its replay."""

    outcome: Outcome
    makespan: float | None


def decide(solver: Solver, kind: str, chunks: int, *, steps: int, rounds: int) -> Decision:
    topology = open_cluster("dgx-1v:alpha=0")
    shards = 1 if kind == "broadcast" else 8
    made = make_collective(kind, 8, shards * chunks * CHUNK, chunks=chunks)
    problem = Problem(topology, made)
    side = Side(transfers_of(topology), made)
    question = Question(side, solver, Effort(seconds=25), 10, True, lambda: 25.0)
    outcome = question.decide(steps, rounds)
    if outcome.plan is None:
        return Decision(outcome, None)
    plan = in_epochs(problem, side.transfers, on_time(question.task, outcome.plan))
    verify(problem, plan)
    return Decision(outcome, simulate(problem, plan).makespan)


@pytest.mark.parametrize(
    ("kind", "chunks", "epochs", "least"),
    [
        ("all-gather", 1, 2, 2),
        ("all-gather", 2, 3, 2),
        ("all-gather", 3, 4, 3),
        ("all-gather", 4, 5, 3),
        ("all-gather", 5, 6, 3),
        ("all-gather", 6, 7, 3),
        ("all-to-all", 1, 3, 2),
        ("all-to-all", 3, 8, 2),
        ("all-to-all", 8, 30, 2),
    ],
)
def test_a_row_of_table_7_is_solved_in_its_epochs_and_the_fewest_steps(
    solver, kind, chunks, epochs, least
):
    """An epoch of the table is a chunk on the slowest link: a round, so R is the epochs.

    How many steps these are dealt out to is not printed. No plan has 1, as some pairs are two
    links apart. SCCL's front has all-gathers of 2 steps down to 3 / 2 rounds a chunk, and 3 steps
    for all below down to 7 / 6 (its table 4): (1, 2) and (2, 3) take 2, the others 3.
    The all-to-alls of 8 and 24 chunks a rank have 2 there; 30 rounds for 64 are more than enough.
    A round is 1 µs without latency, so that the replay ends within the epochs.
    """
    enough = decide(solver, kind, chunks, steps=least, rounds=epochs)
    few = decide(solver, kind, chunks, steps=least - 1, rounds=epochs)

    assert enough.outcome.decided is Decided.FOUND
    assert len(enough.outcome.rounds) == least
    assert sum(enough.outcome.rounds) == epochs
    assert enough.makespan <= epochs * (1 + 1e-9)
    assert few.outcome.decided is Decided.IMPOSSIBLE


@pytest.mark.parametrize(
    ("kind", "chunks", "rounds"),
    [("all-gather", chunks, -(-7 * chunks // 6)) for chunks in range(1, 7)]
    + [("all-to-all", chunks, -(-16 * chunks // 6)) for chunks in (1, 3, 8)],
)
def test_no_row_has_a_round_less_than_its_cut(solver, kind, chunks, rounds):
    """7 c chunks come to a GPU over 6 chunks a round; 16 c cross from one half to the other over 6.

    The epochs of the all-gathers and of the first two all-to-alls are these, rounded up; the
    third needs 22 of its 30, and has a plan in them.
    """
    few = decide(solver, kind, chunks, steps=min(3, rounds - 1), rounds=rounds - 1)

    assert few.outcome.decided is Decided.IMPOSSIBLE
    if chunks == 8:
        enough = decide(solver, kind, chunks, steps=2, rounds=rounds)
        assert enough.outcome.decided is Decided.FOUND


@pytest.mark.parametrize(("chunks", "steps", "rounds"), [(6, 3, 3), (12, 4, 4), (6, 3, 5)])
def test_broadcasts_of_sccl_are_found(solver, chunks, steps, rounds):
    """Instances of its table 4; the root sends 6 chunks a round."""
    found = decide(solver, "broadcast", chunks, steps=steps, rounds=rounds)

    assert found.outcome.decided is Decided.FOUND


def test_six_chunks_in_seven_rounds_within_the_published_time():
    """SCCL took 27.7 s in TE-CCL's table 7; its own plan has 3 steps of 7 rounds."""
    topology = open_cluster("dgx-1v:alpha=0")
    problem = Problem(topology, make_collective("all-gather", 8, 8 * 6 * CHUNK, chunks=6))

    wanted = {"mode": "instance", "steps": 3, "rounds": 7}
    result = solve(problem, "sccl", options=wanted, time_limit=27.7)

    assert result.solve_time < 27.7
    assert result.makespan == pytest.approx(7.0)
    assert result.status is Status.OPTIMAL


def test_six_chunks_in_six_rounds_are_impossible_by_the_cut_of_a_gpu():
    topology = open_cluster("dgx-1v:alpha=0")
    problem = Problem(topology, make_collective("all-gather", 8, 8 * 6 * CHUNK, chunks=6))

    with pytest.raises(Infeasible, match=r"proved, as 42 chunks have to .* which takes 7 rounds"):
        solve(problem, "sccl", options={"mode": "instance", "steps": 6, "rounds": 6})


@pytest.mark.parametrize(("chunks", "cost"), [(1, 3.4), (2, 5.1)])
def test_the_cost_of_least_steps_is_that_of_table_3(chunks, cost):
    """TE-CCL's table 3, MSCCL: 0.7 µs and a round of 1 µs for each of 2 steps, then of 3.

    (3 chunks have 8 µs there and 4 steps here, 6.8 µs. An all-to-all of 25 KB to each other GPU
    cannot have the 3.4 µs printed, as 16 chunks over 6 links take 3 rounds.)
    """
    problem = Problem(
        open_cluster("dgx-1v"), make_collective("all-gather", 8, 8 * chunks * CHUNK, chunks=chunks)
    )

    result = solve(problem, "sccl")

    assert result.closed_form.steps == chunks + 1
    assert result.closed_form.makespan == pytest.approx(cost)
    assert result.makespan <= cost * (1 + 1e-9)


def test_the_front_of_the_all_gather_is_the_published_one():
    """SCCL's table 4: 2 steps at 3 rounds for 2 chunks, 3 steps at the bandwidth's 7 for 6."""
    points = pareto(open_cluster("dgx-1v"), "all-gather", 1e6, most_chunks=6, seconds=60)

    found = [(each.steps, each.rounds, each.chunks) for each in front(points)]
    assert found == [(2, 3, 2), (3, 7, 6)]
    assert all(each.decided is not Decided.UNDECIDED for each in points)
