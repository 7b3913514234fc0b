"""Programs on the command line: linted and run."""

import json
import re

import pytest

from ccl.collective import make_collective
from ccl.problem import Problem
from ccl.serialization.documents import document, write_document
from ccl.serialization.text import write_bytes
from designer.cli import main
from formulations import solve
from gallery import open_cluster
from widgets.pages import writers


@pytest.fixture
def run(capsys):
    """Run the command line and return its exit code, output and errors."""

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(each) for each in arguments])
        return (ended.value.code, *capsys.readouterr())

    return call


@pytest.fixture
def plan(tmp_path):
    """An all-gather of 4 GPUs, as a result and as MSCCL XML."""
    problem = Problem(open_cluster("ring:gpus=4"), make_collective("all-gather", 4, 1e6))
    result = document(solve(problem, "ring"))
    write_document(tmp_path / "plan.json", result)
    write_bytes(tmp_path / "plan.xml", writers.write(result, "msccl-xml", {}).content)
    return tmp_path


@pytest.mark.parametrize("name", ["plan.json", "plan.xml"])
def test_a_program_is_linted_for_every_executor(run, plan, name):
    code, out, _ = run("lint", plan / name, "--json")

    told = json.loads(out)["complaints"]
    assert code == 0
    assert set(told) == {"msccl", "azure", "rccl"}
    assert not any(each["refused"] for listed in told.values() for each in listed)
    assert run("lint", plan / name, "--executor", "rccl")[0] == 0
    assert run("lint", plan / name, "--executor", "nobody")[0] == 2


def test_a_broken_limit_is_named_and_ends_with_1(run, plan):
    """A step of 72 chunks is one more than the runtimes count."""
    text = (plan / "plan.xml").read_text("utf-8").replace('cnt="1"', 'cnt="72"', 1)
    (plan / "broken.xml").write_text(text, "utf-8")

    code, out, _ = run("lint", plan / "broken.xml")

    assert code == 1
    assert "72" in out


@pytest.mark.parametrize("name", ["plan.json", "plan.xml"])
def test_a_program_is_run_by_processes(run, plan, name):
    code, out, _ = run("run", plan / name, "--ranks", "processes", "--size", "4KB", "--json")

    told = json.loads(out)
    assert code == 0
    assert (told["right"], told["ranks"], told["wrong"]) == (True, 4, [])
    assert told["elements_per_chunk"] == 250


def test_a_wrong_program_ends_with_1(run, plan):
    """What comes for place 2 of an output is put in place 1."""
    text = (plan / "plan.xml").read_text("utf-8")
    wrong = re.sub(r'(type="r" [^>]*dstoff=)"2"', r'\1"1"', text, count=1)
    (plan / "wrong.xml").write_text(wrong, "utf-8")

    code, out, err = run("run", plan / "wrong.xml", "--size", "4KB")

    assert code == 1
    assert "wrong" in out
    assert "not what they should be" in err


def test_a_topology_has_no_program(run, plan):
    write_document(plan / "t.json", document(open_cluster("ring:gpus=4")))

    code, _, err = run("run", plan / "t.json")

    assert code == 2
    assert "no program and no plan" in err
