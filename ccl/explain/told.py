"""A plan with its replay and the causes in it: what everything that is told of it is taken from.

The words in which a send is told: templates with holes, which the canvas fills in as well.

The holes, each a name in braces:

* `src`, `dst`: the devices of the link;
* `chunk`: the chunk by its label, or the share of it that is sent;
* `start`, `end`, `ready`, `wait`: µs as `number` writes them; `wait` is from `ready` to `start`;
* `before`, `from`, `over`: of the transfer that let this one start the chunk, the device it
  leaves, and its link;
* in `PLANNED`, `epoch` and `planned`: the epoch and when it begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from ccl.errors import ProblemError
from ccl.plans import Flow, Forest, Schedule
from ccl.problem import Problem
from ccl.simulate import simulate
from ccl.text import number
from ccl.timeline import Cause, Reason, Timeline, Transfer, causes, critical
from ccl.verify import verify

_SENDS = "{src} sends {chunk} to {dst} at {start} µs, there at {end} µs: "

_WAITED = "it was at {src} from {ready} µs on and waited {wait} µs "

PHRASES: Mapping[Reason, str] = {
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


def phrases() -> dict[str, str]:
    """Return the templates by the words of their reasons, and `part` and `earlier`, as JSON."""
    told = {reason.value: template for reason, template in PHRASES.items()}
    return {**told, "part": PART, "earlier": EARLIER}


Plan = Schedule | Forest | Flow

MOST_UNFOLDED = 200_000
"""Transfers of a symmetric forest that are written out; of more, those of one tree of each kind."""

_SAME = 1e-7
"""Shares of a chunk within this of 1 are all of it; times within this of the makespan are one."""


@dataclass(frozen=True)
class Told:
    """A replayed plan; make it with `tell`.

    Parameters
    ----------
    problem, plan, timeline
        What was asked, the answer and its replay; of a symmetric forest the replay of all trees,
        unless that is too large.
    """

    problem: Problem
    plan: Plan
    timeline: Timeline

    @property
    def transfers(self) -> tuple[Transfer, ...]:
        """The transfers of the replay."""
        return self.timeline.transfers

    @cached_property
    def causes(self) -> tuple[Cause, ...]:
        """Why each of them started when it did."""
        return causes(self.problem, self.timeline)

    @cached_property
    def critical(self) -> tuple[int, ...]:
        """Places of the transfers of the critical path."""
        return critical(self.problem, self.timeline, known=self.causes)

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
        """Name what a transfer carries: a chunk or a share of one."""
        own = self.transfers[i]
        share = own.nbytes / self.sizes[own.chunk]
        label = self.labels[own.chunk]
        if abs(share - 1) <= _SAME:
            return label
        return PART.format(share=number(100 * share, 3), chunk=label)

    def waited(self, i: int) -> float:
        """Return the µs for which what a transfer carries lay at its source."""
        waited = _as_shown(self.transfers[i].start) - _as_shown(self.causes[i].ready)
        return waited if waited > _SAME * self.timeline.makespan else 0.0

    def sentence(self, i: int) -> str:
        """Tell a transfer in one sentence, and in a second that it was planned for later."""
        own, cause = self.transfers[i], self.causes[i]
        by = None if cause.by is None else self.transfers[cause.by]
        told = PHRASES[cause.reason].format_map(
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
            return told
        return told + EARLIER.format(epoch=own.epoch, planned=number(planned))

    def planned(self, i: int) -> float | None:
        """Return the µs at which the epoch of a transfer begins, None where there is none."""
        if not isinstance(self.plan, Schedule):
            return None
        return self.transfers[i].epoch * self.plan.epoch_duration


def _as_shown(time: float) -> float:
    """Return µs as scenes have them, so that the canvas finds the same difference."""
    return float(f"{time:.8g}")


def tell(problem: Problem, plan: Plan, timeline: Timeline | None = None) -> Told:
    """Replay a plan, unless its replay is given, and make it ready to be told.

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
    return Told(problem, plan, timeline)


def rank_name(problem: Problem, rank: int) -> str:
    """Return the device of a rank.

    Raises
    ------
    ProblemError
        If there is no such rank.
    """
    ranks = problem.topology.ranks
    if not 0 <= rank < len(ranks):
        msg = f"there is no rank {rank} on {problem.topology}; ranks go from 0 to {len(ranks) - 1}"
        raise ProblemError(msg)
    return ranks[rank]
