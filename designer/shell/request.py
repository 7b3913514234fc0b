"""What the header asks for, and the problem that it makes of a drawing.

Commands to the canvas, numbered so that the same one can be given twice.
"""

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, cast

import numpy as np
from dash import Dash, Input, Output, State, no_update

from ccl import text
from ccl.collective import Collective, CollectiveKind, make_collective
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.serialization.quantity import COUNT, DURATION, PERCENT, parse_quantity, parse_size
from ccl.serialization.topoloom import problem_from_json, topology_to_json
from ccl.symmetry.group import components
from ccl.topology import Topology
from designer.session import topology_of
from designer.shell import ids, ui
from formulations import DEFAULT, available

Json = dict[str, Any]

DEFAULT_FORMULATION = DEFAULT
DEFAULT_TIME_LIMIT = 60.0

Change = Callable[..., Mapping[str, Any]]
"""What an event on the page changes there, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The settings of a solve as the user left them.

    Parameters
    ----------
    collective
        Its kind.
    size
        The whole buffer as typed, such as ``1GB`` or ``64 KiB``.
    chunks
        Chunks per shard that stay whole, or None where the plan cuts as it likes.
    root
        Rank of the root, where there is one.
    formulation
        Its name.
    options
        Values of its form by name.
    custom
        The collective as a file gave it, where `collective` is ``custom``.
    time_limit
        Seconds, or None.
    gap
        Gap to the bound that is good enough, as a share, or None.
    """

    collective: str = "all-gather"
    size: str = "1MB"
    chunks: int | None = None
    root: int = 0
    formulation: str = DEFAULT_FORMULATION
    options: Mapping[str, Any] = field(default_factory=dict)
    custom: Mapping[str, Any] | None = None
    time_limit: float | None = DEFAULT_TIME_LIMIT
    gap: float | None = None


def read_request(data: Mapping[str, Any] | None) -> Request:
    """Make a request of what the page keeps.

    Raises
    ------
    FormatError
        If a number is missing or out of range.
    """
    given = data or {}
    percent = given.get("gap")
    limit = given.get("time_limit")
    return Request(
        collective=str(given.get("collective") or "all-gather"),
        size=str(given.get("size") or ""),
        chunks=_chunks(given.get("chunks")),
        root=int(parse_quantity(given.get("root") or 0, COUNT, what="the root's rank", least=0)),
        formulation=str(given.get("formulation") or DEFAULT_FORMULATION),
        options=dict(given.get("options") or {}),
        custom=given.get("custom"),
        time_limit=None
        if limit in {None, ""}
        else parse_quantity(limit, DURATION, what="the time limit", above=0),
        gap=None if percent in {None, ""} else _share(percent),
    )


def collective_of(request: Request, ranks: int) -> Collective:
    """Make the collective for a number of ranks.

    Raises
    ------
    ProblemError
        If the kind is unknown or a number out of range.
    FormatError
        If the size cannot be read.
    """
    return make_collective(
        cast(CollectiveKind, request.collective),
        ranks,
        parse_size(request.size),
        chunks=request.chunks,
        root=request.root,
    )


def problem_of(topology: Topology | Mapping[str, Any], request: Request) -> Problem:
    """Make the problem of a topology, or of the JSON of one.

    Raises
    ------
    CclError
        If the topology, the collective or their combination is not one that can be solved.
    """
    if not isinstance(topology, Topology):
        topology = topology_of(topology)
    if not topology.devices:
        raise ProblemError("the drawing is empty; add GPUs and link them")
    if request.collective == "custom" and request.custom is not None:
        value = {"topology": topology_to_json(topology), "collective": dict(request.custom)}
        return problem_from_json(value)
    return Problem(topology, collective_of(request, len(topology.ranks)))


def unjoined(topology: Topology) -> str:
    """Say which GPUs no link joins to the first one yet, or nothing: a drawing that is begun."""
    place = topology.index
    src = np.array([place[each.src] for each in topology.links], dtype=np.int64)
    dst = np.array([place[each.dst] for each in topology.links], dtype=np.int64)
    part = components(len(topology.devices), src, dst)
    first, *others = topology.ranks
    apart = [each for each in others if part[place[each]] != part[place[first]]]
    if not apart:
        return ""
    are = "is" if len(apart) == 1 else "are"
    return f"Link the GPUs: {text.enumerate_words(apart, 3)} {are} not joined to {first} yet."


def _chunks(value: object) -> int | None:
    """Read how many chunks of a shard are kept whole; None where the plan cuts as it likes."""
    if value in {None, ""}:
        return None
    return int(parse_quantity(value, COUNT, what="chunks per shard", least=1))


def _share(percent: object) -> float | None:
    """Return a gap in per cent as a share; none is as good as one of zero."""
    return parse_quantity(percent, PERCENT, what="the gap", least=0) / 100 or None


def method_title(name: str, found_by: str | None = None) -> str:
    """Return what a method is called on the page, or the phrase itself.

    Parameters
    ----------
    name
        Of a formulation, perhaps with options: ``ring`` or ``ring:channels=2``.
    found_by
        Which one within it found the plan.
    """
    titles = {each.name: each.title for each in available()}
    known, _, options = name.partition(":")
    title = titles.get(name, name)
    if options and known in titles:
        title = f"{titles[known]}, {options.replace(',', ', ')}"
    return f"{title}, by {method_title(found_by)}" if found_by and found_by != name else title


QUESTION = ("collective", "size", "chunks", "root")


def same_question(summary: Mapping[str, Any] | None, request: Mapping[str, Any] | None) -> bool:
    """Whether a schedule answers the request of now, whatever it was found with."""
    if summary is None or request is None:
        return True
    asked = summary.get("asked") or {}
    rooted = request.get("collective") in ui.ROOTED
    keys = QUESTION if rooted else QUESTION[:-1]
    return all(asked.get(key) == request.get(key) for key in keys)


def now() -> int:
    """Return a number that is another one each time."""
    return time.time_ns() // 1000


def numbered(command: Json) -> Json:
    """Give a command the number by which the canvas tells it from the one before."""
    return {**command, "n": now()}


def fit() -> Json:
    """Return the command that shows the whole drawing, for one that was just opened."""
    return numbered({"name": "fit", "args": {}})


def as_document(drawing: Json) -> Json:
    """Return a drawing that opens as a document of its own.

    The browser keeps documents (assets/documents.js). Undo goes across them, so each step of the
    history says whose it is; a drawing that comes without such a name is a step of the document
    that is open.
    """
    return {**drawing, "document": secrets.token_urlsafe(9)}


PARTS: dict[str, tuple[str, str]] = {
    "drawing": (ids.CANVAS, "drawing"),
    "scene": (ids.CANVAS, "scene"),
    "cuts": (ids.CANVAS, "cuts"),
    "stale": (ids.CANVAS, "stale"),
    "selection": (ids.CANVAS, "selection"),
    "picked": (ids.CANVAS, "picked"),
    "request": (ids.REQUEST, "data"),
    "result": (ids.RESULT, "data"),
    "summary": (ids.SUMMARY, "data"),
    "load": (ids.LOAD_DATA, "data"),
    "front": (ids.FRONT, "data"),
    "course": (ids.GAP_PLOT, "course"),
    "job": (ids.JOB, "data"),
    "options": (ids.OPTIONS, "data"),
    "sketches": (ids.SKETCH, "data"),
    "layer": (ids.LAYER, "data"),
    "cut": (ids.CUT, "data"),
    "fault": (ids.FAULT, "children"),
    "view": (ids.VIEW, "value"),
    "size": (ids.SIZE, "value"),
    "chunks": (ids.CHUNKS, "value"),
    "formulation": (ids.FORMULATION, "value"),
    "scheme": (ids.SCHEME_NOW, "data"),
    "download": (ids.DOWNLOAD, "data"),
    "problem": (ids.PROBLEM, "data"),
    "known": (ids.ASSESSMENT, "data"),
    "command": (ids.CANVAS, "command"),
    "notes": (ids.NOTES, "sendNotifications"),
    "other": (ids.OTHER, "data"),
}
"""What many callbacks look at or change: component and property by a short name."""


def inputs(*names: str) -> dict[str, Input]:
    """Return what a callback waits for, by its names in `PARTS`."""
    return {name: Input(*PARTS[name]) for name in names}


def states(*names: str) -> dict[str, State]:
    """Return what a callback looks at, by its names in `PARTS`."""
    return {name: State(*PARTS[name]) for name in names}


def changes(*names: str) -> dict[str, Output]:
    """Return what a callback changes besides others, by its names in `PARTS`."""
    return {name: Output(*PARTS[name], allow_duplicate=True) for name in names}


def output() -> Output:
    """Return the canvas' command as an output that many callbacks share."""
    return changes("command")["command"]


def other() -> Output:
    """Return where to say, by `now`, that another cluster is opened, whose plan is not there."""
    return changes("other")["other"]


def notes() -> Output:
    """Return the notifications as an output that many callbacks share."""
    return changes("notes")["notes"]


def plan() -> dict[str, Output]:
    """Return what shows a plan on the page, as outputs that many callbacks share."""
    return changes("scene", "summary", "load", "result", "course")


def beats(app: Dash, tick: str, *, busy: str, beat: str) -> None:
    """Pass on the ticks of a timer while no answer to the one before is under way.

    Dash does not answer a question that the next one overtakes, so they wait for one another.
    """
    app.clientside_callback(
        "(n, busy) => busy ? window.dash_clientside.no_update : n",
        Output(beat, "data"),
        Input(tick, "n_intervals"),
        State(busy, "data"),
        prevent_initial_call=False,
    )


def stops(app: Dash, cancel: Callable[[Any], None], job: str, *buttons: str) -> None:
    """Let buttons end the job that a store holds."""

    @app.callback(
        Output(buttons[0], "n_clicks"),
        [Input(each, "n_clicks") for each in buttons],
        State(job, "data"),
    )
    def on_stop(*given: Any) -> Any:
        *clicks, running = given
        if any(clicks) and running:
            cancel(running)
        return no_update


def callback(app: Dash, *, output: Mapping[str, Output], **wiring: Any) -> Callable[[Change], None]:
    """Wire a function that returns what changes, by the names of `output`; all else stays.

    Parameters
    ----------
    app
        The application.
    output
        What it can change.
    wiring
        As for `Dash.callback`: ``inputs`` and ``state`` by the names of the function's arguments.
    """

    def wire(change: Change) -> None:
        @wraps(change)
        def call(**given: Any) -> Json:
            made = change(**given)
            if unknown := made.keys() - output.keys():
                raise KeyError(
                    f"{change.__name__} changes {', '.join(sorted(unknown))}, which is no output"
                )
            return {name: made.get(name, no_update) for name in output}

        # Dash writes into the dictionaries that it is given, and some are shared.
        own = {
            name: dict(each) if isinstance(each, dict) else each for name, each in wiring.items()
        }
        app.callback(output=dict(output), **own)(call)

    return wire
