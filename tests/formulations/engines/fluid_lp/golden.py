"""Golden tables of the papers on fluid optima."""

import csv
from pathlib import Path

GOLDEN = Path(__file__).parents[3] / "golden"


def rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a table."""
    with (GOLDEN / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
