"""What limits the cluster as its sliders stand: what a little of each class does, and curves.

Of each class of links one-sided derivatives tell what 1 % more gives and what 1 % less costs
(`formulations.sensitivity`), and a curve the whole way from a quarter to four times of today
(`formulations.rate_curve`), all else as the sliders stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ccl import text
from ccl.errors import CclError
from ccl.problem import Problem
from designer.views.whatif.answering import Standing
from designer.views.whatif.knobs import Knob
from formulations import rate_curve, sensitivity
from formulations.analyses.sensitivity.curve import HIGH, LOW
from widgets.charts.rates import Line, line_of

MOST_LINES = 4
"""Curves at once."""

Json = dict[str, Any]


def limits_told(problem: Problem, knobs: Sequence[Knob]) -> Json:
    """Return what limits a cluster.

    Parameters
    ----------
    problem
        What is asked of the cluster as the sliders stand.
    knobs
        Its classes of links and limits.

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


def drawn_at_first(found: Json, stands: Standing) -> list[str]:
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
