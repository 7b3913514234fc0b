"""``topoloom compare``: a table for each size, crossovers in words, JSON, and Ctrl-C."""

from __future__ import annotations

import json
import math
import re

import pytest

from ccl.collective import make_collective
from ccl.problem import Problem
from ccl.serialization.documents import document, write_document
from designer.cli import compare as comparing
from designer.cli import main, request
from formulations.analyses import comparison
from formulations.analyses.comparison import Comparison, compare, comparison_from_json
from formulations.analyses.comparison.table import question
from tests.ccl.clusters import star

BROADCAST = ("star:gpus=4,alpha=0.5", "--collective", "broadcast", "--chunks", "4")
"""By a ring 3 + 6/4 mβ µs, by direct sends 1 + 3 mβ µs, β of 50 GB/s: tests/formulations."""

TWO = (*BROADCAST, "--formulations", "ring,direct", "--sizes", "10KB,1MB")


class Here:
    """A comparison in this process, which starts faster than another one."""

    def __init__(self, problem, methods, *, sizes, time_limit, memory):
        assert memory is None
        self.request = question(problem, methods, sizes=sizes, time_limit=time_limit)
        self.found = compare(problem, methods, sizes=sizes, time_limit=time_limit)

    def __iter__(self):
        return iter(())

    def comparison(self):
        return self.found

    def cancel(self):
        pass


@pytest.fixture
def here(monkeypatch):
    monkeypatch.setattr(comparison, "start_comparison", Here)


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run the command in an empty folder; return exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main(["compare", *arguments])
        out, err = capsys.readouterr()
        return left.value.code, out, err

    return run


def test_people_see_a_table_for_each_size_and_the_crossover(run):
    """10 KB and 1 MB take 0.2 and 20 µs a link: by a ring 3.3 and 33, directly 1.6 and 61 µs.

    Lines through the logarithms meet at 10 KB times 100^x, x = l0 / (l0 + l1), with l the
    logarithms of the ratios 3.3 / 1.6 and 61 / 33.
    """
    code, out, err = run(*TWO)
    first, last = math.log(3.3 / 1.6), math.log(61 / 33)
    crossing = 1e4 * 100 ** (first / (first + last))
    lines = [each for each in out.splitlines() if each.startswith(("ring ", "direct "))]
    rows = [re.split(r" {2,}", each) for each in lines if "fastest" not in each]

    assert (code, err) == (0, "")
    assert [row[0] for row in rows] == ["direct", "ring", "ring", "direct"]
    assert [row[2] for row in rows] == ["1.6", "3.3", "33", "61"]
    assert "broadcast of 1 MB on Star of 4" in out
    assert out.count("no plan takes less than") == 2
    assert f"From {crossing / 1e3:.0f} KB on ring is faster than direct" in out


@pytest.mark.usefixtures("here")
def test_the_bound_is_told_with_the_cut_that_proves_it(run):
    """Each GPU takes in 3/4 MB at 50 GB/s after two latencies of 0.7 µs: 16.4 µs."""
    code, out, _ = run("star:gpus=4", "--formulations", "direct", "--sizes", "1MB")

    assert code == 0
    assert "no plan takes less than 16.4 µs (Receive limit of one GPU, 50 GB/s into g0)" in out


@pytest.mark.usefixtures("here")
def test_json_has_every_row_and_the_crossover(run):
    code, out, err = run(*TWO, "--json")
    told = json.loads(out)

    assert (code, err) == (0, "")
    assert told["methods"] == ["ring", "direct"]
    assert [(row["method"], row["size"]) for row in told["rows"]] == [
        ("direct", 1e4),
        ("ring", 1e4),
        ("ring", 1e6),
        ("direct", 1e6),
    ]
    assert [row["makespan_us"] for row in told["rows"]] == pytest.approx([1.6, 3.3, 33, 61])
    assert [(each["before"], each["after"]) for each in told["crossovers"]] == [("direct", "ring")]
    assert all(row["gap"] >= 0 and row["busbw_GBps"] > 0 for row in told["rows"])


@pytest.mark.usefixtures("here")
def test_what_has_no_schedule_is_told_with_the_reason_once(run):
    code, out, _ = run(
        "star:gpus=4", "--formulations", "te-ccl-lp,direct", "--sizes", "16KB,1MB", "--json"
    )
    rows = [row for row in json.loads(out)["rows"] if row["method"] == "te-ccl-lp"]
    _, text, _ = run("star:gpus=4", "--formulations", "te-ccl-lp,direct", "--sizes", "16KB,1MB")

    assert code == 0
    assert [row["status"] for row in rows] == [None, None]
    assert text.count("te-ccl-lp has no schedule: it supports all-to-all") == 1
    assert "direct is the fastest at every size" in text


@pytest.mark.usefixtures("here")
def test_formulas_are_told_beside_replays(run):
    """log2 4 (2α) + 3/4 mβ = 2.8 + 15 µs for messages that are stored nowhere on their way."""
    code, out, _ = run(
        "star:gpus=4", "--formulations", "recursive-doubling", "--sizes", "1MB", "--formulas"
    )

    assert code == 0
    assert "formula µs" in out
    assert "recursive-doubling: log2 p α + (p-1)/p mβ = 17.8 µs" in out


@pytest.mark.usefixtures("here")
def test_the_comparison_is_kept_and_can_be_read(run, tmp_path):
    code, _, err = run(*TWO, "--out", "kept.json")
    found = comparison_from_json(json.loads((tmp_path / "kept.json").read_text("utf-8")))

    assert (code, err) == (0, "the comparison is in kept.json\n")
    assert isinstance(found, Comparison)
    assert [row.result.makespan for row in found.rows] == pytest.approx([3.3, 33, 1.6, 61])


@pytest.mark.usefixtures("here")
def test_a_document_with_its_own_collective_is_compared_at_other_sizes(run, tmp_path):
    asked = Problem(star(4, alpha=0.5), make_collective("broadcast", 4, 5e3, chunks=4))
    write_document(tmp_path / "p.json", document(asked))
    code, out, _ = run("p.json", "--formulations", "ring", "--sizes", "10KB", "--json")

    assert code == 0
    assert json.loads(out)["rows"][0]["makespan_us"] == pytest.approx(3.3)


@pytest.mark.usefixtures("here")
def test_a_sketch_is_read_from_a_file_and_named(run, tmp_path):
    (tmp_path / "few.json").write_text('{"switches": "uc-min"}', "utf-8")
    code, out, err = run(
        "star:gpus=4", "--formulations", "taccl:sketch=few.json", "--sizes", "1MB", "--json"
    )
    (method,) = json.loads(out)["methods"]

    assert code == 0
    assert f"{method} has the sketch few.json" in err
    assert json.loads(out)["rows"][0]["makespan_us"] >= 16.4 * (1 - 1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--formulations", "rink"), "did you mean ring"),
        (("--formulations", ","), "no formulation is given"),
        (("--sizes", "1XB"), "size '1XB'"),
        (("--sizes", ","), "--sizes is ','; give sizes joined by commas"),
        (("--time-limit", "0"), "--time-limit is 0 s; give more than 0 s"),
        (("--collective", "all-together"), "all-together"),
    ],
)
def test_wrong_arguments_are_answered_in_a_sentence(run, arguments, message):
    code, out, err = run("star:gpus=4", *arguments)

    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_an_interrupt_keeps_the_rows_that_are_there(run, monkeypatch):
    def followed(job):
        for news in job:
            if news.row is not None:
                job.cancel()
        return True

    monkeypatch.setattr(comparing, "_followed", followed)
    code, out, err = run("star:gpus=4", "--formulations", "direct,ring", "--json")
    rows = json.loads(out)["rows"]

    assert code == request.INTERRUPTED
    assert 1 <= len(rows) < 12
    assert f"interrupted; {len(rows)} of 12 rows are there" in err
