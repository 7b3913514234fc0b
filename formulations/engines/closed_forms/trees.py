"""What places of an order send one another: along trees, in groups, or in blocks that double.

Places are positions in an order of the ranks that the form chooses; a form that says that place i
sends to place i + 1 is laid around the ring that the order makes. A `Task` is what has to be spread
among places, and `Messages` do it.

A `Tree` is rooted, with the steps in which chunks go along it. Place 0 is the root, and parents
come before their children. In a step a place sends to one child, as over one port; only the flat
tree's root sends to all at once.

`double_tree`: two binary trees over the same places: who has children in one has none in the other
(Sanders, Speck, Traeff, Parallel Computing 2009, section 2). Places in a row make a binary tree in
which every second one, from the first on, has no children. The other tree is its mirror image, or
for an odd number of places the same moved on by one. So a place has at most two children in both
trees together and a parent in each: edges get two colours such that no place sends to two children
over one colour, nor receives from two parents. In each step the edges of one colour are used.

`gathered`, `exchanged` and `passed`: what groups of places do among themselves. A group is a row of
places; chunks come with the row that they are in and the columns of the places that have or want
them. ``direct`` sends everything in one step, each place to the next ones in turn, so that no two
begin with the same; ``ring`` sends to the next column only, step after step; ``doubling`` exchanges
all with a partner twice as far in each step.

`doubled`: blocks that double, with partners at distances 1, 2, 4, ..., and ranks that are left
over. Of p places, p' = 2^floor(log2 p) are the core. Of the first 2 (p - p') places every even one
is in the core and every odd one is left over beside it; all after them are in the core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

EVERYONE = -1
"""Goal of a chunk that all places want."""


@dataclass(frozen=True)
class Task:
    """Chunks with the place that has each at the beginning and those that want it; n chunks.

    Parameters
    ----------
    places
        How many there are.
    chunk
        Numbers in the collective, shape (n,).
    root
        Place that has it, shape (n,).
    goal
        The only place that wants it, or `EVERYONE`, shape (n,).
    """

    places: int
    chunk: np.ndarray
    root: np.ndarray
    goal: np.ndarray

    @property
    def spreads(self) -> bool:
        """Whether everyone wants every chunk, as in an all-gather or a broadcast."""
        return bool((self.goal == EVERYONE).all())

    def turns(self) -> np.ndarray:
        """Count chunks of the same root and goal: 0 for the first of each, shape (n,)."""
        pairs = self.root * (self.places + 1) + self.goal + 1
        order = np.argsort(pairs, kind="stable")
        _, first, many = np.unique(pairs[order], return_index=True, return_counts=True)
        turn = np.empty(len(pairs), dtype=np.int64)
        turn[order] = np.arange(len(pairs)) - np.repeat(first, many)
        return turn

    def chosen(self, which: np.ndarray) -> Task:
        """Return the task of some of the chunks."""
        return Task(self.places, self.chunk[which], self.root[which], self.goal[which])


@dataclass(frozen=True)
class Messages:
    """Chunks sent from place to place in steps; n of them.

    Within a step the order here is that of the sends on each link.

    Parameters
    ----------
    step, chunk, src, dst
        Steps from 0, numbers of chunks, places; each shape (n,).
    """

    step: np.ndarray
    chunk: np.ndarray
    src: np.ndarray
    dst: np.ndarray

    def __len__(self) -> int:
        return len(self.step)

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, int, int]]) -> Messages:
        """Make them of rows (step, chunk, src, dst)."""
        table = np.array(list(rows), dtype=np.int64).reshape(-1, 4)
        return cls(*table.T)

    @classmethod
    def joined(cls, parts: Iterable[Messages]) -> Messages:
        """Put several side by side, each with its own steps."""
        every = list(parts)
        columns = ("step", "chunk", "src", "dst")
        return cls(*(np.concatenate([getattr(each, name) for each in every]) for name in columns))

    def later(self, steps: int) -> Messages:
        """Return them so many steps later."""
        return Messages(self.step + steps, self.chunk, self.src, self.dst)

    @property
    def steps(self) -> int:
        """How many steps they take."""
        return int(self.step.max(initial=-1)) + 1


def is_power_of_two(ranks: int) -> bool:
    """Return whether a number doubles from 1."""
    return ranks & (ranks - 1) == 0


def core(places: int) -> np.ndarray:
    """Return the places that double."""
    most = 1 << (places.bit_length() - 1)
    extra = places - most
    return np.array([*range(0, 2 * extra, 2), *range(2 * extra, places)])


def beside(places: int) -> np.ndarray:
    """Return the places in the core that have one beside them which is left over."""
    return np.arange(0, 2 * (places - len(core(places))), 2)


def partners(places: int) -> list[tuple[int, int]]:
    """Return all pairs of places that exchange, in both directions."""
    inside, extra = core(places), beside(places)
    turns = np.arange(len(inside))
    pairs = [
        (int(inside[i]), int(inside[i ^ (1 << t)]))
        for t in range(len(inside).bit_length() - 1)
        for i in turns.tolist()
    ]
    for place in extra.tolist():
        pairs += [(place + 1, place), (place, place + 1)]
    return pairs


def doubled(task: Task) -> Messages:
    """Send from partner to partner all that a place has, then to those left over.

    Chunks begin in the core.
    """
    inside = core(task.places)
    number = np.zeros(task.places, dtype=np.int64)
    number[inside] = np.arange(len(inside))
    root = number[task.root]
    steps = len(inside).bit_length() - 1
    parts = []
    for t in range(steps):
        for other in range(1 << t):
            # The one that has the chunk in step t and is `other` away from its root.
            src = root ^ other
            step = np.full(len(src), t)
            parts.append(Messages(step, task.chunk, inside[src], inside[src ^ (1 << t)]))
    for place in beside(task.places).tolist():
        here = np.full(len(root), place)
        parts.append(Messages(np.full(len(root), steps), task.chunk, here, here + 1))
    return Messages.joined(parts)


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


def double_tree(places: int, *, above: bool) -> tuple[Tree, Tree]:
    """Return both trees over so many places.

    Parameters
    ----------
    places
        How many there are.
    above
        Whether place 0 stands above both trees, which are those of the others; else each tree has
        a root of its own.
    """
    row = places - 1 if above else places
    first = _row(row)
    if row % 2:
        other = np.array([_moved(first[i - 1], row) for i in range(row)])
    else:
        other = np.array([-1 if up < 0 else row - 1 - up for up in first[::-1].tolist()])
    parents = [first, other]
    if above:
        parents = [np.concatenate([[-1], each + 1]) for each in parents]
    return _coloured(parents)


def _row(places: int) -> np.ndarray:
    """Return the parents of a binary tree whose places from left to right are a row."""
    parent = np.full(places, -1)
    pending = [(0, places, -1)]
    while pending:
        begin, stop, above = pending.pop()
        if begin == stop:
            continue
        # An odd number lies on its left, so that those without children are every second place.
        middle = begin if stop == begin + 1 else begin + ((stop - begin) // 4 * 2 + 1)
        parent[middle] = above
        pending += [(begin, middle, middle), (middle + 1, stop, middle)]
    return parent


def _moved(parent: int, places: int) -> int:
    return -1 if parent < 0 else (parent + 1) % places


def _coloured(parents: list[np.ndarray]) -> tuple[Tree, Tree]:
    """Return the trees with the steps that colours of edges give their places."""
    colour = _colours(parents)
    trees = []
    for parent, of in zip(parents, colour, strict=True):
        first = np.full(len(parent), -1)
        for place in _from_root(parent):
            above = int(parent[place])
            if above >= 0:
                # The next step of the edge's colour after the parent has the chunk.
                begin = int(first[above]) + 1
                first[place] = begin + (begin + int(of[place])) % 2
        trees.append(Tree(parent, first, 2))
    return trees[0], trees[1]


def _colours(parents: list[np.ndarray]) -> list[np.ndarray]:
    """Return the colour of the edge above each place in both trees, 0 or 1.

    At most two edges leave a place and at most two enter it, so those that must differ make chains
    and closed chains of leaving and entering in turn, and two colours are enough. The chain of an
    edge nearer to the root is begun earlier, with colour 0.
    """
    colour = [np.full(len(parent), -1) for parent in parents]
    edges = [
        (tree, place)
        for pair in zip(*map(_from_root, parents), strict=True)
        for tree, place in enumerate(pair)
        if parents[tree][place] >= 0
    ]
    beside: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for tree, place in edges:
        for end in _ends(parents, tree, place):
            beside.setdefault(end, []).append((tree, place))
    for edge in edges:
        pending = [(edge, 0)]
        while pending:
            (tree, place), wanted = pending.pop()
            if colour[tree][place] < 0:
                colour[tree][place] = wanted
                near = (each for end in _ends(parents, tree, place) for each in beside[end])
                pending += [(each, 1 - wanted) for each in near if each != (tree, place)]
    return colour


def _ends(parents: list[np.ndarray], tree: int, place: int) -> tuple[tuple[str, int], ...]:
    """Return the ports of the edge above a place."""
    return ("out", int(parents[tree][place])), ("in", place)


def _from_root(parent: np.ndarray) -> list[int]:
    """Return the places, parents before children."""
    below: dict[int, list[int]] = {}
    for place, above in enumerate(parent.tolist()):
        below.setdefault(above, []).append(place)
    found = list(below[-1])
    for place in found:
        found += below.get(place, [])
    return found


def spread(trees: tuple[Tree, Tree], chunk: np.ndarray) -> Messages:
    """Send every second chunk along each tree; steps without a message are left out."""
    both = [tree.spread(chunk[turn::2]) for turn, tree in enumerate(trees)]
    sent = Messages.joined(both)
    _, step = np.unique(sent.step, return_inverse=True)
    return Messages(np.ravel(step), sent.chunk, sent.src, sent.dst)


Algorithm = Literal["direct", "ring", "doubling"]


@dataclass(frozen=True)
class Chunks:
    """Chunks in groups; n of them.

    Parameters
    ----------
    groups
        Places of each group, shape (rows, columns).
    number
        In the collective, shape (n,).
    row
        Group that each is in, shape (n,).
    at
        Column of the place that has it, shape (n,).
    """

    groups: np.ndarray
    number: np.ndarray
    row: np.ndarray
    at: np.ndarray

    @property
    def columns(self) -> int:
        """How many places a group has."""
        return int(self.groups.shape[1])

    def sent(self, step: int, at: np.ndarray, to: np.ndarray, *, which: np.ndarray) -> Messages:
        """Send some of the chunks from columns to columns; `which` says for each whether."""
        row, src, dst = self.row[which], at[which], to[which]
        return Messages(
            np.full(len(row), step),
            self.number[which],
            self.groups[row, src % self.columns],
            self.groups[row, dst % self.columns],
        )

    @property
    def every(self) -> np.ndarray:
        """All of them, as `sent` takes it."""
        return np.ones(len(self.number), dtype=bool)


def gathered(chunks: Chunks, algorithm: Algorithm) -> Messages:
    """Give each chunk to everyone of its group."""
    at, every = chunks.at, chunks.every
    turns = range(chunks.columns - 1)
    if algorithm == "direct":
        return _together(chunks.sent(0, at, at + turn + 1, which=every) for turn in turns)
    if algorithm == "ring":
        return _together(chunks.sent(turn, at + turn, at + turn + 1, which=every) for turn in turns)
    return _together(
        chunks.sent(step, at ^ far, at ^ far ^ (1 << step), which=every)
        for step in range(chunks.columns.bit_length() - 1)
        for far in range(1 << step)
    )


def exchanged(chunks: Chunks, goal: np.ndarray, algorithm: Algorithm) -> Messages:
    """Give each chunk to one column of its group; a ring is gone round by pairs at a distance."""
    far = (goal - chunks.at) % chunks.columns
    return _together(
        chunks.sent(
            turn - 1 if algorithm == "ring" else 0, chunks.at, chunks.at + turn, which=far == turn
        )
        for turn in range(1, chunks.columns)
    )


def passed(chunks: Chunks, algorithm: Algorithm) -> Messages:
    """Give each chunk, which the first column has, to everyone of its group."""
    columns = chunks.columns
    if algorithm == "direct":
        return gathered(chunks, algorithm)
    tree = (chain if algorithm == "ring" else binomial)([0], columns)
    parts = []
    for row in range(len(chunks.groups)):
        down = tree.spread(chunks.number[chunks.row == row])
        place = chunks.groups[row]
        parts.append(Messages(down.step, down.chunk, place[down.src], place[down.dst]))
    return _together(parts)


def _together(parts: Iterable[Messages]) -> Messages:
    return Messages.joined([Messages.of([]), *parts])


def in_turn(phases: Iterable[Messages]) -> Messages:
    """Put phases one after the other."""
    parts: list[Messages] = []
    begin = 0
    for phase in phases:
        parts.append(phase.later(begin))
        begin += phase.steps
    return _together(parts)
