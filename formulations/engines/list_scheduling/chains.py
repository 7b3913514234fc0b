"""Chains of stages for an all-reduce: sums of ever larger groups, exchanged, added up, spread.

A chain is a word of stages, and each but the last spreading has a partition of the ranks into
groups, nested in one another and at the end one of everyone. At first every rank has the sum of a
group of one. Who has the sum of a group are its holders.

* h adds up, by trees, the sums of the groups within each larger group at one rank, its owner. The
  pieces of the vector have different owners.
* x lets the holders of the groups within each larger group exchange their sums: every one of them
  gets all sums, from whichever holder is quickest, relayed where need be, and adds up itself.
* s spreads the sum of all from its holders to everyone. Without it the last exchange does.

So x is latency α and the whole vector from each group to all others; h and s together are twice α
and a share of the vector for each member. Words of x alone are one-shot and recursive doubling, h
and s alone are reduce-scatter and all-gather.

Each stage is a task of list scheduling (`formulations.engines.list_scheduling.multistart`) that
goes on with the sums and the free links that those before leave. What all stages send then waits
only for what it carries, and passes forwards and backwards put it into a better order
(`formulations.engines.list_scheduling.reordering`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.topology import Topology
from formulations.engines.list_scheduling.multistart import Task, passes
from formulations.engines.list_scheduling.reordering import Passes
from formulations.engines.list_scheduling.timed import (
    TimedTransfers,
    backwards,
    ends,
    in_epochs,
    reverse_transfers,
    transfers_of,
)

Group = frozenset[int]
"""Ranks."""

Value = tuple[int, Group]
"""The sum of a group, of one piece of the vector."""


@dataclass(frozen=True)
class Chain:
    """Stages that a piece of the vector goes through.

    Parameters
    ----------
    word
        Letters of the stages.
    levels
        Groups after each stage but s, the last one of everyone.
    """

    word: str
    levels: tuple[tuple[Group, ...], ...]


@dataclass
class Network:
    """A topology as searches want it, and the work that they may do.

    Parameters
    ----------
    topology
        Of the problem.
    most
        Passes of list scheduling for a stage.
    over
        Whether time is up.
    """

    topology: Topology
    most: int
    over: Callable[[], bool]

    def __post_init__(self) -> None:
        self.transfers = transfers_of(self.topology)
        self.back = reverse_transfers(transfers_of(self.topology.reversed()))
        self.place = [self.topology.index[name] for name in self.topology.ranks]
        self.rank = {place: rank for rank, place in enumerate(self.place)}


class Sums:
    """Sums on their way through the stages.

    Parameters
    ----------
    network
        Where they go.
    chains
        What pieces go through by turns; their words are the same.
    pieces, nbytes
        Of the vector, and bytes of each.
    """

    def __init__(
        self, network: Network, chains: Sequence[Chain], *, pieces: int, nbytes: float
    ) -> None:
        self.network, self.chains, self.pieces, self.nbytes = network, chains, pieces, nbytes
        self.transfer: list[int] = []
        self.value: list[Value] = []
        self.start: list[float] = []
        self.waits: list[tuple[int, int]] = []
        self.free = np.zeros(len(network.topology.links))
        places = network.place
        # When each sum is at a device, and which sends have brought its parts.
        self.there: dict[Value, dict[int, tuple[float, tuple[int, ...]]]] = {
            (piece, frozenset({rank})): {place: (0.0, ())}
            for piece in range(pieces)
            for rank, place in enumerate(places)
        }
        self.holders: dict[Value, list[int]] = {
            value: list(times) for value, times in self.there.items()
        }
        self.owner = [piece // len(chains) for piece in range(pieces)]

    def through(self) -> bool:
        """Take all stages; return False where time is up before."""
        word = self.chains[0].word
        for turn, letter in enumerate(word):
            if letter == "h":
                done = self._added(turn)
            else:
                last = turn == len(self.chains[0].levels) - 1 and "s" not in word
                done = self._spread(turn) if letter == "s" else self._exchanged(turn, last=last)
            if not done:
                return False
        return True

    def _groups(self, turn: int) -> Iterator[tuple[int, Group, list[Value]]]:
        """Yield each piece and each group of a stage, with the sums that it is made of."""
        for piece in range(self.pieces):
            own = [value for value in self.holders if value[0] == piece]
            for group in self.chains[piece % len(self.chains)].levels[turn]:
                yield piece, group, [value for value in own if value[1] <= group]

    def _exchanged(self, turn: int, *, last: bool) -> bool:
        wanted: dict[Value, set[int]] = {}
        made: list[tuple[Value, list[Value], list[int]]] = []
        for piece, group, parts in self._groups(turn):
            all_of = sorted({each for part in parts for each in self.holders[part]})
            to = self.network.place if last else all_of
            wanted |= {part: set(to) for part in parts}
            made.append(((piece, group), parts, to))
        if not self._sent(wanted):
            return False
        self.holders = {}
        for value, parts, to in made:
            self.holders[value] = to
            for place in to:
                came = [self.there[part][place] for part in parts]
                self.there.setdefault(value, {})[place] = (
                    max(when for when, _ in came),
                    tuple(dict.fromkeys(each for _, brought in came for each in brought)),
                )
        return True

    def _spread(self, _turn: int) -> bool:
        return self._sent({value: set(self.network.place) for value in self.holders})

    def _sent(self, wanted: dict[Value, set[int]]) -> bool:
        """Send sums from holders to those who want them."""
        values = [
            value for value, to in wanted.items() if to - set(self.holders[value])
        ]
        if not values:
            return True
        shape = len(values), len(self.network.topology.devices)
        there, wants = np.full(shape, np.inf), np.zeros(shape, dtype=bool)
        for row, value in enumerate(values):
            for place in self.holders[value]:
                there[row, place] = self.there[value][place][0]
            wants[row, list(wanted[value] - set(self.holders[value]))] = True
        found = self._searched(self.network.transfers, there, wants, self.free.copy())
        if found is None:
            return False
        transfers = self.network.transfers
        stop = ends(transfers, found, np.full(len(values), self.nbytes))
        for turn in np.argsort(found.start, kind="stable").tolist():
            value, number = values[found.chunk[turn]], int(found.transfer[turn])
            src, dst = int(transfers.src[number]), int(transfers.dst[number])
            job = self._job(number, value, float(found.start[turn]), self.there[value][src][1])
            self.there[value][dst] = (float(stop[turn]), (job,))
        return True

    def _added(self, turn: int) -> bool:
        """Add up sums at owners: backwards, owners spread to those who have the sums."""
        made = [each for each in self._groups(turn) if each[2]]
        shape = len(made), len(self.network.topology.devices)
        there, wants = np.full(shape, np.inf), np.zeros(shape, dtype=bool)
        owners = []
        for row, (piece, _, parts) in enumerate(made):
            members = [self.holders[part][0] for part in parts]
            owners.append(members[self.owner[piece] % len(members)])
            there[row, owners[-1]] = 0.0
            wants[row, members] = True
            wants[row, owners[-1]] = False
        begun = max((self.start[-1:]), default=0.0)
        network = self.network
        found = self._searched(network.back, there, wants, np.zeros(len(self.free)))
        if found is None:
            return False
        begun = self._last()
        turned, _ = backwards(
            network.transfers, network.back, found, np.full(len(made), self.nbytes)
        )
        self._laid(turned, made, begun)
        sides = len(made[0][2])
        self.owner = [each // sides for each in self.owner]
        self.holders = {}
        for (piece, group, parts), owner in zip(made, owners, strict=True):
            value = (piece, group)
            self.holders[value] = [owner]
            if len(parts) > 1:
                self.there[value] = {owner: self._here[value, owner]}
        return True

    def _last(self) -> float:
        return max((when for each in self.there.values() for when, _ in each.values()), default=0.0)

    def _laid(
        self, turned: TimedTransfers, made: list[tuple[int, Group, list[Value]]], begun: float
    ) -> None:
        transfers = self.network.transfers
        has: dict[tuple[Value, int], tuple[float, tuple[int, ...]]] = {}
        terms: dict[tuple[Value, int], Group] = {}
        for piece, group, parts in made:
            for part in parts:
                place = self.holders[part][0]
                has[(piece, group), place] = self.there[part][place]
                terms[(piece, group), place] = part[1]
        stop = ends(transfers, turned, np.full(len(made), self.nbytes))
        for turn in np.argsort(turned.start, kind="stable").tolist():
            piece, group, _ = made[turned.chunk[turn]]
            value, number = (piece, group), int(turned.transfer[turn])
            src, dst = int(transfers.src[number]), int(transfers.dst[number])
            carried = terms[value, src]
            job = self._job(
                number, (piece, carried), float(turned.start[turn]) + begun, has[value, src][1]
            )
            when, brought = has.get((value, dst), (0.0, ()))
            has[value, dst] = max(when, float(stop[turn]) + begun), (*brought, job)
            terms[value, dst] = terms.get((value, dst), frozenset()) | carried
        self._here = has

    def _searched(
        self, transfers: object, there: np.ndarray, wants: np.ndarray, free: np.ndarray
    ) -> TimedTransfers | None:
        links = len(free)
        task = Task(
            transfers=transfers,
            nbytes=np.full(len(there), self.nbytes),
            there=there,
            wants=wants,
            free=free,
            resource=np.arange(links),
            rank=np.ones(len(there)),
        )
        found = None
        for plan, _ in passes(
            task, most=self.network.most, goal=0.0, over=self.network.over, steps=4e6
        ):
            found = plan
        return found

    def _job(self, transfer: int, value: Value, start: float, after: Sequence[int]) -> int:
        number = len(self.transfer)
        self.transfer.append(transfer)
        self.value.append(value)
        self.start.append(start)
        self.waits += [(each, number) for each in after]
        transfers = self.network.transfers
        for place in range(transfers.first[transfer], transfers.first[transfer + 1]):
            gone = start + transfers.lead[place] + self.nbytes * (transfers.drag[place] + transfers.beta[place])
            link = transfers.link[place]
            self.free[link] = max(self.free[link], gone)
        return number

    def schedule(self, problem: Problem, *, goal: float) -> tuple[float, Callable[[], Schedule]]:
        """Return µs of all stages in the best order, and what makes the schedule of it."""
        transfers, transfer = self.network.transfers, np.array(self.transfer)
        before, after = np.array(self.waits, dtype=np.int64).reshape(-1, 2).T
        nbytes = np.full(len(transfer), self.nbytes)
        chunk = np.array([piece for piece, _ in self.value])
        first = np.array(self.start), np.array(self.start) + (
            transfers.latency[transfer] + nbytes * transfers.slowest[transfer]
        )
        found = Passes(transfers, transfer, nbytes, before, after)
        start, stop = found.improved(first, goal=goal, over=self.network.over)
        timed = TimedTransfers(transfer, chunk, start, np.arange(len(transfer)))
        return float(stop.max()), partial(
            in_epochs,
            problem.cut_into(self.pieces),
            transfers,
            timed,
            waits=(before, after),
            terms=[terms for _, terms in self.value],
        )
