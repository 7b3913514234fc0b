"""Programs of one-sided puts: their nouns (`program`), and how a plan becomes one.

The first stages are those of `interchange.programs.lowering`: hops, messages, places in buffers.
Here messages become errands of thread blocks (`steps`), and these operations (`blocks`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.result import Plan
from interchange.programs import lowering
from interchange.programs.lowering.cells import IN_PLACE, cut, largest_row, pieces_row, smallest_row
from interchange.programs.lowering.hops import messages_of
from interchange.programs.one_sided.program import (
    MOST_OPERATIONS,
    Cells,
    Channel,
    Op,
    PutProgram,
    PutRank,
)
from interchange.programs.one_sided.steps import Layout, put_ranks

__all__ = ["Cells", "Channel", "Op", "Options", "PutProgram", "PutRank", "lower_one_sided"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a plan becomes a program of puts."""

    in_place: bool = field(
        default=False,
        metadata={
            "label": "In place",
            "help": "For overlapping buffers, where the collective allows it; else for separate.",
        },
    )
    ports: bool = field(
        default=True,
        metadata={
            "label": "Port channels between hosts",
            "help": "Without, all GPUs must reach one another's memory, as in one rack of NVLink.",
        },
    )
    pieces: int = pieces_row()
    operations: int = field(
        default=MOST_OPERATIONS,
        metadata={
            "label": "Operations of a thread block, at most",
            "min": 8,
            "max": MOST_OPERATIONS,
            "help": "More thread blocks and channels are used where there are more.",
        },
    )
    smallest: int = smallest_row()
    largest: int = largest_row()


def lower_one_sided(problem: Problem, plan: Plan, options: Options | None = None) -> PutProgram:
    """Return a program of puts that does what a verified plan says.

    Raises
    ------
    ProblemError
        If a runtime does not know the collective, or a thread block gets too many operations.
    """
    asked = options or Options()
    hops, buffers = cut(
        problem, plan, pieces=asked.pieces, smallest=asked.smallest, largest=asked.largest
    )
    in_place = asked.in_place and buffers.kind in IN_PLACE
    layout = Layout(problem, hops, buffers, in_place, asked.ports)
    return PutProgram(
        name=lowering.program_name(problem),
        collective=buffers.kind,
        ranks=_short_enough(layout, asked.operations),
        in_place=in_place,
        smallest=asked.smallest,
        largest=asked.largest,
        root=buffers.root,
        notes=lowering.lost_notes(problem, hops),
    )


def _short_enough(layout: Layout, operations: int) -> tuple[PutRank, ...]:
    """Open more connections until every thread block has `operations` at most.

    Raises
    ------
    ProblemError
        If it has more with one message to a connection.
    """
    messages = messages_of(layout.problem, layout.hops)
    most = operations
    while True:
        ranks = put_ranks(layout, messages, most=most)
        longest = max((len(ops) for rank in ranks for ops in rank.blocks), default=0)
        if longest <= operations:
            return ranks
        if most == 1:
            raise ProblemError(
                f"a thread block needs {longest} operations with one message alone, and may have "
                f"{operations}; ask for fewer chunks"
            )
        most //= 2
