"""What a cluster is asked besides one collective: links with less bandwidth, several tenants.

``topoloom formulation``: what a formulation says, and how large it would be for a problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import formulations
from ccl import text
from ccl.collective import tenants
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.serialization.conditions import parse_window, read_tenants
from ccl.serialization.text import read_bytes
from designer.cli.asked import (
    ChunksOption,
    CollectiveOption,
    JsonOption,
    RootOption,
    SizeOption,
    ask,
    open_document,
    print_facts,
    print_json,
    print_table,
    remark,
)
from formulations import available, explain, prioritised
from formulations import formulation as described
from formulations.analyses.explanation import Explanation

if TYPE_CHECKING:
    from ccl.result import Result
    from ccl.serialization.documents import Document
    from formulations.analyses.tenancy import TenantTime

WindowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--window",
        metavar="WHEN",
        help="Links with less bandwidth for a time, such as 'g0->g1@0..50us=0.5'; again for more.",
        show_default=False,
    ),
]
TenantsOption = Annotated[
    Path | None,
    typer.Option(
        "--tenants",
        metavar="FILE",
        help="Several jobs at once, with priorities, as YAML (docs/whatif.md).",
        show_default=False,
    ),
]


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
            msg = f"{file} says what each tenant runs; leave out {' and '.join(twice)}"
            raise ProblemError(msg)
        if opened.problem is not None:
            msg = (
                f"the document is a {opened.kind} with its own "
                f"{opened.problem.collective.kind}; leave out --tenants, or give a topology"
            )
            raise ProblemError(msg)
        jobs = read_tenants(read_bytes(file), opened.topology, name=str(file))
        return Problem(opened.topology, tenants(len(opened.topology.ranks), jobs))


def ordering(problem: Problem, chosen: str, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the formulation and its options: one that orders by priority where none is chosen.

    It is told on standard error, as is when priorities say nothing.
    """
    from formulations.analyses.tenancy import by_priority  # noqa: PLC0415  it needs the bounds

    if chosen != formulations.DEFAULT or options or not prioritised(problem):
        return chosen, options
    found = by_priority(problem)
    if found is None:
        remark("priorities only settle ties here: no formulation that orders by them takes this")
        return chosen, options
    name, own = found
    flags = " ".join(f"--{key} {value}" for key, value in own.items())
    remark(f"priorities are given, so it is solved by --formulation {name} {flags}")
    return name, dict(own)


def condition_rows(result: Result) -> list[tuple[str, str]]:
    """Return what is told of the tenants and windows of a result."""
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


def formulation(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="A formulation; by default all are listed.", show_default=False
        ),
    ] = None,
    *,
    of: Annotated[
        str | None,
        typer.Option(
            "--of",
            metavar="CLUSTER",
            help="A cluster or a document: how large the model would be for it, before solving.",
            show_default=False,
        ),
    ] = None,
    collective: CollectiveOption = None,
    size: SizeOption = None,
    chunks: ChunksOption = None,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the mathematics of a formulation, and what it comes to on a cluster."""
    if name is None:
        _list(as_json=as_json)
        return
    problem = None
    if of is not None:
        problem = ask(open_document(of), collective=collective, size=size, chunks=chunks, root=root)
    found = explain(name, problem)
    if as_json:
        print_json(_answer(found))
        return
    print_facts(f"{found.title} ({found.name})", _facts(found))
    # A terminal shows the docstring as it is written; Markdown is for pages.
    typer.echo(f"\n{described(name).mathematics.strip()}")


def _list(*, as_json: bool) -> None:
    if as_json:
        rows = [
            {"name": each.name, "title": each.title, "reference": each.reference}
            for each in available()
        ]
        print_json({"formulations": rows})
        return
    print_table(("name", "title"), ((each.name, each.title) for each in available()))


def _facts(found: Explanation) -> list[tuple[str, str]]:
    facts = [("from", found.reference), ("solves", ", ".join(found.collectives))]
    if found.problem is None:
        return facts
    collective = found.problem.collective
    asked = f"{collective.kind} of {text.size(collective.size)} on {found.problem.topology}"
    facts.append(("asked", asked))
    if found.refusal is not None:
        return [*facts, ("refused", found.refusal)]
    if found.size is not None:
        size = found.size
        facts += [
            ("variables", f"{size.variables:,}"),
            ("constraints", f"{size.constraints:,}"),
            ("nonzeros", f"{size.nonzeros:,}"),
            ("memory", f"about {text.size(size.memory)}"),
        ]
    facts.append(("takes", found.speed.words if found.speed else ""))
    facts.append(("model", found.note))
    return facts + [
        (f"{each.many:,} rows", f"{each.name}: {each.words}") for each in found.groups if each.many
    ]


def _answer(found: Explanation) -> dict[str, Any]:
    size = found.size
    return {
        "name": found.name,
        "title": found.title,
        "reference": found.reference,
        "collectives": list(found.collectives),
        "refused": found.refusal,
        "variables": size and size.variables,
        "constraints": size and size.constraints,
        "nonzeros": size and size.nonzeros,
        "takes": found.speed and found.speed.words,
        "note": found.note,
        "groups": [
            {"name": each.name, "says": each.words, "rows": each.many} for each in found.groups
        ],
        "mathematics": found.mathematics,
    }
