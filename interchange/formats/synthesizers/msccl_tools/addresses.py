"""Addresses that MSCCL-tools gives to the chunks of a collective, and what it calls that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ccl.collective import Collective

Json = dict[str, Any]

_NAMES = {
    "all-gather": ("Allgather", "allgather"),
    "reduce-scatter": ("ReduceScatter", "reduce_scatter"),
    "all-reduce": ("Allreduce", "allreduce"),
    "all-to-all": ("Alltoall", "alltoall"),
}
"""What MSCCL-tools calls a collective, and what its runtime does; others are custom to that."""


@dataclass(frozen=True)
class _Data:
    """Data of MSCCL-tools: at one address, from some ranks for some ranks."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    reduced: bool


class Addresses:
    """Addresses of a collective, numbered as MSCCL-tools numbers them.

    What a rank has for itself has an address too, though it does not move.
    """

    def __init__(self, collective: Collective) -> None:
        self.ranks = collective.ranks
        self.kind = collective.kind
        self.chunks = collective.chunks
        per = self._shards()
        self.per_rank = max(1, len(self.chunks) // per)
        self.of = {number: self._address(number) for number in range(len(self.chunks))}
        self.data: dict[int, _Data] = {}
        for number, chunk in enumerate(self.chunks):
            stays = self.kind in ("all-gather", "broadcast") and not chunk.reduced
            after = {*chunk.destinations, *(chunk.holders if stays else ())}
            self.data[self.of[number]] = _Data(chunk.holders, tuple(sorted(after)), chunk.reduced)
        self._own()

    @property
    def name(self) -> str:
        """What MSCCL-tools calls it."""
        called = _NAMES.get(self.kind, (self.kind.capitalize(), ""))[0]
        root = ""
        if self.kind in ("broadcast", "scatter"):
            root = f",root={self.chunks[0].holders[0]}"
        if self.kind in ("reduce", "gather"):
            root = f",root={self.chunks[0].destinations[0]}"
        cut = f",chunks={self.per_rank}" if self.per_rank > 1 else ""
        return f"{called}(n={self.ranks}{root}){cut}"

    def _shards(self) -> int:
        """Return the chunks of the collective if every shard is one."""
        if self.kind == "all-to-all":
            return self.ranks * (self.ranks - 1)
        if self.kind in ("gather", "scatter"):
            return self.ranks - 1
        return 1 if self.kind in ("broadcast", "reduce", "custom", "all-reduce") else self.ranks

    def _address(self, number: int) -> int:
        chunk = self.chunks[number]
        place = number % self.per_rank
        if self.kind == "all-to-all":
            src, dst = chunk.holders[0], chunk.destinations[0]
            return (dst * self.ranks + src) * self.per_rank + place
        if self.kind in ("gather", "scatter"):
            ends = chunk.holders if self.kind == "gather" else chunk.destinations
            return ends[0] * self.per_rank + place
        return number

    def _own(self) -> None:
        """Add what ranks have for themselves."""
        if self.kind == "all-to-all":
            own = [(rank * self.ranks + rank, rank) for rank in range(self.ranks)]
        elif self.kind in ("gather", "scatter"):
            ends = self.chunks[0].destinations if self.kind == "gather" else self.chunks[0].holders
            own = [(ends[0], ends[0])]
        else:
            return
        for shard, rank in own:
            for place in range(self.per_rank):
                self.data[shard * self.per_rank + place] = _Data((rank,), (rank,), reduced=False)

    def input_map(self) -> dict[str, list[int]]:
        """Return the addresses that each rank has at first."""
        return _by_rank((address, data.before) for address, data in self.data.items())

    def output_map(self) -> dict[str, list[int]]:
        """Return the addresses that each rank has in the end."""
        return _by_rank((address, data.after) for address, data in self.data.items())

    def collective(self) -> Json:
        """Return the collective: of what is added up a chunk for each rank that contributes."""
        chunks = []
        for address in sorted(self.data):
            data = self.data[address]
            origins = [[each] for each in data.before] if data.reduced else [list(data.before)]
            chunks += [
                {"msccl_type": "chunk", "pre": pre, "post": list(data.after), "addr": address}
                for pre in origins
            ]
        return {
            "msccl_type": "collective",
            "name": self.name,
            "nodes": self.ranks,
            "chunks": chunks,
            "triggers": {},
            "runtime_name": _NAMES.get(self.kind, ("", "custom"))[1],
        }


def _by_rank(places: Iterable[tuple[int, tuple[int, ...]]]) -> dict[str, list[int]]:
    found: defaultdict[int, list[int]] = defaultdict(list)
    for address, ranks in sorted(places):
        for rank in ranks:
            found[rank].append(address)
    return {str(rank): found[rank] for rank in sorted(found)}
