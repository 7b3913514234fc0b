"""What a cluster is asked besides one collective: links with less bandwidth, several tenants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import formulations
from ccl import text
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.serialization.conditions import parse_window, read_tenants
from ccl.serialization.text import read_bytes
from ccl.tenants import tenants
from designer.cli.asked import ask, remark
from formulations import prioritised

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
