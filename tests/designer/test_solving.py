"""Solves are followed, cancelled without losing a plan, and ended when nobody waits."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace

import pytest

from ccl.errors import LimitReached, ProblemError, SolveError
from ccl.result import Stop
from designer import jobs as line
from designer.jobs import Jobs, Limits
from designer.shell.request import Request
from designer.views.solve.solve_card import QUEUED, running


@dataclass
class Report:
    seconds: float
    incumbent: float | None
    bound: float | None
    message: str
    result: object = None


class FakeJob:
    """A solve that reports what it is given and then waits to be cancelled or let go."""

    def __init__(self, reports, final=None, error=None, waits=True):
        self.reports, self.final, self.error = reports, final, error
        self.best = None
        self.cancelled = False
        self.end = threading.Event()
        if not waits:
            self.end.set()

    def __iter__(self):
        for report in self.reports:
            self.best = report.result or self.best
            yield report
        self.end.wait(10)

    def result(self):
        if self.cancelled and self.best is not None:
            return replace(self.best, stop=Stop.CANCELLED)
        if self.error is not None:
            raise self.error
        return self.final

    def cancel(self):
        self.cancelled = True
        self.end.set()


@pytest.fixture
def jobs_of():
    """Make jobs whose solves are these, in order."""
    made = []

    def make(*solves, **options):
        waiting = list(solves)
        jobs = Jobs(lambda *_args, **_kwargs: waiting.pop(0), **options)
        made.append(jobs)
        return jobs

    yield make
    for jobs in made:
        jobs.close()


def until(jobs, key, wanted):
    """Return the first state that is as wanted."""
    for _ in range(200):
        state = jobs.state(key)
        if wanted(state):
            return state
        time.sleep(0.01)
    pytest.fail("it never came to that")


def test_all_that_was_reported_is_told_at_every_question(jobs_of, result):
    reports = [
        Report(0.1, None, 10.0, "bounds"),
        Report(0.2, 40.0, 10.0, "a plan", result),
        Report(0.3, 40.0, 12.0, "a bound"),
    ]
    jobs = jobs_of(FakeJob(reports))
    key = jobs.start(result.problem, Request(), question={"size": "4MB"})
    state = until(jobs, key, lambda each: each.message == "a bound")
    assert [row[1:] for row in state.points] == [(None, 10.0), (40.0, 10.0), (40.0, 12.0)]
    assert state.clock >= 0.3
    assert state.running
    assert state.found == 1
    assert state.best == result
    assert jobs.question(key) == {"size": "4MB"}


def test_the_end_brings_the_result_and_can_be_asked_for_again(jobs_of, result):
    jobs = jobs_of(FakeJob([], final=result, waits=False))
    key = jobs.start(result.problem, Request())
    state = until(jobs, key, lambda each: not each.running)
    assert state.best == result
    assert state.found == 1
    assert state.points[-1][1:] == (result.makespan, result.bound.makespan)
    assert state.clock == state.points[-1][0]
    assert jobs.state(key) == state
    assert not jobs.running(key)
    assert jobs.state("another") is None


def test_a_cancel_keeps_the_best_plan(jobs_of, result):
    jobs = jobs_of(FakeJob([Report(0.1, 40.0, 10.0, "a plan", result)]))
    key = jobs.start(result.problem, Request())
    until(jobs, key, lambda each: each.found == 1)
    begin = time.monotonic()
    jobs.cancel(key)
    state = until(jobs, key, lambda each: not each.running)
    assert time.monotonic() - begin < 5
    assert state.cancelled
    assert state.best is not None
    assert state.best.plan == result.plan
    assert state.best.stop is Stop.CANCELLED
    assert state.found == 1


def test_a_cancel_before_the_first_plan_is_no_error(jobs_of, result):
    jobs = jobs_of(FakeJob([], error=SolveError("cancelled")))
    key = jobs.start(result.problem, Request())
    jobs.cancel(key)
    state = until(jobs, key, lambda each: not each.running)
    assert state.cancelled
    assert state.best is None


def test_what_the_solve_raises_is_raised_to_who_asks(jobs_of, result):
    jobs = jobs_of(FakeJob([], error=LimitReached("no plan within 1 s"), waits=False))
    key = jobs.start(result.problem, Request())
    with pytest.raises(LimitReached, match="within 1 s"):
        until(jobs, key, lambda each: not each.running)
    with pytest.raises(LimitReached):
        jobs.state(key)


def test_who_comes_when_all_places_are_taken_waits_and_then_begins(jobs_of, result):
    first, second = FakeJob([], final=result), FakeJob([Report(0.1, None, 10.0, "bounds")])
    jobs = jobs_of(first, second, limits=Limits(at_once=1, waiting=4))
    one, two = (jobs.start(result.problem, Request()) for _ in range(2))
    state = jobs.state(two)
    assert jobs.state(one).waiting == 0
    assert (state.running, state.waiting, state.message) == (True, 1, "waiting, 1st in line")
    assert jobs.running(two)

    first.end.set()
    state = until(jobs, two, lambda each: each.message == "bounds")
    assert (state.running, state.waiting) == (True, 0)


def test_the_card_tells_the_place_in_line_and_why_it_waits(jobs_of, result):
    jobs = jobs_of(FakeJob([]), limits=Limits(at_once=1))
    jobs.start(result.problem, Request())
    state = jobs.state(jobs.start(result.problem, Request()))
    card = str(running(replace(state, waiting=3), limit=None))
    assert "Waiting, 3rd in line" in card
    assert QUEUED in card
    told = replace(state, message="waiting, 1st in line; no worker is there yet")
    assert "'no worker is there yet'" in str(running(told, limit=None))


def test_when_as_many_wait_as_may_the_next_is_refused(jobs_of, result):
    """One runs and two wait, each of another owner; one alone may have a quarter, or one."""
    jobs = jobs_of(FakeJob([]), limits=Limits(at_once=1, waiting=2))
    keys = [jobs.start(result.problem, Request(), owner=owner) for owner in ("ann", "bob")]
    with pytest.raises(ProblemError, match="1 solve of yours waits already; cancel one"):
        jobs.start(result.problem, Request(), owner="bob")
    keys.append(jobs.start(result.problem, Request(), owner="cem"))
    with pytest.raises(ProblemError, match="2 solves wait already, which is as many as may"):
        jobs.start(result.problem, Request(), owner="dee")
    assert [jobs.state(key).waiting for key in keys] == [0, 1, 2]


def test_a_cancel_while_waiting_leaves_the_line_and_begins_nothing(jobs_of, result):
    first = FakeJob([], final=result)
    last = FakeJob([Report(0.1, None, 10.0, "bounds")])
    jobs = jobs_of(first, last, limits=Limits(at_once=1, waiting=8))
    keys = [jobs.start(result.problem, Request()) for _ in range(3)]
    jobs.cancel(keys[1])
    state = jobs.state(keys[1])
    assert (state.running, state.cancelled, state.waiting, state.best) == (False, True, 0, None)
    assert jobs.state(keys[2]).waiting == 1

    first.end.set()
    until(jobs, keys[2], lambda each: each.message == "bounds")
    assert not jobs.running(keys[1])


def test_what_cannot_begin_when_its_turn_comes_says_so_and_lets_the_next_begin(result):
    """Places are given on at once: the third begins though the second cannot."""
    first = FakeJob([], final=result)
    third = FakeJob([], final=result)
    starts = [lambda: first, lambda: refuse("wrong"), lambda: third, lambda: refuse("worse")]
    jobs = Jobs(lambda *_args, **_kwargs: starts.pop(0)(), Limits(at_once=1, waiting=8))
    keys = [jobs.start(result.problem, Request()) for _ in range(3)]
    first.end.set()
    until(jobs, keys[2], lambda each: each.waiting == 0)
    with pytest.raises(ProblemError, match="wrong"):
        jobs.state(keys[1])
    third.end.set()
    until(jobs, keys[2], lambda each: not each.running)

    # With a free place it is refused to who asks, and nothing is kept of it.
    with pytest.raises(ProblemError, match="worse"):
        jobs.start(result.problem, Request())
    assert not jobs.running(keys[2])
    jobs.close()


def refuse(message):
    raise ProblemError(message)


def test_each_solve_may_take_its_part_of_the_memory(result, monkeypatch):
    """Of what the machine gives, four solves and two comparisons at once have a sixth each."""
    monkeypatch.setattr(line, "memory_each", lambda parts: 60e9 / parts)
    given = []

    def begin(*_args, memory, **_kwargs):
        given.append(memory)
        return FakeJob([], final=result, waits=False)

    for limits in (Limits(at_once=4), Limits(at_once=4, memory=3e9)):
        jobs = Jobs(begin, limits)
        jobs.start(result.problem, Request())
        jobs.close()
    assert given == [10e9, 3e9]


def test_a_solve_that_nobody_asks_about_is_ended(jobs_of, result):
    job = FakeJob([])
    jobs = jobs_of(job, abandoned=0.05)
    key = jobs.start(result.problem, Request())
    assert job.end.wait(30)
    assert job.cancelled
    assert jobs.state(key) is None


def test_one_that_waits_and_that_nobody_asks_about_leaves_the_line(jobs_of, result):
    jobs = jobs_of(FakeJob([]), limits=Limits(at_once=1), abandoned=1.0)
    running = jobs.start(result.problem, Request())
    waiting = jobs.start(result.problem, Request())
    end = time.monotonic() + 30
    while jobs.running(waiting) and time.monotonic() < end:
        jobs.state(running)
        time.sleep(0.02)
    assert not jobs.running(waiting)
    assert jobs.running(running)


def test_closing_ends_every_solve_and_begins_none_that_waits(result):
    job = FakeJob([])
    starts = [job]
    jobs = Jobs(lambda *_args, **_kwargs: starts.pop(0), Limits(at_once=1))
    jobs.start(result.problem, Request())
    waiting = jobs.start(result.problem, Request())
    jobs.close()
    assert job.cancelled
    assert not jobs.running(waiting)
