"""A plan in words: what its makespan is made of, and each send with what it waited for.

What one link, one rank or one host does: rows of times in words.

The way of a chunk, link by link; and the trees or paths that a steady state gives it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import groupby
from operator import itemgetter

from ccl.errors import ProblemError
from ccl.explain.narration import Plan, PlanReport, breakdown, rank_name, report
from ccl.plans import Flow, Forest, paths
from ccl.problem import Problem
from ccl.text import bounded, count, enumerated, number, size
from ccl.timeline import Reason, Timeline
from ccl.tree_embedding import routes

MOST_TREES = 6
"""Trees or paths of one chunk that are written out."""

MOST_ROUTES = 8
"""Edges of one tree that are written out."""

_WAITS = (Reason.AT_ONCE, Reason.NOT_THERE, Reason.PASSED_ON)
"""Reasons with which nothing that is there waits."""


def path_of(told: PlanReport, chunk: int, those: Sequence[int]) -> list[str]:
    """Tell where a chunk is at first, each hop with its wait, and when each destination has it.

    Parameters
    ----------
    told
        The plan.
    chunk
        Its number.
    those
        Places of its transfers that are told.
    """
    asked, ranks = told.problem.collective.chunks[chunk], told.problem.topology.ranks
    holders = enumerated([ranks[rank] for rank in asked.holders])
    wanted = enumerated([ranks[rank] for rank in asked.destinations])
    where = f"a part of it at {holders}" if asked.reduced else f"at {holders} from the start"
    lines = [
        f"{told.labels[chunk]}, {size(asked.size)}: {where}, needed at {wanted}.",
        *planned_paths(told, chunk),
    ]
    whole = _whole_way(told, those)
    lines += bounded(sends(told, those), "hop")
    lines += _arrivals(told, chunk)
    waited = sum(told.waited(i) for i in those if told.causes[i].reason not in _WAITS)
    long = f"{number(waited)} µs in all" if waited else "nowhere"
    what = "it" if whole else "its parts"
    lines.append(f"On {count(len(those), 'hop')} {what} waited {long}.")
    return lines


def _arrivals(told: PlanReport, chunk: int) -> list[str]:
    """Say when each destination has a chunk: all of it, and of a sum every part."""
    asked, ranks = told.problem.collective.chunks[chunk], told.problem.topology.ranks
    ends: defaultdict[str, list[float]] = defaultdict(list)
    parted = asked.reduced
    for each in told.transfers:
        if each.chunk == chunk:
            ends[each.dst].append(each.end)
            parted = parted or each.nbytes < asked.size * (1 - 1e-9)
    had = {
        ranks[rank]: (max if parted else min)(ends[ranks[rank]])
        for rank in asked.destinations
        if ends[ranks[rank]]
    }
    times = [f"{name} at {number(end)} µs" for name, end in had.items()]
    return [f"It is complete: {enumerated(times, 16)}."] if times else []


def sends(told: PlanReport, those: Sequence[int]) -> list[str]:
    """Tell transfers: each in a sentence, or in one line for all parts of a chunk on a link."""
    if _whole_way(told, those):
        return [f"  {told.sentence(i)}" for i in those]
    parts: defaultdict[tuple[int, str, str], list[int]] = defaultdict(list)
    for i in those:
        own = told.transfers[i]
        parts[own.chunk, own.src, own.dst].append(i)
    return [f"  {_crossed(told, each)}" for each in parts.values()]


def _whole_way(told: PlanReport, those: Sequence[int]) -> bool:
    """Say whether all of some transfers carry whole chunks."""
    every = (told.transfers[i] for i in those)
    return all(each.nbytes >= told.sizes[each.chunk] * (1 - 1e-9) for each in every)


def _crossed(told: PlanReport, parts: Sequence[int]) -> str:
    own = [told.transfers[i] for i in parts]
    share = sum(each.nbytes for each in own) / told.sizes[own[0].chunk]
    last = max(each.end for each in own)
    line = (
        f"{own[0].src} → {own[0].dst}: {share_of(share)}{told.labels[own[0].chunk]} in "
        f"{count(len(own), 'part')} "
        f"from {number(own[0].start)} to {number(last)} µs"
    )
    waits: defaultdict[Reason, float] = defaultdict(float)
    for i in parts:
        if told.causes[i].reason not in _WAITS:
            waits[told.causes[i].reason] += told.waited(i)
    if not waits:
        return f"{line}, without waiting"
    reason, longest = max(waits.items(), key=itemgetter(1))
    return f"{line}; parts waited {number(longest)} µs in all: {reason}"


def share_of(share: float) -> str:
    """Write a share of a chunk to stand before its name; nothing for all of it."""
    return "" if abs(share - 1) < 1e-7 else f"{number(100 * share, 3)} % of "


def planned_paths(told: PlanReport, chunk: int) -> list[str]:
    """Tell the trees or paths of a chunk with their weights; nothing of a schedule."""
    if isinstance(told.plan, Forest):
        return _trees(told, told.plan, chunk)
    if isinstance(told.plan, Flow):
        return _paths(told.problem, told.plan, chunk)
    return []


def _trees(told: PlanReport, forest: Forest, chunk: int) -> list[str]:
    asked, topology = told.problem.collective.chunks[chunk], told.problem.topology
    found: list[tuple[Fraction, list[str]]]
    if forest.spread:
        whole = forest if told.timeline.images > 1 else forest.unfolded(topology)
        found = [
            (way.share, [_arrow(topology.links[link].ends) for link in way.links])
            for way in routes(told.problem, whole)
            if way.chunk == chunk
        ]
    else:
        (root, *_) = asked.destinations if forest.reduces else asked.holders
        trees = (tree for tree in forest.every(topology) if tree.root == root)
        found = [(tree.weight, [_arrow(route) for route in tree.routes]) for tree in trees]
    lines = [f"It takes {count(len(found), 'tree')}, each with its share of it:"]
    lines += [
        f"  {share}: {enumerated(routes, MOST_ROUTES)}" for share, routes in found[:MOST_TREES]
    ]
    if len(found) > MOST_TREES:
        lines.append(f"  and {len(found) - MOST_TREES} trees more")
    return lines


def _arrow(devices: Sequence[str]) -> str:
    return " → ".join(devices)


def _paths(problem: Problem, flow: Flow, chunk: int) -> list[str]:
    taken = next((those for number_, those in paths(problem, flow) if number_ == chunk), [])
    lines = [f"It takes {count(len(taken), 'path')}:"]
    lines += [f"  {number(100 * share, 4)} %: {_arrow(path)}" for share, path in taken[:MOST_TREES]]
    if len(taken) > MOST_TREES:
        lines.append(f"  and {len(taken) - MOST_TREES} paths more")
    return lines


def shares(told: PlanReport) -> Iterator[str]:
    """Say of a forest or a flow what it is made of; nothing of a schedule."""
    plan = told.plan
    if isinstance(plan, Forest):
        trees = plan.images * (len(plan.trees) + len(plan.spread))
        yield (
            f"A forest of {count(trees, 'tree')}, at most {count(plan.depth, 'edge')} deep, "
            f"replayed with each chunk in about {count(told.timeline.chunks, 'part')}."
        )
        if told.timeline.images > 1:
            yield (
                f"Only the transfers of one tree of each kind are listed; each stands for "
                f"{told.timeline.images:,} alike."
            )
    elif isinstance(plan, Flow):
        yield (
            f"A flow of {count(len(plan.rates), 'rate')}, replayed with each chunk in about "
            f"{count(told.timeline.chunks, 'part')}."
        )


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


def row_of(told: PlanReport, link: tuple[str, str], those: Sequence[int]) -> list[str]:
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
        f"{count(len(those), 'transfer')}, {size(sum(each.nbytes for each in every))}, "
        f"busy {number(busy)} of {number(makespan)} µs{share}."
    )
    rows = [_run(told, run, free) for run, free in _runs(told, those)]
    return [head, *bounded(rows, "row")]


def _runs(told: PlanReport, those: Sequence[int]) -> Iterator[tuple[list[int], float]]:
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


def _run(told: PlanReport, run: Sequence[int], free: float) -> str:
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


def rank_of(told: PlanReport, rank: int) -> list[str]:
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
    begins = f"has {enumerated(has)} from the start" if has else "has nothing at the start"
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


def _many(told: PlanReport, does: str, those: Sequence[int]) -> str:
    if not those:
        return f"It {does} nothing."
    return f"It {does} {count(len(those), 'transfer')}, {_bytes(told, those)}:"


def _gathered(told: PlanReport, into: Sequence[int]) -> list[list[int]]:
    """Put together the parts of a chunk that come over one link; by their last arrival."""
    parts: dict[tuple[int, str], list[int]] = {}
    for i in into:
        parts.setdefault((told.transfers[i].chunk, told.transfers[i].src), []).append(i)
    return sorted(parts.values(), key=lambda those: told.transfers[those[-1]].end)


def _gets(told: PlanReport, those: Sequence[int]) -> str:
    own = told.transfers[those[0]]
    if len(those) == 1:
        return f"{told.what(those[0])} from {own.src}"
    share = sum(told.transfers[i].nbytes for i in those) / told.sizes[own.chunk]
    return (
        f"{share_of(share)}{told.labels[own.chunk]} from {own.src} in {count(len(those), 'part')}"
    )


def host_of(told: PlanReport, host: str) -> list[str]:
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


def devices_of(told: PlanReport, host: str) -> frozenset[str]:
    """Return the devices of a host.

    Raises
    ------
    ProblemError
        If there is no such host.
    """
    topology = told.problem.topology
    if host not in topology.hosts:
        known = enumerated(list(topology.hosts), 8) if topology.hosts else "none"
        msg = f"there is no host {host!r} on {topology}; hosts are {known}"
        raise ProblemError(msg)
    return frozenset(each.name for each in topology.devices if each.host == host)


def _bytes(told: PlanReport, those: Sequence[int]) -> str:
    return size(sum(told.transfers[i].nbytes for i in those))


def _links(told: PlanReport, those: Sequence[int]) -> str:
    used = {(told.transfers[i].src, told.transfers[i].dst) for i in those}
    return count(len(used), "link")


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
    told = report(problem, plan, timeline)
    those = _chosen(told, chunk=chunk, link=link, rank=rank, host=host)
    given = [each is not None for each in (chunk, link, rank, host)]
    if not any(given):
        lines = _whole(told)
    elif sum(given) > 1:
        lines = [f"{count(len(those), 'send')}:"]
        lines += bounded(sends(told, those), "send")
    elif chunk is not None:
        lines = path_of(told, chunk, those)
    elif link is not None:
        lines = row_of(told, link, those)
    elif rank is not None:
        lines = rank_of(told, rank)
    else:
        assert host is not None
        lines = host_of(told, host)
    return "\n".join(lines)


def _chosen(
    told: PlanReport,
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


def _whole(told: PlanReport) -> list[str]:
    collective, timeline = told.problem.collective, told.timeline
    head = (
        f"{collective.kind} of {size(collective.size)} on {told.problem.topology}: "
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


def _path(told: PlanReport) -> list[str]:
    """Tell the critical path; parts of a chunk that follow one another on a link together."""
    lines: list[str] = []
    for _, run in groupby(told.critical, key=partial(_crossing, told)):
        lines += sends(told, list(run))
    return lines


def _crossing(told: PlanReport, i: int) -> tuple[int, str, str]:
    own = told.transfers[i]
    return own.chunk, own.src, own.dst


def _waits(told: PlanReport) -> list[str]:
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


def _in_all(waited: float, told: PlanReport) -> str:
    """Write how long transfers waited in all; nothing where that is a rounding error."""
    if waited <= 1e-9 * told.timeline.makespan * len(told.transfers):
        return ""
    return f", {number(waited)} µs of waiting in all"


def _busiest(told: PlanReport) -> list[str]:
    busy, makespan = told.timeline.link_busy, told.timeline.makespan
    if not busy or not makespan:
        return []
    most = max(busy.values())
    held = [f"{src} → {dst}" for (src, dst), time in busy.items() if time >= most * (1 - 1e-9)]
    share = number(100 * most / makespan, 3)
    return [f"Busiest, {share} % of the time: {enumerated(held)}."]
