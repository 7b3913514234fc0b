"""When the links of a way are held: what a send does with devices that cannot store (cut-through).

These are the rules of `ccl.schedule.Send.via`: a link that is faster than one before it waits until
it can send without a pause, so that no byte leaves a device before it has come, and all have left
when the last has come and not before. A link that is limited is held over whole epochs, over no
fewer than those in which the bytes come to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from ccl.topology import Link
from ccl.verify.order import TOLERANCE

Ends = tuple[str, str]


class Stay(NamedTuple):
    """A link that a transmission holds; everything in µs.

    Latencies before it take `lead`; besides these it is held from `wait` on until `until`. Where it
    is limited that is over so many `epochs` from the one that is `first` after that of the send.
    """

    link: Link
    busy: float
    lead: float
    wait: float
    until: float
    first: int = 0
    epochs: int = 0


def unlimited(
    routes: Sequence[Sequence[Link]], busy: dict[Ends, float], *, joins: bool
) -> dict[Ends, Stay]:
    """Return the links of ways that part, or that join, each when it is held.

    Ways that join are those that part, read backwards: all end at once.
    """
    alphas = [sum(link.alpha for link in links) for links in routes]
    stays: dict[Ends, Stay] = {}
    for links in routes:
        ordered = links[::-1] if joins else links
        lead = wait = 0.0
        for before, link in pairwise((None, *ordered)):
            assert link is not None
            if before is not None:
                # As long as the one before it sends more slowly it would run out of bytes.
                wait += max(0.0, busy[before.ends] - busy[link.ends])
                lead += link.alpha if joins else before.alpha
            elif joins:
                lead = link.alpha
            took = busy[link.ends]
            stays[link.ends] = Stay(link, took, lead, wait, wait + took)
    if not joins:
        return stays
    # Counted from the end, and then from when the first of the sends leaves.
    first = max(
        alpha + stays[links[0].ends].until for alpha, links in zip(alphas, routes, strict=True)
    )
    return {
        ends: stay._replace(lead=first - stay.lead, wait=-stay.until, until=-stay.wait)
        for ends, stay in stays.items()
    }


def limited(
    routes: Sequence[Sequence[Link]],
    busy: dict[Ends, float],
    *,
    lags: Sequence[float],
    tau: float,
    epochs: Callable[[Link, int, int], int | None],
    whole: bool,
) -> dict[Ends, Stay]:
    """Return the links of ways of which some are limited.

    Parameters
    ----------
    routes
        Links of each way.
    busy
        µs for which each link is held at full rate.
    lags
        µs after the common start at which each way begins.
    tau
        µs of an epoch.
    epochs
        Of a link, an epoch after that of the send and a number of epochs: over how many from that
        one on the link is held, that number at least; None if it is not limited.
    whole
        Whether limited links are held over whole epochs, or as long as their rate asks for.
    """
    came: dict[Ends, tuple[float, float]] = {}
    stays: dict[Ends, Stay] = {}
    for links, lag in zip(routes, lags, strict=True):
        lead, before, until = lag, 0.0, 0.0
        for link in links:
            # Where ways join, the last of them knows of all.
            known = came.get(link.ends, (0.0, 0.0))
            begin, end = came[link.ends] = max(known[0], before), max(known[1], until)
            took = busy[link.ends]
            first = math.floor((lead + begin) / tau + TOLERANCE)
            least = max(1, math.ceil(max(took, end - begin) / tau - TOLERANCE))
            many = epochs(link, first, least)
            if many is None:
                begin = max(begin, end - took)
                stay = Stay(link, took, lead, begin, begin + took)
            else:
                until = begin + many * tau if whole else max(begin + took, end)
                stay = Stay(link, took, lead, begin, until, first, many)
            stays[link.ends] = stay
            before, until = stay.wait, stay.until
            lead += link.alpha
    return stays
