"""What the page asks of the What-if view and what it is answered, without a page.

What becomes of a cluster when its knobs are moved comes as plain values. The best rate and its
bottleneck cuts are those of `formulations.analyses.best_rate`, exact where a cut decides. What one
collective takes at least, its latencies counted, is the largest of the bounds that need no solver
and of the time that it takes when repeated.

What limits the cluster as its sliders stand: of each kind of links one-sided derivatives tell what
1 % more gives and what 1 % less costs (`formulations.analyses.sensitivity`), and a curve the whole
way from a quarter to four times of today, all else as the sliders stand.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ccl import text
from ccl.errors import CclError
from ccl.problem import Problem
from ccl.topology import Topology
from designer.session import topology_of
from designer.shell.request import problem_of, read_request
from designer.views.draw.files import drawing_of
from designer.views.solve.live import MOST_PAIRS, cut_summary
from designer.views.whatif.knobs import Change, Knob, changed, moved_knobs, origin_of, read_origin
from formulations import quick_bounds, rate_curve, sensitivity
from formulations.analyses.best_rate import Optimum, optimum
from formulations.analyses.sensitivity.changes import HIGH, LOW
from widgets.charts.rates import Line, line_of
from widgets.view_model.scene import drawing as picture_of
from widgets.words import BOUND_LABELS

LATENCY_GPUS = 96
"""GPUs above which no bound with latencies is proved while a slider moves: one max-flow each."""

SECONDS = 5.0
"""For prices of pairs on a large cluster without symmetry."""

NAMED_CUTS = 24
"""Tied cuts that are named; more are counted."""


def answered(problem: Problem | str) -> Json:
    """Return the best rate, the bounds and the cuts, or ``{"trouble": ...}``.

    Parameters
    ----------
    problem
        The problem, or why there is none.

    Returns
    -------
    dict
        ``algbw`` in GB/s and ``fraction``, ``each`` µs when repeated, ``once`` µs at least with
        latencies and ``once_by`` what proves that, or None; ``cuts`` and how many ``ties``.
    """
    if isinstance(problem, str):
        return {"trouble": problem}
    try:
        best = optimum(problem, seconds=SECONDS)
        once, once_by = _once(problem, best)
    except CclError as error:
        return {"trouble": text.sentence(str(error))}
    cuts = best.cuts[:NAMED_CUTS]
    return {
        "algbw": best.algbw,
        "fraction": None if best.fraction is None else str(best.fraction),
        "each": best.makespan,
        "once": once,
        "once_by": once_by,
        "reached": best.reached,
        "proved_by": best.proved_by,
        "size": problem.collective.size,
        "ranks": len(problem.topology.ranks),
        "cuts": [cut_summary(each, problem.topology, best.makespan) for each in cuts],
        "ties": len(best.cuts),
        "held": [list(ends) for ends in best.prices],
    }


def requested(topology: Topology, request: Mapping[str, Any] | None) -> Problem | str:
    """Return the problem of a cluster and of the header's settings, or why there is none."""
    ranks = len(topology.ranks)
    if ranks < 2:
        return "Link at least two GPUs to see the best possible rate."
    if (request or {}).get("collective") == "all-to-all" and ranks**2 > MOST_PAIRS:
        return f"With {ranks:,} GPUs the solve finds the best rate of an all-to-all."
    try:
        return problem_of(topology, read_request(request))
    except CclError as error:
        return text.sentence(str(error))


def _once(problem: Problem, best: Optimum) -> tuple[float | None, str]:
    """Return µs that one collective takes at least, latencies counted, and what proves it."""
    if len(problem.topology.ranks) > LATENCY_GPUS:
        return None, f"left out above {LATENCY_GPUS} GPUs"
    bound = quick_bounds(problem)[0]
    if best.every and best.makespan > bound.makespan:
        return best.makespan, "the rate: no latency adds to it"
    return bound.makespan, BOUND_LABELS[bound.kind]


MOST_REDRAWN = 2_000
"""Links above which the picture beside the sliders keeps its bandwidths while they move."""

Json = dict[str, Any]
Given = Mapping[str, Any]

_MOVED = ("bandwidth", "alpha", "count")


def signature(drawing: Given, request: Given | None) -> str:
    """Return what differs when the cluster or the request differs."""
    topology = {**drawing["topology"], "name": ""}
    keys = ("collective", "size", "chunks", "root", "custom")
    question = {key: (request or {}).get(key) for key in keys}
    return hashlib.sha256(json.dumps([topology, question], sort_keys=True).encode()).hexdigest()


def today(drawing: Given, request: Given | None) -> Json:
    """Return what is known of the drawing as it stands.

    Returns
    -------
    dict
        ``signature``; ``origin``, its name in the gallery, or None, and ``counts``; ``size`` as it
        is typed; ``answer`` as `answered` returns it.

    Raises
    ------
    CclError
        If the drawing is no topology.
    """
    topology = topology_of(drawing["topology"])
    origin = origin_of(topology)
    return {
        "signature": signature(drawing, request),
        "origin": None if origin is None else origin.name,
        "counts": {} if origin is None else origin.counts,
        "size": (request or {}).get("size"),
        "answer": answered(requested(topology, request)),
    }


def change_of(values: Given) -> Change:
    """Read where the knobs stand; what is empty stands where it does today."""
    bandwidth, alpha, count = (_numbers(values.get(what)) for what in _MOVED)
    return Change(bandwidth, alpha, {key: int(value) for key, value in count.items()})


@dataclass(frozen=True)
class Standing:
    """The cluster as the sliders stand.

    Parameters
    ----------
    today, topology
        As it is drawn, and with its knobs moved.
    change
        Where they stand.
    knobs
        Its kinds of links and limits, with the figures of today.
    problem
        The problem on it, or why there is none.
    """

    today: Topology
    topology: Topology
    change: Change
    knobs: tuple[Knob, ...]
    problem: Problem | str


def standing(drawing: Given, request: Given | None, before: Given, values: Given) -> Standing:
    """Return the cluster as the sliders stand.

    Parameters
    ----------
    drawing, request, before, values
        As for `answer`.

    Raises
    ------
    CclError
        If there is no such cluster.
    """
    topology = topology_of(drawing["topology"])
    origin = read_origin(before["origin"]) if before.get("origin") else None
    change = change_of(values)
    made = changed(topology, change, origin)
    wanted = {**(request or {}), "size": values.get("size") or before["size"]}
    return Standing(
        topology, made, change, moved_knobs(topology, change, origin), requested(made, wanted)
    )


def redrawn(drawing: Given, topology: Topology) -> Json:
    """Return the drawing of a changed cluster: places stay where the devices do."""
    names = [each["name"] for each in drawing["topology"]["devices"]]
    if names == [each.name for each in topology.devices]:
        return picture_of(topology, drawing["positions"])
    return drawing_of(topology)


def answer(
    drawing: Given,
    request: Given | None,
    before: Given,
    values: Given,
    *,
    chosen: int | None = None,
) -> Json:
    """Return the figures of the cluster with its knobs moved.

    Parameters
    ----------
    drawing, request, before
        The drawing, the header's settings, and what `today` says of both.
    values
        Numbers by what they are of (``bandwidth``, ``alpha``, ``count``) and by key, and the
        ``size`` of the collective as it is typed.
    chosen
        Devices in the picture beside the sliders, or None.

    Returns
    -------
    dict
        ``answer`` as `answered` returns it, ``moved``: whether anything differs from today, and
        ``drawing``, None where the picture stays.
    """
    size = values.get("size") or before["size"]
    try:
        stands = standing(drawing, request, before, values)
    except CclError as error:
        return {"answer": {"trouble": text.sentence(str(error))}, "moved": False, "drawing": None}
    moved = stands.topology != stands.today or size != before["size"]
    large = len(stands.topology.links) > MOST_REDRAWN
    stays = large and moved and chosen == len(stands.topology.devices)
    return {
        "answer": answered(stands.problem) if moved else before["answer"],
        "moved": moved,
        "drawing": None if stays else redrawn(drawing, stands.topology),
    }


def _numbers(values: Given | None) -> dict[str, float]:
    return {
        key: float(value)
        for key, value in (values or {}).items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


MOST_LINES = 4
"""Curves at once."""


def limits_answered(problem: Problem, knobs: Sequence[Knob]) -> Json:
    """Return what limits a cluster.

    Parameters
    ----------
    problem
        The problem on the cluster as the sliders stand.
    knobs
        Its kinds of links and limits.

    Returns
    -------
    dict
        ``words``, in sentences, and ``rows`` of {key, words, more, less}: shares of the rate for
        a share of bandwidth; or ``{"trouble": ...}``.
    """
    number = np.zeros(len(problem.topology.links), dtype=np.int64)
    place = problem.topology.link_index
    classes = [each for each in knobs if not each.limits]
    for i, knob in enumerate(classes):
        number[[place[ends] for ends in knob.links]] = i
    try:
        found = sensitivity(problem, classes=number)
    except CclError as error:
        return {"trouble": text.sentence(str(error))}
    by_link = {knob.links[0]: knob.key for knob in classes}
    by_limit = {knob.limits[0]: knob.key for knob in knobs if knob.limits}
    rows = [
        {
            "key": by_limit.get(each.limits[0], "") if each.limits else by_link[each.links[0]],
            "words": each.words,
            "more": float(each.more),
            "less": float(each.less),
        }
        for each in found.effects
    ]
    return {"words": [text.sentence(each) for each in found.words], "rows": rows}


def first_curves(found: Json, stands: Standing) -> list[str]:
    """Return the classes whose curves are drawn at first: those that moved, else the best one."""
    moved = [
        knob.key
        for knob in stands.knobs
        if stands.change.bandwidth.get(knob.key, knob.bandwidth) != knob.bandwidth
    ]
    return moved[:MOST_LINES] or [each["key"] for each in found.get("rows", ())[:1]]


def curves(stands: Standing, chosen: Sequence[str]) -> tuple[list[Line], str]:
    """Return the curves of some classes, and why there are no more, or nothing.

    Parameters
    ----------
    stands
        The cluster as the sliders stand.
    chosen
        Keys of the classes.
    """
    if isinstance(stands.problem, str):
        return [], stands.problem
    found: list[Line] = []
    for mark, knob in enumerate(stands.knobs):
        if knob.key not in chosen or len(found) >= MOST_LINES:
            continue
        factor = stands.change.bandwidth.get(knob.key, knob.bandwidth) / knob.bandwidth
        try:
            curve = rate_curve(
                stands.problem,
                () if knob.limits else knob.links,
                limits=knob.limits,
                low=min(LOW, factor) / factor,
                high=max(HIGH, factor) / factor,
            )
        except CclError as error:
            return found, text.sentence(str(error))
        found.append(line_of(curve, knob.title, mark=mark, factor=factor))
    return found, ""
