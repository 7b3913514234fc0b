"""Which problem a schedule of TE-CCL solves: who wants what, and how much a chunk is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from ccl.collective import CHUNK_LIMIT, Chunk, Collective, all_gather, all_to_all, custom
from ccl.errors import FormatError
from ccl.problem import Problem
from interchange.formats.synthesizers.te_ccl.devices import Cluster
from interchange.formats.synthesizers.te_ccl.file import Output, Piece


@dataclass(frozen=True)
class Wanted:
    """A problem, with the chunk that each piece of a file is.

    Parameters
    ----------
    problem
        On the cluster of the file.
    chunks
        Numbers of the chunks.
    names
        Of the devices by number.
    told
        What was assumed, in sentences.
    """

    problem: Problem
    chunks: Mapping[Piece, int]
    names: Mapping[int, str]
    told: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Demands:
    """Rank of the source of each piece, and ranks that want it; those that nobody wants are not."""

    holder: Mapping[Piece, int]
    ends: Mapping[Piece, frozenset[int]]
    ranks: int

    def by_holder(self) -> dict[int, list[Piece]]:
        """Return the pieces of each rank in the order of their numbers."""
        found: defaultdict[int, list[Piece]] = defaultdict(list)
        for piece in sorted(self.ends, key=lambda each: each.chunk):
            found[self.holder[piece]].append(piece)
        return {rank: found[rank] for rank in sorted(found)}


_Made = tuple[Collective, dict[Piece, int]]


def chunk_bytes(output: Output, gpus: int, *, given: float | None) -> tuple[float, str]:
    """Return the bytes of a chunk, and from where they are known.

    Parameters
    ----------
    output
        The file.
    gpus
        That TE-CCL counts.
    given
        Bytes that the user gives, or None.

    Raises
    ------
    FormatError
        If the file does not say enough.
    """
    if given is not None:
        return given, f"a chunk is {given:,.0f} bytes, as given"
    if output.chunk_size is not None:
        nbytes = _rounded(output.chunk_size)
        return nbytes, f"a chunk is {nbytes:,.0f} bytes, as the file says"
    times = _times(output)
    if output.algbw is None or not times:
        msg = (
            "it does not say how large a chunk is and has no bandwidth and finish time from which "
            "that would follow; set chunk_size in GB"
        )
        raise FormatError(msg)
    # GB/s and µs make kB.
    sizes = {_rounded(output.algbw * time * 1e3 / gpus): time for time in times}
    nbytes = next((size for size in sizes if size * 64 % 1 == 0), next(iter(sizes)))
    return nbytes, (
        f"a chunk is {nbytes:,.0f} bytes: {output.algbw:g} GB/s × {sizes[nbytes]:g} µs ÷ "
        f"{gpus} GPUs, the way TE-CCL counts"
    )


def _times(output: Output) -> list[float]:
    """Return the µs that the whole takes, as the file says; the likelier first."""
    last = max((hop.epoch for _, hop in output.flows), default=0)
    times = []
    if output.epochs is not None and output.epochs > last:
        times.append(output.epochs * output.epoch_duration)
    if output.makespan is not None:
        times.append(output.makespan)
    return times


def _rounded(nbytes: float) -> float:
    """Return the half, quarter, ... or whole number of which the last digits were lost."""
    near = round(nbytes * 64) / 64
    return near if abs(nbytes - near) < 1e-12 * nbytes else nbytes


def wanted(output: Output, cluster: Cluster, chunk_size: float) -> Wanted:
    """Return the problem.

    Raises
    ------
    FormatError
        If nobody wants anything, or what wants it is no GPU.
    """
    demands, told = _demands(output, cluster)
    made = _gathered(demands, chunk_size) or _exchanged(demands, chunk_size)
    if made is None:
        made = _custom(demands, chunk_size)
        told = (*told, _lacking(demands))
    return Wanted(Problem(cluster.topology, made[0]), made[1], cluster.names, told)


def _demands(output: Output, cluster: Cluster) -> tuple[_Demands, tuple[str, ...]]:
    topology = cluster.topology
    rank = {number: topology.rank.get(name) for number, name in cluster.names.items()}
    ends: dict[Piece, set[int]] = {piece: set() for piece, _ in output.flows}
    told: tuple[str, ...] = ()
    wants = [(piece, at) for at, piece in output.demands]
    if not wants:
        wants, told = _guessed(output, rank)
    for piece, at in wants:
        there = rank.get(at)
        if there is None:
            msg = f"{at} wants a chunk of {piece.source} and is no GPU of {topology.name}"
            raise FormatError(msg)
        ends.setdefault(piece, set()).add(there)
    holder = {}
    for piece in ends:
        here = rank.get(piece.source)
        if here is None:
            msg = f"{piece.source} has a chunk and is no GPU of {topology.name}"
            raise FormatError(msg)
        holder[piece] = here
    kept = {piece: frozenset(those - {holder[piece]}) for piece, those in ends.items()}
    kept = {piece: those for piece, those in kept.items() if those}
    if not kept:
        msg = "nobody wants a chunk in it; Demand_Met or Chunk paths say who does"
        raise FormatError(msg)
    return _Demands(holder, kept, len(topology.ranks)), told


def _guessed(
    output: Output, rank: Mapping[int, int | None]
) -> tuple[list[tuple[Piece, int]], tuple[str, ...]]:
    """Return who wants what where a file does not say: an all-gather, of amounts an all-to-all."""
    pieces = list(dict.fromkeys(piece for piece, _ in output.flows))
    found = {piece.source for piece in pieces} | {hop.dst for _, hop in output.flows}
    gpus = sorted(number for number in found if rank.get(number) is not None)
    if not gpus or len(gpus) * len(pieces) > CHUNK_LIMIT:
        msg = "it does not say who wants what; Demand_Met or Chunk paths must"
        raise FormatError(msg)
    if output.fluid:
        wants = [(piece, gpus[piece.chunk % len(gpus)]) for piece in pieces]
    else:
        wants = [(piece, gpu) for piece in pieces for gpu in gpus]
    kind = "an all-to-all" if output.fluid else "an all-gather"
    return wants, (f"{kind} among {len(gpus)} GPUs is wanted; the file does not say",)


def _gathered(demands: _Demands, chunk_size: float) -> _Made | None:
    """Return an all-gather, if everyone has equally many chunks that all others want."""
    holders, ranks = demands.by_holder(), demands.ranks
    many = len(next(iter(holders.values())))
    alike = all([each.chunk for each in those] == list(range(many)) for those in holders.values())
    everyone = all(len(ends) == ranks - 1 for ends in demands.ends.values())
    if len(holders) != ranks or not alike or not everyone:
        return None
    chunks = {piece: demands.holder[piece] * many + piece.chunk for piece in demands.ends}
    return all_gather(ranks, ranks * many * chunk_size, chunks=many), chunks


def _exchanged(demands: _Demands, chunk_size: float) -> _Made | None:
    """Return an all-to-all, if everyone has equally many chunks for each other."""
    pairs: defaultdict[tuple[int, int], list[Piece]] = defaultdict(list)
    for rank, those in demands.by_holder().items():
        for piece in those:
            for end in demands.ends[piece]:
                pairs[rank, end].append(piece)
    many = len(next(iter(pairs.values())))
    single = all(len(ends) == 1 for ends in demands.ends.values())
    alike = all(len(each) == many for each in pairs.values())
    if not single or not alike or len(pairs) != demands.ranks * (demands.ranks - 1):
        return None
    made = all_to_all(demands.ranks, demands.ranks * many * chunk_size, chunks=many)
    order = [piece for pair in sorted(pairs) for piece in pairs[pair]]
    return made, {piece: number for number, piece in enumerate(order)}


def _custom(demands: _Demands, chunk_size: float) -> _Made:
    order = [piece for those in demands.by_holder().values() for piece in those]
    listed = [
        Chunk(chunk_size, (demands.holder[piece],), tuple(sorted(demands.ends[piece])))
        for piece in order
    ]
    return custom(demands.ranks, listed), {piece: number for number, piece in enumerate(order)}


def _lacking(demands: _Demands) -> str:
    """Say how far a demand is from that of an all-gather or an all-to-all."""
    pairs, ranks = sum(len(ends) for ends in demands.ends.values()), demands.ranks
    what = f"the demand is a custom one of {len(demands.ends)} chunks for {pairs} GPUs in all"
    if len(demands.by_holder()) < 2:
        return what
    single = pairs == len(demands.ends)
    whole = ranks * (ranks - 1) if single else len(demands.ends) * (ranks - 1)
    kind = "an all-to-all of one chunk" if single else "an all-gather of these chunks"
    return f"{what}; {kind} would be for {whole}"
