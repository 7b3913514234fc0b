"""``topoloom verify``: a plan against its own problem or another, and what it says of a refusal."""

from __future__ import annotations

import json

import pytest

from ccl.collective import all_gather, all_to_all
from ccl.problem import Problem
from ccl.serialization.documents import document, document_to_json, write_document
from designer.cli import main


@pytest.fixture
def files(tmp_path, ring, result):
    """A result on the ring of 4, its problem, another one, and the cluster alone."""
    contents = {
        "result": document(result),
        "plan": document(result.problem, plan=result.plan),
        "same": document(result.problem),
        "larger": document(Problem(ring, all_gather(4, 8e6))),
        "other": document(Problem(ring, all_to_all(4, 4e6))),
        "cluster": document(ring),
    }
    for name, content in contents.items():
        write_document(tmp_path / f"{name}.json", content)
    return tmp_path


@pytest.fixture
def verify(files, capsys):
    """Run the command on some of the files; return exit code, stdout and stderr."""

    def run(*arguments):
        given = [str(files / each) if each.endswith(".json") else each for each in arguments]
        with pytest.raises(SystemExit) as left:
            main(["verify", *given])
        told = capsys.readouterr()
        return left.value.code, told.out, told.err

    return run


@pytest.mark.parametrize("name", ["result.json", "plan.json"])
@pytest.mark.parametrize("problem", [(), ("--problem", "same.json")])
def test_a_sound_plan_is_replayed(verify, result, name, problem):
    code, out, err = verify(name, *problem, "--json")
    told = json.loads(out)

    assert (code, err) == (0, "")
    assert told["verified"] is True
    assert told["makespan_us"] == pytest.approx(result.makespan)
    assert told["busbw_GBps"] == pytest.approx(result.busbw)


@pytest.mark.parametrize("problem", ["larger.json", "other.json"])
def test_a_plan_of_another_problem_is_refused_with_the_first_broken_rule(verify, problem):
    """Twice the bytes do not leave in time; an all-to-all has more chunks to bring."""
    code, out, err = verify("result.json", "--problem", problem, "--json")
    told = json.loads(out)

    assert (code, err) == (1, "")
    assert told["verified"] is False
    assert told["where"] in told["rule"]


def test_a_result_changed_by_hand_is_refused(verify, files, result):
    """Any one send of a ring is needed."""
    value = document_to_json(document(result))
    value["result"]["plan"]["sends"].pop()
    (files / "changed.json").write_text(json.dumps(value), "utf-8")

    code, out, _ = verify("changed.json")

    assert code == 1
    assert out.startswith("refused")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("same.json",), "same.json: a problem document has no plan; give a result"),
        (
            ("result.json", "--problem", "cluster.json"),
            "cluster.json is a topology document and has no problem; give a problem",
        ),
        (("result.json", "--problem", "nowhere.json"), "nowhere.json cannot be read"),
        ((), "Missing argument"),
    ],
)
def test_what_cannot_be_verified_is_bad_input(verify, arguments, sentence):
    code, out, err = verify(*arguments)

    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1
