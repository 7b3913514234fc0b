"""Plans as tables in CSV: the sends of a schedule, the transfers of a replay; times in µs."""

from collections.abc import Iterable, Iterator

from ccl.errors import FormatError
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.serialization.documents import Document
from ccl.serialization.text import csv_text
from ccl.timeline import Timeline
from interchange.formats.format import Writer, Written, one_file, replayed

SENDS = (
    *("epoch", "chunk", "src", "via", "dst", "fraction", "bytes"),
    *("holders", "destinations", "reduced"),
)
TRANSFERS = ("chunk", "src", "dst", "start_us", "sent_us", "end_us", "bytes", "epoch")
"""Columns of the two tables."""


def sends_csv(problem: Problem, schedule: Schedule) -> str:
    """Return the sends as a table, one row each, in the order of the schedule.

    `via` lists the devices that are crossed without a stop, `holders` and `destinations` the ranks
    of the chunk; lists are CSV again, with semicolons. Where sends name the contributions that they
    carry, a last column `terms` lists their ranks.
    """
    rows: Iterable[tuple[object, ...]] = [SENDS, *_send_rows(problem, schedule)]
    if any(send.terms is not None for send in schedule.sends):
        terms = (_listed(sorted(send.terms or ())) for send in schedule.sends)
        rows = ((*row, each) for row, each in zip(rows, ("terms", *terms), strict=True))
    return csv_text(rows)


def _send_rows(problem: Problem, schedule: Schedule) -> Iterator[tuple[object, ...]]:
    ends = [
        (_listed(each.holders), _listed(each.destinations), "yes" if each.reduced else "no")
        for each in problem.collective.chunks
    ]
    for send in schedule.sends:
        nbytes = problem.collective.chunks[send.chunk].size * send.fraction
        row = (send.epoch, send.chunk, send.src, _listed(send.via), send.dst, send.fraction)
        yield (*row, f"{nbytes:.9g}", *ends[send.chunk])


def _listed(values: Iterable[object]) -> str:
    return csv_text([values], delimiter=";", line_end="")


def _write_sends(content: Document) -> Written:
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


def transfers_csv(timeline: Timeline) -> str:
    """Return the transfers of a replay in the order of their starts, one crossing of a link a row.

    `start_us` to `sent_us` is when the link is held, `end_us` when the last byte is there; the
    epoch is empty where the plan has none.
    """
    return csv_text([TRANSFERS, *_transfer_rows(timeline)])


def _transfer_rows(timeline: Timeline) -> Iterator[tuple[object, ...]]:
    for each in timeline.transfers:
        times = [f"{time:.9g}" for time in (each.start, each.sent, each.end)]
        epoch = each.epoch if each.epoch >= 0 else ""
        yield (each.chunk, each.src, each.dst, *times, f"{each.nbytes:.9g}", epoch)


def _write_transfers(content: Document) -> Written:
    _, _, timeline = replayed(content)
    lost = ["the topology, the collective and what each chunk is"]
    if timeline.images > 1:
        lost.append(f"that each row stands for {timeline.images:,} alike")
    return one_file(transfers_csv(timeline), ending="csv", lost=tuple(lost))


WRITERS = (
    Writer("sends-csv", "Sends as a table (CSV)", "csv", "plan", _write_sends),
    Writer("csv", "Transfers as a table (CSV)", "csv", "plan", _write_transfers),
)
