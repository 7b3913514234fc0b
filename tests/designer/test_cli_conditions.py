"""``topoloom solve`` with windows of less bandwidth and with tenants."""

from __future__ import annotations

import pytest

from ccl.collective import all_gather, tenants
from ccl.problem import Problem, Window
from ccl.serialization.conditions import read_tenants
from ccl.serialization.documents import document, read_document, write_document
from designer.cli import main, request
from formulations import solve
from tests.ccl.clusters import MB, line

JOBS = """
tenants:
  - {name: far, collective: broadcast, size: 1MB, ranks: [g0, g2]}
  - {name: near, collective: broadcast, size: 1MB, ranks: [g0, g1], priority: 5}
"""


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run the command line beside tenants and a line of 3; return exit code, output, errors."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.yaml").write_text(JOBS, "utf-8")
    write_document(tmp_path / "line.json", document(line(3)))

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main([str(each) for each in arguments])
        out, err = capsys.readouterr()
        return left.value.code, " ".join(out.split()), err

    return run


class TestTenants:
    def test_are_ordered_by_priority_and_told(self, run):
        """Over the same first link near goes first, for 20 µs; far takes 40 after that."""
        code, out, err = run("solve", "line.json", "--tenants", "jobs.yaml", "--out", "r.json")

        assert code == 0
        assert err.startswith(
            "priorities are given, so it is solved by --formulation te-ccl-milp --objective "
            "finish-times\n"
        )
        assert "tenant far 60 µs, priority 1; alone at least 40 µs" in out
        assert "tenant near 20 µs, priority 5; alone at least 20 µs" in out
        kept = read_document("r.json").problem
        assert kept is not None
        assert [(each.tenant, each.priority) for each in kept.collective.chunks] == [
            ("far", 1.0),
            ("near", 5.0),
        ]

    def test_come_as_json(self):
        jobs = read_tenants(JOBS.encode(), line(3))
        asked = Problem(line(3), tenants(3, jobs))
        name, options = request.ordering(asked, "auto", {})

        assert request.tenants_answer(solve(asked, name, options=options)) == [
            {"name": "far", "priority": 1, "size": MB, "finish_us": 60, "alone_us": 40},
            {"name": "near", "priority": 5, "size": MB, "finish_us": 20, "alone_us": 20},
        ]

    def test_leave_a_choice_that_was_made(self):
        asked = Problem(line(3), tenants(3, read_tenants(JOBS.encode(), line(3))))

        assert request.ordering(asked, "te-ccl-milp", {}) == ("te-ccl-milp", {})
        assert request.ordering(asked, "auto", {"effort": "quick"})[0] == "auto"

    def test_that_cannot_be_ordered_are_told_so(self, capsys):
        """Sums are found backwards in time."""
        text = JOBS.replace("broadcast, size: 1MB, ranks: [g0, g2]", "all-reduce, size: 1MB")
        asked = Problem(line(3), tenants(3, read_tenants(text.encode(), line(3))))

        assert request.ordering(asked, "auto", {}) == ("auto", {})
        assert "priorities only settle ties here" in capsys.readouterr().err

    def test_say_what_they_run_themselves(self, run):
        code, _, err = run("solve", "line.json", "--tenants", "jobs.yaml", "--size", "1MB")

        assert (code, err) == (
            2,
            "topoloom: jobs.yaml says what each tenant runs; leave out --size\n",
        )

    def test_take_a_cluster_and_not_a_problem(self, run, tmp_path):
        write_document(tmp_path / "problem.json", document(Problem(line(3), all_gather(3, MB))))

        _, _, err = run("solve", "problem.json", "--tenants", "jobs.yaml")

        assert "the document is a problem with its own all-gather; leave out --tenants" in err


class TestWindows:
    def test_delay_what_they_hold_up_and_are_told_and_kept(self, run):
        """The link is down for 30 µs; then each of two hops takes 20 µs for 1 MB."""
        code, out, _ = run(
            *("solve", "line.json", "--collective", "broadcast", "--time-limit", 20),
            *("--window", "g0->g1@0..30us=0", "--window", "g2@0..1us=50%", "--out", "r.json"),
            *("--formulation", "te-ccl-milp", "--epoch-duration", 10),
        )

        assert code == 0
        assert "makespan 70 µs" in out
        assert "window g0->g1 at 0 % from 0 µs to 30 µs" in out
        assert "window g2->g1, g1->g2 at 50 % from 0 µs to 1 µs" in out
        kept = read_document("r.json").problem
        assert kept is not None
        assert kept.windows[0] == Window((("g0", "g1"),), 0, 30, 0)

    def test_add_to_those_of_a_document(self):
        first = Window((("g0", "g1"),), 0, 20, 0)
        opened = document(Problem(line(3), all_gather(3, 3 * MB), (first,)))

        made = request.Given(None, None, None, window=["g2->g1@0..20us=0"]).problem(
            opened, chunks=None
        )

        assert made.windows == (first, Window((("g2", "g1"),), 0, 20, 0))

    def test_are_refused_in_one_sentence(self, run):
        code, _, err = run("solve", "line.json", "--window", "g0->g1")

        assert code == 2
        assert err == (
            "topoloom: window 'g0->g1' cannot be read; write it like gpu0->gpu1@0..50us=0.5\n"
        )
