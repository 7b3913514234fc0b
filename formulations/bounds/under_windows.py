"""Cut bounds under windows: what must cross, over what windows leave of the bandwidth.

A link e that leaves a cut is of use from its head, the least sum of latencies from a source, until
T less its tail, that of e itself and on to a destination (`formulations.bounds.cuts`). Let r(e, t)
be its bandwidth at t: the least share, of its own, of the windows that overlap, and at most what
its shared limits let it carry alone. Bytes begin to cross a link while it carries them, so by T no
more have come over the cut than

    C(T) = sum over e of the integral of r(e, t) over t from head(e) to T - tail(e),

and a plan of N bytes that must cross takes the least T with C(T) >= N. C grows, and is linear
between the moments at which a link comes to be of use or a window begins or ends for it. What
shared limits take from several links together is left out, which makes the bound weaker, never
wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ccl.bound import Bound
from ccl.simulate.routes import SlowTimes
from formulations.bounds.cuts import BYTES, Network, kind_of, leaving_of, windows, witness
from formulations.bounds.demand import Floats, Mask

_MARGIN = 1e-10
"""Share by which a bound is lowered, for the rounding of sums."""

_WORDS = "bytes that must cross over what windows leave of the bandwidth, with the latencies"


@dataclass(frozen=True)
class Carried:
    """What a link can carry under windows.

    Parameters
    ----------
    moments
        µs at which its bandwidth changes, the first of them 0, shape (steps,).
    nbytes
        Bytes that may have begun to cross it by then, shape (steps,).
    rates
        Bytes/µs from then on, shape (steps,).
    """

    moments: Floats
    nbytes: Floats
    rates: Floats

    def by(self, times: Floats) -> Floats:
        """Return the bytes until some times."""
        at = np.maximum(np.searchsorted(self.moments, times, side="right") - 1, 0)
        since = np.maximum(times - self.moments[at], 0.0)
        return np.asarray(self.nbytes[at] + self.rates[at] * since)


def carried(slow: SlowTimes, link: int, *, bandwidth: float, most: float) -> Carried:
    """Return what a link can carry under its windows.

    Parameters
    ----------
    slow, link
        The windows of each link, and its number.
    bandwidth, most
        GB/s of the link alone, and under its shared limits: these stay what they are.
    """
    own = slow.of.get(link, ())
    moments = np.array(sorted({0.0, *(each.begin for each in own), *(each.end for each in own)}))
    shares = [slow.at(link, moment) for moment in moments.tolist()]
    rates = np.minimum(bandwidth * np.array(shares), most) * BYTES
    nbytes = np.concatenate([[0.0], np.cumsum(np.diff(moments) * rates[:-1])])
    return Carried(moments, nbytes, rates)


def window_bounds(network: Network, cuts: Sequence[Mask]) -> list[Bound]:
    """Return the best bound that cuts prove under windows; nothing where there are none.

    Parameters
    ----------
    network
        The problem.
    cuts
        Sets of devices that something must leave.
    """
    if not network.problem.windows:
        return []
    slow, topology = SlowTimes(network.problem), network.problem.topology
    links = [
        carried(slow, number, bandwidth=link.bandwidth, most=float(most))
        for number, (link, most) in enumerate(zip(topology.links, network.bandwidth, strict=True))
    ]
    best, time = None, 0.0
    for inside, nbytes in zip(cuts, leaving_of(network, cuts), strict=True):
        proved = _makespan(network, inside, float(nbytes), links) if nbytes > 0 else 0.0
        if proved > time:
            best, time = inside, proved
    if best is None:
        return []
    makespan = time * (1 - _MARGIN)
    return [Bound(makespan, kind_of(network, best), witness(network, best), _WORDS)]


def _makespan(network: Network, inside: Mask, nbytes: float, links: Sequence[Carried]) -> float:
    """Return the least T by which so many bytes may have crossed a cut."""
    crossing = network.crossing(inside)
    heads, tails = windows(network, inside, crossing)
    some = [
        (links[link], head, tail)
        for link, head, tail in zip(crossing.tolist(), heads, tails, strict=True)
        if np.isfinite(head + tail)
    ]
    moments = [each.moments + tail for each, _, tail in some]
    times = np.unique([*np.concatenate(moments), *(head + tail for _, head, tail in some)])
    # After the last all links are whole, so one time more says where it goes on.
    whole = sum(each.rates[-1] for each, _, _ in some)
    times = np.append(times, times[-1] + nbytes / whole)
    amounts = np.zeros(len(times))
    for each, head, tail in some:
        amounts += each.by(np.maximum(times - tail, head)) - each.by(np.array([head]))
    after = int(np.searchsorted(amounts, nbytes))
    if after == 0 or after == len(times):
        return float(times[min(after, len(times) - 1)])
    step = (nbytes - amounts[after - 1]) / (amounts[after] - amounts[after - 1])
    return float(times[after - 1] + step * (times[after] - times[after - 1]))
