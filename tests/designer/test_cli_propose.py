"""``topoloom propose``: a table, drawings in a folder, and JSON."""

import json

import pytest

from ccl.serialization.documents import read_document
from designer.cli import main

QUICK = ("propose", "--gpus", "10", "--ports", "3", "--seconds", "60", "--cores", "1")


@pytest.fixture
def run(capsys):
    """Run the command; return exit code, output and errors."""

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main(arguments)
        out, err = capsys.readouterr()
        return left.value.code, out, err

    return run


def test_drawings_are_written_best_first(run, tmp_path):
    code, out, err = run(*QUICK, "--keep", "2", "--out", str(tmp_path / "found"))
    files = sorted((tmp_path / "found").iterdir())

    assert code == 0
    assert [each.name[0] for each in files] == ["1", "2"]
    assert all(len(read_document(each).topology.ranks) == 10 for each in files)
    assert f"2 drawings in {tmp_path / 'found'}" in err
    assert "No network of 3 ports for each GPU" in out
    assert "on any network with these ports" in out


def test_json_has_every_figure(run, tmp_path):
    mix = tmp_path / "mix.yaml"
    mix.write_text("- {collective: all-to-all, size: 64MB}\n")
    code, out, _ = run(*QUICK, "--mix", str(mix), "--axes", "mix,hops", "--json")
    found = json.loads(out)
    first = found["networks"][0]

    assert code == 0
    assert first["mix_us"] >= found["mix_bound_us"]
    assert first["mix_us"] == pytest.approx(64e3 / first["rates"]["all-to-all"]["algbw_GBps"])
    assert 0 < first["network_dollars"] < 1e5
    assert first["best"]
    assert first["why"].endswith(".")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--axes", "mix,beauty"), "--axes is mix,beauty; give two of mix, all-to-all"),
        (("--budget", "cheap"), "--budget is cheap; give dollars above 0, such as 2M or 800k"),
        (("--gpus", "3"), "gpus is 3 GPUs; give 4 to 4,096"),
        (
            ("--gpus", "15", "--ports", "3"),
            "no network that is known here has 15 GPUs with 3 ports",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence(run, arguments, words):
    code, out, err = run(*QUICK, *arguments)

    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert words in err


def test_a_budget_that_buys_nothing_says_what_the_cheapest_costs(run):
    code, out, err = run(*QUICK, "--budget", "5$")

    assert (code, out) == (2, "")
    assert "no network costs $5 or less: the cheapest costs $" in err


def test_a_search_is_kept_in_a_catalog_listed_shown_and_forgotten(run, tmp_path):
    mine = ("--catalog", str(tmp_path / "catalog.sqlite"))
    found = json.loads(run(*QUICK, "--axes", "mix,hops", "--json", *mine)[1])
    (entry,) = json.loads(run("catalog", "studies", "--json", *mine)[1])["studies"]
    assert entry["best"] == found["networks"][0]["name"]
    assert entry["title"] in run("catalog", "studies", *mine)[1]
    study = json.loads(run("catalog", "study", "1", "--json", *mine)[1])
    assert [each["name"] for each in study["networks"]] == [e["name"] for e in found["networks"]]
    assert study["networks"][0]["values"]["mix"] == pytest.approx(found["networks"][0]["mix_us"])
    code, out, err = run("catalog", "study", "1", "--out", str(tmp_path / "drawings"), *mine)
    assert (code, entry["best"] in out) == (0, True)
    assert len(list((tmp_path / "drawings").iterdir())) == entry["networks"]
    assert "1 study forgotten" in run("catalog", "forget", "--study", "1", *mine)[1]
    code, _, err = run("catalog", "study", "1", *mine)
    assert (code, "has no study 1; topoloom catalog studies says" in err) == (2, True)
