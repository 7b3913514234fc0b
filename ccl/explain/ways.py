"""The way of a chunk, link by link; and the trees or paths that a steady state gives it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from operator import itemgetter

from ccl.causes import Reason
from ccl.explain.phrases import number
from ccl.explain.told import Told
from ccl.explain.writing import bounded, bytes_text, count, listing
from ccl.flow import Flow
from ccl.forest import Forest
from ccl.laying import ways
from ccl.paths import paths
from ccl.problem import Problem

MOST_TREES = 6
"""Trees or paths of one chunk that are written out."""

MOST_ROUTES = 8
"""Edges of one tree that are written out."""

_WAITS = (Reason.AT_ONCE, Reason.NOT_THERE, Reason.PASSED_ON)
"""Reasons with which nothing that is there waits."""


def way_of(told: Told, chunk: int, those: Sequence[int]) -> list[str]:
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
    holders = listing([ranks[rank] for rank in asked.holders])
    wanted = listing([ranks[rank] for rank in asked.destinations])
    where = f"a part of it at {holders}" if asked.reduced else f"at {holders} from the start"
    lines = [
        f"{told.labels[chunk]}, {bytes_text(asked.size)}: {where}, needed at {wanted}.",
        *planned_ways(told, chunk),
    ]
    whole = _whole(told, those)
    lines += bounded(sends(told, those), "hop")
    lines += _arrivals(told, chunk)
    waited = sum(told.waited(i) for i in those if told.causes[i].reason not in _WAITS)
    long = f"{number(waited)} µs in all" if waited else "nowhere"
    what = "it" if whole else "its parts"
    lines.append(f"On {count(len(those), 'hop')} {what} waited {long}.")
    return lines


def _arrivals(told: Told, chunk: int) -> list[str]:
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
    return [f"It is complete: {listing(times, 16)}."] if times else []


def sends(told: Told, those: Sequence[int]) -> list[str]:
    """Tell transfers: each in a sentence, or in one line for all parts of a chunk on a link."""
    if _whole(told, those):
        return [f"  {told.sentence(i)}" for i in those]
    parts: defaultdict[tuple[int, str, str], list[int]] = defaultdict(list)
    for i in those:
        own = told.transfers[i]
        parts[own.chunk, own.src, own.dst].append(i)
    return [f"  {_crossed(told, each)}" for each in parts.values()]


def _whole(told: Told, those: Sequence[int]) -> bool:
    """Say whether all of some transfers carry whole chunks."""
    every = (told.transfers[i] for i in those)
    return all(each.nbytes >= told.sizes[each.chunk] * (1 - 1e-9) for each in every)


def _crossed(told: Told, parts: Sequence[int]) -> str:
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


def planned_ways(told: Told, chunk: int) -> list[str]:
    """Tell the trees or paths of a chunk with their weights; nothing of a schedule."""
    if isinstance(told.plan, Forest):
        return _trees(told, told.plan, chunk)
    if isinstance(told.plan, Flow):
        return _paths(told.problem, told.plan, chunk)
    return []


def _trees(told: Told, forest: Forest, chunk: int) -> list[str]:
    asked, topology = told.problem.collective.chunks[chunk], told.problem.topology
    found: list[tuple[Fraction, list[str]]]
    if forest.spread:
        whole = forest if told.timeline.images > 1 else forest.unfolded(topology)
        found = [
            (way.share, [_arrow(topology.links[link].ends) for link in way.links])
            for way in ways(told.problem, whole)
            if way.chunk == chunk
        ]
    else:
        (root, *_) = asked.destinations if forest.reduces else asked.holders
        trees = (tree for tree in forest.every(topology) if tree.root == root)
        found = [(tree.weight, [_arrow(route) for route in tree.routes]) for tree in trees]
    lines = [f"It takes {count(len(found), 'tree')}, each with its share of it:"]
    lines += [f"  {share}: {listing(routes, MOST_ROUTES)}" for share, routes in found[:MOST_TREES]]
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


def shares(told: Told) -> Iterator[str]:
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
                f"Only the transfers of one tree of each kind are told; each stands for "
                f"{told.timeline.images:,} alike."
            )
    elif isinstance(plan, Flow):
        yield (
            f"A flow of {count(len(plan.rates), 'rate')}, replayed with each chunk in about "
            f"{count(told.timeline.chunks, 'part')}."
        )
