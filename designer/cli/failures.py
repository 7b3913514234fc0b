"""``topoloom failures`` and ``topoloom stragglers``: what one loss, or one that lags, costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

import formulations
from ccl import text
from ccl.bound import Cut
from ccl.errors import ProblemError
from designer.cli.asked import (
    Cluster,
    CollectiveOption,
    JsonOption,
    RootOption,
    SizeOption,
    ask,
    open_document,
    positive,
    print_facts,
    print_json,
    print_table,
    remark,
)
from widgets.words.comparison import cut_words

if TYPE_CHECKING:
    from ccl.problem import Problem
    from formulations.analyses.failures.nouns import Failures, Loss, Straggler, Stragglers, Survival
    from formulations.analyses.failures.study import LagStudy, Study

INTERRUPTED = 130
NAMED = 3
"""Most ranks that are named in a cell."""

COLUMNS = ("such as", "alike", "algbw", "lost")
"""What is told of every row after what it is."""

Row = TypeVar("Row")

TimeLimitOption = Annotated[
    float | None,
    typer.Option("--time-limit", metavar="S", help="Seconds for all schedules together."),
]
FormulationOption = Annotated[
    str, typer.Option("--formulation", metavar="NAME", help="How schedules are found.")
]
ScheduleOption = Annotated[
    bool, typer.Option("--schedule", help="Also solve each, and say what is left of today's plan.")
]
ReplayOption = Annotated[
    bool, typer.Option("--schedule", help="Also replay today's plan, and say what a new one wins.")
]
_KINDS = "Of link, gpu, nic, memory, switch and host, by commas; by default all there are."
LosingOption = Annotated[
    str | None, typer.Option("--losing", metavar="KINDS", help=_KINDS, show_default=False)
]
LaggingOption = Annotated[
    str | None, typer.Option("--lagging", metavar="KINDS", help=_KINDS, show_default=False)
]


def failures(  # noqa: PLR0913  one for each flag
    cluster: Cluster,
    *,
    collective: CollectiveOption = None,
    size: SizeOption = None,
    root: RootOption = None,
    losing: LosingOption = None,
    one_way: Annotated[
        bool, typer.Option("--one-way", help="Lose one direction of a link, not both.")
    ] = False,
    schedule: ScheduleOption = False,
    time_limit: TimeLimitOption = None,
    formulation: FormulationOption = formulations.DEFAULT,
    as_json: JsonOption = False,
) -> None:
    """Say what every single loss costs: of a link, a GPU, a switch, a host."""
    positive("--time-limit", time_limit, unit="s")
    from formulations.analyses.failures.nouns import PARTS  # noqa: PLC0415  it loads scipy and igraph
    from formulations.analyses.failures.study import Study  # noqa: PLC0415

    study = Study(
        ask(open_document(cluster), collective=collective, size=size, chunks=None, root=root),
        losing=PARTS if losing is None else kinds_in(losing),
        schedule=schedule,
        time_limit=time_limit,
        formulation=formulation,
        both=not one_way,
    )
    rows, interrupted = _followed(study.rows())
    found = study.so_far(rows)
    if as_json:
        print_json(failures_answer(found))
    else:
        _print_failures(found, schedule=schedule)
    _end(study, len(rows), interrupted=interrupted)


def stragglers(  # noqa: PLR0913  one for each flag
    cluster: Cluster,
    *,
    collective: CollectiveOption = None,
    size: SizeOption = None,
    root: RootOption = None,
    lagging: LaggingOption = None,
    alpha: Annotated[
        float, typer.Option("--alpha", metavar="FACTOR", help="Latency of what lags, by factor.")
    ] = 1.0,
    beta: Annotated[
        float, typer.Option("--beta", metavar="FACTOR", help="Its time per byte, by factor.")
    ] = 2.0,
    schedule: ReplayOption = False,
    time_limit: TimeLimitOption = None,
    formulation: FormulationOption = formulations.DEFAULT,
    as_json: JsonOption = False,
) -> None:
    """Say what every single straggler costs, and what re-planning wins."""
    positive("--time-limit", time_limit, unit="s")
    from formulations.analyses.failures.nouns import PARTS  # noqa: PLC0415
    from formulations.analyses.failures.study import LagStudy  # noqa: PLC0415  it loads scipy and igraph

    study = LagStudy(
        ask(open_document(cluster), collective=collective, size=size, chunks=None, root=root),
        alpha=alpha,
        beta=beta,
        lagging=PARTS if lagging is None else kinds_in(lagging),
        schedule=schedule,
        time_limit=time_limit,
        formulation=formulation,
    )
    rows, interrupted = _followed(study.rows())
    found = study.so_far(rows)
    if as_json:
        print_json(stragglers_answer(found))
    else:
        _print_stragglers(found, schedule=schedule)
    _end(study, len(rows), interrupted=interrupted)


def kinds_in(given: str) -> tuple[str, ...]:
    """Read kinds of parts, ``link,gpu``.

    Raises
    ------
    ProblemError
        If nothing is named.
    """
    kinds = tuple(each.strip() for each in given.split(",") if each.strip())
    if not kinds:
        msg = f"{given!r} names nothing that fails; give kinds such as link,gpu"
        raise ProblemError(msg)
    return kinds


def failures_answer(found: Failures) -> dict[str, Any]:
    """Return what ``topoloom failures --json`` prints."""
    return _head(found.problem, found) | {
        "rows": [
            _part(row)
            | {
                "algbw_GBps": row.algbw,
                "makespan_us": row.makespan,
                "reached": row.reached,
                "lost": row.lost,
                "cut": _cut(row.cut),
                "cut_off": list(row.cut_off),
                "why": row.why,
                "schedule_us": None if row.result is None else row.result.makespan,
                "survival": _survival(row.survival),
            }
            for row in found.rows
        ]
    }


def stragglers_answer(found: Stragglers) -> dict[str, Any]:
    """Return what ``topoloom stragglers --json`` prints."""
    return _head(found.problem, found) | {
        "alpha": found.alpha,
        "beta": found.beta,
        "rows": [
            _part(row)
            | {
                "algbw_GBps": row.algbw,
                "makespan_us": row.makespan,
                "reached": row.reached,
                "lost": row.lost,
                "cut": _cut(row.cut),
                "replayed_us": row.replayed,
                "schedule_us": None if row.result is None else row.result.makespan,
                "wins": row.wins,
                "why": row.why,
            }
            for row in found.rows
        ],
    }


def _head(problem: Problem, found: Failures | Stragglers) -> dict[str, Any]:
    return {
        "topology": problem.topology.name,
        "collective": problem.collective.kind,
        "size": problem.collective.size,
        "algbw_GBps": found.today.algbw,
        "makespan_us": found.today.makespan,
        "reached": found.today.reached,
        "schedule_us": None if found.result is None else found.result.makespan,
        "words": found.words,
    }


def _part(row: Loss | Straggler) -> dict[str, Any]:
    return {
        "kind": row.part.kind,
        "words": row.words,
        "names": list(row.names),
        "alike": row.alike,
    }


def _cut(cut: Cut | None) -> dict[str, Any] | None:
    if cut is None:
        return None
    return {
        "inside": list(cut.inside),
        "links": [list(ends) for ends in cut.links],
        "bandwidth_GBps": cut.bandwidth,
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


def _followed(rows: Iterator[Row]) -> tuple[list[Row], bool]:
    """Return the rows, and whether Ctrl-C came before the last."""
    found: list[Row] = []
    try:
        found.extend(rows)
    except KeyboardInterrupt:
        return found, True
    return found, False


def _end(study: Study | LagStudy, many: int, *, interrupted: bool) -> None:
    if interrupted:
        remark(f"interrupted; these are {many} of {len(study.parts)} rows")
        raise typer.Exit(INTERRUPTED)


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
    print_table(columns, rows)


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
    print_table(columns, rows)


def _print_head(problem: Problem, found: Failures | Stragglers, what: str) -> None:
    most = "" if found.today.reached else "at most "
    print_facts(
        f"{problem.collective.kind} of {text.size(problem.collective.size)} on "
        f"{problem.topology}, {what}",
        [
            ("today", f"{most}{text.bandwidth(found.today.algbw)} in the steady state"),
            ("plan", "" if found.result is None else text.duration(found.result.makespan)),
            ("worst", found.words),
        ],
    )


_NOTHING = 5e-6
"""A share below this is none."""


def _cells(row: Loss | Straggler) -> list[str]:
    """Return what stands under the first column and `COLUMNS`."""
    name = " – ".join(row.names)
    most, least = ("", "") if row.reached else ("≤ ", "≥ ")
    algbw = f"{most}{text.bandwidth(row.algbw)}"
    # One host less may leave a link behind that was the bottleneck.
    gains = f"gains {text.share(-row.lost)}"
    lost = gains if row.lost < -_NOTHING else f"{least}{text.share(row.lost)}"
    cells = [row.part.noun, name, f"{row.alike:,}", algbw, lost]
    return [each.replace(" ", "\N{NO-BREAK SPACE}") for each in cells]


def _limit(row: Loss) -> str:
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


def _makespan(row: Loss | Straggler) -> float | None:
    return None if row.result is None else row.result.makespan
