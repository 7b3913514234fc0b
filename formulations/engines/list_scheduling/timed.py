"""Transfers in continuous time, their schedule in epochs, and their reversal for reductions.

`Transfers` are what can be sent: every path between two devices that store, as arrays. All methods
in continuous time (list scheduling, constraint programming, their quotients) choose among these and
from nothing else. A transfer crosses one link, or several through devices that cannot store, which
let it through as it comes. A chunk of n bytes that starts a transfer at time t

* holds its j-th link from ``t + lead[j] + n * drag[j]`` on for ``n * beta[j]``;
* is there at ``t + latency + n * slowest``, the sum of alphas plus the slowest transmission.

``lead`` is the sum of the alphas before the link. A link that is faster than one before it waits
until it can send without a pause (`ccl.plans.Send.via`): ``drag`` grows along the path by what
each link is faster than the one before it, and ``slowest`` is that of the last link plus its beta.
So it is the beta of the slowest link, or more where a path gets faster and then slower again.

Read backwards in time all this is the same, save that each alpha is then passed before its link is
held and not after: plans that will be read backwards (reductions,
`formulations.engines.reverse_time`) are made on reversed links with `reverse_transfers` transfers.

A plan in continuous time (`TimedTransfers`) says when each transfer starts. The schedule
(`in_epochs`) keeps the order of the transfers on every link and what each of them waits for, and
gives each the first epoch from which on it can go; the replay then forgets the epochs and is as
early as the plan was, or earlier. So the epoch duration is a matter of taste where no shared limit
binds: it is that of the quickest hop. Where one binds, a schedule spreads sends evenly over their
epochs, and short epochs lose less. Transfers of one transmission (a chunk that parts at devices
that copy) share their epoch.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ccl.collective import Collective
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.topology import Topology, binding_limits, no_collection
from formulations.core.refusals import betas, numbers
from formulations.engines.epoch_grid.relay_paths import listed

if TYPE_CHECKING:
    from formulations.engines.kernels.arrays import State


@dataclass(frozen=True)
class Transfers:
    """Transfers as arrays; n transfers, m links crossed by all of them together.

    Parameters
    ----------
    topology
        Devices and links are numbered as there.
    routes
        Device names along each transfer, n of them.
    src, dst
        Numbers of the devices at its ends, each shape (n,).
    first
        Where the links of each transfer begin in the arrays of shape (m,), shape (n + 1,).
    link
        Numbers of the links, shape (m,).
    beta
        µs per byte of each, the tightest shared limit that it is under counted, shape (m,).
    lead, drag
        When each link is held after the transfer starts: µs, and µs per byte, shape (m,).
    parts
        Whether the device before the link copies, so that a transfer that comes with another up to
        there may part from it, shape (m,).
    latency, slowest
        µs, and µs per byte, until the chunk is there, each shape (n,).
    """

    topology: Topology
    routes: tuple[tuple[str, ...], ...]
    src: np.ndarray
    dst: np.ndarray
    first: np.ndarray
    link: np.ndarray
    beta: np.ndarray
    lead: np.ndarray
    drag: np.ndarray
    parts: np.ndarray
    latency: np.ndarray
    slowest: np.ndarray

    def __len__(self) -> int:
        return len(self.routes)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """Return what kernels know of transfers: their links and what these take."""
        return (
            *(self.first, self.link, self.beta, self.lead, self.drag),
            *(self.latency, self.slowest),
        )

    def delay(self, nbytes: float) -> np.ndarray:
        """Return the µs that each transfer of a chunk of `nbytes` takes, shape (n,)."""
        return np.asarray(self.latency + nbytes * self.slowest)

    def scale(self, sizes: np.ndarray, last: float = 0.0) -> float:
        """Return the µs by which times are measured: a small share of them is one moment.

        Those of the longest transfer or of the last moment, if that is known; but where others are
        a million times as short, a million of the shortest, whose order counts as well.

        Parameters
        ----------
        sizes
            Bytes of all chunks.
        last
            µs of the last moment.
        """
        longest = float(self.delay(float(sizes.max(initial=0.0))).max(initial=0.0))
        some = self.delay(float(sizes.min(initial=np.inf))) if len(sizes) else np.zeros(0)
        shortest = float(some[some > 0].min(initial=np.inf))
        return min(max(longest, last), UNLIKE * shortest)

    @cached_property
    def of_link(self) -> np.ndarray:
        """The transfer that each entry of the arrays of shape (m,) belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    def chosen(self, numbers: np.ndarray) -> Transfers:
        """Return some of them, given by their numbers in ascending order."""
        among = np.isin(self.of_link, numbers)
        return replace(
            self,
            routes=tuple(self.routes[number] for number in numbers.tolist()),
            src=self.src[numbers],
            dst=self.dst[numbers],
            first=np.concatenate([[0], np.cumsum(np.diff(self.first)[numbers])]),
            link=self.link[among],
            beta=self.beta[among],
            lead=self.lead[among],
            drag=self.drag[among],
            parts=self.parts[among],
            latency=self.latency[numbers],
            slowest=self.slowest[numbers],
        )


def transfers_of(topology: Topology, *, fewer: bool = False) -> Transfers:
    """List the transfers of a topology, sorted by the devices that they leave.

    A path that crosses a shared limit so often that one chunk on it is too much is left out. With
    `fewer` the shortest paths are listed where all are too many.

    Raises
    ------
    SolveError
        If there are too many.
    Infeasible
        If no path joins two devices.
    """
    return transfers_along(topology, listed(topology, fewer=fewer))


def transfers_along(topology: Topology, routes: Sequence[tuple[str, ...]]) -> Transfers:
    """Return the transfers along paths, given as names of devices."""
    crossed = [len(route) - 1 for route in routes]
    first = np.concatenate([[0], np.cumsum(crossed)]).astype(np.int64)
    position = topology.link_index
    pairs = [position[pair] for route in routes for pair in pairwise(route)]
    link = np.array(pairs, dtype=np.int64)
    copies = np.array([each.copies for each in topology.devices], dtype=bool)
    index = topology.index
    before = np.array([index[each.src] for each in topology.links], dtype=np.int64)
    alpha = np.array([each.alpha for each in topology.links], dtype=float)
    beta = betas(topology)[link]
    total = np.add.reduceat(alpha[link], first[:-1])
    lead = _along(np.roll(alpha[link], 1), first)
    drag = _along(np.maximum(0.0, -np.diff(beta, prepend=0.0)), first)
    return Transfers(
        topology=topology,
        routes=tuple(routes),
        src=np.array([index[route[0]] for route in routes], dtype=np.int64),
        dst=np.array([index[route[-1]] for route in routes], dtype=np.int64),
        first=first,
        link=link,
        beta=beta,
        lead=lead,
        drag=drag,
        parts=copies[before[link]],
        latency=total,
        slowest=(drag + beta)[first[1:] - 1],
    )


def _along(steps: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Add up steps along each transfer, 0 at its first link, shape (m,).

    Link by link, since differences of sums over all transfers would lose small ones to rounding.
    """
    found, many = np.zeros(len(steps)), np.diff(first)
    for place in range(1, int(many.max(initial=0))):
        here = first[:-1][many > place] + place
        found[here] = found[here - 1] + steps[here]
    return found


def reverse_transfers(transfers: Transfers) -> Transfers:
    """Return the same transfers for plans that will be read backwards.

    Read backwards, a transfer that starts at t and is there at ``t + d`` is a send that starts at
    ``T - t - d``, and a link that the transfer holds until u is one that the send holds from ``T -
    u`` on. With n bytes, latencies ``a[j]`` and drags ``D[j]`` of the send, that is

        T - t - d + (sum of a[i] for i < j) + n D[j],     d = (sum of a) + n slowest,

    so the transfer begins to hold it ``(sum of a[i] for i >= j) + n (slowest - D[j] - beta[j])``
    after t. The last bracket is the drag of the transfer itself, as ``D[j] + beta[j]`` grows along
    the send by what each link is slower than the one before it: only the alpha of the link is
    added.
    """
    alpha = np.array([each.alpha for each in transfers.topology.links])
    return replace(transfers, lead=transfers.lead + alpha[transfers.link])


FINE = 16
"""Epochs of the quickest hop where a shared limit binds."""

MOST_LOADS = 8_000_000
"""Epochs of all limits together that are considered; where hops differ too much, epochs are
longer."""

LEAST = 4096
"""Epochs of a plan that there may be in any case."""

MOST_EPOCHS = 2.0**50
"""Of a plan: so many still are whole numbers in floating point."""

UNLIKE = 1e6
"""Times as long as the shortest transfer up to which all are measured alike."""

SAME = 1e-9
"""Shares of an epoch that count as zero."""


@dataclass(frozen=True)
class TimedTransfers:
    """What a method in continuous time found; n transfers.

    Parameters
    ----------
    transfer, chunk
        Numbers, each shape (n,).
    start
        µs, shape (n,).
    group
        Number of the transmission; transfers of one have the same, shape (n,).
    """

    transfer: np.ndarray
    chunk: np.ndarray
    start: np.ndarray
    group: np.ndarray

    @classmethod
    def of(cls, state: State) -> TimedTransfers:
        """Return what a pass or a trial has sent so far."""
        many = int(state.tally[0])
        return cls(
            state.transfer[:many], state.chunk[:many], state.start[:many], state.group[:many]
        )

    def __len__(self) -> int:
        return len(self.transfer)

    def chosen(self, which: np.ndarray) -> TimedTransfers:
        """Return those at some places."""
        return TimedTransfers(
            self.transfer[which], self.chunk[which], self.start[which], self.group[which]
        )


def ends(transfers: Transfers, timed: TimedTransfers, sizes: np.ndarray) -> np.ndarray:
    """Return the µs of each arrival, shape (n,); `sizes` are the bytes of all chunks."""
    took = (
        transfers.latency[timed.transfer] + sizes[timed.chunk] * transfers.slowest[timed.transfer]
    )
    return np.asarray(timed.start + took)


def one_after(first: TimedTransfers | None, second: TimedTransfers) -> TimedTransfers:
    """Return both as one plan; their starts stay."""
    if first is None:
        return second
    later = int(first.group.max(initial=0)) + 1
    return TimedTransfers(
        np.concatenate([first.transfer, second.transfer]),
        np.concatenate([first.chunk, second.chunk]),
        np.concatenate([first.start, second.start]),
        np.concatenate([first.group, second.group + later]),
    )


def backwards(
    transfers: Transfers, back: Transfers, timed: TimedTransfers, sizes: np.ndarray
) -> tuple[TimedTransfers, float]:
    """Read transfers on a reversed topology backwards: they end at the makespan that is returned.

    Parameters
    ----------
    transfers, back
        Those of the topology and of the reversed one, on which `timed` was planned.
    """
    stop = ends(back, timed, sizes)
    last = float(stop.max(initial=0.0))
    order = {route: number for number, route in enumerate(transfers.routes)}
    same = np.array(
        [order[back.routes[transfer][::-1]] for transfer in timed.transfer.tolist()], dtype=int
    )
    return TimedTransfers(same, timed.chunk, last - stop, timed.group), last


def sizes_of(collective: Collective) -> np.ndarray:
    """Return the bytes of each chunk, shape (chunks,)."""
    return np.array([chunk.size for chunk in collective.chunks], dtype=float)


def in_epochs(
    problem: Problem,
    transfers: Transfers,
    timed: TimedTransfers,
    *,
    epoch_duration: float | None = None,
    waits: tuple[np.ndarray, np.ndarray] | None = None,
    terms: Sequence[frozenset[int]] | None = None,
) -> Schedule:
    """Return the schedule that keeps the order and the dependences of `timed`.

    The epoch duration in µs is chosen unless given. `waits` are pairs of places in `timed` of which
    the second waits for the first; by default each waits for all of its chunk that came before.
    `terms` are the ranks whose contributions each carries, where they are named.
    """
    sizes = sizes_of(problem.collective)
    tau = epoch_duration or quickest_hop(problem, transfers, timed, sizes)
    timed = _parted(problem, transfers, timed)
    order = _ordered(transfers, timed, sizes, waits)
    placed = timed.chosen(order)
    lag, drags = _aligned(transfers, placed)
    meets = any(
        (each.copies or each.reduces) and not each.stores for each in problem.topology.devices
    )
    caps, cap_first, capacity = _limits(problem)
    from formulations.engines.kernels.placing import place  # noqa: PLC0415  it loads numba

    epochs, horizon = place(
        (
            *(transfers.src, transfers.dst, transfers.first, transfers.link),
            *(transfers.beta, transfers.lead, transfers.drag),
        ),
        (placed.transfer, placed.chunk, placed.group, lag, drags),
        (sizes, transfers.latency, transfers.slowest, meets),
        (caps, cap_first, capacity),
        _came(transfers, placed) if waits is None else _awaited(order, waits),
        (len(problem.topology.links), tau),
    )
    by_epoch = np.argsort(epochs, kind="stable")
    with no_collection():
        sends = _sends(transfers, placed.chosen(by_epoch), epochs[by_epoch])
    if terms is not None:
        named = zip(sends, order[by_epoch].tolist(), strict=True)
        sends = [replace(send, terms=terms[place]) for send, place in named]
    return Schedule(tuple(sends), tau, int(horizon))


def _sends(transfers: Transfers, timed: TimedTransfers, epochs: np.ndarray) -> list[Send]:
    """Return the sends of transfers in their epochs."""
    numbers = timed.transfer.tolist()
    routes = {number: transfers.routes[number] for number in set(numbers)}
    paths = {number: (route[0], route[-1], route[1:-1]) for number, route in routes.items()}
    columns = zip(epochs.tolist(), timed.chunk.tolist(), numbers, strict=True)
    return [Send(epoch, chunk, *paths[number]) for epoch, chunk, number in columns]


Waits = tuple[np.ndarray, np.ndarray, np.ndarray, int]
"""Of each transfer the place it brings to, where those begin that it waits for; these; how many."""


def _came(transfers: Transfers, placed: TimedTransfers) -> Waits:
    """Let each wait for all of its chunk that came to its source before."""
    left, brought = _places(transfers, placed)
    places, into = np.unique(brought, return_inverse=True)
    found = np.minimum(np.searchsorted(places, left), len(places) - 1)
    waits = places[found] == left
    return into.ravel(), np.concatenate([[0], np.cumsum(waits)]), found[waits], len(places)


def _places(transfers: Transfers, timed: TimedTransfers) -> tuple[np.ndarray, np.ndarray]:
    """Return what each leaves and reaches: a chunk at a device, as one number."""
    chunk = timed.chunk * len(transfers.topology.devices)
    return chunk + transfers.src[timed.transfer], chunk + transfers.dst[timed.transfer]


def _awaited(order: np.ndarray, waits: tuple[np.ndarray, np.ndarray]) -> Waits:
    """Return places that are transfers, each of which waits for those that are named."""
    every = np.arange(len(order))
    turn = np.empty_like(order)
    turn[order] = every
    before, after = (turn[each] for each in waits)
    by = np.argsort(after, kind="stable")
    return every, np.searchsorted(after[by], np.arange(len(order) + 1)), before[by], len(order)


def _parted(problem: Problem, transfers: Transfers, timed: TimedTransfers) -> TimedTransfers:
    """Part transmissions that are too much for a shared limit by themselves."""
    limits = [
        (numbers(problem.topology, limit), limit.bandwidth)
        for limit in binding_limits(problem.topology)
    ]
    if not limits:
        return timed
    members: dict[int, list[int]] = {}
    for turn, number in enumerate(timed.group.tolist()):
        members.setdefault(number, []).append(turn)
    group = timed.group.copy()
    after = int(group.max(initial=0)) + 1
    for turns in members.values():
        rate: dict[int, float] = {}
        for transfer in timed.transfer[turns].tolist():
            span = slice(transfers.first[transfer], transfers.first[transfer + 1])
            rate |= dict(
                zip(transfers.link[span].tolist(), 1e-3 / transfers.beta[span], strict=True)
            )
        loads = [(sum(rate.get(link, 0.0) for link in links), most) for links, most in limits]
        if any(load > most * (1 + SAME) for load, most in loads):
            group[turns] = range(after, after + len(turns))
            after += len(turns)
    return replace(timed, group=group)


def quickest_hop(
    problem: Problem, transfers: Transfers, timed: TimedTransfers, sizes: np.ndarray
) -> float:
    """Return µs of an epoch: the quickest hop of the plan, or a part of it where a limit binds."""
    hop = transfers.latency[timed.transfer] + sizes[timed.chunk] * transfers.slowest[timed.transfer]
    least = float(hop.sum()) / MOST_EPOCHS
    limits = binding_limits(problem.topology)
    if not limits:
        return max(float(hop.min()), least)
    caps = len(limits) + len({ends for limit in limits for ends in limit.links})
    longest = float(ends(transfers, timed, sizes).max())
    return max(float(hop.min()) / FINE, longest / max(LEAST, MOST_LOADS // caps), least)


def _limits(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return caps of each link, flat and where they begin, and bytes per µs of each cap.

    A link under a limit that binds is a cap of its own: sends over it are spread over epochs.
    """
    topology = problem.topology
    caps: list[list[int]] = [[] for _ in topology.links]
    capacity: list[float] = []
    under: set[int] = set()
    for limit in binding_limits(topology):
        for link in numbers(topology, limit):
            caps[link].append(len(capacity))
            under.add(link)
        capacity.append(1e3 * limit.bandwidth)
    for link in sorted(under):
        caps[link].append(len(capacity))
        capacity.append(1e3 * topology.links[link].bandwidth)
    first = np.cumsum([0, *map(len, caps)])
    flat = np.array([cap for each in caps for cap in each], dtype=np.int64)
    return flat, first.astype(np.int64), np.array(capacity, dtype=float)


def _aligned(transfers: Transfers, timed: TimedTransfers) -> tuple[np.ndarray, np.ndarray]:
    """Return how much later than the first each transfer of a sum starts, in µs and µs per byte.

    What is added up along the path has several sources; all arrive at once, so the longest path
    starts first.
    """
    _, which = np.unique(timed.group, return_inverse=True)
    src = transfers.src[timed.transfer]
    least, most = (np.zeros(int(which.max(initial=0)) + 1) for _ in range(2))
    least[:] = np.inf
    np.minimum.at(least, which, src)
    np.maximum.at(most, which, src)
    joins = (least < most)[which]
    found = []
    for took in (transfers.latency[timed.transfer], transfers.slowest[timed.transfer]):
        longest = np.zeros(len(least))
        np.maximum.at(longest, which, took)
        found.append(np.where(joins, longest[which] - took, 0.0))
    return found[0], found[1]


def _ordered(
    transfers: Transfers,
    timed: TimedTransfers,
    sizes: np.ndarray,
    waits: tuple[np.ndarray, np.ndarray] | None,
) -> np.ndarray:
    """Return the places of the transfers in the plan's order, those of one transmission together.

    That is the order of their starts, unless a link serves one before another that starts earlier.
    """
    _, which = np.unique(timed.group, return_inverse=True)
    latest = np.full(int(which.max(initial=0)) + 1, -np.inf)
    np.maximum.at(latest, which, timed.start)
    turn = np.empty(len(latest), dtype=np.int64)
    turn[np.argsort(latest, kind="stable")] = np.arange(len(latest))
    ahead, behind = _served(transfers, timed, sizes, turn[which])
    if (ahead > behind).any():
        turns = turn[which]
        waiting = waits and (turns[waits[0]], turns[waits[1]])
        waiting = waiting or relied(transfers, timed, sizes, turns)
        edges = [(ahead, behind), waiting]
        before, after = (np.concatenate(each) for each in zip(*edges, strict=True))
        turn = _in_line(before, after, len(latest))[turn]
    return np.lexsort((timed.start, turn[which]))


def _served(
    transfers: Transfers, timed: TimedTransfers, sizes: np.ndarray, turn: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the turns of what links serve one after the other: of the first and of the second."""
    many = np.diff(transfers.first)[timed.transfer]
    of = np.repeat(np.arange(len(timed)), many)
    place = np.arange(len(of)) + np.repeat(
        transfers.first[timed.transfer] - np.cumsum(many) + many, many
    )
    link = transfers.link[place]
    begin = timed.start[of] + transfers.lead[place] + sizes[timed.chunk[of]] * transfers.drag[place]
    order = np.lexsort((begin, link))
    next_to = (link[order][1:] == link[order][:-1]) & (turn[of[order]][1:] != turn[of[order]][:-1])
    return turn[of[order]][:-1][next_to], turn[of[order]][1:][next_to]


def relied(
    transfers: Transfers, timed: TimedTransfers, sizes: np.ndarray, turn: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the turns of what brings a chunk and of what sends it on, when it is there by then.

    What is there later by as little as list scheduling takes for one moment, a share of the longest
    transfer (`formulations.engines.kernels.dispatch`), is there.
    """
    stop = ends(transfers, timed, sizes)
    stop -= 2 * SAME * transfers.scale(sizes, last=float(stop.max(initial=0.0)))
    left, brought = _places(transfers, timed)
    by = np.argsort(brought, kind="stable")
    low = np.searchsorted(brought[by], left)
    many = np.searchsorted(brought[by], left, "right") - low
    sent = np.repeat(np.arange(len(timed)), many)
    came = by[np.arange(len(sent)) + np.repeat(low - np.cumsum(many) + many, many)]
    there = stop[came] <= timed.start[sent]
    return turn[came[there]], turn[sent[there]]


def _in_line(before: np.ndarray, after: np.ndarray, many: int) -> np.ndarray:
    """Return new turns in which each comes after those that it is behind, as few as can be moved.

    Of turns that are behind one another, round in a circle, the first goes first.
    """
    waits = np.bincount(after, minlength=many)
    order = np.argsort(before, kind="stable")
    then, bounds = after[order].tolist(), np.searchsorted(before[order], np.arange(many + 1))
    ready = np.flatnonzero(waits == 0).tolist()
    left, done, turn = waits.tolist(), [False] * many, np.zeros(many, dtype=np.int64)
    stuck = 0
    for new in range(many):
        if not ready:
            while done[stuck]:
                stuck += 1
            ready.append(stuck)
        here = heapq.heappop(ready)
        done[here] = True
        turn[here] = new
        for each in then[bounds[here] : bounds[here + 1]]:
            left[each] -= 1
            if not left[each] and not done[each]:
                heapq.heappush(ready, each)
    return turn
