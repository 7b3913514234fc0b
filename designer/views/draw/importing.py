"""What a file of any format brings to the page: a drawing, a problem, a plan, a sketch, paths."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from ccl import text
from ccl.errors import CclError, FormatError
from ccl.problem import Problem
from ccl.result import Plan, Result, Stop, conclude
from ccl.serialization.documents import Document, document
from ccl.serialization.sketches import Sketch, sketch_to_json
from ccl.serialization.topoloom import result_to_json, topology_from_json
from ccl.topology import Topology
from designer.session import topology_of
from designer.shell import ids
from designer.views.draw.files import Opened, drawing_in, drawing_of, notes_of, settings_of
from designer.views.draw.thumbnails import drawn_links
from designer.views.solve import sketch
from designer.views.solve.results import IMPORTED
from formulations import available, quick_bounds
from interchange.formats import catalogue
from interchange.formats.format import Imported, Overlay, Reader, Report, Request
from interchange.formats.merging import merge

Json = Mapping[str, Any]
Brings = Literal["topology", "problem", "plan", "sketch", "paths"]

OWN = "topoloom"
"""Name of the reader of documents that were saved here; they need no report."""

KINDS = {
    "gpu": ("GPU", "GPUs"),
    "switch": ("switch", "switches"),
    "nic": ("NIC", "NICs"),
    "memory": ("memory", "memories"),
}
"""What devices are called, one and many."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file that was read.

    Parameters
    ----------
    reader
        Of its format.
    imported
        What the reader made of it.
    """

    reader: Reader
    imported: Imported

    @property
    def own(self) -> bool:
        """Whether it was saved here."""
        return self.reader.name == OWN

    @property
    def brings(self) -> Brings:
        """What of it changes the page."""
        content = self.imported.document
        if self.imported.sketch is not None:
            return "sketch"
        if self.imported.overlay is not None:
            return "paths"
        if content.plan is not None:
            return "plan"
        return "topology" if content.problem is None else "problem"


def current_topology(drawing: Json | None) -> Topology | None:
    """Return the cluster that is drawn, None where nothing is, or nothing that is a cluster."""
    try:
        found = topology_from_json(dict((drawing or {})["topology"]))
    except (CclError, KeyError):
        return None
    return found if found.devices else None


def read(
    name: str, content: bytes, *, topology: Topology | None, settings: Mapping[str, str]
) -> Found:
    """Read a file of any format.

    Parameters
    ----------
    name, content
        Of the file.
    topology
        What is drawn, for files that are about a cluster and hold none.
    settings
        Answers to questions and other settings of the reader.

    Raises
    ------
    Question
        If only the user knows what is right.
    CclError
        If it is of no format that is known, or wrong; the message begins with the file's name.
    """
    reader = reader_of(name, content)
    asked = Request(name=name, topology=topology, settings=dict(settings))
    return Found(reader, reader.read(content, asked))


def reader_of(name: str, content: bytes) -> Reader:
    """Return the reader that recognises a file.

    Raises
    ------
    FormatError
        If none does.
    """
    reader = catalogue.recognised(content)
    if reader is None:
        raise unknown(name)
    return reader


def unknown(name: str) -> FormatError:
    """Return what is said of a file that no reader recognises."""
    return FormatError(
        f"{name} is in none of the {len(catalogue.readers())} formats that are read here, such "
        "as nvidia-smi topo -m, NCCL topology, TE-CCL schedule, MSCCL XML or GraphML"
    )


def opened(found: Found, now: Topology | None) -> Opened:
    """Return what the page shows of a file that brings a topology, a problem or a plan.

    Parameters
    ----------
    found
        The file.
    now
        What is drawn; a plan of the same cluster leaves the drawing as it is.

    Raises
    ------
    CclError
        If nothing has to move in its plan, so that there is nothing to be played.
    """
    content = found.imported.document
    same = content.kind != "topology" and content.topology == now
    drawn = None if same else drawing_in(content)
    if content.problem is None:
        return Opened(drawn)
    result = content.result
    if content.plan is not None and result is None:
        result = _result(content.problem, content.plan, found)
    told = None if result is None else result_to_json(result)
    return Opened(drawn, settings_of(content.problem), result, told)


def _result(problem: Problem, plan: Plan, found: Found) -> Result:
    """Return a plan of others with what can be proved about it at once."""
    report = found.imported.report
    return conclude(
        problem,
        plan,
        bounds=quick_bounds(problem),
        stop=Stop.READ,
        formulation=f"{IMPORTED}{found.reader.title}",
        options={},
        solve_time=0.0,
        log=(*report.assumed, *(f"left out: {each}" for each in report.left_out)),
    )


def mergeable(found: Found, now: Topology | None) -> bool:
    """Whether a file may describe the machine that is drawn: it has as many GPUs."""
    if now is None or found.brings not in ("topology", "problem"):
        return False
    other = found.imported.document.topology
    return len(other.ranks) == len(now.ranks) and other != now


def merged(drawing: Json, other: Document) -> tuple[dict[str, Any], Report]:
    """Return the drawing with what only another description of the same machine has.

    Devices that are added change what lies well, so that all are laid out anew.

    Raises
    ------
    CclError
        If the drawing is no topology, or they cannot be one machine.
    """
    now = topology_of(drawing["topology"])
    made, report = merge(document(now), replace(other, positions={}))
    grown = len(made.topology.devices) > len(now.devices)
    places = None if grown else drawing.get("positions")
    return drawing_of(made.topology, places, notes_of(drawing)), report


def sketched(found: Sketch, sketches: Json | None, formulation: str) -> tuple[str, dict[str, Any]]:
    """Return the formulation that takes a sketch, the one in use if it does, and all sketches.

    Raises
    ------
    FormatError
        If none takes one.
    """
    names = [formulation, *(each.name for each in available())]
    name = next((each for each in names if sketch.sketch_option(each)), None)
    if name is None:
        raise FormatError("no method here takes a sketch")
    return name, sketch.keep(sketches, name, sketch_to_json(found))


def overlays_of(overlay: Overlay) -> dict[str, Any]:
    """Return paths over the cluster as the page keeps them."""
    return {
        "title": overlay.title,
        ids.PATHS: [
            {"label": label, "devices": list(way)}
            for label, way in zip(overlay.labels, overlay.paths, strict=True)
        ],
    }


def figures(found: Found) -> list[tuple[str, str]]:
    """Return how much a file holds: what stands large, and what it is."""
    content = found.imported.document
    if found.brings in ("sketch", "paths"):
        return []  # the cluster is the one that is open, and the report counts
    topology = content.topology
    kinds = Counter[str](each.kind for each in topology.devices)
    told = [
        (f"{kinds[kind]:,}", words[kinds[kind] != 1])
        for kind, words in KINDS.items()
        if kinds[kind]
    ]
    links = drawn_links(topology)
    told.append((f"{links:,}", "link" if links == 1 else "links"))
    if content.problem is not None:
        collective = content.problem.collective
        told.append((text.size(collective.size), collective.kind))
    return told
