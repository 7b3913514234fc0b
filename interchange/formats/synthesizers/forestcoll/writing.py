"""Forests as ForestColl's XML: trees from their roots down, weights as whole numbers of chunks."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from fractions import Fraction

from ccl.errors import FormatError
from ccl.forest import Forest, Tree, depth_of
from ccl.problem import Problem
from ccl.serialization.documents import Document
from ccl.topology import Topology
from ccl.verify import verify
from interchange.formats.format import NoOptions, Written, one_file
from interchange.formats.synthesizers.forestcoll.file import MOST_CHUNKS, path_text
from interchange.formats.xml import Element, xml_text


def write(content: Document, _options: NoOptions) -> Written:
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
        msg = (
            f"ForestColl's file holds the trees of a steady state, and the plan is {has}; solve "
            "with forestcoll, orbit-trees or another that gives a forest"
        )
        raise FormatError(msg)
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
        msg = (
            "the all-reduce goes down other trees than it goes up, and ForestColl's file has one "
            "set for both; write an all-gather or a reduce-scatter"
        )
        raise FormatError(msg)
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
        msg = (
            "the roots of the all-reduce have shares of different size, and ForestColl's file has "
            "as many chunks of every root; write an all-gather or a reduce-scatter"
        )
        raise FormatError(msg)


def _chunks(trees: tuple[Tree, ...]) -> int:
    """Return the chunks per root with which every weight is a whole number of them."""
    weights = _by_root(trees)
    chunks = math.lcm(*((tree.weight / weights[tree.root]).denominator for tree in trees))
    if chunks > MOST_CHUNKS:
        msg = f"the weights need {chunks:,} chunks per root; {MOST_CHUNKS:,} at most are written"
        raise FormatError(msg)
    return chunks


def _tree(tree: Tree, topology: Topology) -> Element:
    made = Element("tree", {"root": topology.ranks[tree.root]})
    for route in tree.routes:
        stop = next((end for end in (route[0], route[-1]) if end not in topology.rank), None)
        if stop is not None:
            msg = (
                f"a tree of root {tree.root} branches at {stop}, which is no GPU; ForestColl's "
                "trees join GPUs and only cross what lies between"
            )
            raise FormatError(msg)
        words = {"src": route[0], "dst": route[-1], "path": path_text(route)}
        made.children.append(Element("send", words))
    return made
