"""Trees of ForestColl, read and written as its XML.

A file holds the trees of an all-gather from their roots down. The weight of a tree is exact: its
``nchunks`` of all that the trees of its root have. Read as a reduce-scatter all is turned round,
and as an all-reduce the shares go up the trees of a root and down the same. Only the trees are in
the file; `_forest_cluster` says what they grow on, and every forest that is read is verified.

Switches are crossed only, so that a written path names them; what goes up is written as if it went
down.

Reference: liangyuRain/ForestColl; Zhao et al., arXiv 2402.06787.
"""

from __future__ import annotations

from fractions import Fraction

from ccl.collective import CollectiveKind, make_collective
from ccl.errors import FormatError
from ccl.forest import Forest, Tree
from ccl.problem import Problem
from ccl.serialization.documents import document
from ccl.serialization.size import format_size
from ccl.simulate import simulate
from ccl.steady import steady_makespan
from ccl.topology import Topology
from ccl.verify import verify
from interchange.formats.format import Asked, Imported, Reader, Report, Writer
from interchange.formats.synthesizers._asking import about, choice, counted, nbytes, number
from interchange.formats.synthesizers.forestcoll.cluster import derived, matched
from interchange.formats.synthesizers.forestcoll.file import ROOTS, FileForest, parse_forest
from interchange.formats.synthesizers.forestcoll.writing import write
from interchange.formats.xml import begins_with

_COLLECTIVES: dict[CollectiveKind, str] = {
    "all-gather": "every root's data goes down its trees",
    "reduce-scatter": "sums go up the trees to their roots",
    "all-reduce": "sums go up the trees of all roots and down again",
    "broadcast": "the trees of one root",
    "reduce": "sums go up the trees of one root",
}
_CLUSTERS = {"open": "the cluster that is open", "derived": "a cluster of the trees' edges alone"}
_UP: dict[CollectiveKind, tuple[bool, ...]] = {
    "reduce-scatter": (True,),
    "reduce": (True,),
    "all-reduce": (True, False),
}
"""For each way in which the trees are gone whether it is up; other collectives go down."""

BANDWIDTH = 50.0
"""GB/s of the busiest link of a cluster that is made of the trees."""

SIZE = 1e9
"""Bytes of the collective."""


def recognises(content: bytes) -> bool:
    """Say whether it looks like XML with trees."""
    return begins_with(content, *ROOTS, "tree") and b"<tree" in content[:4096]


def read(content: bytes, asked: Asked) -> Imported:
    """Read trees and verify them."""
    with about(asked.name):
        return _read(parse_forest(content), asked)


def _read(file: FileForest, asked: Asked) -> Imported:
    kind = _kind(file, asked)
    _check_reach(file)
    topology, known, told = _cluster(file, asked, kind)
    size = nbytes(asked, "size", SIZE)
    root = topology.rank.get(known[file.roots[0]], 0)
    problem = Problem(topology, make_collective(kind, len(topology.ranks), size, root=root))
    forest = _forest(file, topology, known=known, kind=kind)
    verify(problem, forest)
    if "size" not in asked.settings:
        told.append(f"a size of {format_size(size)}; setting size is another")
    if "collective" not in asked.settings:
        told.append(f"it is a plan of {kind}; setting collective is another")
    trees = (
        f"{counted(len(file.trees), 'tree')} of {counted(len(file.roots), 'root')}, "
        f"{counted(max(file.chunks.values()), 'chunk')} per root, {forest.depth} edges deep"
    )
    report = Report((trees, _speed(problem, forest)), tuple(told))
    return Imported(document(problem, plan=forest), report)


def _speed(problem: Problem, forest: Forest) -> str:
    """Say how fast a forest is, all at once and in its steady state."""
    makespan = simulate(problem, forest).makespan
    steady = float(steady_makespan(problem, forest))
    rate = problem.collective.size * 1e-3 / steady
    return (
        f"the {problem.collective.kind} is verified: makespan {makespan:.6g} µs, {steady:.6g} µs "
        f"in the steady state, an algbw of {rate:.6g} GB/s"
    )


def _kind(file: FileForest, asked: Asked) -> CollectiveKind:
    """Return the collective that is asked for, all-gather or broadcast where nothing is said."""
    word = choice(asked, "collective", {str(kind): told for kind, told in _COLLECTIVES.items()})
    one = len(file.roots) == 1 < len(file.ends)
    kind = next((kind for kind in _COLLECTIVES if kind == word), None)
    kind = kind or ("broadcast" if one else "all-gather")
    if one != (kind in ("broadcast", "reduce")):
        msg = (
            f"{kind} needs trees of {'every GPU' if one else 'one root'}, and it has trees of "
            f"{counted(len(file.roots), 'root')}; take collective="
            f"{'broadcast or reduce' if one else 'all-gather, reduce-scatter or all-reduce'}"
        )
        raise FormatError(msg)
    if not one and file.roots != file.ends:
        lacks = next(each for each in file.ends if each not in file.chunks)
        msg = f"{kind} needs trees of every GPU, and there is no tree of the root {lacks}"
        raise FormatError(msg)
    return kind


def _check_reach(file: FileForest) -> None:
    """Refuse a tree that leaves a GPU out, before anything is made of so many GPUs."""
    ends = set(file.ends)
    for tree in file.trees:
        if len(tree.routes) + 1 < len(ends):
            reached = {tree.root, *(route[-1] for route in tree.routes)}
            lacks = min(ends - reached)
            msg = f"a tree of {tree.root} does not reach {lacks}; it needs a send to each GPU"
            raise FormatError(msg)


def _cluster(
    file: FileForest, asked: Asked, kind: CollectiveKind
) -> tuple[Topology, dict[str, str], list[str]]:
    """Return the cluster, which device each name is, and what that assumes."""
    where = choice(asked, "cluster", _CLUSTERS)
    up = _UP.get(kind, (False,))
    told: list[str] = []
    if where != "derived" and asked.topology is not None:
        known = matched(file, asked.topology, ways=up)
        if not isinstance(known, str):
            if any(name != device for name, device in known.items()):
                pairs = [f"{name} is {known[name]}" for name in file.ends[:3]]
                told.append(f"GPUs are taken in their order: {', '.join(pairs)} and so on")
            return asked.topology, known, told
        if where == "open":
            msg = f"the trees do not fit {asked.topology}: {known}; take cluster=derived"
            raise FormatError(msg)
        told.append(f"the open cluster {asked.topology} is not theirs: {known}")
    elif where == "open":
        msg = "cluster=open is asked for and no cluster is open; open one, or take cluster=derived"
        raise FormatError(msg)
    bandwidth = number(asked, "bandwidth", BANDWIDTH, most=1e6, unit="GB/s")
    made = derived(file, bandwidth, ways=up)
    told.append(
        f"a cluster of the {counted(len(made.links), 'link')} that the trees take, without "
        f"latencies, {bandwidth:g} GB/s for the busiest and the others in proportion to their load"
    )
    return made, {each.name: each.name for each in made.devices}, told


def _forest(
    file: FileForest, topology: Topology, *, known: dict[str, str], kind: CollectiveKind
) -> Forest:
    share = Fraction(1, len(file.roots)) if kind == "all-reduce" else Fraction(1)
    down, up = [], []
    for tree in file.trees:
        routes = tuple(tuple([known[name] for name in route]) for route in tree.routes)
        root, weight = topology.rank[known[tree.root]], file.weight(tree) * share
        down.append(Tree(root, routes, weight))
        up.append(Tree(root, tuple(route[::-1] for route in reversed(routes)), weight))
    if kind == "all-reduce":
        return Forest(tuple(up), reduces=True, spread=tuple(down))
    if kind in ("reduce-scatter", "reduce"):
        return Forest(tuple(up), reduces=True)
    return Forest(tuple(down))


READER = Reader(
    name="forestcoll",
    title="ForestColl trees",
    endings=("xml",),
    recognises=recognises,
    read=read,
    settings={
        "collective": f"What the trees are for: {', '.join(_COLLECTIVES)}",
        "size": "Size of the collective, such as 1GB",
        "cluster": "open, or derived from the trees alone",
        "bandwidth": "GB/s of the busiest link of a derived cluster",
    },
)

WRITER = Writer(
    name="forestcoll",
    title="ForestColl trees",
    ending="xml",
    needs="plan",
    write=write,
)
