"""Sends of a schedule on their paths: whether these exist, what crosses links together, and when.

`check_paths` refuses sends whose paths are not there. `find_trees` reads off the devices of the
paths which sends cross their links together: multicasts, and sums along paths. `ccl.plans` defines
when they do.

`check_passing` looks at devices that cannot store: none may send out a byte before it has come. A
transfer says when its first and its last byte enter a link. However it is sent in between, at any
moment it has sent no less than what its link can no longer make up for until then, and no more than
what its link could have sent so far. So at no moment may what must have left a device be more than
what can have come to it.

`occupy_unlimited` and `occupy_limited` say when the links of a path are held by a send that crosses
devices that cannot store (cut-through). These are the rules of `ccl.plans.Send.via`: a link that is
faster than one before it waits until it can send without a pause, so that no byte leaves a device
before it has come, and all have left when the last has come and not before. A link that is limited
is held over whole epochs, over no fewer than those in which the bytes come to it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ccl.collective import Chunk
from ccl.errors import ScheduleError
from ccl.plans import Order, Route, Schedule, Send
from ccl.problem import Problem
from ccl.text import enumerate_words
from ccl.timeline import Timeline, Transfer
from ccl.topology import Link, Topology

TOLERANCE = 1e-9
"""The only tolerance: of times as a share of the whole duration, of amounts as a share of a chunk
and of loads as a share of a limit."""


def check_paths(problem: Problem, schedule: Schedule, order: Order) -> None:
    """Refuse sends that name what is not there, stop inside a path, or split what is whole.

    Raises
    ------
    ScheduleError
        At the first such send.
    """
    chunks = problem.collective.chunks
    wrong = [_broken_path(problem.topology, route) for route in order.routes]
    absent = {
        number
        for number in set(map(attrgetter("chunk"), order.sends))
        if not 0 <= number < len(chunks)
    }
    whole = {
        number
        for number in order.split - absent
        if chunks[number].reduced or len(chunks[number].destinations) > 1
    }
    if not absent and not whole and not any(wrong) and not order.named:
        return
    for send, path in zip(order.sends, order.route_of.tolist(), strict=True):
        broken = wrong[path]
        if send.chunk in absent:
            broken = send.src, f"there is no such chunk; they go from 0 to {len(chunks) - 1}"
        elif broken is None and send.fraction < 1 and send.chunk in whole:
            broken = send.src, f"only {send.fraction:g} of it is sent; send the whole chunk"
        elif broken is None and send.terms is not None:
            broken = _misnamed(chunks[send.chunk], send)
        if broken is not None:
            where, what = broken
            time = send.epoch * schedule.epoch_duration
            raise ScheduleError(
                f"epoch {send.epoch}: {send}: {what}", where=where, time=time, epoch=send.epoch
            )


def _misnamed(chunk: Chunk, send: Send) -> tuple[str, str] | None:
    """Describe where and why a send cannot carry the contributions that it names, or None."""
    if not chunk.reduced:
        return send.src, "the chunk is not reduced; leave out the terms"
    others = (send.terms or frozenset()).difference(chunk.holders)
    if others:
        ranks = enumerate_words([str(rank) for rank in sorted(chunk.holders)], 16)
        return send.src, f"rank {min(others)} contributes nothing to it; its terms are of {ranks}"
    return None


def _broken_path(topology: Topology, route: Route) -> tuple[str, str] | None:
    """Describe where and why some devices are not a path, or None."""
    links = list(pairwise(route))
    for src, dst in links:
        if (src, dst) not in topology.link_index:
            return f"{src}->{dst}", f"{topology} has no link {src}->{dst}; use links that exist"
    if len(set(links)) < len(links):
        return route[0], "it crosses a link twice; leave out the loop"
    for name in route[1:-1]:
        if topology.device(name).stores:
            return name, f"{name} stores what it receives; make it two sends"
    return None


@dataclass(frozen=True, slots=True)
class Tree:
    """Sends that are one transmission.

    Parameters
    ----------
    places
        Where they are in the order of the schedule, two or more.
    joins
        Whether they run together, as a sum does, rather than part.
    turn
        The place of the whole: of a multicast that of its first send, of a sum that of its last.
    """

    places: tuple[int, ...]
    joins: bool
    turn: int


def find_trees(problem: Problem, order: Order) -> dict[int, Tree]:
    """Return the tree of each send that is in one, by its place in the order."""
    found: dict[int, Tree] = {}
    chunks = problem.collective.chunks
    for joins in (False, True):
        taken = np.zeros(len(order.sends), dtype=bool)
        taken[list(found)] = True
        taken |= np.isin(order.chunks, list(order.split))
        if joins:
            reduced = np.array([chunk.reduced for chunk in chunks], dtype=bool)
            taken |= ~reduced[order.chunks]
        turned = [route[::-1] if joins else route for route in order.routes]
        able = {
            each.name
            for each in problem.topology.devices
            if (each.reduces if joins else each.copies)
        }
        fits: dict[tuple[int, ...], bool] = {}
        for places in _alike(order, _roots(problem, turned, able), taken, same=not joins):
            if joins and order.named and not _disjoint([order.sends[i] for i in places]):
                continue
            members = tuple(order.route_of[list(places)].tolist())
            if members not in fits:
                fits[members] = _branches([turned[path] for path in members], able)
            if fits[members]:
                tree = Tree(places, joins, places[-1] if joins else places[0])
                found.update(dict.fromkeys(places, tree))
    return found


def _roots(problem: Problem, turned: Sequence[Route], able: set[str]) -> NDArray[np.int64]:
    """Return the number of the first link of each path, shape (paths,).

    It is -1 where a path begins at a device that cannot store or crosses none that is able.
    """
    numbers: dict[Route, int] = {}
    return np.array(
        [
            numbers.setdefault(route[:2], len(numbers))
            if problem.topology.device(route[0]).stores and not able.isdisjoint(route[1:-1])
            else -1
            for route in turned
        ],
        dtype=np.int64,
    )


def _disjoint(sends: Sequence[Send]) -> bool:
    """Return whether no contribution is named by two of some sends."""
    named = [send.terms for send in sends if send.terms is not None]
    return len(frozenset().union(*named)) == sum(map(len, named))


def _alike(
    order: Order, roots: NDArray[np.int64], taken: NDArray[np.bool_], *, same: bool
) -> Iterator[tuple[int, ...]]:
    """Yield places of two or more sends of one chunk and epoch with the same first link.

    They have the same terms if those must be.
    """
    root = roots[order.route_of]
    places = np.flatnonzero((root >= 0) & ~taken)
    keys = [root, order.chunks, order.epochs, *([order.terms] if same and order.named else [])]
    columns = [each[places] for each in keys]
    places = places[np.lexsort(columns)]
    columns = [each[places] for each in keys]
    new = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    listed = places.tolist()
    bounds = [0, *(np.flatnonzero(new) + 1).tolist(), len(listed)]
    for low, high in pairwise(bounds):
        if high - low > 1:
            yield tuple(listed[low:high])


def _branches(members: Sequence[Route], able: set[str]) -> bool:
    """Return whether paths from one end are a tree that branches only at devices that are able."""
    before: dict[tuple[str, str], tuple[str, str] | None] = {}
    onward: dict[tuple[str, str], set[str]] = {}
    for path in members:
        last = None
        for link in pairwise(path):
            if before.setdefault(link, last) != last:
                return False
            if last is not None:
                onward.setdefault(last, set()).add(link[1])
            last = link
    ends = {path[-2:] for path in members}
    if len(ends) < len(members) or any(end in onward for end in ends):
        return False
    return all(link[1] in able for link, next_ones in onward.items() if len(next_ones) > 1)


def find_meeting(first: Send, second: Send) -> str:
    """Return the device at which two sends that end alike run together."""
    common = second.dst
    members = (first.src, *first.via, first.dst), (second.src, *second.via, second.dst)
    for one, other in zip(*(path[::-1] for path in members), strict=False):
        if one != other:
            break
        common = one
    return common


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


Ends = tuple[str, str]


class Stay(NamedTuple):
    """A link that a transmission holds; everything in µs.

    Latencies before it take `lead`; apart from these it is occupied from `wait` on until `until`.
    Where it is limited that is over so many `epochs` from the one that is `first` after that of the
    send.
    """

    link: Link
    busy: float
    lead: float
    wait: float
    until: float
    first: int = 0
    epochs: int = 0


def occupy_unlimited(
    routes: Sequence[Sequence[Link]], busy: dict[Ends, float], *, joins: bool
) -> dict[Ends, Stay]:
    """Return the links of paths that part, or that join, each when it is held.

    Paths that join are those that part, read backwards: all end at once.
    """
    alphas = [sum(link.alpha for link in links) for links in routes]
    stays: dict[Ends, Stay] = {}
    for links in routes:
        ordered = links[::-1] if joins else links
        lead = wait = 0.0
        for before, link in pairwise((None, *ordered)):
            assert link is not None
            if before is not None:
                # As long as the one before it sends more slowly it would run out of bytes.
                wait += max(0.0, busy[before.ends] - busy[link.ends])
                lead += link.alpha if joins else before.alpha
            elif joins:
                lead = link.alpha
            took = busy[link.ends]
            stays[link.ends] = Stay(link, took, lead, wait, wait + took)
    if not joins:
        return stays
    # Counted from the end, and then from when the first of the sends leaves.
    first = max(
        alpha + stays[links[0].ends].until for alpha, links in zip(alphas, routes, strict=True)
    )
    return {
        ends: stay._replace(lead=first - stay.lead, wait=-stay.until, until=-stay.wait)
        for ends, stay in stays.items()
    }


def occupy_limited(
    routes: Sequence[Sequence[Link]],
    busy: dict[Ends, float],
    *,
    lags: Sequence[float],
    tau: float,
    epochs: Callable[[Link, int, int], int | None],
    whole: bool,
) -> dict[Ends, Stay]:
    """Return the links of paths of which some are limited.

    Parameters
    ----------
    routes
        Links of each path.
    busy
        µs for which each link is held at full rate.
    lags
        µs after the common start at which each path begins.
    tau
        µs of an epoch.
    epochs
        Of a link, an epoch after that of the send and a number of epochs: over how many from that
        one on the link is held, that number at least; None if it is not limited.
    whole
        Whether limited links are held over whole epochs, or as long as their rate requires.
    """
    came: dict[Ends, tuple[float, float]] = {}
    stays: dict[Ends, Stay] = {}
    for links, lag in zip(routes, lags, strict=True):
        lead, before, until = lag, 0.0, 0.0
        for link in links:
            # Where paths join, the last of them knows of all.
            known = came.get(link.ends, (0.0, 0.0))
            begin, end = came[link.ends] = max(known[0], before), max(known[1], until)
            took = busy[link.ends]
            first = math.floor((lead + begin) / tau + TOLERANCE)
            least = max(1, math.ceil(max(took, end - begin) / tau - TOLERANCE))
            many = epochs(link, first, least)
            if many is None:
                begin = max(begin, end - took)
                stay = Stay(link, took, lead, begin, begin + took)
            else:
                until = begin + many * tau if whole else max(begin + took, end)
                stay = Stay(link, took, lead, begin, until, first, many)
            stays[link.ends] = stay
            before, until = stay.wait, stay.until
            lead += link.alpha
    return stays
