"""Blink: spanning trees of one root, packed exactly or by multiplicative weights, many or few.

`roots` chooses the root of an all-reduce and packs its trees, `packer` makes plans of them.

Source: Wang et al., Blink: Fast and Generic Collectives for Distributed ML, MLSys 2020.
"""

from dataclasses import dataclass
from typing import Literal

from ccl.options import option

Packing = Literal["exact", "multiplicative weights"]
Halves = Literal["at once", "in turn"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Root, packing and number of trees."""

    all_reduce_root: int | None = option(
        None,
        "Root of an all-reduce",
        "Rank that adds up and spreads all data; empty: the best one",
        min=0,
    )
    packing: Packing = option(
        "exact",
        "Packing",
        "exact: trees at the rate of the worst cut; multiplicative weights: the "
        "paper's approximation, then a program for what each tree carries",
    )
    trees: int = option(
        0,
        "Trees at most",
        "Chosen by an integer program, as fast as so many can be; 0: any number",
        min=0,
        max=1000,
    )
    rounds: int = option(
        1000,
        "Rounds of multiplicative weights",
        "More come nearer to the best rate",
        min=1,
        max=100_000,
    )
    halves: Halves = option(
        "at once",
        "Halves of an all-reduce",
        "at once: trees go up and down at the same time and share the links, as the "
        "paper packs them; in turn: the best trees of a broadcast alone, up and then down",
    )
