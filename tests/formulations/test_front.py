"""Plans with fewer sends: the front of what one solve has verified, the best included.

A broadcast of 1 MB along three GPUs in a line of 50 GB/s, in k pieces, takes (k + 1) / k * 20 µs
and 2 k sends.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from ccl.collective import make_collective
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.result import Result, Stop
from ccl.serialization.topoloom import result_from_json, result_to_json
from ccl.timeline import Timeline, Transfer
from formulations import sends_front
from formulations.bounds import initial_bounds
from formulations.core import front
from formulations.core.front import MOST_POINTS, Front
from formulations.core.run import Progress, Run
from formulations.jobs.solve_job import Job, Receiver, Sender
from tests.ccl.clusters import MB, line, star

PROBLEM = Problem(line(3), make_collective("broadcast", 3, MB))


def in_pieces(count: int) -> Schedule:
    """Send each piece on as soon as it is there."""
    sends = [
        Send(piece + hop, piece, f"g{hop}", f"g{hop + 1}")
        for piece in range(count)
        for hop in range(2)
    ]
    return Schedule(tuple(sends), 20.0 / count, count + 1, chunks=count)


def run_of(**given) -> Run:
    bounds = initial_bounds(PROBLEM, quick=True, whole_chunks=False)
    given = {"formulation": "by-hand", "options": {}, "whole": False} | given
    return Run(problem=PROBLEM, bounds=bounds, **given)


def offered(*counts: int, **given) -> Result:
    run = run_of(**given)
    for each in counts:
        run.offer(in_pieces(each))
    return run.finish(Stop.PASSES)


def figures(result: Result) -> list[tuple[int, float]]:
    return [(each.sends, round(each.makespan, 6)) for each in result.front]


def took(result: Result, *, sends: int, makespan: float) -> Result:
    """Return a result as if its plan had so many sends and took so long."""
    each = Transfer(0, "g0", "g1", start=0.0, sent=1.0, end=1.0, nbytes=MB)
    return replace(result, timeline=Timeline((each,) * sends, makespan))


def test_every_plan_is_kept_that_no_other_beats_with_as_few_sends():
    result = offered(4, 1, 8, 2, 2)

    assert figures(result) == [(2, 40.0), (4, 30.0), (8, 25.0), (16, 22.5)]
    assert result.front[-1] is result
    assert [each.simpler for each in result.simpler] == [(), (), ()]
    assert [each.stop for each in result.front] == [*[Stop.FEWER] * 3, Stop.PASSES]


def test_the_best_is_the_same_as_without_them():
    assert offered(8, 1).plan == offered(8).plan == in_pieces(8)
    assert offered(8).simpler == ()


def test_all_bounds_of_the_solve_hold_for_all_plans():
    result = offered(1, 2, 8)

    assert {each.bound.makespan for each in result.front} == {result.bound.makespan}


def test_what_is_hardly_shorter_than_a_simpler_one_leaves_unless_it_is_the_best():
    """1.0009 times as long is within 0.1 %, 1.0011 times is not."""
    whole = offered(1)
    found = Front()
    for sends, makespan in ((4, 1000.9), (8, 1000.0), (16, 999.0), (16, 998.9), (20, 1500.0)):
        found.add(took(whole, sends=sends, makespan=makespan))
    best = took(whole, sends=32, makespan=998.8)
    found.add(best)

    assert [(each.sends, each.makespan) for each in found.simpler(best)] == [
        (4, 1000.9),
        (16, 998.9),
    ]


def test_of_more_than_eight_those_leave_that_are_missed_least():
    """Each is 10 % shorter than the one before, but for the fifth, which is only 1 % shorter."""
    whole, found, makespan = offered(1), Front(), 1000.0
    for place in range(MOST_POINTS + 1):
        makespan *= 0.99 if place == 4 else 0.9
        best = took(whole, sends=place + 1, makespan=makespan)
        found.add(best)
    points = [each.sends for each in found.simpler(best)]

    assert points == [1, 2, 3, 4, 6, 7, 8]


def test_large_plans_are_not_kept_beside_the_best(monkeypatch):
    monkeypatch.setattr(front, "MOST_TRANSFERS", 10)

    assert [sends for sends, _ in figures(offered(1, 2, 6, 8))] == [2, 4, 16]


def test_plans_that_another_run_has_found_count_with_those_beside_them():
    """As from a process aside, whose last result carries its own front."""
    run = run_of()
    run.offer(in_pieces(1))
    run.take(offered(2, 4), by="aside")
    result = run.finish(Stop.PASSES)

    assert figures(result) == [(2, 40.0), (4, 30.0), (8, 25.0)]
    assert result.front[-1].found_by == "aside"
    assert {each.formulation for each in result.front} == {"by-hand"}


def test_copies_of_a_run_share_its_front():
    """As methods that are tried one after the other do; only the whole solve's result has it."""
    run = run_of()
    inner = replace(run, method="list")
    for each in (1, 4):
        inner.offer(in_pieces(each))
    found = inner.finish(Stop.PASSES)
    run.take(found, by="list")

    assert found.simpler == ()
    assert figures(run.finish(Stop.PASSES)) == [(2, 40.0), (8, 25.0)]


def test_where_something_else_is_wanted_than_a_short_makespan_there_is_none():
    assert offered(1, 2, merit=lambda result: result.makespan).simpler == ()


def test_a_switch_on_the_path_is_no_send_of_its_own():
    problem = Problem(star(2), make_collective("broadcast", 2, MB))
    run = run_of()
    run.problem = problem
    run.bounds = initial_bounds(problem, quick=True, whole_chunks=False)
    run.offer(Schedule((Send(0, 0, "g0", "g1", via=("s",)),), 40.0, 1))
    assert run.best is not None

    assert len(run.best.timeline.transfers) == 2
    assert run.best.sends == 1


def test_they_come_through_the_pipe_of_a_process():
    result = offered(1, 2, 4)
    better = offered(1, 2, 4, 8)
    sender, receiver = Sender(PROBLEM), Receiver(PROBLEM)
    first, second = (receiver.result(sender.text(each)) for each in (result, better))

    assert (first, second) == (result, better)
    assert (first.simpler, second.simpler) == (result.simpler, better.simpler)


class Found(Job):
    """A job that is cancelled once it has found these."""

    def __init__(self, *found: Result) -> None:
        super().__init__()
        self._found = found

    def __iter__(self) -> Iterator[Progress]:
        for each in self._found:
            self.best = self.with_simpler(each)
            yield Progress(0.0, each.makespan, None, "", each)
        self._found = ()


def test_a_solve_that_is_cancelled_has_those_that_it_has_reported():
    result = Found(*(offered(each) for each in (1, 2, 4))).result()

    assert result.stop is Stop.CANCELLED
    assert figures(result) == [(2, 40.0), (4, 30.0), (8, 25.0)]


def test_a_document_holds_the_plan_alone():
    result = offered(1, 2)
    again = result_from_json(json.loads(json.dumps(result_to_json(result))))

    assert again == result
    assert again.front == (again,)
    point = result.simpler[0]
    assert result_from_json(json.loads(json.dumps(result_to_json(point)))) == point


def test_each_row_says_pieces_sends_and_how_much_longer():
    rows = sends_front(offered(1, 4))

    assert [(row["pieces"], row["sends"], row["found_by"]) for row in rows] == [
        (1, 2, "by-hand"),
        (4, 8, "by-hand"),
    ]
    assert [row["longer"] for row in rows] == pytest.approx([0.6, 0.0])
    assert [row["makespan_us"] for row in rows] == pytest.approx([40.0, 25.0])
