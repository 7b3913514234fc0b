"""Rows of the tables as in a spreadsheet: filtered, pasted into, filled down and copied.

Many cells change by one command, which is one step to undo; each value is checked as if it were
typed alone.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ccl.errors import ProblemError
from designer.shell import ui
from designer.views.draw import edits

Json = Mapping[str, Any]
What = Literal["device", "link"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: the key in the JSON, its heading, and how it is edited."""

    key: str
    label: str
    kind: str


COLUMNS: dict[What, tuple[Column, ...]] = {
    "device": (
        Column("name", "Name", "text"),
        Column("kind", "Kind", "kind"),
        Column("host", "Host", "text"),
        Column("stores", "Stores", "flag"),
        Column("copies", "Copies", "flag"),
        Column("reduces", "Reduces", "flag"),
    ),
    "link": (
        Column("src", "From", "plain"),
        Column("dst", "To", "plain"),
        Column("bandwidth", "Bandwidth", "number"),
        Column("gigabits", "Gb/s", "plain"),
        Column("alpha", "Alpha", "number"),
        Column("count", "Parallel links", "number"),
        Column("medium", "Medium", "text"),
    ),
}
KIND_LABELS = {each.kind: each.label for each in ui.DEVICE_TYPES}

Change = tuple[str, str, Any]
"""A row by its key, the key of a column, and what the cell is to hold."""


def key_of(what: What, row: Json) -> str:
    """Return by which name a row is known: a device's, or the two ends of a link."""
    return str(row["name"]) if what == "device" else f"{row['src']}\n{row['dst']}"


def sort_key(value: Any) -> tuple[int, float, str]:
    """Order numbers, then texts with gpu2 before gpu10, then nothing."""
    if isinstance(value, int | float):
        return 0, float(value), ""
    if value is None:
        return 2, 0.0, ""
    return 1, 0.0, re.sub(r"\d+", lambda digits: digits[0].zfill(9), str(value))


@dataclass(frozen=True, slots=True)
class Filter:
    """Which rows are shown.

    Parameters
    ----------
    words
        Each of them is somewhere in a row.
    kind
        ``device:gpu`` for a kind of devices, ``link:NVLink 4`` for a medium, or empty for all.
    """

    words: str = ""
    kind: str = ""

    def shows(self, what: What) -> bool:
        """Whether rows of this table may be shown."""
        return not self.kind or self.kind.startswith(f"{what}:")

    def rows(self, what: What, topology: Json) -> list[Json]:
        """Return the rows of a table that are shown, in the order of the drawing."""
        if not self.shows(what):
            return []
        field = "kind" if what == "device" else "medium"
        wanted = self.kind.partition(":")[2]
        words = self.words.lower().split()
        rows: Sequence[Json] = topology[f"{what}s"]
        if self.kind:
            rows = [row for row in rows if str(row.get(field) or "") == wanted]
        return [row for row in rows if _has_all(words, what, row)] if words else list(rows)


def _has_all(words: Iterable[str], what: What, row: Json) -> bool:
    cells = [str(row.get(each.key) or "") for each in COLUMNS[what] if each.kind != "flag"]
    if what == "device":
        cells.append(KIND_LABELS.get(row["kind"], ""))
    said = " ".join(cells).lower()
    return all(word in said for word in words)


def kinds_of(topology: Json) -> list[Json]:
    """Return the choices of `Filter.kind` that the drawing has, as groups of a menu."""
    kinds = {each["kind"] for each in topology["devices"]}
    media = sorted({str(each.get("medium") or "") for each in topology["links"]})
    devices = [
        {"value": f"device:{kind}", "label": label}
        for kind, label in KIND_LABELS.items()
        if kind in kinds
    ]
    links = [{"value": f"link:{each}", "label": each or "Links without a medium"} for each in media]
    groups = (("Devices", devices), ("Links", links))
    return [{"group": title, "items": items} for title, items in groups if items]


def paste_cells(what: What, rows: Sequence[Json], at: tuple[str, str], text: str) -> list[Change]:
    """Return what a text of a spreadsheet changes, cells parted by tabs, from a cell on.

    A first line of headings says which columns they are. Columns that cannot be edited stay.

    Parameters
    ----------
    what, rows
        The table, and its rows as they are shown.
    at
        Key of the row and of the column where it begins.
    text
        As it was copied.

    Raises
    ------
    ProblemError
        If there is none, or it has more rows or columns than there are from there on.
    """
    lines = [line.split("\t") for line in text.rstrip("\r\n").splitlines()]
    if not lines:
        raise ProblemError("there is no text to paste; copy cells, and let this page read them")
    columns = COLUMNS[what]
    begin = next(i for i, each in enumerate(columns) if each.key == at[1])
    labels = {each.label.lower(): each for each in columns}
    heads = [labels.get(cell.strip().lower()) for cell in lines[0]] if lines else []
    if heads and None not in heads and len(heads) == len(set(heads)):
        lines, chosen = lines[1:], [each for each in heads if each]
    else:
        chosen = list(columns[begin:])
    first = next((i for i, row in enumerate(rows) if key_of(what, row) == at[0]), len(rows))
    wide = max(map(len, lines), default=0)
    if wide > len(chosen):
        raise ProblemError(
            f"what is pasted has {wide} columns, and from {columns[begin].label} on there are "
            f"{len(chosen)}; begin further to the left"
        )
    if len(lines) > len(rows) - first:
        raise ProblemError(
            f"what is pasted has {len(lines):,} rows, and from this one on there are "
            f"{len(rows) - first:,}; begin further up, or show more rows"
        )
    return [
        (key_of(what, row), column.key, cell.strip())
        for row, cells in zip(rows[first:], lines, strict=False)
        for column, cell in zip(chosen, cells, strict=False)
        if column.kind != "plain"
    ]


def fill_down(
    what: What, rows: Sequence[Json], at: tuple[str, str], chosen: Iterable[str], *, typed: str = ""
) -> list[Change]:
    """Return what gives the cell of the first chosen row to the others.

    Where fewer than two rows are chosen, a cell takes what stands above it.

    Parameters
    ----------
    what, rows
        The table, and its rows as they are shown.
    at
        Key of the row and of the column that the focus is in.
    chosen
        Keys of the chosen rows.
    typed
        What stands in the field that has the focus, which may not be in the drawing yet.

    Raises
    ------
    ProblemError
        If cells of the column are not filled: names, and what cannot be edited.
    """
    keys = [key_of(what, row) for row in rows]
    picked = [i for i, key in enumerate(keys) if key in set(chosen)]
    if len(picked) < 2:
        here = keys.index(at[0]) if at[0] in keys else 0
        picked = [here - 1, here] if here else []
    column = next(each for each in COLUMNS[what] if each.key == at[1])
    if column.kind == "plain" or (what, column.key) == ("device", "name"):
        raise ProblemError(f"{column.label} cannot be filled down; choose a cell of another column")
    if not picked:
        return []
    fresh = typed if keys[picked[0]] == at[0] else ""
    value = fresh or rows[picked[0]].get(column.key)
    return [(keys[i], column.key, value) for i in (picked if fresh else picked[1:])]


def write_tsv(what: What, rows: Iterable[Json]) -> str:
    """Return rows with their headings, as a spreadsheet takes them."""
    columns = COLUMNS[what]
    lines = ["\t".join(each.label for each in columns)]
    lines += ["\t".join(_written(row, each) for each in columns) for row in rows]
    return "\n".join(lines) + "\n"


def _written(row: Json, column: Column) -> str:
    value = row["bandwidth"] * 8 if column.key == "gigabits" else row.get(column.key)
    if column.kind == "flag":
        return "yes" if value else "no"
    return "" if value is None else f"{value:.12g}" if isinstance(value, float) else str(value)


def edit_cells(topology: Json, what: What, changes: Iterable[Change]) -> dict[str, Any] | None:
    """Return the command that changes many cells, None if nothing changes.

    Raises
    ------
    CclError
        If a cell cannot hold its value, or two devices would have one name.
    """
    before = {key_of(what, row): row for row in topology[f"{what}s"]}
    now: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    for key, column, value in changes:
        if (what, column) == ("device", "name"):
            names[key] = str(value or "").strip()
            continue
        values = _edited({**before[key], **now.get(key, {})}, what, column, value=value)
        now.setdefault(key, {}).update(values)
    names = {old: new for old, new in names.items() if old != new}
    if names:
        _check_names(before, names)
    groups: dict[str, dict[str, Any]] = {}
    for key, values in now.items():
        if values:
            group = groups.setdefault(repr(sorted(values.items())), {"rows": [], "values": values})
            row = before[key]
            group["rows"].append(key if what == "device" else [row["src"], row["dst"]])
    if not groups and not names:
        return None
    return edits.command("edit_rows", of=what, groups=list(groups.values()), names=names)


def _edited(row: Json, what: What, column: str, *, value: Any) -> dict[str, Any]:
    """Return the fields that a value of a cell changes."""
    if what == "link":
        ends = (row["src"], row["dst"])
        found = edits.edit_link({"links": [row]}, [ends], column, value=value, both=False)
    else:
        if column == "kind":
            label = str(value).strip().lower()
            by_label = {each.lower(): kind for kind, each in KIND_LABELS.items()}
            value = by_label.get(label, label)
        elif column in edits.ABILITIES:
            value = _flag(value, f"{column} of {row['name']}")
        found = edits.edit_device({"devices": [row]}, [row["name"]], column, value)
    return dict(found["args"]["values"]) if found else {}


_FLAGS = {"yes": True, "true": True, "1": True, "x": True, "no": False, "false": False, "0": False}


def _flag(value: Any, what: str) -> bool:
    found = value if isinstance(value, bool) else _FLAGS.get(str(value or "no").strip().lower())
    if found is None:
        raise ProblemError(f"{what} is {value}; write yes or no")
    return found


def _check_names(before: Mapping[str, Json], names: Mapping[str, str]) -> None:
    taken: set[str] = set()
    for old in before:
        new = names.get(old, old)
        if not new:
            raise ProblemError(f"device {old} needs a name that is not empty")
        if new in taken:
            raise ProblemError(f"two devices would be called {new}; give each a name of its own")
        taken.add(new)
