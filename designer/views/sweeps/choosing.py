"""Which rows of a sweep are looked at, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from formulations.campaigns.sweeps.rows import Row

SHOWN = ("best", "plans", "all", "none")
"""What may be shown: the best plan for each question, all plans, all rows, rows without a plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the user has chosen; what is empty leaves everything.

    Parameters
    ----------
    clusters, collectives, formulations
        Names of which a row has one.
    words
        Words that a row's names, options or reasons contain, each of them.
    shown
        One of `SHOWN`.
    by
        Column by which the rows are sorted; empty for the order of the tasks.
    down
        Whether the largest comes first.
    """

    clusters: tuple[str, ...] = ()
    collectives: tuple[str, ...] = ()
    formulations: tuple[str, ...] = ()
    words: str = ""
    shown: str = "best"
    by: str = ""
    down: bool = False


COLUMNS = tuple(each.name for each in fields(Row))


def read_choice(data: Mapping[str, Any] | None) -> Choice:
    """Make a choice of what the page keeps; what it does not know is left out."""
    given = data or {}
    shown, by = given.get("shown"), given.get("by")
    return Choice(
        clusters=tuple(map(str, given.get("clusters") or ())),
        collectives=tuple(map(str, given.get("collectives") or ())),
        formulations=tuple(map(str, given.get("formulations") or ())),
        words=str(given.get("words") or ""),
        shown=shown if shown in SHOWN else "best",
        by=by if by in COLUMNS else "",
        down=bool(given.get("down")),
    )


def chosen(rows: Iterable[Row], choice: Choice) -> list[Row]:
    """Return the rows that a choice leaves, in its order; rows without a value come last."""
    words = choice.words.lower().split()
    found = [row for row in rows if _matches(row, choice) and all(w in _text(row) for w in words)]
    if choice.shown == "best":
        found = best(found)
    elif choice.shown != "all":
        found = [row for row in found if bool(row.why_not) is (choice.shown == "none")]
    if not choice.by:
        return found
    known = [row for row in found if getattr(row, choice.by) is not None]
    known.sort(key=lambda row: getattr(row, choice.by), reverse=choice.down)
    return known + [row for row in found if getattr(row, choice.by) is None]


def best(rows: Iterable[Row]) -> list[Row]:
    """Return of each question (cluster, collective, size, root) the fastest plan that was found."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        if row.makespan is None:
            continue
        key = (row.cluster, row.gpus, row.hosts, row.collective, row.size, row.root)
        other = found.get(key)
        if other is None or other.makespan is None or row.makespan < other.makespan:
            found[key] = row
    return list(found.values())


def values(rows: Sequence[Row], column: str) -> list[str]:
    """Return the different values of a column of names, in the order in which they come."""
    return list(dict.fromkeys(getattr(row, column) for row in rows))


def _matches(row: Row, choice: Choice) -> bool:
    return all(
        not wanted or value in wanted
        for value, wanted in (
            (row.cluster, choice.clusters),
            (row.collective, choice.collectives),
            (row.formulation, choice.formulations),
        )
    )


def _text(row: Row) -> str:
    parts = (row.cluster, row.collective, row.formulation, row.options, row.status, row.why_not)
    return " ".join(filter(None, (*parts, row.bottleneck, row.found_by))).lower()
