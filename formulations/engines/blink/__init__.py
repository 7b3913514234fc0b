"""Blink: spanning trees of one root, packed exactly or by multiplicative weights, many or few.

`roots` chooses the root of an all-reduce and packs its trees, `packer` makes plans of them.

Source: Wang et al., Blink: Fast and Generic Collectives for Distributed ML, MLSys 2020.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Packing = Literal["exact", "multiplicative weights"]
Halves = Literal["at once", "in turn"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Root, packing and number of trees."""

    all_reduce_root: int | None = field(
        default=None,
        metadata={
            "label": "Root of an all-reduce",
            "min": 0,
            "help": "Rank that adds up and spreads all data; empty: the best one",
        },
    )
    packing: Packing = field(
        default="exact",
        metadata={
            "label": "Packing",
            "help": "exact: trees at the rate of the worst cut; multiplicative weights: the "
            "paper's approximation, then a program for what each tree carries",
        },
    )
    trees: int = field(
        default=0,
        metadata={
            "label": "Trees at most",
            "min": 0,
            "max": 1000,
            "help": "Chosen by an integer program, as fast as so many can be; 0: any number",
        },
    )
    rounds: int = field(
        default=1000,
        metadata={
            "label": "Rounds of multiplicative weights",
            "min": 1,
            "max": 100_000,
            "help": "More come nearer to the best rate",
        },
    )
    halves: Halves = field(
        default="at once",
        metadata={
            "label": "Halves of an all-reduce",
            "help": "at once: trees go up and down at the same time and share the links, as the "
            "paper packs them; in turn: the best trees of a broadcast alone, up and then down",
        },
    )
