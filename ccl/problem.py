"""Problem: a collective on a topology, which a formulation solves.

A `Window` is a time in which links have less bandwidth: maintenance, other jobs, a link that is
down. Reference: TE-CCL (SIGCOMM 2024), section 5, whose capacity of a link may vary from epoch to
epoch.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, NoReturn

from ccl.collective import Collective
from ccl.display import mime_bundle
from ccl.errors import ProblemError, Unreachable
from ccl.topology import Topology


@dataclass(frozen=True, slots=True)
class Window:
    """Links that have only a share of their bandwidth for a time.

    Where windows of a link overlap, the least share holds. Latencies stay.

    Parameters
    ----------
    links
        The ends ``(src, dst)`` of its links.
    begin, end
        µs from the start of the collective.
    share
        Of their bandwidth, from 0 (nothing gets through) to 1.

    Raises
    ------
    ProblemError
        If it covers no link, one twice or no time, or the share is out of range.
    """

    links: tuple[tuple[str, str], ...]
    begin: float
    end: float
    share: float

    def __post_init__(self) -> None:
        if not self.links:
            raise ProblemError(f"{self} covers no link; name at least one")
        if len(set(self.links)) < len(self.links):
            raise ProblemError(f"{self} names a link twice; name each once")
        if not (0 <= self.begin < self.end and math.isfinite(self.end)):
            raise ProblemError(
                f"{self} covers no time; give a beginning of 0 µs or more and a later end"
            )
        if not 0 <= self.share <= 1:
            raise ProblemError(
                f"{self} leaves {self.share} of the bandwidth; give a share from 0 to 1"
            )

    def __str__(self) -> str:
        return f"window from {self.begin:g} to {self.end:g} µs"


MOST_NAMED = 4
"""Ranks that are named where more are cut off."""


@dataclass(frozen=True)
class Problem:
    """A topology and the collective to run on it.

    Parameters
    ----------
    topology
        Where it runs.
    collective
        What runs.
    windows
        Times in which links have less bandwidth than the topology says.

    Raises
    ------
    ProblemError
        If the ranks do not match, a destination cannot be reached or a window names a link that
        is not there.
    """

    topology: Topology
    collective: Collective
    windows: tuple[Window, ...] = ()

    _repr_mimebundle_ = mime_bundle

    def __post_init__(self) -> None:
        for window in self.windows:
            for src, dst in window.links:
                if (src, dst) not in self.topology.link_index:
                    raise ProblemError(
                        f"the {window} names the link {src}->{dst}, which does not exist"
                    )
        have, want = len(self.topology.ranks), self.collective.ranks
        if have != want:
            raise ProblemError(
                f"{self.topology} has {have} GPUs and {self.collective.kind} is for {want} ranks; "
                f"make it for {have}"
            )
        if all(len(ranks) == have for ranks in self._reachable):
            return
        reached: dict[tuple[bool, tuple[int, ...]], frozenset[int]] = {}
        for number, chunk in enumerate(self.collective.chunks):
            # All contributions of a sum must be able to come, and of others one copy.
            key = chunk.reduced, chunk.holders
            if key not in reached:
                each = [self._reachable[rank] for rank in chunk.holders]
                join = frozenset.intersection if chunk.reduced else frozenset.union
                reached[key] = join(*each)
            if not reached[key].issuperset(chunk.destinations):
                self._refuse(number)

    def _refuse(self, number: int) -> NoReturn:
        """Name the destinations of a chunk that are cut off, and what they are cut off from."""
        chunk, ranks = self.collective.chunks[number], self.topology.ranks
        groups = [(rank,) for rank in chunk.holders] if chunk.reduced else [chunk.holders]
        lost, holders = next(
            (lost, holders)
            for holders in groups
            if (lost := set(chunk.destinations) - self._reached_from(holders))
        )
        many, named = len(lost), sorted(lost)[:MOST_NAMED]
        who = f"rank {named[0]} ({ranks[named[0]]})"
        if many > 1:
            more = f" and {many - MOST_NAMED} more" if many > MOST_NAMED else ""
            who = f"{many} ranks ({', '.join(ranks[each] for each in named)}{more})"
        raise Unreachable(
            f"{who} cannot be reached from {', '.join(ranks[each] for each in holders)}, which has "
            f"chunk {number} of {self.collective.kind} for {'them' if many > 1 else 'it'}; add a "
            "link"
        )

    def _reached_from(self, ranks: tuple[int, ...]) -> frozenset[int]:
        """Return what any of some ranks can reach."""
        return frozenset().union(*(self._reachable[rank] for rank in ranks))

    @cached_property
    def adds_for_several(self) -> bool:
        """Whether something is added up for several ranks, as in an all-reduce of any kind."""
        chunks = self.collective.chunks
        return any(each.reduced and len(each.destinations) > 1 for each in chunks)

    @cached_property
    def _reachable(self) -> tuple[frozenset[int], ...]:
        """Ranks that each rank can reach over the links, itself included."""
        topology = self.topology
        first = topology.ranks[0]
        there, back = self._connected(first), self._connected(first, backwards=True)
        ranks = frozenset(topology.rank[name] for name in there & topology.rank.keys())
        # Whoever the first reaches and is reached from reaches the same.
        return tuple(
            ranks
            if name in there and name in back
            else frozenset(
                topology.rank[other] for other in self._connected(name) & topology.rank.keys()
            )
            for name in topology.ranks
        )

    def _connected(self, start: str, *, backwards: bool = False) -> set[str]:
        """Return the devices that a device can reach, or from which it can be reached."""
        topology = self.topology
        seen, front = {start}, [start]
        while front:
            here = front.pop()
            links = topology.links_in[here] if backwards else topology.links_out[here]
            ends = {link.src for link in links} if backwards else {link.dst for link in links}
            front += ends - seen
            seen |= ends
        return seen

    def cut_into(self, chunks: int | None) -> Problem:
        """Return the problem that a plan of so many chunks answers: itself, or cut evenly.

        Parameters
        ----------
        chunks
            In all, as `Schedule.chunks` has them. Chunks that are all alike, as those of an
            all-reduce, are cut into any number; others into a multiple of those that there are, and
            None, or what is none, leaves them as they are.
        """
        have = len(self.collective.chunks)
        if chunks is None or chunks == have:
            return self
        if self.collective.alike:
            return replace(self, collective=self.collective.recut(chunks))
        if chunks % have:
            return self
        return replace(self, collective=self.collective.cut(chunks // have))

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits, equal for equal problems, whatever the topology's name."""
        content: dict[str, Any] = {
            "devices": [asdict(each) for each in self.topology.devices],
            "links": [asdict(each) for each in self.topology.links],
            "limits": [asdict(each) for each in self.topology.limits],
            "collective": asdict(self.collective),
        }
        if not self.collective.whole:
            del content["collective"]["whole"]
        if self.windows:
            content["windows"] = [asdict(each) for each in self.windows]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]
