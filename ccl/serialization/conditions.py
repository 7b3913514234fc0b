"""The conditions of a problem in files and on command lines: tenants, windows of less bandwidth.

Tenants as YAML: several jobs that share a cluster, as a person writes them down.

    tenants:
      - name: training
        collective: all-reduce
        size: 1GB
        ranks: [gpu0, gpu1, gpu2, gpu3]
        priority: 3
      - name: serving
        collective: broadcast
        size: 20MB
        ranks: 4-7
        root: 5
        chunks: 2

Ranks are names of GPUs, numbers of ranks or ranges of them, by default all of the cluster; the
root is one of them, by default the first. Without a priority it is 1, without chunks one a shard.

Windows of less bandwidth as a person types them: ``gpu0->gpu1@0..50us=0.5``.

Before ``@`` links, by commas: ``a->b`` one way, ``a<->b`` both, or a device with all of its links.
Then from when to when, in us, ms or s, and what share of the bandwidth is left, ``0.5`` or ``50%``.

Documents of format ``topoloom/1``: reading and writing whole files.

A document holds a topology with its drawing, and as much more as its kind says: a problem, a plan
of it, or a result. Reading refuses with one sentence that begins with the document's name; writing
is all or nothing.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta, Struct

from ccl.collective import COLLECTIVES, CollectiveKind, Tenant, make_collective
from ccl.errors import FormatError, ProblemError, ScheduleError
from ccl.problem import Problem, Window
from ccl.result import Plan, Result
from ccl.serialization import topoloom as nouns
from ccl.serialization import wire
from ccl.serialization.quantity import parse_size
from ccl.serialization.text import Integer, decode_json, laid_out, read_bytes, write_text, yaml_in
from ccl.serialization.wire import Annotation
from ccl.topology import Topology

MOST_TENANTS = 1_000
"""Tenants of one cluster."""

_RANGE = re.compile(r"(\d{1,7})\s*-\s*(\d{1,7})")


class _Tenant(Struct, forbid_unknown_fields=True):
    """One of them, as it is written."""

    name: str
    collective: str
    size: str | float | Integer
    ranks: str | Integer | list[str | Integer] | None = None
    root: str | Integer | None = None
    chunks: Annotated[int, Meta(ge=1, le=10_000)] = 1
    priority: float = 1.0


class _Tenants(Struct, forbid_unknown_fields=True):
    """The file."""

    tenants: Annotated[list[_Tenant], Meta(min_length=1, max_length=MOST_TENANTS)]


def read_tenants(
    content: bytes, topology: Topology, *, name: str = "tenants"
) -> tuple[Tenant, ...]:
    """Read the tenants of a cluster.

    Parameters
    ----------
    content
        YAML.
    topology
        Whose GPUs they name.
    name
        What the sentences of errors begin with.

    Raises
    ------
    FormatError
        If it is no YAML or not of the shape, with the place.
    ProblemError
        If a rank or a collective does not exist, or a number is out of range.
    """
    made: _Tenants = nouns.shaped(yaml_in(content, name=name), _Tenants, name)
    return tuple(_tenant(each, topology, f"{name}, tenant {each.name}") for each in made.tenants)


def _tenant(given: _Tenant, topology: Topology, where: str) -> Tenant:
    kinds = [each for each in COLLECTIVES if each != "custom"]
    if given.collective not in kinds:
        raise FormatError(
            f"{where}: collective {given.collective!r} is unknown; there are {', '.join(kinds)}"
        )
    ranks = _ranks(given.ranks, topology, where)
    if len(ranks) < 2:
        raise FormatError(f"{where}: a collective needs 2 ranks or more, got {len(ranks)}")
    root = ranks[0] if given.root is None else _rank(given.root, topology, where)
    if root not in ranks:
        name = topology.ranks[root]
        raise FormatError(f"{where}: the root {name} is not one of its ranks; name one of them")
    made = make_collective(
        cast(CollectiveKind, given.collective),
        len(ranks),
        parse_size(str(given.size)),
        chunks=given.chunks,
        root=ranks.index(root),
    )
    return Tenant(given.name, made, ranks, given.priority)


def _ranks(
    given: str | int | list[str | int] | None, topology: Topology, where: str
) -> tuple[int, ...]:
    """Return ranks by their numbers, in the order in which names, numbers and ranges stand."""
    if given is None:
        return tuple(range(len(topology.ranks)))
    found: list[int] = []
    for each in given if isinstance(given, list) else str(given).split(","):
        pair = _RANGE.fullmatch(str(each).strip())
        if pair is None or str(each) in topology.rank:
            found.append(_rank(each, topology, where))
            continue
        first, last = (_rank(int(end), topology, where) for end in pair.groups())
        found += range(first, last + 1)
    return tuple(found)


def _rank(given: str | int, topology: Topology, where: str) -> int:
    name = str(given).strip()
    if name in topology.rank:
        return topology.rank[name]
    if name.isdecimal() and int(name) < len(topology.ranks):
        return int(name)
    last = len(topology.ranks) - 1
    raise FormatError(
        f"{where}: {name!r} is no GPU of {topology}; give a name or a rank from 0 to {last}"
    )


_UNITS = {"us": 1.0, "µs": 1.0, "μs": 1.0, "ms": 1e3, "s": 1e6}
_NUMBER = r"\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+"
_UNIT = "|".join(_UNITS)
_TIMES = re.compile(
    rf"\s*({_NUMBER})\s*({_UNIT})?\s*\.\.\s*({_NUMBER})\s*({_UNIT})?\s*", re.IGNORECASE
)
_SHARE = re.compile(rf"\s*({_NUMBER})\s*(%)?\s*", re.IGNORECASE)


def parse_window(text: str, topology: Topology) -> Window:
    """Return the window that a text such as ``gpu0->gpu1@0..50us=0.5`` means.

    Parameters
    ----------
    text
        Links, times and the share that is left.
    topology
        The cluster, whose links the text names.

    Raises
    ------
    FormatError
        If it is not written like this.
    ProblemError
        If there is no such link or device, no time is covered, or the share is out of range.
    """
    where, _, rest = text.rpartition("@")
    when, _, share = rest.rpartition("=")
    times, left = _TIMES.fullmatch(when), _SHARE.fullmatch(share)
    if not where.strip() or times is None or left is None:
        raise FormatError(f"window {text!r} cannot be read; write it like gpu0->gpu1@0..50us=0.5")
    begin, begins, end, ends = times.groups()
    unit = (ends or begins or "us").lower()
    return Window(
        links=tuple(dict.fromkeys(_links(where, topology))),
        begin=float(begin) * _UNITS[(begins or unit).lower()],
        end=float(end) * _UNITS[unit],
        share=float(left[1]) * (0.01 if left[2] else 1.0),
    )


def _links(where: str, topology: Topology) -> list[tuple[str, str]]:
    """Return the ends of each link that is named."""
    found: list[tuple[str, str]] = []
    for each in (part.strip() for part in where.split(",")):
        if "<->" in each:
            first, _, second = (end.strip() for end in each.partition("<->"))
            found += [topology.link(first, second).ends, topology.link(second, first).ends]
        elif "->" in each:
            src, _, dst = (end.strip() for end in each.partition("->"))
            found.append(topology.link(src, dst).ends)
        else:
            name = topology.device(each).name
            both = (*topology.links_out[name], *topology.links_in[name])
            found += [link.ends for link in both]
    return found


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
