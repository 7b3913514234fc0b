"""Automorphisms: permutations of devices that leave a cluster as it is.

`automorphisms` finds a `Group` by its generators, with orbits and stabilisers; `symmetry_of` a
small `Symmetry` with all of its elements that leaves no GPU in its place.
"""

from ccl.symmetry.automorphism_group import automorphisms
from ccl.symmetry.free import Symmetry, symmetry_of
from ccl.symmetry.group import Carriers, Group, orbits_of
from ccl.topology import Interchange, Permutation

__all__ = [
    "Carriers",
    "Group",
    "Interchange",
    "Permutation",
    "Symmetry",
    "automorphisms",
    "orbits_of",
    "symmetry_of",
]
