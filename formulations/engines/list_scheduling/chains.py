"""Stages of an all-reduce: sums of ever larger groups, exchanged, added up at owners, or spread.

At first every rank has the sum of a group of one: its own part. Groups of each stage are made of
those of the stage before. The devices that go on with the sum of a group are its holders.

* An exchange gives all holders of the groups within a larger group all their sums, each from the
  device that is quickest to send it, relayed where need be. Holders add them up themselves.
* Adding up brings the sums of the groups within a larger group along a tree to one of their
  holders, its owner. Pieces of the vector take their owners by turns.
* Spreading gives the sum of all to everyone.

Every stage is a task of list scheduling that goes on with the sums and the links that stages before
leave; adding up is planned backwards in time. On networks of very many paths sums go only along the
rows of a grid of ranks, if they can. What all stages send waits only for what it carries,
and names it (`ccl.plans.Send.terms`), and passes forwards and backwards put it into a better order
(`formulations.engines.list_scheduling.reordering`). There pieces may be cut further: their copies
take the same paths.

Where switches join devices by many paths, sums take the shortest: passes last as long as there are
paths, and a longer one holds more links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ccl.errors import Infeasible
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.topology import Topology
from formulations.engines.epoch_grid.relay_paths import no_path, shortest_relay_paths
from formulations.engines.list_scheduling.multistart import Task, passes
from formulations.engines.list_scheduling.reordering import PATIENCE, Passes
from formulations.engines.list_scheduling.timed import (
    TimedTransfers,
    Transfers,
    backwards,
    ends,
    in_epochs,
    reverse_transfers,
    transfers_along,
    transfers_of,
)

Group = frozenset[int]
"""Ranks."""

MANY_TRANSFERS, MANY_SENDS = 50_000, 50_000
"""Transfers of a network above which a stage takes only those along its rows, and sends of a plan
above which passes end as soon as they gain nothing."""

MANY_PATHS, FEW_PATHS = 8, 2
"""Paths from a device to another, on average, above which only so many shortest are taken."""


@dataclass(frozen=True)
class Chain:
    """Stages of a piece of the vector.

    Parameters
    ----------
    word
        A letter for each stage: h adds up, x exchanges, s spreads. No h is behind an x, and only
        the last letter is s; without one the last exchange is among everyone.
    levels
        The groups after each stage but s; in the last one is everyone.
    rows
        Ranks that a stage brings together, one of each group before it, for each stage but s: each
        shape (rows, ranks of a row).
    """

    word: str
    levels: tuple[tuple[Group, ...], ...]
    rows: tuple[np.ndarray, ...]


class Held(NamedTuple):
    """When a sum is at a device, in µs, and the numbers of the sends that have brought it."""

    when: float
    sends: tuple[int, ...]


class Merged(NamedTuple):
    """Groups of a piece that become one, and the devices that hold their sums."""

    piece: int
    group: Group
    parts: list[Group]
    members: list[int]


class Sending(NamedTuple):
    """A transfer of list scheduling: row of its task, number, ends as devices, and µs."""

    row: int
    transfer: int
    src: int
    dst: int
    start: float
    end: float


def _transfers(topology: Topology) -> Transfers:
    """Return those along all paths, or along the shortest where there are many."""
    every = transfers_of(topology, fewer=True)
    pairs = sum(each.stores for each in topology.devices) ** 2
    if len(every) <= MANY_PATHS * pairs:
        return every
    return transfers_along(topology, shortest_relay_paths(topology, FEW_PATHS))


class Network:
    """Transfers of a topology, there and backwards in time.

    Parameters
    ----------
    topology
        All its devices that store add up.
    most
        Passes of list scheduling for a stage.
    over
        Whether time is up; the first pass of a stage is run in any case.
    """

    def __init__(self, topology: Topology, *, most: int, over: Callable[[], bool]) -> None:
        self.topology, self.most, self.over = topology, most, over
        self.transfers = _transfers(topology)
        self.back = reverse_transfers(_transfers(topology.reversed()))
        self.places = [topology.index[name] for name in topology.ranks]

    def joined(self, rows: Iterable[np.ndarray]) -> np.ndarray | None:
        """Return which devices a stage may join along rows of ranks, None for all.

        Shape (devices, devices). What is no rank may be joined with everything.
        """
        if len(self.transfers) <= MANY_TRANSFERS:
            return None
        found = np.ones((len(self.topology.devices),) * 2, dtype=bool)
        places = np.array(self.places)
        found[np.ix_(places, places)] = False
        for each in rows:
            found[places[each][:, :, None], places[each][:, None, :]] = True
        return found

    def searched(
        self,
        transfers: Transfers,
        values: tuple[np.ndarray, np.ndarray, np.ndarray],
        *,
        free: np.ndarray,
        joined: np.ndarray | None,
    ) -> TimedTransfers:
        """Return the best plan of list scheduling.

        Parameters
        ----------
        transfers
            There, or backwards.
        values
            Bytes, times and wants as in `multistart.Task`.
        free
            From when on each link is free, in µs, shape (links,).
        joined
            Ends of the transfers to be tried before all others, as `joined` returns them.

        Raises
        ------
        Infeasible
            If no path leads to a device.
        """
        nbytes, there, wants = values
        numbers, some = np.arange(len(transfers)), transfers
        if joined is not None:
            numbers = np.flatnonzero(joined[transfers.src, transfers.dst])
            some = transfers.chosen(numbers)
        links, rank = np.arange(len(free)), np.ones(len(nbytes))
        task = Task(some, nbytes, there, wants, free=free.copy(), resource=links, rank=rank)
        found = [plan for plan, _ in passes(task, most=self.most, goal=0.0, over=self.over)]
        if found:
            return replace(found[-1], transfer=numbers[found[-1].transfer])
        if joined is not None:
            return self.searched(transfers, values, free=free, joined=None)
        raise Infeasible(no_path(self.topology.ranks[-1]))


class Stages:
    """Sums on their way; what all stages send.

    Parameters
    ----------
    network
        Where they go.
    chains
        What pieces go through, by turns; of all the same word.
    sizes
        Bytes of each piece, shape (pieces,).
    """

    def __init__(self, network: Network, chains: Sequence[Chain], sizes: np.ndarray) -> None:
        self._network, self._chains, self._sizes = network, chains, sizes
        self._sent: list[tuple[int, int, float]] = []
        self._terms: list[Group] = []
        self._waits: list[tuple[int, int]] = []
        self._free = np.zeros(len(network.topology.links))
        self._turn = [piece // len(chains) for piece in range(len(sizes))]
        alone = [frozenset({rank}) for rank in range(len(network.places))]
        self._holders: list[dict[Group, list[int]]] = [
            {group: [place] for group, place in zip(alone, network.places, strict=True)}
            for _ in sizes
        ]
        self._there = {
            (piece, group): {place: Held(0.0, ())}
            for piece, holders in enumerate(self._holders)
            for group, (place,) in holders.items()
        }
        word = chains[0].word
        for stage, letter in enumerate(word):
            last = stage == len(word) - 1
            # What comes to everyone at the end goes back along all dimensions.
            stages = slice(None) if last else slice(stage, stage + 1)
            self._joined = network.joined(row for each in chains for row in each.rows[stages])
            if letter == "h":
                self._add_up(self._merged(stage))
            elif letter == "x":
                self._exchange(self._merged(stage), everyone=last)
            else:
                self._spread()

    def __len__(self) -> int:
        return len(self._sent)

    def _merged(self, stage: int) -> list[Merged]:
        """Return which groups become one, and begin with no holders of theirs."""
        found = []
        for piece, holders in enumerate(self._holders):
            for group in self._chains[piece % len(self._chains)].levels[stage]:
                parts = [part for part in holders if part <= group]
                members = dict.fromkeys(place for part in parts for place in holders[part])
                found.append(Merged(piece, group, parts, list(members)))
        self._holders = [{} for _ in self._holders]
        return found

    def _exchange(self, merged: Iterable[Merged], *, everyone: bool) -> None:
        """Let members have all sums of the parts; or everyone."""
        to = [(each, self._network.places if everyone else each.members) for each in merged]
        self._send({(each.piece, part): goal for each, goal in to for part in each.parts})
        for (piece, group, parts, _), goal in to:
            self._holders[piece][group] = goal
            self._there[piece, group] = {
                place: _united(self._there[piece, part][place] for part in parts) for place in goal
            }

    def _spread(self) -> None:
        """Send the sum of all to everyone."""
        every = enumerate(self._holders)
        self._send({(k, group): self._network.places for k, each in every for group in each})

    def _send(self, wanted: dict[tuple[int, Group], list[int]]) -> None:
        """Send sums from where they are to where they are wanted."""
        network, values = self._network, list(wanted)
        shape = len(values), len(network.topology.devices)
        there, wants = np.full(shape, np.inf), np.zeros(shape, dtype=bool)
        for row, value in enumerate(values):
            known = self._there[value]
            wants[row, wanted[value]] = True
            wants[row, list(known)] = False
            there[row, list(known)] = [held.when for held in known.values()]
        if not wants.any():
            return
        nbytes = self._sizes[[piece for piece, _ in values]]
        task = nbytes, there, wants
        plan = network.searched(network.transfers, task, free=self._free, joined=self._joined)
        for each in _sendings(network.transfers, plan, nbytes):
            value = values[each.row]
            sent = self._noted(each, *value, after=self._there[value][each.src].sends)
            self._there[value][each.dst] = Held(each.end, (sent,))

    def _add_up(self, merged: list[Merged]) -> None:
        """Bring sums to owners: backwards in time, owners send to all members."""
        network, begin = self._network, self._last
        shape = len(merged), len(network.topology.devices)
        there, wants = np.full(shape, np.inf), np.zeros(shape, dtype=bool)
        owners = [each.members[self._turn[each.piece] % len(each.members)] for each in merged]
        carried: dict[tuple[int, int], tuple[Held, Group]] = {}
        for row, (each, owner) in enumerate(zip(merged, owners, strict=True)):
            wants[row, each.members] = True
            wants[row, owner], there[row, owner] = False, 0.0
            for place, part in zip(each.members, each.parts, strict=True):
                carried[row, place] = self._there[each.piece, part][place], part
        nbytes = self._sizes[[each.piece for each in merged]]
        task = nbytes, there, wants
        plan = network.searched(network.back, task, free=0 * self._free, joined=self._joined)
        plan, _ = backwards(network.transfers, network.back, plan, nbytes)
        for sending in _sendings(network.transfers, plan, nbytes, begin=begin):
            row, dst = sending.row, sending.dst
            held, terms = carried[row, sending.src]
            sent = self._noted(sending, merged[row].piece, terms, after=held.sends)
            here, own = carried.get((row, dst), (Held(0.0, ()), frozenset()))
            carried[row, dst] = _united([here, Held(sending.end, (sent,))]), own | terms
        for row, (each, owner) in enumerate(zip(merged, owners, strict=True)):
            self._holders[each.piece][each.group] = [owner]
            self._there[each.piece, each.group] = {owner: carried[row, owner][0]}
        sides = len(merged[0].members)
        self._turn = [turn // sides for turn in self._turn]

    @property
    def _last(self) -> float:
        """When all that has been sent is there, in µs."""
        return max(held.when for places in self._there.values() for held in places.values())

    def _noted(self, each: Sending, piece: int, terms: Group, *, after: Iterable[int]) -> int:
        """Note what is sent, and until when it holds links; return its number."""
        number, transfers = len(self._sent), self._network.transfers
        self._sent.append((each.transfer, piece, each.start))
        self._terms.append(terms)
        self._waits += [(before, number) for before in after]
        span = slice(*transfers.first[each.transfer : each.transfer + 2])
        link, held = transfers.link[span], transfers.drag[span] + transfers.beta[span]
        gone = each.start + transfers.lead[span] + self._sizes[piece] * held
        self._free[link] = np.maximum(self._free[link], gone)
        return number

    def ordered(self, *, copies: int, goal: float) -> Ordered:
        """Return what is sent in the best order that passes find.

        Parameters
        ----------
        copies
            Of each piece, which share its bytes and take its paths.
        goal
            Bound in µs.
        """
        transfers, sizes = self._network.transfers, np.tile(self._sizes / copies, copies)
        transfer, chunk, start = map(np.array, zip(*self._sent, strict=True))
        copy = np.repeat(np.arange(copies), len(self))
        transfer, chunk = (
            np.tile(transfer, copies),
            np.tile(chunk, copies) + copy * len(self._sizes),
        )
        waits = np.array(self._waits, dtype=np.int64).reshape(-1, 2)
        waits = waits + len(self) * np.arange(copies)[:, None, None]
        before, after = waits.reshape(-1, 2).T
        passes = Passes(transfers, transfer, sizes[chunk], before, after)
        first = passes.forward(np.tile(start, copies) + copy * self._last / copies)
        patience = PATIENCE if len(transfer) <= MANY_SENDS else 1
        start, stop = passes.improved(first, goal=goal, over=self._network.over, patience=patience)
        timed = TimedTransfers(transfer, chunk, start, np.arange(len(transfer)))
        return Ordered(float(stop.max()), transfers, timed, (before, after), self._terms * copies)


@dataclass(frozen=True)
class Ordered:
    """What stages send, in an order.

    Parameters
    ----------
    makespan
        µs.
    transfers, timed
        What is sent when.
    waits
        Pairs of places in `timed` of which the second waits for the first.
    terms
        Ranks whose parts each carries.
    """

    makespan: float
    transfers: Transfers
    timed: TimedTransfers
    waits: tuple[np.ndarray, np.ndarray]
    terms: Sequence[Group]

    def schedule(self, problem: Problem) -> Schedule:
        """Return the schedule; the chunks of the problem are the pieces."""
        return in_epochs(problem, self.transfers, self.timed, waits=self.waits, terms=self.terms)


def _united(parts: Iterable[Held]) -> Held:
    """Return when all parts of a sum are there, and what has brought them."""
    every = list(parts)
    sends = dict.fromkeys(number for held in every for number in held.sends)
    return Held(max(held.when for held in every), tuple(sends))


def _sendings(
    transfers: Transfers, plan: TimedTransfers, nbytes: np.ndarray, *, begin: float = 0.0
) -> Iterator[Sending]:
    """Yield what a plan sends, in the order of its starts, so much later in µs."""
    order = np.argsort(plan.start, kind="stable")
    stop, transfer = ends(transfers, plan, nbytes)[order] + begin, plan.transfer[order]
    columns = (
        plan.chunk[order],
        *(transfer, transfers.src[transfer], transfers.dst[transfer]),
        *(plan.start[order] + begin, stop),
    )
    yield from map(Sending._make, zip(*(each.tolist() for each in columns), strict=True))
