"""What one link, one rank or one host does: rows of times in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ccl.causes import Reason
from ccl.errors import ProblemError
from ccl.explain.phrases import number
from ccl.explain.told import Told, rank_name
from ccl.explain.ways import sends, share_of
from ccl.explain.writing import bounded, bytes_text, count, listing

_IDLE = {
    Reason.NOT_THERE: "nothing was there to send",
    Reason.PASSED_ON: "nothing came to be passed on",
    Reason.FURTHER_ON: "a link further on was busy",
    Reason.MEETS: "what it meets in a switch came late",
    Reason.LIMIT: "a shared limit was used up",
    Reason.CLOSED: "it let nothing through",
    Reason.PLANNED: "the plan starts it only then",
}
"""Why a link was idle before a transfer."""


def row_of(told: Told, link: tuple[str, str], those: Sequence[int]) -> list[str]:
    """Tell what a link carries, from whom and when, and where it is idle in between.

    Parameters
    ----------
    told
        The plan.
    link
        Its ends.
    those
        Places of its transfers that are told, in order.

    Raises
    ------
    ProblemError
        If there is no such link.
    """
    own = told.problem.topology.link(*link)
    makespan = told.timeline.makespan
    every = [told.transfers[i] for i in those]
    busy = sum(each.sent - each.start for each in every)
    share = f" ({number(100 * busy / makespan, 3)} %)" if makespan else ""
    head = (
        f"{own.src} → {own.dst}, {number(own.bandwidth, 4)} GB/s, alpha {number(own.alpha, 4)} µs: "
        f"{count(len(those), 'transfer')}, {bytes_text(sum(each.nbytes for each in every))}, "
        f"busy {number(busy)} of {number(makespan)} µs{share}."
    )
    rows = [_run(told, run, free) for run, free in _runs(told, those)]
    return [head, *bounded(rows, "row")]


def _runs(told: Told, those: Sequence[int]) -> Iterator[tuple[list[int], float]]:
    """Yield transfers of a link, parts of a chunk that follow at once together.

    With each the µs from which on the link was free.
    """
    slack = 1e-9 * told.timeline.makespan
    run: list[int] = []
    free = before = 0.0
    for i in those:
        own = told.transfers[i]
        if run and (own.start > free + slack or own.chunk != told.transfers[run[0]].chunk):
            yield run, before
            run, before = [], free
        run.append(i)
        free = own.sent
    if run:
        yield run, before


def _run(told: Told, run: Sequence[int], free: float) -> str:
    """Tell one transfer of a link, or several of a chunk without a gap."""
    first, last = told.transfers[run[0]], told.transfers[run[-1]]
    what = told.what(run[0])
    if len(run) > 1:
        share = sum(told.transfers[i].nbytes for i in run) / told.sizes[first.chunk]
        what = f"{share_of(share)}{told.labels[first.chunk]} in {count(len(run), 'part')}"
    line = f"  {number(first.start)} – {number(last.sent)} µs {what}, there at {number(last.end)}"
    idle = first.start - free
    if idle <= 1e-9 * told.timeline.makespan:
        return line
    why = _IDLE.get(told.causes[run[0]].reason)
    return f"{line}, idle {number(idle)} µs before" + ("" if why is None else f": {why}")


def rank_of(told: Told, rank: int) -> list[str]:
    """Tell which chunks a rank has at first, gets and sends, and when.

    Raises
    ------
    ProblemError
        If there is no such rank.
    """
    name = rank_name(told.problem, rank)
    chunks = told.problem.collective.chunks
    has = [told.labels[i] for i, chunk in enumerate(chunks) if rank in chunk.holders]
    needs = {i for i, chunk in enumerate(chunks) if rank in chunk.destinations}
    into = sorted(
        (i for i, each in enumerate(told.transfers) if each.dst == name),
        key=lambda i: told.transfers[i].end,
    )
    out = [i for i, each in enumerate(told.transfers) if each.src == name]
    last = max(
        (told.transfers[i].end for i in into if told.transfers[i].chunk in needs), default=0.0
    )
    begins = f"has {listing(has)} from the start" if has else "has nothing at the start"
    lines = [f"Rank {rank} ({name}) {begins} and all that it needs at {number(last)} µs."]
    lines.append(_many(told, "gets", into))
    lines += bounded(
        [
            f"  {number(told.transfers[those[-1]].end)} µs {_gets(told, those)}"
            for those in _gathered(told, into)
        ],
        "transfer",
    )
    lines.append(_many(told, "sends", out))
    lines += bounded(sends(told, out), "transfer")
    return lines


def _many(told: Told, does: str, those: Sequence[int]) -> str:
    if not those:
        return f"It {does} nothing."
    return f"It {does} {count(len(those), 'transfer')}, {_bytes(told, those)}:"


def _gathered(told: Told, into: Sequence[int]) -> list[list[int]]:
    """Put together the parts of a chunk that come over one link; by their last arrival."""
    parts: dict[tuple[int, str], list[int]] = {}
    for i in into:
        parts.setdefault((told.transfers[i].chunk, told.transfers[i].src), []).append(i)
    return sorted(parts.values(), key=lambda those: told.transfers[those[-1]].end)


def _gets(told: Told, those: Sequence[int]) -> str:
    own = told.transfers[those[0]]
    if len(those) == 1:
        return f"{told.what(those[0])} from {own.src}"
    share = sum(told.transfers[i].nbytes for i in those) / told.sizes[own.chunk]
    return (
        f"{share_of(share)}{told.labels[own.chunk]} from {own.src} in {count(len(those), 'part')}"
    )


def host_of(told: Told, host: str) -> list[str]:
    """Tell what enters and leaves a host, and what stays in it.

    Raises
    ------
    ProblemError
        If there is no such host.
    """
    inside = devices_of(told, host)
    into, out, within = list[int](), list[int](), list[int]()
    for i, each in enumerate(told.transfers):
        ends = each.src in inside, each.dst in inside
        if all(ends):
            within.append(i)
        elif any(ends):
            (out if ends[0] else into).append(i)
    head = (
        f"Host {host} with {count(len(inside), 'device')}: {_bytes(told, into)} come in over "
        f"{_links(told, into)}, {_bytes(told, out)} leave over {_links(told, out)}, "
        f"{_bytes(told, within)} stay inside."
    )
    lines = [head]
    for what, those in (("Comes in", into), ("Leaves", out)):
        if those:
            lines.append(f"{what}:")
            lines += bounded(sends(told, those), "transfer")
    return lines


def devices_of(told: Told, host: str) -> frozenset[str]:
    """Return the devices of a host.

    Raises
    ------
    ProblemError
        If there is no such host.
    """
    topology = told.problem.topology
    if host not in topology.hosts:
        known = listing(list(topology.hosts), 8) if topology.hosts else "none"
        msg = f"there is no host {host!r} on {topology}; hosts are {known}"
        raise ProblemError(msg)
    return frozenset(each.name for each in topology.devices if each.host == host)


def _bytes(told: Told, those: Sequence[int]) -> str:
    return bytes_text(sum(told.transfers[i].nbytes for i in those))


def _links(told: Told, those: Sequence[int]) -> str:
    used = {(told.transfers[i].src, told.transfers[i].dst) for i in those}
    return count(len(used), "link")
