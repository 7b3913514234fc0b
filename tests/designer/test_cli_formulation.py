"""``topoloom formulation``: the mathematics, and what it comes to before solving."""

from __future__ import annotations

import json

import pytest

from designer.cli import main
from formulations import available


@pytest.fixture
def run(capsys):
    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main(list(arguments))
        out, err = capsys.readouterr()
        return left.value.code, out, err

    return run


def test_all_are_listed(run):
    code, out, _ = run("formulation")
    assert code == 0
    assert all(each.name in out for each in available())


def test_mathematics_and_size_are_printed(run):
    """A ring of 4 all-gathers in 2 epochs of a chunk: K x links x chunks bound the variables."""
    code, out, _ = run("formulation", "te-ccl-milp", "--of", "ring:gpus=4", "--size", "4MB")
    assert code == 0
    assert "TE-CCL's general model: whole chunks" in out
    assert "b[0, v, c] = has" in out
    assert "less than a second" in out
    assert "capacity of a link" in out


def test_json_has_the_groups_that_add_up(run):
    code, out, _ = run("formulation", "thesis-fluid", "--of", "ring:gpus=4", "--json")
    assert code == 0
    found = json.loads(out)
    assert sum(each["rows"] for each in found["groups"]) == found["constraints"]
    assert found["takes"] == "less than a second"
    assert found["mathematics"].startswith("The thesis' linear programs")


def test_a_refusal_is_printed(run):
    code, out, _ = run("formulation", "orbit-lp", "--of", "ring:gpus=4")
    assert code == 0
    assert "it supports all-" in " ".join(out.split())


def test_an_unknown_one_is_one_sentence(run):
    code, out, err = run("formulation", "te-ccl-mlp")
    assert (code, out) == (2, "")
    assert "did you mean te-ccl-milp?" in err
