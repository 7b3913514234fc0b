"""Blocks that double: partners at distances 1, 2, 4, ..., and ranks that are left over.

Of p places, p' = 2^floor(log2 p) are the core. Of the first 2 (p - p') places every even one is in
the core and every odd one is left over beside it; all after them are in the core.
"""

from __future__ import annotations

import numpy as np

from formulations.engines.closed_forms.messages import Messages, Task


def is_power_of_two(ranks: int) -> bool:
    """Say whether a number doubles from 1."""
    return ranks & (ranks - 1) == 0


def core(places: int) -> np.ndarray:
    """Return the places that double."""
    most = 1 << (places.bit_length() - 1)
    extra = places - most
    return np.array([*range(0, 2 * extra, 2), *range(2 * extra, places)])


def beside(places: int) -> np.ndarray:
    """Return the places in the core that have one beside them which is left over."""
    return np.arange(0, 2 * (places - len(core(places))), 2)


def partners(places: int) -> list[tuple[int, int]]:
    """Return all pairs of places that exchange, in both directions."""
    inside, extra = core(places), beside(places)
    turns = np.arange(len(inside))
    pairs = [
        (int(inside[i]), int(inside[i ^ (1 << t)]))
        for t in range(len(inside).bit_length() - 1)
        for i in turns.tolist()
    ]
    for place in extra.tolist():
        pairs += [(place + 1, place), (place, place + 1)]
    return pairs


def doubled(task: Task) -> Messages:
    """Send from partner to partner all that a place has, then to those left over.

    Chunks begin in the core.
    """
    inside = core(task.places)
    number = np.zeros(task.places, dtype=np.int64)
    number[inside] = np.arange(len(inside))
    root = number[task.root]
    steps = len(inside).bit_length() - 1
    parts = []
    for t in range(steps):
        for other in range(1 << t):
            # The one that has the chunk in step t and is `other` away from its root.
            src = root ^ other
            step = np.full(len(src), t)
            parts.append(Messages(step, task.chunk, inside[src], inside[src ^ (1 << t)]))
    for place in beside(task.places).tolist():
        here = np.full(len(root), place)
        parts.append(Messages(np.full(len(root), steps), task.chunk, here, here + 1))
    return Messages.joined(parts)
