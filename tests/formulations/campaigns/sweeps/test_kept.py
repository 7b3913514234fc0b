"""Rows in a folder: what was written stays, what was half written is passed over."""

import json
import os
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from ccl.collective import all_gather
from ccl.errors import FormatError
from ccl.problem import Problem
from formulations import solve
from formulations.campaigns.sweeps import store as kept
from formulations.campaigns.sweeps.rows import packed, schema, solved_values, unpacked, unsolved
from formulations.campaigns.sweeps.spec import read_spec
from formulations.campaigns.sweeps.store import is_sweep, keeping, open_result, read_rows
from formulations.campaigns.sweeps.tasks import tasks_of
from tests.ccl.clusters import star

SPEC = read_spec(
    {
        "clusters": [star(3)],
        "collectives": "all-gather",
        "sizes": "1KB..64KB x2",
        "formulations": ["ring", "direct"],
    }
)
TASKS = tasks_of(SPEC)


def values(task, *, wall=1.0, **changes):
    return unsolved(task, "none", version="0") | {"wall": wall} | changes


def begin(keeper, tasks=TASKS):
    keeper.begin(SPEC, [each.key for each in tasks], version="0")


def files(folder):
    return sorted(each.name for each in folder.glob("*rows*"))


def test_what_is_flushed_is_there_while_the_sweep_runs(tmp_path):
    with keeping(tmp_path) as keeper:
        begin(keeper)
        keeper.add(values(TASKS[1]))
        keeper.flush()
        assert read_rows(tmp_path) == ()  # not a second has passed
        keeper.add(values(TASKS[0]))
        keeper.flush(now=True)
        there = read_rows(tmp_path)
        keeper.add(values(TASKS[2]))

    assert [each.task for each in there] == [TASKS[0].key, TASKS[1].key]
    assert [each.task for each in read_rows(tmp_path)] == [each.key for each in TASKS[:3]]


def test_a_row_waits_a_second_at_most(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "FLUSH", 0.0)
    with keeping(tmp_path) as keeper:
        begin(keeper)
        keeper.add(values(TASKS[0]))
        keeper.flush()
        assert len(read_rows(tmp_path)) == 1


def test_many_files_become_one_and_the_last_row_of_a_task_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "FILES", 3)
    with keeping(tmp_path) as keeper:
        begin(keeper)
        for number, task in enumerate((*TASKS[:4], TASKS[0])):
            keeper.add(values(task, wall=float(number)))
            keeper.flush(now=True)
        assert files(tmp_path) == ["rows-00000004.parquet", *files(tmp_path)[1:]]
        assert len(files(tmp_path)) == 3
        keeper.compact()

    rows = read_rows(tmp_path)
    assert len(files(tmp_path)) == 1
    assert [each.wall for each in rows] == [4.0, 1.0, 2.0, 3.0]


def test_a_kill_between_joining_and_tidying_repeats_nothing(tmp_path):
    """The joined file is there and the old ones are too."""
    with keeping(tmp_path) as keeper:
        begin(keeper)
        for task in TASKS[:3]:
            keeper.add(values(task))
            keeper.flush(now=True)
    old = {each: (tmp_path / each).read_bytes() for each in files(tmp_path)}
    with keeping(tmp_path) as keeper:
        keeper.compact()
    for name, content in old.items():
        (tmp_path / name).write_bytes(content)

    assert len(read_rows(tmp_path)) == 3


def test_a_file_that_was_being_written_is_passed_over_and_taken_away(tmp_path):
    with keeping(tmp_path) as keeper:
        begin(keeper)
        keeper.add(values(TASKS[0]))
    [whole] = files(tmp_path)
    (tmp_path / ".rows-00000009.parquet").write_bytes((tmp_path / whole).read_bytes()[:100])

    assert len(read_rows(tmp_path)) == 1
    with keeping(tmp_path) as keeper:
        assert keeper.there() == {TASKS[0].key: "none"}
    assert files(tmp_path) == [whole]


def test_damage_and_foreign_files_are_told_with_their_names(tmp_path):
    with keeping(tmp_path) as keeper:
        begin(keeper)
        keeper.add(values(TASKS[0]))
    [whole] = files(tmp_path)
    content = (tmp_path / whole).read_bytes()

    (tmp_path / whole).write_bytes(content[:-20])
    with pytest.raises(FormatError, match=rf"{whole} cannot be read"):
        read_rows(tmp_path)
    pq.write_table(
        pq.ParquetFile(pq_file(tmp_path, content)).read().drop(["wall"]), tmp_path / whole
    )
    with pytest.raises(FormatError, match="look at wall"):
        read_rows(tmp_path)
    with pytest.raises(FormatError, match="not the folder of a sweep"):
        read_rows(tmp_path / "none")


def pq_file(folder, content):
    path = folder / "other.parquet"
    path.write_bytes(content)
    return path


def test_columns_carry_their_units(tmp_path):
    with keeping(tmp_path) as keeper:
        begin(keeper)
        keeper.add(values(TASKS[0]))
    read = pq.read_schema(tmp_path / files(tmp_path)[0])
    units = {each.name: (each.metadata or {}).get(b"unit", b"").decode() for each in read}

    assert read.metadata[b"format"] == b"topoloom-sweep/1"
    assert (units["makespan"], units["busbw"], units["size"], units["wall"]) == (
        "µs",
        "GB/s",
        "B",
        "s",
    )
    assert read.equals(schema())


def test_a_result_is_verified_again_when_it_is_opened(tmp_path):
    result = solve(problem(), "ring")
    row = values(TASKS[0]) | solved_values(result)
    told = unpacked(row["result"])
    told["plan"]["sends"] = told["plan"]["sends"][1:]
    with keeping(tmp_path) as keeper:
        begin(keeper)
        keeper.add(row)
        keeper.add(values(TASKS[1]))
        keeper.add(values(TASKS[2]) | row | {"task": TASKS[2].key, "fingerprint": "0"})
        keeper.add(values(TASKS[3]) | row | {"task": TASKS[3].key, "result": packed(told)})

    assert open_result(tmp_path, TASKS[0].key).plan == result.plan
    for place, words in ((1, "no plan: none"), (2, "of another problem"), (3, "chunk")):
        with pytest.raises(Exception, match=words):
            open_result(tmp_path, TASKS[place].key)
    with pytest.raises(FormatError, match="no row of the task 'x'"):
        open_result(tmp_path, "x")


def problem():
    return Problem(star(3), all_gather(3, 1e6))


@pytest.mark.parametrize("content", [b"no gzip", packed([1])[:-9], b""])
def test_a_result_that_is_cut_off_is_none(content):
    with pytest.raises(FormatError, match="solve it again"):
        unpacked(content)


def test_two_sweeps_do_not_write_one_folder(tmp_path):
    with (
        keeping(tmp_path),
        pytest.raises(FormatError, match=rf"another sweep \(process {os.getpid()}\)"),
        keeping(tmp_path),
    ):
        pass


HOLD = """
import os, signal, sys
from pathlib import Path
from formulations.campaigns.sweeps.store import keeping
with keeping(Path(sys.argv[1])):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_lock_of_who_was_killed_holds_nobody_up(tmp_path):
    done = subprocess.run([sys.executable, "-c", HOLD, str(tmp_path)], check=False)

    assert done.returncode == -9
    assert (tmp_path / "lock").read_text("ascii").isdigit()
    with keeping(tmp_path) as keeper:
        begin(keeper)
    assert is_sweep(tmp_path)
    assert json.loads((tmp_path / "sweep.json").read_text())["format"] == "topoloom-sweep/1"
