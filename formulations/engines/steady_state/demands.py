"""What flows in a fluid model: groups of equal wishes.

Chunks that have the same origin and the same destinations are one group, whose bytes add up. A
reduced chunk is a group too, of the reversed cluster: its sum is made at its destination of what
comes from all holders, so reversed it spreads from there (thesis, section 3.2). A sum that
everybody wants (all-reduce) has no root of its own: the model may choose. Chunks that are in place
are left out.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from ccl.collective import Chunk
from ccl.problem import Problem


@dataclass(frozen=True, slots=True)
class Group:
    """Data that goes from one rank to others, or in a reduction comes from them.

    Parameters
    ----------
    root
        Rank that has it, or that wants the sum.
    others
        Ranks that want it, or that contribute; the root is not among them.
    nbytes
        Bytes.
    """

    root: int
    others: tuple[int, ...]
    nbytes: float


@dataclass(frozen=True)
class Demands:
    """Everything that a problem asks for.

    Parameters
    ----------
    spreads
        Groups that leave their roots.
    sums
        Groups that are added up on the way to their roots.
    free
        Bytes that are added up and go to everybody, whose roots are free.
    """

    spreads: tuple[Group, ...]
    sums: tuple[Group, ...]
    free: float

    @property
    def only_pairs(self) -> bool:
        """Whether every group has one other rank, so that nothing is ever copied or added."""
        groups = (*self.spreads, *self.sums)
        return not self.free and all(len(each.others) == 1 for each in groups)


def demands_of(problem: Problem) -> Demands:
    """Return the groups of a problem; ask `refusal` first."""
    spreads: defaultdict[tuple[int, tuple[int, ...]], float] = defaultdict(float)
    sums: defaultdict[tuple[int, tuple[int, ...]], float] = defaultdict(float)
    free = 0.0
    for chunk in moving(problem):
        if not chunk.reduced:
            spreads[_group(chunk.holders, chunk.destinations)] += chunk.size
        elif len(chunk.destinations) == 1:
            sums[_group(chunk.destinations, chunk.holders)] += chunk.size
        else:
            free += chunk.size
    return Demands(_groups(spreads), _groups(sums), free)


def only_pairs(problem: Problem) -> bool:
    """Whether what moves has one source and one goal, as `Demands.only_pairs` of it says."""
    return all(
        len(each.holders) == len(each.destinations) == 1
        or (not each.reduced and len(_group(each.holders, each.destinations)[1]) <= 1)
        or (len(each.destinations) == 1 and len(_group(each.destinations, each.holders)[1]) <= 1)
        for each in moving(problem)
    )


def moving(problem: Problem) -> list[Chunk]:
    """Return the chunks of which something has to move."""
    return [each for each in problem.collective.chunks if not each.in_place]


def refusal(problem: Problem) -> str | None:
    """Say in words which chunk no group can hold, or None."""
    ranks = problem.topology.ranks
    every = len(ranks)
    for number, chunk in enumerate(problem.collective.chunks):
        if chunk.in_place:
            continue
        if not chunk.reduced and len(chunk.holders) > 1:
            return (
                f"chunk {number} is held by {len(chunk.holders)} ranks at the start; "
                "fluid models take data from one rank"
            )
        if chunk.reduced and not _rooted(chunk, every):
            return (
                f"chunk {number} adds up {len(chunk.holders)} of {every} ranks for "
                f"{len(chunk.destinations)}; fluid models add up for one rank, or all for all"
            )
    return None


def _rooted(chunk: Chunk, every: int) -> bool:
    return len(chunk.destinations) == 1 or len(chunk.destinations) == len(chunk.holders) == every


def _group(roots: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    if len(others) == 1:  # as in an all-to-all, which has thousands of them
        return roots[0], others if others[0] != roots[0] else ()
    return roots[0], tuple(sorted(set(others) - {roots[0]}))


def _groups(found: defaultdict[tuple[int, tuple[int, ...]], float]) -> tuple[Group, ...]:
    return tuple(Group(root, others, size) for (root, others), size in found.items() if others)
