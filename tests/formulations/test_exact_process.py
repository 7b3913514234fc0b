"""The constraint solver has a process of its own: what is loaded where, and no orphan."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import psutil
import pytest

from ccl.collective import make_collective
from ccl.errors import SolveError
from formulations.engines.cp_sat.instance import make_instance
from formulations.engines.cp_sat.search import Effort, TimedChild, close_gap
from formulations.engines.list_scheduling.multistart import Task
from formulations.engines.list_scheduling.search import Side
from formulations.engines.list_scheduling.timed import transfers_of
from gallery import open_cluster


def work(cluster: str) -> Task:
    topology = open_cluster(cluster)
    collective = make_collective("all-gather", len(topology.ranks), 4e6)
    return Side(transfers_of(topology), collective).task()


def request(cluster: str, *, upper: float, seconds: float) -> dict:
    asked = make_instance(work(cluster), upper=upper).request(lower=0.0, hint=None)
    return {**asked, "waits": False, "seconds": seconds, "workers": 1, "seed": 0}


def gone(pid: int, *, within: float) -> bool:
    end = time.monotonic() + within
    while time.monotonic() < end:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


def run_code(code: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "imports",
    [
        "import highspy; import ortools.sat.python.cp_model",
        "import ortools.sat.python.cp_model; import highspy",
    ],
)
def test_ortools_and_highspy_still_cannot_be_loaded_together(imports):
    """Both carry a library called libhighs, of which a process takes the first.

    When this fails, the wheels agree again and the process of its own is no longer needed.
    """
    done = run_code(imports)

    assert done.returncode != 0
    assert "undefined symbol" in done.stderr


def test_the_solving_process_never_loads_highs():
    """It is asked for a whole solve, then says what it has loaded."""
    code = """
        import io, os, sys
        from formulations.engines.cp_sat.worker import serve
        answers = io.BytesIO()
        serve(sys.stdin.buffer, answers)
        print(*sys.modules)
        print(answers.getvalue().decode(), flush=True)
        os._exit(0)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        child.stdin.write(json.dumps(request("ring:gpus=3", upper=100.0, seconds=10)) + "\n")
        child.stdin.flush()
        # The pipe stays open until all is read: when it closes, the child ends at once.
        loaded, *answers = child.stdout.read().splitlines()
    events = [json.loads(line)["event"] for line in answers if line]

    assert "ortools.sat.python.cp_model" in loaded.split()
    assert not {"highspy", "cvxpy"} & {name.partition(".")[0] for name in loaded.split()}
    assert events[0] == "size"
    assert events[-1] == "end"


def test_the_asking_process_never_loads_ortools():
    """It has HiGHS for the other formulations."""
    code = """
        import sys
        from ccl.collective import make_collective
        from ccl.problem import Problem
        from formulations import solve
        from gallery import open_cluster
        import highspy
        problem = Problem(open_cluster("dgx-1v"), make_collective("all-gather", 8, 1e6))
        result = solve(problem, "cp-sat", time_limit=60)
        assert any("constraint programming" in line for line in result.log)
        print(*sys.modules)
    """
    done = run_code(code)

    assert done.returncode == 0, done.stderr
    names = {name.partition(".")[0] for name in done.stdout.split()}
    assert "highspy" in names
    assert "ortools" not in names


ORDERS = (
    "import ortools.sat.python.cp_model, numba",
    "import numba, ortools.sat.python.cp_model",
    "import cvxpy, highspy, numba",
    "import ortools.linear_solver.pywraplp",
    "import numba",
    "import ortools",
)


@pytest.mark.parametrize("imports", ORDERS)
@pytest.mark.cover(1)
def test_whatever_was_imported_before_every_solver_solves(imports):
    """HiGHS, CP-SAT, compiled searches and bounds; the second of two that clash has a process."""
    code = f"""
        {imports}
        from ccl.collective import make_collective
        from ccl.problem import Problem
        from formulations import solve
        from gallery import open_cluster
        problem = Problem(open_cluster("ring:gpus=3"), make_collective("all-gather", 3, 3e6))
        heard = []
        for name in ("te-ccl-milp", "cp-sat", "list"):
            result = solve(problem, name, progress=heard.append)
            assert abs(result.makespan - 20.7) < 1e-6, result.makespan
            assert name in ("list", "cp-sat") or result.size is not None
        assert heard
    """
    done = run_code(code)

    assert done.returncode == 0, done.stderr


def test_cvxpy_is_loaded_without_statistics_and_has_its_entropies_all_the_same():
    """`scipy.stats` takes as long to load as the rest of CVXPY, and its functions come when called.

    The entropy of (1/2, 1/2) is ln 2.
    """
    code = """
        import math, sys
        from formulations.solvers import cp
        cp.Variable()
        assert "scipy.stats" not in sys.modules
        entropy = sys.modules["cvxpy.atoms.quantum_rel_entr"].entropy
        assert math.isclose(entropy([0.5, 0.5]), math.log(2))
        from scipy.stats import norm
    """
    done = run_code(code)

    assert done.returncode == 0, done.stderr


def test_highs_that_is_shut_out_says_why():
    code = """
        import ortools.sat.python.cp_model
        from ccl.errors import SolverMissing
        from formulations.solvers.cvxpy_highs import Backend
        try:
            Backend().check()
        except SolverMissing as error:
            print(error)
    """
    done = run_code(code)

    assert "which has loaded OR-tools before: both carry a library called libhighs" in done.stdout


HARD = "dgx-2-te-ccl"
"""An all-gather of 4 MB without copies: it takes longer than a test."""


def test_the_child_ends_when_nobody_listens_any_more():
    child = TimedChild(request(HARD, upper=40.0, seconds=600), seconds=600)
    with child:
        lines = iter(child)
        assert next(lines)["event"] == "size"
        assert psutil.pid_exists(child.pid)

    assert gone(child.pid, within=2.0)


def test_a_child_that_does_not_keep_its_time_is_killed(monkeypatch):
    """It is given a minute by the request and a tenth of a second by its parent."""
    monkeypatch.setattr("formulations.engines.cp_sat.search.GRACE", 0.0)
    asked = request(HARD, upper=40.0, seconds=60)
    begin = time.monotonic()
    with TimedChild(asked, seconds=0.1) as child:
        lines = list(child)

    assert time.monotonic() - begin < 30
    assert child.late
    assert all(line["event"] != "end" for line in lines)


def test_a_solver_that_dies_is_reported():
    news = close_gap(work(HARD), upper=40.0, effort=Effort(seconds=60))
    assert next(news).size is not None
    (child,) = [
        each
        for each in psutil.Process().children()
        if each.status() != psutil.STATUS_ZOMBIE
        and "formulations.engines.cp_sat.worker" in " ".join(each.cmdline())
    ]
    os.kill(child.pid, signal.SIGKILL)

    with pytest.raises(SolveError, match="was ended by signal 9"):
        list(news)


def test_the_solver_dies_with_its_parent():
    """The parent is killed while the solver is busy: nothing is left that could clean up."""
    code = """
        import json, sys, time
        from formulations.engines.cp_sat.search import TimedChild
        with TimedChild(json.loads(sys.stdin.readline()), seconds=600) as child:
            next(iter(child))
            print(child.pid, flush=True)
            time.sleep(600)
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        parent.stdin.write(json.dumps(request(HARD, upper=40.0, seconds=600)) + "\n")
        parent.stdin.flush()
        pid = int(parent.stdout.readline())
        parent.kill()

    assert gone(pid, within=2.0)
