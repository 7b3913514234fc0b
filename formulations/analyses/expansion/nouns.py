"""What an upgrade is: which links get how much more bandwidth, what it costs and what it gains."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ccl.bound import Cut
from ccl.topology import Topology

PROVED = 1e-5
"""A cost within this share of its lower bound is the least."""


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a class of links, or of shared limits, that are given more together.

    Parameters
    ----------
    words
        What they are.
    links
        Ends of the links, both directions; empty of shared limits.
    limits
        Names of the shared limits; empty of links.
    count
        How many there are; the two directions of a link are one.
    before, after
        GB/s of each, one way.
    cost
        Of all of them together.
    whole
        How many more parallel links each has, where whole links are bought; else 0.
    """

    words: str
    links: tuple[tuple[str, str], ...]
    limits: tuple[str, ...]
    count: int
    before: float
    after: float
    cost: float
    whole: int = 0

    @property
    def added(self) -> float:
        """GB/s more on each."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Gain:
    """What becomes of one collective.

    Parameters
    ----------
    collective
        Its kind.
    before, after
        algbw in GB/s of the best steady state, today and upgraded.
    target
        algbw in GB/s that was asked for.
    cut
        A bottleneck cut of the upgraded cluster; None where no cut alone decides.
    held
        Classes of links that hold it down after the upgrade, and by how much of itself algbw
        would follow more bandwidth of each, where that is unique; the largest first.
    """

    collective: str
    before: float
    after: float
    target: float
    cut: Cut | None
    held: tuple[tuple[str, float], ...]

    @property
    def factor(self) -> float:
        """How many times as fast it is."""
        return self.after / self.before


@dataclass(frozen=True)
class Upgrade:
    """The cheapest upgrade that reaches a target.

    Parameters
    ----------
    cost
        Of all that is bought.
    bound
        No upgrade that reaches the target costs less.
    changes
        One for each class of links that is for sale, bought or not.
    topology
        The upgraded cluster.
    gains
        One for each collective.
    currency
        Unit of costs.
    factor
        How many times as fast as today the collectives were asked to be; the least of the
        gains' targets over today's algbw.
    """

    cost: float
    bound: float
    changes: tuple[Change, ...]
    topology: Topology
    gains: tuple[Gain, ...]
    currency: str
    factor: float

    @property
    def bought(self) -> tuple[Change, ...]:
        """The classes that get more, the most expensive first."""
        some = [each for each in self.changes if each.added > 0]
        return tuple(sorted(some, key=lambda each: -each.cost))

    @property
    def proved(self) -> bool:
        """Whether nothing cheaper reaches the target."""
        return math.isclose(self.cost, self.bound, rel_tol=PROVED, abs_tol=1e-9)


FrontKind = Literal["breaks", "steps", "samples"]


@dataclass(frozen=True)
class Front:
    """Cost against speed: no upgrade is cheaper and as fast as one of these.

    Parameters
    ----------
    points
        Cheapest upgrades by factor, the first is today's cluster.
    kind
        ``breaks``: any amount can be bought, the front is convex and straight between the
        points, which are its corners; ``steps``: everything is bought in steps, and these are all
        the upgrades that nothing beats; ``samples``: some is bought in steps and some is not, and
        these are cheapest upgrades at some factors.
    complete
        Whether the front ends where it was asked to; else a limit came first, and points of
        ``breaks`` may have corners between them, those of ``steps`` more behind the last.
    today
        Cost of the cluster as it is.
    currency
        Unit of costs.
    """

    points: tuple[Upgrade, ...]
    kind: FrontKind
    complete: bool
    today: float
    currency: str
