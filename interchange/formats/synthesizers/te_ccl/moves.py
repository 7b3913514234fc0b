"""What a TE-CCL schedule sends, and which arrival each send relies on.

Whole chunks are the lines of its flows, with what stops at a switch joined to what leaves it. Of a
chunk that travels in amounts the ways under "Chunk paths" count, because two equal lines of its
flows are written once; where there are none, what came first leaves first.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from ccl.errors import FormatError
from ccl.schedule import Send
from interchange.formats.synthesizers.te_ccl.demand import Wanted
from interchange.formats.synthesizers.te_ccl.devices import Cluster
from interchange.formats.synthesizers.te_ccl.file import Hop, Output, Piece

NEARLY = 1e-3
"""Of a chunk, and of what a link carries: what TE-CCL's solver may leave open."""

SPLITS = 2_000_000
"""Parts of parts that are followed at most."""


@dataclass(frozen=True, slots=True)
class Move:
    """A send with the places of the moves that bring what it sends."""

    send: Send
    after: tuple[int, ...]


@dataclass
class Moves:
    """All of them in the order of their epochs.

    Parameters
    ----------
    moves
        Each after those of earlier epochs.
    twice, unwanted
        How many lines bring what is there already, and how many are of chunks that nobody wants.
    apart
        Pieces whose ways have other hops than their flows, which count.
    short
        Amounts that are missing, in sentences: the first rule that a file can break.
    """

    moves: Sequence[Move] = ()
    twice: int = 0
    unwanted: int = 0
    apart: list[Piece] = field(default_factory=list)
    short: list[str] = field(default_factory=list)


def plain_sends(output: Output, cluster: Cluster, wanted: Wanted) -> tuple[Send, ...]:
    """Return the lines of the flows as they stand."""
    return tuple(
        _send(hop, wanted.chunks[piece], cluster, hop.volume)
        for piece, hop in sorted(output.flows, key=lambda each: each[1].epoch)
        if piece in wanted.chunks and hop.volume != 0
    )


def moves_of(output: Output, cluster: Cluster, wanted: Wanted) -> Moves:
    """Return what is sent.

    Raises
    ------
    FormatError
        If amounts of a chunk have several destinations.
    """
    made = Moves()
    split = {
        piece
        for piece, hop in output.flows
        if hop.volume is not None and hop.volume < 1 - NEARLY and piece in wanted.chunks
    }
    lines: defaultdict[Piece, list[Hop]] = defaultdict(list)
    for piece, hop in output.flows:
        if piece in wanted.chunks:
            lines[piece].append(hop)
        else:
            made.unwanted += 1
    found: list[tuple[Send, set[int]]] = []
    for piece, its in lines.items():
        if piece in split:
            ways = _ways_of(piece, output, (its, made, cluster, wanted))
            _split(found, ways, wanted.chunks[piece], cluster)
        else:
            _whole(found, made, (_joined(its, cluster), wanted.chunks[piece], cluster, wanted))
    made.moves = _in_order(found, cluster)
    return made


def fifo_ways(
    hops: Iterable[Hop], source: int, short: list[str]
) -> dict[int, list[tuple[float, tuple[Hop, ...]]]]:
    """Follow amounts of one chunk from its source: what came first leaves first.

    Returns the amounts that end at each device with their ways; `short` takes what is missing.

    Raises
    ------
    FormatError
        If there are too many parts of parts.
    """
    stock: defaultdict[int, deque[tuple[float, tuple[Hop, ...]]]] = defaultdict(deque)
    stock[source].append((1.0, ()))
    coming: list[tuple[int, float, tuple[Hop, ...]]] = []
    now, splits = -1, 0
    for hop in sorted(hops, key=attrgetter("epoch")):
        if hop.epoch > now:
            for dst, amount, way in coming:
                stock[dst].append((amount, way))
            coming, now = [], hop.epoch
        left = 1.0 if hop.volume is None else hop.volume
        here = stock[hop.src]
        if sum(amount for amount, _ in here) < left - NEARLY:
            # It may go on in the epoch in which it came, if that is long enough.
            here += [(amount, way) for dst, amount, way in coming if dst == hop.src]
            coming = [each for each in coming if each[0] != hop.src]
        while left > 0 and here:
            amount, way = here.popleft()
            taken = min(amount, left)
            if amount > taken:
                here.appendleft((amount - taken, way))
            coming.append((hop.dst, taken, (*way, hop)))
            left -= taken
            splits += 1 + len(way)
            if splits > SPLITS:
                msg = f"a chunk of GPU {source} is in more parts than are followed"
                raise FormatError(msg)
        if left > NEARLY:
            short.append(
                f"epoch {hop.epoch}: {hop.src} sends {left:g} of a chunk of GPU {source} to "
                f"{hop.dst} that it does not hold"
            )
    for dst, amount, way in coming:
        stock[dst].append((amount, way))
    return {number: list(parts) for number, parts in stock.items()}


def _send(hop: Hop, chunk: int, cluster: Cluster, volume: float | None) -> Send:
    names = cluster.names
    via = tuple(names[number] for number in hop.via)
    fraction = 1.0 if volume is None else min(1.0, volume)
    return Send(hop.epoch, chunk, names[hop.src], names[hop.dst], via, fraction)


def _joined(lines: list[Hop], cluster: Cluster) -> list[Hop]:
    """Join what stops at a switch with what leaves it in a later epoch, the last that came."""
    topology, names = cluster.topology, cluster.names
    if all(topology.device(names[each]).stores for hop in lines for each in (hop.src, hop.dst)):
        return sorted(lines, key=attrgetter("epoch"))
    came: defaultdict[int, list[Hop]] = defaultdict(list)
    joined = []
    for hop in sorted(lines, key=attrgetter("epoch")):
        whole = hop
        if not topology.device(names[hop.src]).stores:
            earlier = [each for each in came[hop.src] if each.epoch < hop.epoch]
            if earlier:
                first = max(earlier, key=attrgetter("epoch"))
                way = (*first.via, first.dst, *hop.via)
                whole = Hop(first.src, hop.dst, first.epoch, way, hop.volume)
        if topology.device(names[hop.dst]).stores:
            joined.append(whole)
        else:
            came[hop.dst].append(whole)
    return sorted(joined, key=attrgetter("epoch"))


def _whole(
    found: list[tuple[Send, set[int]]],
    made: Moves,
    about: tuple[list[Hop], int, Cluster, Wanted],
) -> None:
    """Add the moves of a whole chunk, the first that brings it to each device."""
    lines, number, cluster, wanted = about
    ranks = cluster.topology.ranks
    holders = {ranks[rank] for rank in wanted.problem.collective.chunks[number].holders}
    brought: dict[str, int] = {}
    for hop in lines:
        send = _send(hop, number, cluster, None)
        if send.dst in holders or send.dst in brought:
            made.twice += 1
            continue
        brought[send.dst] = len(found)
        found.append((send, set()))
    for place in brought.values():
        send, after = found[place]
        if send.src in brought and send.src not in holders:
            after.add(brought[send.src])


def _ways_of(
    piece: Piece, output: Output, about: tuple[list[Hop], Moves, Cluster, Wanted]
) -> list[tuple[float, tuple[Hop, ...]]]:
    """Return the ways of the amounts of a chunk; together they are all of it."""
    lines, made, cluster, wanted = about
    chunk = wanted.problem.collective.chunks[wanted.chunks[piece]]
    if len(chunk.destinations) > 1:
        msg = (
            f"amounts of chunk {piece.chunk} from {piece.source} travel, and "
            f"{len(chunk.destinations)} GPUs want it; only what one GPU wants can be in parts"
        )
        raise FormatError(msg)
    goal = cluster.topology.ranks[chunk.destinations[0]]
    ends = [number for number, name in cluster.names.items() if name == goal]
    ways = [
        (min(hop.volume or 0.0 for hop in way), way)
        for end in ends
        for way in output.ways.get((end, piece), ())
        if _leads(way, piece.source, end)
    ]
    if {hop for _, way in ways for hop in way} != set(lines):
        made.apart.append(piece)
        ways = []
    if abs(sum(amount for amount, _ in ways) - 1) > NEARLY:
        followed = fifo_ways(lines, piece.source, made.short)
        ways = [each for end in ends for each in followed.get(end, [])]
    total = sum(amount for amount, _ in ways)
    if total < 1 - NEARLY:
        came, total = total, 1.0  # what is missing stays missing
        made.short.append(
            f"demand not met: {came:g} of chunk {piece.chunk} from {piece.source} comes to {goal}, "
            "which wants all of it"
        )
    return [(amount / total, way) for amount, way in ways if amount > 0]


def _leads(way: tuple[Hop, ...], source: int, end: int) -> bool:
    """Say whether hops follow one another from a source to an end."""
    stops = [source, *(hop.dst for hop in way)]
    return stops[-1] == end and all(
        hop.src == stop and (i == 0 or way[i - 1].epoch < hop.epoch)
        for i, (hop, stop) in enumerate(zip(way, stops, strict=False))
    )


def _split(
    found: list[tuple[Send, set[int]]],
    ways: list[tuple[float, tuple[Hop, ...]]],
    number: int,
    cluster: Cluster,
) -> None:
    """Add the moves of amounts; what crosses the same links in the same epoch is one."""
    amounts: defaultdict[Hop, float] = defaultdict(float)
    places: dict[Hop, int] = {}
    for amount, way in ways:
        before: list[int] = []
        for hop in way:
            same = Hop(hop.src, hop.dst, hop.epoch, hop.via)
            amounts[same] += amount
            if same not in places:
                places[same] = len(found)
                found.append((_send(same, number, cluster, 1.0), set()))
            found[places[same]][1].update(before)
            before = [places[same]]
    for hop, place in places.items():
        share = amounts[hop] if amounts[hop] < 1 - 1e-9 else 1.0
        found[place] = (_send(hop, number, cluster, share), found[place][1])


def _in_order(found: list[tuple[Send, set[int]]], cluster: Cluster) -> tuple[Move, ...]:
    """Return the moves by epoch, in each first those that hold a link the longest.

    A file does not order the sends of an epoch; what crosses a quick link into a switch and a slow
    one out of it must begin with the epoch to be through at its end.
    """
    link = cluster.topology.link

    def place(old: int) -> tuple[int, float]:
        send = found[old][0]
        return send.epoch, -send.fraction * max(link(*ends).beta for ends in send.hops)

    order = sorted(range(len(found)), key=place)
    new = {old: place for place, old in enumerate(order)}
    return tuple(
        Move(found[old][0], tuple(sorted(new[each] for each in found[old][1]))) for old in order
    )
