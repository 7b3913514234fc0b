"""Commands to the canvas, numbered so that the same one can be given twice."""

from __future__ import annotations

import time
from typing import Any

from dash import Output

from designer.shell import ids


def now() -> int:
    """Return a number that is another one each time."""
    return time.time_ns() // 1000


def numbered(command: dict[str, Any]) -> dict[str, Any]:
    """Give a command the number by which the canvas tells it from the one before."""
    return {**command, "n": now()}


def fit() -> dict[str, Any]:
    """Return the command that shows the whole drawing, for one that was just opened."""
    return numbered({"name": "fit", "args": {}})


def output() -> Output:
    """Return the canvas' command as an output that many callbacks share."""
    return Output(ids.CANVAS, "command", allow_duplicate=True)


def other() -> Output:
    """Return where to say, by `now`, that another cluster is opened, whose plan is not there."""
    return Output(ids.OTHER, "data", allow_duplicate=True)


def notes() -> Output:
    """Return the notifications as an output that many callbacks share."""
    return Output(ids.NOTES, "sendNotifications", allow_duplicate=True)
