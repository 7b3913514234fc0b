"""Rows of the table of best plans that `auto` meets in a few seconds; the rest is a benchmark.

`python -m benchmarks best` asks for all of them, which takes the time that the table grants.
"""

import pytest

from benchmarks.best import problem_of, rows
from formulations import solve

QUICK = {
    ("dgx-1v", "all-gather"): ("1MB", "1GB"),
    ("hypercube", "all-gather"): ("1MB", "1GB"),
    ("ndv2:hosts=2", "all-gather"): ("64KB", "1MB", "16MB", "1GB"),
    ("random:seed=1", "all-gather"): ("1MB",),
    ("random:seed=3", "all-gather"): ("1MB",),
    ("torus", "all-gather"): ("1MB", "1GB"),
    ("dgx-1v", "all-reduce"): ("1MB", "16MB", "1GB"),
    ("dgx-h100", "all-reduce"): ("1KB",),
    ("hypercube", "all-reduce"): ("1GB",),
    ("star:gpus=8", "all-reduce"): ("1KB",),
    ("torus", "all-reduce"): ("1MB", "16MB", "1GB"),
}
"""Sizes by cluster and collective."""


def quick():
    """Yield the rows of the table."""
    for row in rows():
        if row["size"] in QUICK.get((row["cluster"], row["collective"]), ()):
            yield pytest.param(row, id="-".join((row["cluster"], row["collective"], row["size"])))


@pytest.mark.parametrize("row", list(quick()))
@pytest.mark.cover(5)
def test_auto_is_as_near_to_the_bound_as_is_asked(row):
    result = solve(problem_of(row), time_limit=float(row["seconds"]))

    bound = max(result.bounds[0].makespan, float(row["bound_us"]))
    assert result.makespan <= bound * (1 + float(row["ask_percent"]) / 100)


def test_the_quick_rows_are_in_the_table():
    assert len(list(quick())) == sum(map(len, QUICK.values()))
