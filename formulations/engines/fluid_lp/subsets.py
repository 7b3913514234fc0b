"""The exact program of tiny cases: data labelled by the destinations that they are for.

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

Decisions. The thesis draws an edge from (v1, S1) to (v2, S2) for every S2 within S1 and asks for an
ordinary flow to each destination; such a flow of one unit from (o, D) to (d, {d}) would either
count data once for each destination (its rows of capacity add up f of all) or, added up over
destinations as its index sets f[., o] have it, lose at every such edge what is for S1 without S2.
Its sums also run over "S1 within S2", the other way round than its edges, and its edges join
(v1, t) and (v2, t). Here an edge keeps the label, and a label is split in two at vertices, as the
thesis does in section 4.2 with y over partitions; in two at a time, since a partition into more is
several of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
from scipy import sparse

from ccl.errors import ProblemError
from formulations.engines.fluid_lp.multicast import Amounts, Side, product, scaled
from formulations.engines.steady_state.demands import Group
from formulations.engines.steady_state.graph import FluidGraph

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
    rules = (
        balance == scaled(sparse.csr_array(ends), amounts @ chosen),
        f @ chosen.T == w,
    )
    return Side(graph, tuple(groups), w, f, labels.owner, labels.masks, rules, split)


def too_many(graph: FluidGraph, groups: Sequence[Group]) -> str | None:
    """Say in words why data cannot be labelled, or None."""
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
