"""``topoloom solve --front`` and ``--at-most-sends``: plans with fewer sends of the same solve."""

from __future__ import annotations

import json
import re

import pytest

from ccl.serialization.documents import read_document
from designer.cli import main, solve
from formulations.core.run import Progress
from tests.formulations.test_front import offered

LINE = ("line:gpus=3,bandwidth=50,alpha=0", "--collective", "broadcast", "--size", "1MB")


class Job:
    """A solve that has found the plans of 1, 2, 4 and 8 pieces."""

    best = offered(1, 2, 4, 8, formulation="list")

    def __iter__(self):
        yield Progress(0.1, 22.5, 20.0, "a better schedule", self.best)

    def result(self):
        return self.best

    def cancel(self):
        """Nothing is left to be ended."""


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run the command in an empty folder; return exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(solve.formulations, "start", lambda *_args, **_options: Job())

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main(["solve", *LINE, *arguments])
        out, err = capsys.readouterr()
        return left.value.code, out, err

    return run


def test_one_line_says_what_fewer_pieces_take(run):
    """The next after 8 pieces in 22.5 µs are 4 in 25 µs, 11 % more."""
    code, out, _ = run()
    (line,) = (each for each in out.splitlines() if each.startswith("fewer pieces"))

    assert code == 0
    assert re.split(" {2,}", line.strip())[1] == (
        "4 per shard: 25 µs (+11.1 %), 8 sends, not 16; see --front"
    )


def test_the_table_has_every_plan_and_the_best_last(run):
    code, out, _ = run("--front")
    rows = [re.split(" {2,}", line.strip()) for line in out.splitlines()]

    assert code == 0
    assert rows[:5] == [
        ["pieces per shard", "sends", "makespan", "longer than the best", "found by"],
        ["1", "2", "40 µs", "+77.8 %", "list"],
        ["2", "4", "30 µs", "+33.3 %", "list"],
        ["4", "8", "25 µs", "+11.1 %", "list"],
        ["8", "16", "22.5 µs", "–", "list"],
    ]


def test_json_has_them_too_where_they_are_wanted(run):
    told, plain = (json.loads(run(*more, "--json")[1]) for more in (("--front",), ()))

    assert [row["pieces"] for row in told["sends_front"]] == [1, 2, 4, 8]
    assert [row["sends"] for row in told["sends_front"]] == [2, 4, 8, 16]
    assert [row["longer"] for row in told["sends_front"]] == pytest.approx([7 / 9, 1 / 3, 1 / 9, 0])
    assert plain["sends"] == 16
    assert "sends_front" not in plain


def test_the_fastest_with_so_few_sends_is_the_answer_and_is_kept(run, tmp_path):
    code, out, err = run("--at-most-sends", "10", "--json", "--out", "kept.json")
    told, kept = json.loads(out), read_document(tmp_path / "kept.json").result

    assert (code, err) == (0, "the result is in kept.json\n")
    assert kept is not None
    assert told["sends"] == kept.sends == 8
    assert [told["makespan_us"], kept.makespan] == pytest.approx([25.0, 25.0])


def test_people_read_of_that_plan_that_a_faster_one_was_found(run):
    code, out, _ = run("--at-most-sends", "8")

    assert code == 0
    assert re.search(r"^stopped +it has fewer sends than the fastest plan", out, re.MULTILINE)
    assert "fewer pieces" not in out


@pytest.mark.parametrize(
    ("sends", "sentence"),
    [
        ("1", "no plan with at most 1 send was found; the fewest is 2 sends"),
        ("0", "--at-most-sends is 0; give more than 0"),
    ],
)
def test_a_number_that_no_plan_keeps_is_refused(run, tmp_path, sends, sentence):
    code, out, err = run("--at-most-sends", sends, "--out", "kept.json")

    assert (code, out) == (2, "")
    assert sentence in err
    assert list(tmp_path.iterdir()) == []


def test_a_catalog_which_knows_the_best_alone_is_not_looked_into(run, tmp_path):
    """It is filled by the first solve."""
    run("--catalog", "plans.db")
    code, out, _ = run("--catalog", "plans.db", "--front")

    assert code == 0
    assert len(re.findall("list *\n", out.partition("\n\n")[0] + "\n")) == 4
