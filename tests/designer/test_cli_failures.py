"""``topoloom failures`` and ``topoloom stragglers``."""

from __future__ import annotations

import json

import pytest

from designer.cli import main
from formulations.analyses.failures.study import Study


@pytest.fixture
def run(capsys):
    """Run the command line; return exit code, output and errors."""

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main([str(each) for each in arguments])
        out, err = capsys.readouterr()
        return left.value.code, " ".join(out.split()).replace("\N{NO-BREAK SPACE}", " "), err

    return run


def test_losses_are_told_to_people(run):
    """A ring of 4 at 50 GB/s is a line without a link: half of 133 GB/s."""
    code, out, err = run("failures", "ring:gpus=4", "--losing", "link,gpu")

    assert (code, err) == (0, "")
    assert "all-gather of 1 MB on Ring of 4, losing one part" in out
    assert "link g0 – g1 4 66.7 GB/s 50 % 50 GB/s into g0" in out
    assert "GPU g0 4 75 GB/s 43.8 %" in out
    assert "The worst case: losing a link (50 GB/s), such as g0 – g1 costs 50 %" in out


def test_losses_come_as_json(run):
    code, out, _ = run("failures", "star:gpus=4", "--losing", "switch", "--json")

    answer = json.loads(out)
    [row] = answer["rows"]
    assert code == 0
    assert answer["algbw_GBps"] == pytest.approx(50 / 0.75)
    assert (row["kind"], row["names"], row["alike"]) == ("switch", ["switch"], 1)
    assert (row["cut_off"], row["algbw_GBps"], row["cut"]) == (["g1", "g2", "g3"], 0, None)
    assert "cannot be reached" in row["why"]


def test_with_schedules_it_says_what_is_left_of_todays_plan(run):
    """In 2 rounds of 5.7 µs all but 3 of the 12 sends avoid the pair of links that is lost."""
    arguments = ("failures", "ring:gpus=4", "--losing", "link", "--schedule", "--time-limit", 20)
    _, out, _ = run(*arguments)
    _, plain, _ = run(*arguments, "--json")

    [row] = json.loads(plain)["rows"]
    assert row["survival"]["runs"] is False
    assert len(row["survival"]["sends_gone"]) > 0
    assert f"loses {len(row['survival']['sends_gone'])} of" in out
    assert row["schedule_us"] >= row["makespan_us"]


def test_one_direction_may_be_lost(run):
    _, out, _ = run("failures", "line:gpus=2", "--losing", "link", "--one-way")

    assert "link g0 – g1 2 0 GB/s 100 % cuts off g1" in out


def test_stragglers_are_told_to_people(run):
    """Twice as slow, a GPU of a star takes in at 25 GB/s; nothing else changes."""
    code, out, err = run("stragglers", "star:gpus=4", "--lagging", "gpu", "--beta", 2)

    assert (code, err) == (0, "")
    assert "one part with alpha × 1 and beta × 2" in out
    assert "GPU g0 4 33.3 GB/s 50 % 25 GB/s into g0" in out


def test_stragglers_come_as_json_with_what_a_new_plan_wins(run):
    """Between any two of 3 GPUs; over the slow link 5 x as long, round by the third 2 x."""
    _, out, _ = run(
        *("stragglers", "full-mesh:gpus=3,alpha=0", "--lagging", "link", "--beta", 5),
        *("--schedule", "--formulation", "te-ccl-milp", "--time-limit", 20, "--json"),
    )

    answer = json.loads(out)
    [row] = answer["rows"]
    assert row["replayed_us"] == pytest.approx(5 * answer["schedule_us"])
    assert row["schedule_us"] == pytest.approx(2 * answer["schedule_us"])
    assert row["wins"] == pytest.approx(0.6)


def test_what_is_unknown_is_refused_in_one_sentence(run):
    for command, flag in (("failures", "--losing"), ("stragglers", "--lagging")):
        code, out, err = run(command, "ring", flag, "cable")

        assert (code, out) == (2, "")
        assert err == (
            "topoloom: 'cable' is nothing that fails; choose from link, gpu, nic, memory, switch, "
            "host\n"
        )
    assert run("failures", "ring", "--losing", ",")[2].startswith("topoloom: ',' names nothing")


def test_ctrl_c_keeps_the_rows_that_are_there(run, monkeypatch):
    whole = Study.rows

    def rows(self):
        yield next(whole(self))
        raise KeyboardInterrupt

    monkeypatch.setattr(Study, "rows", rows)

    code, out, err = run("failures", "dgx-1v")

    assert code == 130
    assert "1 of 2 links g0 – g1" in out
    assert err == "interrupted; these are 1 of 9 rows\n"
