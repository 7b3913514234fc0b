"""The trees of ForestColl as its file has them, and the cluster on which they grow.

``<Algo nchunkspernode>`` holds a ``<tree root index nchunks height>`` for each tree, whole numbers
of chunks, and that a ``<send src dst path>`` for each edge, the path being the devices that it goes
over with commas between them. A device is written as Python writes its name, at times a tuple:
``(0, 'GPU', 3)`` is GPU 3 of box 0 and has commas of its own, in parentheses.

The cluster is the open one (`matched`), or one made of the trees alone (`derived`). The names of a
file are those of the program that wrote it. Where the open cluster has them all, they are the same
devices. Where it has as many GPUs, these are taken in their order, and every switch is the one that
the devices around it are linked with. Else the edges of the trees are the links, each as fast as
its load, so that all of them are busy all the time.

Reference: liangyuRain/ForestColl, pipeline_allgather.py (spanning_trees_to_xml) and README.md.
"""

import heapq
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from ccl.errors import FormatError
from ccl.topology import Link, Topology, device
from interchange.formats.xml import Element, parse_xml

ROOTS = ("Algo", "trees")
"""Names of the outer element: ForestColl's own, and what others call it."""

MOST_CHUNKS = 10**9
"""Of a tree."""

Route = tuple[str, ...]


@dataclass(frozen=True)
class FileTree:
    """A tree as the file has it; routes from parents to children, parents first."""

    root: str
    routes: tuple[Route, ...]
    chunks: int


@dataclass(frozen=True)
class FileForest:
    """All trees of a file."""

    trees: tuple[FileTree, ...]
    chunks: dict[str, int]
    """Of all trees of each root together."""

    @cached_property
    def roots(self) -> list[str]:
        """Names of the roots, in order."""
        return sorted(self.chunks, key=natural)

    @cached_property
    def ends(self) -> list[str]:
        """Names of the devices at which edges end, in order: the GPUs."""
        names = {tree.root for tree in self.trees}
        names |= {
            end for tree in self.trees for route in tree.routes for end in (route[0], route[-1])
        }
        return sorted(names, key=natural)

    def weight(self, tree: FileTree) -> Fraction:
        """Return the share of its root's data that takes a tree."""
        return Fraction(tree.chunks, self.chunks[tree.root])


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a key by which ``g10`` comes after ``g9``."""
    words = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(0, int(word), "") if word.isdigit() else (1, 0, word) for word in words]


def parse_forest(content: bytes) -> FileForest:
    """Read the trees of a file.

    Raises
    ------
    FormatError
        If it has none, or one is no tree, with the line.
    """
    top = parse_xml(content)
    elements = [top] if top.tag == "tree" else list(top.each("tree"))
    if top.tag not in (*ROOTS, "tree") or not elements:
        raise FormatError(
            f"line {top.line}: <{top.tag}> holds no <tree>; ForestColl has <Algo> with trees"
        )
    trees = tuple([_tree(each) for each in elements])
    chunks: defaultdict[str, int] = defaultdict(int)
    for each in trees:
        chunks[each.root] += each.chunks
    said = top.integer("nchunkspernode", 0)
    for root, many in chunks.items():
        if said and many != said:
            raise FormatError(
                f"the trees of {root} carry {many} chunks and nchunkspernode says {said}; "
                "a tree is missing or one too many"
            )
    return FileForest(trees, dict(chunks))


def path_text(names: Route) -> str:
    """Return the devices of an edge as the file has them.

    Raises
    ------
    FormatError
        If a name could stand for two.
    """
    text = ",".join(names)
    if _parted(text) != names:
        odd = next((each for each in names if _parted(each) != (each,)), names[0])
        raise FormatError(
            f"device {odd!r} has a comma or a parenthesis, and commas part the devices of a path; "
            "give it another name"
        )
    return text


def _tree(element: Element) -> FileTree:
    root = element.text("root")
    chunks = element.integer("nchunks", 1)
    if not 1 <= chunks <= MOST_CHUNKS:
        raise FormatError(
            f"line {element.line}: a tree of {chunks} chunks; give 1 to {MOST_CHUNKS:,}"
        )
    return FileTree(root, _ordered(root, [_edge(each) for each in element.each("send")]), chunks)


def _edge(element: Element) -> tuple[Route, int]:
    """Return the devices of an edge, and its line."""
    src, dst = element.text("src"), element.text("dst")
    path = element.attributes.get("path")
    names = (src, dst) if path is None else _parted(path)
    if len(names) < 2 or (names[0], names[-1]) != (src, dst):
        raise FormatError(
            f"line {element.line}: the path of <send> is not one from {src} to {dst}; it begins "
            f"at {names[0]} and ends at {names[-1]}"
        )
    return names, element.line


def _parted(text: str) -> Route:
    """Part a text at the commas that are in no parentheses."""
    if "(" not in text and ")" not in text:
        return tuple(text.split(","))
    parts, depth, begin = [], 0, 0
    for at, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return (*parts, text[begin:])


def _ordered(root: str, edges: list[tuple[Route, int]]) -> tuple[Route, ...]:
    """Return the edges parents first, in the order of the file where it has them so.

    Raises
    ------
    FormatError
        If they are no tree of that root.
    """
    seen = {root}
    onward: defaultdict[str, list[Route]] = defaultdict(list)
    straight = True
    for route, line in edges:
        child = route[-1]
        if child in seen:
            raise FormatError(
                f"line {line}: the tree of {root} reaches {child} twice; once is a tree"
            )
        straight = straight and route[0] in seen
        seen.add(child)
        onward[route[0]].append(route)
    if straight:
        return tuple(route for route, _ in edges)
    routes: list[Route] = []
    front = [root]
    for parent in front:
        for route in onward.pop(parent, ()):
            routes.append(route)
            front.append(route[-1])
    if onward:
        parent = next(iter(onward))
        line = next(line for route, line in edges if route[0] == parent)
        raise FormatError(
            f"line {line}: the tree of {root} leaves {parent}, which it does not reach"
        )
    return tuple(routes)


_BOX = re.compile(r"\((\d+), '[^']*', \d+\)")
"""A device of ForestColl's own clusters; the first number is the box, -1 between boxes."""

Ends = tuple[str, str]


def matched(
    forest: FileForest, topology: Topology, *, orientations: tuple[bool, ...]
) -> dict[str, str] | str:
    """Return which device each name of the file is, or in words why there is none.

    Parameters
    ----------
    forest
        The trees.
    topology
        What they may grow on.
    orientations
        As of `derived`; in each of them all edges must be links.
    """
    edges = _edges(forest, orientations)
    names = {name for edge in edges for name in edge} | set(forest.roots)
    gpus = forest.ends
    if names <= topology.index.keys() and set(gpus) == set(topology.ranks):
        known = {name: name for name in names}
        return _linked(edges, known, topology) or known
    if len(gpus) != len(topology.ranks):
        return f"it has {len(topology.ranks)} GPUs and the trees join {len(gpus)}"
    if set(gpus) == set(topology.ranks):
        known = {name: name for name in gpus}
    else:
        known = dict(zip(gpus, topology.ranks, strict=True))
    lost = _match_switches(edges, known, topology)
    if lost is not None:
        return f"no device of it has the links of {lost}"
    return _linked(edges, known, topology) or known


def _match_switches(edges: Iterable[Ends], known: dict[str, str], topology: Topology) -> str | None:
    """Add the switches to `known`, those first of which most neighbours are; name one left over."""
    before: defaultdict[str, set[str]] = defaultdict(set)
    after: defaultdict[str, set[str]] = defaultdict(set)
    for src, dst in edges:
        after[src].add(dst)
        before[dst].add(src)
    taken = set(known.values())
    left = {*before, *after} - known.keys()
    near = {name: sum(each in known for each in before[name] | after[name]) for name in left}
    heap = [(-near[name], name) for name in left]
    heapq.heapify(heap)
    while heap:
        many, name = heapq.heappop(heap)
        if name in known or -many < near[name]:
            continue  # it has been pushed again since, with more neighbours that are known
        free = _around(before[name], after[name], known, topology) - taken
        if not free:
            return name
        known[name] = min(free, key=topology.index.__getitem__)
        taken.add(known[name])
        for other in (before[name] | after[name]) - known.keys():
            near[other] += 1
            heapq.heappush(heap, (-near[other], other))
    return None


def _around(
    before: set[str], after: set[str], known: Mapping[str, str], topology: Topology
) -> set[str]:
    """Return the devices that are linked with all neighbours that are known."""
    fitting = [
        *({link.dst for link in topology.links_out[known[each]]} for each in before & known.keys()),
        *({link.src for link in topology.links_in[known[each]]} for each in after & known.keys()),
    ]
    return set.intersection(*fitting) if fitting else set()


def _linked(edges: Iterable[Ends], known: Mapping[str, str], topology: Topology) -> str:
    """Say which edge is no link, or nothing."""
    for src, dst in edges:
        if (known[src], known[dst]) not in topology.link_index:
            return f"it has no link {known[src]}->{known[dst]}, which the trees take"
    return ""


def _edges(forest: FileForest, orientations: tuple[bool, ...]) -> list[Ends]:
    """Return each link that the trees take once."""
    down = dict.fromkeys(
        edge for tree in forest.trees for route in tree.routes for edge in pairwise(route)
    )
    return list(dict.fromkeys(edge[::-1] if up else edge for up in orientations for edge in down))


def derived(forest: FileForest, bandwidth: float, *, orientations: tuple[bool, ...]) -> Topology:
    """Return the cluster whose links are the edges of the trees.

    Parameters
    ----------
    forest
        The trees.
    bandwidth
        GB/s of the link that carries most; others have theirs in proportion.
    orientations
        For each way in which the trees are gone whether it is up (True) to the root or down.
    """
    loads: defaultdict[Ends, Fraction] = defaultdict(Fraction)
    for tree in forest.trees:
        weight = forest.weight(tree)
        for edge in (edge for route in tree.routes for edge in pairwise(route)):
            for up in orientations:
                loads[edge[::-1] if up else edge] += weight
    gpus = set(forest.ends)
    names = sorted({name for edge in loads for name in edge} | gpus, key=natural)
    devices = tuple(
        device("gpu" if name in gpus else "switch", name, host=_host(name))
        for name in sorted(names, key=lambda name: name not in gpus)
    )
    most = max(loads.values(), default=Fraction(1))
    links = tuple(
        Link(*edge, float(bandwidth * load / most)) for edge, load in sorted(loads.items())
    )
    return Topology(f"ForestColl, {len(gpus)} GPUs", devices, links)


def _host(name: str) -> str | None:
    found = _BOX.fullmatch(name)
    return f"h{found[1]}" if found else None
