"""Solves are followed, cancelled without losing a plan, and ended when nobody waits."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace

import pytest

from ccl.errors import LimitReached, ProblemError, SolveError
from ccl.result import Stop
from designer.solves.request import Request
from designer.solves.solving import MOST_JOBS, Jobs


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
    assert time.monotonic() - begin < 1
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


def test_only_so_many_solves_run_at_once(jobs_of, result):
    jobs = jobs_of(*(FakeJob([]) for _ in range(MOST_JOBS)))
    keys = [jobs.start(result.problem, Request()) for _ in range(MOST_JOBS)]
    assert all(jobs.running(key) for key in keys)
    with pytest.raises(ProblemError, match="are running already"):
        jobs.start(result.problem, Request())


def test_a_solve_that_nobody_asks_about_is_ended(jobs_of, result):
    job = FakeJob([])
    jobs = jobs_of(job, abandoned=0.05)
    key = jobs.start(result.problem, Request())
    assert job.end.wait(3)
    assert job.cancelled
    assert jobs.state(key) is None


def test_closing_ends_every_solve(result):
    job = FakeJob([])
    jobs = Jobs(lambda *_args, **_kwargs: job)
    jobs.start(result.problem, Request())
    jobs.close()
    assert job.cancelled
