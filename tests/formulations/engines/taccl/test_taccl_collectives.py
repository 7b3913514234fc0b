"""TACCL on every collective, beside what TACCL has published, and what it refuses."""

import csv
from pathlib import Path

import pytest

from ccl.collective import all_gather, make_collective
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.result import Status
from ccl.serialization.quantity import parse_size
from ccl.topology import SharedLimit, Topology, device, duplex
from formulations import formulation, solve
from formulations.engines.taccl import search
from gallery import open_cluster

MB = 1e6
TABLE_8 = Path(__file__).parents[3] / "golden" / "te_ccl_table8_ndv2_2_chassis.csv"
KINDS = {"allgather": "all-gather", "alltoall": "all-to-all"}


def published() -> list[tuple[str, str, float]]:
    """Kind, size and TACCL's finish time in µs of each row that has one, each once."""
    with TABLE_8.open(encoding="utf-8") as file:
        found = {
            (KINDS[row["collective"]], row["output_buffer"]): float(row["taccl_finish_us"])
            for row in csv.DictReader(file)
            if row["taccl_finish_us"]
        }
    return [(kind, size, makespan) for (kind, size), makespan in found.items()]


def taccl(cluster, kind, size, *, chunks=1, time_limit=None, **options):
    topology = open_cluster(cluster)
    collective = make_collective(kind, len(topology.ranks), size, chunks=chunks)
    options = {"quick": False, **options}
    return solve(Problem(topology, collective), "taccl", options=options, time_limit=time_limit)


HANDFUL = ("1GB", "4MB", "256KB", "1KB")


@pytest.mark.parametrize(
    ("kind", "size", "makespan"), [row for row in published() if row[1] in HANDFUL]
)
def test_no_row_of_table_8_is_longer_than_published(kind, size, makespan):
    """TE-CCL, table 8, columns of TACCL: NDv2 x 2, its finish times of every size."""
    result = taccl("ndv2:hosts=2", kind, parse_size(size), time_limit=60)

    assert result.makespan <= makespan


@pytest.mark.slow
def test_no_other_row_of_table_8_is_longer_either():
    for kind, size, makespan in published():
        if size not in HANDFUL:
            assert taccl("ndv2:hosts=2", kind, parse_size(size)).makespan <= makespan


def test_every_row_of_table_8_is_there():
    """Eleven sizes of two collectives; one of all-gather has no finish time of TACCL."""
    assert len(published()) == 21


@pytest.mark.parametrize(
    ("cluster", "size", "published"), [("ndv2:hosts=2", 16e6, 856), ("ndv2:hosts=4", 32e6, 2568)]
)
def test_ways_and_their_order_meet_the_bound_of_the_network(cluster, size, published):
    """NDv2 at 1 MB a chunk: a host takes in 8 chunks of each other one at 12.5 GB/s, 80 µs each.

    The published program's routing is bounded by 107 µs each, with other links and latency that
    holds them; so the replay here is shorter than that bound.
    """
    result = taccl(cluster, "all-gather", size, time_limit=60)

    hosts = len(result.plan.sends) and int(cluster[-1])
    assert 8 * (hosts - 1) * 80 < result.makespan < published
    assert result.status is Status.WHOLE


@pytest.mark.parametrize("cluster", ["ring:gpus=5", "star:gpus=4", "dgx-1v"])
def test_a_reduce_scatter_takes_no_longer_than_the_all_gather_it_mirrors(cluster):
    """Links are alike both ways, so that each plan of the one backwards is one of the other.

    Ordered anew it may be shorter, and with two orders to choose from it is not longer.
    """
    ranks = len(open_cluster(cluster).ranks)

    gathered = taccl(cluster, "all-gather", ranks * MB)
    reduced = taccl(cluster, "reduce-scatter", ranks * MB)

    assert reduced.makespan == pytest.approx(gathered.makespan, rel=0.02)


@pytest.mark.parametrize("cluster", ["ring:gpus=5", "star:gpus=4", "dgx-1v"])
def test_an_all_reduce_is_no_longer_than_both_halves(cluster):
    """What spreads begins as soon as its own sum is there, at the latest when all are."""
    ranks = len(open_cluster(cluster).ranks)

    gathered, reduced, both = (
        taccl(cluster, kind, ranks * MB) for kind in ("all-gather", "reduce-scatter", "all-reduce")
    )

    assert both.makespan <= (gathered.makespan + reduced.makespan) * (1 + 1e-9)


def test_a_limit_before_step_1_leaves_the_quick_ways():
    """A hundredth of a second is over before the program is built: its start stands."""
    result = taccl("ndv2:hosts=2", "all-to-all", 1e6, time_limit=0.01)

    assert any("the quick ones stay" in line for line in result.log)
    assert result.status is not Status.OPTIMAL or result.gap == pytest.approx(0, abs=1e-6)


def test_a_program_that_would_be_too_large_leaves_the_quick_ways(monkeypatch):
    monkeypatch.setattr(search, "MOST_TAKEN", 10)

    result = taccl("dgx-1v", "all-gather", 8 * MB)

    assert any("binary variables, more than 10; the quick ones stay" in each for each in result.log)


def test_quick_ways_that_meet_a_bound_end_the_search():
    """Offered first, they are on NDv2 x 2 what step 1 finds too: no step is in the log."""
    result = taccl("ndv2:hosts=2", "all-gather", 16e6, quick=True, stop_at_proof=True)

    assert result.status is Status.WHOLE
    assert not any(line.startswith("step 1") for line in result.log)


def test_limits_that_bind_and_floods_of_chunks_are_refused_in_words():
    pair = Topology(
        "pair",
        (device("gpu", "g0"), device("gpu", "g1")),
        duplex("g0", "g1", bandwidth=50.0),
        (SharedLimit("bus", (("g0", "g1"), ("g1", "g0")), 50.0),),
    )
    mesh = Problem(open_cluster("full-mesh:gpus=64"), all_gather(64, MB, chunks=8))

    with pytest.raises(ProblemError, match="limit bus of 50 GB/s is below the sum of its links"):
        solve(Problem(pair, all_gather(2, MB)), "taccl")
    assert "deliveries of chunks" in (formulation("taccl").why_not(mesh) or "")


def test_the_seed_decides_ties_and_repeats():
    first, second = (taccl("dgx-1v", "all-gather", 8 * MB, seed=3) for _ in range(2))

    assert first.plan == second.plan


def test_in_the_papers_model_step_3_is_told_in_the_log():
    """NDv2 x 2: a link between the hosts carries 8 chunks, which may go together there."""
    result = taccl("ndv2:hosts=2", "all-gather", 16e3)

    assert any("in the paper's model" in line and "together" in line for line in result.log)
