"""``topoloom export`` and ``topoloom import``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ccl.errors import FormatError
from ccl.formats.chrome_trace import chrome_trace
from ccl.formats.documents import (
    Document,
    document,
    document_text,
    parse_document,
    read_document,
)
from ccl.formats.node_link import is_node_link, node_link_text, parse_node_link
from ccl.formats.text import read_bytes
from ccl.formats.transfers_csv import transfers_csv
from ccl.layout import layout
from ccl.problem import Problem
from ccl.result import Plan
from ccl.simulate import simulate
from ccl.timeline import Timeline
from ccl.verify import verify
from designer.cli.inputs import Out, check_out
from designer.cli.output import hand_over


class Target(StrEnum):
    """What an export makes."""

    HTML = "html"
    CSV = "csv"
    CHROME_TRACE = "chrome-trace"
    PLAN = "plan"
    PROBLEM = "problem"
    TOPOLOGY = "topology"
    NODE_LINK = "node-link"


Source = Annotated[
    Path, typer.Argument(metavar="FILE", help="A result, or another document of Topoloom.")
]
Foreign = Annotated[
    Path, typer.Argument(metavar="FILE", help="A document of Topoloom or node-link JSON.")
]
To = Annotated[
    Target,
    typer.Option(
        "--to",
        help="A page that plays it, its transfers, a trace for Perfetto, the plan without bounds "
        "(which is the schedule), the problem, the topology, or node-link JSON for networkx.",
    ),
]


def export(file: Source, *, to: To, out: Out = None) -> None:
    """Write a result in another format; without --out to stdout."""
    check_out(out)
    found = read_document(file)
    hand_over(_exported(found, to, name=str(file)), out, what=to.value)


def import_(file: Foreign, *, out: Out = None) -> None:
    """Read a cluster and write it as a topology document; without --out to stdout."""
    check_out(out)
    content = read_bytes(file)
    read = parse_node_link if is_node_link(content) else parse_document
    found = read(content, name=str(file))
    places = {**layout(found.topology), **found.positions}
    hand_over(document_text(document(found.topology, positions=places)), out, what="the topology")


def _exported(found: Document, to: Target, *, name: str) -> str:
    if to is Target.TOPOLOGY:
        return document_text(document(found.topology, positions=found.positions))
    if to is Target.NODE_LINK:
        return node_link_text(found)
    if to is Target.HTML:
        return _page(found)
    problem, plan = _needed(found, to, name=name)
    if to is Target.PROBLEM:
        return document_text(document(problem, positions=found.positions))
    if plan is None:
        msg = f"{name} holds a {found.kind} and no plan; {to.value} needs a plan or a result"
        raise FormatError(msg)
    if to is Target.PLAN:
        return document_text(document(problem, plan=plan, positions=found.positions))
    timeline = _timeline(found, problem, plan)
    return transfers_csv(timeline) if to is Target.CSV else chrome_trace(problem, timeline)


def _needed(found: Document, to: Target, *, name: str) -> tuple[Problem, Plan | None]:
    if found.problem is None:
        msg = f"{name} holds a {found.kind} and no problem; {to.value} needs more than that"
        raise FormatError(msg)
    return found.problem, found.plan


def _timeline(found: Document, problem: Problem, plan: Plan) -> Timeline:
    """Return the replay; a plan that came without a result is verified first."""
    if found.result is not None:
        return found.result.timeline
    verify(problem, plan)
    return simulate(problem, plan)


def _page(found: Document) -> str:
    from widgets.export import standalone_html  # noqa: PLC0415  only this export draws
    from widgets.scene import cuts, drawing, scene  # noqa: PLC0415

    drawn = drawing(found.topology, {**layout(found.topology), **found.positions})
    played, shown = None, []
    if found.problem is not None and found.plan is not None:
        played = scene(found.problem, found.plan, _timeline(found, found.problem, found.plan))
    if found.result is not None:
        shown = cuts(found.result.bounds)
    try:
        return standalone_html(drawn, played, shown)
    except ImportError as error:
        raise FormatError(str(error)) from None
