"""All-reduce over groups when chunks are never split: what enters and leaves groups as jobs.

Let G1 ... Gk be disjoint sets of devices with all GPUs among them, no device outside them adding,
and c a chunk that all ranks add to and all need. Choose in each group one rank x whose
contribution is looked at. A crossing is a send of c over a link into a group that carries any of
these k contributions of other groups; take the crossings in the order in which they begin, and
say that a group knows a contribution once a crossing with it into the group has begun. What one
crossing carries came last from a single group, which knew it then. So, as in
`formulations.bounds.joint`, k - 1 crossings at least are needed until some group knows all, since
fewer do not connect k groups, and each other group lacks something then and needs one more, later.
That makes 2 (k - 1) crossings of c, each a job on the link by which it enters a group:

* it begins no earlier than the nearest x allows (`head`, of the link);
* one of the later k - 1 is the first to bring its group G something. Each rank y of G has that over
  a link into G, no earlier, so T is at least the time from the best link into G to the farthest y
  after this crossing begins. The others of c begin before one of these does, so that the least of
  this over all groups is a `tail` for all.

The machines of `formulations.bounds.machines` do the rest. Read backwards in time the same holds
for the links that leave groups, if no device outside copies: each chunk leaves 2 (k - 1) times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from formulations.bounds.cuts import Network
from formulations.bounds.demand import Floats, Mask
from formulations.bounds.machines import slot
from formulations.bounds.paths import Ways

Times = Callable[[np.ndarray], Floats]
"""µs between ranks and links, (ranks, links), for the numbers of some links."""


def group_makespan(network: Network, ways: Ways, groups: Sequence[Mask], *, chunks: int) -> float:
    """Return the µs that groups prove when so many chunks are added up by all for all."""
    devices = network.problem.topology.devices
    outside = [devices[i] for i in np.flatnonzero(~np.logical_or.reduce(groups))]
    ranks = [np.flatnonzero(group[network.gpus]) for group in groups]
    into = [network.crossing(~group) for group in groups]
    out = [network.crossing(group) for group in groups]
    jobs = 2 * (len(groups) - 1) * chunks
    proved = 0.0
    if not any(each.reduces for each in outside):
        chosen = _farthest(ways.begins, ranks, out)
        links = np.unique(np.concatenate(into))
        opens = ways.begins(links)[chosen].min(axis=0) + _tail(ways.brings, ranks, into)
        proved = max(proved, _last(network, ways, links, opens=opens, jobs=jobs))
    if not any(each.copies for each in outside):
        chosen = _farthest(ways.brings, ranks, into)
        links = np.unique(np.concatenate(out))
        opens = ways.brings(links)[chosen].min(axis=0) + _tail(ways.begins, ranks, out)
        proved = max(proved, _last(network, ways, links, opens=opens, jobs=jobs))
    return proved


def _times(times: Times, ranks: Sequence[np.ndarray], links: Sequence[np.ndarray]) -> list[Floats]:
    """Return for each group the µs between its ranks and the best of its links for each."""
    return [times(own)[members].min(axis=1) for members, own in zip(ranks, links, strict=True)]


def _farthest(times: Times, ranks: Sequence[np.ndarray], links: Sequence[np.ndarray]) -> np.ndarray:
    """Return the rank of each group that is farthest from all of its links."""
    took = _times(times, ranks, links)
    return np.array([own[each.argmax()] for own, each in zip(ranks, took, strict=True)])


def _tail(times: Times, ranks: Sequence[np.ndarray], links: Sequence[np.ndarray]) -> float:
    """Return the µs to the farthest rank of the group where that is least."""
    return float(min(each.max() for each in _times(times, ranks, links)))


def _last(network: Network, ways: Ways, links: np.ndarray, *, opens: Floats, jobs: int) -> float:
    pace = ways.nbytes * 1e-3 / network.bandwidth[links]
    return slot(opens, pace, count=jobs)
