"""Step by step: whole chunks in a network over time, steady states as schedules, and model sizes.

`StepModel` is the network over time, with the capacities of each step. It has T + 1 layers of the
graph of duplicates; an edge takes one step of s µs, and who stores may wait
(`formulations.engines.steady_state`). Sets: chunks c with origin o(c) and destinations D(c), edges
e, links l. Constants: capacity[l], how many chunks a link carries within a step, latency counted.
Variables: w[e, c], whether c crosses e, binary; f[e, c, d] >= 0.

    minimise    sum over e and c of cost[e] size[c] w[e, c]
    subject to  f[., c, d] is a flow of 1 from (o(c), 0) to (d, T)           d in D(c)
                f[e, c, d] <= w[e, c]                                        e of a link
                sum of w[., c] out of v <= 1                        v may neither copy nor store
                sum over c, and over e of l in step t, of w[e, c] <= capacity[l]         each l, t
                sum over c, and e in L in step t, of size[c] w[e, c] <= 1000 s b(L)  each L, t

which is MILP (3.8) for one chunk a rank and (3.9) for K. Decisions: the thesis has f binary and w
free. For given binary w every f is a flow by itself, within capacities of 0 and 1, so that there is
one of zeros and ones if there is any; here w is binary, which is far fewer. The row
at v is needed beside duplicates: a vertex (v, t, u) of the thesis may lead to u by several paths,
so that data could part at v and come to u in two steps, which helps where u copies and cannot
store. With it a chunk leaves (v, t, u) once, however often it came. What waits uses no bandwidth
and has no w. The rows of capacity in (3.9) read K s b(L), with w in chunks of 1 / K.

`staggered` makes a steady state a schedule: many small chunks, one started in every step. A forest
gives the path of data, not the time. Cut the data into K chunks and let every chunk take all trees
in proportion of their weights. Chunk k = 0 .. K - 1 starts in step k, and what crosses the j-th
link of a tree, counted from where the data comes from, does so in step k + j. With

    R    µs of the steady state: every link carries its bytes within R at its bandwidth,
    T    links that any piece of data crosses one after the other, at most,

a step of R / K µs suffices: in one step a link carries of each of its crossings one chunk at most,
1 / K of its bytes. All is done after T + K - 1 steps, in

    R (T + K - 1) / K  =  R + R (T - 1) / K,

which tends to R as K grows. This is theorem 4 of the thesis (section 4.1) and its proof. There the
chunks are fluid; here each share of a chunk that takes a tree is a chunk of its own, so that the
schedule has whole chunks and is verified, whatever the weights. Switches take a step like every
device, since what has reached one in a step leaves it in the next.

The theorem knows no latency. With latencies a step is longer by the largest one used, a µs, so that
what is sent in a step is there when it ends:

    R + R (T - 1) / K + a (T + K - 1),

which is least at about K = sqrt(R (T - 1) / a) and does not tend to R. The replay forgets the
steps and lets the latency of one chunk overlap the next one, so it is faster than this.

`count_fluid` and `count_steps` say how many variables and rows fluid models
(`formulations.engines.fluid_lp.plain`) and the model of steps have, uncompiled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from scipy import sparse

from ccl.collective import Collective
from ccl.errors import ProblemError
from ccl.plans import Forest, Schedule, Send
from ccl.problem import Problem
from ccl.result import ModelSize
from ccl.simulate import simulate
from ccl.tree_embedding import Route, routes, steady_makespan
from ccl.verify import verify
from formulations.core.registry import ModelEstimate
from formulations.engines.epoch_grid.arcs import Arcs, distances
from formulations.engines.epoch_grid.plans import demand, schedule
from formulations.engines.epoch_grid.windows import Need, by_hops
from formulations.engines.fluid_lp.multicast import product
from formulations.engines.reverse_time import adding
from formulations.engines.steady_state import (
    FluidGraph,
    Group,
    demands_of,
    graph_of,
    in_steps,
    without_copies,
)
from formulations.solvers import cp
from formulations.solvers.cvxpy_highs import Backend

PER_MICRO = 1e3
"""Bytes that 1 GB/s carries in a µs."""


def in_each_step(graph: FluidGraph) -> sparse.csr_array:
    """Return which edges each capacity row sums up in each step, shape (steps times rows, edges).

    Rows of step 0 come first, each step's in the order of `FluidGraph.rates`.
    """
    rows = graph.rows.tocoo()
    many = rows.shape[0]
    step = graph.step[graph.src[rows.coords[1]]]
    place = step * many + rows.coords[0], rows.coords[1]
    return sparse.csr_array((rows.data, place), shape=(graph.steps * many, graph.edges))


class StepModel:
    """Whole chunks on one grid of steps.

    Parameters
    ----------
    problem
        Without sums; each chunk has one holder.
    hops
        Its links on a grid on which every link that carries anything takes one step.
    costs
        Cost of a byte on each link, shape (links,).
    """

    def __init__(self, problem: Problem, hops: Arcs, costs: np.ndarray) -> None:
        self._problem, self._hops, self._costs = problem, hops, costs
        self._graph = without_copies(graph_of(problem.topology))
        self._demand = demand(problem)
        chunks = problem.collective.chunks
        self._pairs = [
            (number, rank)
            for number, chunk in enumerate(chunks)
            for rank in chunk.destinations
            if rank not in chunk.holders
        ]

    def size(self, steps: int) -> ModelSize:
        """Return about how large the model of so many steps is."""
        waits = sum(each.stores for each in self._problem.topology.devices)
        edges, chunks = self._graph.edges * steps, len(self._problem.collective.chunks)
        flows = (edges + waits * steps) * len(self._pairs)
        rows = edges * len(self._pairs) + self._graph.vertices * (steps + 1) * len(self._pairs)
        return ModelSize(edges * chunks + flows, rows, 4 * flows)

    def solve(self, steps: int, backend: Backend, time_limit: float | None) -> Schedule:
        """Return the cheapest plan of so many steps.

        Raises
        ------
        Infeasible
            If there is no plan.
        LimitReached
            If the time limit came first.
        """
        graph = in_steps(self._graph, steps)
        carrying = np.flatnonzero(graph.link >= 0)
        chunk = np.array([number for number, _ in self._pairs])
        chunks = self._problem.collective.chunks
        w = cp.Variable((len(carrying), len(chunks)), boolean=True)
        f = cp.Variable((graph.edges, len(chunk)), nonneg=True)
        chosen = np.equal.outer(np.arange(len(chunks)), chunk).astype(float)
        stores = np.array([each.stores for each in graph.topology.devices])[graph.device]
        held = np.flatnonzero(~graph.copies & ~stores)
        program = cp.Problem(
            cp.Minimize(graph.costs(self._costs)[carrying] @ w @ np.ones(len(chunks))),
            [
                product(graph.incidence, f) == self._ends(graph),
                f[carrying] <= w @ chosen,
                *self._capacities(graph, w, carrying),
                *([product(_leaving(graph, held)[:, carrying], w) <= 1] if len(held) else []),
            ],
        )
        backend.solve(program, time_limit=time_limit)
        return self._plan(graph, np.asarray(f.value, dtype=float))

    def _ends(self, graph: FluidGraph) -> np.ndarray:
        ends = np.zeros((graph.vertices, len(self._pairs)))
        for column, (number, rank) in enumerate(self._pairs):
            ends[graph.goals[rank], column] += 1.0
            holder = self._problem.collective.chunks[number].holders[0]
            ends[graph.origins[holder], column] -= 1.0
        return ends

    def _capacities(
        self, graph: FluidGraph, w: cp.Variable, carrying: np.ndarray
    ) -> list[cp.Constraint]:
        """Return the rows of capacity, of links in chunks and of limits in their shares."""
        links, many = len(graph.topology.links), len(graph.rates)
        loads = in_each_step(graph)[:, carrying]
        row = np.arange(loads.shape[0]) % many
        hops, grid = self._hops, self._hops.grid
        capacity = np.where(hops.delay == 1, np.minimum(hops.capacity, w.shape[1]), 0.0)
        through = graph.rates[links:] * grid.epoch_duration * PER_MICRO / grid.chunk_size
        most = np.concatenate([capacity, through + 1e-9])[row]
        return [product(loads, w) @ np.ones(w.shape[1]) <= most]

    def _plan(self, graph: FluidGraph, flows: np.ndarray) -> Schedule:
        """Return the sends on a path of each flow.

        A flow may be split; within w, which is whole, each of its paths can take all of it.
        """
        into = np.argsort(graph.dst, kind="stable")
        first = np.searchsorted(graph.dst[into], np.arange(graph.vertices + 1))
        used: set[tuple[int, int]] = set()
        for column, (number, rank) in enumerate(self._pairs):
            vertex = int(graph.goals[rank])
            origin = int(graph.origins[self._problem.collective.chunks[number].holders[0]])
            while vertex != origin:
                came = into[first[vertex] : first[vertex + 1]]
                edge = int(came[np.argmax(flows[came, column])])
                if graph.link[edge] >= 0:
                    used.add((edge, number))
                vertex = int(graph.src[edge])
        links, step = graph.topology.links, graph.step
        sends = [
            Send(int(step[graph.src[edge]]), number, *links[graph.link[edge]].ends)
            for edge, number in sorted(used)
        ]
        return schedule(sends, self._hops, self._demand)


def _leaving(graph: FluidGraph, vertices: np.ndarray) -> sparse.csr_array:
    """Return which edges leave each of some vertices, shape (vertices, edges)."""
    return sparse.csr_array(-graph.incidence[vertices]).maximum(0)


COUNTS = tuple(2**power for power in range(9))
"""Numbers of chunks that a table of conversions has, from 1 to 256."""

MOST_SENDS = 2_000_000
"""Sends above which a schedule is not made."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """A steady state made a schedule of so many chunks; times in µs.

    Parameters
    ----------
    chunks
        K.
    steps
        T + K - 1, the epochs of the schedule.
    depth
        T.
    rate
        R, the time of the steady state.
    duration
        Until the last epoch of the verified schedule ends.
    makespan
        Of its replay, which forgets the epochs.
    """

    chunks: int
    steps: int
    depth: int
    rate: float
    duration: float
    makespan: float

    @property
    def fill(self) -> float:
        """R (T - 1) / K, in µs: what it takes to fill the trees and to empty them."""
        return self.rate * (self.depth - 1) / self.chunks

    @property
    def latency(self) -> float:
        """What latencies add to the duration, in µs; nothing without them."""
        return self.duration - self.rate - self.fill


def staggered(problem: Problem, forest: Forest, *, chunks: int) -> tuple[Problem, Schedule]:
    """Return a problem with the data in K chunks for each tree, and its verified schedule.

    Parameters
    ----------
    problem
        What the forest is for.
    forest
        One that `ccl.verify` accepts, of any kind; images are written out.
    chunks
        K.

    Raises
    ------
    ProblemError
        If K is not positive, the schedule would be too large, links have less bandwidth for a
        time, or nothing is sent.
    """
    verify(problem, forest)
    laid = list(routes(problem, forest.unfolded(problem.topology)))
    _check(problem, laid, chunks)
    divided = _divided(problem, laid, chunks)
    links = [link.ends for link in problem.topology.links]
    sends = sorted(
        (
            Send(int(start + step), start * len(laid) + number, *links[link])
            for start in range(chunks)
            for number, path in enumerate(laid)
            for link, step in zip(path.links, path.steps, strict=True)
        ),
        key=lambda send: send.epoch,
    )
    rate = Fraction(steady_makespan(problem, forest))
    used = {link for path in laid for link in path.links}
    alpha = max(problem.topology.links[link].alpha for link in used)
    schedule = Schedule(tuple(sends), float(rate / chunks) + alpha, _depth(laid) + chunks - 1)
    verify(divided, schedule)
    return divided, schedule


def conversion(
    problem: Problem, forest: Forest, *, counts: Iterable[int] = COUNTS
) -> tuple[Conversion, ...]:
    """Return what schedules of several numbers of chunks take, each verified and replayed.

    Raises
    ------
    ProblemError
        As `staggered`.
    """
    rate = float(steady_makespan(problem, forest))
    found = []
    for chunks in counts:
        divided, schedule = staggered(problem, forest, chunks=chunks)
        found.append(
            Conversion(
                chunks=chunks,
                steps=schedule.horizon,
                depth=schedule.horizon - chunks + 1,
                rate=rate,
                duration=schedule.duration,
                makespan=simulate(divided, schedule).makespan,
            )
        )
    return tuple(found)


def _depth(laid: Iterable[Route]) -> int:
    return int(max(max(path.steps) for path in laid)) + 1


def _divided(problem: Problem, laid: Iterable[Route], chunks: int) -> Problem:
    """Return the problem with a chunk for each share that starts in each step."""
    collective = problem.collective
    listed = [(collective.chunks[path.chunk], float(path.share)) for path in laid]
    once = tuple(replace(chunk, size=chunk.size * share / chunks) for chunk, share in listed)
    return replace(
        problem,
        collective=Collective(collective.kind, collective.ranks, collective.size, once * chunks),
    )


def _check(problem: Problem, laid: list[Route], chunks: int) -> None:
    sends = chunks * sum(len(path.links) for path in laid)
    if chunks < 1:
        raise ProblemError(f"a schedule of {chunks} chunks cannot be made; give 1 or more")
    if not sends:
        raise ProblemError(f"{problem.collective.kind} moves nothing over these trees")
    if sends > MOST_SENDS:
        raise ProblemError(
            f"{chunks} chunks make {sends:,} sends, and {MOST_SENDS:,} are the most that are made; "
            "ask for fewer chunks"
        )
    if problem.windows:
        raise ProblemError("links have less bandwidth for a time, so there is no steady state")


Copies = Literal["exact", "relaxed", "subsets"]

GROUPS = {
    "conservation": "what flows into a vertex for one destination flows out of it, or stays there",
    "usage": "what crosses an edge is as much as any flow that shares it",
    "switch": "as much leaves a switch that may not copy as enters it",
    "bandwidth": "what a link or a shared limit carries takes the whole time R at most",
    "shares": "what all roots add up is all the data",
    "time": "R is held at its least while the weighted data is minimised",
}
"""What the constraints say."""


def count_fluid(problem: Problem, *, copies: Copies, steps: int | None) -> ModelEstimate:
    """Count the program of `solve_plain` with in-trees that keep away from what cannot add."""
    topology = problem.topology
    sums = adding(problem).topology if problem.collective.reduces else topology
    bare = graph_of(topology), graph_of(sums.reversed())
    copying = tuple(without_copies(each) for each in bare) if copies == "exact" else bare
    demands, ranks = demands_of(problem), len(topology.ranks)
    free = [Group(o, tuple({*range(ranks)} - {o}), demands.free) for o in range(ranks)]
    free = free if demands.free else []
    rows = Counter({"bandwidth": len(bare[0].rates), "time": 1, "shares": bool(free)})
    variables = 1 + len(free)
    nonzeros = len(bare[0].rates) + 1 + len(free)
    for reduces, groups in enumerate((demands.spreads, demands.sums)):
        whole = copies == "subsets" and not demands.only_pairs
        for several, kind in _sides(groups, free, whole=whole):
            graph = bare[reduces] if kind == "pairs" else copying[reduces]
            graph = in_steps(graph, steps)
            side = _stream(graph, several) if kind == "pairs" else _spread(graph, several, copies)
            variables += side.variables
            nonzeros += side.nonzeros + (2 * len(several) * _each(several) * (kind == "free"))
            rows += Counter(side.rows)
    counts = {name: int(rows[name]) for name in GROUPS if rows[name]}
    return ModelEstimate(variables, nonzeros, counts)


def fewest_hops(problem: Problem) -> Need:
    """Return how many hops some data takes at least; sums for everybody choose their roots."""
    topology, demands = problem.topology, demands_of(problem)
    place = [topology.index[name] for name in topology.ranks]
    src, dst = topology.ends
    far = distances(src, dst, np.ones(len(src)), len(topology.devices))
    pairs = [(place[each.root], place[other]) for each in demands.spreads for other in each.others]
    pairs += [(place[other], place[each.root]) for each in demands.sums for other in each.others]
    found = by_hops(far, pairs, topology) if pairs else Need(1, "")
    if not demands.free:
        return found
    # Whichever rank adds up, all must come to it, and get to all from it.
    own = far[np.ix_(place, place)]
    reach = np.maximum(own.max(axis=0), own.max(axis=1))
    root = int(reach.argmin())
    why = f"hops between {topology.ranks[root]}, in the middle, and what is farthest from it"
    return max(found, Need(int(reach[root]), why), key=lambda each: each.many)


def _sides(
    groups: Sequence[Group], free: Sequence[Group], *, whole: bool
) -> Iterator[tuple[list[Group], str]]:
    """Yield the groups of each side, and whether they are trees, pairs or of free roots."""
    several = [each for each in groups if whole or len(each.others) > 1]
    pairs = [each for each in groups if not whole and len(each.others) == 1]
    for found, kind in ((several, "trees"), (pairs, "pairs"), (list(free), "free")):
        if found:
            yield found, kind


def _each(groups: Sequence[Group]) -> int:
    return len(groups[0].others)


def _spread(graph: FluidGraph, groups: Sequence[Group], copies: Copies) -> ModelEstimate:
    """Count a side whose data is copied along the path."""
    if copies == "subsets":
        return _labelled(graph, groups)
    many = sum(len(each.others) for each in groups)
    variables = graph.edges * (len(groups) + many)
    rows = {"conservation": graph.vertices * many, "usage": graph.edges * many}
    nonzeros = 2 * graph.edges * many + 2 * graph.edges * many
    if copies == "relaxed":
        held = graph.incidence[np.flatnonzero(~graph.copies)]
        rows["switch"] = held.shape[0] * len(groups)
        nonzeros += held.nnz * len(groups)
    return ModelEstimate(variables, nonzeros + graph.rows.nnz * len(groups), rows)


def _labelled(graph: FluidGraph, groups: Sequence[Group]) -> ModelEstimate:
    """Count a side with a label for each set of destinations (`fluid_lp.multicast.labelled`)."""
    labels = splits = 0
    for each in groups:
        many = len(each.others)
        labels += 2**many - 1
        splits += (3**many - 2 ** (many + 1) + 1) // 2
    copying = int(graph.copies.sum())
    variables = graph.edges * (labels + len(groups)) + copying * splits
    rows = {"conservation": graph.vertices * labels, "usage": graph.edges * len(groups)}
    nonzeros = 2 * graph.edges * labels + graph.edges * (labels + len(groups))
    nonzeros += 3 * copying * splits
    return ModelEstimate(variables, nonzeros + graph.rows.nnz * len(groups), rows)


def _stream(graph: FluidGraph, groups: Sequence[Group]) -> ModelEstimate:
    """Count a side of pairs, which flow together by their roots."""
    roots = len({each.root for each in groups})
    rows = {"conservation": graph.vertices * roots}
    nonzeros = (2 * graph.edges + graph.rows.nnz) * roots
    return ModelEstimate(graph.edges * roots, nonzeros, rows)


STEP_GROUPS = {
    "conservation": "what flows into a vertex for one destination flows out of it, or stays there",
    "usage": "a chunk crosses an edge if any flow of it does",
    "capacity": "what a link or a shared limit carries in a step fits into it",
    "switch": "a chunk leaves what may neither copy nor store once",
}
"""What the constraints say."""


def count_steps(problem: Problem, steps: int) -> ModelEstimate:
    """Count the model of so many steps."""
    graph = in_steps(without_copies(graph_of(problem.topology)), steps)
    chunks = problem.collective.chunks
    pairs = sum(len({*each.destinations} - {*each.holders}) for each in chunks)
    carrying = np.flatnonzero(graph.link >= 0)
    stores = np.array([each.stores for each in graph.topology.devices])[graph.device]
    held = ~graph.copies & ~stores
    leaving = int(held[graph.src[carrying]].sum())
    rows = {
        "conservation": graph.vertices * pairs,
        "usage": len(carrying) * pairs,
        "capacity": steps * graph.rows.shape[0],
        "switch": int(held.sum()) * len(chunks),
    }
    variables = len(carrying) * len(chunks) + graph.edges * pairs
    nonzeros = 2 * graph.edges * pairs + 2 * len(carrying) * pairs
    nonzeros += (graph.rows.nnz + leaving) * len(chunks)
    return ModelEstimate(variables, nonzeros, rows)
