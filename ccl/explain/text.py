"""A plan in words: what its makespan is made of, and each send with what it waited for."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import groupby

from ccl.causes import Reason
from ccl.errors import ProblemError
from ccl.explain.breakdown import breakdown
from ccl.explain.phrases import number
from ccl.explain.rows import devices_of, host_of, rank_of, row_of
from ccl.explain.told import Plan, Told, rank_name, tell
from ccl.explain.ways import sends, shares, way_of
from ccl.explain.writing import bounded, bytes_text, count, listing
from ccl.problem import Problem
from ccl.timeline import Timeline

MOST_CRITICAL = 20
"""Transfers of the critical path that are told."""


def explain(
    problem: Problem,
    plan: Plan,
    *,
    timeline: Timeline | None = None,
    chunk: int | None = None,
    link: tuple[str, str] | None = None,
    rank: int | None = None,
    host: str | None = None,
) -> str:
    """Tell a plan in words, or what of it concerns a chunk, a link, a rank or a host.

    Parameters
    ----------
    problem, plan
        What was asked, and the answer.
    timeline
        The replay of the plan, where it is there already.
    chunk
        Its number: its whole way, with its waits and why.
    link
        Its ends: what it carries, and where it is idle.
    rank
        What it has, gets and sends, and when.
    host
        Its name: what enters and leaves it.

    Returns
    -------
    Lines; of more than one of these, the sends that concern all of them, a sentence each. It ends
    after `writing.MOST_LINES` of a kind and says how many there are more.

    Raises
    ------
    ScheduleError
        If no replay is given and the plan breaks a rule.
    ProblemError
        If there is no such chunk, link, rank or host.
    """
    told = tell(problem, plan, timeline)
    those = _chosen(told, chunk=chunk, link=link, rank=rank, host=host)
    given = [each is not None for each in (chunk, link, rank, host)]
    if not any(given):
        lines = _whole(told)
    elif sum(given) > 1:
        lines = [f"{count(len(those), 'send')}:"]
        lines += bounded(sends(told, those), "send")
    elif chunk is not None:
        lines = way_of(told, chunk, those)
    elif link is not None:
        lines = row_of(told, link, those)
    elif rank is not None:
        lines = rank_of(told, rank)
    else:
        assert host is not None
        lines = host_of(told, host)
    return "\n".join(lines)


def _chosen(
    told: Told,
    *,
    chunk: int | None,
    link: tuple[str, str] | None,
    rank: int | None,
    host: str | None,
) -> list[int]:
    """Return the places of the transfers that concern all that is given."""
    name = None if rank is None else rank_name(told.problem, rank)
    inside = None if host is None else devices_of(told, host)
    if link is not None:
        told.problem.topology.link(*link)
    if chunk is not None and not 0 <= chunk < len(told.sizes):
        msg = f"there is no chunk {chunk}; chunks go from 0 to {len(told.sizes) - 1}"
        raise ProblemError(msg)
    return [
        i
        for i, each in enumerate(told.transfers)
        if (chunk is None or each.chunk == chunk)
        and (link is None or (each.src, each.dst) == link)
        and (name is None or name in (each.src, each.dst))
        and (inside is None or each.src in inside or each.dst in inside)
    ]


def _whole(told: Told) -> list[str]:
    collective, timeline = told.problem.collective, told.timeline
    head = (
        f"{collective.kind} of {bytes_text(collective.size)} on {told.problem.topology}: "
        f"{count(len(told.transfers), 'transfer')} in {number(timeline.makespan)} µs."
    )
    lines = [
        head,
        *shares(told),
        f"Along the critical path: {breakdown(told).text()}.",
    ]
    lines += bounded(_path(told), "step", MOST_CRITICAL)
    lines += _waits(told)
    lines += _busiest(told)
    lines.append("All of them:")
    return lines + bounded(sends(told, range(len(told.transfers))), "transfer")


def _path(told: Told) -> list[str]:
    """Tell the critical path; parts of a chunk that follow one another on a link together."""
    lines: list[str] = []
    for _, run in groupby(told.critical, key=partial(_crossing, told)):
        lines += sends(told, list(run))
    return lines


def _crossing(told: Told, i: int) -> tuple[int, str, str]:
    own = told.transfers[i]
    return own.chunk, own.src, own.dst


def _waits(told: Told) -> list[str]:
    """Say how many transfers waited for what, and how long in all."""
    counts = Counter(cause.reason for cause in told.causes)
    lines = ["Why they start when they do:"]
    for reason in Reason:
        if counts[reason]:
            waited = sum(
                told.waited(i) for i, each in enumerate(told.causes) if each.reason is reason
            )
            lines.append(f"  {reason}: {counts[reason]:,}{_in_all(waited, told)}")
    return lines


def _in_all(waited: float, told: Told) -> str:
    """Write how long transfers waited in all; nothing where that is a rounding error."""
    if waited <= 1e-9 * told.timeline.makespan * len(told.transfers):
        return ""
    return f", {number(waited)} µs of waiting in all"


def _busiest(told: Told) -> list[str]:
    busy, makespan = told.timeline.link_busy, told.timeline.makespan
    if not busy or not makespan:
        return []
    most = max(busy.values())
    held = [f"{src} → {dst}" for (src, dst), time in busy.items() if time >= most * (1 - 1e-9)]
    share = number(100 * most / makespan, 3)
    return [f"Busiest, {share} % of the time: {listing(held)}."]
