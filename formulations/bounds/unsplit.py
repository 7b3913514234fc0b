"""What plans that never split a chunk cannot beat: which cuts, pairs of cuts and groups are tried.

Any choice gives a bound, so on large clusters one cut of each class is enough
(`formulations.bounds.classes`), and collectives with too many chunks are left to other bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ccl.bound import Bound
from formulations.bounds.classes import Classes
from formulations.bounds.cuts import Network, kind_of, passed, side, witness
from formulations.bounds.demand import Mask
from formulations.bounds.joint import groupings
from formulations.bounds.kinds import Kinds, kinds_of
from formulations.bounds.paths import Ways
from formulations.bounds.stages import Direction, Stages
from formulations.bounds.sums import group_makespan
from formulations.bounds.whole import cut_makespan

_WORK = 30_000_000
"""Most kinds of chunks times ranks times cuts, or pairs of cuts, that are looked at."""

_SIZES = 5
"""Most sizes of chunks."""

_ALIKE = 64
"""With more GPUs than this one cut of each class is tried, else two."""


def unsplit_bounds(network: Network, cuts: Sequence[Mask]) -> list[Bound]:
    """Return what single cuts, pairs of cuts and groups prove, the best of each."""
    found: list[Bound] = []
    for nbytes in _sizes(network):
        search = _Search(network, tuple(cuts), nbytes)
        found += [each for each in (search.single(), search.staged(), search.grouped()) if each]
    best = {each.reference: each for each in sorted(found, key=lambda bound: bound.makespan)}
    return list(best.values())


def _sizes(network: Network) -> list[float]:
    sizes = sorted({each.size for each in network.problem.collective.chunks})
    places = np.linspace(0, len(sizes) - 1, min(len(sizes), _SIZES))
    return [sizes[round(place)] for place in places]


@dataclass(frozen=True)
class _Search:
    """Chunks of `nbytes` or more, taken as chunks of `nbytes`."""

    network: Network
    cuts: tuple[Mask, ...]
    nbytes: float

    def single(self) -> Bound | None:
        """Return what the best cut proves."""
        best, cut = 0.0, None
        for inside in self._few[: self._affordable]:
            makespan = cut_makespan(self.network, self.ways, self.kinds, inside=inside, beaten=best)
            if makespan > best:
                best, cut = makespan, inside
        if cut is None:
            return None
        what = "whole chunks crossing one after the other, from their holders to destinations"
        kind = kind_of(self.network, cut)
        return Bound(best, kind, witness(self.network, cut), what, whole_chunks=True)

    def staged(self) -> Bound | None:
        """Return what the best two cuts prove, or the copies that one set needs."""
        best, found = 0.0, None
        pairs = list(self._pairs())[: self._affordable]
        for backwards in (False, True):
            kinds = self.kinds.turned() if backwards else self.kinds
            stages = Stages(Direction(self.network, self.ways, kinds, backwards))
            tried: list[tuple[float, Mask, Mask | None]]
            tried = [(stages.makespan(*pair), *pair) for pair in pairs]
            tried += [(stages.spread(each), ~each, None) for each in self._around]
            for makespan, inner, outer in tried:
                if makespan > best:
                    best, found = makespan, (backwards, inner, outer)
        if found is None:
            return None
        backwards, inner, outer = found
        shown = witness(self.network, ~inner if backwards else inner)
        what = self._told(inner, outer, backwards=backwards)
        return Bound(best, "stages", shown, what, whole_chunks=True)

    def _told(self, inner: Mask, outer: Mask | None, *, backwards: bool) -> str:
        """Say what chunks have to pass, in the order of time."""
        if outer is None:
            near = side(self.network, ~inner)
            if backwards:
                return f"a sum needs a send from each GPU of {near}, where switches cannot add"
            return f"a chunk needs a send to each GPU of {near}, where switches cannot copy"
        if not backwards:
            first, then = passed(self.network, inner), passed(self.network, outer)
        else:
            first, then = passed(self.network, ~outer), passed(self.network, ~inner)
        return f"whole chunks go {first}, then {then}, on each link one at a time"

    def grouped(self) -> Bound | None:
        """Return what groups prove about sums that all ranks add to and need."""
        full = self.kinds.starts.all(axis=1) & self.kinds.stops.all(axis=1) & self.kinds.any_start
        chunks = int(self.kinds.counts[full].sum())
        if not chunks:
            return None
        best, what = 0.0, ""
        for groups in groupings(self.network):
            makespan = group_makespan(self.network, self.ways, groups, chunks=chunks)
            if makespan > best:
                names = "GPUs" if len(groups) == len(self.network.gpus) else "hosts"
                best = makespan
                what = f"each sum must cross {2 * (len(groups) - 1)} times among {names}, whole"
        return Bound(best, "group", None, what, whole_chunks=True) if best else None

    @cached_property
    def ways(self) -> Ways:
        """The quickest ways of these chunks."""
        return Ways(self.network, self.nbytes)

    @cached_property
    def kinds(self) -> Kinds:
        """The chunks by their ends."""
        return kinds_of(self.network.problem.collective, self.nbytes)

    @cached_property
    def _classes(self) -> list[tuple[int, ...]]:
        """The class of each cut."""
        classes = Classes(self.network)
        return [(*classes.of(each), *classes.of(~each)) for each in self.cuts]

    @property
    def _affordable(self) -> int:
        return _WORK // self.kinds.starts.size

    @property
    def _each(self) -> int:
        return 2 if len(self.network.gpus) <= _ALIKE else 1

    @cached_property
    def _few(self) -> list[Mask]:
        """Cuts, a few of each class."""
        return [self.cuts[i] for i in _first(self._classes, each=self._each)]

    @property
    def _around(self) -> list[Mask]:
        """Sets inside which chunks have to be copied, all devices among them."""
        every = np.ones(len(self.network.problem.topology.devices), dtype=bool)
        few = [self.cuts[i] for i in _first(self._classes, each=1)]
        several = [each for each in few if each[self.network.gpus].sum() > 1]
        return [*several, every][: self._affordable]

    def _pairs(self) -> Iterator[tuple[Mask, Mask]]:
        """Yield pairs of cuts, the first inside the second."""
        sides = np.array(self.cuts)
        ranks = sides[:, self.network.gpus].sum(axis=1)
        # One GPU is worth a stage of its own where few have anything to send, or to receive.
        alone = min(self.kinds.starts.any(axis=0).sum(), self.kinds.stops.any(axis=0).sum()) <= 2
        for i in _first(self._classes, each=1):
            inner = sides[i]
            if ranks[i] < 2 and not alone:
                continue
            around = ~(inner & ~sides).any(axis=1) & (ranks > ranks[i])
            exits = np.zeros(sides.shape[1], dtype=bool)
            exits[self.network.ends[self.network.crossing(inner), 1]] = True
            places = np.flatnonzero(around)
            beyond = (exits & ~sides[places]).sum(axis=1)
            kinds = [(*self._classes[j], int(n)) for j, n in zip(places, beyond, strict=True)]
            yield from ((inner, sides[places[j]]) for j in _first(kinds, each=1))


def _first(kinds: Sequence[tuple[int, ...]], *, each: int) -> list[int]:
    """Return the places of the first of every kind, at most so many of each."""
    seen: dict[tuple[int, ...], int] = {}
    places = []
    for place, kind in enumerate(kinds):
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= each:
            places.append(place)
    return places
