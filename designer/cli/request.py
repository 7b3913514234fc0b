"""Arguments of the commands: a cluster by name or file, a collective on it and its conditions.

What is printed: answers on standard output, everything else on standard error.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args, get_origin

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ccl import text
from ccl.bound import Cut
from ccl.collective import COLLECTIVES, CollectiveKind, make_collective, tenants
from ccl.errors import FormatError, ProblemError
from ccl.problem import Problem
from ccl.result import Result
from ccl.serialization.conditions import parse_window, read_tenants
from ccl.serialization.documents import Document, document, read_document, write_document
from ccl.serialization.quantity import parse_size
from ccl.serialization.sketches import read_sketch, sketch_to_json
from ccl.serialization.text import read_bytes
from ccl.topology import Topology
from gallery import open_cluster
from interchange.formats.own.fragment import is_link, share_of

if TYPE_CHECKING:
    from formulations.analyses.tenancy import TenantTime

INTERRUPTED = 130
"""Exit code after Ctrl-C."""

WIDE = 160
"""Columns for whoever reads a pipe: few cells are broken."""


def complain(sentence: str) -> int:
    """Print one sentence on standard error and return the exit code of bad input."""
    remark(f"topoloom: {sentence}")
    return 2


def remark(sentence: str) -> None:
    """Print one sentence on standard error, in one line."""
    typer.echo(" ".join(sentence.split()), err=True)


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object."""
    typer.echo(json.dumps(value, ensure_ascii=False, allow_nan=False))


def print_facts(title: str, facts: Iterable[tuple[str, str]]) -> None:
    """Print a title and rows of what and how much; rows without a value are left out."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for what, value in facts:
        if value:
            table.add_row(what, Text(value))
    console = Console(highlight=False)
    console.print(Text(title, style="bold"))
    console.print(table)


def title(problem: Problem) -> str:
    """Say what is solved where: ``all-gather of 1 MB on ndv2``."""
    collective = problem.collective
    return f"{collective.kind} of {text.size(collective.size)} on {problem.topology}"


def problem_answer(problem: Problem) -> dict[str, Any]:
    """Return what ``--json`` prints of a problem."""
    collective = problem.collective
    return {
        "topology": problem.topology.name,
        "collective": collective.kind,
        "size": collective.size,
    }


def cut_answer(cut: Cut) -> dict[str, Any]:
    """Return what ``--json`` prints of a cut."""
    return {
        "inside": list(cut.inside),
        "links": [list(ends) for ends in cut.links],
        "bandwidth_GBps": cut.bandwidth,
    }


def whole_chunk_rows(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the bound of the plans that send these chunks whole, where it says more."""
    bound, gap = result.whole_bound, result.whole_gap
    if bound is not None:
        what = f"bound for whole chunks of {text.size(result.problem.collective.chunk_size)}"
        yield what, f"{bound.makespan:.6g} µs ({bound.kind}), gap {text.share(gap)}"


def condition_rows(result: Result) -> list[tuple[str, str]]:
    """Return what is printed of the tenants and windows of a result."""
    rows = [
        (
            f"tenant {each.name}" if each.name else "no tenant",
            f"{text.duration(each.finish)}, priority {each.priority:g}"
            + (f"; alone at least {text.duration(each.alone)}" if each.alone else ""),
        )
        for each in _times(result)
    ]
    for each in result.problem.windows:
        links = text.listing([f"{src}->{dst}" for src, dst in each.links])
        when = f"from {text.duration(each.begin)} to {text.duration(each.end)}"
        rows.append(("window", f"{links} at {text.share(each.share)} {when}"))
    return rows


def tenants_answer(result: Result) -> list[dict[str, Any]]:
    """Return what ``--json`` prints of the tenants of a result."""
    return [
        {
            "name": each.name,
            "priority": each.priority,
            "size": each.nbytes,
            "finish_us": each.finish,
            "alone_us": each.alone,
        }
        for each in _times(result)
    ]


def _times(result: Result) -> tuple[TenantTime, ...]:
    from formulations.analyses.tenancy import tenant_times  # noqa: PLC0415  it needs the bounds

    return tenant_times(result)


def print_table(
    columns: Iterable[str],
    rows: Iterable[Iterable[str]],
    *,
    right: Container[int] = (),
    whole: Container[int] = (0,),
) -> None:
    """Print rows under their columns, as plain text that a pipe can use where there is one.

    Parameters
    ----------
    columns, rows
        Headings and cells.
    right
        Columns of numbers, which end at the right.
    whole
        Columns whose cells are not broken.
    """
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDE
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, name in enumerate(columns):
        justify: Literal["left", "right"] = "right" if number in right else "left"
        table.add_column(name, justify=justify, no_wrap=number in whole, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)


USUAL_COLLECTIVE = "all-gather"
USUAL_SIZE = "1MB"

USUAL = f"""
cluster : CLUSTER
    A cluster of the gallery, such as ndv2:hosts=2, a document (.json) or a link.
collective : KIND
    {", ".join(each for each in COLLECTIVES if each != "custom")};
    by default the document's, or {USUAL_COLLECTIVE}.
size : BYTES
    The whole buffer as nccl-tests counts it: 1GB is 10^9 bytes, 1GiB is 2^30;
    by default {USUAL_SIZE}.
chunks
    Keep so many chunks per shard whole; by default plans cut as they like.
root
    Rank of the root; by default 0.
memory : BYTES
    What a solve may take, such as 4GB; what takes more is ended and its best plan kept.
    By default its part of 80 % of the machine's.
solves : N
    At once; by default one each core, up to 4. Others wait in line.
as_json : --json
    Print one JSON object.
"""
"""What is said of a parameter whose command says nothing of it."""

_SAID = re.compile(r"^(\w+)(?: : (--[\w-]+)? ?(.*))?\n((?:    .+\n)+)", re.MULTILINE)


def command(
    function: Callable[..., None], flags: Sequence[inspect.Parameter] = (), *, said: str = ""
) -> Callable[..., None]:
    """Return a function as a command, its arguments and options described by its docstring.

    A parameter is described as ``name : --flag VALUE``, where the flag is left out if it is the
    name and the value if help names its type, with the words of help below. Those that can be
    given by position are arguments.

    Parameters
    ----------
    function
        What is called.
    flags
        What its ``**options`` stands for, with typer's own annotations.
    said
        Of parameters that the docstring leaves out, before those of `USUAL`.
    """
    about, _, own = (inspect.getdoc(function) or "").partition("\n\nParameters\n----------\n")
    told = {name: rest for name, *rest in _SAID.findall(f"{USUAL}{said}{own}\n")}
    plain = inspect.signature(function, eval_str=True)
    taken = [
        each.replace(annotation=_described(each, told.get(each.name, ("", "", ""))))
        for each in plain.parameters.values()
        if each.kind is not each.VAR_KEYWORD
    ] + [*flags]

    @wraps(function)
    def run(**given: Any) -> None:
        function(**given)

    run.__doc__ = about
    run.__annotations__ = {each.name: each.annotation for each in taken}
    run.__signature__ = plain.replace(parameters=taken)  # type: ignore[attr-defined]
    return run


def _described(parameter: inspect.Parameter, told: Sequence[str]) -> Any:
    """Return the annotation of a parameter with its flag, what its value is called and words."""
    flag, value, words = told
    kind, more = parameter.annotation, {}
    if get_origin(kind) is Annotated:
        kind, more = get_args(kind)
    if parameter.kind is parameter.KEYWORD_ONLY:
        given = typer.Option(flag or f"--{parameter.name.replace('_', '-')}", **more)
    else:
        given = typer.Argument(**more)
    given.metavar, given.help = value or None, " ".join(words.split())
    return Annotated[kind, given]


def open_document(cluster: str) -> Document:
    """Open a document by its path, a link, or a cluster of the gallery by its name.

    Raises
    ------
    CclError
        If there is none or it is not one.
    """
    if is_link(cluster):
        share = share_of(cluster)
        if share.solving is not None:
            remark(f"the link also says how to solve it, which is left to flags: {share.solving}")
        return share.document
    path = Path(cluster)
    if cluster.lower().endswith(".json") or path.is_file():
        return read_document(path)
    return document(open_cluster(cluster))


def ask(
    cluster: str | Document,
    *,
    collective: str | None,
    root: int | None,
    size: str | None = None,
    chunks: int | None = None,
) -> Problem:
    """Make the problem that the arguments of a command describe.

    Parameters
    ----------
    cluster
        As typed or as opened; a document with a problem brings its own collective.
    collective, size, chunks, root
        As given, None where nothing is.

    Raises
    ------
    CclError
        If the collective is not one, or is given twice.
    """
    opened = open_document(cluster) if isinstance(cluster, str) else cluster
    given = {"--collective": collective, "--size": size, "--chunks": chunks, "--root": root}
    twice = [flag for flag, value in given.items() if value is not None]
    if opened.problem is not None:
        if twice:
            raise ProblemError(
                f"the document is a {opened.kind} with its own {opened.problem.collective.kind}; "
                f"leave out {' and '.join(twice)}, or give a topology"
            )
        return opened.problem
    topology = opened.topology
    made = make_collective(
        cast(CollectiveKind, collective or USUAL_COLLECTIVE),
        len(topology.ranks),
        parse_size(USUAL_SIZE if size is None else size),
        chunks=chunks,
        root=root or 0,
    )
    return Problem(topology, made)


@dataclass(frozen=True)
class Given:
    """What a command line says of a problem, None where it says nothing.

    Parameters
    ----------
    collective, size, root
        As for `ask`.
    window
        Windows as they are typed.
    tenants
        A file of them.
    """

    collective: str | None
    size: str | None
    root: int | None
    window: Sequence[str] | None = None
    tenants: Path | None = None

    def problem(self, opened: Document, *, chunks: int | None) -> Problem:
        """Make the problem, on a cluster and for a number of chunks per shard.

        Raises
        ------
        CclError
            If something cannot be read, or the collective is given twice.
        """
        if self.tenants is None:
            made = ask(
                opened, collective=self.collective, size=self.size, chunks=chunks, root=self.root
            )
        else:
            made = self._shared(opened, self.tenants, chunks=chunks)
        more = tuple(parse_window(each, opened.topology) for each in self.window or ())
        return replace(made, windows=(*made.windows, *more))

    def _shared(self, opened: Document, file: Path, *, chunks: int | None) -> Problem:
        """Make the problem of several tenants on a cluster."""
        values = (self.collective, self.size, chunks, self.root)
        flags = ("--collective", "--size", "--chunks", "--root")
        twice = [flag for flag, value in zip(flags, values, strict=True) if value is not None]
        if twice:
            raise ProblemError(
                f"{file} says what each tenant runs; leave out {' and '.join(twice)}"
            )
        if opened.problem is not None:
            raise ProblemError(
                f"the document is a {opened.kind} with its own "
                f"{opened.problem.collective.kind}; leave out --tenants, or give a topology"
            )
        jobs = read_tenants(read_bytes(file), opened.topology, name=str(file))
        return Problem(opened.topology, tenants(len(opened.topology.ranks), jobs))


def ordering(problem: Problem, chosen: str, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the formulation and its options: one that orders by priority where none is chosen.

    The choice is printed on standard error, as is when priorities say nothing.
    """
    from formulations import DEFAULT, prioritised  # noqa: PLC0415  other commands do without
    from formulations.analyses.tenancy import by_priority  # noqa: PLC0415  it needs the bounds

    if chosen != DEFAULT or options or not prioritised(problem):
        return chosen, options
    found = by_priority(problem)
    if found is None:
        remark("priorities only settle ties here: no formulation that orders by them takes this")
        return chosen, options
    name, own = found
    flags = " ".join(f"--{key} {value}" for key, value in own.items())
    remark(f"priorities are given, so it is solved by --formulation {name} {flags}")
    return name, dict(own)


def sketch_in(path: Path, topology: Topology) -> dict[str, Any]:
    """Read a sketch, ours or TACCL's, say what was made of it, and return its plain form.

    Raises
    ------
    CclError
        If it is no sketch, or not one of the topology.
    """
    sketch, sentences = read_sketch(read_bytes(path), topology, name=str(path))
    for each in sentences:
        remark(f"{path.name}: {each}")
    return sketch_to_json(sketch)


def sketched_chunks(options: Mapping[str, Any]) -> int | None:
    """Return the chunks per shard that a sketch among the options asks for, or None."""
    for value in options.values():
        if isinstance(value, dict) and "chunks" in value:
            return int(value["chunks"]) * int(value.get("instances", 1))
    return None


def memory_in(text: str | None) -> float | None:
    """Return the bytes that ``--memory`` gives, None where it does not.

    Raises
    ------
    FormatError
        If it is no size.
    """
    return None if text is None else parse_size(text)


def positive(flag: str, value: float | None, *, unit: str, zero: bool = False) -> float | None:
    """Return a number that was given, once it is in range.

    Raises
    ------
    ProblemError
        If it is not finite, below zero, or zero where that makes no sense.
    """
    if value is None or (math.isfinite(value) and (value > 0 or (zero and value == 0))):
        return value
    least = "0 or more" if zero else "more than 0"
    raise ProblemError(
        f"{flag} is {value:g} {unit}".rstrip() + f"; give {least}{unit and ' ' + unit}"
    )


def writable(out: Path | None) -> None:
    """Refuse, before work is done for it, a file that has no folder to lie in.

    Raises
    ------
    FormatError
        If there is no such folder, or a folder is where the file should be.
    """
    if out is None:
        return
    if out.is_dir():
        raise FormatError(f"{out} is a folder; name a file in it")
    if not out.absolute().parent.is_dir():
        raise FormatError(
            f"{out} cannot be written: there is no folder {out.parent}; make it first"
        )


def write_drawings(networks: Sequence[Topology], out: Path) -> None:
    """Write networks into a folder, the best first.

    Raises
    ------
    FormatError
        If it is a file.
    """
    if out.exists() and not out.is_dir():
        raise FormatError(f"{out} is a file; name a folder for the drawings")
    out.mkdir(parents=True, exist_ok=True)
    files = []
    for place, each in enumerate(networks, start=1):
        plain = re.sub(r"[^a-z0-9]+", "-", each.name.lower()).strip("-")
        files.append(out / f"{place}-{plain}.json")
        write_document(files[-1], document(each))
    remark(
        f"{text.count(len(files), 'drawing')} in {out}, the best is {files[0].name}; look at it: "
        f"topoloom design {files[0]}"
    )
