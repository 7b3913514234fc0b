"""The trees of ForestColl as its file has them: names of devices and whole numbers of chunks.

``<Algo nchunkspernode>`` holds a ``<tree root index nchunks height>`` for each tree, and that a
``<send src dst path>`` for each edge, the path being the devices that it goes over with commas
between them. A device is written as Python writes its name, at times a tuple: ``(0, 'GPU', 3)`` is
GPU 3 of box 0 and has commas of its own, in parentheses.

Reference: liangyuRain/ForestColl, pipeline_allgather.py (spanning_trees_to_xml) and README.md.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ccl.errors import FormatError
from interchange.formats.xml import Element, parse_xml

ROOTS = ("Algo", "trees")
"""Names of the outer element: ForestColl's own, and what others call it."""

MOST_CHUNKS = 10**9
"""Of a tree."""

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Signs that no XML may have."""

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
        msg = f"line {top.line}: <{top.tag}> holds no <tree>; ForestColl has <Algo> with trees"
        raise FormatError(msg)
    trees = tuple([_tree(each) for each in elements])
    chunks: defaultdict[str, int] = defaultdict(int)
    for each in trees:
        chunks[each.root] += each.chunks
    said = top.integer("nchunkspernode", 0)
    for root, many in chunks.items():
        if said and many != said:
            msg = (
                f"the trees of {root} carry {many} chunks and nchunkspernode says {said}; "
                "a tree is missing or one too many"
            )
            raise FormatError(msg)
    return FileForest(trees, dict(chunks))


def path_text(names: Route) -> str:
    """Return the devices of an edge as the file has them.

    Raises
    ------
    FormatError
        If a name could not be told from two.
    """
    text = ",".join(names)
    lost = _NOT_XML.search(text)
    if lost is not None:
        msg = f"a device has the sign {lost[0]!r} in its name, which XML cannot hold; rename it"
        raise FormatError(msg)
    if _parted(text) != names:
        odd = next((each for each in names if _parted(each) != (each,)), names[0])
        msg = (
            f"device {odd!r} has a comma or a parenthesis, and commas part the devices of a path; "
            "give it another name"
        )
        raise FormatError(msg)
    return text


def _tree(element: Element) -> FileTree:
    root = element.text("root")
    chunks = element.integer("nchunks", 1)
    if not 1 <= chunks <= MOST_CHUNKS:
        msg = f"line {element.line}: a tree of {chunks} chunks; give 1 to {MOST_CHUNKS:,}"
        raise FormatError(msg)
    return FileTree(root, _ordered(root, [_edge(each) for each in element.each("send")]), chunks)


def _edge(element: Element) -> tuple[Route, int]:
    """Return the devices of an edge, and its line."""
    src, dst = element.text("src"), element.text("dst")
    path = element.attributes.get("path")
    names = (src, dst) if path is None else _parted(path)
    if len(names) < 2 or (names[0], names[-1]) != (src, dst):
        msg = (
            f"line {element.line}: the path of <send> is not one from {src} to {dst}; it begins "
            f"at {names[0]} and ends at {names[-1]}"
        )
        raise FormatError(msg)
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
            msg = f"line {line}: the tree of {root} reaches {child} twice; once is a tree"
            raise FormatError(msg)
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
        msg = f"line {line}: the tree of {root} leaves {parent}, which it does not reach"
        raise FormatError(msg)
    return tuple(routes)
