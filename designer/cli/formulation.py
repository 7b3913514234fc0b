"""``topoloom formulation``: what a formulation says, and how large it would be for a problem."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ccl import text
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
)
from formulations import available, explain
from formulations import formulation as described
from formulations.analyses.explanation.explanation import Explanation


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
