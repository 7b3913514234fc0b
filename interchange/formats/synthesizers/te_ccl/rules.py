"""The rules that TE-CCL's own models keep, and where a file breaks one.

With tau the epoch, a chunk that is sent in epoch k over a link that takes ``hold`` for it is there
at the beginning of epoch ``k + 1 + ceil(hold / tau) - 1 + ceil(alpha / tau)``, but

* a latency of at most a tenth of an epoch counts as none (``alpha_threshold``);
* of a way through switches the last link takes no epochs of its own, only those of its latency,
  however long it takes for the chunk (``switch_to_gpu_link_on`` false);
* amounts of the linear program take one epoch on every link, as much as it carries in one.

A link begins as many chunks in ``ceil(hold / tau)`` epochs as it carries in them. The two slips of
the list are not counted as broken rules, but they are told; what breaks a rule in whatever way the
latencies are counted (`Breach`) is no plan.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ccl.problem import Problem
from ccl.schedule import Send
from ccl.topology import Link
from interchange.formats.synthesizers.te_ccl.moves import NEARLY, Move

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
        links = self.links(send)
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
                    told = f"{what} in {within} of {self.epoch_duration:g} µs"
                    yield Breach(epoch, str(link), told)
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
        told = []
        dropped = [link for link in used if link.alpha and not self.latency(link)]
        if dropped:
            longest = max(dropped, key=lambda link: link.alpha)
            told.append(
                f"latencies of {_many(len(dropped), 'link')}, up to {longest.alpha:g} µs of "
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
            told.append(
                f"{_many(len(exits), 'link')} out of switches take longer than the file counts: "
                f"{link} takes {self.spread(link)} epochs for a chunk"
            )
        return told + self._hurried(moves)

    def _hurried(self, moves: Sequence[Move]) -> list[str]:
        """Say which chunks leave before their latency, or a slow link, lets them."""
        found: dict[bool, list[tuple[Send, Send]]] = {True: [], False: []}
        for move in moves:
            for place in move.after:
                came = moves[place].send
                if came.epoch < move.send.epoch < came.epoch + self.delay(came):
                    alone = came.epoch + self.delay(came, alphas=False) <= move.send.epoch
                    found[alone].append((came, move.send))
        told = []
        for alphas, pairs in found.items():
            if not pairs:
                continue
            came, left = min(pairs, key=lambda pair: pair[1].epoch)
            why = "latency is ignored" if alphas else "a slow link counts as a quick one"
            left_at = f"chunk {left.chunk} leaves {left.src} in epoch {left.epoch}"
            came_by = f"sent there over {'->'.join(_stops(came))} in epoch {came.epoch}"
            told.append(
                f"a rule is broken: {why} {_many(len(pairs), 'time')}: first, {left_at}, "
                f"{came_by}, which takes {self.delay(came)} epochs"
            )
        return told


def _stops(send: Send) -> tuple[str, ...]:
    return send.src, *send.via, send.dst


def _leaves(send: Send, why: str) -> str:
    """Say that a chunk leaves before it arrived."""
    return f"epoch {send.epoch}: {send} leaves before it arrived; {why}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
