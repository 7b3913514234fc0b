"""What is printed: answers on standard output, everything else on standard error."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ccl import text

if TYPE_CHECKING:
    from ccl.result import Result

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


def whole_chunk_rows(result: Result) -> Iterator[tuple[str, str]]:
    """Yield the bound of the plans that send these chunks whole, where it says more."""
    bound, gap = result.whole_bound, result.whole_gap
    if bound is not None:
        what = f"bound for whole chunks of {text.size(result.problem.collective.chunk_size)}"
        yield what, f"{bound.makespan:.6g} µs ({bound.kind}), gap {text.share(gap)}"


def print_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print rows under their columns, as plain text that a pipe can use where there is one."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDE
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, name in enumerate(columns):
        table.add_column(name, no_wrap=number == 0, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)
