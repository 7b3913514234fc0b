"""What is routed: chunks, neighbours of a shard joined (section 5.2), on a logical topology.

A sum to one rank is the mirror of a spreading: its ways are found from the rank that adds up to
those that contribute, on moves taken from end to beginning, and turned back when they are ordered
(section 4.3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ccl.collective import Chunk, Collective
from ccl.errors import ProblemError
from ccl.sketch import Sketch
from formulations.engines.list_scheduling.routes import Moves
from formulations.engines.reverse_time import Half, halves
from formulations.engines.taccl.logical import Logical, logical


@dataclass(frozen=True)
class Part:
    """A collective without sums on a logical topology; c parents.

    Parameters
    ----------
    logical
        What can be sent.
    collective
        What has to be, parents in place of their chunks.
    members
        Numbers, in the whole collective, of the chunks of each parent.
    """

    logical: Logical
    collective: Collective
    members: tuple[tuple[int, ...], ...]

    @property
    def turned(self) -> bool:
        """Whether ways lead from the end to the beginning."""
        return self.logical.turned

    @cached_property
    def nbytes(self) -> np.ndarray:
        """Bytes of each parent, shape (c,)."""
        return np.array([chunk.size for chunk in self.collective.chunks], dtype=float)

    @cached_property
    def holds(self) -> np.ndarray:
        """Whether each device has each parent, shape (c, devices)."""
        return self._marked([chunk.holders for chunk in self.collective.chunks])

    @cached_property
    def wants(self) -> np.ndarray:
        """Whether each device needs each parent and lacks it, shape (c, devices)."""
        wanted = self._marked([chunk.destinations for chunk in self.collective.chunks])
        return np.asarray(wanted & ~self.holds)

    def _marked(self, ranks: list[tuple[int, ...]]) -> np.ndarray:
        topology = self.logical.moves.topology
        place = np.array([topology.index[name] for name in topology.ranks])
        marked = np.zeros((len(ranks), len(topology.devices)), dtype=bool)
        for number, each in enumerate(ranks):
            marked[number, place[list(each)]] = True
        return marked


def parts_of(moves: Moves, collective: Collective, sketch: Sketch) -> list[Part]:
    """Return what is routed: the collective, the mirror of a sum, or both halves of one for many.

    Raises
    ------
    ProblemError
        If the sketch asks for other chunks than there are.
    Infeasible
        If the sketch leaves no way.
    """
    if not collective.reduces:
        whole = Half(collective, tuple(range(len(collective.chunks))))
        return [_part(logical(moves, sketch), whole, collective, sketch)]
    found = []
    for half in halves(collective):
        if half is not None:
            turned = half.collective.reduces
            spread = half.collective.reversed() if turned else half.collective
            ways = logical(moves, sketch, turned=turned)
            found.append(_part(ways, Half(spread, half.numbers), collective, sketch))
    return found


def _part(ways: Logical, half: Half, whole: Collective, sketch: Sketch) -> Part:
    chunks, members = [], []
    for alike in _shards(half, whole):
        many = len(alike)
        if sketch.chunks is not None and many != sketch.chunks * sketch.instances:
            msg = (
                f"the sketch has {sketch.chunks} chunks per shard in {sketch.instances} instances "
                f"and the collective {many}; ask for {sketch.chunks * sketch.instances}"
            )
            raise ProblemError(msg)
        for begin in range(0, many, sketch.instances):
            joined = alike[begin : begin + sketch.instances]
            size = sum(half.collective.chunks[each].size for each in joined)
            chunks.append(replace(half.collective.chunks[joined[0]], size=size))
            members.append(tuple(half.numbers[each] for each in joined))
    return Part(ways, replace(half.collective, chunks=tuple(chunks)), tuple(members))


def _shards(half: Half, whole: Collective) -> list[list[int]]:
    """Return the places of the chunks that come from the same ranks and go to the same."""
    found: dict[tuple[object, ...], list[int]] = {}
    for place, (number, chunk) in enumerate(zip(half.numbers, half.collective.chunks, strict=True)):
        found.setdefault((_shard(chunk), _shard(whole.chunks[number])), []).append(place)
    return list(found.values())


def _shard(chunk: Chunk) -> tuple[object, ...]:
    return chunk.holders, chunk.destinations, chunk.priority, chunk.tenant
