"""``topoloom optimum``: the best steady state, what proves it, and what links are worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ccl import text
from ccl.metrics import bus_factor
from ccl.problem import Problem
from designer.cli.asked import (
    Cluster,
    CollectiveOption,
    JsonOption,
    RootOption,
    SizeOption,
    ask,
    open_document,
)
from designer.cli.show import print_facts, print_json
from widgets.words.comparison import cut_words

if TYPE_CHECKING:
    from formulations.analyses.best_rate import Optimum
    from formulations.analyses.sensitivity.changes import Change

SHOWN = 8
"""Most classes of links that are told to people."""


def optimum(
    cluster: Cluster,
    *,
    collective: CollectiveOption = None,
    size: SizeOption = None,
    root: RootOption = None,
    worth: Annotated[
        bool, typer.Option("--worth", help="Say what 1 % of each kind of links is worth, too.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the best rate of a collective, latencies aside, and what proves it."""
    problem = ask(open_document(cluster), collective=collective, size=size, chunks=None, root=root)
    from formulations.analyses import best_rate as fluid  # noqa: PLC0415  it loads igraph
    from formulations.analyses.sensitivity.changes import changes  # noqa: PLC0415

    best = fluid.optimum(problem)
    links = changes(problem) if worth and fluid.priceable(problem) else ()
    if as_json:
        print_json(_answer(problem, best, links))
        return
    print_facts(
        f"{problem.collective.kind} of {text.size(problem.collective.size)} on {problem.topology}",
        [*_facts(problem, best), *_worth(links, asked=worth)],
    )


def _answer(problem: Problem, best: Optimum, links: tuple[Change, ...]) -> dict[str, Any]:
    return {
        "topology": problem.topology.name,
        "collective": problem.collective.kind,
        "size": problem.collective.size,
        "makespan_us": best.makespan,
        "algbw_GBps": best.algbw,
        "busbw_GBps": best.algbw * bus_factor(problem.collective),
        "fraction": None if best.fraction is None else str(best.fraction),
        "reached": best.reached,
        "proved_by": best.proved_by,
        "cuts": [
            {
                "inside": list(cut.inside),
                "links": [list(ends) for ends in cut.links],
                "bandwidth_GBps": cut.bandwidth,
            }
            for cut in best.cuts
        ],
        "prices": [{"link": list(ends), "price": price} for ends, price in best.prices.items()],
        "worth": [
            {"links": each.words, "more": each.more, "less": each.less, "price": each.price}
            for each in links
        ],
    }


def _facts(problem: Problem, best: Optimum) -> list[tuple[str, str]]:
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
        for each in links[:SHOWN]
    ]
