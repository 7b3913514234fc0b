"""``topoloom catalog`` and ``solve --catalog``."""

import json

import pytest

from designer.cli import main
from designer.cli.catalog import FAULTY
from formulations.campaigns.catalog import Catalog


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run a command on a catalog of its own; return its code, answer and remarks."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def run(*arguments):
        with pytest.raises(SystemExit) as end:
            main(list(arguments))
        told = capsys.readouterr()
        return end.value.code, told.out, told.err

    return run


def test_a_solve_is_kept_found_listed_tuned_and_forgotten(run, tmp_path):
    path = str(tmp_path / "catalog.sqlite")
    ask = ("solve", "ring:gpus=4", "--formulation", "ring", "--catalog", path, "--json")
    first, again = (json.loads(run(*ask)[1]) for _ in range(2))

    assert first["log"] == []
    assert "from the catalog" in again["log"][0]
    assert {**again, "log": []} == first
    mine = ("--catalog", path)
    plans = json.loads(run("catalog", "list", "--cluster", "ring:gpus=4", "--json", *mine)[1])
    assert [each["formulation"] for each in plans["plans"]] == ["ring"]
    assert (
        json.loads(run("catalog", "list", "--cluster", "ring", "--json", *mine)[1])["plans"] == []
    )
    shown = run("catalog", "show", "1", "--out", str(tmp_path / "plan.json"), *mine)
    assert "all-gather of 1 MB on Ring of 4" in shown[1]
    assert run("verify", str(tmp_path / "plan.json"))[0] == 0
    table = str(tmp_path / "tuner.csv")
    tune = ("catalog", "tune", "ring:gpus=4", "--sizes", "1KB,1MB", "--solve", "direct")
    code, told, _ = run(*tune, "--csv", table, "--json", *mine)
    assert code == 0
    assert json.loads(told)["ranges"][0]["min_bytes"] == 1000
    assert (tmp_path / "tuner.csv").read_text().startswith("collective,min_bytes,max_bytes")
    assert run("catalog", "check", *mine)[:2] == (0, "4 plans, 0 faults\n")
    assert "4 plans" in run("catalog", "export", str(tmp_path / "x.jsonl"), *mine)[1]
    assert "4 plans" in run("catalog", "import", str(tmp_path / "x.jsonl"))[1]
    assert "3 plans forgotten" in run("catalog", "forget", "--formulation", "direct", *mine)[1]
    assert Catalog(path).count() == 1


def test_an_atlas_is_told_and_drawn(run, tmp_path):
    """Direct sends go both ways round a ring of 4 and take 2 steps, a ring one way takes 3."""
    path, drawn = str(tmp_path / "catalog.sqlite"), tmp_path / "atlas.svg"
    ask = ("catalog", "atlas", "ring:gpus=4", "--collectives", "all-gather,gather", "--catalog")
    code, told, _ = run(
        *ask, path, "--sizes", "1KB,1MB", "--solve", "ring,direct", "--svg", str(drawn)
    )

    assert code == 0
    assert told.splitlines()[1].split() == ["all-gather", "direct", "1.5×", "direct", "1.5×"]
    words = drawn.read_text()
    assert words.startswith("<svg")
    assert "direct" in words


def test_what_cannot_be_done_is_one_sentence(run, tmp_path):
    path = tmp_path / "none.sqlite"
    mine = ("--catalog", str(path))
    for ask, why in {
        ("show", "7"): "no plan 7",
        ("forget",): "nothing is named to forget",
        ("tune", "ring"): "has no plan of all-gather on Ring of 8",
        ("atlas", "ring", "--collectives", "gossip"): "--collectives names 'gossip'",
    }.items():
        code, _, told = run("catalog", *ask, *mine)
        assert code == 2
        assert why in told
        assert told.count("\n") == 1
    (tmp_path / "bad.jsonl").write_text("{oh\n")
    code, told, why = run("catalog", "import", str(tmp_path / "bad.jsonl"), *mine)
    assert (code, told) == (FAULTY, "0 plans kept, 0 known already\n")
    assert "bad.jsonl, line 1" in why
