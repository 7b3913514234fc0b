"""Two cuts that chunks must leave one after the other.

Let S be a set of devices inside a larger set R, and let every chunk of some set C come from inside
S and have to get out of R. On the chain of sends that brings it, the last hop that leaves R is the
last hop that leaves S, or comes after it: what has left S for good may still be inside R, never the
other way round. So with `formulations.bounds.machines`

* the chunks of C begin to leave S for good over the links f that leave S. Their releases are the
  µs in which they can be at f, and the first, second, ... of them begins no earlier than a curve
  c_1 <= c_2 <= ... says;
* each then begins to leave R for good over some link e that leaves R, no earlier than `lag(f, e)`
  after it began on f (`formulations.bounds.paths`; nothing if f is e). So at e they are jobs
  released at c_j + the least lag of all f. Chunks that have to get out of R and do not come from
  inside S are more jobs there, released when they can be at e;
* and T is no earlier than when the last of all these begins, plus the quickest way over e and on
  to where it must be.

Heads, lags and tails depend on job and link. What is least over jobs is taken as that of the link,
and what every link asks of a job beyond this as the release of the job, which is never too much.

The same chain read backwards in time leaves the destinations over the same links: there c_j says
how long before T the chunk that begins last, last but one, ... on a link into S begins. The lag is
again that between two beginnings, so the argument is the same, with heads for tails. It is what
counts for scatter, for reductions and for whatever else is narrow where it starts.

Nothing is said on how chunks move otherwise: copies, cut-through, relays outside of R and back, and
several links in either cut change none of the steps above.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from formulations.bounds.cuts import Network
from formulations.bounds.demand import Floats, Mask
from formulations.bounds.kinds import Kinds
from formulations.bounds.machines import curve, last, slots
from formulations.bounds.paths import Ways

_COPIES = 3_000_000
"""Most copies that are looked at one by one."""


@dataclass(frozen=True)
class Direction:
    """Chunks as they leave sets of devices, forwards or backwards in time.

    Parameters
    ----------
    network
        Whose devices and links there are.
    ways
        Of the chunks.
    kinds
        The chunks; turned, if it is backwards.
    backwards
        Whether time is read backwards: then chunks leave a set over the links that enter it.
    """

    network: Network
    ways: Ways
    kinds: Kinds
    backwards: bool

    def links(self, inside: Mask) -> np.ndarray:
        """Return the numbers of the links over which chunks leave a set."""
        return self.network.crossing(~inside if self.backwards else inside)

    def opens(self, links: np.ndarray) -> Floats:
        """Return (ranks, links): µs from a start to a link."""
        return self.ways.brings(links) if self.backwards else self.ways.begins(links)

    def closes(self, links: np.ndarray) -> Floats:
        """Return (ranks, links): µs from a link to a stop."""
        return self.ways.begins(links) if self.backwards else self.ways.brings(links)

    def lag(self, first: np.ndarray, then: np.ndarray) -> Floats:
        """Return (first, then): µs from one link to another."""
        if self.backwards:
            return self.ways.between(then, first).T
        return self.ways.between(first, then)

    @cached_property
    def parting(self) -> Mask:
        """(devices,): where one transmission can become several, in the direction of time."""
        devices = self.network.problem.topology.devices
        return np.array(
            [each.stores or (each.reduces if self.backwards else each.copies) for each in devices]
        )

    def entering(self, around: Mask) -> np.ndarray:
        """Return the links by which the last stretches to the GPUs of a set enter it."""
        src, dst = self.network.ends[:, ::-1].T if self.backwards else self.network.ends.T
        gpus = np.zeros(len(around), dtype=bool)
        gpus[self.network.gpus] = True
        useful = around[dst] & (gpus | ~self.parting)[dst]
        return np.flatnonzero(useful & (~around | self.parting)[src])

    def pace(self, links: np.ndarray) -> Floats:
        """Return (links,): µs for which a chunk is on each."""
        return np.asarray(self.ways.nbytes * 1e-3 / self.network.bandwidth[links])


@dataclass(frozen=True)
class Jobs:
    """Groups of jobs before some machines.

    Parameters
    ----------
    releases
        For each group its releases in order, in µs.
    offsets
        (groups, machines): µs from the release of a job to when it can begin on a machine.
    """

    releases: tuple[Floats, ...]
    offsets: Floats

    def curve(self, pace: Floats) -> Floats:
        """Return when jobs begin at the earliest, in order."""
        released, given = self._split(self.offsets.min(axis=0), pace)
        return curve(released, given)

    def last(self, pace: Floats, tails: Floats) -> float:
        """Return when the last job, of the first group or of all, is where it must be.

        `tails` are, for each group and machine, the µs that this takes from when a job begins.
        """
        own, least = self.offsets[0], self.offsets.min(axis=0)
        first = Jobs(self.releases[:1], self.offsets[:1])
        proved = last(*first._split(own, pace, tails=tails[0]))
        if len(self.releases) == 1:
            return proved
        for opens in (least, np.where(np.isfinite(own), own, least)):
            proved = max(proved, last(*self._split(opens, pace, tails=tails.min(axis=0))))
        return proved

    def _split(
        self, opens: Floats, pace: Floats, *, tails: Floats | float = 0.0
    ) -> tuple[Floats, Floats]:
        """Return releases in order, and slots with their tails, when machines open at `opens`.

        This may be anything, if finite wherever any group can go: a job of a group is as if
        released by what the machine that suits it best asks of it beyond that.
        """
        used = np.isfinite(opens)
        extra = (self.offsets[:, used] - opens[used]).min(axis=1)
        each = [own + more for own, more in zip(self.releases, extra, strict=True)]
        released = np.sort(np.concatenate(each))
        return released, slots(opens + tails, pace, count=len(released))


class Stages:
    """The two-stage bounds of one direction."""

    def __init__(self, direction: Direction) -> None:
        self._is = direction
        self._gpus = direction.network.gpus

    def makespan(self, inner: Mask, outer: Mask) -> float:
        """Return the µs that two sets prove, the first inside the second; 0 if nothing."""
        whole = self._is
        near, far = inner[self._gpus], outer[self._gpus]
        leaving = whole.kinds.leaving(far)
        through = leaving & whole.kinds.coming(near)
        if not through.any():
            return 0.0
        first, then = whole.links(inner), whole.links(outer)
        passing, others = whole.kinds.chosen(through), whole.kinds.chosen(leaving & ~through)
        closes = whole.closes(then)
        lag = whole.lag(first, then).min(axis=0)
        direct = others.opening(whole.opens(then), far)
        tails = np.vstack([passing.closing(closes, far).min(axis=0), others.closing(closes, far)])
        jobs = Jobs(
            (self.curve(passing, near, first), *(np.zeros(count) for count in others.counts)),
            np.vstack([lag, direct]),
        )
        return jobs.last(whole.pace(then), tails)

    def curve(self, kinds: Kinds, inside: Mask, links: np.ndarray) -> Floats:
        """Return when the chunks begin to leave a set, in order."""
        offsets = kinds.opening(self._is.opens(links), inside)
        jobs = Jobs(tuple(np.zeros(count) for count in kinds.counts), offsets)
        return jobs.curve(self._is.pace(links))

    def spread(self, around: Mask) -> float:
        """Return the µs that the copies made inside a set prove; 0 if nothing."""
        whole = self._is
        parts = whole.parting
        stops = around[self._gpus]
        links = whole.entering(around)
        pairs = whole.kinds.copies(stops)
        coming = whole.kinds.coming(~stops) & (pairs > 0)
        own = ~coming & (pairs > 0)
        if not coming.any() or parts[around].all() or pairs @ whole.kinds.counts > _COPIES:
            return 0.0
        outside = whole.links(~around)
        passing, others = whole.kinds.chosen(coming), whole.kinds.chosen(own)
        closes = whole.closes(links)[stops].min(axis=0)
        lag = whole.lag(outside, links).min(axis=0)
        # All copies of a chunk are released with it; the fewest of any chunk count.
        done = np.repeat(self.curve(passing, ~stops, outside), int(pairs[coming].min()))
        direct = _nearest(whole.opens(links), others.starts)
        many = others.counts * pairs[own]
        jobs = Jobs((done, *(np.zeros(count) for count in many)), np.vstack([lag, direct]))
        return jobs.last(whole.pace(links), closes[None, :])


def _nearest(times: Floats, ranks: Mask) -> Floats:
    """Return (kinds, links) from (ranks, links): times of the nearest of some ranks."""
    found = [times[each].min(axis=0) for each in ranks]
    return np.array(found).reshape(len(ranks), times.shape[1])
