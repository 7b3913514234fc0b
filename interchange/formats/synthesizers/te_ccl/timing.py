"""From the sends of a TE-CCL schedule to one of ours, and what the file says beside its replay.

The file's grid is kept as far as it holds. In turn: the lines as they stand; with switches crossed
without a stop; on epochs longer by the latencies that TE-CCL drops; and last, when a slip of its
grid is more than that, in the file's order with epochs of their own: what a send waits for, and
what its links carry before it, is done in earlier ones.

`Findings` compare what the file says of itself with what its replay takes.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter

from ccl.errors import FormatError
from ccl.plans import Schedule, Send
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.simulate.transmissions import plan_sends
from ccl.topology import binding_limits
from interchange.formats.fields import select_sentences
from interchange.formats.format import Report
from interchange.formats.synthesizers.te_ccl.demand import Wanted
from interchange.formats.synthesizers.te_ccl.file import Output
from interchange.formats.synthesizers.te_ccl.moves import NEARLY, Move, Moves, Rules


@dataclass(frozen=True)
class Timed:
    """A schedule made of a file.

    Parameters
    ----------
    schedule
        What is sent when.
    notes
        How its epochs differ from the file's, in words, or nothing.
    in_turn
        Whether it has epochs of its own.
    broken
        The rules that the file breaks, in sentences, where it may.
    """

    schedule: Schedule
    notes: str = ""
    in_turn: bool = False
    broken: tuple[str, ...] = ()


def on_grid(problem: Problem, sends: Sequence[Send], *, tau: float, epochs: int) -> Schedule:
    """Return sends in their epochs; there are as many of these as the last needs, or `epochs`."""
    last = max((send.epoch for send in sends), default=0)
    drafted = Schedule(tuple(sends), tau, max(epochs, last + 1))
    ends = plan_sends(problem, drafted, binding_limits(problem.topology)).ends.tolist()
    needed = math.ceil(max(ends, default=0.0) / tau * (1 - 1e-9))
    return replace(drafted, horizon=max(drafted.horizon, needed))


def lengthened(rules: Rules, moves: Sequence[Move]) -> float:
    """Return the epoch duration that also holds what TE-CCL drops, in µs.

    Dropped latencies are at most a tenth of it for each link, and its solver overloads links by
    a thousandth at most.
    """
    over = 1.0
    for link, loads in rules.loads(moves).items():
        over = max(over, max(loads.values()) / rules.carries(link)) if rules.fluid else over
    dropped = [
        sum(link.alpha for link in rules.links(move.send) if not rules.latency(link))
        for move in moves
    ]
    return rules.epoch_duration * min(over, 1 + NEARLY) + max(dropped, default=0.0)


def in_turn(problem: Problem, moves: Sequence[Move]) -> Schedule:
    """Return a schedule that keeps the order of the moves, in epochs as long as the slowest takes.

    Each is in the first epoch after those of what it waits for and of what its links carry before,
    so that nothing is in the way of anything; the replay closes the gaps.

    Raises
    ------
    FormatError
        If moves wait for one another.
    """
    groups, sends, last = _groups(moves), [], defaultdict[object, int](lambda: -1)
    epochs = [0] * len(moves)
    for number in _turns(moves, groups):
        sharing = [moves[place] for place in groups[number]]
        links = {ends for move in sharing for ends in move.send.hops}
        before = [epochs[each] for move in sharing for each in move.after]
        epoch = 1 + max([*before, *(last[ends] for ends in links)])
        last.update(dict.fromkeys(links, epoch))
        for place, move in zip(groups[number], sharing, strict=True):
            epochs[place] = epoch
            sends.append(replace(move.send, epoch=epoch))
    sends.sort(key=attrgetter("epoch"))
    return Schedule(tuple(sends), _longest(problem, moves), 1 + max(epochs))


def _longest(problem: Problem, moves: Sequence[Move]) -> float:
    """Return the µs in which each of the moves is done, limits shared with others or not."""
    topology, chunks = problem.topology, problem.collective.chunks
    shared = [
        sum(topology.link(*ends).bandwidth for ends in limit.links) / limit.bandwidth
        for limit in binding_limits(topology)
    ]
    took = (
        sum(topology.link(*ends).transfer_time(chunks[send.chunk].size) for ends in send.hops)
        for send in (each.send for each in moves)
    )
    return max(shared, default=1.0) * max(took)


def _groups(moves: Sequence[Move]) -> list[list[int]]:
    """Return the places of moves that cross links together, as a multicast does."""
    found: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, move in enumerate(moves):
        send = move.send
        together = send.fraction == 1 and send.via
        key = (send.epoch, send.chunk, send.src, send.via[0]) if together else (place,)
        found[key].append(place)
    return list(found.values())


def _turns(moves: Sequence[Move], groups: Sequence[Sequence[int]]) -> Iterator[int]:
    """Yield the groups, the first in the file of those whose waiting is over."""
    import networkx  # noqa: PLC0415  heavy, and only schedules off their grid need it

    group_of = {place: number for number, group in enumerate(groups) for place in group}
    waits = {
        number: {group_of[each] for place in group for each in moves[place].after}
        for number, group in enumerate(groups)
    }
    graph: networkx.DiGraph[int] = networkx.DiGraph()
    graph.add_nodes_from(waits)
    graph.add_edges_from((each, number) for number, before in waits.items() for each in before)
    try:
        yield from networkx.lexicographical_topological_sort(graph)
    except networkx.NetworkXUnfeasible:
        send = moves[groups[networkx.find_cycle(graph)[0][0]][0]].send
        raise FormatError(f"epoch {send.epoch}: {send} waits for what waits for it") from None


SAME = 1e-6
"""Share of an epoch, and of a time, that is no difference."""


@dataclass(frozen=True)
class Findings:
    """A file, the problem that it is a plan of, what it sends, and the schedule made of it."""

    output: Output
    want: Wanted
    moves: Moves
    timed: Timed

    def report(self) -> Report:
        """Return the sentences."""
        collective = self.want.problem.collective
        ranks = len(self.want.problem.topology.ranks)
        sends = len(self.timed.schedule.sends)
        what = f"{collective.kind} of {len(collective.chunks)} chunks among {ranks} GPUs"
        when = f"{self.epochs} epochs of {self.output.epoch_duration:g} µs"
        notes = (self.timed.notes,) if self.timed.notes else ()
        return Report(
            (f"{what}: {sends} sends in {when}", self._compared(), self._bandwidth()),
            (*self.timed.broken, *notes, *self.slips, *self.odd),
            self._left_out(),
        )

    @cached_property
    def epochs(self) -> int:
        """Number of epochs that the file says, or else that its flows need."""
        return self.output.epochs or self.timed.schedule.horizon

    @cached_property
    def stated(self) -> float:
        """Makespan in µs as the file says, or else as its epochs do."""
        return self.output.makespan or self.epochs * self.output.epoch_duration

    @cached_property
    def makespan(self) -> float:
        """µs that the replay takes."""
        return simulate(self.want.problem, self.timed.schedule).makespan

    @cached_property
    def rules(self) -> Rules:
        """TE-CCL's grid of the file."""
        return Rules(self.want.problem, self.output.epoch_duration, self.output.fluid)

    @cached_property
    def slips(self) -> Sequence[str]:
        """What its epochs do not count, where they do not hold as they stand."""
        return self.rules.slips(self.moves.moves) if self.timed.notes else ()

    @cached_property
    def odd(self) -> Sequence[str]:
        """Where what it states does not fit its own flows."""
        notes = []
        tau, epochs, makespan = self.output.epoch_duration, self.output.epochs, self.output.makespan
        if epochs is not None and makespan is not None:
            product = epochs * tau
            if abs(product - makespan) > SAME * product:
                notes.append(
                    f"{epochs} epochs of {tau:g} µs are {product:g} µs, and the file says "
                    f"{makespan:g} µs"
                )
        last = max((move.send for move in self.moves.moves), key=lambda send: send.epoch)
        needed = last.epoch + 1 if self.timed.in_turn else self.timed.schedule.horizon
        if epochs is not None and needed > epochs:
            notes.append(f"its flows need {needed} epochs, the last {last}, and it says {epochs}")
        apart = self.moves.apart
        if apart and self.output.paths:
            notes.append(
                f"the flows of {len(apart)} chunks are not those of their paths and count: first, "
                f"chunk {apart[0].chunk} from {apart[0].source}"
            )
        return [*notes, *self._early()]

    def _early(self) -> list[str]:
        """Say which demand is said to be met before anything that brings it has arrived."""
        names = self.want.names
        tau = self.output.epoch_duration
        brought: dict[tuple[int, str], int] = {}
        for move in self.moves.moves:
            key = move.send.chunk, move.send.dst
            brought[key] = max(brought.get(key, 0), move.send.epoch + 1)
        found = []
        for (at, piece), time in self.output.demands.items():
            chunk = self.want.chunks.get(piece)
            if time is None or chunk is None:
                continue
            epoch = brought.get((chunk, names[at]), 0)
            if time < epoch * tau * (1 - SAME):
                found.append((time, at, piece, epoch))
        if not found:
            return []
        time, at, piece, epoch = min(found, key=lambda each: each[0])
        many = "once" if len(found) == 1 else f"{len(found)} times"
        what = f"{names[at]} is to have chunk {piece.chunk} of {names[piece.source]}"
        when = f"is sent it in epoch {epoch - 1}, which ends at {epoch * tau:g} µs"
        return [f"Demand_Met is too early {many}: {what} at {time:g} µs and {when}"]

    def _compared(self) -> str:
        """Say whether the replay takes as long as the file says, within an epoch, or why not."""
        tau, stated, makespan = self.output.epoch_duration, self.stated, self.makespan
        away = (makespan - stated) / tau
        both = f"the file says {stated:g} µs and the replay takes {makespan:g} µs"
        if abs(away) <= 1 + SAME:
            return f"{both}: they agree within one epoch"
        counted = self._counted() * tau
        why = self._why(later=away > 0)
        if counted < stated - tau * (1 + SAME):
            why = f"its flows are done after {counted:g} µs, counted in whole epochs as it does"
        differs = f"{abs(away):.3g} epochs {'later' if away > 0 else 'earlier'}: {why}"
        if abs(counted - stated) <= tau * (1 + SAME):
            return (
                f"the file says {stated:g} µs and its flows take {counted:g} µs as it counts: they "
                f"agree within one epoch; the replay, which waits for no epoch, takes "
                f"{makespan:g} µs, {differs}"
            )
        return f"{both}, {differs}"

    def _counted(self) -> int:
        """Return the epochs that it takes by TE-CCL's own count until the last demand is met."""
        ranks, chunks = self.want.problem.topology.ranks, self.want.problem.collective.chunks
        ends = [{ranks[rank] for rank in chunk.destinations} for chunk in chunks]
        sends = [move.send for move in self.moves.moves]
        return max(
            (each.epoch + self.rules.delay(each) for each in sends if each.dst in ends[each.chunk]),
            default=0,
        )

    def _why(self, *, later: bool) -> str:
        """Name the rule that explains a difference of more than an epoch."""
        broken = [*self.timed.broken, *(each for each in self.slips if "is broken" in each)]
        if self.odd or broken:
            return [*broken, *self.odd][0]
        if later:
            switches = (
                "what crosses a switch holds all of its links at once here, and in the file each "
                "in an epoch of its own"
            )
            return self.slips[-1] if self.slips else switches
        used = {
            link.ends: link for move in self.moves.moves for link in self.rules.links(move.send)
        }
        quick = max(used.values(), key=lambda link: link.bandwidth)
        took = self.output.epoch_duration / self.rules.carries(quick) + quick.alpha
        through = any(move.send.via for move in self.moves.moves)
        each = "link, into a switch and out of it too," if self.rules.fluid and through else "hop"
        return (
            f"every {each} takes whole epochs in the file, and here the time that it needs "
            f"({quick} {took:g} µs for a chunk)"
        )

    def _bandwidth(self) -> str:
        """Say the bandwidth, and what that of the file leaves out."""
        size = self.want.problem.collective.size
        notes = f"algbw is {size * 1e-3 / self.makespan:.4g} GB/s as replayed"
        stated = self.output.algbw
        if stated is None:
            return notes
        exact = size * 1e-3 / self.stated
        if abs(exact - stated) <= 1e-3 * exact:
            return f"{notes} and {stated:.4g} as stated"
        whole = f"{notes} and {exact:.4g} over the stated time"
        return f"{whole}; the {stated:.4g} of the file is of GPUs × one chunk"

    def _left_out(self) -> tuple[str, ...]:
        moves, others, seconds = self.moves, self.output.others, self.output.solve_time
        named = ", ".join(each[:40] for each in others[:4])
        return (
            *select_sentences(
                (moves.twice, f"{moves.twice} flows that bring what is there already"),
                (moves.unwanted, f"{moves.unwanted} flows of chunks that nobody wants"),
                (others, f"what it says of {named}"),
            ),
            *([] if seconds is None else [f"the {seconds:.3g} s that it was solved in"]),
        )
