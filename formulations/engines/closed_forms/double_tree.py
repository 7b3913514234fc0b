"""Two binary trees over the same places: who has children in one has none in the other.

(Sanders, Speck, Traeff, Parallel Computing 2009, section 2.) Places in a row make a binary tree in
which every second one, from the first on, has no children. The other tree is its mirror image, or
for an odd number of places the same moved on by one. So a place has at most two children in both
trees together and a parent in each: edges get two colours such that no place sends to two children
over one colour, nor receives from two parents. In each step the edges of one colour are used.
"""

from __future__ import annotations

import numpy as np

from formulations.engines.closed_forms.messages import Messages
from formulations.engines.closed_forms.trees import Tree


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
