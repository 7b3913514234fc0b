"""What the page is told of a solve: nothing new, a better plan, or the end.

Why a solve ended without a schedule, told in its place, with what would put it right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import dash_mantine_components as dmc
from dash import html

from ccl import text
from ccl.errors import CclError, Infeasible
from ccl.result import Result
from ccl.serialization.topoloom import result_to_json
from designer.jobs.solving import State
from designer.shell.markup import icon
from designer.views.solve.results import summary_of
from formulations import formulation, option_fields
from widgets.charts.load import link_load
from widgets.shown.scene import STEPS, moves, scene, still, take

MOST_MOVES = 200_000
"""Transfers above which nothing is played: a page cannot hold so many."""

UNPLAYED = "it has too many transfers to be played here; its trees can be looked at one by one"


@dataclass(frozen=True, slots=True)
class Answer:
    """What changes on the page; None where nothing does.

    Parameters
    ----------
    news
        Whether there is a plan that the page has not seen.
    running
        Whether the solve goes on.
    found
        How many plans have been found.
    scene, summary, load
        Of the best plan: for the canvas, the panel and the heat map.
    document
        The result as it is saved, at the end only.
    remark
        A sentence for the user, or None.
    """

    news: bool
    running: bool
    found: int
    scene: dict[str, Any] | None = None
    summary: dict[str, Any] | None = None
    load: dict[str, Any] | None = None
    document: dict[str, Any] | None = None
    remark: str | None = None

    def job(self, key: str) -> dict[str, Any] | None:
        """Return what the page keeps of the solve; None when it is over."""
        return {"key": key, "found": self.found} if self.running else None


def answer(state: State, question: Any, *, seen: int, series: str = "") -> Answer:
    """Say what the page has to change.

    Parameters
    ----------
    state
        Where the solve stands.
    question
        What was asked, kept beside the schedule so that a changed question shows.
    seen
        How many plans the page has seen already.
    series
        Of the solve, so that the player knows a better schedule from one of another solve.
    """
    best, over = state.best, not state.running
    if best is None:
        remark = "it was stopped before the first schedule was found" if over else None
        return Answer(news=False, running=state.running, found=state.found, remark=remark)
    if state.running and state.found <= seen:
        return Answer(news=False, running=True, found=state.found)
    return Answer(
        news=state.found > seen,
        running=state.running,
        found=state.found,
        document=result_to_json(best) if over else None,
        **shown(
            best,
            question,
            running=state.running,
            again=state.found <= seen,
            take=take(series, state.found),
        ),
    )


def shown(
    best: Result,
    question: Any,
    *,
    running: bool = False,
    again: bool = False,
    take: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return scene, summary and load of a result.

    Parameters
    ----------
    best, question
        The result and what was asked.
    running
        Whether a better one may follow.
    again
        Whether the page plays this plan already, so that only the words change.
    take
        Which schedule of which solve it is, as `widgets.shown.scene.take` says it.
    """
    few = moves(best.timeline) <= MOST_MOVES
    played = (
        scene(best.problem, best.plan, best.timeline, take=take) if few else still(best.problem)
    )
    epochs = None if best.epochs is None else played.get("epochs")
    summary = {**summary_of(best), "epochs": epochs, "asked": question, "running": running}
    if not few:
        summary["log"] = [*summary["log"], UNPLAYED]
    if running:
        summary["stop"] = "the best so far, the solve goes on"
    if again:
        return {"summary": summary}
    return {
        "scene": played,
        "summary": summary,
        "load": link_load(
            best.timeline, best.makespan / STEPS if not few else played["epoch_duration"]
        ),
    }


ENOUGH = re.compile(r"\ballow ([\d,]+) (epoch|step|hop|round)s? (?:and [\d,]+ rounds )?or more")
"""How an error names the smallest horizon that could work."""

OPTIONS = {"epoch": "horizon", "step": "steps", "hop": "hops", "round": "rounds"}
"""The option that an error is about, by what it counts."""


def enough(error: CclError, name: str) -> tuple[str, int, str] | None:
    """Return the option that an error asks for, its value, and what it counts.

    None where it asks for none that the formulation called `name` takes.
    """
    found = ENOUGH.search(str(error)) if isinstance(error, Infeasible) else None
    fields = {each.name for each in option_fields(formulation(name).options)}
    if found is None or OPTIONS[found[2]] not in fields:
        return None
    return OPTIONS[found[2]], int(found[1].replace(",", "")), found[2]


def fault(error: CclError, name: str) -> html.Div:
    """Show why there is no schedule.

    Parameters
    ----------
    error
        What the solve raised.
    name
        The formulation that was asked.
    """
    asked = enough(error, name)
    content: list[Any] = [html.Span(text.sentence(str(error)))]
    if asked is not None:
        option, value, unit = asked
        button = dmc.Button(
            f"Use {text.count(value, unit)}",
            id={"remedy": f"{name}.{option}", "value": value},
            size="compact-sm",
            variant="light",
            color="orange",
            mt=8,
        )
        content.append(html.Div(button))
    return html.Div([icon("warning"), html.Div(content)], className="ds-banner ds-bad")
