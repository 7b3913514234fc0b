"""Forest of a problem: rate, splitting, packing, and trees with the paths that they take.

Of a reduction the network is turned round, and so are the trees at the end. An all-reduce is a
reduce-scatter and an all-gather at once, which share the links: `combined`.

`shares_of` finds the shares of the roots and of the links in an all-reduce by a linear program
(ForestColl, appendix E). All data goes up in-trees to the roots, where it is added up, and from
them down out-trees. Root v has the share x(v) of the data per second; of link e's c(e) the
out-trees have o(e), the in-trees the rest. All other figures are GB/s.

Variables, all >= 0: x(v), v a GPU; o(e) <= c(e); for each GPU t the flows f_t(e) to it, h_t(e)
from it. X is the sum of x. Maximise X, subject to, for each device v and GPU t,

    f_t out of v - f_t into v = x(v), and x(t) - X at v = t;   x is 0 at switches
    h_t into v - h_t out of v = x(v), and x(t) - X at v = t
    f_t(e) <= o(e);   h_t(e) <= c(e) - o(e)
    o into v = o out of v                                      v a switch

With the last rows both parts of the network give out at a switch what they take in, so each part
has trees that reach its flows (`formulations.engines.forestcoll.search`), and no trees lack such an
o: the program is exact for relays without the paper's indirection over all pairs of GPUs. The
solver's floats become fractions, whose rates are then searched exactly; so a forest is what it says
even where the fractions are not the solver's vertex.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy import sparse

from ccl.collective import all_gather, reduce_scatter
from ccl.plans import Forest, Tree
from ccl.problem import Problem
from ccl.result import ModelSize
from ccl.tree_embedding import exact
from formulations.engines.forestcoll.search import (
    BYTES,
    WHOLE,
    FixedRate,
    Ints,
    Network,
    Rate,
    fixed_rate,
    network_of,
    rate_of,
    whole,
)
from formulations.engines.forestcoll.splitting import Load, Packed, Route, Routes, pack, split
from formulations.engines.interval_overlay import refined
from formulations.solvers import cp
from formulations.solvers.cvxpy_highs import Backend

Watch = Callable[[int, int], None]
"""Called with the number of roots that have their trees and of all; may raise to stop."""


@dataclass(frozen=True, eq=False)
class Planned:
    """A forest and what is known of it.

    Parameters
    ----------
    forest
        The trees.
    makespan
        µs in the steady state, if every link that is full in the model is full.
    trees
        Trees of the root that has most, alike ones counted as often as they are.
    """

    forest: Forest
    makespan: Fraction
    trees: int


def best_forest(rate: Rate, *, watch: Watch | None = None) -> Planned:
    """Return a forest at the best rate.

    Where one root has all the data, as many trees as there are other GPUs are tried too: each may
    begin at another of them, and they replace others if they are shallower.
    """
    load = load_of(rate)
    found = _planned(rate, load, makespan=rate.makespan, watch=watch)
    others = len(rate.network.gpus) - 1
    if np.count_nonzero(load.trees) > 1 or found.forest.depth <= 2:
        return found
    times = others // math.gcd(others, int(load.trees.max()))
    if int(load.capacity.max()) * times * others >= WHOLE:
        return found
    finer = Load(load.network, load.capacity * times, load.trees * times)
    again = _planned(rate, finer, makespan=rate.makespan, watch=watch)
    return again if again.forest.depth < found.forest.depth else found


def fixed_forest(rate: Rate, trees: int, *, watch: Watch | None = None) -> Planned:
    """Return a forest at the best rate with `trees` trees of each root.

    Where roots have different amounts of data, one with twice as much has twice as many trees.

    Raises
    ------
    SolveError
        If links that carry whole trees leave a switch that cannot be split.
    """
    fixed = fixed_rate(rate.network, trees, best=rate.speed / rate.network.unit)
    return _planned(
        rate,
        Load(rate.network, fixed.capacities(rate.network), rate.network.weight * trees),
        makespan=makespan_of(rate.network, fixed),
        watch=watch,
    )


def makespan_of(network: Network, fixed: FixedRate) -> Fraction:
    """Return the µs that a fixed number of trees takes in the steady state."""
    return network.share * fixed.time / (fixed.trees * network.unit * BYTES)


def load_of(rate: Rate) -> Load:
    """Return the fewest trees, all alike in weight, that make up the best rate."""
    network = rate.network
    speed = rate.speed / network.unit
    capacity, trees = network.capacity * speed.denominator, network.weight * speed.numerator
    common = math.gcd(int(np.gcd.reduce(capacity)), int(np.gcd.reduce(trees)))
    return Load(network, capacity // common, trees // common)


def halves(problem: Problem) -> tuple[Problem, Problem]:
    """Return the reduce-scatter and the all-gather of an all-reduce."""
    ranks = problem.collective.ranks
    size = float(sum(chunk.size for chunk in problem.collective.chunks))
    topology = problem.topology
    both = reduce_scatter(ranks, size), all_gather(ranks, size)
    return Problem(topology, both[0]), Problem(topology, both[1])


def mirrored(gathering: Planned) -> Planned:
    """Return the reduce-scatter along the trees of an all-gather, each link taken backwards."""
    trees = tuple(turned(tree) for tree in gathering.forest.trees)
    return replace(gathering, forest=Forest(trees, reduces=True))


def combined(reducing: Planned, gathering: Planned) -> Planned:
    """Return the all-reduce of both halves, each root adding up and spreading the same share.

    The halves follow one another in the makespan; what the links really take may be less.
    """
    roots = {tree.root for tree in gathering.forest.trees}
    trees, spread = (
        tuple(Tree(tree.root, tree.routes, tree.weight / len(roots)) for tree in each.forest.trees)
        for each in (reducing, gathering)
    )
    return Planned(
        Forest(trees, reduces=True, spread=spread),
        reducing.makespan + gathering.makespan,
        max(reducing.trees, gathering.trees),
    )


def _planned(rate: Rate, load: Load, *, makespan: Fraction, watch: Watch | None) -> Planned:
    trees = trees_of(load, watch=watch)
    if rate.reduces:
        trees = tuple(turned(tree) for tree in trees)
    return Planned(Forest(trees, reduces=rate.reduces), makespan, int(load.trees.max()))


def trees_of(load: Load, *, watch: Watch | None = None) -> tuple[Tree, ...]:
    """Return the trees of a load with their paths; the weights of each root add up to 1.

    Raises
    ------
    SolveError
        If they do not fit, or a switch cannot be split.
    """
    found = split(load)
    routes = _Routes(load.network, found.routes)
    trees = []
    for packed in pack(load, found, stop=watch):
        trees += routes.trees(packed, of=int(load.trees[packed.root]))
    return tuple(trees)


def turned(tree: Tree) -> Tree:
    """Return an out-tree of the reversed cluster as an in-tree, children first, and back."""
    return Tree(tree.root, tuple(route[::-1] for route in reversed(tree.routes)), tree.weight)


class _Routes:
    """Paths of connections, handed out to trees."""

    def __init__(self, network: Network, routes: Routes) -> None:
        self.names = [each.name for each in network.topology.devices]
        self.rank = network.topology.rank
        self.left = {
            ends: deque(sorted(each, key=lambda route: len(route[0])))
            for ends, each in routes.items()
        }

    def trees(self, packed: Packed, *, of: int) -> list[Tree]:
        """Return copies of a tree as trees with routes, copies with the same paths as one."""
        taken = [self._take(edge, packed.copies) for edge in packed.edges]
        root = self.rank[self.names[packed.root]]
        return [
            Tree(root, tuple(self._named(route) for route in routes), weight / of)
            for routes, weight in refined(taken).items()
        ]

    def _named(self, route: Route) -> tuple[str, ...]:
        return tuple(self.names[device] for device in route)

    def _take(self, edge: tuple[int, int], copies: int) -> list[tuple[Route, Fraction]]:
        """Return routes with how many of the copies of an edge go along each."""
        left = self.left[edge]
        for place, (route, many) in enumerate(left):
            if many >= copies:
                left[place] = route, many - copies
                return [(route, Fraction(copies))]
        taken: list[tuple[Route, Fraction]] = []
        while copies > 0:
            route, many = left.popleft()
            some = min(many, copies)
            copies -= some
            if some:
                taken.append((route, Fraction(some)))
            if many > some:
                left.appendleft((route, many - some))
        return taken


DENOMINATORS = (12, 120, 5_000, 200_000)
"""Largest denominators that are tried for shares, one after the other."""

ROUND = 720_720
"""Parts of a unit, where the shares are no such fractions."""

CLOSE = 1e-7
"""Fractions that are slower than the program by less are the program's."""


@dataclass(frozen=True, eq=False)
class Shares:
    """What the linear program says.

    Parameters
    ----------
    makespan
        µs in the steady state.
    roots
        x over X of each rank, shape (ranks,).
    out
        o over c of each link, shape (links,).
    size
        Size of the program.
    """

    makespan: float
    roots: np.ndarray
    out: np.ndarray
    size: ModelSize


def shares_of(problem: Problem, *, backend: Backend, time_limit: float | None = None) -> Shares:
    """Solve the program of an all-reduce.

    Raises
    ------
    SolveError
        If the solver finds nothing, or not in time.
    """
    network = network_of(halves(problem)[1])
    links, ranks = len(network.src), len(network.gpus)
    devices = len(network.weight)
    leaves = leaving(network)
    at = sparse.csr_array((np.ones(ranks), (network.gpus, np.arange(ranks))), (devices, ranks))
    relays = np.setdiff1d(np.arange(devices), network.gpus)
    capacity = (network.capacity / network.capacity.max())[:, None]
    roots = cp.Variable((ranks, 1), nonneg=True)
    out = cp.Variable((links, 1), nonneg=True)
    down, up = (cp.Variable((links, ranks), nonneg=True) for _ in range(2))
    row = np.ones((1, ranks))
    total = row @ roots
    wanted = (at @ roots) @ row - total[0, 0] * at.toarray()
    rows = [
        leaves @ down == wanted,
        leaves @ up == -wanted,
        down <= out @ row,
        up <= (capacity - out) @ row,
        out <= capacity,
    ]
    if len(relays):
        rows.append(leaves[relays] @ out == np.zeros((len(relays), 1)))
    model = cp.Problem(cp.Maximize(total[0, 0]), rows)
    found = backend.solve(model, time_limit=time_limit)
    given, part = np.asarray(roots.value)[:, 0], np.asarray(out.value)[:, 0]
    speed = float(given.sum()) * float(network.capacity.max() * network.unit)
    return Shares(
        makespan=float(_bytes(problem)) / (speed * BYTES),
        roots=np.clip(given / given.sum(), 0, 1),
        out=np.clip(part / capacity[:, 0], 0, 1),
        size=found.size,
    )


def _bytes(problem: Problem) -> Fraction:
    return sum((exact(each.size) for each in problem.collective.chunks), Fraction(0))


def leaving(network: Network) -> sparse.csr_array:
    """Return 1 where a link leaves a device and -1 where it enters, shape (devices, links)."""
    links = np.arange(len(network.src))
    signs = np.repeat(np.array([1, -1]), len(links))
    ends = np.concatenate([network.src, network.dst]), np.tile(links, 2)
    return sparse.csr_array((signs, ends), shape=(len(network.weight), len(links)))


def shared_forest(
    problem: Problem, shares: Shares, *, backend: Backend, watch: Watch | None = None
) -> Planned | None:
    """Return the forest of the fractions near the program's shares, None if none is near."""
    best = shared_rates(problem, shares, backend=backend)
    return None if best is None else _all_reduce_planned(best, watch=watch)


def shared_rates(problem: Problem, shares: Shares, *, backend: Backend) -> tuple[Rate, Rate] | None:
    """Return the rates up and down of the fractions near the program's shares, None if none is.

    The first that are as fast as the program are taken, else the fastest.
    """
    gathering = network_of(halves(problem)[1])
    nbytes = _bytes(problem)
    best: tuple[Rate, Rate] | None = None
    for roots, down, part in _fractions(gathering, shares, backend):
        rates = _rates(gathering, roots, (down, part), nbytes=nbytes)
        if rates is not None and (best is None or _slower(rates) < _slower(best)):
            best = rates
        if best is not None and float(_slower(best)) <= shares.makespan * (1 + CLOSE):
            break
    return best


def _slower(rates: tuple[Rate, Rate]) -> Fraction:
    return max(each.makespan for each in rates)


def _fractions(
    network: Network, shares: Shares, backend: Backend
) -> Iterator[tuple[Ints, Ints, int]]:
    """Yield whole weights of the ranks, capacities of the out-trees, and parts of a unit."""
    for most in DENOMINATORS:
        roots = [Fraction(each).limit_denominator(most) for each in shares.roots.tolist()]
        out = [Fraction(each).limit_denominator(most) for each in shares.out.tolist()]
        part = math.lcm(*(each.denominator for each in out))
        fine = part * math.lcm(*(each.denominator for each in roots))
        if any(roots) and fine * int(network.capacity.sum()) < WHOLE:
            parts = [int(c * o * part) for c, o in zip(network.capacity.tolist(), out, strict=True)]
            yield np.array(whole(roots)[0]), np.array(parts), part
    roots = np.rint(shares.roots * ROUND).astype(np.int64)
    yield roots, _rounded(network, shares.out * network.capacity * ROUND, backend), ROUND


def _rounded(network: Network, amount: np.ndarray, backend: Backend) -> Ints:
    """Round up or down so that switches stay balanced; vertices of such a program are whole."""
    low = np.floor(amount)
    up = cp.Variable(len(amount), bounds=[0, 1])
    leaves = leaving(network)[np.setdiff1d(np.arange(len(network.weight)), network.gpus)]
    rows = [leaves @ up == -(leaves @ low)]
    model = cp.Problem(cp.Minimize((1 - 2 * (amount - low)) @ up), rows)
    backend.solve(model, method="simplex")
    return np.asarray(low + np.rint(np.asarray(up.value)), dtype=np.int64)


def _rates(
    gathering: Network, roots: Ints, out: tuple[Ints, int], *, nbytes: Fraction
) -> tuple[Rate, Rate] | None:
    """Return the rates up and down, None if the shares leave no trees or are too fine."""
    down, part = out
    weight = np.zeros_like(gathering.weight)
    weight[gathering.gpus] = roots
    ends = gathering.src, gathering.dst
    networks = [
        replace(
            gathering,
            src=src,
            dst=dst,
            capacity=capacity,
            unit=gathering.unit / part,
            weight=weight,
            share=nbytes / int(weight.sum()),
        )
        for capacity, (src, dst) in ((gathering.capacity * part - down, ends[::-1]), (down, ends))
    ]
    most = int(weight.sum()) * int(gathering.capacity.sum()) * part
    if most >= WHOLE or not all(_balanced(each) for each in networks):
        return None
    up, out_rate = (rate_of(each, sinks=each.sinks, reduces=False) for each in networks)
    return (up, out_rate) if up.speed > 0 and out_rate.speed > 0 else None


def _balanced(network: Network) -> bool:
    net = leaving(network) @ network.capacity
    net[network.gpus] = 0
    return not net.any()


def _all_reduce_planned(rates: tuple[Rate, Rate], *, watch: Watch | None) -> Planned:
    network = rates[0].network
    parts = network.weight[network.gpus].tolist()
    loads = [load_of(rate) for rate in rates]
    up, down = (
        [
            replace(each, weight=each.weight * Fraction(parts[each.root], sum(parts)))
            for each in trees_of(load, watch=watch)
        ]
        for load in loads
    )
    forest = Forest(tuple(turned(tree) for tree in up), reduces=True, spread=tuple(down))
    return Planned(forest, _slower(rates), max(int(load.trees.max()) for load in loads))
