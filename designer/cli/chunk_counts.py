"""``--chunks 1,2,4,8``: several numbers of chunks per shard, and which of them are worth it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ccl import text
from ccl.errors import ProblemError
from ccl.result import Result
from designer.cli.asked import print_table
from formulations.analyses.chunk_counts import chunks_per_shard, common_bound, common_gap, pareto

ChunkCountsOption = Annotated[
    str | None,
    typer.Option(
        "--chunks",
        metavar="N[,N...]",
        help="Keep so many chunks per shard whole; by default plans cut as they like. Of several "
        "numbers the best is kept, and those are shown that fewer chunks do not beat; a time limit "
        "is for all of them.",
        show_default=False,
    ),
]


def read_counts(given: str | None) -> tuple[int | None, ...]:
    """Return the numbers that are given, or one None for the default.

    Raises
    ------
    ProblemError
        If one is not a whole number.
    """
    if given is None:
        return (None,)
    try:
        return tuple(int(each) for each in given.split(","))
    except ValueError:
        msg = f"--chunks is {given!r}; give whole numbers joined by commas, such as 1,2,4"
        raise ProblemError(msg) from None


def front_rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return what ``--json`` prints of the results that fewer chunks do not beat."""
    return [
        {
            "chunks": chunks_per_shard(each),
            "makespan_us": each.makespan,
            "gap": common_gap(each, results),
            "found_by": each.found_by or each.formulation,
            "solve_s": each.solve_time,
        }
        for each in pareto(results)
    ]


def print_front(results: Sequence[Result]) -> None:
    """Print makespan against chunks, with the gap to what holds for any number of them."""
    bound = common_bound(results)
    print_table(
        ("chunks", "makespan", "above the bound for any number", "found by", "solved in"),
        (
            (
                f"{row['chunks']}",
                f"{row['makespan_us']:.6g} µs",
                text.share(row["gap"]),
                row["found_by"],
                text.seconds(row["solve_s"]),
            )
            for row in front_rows(results)
        ),
    )
    tried = ", ".join(str(chunks_per_shard(each)) for each in results)
    typer.echo(f"tried {tried}; no number of chunks is below {bound.makespan:.6g} µs\n")
