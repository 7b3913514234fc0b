"""What is done with documents: ``topoloom verify``, ``explain``, ``diff``, ``export``, ``import``.

``topoloom formats`` lists the formats there are; ``topoloom link`` makes of a cluster and what is
asked of it a link that opens in the designer.
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from ccl import text
from ccl.errors import FormatError, ScheduleError
from ccl.explain import difference, report
from ccl.explain import explain as told_in_words
from ccl.explain.narration import PlanReport
from ccl.options import option_fields
from ccl.problem import Problem
from ccl.result import Plan
from ccl.serialization.documents import Document, document_text, read_document
from ccl.serialization.text import write_bytes
from ccl.timeline import Timeline, algbw, busbw
from designer.cli import request as cli
from interchange.formats import catalogue
from interchange.formats.format import Imported, Question, Request, Written, replayed
from interchange.formats.merging import merge
from interchange.formats.own.fragment import HOME, Share, is_link, link_of
from widgets.pages import writers

REFUSED = 1


def verify(file: Path, *, problem_file: Path | None = None, as_json: bool = False) -> None:
    """Check every rule and replay the plan; exit code 1 if it breaks one.

    Parameters
    ----------
    file : FILE
        A result or plan document.
    problem_file : --problem FILE
        The problem that the plan must answer; by default the document's own.
    """
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
        cli.print_json(
            {
                "verified": True,
                **cli.problem_answer(problem),
                "plan": type(plan).__name__.lower(),
                "makespan_us": makespan,
                "algbw_GBps": algbw(collective, makespan),
                "busbw_GBps": busbw(collective, makespan),
                "transfers": len(timeline.transfers),
                "images": timeline.images,
            }
        )
        return
    cli.print_facts(
        f"{cli.title(problem)}: verified",
        [
            ("makespan", f"{makespan:.6g} µs"),
            ("algbw", text.bandwidth(algbw(collective, makespan))),
            ("busbw", text.bandwidth(busbw(collective, makespan))),
            ("transfers", f"{len(timeline.transfers):,}"),
            ("each for", f"{timeline.images:,} alike" if timeline.images > 1 else ""),
        ],
    )


def export(
    file: Path, *, to: str, out: Path | None = None, settings: list[str] | None = None
) -> None:
    """Write a document in the format of a runtime, a simulator or a viewer.

    Parameters
    ----------
    file : FILE
        A document of any kind.
    to : FORMAT
        One that `topoloom formats` lists.
    out : FILE
        Where it is written; by default on standard output.
    settings : --set NAME=VALUE
        A setting of the format; as often as needed. `topoloom formats` lists them.
    """
    found = writers.writer(to)
    told = _told(settings)
    if out is not None and not out.is_dir():
        cli.writable(out)
    written = writers.write(read_document(file), found.name, told)
    if len(written.files) > 1:
        _hand_over_all(written, out, what=found.name)
    else:
        cli.writable(out)
        _hand_over(written.content, out, what=found.name)
    if written.lost:
        cli.remark(f"not kept: {'; '.join(written.lost)}")


def import_(
    file: Path,
    *,
    out: Path | None = None,
    format_name: str | None = None,
    settings: list[str] | None = None,
    cluster: str | None = None,
    merged: Path | None = None,
) -> None:
    """Read what a machine or another program wrote, say what was made of it, and keep it.

    Parameters
    ----------
    file : FILE
        What a machine or another program wrote, or a link.
    out : FILE
        Where it is written; by default on standard output.
    format_name : --format FORMAT
        One that `topoloom formats` lists; by default what the content looks like.
    settings : --set NAME=VALUE
        A setting of the format; as often as needed. `topoloom formats` lists them.
    cluster : CLUSTER
        The cluster that a plan, sketch or graph is about.
    merged : --merge FILE
        Another description of the same machine; what only it has is added.
    """
    cli.writable(out)
    topology = None if cluster is None else cli.open_document(cluster).topology
    asked = Request(topology=topology, settings=_told(settings))
    found = _read(file, asked, format_name)
    opened, report = found.document, found.report
    if merged is not None:
        other = _read(merged, asked, None)
        opened, joined = merge(opened, other.document)
        report = report.joined(other.report).joined(joined)
    for each in writers.sentences(report):
        cli.remark(each)
    topology = opened.topology
    gpus = text.count(len(topology.ranks), "GPU")
    _hand_over(document_text(opened).encode(), out, what=f"{topology} with {gpus}")


def formats(*, as_json: bool = False) -> None:
    """List the formats that are read and written, with their settings."""
    rows = [
        *(("read", each.name, each.title, dict(each.settings)) for each in catalogue.readers()),
        *(
            ("write", each.name, each.title, _settings_of(each.options))
            for each in writers.writers()
        ),
    ]
    if as_json:
        keys = ("direction", "name", "title", "settings")
        cli.print_json({"formats": [dict(zip(keys, row, strict=True)) for row in rows]})
        return
    columns = ("", "name", "title", "settings")
    cli.print_table(
        columns, [(way, name, title, ", ".join(told)) for way, name, title, told in rows]
    )


def _settings_of(options: type) -> dict[str, str]:
    return {each.name: each.help or each.label for each in option_fields(options)}


def _read(file: Path, asked: Request, format_name: str | None) -> Imported:
    try:
        if is_link(str(file)):
            # Of two slashes in a row a path has kept one, but the fragment alone matters.
            return catalogue.read_content(
                str(file).encode(), replace(asked, name="the link"), format_name="link"
            )
        return catalogue.read_file(str(file), request=asked, format_name=format_name)
    except Question as question:
        answers = " or ".join(
            f"--set {question.key}={answer} ({words})" for answer, words in question.choices.items()
        )
        raise FormatError(f"{question}; give {answers}") from None


def _told(settings: list[str] | None) -> dict[str, str]:
    """Return settings as typed.

    Raises
    ------
    FormatError
        If one has no equals sign.
    """
    told = {}
    for each in settings or ():
        name, equals, value = each.partition("=")
        if not equals:
            raise FormatError(f"setting {each!r} has no value; write {name}=VALUE")
        told[name.strip()] = value.strip()
    return told


def _hand_over(written: bytes, out: Path | None, *, what: str) -> None:
    if out is None:
        sys.stdout.buffer.write(written)
    else:
        write_bytes(out, written)
        cli.remark(f"{what} is in {out}")


def _hand_over_all(written: Written, out: Path | None, *, what: str) -> None:
    """Write several files into a folder."""
    if out is None or (out.exists() and not out.is_dir()):
        many = len(written.files)
        raise FormatError(f"{what} is {many:,} files; name a folder for them, such as --out {what}")
    out.mkdir(parents=True, exist_ok=True)
    for name, content in written.files.items():
        write_bytes(out / name, content)
    cli.remark(f"{what}, {text.count(len(written.files), 'file')}, is in {out}")


def _print_refusal(error: ScheduleError, *, as_json: bool) -> None:
    told: dict[str, Any] = {
        "verified": False,
        "rule": str(error),
        "where": error.where,
        "time_us": error.time,
        "epoch": error.epoch,
    }
    if as_json:
        cli.print_json(told)
        return
    epoch = f", epoch {error.epoch}" if error.epoch is not None else ""
    cli.print_facts(
        "refused",
        [("rule", str(error)), ("where", error.where), ("when", f"{error.time:.6g} µs{epoch}")],
    )


def _problem_in(file: Path) -> Problem:
    opened = read_document(file)
    if opened.problem is None:
        raise FormatError(f"{file} is a {opened.kind} document and has no problem; give a problem")
    return opened.problem


def _replayed(opened: Document, file: Path) -> tuple[Problem, Plan, Timeline]:
    try:
        return replayed(opened)
    except FormatError as error:
        raise FormatError(f"{file}: {error}") from None


def link(cluster: str, *, at: str = HOME) -> None:
    """Print a link that holds the cluster and its collective, in its fragment alone.

    Parameters
    ----------
    at : ADDRESS
        Where whoever opens it finds a designer.
    """
    opened = cli.open_document(cluster)
    if opened.plan is not None:
        cli.remark("not kept: the plan; it is solved again")
    typer.echo(link_of(Share.of(opened), at=at))


def explain(
    file: Path,
    *,
    chunk: int | None = None,
    link: str | None = None,
    rank: int | None = None,
    host: str | None = None,
) -> None:
    """Tell a plan in words: each send, what it waited for, what its makespan is made of.

    Parameters
    ----------
    file : FILE
        A result or plan document.
    chunk
        The path of this chunk.
    link : SRC->DST
        What this link carries, and where it is idle.
    rank
        What this rank gets and sends.
    host
        What enters and leaves this host.
    """
    told = _report(file)
    typer.echo(
        told_in_words(
            told.problem,
            told.plan,
            timeline=told.timeline,
            chunk=chunk,
            link=None if link is None else _ends(link),
            rank=rank,
            host=host,
        )
    )


def diff(first: Path, second: Path, *, as_json: bool = False) -> None:
    """Say what differs between two plans of one problem: sends, times, bytes of links.

    Parameters
    ----------
    first : FIRST
        A result or plan document.
    second : SECOND
        Another, of one problem.
    """
    names = (first.name, second.name) if first.name != second.name else (str(first), str(second))
    found = difference(_report(first), _report(second), names=names)
    if not as_json:
        typer.echo(found.text())
        return
    cli.print_json(
        {
            "makespans_us": list(found.makespans),
            "parts_at_us": found.parts_at,
            "same": found.same,
            "rows": found.as_rows(),
            "links": [
                {"src": src, "dst": dst, "bytes": list(both)}
                for (src, dst), both in found.links.items()
            ],
        }
    )


def _report(file: Path) -> PlanReport:
    opened = read_document(file)
    try:
        return report(*replayed(opened))
    except FormatError as error:
        raise FormatError(f"{file}: {error}") from None


def _ends(link: str) -> tuple[str, str]:
    """Return the ends of a link as typed, such as ``g0->g1``.

    Raises
    ------
    FormatError
        If it has not two.
    """
    for arrow in ("->", "→"):
        src, found, dst = link.partition(arrow)
        if found and src.strip() and dst.strip():
            return src.strip(), dst.strip()
    raise FormatError(f"--link is {link!r}; write SRC->DST, such as g0->g1")
