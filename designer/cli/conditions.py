"""Conditions of a collective besides its cluster: links with less bandwidth, several tenants.

``topoloom formulation``: what a formulation says, and how large it would be for a problem.

``topoloom failures`` and ``topoloom stragglers``: what one loss, or one that lags, costs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import formulations
from ccl import text
from ccl.collective import tenants
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.serialization.conditions import parse_window, read_tenants
from ccl.serialization.text import read_bytes
from designer.cli import request as cli
from formulations import available
from formulations import formulation as described
from widgets.words import cut_words

if TYPE_CHECKING:
    from ccl.result import Result
    from ccl.serialization.documents import Document
    from formulations.analyses.explanation import Explanation
    from formulations.analyses.failures.nouns import (
        Failure,
        Failures,
        Straggler,
        Stragglers,
        Survival,
    )
    from formulations.analyses.tenancy import TenantTime


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
            made = cli.ask(
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
    from formulations.analyses.tenancy import by_priority  # noqa: PLC0415  it needs the bounds

    if chosen != formulations.DEFAULT or options or not formulations.prioritised(problem):
        return chosen, options
    found = by_priority(problem)
    if found is None:
        cli.remark(
            "priorities only settle ties here: no formulation that orders by them takes this"
        )
        return chosen, options
    name, own = found
    flags = " ".join(f"--{key} {value}" for key, value in own.items())
    cli.remark(f"priorities are given, so it is solved by --formulation {name} {flags}")
    return name, dict(own)


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
        _list(as_json=as_json)
        return
    problem = None
    if of is not None:
        problem = cli.ask(of, collective=collective, size=size, chunks=chunks, root=root)
    found = formulations.explain(name, problem)
    if as_json:
        cli.print_json(_answer(found))
        return
    cli.print_facts(f"{found.title} ({found.name})", _facts(found))
    # A terminal shows the docstring as it is written; Markdown is for pages.
    typer.echo(f"\n{described(name).mathematics.strip()}")


def _list(*, as_json: bool) -> None:
    if as_json:
        rows = [
            {"name": each.name, "title": each.title, "reference": each.reference}
            for each in available()
        ]
        cli.print_json({"formulations": rows})
        return
    cli.print_table(("name", "title"), ((each.name, each.title) for each in available()))


def _facts(found: Explanation) -> list[tuple[str, str]]:
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


NAMED = 3
"""Most ranks that are named in a cell."""

COLUMNS = ("such as", "alike", "algbw", "lost")
"""Columns of every row after what it is."""


def failures(  # noqa: PLR0913  one for each flag
    cluster: str,
    *,
    collective: str | None = None,
    size: str | None = None,
    root: int | None = None,
    losing: str | None = None,
    one_way: bool = False,
    schedule: bool = False,
    time_limit: float | None = None,
    formulation: str = formulations.DEFAULT,
    as_json: bool = False,
) -> None:
    """Say what every single loss costs: of a link, a GPU, a switch, a host.

    Parameters
    ----------
    losing : KINDS
        Of link, gpu, nic, memory, switch and host, by commas; by default all there are.
    one_way
        Lose one direction of a link, not both.
    schedule
        Also solve each, and say what is left of today's plan.
    time_limit : S
        Seconds for all schedules together.
    formulation : NAME
        How schedules are found.
    """
    cli.positive("--time-limit", time_limit, unit="s")
    from formulations.analyses.failures.nouns import PARTS  # noqa: PLC0415  it loads scipy and igraph
    from formulations.analyses.failures.study import Study  # noqa: PLC0415

    study = Study(
        cli.ask(cluster, collective=collective, size=size, root=root),
        losing=PARTS if losing is None else kinds_in(losing),
        schedule=schedule,
        time_limit=time_limit,
        formulation=formulation,
        both=not one_way,
    )
    show = partial(_print_failures, schedule=schedule)
    _follow(study, answer=failures_answer, show=show, as_json=as_json)


def stragglers(  # noqa: PLR0913  one for each flag
    cluster: str,
    *,
    collective: str | None = None,
    size: str | None = None,
    root: int | None = None,
    lagging: str | None = None,
    alpha: float = 1.0,
    beta: float = 2.0,
    schedule: bool = False,
    time_limit: float | None = None,
    formulation: str = formulations.DEFAULT,
    as_json: bool = False,
) -> None:
    """Say what every single straggler costs, and what re-planning wins.

    Parameters
    ----------
    lagging : KINDS
        Of link, gpu, nic, memory, switch and host, by commas; by default all there are.
    alpha : FACTOR
        Latency of what lags, by factor.
    beta : FACTOR
        Its time per byte, by factor.
    schedule
        Also replay today's plan, and say what a new one wins.
    time_limit : S
        Seconds for all schedules together.
    formulation : NAME
        How schedules are found.
    """
    cli.positive("--time-limit", time_limit, unit="s")
    from formulations.analyses.failures.nouns import PARTS  # noqa: PLC0415
    from formulations.analyses.failures.study import LagStudy  # noqa: PLC0415  it loads scipy and igraph

    study = LagStudy(
        cli.ask(cluster, collective=collective, size=size, root=root),
        alpha=alpha,
        beta=beta,
        lagging=PARTS if lagging is None else kinds_in(lagging),
        schedule=schedule,
        time_limit=time_limit,
        formulation=formulation,
    )
    show = partial(_print_stragglers, schedule=schedule)
    _follow(study, answer=stragglers_answer, show=show, as_json=as_json)


def kinds_in(given: str) -> tuple[str, ...]:
    """Read kinds of parts, ``link,gpu``.

    Raises
    ------
    ProblemError
        If nothing is named.
    """
    kinds = tuple(each.strip() for each in given.split(",") if each.strip())
    if not kinds:
        raise ProblemError(f"{given!r} names nothing that fails; give kinds such as link,gpu")
    return kinds


def failures_answer(found: Failures) -> dict[str, Any]:
    """Return what ``topoloom failures --json`` prints."""
    rows = [
        _row_answer(row) | {"cut_off": list(row.cut_off), "survival": _survival(row.survival)}
        for row in found.rows
    ]
    return _head(found.problem, found) | {"rows": rows}


def stragglers_answer(found: Stragglers) -> dict[str, Any]:
    """Return what ``topoloom stragglers --json`` prints."""
    rows = [
        _row_answer(row) | {"replayed_us": row.replayed, "wins": row.wins} for row in found.rows
    ]
    factors = {"alpha": found.alpha, "beta": found.beta}
    return _head(found.problem, found) | factors | {"rows": rows}


def _head(problem: Problem, found: Failures | Stragglers) -> dict[str, Any]:
    return {
        **cli.problem_answer(problem),
        "algbw_GBps": found.today.algbw,
        "makespan_us": found.today.makespan,
        "reached": found.today.reached,
        "schedule_us": None if found.result is None else found.result.makespan,
        "words": found.words,
    }


def _row_answer(row: Failure | Straggler) -> dict[str, Any]:
    return {
        "kind": row.part.kind,
        "words": row.words,
        "names": list(row.names),
        "alike": row.alike,
        "algbw_GBps": row.algbw,
        "makespan_us": row.makespan,
        "reached": row.reached,
        "lost": row.lost,
        "cut": None if row.cut is None else cli.cut_answer(row.cut),
        "schedule_us": None if row.result is None else row.result.makespan,
        "why": row.why,
    }


def _survival(survival: Survival | None) -> dict[str, Any] | None:
    if survival is None:
        return None
    return {
        "runs": survival.runs,
        "makespan_us": survival.makespan,
        "share_gone": survival.share,
        "sends_gone": [str(each) for each in survival.gone],
        "sends": survival.sends,
    }


def _follow(
    study: Any,
    *,
    answer: Callable[[Any], dict[str, Any]],
    show: Callable[[Any], None],
    as_json: bool,
) -> None:
    """Print the rows of a study, those before Ctrl-C where it came before the last."""
    rows: list[Failure | Straggler] = []
    interrupted = False
    try:
        rows.extend(study.rows())
    except KeyboardInterrupt:
        interrupted = True
    found = study.so_far(rows)
    if as_json:
        cli.print_json(answer(found))
    else:
        show(found)
    if interrupted:
        cli.remark(f"interrupted; these are {len(rows)} of {len(study.parts)} rows")
        raise typer.Exit(cli.INTERRUPTED)


def _print_failures(found: Failures, *, schedule: bool) -> None:
    _print_head(found.problem, found, "losing one part")
    columns = ["loses", *COLUMNS, "bottleneck"]
    columns += ["today's plan", "new plan"] if schedule else []
    rows = []
    for row in found.rows:
        cells = [*_cells(row), _limit(row)]
        if schedule:
            cells += [_left(row.survival), text.duration(_makespan(row))]
        rows.append(cells)
    cli.print_table(columns, rows)


def _print_stragglers(found: Stragglers, *, schedule: bool) -> None:
    lag = f"one part with alpha × {found.alpha:g} and beta × {found.beta:g}"
    _print_head(found.problem, found, lag)
    columns = ["lags", *COLUMNS]
    columns += ["today's plan", "new plan", "wins"] if schedule else ["bottleneck"]
    rows = []
    for row in found.rows:
        cells = _cells(row)
        if schedule:
            cells += [text.duration(row.replayed), text.duration(_makespan(row))]
            cells.append(text.share(row.wins))
        else:
            cells.append("" if row.cut is None else cut_words(row.cut, row.topology))
        rows.append(cells)
    cli.print_table(columns, rows)


def _print_head(problem: Problem, found: Failures | Stragglers, what: str) -> None:
    most = "" if found.today.reached else "at most "
    cli.print_facts(
        f"{cli.title(problem)}, {what}",
        [
            ("today", f"{most}{text.bandwidth(found.today.algbw)} in the steady state"),
            ("plan", "" if found.result is None else text.duration(found.result.makespan)),
            ("worst", found.words),
        ],
    )


_NOTHING = 5e-6
"""A share below this is none."""


def _cells(row: Failure | Straggler) -> list[str]:
    """Return what stands under the first column and `COLUMNS`."""
    name = " – ".join(row.names)
    most, least = ("", "") if row.reached else ("≤ ", "≥ ")
    algbw = f"{most}{text.bandwidth(row.algbw)}"
    # One host less may leave a link behind that was the bottleneck.
    gains = f"gains {text.share(-row.lost)}"
    lost = gains if row.lost < -_NOTHING else f"{least}{text.share(row.lost)}"
    cells = [row.part.noun, name, f"{row.alike:,}", algbw, lost]
    return [each.replace(" ", "\N{NO-BREAK SPACE}") for each in cells]


def _limit(row: Failure) -> str:
    """Say what holds the rate down, or why there is none."""
    if row.cut_off:
        return f"cuts off {text.listing(row.cut_off, NAMED)}"
    if row.optimum is None:
        return row.why
    return "" if row.cut is None else cut_words(row.cut, row.topology)


def _left(survival: Survival | None) -> str:
    if survival is None:
        return text.NONE
    if survival.makespan is not None:
        return f"runs, {text.duration(survival.makespan)}"
    if survival.sends:
        return f"loses {len(survival.gone):,} of {text.count(survival.sends, 'send')}"
    return f"loses {text.share(survival.share)} of its bytes"


def _makespan(row: Failure | Straggler) -> float | None:
    return None if row.result is None else row.result.makespan
