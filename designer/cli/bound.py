"""``topoloom bound``: how fast no plan can be faster, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ccl import text
from ccl.bound import Bound, Cut, Path
from ccl.metrics import algbw, busbw
from ccl.problem import Problem
from designer.cli.asked import (
    ChunksOption,
    Cluster,
    CollectiveOption,
    JsonOption,
    RootOption,
    SizeOption,
    ask,
    open_document,
)
from designer.cli.show import print_facts, print_json


def bound(
    cluster: Cluster,
    *,
    collective: CollectiveOption = None,
    size: SizeOption = None,
    chunks: ChunksOption = None,
    root: RootOption = None,
    whole_chunks: Annotated[
        bool, typer.Option("--whole-chunks", help="Count only plans that never split a chunk.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the largest lower bound on the makespan and the cut that proves it."""
    problem = ask(
        open_document(cluster), collective=collective, size=size, chunks=chunks, root=root
    )
    from formulations import lower_bounds  # noqa: PLC0415  it loads a solver

    bounds = lower_bounds(problem, whole_chunks=whole_chunks)
    if as_json:
        print_json(_answer(problem, bounds))
        return
    print_facts(
        f"{problem.collective.kind} of {text.size(problem.collective.size)} on {problem.topology}",
        [*_facts(problem, bounds), *(("also", _line(each)) for each in bounds[1:4])],
    )


def _answer(problem: Problem, bounds: Sequence[Bound]) -> dict[str, Any]:
    collective, best = problem.collective, bounds[0]
    cuts = [
        {
            "inside": list(cut.inside),
            "links": [list(ends) for ends in cut.links],
            "bandwidth_GBps": cut.bandwidth,
            "bound_us": proof.makespan,
        }
        for proof, cut in _cuts(bounds)[:1]
    ]
    return {
        "topology": problem.topology.name,
        "collective": collective.kind,
        "size": collective.size,
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
