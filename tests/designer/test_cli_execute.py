"""``topoloom execute``: a right program, a wrong one, a plan that becomes a program, neither."""

from __future__ import annotations

import json

import pytest

from ccl.serialization.documents import document, write_document
from designer.cli import main
from interchange.formats.runtimes.msccl_xml import program_to_xml
from interchange.programs import Slot
from tests.interchange.execution.programs import (
    changed,
    direct_all_to_all,
    ring_all_reduce,
    with_steps,
)


@pytest.fixture
def files(tmp_path, ring, result):
    """Programs that are right and wrong, a result on the ring of 4, and the cluster alone."""
    right = direct_all_to_all(3)
    programs = {
        "right": right,
        "sums": ring_all_reduce(in_place=True),
        "wrong": changed(right, 1, 1, 0, src=Slot("input", 2)),
        "stuck": with_steps(
            with_steps(right, 0, 1, lambda steps: steps[::-1]), 1, 1, lambda steps: steps[::-1]
        ),
    }
    for name, program in programs.items():
        (tmp_path / f"{name}.xml").write_text(program_to_xml(program), "utf-8")
    write_document(tmp_path / "result.json", document(result))
    write_document(tmp_path / "cluster.json", document(ring))
    return tmp_path


@pytest.fixture
def execute(files, capsys):
    """Run the command on one of the files; return exit code, stdout and stderr."""

    def run(name, *options):
        with pytest.raises(SystemExit) as left:
            main(["execute", str(files / name), *options])
        told = capsys.readouterr()
        return left.value.code, told.out, told.err

    return run


def test_a_right_program_is_said_to_be_right(execute):
    """3 ranks with a block for themselves and for each other; 6 messages."""
    code, out, err = execute("right.xml", "--interleavings", "7")

    assert (code, err) == (0, "")
    assert out.startswith("all-to-all of 3 ranks: right in 7 interleavings")
    assert "9 thread blocks, 1 channel, Simple" in out
    assert "15 steps, 6 messages" in out


def test_sums_are_told_with_their_deviation(execute):
    code, out, _ = execute("sums.xml", "--json")
    told = json.loads(out)

    assert code == 0
    assert told["called"] == ["out of place", "in place"]
    assert told["interleavings"] == 200
    assert 0 < told["float32_deviation"] < 1e-6


@pytest.mark.parametrize(("name", "kind"), [("wrong.xml", "result"), ("stuck.xml", "deadlock")])
def test_a_wrong_program_leaves_with_1_and_names_the_step(execute, name, kind):
    """It may be no plan of anything, and is executed all the same."""
    code, out, err = execute(name)
    again, answer, _ = execute(name, "--json")
    (finding,) = json.loads(answer)["findings"]

    assert (code, again, err) == (1, 1, "")
    assert "wrong, 1 finding" in out
    assert finding["kind"] == kind
    assert None not in (finding["rank"], finding["thread_block"], finding["step"])


def test_a_result_becomes_a_program_first(execute):
    """An all-gather over 4 ranks: each takes in 3 shards in messages of one."""
    code, out, _ = execute("result.json", "--json")
    told = json.loads(out)

    assert code == 0
    assert (told["right"], told["collective"], told["messages"]) == (True, "all-gather", 12)


@pytest.mark.parametrize(
    ("name", "words"), [("cluster.json", "has no program and no plan"), ("none.xml", "none.xml")]
)
def test_what_has_no_program_is_refused_in_a_sentence(execute, name, words):
    code, out, err = execute(name)

    assert (code, out) == (2, "")
    assert words in err
