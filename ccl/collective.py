"""Chunks and collectives: the data that has to be where at the end, of one job or of several.

A collective is its pre- and postcondition. `size` is the size of the whole buffer as nccl-tests
defines it: the gathered vector of an all-gather, one rank's whole buffer of an all-to-all, the
full vector of an all-reduce.

`tenants` joins the collectives of several jobs on one cluster into one demand. `recognise` finds
the collective that data makes up, by who holds and who wants it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, TypeVar, get_args

from ccl.errors import ProblemError
from ccl.topology import LEAST, MOST

CollectiveKind = Literal[
    "all-gather",
    "reduce-scatter",
    "all-reduce",
    "all-to-all",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "custom",
]
COLLECTIVES: tuple[CollectiveKind, ...] = get_args(CollectiveKind)

CHUNK_LIMIT = 1 << 20
"""Most chunks of a collective, as an all-to-all of 1,024 GPUs has; memory holds each of them."""

END_LIMIT = 50_000_000
"""Most holders and destinations of all chunks together; a plan has as many sends or more."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Data that is sent whole.

    Parameters
    ----------
    size
        Bytes.
    holders
        Ranks that have it at the start. Of a chunk that is not reduced they all hold the same
        bytes; of a reduced chunk each holds its own contribution.
    destinations
        Ranks that must have it at the end; of a reduced chunk, the sum of all contributions,
        each exactly once.
    reduced
        Whether contributions are added up.
    priority
        A weight without unit, positive: what rewards early arrivals multiplies them by it, and
        what sends one chunk after the other prefers the larger.
    tenant
        Name of the job that it belongs to, or empty where there is only one.
    """

    size: float
    holders: tuple[int, ...]
    destinations: tuple[int, ...]
    reduced: bool = False
    priority: float = 1.0
    tenant: str = ""

    @property
    def in_place(self) -> bool:
        """Whether all ranks that want it hold it from the start, so that none of it is sent."""
        if len(self.holders) == 1:
            return self.destinations == self.holders
        return not self.reduced and set(self.destinations) <= set(self.holders)


@dataclass(frozen=True)
class Collective:
    """Chunks with their pre- and postcondition.

    Parameters
    ----------
    kind
        One of `COLLECTIVES`.
    ranks
        Number of ranks.
    size
        Bytes of the whole buffer, as nccl-tests defines it.
    chunks
        The data to be sent; a chunk's place here is its number.
    whole
        Whether these very chunks stay whole. Else only the bytes are requested, and a plan
        may cut them as it likes. Like the name of a topology this is no part of what is equal.

    Raises
    ------
    ProblemError
        If it has no rank or no chunk, a size or priority is not positive, or a rank is out of
        range.
    """

    kind: CollectiveKind
    ranks: int
    size: float
    chunks: tuple[Chunk, ...]
    whole: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if self.kind not in COLLECTIVES:
            raise ProblemError(
                f"collective {self.kind!r} is unknown; there are {', '.join(COLLECTIVES)}"
            )
        if not self.chunks:
            raise ProblemError(
                f"{self.kind} over {self.ranks} ranks moves nothing; use 2 ranks or more"
            )
        _few(len(self.chunks), self.kind)
        _few_ends(
            sum(len(each.holders) + len(each.destinations) for each in self.chunks), self.kind
        )
        checked: set[int] = set()
        for number, chunk in enumerate(self.chunks):
            _check(number, chunk, self.ranks, checked)

    @cached_property
    def chunk_size(self) -> float:
        """Bytes of the largest chunk."""
        return max(chunk.size for chunk in self.chunks)

    @cached_property
    def reduces(self) -> bool:
        """Whether any chunk is reduced."""
        return any(chunk.reduced for chunk in self.chunks)

    @cached_property
    def copies(self) -> bool:
        """Whether any chunk has several destinations, so that copying it along the path helps."""
        return any(len(chunk.destinations) > 1 for chunk in self.chunks)

    @property
    def alike(self) -> bool:
        """Whether all chunks have the same holders and destinations, as those of an all-reduce."""
        return len({(each.holders, each.destinations, each.reduced) for each in self.chunks}) == 1

    def recut(self, chunks: int) -> Collective:
        """Return the same bytes in so many equal chunks, where all are alike.

        Raises
        ------
        ProblemError
            If they are not alike, or if there are too many.
        """
        if not self.alike:
            raise ProblemError(f"chunks of this {self.kind} differ; cut each of them instead")
        _few(chunks, self.kind)
        first = self.chunks[0]
        _few_ends(chunks * (len(first.holders) + len(first.destinations)), self.kind)
        size = sum(each.size for each in self.chunks) / chunks
        return replace(self, chunks=(replace(first, size=size),) * chunks)

    def cut(self, parts: int) -> Collective:
        """Return the same bytes with every chunk cut into `parts` equal ones, side by side.

        Raises
        ------
        ProblemError
            If there are less than one part or too many chunks.
        """
        if parts < 1:
            raise ProblemError(f"{self.kind} needs 1 part per chunk or more, got {parts}")
        ends = sum(len(each.holders) + len(each.destinations) for each in self.chunks)
        most = f"at most {min(CHUNK_LIMIT // len(self.chunks), END_LIMIT // ends):,}"
        _few(len(self.chunks) * parts, self.kind, most)
        _few_ends(ends * parts, self.kind, most)
        chunks = tuple(
            piece
            for chunk in self.chunks
            for piece in (replace(chunk, size=chunk.size / parts),) * parts
        )
        return replace(self, chunks=chunks)

    def reversed(self) -> Collective:
        """Return the collective in reverse time: what it spreads is added up, and vice versa.

        ``reduce_scatter(n, size).reversed() == all_gather(n, size)`` and back; likewise reduce
        and broadcast, gather and scatter; an all-to-all is sent back. A plan of the reverse on
        ``topology.reversed()``, read backwards in time, is a plan of this one.

        Raises
        ------
        ProblemError
            If a reduced chunk has several destinations, as in an all-reduce.
        """
        same: dict[tuple[int, ...], tuple[int, ...]] = {}
        made = map(self._mirrored, range(len(self.chunks)))
        chunks = tuple(shared(chunk, same) for chunk in made)
        kind = _MIRRORS.get(self.kind, self.kind)
        return Collective(kind, self.ranks, self.size, chunks, whole=self.whole)

    def _mirrored(self, number: int) -> Chunk:
        chunk = self.chunks[number]
        ends = chunk.destinations if chunk.reduced else chunk.holders
        if len(ends) != 1:
            raise ProblemError(
                f"chunk {number} of {self.kind} has {len(ends)} ends and cannot be mirrored; "
                "split the collective in two"
            )
        if chunk.reduced:
            others = _others(chunk.holders, ends[0])
            return replace(chunk, holders=ends, destinations=others, reduced=False)
        if self.kind in ("all-gather", "broadcast") or len(chunk.destinations) > 1:
            everyone = tuple(sorted({*ends, *chunk.destinations}))
            return replace(chunk, holders=everyone, destinations=ends, reduced=True)
        return replace(chunk, holders=chunk.destinations, destinations=ends)


_MIRRORS: dict[CollectiveKind, CollectiveKind] = {
    "all-gather": "reduce-scatter",
    "reduce-scatter": "all-gather",
    "broadcast": "reduce",
    "reduce": "broadcast",
    "gather": "scatter",
    "scatter": "gather",
}


def shared(chunk: Chunk, same: dict[tuple[int, ...], tuple[int, ...]]) -> Chunk:
    """Return a chunk whose ends are the same objects as those of others with equal ends.

    Parameters
    ----------
    chunk
        Just made.
    same
        The ends of all chunks before, to which its own are added.
    """
    ends = [same.setdefault(each, each) for each in (chunk.holders, chunk.destinations)]
    return replace(chunk, holders=ends[0], destinations=ends[1])


def _check(number: int, chunk: Chunk, ranks: int, checked: set[int]) -> None:
    """Check a chunk; ends that chunks share, by the address of the tuple, are looked at once."""
    if not LEAST <= chunk.size <= MOST:
        far = f" of {LEAST:g} to {MOST:g}" if 0 < chunk.size < math.inf else ""
        raise ProblemError(f"chunk {number} has {chunk.size} bytes; give a positive size{far}")
    for what, where in (("holder", chunk.holders), ("destination", chunk.destinations)):
        if id(where) in checked:
            continue
        checked.add(id(where))
        if not where or len(set(where)) < len(where):
            raise ProblemError(
                f"chunk {number} needs distinct {what}s, at least one; got {list(where)}"
            )
        if min(where) < 0 or max(where) >= ranks:
            raise ProblemError(
                f"chunk {number} has the {what}s {list(where)}; ranks go from 0 to {ranks - 1}"
            )
    if not (chunk.priority > 0 and math.isfinite(chunk.priority)):
        raise ProblemError(
            f"chunk {number} has the priority {chunk.priority}; give a positive number"
        )


def all_gather(ranks: int, size: float, *, chunks: int | None = None) -> Collective:
    """Give every rank every shard; `size` bytes is the gathered vector."""
    nbytes = _shard("all-gather", ranks, size, parts=ranks, many=ranks, ends=ranks)
    every = tuple(range(ranks))
    shards = tuple(Chunk(nbytes, (rank,), _others(every, rank)) for rank in every)
    return _in_chunks(Collective("all-gather", ranks, size, shards), chunks)


def reduce_scatter(ranks: int, size: float, *, chunks: int | None = None) -> Collective:
    """Give each rank the sum of its shard; `size` bytes is one rank's whole input."""
    nbytes = _shard("reduce-scatter", ranks, size, parts=ranks, many=ranks, ends=ranks + 1)
    every = tuple(range(ranks))
    shards = tuple(Chunk(nbytes, every, (rank,), reduced=True) for rank in every)
    return _in_chunks(Collective("reduce-scatter", ranks, size, shards), chunks)


def all_reduce(ranks: int, size: float, *, chunks: int | None = None) -> Collective:
    """Give every rank the sum of all vectors of `size` bytes, in ``ranks * chunks`` chunks."""
    nbytes = _shard("all-reduce", ranks, size, parts=ranks, many=ranks, ends=2 * ranks)
    every = tuple(range(ranks))
    shards = (Chunk(nbytes, every, every, reduced=True),) * ranks
    return _in_chunks(Collective("all-reduce", ranks, size, shards), chunks)


def all_to_all(ranks: int, size: float, *, chunks: int | None = None) -> Collective:
    """Send from each rank a different shard to each other; `size` bytes is one rank's buffer.

    A rank's shard for itself is part of the buffer and is not sent.
    """
    nbytes = _shard("all-to-all", ranks, size, parts=ranks, many=ranks * (ranks - 1))
    # Of a million chunks few have ends of their own.
    ends = [(rank,) for rank in range(ranks)]
    shards = tuple([Chunk(nbytes, src, dst) for src in ends for dst in ends if dst != src])
    return _in_chunks(Collective("all-to-all", ranks, size, shards), chunks)


def broadcast(ranks: int, size: float, *, root: int = 0, chunks: int | None = None) -> Collective:
    """Give every rank the root's `size` bytes."""
    nbytes = _shard("broadcast", ranks, size, parts=1, many=1, ends=ranks, root=root)
    whole = (Chunk(nbytes, (root,), _others(range(ranks), root)),)
    return _in_chunks(Collective("broadcast", ranks, size, whole), chunks)


def reduce(ranks: int, size: float, *, root: int = 0, chunks: int | None = None) -> Collective:
    """Give the root the sum of every rank's `size` bytes."""
    nbytes = _shard("reduce", ranks, size, parts=1, many=1, ends=ranks + 1, root=root)
    whole = (Chunk(nbytes, tuple(range(ranks)), (root,), reduced=True),)
    return _in_chunks(Collective("reduce", ranks, size, whole), chunks)


def gather(ranks: int, size: float, *, root: int = 0, chunks: int | None = None) -> Collective:
    """Give the root every rank's shard; `size` bytes is the gathered vector."""
    nbytes = _shard("gather", ranks, size, parts=ranks, many=ranks, root=root)
    shards = tuple(Chunk(nbytes, (rank,), (root,)) for rank in _others(range(ranks), root))
    return _in_chunks(Collective("gather", ranks, size, shards), chunks)


def scatter(ranks: int, size: float, *, root: int = 0, chunks: int | None = None) -> Collective:
    """Give each rank its shard of the root's vector of `size` bytes."""
    nbytes = _shard("scatter", ranks, size, parts=ranks, many=ranks, root=root)
    shards = tuple(Chunk(nbytes, (root,), (rank,)) for rank in _others(range(ranks), root))
    return _in_chunks(Collective("scatter", ranks, size, shards), chunks)


def custom(ranks: int, chunks: Iterable[Chunk]) -> Collective:
    """Return a collective of the given chunks; the size is the sum of theirs."""
    listed = tuple(chunks)
    _few(len(listed), "custom")
    return Collective("custom", ranks, sum(chunk.size for chunk in listed), listed)


def make_collective(
    kind: CollectiveKind, ranks: int, size: float, *, chunks: int | None = None, root: int = 0
) -> Collective:
    """Make the collective called `kind`; `root` counts only where there is one.

    With `chunks`, the number of chunks per shard, these stay whole; by default a
    shard is one chunk that a plan may cut (`Collective.whole`).

    Raises
    ------
    ProblemError
        If the kind is unknown or ``custom``, or a number is out of range.
    """
    if kind == "all-gather":
        return all_gather(ranks, size, chunks=chunks)
    if kind == "reduce-scatter":
        return reduce_scatter(ranks, size, chunks=chunks)
    if kind == "all-reduce":
        return all_reduce(ranks, size, chunks=chunks)
    if kind == "all-to-all":
        return all_to_all(ranks, size, chunks=chunks)
    rooted = {"broadcast": broadcast, "reduce": reduce, "gather": gather, "scatter": scatter}
    if kind in rooted:
        return rooted[kind](ranks, size, root=root, chunks=chunks)
    known = ", ".join(each for each in COLLECTIVES if each != "custom")
    raise ProblemError(f"collective {kind!r} is not one that a name makes; there are {known}")


def find_arguments(collective: Collective) -> tuple[int, int] | None:
    """Return chunks per shard and root from which `make_collective` makes it again, or None."""
    if collective.kind == "custom":
        return None
    first = collective.chunks[0]
    root = 0
    if collective.kind in ("broadcast", "scatter"):
        root = first.holders[0]
    elif collective.kind in ("reduce", "gather"):
        root = first.destinations[0]
    kind, ranks, size = collective.kind, collective.ranks, collective.size
    try:
        one = make_collective(kind, ranks, size, root=root)
        many = len(collective.chunks) // len(one.chunks)
        again = one.cut(max(1, many))
    except ProblemError:
        return None
    return (many, root) if again == collective else None


def _others(ranks: Iterable[int], rank: int) -> tuple[int, ...]:
    return tuple(each for each in ranks if each != rank)


def _shard(
    kind: str, ranks: int, size: float, *, parts: int, many: int, ends: int = 2, root: int = 0
) -> float:
    """Bytes of one of `many` shards, once everything that the caller was given is in range.

    Each shard has so many `ends`: holders and destinations.
    """
    if ranks < 2:
        raise ProblemError(f"{kind} needs 2 GPUs or more, got {ranks}; add GPUs")
    if not (size > 0 and math.isfinite(size)):
        raise ProblemError(f"{kind} needs a positive size, got {size} bytes")
    if not 0 <= root < ranks:
        raise ProblemError(f"{kind} has the root {root}; ranks go from 0 to {ranks - 1}")
    _few(many, kind)
    _few_ends(many * ends, kind)
    return size / parts


def _in_chunks(shards: Collective, chunks: int | None) -> Collective:
    """Return a collective of shards in so many chunks each, which stay whole if given."""
    if chunks is None:
        return shards
    if chunks < 1:
        raise ProblemError(f"{shards.kind} needs 1 chunk per shard or more, got {chunks}")
    return replace(shards.cut(chunks), whole=True)


def _few(chunks: int, kind: str, wanted: str = "fewer chunks") -> None:
    if chunks > CHUNK_LIMIT:
        raise ProblemError(
            f"{kind} would have {chunks:,} chunks and at most {CHUNK_LIMIT:,} are kept; "
            f"ask for {wanted} per shard"
        )


def _few_ends(ends: int, kind: str, wanted: str = "fewer chunks") -> None:
    if ends > END_LIMIT:
        raise ProblemError(
            f"{kind} would have chunks with {ends:,} holders and destinations in all, and at most "
            f"{END_LIMIT:,} are handled; ask for {wanted} per shard"
        )


@dataclass(frozen=True, slots=True)
class Tenant:
    """One of several jobs that share a cluster.

    Parameters
    ----------
    name
        Of its own among the tenants; every chunk of the job keeps it.
    collective
        What the job runs, over ranks of its own from 0 on.
    ranks
        Which rank of the cluster each of these is.
    priority
        What the priorities of its chunks are multiplied by.
    """

    name: str
    collective: Collective
    ranks: tuple[int, ...]
    priority: float = 1.0


def tenants(ranks: int, jobs: Iterable[Tenant]) -> Collective:
    """Run the collectives of several tenants at the same time, as one custom collective.

    Their chunks follow one another in the order of the jobs; where ranks overlap, demands add up.
    `ccl.timeline.finish_times` returns when each of them is done.

    Parameters
    ----------
    ranks
        Number of ranks of the whole cluster.
    jobs
        The tenants.

    Raises
    ------
    ProblemError
        If two tenants have one name, or the ranks of one do not suit its collective.
    """
    chunks: list[Chunk] = []
    seen: set[str] = set()
    for job in jobs:
        _check_tenant(job, ranks, seen)
        chunks += (_of_tenant(job, chunk) for chunk in job.collective.chunks)
    return custom(ranks, chunks)


def _check_tenant(job: Tenant, ranks: int, seen: set[str]) -> None:
    if not job.name.strip() or job.name in seen:
        raise ProblemError(f"a tenant is called {job.name!r}; give each tenant a name of its own")
    seen.add(job.name)
    wanted = job.collective.ranks
    if len(job.ranks) != wanted or len(set(job.ranks)) < wanted:
        raise ProblemError(
            f"tenant {job.name} has the ranks {list(job.ranks)} and its {job.collective.kind} is "
            f"for {wanted}; give {wanted} different ones"
        )
    if not all(0 <= rank < ranks for rank in job.ranks):
        raise ProblemError(
            f"tenant {job.name} has the ranks {list(job.ranks)}; ranks go from 0 to {ranks - 1}"
        )
    if not (job.priority > 0 and math.isfinite(job.priority)):
        raise ProblemError(
            f"tenant {job.name} has the priority {job.priority}; give a positive number"
        )


def _of_tenant(job: Tenant, chunk: Chunk) -> Chunk:
    return replace(
        chunk,
        holders=tuple(job.ranks[rank] for rank in chunk.holders),
        destinations=tuple(job.ranks[rank] for rank in chunk.destinations),
        priority=chunk.priority * job.priority,
        tenant=job.name,
    )


Signature = tuple[tuple[int, ...], tuple[int, ...], bool]
"""Holders and destinations of a chunk, and whether it is reduced."""

Address = TypeVar("Address", bound=Hashable)


def recognise(
    signatures: Mapping[Address, Signature],
    ranks: int,
    nbytes: float,
    *,
    kinds: Sequence[CollectiveKind],
) -> tuple[Collective, dict[Address, int]]:
    """Return the first collective that data makes up, else a custom one, and the chunk of each.

    Parameters
    ----------
    signatures
        Of each address of data, in order.
    ranks
        Number of ranks.
    nbytes
        Of a chunk.
    kinds
        Those that are tried.
    """
    listed = list(signatures.values())
    for kind in kinds:
        made = _named(kind, listed, ranks, nbytes=nbytes)
        if made is not None:
            # Each address takes, in order, the next chunk of the collective that is like it.
            free: defaultdict[Signature, deque[int]] = defaultdict(deque)
            for place, chunk in enumerate(made.chunks):
                free[_signature(chunk)].append(place)
            return made, {each: free[like].popleft() for each, like in signatures.items()}
    chunks = [Chunk(nbytes, holders, dsts, summed) for holders, dsts, summed in listed]
    return custom(ranks, chunks), {each: number for number, each in enumerate(signatures)}


def _named(
    kind: CollectiveKind, listed: Sequence[Signature], ranks: int, *, nbytes: float
) -> Collective | None:
    """Return the collective of a kind if the addresses are its chunks."""
    if ranks < 2:
        return None
    holders, dsts, reduced = listed[0]
    one = make_collective(kind, ranks, 1.0).chunks
    like = len(one[0].holders), len(one[0].destinations), one[0].reduced
    if len(listed) % len(one) or (len(holders), len(dsts), reduced) != like:
        return None
    chunks = len(listed) // len(one)
    root = holders[0] if kind in ("broadcast", "scatter") else dsts[0]
    size = nbytes * chunks * (1 if kind in ("broadcast", "reduce") else ranks)
    made = make_collective(kind, ranks, size, chunks=chunks, root=root)
    same = Counter(map(_signature, made.chunks)) == Counter(listed)
    return made if same else None


def _signature(chunk: Chunk) -> Signature:
    return chunk.holders, chunk.destinations, chunk.reduced
