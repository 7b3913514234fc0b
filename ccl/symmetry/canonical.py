"""A canonical form: equal exactly for clusters that differ in names and order only.

The cluster is drawn as a graph with coloured vertices (`bliss`), with a vertex
more for each host, each kind of chunk and each window of less bandwidth; BLISS puts the vertices
into an order that is the same for isomorphic graphs (Junttila and Kaski, Engineering an efficient
canonical labeling tool for large and sparse graphs, ALENEX 2007). The digest is that of all that is
there, written down in this order, so that equal digests mean isomorphic clusters whatever BLISS
did.

What counts: kinds, abilities and buffers of devices, which of them are in one host, bandwidths and
latencies, shared limits, windows, and what the collective requires of which rank, as shares of its
size. Names, media and the order of devices, links and limits do not count.

`bliss` gives generators of all automorphisms, too. BLISS, which igraph holds, knows colours of
vertices, but neither directions nor colours of edges. Most of them follow from the colours of the
ends, which refinement makes fine. Only where a pair of colours is joined in several respects a
vertex is put on the edge, or two where the direction matters; links under a shared limit get a tail
and a head, and the limit is a vertex beside the tails.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ccl.collective import Chunk, Collective, find_arguments
from ccl.problem import Window
from ccl.symmetry.refinement import Shape, neighbours, number_pairs, refine_colours
from ccl.topology import Topology


def bliss(shape: Shape) -> np.ndarray:
    """Return generators of the automorphisms of a cluster, shape (generators, devices)."""
    from ccl.symmetry.graphs import igraph  # noqa: PLC0415  only who looks for symmetry waits

    colours = refine_colours(shape, shape.device, rounds=_ROUNDS)
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
    """Return whether a pair has the most frequent label of its pair of colours."""
    both = np.stack([between, label], axis=1)
    rows, which, counts = np.unique(both, axis=0, return_inverse=True, return_counts=True)
    order = np.lexsort((counts, rows[:, 0]))
    last = np.append(rows[order[1:], 0] != rows[order[:-1], 0], [True])
    chosen = np.zeros(len(rows), dtype=bool)
    chosen[order[last]] = True
    return np.asarray(chosen[which.ravel()])


MOST_DEVICES = 5_000
"""Devices, hosts and kinds of chunks above which none is looked for: BLISS may take minutes."""

MOST_LINKS = 40_000
"""Likewise links, with those from chunks to their ranks."""

MOST_ALIKE = 1_000
"""Likewise devices that are linked to the same others, which BLISS permutes one after the other."""

_ROUNDS = 64
_DIGITS = 12
"""Digits of shares: sums in another order may differ in the last."""


@dataclass(frozen=True, eq=False)
class Canonical:
    """An order of the devices, and digests of what there is in this order.

    Parameters
    ----------
    digest
        32 hexadecimal digits, equal exactly for isomorphic problems, whatever their size in bytes.
    family
        The same, whatever the number of chunks per shard; not for a demand without a name.
    order
        Place of the device that comes first, second, ... in the canonical order, shape (devices,).
    note
        Why the order is the one that was given, where it is; else empty.
    """

    digest: str
    family: str
    order: np.ndarray
    note: str = ""


def canonical(
    topology: Topology, collective: Collective | None = None, *, windows: tuple[Window, ...] = ()
) -> Canonical:
    """Return the canonical form of a cluster, with a collective on it if one is given.

    Where the cluster is too large the order is the one that was given: names still do not count,
    and `Canonical.note` says so.
    """
    scene = _Scene(topology, collective, windows)
    note = ""
    too_large = scene.too_large()
    if too_large:
        note = (
            f"{topology} has no canonical form, which would take minutes: {too_large}; it is known "
            "again by its devices in the same order only, whatever their names"
        )
        order = np.arange(scene.many)
    else:
        order = scene.ordered()
    content = scene.content(order)
    family = _digest(content)
    digest = _digest(family.encode(), *scene.pieces) if scene.pieces else family
    return Canonical(digest, family, order, note)


def share_of(chunk: Chunk, whole: float) -> float:
    """Return the bytes of a chunk as a share of `whole` bytes, without its last digits."""
    return float(f"{chunk.size / whole:.{_DIGITS}g}")


def _digest(*parts: bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()[:32]


Key = tuple[Any, ...]


class _Scene:
    """Devices, hosts and chunks as vertices; links, who is where and who wants what as edges."""

    def __init__(
        self, topology: Topology, collective: Collective | None, windows: tuple[Window, ...]
    ) -> None:
        self.many = len(topology.devices)
        self._topology = topology
        self._windows = windows
        self._kind = "" if collective is None else collective.kind
        named = None if collective is None else find_arguments(collective)
        self.pieces: tuple[bytes, ...] = () if named is None else (b"%d" % named[0],)
        root = _root(topology, collective, named)
        self._devices: list[Key] = [
            ("device", each.kind, each.stores, each.copies, each.reduces,
             -1.0 if each.buffer_bytes is None else each.buffer_bytes, place == root)
            for place, each in enumerate(topology.devices)
        ]  # fmt: skip
        loose = None if named is not None else collective
        self._chunks = Counter(_asked(topology, loose))
        self._extra: list[tuple[Key, list[int], list[int]]] = [
            *((("host",), members, []) for members in _hosts(topology)),
            *(((*what, many), have, want) for (what, have, want), many in _listed(self._chunks)),
        ]
        many = len(topology.links)
        self._bandwidth = np.fromiter((each.bandwidth for each in topology.links), np.float64, many)
        self._alpha = np.fromiter((each.alpha for each in topology.links), np.float64, many)

    def too_large(self) -> str:
        """Explain why BLISS would take too long, or nothing."""
        found = (
            (self.many + len(self._extra), MOST_DEVICES, "devices, hosts and kinds of chunks"),
            (len(self._shape.src), MOST_LINKS, "links, those of chunks included"),
            (self._alike(), MOST_ALIKE, "devices linked to the same others"),
        )
        for many, most, what in found:
            if many > most:
                return f"it has {many:,} {what}, and {most:,} are the most"
        return ""

    def _alike(self) -> int:
        """Return how many devices at most are linked to the same others."""
        _, many = np.unique(neighbours(self._shape), return_counts=True)
        return int(many.max(initial=0))

    def ordered(self) -> np.ndarray:
        """Return the devices in the canonical order."""
        from ccl.symmetry.graphs import igraph  # noqa: PLC0415  only who asks for it waits

        shape = self._shape
        drawn = Drawing(shape, refine_colours(shape, shape.device, rounds=_ROUNDS))
        graph = igraph.Graph(n=drawn.size, edges=drawn.edges())
        # The direction in which a permutation is meant differs between versions of igraph; what its
        # own function makes of it does not.
        graph.vs["place"] = range(drawn.size)
        permuted = graph.permute_vertices(graph.canonical_permutation(color=drawn.colours()))
        places = np.array(permuted.vs["place"], dtype=np.int64)
        return np.asarray(places[places < self.many])

    def content(self, order: np.ndarray) -> bytes:
        """Write down all that there is, devices in an order, the rest as it follows from that."""
        topology = self._topology
        place = np.empty(self.many, dtype=np.int64)
        place[order] = np.arange(self.many)
        src, dst = place[topology.ends]
        by_ends = np.lexsort((dst, src))
        number = np.empty(len(by_ends), dtype=np.int64)
        number[by_ends] = np.arange(len(by_ends))
        hosts = sorted(sorted(place[members].tolist()) for members in _hosts(topology))
        value = {
            "kind": self._kind,
            "devices": [self._devices[each] for each in order.tolist()],
            "hosts": hosts,
            "limits": sorted(
                [each.bandwidth, self._covered(each.links, number)] for each in topology.limits
            ),
            "windows": sorted(
                [each.begin, each.end, each.share, self._covered(each.links, number)]
                for each in self._windows
            ),
            "chunks": sorted(
                [
                    *what,
                    many,
                    sorted(place[list(have)].tolist()),
                    sorted(place[list(want)].tolist()),
                ]
                for (what, have, want), many in self._chunks.items()
            ),
        }
        table = np.stack([src, dst, self._bandwidth, self._alpha])[:, by_ends]
        return json.dumps(value, separators=(",", ":")).encode() + table.tobytes()

    def _covered(self, links: Sequence[tuple[str, str]], number: np.ndarray) -> list[int]:
        index = self._topology.link_index
        return sorted(number[[index[ends] for ends in links]].tolist())

    @cached_property
    def _shape(self) -> Shape:
        """Return the scene as numbers that follow from what things are, never from their order."""
        topology = self._topology
        joins = [
            (self.many + place, other, way)
            for place, (_, have, want) in enumerate(self._extra)
            for way, others in enumerate((have, want))
            for other in others
        ]
        more = np.array(joins, dtype=np.int64).reshape(-1, 3).T
        kinds = number_pairs(
            number_pairs(np.zeros(len(self._alpha), dtype=np.int64), self._bandwidth), self._alpha
        )
        limits: list[tuple[Key, tuple[tuple[str, str], ...]]] = [
            *((("limit", each.bandwidth), each.links) for each in topology.limits),
            *((("window", each.begin, each.end, each.share), each.links) for each in self._windows),
        ]
        index = topology.link_index
        pairs = [(i, index[ends]) for i, (_, links) in enumerate(limits) for ends in links]
        return Shape(
            topology=topology,
            # Holders point to the chunk, destinations away from it; of hosts it is all one.
            src=np.concatenate([topology.ends[0], np.where(more[2] == 1, more[0], more[1])]),
            dst=np.concatenate([topology.ends[1], np.where(more[2] == 1, more[1], more[0])]),
            device=_ranked([*self._devices, *(key for key, _, _ in self._extra)]),
            link=np.concatenate([kinds, int(kinds.max(initial=-1)) + 1 + more[2]]),
            limit=_ranked([key for key, _ in limits]),
            membership=np.array(pairs, dtype=np.int64).reshape(-1, 2).T,
        )


def _root(
    topology: Topology, collective: Collective | None, named: tuple[int, int] | None
) -> int | None:
    """Return the place of the device of the root, None where it has no root."""
    rooted = ("broadcast", "scatter", "reduce", "gather")
    if collective is None or named is None or collective.kind not in rooted:
        return None
    return topology.index[topology.ranks[named[1]]]


def _hosts(topology: Topology) -> list[list[int]]:
    """Return the places of the devices of each host."""
    found: dict[str, list[int]] = {}
    for place, each in enumerate(topology.devices):
        if each.host is not None:
            found.setdefault(each.host, []).append(place)
    return list(found.values())


Request = tuple[Key, tuple[int, ...], tuple[int, ...]]


def _asked(topology: Topology, collective: Collective | None) -> list[Request]:
    """Return for each chunk of a demand without a name what it is, who has and who wants it."""
    if collective is None:
        return []
    places = [topology.index[name] for name in topology.ranks]
    return [
        (
            ("chunk", share_of(each, collective.size), each.reduced, each.priority, each.tenant),
            tuple(sorted(places[rank] for rank in each.holders)),
            tuple(sorted(places[rank] for rank in each.destinations)),
        )
        for each in collective.chunks
    ]


def _listed(chunks: Counter[Request]) -> list[tuple[tuple[Key, list[int], list[int]], int]]:
    return [((what, list(have), list(want)), many) for (what, have, want), many in chunks.items()]


def _ranked(keys: Sequence[Key]) -> np.ndarray:
    """Return for each key its place among the different ones, sorted."""
    found: dict[Hashable, int] = {
        key: place for place, key in enumerate(sorted(set(keys), key=repr))
    }
    return np.array([found[key] for key in keys], dtype=np.int64)
