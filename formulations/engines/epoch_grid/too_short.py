"""Why a horizon is too short, in one sentence: hops, cuts, and the smallest that could work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ccl.bound import Bound, Cut, Path
from ccl.topology import Topology
from formulations.engines.epoch_grid.epochs import ROUNDING

TOLD = 4
"""Names that are told; the rest are counted."""


@dataclass(frozen=True)
class Need:
    """How many epochs, steps or hops any plan takes at least, and why in words."""

    many: int
    why: str


def too_short(asked: int, need: Need, *, unit: str = "epoch", each: float | None = None) -> str:
    """Say that a horizon is too short.

    Parameters
    ----------
    asked
        How many were asked for.
    need
        How many it takes at least.
    unit
        ``epoch``, ``step`` or ``hop``.
    each
        µs of one, or None where it has no duration.
    """
    length = "" if each is None else f" of {each:.6g} µs"
    return (
        f"the horizon of {_counted(asked, unit)}{length} is too short: no plan takes fewer than "
        f"{need.many} ({need.why}); allow {_counted(need.many, unit)} or more"
    )


def proved_short(
    asked: int,
    need: int,
    *,
    unit: str = "epoch",
    each: float | None = None,
    what: str = "plan",
    full: Sequence[str] = (),
) -> str:
    """Say that a solver proved a horizon too short, although `need` are not ruled out by hand.

    `full` names the devices with limited buffers, whose room may be what is missing.
    """
    length = "" if each is None else f" of {each:.6g} µs"
    return (
        f"the horizon of {_counted(asked, unit)}{length} is too short: the solver proved that no "
        f"{what} takes so few under these options, although hops and bounds would let {need} do; "
        f"allow {_counted(asked + 1, unit)} or more"
        + (f", or more room in the buffer of {few(full)}" if full else "")
    )


def by_hops(far: np.ndarray, ends: Sequence[tuple[int, int]], topology: Topology) -> Need:
    """Return the need of the pair of devices that are farthest from one another.

    Parameters
    ----------
    far
        Fewest epochs, steps or hops from device to device, shape (devices, devices).
    ends
        From which device to which something has to go; one or more.
    """
    src, dst = max(ends, key=lambda pair: far[pair])
    names = [topology.devices[each].name for each in (src, dst)]
    return Need(max(1, math.ceil(float(far[src, dst]))), f"hops from {names[0]} to {names[1]}")


def by_bound(bound: Bound, each: float) -> Need:
    """Return the need of a lower bound on the makespan, where one takes `each` µs."""
    many = math.ceil(bound.makespan / each * (1 - ROUNDING) - ROUNDING)
    return Need(max(1, many), f"{_why(bound)} {bound.makespan:.6g} µs")


def few(names: Sequence[str]) -> str:
    """Name the first of many."""
    more = f" and {len(names) - TOLD} more" if len(names) > TOLD else ""
    return ", ".join(names[:TOLD]) + more


def _why(bound: Bound) -> str:
    """Say what a lower bound is about, to be read before its µs."""
    if isinstance(bound.witness, Path):
        return f"the way {'->'.join(bound.witness.devices)} takes"
    if isinstance(bound.witness, Cut):
        inside = few(bound.witness.inside)
        return f"what must leave {inside} at {bound.witness.bandwidth:g} GB/s takes"
    return f"{bound.reference}:"


def _counted(many: int, unit: str) -> str:
    return f"{many:,} {unit}{'' if many == 1 else 's'}"
