"""``auto`` beside the published figures: proved, met or beaten, and never worse than one method.

A makespan here is that of the replay in continuous time with every latency counted. TE-CCL's
finish times (table 8) are epochs times their duration, and drop latencies below a tenth of an
epoch.
"""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ccl.collective import CollectiveKind, make_collective
from ccl.problem import Problem
from ccl.result import Status
from ccl.serialization.quantity import parse_size
from formulations import available, formulation, pareto, solve, sweep_counts
from formulations.analyses.chunk_counts import chunks_per_shard, common_bound
from gallery import open_cluster

TABLE_8 = Path(__file__).parents[1] / "golden/te_ccl_table8_ndv2_2_chassis.csv"

DROPPED = 2.7
"""µs from the GPU at the port to the farthest ones on the other NDv2, all latency: network and two
NVLinks (1.3 + 0.7 + 0.7).

The better column has epochs of 20 µs and more from 16 MB up; a tenth of them is above 1.3 µs, so
there the paper's times have no latency at all. Below, some of it is in, and none is allowed for.
"""


@cache
def better(collective: str) -> dict[str, float]:
    """Return size -> the best finish time in µs of the columns for both epoch durations."""
    best: dict[str, float] = {}
    with TABLE_8.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["collective"] == collective:
                size, finish = row["output_buffer"], float(row["finish_us"])
                best[size] = min(best.get(size, finish), finish)
    return best


def marked(values: Iterable[Any], *, slow: Iterable[Any]) -> list[Any]:
    """Return parameters, those marked that are searched until the time is up."""
    marks = [pytest.mark.slow, pytest.mark.alone]
    return [
        pytest.param(each, id=str(each), marks=marks if each in slow else []) for each in values
    ]


def asked(cluster: str, kind: CollectiveKind, size: str, *, chunks: int | None = None) -> Problem:
    topology = open_cluster(cluster)
    made = make_collective(kind, len(topology.ranks), parse_size(size), chunks=chunks)
    return Problem(topology, made)


def test_table_8_has_eleven_sizes_of_each():
    assert len(better("allgather")) == len(better("alltoall")) == 11


@pytest.mark.parametrize("size", better("allgather"))
def test_auto_proves_the_all_gathers_of_table_8(size):
    """The paper's own search ends unproved after two hours from 16 MB up."""
    dropped = DROPPED if parse_size(size) >= 16e6 else 0.0

    result = solve(asked("ndv2:hosts=2", "all-gather", size, chunks=1))

    assert result.status is Status.WHOLE
    assert result.makespan <= better("allgather")[size] + dropped


@pytest.mark.parametrize("size", marked(better("alltoall"), slow=("16KB", "4KB", "1KB")))
def test_auto_meets_or_beats_the_all_to_alls_of_table_8(size):
    result = solve(asked("ndv2:hosts=2", "all-to-all", size), time_limit=18)

    assert result.makespan <= better("alltoall")[size]


COPYING = ("ndv2:hosts=4,copies=true", "dgx-2-te-ccl:copies=true")


@pytest.mark.parametrize("cluster", COPYING)
@pytest.mark.parametrize("size", better("allgather"))
@pytest.mark.cover(4)
def test_auto_proves_32_gpus_behind_switches_that_copy(cluster, size):
    """The bound knows nothing of how plans are found, and the plan meets it."""
    result = solve(asked(cluster, "all-gather", size, chunks=1), time_limit=20)

    assert result.status in (Status.OPTIMAL, Status.WHOLE)


@pytest.mark.parametrize(("cluster", "makespan"), [(COPYING[0], 61_879.0), (COPYING[1], 7_750.7)])
def test_1_gb_for_32_gpus_behind_switches_that_copy(cluster, makespan):
    """A shard is 31.25 MB.

    The port of an NDv2 takes in the 24 shards of the other boxes at 12.5 GB/s, in 60,000 µs after
    2 × 1.3 µs of latency; the last goes on over two NVLinks of 50 and 25 GB/s, 1,875 µs and 1.4 µs
    of latency. On DGX-2 an odd GPU has nothing but its link of 125 GB/s to take in 31 shards, in
    7,750 µs after 2 × 0.35 µs.
    """
    result = solve(asked(cluster, "all-gather", "1GB", chunks=1))

    assert result.makespan == pytest.approx(makespan)


def test_with_chunks_free_1_gb_on_two_ndv2_is_within_a_percent_of_the_bound():
    """The 500 MB of a box pass one port of 12.5 GB/s in 40,000 µs, and its latency is 1.3 µs.

    The last chunk of k per shard then goes on from the GPU behind the port, whose farthest
    neighbours are two NVLinks away, one of 50 and one of 25 GB/s: 62.5 MB / k take 3,750 / k µs
    and 1.4 µs of latency. Nothing comes before, as the GPU at the port sends its own chunks first.
    With 16 chunks this is 40,237.1 µs; TACOS's program came to 40,402 with as many.
    """
    results = sweep_counts(
        open_cluster("ndv2:hosts=2"), "all-gather", 1e9, counts=(1, 4, 16), formulation="list"
    )
    front = pareto(results)

    assert common_bound(results).makespan == pytest.approx(40_001.3)
    assert [chunks_per_shard(each) for each in front] == [1, 4, 16]
    assert [each.makespan for each in front] == pytest.approx(
        [40_002.7 + 3_750 / k for k in (1, 4, 16)]
    )
    assert front[-1].makespan < 40_300


@dataclass(frozen=True)
class Row:
    """A problem that several methods take."""

    cluster: str
    kind: CollectiveKind
    size: str

    def __str__(self) -> str:
        return f"{self.kind}-{self.cluster}-{self.size}"


SEARCHED = (Row("dgx-1v", "all-to-all", "1MB"), Row("dgx-1v", "all-reduce", "64KB"))
ROWS = (
    Row("star", "all-gather", "1MB"),
    Row("ndv2:hosts=2", "all-gather", "1MB"),
    Row("dgx-1v", "all-gather", "25KB"),
    *SEARCHED,
    Row("torus", "reduce-scatter", "64KB"),
    Row("ring", "all-reduce", "1GB"),
    Row("star", "all-to-all", "64KB"),
)


@pytest.mark.parametrize("row", marked(ROWS, slow=SEARCHED))
@pytest.mark.cover(1)
def test_auto_is_never_worse_than_a_single_method(row):
    """Every method that takes the problem gets as long as ``auto`` has for all of them.

    Where ``auto`` keeps chunks whole, those that split them are asked for something else. It ends
    near a bound, so half a percent may be missing; or two percent to the very search that found
    it, where changes by chance decide: eight runs ended within 0.6 % of one another on an idle
    machine.
    """
    problem = asked(row.cluster, row.kind, row.size)
    whole = formulation("auto").keeps_chunks(problem)
    names = [
        each.name
        for each in available()
        if each.why_not(problem) is None
        if each.keeps_chunks(problem) or not whole
    ]

    seconds = 20 if row in SEARCHED else 6
    found = {name: solve(problem, name, time_limit=seconds) for name in names}
    auto = found.pop("auto")
    alone = {name: each.makespan for name, each in found.items()}
    allowed = {name: 1.02 if name == auto.found_by == "pieces" else 1.005 for name in alone}

    assert len(alone) >= 3
    assert not [name for name in alone if auto.makespan > alone[name] * allowed[name]], alone
