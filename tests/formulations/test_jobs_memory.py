"""A solver that takes more memory than it may have dies alone, and says so in a sentence."""

import json
import os
import signal
import sys

import psutil
import pytest

from ccl.collective import make_collective
from ccl.errors import LimitReached, ProblemError, SolveError
from ccl.problem import Problem
from ccl.result import Stop
from ccl.serialization.topoloom import bound_to_json, result_to_json
from formulations import solve, start, start_comparison
from formulations.analyses.comparison import jobs
from formulations.jobs import child as walls
from formulations.jobs import solve_job
from formulations.jobs.child import Child
from formulations.jobs.solve_job import Sender
from gallery import open_cluster

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux refuses memory to a process")


CHILDREN = {
    "grows": """
        import time
        kept = []
        while True:
            kept.append(bytearray(b"1" * 2**24))
            time.sleep(0.002)
        """,
    "has_a_child_that_grows": """
        import subprocess, sys
        subprocess.run([sys.executable, "-m", "grows"])
        """,
    "takes_all_at_once": """
        import numpy as np
        np.ones(10**12)
        """,
    "throws": """
        import os, sys
        sys.stderr.write("terminate called after throwing an instance of 'std::bad_alloc'\\n")
        sys.stderr.flush()
        os.abort()
        """,
    "finds_and_grows": """
        import sys
        lines = open(__file__.replace(".py", ".json")).read()
        sys.stdin.readline()
        print(lines, flush=True)
        import grows
        """,
    "finds_and_waits": """
        import sys, time
        lines = open(__file__.replace(".py", ".json")).read()
        sys.stdin.readline()
        print(lines, flush=True)
        time.sleep(60)
        """,
    "aborts": "import os; os.abort()",
    "waits": "import time; time.sleep(60)",
    "fails": "raise ValueError('no memory of this')",
}


@pytest.fixture
def child(tmp_path, monkeypatch):
    """Begin one of these as a child of 300 MB."""
    for name, code in CHILDREN.items():
        lines = code.strip("\n").split("\n")
        indent = len(lines[0]) - len(lines[0].lstrip())
        (tmp_path / f"{name}.py").write_text("\n".join(line[indent:] for line in lines))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    begun = []

    def begin(name, memory=300e6):
        begun.append(Child(name, memory))
        return begun[-1]

    yield begin
    for each in begun:
        each.kill()
        each.close()


@pytest.mark.parametrize("name", ["grows", "has_a_child_that_grows"])
def test_the_tree_of_a_process_is_ended_where_it_takes_too_much(child, name):
    begun = child(name)
    seen = set()
    while begun.running:
        seen.update(walls.tree(begun.pid))

    assert begun.last_words("the solver's process") == (
        "the solver's process needed more memory than the 0.3 GB it may have; use longer epochs "
        "or fewer chunks, or raise the limit with --memory"
    )
    assert begun.starved
    assert len(seen) == 1 + name.startswith("has")
    assert not psutil.wait_procs(seen, timeout=30)[1]


@LINUX
def test_what_asks_for_too_much_at_once_is_refused_it(child):
    """8 TB are never granted: the process fails at once, and holds nothing when it does."""
    assert "than the 0.3 GB it may have" in child("takes_all_at_once").last_words("it")


def test_an_abort_for_want_of_memory_is_told_from_others(child):
    assert "needed more memory" in child("throws").last_words("it")
    assert child("aborts").last_words("it") == f"it was ended by signal {signal.SIGABRT:d}"
    assert child("fails").last_words("it").endswith("ValueError: no memory of this")


def test_a_process_that_someone_ends_is_not_said_to_need_memory(child):
    begun = child("waits")
    os.kill(begun.pid, signal.SIGKILL)

    assert begun.last_words("it") == "it was ended by signal 9"
    assert not begun.starved


@LINUX
def test_the_system_ends_the_solver_before_it_ends_the_one_who_asks(child):
    """Linux ends who has the highest score first when the machine has no memory left."""
    begun = child("waits")
    scores = [
        int((walls.Path("/proc") / who / "oom_score_adj").read_text())
        for who in (str(begun.pid), "self")
    ]

    assert scores[0] > scores[1]


@pytest.fixture
def large():
    """A model that takes 0.4 GB and that no solver of today finishes within a minute."""
    return Problem(open_cluster("dgx-2-te-ccl"), make_collective("all-gather", 32, 1e6))


def test_a_solve_that_needs_more_says_what_would_help(large):
    job = start(large, "te-ccl-milp", memory=60e6)

    with pytest.raises(SolveError, match=r"needed more memory than the 0\.06 GB it may have; use"):
        job.result()


@pytest.fixture
def found():
    """A plan, found in no time."""
    return solve(Problem(open_cluster("dgx-1v"), make_collective("all-gather", 8, 1e6)), "ring")


@pytest.fixture
def solver(child, tmp_path, monkeypatch):
    """Let solves of a module be done by one of these, which says what it is given first."""

    def pretend(where, name, *events):
        (tmp_path / f"{name}.json").write_text("\n".join(json.dumps(each) for each in events))
        monkeypatch.setattr(where, "Child", lambda _module, memory: child(name, memory))

    return pretend


def progress(result, written=None):
    """Return the line that tells a plan."""
    told = {"seconds": 0.1, "incumbent": result.makespan, "bound": 1.0, "message": "a plan"}
    written = Sender(result.problem).text(result) if written is None else written
    return {"event": "progress", **told, "result": written}


def test_a_solve_that_needs_more_keeps_its_best_plan(solver, found):
    solver(solve_job, "finds_and_grows", progress(found))
    result = start(found.problem, memory=200e6).result()

    assert result.stop is Stop.MEMORY
    assert result.plan == found.plan
    assert "than the 0.2 GB it may have" in result.log[-1]


def test_in_a_comparison_it_keeps_its_best_plan_too(solver, found):
    begin = {"event": "begin", "cell": 0}
    bound = {"event": "bound", "size": 0, "bound": bound_to_json(found.bound)}
    solver(jobs, "finds_and_grows", bound, begin, progress(found, result_to_json(found)))
    news = iter(start_comparison(found.problem, ["list"], sizes=[1e6], memory=200e6))
    (row,) = [each.row for each in news if each.row is not None]

    assert row.result.stop is Stop.MEMORY
    assert row.result.plan == found.plan


def test_a_solver_that_does_not_stop_is_ended_and_keeps_its_best_plan(solver, found, monkeypatch):
    """It may take two seconds more than the tenth that it was given."""
    monkeypatch.setattr(walls, "PATIENCE", 2.0)
    solver(solve_job, "finds_and_waits", progress(found))
    result = start(found.problem, time_limit=0.1).result()

    assert result.stop is Stop.TIME_LIMIT
    assert result.plan == found.plan
    assert result.log[-1] == (
        "the solver's process did not stop at its limit of 0.1 s and was ended"
    )


def test_a_solver_that_does_not_stop_before_its_first_plan_says_so(large, monkeypatch):
    """It has 0.1 s beyond its limit, less than starting Python takes."""
    monkeypatch.setattr(walls, "PATIENCE", 0.1)
    job = start(large, "te-ccl-milp", time_limit=1e-3)

    with pytest.raises(LimitReached, match="did not stop at its limit"):
        job.result()


def test_a_limit_of_nothing_is_refused(large):
    with pytest.raises(ProblemError, match="give more than 0, such as 4e9"):
        start(large, memory=0)


def test_solves_share_the_memory_of_the_machine(monkeypatch):
    """Of 100 GB with 90 free 80 % are shared; with 10 free one gets 8, and never less than 1."""

    def machine(free):
        found = psutil.virtual_memory()._replace(total=100e9, available=free)
        monkeypatch.setattr(psutil, "virtual_memory", lambda: found)
        monkeypatch.setattr(walls, "_groups", lambda: iter(()))

    machine(90e9)
    assert walls.memory_each() == pytest.approx(72e9)
    assert walls.memory_each(4) == pytest.approx(20e9)
    machine(10e9)
    assert walls.memory_each(4) == pytest.approx(8e9)
    assert walls.memory_each(1000) == pytest.approx(1e9)


def test_a_container_has_the_memory_that_its_group_may_take(monkeypatch, tmp_path):
    """Of 8 GB 3 are used, 1 of which is cache that the kernel gives back: 6 are free."""
    for name, text in {
        "memory.max": "8000000000",
        "memory.current": "3000000000",
        "memory.stat": "anon 2000000000\ninactive_file 1000000000",
    }.items():
        (tmp_path / name).write_text(text)
    row = walls._group(tmp_path, *walls._FILES[""])

    assert row == (8e9, 2e9)
    monkeypatch.setattr(walls, "_groups", lambda: iter([row]))
    assert walls.memory_each() == pytest.approx(
        min(0.8 * 6e9, 0.8 * psutil.virtual_memory().available)
    )
