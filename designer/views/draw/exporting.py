"""What of the page is written in a format, and which formats what is there is enough for."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from ccl.errors import CclError
from ccl.options import option_fields
from ccl.serialization.conditions import Document, Kind, document
from designer.server.sessions import result_of, topology_of
from designer.shell.request import problem_of, read_request
from designer.views.draw.files import file_name
from designer.views.solve.forms import changed
from interchange.formats.format import Writer, Written
from widgets.pages.writing import fitting, writers, zipped

Json = Mapping[str, Any]

GROUPS = {
    "runtimes": "Runtimes",
    "simulators": "Simulators and viewers",
    "synthesizers": "Synthesizers",
    "machines": "Machines",
    "graphs": "Graphs",
    "widgets": "Pictures and pages",
    "own": "Ours",
}
"""Groups of the list in order, by the room in which a writer lies."""

NEEDED = {
    "problem": "needs something to solve",
    "plan": "needs a schedule",
    "result": "needs a schedule",
}
"""What a format needs that may not be there."""


def group_of(writer: Writer) -> str:
    """Return the group that a writer belongs to, which follows from where its module lies."""
    rooms = writer.make.__module__.split(".")
    return next((title for room, title in GROUPS.items() if room in rooms), GROUPS["own"])


def content_of(drawing: Json, asked: Json | None, result: Json | None) -> Document:
    """Return all that is on the page as a document.

    Parameters
    ----------
    drawing, asked
        What is drawn and asked; what cannot be solved is a topology alone.
    result
        The schedule as JSON if it is of this drawing, else None.

    Raises
    ------
    CclError
        If the drawing is no topology.
    """
    places = drawing.get("positions")
    if result is not None:
        return document(result_of(result), positions=places)
    topology = topology_of(drawing["topology"])
    try:
        problem = problem_of(drawing["topology"], read_request(asked))
    except CclError:  # the page says what is wrong with what is asked
        return document(topology, positions=places)
    return document(problem, positions=places)


def enough(drawing: Json, asked: Json | None, *, result: bool, fresh: bool) -> dict[str, str]:
    """Return the kind of document that can be made, and why it is no more than that.

    Parameters
    ----------
    drawing, asked
        As for `content_of`.
    result, fresh
        Whether there is a schedule, and whether it is of this drawing and question.
    """
    if result and fresh:
        return {"kind": "result", "why": ""}
    why = "the schedule is out of date" if result else "solve first"
    try:
        return {"kind": content_of(drawing, asked, None).kind, "why": why}
    except CclError as error:
        return {"kind": "topology", "why": str(error)}


def refused(writer: Writer, there: Mapping[str, str]) -> str:
    """Say why a format cannot be written with what is there; empty if it can."""
    kind: Kind = there["kind"]  # type: ignore[assignment]
    if writer in fitting(kind):
        return ""
    reason = NEEDED[writer.needs]
    return f"{reason}; {there['why']}" if writer.needs != "problem" else reason


def listed(words: str | None, there: Mapping[str, str]) -> list[tuple[str, list[Any]]]:
    """Return the writers that fit a search, as (group, [(writer, why not)])."""
    wanted = (words or "").lower().split()
    found: dict[str, list[Any]] = {title: [] for title in GROUPS.values()}
    for each in writers():
        group = group_of(each)
        about = f"{each.name} {each.title} {each.ending} {group}".lower()
        if all(word in about for word in wanted):
            found[group].append((each, refused(each, there)))
    return [(title, rows) for title, rows in found.items() if rows]


def settings_of(writer: Writer, rows: list[Mapping[str, Any]]) -> dict[str, str]:
    """Return what was changed in a form, as typed.

    Parameters
    ----------
    writer
        Whose form it is.
    rows
        Its fields as Dash gives them: ``{id, value}``.
    """
    given = {
        row["id"].get("export-option") or row["id"]["export-option-flag"]: row.get("value")
        for row in rows
        if row["id"]["of"] == writer.name
    }
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in changed(given, option_fields(writer.options)).items()
    }


def download(written: Written, drawing: Json, writer: Writer) -> dict[str, Any]:
    """Return what the browser saves: the file, or several as one archive."""
    many = len(written.files) > 1
    content = zipped(written) if many else written.content
    name = next(iter(written.files))
    ending = f"{writer.name}.zip" if many else name.partition(".")[2] or writer.ending
    return {
        "content": base64.b64encode(content).decode(),
        "filename": file_name(drawing["topology"], ending),
        "base64": True,
    }
