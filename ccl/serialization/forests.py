"""Forests in ``topoloom/1``: trees with exact weights, and groups by their generators."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from ccl.errors import FormatError
from ccl.forest import Forest, Tree
from ccl.serialization import wire
from ccl.symmetry import Symmetry
from ccl.topology import Topology

Json = dict[str, Any]

MOST_DIGITS = 1_000
"""Of a number in a weight. Python's own `Fraction` reads exponents as well, and computes with
10**999999999 until the end of days."""

_WEIGHT = re.compile(
    rf"\d{{1,{MOST_DIGITS}}}(?:/\d{{1,{MOST_DIGITS}}}|\.\d{{1,{MOST_DIGITS}}})?", re.ASCII
)


def forest_to_json(forest: Forest) -> Json:
    """Return a forest; out-trees and symmetry are left out where there are none."""
    value: Json = {
        "plan": "forest",
        "trees": [_tree_to_json(each) for each in forest.trees],
        "reduces": forest.reduces,
    }
    if forest.spread:
        value["spread"] = [_tree_to_json(each) for each in forest.spread]
    if forest.symmetry is not None:
        devices = forest.symmetry.devices
        value["symmetry"] = {
            "generators": [devices[place].tolist() for place in forest.symmetry.generators],
            "powers": list(forest.symmetry.powers),
        }
    return value


def forest_of(value: wire.ForestJson, topology: Topology | None) -> Forest:
    """Make a forest of its shape; one with a symmetry needs the topology that it is for."""
    symmetry = None
    if value.symmetry is not None:
        if topology is None:
            msg = "plan: a forest with a symmetry means nothing without its topology; add a problem"
            raise FormatError(msg)
        symmetry = _symmetry_of(value.symmetry, topology)
    return Forest(_trees(value.trees), value.reduces, _trees(value.spread), symmetry)


def _symmetry_of(value: wire.SymmetryJson, topology: Topology) -> Symmetry:
    """Multiply the generators out; whether they are automorphisms is for `ccl.verify` to say."""
    many, most = len(topology.devices), len(topology.ranks)
    if len(value.generators) != len(value.powers):
        msg = (
            f"plan, at symmetry: {len(value.generators)} generators and {len(value.powers)} "
            "powers; give one for each"
        )
        raise FormatError(msg)
    _check_order(value.powers, most)
    elements = np.arange(many)[None, :]
    for number, (generator, power) in enumerate(zip(value.generators, value.powers, strict=True)):
        if sorted(generator) != list(range(many)):
            msg = (
                f"plan, at symmetry.generators[{number}]: it is no permutation of the places of "
                f"{many} devices"
            )
            raise FormatError(msg)
        blocks = [elements]
        for _ in range(power - 1):
            blocks.append(np.array(generator)[blocks[-1]])
        elements = np.concatenate(blocks)
    return Symmetry(topology, elements, tuple(value.powers))


def _check_order(powers: Iterable[int], most: int) -> None:
    """Refuse a group of more elements than there are GPUs, before anything is multiplied out."""
    order = 1
    for power in powers:
        order *= power
        if order > most:
            msg = (
                f"plan, at symmetry: its order is {order}, and a group that leaves none of "
                f"{most} GPUs in its place has at most as many elements"
            )
            raise FormatError(msg)


def _trees(values: Iterable[wire.TreeJson]) -> tuple[Tree, ...]:
    return tuple(
        Tree(each.root, tuple(map(tuple, each.routes)), _fraction(each.weight)) for each in values
    )


def _tree_to_json(tree: Tree) -> Json:
    routes = [list(route) for route in tree.routes]
    return {"root": tree.root, "routes": routes, "weight": str(tree.weight)}


def _fraction(text: str) -> Fraction:
    try:
        if _WEIGHT.fullmatch(text):
            return Fraction(text)
    except ZeroDivisionError:
        pass
    shown = text if len(text) <= 40 else f"{text[:37]}..."
    msg = f"plan: a tree has the weight {shown!r}; give a fraction such as 1/3"
    raise FormatError(msg)
