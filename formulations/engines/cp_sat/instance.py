"""A task as whole numbers for the solver, and its answer as a plan in µs; proofs hold for both.

A pair is a chunk and a transfer that it may take. Pairs that no plan shorter than the best needs
are left out: those whose chunk cannot be at the sender early enough, or is late at the receiver.
Everything that crosses to the other process is a list of whole numbers (`Instance.request`).

`Ticks` are whole numbers for times in µs. Let ``T`` be the makespan of a plan in continuous time,
in ticks. All of its rules are differences: ``s_j - s_i >= y``, where y is a delay (a chunk is sent
on after it came) or ``e - l`` (j holds a link from l after its start on, i until e after its own),
and ``T - s_i >= y`` at the end. Put ``S = floor(s)`` for every start and 0 for the beginning. As an
integer above ``y - 1``,

    S_j - S_i  >=  floor(y)  >=  floor(e) - ceil(l)        and        floor(T) >= S_i + floor(y).

So if delays are rounded down, and what is held of a link is rounded inwards, every plan in
continuous time is a solution in whole ticks that is not longer: **a lower bound of B ticks on all
solutions is one on all plans.** Windows, loads and symmetries that the model adds follow from its
own whole numbers and need no proof of their own.

A solution says who sends what to whom and in which order; its plan has these in the earliest µs
that keep every order. Each hop and each wait may make it a tick longer than the solution, so ticks
are short, and where all times are multiples of one number that number is the tick, nothing is
rounded, and plan and solution are equally long: the proof is exact.

A time counts as a multiple if it is within NEAR ticks of one. Then each y is too large by 2 NEAR
at most, and the longest chain of n waits by 2 n NEAR, which is taken off the bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ccl.errors import SolveError
from formulations.engines.epoch_grid.arcs import distances, flattened
from formulations.engines.list_scheduling.multistart import Task
from formulations.engines.list_scheduling.timed import TimedTransfers, Transfers

NEAR = 1e-8
"""Share of a tick that counts as zero; times in double precision are nearer to their multiple."""

MOST_TICKS = 4_000_000
"""Most ticks of a plan: so many that even a chain of waits rounded loses little."""


@dataclass(frozen=True)
class Ticks:
    """Times as whole numbers.

    Parameters
    ----------
    duration
        µs of a tick.
    exact
        Whether all times are multiples of it.
    """

    duration: float
    exact: bool

    def down(self, times: np.ndarray) -> np.ndarray:
        """Return times in µs as whole ticks, rounded down."""
        return np.floor(np.asarray(times) / self.duration + NEAR).astype(np.int64)

    def up(self, times: np.ndarray) -> np.ndarray:
        """Return times in µs as whole ticks, rounded up."""
        return np.ceil(np.asarray(times) / self.duration - NEAR).astype(np.int64)

    def proved(self, ticks: int, *, waits: int) -> float:
        """Return the bound in µs that so many ticks prove for chains of `waits` at most."""
        return max(0.0, (ticks - 2 * NEAR * waits) * self.duration)


def ticks_for(times: np.ndarray, *, longest: float) -> Ticks:
    """Choose the tick for some times.

    Parameters
    ----------
    times
        All that occur in the model, in µs.
    longest
        µs of the longest plan that matters.
    """
    shortest = longest / MOST_TICKS
    values = np.unique(times[times > 0])
    common = _common(values, shortest)
    if common is None:
        return Ticks(shortest, exact=False)
    return Ticks(common, exact=True)


def _common(values: np.ndarray, shortest: float) -> float | None:
    """Return the largest number of which all values are multiples, or None if it is too short."""
    common = 0.0
    for value in values.tolist():
        a, b = value, common
        while b > shortest / 2:
            a, b = b, a - b * round(a / b)
            b = abs(b)
        common = a
    if common < shortest:
        return None
    # What Euclid's algorithm left of rounding is taken out by the largest value.
    common = float(values[-1] / round(values[-1] / common))
    off = values / common - np.round(values / common)
    return common if np.abs(off).max() <= NEAR else None


MOST_PAIRS = 100_000
"""Most pairs of a chunk and a transfer that are modelled; the solver takes about 10 kB for each."""


@dataclass(frozen=True)
class Instance:
    """A task in ticks; p pairs, q crossings of links by them.

    Parameters
    ----------
    task
        What has to be done, in µs.
    ticks
        What a whole number means.
    chunk, transfer
        Numbers of each pair, shape (p,).
    delay
        Ticks until the chunk is there, shape (p,).
    first
        Where the crossings of each pair begin, shape (p + 1,).
    place
        The place of each crossing in the arrays of the transfers, shape (q,).
    begin, end
        When the link is held after the start, in ticks, shape (q,).
    earliest, latest
        Ticks between which a chunk comes to each device, shape (chunks, devices).
    tail
        Ticks that a chunk at a device takes at least to who needs it, shape (chunks, devices).
    upper
        Ticks within which a plan must end.
    shared
        Number of the transmission that each crossing is part of together with other transfers, -1
        where it is the transfer's own, shape (q,).
    """

    task: Task
    ticks: Ticks
    chunk: np.ndarray
    transfer: np.ndarray
    delay: np.ndarray
    first: np.ndarray
    place: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    earliest: np.ndarray
    latest: np.ndarray
    tail: np.ndarray
    upper: int
    shared: np.ndarray

    def __len__(self) -> int:
        return len(self.chunk)

    @property
    def wanted(self) -> np.ndarray:
        """Chunks and the devices that need and lack them, shape (n, 2)."""
        return np.argwhere(self.task.wants & ~np.isfinite(self.task.there))

    @property
    def waits(self) -> int:
        """Most waits in a chain of sends: every chunk comes to a device once."""
        transfers = self.task.transfers
        devices = len(transfers.topology.devices)
        return len(np.unique(self.chunk * devices + transfers.dst[self.transfer])) + 1

    def request(self, *, lower: float, hint: TimedTransfers | None) -> dict[str, Any]:
        """Return the request to the solver; `lower` is a bound in µs, `hint` a plan."""
        transfers, task = self.task.transfers, self.task
        held = np.isfinite(task.there)
        free = task.free[task.resource[transfers.link[self.place]]]
        late = self.ticks.down(free) - self.begin
        chosen, arrival = self._hinted(hint)
        return {
            "chunk": self.chunk.tolist(),
            "src": transfers.src[self.transfer].tolist(),
            "dst": transfers.dst[self.transfer].tolist(),
            "delay": self.delay.tolist(),
            "ready": _largest(late, self.first).tolist(),
            "latency": self.ticks.down(transfers.latency[self.transfer]).tolist(),
            "exact": self.ticks.exact,
            "first": self.first.tolist(),
            "resource": task.resource[transfers.link[self.place]].tolist(),
            "begin": self.begin.tolist(),
            "end": self.end.tolist(),
            "shared": self.shared.tolist(),
            "have": np.argwhere(held).tolist(),
            "there": self.ticks.down(task.there[held]).tolist(),
            "want": self.wanted.tolist(),
            "earliest": self.earliest.tolist(),
            "latest": self.latest.tolist(),
            "tail": self.tail.tolist(),
            "alike": _alike(task),
            "lower": min(int(self.ticks.down(np.array(lower))), self.upper),
            "upper": self.upper,
            "chosen": chosen,
            "arrival": arrival,
        }

    def _hinted(self, hint: TimedTransfers | None) -> tuple[list[int], list[list[int]]]:
        """Return the pairs of a plan, and when its chunks are where, in ticks."""
        if hint is None:
            return [], []
        listed = zip(self.chunk.tolist(), self.transfer.tolist(), strict=True)
        number = {pair: k for k, pair in enumerate(listed)}
        pairs = [
            number.get(pair, -1)
            for pair in zip(hint.chunk.tolist(), hint.transfer.tolist(), strict=True)
        ]
        transfers = self.task.transfers
        known = [k for k in pairs if k >= 0]
        start = self.ticks.down(hint.start[[k >= 0 for k in pairs]])
        at = start + self.delay[known]
        return known, np.column_stack(
            [self.chunk[known], transfers.dst[self.transfer[known]], at]
        ).tolist()

    def plan(
        self, pairs: Sequence[int], starts: Sequence[int]
    ) -> tuple[TimedTransfers, float] | None:
        """Return the earliest plan in µs that keeps the order of a solution, and its makespan.

        None if it has no start, which only times shorter than a tick can cause.

        Parameters
        ----------
        pairs
            That were chosen.
        starts
            When each starts, in ticks.
        """
        which, begun = np.array(pairs, dtype=np.int64), np.array(starts, dtype=np.int64)
        order = np.argsort(begun, kind="stable")
        which, begun = which[order], begun[order]
        group = self._groups(which, begun)
        start = self._retimed(which, begun, group)
        if start is None:
            return None
        made = TimedTransfers(self.transfer[which], self.chunk[which], start, group)
        return made, float((start + self._took(which)).max(initial=0.0))

    def _took(self, which: np.ndarray) -> np.ndarray:
        """Return the µs that each chosen pair takes."""
        transfers, transfer = self.task.transfers, self.transfer[which]
        nbytes = self.task.nbytes[self.chunk[which]]
        return np.asarray(transfers.latency[transfer] + nbytes * transfers.slowest[transfer])

    def _groups(self, which: np.ndarray, begun: np.ndarray) -> np.ndarray:
        """Return the number of the transmission of each chosen pair."""
        root = self.shared[self.first[which]]
        keys = np.column_stack([np.where(root < 0, -1 - which, root), begun])
        return np.asarray(np.unique(keys, axis=0, return_inverse=True)[1]).ravel()

    def _retimed(
        self, which: np.ndarray, begun: np.ndarray, group: np.ndarray
    ) -> np.ndarray | None:
        """Return the start of each chosen pair in µs."""
        before, after, wait = self._waits(which, begun, group)
        many = int(group.max(initial=-1)) + 1
        start = np.zeros(many)
        np.maximum.at(start, group, self._released(which))
        for _ in range(many + 1):
            later = start.copy()
            np.maximum.at(later, after, start[before] + wait)
            if (later <= start).all():
                return np.asarray(start[group])
            start = later
        return None

    def _released(self, which: np.ndarray) -> np.ndarray:
        """Return the µs before which no chosen pair can start, whatever the others do."""
        task, transfers = self.task, self.task.transfers
        there = task.there[self.chunk[which], transfers.src[self.transfer[which]]]
        start = np.where(np.isfinite(there), there, 0.0)
        at, of = flattened(self.first, which)
        place = self.place[at]
        begin, _ = self._holds(which[of], place)
        np.maximum.at(start, of, task.free[task.resource[transfers.link[place]]] - begin)
        return start

    def _holds(self, pair: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return from when until when links are held after the start, in µs."""
        transfers, nbytes = self.task.transfers, self.task.nbytes[self.chunk[pair]]
        begin = transfers.lead[place] + nbytes * transfers.drag[place]
        return begin, begin + nbytes * transfers.beta[place]

    def _waits(
        self, which: np.ndarray, begun: np.ndarray, group: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return which transmissions wait for which, and for how many µs."""
        task, transfers = self.task, self.task.transfers
        chunk, transfer = self.chunk[which], self.transfer[which]
        there = zip(chunk.tolist(), transfers.dst[transfer].tolist(), strict=True)
        came = {pair: k for k, pair in enumerate(there)}
        sent = zip(chunk.tolist(), transfers.src[transfer].tolist(), strict=True)
        source = np.array([came.get(pair, -1) for pair in sent], dtype=np.int64)
        on = np.flatnonzero(source >= 0)
        took = self._took(which)
        at, of = flattened(self.first, which)
        resource = task.resource[transfers.link[self.place[at]]]
        order = np.lexsort((begun[of] + self.end[at], begun[of] + self.begin[at], resource))
        begin, end = self._holds(which[of], self.place[at])
        ahead, behind = order[:-1], order[1:]
        meet = (resource[ahead] == resource[behind]) & (group[of[ahead]] != group[of[behind]])
        ahead, behind = ahead[meet], behind[meet]
        return (
            np.concatenate([group[source[on]], group[of[ahead]]]),
            np.concatenate([group[on], group[of[behind]]]),
            np.concatenate([took[source[on]], end[ahead] - begin[behind]]),
        )


def make_instance(task: Task, *, upper: float) -> Instance:
    """Write a task in ticks, for plans of at most `upper` µs.

    Raises
    ------
    SolveError
        If it has too many pairs of a chunk and a transfer.
    """
    transfers = task.transfers
    ticks = ticks_for(_times(task), longest=upper)
    most = int(ticks.down(np.array(upper)))
    earliest, tail = _windows(task, ticks, most)
    latest = most - tail
    chunk, transfer = _useful(task, ticks, earliest=earliest, latest=latest)
    first = np.concatenate([[0], np.cumsum(np.diff(transfers.first)[transfer])])
    place, of = flattened(transfers.first, transfer)
    nbytes = task.nbytes[chunk]
    begin = transfers.lead[place] + nbytes[of] * transfers.drag[place]
    return Instance(
        task=task,
        ticks=ticks,
        chunk=chunk,
        transfer=transfer,
        delay=ticks.down(transfers.latency[transfer] + nbytes * transfers.slowest[transfer]),
        first=first,
        place=place,
        begin=ticks.up(begin),
        end=ticks.down(begin + nbytes[of] * transfers.beta[place]),
        earliest=np.minimum(earliest, most + 1),
        latest=latest,
        tail=tail,
        upper=most,
        shared=_shared(transfers, chunk[of], place, of=of),
    )


def _useful(
    task: Task, ticks: Ticks, *, earliest: np.ndarray, latest: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of a chunk and a transfer that a plan may need."""
    transfers = task.transfers
    found = []
    for chunk, nbytes in enumerate(task.nbytes.tolist()):
        soonest = earliest[chunk][transfers.src] + ticks.down(transfers.delay(nbytes))
        lacks = ~np.isfinite(task.there[chunk][transfers.dst])
        found.append(np.flatnonzero((soonest <= latest[chunk][transfers.dst]) & lacks))
    many = [len(each) for each in found]
    if sum(many) > MOST_PAIRS:
        raise SolveError(
            f"an exact search would choose among {sum(many):,} pairs of a chunk and a path, and "
            f"more than {MOST_PAIRS:,} take too much memory; take fewer chunks"
        )
    return np.repeat(np.arange(len(found)), many), np.concatenate(found)


def _times(task: Task) -> np.ndarray:
    """Return all times in µs that the model is made of."""
    transfers = task.transfers
    found = [task.there[np.isfinite(task.there)], task.free, transfers.latency]
    for nbytes in np.unique(task.nbytes).tolist():
        begin = transfers.lead + nbytes * transfers.drag
        found += [transfers.delay(nbytes), begin, begin + nbytes * transfers.beta]
    return np.concatenate(found)


def _windows(task: Task, ticks: Ticks, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ticks at which each chunk comes to each device at the earliest, and its tail."""
    transfers = task.transfers
    held = np.isfinite(task.there)
    earliest = np.full(task.there.shape, most + 1, dtype=np.int64)
    tail = earliest.copy()
    far: dict[float, np.ndarray] = {}
    for chunk, nbytes in enumerate(task.nbytes.tolist()):
        if nbytes not in far:
            delay = ticks.down(transfers.delay(nbytes))
            far[nbytes] = distances(transfers.src, transfers.dst, delay, len(held[chunk]))
        here = np.flatnonzero(held[chunk])
        begun = ticks.down(task.there[chunk][here])
        soonest = (begun[:, None] + far[nbytes][here]).min(axis=0, initial=most + 1)
        earliest[chunk] = np.where(np.isfinite(soonest), soonest, most + 1)
        wanted = np.flatnonzero(task.wants[chunk] & ~held[chunk])
        left = far[nbytes][:, wanted].min(axis=1, initial=most + 1)
        tail[chunk] = np.where(np.isfinite(left), left, most + 1)
    return earliest, tail


def _shared(
    transfers: Transfers, chunk: np.ndarray, place: np.ndarray, *, of: np.ndarray
) -> np.ndarray:
    """Return the number of the transmission that each crossing may share, or -1.

    Paths of one device that begin alike may go together until they come to a device that copies,
    from which on they may part: what lies between two such devices is shared as a whole.
    """
    node = _segments(transfers)[place]
    if not (node >= 0).any():
        return np.full(len(place), -1, dtype=np.int64)
    key = np.where(node < 0, -1, chunk * (int(node.max()) + 1) + node)
    names, which = np.unique(key, return_inverse=True)
    which = which.ravel()
    users = np.unique(np.column_stack([which, of]), axis=0)[:, 0]
    alone = np.bincount(users, minlength=len(names)) < 2
    return np.where((key < 0) | alone[which], -1, which)


def _segments(transfers: Transfers) -> np.ndarray:
    """Return a number for each segment of a path that ends where devices copy, else -1."""
    node = np.full(len(transfers.link), -1, dtype=np.int64)
    known: dict[tuple[int, ...], int] = {}
    firsts = transfers.first.tolist()
    for begin, stop in pairwise(firsts):
        last = begin
        for place in range(begin + 1, stop):
            if transfers.parts[place]:
                key = tuple(transfers.link[begin:place].tolist())
                node[last:place] = known.setdefault(key, len(known))
                last = place
    return node


def _alike(task: Task) -> list[list[int]]:
    """Return pairs of chunks that may change places, and a device that needs both.

    Of two such chunks the first one may be taken to come there first.
    """
    known: dict[tuple[bytes, ...], int] = {}
    found = []
    for chunk, nbytes in enumerate(task.nbytes):
        wanted = np.flatnonzero(task.wants[chunk] & ~np.isfinite(task.there[chunk]))
        key = (nbytes.tobytes(), task.there[chunk].tobytes(), task.wants[chunk].tobytes())
        if key in known and len(wanted):
            found.append([known[key], chunk, int(wanted[0])])
        known[key] = chunk
    return found


def _largest(values: np.ndarray, first: np.ndarray) -> np.ndarray:
    return np.maximum.reduceat(values, first[:-1]) if len(values) else np.zeros(0, dtype=np.int64)
