"""What is known before a solve: ``topoloom bound``, ``topoloom optimum``, ``topoloom formulation``.

How fast no plan can be faster, and why; the best steady state, what proves it, and what links are
worth; what a formulation says, and how large it would be for a problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

import formulations
from ccl import text
from ccl.bound import Bound, Cut, Path
from ccl.problem import Problem
from ccl.timeline import algbw, bus_factor, busbw
from designer.cli import request as cli
from formulations import available
from formulations import formulation as described
from widgets.words import cut_words

if TYPE_CHECKING:
    from formulations.analyses.best_rate import Optimum
    from formulations.analyses.explanation import Explanation
    from formulations.analyses.sensitivity.changes import Change


def bound(
    cluster: str,
    *,
    collective: str | None = None,
    size: str | None = None,
    chunks: int | None = None,
    root: int | None = None,
    whole_chunks: bool = False,
    as_json: bool = False,
) -> None:
    """Print the largest lower bound on the makespan and the cut that proves it.

    Parameters
    ----------
    whole_chunks
        Count only plans that never split a chunk.
    """
    problem = cli.ask(cluster, collective=collective, size=size, chunks=chunks, root=root)
    from formulations import lower_bounds  # noqa: PLC0415  it loads a solver

    bounds = lower_bounds(problem, whole_chunks=whole_chunks)
    if as_json:
        cli.print_json(_answer(problem, bounds))
        return
    cli.print_facts(
        cli.title(problem),
        [*_facts(problem, bounds), *(("also", _line(each)) for each in bounds[1:4])],
    )


def _answer(problem: Problem, bounds: Sequence[Bound]) -> dict[str, Any]:
    collective, best = problem.collective, bounds[0]
    cuts = [cli.cut_answer(cut) | {"bound_us": proof.makespan} for proof, cut in _cuts(bounds)[:1]]
    return {
        **cli.problem_answer(problem),
        "bound_us": best.makespan,
        "bound_kind": best.kind,
        "algbw_GBps": algbw(collective, best.makespan),
        "busbw_GBps": busbw(collective, best.makespan),
        "whole_chunks": best.whole_chunks,
        "reference": best.reference,
        "cut": cuts[0] if cuts else None,
        "path": list(best.witness.devices) if isinstance(best.witness, Path) else None,
    }


def _facts(problem: Problem, bounds: Sequence[Bound]) -> list[tuple[str, str]]:
    collective, best = problem.collective, bounds[0]
    facts = [
        ("bound", f"{best.makespan:.6g} µs"),
        ("kind", f"{best.kind}: {best.reference}"),
        ("algbw", f"at most {text.bandwidth(algbw(collective, best.makespan))}"),
        ("busbw", f"at most {text.bandwidth(busbw(collective, best.makespan))}"),
    ]
    if isinstance(best.witness, Path):
        facts.append(("path", " -> ".join(best.witness.devices)))
    for proof, cut in _cuts(bounds)[:1]:
        links = text.listing([f"{src}->{dst}" for src, dst in cut.links], 8)
        width, many = text.bandwidth(cut.bandwidth), text.count(len(cut.links), "link")
        inside = f"{text.count(len(cut.inside), 'device')} inside: {text.listing(cut.inside, 16)}"
        facts += [
            ("cut", f"{inside}; it proves {proof.makespan:.6g} µs"),
            ("out of it", f"{width} over {many}: {links}"),
        ]
    return facts


def _cuts(bounds: Sequence[Bound]) -> list[tuple[Bound, Cut]]:
    """Return the bounds that a cut proves with their cuts, the largest first."""
    return [(each, each.witness) for each in bounds if isinstance(each.witness, Cut)]


def _line(each: Bound) -> str:
    return f"{each.makespan:.6g} µs by {each.kind}: {each.reference}"


SECONDS = 5.0
"""For prices of pairs on a large cluster without symmetry."""

MOST_LISTED = 8
"""Most classes of links that are printed."""


def optimum(
    cluster: str,
    *,
    collective: str | None = None,
    size: str | None = None,
    root: int | None = None,
    worth: bool = False,
    as_json: bool = False,
) -> None:
    """Print the best rate of a collective, latencies aside, and what proves it.

    Parameters
    ----------
    worth
        Add the bandwidth sensitivity of each kind of links.
    """
    problem = cli.ask(cluster, collective=collective, size=size, root=root)
    from formulations.analyses import best_rate  # noqa: PLC0415  it loads igraph
    from formulations.analyses.sensitivity.changes import changes  # noqa: PLC0415

    best = best_rate.optimum(problem, seconds=SECONDS)
    links = changes(problem) if worth and best_rate.priceable(problem) else ()
    if as_json:
        cli.print_json(_best_rate_answer(problem, best, links))
        return
    cli.print_facts(
        cli.title(problem), [*_best_rate_facts(problem, best), *_worth(links, asked=worth)]
    )


def _best_rate_answer(problem: Problem, best: Optimum, links: tuple[Change, ...]) -> dict[str, Any]:
    return {
        **cli.problem_answer(problem),
        "makespan_us": best.makespan,
        "algbw_GBps": best.algbw,
        "busbw_GBps": best.algbw * bus_factor(problem.collective),
        "fraction": None if best.fraction is None else str(best.fraction),
        "reached": best.reached,
        "proved_by": best.proved_by,
        "cuts": [cli.cut_answer(cut) for cut in best.cuts],
        "prices": [{"link": list(ends), "price": price} for ends, price in best.prices.items()],
        "worth": [
            {"links": each.words, "more": each.more, "less": each.less, "price": each.price}
            for each in links
        ],
    }


def _best_rate_facts(problem: Problem, best: Optimum) -> list[tuple[str, str]]:
    exact = best.fraction is not None and best.fraction.denominator > 1
    most = "" if best.reached else "at most "
    facts = [
        ("algbw", most + text.bandwidth(best.algbw) + (f" = {best.fraction}" if exact else "")),
        ("busbw", most + text.bandwidth(best.algbw * bus_factor(problem.collective))),
        ("time", f"{best.makespan:.6g} µs in the steady state, latencies aside"),
        ("proved by", best.proved_by),
    ]
    facts += [("cut", cut_words(each, problem.topology)) for each in best.cuts]
    if best.prices:
        first = sorted(best.prices, key=lambda ends: -best.prices[ends])
        told = [f"{src}->{dst}" for src, dst in first]
        facts.append(("held by", text.listing(told, 8)))
    return facts


def _worth(links: tuple[Change, ...], *, asked: bool) -> list[tuple[str, str]]:
    if asked and not links:
        return [("worth", "this is too large to be solved again for every kind of links")]
    return [
        ("worth", f"{each.words}: +1 % gives {each.more:+.2%}, -1 % gives {each.less:+.2%}")
        for each in links[:MOST_LISTED]
    ]


def formulation(
    name: str | None = None,
    *,
    of: str | None = None,
    collective: str | None = None,
    size: str | None = None,
    chunks: int | None = None,
    root: int | None = None,
    as_json: bool = False,
) -> None:
    """Print the mathematics of a formulation, and what it comes to on a cluster.

    Parameters
    ----------
    name : NAME
        A formulation; by default all are listed.
    of : CLUSTER
        A cluster or a document: how large the model would be for it, before solving.
    """
    if name is None:
        _list_formulations(as_json=as_json)
        return
    problem = None
    if of is not None:
        problem = cli.ask(of, collective=collective, size=size, chunks=chunks, root=root)
    found = formulations.explain(name, problem)
    if as_json:
        cli.print_json(_formulation_answer(found))
        return
    cli.print_facts(f"{found.title} ({found.name})", _formulation_facts(found))
    # A terminal shows the docstring as it is written; Markdown is for pages.
    typer.echo(f"\n{described(name).mathematics.strip()}")


def _list_formulations(*, as_json: bool) -> None:
    if as_json:
        rows = [
            {"name": each.name, "title": each.title, "reference": each.reference}
            for each in available()
        ]
        cli.print_json({"formulations": rows})
        return
    cli.print_table(("name", "title"), ((each.name, each.title) for each in available()))


def _formulation_facts(found: Explanation) -> list[tuple[str, str]]:
    facts = [("from", found.reference), ("solves", ", ".join(found.collectives))]
    if found.problem is None:
        return facts
    facts.append(("asked", cli.title(found.problem)))
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


def _formulation_answer(found: Explanation) -> dict[str, Any]:
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
