"""Figures of a drawing while it is edited: its best rate, what proves it, what more would do.

Plain values for the page. Only the newest question of a page is worth an answer: `Newest` tells
the others that they were overtaken, between two steps of what takes long.
"""

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ccl import text
from ccl.bound import Cut
from ccl.errors import CclError, Unreachable
from ccl.problem import Problem
from ccl.symmetry import Group, automorphisms
from ccl.topology import Topology
from designer.shell.request import problem_of, read_request
from formulations import prices
from formulations.analyses.best_rate import optimum, priceable, programmable
from formulations.analyses.sensitivity.changes import each_change
from widgets.view_model import classes as marking
from widgets.view_model.classes import Alike, class_marks, gpu_classes, link_classes
from widgets.words import cut_words

MOST_PAIRS = 20_000
"""Pairs of GPUs above which a collective with a chunk for each is not made while drawing."""

SECONDS = 5.0
"""For prices of pairs on a large cluster without symmetry."""

MOST_CLASSES = 40
"""Kinds of links above which nobody reads what each is worth."""

MOST_PAGES = 500
"""Pages whose last question is known; one that is forgotten gets no answer until its next edit."""

STEP = 0.01
"""By how much the bandwidth of a kind of links is changed."""

Json = dict[str, Any]


class Newest:
    """The number of the last question of each page, the pages that asked longest ago forgotten."""

    def __init__(self) -> None:
        self._last: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._lock = threading.Lock()

    def ask(self, question: Mapping[str, Any], *, visitor: str = "") -> Callable[[], bool]:
        """Take a question; return what tells whether it is still the newest of its page.

        Parameters
        ----------
        question
            With its number and the page, as that names itself.
        visitor
            Session of the page; those of others may name themselves alike.
        """
        page, number = (visitor, str(question["page"])), int(question["n"])
        with self._lock:
            self._last[page] = max(number, self._last.pop(page, 0))
            while len(self._last) > MOST_PAGES:
                self._last.popitem(last=False)
        return lambda: self._last.get(page) == number


def problem_requested(question: Mapping[str, Any]) -> Problem | str:
    """Return the problem of a question, or why there is none to speak of.

    Parameters
    ----------
    question
        ``{topology, request}`` as the page keeps them.
    """
    topology = question["topology"]
    ranks = sum(each["kind"] == "gpu" for each in topology["devices"])
    if ranks < 2:
        return "Link at least two GPUs to see the best possible rate."
    if question["request"].get("collective") == "all-to-all" and ranks**2 > MOST_PAIRS:
        return f"With {ranks:,} GPUs the solve finds the best rate of an all-to-all."
    try:
        return problem_of(topology, read_request(question["request"]))
    except Unreachable:
        return "The best rate appears once all GPUs are linked."
    except CclError:  # what is wrong stands beside its field, and above the schedule
        return "The best rate appears once the error below is put right."


def optimum_summary(problem: Problem) -> Json:
    """Return the best rate and its cuts as plain values, or ``{"trouble": ...}``."""
    try:
        found = optimum(problem, seconds=SECONDS)
    except CclError as error:
        return {"trouble": text.sentence(str(error))}
    return {
        "makespan": found.makespan,
        "algbw": found.algbw,
        "size": problem.collective.size,
        "fraction": None if found.fraction is None else str(found.fraction),
        "reached": found.reached,
        "proved_by": found.proved_by,
        "cuts": [cut_summary(each, problem.topology, found.makespan) for each in found.cuts],
    }


def cut_summary(cut: Cut, topology: Topology, makespan: float) -> Json:
    """Return a cut as the canvas draws it, and in words."""
    return {
        "inside": list(cut.inside),
        "links": [list(ends) for ends in cut.links],
        "bandwidth": cut.bandwidth,
        "makespan": makespan,
        "where": cut_words(cut, topology),
        "label": f"Bottleneck cut · {text.bandwidth(cut.bandwidth)} · "
        f"bandwidth alone {text.duration(makespan)}",
    }


def symmetry_summary(topology: Topology) -> Json:
    """Return the classes of GPUs and of links in words, each with its marks."""
    group = automorphisms(topology)
    gpus, links = gpu_classes(topology, group), link_classes(topology, group)
    several = [each for each in gpus if len(each.devices) > 1]
    lone = len(gpus) - len(several)
    return {
        "gpus": {
            "rows": [[each.badge, each.words] for each in several],
            "lone": lone,
            "marks": class_marks(several, title="Symmetric GPUs"),
        },
        "links": {
            "rows": [[each.badge, each.words] for each in links],
            "marks": class_marks(links, title="Symmetric links"),
        },
    }


def prices_summary(problem: Problem, group: Group, newest: Callable[[], bool]) -> Json | None:
    """Return what 1 % more or less bandwidth of each kind of links does to the best rate.

    Each class is changed in both directions at once and solved again, since the optimum has
    kinks: what more gives and what less costs need not be alike.

    Parameters
    ----------
    problem
        The problem.
    group
        Automorphisms, whose kinds of links are priced.
    newest
        Whether the answer is still wanted; asked between two classes.

    Returns
    -------
    dict or None
        ``rows`` of {words, more, less, links}, the dearest first, and their ``marks``; None if it
        was overtaken.
    """
    classes = link_classes(problem.topology, group)
    if len(classes) > MOST_CLASSES:
        return {"hint": f"{len(classes)} kinds of links are too many to price one by one."}
    try:
        if not priceable(problem):
            return {"hint": "This is too large to be solved again for every kind of links."}
        rows = []
        for row in _rows(problem, classes):
            if not newest():
                return None
            rows.append(row)
    except CclError as error:
        return {"hint": text.sentence(str(error))}
    rows.sort(key=lambda row: (-(row["more"] - row["less"]), -row["more"]))
    return {"rows": rows, "marks": price_marks(rows)}


def duals_summary(problem: Problem) -> Json:
    """Return the marks of the prices of links, from the duals of the linear program, and words."""
    try:
        if not programmable(problem):
            return {"words": "This is too large for the prices of all links."}
        found = prices(problem)
    except CclError as error:
        return {"words": text.sentence(str(error))}
    return {"words": marking.price_words(found), "marks": marking.price_marks(found)}


def _rows(problem: Problem, classes: Sequence[Alike]) -> Iterator[Json]:
    place = problem.topology.link_index
    number = np.zeros(len(place), dtype=np.int64)
    for i, each in enumerate(classes):
        number[[place[ends] for ends in each.links]] = i
    # Shared limits come after the classes, in their own words.
    words = itertools.chain((each.words for each in classes), itertools.repeat(""))
    for told, found in zip(words, each_change(problem, classes=number, step=STEP), strict=False):
        yield {
            "words": told or found.words,
            "more": found.more,
            "less": found.less,
            "links": [list(ends) for ends in found.links],
        }


def price_marks(rows: Sequence[Mapping[str, Any]]) -> Json | None:
    """Return the heat map of the links: by what 1 % of a class moves the rate at most."""
    felt = [max(row["more"], -row["less"], 0.0) for row in rows]
    whole = max([*felt, STEP])
    groups = [
        {
            "tone": {"heat": value / whole},
            "links": row["links"],
            "label": f"{_effect(row)}: {row['words']}",
        }
        for row, value in zip(rows, felt, strict=True)
        if value > _NOTHING
    ]
    idle = [
        ends
        for row, value in zip(rows, felt, strict=True)
        if value <= _NOTHING
        for ends in row["links"]
    ]
    if idle:
        groups.append({"tone": {"heat": 0.0}, "links": idle, "label": "no effect"})
    return {"title": "Gain by 1 % more bandwidth", "groups": groups} if groups else None


def _effect(row: Mapping[str, Any]) -> str:
    """Write the two effects as short as can be: ``+1.00 / −1.00 %``."""
    return f"+{100 * max(row['more'], 0):.2f} / −{100 * max(-row['less'], 0):.2f} %"


def price_words(row: Mapping[str, Any]) -> str:
    """Say what a kind of links is worth: ``1 % more bandwidth raises the best rate by 1.00 %``."""
    raises, lowers = row["more"] > _NOTHING, -row["less"] > _NOTHING
    if not raises and not lowers:
        return f"{row['words']}: neither more nor less changes anything"
    more = f"raises the best rate by {_percent(row['more'])}" if raises else "changes nothing"
    it = "it" if raises else "the best rate"
    less = f"lowers {it} by {_percent(-row['less'])}" if lowers else "changes nothing"
    # No line ends between a number and its unit.
    said = f"{row['words']}: 1 % more bandwidth {more}, 1 % less {less}"
    return said.replace(" %", "\u00a0%")


_NOTHING = 5e-7
"""A change of the rate below this is none."""


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"
