"""Words for what is shown: comparisons as sentences and tables, problems and results, bounds, cuts.

The same for a page, a notebook and a terminal, and for those who see no picture; a cut is described
by whole hosts where it is made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from ccl import text
from ccl.bound import Bound, Cut, Path, across
from ccl.problem import Problem
from ccl.result import Result
from ccl.serialization.quantity import format_size
from ccl.topology import Topology

if TYPE_CHECKING:
    from formulations.analyses.comparison import Comparison, Row

HEADS = (
    "Method",
    "Status",
    "Makespan",
    "Formula",
    "Gap",
    "algbw GB/s",
    "busbw GB/s",
    "Solved in",
    "Variables",
)
"""Formula is what a published one says of the plan; the gap is to the bound for every plan."""

_FRAME = "overflow-x:auto;line-height:1.4"
_STYLE = (
    "border-collapse:collapse;font-size:12.5px;font-variant-numeric:tabular-nums;text-align:left"
)
_CELL = "padding:4px 14px 4px 0;text-align:left;vertical-align:top;white-space:nowrap"
_WHY = "padding:0 14px 6px 14px;text-align:left;white-space:normal;opacity:.72"
_RULE = "border-top:1px solid rgba(119,135,154,.35)"


def point_words(row: Mapping[str, Any]) -> str:
    """Say what a row of `formulations.sends_front` comes to, the pieces left out."""
    longer = text.share(row["longer"])
    than = f"{longer} longer than the fastest" if row["longer"] else "the fastest"
    sends, makespan = text.count(row["sends"], "send"), text.duration(row["makespan_us"])
    return f"{sends}, {makespan}, {than}; found by {row['found_by']}"


@dataclass(frozen=True, slots=True)
class Line:
    """One row in words.

    Parameters
    ----------
    method
        Who.
    cells
        What stands under `HEADS`, the method left out; empty where there is no result.
    fastest
        Whether no other method of its size is faster.
    why_not
        Why there is no result.
    why
        What a published formula says of the plan and why it takes what it takes here, if there is
        one.
    """

    method: str
    cells: tuple[str, ...] = ()
    fastest: bool = False
    why_not: str = ""
    why: str = ""


def line_of(comparison: Comparison, row: Row) -> Line:
    """Put a row into words."""
    result = row.result
    if result is None:
        return Line(str(row.method), why_not=row.why_not)
    model, formula = result.size, result.closed_form
    cells = (
        comparison.verdict(row),
        text.duration(result.makespan),
        text.NONE if formula is None else text.duration(formula.makespan),
        text.share(comparison.gap(row)),
        text.digits(result.algbw),
        text.digits(result.busbw),
        text.duration(result.solve_time * 1e6),
        text.NONE if model is None else text.scale_unit(model.variables, ("", "K", "M")).rstrip(),
    )
    best = comparison.best(row.size)
    return Line(
        str(row.method),
        cells,
        fastest=best is not None and best.method == row.method,
        why="" if formula is None else formula.why(result.makespan),
    )


def size_words(comparison: Comparison, size: float) -> str:
    """Say of a size what no plan can be faster than."""
    bound = comparison.bound(size)
    return f"{format_size(size)}: lower bound {text.duration(bound.makespan)}"


def crossover_words(comparison: Comparison, named: Callable[[str], str] = str) -> list[str]:
    """Say in a sentence each where another method becomes the fastest, methods as `named`."""
    return [
        f"From {text.size(each.size)} on {named(str(each.after))} is faster than "
        f"{named(str(each.before))} "
        f"(both take {text.duration(each.makespan)} there)"
        for each in comparison.crossovers()
    ]


def fastest_words(comparison: Comparison, named: Callable[[str], str] = str) -> list[str]:
    """Say who is the fastest where: the crossovers, or that one is at every size."""
    crossovers = crossover_words(comparison, named)
    leaders = {"" if each is None else str(each) for each in comparison.leaders()}
    if crossovers or len(leaders) != 1 or "" in leaders or len(comparison.sizes) == 1:
        return crossovers
    return [f"{named(leaders.pop())} is the fastest at every size, alone or with others"]


def missing_words(comparison: Comparison) -> Iterator[str]:
    """Yield who has no schedule at which sizes, and why."""
    why: dict[tuple[str, str], list[float]] = {}
    for row in comparison.rows:
        if row.result is None:
            why.setdefault((str(row.method), row.why_not), []).append(row.size)
    for (method, reason), sizes in why.items():
        everywhere = len(sizes) == len(comparison.sizes)
        where = "" if everywhere else f" at {', '.join(map(format_size, sizes))}"
        yield f"{method} has no schedule{where}: {reason}"


def table_html(comparison: Comparison) -> str:
    """Return the table as HTML without scripts, the sizes under one another."""
    body = []
    for size in comparison.sizes:
        words = escape(size_words(comparison, size))
        body.append(f'<tr><th colspan="{len(HEADS)}" style="{_CELL};{_RULE}">{words}</th></tr>')
        body += [_row_html(line_of(comparison, row)) for row in comparison.at(size)]
    return _framed(HEADS, body)


def explained_html(heads: Sequence[str], rows: Iterable[tuple[Sequence[str], str]]) -> str:
    """Return a table as HTML without scripts: of each row its cells, and a sentence below them."""
    body = []
    for cells, why in rows:
        told = "".join(_cell(each) for each in cells)
        body.append(f'<tr style="{_RULE}">{told}</tr>')
        if why:
            body.append(_why(why, len(heads)))
    return _framed(heads, body)


def _framed(heads: Sequence[str], body: Sequence[str]) -> str:
    cells = "".join(_cell(each, "th") for each in heads)
    return (
        f'<div style="{_FRAME}"><table style="{_STYLE}"><thead><tr>{cells}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def _why(words: str, span: int) -> str:
    return f'<tr><td colspan="{span}" style="{_WHY}">{escape(words)}</td></tr>'


def table_text(comparison: Comparison) -> str:
    """Return the table as text in columns."""
    lines = [["Size", *HEADS]]
    for size in comparison.sizes:
        for row in comparison.at(size):
            line = line_of(comparison, row)
            name = f"{line.method} *" if line.fastest else line.method
            lines.append([format_size(size), name, *(line.cells or (line.why_not,))])
    return columns(lines)


def columns(lines: Sequence[Sequence[str]]) -> str:
    """Return rows as text, each column as wide as in those rows that have them all."""
    full = [each for each in lines if len(each) == len(lines[0])]
    widths = [max(len(each[i]) for each in full) for i in range(len(lines[0]))]
    told = [
        "  ".join(cell.ljust(w) for cell, w in zip(each, widths, strict=False)) for each in lines
    ]
    return "\n".join(each.rstrip() for each in told)


def _row_html(line: Line) -> str:
    span = len(HEADS) - 1
    if not line.cells:
        why = f'<td colspan="{span}" style="{_CELL};opacity:.65">{escape(line.why_not)}</td>'
        return f"<tr>{_cell(line.method)}{why}</tr>"
    name = f"{line.method} (fastest)" if line.fastest else line.method
    row = "".join(_cell(each) for each in (name, *line.cells))
    if not line.why:
        return f"<tr>{row}</tr>"
    return f"<tr>{row}</tr>{_why(line.why, len(HEADS))}"


def _cell(words: str, tag: str = "td") -> str:
    return f'<{tag} style="{_CELL}">{escape(words)}</{tag}>'


def cut_words(cut: Cut, topology: Topology) -> str:
    """Say what crosses a cut: ``200 GB/s out of h0``; the side that the canvas outlines."""
    where, names = across(cut, topology)
    return f"{text.bandwidth(cut.bandwidth)} {where} {text.listing(names, 2)}"


BOUND_LABELS = {
    "path": "Latency of the longest path",
    "injection": "Send limit of one GPU",
    "ejection": "Receive limit of one GPU",
    "cut": "Bottleneck cut",
    "stages": "Two cuts in a row",
    "group": "Total traffic",
    "flow": "All demands at once",
    "solver": "Solver's bound",
}
"""What a bound of a kind is about."""

_OTHERS = {"switch": "switch", "memory": "memory", "nic": "NIC"}


def topology_words(topology: Topology) -> str:
    """Say what a cluster has: ``dgx-1v: 8 GPUs, 32 links, one way each``."""
    kinds: list[str] = [each.kind for each in topology.devices]
    parts = [text.count(len(topology.ranks), "GPU")]
    for kind, what in _OTHERS.items():
        if many := kinds.count(kind):
            parts.append(text.count(many, what))
    parts.append(f"{text.count(len(topology.links), 'link')}, one way each")
    if topology.limits:
        parts.append(text.count(len(topology.limits), "shared limit"))
    return f"{topology.name}: {', '.join(parts)}"


def problem_words(problem: Problem) -> str:
    """Say what a problem asks: ``all-gather of 1 MB on dgx-1v: 8 GPUs, ...``."""
    asked = problem.collective
    return f"{asked.kind} of {format_size(asked.size)} on {topology_words(problem.topology)}"


def result_words(result: Result) -> str:
    """Say how long a plan takes, how good that is and why it stopped there."""
    asked = result.problem.collective
    who = f"{result.formulation} ({result.found_by})" if result.found_by else result.formulation
    steady = ""
    if result.steady_makespan is not None:
        steady = f"; {text.duration(result.steady_makespan)} in the steady state"
    return (
        f"{asked.kind} of {format_size(asked.size)} on {result.problem.topology.name}: "
        f"{text.duration(result.makespan)}, {text.share(result.gap)} above the lower bound of "
        f"{text.duration(result.bound.makespan)} ({result.verdict}){steady}\n"
        f"{text.digits(result.algbw)} GB/s algbw, {text.digits(result.busbw)} GB/s busbw; "
        f"{who}, {text.seconds(result.solve_time)}: {result.stop}"
    )


def bound_words(bound: Bound, topology: Topology | None = None, *, exact: bool = False) -> str:
    """Say what no plan can be faster than, and why.

    Parameters
    ----------
    bound
        What is described.
    topology
        The cluster, if it is known: a cut is then described by whole hosts.
    exact
        Whether the makespan has six digits, as in a table that it stands below.
    """
    reference = f": {bound.reference}" if bound.reference else ""
    return f"{bound_claim(bound, exact=exact)} ({bound_proof(bound, topology)}){reference}"


def bound_claim(bound: Bound, *, exact: bool = False) -> str:
    """Say what no plan can be faster than: ``no plan takes less than 80 µs``."""
    plans = "no plan that keeps chunks whole" if bound.whole_chunks else "no plan"
    makespan = f"{bound.makespan:.6g} µs" if exact else text.duration(bound.makespan)
    return f"{plans} takes less than {makespan}"


def bound_proof(bound: Bound, topology: Topology | None = None) -> str:
    """Name what proves a bound: ``Bottleneck cut, 200 GB/s out of h0``."""
    label, witness = BOUND_LABELS[bound.kind], bound.witness
    if witness is None:
        return label
    if isinstance(witness, Path):
        return f"{label}, {witness.devices[0]} to {witness.devices[-1]}"
    if topology is not None:
        return f"{label}, {cut_words(witness, topology)}"
    rate, entered = text.bandwidth(witness.bandwidth), {dst for _, dst in witness.links}
    if len(entered) == 1 < len(witness.inside):
        return f"{label}, {rate} into {entered.pop()}"
    return f"{label}, {rate} out of {text.listing(witness.inside)}"
