"""Marks on a drawing, and their words: what can change places, prices of links, and trees.

Devices and links that an automorphism exchanges are one class. The dearest links (`ccl.bound`) are
the hottest, and links of one price are one group of the legend. Of a forest one tree of a root is
shown at a time.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from ccl import text
from ccl.bound import IDLE, Ends, Prices
from ccl.plans import Forest, Tree
from ccl.symmetry import Group
from ccl.topology import Topology

MOST_NAMES = 3
"""Names in the words of a class."""


@dataclass(frozen=True, slots=True)
class Alike:
    """What an automorphism of the cluster can exchange for one another.

    Parameters
    ----------
    badge
        Its letter: A, B, ... Z, AA, ...
    devices
        Names of its devices.
    links
        Ends of its links, both ways.
    words
        What it has: ``8 GPUs: g0, g1, g2 and 5 more``.
    """

    badge: str
    devices: tuple[str, ...] = ()
    links: tuple[Ends, ...] = ()
    words: str = ""


def gpu_classes(topology: Topology, group: Group) -> tuple[Alike, ...]:
    """Return the classes of GPUs, the largest first; lone ones are classes too."""
    label = group.orbits()
    members: dict[int, list[str]] = {}
    for name in topology.ranks:
        members.setdefault(int(label[topology.index[name]]), []).append(name)
    ordered = sorted(members.values(), key=lambda each: -len(each))
    return tuple(
        Alike(letters(i), tuple(names), words=f"{text.count(len(names), 'GPU')}: {some(names)}")
        for i, names in enumerate(ordered)
    )


def link_classes(topology: Topology, group: Group) -> tuple[Alike, ...]:
    """Return the kinds of links, the largest first; a link belongs with its opposite.

    Those that have everything in common but their place name a link of each as an example.
    """
    label = group.link_orbits().tolist()
    place = topology.link_index
    members: dict[tuple[int, ...], list[Ends]] = {}
    for number, link in enumerate(topology.links):
        back = place.get((link.dst, link.src))
        both = {label[number]} if back is None else {label[number], label[back]}
        members.setdefault(tuple(sorted(both)), []).append(link.ends)
    ordered = sorted(members.values(), key=lambda each: -len(each))
    said = [link_words(topology, ends) for ends in ordered]
    words = [
        each if said.count(each) == 1 else f"{each}, such as {'–'.join(ends[0])}"
        for each, ends in zip(said, ordered, strict=True)
    ]
    return tuple(
        Alike(letters(i), links=tuple(ends), words=words[i]) for i, ends in enumerate(ordered)
    )


def link_words(topology: Topology, links: Sequence[Ends]) -> str:
    """Say what links have in common: ``32 links of 25 GB/s, GPU to rail (InfiniBand)``."""
    lines = {(min(ends), max(ends)) for ends in links}
    first = topology.link(*links[0])
    kinds = {topology.link(*ends).medium for ends in links}
    between = {tuple(sorted(stem(topology, name) for name in ends)) for ends in lines}
    rates = {topology.link(*ends).bandwidth for ends in links}
    words = text.count(len(lines), "link")
    if len(rates) == 1:
        words += f" of {first.bandwidth:.4g} GB/s"
    if len(between) == 1:
        one, other = between.pop()
        words += f", {one} to {other}"
    return f"{words} ({kinds.pop()})" if len(kinds) == 1 and first.medium else words


def stem(topology: Topology, name: str) -> str:
    """Return what a device is called without its number: ``GPU``, ``nvswitch``, ``rail``."""
    found = topology.device(name)
    if found.kind == "gpu":
        return "GPU"
    own = name.removeprefix(found.host or "").strip(" /.:_-")
    return re.sub(r"[\d\s._-]+$", "", own) or found.kind


def class_marks(classes: Sequence[Alike], *, title: str) -> dict[str, Any] | None:
    """Return the marks of classes (`scene`); lone members are left as they are."""
    groups = [
        {
            "tone": {"class": i},
            "devices": list(each.devices),
            "links": [list(ends) for ends in each.links],
            "badge": each.badge,
            "label": each.words,
        }
        for i, each in enumerate(classes)
        if len(each.devices) != 1
    ]
    return {"title": title, "groups": groups} if groups else None


def letters(number: int) -> str:
    """Return A for 0, Z for 25, AA for 26."""
    text = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        text = chr(ord("A") + digit) + text
    return text


def some(names: Iterable[str]) -> str:
    """Write ``a, b, c and 5 more``."""
    listed = list(names)
    if len(listed) <= MOST_NAMES + 1:
        return ", ".join(listed)
    return f"{', '.join(listed[:MOST_NAMES])} and {len(listed) - MOST_NAMES} more"


TITLE = "µs saved per GB/s"

MOST_GROUPS = 7
"""Groups of the legend; dear links beyond them share the last."""


def price_marks(prices: Prices) -> dict[str, Any]:
    """Return the heat map of the links that save time, the dearest hottest (`scene`).

    The others stay as they are drawn, so that arrows say which way bandwidth is short.
    """
    found = _grouped(prices)
    groups = [
        {"tone": {"heat": heat(price, found[0][0])}, "links": links, "label": label}
        for price, links, label in found
    ]
    idle = len(prices.links) - len(prices.dearest)
    title = f"{TITLE}, none on {text.count(idle, 'link')}" if idle else TITLE
    return {"title": title, "groups": groups, "arrows": True}


def price_words(prices: Prices) -> str:
    """Say what is priced, and which shared limits hold it down."""
    told = f"{text.duration(prices.makespan)}: {prices.model}."
    held = [name for name in prices.limits if prices.share_of_limit(name) > IDLE]
    for name in held[:MOST_GROUPS]:
        told += f" Limit {name}: {prices.limits[name]:.3g} µs saved per GB/s."
    if not prices.dearest and not held:
        told += " No link alone holds it down."
    return told + (
        " Where several links are equally full, more of one alone may save less than its price."
    )


PriceGroup = tuple[float, list[list[str]], str]


def _grouped(prices: Prices) -> list[PriceGroup]:
    """Return the links of each price, the dearest first; those beyond the legend are one."""
    alike: dict[str, list[Ends]] = {}
    for ends in prices.dearest:
        alike.setdefault(f"{prices.links[ends]:.3g}", []).append(ends)
    found = [
        (prices.links[links[0]], [list(ends) for ends in links], f"{said} on {_many(links)}")
        for said, links in alike.items()
    ]
    if len(found) <= MOST_GROUPS:
        return found
    rest = found[MOST_GROUPS - 1 :]
    links = [ends for _, several, _ in rest for ends in several]
    last = (rest[0][0], links, f"{rest[0][0]:.3g} or less on {text.count(len(links), 'link')}")
    return [*found[: MOST_GROUPS - 1], last]


def _many(links: list[Ends]) -> str:
    return "→".join(links[0]) if len(links) == 1 else text.count(len(links), "link")


def heat(price: float, most: float) -> float:
    """Return the heat of a price: the dearest is 1, and whatever saves anything is seen."""
    return 0.25 + 0.75 * price / most


Marked = Group | Prices | Forest
"""What can be marked on a drawing as it is."""


def marks_of(topology: Topology, what: Marked, *, root: int = 0) -> dict[str, Any] | None:
    """Return the marks of a group's classes of GPUs, of prices, or of a root's heaviest tree."""
    match what:
        case Group():
            return class_marks(gpu_classes(topology, what), title="classes of GPUs")
        case Prices():
            return price_marks(what)
        case Forest():
            return tree_marks(routes(what, topology, root)[0], topology)


Half = Literal["both", "up", "down"]


@dataclass(frozen=True, slots=True)
class Route:
    """How a share of a root's data travels: up a tree, down a tree, or both in an all-reduce.

    Parameters
    ----------
    root
        Rank at the root.
    weight
        The share; of all data in an all-reduce, else of the root's.
    up
        In-tree along which contributions are added, or None.
    down
        Out-tree along which the data is spread, or None.
    """

    root: int
    weight: Fraction
    up: Tree | None
    down: Tree | None

    def depth(self, half: Half = "both") -> int:
        """Edges on the longest way from the root, both trees one after the other."""
        return sum(max(levels(tree, up=up).values(), default=0) for tree, up in self.trees(half))

    def trees(self, half: Half = "both") -> Iterator[tuple[Tree, bool]]:
        """Yield the requested trees, and whether data goes up."""
        if self.up is not None and half != "down":
            yield self.up, True
        if self.down is not None and half != "up":
            yield self.down, False


def routes(forest: Forest, topology: Topology, rank: int) -> list[Route]:
    """Return the paths from one root, the heaviest first; images of a symmetry included."""
    trees = _of_root(forest, topology, rank, trees=forest.trees)
    if not forest.spread:
        up = forest.reduces
        found = [
            Route(rank, each.weight, each if up else None, None if up else each) for each in trees
        ]
    else:
        found = _met(rank, trees, _of_root(forest, topology, rank, trees=forest.spread))
    return sorted(found, key=lambda each: -each.weight)


def roots(forest: Forest) -> list[int]:
    """Return the ranks that are roots of trees, in order."""
    own = {tree.root for tree in (*forest.trees, *forest.spread)}
    if forest.symmetry is not None:
        own = set(np.unique(forest.symmetry.ranks[:, sorted(own)]).tolist())
    return sorted(own)


def _of_root(forest: Forest, topology: Topology, rank: int, *, trees: Sequence[Tree]) -> list[Tree]:
    """Return the trees of one root; only requested images are made."""
    group = forest.symmetry
    if group is None:
        return [each for each in trees if each.root == rank]
    names = [each.name for each in topology.devices]
    found = []
    for tree in trees:
        for element in np.flatnonzero(group.ranks[:, tree.root] == rank).tolist():
            image = dict(zip(names, (names[i] for i in group.devices[element]), strict=True))
            routes = tuple(tuple(image[name] for name in route) for route in tree.routes)
            found.append(replace(tree, root=rank, routes=routes))
    return found


def _met(rank: int, up: Sequence[Tree], down: Sequence[Tree]) -> list[Route]:
    """Pair in-trees with out-trees: what was added up on one goes down another."""
    found = []
    rising, falling = iter(up), iter(down)
    one, other = next(rising, None), next(falling, None)
    left = one.weight if one else Fraction(0)
    room = other.weight if other else Fraction(0)
    while one is not None and other is not None:
        share = min(left, room)
        found.append(Route(rank, share, one, other))
        left, room = left - share, room - share
        if not left:
            one = next(rising, None)
            left = one.weight if one else left
        if not room:
            other = next(falling, None)
            room = other.weight if other else room
    return found


def levels(tree: Tree, *, up: bool) -> dict[str, int]:
    """Return how many edges each GPU is away from the root, the root left out."""
    depth: dict[str, int] = {}
    for route in reversed(tree.routes) if up else tree.routes:
        parent, child = (route[-1], route[0]) if up else (route[0], route[-1])
        depth[child] = depth.get(parent, 0) + 1
    return depth


def tree_marks(route: Route, topology: Topology, *, half: Half = "both") -> dict[str, Any]:
    """Return the marks of a way: its links in the root's colour, depths at the GPUs."""
    name = topology.ranks[route.root]
    tone = {"origin": [route.root, len(topology.ranks)]}
    shown = list(route.trees(half))
    groups = []
    for tree, up in shown:
        hops = {hop: None for route in tree.routes for hop in pairwise(route)}
        both = len(shown) > 1
        groups.append(
            {
                "tone": tone,
                "links": [list(hop) for hop in hops],
                "dash": up and both,
                "label": ("Sums go up, dashed" if up else "Sums come down, solid") if both else "",
            }
        )
    away = levels(shown[-1][0], up=shown[-1][1]) if shown else {}
    return {
        "title": f"A tree of {name}: {weight_words(route.weight)}, depth {route.depth(half)}",
        "groups": [{"tone": tone, "devices": [name]}, *groups],
        "badges": {name: "root", **{each: str(depth) for each, depth in away.items()}},
        "arrows": True,
        "fade": True,
    }


def weight_words(weight: Fraction) -> str:
    """Write ``1/3`` of the data, ``all``, or an approximation where the fraction is unwieldy."""
    if weight == 1:
        return "all of it"
    return str(weight) if weight.denominator < 10_000 else f"about {float(weight):.4g}"
