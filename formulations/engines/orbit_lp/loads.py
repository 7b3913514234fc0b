"""What a problem moves, as loads that a group of symmetries may act on.

A load is data of many roots that is alike in kind: it *spreads* (copies may be made on the way) or
goes in *pairs* (from one rank to one other, where no copy helps). Pairs of one root flow together:
who gets which byte is decided afterwards, so an all-to-all has as many flows as GPUs and not as
pairs. What is added up or collected spreads or is dealt out on the reversed cluster.

Big clusters have no `Problem`: an all-gather of 100,000 GPUs would list 10^10 destinations.
`Uniform` says the same in four words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ccl.collective import CollectiveKind
from ccl.errors import ProblemError
from ccl.problem import Problem
from ccl.topology import Topology
from formulations.engines.steady_state.demands import Group as Wish
from formulations.engines.steady_state.demands import demands_of, refusal


@dataclass(frozen=True, slots=True)
class Uniform:
    """A collective of equal shares, said without its chunks.

    Parameters
    ----------
    topology
        Where it runs.
    kind
        Any but ``custom``.
    size
        Bytes of the whole buffer, as nccl-tests defines it.
    root
        Rank, where the kind has one.
    """

    topology: Topology
    kind: CollectiveKind
    size: float
    root: int = 0


@dataclass(frozen=True, eq=False)
class Load:
    """Data of one kind that leaves its roots.

    Parameters
    ----------
    roots
        Rank of each item, shape (items,).
    nbytes
        What each rank that an item goes to receives of it at most, in bytes, shape (items,).
    spreads
        Whether what goes to several ranks may be copied on the way; else each gets its own.
    turned
        Whether it flows on the reversed cluster.
    wants
        Share of `nbytes` that each rank gets of each item, shape (items, ranks), or None where
        every rank but the root gets all of it.
    free
        Whether the roots may share the data in any proportion; each has `nbytes` if alone.
    """

    roots: np.ndarray
    nbytes: np.ndarray
    spreads: bool
    turned: bool = False
    wants: sparse.csr_array | None = None
    free: bool = False

    def shares(self, item: int, ranks: int) -> np.ndarray:
        """Return the share of an item's bytes that each rank gets, shape (ranks,)."""
        if self.wants is not None:
            return np.asarray(self.wants[[item], :].toarray()[0])
        shares = np.ones(ranks)
        shares[self.roots[item]] = 0.0
        return shares


def loads_of(problem: Problem | Uniform) -> tuple[Load, ...]:
    """Return all loads of a problem.

    Raises
    ------
    ProblemError
        If no loads can say it.
    """
    if isinstance(problem, Uniform):
        return _uniform(problem)
    words = refusal(problem)
    if words is not None:
        raise ProblemError(words)
    demands = demands_of(problem)
    ranks = len(problem.topology.ranks)
    pairs = [_pair(each) for each in demands.spreads if len(each.others) == 1]
    pairs += [_pair(each)[::-1] for each in demands.sums if len(each.others) == 1]
    sizes = [each.nbytes for each in (*demands.spreads, *demands.sums) if len(each.others) == 1]
    loads = [*_copied(demands.spreads, ranks, turned=False)]
    loads += _copied(demands.sums, ranks, turned=True)
    if pairs:
        loads.append(_dealt(pairs, sizes, ranks=ranks))
    if demands.free:
        loads += _shared(demands.free, ranks)
    return tuple(loads)


def _uniform(problem: Uniform) -> tuple[Load, ...]:
    ranks, size = len(problem.topology.ranks), problem.size
    every, root = np.arange(ranks), np.array([problem.root])
    kinds = {
        "all-gather": (every, size / ranks, True, False),
        "reduce-scatter": (every, size / ranks, True, True),
        "broadcast": (root, size, True, False),
        "reduce": (root, size, True, True),
        "all-to-all": (every, size / ranks, False, False),
        "scatter": (root, size / ranks, False, False),
        "gather": (root, size / ranks, False, True),
    }
    if problem.kind == "all-reduce":
        return _shared(size, ranks)
    if problem.kind not in kinds:
        msg = f"{problem.kind} is not the same for all; make a problem of its chunks"
        raise ProblemError(msg)
    roots, nbytes, spreads, turned = kinds[problem.kind]
    return (Load(roots, np.full(len(roots), nbytes), spreads, turned),)


def _shared(nbytes: float, ranks: int) -> tuple[Load, ...]:
    """Return a sum for everybody: up the trees of its roots and down again."""
    roots, each = np.arange(ranks), np.full(ranks, nbytes)
    return tuple(Load(roots, each, spreads=True, turned=turn, free=True) for turn in (True, False))


def _pair(wish: Wish) -> tuple[int, int]:
    return wish.root, wish.others[0]


def _copied(wishes: Sequence[Wish], ranks: int, *, turned: bool) -> Iterable[Load]:
    """Yield one load of what goes to everybody, and one of what goes to some."""
    some = [each for each in wishes if 1 < len(each.others) < ranks - 1]
    every = [each for each in wishes if 1 < len(each.others) == ranks - 1]
    for listed, all_want in ((every, True), (some, False)):
        if listed:
            roots = np.array([each.root for each in listed])
            item = np.repeat(np.arange(len(listed)), [len(each.others) for each in listed])
            rank = np.concatenate([np.array(each.others) for each in listed])
            wants = sparse.csr_array((np.ones(len(rank)), (item, rank)), (len(listed), ranks))
            sizes = np.array([each.nbytes for each in listed])
            yield Load(roots, sizes, True, turned, None if all_want else wants)


def _dealt(pairs: Sequence[tuple[int, int]], sizes: Sequence[float], *, ranks: int) -> Load:
    """Return pairs by their sources, or by their goals where these are fewer."""
    ends = np.array(pairs)
    turned = len(np.unique(ends[:, 1])) < len(np.unique(ends[:, 0]))
    if turned:
        ends = ends[:, ::-1]
    roots, item = np.unique(ends[:, 0], return_inverse=True)
    shape = len(roots), ranks
    wants = sparse.csr_array((np.array(sizes, dtype=float), (item.ravel(), ends[:, 1])), shape)
    most = wants.max(axis=1).toarray().ravel()
    wants = sparse.csr_array(sparse.diags_array(1 / most) @ wants)
    everyone = wants.nnz == len(roots) * (ranks - 1) and bool((wants.data == 1).all())
    return Load(roots, most, False, turned, None if everyone else wants)
