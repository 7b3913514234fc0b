"""``topoloom failures`` and ``topoloom stragglers``: what one loss, or one that lags, costs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

import formulations
from ccl import text
from ccl.errors import ProblemError
from ccl.problem import Problem
from designer.cli import request as cli
from widgets.words import cut_words

if TYPE_CHECKING:
    from formulations.analyses.failures.nouns import (
        Failure,
        Failures,
        Straggler,
        Stragglers,
        Survival,
    )

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
