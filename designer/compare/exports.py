"""A comparison as a file: everything as JSON, the table as CSV."""

from __future__ import annotations

import csv
import io
import json

from formulations.comparison import Comparison, comparison_to_json


def export_json(comparison: Comparison) -> str:
    """Return the whole comparison with every plan; `comparison_from_json` reads it."""
    return json.dumps(comparison_to_json(comparison), separators=(",", ":"))


def export_csv(comparison: Comparison) -> str:
    """Return a row per method and size: bytes, µs, GB/s and s; what is not there is empty."""
    rows = comparison.table()
    file = io.StringIO()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()
