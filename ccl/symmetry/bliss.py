"""Generators of all automorphisms by BLISS, which igraph holds.

BLISS knows colours of vertices, but neither directions nor colours of edges. Most of them follow
from the colours of the ends, which refinement makes fine. Only where a pair of colours is joined
in several ways a vertex is put on the edge, or two where the direction matters; links under a
shared limit get a tail and a head, and the limit is a vertex beside the tails.
"""

from __future__ import annotations

import numpy as np

from ccl.symmetry.refine import refined
from ccl.symmetry.shape import Shape

_ROUNDS = 64
"""Rounds of refinement before BLISS, which refines faster, takes over."""


def bliss(shape: Shape) -> np.ndarray:
    """Return generators of the automorphisms of a cluster, shape (generators, devices)."""
    import igraph  # noqa: PLC0415  only who looks for symmetry waits for it

    colours = refined(shape, shape.device, rounds=_ROUNDS)
    if len(np.unique(colours)) == shape.size:
        return np.empty((0, shape.size), dtype=np.int64)
    drawn = Drawing(shape, colours)
    graph = igraph.Graph(n=drawn.size, edges=drawn.edges())
    found = graph.automorphism_group(color=drawn.colours())
    images = np.array(found, dtype=np.int64).reshape(-1, drawn.size)[:, : shape.size]
    moving = (images != np.arange(shape.size)).any(axis=1)
    return np.asarray(images[moving])


class Drawing:
    """A cluster as an undirected graph with coloured vertices."""

    def __init__(self, shape: Shape, colours: np.ndarray) -> None:
        self.size = shape.size
        self._edges: list[np.ndarray] = []
        self._colours = [colours]
        self._next = int(colours.max(initial=0)) + 1
        limited = np.zeros(len(shape.src), dtype=bool)
        limited[shape.membership[1]] = True
        self._draw_limits(shape, np.flatnonzero(limited))
        self._draw_pairs(shape, colours, np.flatnonzero(~limited))

    def edges(self) -> np.ndarray:
        """Return the ends of its edges, shape (edges, 2)."""
        return np.concatenate(self._edges) if self._edges else np.empty((0, 2), dtype=np.int64)

    def colours(self) -> list[int]:
        """Return the colour of each vertex."""
        return [int(each) for each in np.concatenate(self._colours)]

    def _join(self, first: np.ndarray, second: np.ndarray) -> None:
        self._edges.append(np.stack([first, second], axis=1))

    def _vertices(self, colours: np.ndarray) -> np.ndarray:
        """Add vertices whose colours are no others', and return them."""
        _, which = np.unique(colours, return_inverse=True)
        self._colours.append(which.ravel() + self._next)
        self._next += int(which.max(initial=-1)) + 1
        self.size += len(colours)
        return np.arange(self.size - len(colours), self.size)

    def _draw_limits(self, shape: Shape, links: np.ndarray) -> None:
        if not len(shape.limit):
            return
        limits = self._vertices(shape.limit)
        tail = np.empty(len(shape.src), dtype=np.int64)
        tail[links] = self._vertices(shape.link[links])
        head = self._vertices(shape.link[links])
        self._join(shape.src[links], tail[links])
        self._join(tail[links], head)
        self._join(head, shape.dst[links])
        self._join(limits[shape.membership[0]], tail[shape.membership[1]])

    def _draw_pairs(self, shape: Shape, colours: np.ndarray, links: np.ndarray) -> None:
        """Join each pair of devices by an edge, one vertex and two edges, or two and three."""
        first, second, label, way = _pairs(shape, colours, links)
        if not len(first):
            return
        plain = _plain(colours[first] * self._next + colours[second], label) & ~way
        self._join(first[plain], second[plain])
        once = ~plain & ~way
        middle = self._vertices(label[once])
        self._join(first[once], middle)
        self._join(middle, second[once])
        tail, head = self._vertices(label[way]), self._vertices(label[way])
        self._join(first[way], tail)
        self._join(tail, head)
        self._join(head, second[way])


def _pairs(
    shape: Shape, colours: np.ndarray, links: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return joined pairs of devices, the kind of their links, and whether order matters.

    In a pair the lower colour comes first; where both have one colour and the links differ, the
    end that the link of the lower number enters.
    """
    src, dst = shape.src[links], shape.dst[links]
    low, high = np.minimum(src, dst), np.maximum(src, dst)
    keys, which = np.unique(low * shape.size + high, return_inverse=True)
    kinds = np.zeros((2, len(keys)), dtype=np.int64)
    kinds[(src != low).astype(np.int64), which.ravel()] = shape.link[links] + 1
    first, second = keys // shape.size, keys % shape.size
    same = colours[first] == colours[second]
    turned = (colours[first] > colours[second]) | (same & (kinds[0] > kinds[1]))
    first, second = np.where(turned, second, first), np.where(turned, first, second)
    there, back = np.where(turned, kinds[::-1], kinds)
    label = there * (int(shape.link.max(initial=0)) + 2) + back
    return first, second, label, same & (there != back)


def _plain(between: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Whether a pair has the most frequent label of its pair of colours."""
    both = np.stack([between, label], axis=1)
    rows, which, counts = np.unique(both, axis=0, return_inverse=True, return_counts=True)
    order = np.lexsort((counts, rows[:, 0]))
    last = np.append(rows[order[1:], 0] != rows[order[:-1], 0], [True])
    chosen = np.zeros(len(rows), dtype=bool)
    chosen[order[last]] = True
    return np.asarray(chosen[which.ravel()])
