"""The benchmark of fluid optima prints the figures that were published, and compares them truly."""

import csv
from pathlib import Path

import pytest

from benchmarks.fluid_toys import rows
from benchmarks.thesis_tables import CELLS, SLIPS, agrees

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
    """Each number's derivation stands where it is made, in `benchmarks.fluid_toys`."""
    found = list(rows())

    assert {row.figure for row in found} == {f"2.{number}" for number in range(1, 8)}
    for row in found:
        assert row.ours == pytest.approx(row.text, rel=1e-6), row.what
