"""Groups that spread over one graph, as variables and rows of a CVXPY model, relaxed or exact.

A model has a side for what spreads over the cluster, one for what is added up, spread over its
reversal, and for each of the two one for streams, groups with one other rank. The sides meet in
the capacity rows alone (`formulations.engines.fluid_lp.plain`).

Sets: vertices v and edges e of a graph, groups g with a root o(g) and the ranks D(g) that want its
data (`formulations.engines.steady_state`). Constants: size[g]. Variables, all >= 0, in the same
unit as the sizes: w[e, g], how much of g crosses e; f[e, g, d], how much of what is in flight to d
in D(g).

    f[., g, d] is a flow of size[g] from o(g) to d          (3.1), (3.2), (3.3)
    w[e, g] >= f[e, g, d]                                   (3.7)

That alone is LP (3.10). It lets every vertex copy, so it needs the graph of duplicates, or rows
that hold back a vertex v that may not copy:

    sum of w[., g] into v = sum of w[., g] out of v         (3.12), which makes LP (3.13)

LP (3.14) counts destinations: x[a, e, g] is what crosses e in flight to a of them.

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

For tiny cases `labelled` is the exact side: data labelled by the destinations that they are for.
What spreads is exact where it is said of all data for whom they still are (thesis, section 3.1,
LP (3.11)). Sets: groups g, labels S, the non-empty subsets of D(g), splits of a label S into two,
{A, B}. Variables, all >= 0: f[e, g, S], how much for exactly S crosses edge e; y[v, g, {A, B}],
how much for S = A + B is copied at v, once for A and once for B, where v may copy. For every
vertex v, group g and label S:

    sum of f[., g, S] into v - out of v + sum of y[v, g, split] that make S
        - sum of y[v, g, split] of S  =  size[g] ([S = {d} and v = d] - [S = D(g) and v = o(g)])

and w[e, g], the sum of f[e, g, S] over S, is what the capacity rows count. A solution falls apart
into trees (`formulations.engines.fluid_lp.arborescences`), so this is the optimum also where
memories copy that want no data; LP (3.10) and the graph of duplicates are relaxations there, since
packing Steiner trees is NP-hard and they are of polynomial size. Here a group of n destinations has
2^n - 1 labels and (3^n - 2^(n+1) + 1) / 2 splits.

Decisions on labels. The thesis draws an edge from (v1, S1) to (v2, S2) for every S2 within S1 and
requires an ordinary flow to each destination; such a flow of one unit from (o, D) to (d, {d}) would
either count data once for each destination (its rows of capacity add up f of all) or, added up over
destinations as its index sets f[., o] have it, lose at every such edge what is for S1 without S2.
Its sums also run over "S1 within S2", in the direction opposite to its edges, and its edges join
(v1, t) and (v2, t). Here an edge keeps the label, and a label is split in two at vertices, as the
thesis does in section 4.2 with y over partitions; in two at a time, since a partition into more is
several of these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy import sparse

from ccl.errors import ProblemError
from formulations.engines.steady_state import FluidGraph, Group, Ints
from formulations.solvers import cp

Copies = Literal["exact", "free", "relaxed", "counted", "subsets"]
"""How a model sees to it that a device that may not copy does not: on the graph of duplicates, not
at all (3.10), by the rows (3.13), by counting destinations (3.14)."""

Amounts: TypeAlias = "np.ndarray | cp.Expression"
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
        What is copied at each copying vertex, of sides with labels (`labelled`).
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
    """Return the side of groups that are copied along the path.

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
    from cvxpy.atoms.affine.diag import diag  # noqa: PLC0415  loaded by a model's first use

    return product(matrix, diag(amounts))


def product(matrix: sparse.csr_array, values: cp.Expression) -> cp.Expression:
    """Return a matrix times an expression."""
    product: cp.Expression = cp.Constant(matrix) @ values
    return product


MOST = 7
"""Most destinations of a group: 127 labels and 966 splits at every vertex."""

COLUMNS = 40_000
"""Most variables of a side; of more HiGHS takes minutes."""


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of all groups, one after the other, and their splits.

    Parameters
    ----------
    masks
        Which of the group's destinations each label is for, as bits, shape (labels,).
    owner
        Group of each, shape (labels,).
    splits
        The label of each split and the two that it makes, shape (splits, 3).
    """

    masks: np.ndarray
    owner: np.ndarray
    splits: np.ndarray


def labels_of(groups: Sequence[Group]) -> Labels:
    """Return the labels of groups of at most `MOST` destinations each."""
    masks: list[int] = []
    owner: list[int] = []
    splits: list[tuple[int, int, int]] = []
    for number, group in enumerate(groups):
        first = len(masks) - 1  # mask 1 is the first
        many = 1 << len(group.others)
        masks += range(1, many)
        owner += [number] * (many - 1)
        for mask in range(1, many):
            part = (mask - 1) & mask
            while part:
                if part > mask - part:  # each split once
                    splits.append((first + mask, first + part, first + mask - part))
                part = (part - 1) & mask
    return Labels(np.array(masks), np.array(owner), np.array(splits, dtype=np.int64).reshape(-1, 3))


def labelled(graph: FluidGraph, groups: Sequence[Group], amounts: Amounts) -> Side:
    """Return the exact side of a few groups; the goals of its commodities are labels.

    Parameters
    ----------
    graph
        Without duplicates.
    groups
        One or more, of at most `MOST` destinations each.
    amounts
        How much each has, numbers or variables, shape (groups,).

    Raises
    ------
    ProblemError
        If there are too many labels.
    """
    reason = too_many(graph, groups)
    if reason is not None:
        raise ProblemError(reason)
    labels = labels_of(groups)
    many, copying = len(labels.masks), np.flatnonzero(graph.copies)
    f = cp.Variable((graph.edges, many), nonneg=True)
    w = cp.Variable((graph.edges, len(groups)), nonneg=True)
    ends = np.zeros((graph.vertices, many))
    for column, (mask, owner) in enumerate(zip(labels.masks, labels.owner, strict=True)):
        group = groups[owner]
        if mask == (1 << len(group.others)) - 1:
            ends[graph.origins[group.root], column] -= 1.0
        if mask & (mask - 1) == 0:
            ends[graph.goals[group.others[int(mask).bit_length() - 1]], column] += 1.0
    chosen = np.equal.outer(np.arange(len(groups)), labels.owner).astype(float)
    balance = product(graph.incidence, f)
    split = None
    if len(labels.splits) and len(copying):
        split = cp.Variable((len(copying), len(labels.splits)), nonneg=True)
        balance = balance + product(_at(graph, copying), split) @ _made(labels)
    rules = (balance == scaled(sparse.csr_array(ends), amounts @ chosen), f @ chosen.T == w)
    return Side(graph, tuple(groups), w, f, labels.owner, labels.masks, rules, split)


def too_many(graph: FluidGraph, groups: Sequence[Group]) -> str | None:
    """Explain why data cannot be labelled, or None."""
    most = max(len(each.others) for each in groups)
    if most > MOST:
        return f"data has {most} destinations, whose sets are labels here; up to {MOST} are few"
    columns = variables(graph, [len(each.others) for each in groups])
    if columns > COLUMNS:
        return (
            f"labels for all sets of destinations make {columns:,} variables; {COLUMNS:,} are few"
        )
    return None


def variables(graph: FluidGraph, sizes: Sequence[int]) -> int:
    """Return about how many variables labels of groups with so many destinations make."""
    copying = int(graph.copies.sum())
    return sum(graph.edges * 2**many + copying * 3**many // 2 for many in sizes)


def _made(labels: Labels) -> sparse.csr_array:
    """Return what a split takes from each label and gives to it, shape (splits, labels)."""
    many = len(labels.splits)
    counts = np.repeat([[-1.0, 1.0, 1.0]], many, axis=0).ravel()
    place = np.repeat(np.arange(many), 3), labels.splits.ravel()
    return sparse.csr_array((counts, place), shape=(many, len(labels.masks)))


def _at(graph: FluidGraph, copying: np.ndarray) -> sparse.csr_array:
    """Return where each copying vertex is, shape (vertices, copying)."""
    ones, numbers = np.ones(len(copying)), np.arange(len(copying))
    return sparse.csr_array((ones, (copying, numbers)), shape=(graph.vertices, len(copying)))
