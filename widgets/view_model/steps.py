"""Steps and phases of a plan, as marks on the time line and a caption for each step.

A send is in the step after the last of the sends that brought what it carries; it goes from one
device that stores to the next, over all links between them. A ring of p GPUs has p - 1 steps, and
2 (p - 1) for an all-reduce. Where such steps run into one another or there is only one, it depends
on who sends. Where the same devices send in most steps, these are the algorithm's, whose data is
cut in pieces: halving and doubling of 8 GPUs has 6, whatever the pieces. In a pipeline, in which
each device has a step of its own, a send is also in a step after the sends before it on its links.

An all-reduce has two phases, reduce-scatter and all-gather, where there is a moment before which no
whole sum is sent and from which on nothing is added any more.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Any

from ccl.explain.narration import round_digits
from ccl.problem import Problem
from ccl.timeline import Timeline
from ccl.timeline.transfers import Ends

MOST_STEPS = 500
"""Steps above which none are marked: no eye sees so many."""

MOST_QUEUED = 64
"""The same where links make more steps than data do: these are the pieces of a pipeline."""

OWN, PART, FINISHED, PASSED = "own", "part", "finished", "passed"
"""What a send carries: data of its sender, part of a sum to which the sender added, a sum that the
sender has completed, and what the sender received and left as it was."""

WORDS = {
    OWN: ("sends data of its own", "send data of their own"),
    PART: (
        "adds to what it{just} received and sends the sum on",
        "add to what they{just} received and send the sums on",
    ),
    FINISHED: (
        "completes the sum that it{just} received and sends it on",
        "complete the sums that they{just} received and send them on",
    ),
    PASSED: ("passes on what it{just} received", "pass on what they{just} received"),
}
"""What one sender does, and what several do; it was just received if it came in the step before."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What a transfer carries.

    Parameters
    ----------
    what
        One of the keys of `WORDS`.
    ranks
        Whose contributions, a bit for each rank; nothing for chunks that are not added up.
    whole
        Whether these are all contributions to a sum.
    """

    what: str
    ranks: int = 0
    whole: bool = False


@dataclass
class Doing:
    """Who does the same in a step.

    Parameters
    ----------
    names
        Devices that send.
    just
        Whether all that they pass on came in the step before.
    """

    names: set[str] = field(default_factory=set)
    just: bool = True


def marks(problem: Problem, timeline: Timeline) -> dict[str, Any]:
    """Return ``steps``, the start (µs) and caption of each, and ``phases``, start and label.

    Nothing of a replay that does not say what waits for what. There are no steps where there is
    only one or too many (`MOST_STEPS`, `MOST_QUEUED`), and no phases where a whole sum is sent
    before the last part of one is.
    """
    if timeline.images > 1 or not timeline.transfers or not timeline.after:
        return {}
    # Lists that are slices of arrays are made anew by everyone who reads them.
    timeline = replace(timeline, transfers=tuple(timeline.transfers), after=tuple(timeline.after))
    carried = _carried(problem, timeline)
    found = {
        "steps": _steps(problem, timeline, carried),
        "phases": _phases(problem, timeline, carried),
    }
    return {name: rows for name, rows in found.items() if rows}


# ---- steps ----


def _steps(problem: Problem, timeline: Timeline, carried: list[Carried]) -> list[dict[str, Any]]:
    sends = _sends(problem, timeline)
    step = _rounds(timeline, sends)
    if step is None:
        return []
    starts = [math.inf] * max(step)
    doing: list[dict[str, Doing]] = [defaultdict(Doing) for _ in starts]
    for i, (each, after) in enumerate(zip(timeline.transfers, timeline.after, strict=True)):
        if sends[i] != i:
            continue
        at = step[i] - 1
        starts[at] = min(starts[at], each.start)
        group = doing[at][carried[i].what]
        group.names.add(each.src)
        group.just &= max((step[j] for j in after), default=at) == at
    return [
        {"start": round_digits(start), "caption": _caption(problem, groups)}
        for start, groups in zip(starts, doing, strict=True)
    ]


def _rounds(timeline: Timeline, sends: list[int]) -> list[int] | None:
    """Return the step of each transfer, counted from 1, None where there are none to be marked."""
    by_data = _numbers(timeline, sends, links=False)
    rounds = _apart(timeline, by_data, whole=True) or (
        _apart(timeline, by_data, whole=False) and _take_turns(timeline, by_data)
    )
    if max(by_data) > 1 and rounds:
        return by_data if max(by_data) <= MOST_STEPS else None
    step = _numbers(timeline, sends, links=True)
    count = max(step)
    most = MOST_STEPS if count == max(by_data) else MOST_QUEUED
    return step if 1 < count <= most and _apart(timeline, step, whole=False) else None


def _apart(timeline: Timeline, step: list[int], *, whole: bool) -> bool:
    """Return whether each step begins after the one before it, or `whole`: after all its sends."""
    starts: list[list[float]] = [[] for _ in range(max(step))]
    for each, number in zip(timeline.transfers, step, strict=True):
        starts[number - 1].append(each.start)
    last = max if whole else min
    return all(last(earlier) < min(later) for earlier, later in pairwise(starts))


def _take_turns(timeline: Timeline, step: list[int]) -> bool:
    """Return whether a device that sends does so in more than half of the steps, in the mean."""
    steps_of: dict[str, set[int]] = defaultdict(set)
    for each, number in zip(timeline.transfers, step, strict=True):
        steps_of[each.src].add(number)
    return 2 * sum(map(len, steps_of.values())) > max(step) * len(steps_of)


def _sends(problem: Problem, timeline: Timeline) -> list[int]:
    """Return for each transfer the first crossing of the send that it is part of."""
    stores = {each.name for each in problem.topology.devices if each.stores}
    first = list(range(len(timeline.transfers)))
    for i, (each, after) in enumerate(zip(timeline.transfers, timeline.after, strict=True)):
        if after and each.src not in stores:
            first[i] = min(first[j] for j in after)
    return first


def _numbers(timeline: Timeline, sends: list[int], *, links: bool) -> list[int]:
    """Return for each transfer how many sends, its own included, wait for one another up to it.

    They wait for what brings their data, and if `links` also for what is before them on a link.
    """
    waits: list[list[int]] = [[] for _ in sends]
    last: dict[Ends, int] = {}
    for i, (each, after) in enumerate(zip(timeline.transfers, timeline.after, strict=True)):
        waits[sends[i]].extend(after)
        if links:
            place = timeline.place(each.src, each.dst)
            if place in last:
                waits[sends[i]].append(last[place])
            last[place] = i
    step = [0] * len(sends)
    for send, others in enumerate(waits):
        if sends[send] == send:
            before = [step[sends[j]] for j in others if sends[j] != send]
            step[send] = 1 + max(before, default=0)
    return [step[send] for send in sends]


def _caption(problem: Problem, doing: Mapping[str, Doing]) -> str:
    """Say who does what in a step, those first that are most."""
    order = sorted(doing, key=lambda what: -len(doing[what].names))
    parts = []
    for what in order:
        who, several = _who(problem, doing[what].names)
        just = " just" if doing[what].just else ""
        parts.append(f"{who} {WORDS[what][several].format(just=just)}")
    return "; ".join(parts)


def _who(problem: Problem, names: Collection[str]) -> tuple[str, bool]:
    """Name some devices, and say whether they are spoken of as several."""
    gpus = problem.topology.ranks
    if len(names) == 1:
        return next(iter(names)), False
    if len(names) == len(gpus) and set(gpus) == set(names):
        return "each GPU", False
    if set(names) <= set(gpus):
        return f"{len(names)} of {len(gpus)} GPUs", True
    return f"{len(names)} devices", True


# ---- what is carried, and phases ----


def _carried(problem: Problem, timeline: Timeline) -> list[Carried]:
    """Say what each transfer carries."""
    rank = {name: 1 << number for number, name in enumerate(problem.topology.ranks)}
    every = [sum(1 << each for each in chunk.holders) for chunk in problem.collective.chunks]
    stores = {each.name for each in problem.topology.devices if each.stores}
    terms = timeline.terms or (None,) * len(timeline.transfers)
    found: list[Carried] = []
    rows = zip(timeline.transfers, timeline.after, terms, strict=True)
    for each, after, named in rows:
        if not problem.collective.chunks[each.chunk].reduced:
            found.append(Carried(PASSED if after else OWN))
            continue
        own = rank.get(each.src, 0) & every[each.chunk] if each.src in stores else 0
        come = [found[j].ranks for j in after]
        ranks = reduce(or_, come, own) if named is None else sum(1 << term for term in named)
        whole = ranks == every[each.chunk]
        what = OWN if not after else PASSED if ranks in come else FINISHED if whole else PART
        found.append(Carried(what, ranks, whole))
    return found


def _phases(problem: Problem, timeline: Timeline, carried: list[Carried]) -> list[dict[str, Any]]:
    """Return the two phases of an all-reduce whose sums are all whole before one is sent on."""
    if problem.collective.kind != "all-reduce":
        return []
    starts: dict[bool, list[float]] = {True: [], False: []}
    for each, what in zip(timeline.transfers, carried, strict=True):
        starts[what.whole].append(each.start)
    if not all(starts.values()) or max(starts[False]) >= min(starts[True]):
        return []
    return [
        {"start": 0.0, "label": "reduce-scatter"},
        {"start": round_digits(min(starts[True])), "label": "all-gather"},
    ]
