"""What becomes of a task whose process takes too long, takes too much or dies."""

import threading
import time
from types import SimpleNamespace

import msgspec
import pytest

from ccl.errors import SolveError
from formulations.campaigns.sweeps import pool
from formulations.campaigns.sweeps.pool import Pool
from formulations.campaigns.sweeps.spec import read_spec
from formulations.campaigns.sweeps.tasks import tasks_of

SPEC = {"clusters": "dgx-1v", "collectives": "all-gather", "sizes": "1MB", "formulations": "ring"}


@pytest.fixture
def workers(monkeypatch):
    """A pool on a worker of one thread, whose processes act as they are told."""
    monkeypatch.setattr(pool, "MODULE", "tests.formulations.campaigns.sweeps.acting")
    monkeypatch.setattr(pool, "patience", lambda limit: None if limit is None else 4 * limit)
    made, worker = Pool(), SimpleNamespace(name=7, state=SimpleNamespace(nthreads=1))
    made.setup(worker)
    yield made
    made.teardown(worker)


def task(what, **changes):
    [made] = tasks_of(read_spec(SPEC))
    return msgspec.structs.replace(made, formulation=what, **changes)


def test_one_process_solves_task_after_task(workers):
    values = [workers.solve(task("solves")) for _ in range(3)]

    assert [each["makespan"] for each in values] == [1.0] * 3
    assert [each["attempts"] for each in values] == [1] * 3
    assert (values[0]["worker"], values[0]["result"], values[0]["fingerprint"]) == ("7", b"1", "f")
    assert len(workers._idle) == 1


def test_a_task_whose_process_died_is_tried_again(workers, tmp_path):
    values = workers.solve(task("dies once", options={"file": str(tmp_path / "died")}))

    assert (values["makespan"], values["attempts"], values["why_not"]) == (1.0, 2, "")


def test_after_the_last_retry_the_row_says_why(workers):
    values = workers.solve(task("dies always", retries=2))

    assert values["why_not"] == "the solver's process was ended by signal 9 (3 attempts)"
    assert (values["attempts"], values["makespan"], values["fingerprint"]) == (3, None, "f")


def test_a_bug_costs_its_own_task_and_is_named(workers):
    failed, solved = workers.solve(task("fails", retries=0)), workers.solve(task("solves"))

    assert failed["why_not"].endswith("ended without a result: RuntimeError: a bug")
    assert solved["makespan"] == 1.0


def test_who_does_not_stop_is_ended_once_and_replaced(workers):
    values = workers.solve(task("for ever", time_limit=0.2))

    assert values["attempts"] == 1
    assert "did not stop at the limit of 0.2 s" in values["why_not"]
    assert workers.solve(task("solves"))["makespan"] == 1.0


def test_who_is_ended_keeps_the_best_plan_that_was_told(workers):
    values = workers.solve(task("finds, for ever", time_limit=0.5))

    assert (values["makespan"], values["result"], values["stop"]) == (2.0, b"2", "TIME_LIMIT")
    assert values["why_not"] == ""


def test_who_does_not_even_begin_is_ended(workers, monkeypatch):
    monkeypatch.setattr(pool, "START", 1.0)
    values = workers.solve(task("loads for ever", retries=0, time_limit=None))

    assert "had not begun to solve after 1 s" in values["why_not"]


def test_who_takes_too_much_memory_is_ended_and_says_so(workers):
    values = workers.solve(task("eats", memory=150e6, time_limit=None))

    assert values["attempts"] == 1
    assert "more memory than the 0.15 GB" in values["why_not"]
    assert workers.solve(task("solves", memory=150e6))["makespan"] == 1.0


def test_memory_may_have_been_taken_by_tasks_before(workers):
    """A process that has solved others is replaced before a task is told to be too large."""
    workers.solve(task("solves", memory=150e6))
    values = workers.solve(task("finds, then eats", memory=150e6, time_limit=None))

    assert (values["stop"], values["makespan"], values["attempts"]) == ("MEMORY", 2.0, 1)


def test_a_process_that_ended_while_idle_costs_no_attempt(workers):
    workers.solve(task("solves"))
    workers._idle[0].child.kill()

    assert workers.solve(task("solves", retries=0))["attempts"] == 1


def test_closing_ends_what_runs_and_begins_nothing(workers):
    """As Ctrl-C does: a task in the middle is left at once."""
    ended = []
    thread = threading.Thread(target=lambda: ended.append(workers.solve(task("for ever"))))
    thread.start()
    while not workers._busy:
        time.sleep(0.01)
    [process] = workers._busy
    workers.teardown(None)
    thread.join(10)

    assert len(ended) == 1
    assert not process.child.running
    with pytest.raises(SolveError, match="worker 7 is being closed"):
        workers.solve(task("solves"))
