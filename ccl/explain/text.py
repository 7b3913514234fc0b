"""Description of a plan: the breakdown of its makespan, and each send with what it waited for.

`row_of`, `rank_of` and `host_of` describe what one link, one rank or one host does: rows of times
in words. `path_of` follows a chunk, link by link; `planned_paths` lists the trees or paths that a
steady state gives it.
"""

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
from ccl.text import bounded, count, enumerate_words, number, size
from ccl.timeline import Reason, Timeline
from ccl.tree_embedding import routes

MOST_TREES = 6
"""Trees or paths of one chunk that are written out."""

MOST_ROUTES = 8
"""Edges of one tree that are written out."""

_WAITS = (Reason.AT_ONCE, Reason.NOT_THERE, Reason.PASSED_ON)
"""Reasons with which nothing that is there waits."""


def path_of(described: PlanReport, chunk: int, those: Sequence[int]) -> list[str]:
    """Describe where a chunk is at first, each hop with its wait, and when each destination has it.

    Parameters
    ----------
    described
        The plan.
    chunk
        Its number.
    those
        Places of its transfers that are described.
    """
    item, ranks = described.problem.collective.chunks[chunk], described.problem.topology.ranks
    holders = enumerate_words([ranks[rank] for rank in item.holders])
    wanted = enumerate_words([ranks[rank] for rank in item.destinations])
    where = f"a part of it at {holders}" if item.reduced else f"at {holders} from the start"
    lines = [
        f"{described.labels[chunk]}, {size(item.size)}: {where}, needed at {wanted}.",
        *planned_paths(described, chunk),
    ]
    whole = _whole_path(described, those)
    lines += bounded(sends(described, those), "hop")
    lines += _arrivals(described, chunk)
    waited = sum(described.waited(i) for i in those if described.causes[i].reason not in _WAITS)
    long = f"{number(waited)} µs in all" if waited else "nowhere"
    what = "it" if whole else "its parts"
    lines.append(f"On {count(len(those), 'hop')} {what} waited {long}.")
    return lines


def _arrivals(described: PlanReport, chunk: int) -> list[str]:
    """Describe when each destination has a chunk: all of it, and of a sum every part."""
    item, ranks = described.problem.collective.chunks[chunk], described.problem.topology.ranks
    ends: defaultdict[str, list[float]] = defaultdict(list)
    parted = item.reduced
    for each in described.transfers:
        if each.chunk == chunk:
            ends[each.dst].append(each.end)
            parted = parted or each.nbytes < item.size * (1 - 1e-9)
    had = {
        ranks[rank]: (max if parted else min)(ends[ranks[rank]])
        for rank in item.destinations
        if ends[ranks[rank]]
    }
    times = [f"{name} at {number(end)} µs" for name, end in had.items()]
    return [f"It is complete: {enumerate_words(times, 16)}."] if times else []


def sends(described: PlanReport, those: Sequence[int]) -> list[str]:
    """Describe transfers: each in a sentence, or in one line for all parts of a chunk on a link."""
    if _whole_path(described, those):
        return [f"  {described.sentence(i)}" for i in those]
    parts: defaultdict[tuple[int, str, str], list[int]] = defaultdict(list)
    for i in those:
        own = described.transfers[i]
        parts[own.chunk, own.src, own.dst].append(i)
    return [f"  {_crossed(described, each)}" for each in parts.values()]


def _whole_path(described: PlanReport, those: Sequence[int]) -> bool:
    """Return whether all of some transfers carry whole chunks."""
    every = (described.transfers[i] for i in those)
    return all(each.nbytes >= described.sizes[each.chunk] * (1 - 1e-9) for each in every)


def _crossed(described: PlanReport, parts: Sequence[int]) -> str:
    own = [described.transfers[i] for i in parts]
    last = max(each.end for each in own)
    line = (
        f"{own[0].src} → {own[0].dst}: {_in_parts(described, parts)} "
        f"from {number(own[0].start)} to {number(last)} µs"
    )
    waits: defaultdict[Reason, float] = defaultdict(float)
    for i in parts:
        if described.causes[i].reason not in _WAITS:
            waits[described.causes[i].reason] += described.waited(i)
    if not waits:
        return f"{line}, without waiting"
    reason, longest = max(waits.items(), key=itemgetter(1))
    return f"{line}; parts waited {number(longest)} µs in all: {reason}"


def _in_parts(described: PlanReport, parts: Sequence[int], where: str = "") -> str:
    """Name what transfers of one chunk carry together, and in how many parts."""
    own = [described.transfers[i] for i in parts]
    share = sum(each.nbytes for each in own) / described.sizes[own[0].chunk]
    what = f"{share_of(share)}{described.labels[own[0].chunk]}"
    return f"{what}{where} in {count(len(own), 'part')}"


def share_of(share: float) -> str:
    """Write a share of a chunk to stand before its name; nothing for all of it."""
    return "" if abs(share - 1) < 1e-7 else f"{number(100 * share, 3)} % of "


def planned_paths(described: PlanReport, chunk: int) -> list[str]:
    """List the trees or paths of a chunk with their weights; nothing of a schedule."""
    if isinstance(described.plan, Forest):
        return _trees(described, described.plan, chunk)
    if isinstance(described.plan, Flow):
        return _paths(described.problem, described.plan, chunk)
    return []


def _trees(described: PlanReport, forest: Forest, chunk: int) -> list[str]:
    item, topology = described.problem.collective.chunks[chunk], described.problem.topology
    found: list[tuple[Fraction, list[str]]]
    if forest.spread:
        whole = forest if described.timeline.images > 1 else forest.unfolded(topology)
        found = [
            (each.share, [_arrow(topology.links[link].ends) for link in each.links])
            for each in routes(described.problem, whole)
            if each.chunk == chunk
        ]
    else:
        (root, *_) = item.destinations if forest.reduces else item.holders
        trees = (tree for tree in forest.every(topology) if tree.root == root)
        found = [(tree.weight, [_arrow(route) for route in tree.routes]) for tree in trees]
    lines = [f"It takes {count(len(found), 'tree')}, each with its share of it:"]
    lines += [
        f"  {share}: {enumerate_words(routes, MOST_ROUTES)}" for share, routes in found[:MOST_TREES]
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


def shares(described: PlanReport) -> Iterator[str]:
    """Yield the number of trees or paths of a forest or a flow; nothing for a schedule."""
    plan = described.plan
    if isinstance(plan, Forest):
        trees = plan.images * (len(plan.trees) + len(plan.spread))
        yield (
            f"A forest of {count(trees, 'tree')}, at most {count(plan.depth, 'edge')} deep, "
            f"replayed with each chunk in about {count(described.timeline.chunks, 'part')}."
        )
        if described.timeline.images > 1:
            yield (
                f"Only the transfers of one tree of each kind are listed; each stands for "
                f"{described.timeline.images:,} alike."
            )
    elif isinstance(plan, Flow):
        yield (
            f"A flow of {count(len(plan.rates), 'rate')}, replayed with each chunk in about "
            f"{count(described.timeline.chunks, 'part')}."
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


def row_of(described: PlanReport, link: tuple[str, str], those: Sequence[int]) -> list[str]:
    """Describe what a link carries, from whom and when, and where it is idle in between.

    Parameters
    ----------
    described
        The plan.
    link
        Its ends.
    those
        Places of its transfers that are described, in order.

    Raises
    ------
    ProblemError
        If there is no such link.
    """
    own = described.problem.topology.link(*link)
    makespan = described.timeline.makespan
    every = [described.transfers[i] for i in those]
    busy = sum(each.sent - each.start for each in every)
    share = f" ({number(100 * busy / makespan, 3)} %)" if makespan else ""
    head = (
        f"{own.src} → {own.dst}, {number(own.bandwidth, 4)} GB/s, alpha {number(own.alpha, 4)} µs: "
        f"{count(len(those), 'transfer')}, {size(sum(each.nbytes for each in every))}, "
        f"busy {number(busy)} of {number(makespan)} µs{share}."
    )
    rows = [_run(described, run, free) for run, free in _runs(described, those)]
    return [head, *bounded(rows, "row")]


def _runs(described: PlanReport, those: Sequence[int]) -> Iterator[tuple[list[int], float]]:
    """Yield transfers of a link, parts of a chunk that follow at once together.

    With each the µs from which on the link was free.
    """
    slack = 1e-9 * described.timeline.makespan
    run: list[int] = []
    free = before = 0.0
    for i in those:
        own = described.transfers[i]
        if run and (own.start > free + slack or own.chunk != described.transfers[run[0]].chunk):
            yield run, before
            run, before = [], free
        run.append(i)
        free = own.sent
    if run:
        yield run, before


def _run(described: PlanReport, run: Sequence[int], free: float) -> str:
    """Describe one transfer of a link, or several of a chunk without a gap."""
    first, last = described.transfers[run[0]], described.transfers[run[-1]]
    what = described.what(run[0])
    if len(run) > 1:
        what = _in_parts(described, run)
    line = f"  {number(first.start)} – {number(last.sent)} µs {what}, there at {number(last.end)}"
    idle = first.start - free
    if idle <= 1e-9 * described.timeline.makespan:
        return line
    why = _IDLE.get(described.causes[run[0]].reason)
    return f"{line}, idle {number(idle)} µs before" + ("" if why is None else f": {why}")


def rank_of(described: PlanReport, rank: int) -> list[str]:
    """Describe which chunks a rank has at first, gets and sends, and when.

    Raises
    ------
    ProblemError
        If there is no such rank.
    """
    name = rank_name(described.problem, rank)
    chunks = described.problem.collective.chunks
    has = [described.labels[i] for i, chunk in enumerate(chunks) if rank in chunk.holders]
    needs = {i for i, chunk in enumerate(chunks) if rank in chunk.destinations}
    into = sorted(
        (i for i, each in enumerate(described.transfers) if each.dst == name),
        key=lambda i: described.transfers[i].end,
    )
    out = [i for i, each in enumerate(described.transfers) if each.src == name]
    last = max(
        (described.transfers[i].end for i in into if described.transfers[i].chunk in needs),
        default=0.0,
    )
    begins = f"has {enumerate_words(has)} from the start" if has else "has nothing at the start"
    lines = [f"Rank {rank} ({name}) {begins} and all that it needs at {number(last)} µs."]
    lines.append(_many(described, "gets", into))
    lines += bounded(
        [
            f"  {number(described.transfers[those[-1]].end)} µs {_gets(described, those)}"
            for those in _gathered(described, into)
        ],
        "transfer",
    )
    lines.append(_many(described, "sends", out))
    lines += bounded(sends(described, out), "transfer")
    return lines


def _many(described: PlanReport, does: str, those: Sequence[int]) -> str:
    if not those:
        return f"It {does} nothing."
    return f"It {does} {count(len(those), 'transfer')}, {_bytes(described, those)}:"


def _gathered(described: PlanReport, into: Sequence[int]) -> list[list[int]]:
    """Put together the parts of a chunk that come over one link; by their last arrival."""
    parts: dict[tuple[int, str], list[int]] = {}
    for i in into:
        parts.setdefault((described.transfers[i].chunk, described.transfers[i].src), []).append(i)
    return sorted(parts.values(), key=lambda those: described.transfers[those[-1]].end)


def _gets(described: PlanReport, those: Sequence[int]) -> str:
    own = described.transfers[those[0]]
    if len(those) == 1:
        return f"{described.what(those[0])} from {own.src}"
    return _in_parts(described, those, f" from {own.src}")


def host_of(described: PlanReport, host: str) -> list[str]:
    """Describe what enters and leaves a host, and what stays in it.

    Raises
    ------
    ProblemError
        If there is no such host.
    """
    inside = devices_of(described, host)
    into, out, within = list[int](), list[int](), list[int]()
    for i, each in enumerate(described.transfers):
        ends = each.src in inside, each.dst in inside
        if all(ends):
            within.append(i)
        elif any(ends):
            (out if ends[0] else into).append(i)
    head = (
        f"Host {host} with {count(len(inside), 'device')}: {_bytes(described, into)} come in over "
        f"{_links(described, into)}, {_bytes(described, out)} leave over {_links(described, out)}, "
        f"{_bytes(described, within)} stay inside."
    )
    lines = [head]
    for what, those in (("Comes in", into), ("Leaves", out)):
        if those:
            lines.append(f"{what}:")
            lines += bounded(sends(described, those), "transfer")
    return lines


def devices_of(described: PlanReport, host: str) -> frozenset[str]:
    """Return the devices of a host.

    Raises
    ------
    ProblemError
        If there is no such host.
    """
    topology = described.problem.topology
    if host not in topology.hosts:
        known = enumerate_words(list(topology.hosts), 8) if topology.hosts else "none"
        raise ProblemError(f"there is no host {host!r} on {topology}; hosts are {known}")
    return frozenset(each.name for each in topology.devices if each.host == host)


def _bytes(described: PlanReport, those: Sequence[int]) -> str:
    return size(sum(described.transfers[i].nbytes for i in those))


def _links(described: PlanReport, those: Sequence[int]) -> str:
    used = {(described.transfers[i].src, described.transfers[i].dst) for i in those}
    return count(len(used), "link")


MOST_CRITICAL = 20
"""Transfers of the critical path that a text lists."""


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
    """Describe a plan, or the part of it that concerns a chunk, a link, a rank or a host.

    Parameters
    ----------
    problem, plan
        The problem, and the answer.
    timeline
        The replay of the plan, where it is there already.
    chunk
        Its number: its whole path, with its waits and why.
    link
        Its ends: what it carries, and where it is idle.
    rank
        What it has, gets and sends, and when.
    host
        Its name: what enters and leaves it.

    Returns
    -------
    Lines; of more than one of these, the sends that concern all of them, a sentence each. It ends
    after `ccl.text.MOST_LINES` of a kind and says how many there are more.

    Raises
    ------
    ScheduleError
        If no replay is given and the plan breaks a rule.
    ProblemError
        If there is no such chunk, link, rank or host.
    """
    described = report(problem, plan, timeline)
    those = _chosen(described, chunk=chunk, link=link, rank=rank, host=host)
    given = [each is not None for each in (chunk, link, rank, host)]
    if not any(given):
        lines = _whole(described)
    elif sum(given) > 1:
        lines = [f"{count(len(those), 'send')}:"]
        lines += bounded(sends(described, those), "send")
    elif chunk is not None:
        lines = path_of(described, chunk, those)
    elif link is not None:
        lines = row_of(described, link, those)
    elif rank is not None:
        lines = rank_of(described, rank)
    else:
        assert host is not None
        lines = host_of(described, host)
    return "\n".join(lines)


def _chosen(
    described: PlanReport,
    *,
    chunk: int | None,
    link: tuple[str, str] | None,
    rank: int | None,
    host: str | None,
) -> list[int]:
    """Return the places of the transfers that concern all that is given."""
    name = None if rank is None else rank_name(described.problem, rank)
    inside = None if host is None else devices_of(described, host)
    if link is not None:
        described.problem.topology.link(*link)
    if chunk is not None and not 0 <= chunk < len(described.sizes):
        raise ProblemError(
            f"there is no chunk {chunk}; chunks go from 0 to {len(described.sizes) - 1}"
        )
    return [
        i
        for i, each in enumerate(described.transfers)
        if (chunk is None or each.chunk == chunk)
        and (link is None or (each.src, each.dst) == link)
        and (name is None or name in (each.src, each.dst))
        and (inside is None or each.src in inside or each.dst in inside)
    ]


def _whole(described: PlanReport) -> list[str]:
    collective, timeline = described.problem.collective, described.timeline
    head = (
        f"{collective.kind} of {size(collective.size)} on {described.problem.topology}: "
        f"{count(len(described.transfers), 'transfer')} in {number(timeline.makespan)} µs."
    )
    lines = [head, *shares(described), f"Along the critical path: {breakdown(described).text()}."]
    lines += bounded(_path(described), "step", MOST_CRITICAL)
    lines += _waits(described)
    lines += _busiest(described)
    lines.append("All of them:")
    return lines + bounded(sends(described, range(len(described.transfers))), "transfer")


def _path(described: PlanReport) -> list[str]:
    """Describe the critical path; parts of a chunk that follow one another on a link together."""
    lines: list[str] = []
    for _, run in groupby(described.critical, key=partial(_crossing, described)):
        lines += sends(described, list(run))
    return lines


def _crossing(described: PlanReport, i: int) -> tuple[int, str, str]:
    own = described.transfers[i]
    return own.chunk, own.src, own.dst


def _waits(described: PlanReport) -> list[str]:
    """Count how many transfers waited for what, and how long in all."""
    counts = Counter(cause.reason for cause in described.causes)
    lines = ["Why they start when they do:"]
    for reason in Reason:
        if counts[reason]:
            waited = sum(
                described.waited(i)
                for i, each in enumerate(described.causes)
                if each.reason is reason
            )
            lines.append(f"  {reason}: {counts[reason]:,}{_in_all(waited, described)}")
    return lines


def _in_all(waited: float, described: PlanReport) -> str:
    """Write how long transfers waited in all; nothing where that is a rounding error."""
    if waited <= 1e-9 * described.timeline.makespan * len(described.transfers):
        return ""
    return f", {number(waited)} µs of waiting in all"


def _busiest(described: PlanReport) -> list[str]:
    busy, makespan = described.timeline.link_busy, described.timeline.makespan
    if not busy or not makespan:
        return []
    most = max(busy.values())
    held = [f"{src} → {dst}" for (src, dst), time in busy.items() if time >= most * (1 - 1e-9)]
    share = number(100 * most / makespan, 3)
    return [f"Busiest, {share} % of the time: {enumerate_words(held)}."]
