"""What TACCL routes: chunks on a logical topology, the pairs of both, and their symmetry.

`Logical` is the logical topology: the transfers between devices that store which a sketch leaves
(section 3). A transfer is a path from one device that stores to another; where it crosses switches
it is one edge of a switch's hyper-edge, and the physical links that it shares with other transfers
are its ports.

`Part` has the chunks, neighbours of a shard joined (section 5.2). A sum to one rank is the time
reversal of a spreading: its paths are found from the rank that adds up to those that contribute, on
transfers taken from end to beginning, and turned back when they are ordered (section 4.3).

`Pairs` are of chunks and transfers. A chunk goes only over devices on some shortest path from a
holder to a destination (section 4.1), shortest by links' costs or by the number of transfers: each
is allowed, as the paper leaves open which is meant. Of pairs that a symmetry exchanges one stands
for all: they are one variable.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from ccl.collective import Chunk, Collective
from ccl.errors import Infeasible, ProblemError, SolveError
from ccl.serialization.sketches import Sketch
from formulations.core.refusals import host_numbers
from formulations.engines.epoch_grid.arcs import distances
from formulations.engines.list_scheduling.timed import Transfers
from formulations.engines.orbit_lp.group import joined_orbits
from formulations.engines.reverse_time import Half, halves


@dataclass(frozen=True)
class Logical:
    """Transfers as arrays; n transfers. Devices and links are numbered as in the topology.

    Parameters
    ----------
    transfers
        All transfers of the topology.
    chosen
        Numbers of those that the sketch leaves, shape (n,).
    turned
        Whether every transfer is taken from its end to its beginning, as for sums.
    relays
        Names of the relays of each GPU that has any.
    """

    transfers: Transfers
    chosen: np.ndarray
    turned: bool
    relays: dict[str, frozenset[str]]

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def devices(self) -> int:
        """Number of devices."""
        return len(self.transfers.topology.devices)

    @cached_property
    def src(self) -> np.ndarray:
        """Device where each transfer begins, shape (n,)."""
        ends = self.transfers.dst if self.turned else self.transfers.src
        return np.asarray(ends[self.chosen])

    @cached_property
    def dst(self) -> np.ndarray:
        """Device where each transfer ends, shape (n,)."""
        ends = self.transfers.src if self.turned else self.transfers.dst
        return np.asarray(ends[self.chosen])

    @cached_property
    def latency(self) -> np.ndarray:
        """Sum of alphas in µs, shape (n,)."""
        return np.asarray(self.transfers.latency[self.chosen])

    @cached_property
    def slowest(self) -> np.ndarray:
        """µs per byte of the slowest link, shape (n,)."""
        return np.asarray(self.transfers.slowest[self.chosen])

    @cached_property
    def beta(self) -> sparse.csr_array:
        """µs per byte for which each transfer holds each link, shape (links, n)."""
        transfers = self.transfers
        column = np.full(len(transfers), -1)
        column[self.chosen] = np.arange(len(self.chosen))
        used = column[transfers.of_link] >= 0
        shape = (len(transfers.topology.links), len(self.chosen))
        place = (transfers.link[used], column[transfers.of_link[used]])
        return sparse.csr_array((transfers.beta[used], place), shape=shape)

    @cached_property
    def host(self) -> np.ndarray:
        """Number of each device's host, -1 where it has none, shape (devices,)."""
        return host_numbers(self.transfers.topology)

    @cached_property
    def away(self) -> np.ndarray:
        """Whether each transfer leads from a host to another, shape (n,)."""
        return leaves(self.host[self.src], self.host[self.dst])

    @cached_property
    def switched(self) -> np.ndarray:
        """Whether each transfer crosses devices that cannot store, shape (n,)."""
        return np.asarray(np.diff(self.transfers.first)[self.chosen] > 1)

    def delay(self, nbytes: float) -> np.ndarray:
        """Return the µs that each transfer of `nbytes` takes, shape (n,)."""
        return np.asarray(self.latency + nbytes * self.slowest)

    def between(self, src: str, dst: str) -> np.ndarray:
        """Places of the transfers that join a pair of GPUs, in the direction in which they send."""
        index = self.transfers.topology.index
        near, far = (dst, src) if self.turned else (src, dst)
        return np.flatnonzero((self.src == index[near]) & (self.dst == index[far]))


def leaves(src: np.ndarray, dst: np.ndarray) -> np.ndarray:
    """Return whether hosts by number differ; a device without a host is in nobody's."""
    return np.asarray((src != dst) & (src >= 0) & (dst >= 0))


def logical(transfers: Transfers, sketch: Sketch, *, turned: bool = False) -> Logical:
    """Return the transfers that a sketch leaves.

    Raises
    ------
    Infeasible
        If it leaves none.
    """
    topology = transfers.topology
    dropped = [topology.link_index[pair] for pair in sketch.without]
    bad = np.zeros(len(topology.links), dtype=bool)
    bad[dropped] = True
    keep = ~np.logical_or.reduceat(bad[transfers.link], transfers.first[:-1])
    if sketch.between is not None:
        joined = np.zeros((len(topology.devices),) * 2, dtype=bool)
        for src, dst in sketch.between:
            joined[topology.index[src], topology.index[dst]] = True
        host = host_numbers(topology)
        away = leaves(host[transfers.src], host[transfers.dst])
        keep &= ~away | joined[transfers.src, transfers.dst]
    if not keep.any():
        raise Infeasible(
            f"the sketch leaves no path between two GPUs of {topology}; leave out fewer links"
        )
    relays: dict[str, set[str]] = {}
    for gpu, relay in sketch.relays:
        relays.setdefault(gpu, set()).add(relay)
    frozen = {gpu: frozenset(each) for gpu, each in relays.items()}
    return Logical(transfers, np.flatnonzero(keep), turned, frozen)


@dataclass(frozen=True)
class Part:
    """A collective without sums on a logical topology; c parents.

    Parameters
    ----------
    logical
        What can be sent.
    collective
        What has to be, parents in place of their chunks.
    members
        Numbers, in the whole collective, of the chunks of each parent.
    """

    logical: Logical
    collective: Collective
    members: tuple[tuple[int, ...], ...]

    @property
    def turned(self) -> bool:
        """Whether paths lead from the end to the beginning."""
        return self.logical.turned

    @cached_property
    def nbytes(self) -> np.ndarray:
        """Bytes of each parent, shape (c,)."""
        return np.array([chunk.size for chunk in self.collective.chunks], dtype=float)

    @cached_property
    def holds(self) -> np.ndarray:
        """Whether each device has each parent, shape (c, devices)."""
        return self._marked([chunk.holders for chunk in self.collective.chunks])

    @cached_property
    def wants(self) -> np.ndarray:
        """Whether each device needs each parent and lacks it, shape (c, devices)."""
        wanted = self._marked([chunk.destinations for chunk in self.collective.chunks])
        return np.asarray(wanted & ~self.holds)

    def _marked(self, ranks: list[tuple[int, ...]]) -> np.ndarray:
        topology = self.logical.transfers.topology
        place = np.array([topology.index[name] for name in topology.ranks])
        marked = np.zeros((len(ranks), len(topology.devices)), dtype=bool)
        for number, each in enumerate(ranks):
            marked[number, place[list(each)]] = True
        return marked


def parts_of(transfers: Transfers, collective: Collective, sketch: Sketch) -> list[Part]:
    """Return what is routed: the collective, a sum's time reversal, or both halves of one for many.

    Raises
    ------
    ProblemError
        If the sketch has other chunks than there are.
    Infeasible
        If the sketch leaves no path.
    """
    if not collective.reduces:
        whole = Half(collective, tuple(range(len(collective.chunks))))
        return [_part(logical(transfers, sketch), whole, collective, sketch)]
    found = []
    for half in halves(collective):
        if half is not None:
            turned = half.collective.reduces
            spread = half.collective.reversed() if turned else half.collective
            logic = logical(transfers, sketch, turned=turned)
            found.append(_part(logic, Half(spread, half.numbers), collective, sketch))
    return found


def _part(logic: Logical, half: Half, whole: Collective, sketch: Sketch) -> Part:
    chunks, members = [], []
    for alike in _shards(half, whole):
        many = len(alike)
        if sketch.chunks is not None and many != sketch.chunks * sketch.instances:
            raise ProblemError(
                f"the sketch has {sketch.chunks} chunks per shard in {sketch.instances} instances "
                f"and the collective {many}; ask for {sketch.chunks * sketch.instances}"
            )
        for begin in range(0, many, sketch.instances):
            joined = alike[begin : begin + sketch.instances]
            size = sum(half.collective.chunks[each].size for each in joined)
            chunks.append(replace(half.collective.chunks[joined[0]], size=size))
            members.append(tuple(half.numbers[each] for each in joined))
    return Part(logic, replace(half.collective, chunks=tuple(chunks)), tuple(members))


def _shards(half: Half, whole: Collective) -> list[list[int]]:
    """Return the places of the chunks that come from the same ranks and go to the same."""
    found: dict[tuple[object, ...], list[int]] = {}
    for place, (number, chunk) in enumerate(zip(half.numbers, half.collective.chunks, strict=True)):
        found.setdefault((_shard(chunk), _shard(whole.chunks[number])), []).append(place)
    return list(found.values())


def _shard(chunk: Chunk) -> tuple[object, ...]:
    return chunk.holders, chunk.destinations, chunk.priority, chunk.tenant


MOST_PAIRS = 40_000_000
"""Chunks times transfers above which nothing is built."""

SAME = 1e-9
"""Paths within this share of the shortest are as short."""


@dataclass(frozen=True)
class Pairs:
    """Pairs of a chunk and a transfer that it may take; p pairs, by chunk.

    Parameters
    ----------
    part
        What is routed.
    chunk, transfer
        Of each pair, shape (p,).
    early
        µs before which no chunk is at each device, shape (c, devices).
    orbit
        Number of the variable of each pair, shape (p,).
    cells
        Number of the variable of each chunk at each device, shape (c, devices).
    links
        Number of the orbit of each link, shape (links,).
    """

    part: Part
    chunk: np.ndarray
    transfer: np.ndarray
    early: np.ndarray
    orbit: np.ndarray
    cells: np.ndarray
    links: np.ndarray

    def __len__(self) -> int:
        return len(self.chunk)

    @cached_property
    def src(self) -> np.ndarray:
        """Device where each begins, shape (p,)."""
        return np.asarray(self.part.logical.src[self.transfer])

    @cached_property
    def dst(self) -> np.ndarray:
        """Device where each ends, shape (p,)."""
        return np.asarray(self.part.logical.dst[self.transfer])

    @cached_property
    def delay(self) -> np.ndarray:
        """µs that each takes, shape (p,)."""
        logic = self.part.logical
        nbytes = self.part.nbytes[self.chunk]
        return np.asarray(logic.latency[self.transfer] + nbytes * logic.slowest[self.transfer])

    @cached_property
    def first(self) -> np.ndarray:
        """Where the pairs of each chunk begin, shape (c + 1,)."""
        return np.searchsorted(self.chunk, np.arange(len(self.part.nbytes) + 1))

    @cached_property
    def many(self) -> int:
        """Number of variables of pairs."""
        return int(self.orbit.max()) + 1

    @cached_property
    def single(self) -> np.ndarray:
        """One pair of each orbit, the first, shape (many,)."""
        return np.unique(self.orbit, return_index=True)[1]


def pairs_of(part: Part) -> Pairs:
    """List the pairs that shortest paths leave, each a variable of its own.

    Raises
    ------
    Infeasible
        If a destination cannot be reached.
    SolveError
        If there are too many.
    """
    logic, chunks = part.logical, len(part.nbytes)
    if chunks * len(logic) > MOST_PAIRS:
        raise SolveError(
            f"{chunks} chunks over {len(logic)} paths are {chunks * len(logic):,} pairs, more than "
            f"{MOST_PAIRS:,}; leave out paths by a sketch or join chunks by instances"
        )
    chosen, numbers = [], []
    early = np.full(part.holds.shape, np.inf)
    for alike, usable in _classes(part):
        near, allowed = _shortest(part, alike, usable)
        early[alike] = near
        inside = allowed[:, logic.src] & allowed[:, logic.dst]
        inside &= usable & ~part.holds[alike][:, logic.dst]
        row, column = np.nonzero(inside)
        chosen.append(column)
        numbers.append(alike[row])
    chunk, transfer = np.concatenate(numbers), np.concatenate(chosen)
    order = np.lexsort((transfer, chunk))
    cells = np.arange(part.holds.size).reshape(part.holds.shape)
    links = np.arange(len(logic.transfers.topology.links))
    return Pairs(part, chunk[order], transfer[order], early, np.arange(len(chunk)), cells, links)


def _classes(part: Part) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return chunks of one size that may take the same transfers, and which transfers these are."""
    found: dict[tuple[float, bytes], list[int]] = {}
    usable = {}
    for number in range(len(part.nbytes)):
        transfers = _usable(part, number)
        key = float(part.nbytes[number]), transfers.tobytes()
        usable[key] = transfers
        found.setdefault(key, []).append(number)
    return [(np.array(alike), usable[key]) for key, alike in found.items()]


def _usable(part: Part, number: int) -> np.ndarray:
    """Return which transfers the relays leave to a chunk.

    What a GPU has leaves its host from one of its relays. Of a sum, paths lead from the end to the
    beginning: contributions leave a host from a relay of it, or from a GPU that has none.
    """
    logic = part.logical
    usable = np.ones(len(logic), dtype=bool)
    if not logic.relays:
        return usable
    index, topology = logic.transfers.topology.index, logic.transfers.topology
    if logic.turned:
        bound = [name for name in logic.relays if not _is_relay(logic.relays, name)]
        shut = np.isin(logic.dst, [index[name] for name in bound])
        return usable & ~(logic.away & shut)
    holders = [topology.ranks[rank] for rank in part.collective.chunks[number].holders]
    if any(name not in logic.relays for name in holders):
        return usable
    homes = {int(logic.host[index[name]]) for name in holders}
    relays = [index[each] for name in holders for each in logic.relays[name]]
    leaves = logic.away & np.isin(logic.host[logic.src], list(homes))
    return usable & ~(leaves & ~np.isin(logic.src, relays))


def _is_relay(relays: dict[str, frozenset[str]], name: str) -> bool:
    return any(name in each for each in relays.values())


def _shortest(part: Part, alike: np.ndarray, usable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return µs until each chunk can be at each device, and whether a shortest path leads there.

    Both are of shape (len(alike), devices).
    """
    logic, devices = part.logical, part.logical.devices
    holds, wants = part.holds[alike], part.wants[alike]
    cost = logic.delay(float(part.nbytes[alike[0]]))
    allowed = holds.copy()
    near = np.empty(holds.shape)
    for weight in (np.ones(len(logic)), cost):
        far = distances(logic.src, logic.dst, np.where(usable, weight, np.inf), devices)
        for row in range(len(alike)):
            begin = far[holds[row]].min(axis=0)
            ends = np.flatnonzero(wants[row])
            if not np.isfinite(begin[ends]).all():
                _refuse(part, int(alike[row]), int(ends[~np.isfinite(begin[ends])][0]))
            through = begin[:, None] + far[:, ends]
            allowed[row] |= (through <= begin[ends] * (1 + SAME) + SAME * cost.min()).any(axis=1)
            near[row] = begin
    return near, allowed


def _refuse(part: Part, number: int, device: int) -> None:
    topology = part.logical.transfers.topology
    holder = topology.ranks[part.collective.chunks[number].holders[0]]
    ends = (holder, topology.devices[device].name)
    src, dst = ends[::-1] if part.turned else ends
    raise Infeasible(
        f"the sketch leaves no path from {src} to {dst}; leave out fewer links or add a pair"
    )


def symmetric_pairs(
    pairs: Pairs, images: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]
) -> Pairs | None:
    """Return pairs of which those that symmetries exchange are one variable.

    Parameters
    ----------
    pairs
        Each a variable of its own.
    images
        Of each symmetry the image of every chunk, transfer, device and link.

    Returns
    -------
        None if a pair's image is not a pair.
    """
    width = len(pairs.part.logical)
    key = pairs.chunk * width + pairs.transfer
    edges, cells, links = [], [], []
    for chunks, transfers, devices, link in images:
        image = chunks[pairs.chunk] * width + transfers[pairs.transfer]
        place = np.searchsorted(key, image)
        if (place >= len(key)).any() or (key[np.minimum(place, len(key) - 1)] != image).any():
            return None
        edges.append(place)
        cells.append(pairs.cells[chunks][:, devices].ravel())
        links.append(link)
    return replace(
        pairs,
        orbit=joined_orbits(edges, len(key)).astype(np.int64),
        cells=joined_orbits(cells, pairs.cells.size).astype(np.int64).reshape(pairs.cells.shape),
        links=joined_orbits(links, len(pairs.links)).astype(np.int64),
    )
