"""The JSON objects of MSCCL-tools, SCCL and TACCL as they stand in a file.

An object says what it is in ``msccl_type``, in older files and in TACCL's in ``sccl_type``. A
topology has ``links[dst][src]``, which counts links, and switches ``[srcs, dsts, bandwidth,
name]``, each a limit on what goes from any of srcs to any of dsts; TACCL's has the matrices of one
host and how hosts are joined. An algorithm has steps, each of some rounds: in a round a link of
count n carries n chunks. A send is ``[address, src, dst]``, TACCL's has the time and the link as
well, ``[address, src, dst, time, link]``, or a sixth item for the operation. ``input_map`` and
``output_map`` have the addresses that each rank holds at first and in the end; chunks of the
collective that share an address are added up. `Addresses` are those that MSCCL-tools gives to the
chunks of a collective, with what it calls that.

For writing, `counted_links` counts a topology as MSCCL-tools does: links between GPUs, and limits
on what goes together. GPUs that no link joins are joined by their shortest way over other devices,
of these the widest, as fast as its narrowest link. A link that several such paths share, and a
shared limit, is a switch of MSCCL-tools: it limits what goes from any of its sources to any of its
destinations.

Reference: microsoft/msccl-tools, msccl/serialization.py, msccl/algorithm.py and msccl/topologies;
microsoft/taccl, taccl/serialization.py and taccl/reduce_scheduler.py.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, Literal

from msgspec import Struct

from ccl.collective import Collective
from ccl.errors import FormatError
from ccl.serialization.text import Integer, decode_json
from ccl.topology import Topology

Kind = Literal["topology", "algorithm", "collective", "instance"]
KINDS: tuple[Kind, ...] = ("topology", "algorithm", "collective", "instance")

Item = Integer | float | str | None


class TopologyFile(Struct):
    """A topology; the second half is TACCL's."""

    name: str = ""
    links: list[list[Integer]] | None = None
    switches: list[tuple[list[Integer], list[Integer], float, str]] = []
    copies: Integer = 1
    ngpus_per_node: Integer = 0
    node_links: list[list[Integer]] | None = None
    node_invbws: list[list[float]] | None = None
    remote_invbw: float | None = None
    remote_alpha: float | None = None
    remote_beta: float | None = None
    internode_conn: dict[str, list[Integer]] | None = None
    local_switches: list[list[Integer]] = []


class StepFile(Struct):
    """A step."""

    sends: list[list[Item]]
    rounds: float = 1


class ChunkFile(Struct):
    """Data of one origin: who has it, who wants it, and where it is kept."""

    pre: list[Integer]
    post: list[Integer]
    addr: Integer


class CollectiveFile(Struct):
    """A collective."""

    chunks: list[ChunkFile]
    name: str = ""
    nodes: Integer = 0


class InstanceFile(Struct):
    """Limits given to a synthesizer."""

    steps: Integer | None = None
    extra_rounds: Integer | None = None
    chunks: Integer | None = None
    pipeline: Any = None
    extra_memory: Any = None
    allow_exchange: bool | None = None


class AlgorithmFile(Struct):
    """A plan."""

    steps: list[StepFile]
    name: str = ""
    input_map: dict[str, list[Integer]] = {}
    output_map: dict[str, list[Integer]] = {}
    collective: CollectiveFile | None = None
    topology: TopologyFile | None = None
    instance: InstanceFile | None = None


class _Head(Struct):
    """What says what an object is."""

    msccl_type: Any = None
    sccl_type: Any = None


def kind_of(content: bytes) -> str | None:
    """Return what JSON text says that it is, None where it says nothing.

    Raises
    ------
    FormatError
        If it is not JSON.
    """
    head = decode_json(content, _Head)
    kind = head.sccl_type if head.msccl_type is None else head.msccl_type
    return None if kind is None else str(kind)


def recognises(content: bytes) -> bool:
    """Say whether JSON text names one of the types."""
    if b"sccl_type" not in content:
        return False
    try:
        return kind_of(content) is not None
    except FormatError:
        return False


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


MOST_EXACT = 10_000
"""Links that one entry may count; above, bandwidths are rounded to whole ones of the slowest."""

MOST_COUNT = 10**9
"""Links that one entry counts in any case."""

Pair = tuple[int, int]


@dataclass(frozen=True)
class Switch:
    """A limit: GB/s for all pairs of a source and a destination together."""

    pairs: frozenset[Pair]
    bandwidth: float
    name: str

    @property
    def sides(self) -> tuple[list[int], list[int]]:
        """Sources and destinations."""
        return sorted({src for src, _ in self.pairs}), sorted({dst for _, dst in self.pairs})


@dataclass(frozen=True)
class Counted:
    """What MSCCL-tools can say of a topology.

    Parameters
    ----------
    counts
        Links between each two ranks that are joined.
    switches
        Limits, with their bandwidth in links.
    unit
        GB/s that a link stands for.
    rounded
        Largest share by which a bandwidth is off.
    over
        Pairs of ranks that are joined over other devices.
    stricter
        How many limits are on more pairs than in the topology.
    covering
        Places of the switches that a pair is under.
    """

    counts: dict[Pair, int]
    switches: tuple[tuple[Switch, float], ...]
    unit: float
    rounded: float
    over: int
    stricter: int
    covering: dict[Pair, list[int]]

    def matrix(self, side: int) -> list[list[int]]:
        """Return the counts, shape (destinations, sources)."""
        rows = [[0] * side for _ in range(side)]
        for (src, dst), many in self.counts.items():
            rows[dst][src] = many
        return rows


def counted_links(topology: Topology) -> Counted:
    """Return a topology as counts of links and limits."""
    ways = {
        (src, dst): way
        for src, name in enumerate(topology.ranks)
        for dst, way in _ways(topology, name).items()
    }
    rates = {
        pair: min(topology.link(*ends).bandwidth for ends in pairwise(way))
        for pair, way in ways.items()
    }
    unit = _unit(rates.values())
    counts = {pair: max(1, round(rate / unit)) for pair, rate in rates.items()}
    rounded = max((abs(counts[pair] * unit / rate - 1) for pair, rate in rates.items()), default=0)
    switches = _switches(topology, ways)
    covering: dict[Pair, list[int]] = {pair: [] for pair in ways}
    stricter = 0
    for place, each in enumerate(switches):
        srcs, dsts = each.sides
        covered = [pair for pair in product(srcs, dsts) if pair in covering]
        stricter += len(covered) > len(each.pairs)
        for pair in covered:
            covering[pair].append(place)
    return Counted(
        counts=counts,
        switches=tuple((each, _plain(each.bandwidth / unit)) for each in switches),
        unit=unit,
        rounded=rounded if rounded > 1e-9 else 0.0,
        over=sum(len(way) > 2 for way in ways.values()),
        stricter=stricter,
        covering=covering,
    )


def _plain(value: float) -> float:
    """Return a whole number where rounding alone has made it none."""
    near = round(value)
    return near if near and math.isclose(value, near, rel_tol=1e-9) else value


def _unit(rates: Collection[float]) -> float:
    """Return the largest bandwidth of which all are whole multiples, or that of the slowest."""
    exact = {Fraction(rate).limit_denominator(10**6) for rate in rates}
    exact.discard(Fraction(0))
    if not exact:
        return max(min(rates), max(rates) / MOST_COUNT) if rates else 1.0
    bottom = math.lcm(*(each.denominator for each in exact))
    unit = Fraction(math.gcd(*(int(each * bottom) for each in exact)), bottom)
    if max(exact) / unit <= MOST_EXACT:
        return float(unit)
    return float(max(min(exact), max(exact) / MOST_COUNT))


def _ways(topology: Topology, name: str) -> dict[int, tuple[str, ...]]:
    """Return the way from a GPU to each that it reaches past no other GPU."""
    found: dict[int, tuple[str, ...]] = {}
    front: dict[str, tuple[float, tuple[str, ...]]] = {name: (math.inf, (name,))}
    seen = {name}
    while front:
        after: dict[str, tuple[float, tuple[str, ...]]] = {}
        for width, way in front.values():
            for link in topology.links_out[way[-1]]:
                wide = min(width, link.bandwidth)
                if link.dst not in seen and wide > after.get(link.dst, (0.0, ()))[0]:
                    after[link.dst] = wide, (*way, link.dst)
        seen |= after.keys()
        found |= {
            topology.rank[end]: way for end, (_, way) in after.items() if end in topology.rank
        }
        front = {end: each for end, each in after.items() if end not in topology.rank}
    return found


def _switches(topology: Topology, ways: dict[Pair, tuple[str, ...]]) -> list[Switch]:
    crossing: defaultdict[tuple[str, str], set[Pair]] = defaultdict(set)
    for pair, way in ways.items():
        for ends in pairwise(way):
            crossing[ends].add(pair)
    switches = [
        Switch(frozenset(pairs), topology.link(*ends).bandwidth, f"{ends[0]}->{ends[1]}")
        for ends, pairs in crossing.items()
        if len(pairs) > 1
    ]
    for limit in topology.limits:
        pairs = {pair for ends in limit.links for pair in crossing.get(ends, ())}
        if pairs:
            switches.append(Switch(frozenset(pairs), limit.bandwidth, limit.name))
    return switches
