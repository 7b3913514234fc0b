"""A plan with its replay and the causes in it: the source of every text about it.

Sends are described by templates with placeholders (`templates`), which the canvas fills in as well.
Placeholders are names in braces:

* `src`, `dst`: the devices of the link;
* `chunk`: the chunk by its label, or the share of it that is sent, or the terms of a sum;
* `start`, `end`, `ready`, `wait`: µs as `number` writes them; `wait` is from `ready` to `start`;
* `before`, `from`, `over`: of the transfer that let this one start the chunk, the device it
  leaves, and its link;
* in `PLANNED`, `epoch` and `planned`: the epoch and when it begins.

`breakdown` takes a makespan apart along the critical path: latencies, bytes, waiting.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ccl.errors import ProblemError
from ccl.plans import Flow, Forest, Schedule
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.text import enumerate_words, number
from ccl.timeline import Cause, Reason, Timeline, Transfer, causes, trace_critical
from ccl.verify import verify

_SENDS = "{src} sends {chunk} to {dst} at {start} µs, there at {end} µs: "

_WAITED = "it was at {src} from {ready} µs on and waited {wait} µs "

TEMPLATES: Mapping[Reason, str] = {
    Reason.AT_ONCE: f"{_SENDS}at once.",
    Reason.NOT_THERE: f"{_SENDS}as soon as all of it had come, last from {{from}}.",
    Reason.LINK_BUSY: f"{_SENDS}{_WAITED}for the link, busy with {{before}}.",
    Reason.PASSED_ON: f"{_SENDS}passed on byte by byte as it comes from {{from}}.",
    Reason.FURTHER_ON: f"{_SENDS}{_WAITED}for {{over}} further on, busy with {{before}}.",
    Reason.MEETS: f"{_SENDS}{_WAITED}to meet what comes from {{from}} in a switch that adds.",
    Reason.LIMIT: f"{_SENDS}{_WAITED}for a limit that its link shares with others.",
    Reason.CLOSED: f"{_SENDS}{_WAITED}for the link, which let nothing through before.",
    Reason.PLANNED: f"{_SENDS}{_WAITED}because the plan starts it only then.",
}
"""The sentence of a send for each reason."""

PART = "{share} % of {chunk}"
"""What is sent where it is not a whole chunk."""

EARLIER = " Planned for epoch {epoch}, from {planned} µs on."
"""What is added where the epoch of the plan begins after the send does."""


def chunk_label(problem: Problem, chunk: int) -> str:
    """Name a chunk for people: where it comes from, and where it goes if that is one rank."""
    asked, ranks = problem.collective.chunks[chunk], problem.topology.ranks
    if asked.reduced:
        return f"sum {chunk}"
    start = ranks[asked.holders[0]]
    if len(asked.destinations) == 1:
        return f"chunk {chunk} ({start} → {ranks[asked.destinations[0]]})"
    return f"chunk {chunk} of {start}"


def terms_label(terms: Iterable[int]) -> str:
    """Name the ranks whose contributions to a sum are sent."""
    ranks = [str(rank) for rank in sorted(terms)]
    return f"rank{'s' if len(ranks) > 1 else ''} {enumerate_words(ranks)}"


def templates() -> dict[str, str]:
    """Return the templates by the words of their reasons, and `part` and `earlier`, as JSON."""
    by_reason = {reason.value: template for reason, template in TEMPLATES.items()}
    return {**by_reason, "part": PART, "earlier": EARLIER}


Plan = Schedule | Forest | Flow

MOST_UNFOLDED = 200_000
"""Transfers of a symmetric forest that are written out; of more, those of one tree of each kind."""

_SAME = 1e-7
"""Shares of a chunk within this of 1 are all of it; times within this of the makespan are one."""


@dataclass(frozen=True)
class PlanReport:
    """A replayed plan; make it with `report`.

    Parameters
    ----------
    problem, plan, timeline
        The problem, the answer and its replay; of a symmetric forest the replay of all trees,
        unless that is too large.
    """

    problem: Problem
    plan: Plan
    timeline: Timeline

    @property
    def transfers(self) -> Sequence[Transfer]:
        """The transfers of the replay."""
        return self.timeline.transfers

    @cached_property
    def causes(self) -> tuple[Cause, ...]:
        """Why each of them started when it did."""
        return causes(self.problem, self.timeline)

    @cached_property
    def critical(self) -> tuple[int, ...]:
        """Places of the transfers of the critical path."""
        return trace_critical(self.problem, self.timeline, known=self.causes)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Each chunk by its name for people."""
        return tuple(chunk_label(self.problem, i) for i in range(len(self.sizes)))

    @cached_property
    def sizes(self) -> tuple[float, ...]:
        """Bytes of each chunk."""
        return tuple(chunk.size for chunk in self.problem.collective.chunks)

    @cached_property
    def stores(self) -> frozenset[str]:
        """Names of the devices that store."""
        return frozenset(each.name for each in self.problem.topology.devices if each.stores)

    def what(self, i: int) -> str:
        """Name what a transfer carries: a chunk, a share of one, or some terms of a sum."""
        own = self.transfers[i]
        share = own.nbytes / self.sizes[own.chunk]
        label = self.labels[own.chunk]
        terms = self.timeline.terms[i] if self.timeline.terms else None
        if terms is not None:
            return f"{label} of {terms_label(terms)}"
        if abs(share - 1) <= _SAME:
            return label
        return PART.format(share=number(100 * share, 3), chunk=label)

    def waited(self, i: int) -> float:
        """Return the µs for which what a transfer carries lay at its source."""
        waited = round_digits(self.transfers[i].start) - round_digits(self.causes[i].ready)
        return waited if waited > _SAME * self.timeline.makespan else 0.0

    def sentence(self, i: int) -> str:
        """Describe a transfer in one sentence, and in a second that it was planned for later."""
        own, cause = self.transfers[i], self.causes[i]
        by = None if cause.by is None else self.transfers[cause.by]
        sentence = TEMPLATES[cause.reason].format_map(
            {
                "src": own.src,
                "dst": own.dst,
                "chunk": self.what(i),
                "start": number(own.start),
                "end": number(own.end),
                "ready": number(cause.ready),
                "wait": number(self.waited(i)),
                "before": "" if by is None else self.labels[by.chunk],
                "from": "" if by is None else by.src,
                "over": "" if by is None else f"{by.src} → {by.dst}",
            }
        )
        planned = self.planned(i)
        if planned is None or planned <= own.start + _SAME * self.timeline.makespan:
            return sentence
        return sentence + EARLIER.format(epoch=own.epoch, planned=number(planned))

    def planned(self, i: int) -> float | None:
        """Return the µs at which the epoch of a transfer begins, None where it has none."""
        if not isinstance(self.plan, Schedule):
            return None
        return self.transfers[i].epoch * self.plan.epoch_duration


def round_digits(value: float) -> float:
    """Keep eight significant digits, as scenes do, so that the canvas finds the same difference.

    It is half the text, and no eye sees the rest.
    """
    return float(f"{value:.8g}")


def report(problem: Problem, plan: Plan, timeline: Timeline | None = None) -> PlanReport:
    """Replay a plan, unless its replay is given, and report the causes in it.

    Raises
    ------
    ScheduleError
        If no replay is given and the plan breaks a rule.
    """
    if timeline is None:
        verify(problem, plan)
        timeline = simulate(problem, plan)
    few = timeline.images * len(timeline.transfers) <= MOST_UNFOLDED
    if timeline.images > 1 and isinstance(plan, Forest) and few:
        timeline = simulate(problem, plan.unfolded(problem.topology), chunks=timeline.chunks)
    return PlanReport(problem, plan, timeline)


def rank_name(problem: Problem, rank: int) -> str:
    """Return the device of a rank.

    Raises
    ------
    ProblemError
        If there is no such rank.
    """
    ranks = problem.topology.ranks
    if not 0 <= rank < len(ranks):
        raise ProblemError(
            f"there is no rank {rank} on {problem.topology}; ranks go from 0 to {len(ranks) - 1}"
        )
    return ranks[rank]


_NOTHING = 1e-9
"""Shares of the makespan below this are rounding errors."""


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The parts of a makespan in µs, which add up to it.

    Parameters
    ----------
    alphas
        Latencies of the links along the critical path. Where a send over several links waits for
        one further on, those before it do not: its first bytes are in flight before that is
        free. One is negative where the path does not go over that link.
    sending
        µs in which bytes were put on links at their bandwidth.
    slowed
        µs that this took longer, under shared limits and with less bandwidth for a time.
    waiting
        µs in which nothing of the path was sent: for a limit, a window or the plan.
    """

    alphas: tuple[float, ...]
    sending: float
    slowed: float
    waiting: float

    @property
    def latency(self) -> float:
        """Sum of the latencies in µs."""
        return sum(self.alphas)

    @property
    def total(self) -> float:
        """Sum of all parts in µs: the makespan."""
        return self.latency + self.sending + self.slowed + self.waiting

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """Describe the parts in one line, without those that are nothing."""
        least = _NOTHING * self.total
        parts = [f"bytes {number(self.sending)} µs"]
        if self.latency > least:
            parts.insert(0, f"alpha {_added(self.alphas)}")
        if self.slowed > least:
            parts.append(f"slowed down {number(self.slowed)} µs")
        if self.waiting > least:
            parts.append(f"waiting {number(self.waiting)} µs")
        return f"{number(self.total)} µs = {' + '.join(parts)}"


def breakdown(described: PlanReport) -> Breakdown:
    """Take the makespan of a replay apart along its critical path."""
    parts = _Parts(described)
    path = described.critical
    for place, i in enumerate(path):
        own = described.transfers[i]
        if not place:
            parts.waiting += own.start
        if place + 1 < len(path):
            after = path[place + 1]
            parts.until(own, described.transfers[after], described.causes[after])
        else:
            parts.arrival(own)
    parts.settle()
    alphas = tuple(each for each in parts.alphas if each)
    return Breakdown(alphas, parts.sending, parts.slowed, parts.waiting)


class _Parts:
    """The sums, and how a transfer adds to them."""

    def __init__(self, described: PlanReport) -> None:
        self._link = described.problem.topology.link
        self.alphas: list[float] = []
        self.sending = self.slowed = self.waiting = 0.0
        # µs that a send set out before a link further on was free.
        self._ahead = 0.0
        self._least = _NOTHING * described.timeline.makespan

    def until(self, own: Transfer, later: Transfer, cause: Cause) -> None:
        """Count from the start of a transfer to that of the one that it lets start."""
        if cause.reason is Reason.PASSED_ON and self._ahead > self._least:
            self._ahead -= later.start - own.start
            return
        self.settle()
        if cause.reason is Reason.PASSED_ON:
            alpha = self._link(own.src, own.dst).alpha
            self.alphas.append(alpha)
            # Until the next link can send without a pause.
            self.sending += later.start - own.start - alpha
        elif cause.reason is Reason.MEETS:
            self.alphas.append(later.start - own.start)
        elif cause.reason is Reason.FURTHER_ON:
            self._sends(own)
            self._ahead = own.sent - later.start
        elif cause.reason is Reason.LINK_BUSY or not _brings(own, later):
            self._sends(own)
            self.waiting += later.start - own.sent
        elif cause.reason is Reason.NOT_THERE or later.start >= own.end:
            self.arrival(own)
            self.waiting += later.start - own.end
        else:  # its first bytes were there, and had to wait
            alpha = self._link(own.src, own.dst).alpha
            self.alphas.append(alpha)
            self.waiting += later.start - own.start - alpha

    def settle(self) -> None:
        """Count what is left of setting out ahead of a link that was not come to."""
        if abs(self._ahead) > self._least:
            self.alphas.append(-self._ahead)
        self._ahead = 0.0

    def arrival(self, own: Transfer) -> None:
        """Count from the start of a transfer until it has arrived."""
        alpha = self._link(own.src, own.dst).alpha
        self._sends(own)
        self.alphas.append(alpha)

    def _sends(self, own: Transfer) -> None:
        needed = own.nbytes * self._link(own.src, own.dst).beta
        self.sending += needed
        self.slowed += own.sent - own.start - needed


def _brings(own: Transfer, later: Transfer) -> bool:
    """Return whether a transfer brings what a later one sends, rather than leaves its link."""
    return own.dst == later.src and own.chunk == later.chunk


def _added(alphas: tuple[float, ...]) -> str:
    """Write latencies as a sum, the same ones as a product."""
    total = f"{number(sum(alphas))} µs"
    if any(each < 0 for each in alphas):
        return total
    counts = Counter(number(each) for each in alphas)
    terms = " + ".join(f"{many} × {each}" for each, many in counts.items())
    return f"{terms} µs" if len(counts) == 1 else f"({terms}) µs"
