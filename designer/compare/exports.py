"""A comparison as a file: everything as JSON, the table as CSV."""

from __future__ import annotations

import csv
import io
import json

from formulations.comparison import Comparison, comparison_to_json

COLUMNS = (
    "size", "method", "status", "fastest", "makespan_us", "bound_us", "gap", "own_gap",
    "algbw_GBps", "busbw_GBps", "solve_s", "variables", "constraints", "found_by", "stop",
    "formula", "formula_us", "why", "why_not",
)  # fmt: skip
"""Of the CSV; sizes in bytes, gaps as shares."""


def export_json(comparison: Comparison) -> str:
    """Return the whole comparison with every plan; `comparison_from_json` reads it."""
    return json.dumps(comparison_to_json(comparison), separators=(",", ":"))


def export_csv(comparison: Comparison) -> str:
    """Return a row per method and size; what is not there is empty."""
    file = io.StringIO()
    writer = csv.DictWriter(file, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(comparison.table())
    return file.getvalue()
