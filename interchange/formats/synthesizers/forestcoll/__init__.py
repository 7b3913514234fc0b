"""Trees of ForestColl, read and written as its XML.

A file holds the trees of an all-gather from their roots down. The weight of a tree is exact: its
``nchunks`` of all that the trees of its root have. Read as a reduce-scatter all is turned round,
and as an all-reduce the shares go up the trees of a root and down the same. Only the trees are in
the file; `file` says what they grow on, and every forest that is read is verified.

Switches are crossed only, so that a written path names them; what goes up is written as if it went
down.

Reference: liangyuRain/ForestColl; Zhao et al., arXiv 2402.06787.
"""

import math
from collections import Counter, defaultdict
from fractions import Fraction

from ccl import text
from ccl.collective import CollectiveKind, make_collective
from ccl.errors import FormatError
from ccl.plans import Forest, Tree, depth_of
from ccl.problem import Problem
from ccl.serialization.documents import Document, document
from ccl.serialization.quantity import format_size
from ccl.simulate import simulate
from ccl.topology import Topology
from ccl.tree_embedding import steady_makespan
from ccl.verify import verify
from interchange.formats.fields import choice, nbytes, number
from interchange.formats.format import Imported, Reader, Report, Request, Writer, Written, one_file
from interchange.formats.synthesizers.forestcoll import file as forest_file
from interchange.formats.synthesizers.forestcoll.file import FileForest
from interchange.formats.xml import Element, begins_with, xml_text


def write(content: Document) -> Written:
    """Write the trees of a document's plan.

    Raises
    ------
    FormatError
        If the plan is no forest, or the format cannot say it.
    ScheduleError
        If the plan breaks a rule.
    """
    problem, plan = content.problem, content.plan
    if problem is None or not isinstance(plan, Forest):
        has = "none" if plan is None else f"a {type(plan).__name__.lower()}"
        raise FormatError(
            f"ForestColl's file holds the trees of a steady state, and the plan is {has}; solve "
            "with forestcoll, orbit-trees or another that gives a forest"
        )
    verify(problem, plan)
    topology = problem.topology
    trees = _downward(plan.unfolded(topology))
    if plan.spread:
        _check_shares(trees, len(topology.ranks))
    chunks = _chunks(trees)
    top = Element("Algo", {"nchunkspernode": str(chunks)})
    numbers: Counter[int] = Counter()
    weights = _by_root(trees)
    for tree in trees:
        made = _tree(tree, topology)
        made.attributes |= {
            "index": str(numbers[tree.root]),
            "nchunks": str(int(tree.weight / weights[tree.root] * chunks)),
            "height": str(depth_of(tree)),
        }
        numbers[tree.root] += 1
        top.children.append(made)
    return one_file(xml_text(top), ending="xml", lost=_lost(problem, plan))


def _lost(problem: Problem, forest: Forest) -> tuple[str, ...]:
    lost = [
        "bandwidths, latencies, limits and hosts of the cluster; only names of devices are kept",
        f"the size, {problem.collective.size:g} bytes",
    ]
    kind = problem.collective.kind
    if kind != "all-gather":
        lost.append(f"that it is a plan of {kind}: a reader takes an all-gather unless told")
    if forest.symmetry is not None:
        lost.append(f"the symmetry: each tree is written with its {forest.images} images")
    if problem.windows:
        lost.append("times in which links have less bandwidth")
    return tuple(lost)


def _downward(forest: Forest) -> tuple[Tree, ...]:
    """Return out-trees that say the same, and refuse an all-reduce that goes down other trees."""
    if not forest.reduces:
        return forest.trees
    turned = tuple([_turned(each) for each in forest.trees])
    if forest.spread and sorted(turned, key=_key) != sorted(forest.spread, key=_key):
        raise FormatError(
            "the all-reduce goes down other trees than it goes up, and ForestColl's file has one "
            "set for both; write an all-gather or a reduce-scatter"
        )
    return turned


def _turned(tree: Tree) -> Tree:
    routes = tuple([route[::-1] for route in reversed(tree.routes)])
    return Tree(tree.root, routes, tree.weight)


def _key(tree: Tree) -> tuple[int, list[tuple[str, ...]], Fraction]:
    return tree.root, sorted(tree.routes), tree.weight


def _by_root(trees: tuple[Tree, ...]) -> dict[int, Fraction]:
    weights: defaultdict[int, Fraction] = defaultdict(Fraction)
    for tree in trees:
        weights[tree.root] += tree.weight
    return dict(weights)


def _check_shares(trees: tuple[Tree, ...], ranks: int) -> None:
    """Refuse an all-reduce of which roots add up unlike shares."""
    shares = _by_root(trees)
    if len(shares) < ranks or len(set(shares.values())) > 1:
        raise FormatError(
            "the roots of the all-reduce have shares of different size, and ForestColl's file has "
            "as many chunks of every root; write an all-gather or a reduce-scatter"
        )


def _chunks(trees: tuple[Tree, ...]) -> int:
    """Return the chunks per root with which every weight is a whole number of them."""
    weights = _by_root(trees)
    chunks = math.lcm(*((tree.weight / weights[tree.root]).denominator for tree in trees))
    most = forest_file.MOST_CHUNKS
    if chunks > most:
        raise FormatError(
            f"the weights need {chunks:,} chunks per root; {most:,} at most are written"
        )
    return chunks


def _tree(tree: Tree, topology: Topology) -> Element:
    made = Element("tree", {"root": topology.ranks[tree.root]})
    for route in tree.routes:
        stop = next((end for end in (route[0], route[-1]) if end not in topology.rank), None)
        if stop is not None:
            raise FormatError(
                f"a tree of root {tree.root} branches at {stop}, which is no GPU; ForestColl's "
                "trees join GPUs and only cross what lies between"
            )
        words = {"src": route[0], "dst": route[-1], "path": forest_file.path_text(route)}
        made.children.append(Element("send", words))
    return made


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
    return begins_with(content, *forest_file.ROOTS, "tree") and b"<tree" in content[:4096]


def read(content: bytes, request: Request) -> Imported:
    """Read trees and verify them."""
    file = forest_file.parse_forest(content)
    kind = _kind(file, request)
    _check_reach(file)
    topology, known, told = _cluster(file, request, kind)
    size = nbytes(request, "size", SIZE)
    root = topology.rank.get(known[file.roots[0]], 0)
    problem = Problem(topology, make_collective(kind, len(topology.ranks), size, root=root))
    forest = _forest(file, topology, known=known, kind=kind)
    verify(problem, forest)
    if "size" not in request.settings:
        told.append(f"a size of {format_size(size)}; setting size is another")
    if "collective" not in request.settings:
        told.append(f"it is a plan of {kind}; setting collective is another")
    trees = (
        f"{text.count(len(file.trees), 'tree')} of {text.count(len(file.roots), 'root')}, "
        f"{text.count(max(file.chunks.values()), 'chunk')} per root, {forest.depth} edges deep"
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


def _kind(file: FileForest, request: Request) -> CollectiveKind:
    """Return the requested collective, all-gather or broadcast where nothing is said."""
    word = choice(request, "collective", {str(kind): told for kind, told in _COLLECTIVES.items()})
    one = len(file.roots) == 1 < len(file.ends)
    kind = next((kind for kind in _COLLECTIVES if kind == word), None)
    kind = kind or ("broadcast" if one else "all-gather")
    if one != (kind in ("broadcast", "reduce")):
        raise FormatError(
            f"{kind} needs trees of {'every GPU' if one else 'one root'}, and it has trees of "
            f"{text.count(len(file.roots), 'root')}; take collective="
            f"{'broadcast or reduce' if one else 'all-gather, reduce-scatter or all-reduce'}"
        )
    if not one and file.roots != file.ends:
        lacks = next(each for each in file.ends if each not in file.chunks)
        raise FormatError(
            f"{kind} needs trees of every GPU, and there is no tree of the root {lacks}"
        )
    return kind


def _check_reach(file: FileForest) -> None:
    """Refuse a tree that leaves a GPU out, before anything is made of so many GPUs."""
    ends = set(file.ends)
    for tree in file.trees:
        if len(tree.routes) + 1 < len(ends):
            reached = {tree.root, *(route[-1] for route in tree.routes)}
            lacks = min(ends - reached)
            raise FormatError(
                f"a tree of {tree.root} does not reach {lacks}; it needs a send to each GPU"
            )


def _cluster(
    file: FileForest, request: Request, kind: CollectiveKind
) -> tuple[Topology, dict[str, str], list[str]]:
    """Return the cluster, which device each name is, and what that assumes."""
    where = choice(request, "cluster", _CLUSTERS)
    up = _UP.get(kind, (False,))
    told: list[str] = []
    if where != "derived" and request.topology is not None:
        known = forest_file.matched(file, request.topology, orientations=up)
        if not isinstance(known, str):
            if any(name != device for name, device in known.items()):
                pairs = [f"{name} is {known[name]}" for name in file.ends[:3]]
                told.append(f"GPUs are taken in their order: {', '.join(pairs)} and so on")
            return request.topology, known, told
        if where == "open":
            raise FormatError(
                f"the trees do not fit {request.topology}: {known}; take cluster=derived"
            )
        told.append(f"the open cluster {request.topology} is not theirs: {known}")
    elif where == "open":
        raise FormatError(
            "cluster=open is set and no cluster is open; open one, or take cluster=derived"
        )
    bandwidth = number(request, "bandwidth", BANDWIDTH, most=1e6, unit="GB/s")
    made = forest_file.derived(file, bandwidth, orientations=up)
    told.append(
        f"a cluster of the {text.count(len(made.links), 'link')} that the trees take, without "
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
        down.append(Tree(topology.rank[known[tree.root]], routes, file.weight(tree) * share))
        up.append(_turned(down[-1]))
    if kind == "all-reduce":
        return Forest(tuple(up), reduces=True, spread=tuple(down))
    if kind in ("reduce-scatter", "reduce"):
        return Forest(tuple(up), reduces=True)
    return Forest(tuple(down))


SETTINGS = {
    "collective": f"What the trees are for: {', '.join(_COLLECTIVES)}",
    "size": "Size of the collective, such as 1GB",
    "cluster": "open, or derived from the trees alone",
    "bandwidth": "GB/s of the busiest link of a derived cluster",
}

READER = Reader("forestcoll", "ForestColl trees", ("xml",), recognises, read, SETTINGS)

WRITER = Writer("forestcoll", "ForestColl trees", "xml", "plan", write)
