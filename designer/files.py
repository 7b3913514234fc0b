"""Opening, saving and exporting: documents in, files out."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ccl.errors import CclError, FormatError
from ccl.formats.topoloom import (
    problem_to_json,
    read_document,
    result_from_json,
    topology_from_json,
    topology_to_json,
)
from ccl.layout import layout
from ccl.problem import Problem
from ccl.result import Result
from ccl.topology import Topology
from widgets.scene import drawing
from designer.request import problem_of, read_request

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Opened:
    """What a file holds.

    Parameters
    ----------
    drawing
        For the canvas.
    request
        Settings of the header that the file brings, by name.
    result, document
        The result and its document, if it is one.
    """

    drawing: dict[str, Any]
    request: dict[str, Any] = field(default_factory=dict)
    result: Result | None = None
    document: dict[str, Any] | None = None


def _opened(document: Any) -> Opened:
    found = read_document(document)
    if isinstance(found, Topology):
        return Opened(drawing_of(found, document.get("positions")))
    if isinstance(found, Problem):
        return Opened(drawing_of(found.topology), settings_of(found))
    problem = found.problem
    return Opened(drawing_of(problem.topology), settings_of(problem), found, document)


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except UnicodeDecodeError:
        msg = "it is not a text file; give JSON as saved here"
        raise FormatError(msg) from None
    except json.JSONDecodeError as error:
        msg = f"line {error.lineno}, column {error.colno}: it is not JSON ({error.msg.lower()})"
        raise FormatError(msg) from None


def drawing_of(topology: Topology, positions: Json | None = None) -> dict[str, Any]:
    """Return a drawing; without positions the devices are laid out."""
    return drawing(topology, positions or layout(topology))


def open_file(name: str, content: bytes) -> Opened:
    """Read a topology, a problem or a result as it was saved here.

    Raises
    ------
    CclError
        If it is not a document of this kind; the message begins with the file's name.
    """
    try:
        return _opened(_json(content))
    except CclError as error:
        msg = f"{name}: {error}"
        raise FormatError(msg) from error


def save_drawing(drawn: Json) -> str:
    """Return the document of a drawing, with its positions.

    Raises
    ------
    CclError
        If the drawing is not a topology.
    """
    topology = topology_from_json(dict(drawn["topology"]))
    document = {**topology_to_json(topology), "positions": drawn.get("positions", {})}
    return json.dumps(document, indent=1, ensure_ascii=False)


def export_json(drawn: Json, asked: Json | None, result: Json | None) -> str:
    """Return the result as a document, or the problem where there is no result yet.

    Raises
    ------
    CclError
        If there is neither.
    """
    document = result
    if document is None:
        problem = problem_of(drawn["topology"], read_request(asked))
        document = problem_to_json(problem)
    return json.dumps(document, indent=1, ensure_ascii=False)


def export_csv(result: Result) -> str:
    """Return one row per crossing of a link, times in µs."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["chunk", "src", "dst", "start_us", "sent_us", "end_us", "bytes", "epoch"])
    for each in result.timeline.transfers:
        times = (f"{each.start:.6g}", f"{each.sent:.6g}", f"{each.end:.6g}")
        writer.writerow([each.chunk, each.src, each.dst, *times, f"{each.nbytes:.0f}", each.epoch])
    return out.getvalue()


def file_name(topology: Json, ending: str) -> str:
    """Return a name for a download, made of the topology's."""
    stem = re.sub(r"[^\w.-]+", "-", str(topology.get("name") or "")).strip("-.").lower()
    return f"{stem or 'topology'}.{ending}"


def settings_of(problem: Problem) -> dict[str, Any]:
    """Return the header's settings for a problem that the header can ask, else nothing."""
    collective = problem.collective
    if collective.kind == "custom":
        return {}
    return {"collective": collective.kind, "size": f"{collective.size:.15g}"}
