"""Clusters and collectives of MSCCL-tools and TACCL: links, limits of switches, and addresses.

MSCCL-tools counts links, each as fast as any other: the setting ``bandwidth`` says how fast. Its
switches are limits on sets of links, on what they let through, in the same unit. TACCL's form has
one host: its links take ``node_invbws`` µs for a chunk, hosts are joined as ``internode_conn``
says, and with three hosts or more a GPU has the bandwidth of one such link for all of them
together, in each direction; the GPUs of a local switch have likewise one link's bandwidth into it
and out of it.

`collective_of` reads addresses as chunks, and finds the collective that they are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import partial

from ccl import text
from ccl.collective import CHUNK_LIMIT, Collective, CollectiveKind, Signature, recognise
from ccl.errors import FormatError
from ccl.topology import Link, SharedLimit, Topology, device
from interchange.formats.fields import number
from interchange.formats.format import Remarks, Request
from interchange.formats.synthesizers._matrices import direction, square, turned
from interchange.formats.synthesizers.msccl_tools import file as files

BANDWIDTH = 25.0
"""GB/s of a link that counts 1: an NVLink of the DGX-1, for which the program was made."""

MOST_GPUS = 4_096
MOST_LINKS = 250_000
"""Of what copies of a host make."""

MOST_CONNECTED = 1_100_000
"""Pairs in a matrix: 1,024 GPUs, each with each."""

MOST_COUNT = 10**9
"""Parallel links; MSCCL-tools says bandwidths with them."""

Pairs = Iterable[tuple[int, int]]


def topology_of(
    file: files.TopologyFile,
    request: Request,
    remarks: Remarks,
    *,
    chunk: float,
    sends: set[tuple[int, int]],
) -> Topology:
    """Make a topology.

    Parameters
    ----------
    file
        As it stands in the file.
    request
        Settings.
    remarks
        Takes what the report says.
    chunk
        Bytes of a chunk, for times.
    sends
        Pairs of ranks between which a plan sends, which may settle the direction of a matrix.

    Raises
    ------
    Question
        If the matrix is not symmetric and nothing settles its direction.
    FormatError
        If it is wrong, with the place.
    """
    if file.links is not None:
        return _counted(file, request, remarks, sends)
    if file.node_links is None or file.node_invbws is None:
        raise FormatError(
            "at topology: it has neither links nor node_links with node_invbws; add a matrix"
        )
    return _copied(file, request, remarks, chunk)


def _counted(
    file: files.TopologyFile, request: Request, remarks: Remarks, sends: set[tuple[int, int]]
) -> Topology:
    assert file.links is not None  # the caller looked
    side = len(file.links)
    _linked_right(file.links, "links", side)
    joined = sum(sum(map(bool, row)) for row in file.links)
    if joined > MOST_CONNECTED:
        raise FormatError(
            f"at links: {joined:,} pairs of GPUs are joined; {MOST_CONNECTED:,} at most are read"
        )
    fits = partial(_fits, file.links, sends) if sends else None
    by_row, how = direction(request, [file.links], fits)
    remarks.assumed += how
    rows = file.links if by_row else turned(file.links)
    unit = number(request, "bandwidth", BANDWIDTH, most=1e6, unit="GB/s")
    alpha = number(request, "alpha", 0.0, most=1e9, unit="µs", zero=True)
    if not {"bandwidth", "alpha"} <= request.settings.keys():
        remarks.assumed.append(
            f"{unit:g} GB/s for a link that counts 1 and a latency of {alpha:g} µs; settings "
            "bandwidth and alpha are others"
        )
    links = tuple(
        Link(f"g{src}", f"g{dst}", many * unit, alpha, count=many)
        for dst, row in enumerate(rows)
        for src, many in enumerate(row)
        if many
    )
    limits = _switches(file, links, unit=unit, side=side, remarks=remarks)
    remarks.taken.append(
        f"{text.count(side, 'GPU')}, {text.count(len(links), 'pair')} with "
        f"{sum(map(sum, rows)):,} links, {text.count(len(limits), 'switch limit')}"
    )
    devices = tuple(device("gpu", f"g{rank}") for rank in range(side))
    return Topology(file.name or "MSCCL topology", devices, links, limits)


def _fits(links: list[list[int]], sends: Pairs, by_row: bool) -> bool:
    """Say whether all sends go over links when rows are destinations, or when they are sources."""
    return all((links[dst][src] if by_row else links[src][dst]) > 0 for src, dst in sends)


def _linked_right(links: list[list[int]], name: str, side: int) -> None:
    """Refuse a malformed matrix of counts."""
    square(links, name, side)
    for row, values in enumerate(links):
        if values[row]:
            raise FormatError(f"at {name}[{row}][{row}]: GPU {row} is linked with itself; give 0")
        if max(values) > MOST_COUNT:
            raise FormatError(
                f"at {name}[{row}]: {max(values):,} parallel links; give {MOST_COUNT:,} at most"
            )


def _switches(
    file: files.TopologyFile, links: Iterable[Link], *, unit: float, side: int, remarks: Remarks
) -> tuple[SharedLimit, ...]:
    """Return the limits that the switches are."""
    out: dict[int, list[int]] = {}
    for link in links:
        out.setdefault(int(link.src[1:]), []).append(int(link.dst[1:]))
    limits: list[SharedLimit] = []
    names: Counter[str] = Counter()
    empty = work = 0
    for place, (srcs, dsts, rate, name) in enumerate(file.switches):
        wrong = next((each for each in (*srcs, *dsts) if not 0 <= each < side), None)
        if wrong is not None:
            raise FormatError(f"at switches[{place}]: it names GPU {wrong}; give 0 to {side - 1}")
        if not 0 < rate <= 1e9:
            raise FormatError(
                f"at switches[{place}]: its bandwidth is {rate:g}; give more than 0, in links"
            )
        heads = dict.fromkeys(srcs)
        work += sum(len(out.get(src, ())) for src in heads)
        if work > 8 * MOST_LINKS:
            raise FormatError(
                f"at switches[{place}]: switches cover more than {8 * MOST_LINKS:,} links in all"
            )
        tails = set(dsts)
        ends = [(f"g{src}", f"g{dst}") for src in heads for dst in out.get(src, ()) if dst in tails]
        if not ends:
            empty += 1
            continue
        called = name.strip() or f"switch {place}"
        names[called] += 1
        called += f" ({names[called]})" if names[called] > 1 else ""
        limits.append(SharedLimit(called, tuple(ends), rate * unit))
    if empty:
        remarks.left_out.append(f"{text.count(empty, 'switch limit')} over no link")
    return tuple(limits)


def _copied(file: files.TopologyFile, request: Request, remarks: Remarks, chunk: float) -> Topology:
    """Make the hosts of TACCL's form."""
    assert file.node_links is not None  # the caller looked
    assert file.node_invbws is not None
    side, hosts = file.ngpus_per_node, file.copies
    if not 1 <= side <= MOST_GPUS or not 1 <= hosts <= MOST_GPUS // side:
        raise FormatError(
            f"at topology: {hosts:,} hosts of {side:,} GPUs; give {MOST_GPUS:,} GPUs at most"
        )
    _linked_right(file.node_links, "node_links", side)
    square(file.node_invbws, "node_invbws", side)
    by_row, how = direction(request, [file.node_links, file.node_invbws])
    remarks.assumed += how
    counts = file.node_links if by_row else turned(file.node_links)
    times = file.node_invbws if by_row else turned(file.node_invbws)
    made = _Copies(side, hosts, chunk)
    inside = [(s, d, n) for d, row in enumerate(counts) for s, n in enumerate(row) if n]
    remote = _remote(file, side) if hosts > 1 else []
    if hosts * (len(inside) + (hosts - 1) * len(remote)) > MOST_LINKS:
        raise FormatError(
            f"at topology: its copies would have more than {MOST_LINKS:,} links; take fewer"
        )
    for src, dst, many in inside:
        made.within(src, dst, many * made.rate(times[dst][src], "node_invbws"), many)
    made.switches(file.local_switches)
    if remote:
        made.between(remote, *_remote_times(file, made))
    remarks.taken.append(
        f"{text.count(side * hosts, 'GPU')} in {text.count(hosts, 'host')} of TACCL, "
        f"{text.count(len(made.links), 'link')}, {text.count(len(made.limits), 'switch limit')}"
    )
    remarks.assumed.append(
        "times of node_invbws count latency too, so that links in hosts have none"
    )
    devices = tuple(
        device("gpu", f"g{host * side + i}", host=f"h{host}")
        for host in range(hosts)
        for i in range(side)
    )
    return Topology(file.name or "TACCL topology", devices, tuple(made.links), tuple(made.limits))


def _remote(file: files.TopologyFile, side: int) -> list[tuple[int, int]]:
    """Return who of a host sends to whom of each other host."""
    pairs = []
    for word, dsts in (file.internode_conn or {}).items():
        src = int(word) if word.isascii() and word.isdigit() and len(word) <= 4 else -1
        for dst in dict.fromkeys(dsts):
            if not (0 <= src < side and 0 <= dst < side):
                raise FormatError(
                    f"at internode_conn: it joins {word[:20]!r} with {dst}; count the GPUs of a "
                    f"host from 0 to {side - 1}"
                )
            pairs.append((src, dst))
    if not pairs:
        raise FormatError("at internode_conn: nothing joins the hosts; name who sends to whom")
    return pairs


def _remote_times(file: files.TopologyFile, made: _Copies) -> tuple[float, float]:
    """Return GB/s and µs of a link between hosts."""
    if file.remote_beta is not None and file.remote_beta > 0:
        alpha = file.remote_alpha or 0.0
        return made.rate(file.remote_beta, "remote_beta"), max(alpha, 0.0)
    if file.remote_invbw is None:
        raise FormatError(
            "at topology: it has several hosts, and neither remote_beta nor remote_invbw"
        )
    return made.rate(file.remote_invbw, "remote_invbw"), 0.0


class _Copies:
    """Adds links and limits to all copies of a host."""

    def __init__(self, side: int, hosts: int, chunk: float) -> None:
        self.side = side
        self.hosts = hosts
        self.chunk = chunk
        self.links: list[Link] = []
        self.limits: list[SharedLimit] = []
        self.inside: dict[tuple[int, int], float] = {}

    def rate(self, time: float, place: str) -> float:
        """Return the GB/s of a link that takes some µs for a chunk."""
        if not 1e-9 <= time <= 1e12:
            raise FormatError(f"at {place}: {time:g} µs for a chunk; give more than 0")
        return self.chunk * 1e-3 / time

    def within(self, src: int, dst: int, bandwidth: float, many: int) -> None:
        """Join two GPUs of every host."""
        self.inside[src, dst] = bandwidth
        for first in range(0, self.hosts * self.side, self.side):
            self.links.append(Link(f"g{first + src}", f"g{first + dst}", bandwidth, 0.0, "", many))

    def switches(self, groups: list[list[int]]) -> None:
        """Limit what a GPU sends to and takes from those with which it shares a switch."""
        work = 0
        for place, group in enumerate(groups):
            members = sorted(set(group))
            if members and not 0 <= members[0] <= members[-1] < self.side:
                raise FormatError(
                    f"at local_switches[{place}]: GPUs of a host go from 0 to {self.side - 1}"
                )
            work += self.hosts * len(members) ** 2
            if work > 8 * MOST_LINKS:
                raise FormatError(
                    f"at local_switches: they cover more than {8 * MOST_LINKS:,} links in all"
                )
            for gpu in members:
                out = [(gpu, each) for each in members if (gpu, each) in self.inside]
                into = [(each, gpu) for each in members if (each, gpu) in self.inside]
                for name, pairs in (("out", out), ("in", into)):
                    if len(pairs) > 1:
                        self._limit_hosts(f"switch {place} GPU {gpu} {name}", pairs)

    def _limit_hosts(self, name: str, pairs: list[tuple[int, int]]) -> None:
        rate = max(self.inside[each] for each in pairs)
        for host in range(self.hosts):
            first = host * self.side
            moved = [(first + src, first + dst) for src, dst in pairs]
            self._limit(f"h{host} {name}", moved, rate)

    def between(self, pairs: list[tuple[int, int]], bandwidth: float, alpha: float) -> None:
        """Join every two hosts, and limit GPUs that reach several of them."""
        made: dict[tuple[str, int], list[tuple[int, int]]] = {}
        for here in range(self.hosts):
            for there in range(self.hosts):
                for src, dst in pairs if here != there else ():
                    ends = here * self.side + src, there * self.side + dst
                    self.links.append(Link(f"g{ends[0]}", f"g{ends[1]}", bandwidth, alpha))
                    made.setdefault(("out", ends[0]), []).append(ends)
                    made.setdefault(("in", ends[1]), []).append(ends)
        for (name, gpu), remote in made.items() if self.hosts > 2 else ():
            self._limit(f"GPU {gpu} {name} remote", remote, bandwidth)

    def _limit(self, name: str, pairs: Pairs, bandwidth: float) -> None:
        ends = tuple((f"g{src}", f"g{dst}") for src, dst in pairs)
        self.limits.append(SharedLimit(name, ends, bandwidth))


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
                raise FormatError(
                    f"address {address} is of rank {rank}; ranks go from 0 to {self.ranks - 1}"
                )
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
                raise FormatError(
                    f"address {address} is wanted by rank {min(wanted)} and held by none at first"
                )
            summed = address in self.summed
            moved = wanted if summed else wanted - holders
            if moved:
                found[address] = tuple(sorted(holders)), tuple(sorted(moved)), summed
        return found


def placement(file: files.AlgorithmFile, ranks: int, remarks: Remarks) -> Placement:
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
        raise FormatError(
            "it has neither input_map and output_map nor a collective; add what ranks hold"
        )
    if file.collective is None:
        made.summed = {each for each, holders in made.holders.items() if len(holders) > 1}
        if made.summed:
            remarks.assumed.append(
                f"what several ranks hold at first is added up, {len(made.summed)} of "
                f"{text.count(len(made.holders), 'place')}, for no collective says otherwise"
            )
    return made


def of_collective(file: files.CollectiveFile, ranks: int) -> Placement:
    """Return the placement of a collective alone; errors as `placement`."""
    made = Placement(ranks)
    _of_collective(file, made)
    return made


def _of_collective(file: files.CollectiveFile, made: Placement) -> None:
    if file.nodes and file.nodes != made.ranks:
        raise FormatError(
            f"at collective: it is for {file.nodes} ranks and the topology has {made.ranks} GPUs"
        )
    posts: dict[int, set[int]] = {}
    for chunk in file.chunks:
        made.put(made.holders, chunk.addr, chunk.pre)
        made.put(made.wanted, chunk.addr, chunk.post)
        if chunk.addr in posts:
            made.summed.add(chunk.addr)
            if posts[chunk.addr] != set(chunk.post):
                raise FormatError(
                    f"at collective: the chunks of address {chunk.addr} are added up for different "
                    "ranks, as in a scan; only sums of all of them are read"
                )
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
        raise FormatError(f"{len(signatures):,} addresses have to move; give 1 to {CHUNK_LIMIT:,}")
    listed = list(signatures.values())
    plain = "".join(each for each in name.partition("(")[0].lower() if each.isalpha())
    hint = _NAMES.get(plain)
    kinds = [*([hint] if hint else []), *(each for each in _NAMES.values() if each != hint)]
    found = recognise(signatures, ranks, nbytes, kinds=kinds)
    every = tuple(range(ranks))
    if found[0].kind == "custom" and {(every, every, True)} == set(listed):
        chunks = found[0].chunks
        return Collective("all-reduce", ranks, nbytes * len(chunks), chunks), found[1]
    return found
