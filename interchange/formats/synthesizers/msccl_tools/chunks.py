"""Addresses of MSCCL-tools as chunks, and the collective that they are."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence

from ccl.collective import CHUNK_LIMIT, Chunk, Collective, CollectiveKind, custom, make_collective
from ccl.errors import FormatError
from interchange.formats.synthesizers._asking import counted
from interchange.formats.synthesizers.msccl_tools.file import AlgorithmFile, CollectiveFile
from interchange.formats.synthesizers.taccl.host import Told

Signature = tuple[tuple[int, ...], tuple[int, ...], bool]
"""Holders, destinations, whether it is reduced."""

_NAMES: dict[str, CollectiveKind] = {
    "allgather": "all-gather",
    "reducescatter": "reduce-scatter",
    "allreduce": "all-reduce",
    "alltoall": "all-to-all",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "gather": "gather",
    "scatter": "scatter",
}
_ONE_PART = ("broadcast", "reduce")


class Placement:
    """Which rank holds and wants what at each address.

    Parameters
    ----------
    ranks
        Number of ranks.
    """

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.holders: defaultdict[int, set[int]] = defaultdict(set)
        self.wanted: defaultdict[int, set[int]] = defaultdict(set)
        self.summed: set[int] = set()

    def put(self, where: defaultdict[int, set[int]], address: int, ranks: Iterable[int]) -> None:
        """Note ranks that hold or want an address.

        Raises
        ------
        FormatError
            If one is out of range.
        """
        for rank in ranks:
            if not 0 <= rank < self.ranks:
                msg = f"address {address} is of rank {rank}; ranks go from 0 to {self.ranks - 1}"
                raise FormatError(msg)
            where[address].add(rank)

    def signatures(self) -> dict[int, Signature]:
        """Return what moves, by address in order.

        Raises
        ------
        FormatError
            If an address is wanted that nobody holds.
        """
        found: dict[int, Signature] = {}
        for address in sorted(self.wanted):
            holders, wanted = self.holders.get(address, set()), self.wanted[address]
            if not holders:
                msg = f"address {address} is wanted by rank {min(wanted)} and held by none at first"
                raise FormatError(msg)
            summed = address in self.summed
            moved = wanted if summed else wanted - holders
            if moved:
                found[address] = tuple(sorted(holders)), tuple(sorted(moved)), summed
        return found


def placement(file: AlgorithmFile, ranks: int, told: Told) -> Placement:
    """Return the placement of a plan, from its maps where it has them.

    Raises
    ------
    FormatError
        If it has none, or one that is wrong.
    """
    made = Placement(ranks)
    if file.collective is not None:
        _of_collective(file.collective, made)
    if file.input_map and file.output_map:
        made.holders.clear()
        made.wanted.clear()
        for where, said in ((made.holders, file.input_map), (made.wanted, file.output_map)):
            for word, addresses in said.items():
                rank = int(word) if word.isascii() and word.isdigit() and len(word) <= 6 else -1
                for address in addresses:
                    made.put(where, address, (rank,))
    elif file.collective is None:
        msg = "it has neither input_map and output_map nor a collective; add what ranks hold"
        raise FormatError(msg)
    if file.collective is None:
        made.summed = {each for each, holders in made.holders.items() if len(holders) > 1}
        if made.summed:
            told.assumed.append(
                f"what several ranks hold at first is added up, {len(made.summed)} of "
                f"{counted(len(made.holders), 'place')}, for no collective says otherwise"
            )
    return made


def of_collective(file: CollectiveFile, ranks: int) -> Placement:
    """Return the placement of a collective alone; errors as `placement`."""
    made = Placement(ranks)
    _of_collective(file, made)
    return made


def _of_collective(file: CollectiveFile, made: Placement) -> None:
    if file.nodes and file.nodes != made.ranks:
        msg = f"at collective: it is for {file.nodes} ranks and the topology has {made.ranks} GPUs"
        raise FormatError(msg)
    posts: dict[int, set[int]] = {}
    for chunk in file.chunks:
        made.put(made.holders, chunk.addr, chunk.pre)
        made.put(made.wanted, chunk.addr, chunk.post)
        if chunk.addr in posts:
            made.summed.add(chunk.addr)
            if posts[chunk.addr] != set(chunk.post):
                msg = (
                    f"at collective: the chunks of address {chunk.addr} are added up for different "
                    "ranks, as in a scan; only sums of all of them are read"
                )
                raise FormatError(msg)
        posts[chunk.addr] = set(chunk.post)


def collective_of(
    signatures: dict[int, Signature], ranks: int, nbytes: float, *, name: str
) -> tuple[Collective, dict[int, int]]:
    """Return the collective that addresses are, and the chunk of each.

    Parameters
    ----------
    signatures
        By address, in order.
    ranks
        Number of ranks.
    nbytes
        Of a chunk.
    name
        That the file gives it, which decides where it could be two.

    Raises
    ------
    FormatError
        If nothing moves, or too much.
    """
    if not 0 < len(signatures) <= CHUNK_LIMIT:
        msg = f"{len(signatures):,} addresses have to move; give 1 to {CHUNK_LIMIT:,}"
        raise FormatError(msg)
    listed = list(signatures.values())
    plain = "".join(each for each in name.partition("(")[0].lower() if each.isalpha())
    hint = _NAMES.get(plain)
    kinds = [*([hint] if hint else []), *(each for each in _NAMES.values() if each != hint)]
    for kind in kinds:
        made = _named(kind, listed, ranks, nbytes=nbytes)
        if made is not None:
            return made, _numbered(signatures, made)
    chunks = tuple(Chunk(nbytes, holders, dsts, summed) for holders, dsts, summed in listed)
    every = tuple(range(ranks))
    whole = {(every, every, True)} == set(listed)
    made = (
        Collective("all-reduce", ranks, nbytes * len(chunks), chunks)
        if whole
        else custom(ranks, chunks)
    )
    return made, {address: number for number, address in enumerate(signatures)}


def _named(
    kind: CollectiveKind, listed: Sequence[Signature], ranks: int, *, nbytes: float
) -> Collective | None:
    """Return the collective of a kind if the addresses are its chunks."""
    others = max(ranks - 1, 1)
    shapes: dict[CollectiveKind, tuple[int, int, int, bool]] = {
        "all-gather": (ranks, 1, others, False),
        "reduce-scatter": (ranks, ranks, 1, True),
        "all-reduce": (ranks, ranks, ranks, True),
        "all-to-all": (ranks * others, 1, 1, False),
        "broadcast": (1, 1, others, False),
        "reduce": (1, ranks, 1, True),
        "gather": (others, 1, 1, False),
        "scatter": (others, 1, 1, False),
    }
    per, nholders, ndsts, summed = shapes[kind]
    holders, dsts, reduced = listed[0]
    if (
        ranks < 2
        or len(listed) % per
        or (len(holders), len(dsts), reduced)
        != (
            nholders,
            ndsts,
            summed,
        )
    ):
        return None
    chunks = len(listed) // per
    root = holders[0] if kind in ("broadcast", "scatter") else dsts[0]
    size = nbytes * chunks * (1 if kind in _ONE_PART else ranks)
    made = make_collective(kind, ranks, size, chunks=chunks, root=root)
    same = Counter(map(_signature, made.chunks)) == Counter(listed)
    return made if same else None


def _signature(chunk: Chunk) -> Signature:
    return chunk.holders, chunk.destinations, chunk.reduced


def _numbered(signatures: dict[int, Signature], made: Collective) -> dict[int, int]:
    """Give each address, in order, the next chunk of the collective that is like it."""
    free: defaultdict[Signature, deque[int]] = defaultdict(deque)
    for number, chunk in enumerate(made.chunks):
        free[_signature(chunk)].append(number)
    return {address: free[each].popleft() for address, each in signatures.items()}
