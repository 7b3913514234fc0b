"""Several processes write into one catalog, and are killed while they do."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from formulations.campaigns.catalog import Catalog

WRITING = Path(__file__).with_name("writing.py")
ROOT = Path(__file__).resolve().parents[4]
KILLS = 12


@contextmanager
def writers(path, many):
    """Begin processes whose children write; end all of them."""
    started = [
        subprocess.Popen(
            [sys.executable, str(WRITING), str(path), str(1_000_000 * (i + 1))],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for i in range(many)
    ]
    try:
        yield started
    finally:
        for each in started:
            os.killpg(each.pid, signal.SIGKILL)
            each.stdout.close()
            each.wait()


def told(process):
    """Read a line of a process: what it is about, and a number."""
    word, number = process.stdout.readline().split()
    return word, float(number)


def until_kept(process):
    """Read the id of the writer that begins, and what it keeps first; return both."""
    kept: list[float] = []
    while True:
        word, number = told(process)
        if word == "writer":
            return int(number), kept, told(process)[1]
        kept.append(number)


@pytest.mark.slow
def test_what_was_kept_survives_kill_9_of_writers_in_the_middle(tmp_path):
    """Two write at a time and are killed at random moments after their first plans, 12 in all.

    Afterwards the file is intact, every plan that a writer has said is there, and all verify.
    """
    path = tmp_path / "catalog.sqlite"
    chance = random.Random(0)
    acknowledged = set()
    with writers(path, 2) as pair:
        for turn in range(KILLS + 2):
            number, before, first = until_kept(pair[turn % 2])
            acknowledged |= {*before, first}
            acknowledged |= {told(pair[turn % 2])[1] for _ in range(chance.randrange(4))}
            time.sleep(chance.uniform(0.0, 0.02))
            os.kill(number, signal.SIGKILL)

    connection = sqlite3.connect(path)
    assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    connection.close()
    catalog = Catalog(path)
    assert acknowledged <= {each.size for each in catalog.entries()}
    assert len(acknowledged) > KILLS + 2
    assert catalog.faults() == ()


def test_several_processes_begin_one_catalog_at_the_same_time(tmp_path):
    """Three make the same file at once; each goes on as if it were alone."""
    path = tmp_path / "new" / "catalog.sqlite"
    with writers(path, 3) as started:
        firsts = {until_kept(each)[2] for each in started}

    assert firsts == {1e6, 2e6, 3e6}
    assert firsts <= {each.size for each in Catalog(path).entries()}
