"""Opening, saving and exporting: documents in, files out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ccl.layout import layout
from ccl.problem import Problem
from ccl.result import Result
from ccl.serialization.documents import document, document_text, parse_document
from ccl.serialization.quantity import format_size
from ccl.serialization.topoloom import problem_to_json, result_to_json, topology_from_json
from ccl.topology import Topology
from designer.shell.request import problem_of, read_request
from interchange.formats.own.transfers_csv import transfers_csv
from widgets.shown.scene import drawing

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Opened:
    """What a file holds.

    Parameters
    ----------
    drawing
        For the canvas; None leaves what is there.
    settings
        Of the header, as far as the file brings them, by name.
    result, document
        The result and its JSON, if it holds one.
    """

    drawing: dict[str, Any] | None
    settings: dict[str, Any] = field(default_factory=dict)
    result: Result | None = None
    document: dict[str, Any] | None = None


def drawing_of(topology: Topology, positions: Json | None = None) -> dict[str, Any]:
    """Return a drawing; devices without a position are laid out."""
    return drawing(topology, {**layout(topology), **(positions or {})})


def open_file(name: str, content: bytes) -> Opened:
    """Read a topology, a problem or a result as it was saved here.

    Raises
    ------
    CclError
        If it is not a document of this kind; the message begins with the file's name.
    """
    found = parse_document(content, name=name)
    drawn = drawing_of(found.topology, found.positions)
    if found.problem is None:
        return Opened(drawn)
    result = found.result
    return Opened(
        drawn,
        settings_of(found.problem),
        result,
        None if result is None else result_to_json(result),
    )


def save_drawing(drawn: Json) -> str:
    """Return the document of a drawing, with its positions.

    Raises
    ------
    CclError
        If the drawing is not a topology.
    """
    topology = topology_from_json(dict(drawn["topology"]))
    return document_text(document(topology, positions=drawn.get("positions")))


def export_json(drawn: Json, asked: Json | None, result: Result | None) -> str:
    """Return the result as a document, or the problem where there is no result yet.

    Raises
    ------
    CclError
        If there is neither.
    """
    content = result or problem_of(drawn["topology"], read_request(asked))
    return document_text(document(content, positions=drawn.get("positions")))


def export_csv(result: Result) -> str:
    """Return one row per crossing of a link, times in µs."""
    return transfers_csv(result.timeline)


def file_name(topology: Json, ending: str) -> str:
    """Return a name for a download, made of the topology's."""
    stem = re.sub(r"[^\w.-]+", "-", str(topology.get("name") or "")).strip("-.").lower()
    return f"{stem or 'topology'}.{ending}"


def settings_of(problem: Problem) -> dict[str, Any]:
    """Return the header's settings for a problem.

    A collective that the header cannot ask for is kept whole, under ``custom``.
    """
    told = problem_to_json(problem)["collective"]
    size = format_size(problem.collective.size)
    if isinstance(told["chunks"], int):
        return {
            "collective": told["kind"],
            "size": size,
            "chunks": told["chunks"] if problem.collective.whole else "",
            "root": told.get("root", 0),
        }
    return {"collective": "custom", "size": size, "chunks": "", "root": 0, "custom": told}
