"""Documents of format ``topoloom/1``: reading and writing whole files.

A document holds a topology with its drawing, and as much more as its kind says: a problem, a plan
of it, or a result. Reading refuses with one sentence that begins with the document's name; writing
is all or nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from ccl.errors import FormatError, ProblemError, ScheduleError
from ccl.problem import Problem
from ccl.result import Plan, Result
from ccl.serialization import topoloom as nouns
from ccl.serialization import wire
from ccl.serialization.text import decode_json, laid_out, read_bytes, write_text
from ccl.serialization.wire import Annotation
from ccl.topology import Topology

FORMAT = "topoloom/1"
SCHEMA_FILE = Path(__file__).with_name("topoloom-1.schema.json")

Kind = Literal["topology", "problem", "plan", "result"]
Positions = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Document:
    """What a file holds; each kind holds what the kinds before it do.

    Parameters
    ----------
    topology
        The cluster.
    positions
        Middle of a device on the drawing by its name, x to the right and y down.
    problem
        The problem, or None.
    plan
        A plan of the problem, verified only if there is a result, or None.
    result
        The result, verified and replayed, or None.
    annotations
        Notes and frames of the drawing.
    """

    topology: Topology
    positions: Positions = field(default_factory=dict)
    problem: Problem | None = None
    plan: Plan | None = None
    result: Result | None = None
    annotations: tuple[Annotation, ...] = ()

    @property
    def kind(self) -> Kind:
        """What it holds at most."""
        if self.result is not None:
            return "result"
        if self.plan is not None:
            return "plan"
        return "topology" if self.problem is None else "problem"


def document(
    content: Topology | Problem | Result,
    *,
    plan: Plan | None = None,
    positions: Positions | None = None,
    annotations: Iterable[Annotation] = (),
) -> Document:
    """Make a document.

    Parameters
    ----------
    content
        What it holds.
    plan
        A plan of the problem, which makes it a plan document.
    positions
        As in `Document`; places of devices that are not there are left out.
    annotations
        As in `Document`.
    """
    notes = tuple(annotations)
    if isinstance(content, Topology):
        return Document(content, _placed(content, positions), annotations=notes)
    if isinstance(content, Problem):
        places = _placed(content.topology, positions)
        return Document(content.topology, places, content, plan, annotations=notes)
    problem = content.problem
    places = _placed(problem.topology, positions)
    return Document(problem.topology, places, problem, content.plan, content, annotations=notes)


def read_document(path: str | Path) -> Document:
    """Read a file.

    Raises
    ------
    FormatError
        If it cannot be read or is no document, with the place.
    ProblemError
        If it has the shape of a document and what it holds is invalid.
    ScheduleError
        If the plan of a result breaks a rule.
    """
    return parse_document(read_bytes(path), name=str(path))


def parse_document(content: bytes | str, *, name: str = "document") -> Document:
    """Read the content of a file called `name`; errors as `read_document`."""
    try:
        head = decode_json(content, _Head)
        _check_format(head.format)
        return _document(decode_json(content, wire.Document))
    except ScheduleError as error:
        msg = f"{name}: {error}"
        where, time, epoch = error.where, error.time, error.epoch
        raise ScheduleError(msg, where=where, time=time, epoch=epoch) from None
    except (FormatError, ProblemError) as error:
        raise type(error)(f"{name}: {error}") from None


def document_from_json(value: Any) -> Document:
    """Read a document from plain JSON values; errors as `read_document`."""
    _check_format(value.get("format") if isinstance(value, dict) else None)
    return _document(nouns.shaped(value, wire.Document, "document"))


def write_document(path: str | Path, content: Document) -> None:
    """Write a file whole or not at all.

    Raises
    ------
    FormatError
        If it cannot be written; a file that was there stays as it was.
    """
    write_text(path, document_text(content))


def document_text(content: Document) -> str:
    """Return a document as the text of a file."""
    return laid_out(document_to_json(content)) + "\n"


def document_to_json(content: Document) -> dict[str, Any]:
    """Return a document as plain JSON values."""
    value: dict[str, Any] = {"format": FORMAT, "kind": content.kind}
    if content.result is not None:
        value["result"] = nouns.result_to_json(content.result)
    elif content.problem is not None:
        value["problem"] = nouns.problem_to_json(content.problem)
        if content.plan is not None:
            value["plan"] = nouns.plan_to_json(content.plan)
    else:
        value["topology"] = nouns.topology_to_json(content.topology)
    if content.positions:
        value["positions"] = {name: list(place) for name, place in content.positions.items()}
    if content.annotations:
        value["annotations"] = msgspec.to_builtins(list(content.annotations))
    return value


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a document."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A document of format {FORMAT}",
        **msgspec.json.schema(wire.Document),
    }


def schema_text() -> str:
    """Return the JSON Schema as the text of `SCHEMA_FILE`."""
    return laid_out(schema()) + "\n"


class _Head(msgspec.Struct):
    """What says how to read the rest."""

    format: Any = None


def _check_format(named: object) -> None:
    if named != FORMAT:
        found = "names no format" if named is None else f"is of format {named!r}"
        raise FormatError(f'the document {found}; what is read says "format": "{FORMAT}"')


def _document(shape: wire.Document) -> Document:
    notes = tuple(shape.annotations)
    if isinstance(shape, wire.TopologyDocument):
        made = Document(nouns.topology_of(shape.topology), shape.positions, annotations=notes)
    elif isinstance(shape, wire.ResultDocument):
        result = nouns.result_of(shape.result)
        problem = result.problem
        made = Document(
            problem.topology, shape.positions, problem, result.plan, result, annotations=notes
        )
    else:
        problem = nouns.problem_of(shape.problem)
        plan = None
        if isinstance(shape, wire.PlanDocument):
            plan = nouns.plan_of(shape.plan, problem.topology)
        made = Document(problem.topology, shape.positions, problem, plan, annotations=notes)
    for name in made.positions:
        if name not in made.topology.index:
            raise FormatError(
                f"positions name {name!r}, which is not a device of {made.topology}; take it out"
            )
    return made


def _placed(topology: Topology, positions: Positions | None) -> Positions:
    return {
        name: (float(x), float(y))
        for name, (x, y) in (positions or {}).items()
        if name in topology.index
    }
