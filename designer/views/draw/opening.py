"""A plan that was found elsewhere, a row of a table say, put on the canvas."""

from __future__ import annotations

from typing import Any

from dash import Output, no_update

from ccl.result import Result
from ccl.serialization.topoloom import result_to_json
from designer.shell import commands, ids
from designer.shell.markup import note
from designer.views.draw import import_card as importing
from designer.views.draw.files import Opened, drawing_of, settings_of
from widgets.shown.course import course

OPENED = (
    "drawing", "command", "scene", "summary", "load", "result", "custom", "collectives",
    "collective", "size", "chunks", "root", "formulation",
)  # fmt: skip
"""What it changes, by the names of `importing.OUTPUTS`."""

BUSY = "a solve is running and shows its own plans; stop it first"


def outputs() -> dict[str, Output]:
    """Return what a plan that is opened changes, for a callback that others share."""
    shared = {
        key: Output(each.component_id, each.component_property, allow_duplicate=True)
        for key, each in importing.OUTPUTS.items()
        if key in OPENED
    }
    return {
        **shared,
        "course": Output(ids.GAP_PLOT, "course", allow_duplicate=True),
        "view": Output(ids.VIEW, "value", allow_duplicate=True),
        "notes": commands.notes(),
    }


def filled(changes: dict[str, Any]) -> dict[str, Any]:
    """Return a value for each of `outputs`, no update for those that `changes` leaves out."""
    keys = (*OPENED, "course", "view", "notes")
    return {key: changes.get(key, no_update) for key in keys}


def refused(sentence: str) -> dict[str, Any]:
    """Return the changes where there is nothing to open, and why."""
    return {"notes": note(sentence, title="Cannot open")}


def opened(result: Result, *, redrawn: bool = True) -> dict[str, Any]:
    """Return what changes on the page when a result is opened on the canvas.

    Parameters
    ----------
    result
        The plan and what it answers.
    redrawn
        Whether the canvas draws its cluster anew; otherwise it is the one that is drawn.
    """
    problem = result.problem
    found = Opened(
        drawing_of(problem.topology) if redrawn else None,
        settings_of(problem),
        result,
        result_to_json(result),
    )
    point = (result.solve_time, result.makespan, result.bound.makespan)
    return {
        **importing.shown(found),
        "formulation": result.formulation,
        "course": course((point,), seconds=result.solve_time, running=False),
        "view": "canvas",
    }
