"""Time-expanded arcs: hops of chunks in an epoch, over a link or a hyper-edge, and capacities.

With ``links`` as hops, switches are devices of the model, as in section 3.1 of TE-CCL. With
hyper-edges (its appendix C) the devices that cannot store vanish: a hop is a whole path between
two devices that store, crossed without stopping, and every link of the path is held. The paper
lets a GPU use one hyper-edge of a switch at a time in each direction, and a switch as many as it
has ports; holding the links of the path, one hop at a time each, says both.

How long a send takes over a link that has less bandwidth at times depends on its epoch (`slowed`).
It takes the fewest epochs, from those that it needs at full bandwidth on, of which each can carry
an equal part of the chunk (`ccl.plans`). Each number of epochs that occurs makes a hop of its own,
open in the epochs for which it is the right one; where a link lets nothing through for ever, none
is. In every epoch the parts of all sends must fit into the link's share:

    sum over c, hops e of link l of f[k', e, c] / occupancy[e] over the epochs k' whose sends are
    still on the link in epoch k <= share[k, l] * bandwidth[l] * tau / chunk

`capacity_rows` and `limit_rows` are what sends take of links and of shared limits, as sparse rows
over any list of sends. The sends may be variables or constants: a caller splits the columns as it
likes. Source: TE-CCL (SIGCOMM 2024), section 3.1 and appendix F, as
`formulations.engines.epoch_grid.epochs` reads it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from ccl.topology import Topology
from formulations.engines.epoch_grid.epochs import ROUNDING, EpochGrid
from formulations.engines.epoch_grid.relay_paths import relay_paths


@dataclass(frozen=True)
class Arcs:
    """Hops as arrays; `n` hops, `links` rows of capacity.

    Parameters
    ----------
    grid
        The epochs.
    routes
        Device names along each hop, two or more.
    src, dst
        Positions of the devices at its ends, shape (n,).
    delay
        Epochs after which the chunk can be sent on, shape (n,).
    occupancy
        Epochs for which it holds its links, shape (n,).
    begin
        Epochs after its own from which on it holds them, shape (n,): 0, unless the grid is
        time-reversed.
    uses
        Which hop holds which link, sparse 0/1 of shape (links, n).
    capacity
        Chunks that may start on each link in that link's occupancy, shape (links,).
    opened
        Whether a send may start over each hop in each epoch, shape (epochs, n); later epochs are
        as the last. None where all are open always.
    """

    grid: EpochGrid
    routes: tuple[tuple[str, ...], ...]
    src: np.ndarray
    dst: np.ndarray
    delay: np.ndarray
    occupancy: np.ndarray
    begin: np.ndarray
    uses: sparse.csr_array
    capacity: np.ndarray
    opened: np.ndarray | None = None

    def chosen(self, which: list[int]) -> Arcs:
        """Return some of the hops, each as often as it is named."""
        return replace(
            self,
            routes=tuple(self.routes[hop] for hop in which),
            src=self.src[which],
            dst=self.dst[which],
            delay=self.delay[which],
            occupancy=self.occupancy[which],
            begin=self.begin[which],
            uses=self.uses[:, which],
        )

    def open_in(self, epochs: int) -> np.ndarray:
        """Return whether a send may start over each hop in each epoch, shape (epochs, n)."""
        if self.opened is None:
            return np.ones((epochs, len(self.routes)), dtype=bool)
        return np.asarray(self.opened[np.minimum(np.arange(epochs), len(self.opened) - 1)])

    @property
    def topology(self) -> Topology:
        """The topology of the grid."""
        return self.grid.topology

    @cached_property
    def distance(self) -> np.ndarray:
        """Fewest epochs from device to device, shape (devices, devices); inf if unreachable."""
        return distances(self.src, self.dst, self.delay, len(self.topology.devices))

    @cached_property
    def stores(self) -> np.ndarray:
        """Whether each device stores, shape (devices,)."""
        return np.array([each.stores for each in self.topology.devices], dtype=bool)

    @cached_property
    def copies(self) -> np.ndarray:
        """Whether each device copies, shape (devices,)."""
        return np.array([each.copies for each in self.topology.devices], dtype=bool)

    @cached_property
    def most(self) -> np.ndarray:
        """How often a chunk may be sent over each hop at once, shape (hops,).

        More than once is of use only towards what can neither store nor copy.
        """
        capacity = np.array([min(self.capacity[list(links)]) for links in self.links])
        return np.where(~(self.stores | self.copies)[self.dst], capacity, 1).astype(int)

    @cached_property
    def links(self) -> tuple[tuple[int, ...], ...]:
        """Positions of the links that each hop holds, in order."""
        index = self.topology.link_index
        return tuple(tuple(index[pair] for pair in pairwise(route)) for route in self.routes)

    def carried(self, hop: int) -> list[range]:
        """Return for each link of a hop the epochs after its own over which its bytes count.

        A shared limit lets through in each of them an equal part of the chunk. On the later links
        of a path they begin as many whole epochs later as it takes until their first byte can go,
        and are no fewer than those in which bytes come to them.
        """
        grid, links = self.grid, list(self.links[hop])
        ordered = links[::-1] if grid.reverse_time else links
        if len(links) == 1:
            spans = {links[0]: range(int(self.occupancy[hop]))}
        else:
            spans = {
                link: range(first, first + many)
                for link, (first, many, _) in zip(ordered, stays(grid, ordered), strict=True)
            }
        if not grid.reverse_time:
            return [spans[link] for link in links]
        delay = int(self.delay[hop])
        return [range(delay - spans[each].stop, delay - spans[each].start) for each in links]


def stays(grid: EpochGrid, links: Sequence[int]) -> list[tuple[int, int, float]]:
    """Return from which epoch on and for how many each link of a path carries a chunk.

    With it comes until when it is held, in µs after the chunk has started, latency apart: over
    limited links chunks are spread over whole epochs, for as long at least as bytes come to them;
    another link waits until it can send without a pause.
    """
    tau = grid.epoch_duration
    found: list[tuple[int, int, float]] = []
    late = begin = until = 0.0
    for link in links:
        hold = float(grid.hold[link])
        if not grid.limited[link]:
            begin = max(begin, until - hold)
        first = math.floor((late + begin) / tau + ROUNDING)
        took = max(hold, until - begin)
        many = max(1, math.ceil(took / tau - ROUNDING))
        until = begin + (many * tau if grid.limited[link] else hold)
        found.append((first, many, until))
        late += float(grid.alpha[link])
    return found


def link_arcs(grid: EpochGrid) -> Arcs:
    """Every link is a hop."""
    links = grid.topology.links
    src, dst = grid.topology.ends
    return Arcs(
        grid=grid,
        routes=tuple(link.ends for link in links),
        src=src,
        dst=dst,
        delay=grid.delay,
        occupancy=grid.occupancy,
        begin=(grid.delay - grid.occupancy) * grid.reverse_time,
        uses=sparse.csr_array(sparse.eye_array(len(links))),
        capacity=grid.capacity,
    )


def hyper_edges(grid: EpochGrid) -> Arcs:
    """Every path between two storing devices that crosses only others is a hop."""
    topology, tau = grid.topology, grid.epoch_duration
    routes = tuple(relay_paths(topology))
    index = topology.link_index
    held = [[index[pair] for pair in pairwise(route)] for route in routes]
    hold = np.array([_whole(grid, links) for links in held])
    last = 0 if grid.reverse_time else -1
    lag = np.array([sum(grid.alpha[links]) - grid.alpha[links[last]] for links in held])
    alpha = np.array([sum(grid.alpha[links]) for links in held])
    rows = np.concatenate([np.array(links) for links in held])
    columns = np.repeat(np.arange(len(held)), [len(links) for links in held])
    shape = (len(topology.links), len(routes))
    uses = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
    crossed = np.zeros(len(topology.links), dtype=bool)
    for links in held:
        crossed[links] |= len(links) > 1
    limited = np.array([grid.limited[links].any() for links in held])
    # A later link of the path is held later by the latencies before it, so that two hops of
    # different paths over it need that much more between them.
    occupancy = np.maximum(1, np.ceil((hold + lag) / tau - ROUNDING).astype(int))
    delay = np.where(
        limited,
        occupancy + np.ceil(alpha / tau - ROUNDING).astype(int),
        np.maximum(1, np.ceil((hold + alpha) / tau - ROUNDING).astype(int)),
    )
    position = topology.index
    every = Arcs(
        grid=grid,
        routes=routes,
        src=np.array([position[route[0]] for route in routes]),
        dst=np.array([position[route[-1]] for route in routes]),
        delay=delay,
        occupancy=occupancy,
        begin=(delay - occupancy) * grid.reverse_time,
        uses=uses,
        capacity=np.where(crossed, 1, grid.capacity),
    )
    return _let_through(every) if topology.limits else every


def _whole(grid: EpochGrid, links: list[int]) -> float:
    """Return the µs, latency apart, until a chunk has left the last link of a path."""
    until = stays(grid, links[::-1] if grid.reverse_time else links)[-1][2]
    slowest = float(max(grid.hold[links]))
    epochs = math.ceil(slowest / grid.epoch_duration - ROUNDING)
    alike = until <= epochs * grid.epoch_duration * (1 + ROUNDING)
    # What is left of the last epoch may be used for latency, where all links have the same ones.
    return slowest if alike and grid.limited[links].all() else until


def _let_through(hops: Arcs) -> Arcs:
    """Leave out the paths that cross a shared limit so often that a chunk alone is too much."""
    topology, grid = hops.topology, hops.grid
    most = [
        1e3 * each.bandwidth * grid.epoch_duration / grid.chunk_size * (1 + ROUNDING)
        for each in topology.limits
    ]
    under = [{topology.link_index[ends] for ends in each.links} for each in topology.limits]
    kept = []
    for hop, links in enumerate(hops.links):
        loads: Counter[tuple[int, int]] = Counter()
        for link, epochs in zip(links, hops.carried(hop), strict=True):
            for number, inside in enumerate(under):
                if link in inside:
                    loads.update(dict.fromkeys(((number, k) for k in epochs), 1 / len(epochs)))
        if all(load <= most[number] for (number, _), load in loads.items()):
            kept.append(hop)
    return hops.chosen(kept)


LONGEST = 20_000
"""Most epochs until the last window has ended that are looked at, and most of one send."""


def settled(grid: EpochGrid) -> int:
    """Return the first epoch from which on no window takes bandwidth any more."""
    last = max((window.end for window in grid.windows), default=0.0)
    return math.ceil(last / grid.epoch_duration - ROUNDING)


def slowed(hops: Arcs) -> Arcs:
    """Return the hops over links, those under windows once for every time that they take."""
    grid = hops.grid
    if not grid.windows:
        return hops
    many = settled(grid) + 1
    shares = grid.shares(many + int(grid.occupancy.max()))
    under = {grid.topology.link_index[ends] for each in grid.windows for ends in each.links}
    number: list[int] = []
    occupancy: list[int] = []
    opened: list[np.ndarray] = []
    for hop, (link, *_) in enumerate(hops.links):
        took = np.full(many, int(hops.occupancy[hop]))
        if link in under:
            took = np.array([_epochs(grid, shares[:, link], k, link=link) for k in range(many)])
        for epochs in sorted(set(took.tolist()) - {0}):
            number.append(hop)
            occupancy.append(epochs)
            opened.append(took == epochs)
    kept, taken = hops.chosen(number), np.array(occupancy)
    delay = kept.delay + taken - kept.occupancy
    return replace(kept, delay=delay, occupancy=taken, opened=np.array(opened).T)


def _epochs(grid: EpochGrid, share: np.ndarray, epoch: int, *, link: int) -> int:
    """Count the epochs that a send from `epoch` on takes; 0 where it never gets through."""
    tau, least = grid.epoch_duration, int(grid.occupancy[link])
    capacity = tau / (grid.chunk_size * grid.topology.links[link].beta) * (1 + ROUNDING)
    slowest, count = 1.0, 0
    while True:
        # After the last window the share is 1, so a part that never grows has settled.
        slowest = min(slowest, float(share[epoch + count]) if epoch + count < len(share) else 1.0)
        count += 1
        if slowest <= 0.0 or count > LONGEST:
            return 0
        if count >= least and count * slowest * capacity >= 1.0:
            return count


def distances(src: np.ndarray, dst: np.ndarray, cost: np.ndarray, devices: int) -> np.ndarray:
    """Return the cost of the cheapest path from device to device, shape (devices, devices).

    Infinite where there is none, and on hops of infinite cost nothing goes.
    """
    order = np.argsort(cost, kind="stable")
    order = order[np.isfinite(cost[order])]
    best = order[np.unique(src[order] * devices + dst[order], return_index=True)[1]]
    graph = sparse.csr_array((cost[best], (src[best], dst[best])), shape=(devices, devices))
    return np.asarray(csgraph.dijkstra(graph))


def flattened(first: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the entries of some rows of a ragged table, and the place in `which` of each.

    Parameters
    ----------
    first
        Where each row begins, and the last ends, shape (rows + 1,).
    which
        The rows.
    """
    many = first[which + 1] - first[which]
    of = np.repeat(np.arange(len(which)), many)
    return first[which][of] + np.arange(len(of)) - (np.cumsum(many) - many)[of], of


def rows(row: np.ndarray, column: np.ndarray, shape: tuple[int, int], *, value: Any = 1.0) -> Any:
    """Return a sparse matrix with `value` at each (row, column); entries at one place add up.

    Its type is Any because CVXPY's expressions, which it is multiplied with, are untyped.
    """
    values = np.broadcast_to(np.asarray(value, dtype=float), np.shape(row))
    return sparse.csr_array((values, (row, column)), shape=shape)


def capacity_rows(hops: Arcs, epoch: np.ndarray, hop: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return what each send holds of each link in each epoch, and the capacity of each row.

    Parameters
    ----------
    hops
        What a send may use.
    epoch, hop
        First epoch, from 0, and hop of each send, shape (n,).

    Returns
    -------
    tuple
        A sparse 0/1 matrix of shape (rows, n) and the chunks that each row lets through, shape
        (rows,): ``matrix @ sends <= capacity``.
    """
    which, moment = spans(hops, epoch, hop)
    uses = sparse.csc_array(hops.uses)
    place, spread = flattened(uses.indptr, hop[which])
    link = uses.indices[place]
    width = int(moment.max(initial=0)) + 1
    shape = (uses.shape[0] * width, len(epoch))
    return rows(link * width + moment[spread], which[spread], shape), np.repeat(
        hops.capacity, width
    )


def spans(hops: Arcs, epoch: np.ndarray, hop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return every (send, epoch) such that the send holds its links in the epoch."""
    many = hops.occupancy[hop]
    which = np.repeat(np.arange(len(many)), many)
    first = np.repeat(np.cumsum(many) - many, many)
    return which, (epoch + hops.begin[hop])[which] + np.arange(len(which)) - first


def limit_rows(
    hops: Arcs, epoch: np.ndarray, hop: np.ndarray, *, width: int | None = None
) -> list[tuple[Any, np.ndarray]]:
    """Return for each shared limit what each send takes of it in each epoch, and how much there is.

    Parameters
    ----------
    hops
        What a send may use.
    epoch, hop
        First epoch, from 0, and hop of each send, shape (n,).
    width
        Epochs that have rows; if not given, all in which a send could still be in flight.

    Returns
    -------
    list
        Per limit, a sparse matrix of shape (epochs, n) in chunks and the chunks that the limit
        lets through in each epoch, shape (epochs,): ``matrix @ sends <= most``.
    """
    topology, grid = hops.topology, hops.grid
    if width is None:
        width = int(epoch.max(initial=0)) + int(hops.delay.max(initial=0)) + 1
    found = []
    for limit in topology.limits:
        shares = _shares(hops, {topology.link_index[ends] for ends in limit.links})
        which = np.repeat(np.arange(len(epoch)), np.array([len(each) for each in shares])[hop])
        if which.size:
            later, share = np.concatenate([shares[each] for each in hop.tolist()]).T
            moment = epoch[which] + later.astype(int)
            most = 1e3 * limit.bandwidth * grid.epoch_duration / grid.chunk_size
            matrix = rows(moment, which, (width, len(epoch)), value=share)
            found.append((matrix, np.full(width, most * (1 + ROUNDING))))
    return found


def _shares(hops: Arcs, under: set[int]) -> list[np.ndarray]:
    """Return (epochs after its own, share of a chunk) of each hop over links under a limit."""
    return [
        np.array(
            [
                (later, 1 / len(epochs))
                for link, epochs in zip(links, hops.carried(hop), strict=True)
                if link in under
                for later in epochs
            ]
        ).reshape(-1, 2)
        for hop, links in enumerate(hops.links)
    ]
