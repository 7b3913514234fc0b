"""What others published is what the golden tables have, for the same clusters and sizes."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from ccl.collective import all_gather, make_collective
from ccl.problem import Problem
from ccl.serialization.quantity import parse_size
from gallery import open_cluster
from gallery.published import POINTS, published

GOLDEN = Path(__file__).parents[1] / "golden"
KINDS = {"allgather": "all-gather", "alltoall": "all-to-all"}


def rows(name):
    with (GOLDEN / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def points(table):
    return {(p.method, p.kind, p.size): p.makespan for p in POINTS if p.source.endswith(table)}


def test_table_8_is_there_with_its_best_epochs():
    wanted = {}
    for row in rows("te_ccl_table8_ndv2_2_chassis.csv"):
        key = KINDS[row["collective"]], parse_size(row["output_buffer"])
        if row["epoch"] == "optimal":
            wanted["TE-CCL", *key] = float(row["finish_us"])
            if row["taccl_finish_us"]:
                wanted["TACCL", *key] = float(row["taccl_finish_us"])

    assert points("table 8") == wanted


def test_table_3_is_there():
    wanted = {}
    for row in rows("te_ccl_table3_dgx1_25KB_alpha0.7us.csv"):
        key = KINDS[row["collective"]], 8 * 25e3 * int(row["chunks"])
        wanted["SCCL", *key] = float(row["msccl_us"])
        wanted["TE-CCL", *key] = float(row["te_ccl_us"])

    assert points("table 3") == wanted


@pytest.mark.parametrize(("kind", "methods"), [("all-gather", 2), ("all-reduce", 0)])
def test_only_the_same_collective_and_size_is_told(kind, methods):
    asked = Problem(open_cluster("ndv2:hosts=2"), make_collective(kind, 16, 1e6))

    found = published(asked, [1e6, 3e6])

    assert len({each.method for each in found}) == len(found) == methods
    assert {each.size for each in found} <= {1e6}


def test_another_cluster_has_none_of_them():
    same = open_cluster("ndv2:hosts=2")
    wider = replace(same, links=(replace(same.links[0], bandwidth=51.0), *same.links[1:]))

    assert published(Problem(same, all_gather(16, 1e6)), [1e6])
    assert published(Problem(wider, all_gather(16, 1e6)), [1e6]) == ()
