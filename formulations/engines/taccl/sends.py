"""Sends of chunks on their paths, the times that an order gives them, and what is sent together.

`Sends` have what each send waits for; `times` are those that an order gives them.

`Contiguity` is step 3, contiguity encoding (formulation 3): what is sent together, sharing one
latency. The paper's model of a link: a transfer takes ``alpha + beta s`` and holds the link for all
of it; chunks that go together take one alpha for the sum of their bytes, and are there only when
the last of them is. `ccl.plans` says otherwise: latency does not hold a link, so that chunks one
after the other overlap theirs. What goes together here then gains nothing and only waits. So the
program is solved and its time reported in the paper's model; its order is offered like any other,
and the replay decides.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from formulations.engines.epoch_grid.arcs import rows
from formulations.engines.list_scheduling.timed import TimedTransfers, Transfers
from formulations.engines.taccl.pairs import Pairs, Part
from formulations.solvers import cp

Crossed = tuple[tuple[int, float, float], ...]
"""Of each link of a send its number, how much later than the send it is held, and how long, µs."""


@dataclass(frozen=True)
class Sends:
    """Sends in the direction in which they happen; n of them.

    Parameters
    ----------
    transfers
        All transfers of the topology.
    transfer, chunk
        Of each send the number of its transfer and of its parent, shape (n,).
    nbytes
        Bytes of each, shape (n,).
    after
        Sends that each waits for.
    members
        Numbers in the whole collective of the chunks of each parent.
    priority
        Of each send, larger first, shape (n,).
    alike
        Sends that symmetries exchange have the same number, shape (n,).
    """

    transfers: Transfers
    transfer: np.ndarray
    chunk: np.ndarray
    nbytes: np.ndarray
    after: tuple[tuple[int, ...], ...]
    members: tuple[tuple[int, ...], ...]
    priority: np.ndarray
    alike: np.ndarray

    def __len__(self) -> int:
        return len(self.transfer)

    @cached_property
    def delay(self) -> list[float]:
        """µs that each send takes."""
        transfers = self.transfers
        took = transfers.latency[self.transfer] + self.nbytes * transfers.slowest[self.transfer]
        return [float(each) for each in took]

    @cached_property
    def before(self) -> tuple[tuple[int, ...], ...]:
        """Sends that wait for each."""
        found: list[list[int]] = [[] for _ in self.after]
        for number, waits in enumerate(self.after):
            for each in waits:
                found[each].append(number)
        return tuple(tuple(each) for each in found)

    @cached_property
    def crossed(self) -> tuple[Crossed, ...]:
        """Links of each send and when they are held: for ``bytes * beta``, as the replay has it."""
        transfers, found = self.transfers, []
        for transfer, nbytes in zip(self.transfer.tolist(), self.nbytes.tolist(), strict=True):
            span = slice(transfers.first[transfer], transfers.first[transfer + 1])
            begin = (transfers.lead[span] + transfers.drag[span] * nbytes).tolist()
            held = (transfers.beta[span] * nbytes).tolist()
            found.append(tuple(zip(transfers.link[span].tolist(), begin, held, strict=True)))
        return tuple(found)

    @cached_property
    def held(self) -> tuple[Crossed, ...]:
        """The same where latency holds links too: all for the whole send, as the paper has it."""
        return tuple(
            tuple((link, 0.0, delay) for link, _, _ in crossed)
            for crossed, delay in zip(self.crossed, self.delay, strict=True)
        )

    def links(self, *, holds: bool) -> tuple[Crossed, ...]:
        """Links of each send and when they are held."""
        return self.held if holds else self.crossed


def sends_of(pairs: Pairs, taken: np.ndarray) -> Sends:
    """Return the sends of paths that were chosen, without those that nobody needs.

    Parameters
    ----------
    pairs
        What there was to choose.
    taken
        Whether each orbit is taken, shape (many,).
    """
    part = pairs.part
    came = _into(pairs, taken)
    needed: dict[tuple[int, int], int] = {}
    for chunk, device in np.argwhere(part.wants).tolist():
        here = device
        while (chunk, here) in came and (chunk, here) not in needed:
            pair = came[chunk, here]
            needed[chunk, here] = pair
            here = int(pairs.src[pair])
    place = {cell: number for number, cell in enumerate(needed)}
    chosen = np.array(list(needed.values()), dtype=np.int64)
    # A path that is turned is taken back: what was sent on before is received first.
    after: list[list[int]] = [[] for _ in place]
    for (chunk, _), number in place.items():
        source = place.get((chunk, int(pairs.src[chosen[number]])))
        if source is not None:
            near, far = (source, number) if part.turned else (number, source)
            after[near].append(far)
    chunks = pairs.chunk[chosen]
    weights = np.array([each.priority for each in part.collective.chunks], dtype=float)
    return Sends(
        part.logical.transfers,
        part.logical.chosen[pairs.transfer[chosen]],
        chunks,
        part.nbytes[chunks],
        tuple(tuple(each) for each in after),
        part.members,
        weights[chunks],
        pairs.orbit[chosen],
    )


def _into(pairs: Pairs, taken: np.ndarray) -> dict[tuple[int, int], int]:
    """Return the pair by which each chunk comes to each device."""
    chosen = np.flatnonzero(taken[pairs.orbit])
    cells = zip(pairs.chunk[chosen].tolist(), pairs.dst[chosen].tolist(), strict=True)
    return dict(zip(cells, chosen.tolist(), strict=True))


def both_halves(head: Part, adding: Sends, spreading: Sends) -> Sends:
    """Return the sends of both halves of a sum; what spreads waits for its sum to be complete.

    Parameters
    ----------
    head
        The half that adds up.
    adding, spreading
        The sends of both halves.
    """
    root = head.holds.argmax(axis=1)
    last: dict[int, list[int]] = {}
    received = adding.transfers.dst[adding.transfer]
    for number in np.flatnonzero(received == root[adding.chunk]).tolist():
        for member in adding.members[adding.chunk[number]]:
            last.setdefault(member, []).append(number)
    shift = len(adding)
    after = list(adding.after)
    for chunk, waits in zip(spreading.chunk.tolist(), spreading.after, strict=True):
        sums = {each for member in spreading.members[chunk] for each in last.get(member, [])}
        after.append(tuple(each + shift for each in waits) or tuple(sorted(sums)))
    return Sends(
        adding.transfers,
        np.concatenate([adding.transfer, spreading.transfer]),
        np.concatenate([adding.chunk, spreading.chunk + len(adding.members)]),
        np.concatenate([adding.nbytes, spreading.nbytes]),
        tuple(after),
        adding.members + spreading.members,
        np.concatenate([adding.priority, spreading.priority]),
        np.concatenate([adding.alike, spreading.alike + int(adding.alike.max(initial=0)) + 1]),
    )


def times(sends: Sends, order: list[int], *, holds: bool = False) -> list[float]:
    """Return the earliest start of each send in µs if links serve them in an order.

    Parameters
    ----------
    sends
        What is sent.
    order
        All of them, none before what it waits for.
    holds
        Whether latency holds links too.
    """
    crossed, delay, after = sends.links(holds=holds), sends.delay, sends.after
    free: dict[int, float] = {}
    start = [0.0] * len(order)
    for number in order:
        begin = max((start[each] + delay[each] for each in after[number]), default=0.0)
        for link, lead, _ in crossed[number]:
            begin = max(begin, free.get(link, 0.0) - lead)
        start[number] = begin
        for link, lead, held in crossed[number]:
            free[link] = begin + lead + held
    return start


def end(sends: Sends, start: list[float]) -> float:
    """Return when the last send is there, in µs."""
    return max((each + took for each, took in zip(start, sends.delay, strict=True)), default=0.0)


def parted(sends: Sends, order: list[int], sizes: np.ndarray) -> tuple[Sends, list[int]]:
    """Return the sends of chunks, one after the other in place of their parents', and their order.

    Parameters
    ----------
    sends, order
        Those of parents.
    sizes
        Bytes of the chunks of the whole collective.
    """
    if all(len(each) == 1 for each in sends.members):
        numbers = np.array([each[0] for each in sends.members], dtype=np.int64)
        single = tuple((each,) for each in range(len(sizes)))
        return replace(sends, chunk=numbers[sends.chunk], members=single), order
    many = [len(sends.members[chunk]) for chunk in sends.chunk.tolist()]
    begin = np.cumsum([0, *many])
    which = np.repeat(np.arange(len(sends)), many)
    chunk = np.array([each for one in sends.chunk.tolist() for each in sends.members[one]])
    after = tuple(
        tuple(int(begin[each]) + place for each in sends.after[number])
        for number in range(len(sends))
        for place in range(many[number])
    )
    parts = Sends(
        sends.transfers,
        sends.transfer[which],
        chunk,
        sizes[chunk],
        after,
        tuple((each,) for each in range(len(sizes))),
        sends.priority[which],
        sends.alike[which],
    )
    return parts, [int(begin[each]) + place for each in order for place in range(many[each])]


def timed(sends: Sends, order: list[int]) -> TimedTransfers:
    """Return the sends of whole chunks at the times that an order gives them, for a schedule."""
    place = np.array(order, dtype=np.int64)
    start = np.array(times(sends, order))[place]
    return TimedTransfers(sends.transfer[place], sends.chunk[place], start, np.arange(len(place)))


@dataclass(frozen=True)
class Contiguity:
    """The program; times in shares of `most`. n sends, k pairs that may go together.

    Parameters
    ----------
    sends
        What is sent.
    order
        All of it in order.
    allowed
        Whether contiguous transfers are allowed on each transfer of the topology.
    most
        Makespan in µs, in the paper's model, of the order with nothing together.
    """

    sends: Sends
    order: list[int]
    allowed: np.ndarray
    most: float

    @cached_property
    def served(self) -> list[list[int]]:
        """The sends of each link in order: of links, and of ports of switches alike."""
        found: dict[int, list[int]] = defaultdict(list)
        for number in self.order:
            for link, _, _ in self.sends.crossed[number]:
                found[link].append(number)
        return list(found.values())

    @cached_property
    def groups(self) -> list[list[int]]:
        """Sends over one transfer with no other between them on any of its links, in order.

        Formulation 3 prints ``if allow_together then before = 1`` for the orders of switches; the
        text has it that only what is sent to the same device without another between may go
        together, so what may not is ``before``.
        """
        runs: dict[int, list[int]] = defaultdict(list)
        for line in self.served:
            run = 0
            for place, number in enumerate(line):
                run += (
                    place > 0
                    and self.sends.transfer[line[place - 1]] != self.sends.transfer[number]
                )
                runs[number].append(run)
        found: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for number in self.order:
            transfer = int(self.sends.transfer[number])
            if self.allowed[transfer]:
                found[(transfer, *runs[number])].append(number)
        return [each for each in found.values() if len(each) > 1]

    @cached_property
    def pairs(self) -> dict[tuple[int, int], int]:
        """Number of each pair that may go together."""
        found: dict[tuple[int, int], int] = {}
        for group in self.groups:
            for place, first in enumerate(group):
                for second in group[place + 1 :]:
                    found[first, second] = len(found)
        return found

    @cached_property
    def together(self) -> cp.Variable:
        """Whether each pair goes together; ``before`` is what is left of 1 (equation 1)."""
        return cp.Variable(len(self.pairs), boolean=True)

    @cached_property
    def begin(self) -> cp.Variable:
        """When each is sent."""
        return cp.Variable(len(self.sends), bounds=[0, 1])

    @cached_property
    def model(self) -> cp.Problem:
        """The whole program."""
        time = cp.Variable(bounds=[0, 1])
        took = self._took()
        waits, waited = self._after()
        rules = [time >= self.begin + took, *self._ordered(took), *self._runs()]
        if len(waits):
            rules.append(self.begin[waits] >= self.begin[waited] + took[waited])
        return cp.Problem(cp.Minimize(time), rules)

    def _took(self) -> cp.Expression:
        """``lat``: latency, and the bytes of all that goes together."""
        sends = self.sends
        one = np.array(sends.delay) / self.most
        first, second = np.array(list(self.pairs), dtype=np.int64).T
        number = np.arange(len(first))
        slow = sends.transfers.slowest[sends.transfer] / self.most
        more = rows(
            np.concatenate([first, second]),
            np.concatenate([number, number]),
            (len(sends), len(number)),
            value=np.concatenate(
                [slow[first] * sends.nbytes[second], slow[second] * sends.nbytes[first]]
            ),
        )
        took: cp.Expression = one + more @ self.together
        return took

    def _after(self) -> tuple[np.ndarray, np.ndarray]:
        """Each send that waits, and for what."""
        found = [(number, each) for number, waits in enumerate(self.sends.after) for each in waits]
        waits, waited = np.array(found, dtype=np.int64).reshape(-1, 2).T
        return waits, waited

    def _ordered(self, took: cp.Expression) -> list[cp.Constraint]:
        """On a link the next is sent when the one before is there, or with it.

        For neighbours only: what goes together has one send time and one latency, so the others
        follow. The paper's ``before -> start[o] >= start[c] + lat[o]`` is the same: ``start[o]``
        is ``send[o] + lat[o]``.
        """
        lines = {each for line in self.served for each in pairwise(line)}
        apart = np.array(sorted(lines - self.pairs.keys()), dtype=np.int64).reshape(-1, 2).T
        rules = [self.begin[apart[1]] >= self.begin[apart[0]] + took[apart[0]]]
        near = sorted(lines & self.pairs.keys())
        first, second = np.array(near, dtype=np.int64).reshape(-1, 2).T
        choice = self.together[np.array([self.pairs[each] for each in near], dtype=np.int64)]
        gap = self.begin[second] - self.begin[first]
        return [*rules, gap >= took[first] - choice, gap <= 1 - choice, gap >= 0]

    def _runs(self) -> list[cp.Constraint]:
        """Let what goes together go with all between (equation 2), and with all that these do."""
        pairs, rules = self.pairs, []
        wide = [(i, j) for group in self.groups for i, j in _wide(group)]
        if not wide:
            return []
        after = {first: each for group in self.groups for first, each in pairwise(group)}
        before = {each: first for first, each in after.items()}
        whole, left, right, last = (
            np.array([pairs[each] for each in some], dtype=np.int64)
            for some in (
                wide,
                [(i, before[j]) for i, j in wide],
                [(after[i], j) for i, j in wide],
                [(before[j], j) for i, j in wide],
            )
        )
        rules.append(self.together[whole] <= self.together[left])
        rules.append(self.together[whole] <= self.together[right])
        rules.append(self.together[whole] >= self.together[left] + self.together[last] - 1)
        return rules

    def found(self) -> tuple[list[int], int]:
        """Return the order of the solution, and how many sends go together with the one before."""
        begin = np.asarray(self.begin.value)
        turn = np.empty(len(self.order))
        turn[self.order] = np.arange(len(self.order))
        # What differs only by rounding keeps its order.
        ticks = np.round(begin * 1e6)
        order = np.lexsort((turn, ticks)).tolist()
        chosen = np.asarray(self.together.value) > 0.5
        near = [self.pairs[each] for group in self.groups for each in pairwise(group)]
        return _valid(self.sends, order), int(chosen[near].sum())


def _wide(group: list[int]) -> list[tuple[int, int]]:
    """Return pairs of a group that are no neighbours."""
    return [(group[i], group[j]) for i in range(len(group)) for j in range(i + 2, len(group))]


def _valid(sends: Sends, order: list[int]) -> list[int]:
    """Return an order with each send put behind what it waits for, where rounding hid that."""
    done: set[int] = set()
    found: list[int] = []
    waiting = order
    while waiting:
        later = []
        for number in waiting:
            if all(each in done for each in sends.after[number]):
                done.add(number)
                found.append(number)
            else:
                later.append(number)
        waiting = later
    return found
