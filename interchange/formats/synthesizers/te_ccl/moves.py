"""What a TE-CCL schedule sends, which arrival each send relies on, and which rules it breaks.

Whole chunks are the lines of its flows, with what stops at a switch joined to what leaves it. Of a
chunk that travels in amounts the paths under "Chunk paths" count, because two equal lines of its
flows are written once; where there are none, what came first leaves first.

`Rules` are those that TE-CCL's own models keep. With tau the epoch, a chunk that is sent in epoch k
over a link that takes ``hold`` for it is there at the beginning of epoch
``k + 1 + ceil(hold / tau) - 1 + ceil(alpha / tau)``, but

* a latency of at most a tenth of an epoch counts as none (``alpha_threshold``);
* of a way through switches the last link takes no epochs of its own, only those of its latency,
  however long it takes for the chunk (``switch_to_gpu_link_on`` false);
* amounts of the linear program take one epoch on every link, as much as it carries in one.

A link begins as many chunks in ``ceil(hold / tau)`` epochs as it carries in them. The first two
exceptions (`Rules.slips`) are not counted as broken rules, but they are reported; what breaks a
rule however the latencies are counted (`Breach`) is no plan.
"""

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter

from ccl.errors import FormatError
from ccl.plans import Send
from ccl.problem import Problem
from ccl.text import count
from ccl.topology import Link
from interchange.formats.synthesizers.te_ccl.demand import Wanted
from interchange.formats.synthesizers.te_ccl.file import Cluster, Hop, Output, Piece

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
        Pieces whose paths have other hops than their flows, which count.
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
            paths = _ways_of(piece, output, (its, made, cluster, wanted))
            _split(found, paths, wanted.chunks[piece], cluster)
        else:
            _whole(found, made, (_joined(its, cluster), wanted.chunks[piece], cluster, wanted))
    made.moves = _in_order(found, cluster)
    return made


def fifo_routes(
    hops: Iterable[Hop], source: int, short: list[str]
) -> dict[int, list[tuple[float, tuple[Hop, ...]]]]:
    """Follow amounts of one chunk from its source: what came first leaves first.

    Returns the amounts that end at each device with their paths; `short` takes what is missing.

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
                raise FormatError(f"a chunk of GPU {source} is in more parts than are followed")
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
    stops = cluster.stops
    lines = sorted(lines, key=attrgetter("epoch"))
    if not any(hop.src in stops or hop.dst in stops for hop in lines):
        return lines
    came: defaultdict[int, list[Hop]] = defaultdict(list)
    joined = []
    for hop in lines:
        whole = hop
        if hop.src in stops:
            earlier = [each for each in came[hop.src] if each.epoch < hop.epoch]
            if earlier:
                first = max(earlier, key=attrgetter("epoch"))
                way = (*first.via, first.dst, *hop.via)
                whole = Hop(first.src, hop.dst, first.epoch, way, hop.volume)
        if hop.dst in stops:
            came[hop.dst].append(whole)
        else:
            joined.append(whole)
    return sorted(joined, key=attrgetter("epoch"))


def _whole(
    found: list[tuple[Send, set[int]]], made: Moves, about: tuple[list[Hop], int, Cluster, Wanted]
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
    """Return the paths of the amounts of a chunk; together they are all of it."""
    lines, made, cluster, wanted = about
    chunk = wanted.problem.collective.chunks[wanted.chunks[piece]]
    if len(chunk.destinations) > 1:
        raise FormatError(
            f"amounts of chunk {piece.chunk} from {piece.source} travel, and "
            f"{len(chunk.destinations)} GPUs want it; only what one GPU wants can be in parts"
        )
    goal = cluster.topology.ranks[chunk.destinations[0]]
    ends = [number for number, name in cluster.names.items() if name == goal]
    paths = [
        (min(hop.volume or 0.0 for hop in way), way)
        for end in ends
        for way in output.paths.get((end, piece), ())
        if _leads(way, piece.source, end)
    ]
    if {hop for _, way in paths for hop in way} != set(lines):
        made.apart.append(piece)
        paths = []
    if abs(sum(amount for amount, _ in paths) - 1) > NEARLY:
        followed = fifo_routes(lines, piece.source, made.short)
        paths = [each for end in ends for each in followed.get(end, [])]
    total = sum(amount for amount, _ in paths)
    if total < 1 - NEARLY:
        came, total = total, 1.0  # what is missing stays missing
        made.short.append(
            f"demand not met: {came:g} of chunk {piece.chunk} from {piece.source} comes to {goal}, "
            "which wants all of it"
        )
    return [(amount / total, way) for amount, way in paths if amount > 0]


def _leads(way: tuple[Hop, ...], source: int, end: int) -> bool:
    """Say whether hops follow one another from a source to an end."""
    stops = [source, *(hop.dst for hop in way)]
    return stops[-1] == end and all(
        hop.src == stop and (i == 0 or way[i - 1].epoch < hop.epoch)
        for i, (hop, stop) in enumerate(zip(way, stops, strict=False))
    )


def _split(
    found: list[tuple[Send, set[int]]],
    paths: list[tuple[float, tuple[Hop, ...]]],
    number: int,
    cluster: Cluster,
) -> None:
    """Add the moves of amounts; what crosses the same links in the same epoch is one."""
    amounts: defaultdict[Hop, float] = defaultdict(float)
    places: dict[Hop, int] = {}
    for amount, way in paths:
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


THRESHOLD = 0.1
"""Share of an epoch up to which TE-CCL drops a latency."""


@dataclass(frozen=True, order=True)
class Breach:
    """A rule that is broken: when, where and the sentence."""

    epoch: int
    where: str
    sentence: str


@dataclass(frozen=True)
class Rules:
    """TE-CCL's grid over a problem.

    Parameters
    ----------
    problem
        All chunks are of one size.
    epoch_duration
        µs.
    fluid
        Whether amounts travel.
    """

    problem: Problem
    epoch_duration: float
    fluid: bool

    def latency(self, link: Link) -> int:
        """Epochs that the latency of a link counts for."""
        ratio = link.alpha / self.epoch_duration
        return 0 if ratio <= THRESHOLD * (1 + 1e-9) else math.ceil(ratio - 1e-6)

    def carries(self, link: Link) -> float:
        """Chunks that a link carries in an epoch."""
        return self.epoch_duration / (self.problem.collective.chunk_size * link.beta)

    def spread(self, link: Link) -> int:
        """Epochs that a chunk holds a link for."""
        return 1 if self.fluid else max(1, math.ceil(1 / self.carries(link) - 1e-6))

    def links(self, send: Send) -> list[Link]:
        """Return the links of a send."""
        return [self.problem.topology.link(*ends) for ends in send.hops]

    def delay(self, send: Send, *, alphas: bool = True) -> int:
        """Return the epochs after which what is sent counts as there."""
        way = send.src, send.via, send.dst, alphas
        if way not in self._delays:
            self._delays[way] = self._delay(self.links(send), alphas=alphas)
        return self._delays[way]

    @cached_property
    def _delays(self) -> dict[tuple[str, tuple[str, ...], str, bool], int]:
        """Delays that are known, by way; many sends take the same."""
        return {}

    def _delay(self, links: Sequence[Link], *, alphas: bool) -> int:
        took = sum(self.spread(link) + (self.latency(link) if alphas else 0) for link in links)
        if len(links) > 1 and not self.fluid:
            took -= self.spread(links[-1])
        return took

    def breaches(self, moves: Sequence[Move], short: Iterable[str]) -> list[Breach]:
        """Return what no way of counting latencies allows, in time."""
        found = [*self._causality(moves), *self._overload(moves), *self._missing(moves)]
        found += [Breach(0, "", sentence) for sentence in short]
        return sorted(found)

    def _causality(self, moves: Sequence[Move]) -> Iterable[Breach]:
        ranks, chunks = self.problem.topology.ranks, self.problem.collective.chunks
        for move in moves:
            send = move.send
            if not move.after and send.src not in {ranks[r] for r in chunks[send.chunk].holders}:
                why = f"{send.src} never receives it"
                yield Breach(send.epoch, send.src, _leaves(send, why))
            for place in move.after:
                came = moves[place].send
                if came.epoch >= send.epoch:
                    why = f"it comes to {send.src} in epoch {came.epoch} at the earliest"
                    yield Breach(send.epoch, send.src, _leaves(send, why))

    def _missing(self, moves: Sequence[Move]) -> Iterable[Breach]:
        """Say who wants a chunk that nothing brings."""
        topology = self.problem.topology
        brought = {(move.send.chunk, move.send.dst) for move in moves}
        for number, chunk in enumerate(self.problem.collective.chunks):
            for rank in chunk.destinations:
                name = topology.ranks[rank]
                if (number, name) not in brought:
                    holder = topology.ranks[chunk.holders[0]]
                    what = f"demand not met: {name} wants chunk {number} of {holder}"
                    yield Breach(0, name, f"{what}, and no flow brings it there")

    def _overload(self, moves: Sequence[Move]) -> Iterable[Breach]:
        for link, loads in self.loads(moves).items():
            span = self.spread(link)
            room = span * self.carries(link)
            most = room * (1 + NEARLY) if self.fluid else max(1, math.floor(room + 1e-6))
            epochs, first, total = sorted(loads), 0, 0.0
            for epoch in epochs:
                total += loads[epoch]
                while epochs[first] <= epoch - span:
                    total -= loads[epochs[first]]
                    first += 1
                if total > most + 1e-9:
                    begun = f"epochs {epochs[first]} to {epoch}" if span > 1 else f"epoch {epoch}"
                    what = f"{begun}: link {link} carries {total:g} chunks and can carry {most:g}"
                    within = f"{span} epochs" if span > 1 else "an epoch"
                    notes = f"{what} in {within} of {self.epoch_duration:g} µs"
                    yield Breach(epoch, str(link), notes)
                    break

    def loads(self, moves: Sequence[Move]) -> Mapping[Link, Mapping[int, float]]:
        """Return the chunks that each link begins to carry in each epoch."""
        loads: defaultdict[Link, defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
        once = set()
        for move in moves:
            send, epoch = move.send, move.send.epoch
            for depth, link in enumerate(self.links(send)):
                # What parts at a switch has crossed the links before it once.
                key = send.chunk, send.epoch, send.src, send.hops[: depth + 1]
                if send.fraction < 1 or key not in once:
                    once.add(key)
                    loads[link][epoch] += send.fraction
                epoch += self.spread(link) + self.latency(link)
        return loads

    def slips(self, moves: Sequence[Move]) -> list[str]:
        """Say what of latencies and slow links the file does not count."""
        used = {link.ends: link for move in moves for link in self.links(move.send)}.values()
        notes = []
        dropped = [link for link in used if link.alpha and not self.latency(link)]
        if dropped:
            longest = max(dropped, key=lambda link: link.alpha)
            notes.append(
                f"latencies of {count(len(dropped), 'link')}, up to {longest.alpha:g} µs of "
                f"{longest}, are below a tenth of an epoch and not counted in the file"
            )
        exits = {
            link.ends: link
            for move in moves
            if move.send.via and not self.fluid
            for link in self.links(move.send)[-1:]
            if self.spread(link) > max(self.spread(each) for each in self.links(move.send)[:-1])
        }
        if exits:
            link = next(iter(exits.values()))
            notes.append(
                f"{count(len(exits), 'link')} out of switches take longer than the file counts: "
                f"{link} takes {self.spread(link)} epochs for a chunk"
            )
        return notes + self._hurried(moves)

    def _hurried(self, moves: Sequence[Move]) -> list[str]:
        """Say which chunks leave before their latency, or a slow link, lets them."""
        found: dict[bool, list[tuple[Send, Send]]] = {True: [], False: []}
        for move in moves:
            for place in move.after:
                came = moves[place].send
                if came.epoch < move.send.epoch < came.epoch + self.delay(came):
                    alone = came.epoch + self.delay(came, alphas=False) <= move.send.epoch
                    found[alone].append((came, move.send))
        notes = []
        for alphas, pairs in found.items():
            if not pairs:
                continue
            came, left = min(pairs, key=lambda pair: pair[1].epoch)
            why = "latency is ignored" if alphas else "a slow link counts as a quick one"
            left_at = f"chunk {left.chunk} leaves {left.src} in epoch {left.epoch}"
            came_by = f"sent there over {'->'.join(_stops(came))} in epoch {came.epoch}"
            notes.append(
                f"a rule is broken: {why} {count(len(pairs), 'time')}: first, {left_at}, "
                f"{came_by}, which takes {self.delay(came)} epochs"
            )
        return notes


def _stops(send: Send) -> tuple[str, ...]:
    return send.src, *send.via, send.dst


def _leaves(send: Send, why: str) -> str:
    """Say that a chunk leaves before it arrived."""
    return f"epoch {send.epoch}: {send} leaves before it arrived; {why}"
