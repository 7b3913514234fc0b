"""Tables as CSV (RFC 4180) that no spreadsheet takes for formulas.

A spreadsheet computes what begins with one of a few signs, and a name of a file of others may begin
so. Such a text gets an apostrophe before it, which spreadsheets do not show; numbers stay numbers.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_FORMULA = re.compile(r"\s*[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20]")
"""White space before a sign is skipped by some; the last four are wide forms that others take."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def csv_text(
    rows: Iterable[Iterable[object]], *, delimiter: str = ",", line_end: str = "\n"
) -> str:
    """Return rows as a table; texts that would be formulas are made plain."""
    lines: list[str] = []
    # Only what may end a line is quoted, and a cell may have either sign in it.
    writer = csv.writer(_Lines(lines.append), delimiter=delimiter, lineterminator="\r\n")
    writer.writerows(map(_plain, row) for row in rows)
    return "".join(f"{line[:-2]}{line_end}" for line in lines)


@dataclass(frozen=True)
class _Lines:
    """A file that takes lines."""

    write: Callable[[str], None]


def _plain(cell: object) -> object:
    """Return a cell as it is, or with an apostrophe."""
    if isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell
