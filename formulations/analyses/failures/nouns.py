"""What is told of every loss and of every straggler."""

from __future__ import annotations

from dataclasses import dataclass

from ccl.bound import Cut
from ccl.problem import Problem
from ccl.result import Result
from ccl.schedule import Send
from ccl.topology import Topology
from formulations.analyses.best_rate import Optimum
from formulations.analyses.failures.parts import Part

NAMED = 4
"""Most ranks that are named in a sentence."""

SMALL = 5e-6
"""Shares below this are nothing."""


@dataclass(frozen=True)
class Survival:
    """How much of today's plan a loss leaves.

    Parameters
    ----------
    makespan
        µs that the same plan takes on what is left; None where it no longer runs.
    share
        Of all bytes that the plan puts on links, the share on links that are gone.
    gone
        Sends of a schedule that cross what is gone; a forest or a flow has none to name.
    sends
        How many sends today's schedule has; 0 for other plans.
    """

    makespan: float | None
    share: float
    gone: tuple[Send, ...] = ()
    sends: int = 0

    @property
    def runs(self) -> bool:
        """Whether the plan still does what it should."""
        return self.makespan is not None


class _OfPart:
    """What is told of the part that is lost or lags."""

    part: Part

    @property
    def words(self) -> str:
        """What it is: ``a GPU, such as g0``."""
        return self.part.words

    @property
    def alike(self) -> int:
        """How many parts are like this one."""
        return self.part.alike

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the one that stands for them."""
        return self.part.names


@dataclass(frozen=True)
class Loss(_OfPart):
    """What one loss costs, and so every one of its class.

    Parameters
    ----------
    part
        What is lost.
    topology
        What is left of the cluster.
    problem
        The collective over the ranks that are left; None where it can run no more.
    optimum
        Its best steady state, with what proves it and the bottleneck cut.
    lost
        Share of today's steady algbw that is lost: 1 where the collective can run no more, below 0
        where fewer ranks do better. Where the optimum is only a bound (`Optimum.reached`), more may
        be lost.
    cut_off
        Names of ranks that are there but can no longer be reached, or reach the others.
    why
        Why there is no optimum or no plan, else empty.
    result
        A verified plan on what is left, where one was asked for and found.
    survival
        How much of today's plan is left, where there is one.
    """

    part: Part
    topology: Topology
    problem: Problem | None
    optimum: Optimum | None
    lost: float
    cut_off: tuple[str, ...] = ()
    why: str = ""
    result: Result | None = None
    survival: Survival | None = None

    @property
    def algbw(self) -> float:
        """GB/s in the steady state; 0 where the collective can run no more."""
        return 0.0 if self.optimum is None else self.optimum.algbw

    @property
    def makespan(self) -> float | None:
        """µs of each of many repetitions in the steady state; None where there is none."""
        return None if self.optimum is None else self.optimum.makespan

    @property
    def cut(self) -> Cut | None:
        """The bottleneck cut with the fewest devices inside, where a cut decides."""
        return self.optimum.cuts[-1] if self.optimum is not None and self.optimum.cuts else None

    @property
    def reached(self) -> bool:
        """Whether a plan has this rate; else no plan has a higher one."""
        return self.optimum is None or self.optimum.reached

    @property
    def severity(self) -> tuple[bool, int, float]:
        """Larger is worse: running no more, then ranks cut off, then what is lost."""
        return self.optimum is None, len(self.cut_off), self.lost

    @property
    def sentence(self) -> str:
        """What the loss does."""
        what = self.words
        if self.cut_off:
            return f"losing {what} cuts off {_listed(self.cut_off)}"
        if self.optimum is None:
            return f"losing {what} ends it: {self.why}"
        least, most = ("", "") if self.optimum.reached else ("at least ", "at most ")
        if abs(self.lost) < SMALL:
            return f"losing {what} costs {least and 'perhaps '}nothing"
        word = f"costs {least}" if self.lost > 0 else f"gains {most}"
        left = f"{most}{self.algbw:.4g} GB/s is left"
        return f"losing {what} {word.strip()} {_percent(abs(self.lost))}: {left}"


@dataclass(frozen=True)
class Failures:
    """Every single loss, one of each class.

    Parameters
    ----------
    problem
        As it is today.
    today
        Its best steady state with everything in place.
    rows
        The losses, in the order of `parts.PARTS`.
    result
        Today's plan, where schedules were asked for and one was found.
    """

    problem: Problem
    today: Optimum
    rows: tuple[Loss, ...]
    result: Result | None = None

    @property
    def worst(self) -> Loss | None:
        """The loss that does most harm; of equals the first. None where nothing can be lost.

        A loss that leaves fewer than two GPUs says nothing of the cluster and is the last choice.
        """
        telling = [each for each in self.rows if len(each.topology.ranks) > 1]
        return max(telling or self.rows, key=lambda each: each.severity, default=None)

    @property
    def words(self) -> str:
        """Name the worst in a sentence."""
        worst = self.worst
        if worst is None:
            return f"{self.problem.topology} has nothing of the kinds asked for to lose."
        if worst.optimum is not None and worst.lost < SMALL:
            many = sum(each.alike for each in self.rows)
            return f"None of {many:,} single losses costs any of {self.today.algbw:.4g} GB/s."
        before = "" if worst.optimum is None else f", of {self.today.algbw:.4g} GB/s today"
        return f"The worst case: {worst.sentence}{before}."


@dataclass(frozen=True)
class Straggler(_OfPart):
    """What one straggler costs, and so every one of its class.

    Parameters
    ----------
    part
        What lags.
    topology
        The cluster with it.
    problem
        The same collective there.
    optimum
        Its best steady state, latencies aside.
    lost
        Share of today's steady algbw that is lost.
    replayed
        µs that today's plan takes there, replayed in continuous time; None without a plan.
    result
        A verified plan made for the slowed cluster, where one was asked for and found.
    why
        Why there is no such plan, else empty.
    """

    part: Part
    topology: Topology
    problem: Problem
    optimum: Optimum
    lost: float
    replayed: float | None = None
    result: Result | None = None
    why: str = ""

    @property
    def algbw(self) -> float:
        """GB/s in the steady state."""
        return self.optimum.algbw

    @property
    def makespan(self) -> float:
        """µs of each of many repetitions in the steady state."""
        return self.optimum.makespan

    @property
    def cut(self) -> Cut | None:
        """The bottleneck cut with the fewest devices inside, where a cut decides."""
        return self.optimum.cuts[-1] if self.optimum.cuts else None

    @property
    def reached(self) -> bool:
        """Whether a plan has this rate; else no plan has a higher one."""
        return self.optimum.reached

    @property
    def replanned(self) -> float | None:
        """µs with a plan that knows of it: the new one, or today's where that is quicker."""
        times = [self.replayed, None if self.result is None else self.result.makespan]
        return min((each for each in times if each is not None), default=None)

    @property
    def wins(self) -> float | None:
        """What re-planning wins: share of the replayed time that the new plan saves."""
        if self.replayed is None or self.replanned is None or self.result is None:
            return None
        return 1 - self.replanned / self.replayed


@dataclass(frozen=True)
class Stragglers:
    """Every single straggler, one of each class.

    Parameters
    ----------
    problem
        As it is today.
    alpha, beta
        Factors of the latency and of the time per byte of what lags.
    today
        Its best steady state with nothing lagging.
    rows
        The stragglers, in the order of `parts.PARTS`.
    result
        Today's plan, where schedules were asked for and one was found.
    """

    problem: Problem
    alpha: float
    beta: float
    today: Optimum
    rows: tuple[Straggler, ...]
    result: Result | None = None

    @property
    def worst(self) -> Straggler | None:
        """Who hurts most: today's plan by its replay, without one the steady state."""
        return max(self.rows, key=lambda each: (each.replayed or 0.0, each.lost), default=None)

    @property
    def words(self) -> str:
        """Name who hurts most, and what re-planning wins, in a sentence."""
        worst = self.worst
        if worst is None:
            return f"{self.problem.topology} has nothing of the kinds asked for to lag."
        told = f"What hurts most when it lags is {worst.words}: "
        if worst.replayed is None or self.result is None:
            return f"{told}{worst.algbw:.4g} GB/s, of {self.today.algbw:.4g} GB/s today."
        times = f"today's plan takes {worst.replayed:.4g} µs in place of {self.result.makespan:.4g}"
        if worst.wins is None or worst.wins < SMALL:
            return f"{told}{times} µs."
        return f"{told}{times} µs, and re-planning wins {_percent(worst.wins)} of it."


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"


def _listed(names: tuple[str, ...]) -> str:
    if len(names) > NAMED:
        return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
