"""What a replay breaks, looked at without the code that verifies: bytes counted link by link.

Nothing is taken from a replay but when each transfer begins, when its last byte has entered the
link, its bytes, and which transfers are copies of the same bytes. Where one takes longer than its
bytes at the bandwidth of the link it may have sent them at any time in between, so only what cannot
be otherwise is told.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from ccl.problem import Problem
from ccl.timeline import Timeline, Transfer
from ccl.topology import Device

TOLERANCE = 1e-6
"""Shares of the makespan and of a chunk that may be rounding."""

WINDOWS = 200
"""Most beginnings of windows that a shared limit is looked at from."""

BYTES = 1e3
"""Bytes in a microsecond at 1 GB/s."""

_Leaving = tuple[Transfer, int]
"""A transfer, and how often its bytes have crossed its link before."""


def faults(problem: Problem, timeline: Timeline) -> Iterator[str]:
    """Yield in words what cannot be so: bandwidths, limits, switches, and what never arrives."""
    slack = TOLERANCE * max((each.end for each in timeline.transfers), default=0.0)
    by_link = timeline.by_link()
    for ends, transfers in by_link.items():
        yield from _on_link(problem, ends, transfers, slack=slack)
    for limit in problem.topology.limits:
        rows = [
            (each, problem.topology.link(*ends).bandwidth * BYTES)
            for ends in limit.links
            for each in by_link.get(timeline.place(*ends), [])
        ]
        if _over(rows, limit.bandwidth * BYTES, slack=slack):
            yield f"limit {limit.name} is exceeded"
    if timeline.images == 1:
        yield from _at_switches(problem, timeline, slack=slack)
        yield from _missing(problem, timeline, slack=slack)


def _on_link(
    problem: Problem, ends: tuple[str, str], transfers: Sequence[Transfer], *, slack: float
) -> Iterator[str]:
    """Look at every window from the beginning of one transfer to the end of another."""
    link = problem.topology.link(*ends)
    rate = link.bandwidth * BYTES
    rows = np.array(sorted((each.start, each.sent, each.nbytes) for each in transfers))
    starts, sents, nbytes = rows.T
    if (np.diff(sents) < -slack).any() or (starts[1:] < sents[:-1] - slack).any():
        yield f"link {link} sends two things at once"
    carried = np.cumsum(nbytes)
    most = np.maximum.accumulate(rate * starts - (carried - nbytes))
    if (carried - rate * sents + most > rate * slack).any():
        yield f"link {link} carries more than {link.bandwidth:g} GB/s"
    if any(each.end < each.sent + link.alpha - slack for each in transfers):
        yield f"link {link} brings bytes in less than its {link.alpha:g} µs"


def _over(rows: Sequence[tuple[Transfer, float]], room: float, *, slack: float) -> bool:
    """Whether in some window more must have been carried than `room` bytes/µs let through."""
    if not rows:
        return False
    rows = sorted(rows, key=lambda row: row[0].sent)
    starts = np.array([each.start for each, _ in rows])
    sents = np.array([each.sent for each, _ in rows])
    nbytes = np.array([each.nbytes for each, _ in rows])
    rates = np.array([rate for _, rate in rows])
    moments = np.unique(starts)
    picked = moments[np.linspace(0, len(moments) - 1, min(len(moments), WINDOWS)).astype(int)]
    for begin in picked:
        inside = np.clip(nbytes - rates * np.clip(begin - starts, 0, None), 0, None)
        inside[sents <= begin] = 0
        if (np.cumsum(inside) > room * (np.clip(sents - begin, 0, None) + slack)).any():
            return True
    return False


def _at_switches(problem: Problem, timeline: Timeline, *, slack: float) -> Iterator[str]:
    """Compare what has left a device that stores nothing with what has come, chunk by chunk."""
    topology = problem.topology
    holds = {each.name for each in topology.devices if each.stores}
    came: defaultdict[tuple[str, int], list[Transfer]] = defaultdict(list)
    left: defaultdict[tuple[str, int], list[_Leaving]] = defaultdict(list)
    copies = Counter[tuple[str, str, tuple[int, ...]]]()
    for number, each in enumerate(timeline.transfers):
        if each.dst not in holds:
            came[each.dst, each.chunk].append(each)
        if each.src not in holds:
            again = 0
            if timeline.after:
                key = each.src, each.dst, timeline.after[number]
                again, copies[key] = copies[key], copies[key] + 1
            left[each.src, each.chunk].append((each, again))
    early: dict[str, int] = {}
    for place, out in left.items():
        device = topology.device(place[0])
        if _too_early(problem, device, came=came[place], left=out, slack=slack):
            early.setdefault(*place)
    for name, chunk in early.items():
        yield f"{name} sends on bytes of chunk {chunk} that have not come"


def _too_early(
    problem: Problem,
    device: Device,
    *,
    came: Sequence[Transfer],
    left: Sequence[_Leaving],
    slack: float,
) -> bool:
    leaving = [each for each, _ in left]
    links = {each: problem.topology.link(each.src, each.dst) for each in (*came, *leaving)}
    # Both amounts are straight between these moments.
    moments = np.unique(
        [
            *(each.start + links[each].alpha for each in came),
            *(_full(each, links[each].bandwidth) + links[each].alpha for each in came),
            *(each.sent - each.nbytes / (links[each].bandwidth * BYTES) for each in leaving),
            *(each.sent for each in leaving),
        ]
    )
    there = np.full(len(moments), TOLERANCE * sum(each.nbytes for each in came))
    for each in came:
        rate = links[each].bandwidth * BYTES
        passed = moments + slack - each.start - links[each].alpha
        there += np.clip(rate * passed, 0, each.nbytes)
    gone: defaultdict[object, np.ndarray] = defaultdict(lambda: np.zeros(len(moments)))
    for each, again in left:
        rate = links[each].bandwidth * BYTES
        amount = np.clip(each.nbytes - rate * (each.sent - moments), 0, None)
        gone[(each.dst, again) if device.copies else ""] += np.minimum(amount, each.nbytes)
    return any(bool((amount > there).any()) for amount in gone.values())


def _full(each: Transfer, bandwidth: float) -> float:
    """Return the first moment at which all of a transfer may have entered its link."""
    return each.start + each.nbytes / (bandwidth * BYTES)


def _missing(problem: Problem, timeline: Timeline, *, slack: float) -> Iterator[str]:
    """Name what has not come, as many bytes as it has, by the end."""
    arrived: defaultdict[tuple[int, str], float] = defaultdict(float)
    for each in timeline.transfers:
        if each.end <= timeline.makespan + slack:
            arrived[each.chunk, each.dst] += each.nbytes
    ranks = problem.topology.ranks
    for number, chunk in enumerate(problem.collective.chunks):
        for rank in chunk.destinations:
            others = set(chunk.holders) - {rank}
            needs = bool(others) if chunk.reduced else rank not in chunk.holders
            if needs and arrived[number, ranks[rank]] < chunk.size * (1 - TOLERANCE):
                yield f"chunk {number} has not come to {ranks[rank]} by {timeline.makespan:g} µs"
