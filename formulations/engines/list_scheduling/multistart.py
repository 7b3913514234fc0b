"""Passes of list scheduling with other weights and other chances, until one meets the bound.

The first passes are a fixed set of weights; afterwards those that gave the best plan are tried
with other random numbers, and now and then others.

A `Quotient` is a problem reduced by its symmetry: one chunk of each orbit, links of one orbit as
one resource. If h is an automorphism, and chunk c goes over link e at time t, then its image hc
goes over he at the same time, in a plan that is to look the same after h. So c keeps all of the
orbit of e busy, and two representatives that never meet in an orbit of links never meet on a link,
nor do their images. What is found for representatives is lifted by taking all images.

That needs that no element but the identity leaves a link that is used where it is: else two images
of one chunk would be on it at once. Transfers over such links are left out, as are transfers that
cross two links of one orbit while they are held. A plan that needs them is not found here; the full
problem has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from ccl.symmetry import Symmetry
from ccl.topology import binding_limits
from formulations.core.refusals import numbers
from formulations.engines.kernels.arrays import Net, Weights, Work, begin, stopping
from formulations.engines.kernels.dispatch import dispatch
from formulations.engines.list_scheduling.timed import TimedTransfers, Transfers


@dataclass(frozen=True)
class Task:
    """What passes work on.

    Parameters
    ----------
    transfers
        Paths between devices.
    nbytes
        Bytes of each chunk, shape (c,).
    there
        When each chunk is at each device, in µs, infinite where it is not, shape (c, devices).
    wants
        Who needs it, shape (c, devices).
    free
        From when on each resource is free, in µs, shape (r,).
    resource
        The resource of each link, shape (links,).
    rank
        Larger is sent before smaller, shape (c,).
    """

    transfers: Transfers
    nbytes: np.ndarray
    there: np.ndarray
    wants: np.ndarray
    free: np.ndarray
    resource: np.ndarray
    rank: np.ndarray


def net_of(task: Task) -> Net:
    """Return the arrays of the kernel."""
    transfers = task.transfers
    resource = task.resource[transfers.link]
    many = len(task.free)
    order = np.argsort(resource, kind="stable")
    user_first = np.searchsorted(resource[order], np.arange(many + 1))
    sizes = np.unique(task.nbytes)
    far, hop = [], []
    for nbytes in sizes:
        near, via = _quickest(transfers, transfers.delay(float(nbytes)))
        far.append(near)
        hop.append(via)
    early, early_first = _early(transfers, resource, sizes, many)
    caps, cap_first, capacity, under, under_first = _limits(task)
    devices = len(transfers.topology.devices)
    return Net(
        src=transfers.src,
        dst=transfers.dst,
        first=transfers.first,
        link=transfers.link,
        resource=resource,
        beta=transfers.beta,
        lead=transfers.lead,
        drag=transfers.drag,
        parts=transfers.parts,
        latency=transfers.latency,
        slowest=transfers.slowest,
        out=np.searchsorted(transfers.src, np.arange(devices + 1)),
        users=transfers.of_link[order],
        user_first=user_first,
        early=early,
        early_first=early_first,
        far=np.array(far),
        hop=np.array(hop),
        caps=caps,
        cap_first=cap_first,
        capacity=capacity,
        under=under,
        under_first=under_first,
    )


def _quickest(transfers: Transfers, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the quickest paths in µs, and their first transfers, both shape (devices, devices)."""
    devices = len(transfers.topology.devices)
    order = np.lexsort((cost, transfers.dst, transfers.src))
    pair = transfers.src[order] * devices + transfers.dst[order]
    best = order[np.unique(pair, return_index=True)[1]]
    shape = (devices, devices)
    graph = csr_array((cost[best], (transfers.src[best], transfers.dst[best])), shape=shape)
    far = np.asarray(dijkstra(graph))
    hop = np.full(shape, -1, dtype=np.int64)
    # Of each device's transfers the one that lies along the path; the nearest neighbour of equal
    # ones.
    reach = np.full(shape, np.inf)
    for transfer in best[np.argsort(cost[best], kind="stable")].tolist():
        src, dst = transfers.src[transfer], transfers.dst[transfer]
        through = cost[transfer] + far[dst]
        nearer = through < reach[src] * (1 - 1e-12)
        reach[src][nearer] = through[nearer]
        hop[src][nearer] = transfer
    np.fill_diagonal(hop, -1)
    return far, hop


def _early(
    transfers: Transfers, resource: np.ndarray, sizes: np.ndarray, many: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return how long before a resource is free transfers over it may start: flat, and begins."""
    lead = np.concatenate([transfers.lead + nbytes * transfers.drag for nbytes in sizes])
    which = np.tile(resource, len(sizes))
    lead = np.round(lead, 12)
    order = np.lexsort((lead, which))
    which, lead = which[order], lead[order]
    new = np.ones(len(lead), dtype=bool)
    new[1:] = (np.diff(which) != 0) | (np.diff(lead) != 0)
    return lead[new], np.searchsorted(which[new], np.arange(many + 1))


def _limits(task: Task) -> tuple[np.ndarray, ...]:
    """Return the shared limits that bind, by resource and by limit."""
    topology = task.transfers.topology
    caps: list[list[int]] = [[] for _ in task.free]
    under: list[list[int]] = []
    capacity: list[float] = []
    for limit in binding_limits(topology):
        under.append(task.resource[numbers(topology, limit)].tolist())
        for resource in under[-1]:
            caps[resource].append(len(capacity))
        capacity.append(1e3 * limit.bandwidth)
    return (*_flat(caps), np.array(capacity, dtype=float), *_flat(under))


def _flat(lists: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    first = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    return np.array([each for some in lists for each in some], dtype=np.int64), first


Deciding = tuple[float, float, float, float]
"""Slack, tail, few and many of `formulations.engines.kernels.dispatch.Weights`."""

FIXED: tuple[Deciding, ...] = (
    (0.0, 1.0, 0.1, 0.0),
    (0.0, 1.0, 0.0, 0.1),
    (0.3, 1.0, 0.1, 0.0),
    (1.0, 1.0, 0.1, 0.0),
    (1.0, 0.0, 1.0, 0.0),
    (3.0, 1.0, 0.1, 0.0),
    (0.0, 0.0, 1.0, 0.0),
    (10.0, 1.0, 0.1, 0.0),
)
"""Weights of the first passes."""

WIDE = 100
"""Destinations of a chunk above which transfers are judged by the nearest alone."""

CHOOSY = 0.25
"""Share of passes that look for the best transfer instead of any; they take longer."""


def passes(
    task: Task,
    *,
    seed: int = 0,
    most: int,
    goal: float,
    limit: float = np.inf,
    steps: float = np.inf,
    over: Callable[[], bool],
    left: Callable[[], float] = lambda: np.inf,
    first: Callable[[], float] = lambda: np.inf,
) -> Iterator[tuple[TimedTransfers, float]]:
    """Run passes and yield each plan that is better than those before, with its makespan in µs.

    Parameters
    ----------
    task
        What to do.
    seed
        Of the random numbers.
    most
        Passes at most.
    goal
        Lower bound on the makespan in µs; a plan that meets it ends the search.
    limit
        µs of a plan that is known; worse ones are given up.
    steps
        Work of all passes together (`Weights.steps`), where a plan is known.
    over
        Whether time is up; the first pass is run in any case.
    left, first
        Seconds after which a pass is broken off, and one where no plan is known.
    """
    chance = np.random.default_rng(seed)
    net = net_of(task)
    sizes, kind = np.unique(task.nbytes, return_inverse=True)
    work = Work(task.nbytes, kind.ravel(), task.rank, task.there, task.wants, task.free)
    scale = task.transfers.scale(sizes)
    best, good = limit, FIXED[0]
    spent = 0.0
    with stopping(left) as late, stopping(first) as lost:
        for turn in range(most):
            if (turn and over()) or spent >= steps:
                return
            now, part = _deciding(turn, good, chance)
            many, stop = (steps - spent, late) if best < np.inf else (np.inf, lost)
            limits = best, many, scale
            weights = _weights(task, now, chance=chance, part=part, limit=limits, stop=stop)
            state = begin(net, work)
            makespan = dispatch(net, work, weights, state)
            spent += float(state.tally[4])
            if makespan < best * (1 - 1e-9):
                best, good = makespan, now
                yield _needed(task, TimedTransfers.of(state)), makespan
                if best <= goal * (1 + 1e-9):
                    return


def _weights(
    task: Task,
    now: Deciding,
    *,
    chance: np.random.Generator,
    part: float,
    limit: tuple[float, float, float],
    stop: np.ndarray,
) -> Weights:
    """Return how a pass decides; its limits are µs, steps, and the µs of a long hop."""
    return Weights(
        slack=now[0],
        tail=now[1],
        few=now[2],
        many=now[3],
        chance=part,
        choosy=bool(chance.random() < CHOOSY),
        narrow=int(task.wants.sum(axis=1).max()) > WIDE,
        of_chunk=chance.random(len(task.nbytes)),
        of_transfer=chance.random(len(task.transfers)),
        limit=limit[0],
        steps=limit[1],
        scale=limit[2],
        stop=stop,
    )


def _deciding(turn: int, good: Deciding, chance: np.random.Generator) -> tuple[Deciding, float]:
    """Return the weights of a pass and how much chance counts in it."""
    if turn < len(FIXED):
        return FIXED[turn], 0.0
    part = float(chance.choice([0.01, 0.1, 0.5, 2.0]))
    # Now and then others than those that gave the best plan so far.
    return (FIXED[chance.integers(len(FIXED))] if chance.random() < 0.3 else good), part


def _needed(task: Task, plan: TimedTransfers) -> TimedTransfers:
    """Leave out what brought a chunk to where nobody used it."""
    transfers, stored = task.transfers, np.zeros(len(plan), dtype=bool)
    used = task.wants.copy()
    src, dst = transfers.src[plan.transfer].tolist(), transfers.dst[plan.transfer].tolist()
    for place in range(len(plan) - 1, -1, -1):
        chunk = plan.chunk[place]
        if used[chunk, dst[place]]:
            stored[place] = used[chunk, src[place]] = True
    return plan if stored.all() else plan.chosen(np.flatnonzero(stored))


@dataclass(frozen=True)
class Quotient:
    """A task for representatives, and what lifts its plans.

    Parameters
    ----------
    task
        The task; its transfers are some of the full one's.
    chunks
        Image of each representative under each element, shape (order, representatives).
    full
        The transfers of the full task.
    links
        Image of each link under each element, shape (order, links).
    """

    task: Task
    chunks: np.ndarray
    full: Transfers
    links: np.ndarray

    def lifted(self, timed: TimedTransfers) -> TimedTransfers:
        """Return all images of a plan of the representatives."""
        order = len(self.chunks)
        used, which = np.unique(timed.transfer, return_inverse=True)
        images = _images(self.full, self.links, _chosen(self.task.transfers, used))
        many = int(timed.group.max(initial=0)) + 1
        return TimedTransfers(
            images[:, which.ravel()].ravel(),
            self.chunks[:, timed.chunk].ravel(),
            np.tile(timed.start, order),
            (timed.group + many * np.arange(order)[:, None]).ravel(),
        )


def quotient(
    part: Callable[[np.ndarray], Task], symmetry: Symmetry, turned: np.ndarray
) -> Quotient | None:
    """Reduce a task; None if transfers that are left out may be needed.

    Parameters
    ----------
    part
        Returns the task for some chunks. Limits do not bind in it, all links are resources of
        their own, and what is where at the beginning looks the same after each element.
    symmetry
        Acts on its topology.
    turned
        Image of each chunk under each generator, shape (generators, chunks).
    """
    if symmetry.order < 2:
        return None
    representatives = symmetry.representatives(turned)
    images = symmetry.images(turned, representatives)
    if (images[1:] == representatives).any():
        return None
    links, task = symmetry.links, part(representatives)
    fixed = (links[1:] == np.arange(links.shape[1])).any(axis=0)
    names = symmetry.orbits(links)
    orbit = np.searchsorted(np.unique(names), names)
    stored = np.flatnonzero(~_unfit(task, orbit, fixed))
    if not len(stored):
        return None
    free = np.zeros(int(orbit.max()) + 1)
    np.maximum.at(free, orbit, task.free)
    reduced = replace(task, transfers=_chosen(task.transfers, stored), resource=orbit, free=free)
    return Quotient(reduced, images, task.transfers, links)


def _unfit(task: Task, orbit: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """Return whether each transfer crosses a fixed link, or an orbit twice at once."""
    transfers = task.transfers
    unfit = np.zeros(len(transfers), dtype=bool)
    np.logical_or.at(unfit, transfers.of_link, fixed[transfers.link])
    crossed = orbit[transfers.link]
    nbytes = float(task.nbytes.max())
    lead = transfers.lead + nbytes * transfers.drag
    for step in range(1, int(np.diff(transfers.first).max(initial=1))):
        same = transfers.of_link[:-step] == transfers.of_link[step:]
        twice = same & (crossed[:-step] == crossed[step:])
        apart = np.abs(lead[step:] - lead[:-step])
        clash = twice & (apart < nbytes * transfers.beta[step:])
        unfit[transfers.of_link[:-step][clash]] = True
    return unfit


def _chosen(transfers: Transfers, stored: np.ndarray) -> Transfers:
    """Return some of the transfers."""
    crossed = np.diff(transfers.first)[stored]
    first = np.concatenate([[0], np.cumsum(crossed)])
    place = np.repeat(transfers.first[stored] - first[:-1], crossed) + np.arange(first[-1])
    return replace(
        transfers,
        routes=tuple(transfers.routes[number] for number in stored.tolist()),
        src=transfers.src[stored],
        dst=transfers.dst[stored],
        first=first,
        link=transfers.link[place],
        beta=transfers.beta[place],
        lead=transfers.lead[place],
        drag=transfers.drag[place],
        parts=transfers.parts[place],
        latency=transfers.latency[stored],
        slowest=transfers.slowest[stored],
    )


def _images(transfers: Transfers, links: np.ndarray, part: Transfers) -> np.ndarray:
    """Return the image of some transfers under each element among all, shape (order, part)."""
    chance = np.random.default_rng(0)
    code: np.ndarray = chance.integers(1, 1 << 62, size=(links.shape[1],), dtype=np.int64)
    # A path is known by its links whatever their order, as no two paths have the same ones.
    names = _sums(code[transfers.link], transfers.first)
    order = np.argsort(names)
    known = names[order]
    images = np.empty((len(links), len(part)), dtype=np.int64)
    for element, mapped in enumerate(links):
        found = _sums(code[mapped[part.link]], part.first)
        images[element] = order[np.searchsorted(known, found)]
    return images


def _sums(values: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Add up the values of each transfer."""
    total: np.ndarray = np.concatenate([[0], np.cumsum(values)])
    return np.asarray(total[first[1:]] - total[first[:-1]])
