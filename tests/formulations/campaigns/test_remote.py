"""Solves go to workers through a real scheduler and come back; nothing is lost where one dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from ccl.collective import make_collective
from ccl.errors import ProblemError, SolveError
from ccl.problem import Problem
from ccl.result import Stop
from ccl.serialization.topoloom import result_to_json
from designer.app import jobs_at
from designer.cli import main
from designer.shell.request import Request
from formulations import solve
from formulations.campaigns import remote
from formulations.campaigns.remote import Remote
from formulations.campaigns.sweeps import pool
from formulations.jobs.solve_job import Sender
from gallery import open_cluster

LAZY = {"formulation": "list", "options": {}}
"""A solve without a time limit, which the workers of these tests never end."""

PRELOAD = """
import formulations.jobs.solve_job
from formulations import start
from formulations.campaigns import remote
from formulations.jobs.child import Child

def begin(problem, formulation, **given):
    lazy = given["time_limit"] is None
    formulations.jobs.solve_job.Child = (lambda _, memory: Child("lazy", memory)) if lazy else Child
    return start(problem, formulation, **given)

remote.start = begin
"""
"""What a worker loads first: solves without a time limit find one plan soon, and never end."""

LAZY_CHILD = """
import pathlib, sys
sys.stdin.readline()
print(pathlib.Path(__file__).with_suffix(".json").read_text(), flush=True)
sys.stdin.read()
"""

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def found():
    """A plan of an all-gather, found in no time."""
    return solve(Problem(open_cluster("dgx-1v"), make_collective("all-gather", 8, 1e6)), "ring")


@pytest.fixture(scope="module")
def processes():
    """Start modules of Dask; all of them end with the tests."""
    begun = []

    def begin(module, *arguments, paths=()):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((*paths, str(ROOT)))}
        command = [sys.executable, "-m", f"distributed.cli.{module}", *arguments]
        begun.append(
            subprocess.Popen(
                [*command, "--no-dashboard"], env=environment, stderr=subprocess.DEVNULL
            )
        )
        return begun[-1]

    yield begin
    for each in begun:
        each.send_signal(signal.SIGTERM)
    for each in begun:
        try:
            each.wait(20)
        except subprocess.TimeoutExpired:  # a worker of Dask that still looks for its scheduler
            each.kill()
            each.wait()


@pytest.fixture(scope="module")
def scheduler_of(processes, tmp_path_factory):
    """Start a scheduler; return its process and its address, once it answers."""

    def begin():
        told = tmp_path_factory.mktemp("scheduler") / "told.json"
        arguments = ("--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(told))
        process = processes("dask_scheduler", *arguments)
        assert soon(lambda: told.exists() and told.read_text().endswith("}"))
        return process, json.loads(told.read_text())["address"]

    return begin


@pytest.fixture(scope="module")
def address(scheduler_of):
    """The scheduler that has workers."""
    return scheduler_of()[1]


@pytest.fixture(scope="module")
def workers(address, processes, found, tmp_path_factory):
    """Two workers of two threads each."""
    folder = tmp_path_factory.mktemp("lazy")
    told = {"seconds": 0.1, "incumbent": found.makespan, "bound": 1.0, "message": "a plan"}
    line = {"event": "progress", **told, "result": Sender(found.problem).text(found)}
    (folder / "lazy.py").write_text(LAZY_CHILD)
    (folder / "lazy.json").write_text(json.dumps(line))
    (folder / "first.py").write_text(PRELOAD)
    options = ("--no-nanny", "--nthreads", "2", "--preload", str(folder / "first.py"))
    return [processes("dask_worker", address, *options, paths=(str(folder),)) for _ in range(2)]


@pytest.fixture
def there(address, workers):
    """A server's way to the workers."""
    made = Remote(address)
    made.client.wait_for_workers(1, timeout=60)
    yield made
    made.close()


def until(job, wanted, within=120.0):
    """Follow a job until its news are as wanted, and return those."""
    end = time.monotonic() + within
    for news in job:
        if wanted(news):
            return news
        assert time.monotonic() < end
    return pytest.fail("it never came to that")


def soon(holds, within=60.0):
    """Say whether something comes to hold within some seconds."""
    end = time.monotonic() + within
    while not holds() and time.monotonic() < end:
        time.sleep(0.02)
    return holds()


def solvers(workers):
    """Return the workers that have a solver's process."""
    return [each for each in workers if each.poll() is None and psutil.Process(each.pid).children()]


# With workers


def test_a_solve_comes_back_verified_as_if_it_were_solved_here(there, found):
    job = there.start(found.problem, "ring", options={}, time_limit=60)
    news = list(job)

    assert job.result().plan == found.plan
    assert job.result().problem == found.problem
    assert [each.result.plan for each in news if each.result is not None] == [found.plan]


def test_what_the_worker_refuses_is_raised_here(there, found):
    job = there.start(found.problem, "ring", options={"colour": "red"})

    with pytest.raises(ProblemError, match="colour"):
        job.result()


def test_a_cancel_keeps_the_best_plan_and_ends_the_solver(there, workers, found):
    job = there.start(found.problem, **LAZY)
    until(job, lambda news: news.result is not None)
    assert solvers(workers)
    job.cancel()

    assert job.result().plan == found.plan
    assert job.result().stop is Stop.CANCELLED
    assert soon(lambda: not solvers(workers))


def test_a_solve_whose_server_is_gone_is_ended(address, there, workers, found):
    gone = Remote(address)
    until(gone.start(found.problem, **LAZY), lambda news: news.result is not None)
    gone.close()

    assert soon(lambda: not solvers(workers))
    # A server that comes next finds nothing in its way.
    assert there.start(found.problem, "ring", options={}, time_limit=60).result() is not None


def test_a_solve_whose_worker_is_killed_starts_again_on_another(there, workers, found):
    job = there.start(found.problem, **LAZY)
    until(job, lambda news: news.result is not None)
    (first,) = solvers(workers)
    (other,) = (each for each in workers if each is not first)
    first.kill()
    first.wait()
    until(job, lambda news: news.message == remote.AGAIN)
    assert job.best.plan == found.plan
    assert soon(lambda: solvers([other]))
    job.cancel()

    assert job.result().plan == found.plan


# Without workers


def test_who_waits_is_told_that_no_worker_is_there(scheduler_of, found):
    job = Remote(scheduler_of()[1]).start(found.problem, **LAZY)

    assert next(iter(job)).message == remote.NOBODY
    job.cancel()
    with pytest.raises(SolveError, match="cancelled before the first schedule"):
        job.result()


def test_the_page_is_told(scheduler_of, found):
    jobs = jobs_at(scheduler_of()[1])
    key = jobs.start(found.problem, Request())
    assert soon(lambda: jobs.state(key).message == remote.NOBODY)
    assert jobs.running(key)
    jobs.close()

    assert not jobs.running(key)


def test_what_a_worker_had_found_is_kept_when_the_next_finds_less(scheduler_of, found):
    """The second worker begins anew: no plan, then a worse one, then its end."""
    worse = solve(found.problem, "bruck")
    assert worse.makespan > found.makespan
    job = Remote(scheduler_of()[1]).start(found.problem, **LAZY)
    said = {"event": "progress", "bound": 1.0, "message": ""}
    for seconds, result in ((3.0, found), (1.0, worse)):
        told = {**said, "seconds": seconds, "incumbent": result.makespan}
        news = [
            *job._take({"event": "begin"}),
            *job._take({**told, "result": result_to_json(result)}),
        ][-1]
    list(job._take({"event": "result", "result": result_to_json(worse)}))

    assert (news.seconds, news.incumbent, news.result) == (4.0, found.makespan, None)
    assert job.result().plan == found.plan
    assert job.result().stop is worse.stop


@pytest.mark.slow
def test_a_scheduler_that_is_gone_is_said_in_a_sentence(scheduler_of, found, monkeypatch):
    monkeypatch.setattr(remote, "PATIENCE", 0.5)
    process, address = scheduler_of()
    job = Remote(address).start(found.problem, **LAZY)
    until(job, lambda news: news.message == remote.NOBODY)
    process.kill()
    process.wait()

    with pytest.raises(SolveError, match=r"has not answered for|lost twice with its scheduler"):
        job.result()


@pytest.mark.parametrize("address", ["redis://127.0.0.1", "127.0.0.1:8786", "tcp:/x"])
def test_what_is_no_address_of_a_scheduler_is_refused(address):
    with pytest.raises((ProblemError, SolveError), match=r"scheduler (is at|at)"):
        Remote(address)


@pytest.mark.parametrize("command", [("design", "--no-browser", "--port", "8953"), ("worker",)])
def test_the_command_line_says_that_no_scheduler_answers(command, capsys, monkeypatch):
    monkeypatch.setattr(pool, "ANSWER", 0.3)
    with pytest.raises(SystemExit) as left:
        main([*command, "--scheduler", "tcp://127.0.0.1:1"])

    assert left.value.code != 0
    assert "there is no Dask scheduler at tcp://127.0.0.1:1" in capsys.readouterr().err


def test_the_queue_of_before_says_what_came_instead(capsys):
    with pytest.raises(SystemExit) as left:
        main(["worker", "--queue", "redis://127.0.0.1:1/0"])

    assert left.value.code == 2
    assert "give --scheduler, such as tcp://" in capsys.readouterr().err
