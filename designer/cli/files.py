"""``topoloom verify``, ``export`` and ``import``: what is done with files."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ccl.errors import FormatError, ScheduleError
from ccl.formats.documents import (
    Document,
    document,
    document_text,
    parse_document,
    read_document,
)
from ccl.formats.graphs.node_link import is_node_link, node_link_text, parse_node_link
from ccl.formats.own.transfers_csv import transfers_csv
from ccl.formats.simulators.chrome_trace import chrome_trace
from ccl.formats.text import read_bytes, write_text
from ccl.layout import layout
from ccl.metrics import algbw, busbw
from ccl.problem import Problem
from ccl.result import Plan
from ccl.simulate import simulate
from ccl.timeline import Timeline
from ccl.verify import verify as verify_plan
from designer import text
from designer.cli.asked import JsonOption, writable
from designer.cli.show import print_facts, print_json, remark

REFUSED = 1

OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Where it is written; by default on standard output.",
        show_default=False,
    ),
]
ProblemOption = Annotated[
    Path | None,
    typer.Option(
        "--problem",
        metavar="FILE",
        help="The problem that the plan must answer; by default the document's own.",
        show_default=False,
    ),
]


class Target(StrEnum):
    """What a document can be exported to."""

    HTML = "html"
    CSV = "csv"
    CHROME_TRACE = "chrome-trace"
    SCHEDULE = "schedule"
    NODE_LINK = "node-link"


def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A result or plan document.")],
    problem_file: ProblemOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check every rule and replay the plan; exit code 1 if it breaks one."""
    try:
        opened = read_document(file)
        if problem_file is not None:
            opened = replace(opened, problem=_problem_in(problem_file), result=None)
        problem, plan, timeline = _replayed(opened, file)
    except ScheduleError as error:
        _print_refusal(error, as_json=as_json)
        raise typer.Exit(REFUSED) from None
    collective, makespan = problem.collective, timeline.makespan
    if as_json:
        print_json(
            {
                "verified": True,
                "topology": problem.topology.name,
                "collective": collective.kind,
                "size": collective.size,
                "plan": type(plan).__name__.lower(),
                "makespan_us": makespan,
                "algbw_GBps": algbw(collective, makespan),
                "busbw_GBps": busbw(collective, makespan),
                "transfers": len(timeline.transfers),
                "images": timeline.images,
            }
        )
        return
    print_facts(
        f"{collective.kind} of {text.size(collective.size)} on {problem.topology}: verified",
        [
            ("makespan", f"{makespan:.6g} µs"),
            ("algbw", text.bandwidth(algbw(collective, makespan))),
            ("busbw", text.bandwidth(busbw(collective, makespan))),
            ("transfers", f"{len(timeline.transfers):,}"),
            ("each for", f"{timeline.images:,} alike" if timeline.images > 1 else ""),
        ],
    )


def export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A document of any kind.")],
    to: Annotated[Target, typer.Option("--to", help="What is written.")],
    out: OutOption = None,
) -> None:
    """Write a page that plays, a table, a trace for Perfetto, the plan alone or a graph."""
    writable(out)
    _hand_over(_exported(read_document(file), file, to=to), out, what=to.value)


def import_(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A document of any kind, or node-link JSON.")
    ],
    out: OutOption = None,
) -> None:
    """Write the topology of a document, or of a graph of networkx, as a topology document."""
    writable(out)
    content = read_bytes(file)
    read = parse_node_link if is_node_link(content) else parse_document
    opened = read(content, name=str(file))
    topology = opened.topology
    gpus = text.count(len(topology.ranks), "GPU")
    written = document_text(document(topology, positions=opened.positions))
    _hand_over(written, out, what=f"{topology} with {gpus}")


def _hand_over(written: str, out: Path | None, *, what: str) -> None:
    if out is None:
        typer.echo(written, nl=False)
    else:
        write_text(out, written)
        remark(f"{what} is in {out}")


def _print_refusal(error: ScheduleError, *, as_json: bool) -> None:
    told: dict[str, Any] = {
        "verified": False,
        "rule": str(error),
        "where": error.where,
        "time_us": error.time,
        "epoch": error.epoch,
    }
    if as_json:
        print_json(told)
        return
    epoch = f", epoch {error.epoch}" if error.epoch is not None else ""
    print_facts(
        "refused",
        [("rule", str(error)), ("where", error.where), ("when", f"{error.time:.6g} µs{epoch}")],
    )


def _problem_in(file: Path) -> Problem:
    opened = read_document(file)
    if opened.problem is None:
        msg = f"{file} is a {opened.kind} document and has no problem; give a problem"
        raise FormatError(msg)
    return opened.problem


def _replayed(opened: Document, file: Path) -> tuple[Problem, Plan, Timeline]:
    """Return a plan with its problem and replay, verified.

    Raises
    ------
    FormatError
        If the document has no plan.
    ScheduleError
        If the plan breaks a rule.
    """
    if opened.problem is None or opened.plan is None:
        msg = f"{file} is a {opened.kind} document and has no plan; give a result, or solve it"
        raise FormatError(msg)
    if opened.result is not None:
        return opened.problem, opened.plan, opened.result.timeline
    verify_plan(opened.problem, opened.plan)
    return opened.problem, opened.plan, simulate(opened.problem, opened.plan)


def _exported(opened: Document, file: Path, *, to: Target) -> str:
    if to is Target.NODE_LINK:
        return node_link_text(opened)
    if to is Target.HTML:
        return _page(opened, file)
    problem, plan, timeline = _replayed(opened, file)
    if to is Target.CSV:
        return transfers_csv(timeline)
    if to is Target.CHROME_TRACE:
        return chrome_trace(problem, timeline)
    return document_text(document(problem, plan=plan, positions=opened.positions))


def _page(opened: Document, file: Path) -> str:
    """Return the page that shows the drawing and, if there is a plan, plays it."""
    from widgets.export import standalone_html  # noqa: PLC0415  only where it is asked for
    from widgets.scene import cuts, drawing, scene  # noqa: PLC0415

    places = {**layout(opened.topology), **opened.positions}
    drawn = drawing(opened.topology, places)
    played = None if opened.plan is None else scene(*_replayed(opened, file))
    proved = () if opened.result is None else cuts(opened.result.bounds)
    try:
        return standalone_html(drawn, played, proved)
    except ImportError as error:
        raise FormatError(str(error)) from None  # the canvas was not built, and it says how
