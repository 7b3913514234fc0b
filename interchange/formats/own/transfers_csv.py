"""Transfers as CSV: one row per crossing of a link, times in µs."""

from __future__ import annotations

from collections.abc import Iterator

from ccl.serialization.conditions import Document
from ccl.serialization.text import csv_text
from ccl.timeline import Timeline
from interchange.formats.format import NoOptions, Writer, Written, one_file, replayed

COLUMNS = ("chunk", "src", "dst", "start_us", "sent_us", "end_us", "bytes", "epoch")


def transfers_csv(timeline: Timeline) -> str:
    """Return the transfers of a replay in the order of their starts.

    `start_us` to `sent_us` is when the link is held, `end_us` when the last byte is there; the
    epoch is empty where the plan has none.
    """
    return csv_text([COLUMNS, *_rows(timeline)])


def _rows(timeline: Timeline) -> Iterator[tuple[object, ...]]:
    for each in timeline.transfers:
        times = [f"{time:.9g}" for time in (each.start, each.sent, each.end)]
        epoch = each.epoch if each.epoch >= 0 else ""
        yield (each.chunk, each.src, each.dst, *times, f"{each.nbytes:.9g}", epoch)


def write(content: Document, _options: NoOptions) -> Written:
    """Write the transfers of a document's plan."""
    _, _, timeline = replayed(content)
    lost = ["the topology, the collective and what each chunk is"]
    if timeline.images > 1:
        lost.append(f"that each row stands for {timeline.images:,} alike")
    return one_file(transfers_csv(timeline), ending="csv", lost=tuple(lost))


WRITER = Writer(
    name="csv", title="Transfers as a table (CSV)", ending="csv", needs="plan", write=write
)
