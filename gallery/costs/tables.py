"""Bills as tables: CSV, and XLSX with a sheet each for parts, cables and what was assumed."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

from ccl.serialization.text import csv_text
from gallery.costs.bill import Bill
from gallery.costs.parts import Span

PART_COLUMNS = (
    *("part", "title", "group", "count", "unit"),
    *("dollars_low", "dollars_typical", "dollars_high"),
    *("watts_low", "watts_typical", "watts_high"),
    *("total_dollars_low", "total_dollars_typical", "total_dollars_high", "total_watts_typical"),
    *("source", "date"),
)
"""Dollars and watts are of one; those called total of all."""

CABLE_COLUMNS = (
    *("label", "box", "port", "other_box", "other_port"),
    *("bandwidth_GBps", "class", "length_m", "rack", "other_rack"),
)

Cells = Sequence[str | float]


def part_rows(bill: Bill) -> Iterator[Cells]:
    """Yield the rows of the table of parts, with sums of the network and of all below."""
    for each in bill.rows:
        dollars = each.dollars * each.count
        yield (
            *(each.part, each.title, each.group, each.count, each.unit),
            *_three(each.dollars),
            *_three(each.watts),
            *_three(dollars),
            (each.watts * each.count).typical,
            *(each.source, each.date),
        )
    sums = (
        ("sum", "switches, cables and transceivers", bill.network_dollars, bill.network_watts),
        ("sum", "everything", bill.dollars, bill.watts),
    )
    for part, title, dollars, watts in sums:
        nothing = ("",) * 9
        yield (part, title, *nothing, *_three(dollars), watts.typical, "", "")


def cable_rows(bill: Bill) -> Iterator[Cells]:
    """Yield the rows of the table of cables."""
    for each in bill.cables:
        first, second = each.first, each.second
        yield (
            *(each.label, first.box, first.port, second.box, second.port),
            *(each.bandwidth, each.kind, round(each.length, 2)),
            *(bill.racks[first.box] + 1, bill.racks[second.box] + 1),
        )


def note_rows(bill: Bill) -> Iterator[Cells]:
    """Yield what was assumed and what is not modelled."""
    yield from (("assumed", each) for each in bill.assumed)
    yield ("not modelled", bill.left_out)


def bill_csv(bill: Bill) -> str:
    """Return the parts as CSV, with what was assumed and left out at the end."""
    return csv_text([PART_COLUMNS, *part_rows(bill), *note_rows(bill)])


def bill_xlsx(bill: Bill) -> bytes:
    """Return a workbook of parts, cables and notes; texts are never formulas."""
    from xlsxwriter import Workbook  # noqa: PLC0415  only who writes a workbook waits for it

    content = io.BytesIO()
    sheets = (
        ("parts", PART_COLUMNS, part_rows(bill)),
        ("cables", CABLE_COLUMNS, cable_rows(bill)),
        ("notes", ("", ""), note_rows(bill)),
    )
    options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    with Workbook(content, options) as book:
        bold = book.add_format({"bold": True})
        for name, columns, rows in sheets:
            sheet = book.add_worksheet(name)
            sheet.write_row(0, 0, columns, bold)
            sheet.freeze_panes(1, 0)
            for number, cells in enumerate(rows, start=1):
                sheet.write_row(number, 0, cells)
            sheet.autofit()
    return content.getvalue()


def _three(span: Span) -> tuple[float, float, float]:
    return round(span.low, 4), round(span.typical, 4), round(span.high, 4)
