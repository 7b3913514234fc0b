"""``topoloom bound``: how fast no plan can be faster, and why."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ccl.bound import Bound, Cut, Path
from ccl.metrics import algbw, busbw
from ccl.problem import Problem
from designer import text
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
    from formulations.bounds import lower_bounds  # noqa: PLC0415  it loads a solver

    bounds = lower_bounds(problem, whole_chunks=whole_chunks)
    if as_json:
        print_json(_answer(problem, bounds[0]))
        return
    print_facts(
        f"{problem.collective.kind} of {text.size(problem.collective.size)} on {problem.topology}",
        [*_facts(problem, bounds[0]), *(("also", _line(each)) for each in bounds[1:4])],
    )


def _answer(problem: Problem, best: Bound) -> dict[str, Any]:
    collective, witness = problem.collective, best.witness
    cut = path = None
    if isinstance(witness, Cut):
        cut = {
            "inside": list(witness.inside),
            "links": [list(ends) for ends in witness.links],
            "bandwidth_GBps": witness.bandwidth,
        }
    elif isinstance(witness, Path):
        path = list(witness.devices)
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
        "cut": cut,
        "path": path,
    }


def _facts(problem: Problem, best: Bound) -> list[tuple[str, str]]:
    collective, witness = problem.collective, best.witness
    facts = [
        ("bound", f"{best.makespan:.6g} µs"),
        ("kind", f"{best.kind}: {best.reference}"),
        ("algbw", f"at most {text.bandwidth(algbw(collective, best.makespan))}"),
        ("busbw", f"at most {text.bandwidth(busbw(collective, best.makespan))}"),
    ]
    if isinstance(witness, Cut):
        inside = text.listing(witness.inside, 16)
        links = text.listing([f"{src}->{dst}" for src, dst in witness.links], 8)
        width, many = text.bandwidth(witness.bandwidth), text.count(len(witness.links), "link")
        facts += [
            ("cut", f"{text.count(len(witness.inside), 'device')} inside: {inside}"),
            ("out of it", f"{width} over {many}: {links}"),
        ]
    elif isinstance(witness, Path):
        facts.append(("path", " -> ".join(witness.devices)))
    return facts


def _line(each: Bound) -> str:
    return f"{each.makespan:.6g} µs by {each.kind}: {each.reference}"
