"""``topoloom solve``: one JSON object, a kept result, and nothing lost at Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ccl.errors import SolveError
from ccl.result import Stop
from ccl.serialization.documents import document, read_document, write_document
from designer.cli import main
from designer.cli.solve import followed
from formulations import DEFAULT, available, option_fields
from formulations.core.run import Progress
from gallery import open_cluster
from tests.ccl.clusters import ring
from tests.ccl.documents import solved
from tests.formulations.test_conformance import ELSEWHERE

KEYS = {
    "formulation",
    "status",
    "makespan_us",
    "algbw_GBps",
    "busbw_GBps",
    "bound_us",
    "gap",
    "solve_s",
    "epochs",
    "variables",
    "constraints",
    "stop",
    "bound_kind",
    "log",
}
NAMES = tuple(each.name for each in available())
MILP = ("--formulation", "te-ccl-milp")


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run the command in an empty folder; return exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main(["solve", *(str(each) for each in arguments)])
        out, err = capsys.readouterr()
        return left.value.code, out, err

    return run


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.cover(4)
def test_every_formulation_answers_with_one_json_object(run, name):
    """Each on a collective of its own, on four GPUs joined all to all or on its own cluster."""
    kinds = next(each.collectives for each in available() if each.name == name)
    plain = ("all-to-all", "all-gather", "broadcast", "all-reduce")
    kind = next(each for each in plain if each in kinds)
    cluster = ELSEWHERE.get(name, "full-mesh:gpus=4")
    code, out, err = run(
        cluster, "--formulation", name, "--collective", kind, "--size", "1MB", "--json"
    )
    told = json.loads(out)

    assert (code, err) == (0, "")
    assert set(told) >= KEYS
    assert told["formulation"] == name
    assert told["bound_us"] <= told["makespan_us"] * (1 + 1e-9)
    assert told["gap"] == pytest.approx(told["makespan_us"] / told["bound_us"] - 1, abs=1e-9)
    assert told["algbw_GBps"] == pytest.approx(1e3 / told["makespan_us"])
    share = 1 - 1 / len(open_cluster(cluster).ranks)
    factor = {"broadcast": 1.0, "all-reduce": 2 * share}.get(kind, share)
    assert told["busbw_GBps"] == pytest.approx(factor * 1e3 / told["makespan_us"])


def test_the_command_of_the_readme_prints_what_it_promises():
    """In a process of its own, through a pipe: standard output is JSON and nothing else."""
    arguments = ["ring:gpus=4", "--collective", "all-gather", "--size", "1MB", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", "from designer.cli import main; main()", "solve", *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    assert json.loads(done.stdout)["formulation"] == DEFAULT
    assert done.stderr == ""


def test_a_result_is_told_to_people_too(run):
    code, out, _ = run("ring:gpus=4", "--formulation", "ring")

    assert code == 0
    assert out.startswith("all-gather of 1 MB on Ring of 4 by ring: ")
    for what in ("makespan", "bound", "gap", "algbw", "busbw", "epochs", "solved in", "stopped"):
        assert f"\n{what} " in out


def test_the_result_is_kept_with_its_drawing(run, tmp_path):
    write_document(
        tmp_path / "mine.json", document(ring(3, alpha=0.5), positions={"g0": (3.0, 4.0)})
    )
    code, out, err = run(
        "mine.json", "--formulation", "ring", "--size", "3MB", "--json", "--out", "kept.json"
    )
    kept = read_document(tmp_path / "kept.json")

    assert (code, err) == (0, "the result is in kept.json\n")
    assert kept.result is not None
    assert kept.result.makespan == pytest.approx(json.loads(out)["makespan_us"])
    assert kept.result.problem.collective.size == 3e6
    assert kept.positions == {"g0": (3.0, 4.0)}


def test_a_problem_document_is_solved_as_it_is(run, tmp_path):
    problem = solved().problem
    assert problem is not None
    write_document(tmp_path / "p.json", document(problem))
    code, out, _ = run("p.json", "--formulation", "ring", "--json")

    assert code == 0
    assert json.loads(out)["size"] == 4e6


def test_every_option_of_the_formulation_is_a_flag(run, tmp_path):
    """A chunk of 250 KB at 50 GB/s takes 5 µs, and six of these are more than a ring needs."""
    code, _, err = run(
        "ring:gpus=4,alpha=0",
        *("--collective", "all-gather", "--size", "1MB", "--formulation", "te-ccl-milp"),
        *("--epoch-duration", "5", "--horizon", "6", "--switches", "as-drawn"),
        *("--no-greedy-start", "--objective=early-arrivals", "--out", "kept.json"),
    )
    kept = read_document(tmp_path / "kept.json").result

    assert code == 0, err
    assert kept is not None
    assert kept.plan.epoch_duration == 5.0
    assert kept.options["horizon"] == 6
    assert kept.options["switches"] == "as drawn"
    assert kept.options["greedy_start"] is False
    assert kept.options["objective"] == "early-arrivals"


@pytest.mark.parametrize("name", NAMES)
def test_the_help_shows_the_flags_of_the_formulation(run, name):
    chosen = next(each for each in available() if each.name == name)
    code, out, _ = run("--formulation", name, "--help")

    assert code == 0
    for row in option_fields(chosen.options):
        assert f"--{row.name.replace('_', '-')}" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("ring", *MILP, "--tau", "3"), "te-ccl-milp has no option --tau; its own options are --"),
        (("ring", "--formulation", "direct", "--epoch", "x"), "it has no options of its own"),
        (("ring", "--formulation", "te-ccl-ml"), "did you mean te-ccl-"),
        (("ring", *MILP, "--horizon", "many"), "Invalid value for '--horizon'"),
        (("ring", *MILP, "--horizon", "0"), "option horizon is 0; give at least 1"),
        (
            ("ring", *MILP, "--switches", "none"),
            "option switches is 'none'; choose one of as drawn, hyper",
        ),
        (("line:gpus=4", *MILP, "--horizon", "1"), "allow 3 "),
        (("ring", "--time-limit", "0"), "--time-limit is 0 s; give more than 0 s"),
        (("ring", "--time-limit", "nan"), "--time-limit is nan s; give more than 0 s"),
        (("ring", "--gap", "-0.1"), "--gap is -0.1; give 0 or more"),
        (("ring", "--chunks", "1000000000"), "8,000,000,000 chunks and at most 1,048,576 are kept"),
        (("ring", "--formulation", "te-ccl-lp"), "te-ccl-lp cannot take all-gather on Ring of 8"),
        (("ring", "--out", "no/kept.json"), "there is no folder no; make it first"),
        ((), "Missing argument 'CLUSTER'"),
    ],
)
def test_bad_input_ends_with_2_one_sentence_and_no_file(run, tmp_path, arguments, sentence):
    code, out, err = run(*arguments)

    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


class Job:
    """A solve that finds one plan and then dies of the interrupt that its parent got too."""

    def __init__(self, best, *, ends):
        self.best, self.ends, self.cancelled = best, ends, 0

    def __iter__(self):
        yield Progress(0.1, 60.0, 10.0, "a better schedule", self.best)
        if self.ends is None:
            os.kill(os.getpid(), signal.SIGINT)
            deadline = time.monotonic() + 10
            while not self.cancelled and time.monotonic() < deadline:
                time.sleep(0.001)

    def result(self):
        if self.ends is None:
            raise SolveError("the solver's process ended without a result")
        return self.ends

    def cancel(self):
        self.cancelled += 1


def test_an_interrupt_keeps_the_best_plan_and_says_that_it_was_one():
    best = solved().result
    job = Job(best, ends=None)
    before = signal.getsignal(signal.SIGINT)

    result, interrupted = followed(job)

    assert interrupted
    assert result.stop is Stop.CANCELLED
    assert best is not None
    assert result.plan == best.plan
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_before_the_first_plan_says_that_nothing_is_kept():
    job = Job(None, ends=None)

    with pytest.raises(SolveError, match="interrupted before the first schedule was found"):
        followed(job)

    assert job.cancelled


def test_a_solve_that_nobody_interrupts_ends_as_it_ends():
    final = solved().result

    assert followed(Job(final, ends=final)) == (final, False)


def test_ctrl_c_prints_the_best_plan_keeps_it_and_leaves_no_process(tmp_path):
    """A MILP far from its end when the greedy plan at its start shows on the terminal."""
    out = tmp_path / "kept.json"
    asked = "dgx-1v", "--size", "1MB", "--chunks", "4", *MILP, "--horizon", "40"
    command = *asked, "--json", "--out", out
    terminal, stderr = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", "from designer.cli import main; main()", "solve", *command],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    ) as process:
        os.close(stderr)
        shown = until(terminal, rb"best [0-9.]+ ")
        child = first_child(process.pid)
        process.send_signal(signal.SIGINT)
        shown += until(terminal, rb"interrupted; .*\n")
        told, _ = process.communicate(timeout=60)
    os.close(terminal)

    assert process.returncode == 130
    assert b"interrupted; this is the best schedule found so far" in shown
    assert json.loads(told)["stop"] == "CANCELLED"
    assert read_document(out).result is not None
    assert not Path(f"/proc/{child}").exists()


def until(terminal: int, pattern: bytes) -> bytes:
    """Read what is shown on a terminal until it matches, at most a minute."""
    shown = b""
    deadline = time.monotonic() + 60
    while not re.search(pattern, shown) and time.monotonic() < deadline:
        if select.select([terminal], [], [], 1.0)[0]:
            shown += os.read(terminal, 65536)
    return shown


def first_child(pid: int) -> str:
    """Return the solver's process."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split()[0]
