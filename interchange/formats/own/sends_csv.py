"""The sends of a schedule as CSV: one row each, in the order of the schedule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ccl.errors import FormatError
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.serialization.conditions import Document
from ccl.serialization.text import csv_text
from interchange.formats.format import NoOptions, Writer, Written, one_file, replayed

COLUMNS = (
    "epoch",
    "chunk",
    "src",
    "via",
    "dst",
    "fraction",
    "bytes",
    "holders",
    "destinations",
    "reduced",
)


def sends_csv(problem: Problem, schedule: Schedule) -> str:
    """Return the sends as a table.

    `via` lists the devices that are crossed without a stop, `holders` and `destinations` the ranks
    of the chunk; lists are CSV again, with semicolons.
    """
    return csv_text([COLUMNS, *_rows(problem, schedule)])


def _rows(problem: Problem, schedule: Schedule) -> Iterator[tuple[object, ...]]:
    ends = [
        (_listed(each.holders), _listed(each.destinations), "yes" if each.reduced else "no")
        for each in problem.collective.chunks
    ]
    for send in schedule.sends:
        nbytes = problem.collective.chunks[send.chunk].size * send.fraction
        row = (send.epoch, send.chunk, send.src, _listed(send.via), send.dst, send.fraction)
        yield (*row, f"{nbytes:.9g}", *ends[send.chunk])


def write(content: Document, _options: NoOptions) -> Written:
    """Write the sends of a document's schedule."""
    problem, plan, _ = replayed(content)
    if not isinstance(plan, Schedule):
        what = type(plan).__name__.lower()
        raise FormatError(f"a {what} has no sends in epochs; write its transfers, the format csv")
    lost = (
        f"that there are {plan.horizon:,} epochs of {plan.epoch_duration:.6g} µs",
        "the topology",
        "tenants and priorities of chunks, and windows",
    )
    return one_file(sends_csv(problem, plan), ending="csv", lost=lost)


def _listed(values: Iterable[object]) -> str:
    return csv_text([values], delimiter=";", line_end="")


WRITER = Writer(
    name="sends-csv", title="Sends as a table (CSV)", ending="csv", needs="plan", write=write
)
