"""Whole sweeps: the same rows on one or two workers, after a kill, and on a Dask scheduler."""

import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest
from distributed import LocalCluster

import formulations
from ccl.errors import ProblemError, SolveError
from formulations.campaigns.sweeps.rows import without_clock
from formulations.campaigns.sweeps.running import Progress
from formulations.campaigns.sweeps.store import is_sweep, read_rows

SPEC = {
    "clusters": ["ring:gpus=[3,4]", "star:gpus=4"],
    "collectives": ["all-gather", "all-to-all"],
    "sizes": ["1KB", "1MB"],
    "formulations": ["ring", "direct"],
    "time_limit": 20,
}


def listening():
    """Return the ports on which this process listens, for other tests too."""
    found = psutil.Process().net_connections()
    return {each.laddr for each in found if each.status == psutil.CONN_LISTEN}


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A sweep on two workers, its news, and what listened and ran beside it."""
    news, beside, before = [], set(), listening()

    def told(progress):
        news.append(progress)
        beside.update(listening() - before)

    found = formulations.sweep(SPEC, into=tmp_path_factory.mktemp("two"), workers=2, progress=told)
    return found, news, beside


def test_every_task_has_its_row_and_refusals_say_why(two):
    """3 clusters, 2 collectives, 2 sizes, 2 methods; a ring does no all-to-all."""
    found, _, _ = two

    assert (found.tasks, len(found.rows), found.complete) == (24, 24, True)
    planless = [each for each in found.rows if each.why_not]
    assert {(each.formulation, each.collective) for each in planless} == {("ring", "all-to-all")}
    assert len(planless) == 6
    assert all("it supports all-gather" in each.why_not for each in planless)
    assert read_rows(found.folder) == found.rows


def test_a_row_says_what_its_result_says(two):
    """3 GPUs in a ring of 50 GB/s exchange thirds; the whole result is in the row."""
    found, _, _ = two
    row = next(each for each in found.rows if each.makespan is not None)
    result = found.result(row.task)

    assert (row.gpus, row.collective, row.size, row.formulation) == (3, "all-gather", 1e3, "ring")
    assert row.makespan == pytest.approx(result.makespan, rel=1e-12)
    assert row.busbw == pytest.approx(result.busbw, rel=1e-12)
    assert (row.bound, row.gap) == (result.bound.makespan, result.gap)
    assert (row.fingerprint, row.stop) == (result.problem.fingerprint, result.stop.name)
    assert row.busbw == pytest.approx(row.algbw * 2 / 3)


def test_news_come_row_by_row(two):
    _, news, _ = two

    assert [each.done for each in news] == list(range(25))
    assert news[0].left is None
    assert (news[-1].planless, news[-1].left) == (6, 0.0)
    assert {each.row.worker for each in news[1:]} == {"0", "1"}


def test_nothing_listens_and_nothing_stays(two):
    """Neither a port nor a process nor a file elsewhere."""
    found, _, beside = two

    assert beside == set()
    names = {each.name for each in found.folder.iterdir()}
    assert names == {"lock", "sweep.json", *(name for name in names if name.startswith("rows-"))}
    assert len(names) == 3


def test_the_same_sweep_again_solves_nothing(two, monkeypatch):
    """Not even Dask is started."""
    found, _, _ = two
    monkeypatch.setattr("formulations.campaigns.sweeps.pool.solvers", None)

    again = formulations.sweep(SPEC, into=found.folder)

    assert again == found


def test_a_changed_spec_keeps_the_rows_that_still_belong(two, monkeypatch, tmp_path):
    """Rows that no longer do are left out, and are there again when the spec is."""
    found, _, _ = two
    monkeypatch.setattr("formulations.campaigns.sweeps.pool.solvers", None)

    less = formulations.sweep(SPEC | {"formulations": "direct"}, into=found.folder)
    assert less.rows == tuple(each for each in found.rows if each.formulation == "direct")
    assert formulations.sweep(SPEC, into=found.folder).rows == found.rows


def test_what_is_to_stop_stops_and_keeps_its_rows(tmp_path):
    stop = threading.Event()
    stop.set()

    found = formulations.sweep(SPEC, into=tmp_path, stop=stop)

    assert (found.rows, found.complete, found.tasks) == ((), False, 24)
    assert is_sweep(tmp_path)


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr("formulations.campaigns.sweeps.pool.PATIENCE", 0.2)

    with pytest.raises(SolveError, match=r"no Dask scheduler at tcp://127\.0\.0\.1:9"):
        formulations.sweep(SPEC, "tcp://127.0.0.1:9", into=tmp_path)


RUN = f"""
import os, signal, sys
from pathlib import Path
import psutil
import formulations
from formulations.campaigns.sweeps import store

store.FLUSH = 0.0

def told(progress):
    if progress.done == 12:
        pids = [str(each.pid) for each in psutil.Process().children(recursive=True)]
        Path(sys.argv[2]).write_text(" ".join(pids))
        os.kill(os.getpid(), signal.SIGKILL)

formulations.sweep({SPEC!r}, into=sys.argv[1], workers=2, progress=told)
"""


@pytest.mark.slow
@pytest.mark.slow
def test_killed_at_half_and_begun_again_on_one_worker_it_ends_with_the_same_rows(two, tmp_path):
    """kill -9; solvers end by themselves, and rows that were there are not solved again."""
    found, _, _ = two
    folder, pids = tmp_path / "rows", tmp_path / "pids"
    done = subprocess.run([sys.executable, "-c", RUN, str(folder), str(pids)], check=False)
    assert done.returncode == -signal.SIGKILL
    before = read_rows(folder)
    assert len(before) == 12
    children = [int(each) for each in pids.read_text().split()]
    end = time.monotonic() + 120
    while time.monotonic() < end and any(map(psutil.pid_exists, children)):
        time.sleep(0.05)
    assert children
    assert not any(map(psutil.pid_exists, children))

    news: list[Progress] = []
    resumed = formulations.sweep(SPEC, into=folder, workers=1, progress=news.append)

    assert [each.done for each in news] == list(range(12, 25))
    assert set(before) <= set(resumed.rows)
    assert without_clock(resumed.rows) == without_clock(found.rows)


@pytest.mark.slow
@pytest.mark.slow
def test_a_scheduler_lends_its_workers_and_one_that_is_killed_costs_no_row(two, tmp_path):
    """Processes of Dask on the loopback; its nanny starts another worker."""
    found, _, _ = two
    killed = []

    def told(progress):
        if progress.done == 5:
            [worker] = workers()
            killed.append(worker)
            psutil.Process(worker).kill()

    with LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0",
        local_directory=str(tmp_path),
        silence_logs=50,
    ) as cluster:

        def workers():
            return [each.pid for each in cluster.workers.values()]

        remote = formulations.sweep(
            SPEC, cluster.scheduler_address, into=tmp_path / "rows", progress=told
        )

    assert len(killed) == 1
    assert without_clock(remote.rows) == without_clock(found.rows)


def test_workers_are_either_here_or_of_a_scheduler(tmp_path):
    with pytest.raises(ProblemError, match="its own workers"):
        formulations.sweep(SPEC, "tcp://127.0.0.1:9", into=tmp_path, workers=2)
