"""Candidates side by side: which are the best in two respects at once, and why.

A candidate is dominated if another is no worse in both respects and better in one, where a
difference of 0.01 % is none. All respects are such that less is better.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, get_args

import numpy as np

from ccl import text
from ccl.topology import Topology
from formulations.proposals.request import KINDS, Kind, Request, Use
from formulations.proposals.scores import Score, ports_bound

Axis = Literal[
    "mix",
    "all-to-all",
    "all-gather",
    "all-reduce",
    "latency",
    "hops",
    "cables",
    "switches",
    "dollars",
    "watts",
    "metres",
]
"""In what respect: µs of the mix, µs of 1 GB of a kind, µs of latencies to the farthest GPU, cables
between two GPUs on average, how many cables and switches, and what a bill says of both."""

AXES: tuple[Axis, ...] = get_args(Axis)

SLACK = 1e-4
"""Share by which a difference is one."""

GIGABYTE = 1e9
"""Bytes of a collective whose time is a respect."""

NOTED = 0.02
"""Share by which figures differ that a sentence names."""


class Span(Protocol):
    """A figure that is not known exactly."""

    @property
    def typical(self) -> float:
        """What it is, usually."""


class Bill(Protocol):
    """What a network costs."""

    @property
    def network_dollars(self) -> Span:
        """Of switches and cables."""

    @property
    def network_watts(self) -> Span:
        """Of switches and cables."""

    @property
    def metres(self) -> float:
        """Of all cables."""


class Prices(Protocol):
    """What can be bought; `gallery.costs` knows."""

    def bill(self, topology: Topology) -> Bill | None:
        """Return what a network costs, None where some of it cannot be bought."""

    def between(self, gpus: int, bandwidth: float) -> np.ndarray | None:
        """Return what a cable of so many GB/s between any two GPUs costs, None if alike.

        The GPUs stand in racks in the order of their numbers; shape (gpus, gpus).
        """


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A network that is proposed.

    Parameters
    ----------
    topology
        The network, a drawing like any other.
    family
        What it is one of.
    score
        What it can do.
    time
        µs of the mix.
    one_way
        Whether its links go one way, which takes split fibres.
    bill
        What it costs, where somebody knows.
    """

    topology: Topology
    family: str
    score: Score
    time: float
    one_way: bool = False
    bill: Bill | None = None

    @property
    def name(self) -> str:
        """Name of the network."""
        return self.topology.name

    def along(self, axis: Axis) -> float | None:
        """Return its value in a respect, None where it is not known."""
        score, bill = self.score, self.bill
        if axis in {"dollars", "watts", "metres"}:
            if bill is None:
                return None
            spans = {"dollars": bill.network_dollars, "watts": bill.network_watts}
            return spans[axis].typical if axis in spans else bill.metres
        if axis in KINDS:
            rate = score.rates.get(axis)
            return None if rate is None else rate.time(GIGABYTE)
        plain = {"mix": self.time, "latency": score.alpha, "hops": score.hops}
        return plain[axis] if axis in plain else float(getattr(score, axis))


def pareto(
    candidates: Iterable[Candidate], first: Axis = "mix", second: Axis = "latency"
) -> tuple[Candidate, ...]:
    """Return those that no other dominates, the best in the first respect first.

    Those whose value in a respect is not known are left out; equal ones all stay.
    """
    known = []
    for each in candidates:
        across, up = each.along(first), each.along(second)
        if across is not None and up is not None:
            known.append(((across, up), each))
    known.sort(key=lambda row: row[0])
    kept = undominated([place for place, _ in known])
    return tuple(known[i][1] for i in kept)


def undominated(places: Sequence[tuple[float, float]]) -> list[int]:
    """Return which of several pairs of values no other dominates; less is better."""
    return [
        i for i, mine in enumerate(places) if not any(_dominates(other, mine) for other in places)
    ]


def _dominates(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Return whether one is as good in both respects and better in one."""
    worse = any(a > b * (1 + SLACK) for a, b in zip(one, other, strict=True))
    better = any(a < b * (1 - SLACK) for a, b in zip(one, other, strict=True))
    return better and not worse


@dataclass(frozen=True, kw_only=True)
class Front:
    """What has been found so far.

    Parameters
    ----------
    request
        What was wanted.
    candidates
        All that have been scored, the best at the mix first.
    stage
        What the search does, in words.
    seconds
        Since it began.
    per_host
        GPUs of each host.
    left_out
        Networks that could not be scored exactly.
    not_tried
        What was not tried, why, and what there is instead, in a sentence; nothing if all was.
    done
        Whether this is the last.
    """

    request: Request
    candidates: tuple[Candidate, ...]
    stage: str
    seconds: float
    per_host: int = 1
    left_out: int = 0
    not_tried: str = ""
    done: bool = False

    def pareto(self, first: Axis = "mix", second: Axis = "latency") -> tuple[Candidate, ...]:
        """Return those that no other is better than in both respects (`pareto`)."""
        return pareto(self.candidates, first, second)

    def within(self, dollars: float) -> Front:
        """Return the same with networks that usually cost no more, switches and cables together."""
        kept = [
            each
            for each in self.candidates
            if each.bill is not None and each.bill.network_dollars.typical <= dollars
        ]
        return replace(self, candidates=tuple(kept))

    def ranked(
        self, many: int, first: Axis = "mix", second: Axis = "latency"
    ) -> tuple[Candidate, ...]:
        """Return the best: the front first, then the others, in the order of the mix."""
        best = self.pareto(first, second)[:many]
        others = [each for each in self.candidates if each not in best]
        chosen = (*best, *others[: many - len(best)])
        return tuple(each for each in self.candidates if each in chosen)

    def bound(self, axis: Axis) -> float | None:
        """Return what no network with these ports is below, None where nothing is proved."""
        if axis == "mix":
            return sum(
                each.times * ports_bound(self.request, each, per_host=self.per_host)
                for each in self.request.mix.uses
            )
        for kind in KINDS:
            if axis == kind:
                return ports_bound(self.request, Use(kind, GIGABYTE), per_host=self.per_host)
        return None

    @property
    def reference(self) -> Candidate | None:
        """The plain network that others are compared with: the best torus, or leaves and spines."""
        for family in ("torus", "leaf-spine"):
            for each in self.candidates:
                if each.family == family:
                    return each
        return self.candidates[-1] if self.candidates else None

    def why(self, candidate: Candidate) -> str:
        """Say in figures why a candidate is better than the reference, and what it takes."""
        against = self.reference
        parts = [] if against is None or against is candidate else _compared(candidate, against)
        parts += [_near(candidate, self)]
        if candidate.one_way:
            parts.append("Its links go one way, which takes split fibres")
        return " ".join(text.sentence(each) for each in parts if each)


def _compared(candidate: Candidate, other: Candidate) -> list[str]:
    """Return sentences on what is better, and on what is worse."""
    mine, theirs = candidate.score, other.score
    faster, slower = [], []
    for kind, rate in mine.rates.items():
        ratio = rate.algbw / theirs.rates[kind].algbw
        if ratio > 1 + NOTED:
            faster.append(f"{kind} {text.digits(ratio)} × as fast")
        elif ratio < 1 - NOTED:
            slower.append(f"{text.digits(1 / ratio)} × as long for {kind}")
    said = []
    if faster:
        why = ""
        if mine.hops < theirs.hops * (1 - NOTED):
            there, here = text.digits(theirs.hops), text.digits(mine.hops)
            why = f", as data cross {here} cables on average instead of {there}"
        said.append(f"moves {text.enumerate_words(faster)} as {other.name}{why}")
    if slower:
        said.append(f"takes {text.enumerate_words(slower)} as {other.name}")
    takes, saves = _paid(candidate, other), _paid(other, candidate)
    if takes:
        said.append(f"it needs {text.enumerate_words(takes)}")
    if saves and not faster:
        said.append(f"{other.name} needs {text.enumerate_words(saves)}")
    return said


def _paid(candidate: Candidate, other: Candidate) -> list[str]:
    """Say of what a candidate has more than another."""
    mine, theirs = candidate.score, other.score
    found = []
    for what, here, there in (
        ("cable", mine.cables, theirs.cables),
        ("switch", mine.switches, theirs.switches),
    ):
        if here > there * (1 + NOTED):
            found.append(f"{text.count(here, what)} instead of {there:,}")
    if mine.alpha > theirs.alpha * (1 + NOTED):
        longer, usual = text.duration(mine.alpha), text.duration(theirs.alpha)
        found.append(f"{longer} of latency to the farthest GPU instead of {usual}")
    if candidate.bill is not None and other.bill is not None:
        more = candidate.bill.network_dollars.typical - other.bill.network_dollars.typical
        if more > 0:
            found.append(f"about ${more:,.0f} more")
    return found


def _near(candidate: Candidate, front: Front) -> str:
    """Say how much faster a network with these ports could be at what counts."""
    request = front.request
    kind: Kind = "all-to-all" if "all-to-all" in candidate.score.rates else request.kinds[0]
    least, here = front.bound(kind), candidate.along(kind)
    if least is None or here is None:
        return ""
    ports = text.count(request.ports, "port")
    if here <= least * (1 + SLACK):
        return f"no network of {ports} for each GPU moves {kind} faster"
    share = text.share(here / least - 1)
    return f"no network of {ports} for each GPU can move {kind} more than {share} faster"
