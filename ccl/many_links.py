"""Links by the million: a full mesh of a thousand GPUs has as many, and a file is read at once."""

from __future__ import annotations

import gc
import math
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from operator import eq

import numpy as np

from ccl.topology import Link


def many_links(
    src: Sequence[str],
    dst: Sequence[str],
    *,
    bandwidth: Sequence[float],
    alpha: Sequence[float],
    medium: Sequence[str],
    count: Sequence[int],
) -> tuple[Link, ...]:
    """Return links given by columns, all of them equally long.

    Raises
    ------
    ProblemError
        If one of them is none.
    """
    rates, lates = np.array(bandwidth, dtype=float), np.array(alpha, dtype=float)
    sound = ((rates > 0) & (rates < math.inf) & (lates >= 0) & (lates < math.inf)).all()
    columns = (src, dst, bandwidth, alpha, medium, count)
    if not sound or min(count, default=1) < 1 or any(map(eq, src, dst)):
        return tuple(map(Link, *columns))  # one of which says what is wrong with it
    links = [Link.__new__(Link) for _ in src]
    for name, column in zip(Link.__slots__, columns, strict=True):
        # What a link checks was checked above; its slots are filled as its constructor would.
        deque(map(getattr(Link, name).__set__, links, column), maxlen=0)
    return tuple(links)


@contextmanager
def no_collection() -> Iterator[None]:
    """Leave cyclic garbage alone for a time in which much is made that lives on.

    The collector would look through all of it again and again, for as long as making it takes.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
