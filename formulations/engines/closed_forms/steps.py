"""Messages on the links, one step after the other, and a verified schedule of them.

`answer` makes a schedule of a closed form, with the formula beside it and the gap from formula to
replay. A form only spreads. A sum to one rank is the time-reversed form on reversed links read
backwards; a sum that all want is added up first and spread from where it is, unless the form
exchanges partial sums. Schedules keep the order that the steps give the links and what each send
waits for; the replay then lets steps overlap. Where sums are exchanged a step begins when the one
before is over, as what a rank sends on is what it has added up by then. `Form` is a pattern on a
problem: its walks on the links, forwards and backwards, and their formula.

`walked` lays messages on the links. A message starts with its step, or when the links of its path
are free; a step begins when all of the one before is there. A chunk that goes over devices that
store on its path is stored by each of them, so a later message to one of them is not sent.

`TransfersByPair` are the paths between any two GPUs: transfers that join them, or a chain of
transfers over devices that store. Two GPUs may be joined by several transfers over different
switches; a message takes the one on which it is there first. Where none joins them the chunk goes
the quickest chain, and each device on it keeps a copy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from ccl.collective import Collective
from ccl.errors import Infeasible
from ccl.plans import Schedule
from ccl.problem import Problem
from ccl.result import ClosedForm, Result, Stop
from ccl.topology import Topology
from formulations.core.refusals import no_stores
from formulations.core.run import Run
from formulations.engines.closed_forms.routing import Pattern, reachability
from formulations.engines.closed_forms.trees import EVERYONE, Messages, Task
from formulations.engines.epoch_grid.arcs import flattened
from formulations.engines.epoch_grid.relay_paths import no_path
from formulations.engines.list_scheduling.timed import (
    TimedTransfers,
    Transfers,
    backwards,
    in_epochs,
    one_after,
    quickest_hop,
    reverse_transfers,
    sizes_of,
    transfers_of,
)
from formulations.engines.reverse_time import adding, irreversible


@dataclass(frozen=True)
class TransfersByPair:
    """Transfers sorted by the devices that they join.

    Parameters
    ----------
    transfers
        All of them.
    nbytes
        Bytes of the chunk that decides which chain is the quickest.
    """

    transfers: Transfers
    nbytes: float

    @property
    def _devices(self) -> int:
        return len(self.transfers.topology.devices)

    @cached_property
    def order(self) -> np.ndarray:
        """Transfers sorted by source, destination and delay, shape (transfers,)."""
        transfers = self.transfers
        return np.lexsort((transfers.delay(self.nbytes), transfers.dst, transfers.src))

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Keys of the pairs of devices that transfers join, and where those of each begin."""
        transfers = self.transfers
        keys = (transfers.src * self._devices + transfers.dst)[self.order]
        return np.unique(keys, return_index=True)

    @property
    def pairs(self) -> np.ndarray:
        """Where the transfers of each pair of devices begin in `order`, shape (pairs + 1,)."""
        return np.append(self._pairs[1], len(self.order))

    def joined(self, src: np.ndarray, dst: np.ndarray) -> np.ndarray:
        """Return the number of each pair of devices in `pairs`, -1 where no transfer joins them."""
        keys = self._pairs[0]
        pairs = src * self._devices + dst
        found = np.minimum(np.searchsorted(keys, pairs), len(keys) - 1)
        return np.where(keys[found] == pairs, found, -1)

    def chains(self, src: np.ndarray, dst: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs along the path of each two devices, flat and where each one begins.

        Raises
        ------
        Infeasible
            If no path leads from one to the other.
        """
        direct = self.joined(src, dst)
        apart = np.flatnonzero(direct < 0)
        if not len(apart):
            return direct, np.arange(len(direct) + 1)
        pairs, back = np.unique(np.stack([src[apart], dst[apart]]), axis=1, return_inverse=True)
        found = self._quickest(pairs)
        chains = [np.array([pair]) for pair in direct.tolist()]
        for turn, number in zip(apart.tolist(), np.ravel(back).tolist(), strict=True):
            chains[turn] = found[number]
        first = np.cumsum([0, *map(len, chains)])
        return np.concatenate(chains), first

    def _quickest(self, pairs: np.ndarray) -> list[np.ndarray]:
        """Return the chain of pairs for each column of sources and destinations."""
        transfers, count = self.transfers, self._devices
        best = self.order[self._pairs[1]]
        weights = np.maximum(transfers.delay(self.nbytes)[best], np.finfo(float).tiny)
        graph = sparse.csr_array(
            (weights, (transfers.src[best], transfers.dst[best])), shape=(count,) * 2
        )
        sources, which = np.unique(pairs[0], return_inverse=True)
        far, before = csgraph.dijkstra(graph, indices=sources, return_predecessors=True)
        chains = []
        for row, dst in zip(which.tolist(), pairs[1].tolist(), strict=True):
            if not np.isfinite(far[row, dst]):
                raise Infeasible(no_path(transfers.topology.devices[dst].name))
            stops = [dst]
            while stops[-1] != sources[row]:
                stops.append(int(before[row, stops[-1]]))
            ends = np.array(stops[::-1])
            chains.append(self.joined(ends[:-1], ends[1:]))
        return chains


@dataclass(frozen=True)
class Walk:
    """Messages laid on the links.

    Parameters
    ----------
    timed
        The transfers, with the starts that steps in turn give them.
    step
        Step of each transfer, shape (transfers,).
    ends
        µs at which each step is over, shape (steps,).
    alone
        µs that each step would take if all between two places, or with one port all that leaves
        or reaches a place, went alone, shape (steps,).
    costs
        Largest latency in µs and largest µs per byte of the paths that are used, first of those
        within a host, then of those between hosts; 0 if none exist, shape (2, 2).
    busiest, crowd
        Number of the link that messages between most different places cross in one step, and
        how many these are.
    """

    timed: TimedTransfers
    step: np.ndarray
    ends: np.ndarray
    alone: np.ndarray
    costs: np.ndarray
    busiest: int
    crowd: int


def walked(
    by_pair: TransfersByPair,
    messages: Messages,
    place: np.ndarray,
    *,
    nbytes: np.ndarray,
    there: np.ndarray,
    one_port: bool = False,
) -> Walk:
    """Lay messages on the links.

    Parameters
    ----------
    paths
        Between the devices.
    messages
        Among places.
    place
        Device number at each place, shape (places,).
    nbytes
        Of each chunk of the collective, shape (chunks,).
    there
        µs at which each chunk is at each device, inf where it is not, shape (chunks, devices);
        empty where every message carries a sum of its own, or the only one of its chunk.
    one_port
        Whether, of a message alone, all that its place sends and takes in goes through one port.

    Raises
    ------
    Infeasible
        If no path leads from one place to another.
    """
    order = np.argsort(messages.step, kind="stable")
    step, chunk = messages.step[order], messages.chunk[order]
    src, dst = place[messages.src[order]], place[messages.dst[order]]
    chains = by_pair.chains(src, dst)
    transfers, best = by_pair.transfers, by_pair.order[by_pair.pairs[:-1]]
    from formulations.engines.kernels.placing import walk  # noqa: PLC0415  it loads numba

    choice = (by_pair.order, by_pair.pairs, transfers.dst[best])
    made, of, start, ends = walk(
        (step, chunk, nbytes[chunk]), chains, choice, transfers.arrays, there
    )
    if there.size:
        kept = _led_on(transfers, made, chunk[of], place)
        made, of, start = made[kept], of[kept], start[kept]
    timed = TimedTransfers(made, chunk[of], start, np.arange(len(made)))
    pair = src * len(transfers.topology.devices) + dst
    busiest, crowd = _busiest(by_pair, timed, step[of], pair[of])
    took = [
        _alone(by_pair, chains, nbytes[chunk], step=step, between=between)
        for between in ((src, dst) if one_port else (pair,))
    ]
    return Walk(
        timed=timed,
        step=step[of],
        ends=ends,
        alone=np.maximum.reduce(took),
        costs=_costs(transfers, best[np.unique(chains[0])]),
        busiest=busiest,
        crowd=crowd,
    )


def _led_on(
    transfers: Transfers, made: np.ndarray, chunk: np.ndarray, place: np.ndarray
) -> np.ndarray:
    """Return the transfers to places, or to devices from which their chunk goes on.

    A chunk on its path over a memory may come to its place by another message first.
    """
    devices = len(transfers.topology.devices)
    wants = np.isin(np.arange(devices), place)
    src, dst = chunk * devices + transfers.src[made], chunk * devices + transfers.dst[made]
    kept = np.arange(len(made))
    while True:
        led = wants[transfers.dst[made[kept]]] | np.isin(dst[kept], src[kept])
        if led.all():
            return kept
        kept = kept[led]


def _costs(transfers: Transfers, used: np.ndarray) -> np.ndarray:
    """Return the largest costs of some transfers, within hosts and between them, shape (2, 2)."""
    hosts = np.array([each.host or "" for each in transfers.topology.devices])
    within = hosts[transfers.src[used]] == hosts[transfers.dst[used]]
    costs = np.stack([transfers.latency, transfers.slowest])[:, used]
    return np.array([costs[:, which].max(axis=1, initial=0.0) for which in (within, ~within)])


def _busiest(
    by_pair: TransfersByPair, timed: TimedTransfers, step: np.ndarray, pair: np.ndarray
) -> tuple[int, int]:
    """Return the link that most pairs of devices share in one step, and how many."""
    transfers = by_pair.transfers
    place, row = flattened(transfers.first, timed.transfer)
    link = transfers.link[place]
    links = len(transfers.topology.links)
    where = step[row] * links + link
    pairs, which = np.unique(pair, return_inverse=True)
    met = np.unique(where * len(pairs) + which[row]) // len(pairs)
    places, crowds = np.unique(met, return_counts=True)
    top = int(crowds.argmax())
    return int(places[top] % links), int(crowds[top])


def _alone(
    by_pair: TransfersByPair,
    chains: tuple[np.ndarray, np.ndarray],
    nbytes: np.ndarray,
    *,
    step: np.ndarray,
    between: np.ndarray,
) -> np.ndarray:
    """Return µs of each step if what is `between` the same had its links for itself.

    Chunk follows chunk: each holds the slowest of its path's transfers, and the one that takes
    longest besides goes to the end.
    """
    chain, begins = chains
    transfers = by_pair.transfers
    best = by_pair.order[by_pair.pairs[:-1]]
    latency = np.add.reduceat(transfers.latency[best][chain], begins[:-1])
    total = np.add.reduceat(transfers.slowest[best][chain], begins[:-1])
    worst = np.maximum.reduceat(transfers.slowest[best][chain], begins[:-1])
    keys = step * (int(between.max()) + 1) + between
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    held, besides = np.zeros(len(first)), np.zeros(len(first))
    np.add.at(held, which, worst * nbytes)
    np.maximum.at(besides, which, latency + (total - worst) * nbytes)
    ends = np.zeros(int(step.max()) + 1)
    np.maximum.at(ends, step[first], held + besides)
    return ends


MOST_PLACES = 50_000_000
"""Chunks times devices above which there is not enough memory."""

PERSONAL = frozenset({"gather", "scatter", "all-to-all"})
"""Kinds whose chunks have one destination each."""


def refuses(problem: Problem, *, straight: bool = False) -> str | None:
    """Describe what no closed form takes, or None.

    A form is `straight` if it sends each chunk with one destination there in one message.
    """
    topology = problem.topology
    chunks, devices = len(problem.collective.chunks), len(topology.devices)
    once = straight and problem.collective.kind in PERSONAL
    if chunks * devices > MOST_PLACES and not (once and reachability(topology).complete):
        return f"{chunks:,} chunks on {devices:,} devices are too many to be followed one by one"
    if len(problem.topology.ranks) < 2:
        return "it has fewer than 2 GPUs"
    return no_stores(problem) or irreversible(problem)


def answer(run: Run, pattern: Pattern, *, doubted: bool = False) -> Result:
    """Offer the schedule of a form; if it is `doubted`, its sums may overlap.

    Raises
    ------
    Infeasible
        If no path leads from one place to another.
    ScheduleError
        If a schedule that is doubted breaks a rule.
    """
    collective = run.problem.collective
    form = Form(run.problem, pattern)
    if not collective.reduces:
        walks = [form.spread(task_of(collective, pattern.order))]
        timed = walks[0].timed
        plan = in_epochs(form.problem, form.transfers, timed)
    elif len(collective.chunks[0].destinations) == 1:
        walks = [form.added(task_of(collective.reversed(), form.back_order))]
        timed, _ = form.turned(walks[0])
        plan = in_epochs(form.problem, form.transfers, timed)
    elif pattern.exchange is not None:
        walks = [form.exchanged()]
        plan = form.in_steps(walks[0])
    else:
        walks = [form.added(form.rooted(form.back_order)), form.spread(form.rooted(pattern.order))]
        first, last = form.turned(walks[0])
        second = replace(walks[1].timed, start=walks[1].timed.start + last)
        plan = in_epochs(form.problem, form.transfers, one_after(first, second))
    run.closed_form = form.closed(walks)
    run.offer(plan, doubted=doubted)
    return run.finish(Stop.CONSTRUCTED)


def task_of(collective: Collective, order: np.ndarray) -> Task:
    """Return what a collective without sums spreads, in places of an order."""
    place = np.argsort(order)
    holders = np.array([chunk.holders[0] for chunk in collective.chunks])
    goals = np.array([chunk.destinations[0] for chunk in collective.chunks])
    alone = collective.kind in PERSONAL
    return Task(
        places=len(order),
        chunk=np.arange(len(holders)),
        root=place[holders],
        goal=place[goals] if alone else np.full(len(goals), EVERYONE),
    )


class Form:
    """A pattern on a problem."""

    def __init__(self, problem: Problem, pattern: Pattern) -> None:
        self.problem = adding(problem) if problem.collective.reduces else problem
        self.pattern = pattern
        self.nbytes = sizes_of(self.problem.collective)
        self.transfers = transfers_of(self.problem.topology, fewer=True)
        self.back = (
            reverse_transfers(transfers_of(self.problem.topology.reversed(), fewer=True))
            if problem.collective.reduces
            else self.transfers
        )

    @property
    def back_order(self) -> np.ndarray:
        """Rank at each place on reversed links."""
        return self.pattern.order if self.pattern.back is None else self.pattern.back

    def _walked(
        self, transfers: Transfers, order: np.ndarray, messages: Messages, *, task: Task | None
    ) -> Walk:
        topology: Topology = transfers.topology
        place = np.array([topology.index[topology.ranks[rank]] for rank in order.tolist()])
        there = np.empty((0, 0))
        # What is sent once is not looked for anywhere.
        if task is not None and len(np.unique(messages.chunk)) < len(messages.chunk):
            there = np.full((len(self.nbytes), len(topology.devices)), np.inf)
            there[task.chunk, place[task.root]] = 0.0
        by_pair = TransfersByPair(transfers, float(self.nbytes.max()))
        return walked(
            by_pair,
            messages,
            place,
            nbytes=self.nbytes,
            there=there,
            one_port=self.pattern.one_port,
        )

    def spread(self, task: Task) -> Walk:
        """Walk the messages of a task."""
        return self._walked(
            self.transfers, self.pattern.order, self.pattern.spread(task), task=task
        )

    def added(self, task: Task) -> Walk:
        """Walk those that add up what the task spreads, on reversed links, first step last."""
        spread = self.pattern.turned or self.pattern.spread
        return self._walked(self.back, self.back_order, spread(task), task=task)

    def turned(self, walk: Walk) -> tuple[TimedTransfers, float]:
        """Read a walk on reversed links backwards; return it and its makespan in µs."""
        return backwards(self.transfers, self.back, walk.timed, self.nbytes)

    def rooted(self, order: np.ndarray) -> Task:
        """Return what an all-reduce spreads, in places of an order, once its sums are there."""
        many, places = len(self.nbytes), len(order)
        roots = self.pattern.roots
        root = np.arange(many) * places // many if roots is None else roots
        root = np.argsort(order)[self.pattern.order[root]]
        return Task(places, np.arange(many), root, np.full(many, EVERYONE))

    def exchanged(self) -> Walk:
        """Walk the messages of an all-reduce that exchanges partial sums."""
        exchange = self.pattern.exchange
        assert exchange is not None
        messages = exchange(self.rooted(self.pattern.order))
        return self._walked(self.transfers, self.pattern.order, messages, task=None)

    def in_steps(self, walk: Walk) -> Schedule:
        """Return a schedule in which each step begins when the one before is over."""
        tau = quickest_hop(self.problem, self.transfers, walk.timed, self.nbytes)
        none = np.empty(0, dtype=np.int64)
        sends, horizon = [], 0
        for step in range(len(walk.ends)):
            timed = walk.timed.chosen(np.flatnonzero(walk.step == step))
            # What one step sends waits for links only.
            plan = in_epochs(
                self.problem, self.transfers, timed, epoch_duration=tau, waits=(none, none)
            )
            sends += [replace(each, epoch=each.epoch + horizon) for each in plan.sends]
            horizon += plan.horizon
        return Schedule(tuple(sends), tau, horizon)

    def closed(self, walks: Sequence[Walk]) -> ClosedForm:
        """Return the formula, and what becomes of it step after step."""
        formula = self.pattern.formula
        costs = np.maximum.reduce([walk.costs for walk in walks])
        alpha, beta = costs.max(axis=0).tolist()
        makespan = (
            formula.makespan(alpha, beta)
            if formula.by_host is None
            else formula.by_host(*costs.ravel().tolist())
        )
        fullest = max(walks, key=lambda walk: walk.crowd)
        busiest = None
        if fullest.crowd > 1:
            busiest = self.problem.topology.links[fullest.busiest].ends
        return ClosedForm(
            expression=formula.expression,
            alpha=alpha,
            beta=beta,
            makespan=makespan,
            alone=sum(float(walk.alone.sum()) for walk in walks),
            in_steps=sum(float(walk.ends[-1]) for walk in walks),
            steps=sum(len(walk.ends) for walk in walks),
            busiest=busiest,
            crowd=max(1, fullest.crowd),
        )
