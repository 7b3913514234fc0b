"""Groups that spread over one graph, as variables and rows of a CVXPY model.

A model has a side for what spreads over the cluster, one for what is added up, spread over its
reversal, and for each of the two one for streams, groups with one other rank. The sides meet in
the capacity rows alone (`formulations.engines.fluid_lp.plain`).

Sets: vertices v and edges e of a graph (`formulations.engines.steady_state.graph`), groups g with a
root o(g) and the ranks D(g) that want its data (`formulations.engines.steady_state.demands`).
Constants: size[g]. Variables, all >= 0, in the same unit as the sizes: w[e, g], how much of g
crosses e; f[e, g, d], how much of what is on its way to d in D(g).

    f[., g, d] is a flow of size[g] from o(g) to d          (3.1), (3.2), (3.3)
    w[e, g] >= f[e, g, d]                                   (3.7)

That alone is LP (3.10). It lets every vertex copy, so it needs the graph of duplicates, or rows
that hold back a vertex v that may not copy:

    sum of w[., g] into v = sum of w[., g] out of v         (3.12), which makes LP (3.13)

LP (3.14) counts destinations: x[a, e, g] is what crosses e on its way to a of them.

    sum over a of x[a, e, g] = w[e, g],  sum over a of a x[a, e, g] = sum over d of f[e, g, d]
    sum of x[a, ., g] into v = sum of x[a, ., g] out of v, for each a             v may not copy
    sum over a' of floor(a' / a) (x[a', ., g] into v - out of v)                  v may copy
        >= (size[g] if a = 1 and v is in D(g)) - (size[g] floor(|D(g)| / a) if v = o(g))

Streams need no w (3.15): their flows are added up by root, F[e, o], with a demand at every
destination (the thesis has a flow for each pair, which takes n times the columns for the same).

Decisions. The thesis writes w >= 0 below (3.16), which has no w. Its (3.14) has the sums of x over
a' >= a in place of floor(a' / a), so that with a = 1 no vertex could copy: one unit that comes in
for two destinations may leave as two, for one each. What is split keeps its count, so any function
of the count that is superadditive may only fall; floor(a' / a) is one for each a, and it is the
thesis' own for a > n / 2. Its row "x[1] over the edges that enter d is 1" holds in the network
over time, where nothing leaves (d, T); here it is the term at v in D(g), and the origin has the
term of the |D(g)| destinations with which all of its data begin.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import cvxpy as cp
import numpy as np
from cvxpy.atoms.affine.diag import diag
from scipy import sparse

from formulations.engines.steady_state.demands import Group
from formulations.engines.steady_state.graph import FluidGraph, Ints

Copies = Literal["exact", "free", "relaxed", "counted", "subsets"]
"""How a model sees to it that a device that may not copy does not: on the graph of duplicates, not
at all (3.10), by the rows (3.13), by counting destinations (3.14)."""

Amounts = np.ndarray | cp.Expression
"""How much each group has, shape (groups,)."""


@dataclass(frozen=True, eq=False)
class Side:
    """Some groups on one graph.

    Parameters
    ----------
    graph
        What they spread over.
    groups
        The groups; of streams one for each root, with all its destinations.
    w
        What each edge carries of each group, shape (edges, groups).
    f
        The same by destination, shape (edges, commodities); None for streams.
    owner, goal
        Number of the group and rank of the destination of each commodity, shape (commodities,).
    rules
        Its rows, those of capacity apart.
    split
        What is copied at each copying vertex, of sides with labels
        (`formulations.engines.fluid_lp.subsets`).
    """

    graph: FluidGraph
    groups: tuple[Group, ...]
    w: cp.Variable
    f: cp.Variable | None
    owner: Ints
    goal: Ints
    rules: tuple[cp.Constraint, ...]
    split: cp.Variable | None = None

    @property
    def total(self) -> cp.Expression:
        """What each edge carries, shape (edges,)."""
        total: cp.Expression = self.w @ np.ones(self.w.shape[1])
        return total


def spread(graph: FluidGraph, groups: Sequence[Group], amounts: Amounts, *, copies: Copies) -> Side:
    """Return the side of groups that are copied on the way.

    Parameters
    ----------
    graph
        For ``exact`` that of duplicates.
    groups
        One or more.
    amounts
        How much each has, numbers or variables.
    copies
        Which rows hold back what may not copy.
    """
    owner = np.repeat(np.arange(len(groups)), [len(each.others) for each in groups])
    goal = np.array([rank for each in groups for rank in each.others], dtype=np.int64)
    roots = np.array([each.root for each in groups], dtype=np.int64)
    many = len(owner)
    w = cp.Variable((graph.edges, len(groups)), nonneg=True)
    f = cp.Variable((graph.edges, many), nonneg=True)
    chosen = _one_hot(owner, len(groups)).T  # (groups, commodities)
    ends = _one_hot(graph.goals[goal], graph.vertices).T
    ends = ends - _one_hot(graph.origins[roots[owner]], graph.vertices).T
    rules = [product(graph.incidence, f) == scaled(ends, amounts @ chosen), f <= w @ chosen]
    if copies == "relaxed":
        held = graph.incidence[np.flatnonzero(~graph.copies)]
        rules += [product(held, w) == 0] if held.shape[0] else []
    side = Side(graph, tuple(groups), w, f, owner, goal, tuple(rules))
    return _counted(side, f @ chosen.T, amounts) if copies == "counted" else side


def stream(graph: FluidGraph, groups: Sequence[Group], unit: float) -> Side:
    """Return the side of groups with one other rank each, added up by root.

    Parameters
    ----------
    graph
        Without duplicates: nothing is ever copied.
    groups
        One or more.
    unit
        Bytes in which the variables count.
    """
    wants: defaultdict[int, defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
    for each in groups:
        wants[each.root][each.others[0]] += each.nbytes / unit
    supply = np.zeros((graph.vertices, len(wants)))
    merged = []
    for column, (root, of_root) in enumerate(wants.items()):
        for rank, amount in of_root.items():
            supply[graph.goals[rank], column] += amount
            supply[graph.origins[root], column] -= amount
        merged.append(Group(root, tuple(of_root), sum(of_root.values()) * unit))
    w = cp.Variable((graph.edges, len(wants)), nonneg=True)
    none = np.zeros(0, dtype=np.int64)
    return Side(graph, tuple(merged), w, None, none, none, (product(graph.incidence, w) == supply,))


def _counted(side: Side, flows: cp.Expression, amounts: Amounts) -> Side:
    """Add the variables x and the rows of (3.14)."""
    graph, groups = side.graph, len(side.groups)
    most = max(len(each.others) for each in side.groups)
    count = np.arange(1, most + 1)
    same = sparse.eye_array(groups)
    x = cp.Variable((graph.edges, most * groups), nonneg=True)  # by count, then by group
    copying, held = np.flatnonzero(graph.copies), np.flatnonzero(~graph.copies)
    kept = sparse.kron(count[:, None] // count[None, :], same)  # floor(a' / a)
    due = np.zeros((graph.vertices, most * groups))
    for number, each in enumerate(side.groups):
        due[graph.goals[list(each.others)], number] += 1.0
        begun = len(each.others) // count
        due[graph.origins[each.root], number::groups] -= begun
    every = np.kron(np.ones(most), np.eye(groups))  # (groups, counts times groups)
    rules = [
        x @ sparse.kron(np.ones((most, 1)), same) == side.w,
        x @ sparse.kron(count[:, None], same) == flows,
        (graph.incidence[copying] @ x) @ kept
        >= scaled(sparse.csr_array(due[copying]), amounts @ every),
    ]
    rules += [product(graph.incidence[held], x) == 0] if len(held) else []
    return Side(graph, side.groups, side.w, side.f, side.owner, side.goal, (*side.rules, *rules))


def _one_hot(places: Ints, many: int) -> sparse.csr_array:
    """Return (rows, many): a one in each row, at its place."""
    rows = np.arange(len(places))
    return sparse.csr_array((np.ones(len(places)), (rows, places)), shape=(len(places), many))


def scaled(matrix: sparse.csr_array, amounts: Amounts) -> cp.Expression:
    """Return a matrix with each column times an amount, which may be an expression."""
    if isinstance(amounts, np.ndarray):
        return cp.Constant(matrix @ sparse.diags_array(amounts))
    return product(matrix, diag(amounts))


def product(matrix: sparse.csr_array, values: cp.Expression) -> cp.Expression:
    """Return a matrix times an expression."""
    product: cp.Expression = cp.Constant(matrix) @ values
    return product
