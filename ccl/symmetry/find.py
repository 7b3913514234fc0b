"""Automorphisms of a cluster: declared by its builder, found by BLISS, or guessed and checked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Literal

import numpy as np

from ccl.symmetry.bliss import bliss
from ccl.symmetry.declared import DeclaredGroup
from ccl.symmetry.group import Group
from ccl.symmetry.guess import guessed
from ccl.symmetry.shape import shape_of
from ccl.topology import Topology

Method = Literal["auto", "declared", "bliss", "refined", "none"]

MOST_DEVICES = 5000
"""Devices above which BLISS takes too long: it may find as many generators as there are hosts."""


def automorphisms(
    topology: Topology,
    *,
    colours: Iterable[Hashable] | None = None,
    links: Iterable[Hashable] | None = None,
    method: Method = "auto",
    steady: bool = False,
) -> Group:
    """Return a group of automorphisms; each generator has been checked.

    Parameters
    ----------
    topology
        The cluster.
    colours
        Something for each device that must be equal for two to change places, besides what it is.
    links
        The same for each link, such as its cost, besides bandwidth and latency.
    method
        ``declared`` takes what the builder of the cluster says, as far as it is true; ``bliss``
        finds all there are; ``refined`` guesses and checks some; ``none`` finds none. ``auto``
        takes a declaration if all of it is true and of interchanges, as single permutations
        seldom are all there are; otherwise it asks BLISS or, in a cluster too large for that,
        takes what is true of the declaration or else guesses.
    steady
        Whether latencies may differ, as in a steady state, where only bandwidths count.
    """
    shape = shape_of(topology, colours=colours, links=links, steady=steady)
    if method == "none":
        return Group(topology, np.empty((0, shape.size)), shape=shape)
    large = shape.size > MOST_DEVICES
    if method == "declared" or (method == "auto" and topology.declared):
        group = DeclaredGroup(shape)
        if method == "declared" or (group.whole and group.at_will):
            return group
        if large and not group.trivial:
            return group
    if method == "refined" or (method == "auto" and large):
        return Group(topology, guessed(shape), shape=shape)
    return Group(topology, bliss(shape), shape=shape).fewer()
