"""Rooted trees over places, and the steps in which chunks go along them.

Place 0 is the root, and parents come before their children. In a step a place sends to one child,
as over one port; only the flat tree's root sends to all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from formulations.engines.closed_forms.messages import Messages, Task


@dataclass(frozen=True)
class Tree:
    """A tree and when chunks go along it.

    Parameters
    ----------
    parent
        Of each place, -1 at the root, shape (places,).
    first
        Step in which each place is sent the first chunk, -1 at the root, shape (places,).
    stride
        Steps from chunk to chunk on every edge; 0 where all go in the same step.
    """

    parent: np.ndarray
    first: np.ndarray
    stride: int

    @property
    def edges(self) -> list[tuple[int, int]]:
        """Every parent with each of its children."""
        below = np.flatnonzero(self.parent >= 0)
        return list(zip(self.parent[below].tolist(), below.tolist(), strict=True))

    @property
    def height(self) -> int:
        """Steps until the last place has the first chunk."""
        return int(self.first.max()) + 1

    def steps(self, chunks: int) -> int:
        """Return how many it takes until every place has so many chunks."""
        return self.height + self.stride * (chunks - 1)

    @cached_property
    def paths(self) -> list[list[int]]:
        """Places from below the root down to each place."""
        paths: dict[int, list[int]] = {-1: []}
        for place in np.argsort(self.first, kind="stable").tolist():
            above = int(self.parent[place])
            paths[place] = [*paths[above], place] if above >= 0 else []
        return [paths[place] for place in range(len(self.parent))]

    def spread(self, chunk: np.ndarray) -> Messages:
        """Send chunks to everyone, one after the other."""
        edges = self.edges
        src, dst = np.array(edges, dtype=np.int64).reshape(-1, 2).T
        turn = np.repeat(np.arange(len(chunk)), len(edges))
        many = len(chunk)
        step = np.tile(self.first[dst], many) + self.stride * turn
        return Messages(step, chunk[turn], np.tile(src, many), np.tile(dst, many))

    def scatter(self, task: Task) -> Messages:
        """Send each chunk to its goal.

        Where all chunks of an edge go in one step, it is with the rest of what goes to the subtree
        there. Else shards leave the root one in each step, the farthest first, and each goes on in
        the next: no place sends two in one step, as no two left the root in the same.
        """
        far = np.array([len(path) for path in self.paths])
        begin = np.empty(len(far), dtype=np.int64)
        begin[np.argsort(-far, kind="stable")] = np.arange(len(far))
        rows = []
        for chunk, goal in zip(task.chunk.tolist(), task.goal.tolist(), strict=True):
            for late, place in enumerate(self.paths[goal]):
                step = begin[goal] + late if self.stride else self.first[place]
                rows.append((int(step), chunk, int(self.parent[place]), place))
        return Messages.of(rows)

    def gather(self, task: Task) -> Messages:
        """Send each chunk to the root: what scatters them, read backwards."""
        down = self.scatter(Task(task.places, task.chunk, task.goal, task.root))
        return Messages(down.steps - 1 - down.step, down.chunk, down.dst, down.src)


def binomial(starts: Sequence[int], places: int) -> Tree:
    """Let place i d, i even, send to (i + 1) d, for d from the largest power of two down to 1.

    Every subtree is a row of places, so that of hosts with a power of two of GPUs one GPU each
    receives from outside.
    """
    parent, first = np.full(places, -1), np.full(places, -1)
    steps = (places - 1).bit_length()
    for step in range(steps):
        far = 1 << (steps - 1 - step)
        below = np.arange(far, places, 2 * far)
        parent[below], first[below] = below - far, step
    return Tree(parent, first, 0)


def chain(starts: Sequence[int], places: int) -> Tree:
    """Let every place send to the next."""
    return Tree(np.arange(places) - 1, np.arange(places) - 1, 1)


def flat(starts: Sequence[int], places: int) -> Tree:
    """Let the root send to all."""
    parent, first = np.zeros((2, places), dtype=np.int64)
    parent[0] = first[0] = -1
    return Tree(parent, first, 0)


def binary(starts: Sequence[int], places: int) -> Tree:
    """Let every place send to two, each of which has half of the places below it, or nearly so.

    Where the places below one are of several hosts, which begin at `starts`, they are parted
    between hosts, as evenly as these allow: so one GPU of each host receives from outside.
    """
    parent, first = np.full(places, -1), np.full(places, -1)
    pending = [(0, places)]
    while pending:
        root, stop = pending.pop()
        begin = root + 1
        if begin == stop:
            continue
        # The child that is sent to first has more below it.
        even = begin + (stop - begin + 1) // 2
        between = [start for start in starts if begin < start < stop]
        half = min(between, key=lambda start: abs(start - even)) if between else even
        for turn, (child, end) in enumerate(((begin, half), (half, stop))):
            if child < end:
                parent[child], first[child] = root, first[root] + 1 + turn
                pending.append((child, end))
    return Tree(parent, first, min(2, places - 1))


SHAPES: dict[str, Callable[[Sequence[int], int], Tree]] = {
    "binomial": binomial,
    "binary": binary,
    "chain": chain,
    "flat": flat,
}
"""Trees by name, each made of the places at which hosts begin and the number of places."""
