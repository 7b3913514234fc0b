"""The benchmark of fluid optima prints the figures that were published, and compares them truly."""

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks import forests, thesis
from benchmarks.__main__ import app
from benchmarks.fluid import ENGINES, RANDOM, TOLERANCE, compared, random_network
from benchmarks.forests import Reduced, Wanted
from benchmarks.thesis import CELLS, SLIPS, Large, agrees, closed_form, rows
from gallery import open_cluster

GOLDEN = Path(__file__).parents[1] / "golden/thesis_tables_6_3_to_6_20_dgx_a100.csv"
NAMES = {"allgather": "all-gather", "alltoall": "all-to-all", "all-links": "all"}


def test_the_cells_are_those_of_the_golden_table():
    with GOLDEN.open(encoding="utf-8") as file:
        tables = {"6.3", "6.4", "6.5", "6.6", "6.7", "6.8"}
        ours = [row for row in csv.DictReader(file) if row["table"] in tables]
    read = [
        (
            row["table"],
            NAMES[row["collective"]],
            NAMES.get(row["links"], row["links"]),
            int(row["nodes"]),
            row["solve_s"],
            row["latency_s_per_GB"],
            row["objective_GB"],
        )
        for row in ours
    ]

    assert read == [
        (each.table, each.kind, each.used, each.hosts, each.seconds, each.latency, each.objective)
        for each in CELLS
    ]
    assert len(read) == 36
    assert {(each.table, each.hosts) for each in CELLS if each.slip} == set(SLIPS)


@pytest.mark.parametrize(
    ("value", "printed", "digits", "same"),
    [
        (36352, "36350", 4, True),
        (36356, "36350", 4, False),
        (1.96875, "1.97", 3, True),
        (0.1205, "0.12", 3, True),
        (0.1206, "0.12", 3, False),
        (112.04, "112", 4, True),
        (112.06, "112", 4, False),
        (0.21875, "0.0219", 3, False),
        (7 / 332, "0.021", 2, True),
    ],
)
def test_a_value_agrees_if_it_rounds_to_what_is_printed(value, printed, digits, same):
    assert agrees(value, printed, digits=digits) is same


def test_the_examples_of_the_thesis_give_the_numbers_of_its_text():
    """Each number's derivation stands where it is made, in `benchmarks.thesis`."""
    found = list(rows())

    assert {row.figure for row in found} == {f"2.{number}" for number in range(1, 8)}
    for row in found:
        assert row.ours == pytest.approx(row.text, rel=1e-6), row.what


def test_all_engines_agree_on_random_networks():
    """Three to eight GPUs, up to four switches, links one way and both ways."""
    _agree(range(3, RANDOM, 50))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, RANDOM, 25))
def test_all_engines_agree_on_all_random_networks(first):
    _agree(range(first, first + 25))


def _agree(seeds):
    for seed in seeds:
        found = compared(*random_network(seed))
        assert found.makespans.keys() == ENGINES.keys(), found.refused
        assert found.apart <= TOLERANCE, found


@pytest.mark.parametrize("cluster", ["thesis-2.3", "thesis-2.7", "pcie-server"])
def test_who_cannot_take_a_cluster_says_so_and_the_others_agree(cluster):
    """Memories copy and limits are shared: no cut is the truth there."""
    found = compared(cluster, open_cluster(cluster))

    assert "cut" in found.refused
    assert len(found.makespans) >= 2
    assert found.apart <= TOLERANCE


@pytest.mark.slow
def test_a_forest_is_found_and_described(monkeypatch):
    """All of two MI250 less two dies of a package: 30 shards into 332 GB/s, 15/166 s/GB."""
    wanted = (Wanted("mi250:hosts=2", 1e6),)
    monkeypatch.setattr(forests, "FORESTS", wanted)
    monkeypatch.setattr(forests, "PIPELINE", wanted)
    for part in (forests.forests, forests.pipeline):
        (made,) = part(1)
        cells = [next(iter(each.cells)) for each in made.columns]
        assert cells[:4] == ["mi250:hosts=2", "32", "15/166 = 0.0903614", "yes"]
        assert cells[-2] == "yes"


def test_an_all_reduce_is_compared_with_two_all_gathers(monkeypatch):
    """Five shards into a GPU of 1 GB/s, twice, are 10 s; 6 GB through it once are 6 s."""
    star = Reduced("star:gpus=6,bandwidth=1,wide=1,wide_bandwidth=10", "40 %")
    monkeypatch.setattr(forests, "GAINING", (star,))
    monkeypatch.setattr(forests, "EVEN", ())
    made, empty = forests.all_reduces(1)
    cells = [next(iter(each.cells)) for each in made.columns]

    assert cells[1:7] == ["6", "10", "6", "40.0%", "40.0%", "yes"]
    assert empty.row_count == 0


@pytest.mark.parametrize("declared", [True, False])
def test_a_large_cluster_has_the_rate_of_its_closed_form(declared, monkeypatch):
    """Eight nodes: 56 shards through 8 ports of 25 GB/s take 0.28 s/GB."""
    rows = tuple(
        Large("nvlink-only", 8, kind, declared=declared, weighted=True, limit=1e6)
        for kind in ("all-gather", "all-to-all")
    )
    monkeypatch.setattr(thesis, "LARGE", rows)
    (made,) = thesis.scale(1)
    found = {each.header: list(each.cells) for each in made.columns}

    assert closed_form(8, "all-gather") == pytest.approx(0.28)
    assert found["s/GB"] == found["closed form"] == ["0.28", "2.24"]
    assert found["data, GB"] == ["8960", "21504"]
    assert found["as asked"] == ["yes", "yes"]


def test_an_unknown_part_is_said():
    told = CliRunner().invoke(app, ["fluid", "abc"])

    assert told.exit_code == 2
    assert "there is no part 'abc'" in told.output
