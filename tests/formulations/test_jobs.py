"""Solves in a child process: news, errors, cancelling, and no orphan."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import psutil
import pytest

from ccl.collective import make_collective
from ccl.errors import Infeasible, LimitReached, ProblemError, SolveError
from ccl.problem import Problem
from ccl.result import Stop
from formulations import begun_ahead, solve, start
from gallery import open_cluster


@pytest.fixture
def small():
    return Problem(open_cluster("dgx-1v"), make_collective("all-gather", 8, 1e6))


@pytest.fixture
def large():
    """A model that no solver of today finishes within a minute."""
    return Problem(open_cluster("dgx-2-te-ccl"), make_collective("all-gather", 32, 1e6))


def gone(pid: int, *, within: float) -> bool:
    end = time.monotonic() + within
    while time.monotonic() < end:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


def test_a_job_answers_as_a_solve_in_this_process_does(small):
    job = start(small, "te-ccl-milp", time_limit=60)
    news = list(job)

    assert job.result().plan == solve(small, "te-ccl-milp", time_limit=60).plan
    assert news[-1].incumbent == pytest.approx(job.result().makespan)
    assert not job.running


def test_better_plans_come_with_the_news(large):
    job = start(large, "te-ccl-milp", time_limit=60)
    try:
        first = next(news.result for news in job if news.result is not None)
    finally:
        job.cancel()

    assert job.result().plan == first.plan


def test_cancelling_keeps_the_best_and_ends_the_process_at_once(large):
    job = start(large, "te-ccl-milp", time_limit=600)
    for news in job:
        if "solving" in news.message:
            break

    job.cancel()

    assert gone(job.pid, within=1.0)
    assert job.result().stop is Stop.CANCELLED
    assert job.result().plan == job.best.plan


def test_cancelling_before_the_first_plan_says_so(large):
    job = start(large)
    job.cancel()

    with pytest.raises(SolveError, match="cancelled before the first schedule"):
        job.result()


def test_an_error_of_the_child_is_raised_here(small):
    job = start(small, "te-ccl-milp", options={"horizon": 1})

    with pytest.raises(Infeasible, match=r"allow \d+ epochs or more"):
        job.result()


def test_wrong_options_are_refused_before_a_process_starts(small):
    with pytest.raises(ProblemError, match="unknown"):
        start(small, "te-ccl-milp", options={"colour": "red"})


def test_a_solver_that_dies_is_reported(large):
    job = start(large)
    os.kill(job.pid, signal.SIGKILL)

    with pytest.raises(SolveError, match="was ended by signal 9"):
        job.result()


def test_the_solver_dies_with_its_parent():
    """The parent is killed while the solver is busy: nothing is left that could clean up."""
    code = """
        import sys, time
        from ccl.collective import make_collective
        from ccl.problem import Problem
        from formulations import start
        from gallery import open_cluster
        collective = make_collective("all-gather", 32, 1e6)
        job = start(Problem(open_cluster("dgx-2-te-ccl"), collective), "te-ccl-milp")
        for news in job:
            if "solving" in news.message:
                print(job.pid, flush=True)
                time.sleep(600)
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()

    assert gone(pid, within=1.0)


def children():
    """Return the processes begun by this one, other tests' too."""
    return {each.pid for each in psutil.Process().children()}


def test_a_process_that_was_begun_ahead_solves_the_first_problem(small):
    before = children()
    with begun_ahead("formulations"):
        (ahead,) = children() - before
        first, second = start(small, "ring"), start(small, "ring")

    assert first.pid == ahead != second.pid
    assert first.result().makespan == second.result().makespan


def test_a_process_that_was_begun_for_nothing_ends_with_the_block():
    before = children()
    with begun_ahead("formulations"):
        (ahead,) = children() - before

    assert gone(ahead, within=1)


def test_what_a_solver_prints_is_no_answer():
    """HiGHS writes some warnings to the output itself, beside Python, whatever it is told."""
    program = (
        "import os; from formulations.jobs.child import own_answers; answers = own_answers();"
        "os.write(1, b'a warning\\n'); print('another', flush=True); answers.write(b'{}\\n')"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert done.stdout == b"{}\n"
    assert done.stderr.split() == [b"a", b"warning", b"another"]


@pytest.mark.slow
def test_a_plan_that_is_known_elsewhere_spares_slower_ones():
    """Their best plan takes 12.4 µs; one of 1 µs elsewhere leaves them nothing."""
    problem = Problem(open_cluster("dgx-1v"), make_collective("all-reduce", 8, 1e6))
    job = start(problem, "pieces", time_limit=5)
    job.report(1.0)

    assert all(news.result is None for news in job)
    with pytest.raises(LimitReached):
        job.result()
