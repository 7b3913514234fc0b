"""Results between processes of ours, with their plans and replays, neither of them made again.

A child verifies and replays every plan that it finds. Its parent reads what it writes into a pipe
that nobody else has, so it does neither a second time; what comes from a disk, a network or a
catalog is read by `ccl.serialization.topoloom`, which does both. What the other side has already is
left out: the problem that was asked, cut further or not, and the plan and the replay of the result
before, where only what is said of them has changed.
"""

from __future__ import annotations

import base64
import pickle
from dataclasses import fields, replace
from itertools import chain, pairwise, starmap
from operator import attrgetter
from typing import Any

import numpy as np

from ccl.problem import Problem
from ccl.result import Result
from ccl.timeline import Timeline, Transfer
from ccl.topology import no_collection

_NAMES = tuple(each.name for each in fields(Result))
_LARGE = ("plan", "timeline")
_TRANSFER = tuple(each.name for each in fields(Transfer))


class Sender:
    """Makes text of results.

    Parameters
    ----------
    asked
        The problem that the other side has.
    """

    def __init__(self, asked: Problem) -> None:
        self._asked = asked
        self._last: Result | None = None

    def text(self, result: Result) -> str:
        """Return a result as text, for a `Receiver` that had all before it."""
        values: dict[str, Any] = {name: getattr(result, name) for name in _NAMES}
        values["problem"] = self._problem(result.problem)
        for name in _LARGE:
            if self._last is not None and getattr(self._last, name) is values[name]:
                del values[name]
        self._last = result
        with no_collection():
            if "timeline" in values:
                values["timeline"] = _columns(result.timeline)
            return base64.b64encode(pickle.dumps(values, pickle.HIGHEST_PROTOCOL)).decode("ascii")

    def _problem(self, problem: Problem) -> int | Problem:
        """Return into how many chunks the problem is cut, or a problem that is another."""
        chunks = len(problem.collective.chunks)
        return chunks if problem == self._asked.cut_into(chunks) else problem


class Receiver:
    """Makes results of text that a process of ours has written; never to be used of other text.

    Parameters
    ----------
    asked
        The problem that was asked.
    """

    def __init__(self, asked: Problem) -> None:
        self._asked = asked
        self._last: Result | None = None

    def result(self, text: str) -> Result:
        """Return the result that a `Sender` has written."""
        with no_collection():
            values = pickle.loads(base64.b64decode(text))
            if "timeline" in values:
                values["timeline"] = _timeline(values["timeline"])
        if isinstance(values["problem"], int):
            values["problem"] = self._asked.cut_into(values["problem"])
        if self._last is None:
            self._last = Result(**values)
        else:
            self._last = replace(self._last, **values)
        return self._last


def _columns(timeline: Timeline) -> dict[str, Any]:
    """Return a replay whose transfers are columns: a hundred thousand of them in little time."""
    values = {each.name: getattr(timeline, each.name) for each in fields(Timeline)}
    rows = list(map(attrgetter(*_TRANSFER), timeline.transfers))
    values["transfers"] = [_column(each) for each in zip(*rows, strict=True)]
    begins = np.cumsum([0, *map(len, timeline.after)])
    values["after"] = begins, np.fromiter(chain.from_iterable(timeline.after), np.int64)
    return values


def _column(values: tuple[Any, ...]) -> Any:
    """Return numbers as an array, names as they are."""
    return values if isinstance(values[0], str) else np.array(values)


def _timeline(values: dict[str, Any]) -> Timeline:
    """Return the replay of `_columns`."""
    columns = [
        each.tolist() if isinstance(each, np.ndarray) else each for each in values["transfers"]
    ]
    begins, flat = (each.tolist() for each in values["after"])
    return Timeline(
        **{
            **values,
            "transfers": tuple(starmap(Transfer, zip(*columns, strict=True))),
            "after": tuple(tuple(flat[low:high]) for low, high in pairwise(begins)),
        }
    )
