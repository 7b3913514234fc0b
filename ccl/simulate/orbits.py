"""Replay of a symmetric forest on one link of each orbit.

Let H be the group of the forest, J the jobs of its representatives (a crossing of a link by a
part) and h j the image of a job j under an element h, on the link h l(j). All jobs are the h j,
each once, since H leaves no GPU and so no root in its place. Look for times with which every h j
starts when j does.

* On a link l the jobs are, for each j whose link is in the orbit of l, the h j with h l(j) = l: as
  many as there are elements that leave l in its place, s(l) in number, the same for all of an
  orbit. These start together; let them be sent one after the other, s(l) bytes for each of one,
  and passed on when all of them have been sent.
* So l serves one bundle for each j on its orbit, and bundles must not overlap. The same holds on
  every link of the orbit, for the same j: it is enough to keep them apart on one of them.
* What a job waits for is in its own tree, so h j waits for the images under the same h of what j
  waits for: it holds for all h when it holds for the representatives.
* The links of an orbit send at one rate at every moment, so a limit with the same number k of
  links of each of its orbits lets through what a limit of a k-th does on one link of each.

Hence a replay of J on a topology with one link for each orbit, jobs of s(l) times their bytes and
these limits is a replay of the whole forest, and ends when that does. Where s(l) is 1, as on every
link that begins or ends at a GPU, each link of it serves whatever is ready and furthest behind, of
jobs that are equally far behind those of the first representative first. Where the links of a
limit are not as said, the forest has to be written out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ccl.laying import link_orbits
from ccl.simulate.engine import binding
from ccl.symmetry import Symmetry
from ccl.timeline import Timeline
from ccl.topology import SharedLimit, Topology


@dataclass(frozen=True)
class Orbits:
    """One link for each orbit.

    Parameters
    ----------
    topology
        With these links alone, and limits on them.
    number
        (links,): number of the link there that stands for each.
    bundle
        (links,): s of the docstring.
    names
        Ends of the link that stands for each, by ends.
    images
        Order of the group.
    """

    topology: Topology
    number: np.ndarray
    bundle: np.ndarray
    names: dict[tuple[str, str], tuple[str, str]]
    images: int

    def of(self, links: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return for each link the number of the one that stands for it, and its s."""
        at = list(links)
        return tuple(self.number[at].tolist()), tuple(self.bundle[at].tolist())

    def told(self, timeline: Timeline) -> Timeline:
        """Return the timeline of representatives with what it stands for."""
        return replace(timeline, images=self.images, orbits=self.names)


def orbits_of(topology: Topology, symmetry: Symmetry) -> Orbits | None:
    """Return the orbits of links, or None where limits do not allow it."""
    first = link_orbits(symmetry)
    kept, number = np.unique(first, return_inverse=True)
    limits: dict[frozenset[int], SharedLimit] = {}
    ends = [link.ends for link in topology.links]
    for limit in binding(topology):
        members, counts = np.unique(
            first[[topology.link_index[each] for each in limit.links]], return_counts=True
        )
        if len(set(counts.tolist())) > 1:
            return None
        reduced = SharedLimit(
            limit.name,
            tuple(ends[place] for place in members.tolist()),
            limit.bandwidth / int(counts[0]),
        )
        known = limits.setdefault(frozenset(members.tolist()), reduced)
        if known.bandwidth > reduced.bandwidth:
            limits[frozenset(members.tolist())] = reduced
    links = tuple(topology.links[place] for place in kept.tolist())
    return Orbits(
        topology=Topology(topology.name, topology.devices, links, tuple(limits.values())),
        number=number.ravel(),
        bundle=symmetry.order // np.bincount(first)[first],
        names=dict(zip(ends, (ends[place] for place in first.tolist()), strict=True)),
        images=symmetry.order,
    )
