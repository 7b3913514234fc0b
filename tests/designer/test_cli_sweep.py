"""``topoloom sweep``: tasks are listed, rows told, a mistake is one sentence."""

import json
import os
import signal

import pytest

from ccl import __version__
from ccl.collective import make_collective
from ccl.problem import Problem
from designer.cli import main
from formulations import solve
from formulations.campaigns.sweeps import running
from formulations.campaigns.sweeps.rows import solved_values, unsolved
from formulations.campaigns.sweeps.spec import read_spec
from formulations.campaigns.sweeps.store import keeping
from formulations.campaigns.sweeps.tasks import opened, tasks_of

SPEC = """
clusters: ring:gpus=[3,4]
collectives: [all-gather, all-to-all]
sizes: 1MB
formulations: [ring, direct]
time_limit: 3
"""


@pytest.fixture
def run(capsys):
    """Run the command line; return exit code, output and errors."""

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main(["sweep", *map(str, arguments)])
        out, err = capsys.readouterr()
        return left.value.code, " ".join(out.split()).replace("\N{NO-BREAK SPACE}", " "), err

    return run


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "night.yaml"
    path.write_text(SPEC, "utf-8")
    return path


def fill(spec, tasks):
    """Solve tasks here and keep their rows beside the file."""
    asked = read_spec(spec)
    with keeping(spec.with_suffix(".sweep")) as keeper:
        keeper.begin(asked, (each.key for each in tasks_of(asked)), version=__version__)
        for task in tasks:
            values = unsolved(task, "it supports all-gather only", version=__version__)
            if task.formulation == "direct":
                made = make_collective(task.collective, task.gpus, task.size)
                values |= solved_values(solve(Problem(opened(task.cluster), made), "direct"))
            keeper.add(values | {"wall": 2.0, "attempts": 1})


def test_tasks_are_listed_with_what_is_known_of_their_time(run, spec):
    """8 tasks at 3 s on 2 workers are 12 s; 4 with rows of 2 s each leave 4, likely 4 s."""
    code, out, err = run(spec, "--dry-run", "--workers", 2)

    assert (code, err) == (0, "")
    assert "all-gather of 1 MB on ring:gpus=3 by ring" in out
    assert "8 tasks to solve 8 by 2 workers limits allow 12 s" in out
    fill(spec, tasks_of(read_spec(spec))[:4])
    assert (
        "with rows 4 to solve 4 by 2 workers likely 4 s limits allow 6 s"
        in run(spec, "--dry-run", "--workers", 2)[1]
    )
    answer = json.loads(run(spec, "--dry-run", "--workers", 1, "--json")[1])
    assert (len(answer["tasks"]), answer["left"], answer["likely_s"]) == (8, 4, 8.0)


def test_the_best_of_each_question_is_told_and_why_others_have_no_plan(run, spec):
    fill(spec, tasks_of(read_spec(spec)))

    code, out, err = run(spec)

    assert (code, err) == (0, "")
    assert "ring:gpus=4 all-gather 1 MB direct" in out
    assert "8 rows of 8 tasks in" in out
    assert "with a plan 4" in out
    assert "4 x it supports all-gather only" in out
    best = json.loads(run(spec, "--json")[1])["best"]
    assert [each["formulation"] for each in best] == ["direct"] * 4


def test_what_is_stopped_says_how_it_goes_on(run, spec, monkeypatch):
    """Ctrl-C, here as the first task is to be solved."""
    monkeypatch.setattr(running, "_solve", lambda *_, **_named: os.kill(os.getpid(), signal.SIGINT))
    fill(spec, tasks_of(read_spec(spec))[:3])

    code, out, err = run(spec)

    assert code == 130
    assert "3 rows of 8 tasks" in out
    assert err.startswith("stopped; 3 of 8 rows are in")
    assert err.endswith("and the same command goes on\n")


def test_a_mistake_is_one_sentence(run, spec):
    spec.write_text(SPEC + "cluster: dgx-1v\n", "utf-8")

    code, out, err = run(spec)

    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "unknown field `cluster`" in err
