"""Whether a device that cannot store sends out no byte before it has come.

A transfer says when its first and its last byte enter a link. However it is sent in between, at any
moment it has sent no less than what its link can no longer make up for until then, and no more than
what its link could have sent so far. So at no moment may what must have left a device be more than
what can have come to it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from ccl.errors import ScheduleError
from ccl.problem import Problem
from ccl.timeline import Timeline, Transfer
from ccl.verify.order import TOLERANCE


def check_passing(problem: Problem, timeline: Timeline, slack: float) -> None:
    """Check what crosses devices that cannot store; times differ by `slack` µs at most.

    Raises
    ------
    ScheduleError
        At a transfer that is ahead of what it takes on.
    """
    passing = {each.name for each in problem.topology.devices if not each.stores}
    if not passing:
        return
    _check_sources(problem, timeline, passing, slack)
    if not timeline.orbits:  # else a transfer has the bytes of several trees
        _check_amounts(problem, timeline, passing, slack)


def _check_sources(problem: Problem, timeline: Timeline, passing: set[str], slack: float) -> None:
    """Refuse a transfer that begins or ends before one of those that it takes bytes from."""
    for each, before in zip(timeline.transfers, timeline.after, strict=False):
        if each.src not in passing:
            continue
        for source in (timeline.transfers[place] for place in before):
            alpha = problem.topology.link(source.src, source.dst).alpha
            if each.start < source.start + alpha - slack or each.sent < source.end - slack:
                raise _ahead(each, each.start)


def _check_amounts(problem: Problem, timeline: Timeline, passing: set[str], slack: float) -> None:
    """Refuse more bytes of a chunk out of a device than into it.

    Of what it copies that holds for each link, where the same bytes may cross it again for each of
    these times, and of a whole chunk for each transfer.
    """
    copies = {each.name for each in problem.topology.devices if each.copies}
    sizes = [chunk.size * (1 - TOLERANCE) for chunk in problem.collective.chunks]
    came: defaultdict[tuple[int, str], list[Transfer]] = defaultdict(list)
    left: defaultdict[tuple[int, str, object], list[Transfer]] = defaultdict(list)
    times = Counter[tuple[str, str, tuple[int, ...]]]()
    for place, each in enumerate(timeline.transfers):
        if each.dst in passing:
            came[each.chunk, each.dst].append(each)
        if each.src in passing:
            whole = each.nbytes >= sizes[each.chunk]
            again = 0
            if timeline.after:
                key = each.src, each.dst, timeline.after[place]
                again, times[key] = times[key], times[key] + 1
            onward = (place if whole else (each.dst, again)) if each.src in copies else ""
            left[each.chunk, each.src, onward].append(each)
    for (chunk, device, _), leaving in left.items():
        moment = _excess(problem, came[chunk, device], leaving, slack)
        if moment is not None:
            raise _ahead(leaving[0], moment)


def _excess(
    problem: Problem, came: Sequence[Transfer], left: Sequence[Transfer], slack: float
) -> float | None:
    """Return a moment at which more must have left than can have come, or None."""
    topology = problem.topology
    into = [topology.link(each.src, each.dst) for each in came]
    out = [topology.link(each.src, each.dst) for each in left]
    # As early as can be, and as late: from when until when.
    begin = np.array([each.start + link.alpha for each, link in zip(came, into, strict=True)])
    until = begin + [each.nbytes * link.beta for each, link in zip(came, into, strict=True)]
    end = np.array([each.sent for each in left])
    since = end - [each.nbytes * link.beta for each, link in zip(left, out, strict=True)]
    nbytes = np.array([each.nbytes for each in came]), np.array([each.nbytes for each in left])
    # Both grow in straight lines between these moments.
    moments = np.concatenate([begin, until, since, end])
    most = _grown(moments + slack, begin, until) @ nbytes[0]
    least = _grown(moments - slack, since, end) @ nbytes[1]
    wrong = moments[least > most + TOLERANCE * nbytes[1].sum()]
    return float(wrong.min()) if wrong.size else None


def _grown(moments: np.ndarray, begin: np.ndarray, until: np.ndarray) -> np.ndarray:
    """Return which share of each transfer is there at each moment, shape (moments, transfers)."""
    took = np.maximum(until - begin, np.finfo(float).tiny)
    share: np.ndarray = np.clip((moments[:, None] - begin) / took, 0.0, 1.0)
    return share


def _ahead(each: Transfer, moment: float) -> ScheduleError:
    msg = (
        f"{each.src} stores nothing and sends bytes of chunk {each.chunk} to {each.dst} by "
        f"{moment:g} µs that have not come yet"
    )
    return ScheduleError(msg, where=each.src, time=moment)
