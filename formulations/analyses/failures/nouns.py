"""Report on every failure and every straggler, and the parts that can fail.

A `Part` is links, devices or hosts, of which symmetries exchange each with each: one stands for its
class. Symmetries keep the cluster, the collective and which device lies in which host: each host
becomes one more device, linked with what it holds. Links are exchanged only for those of the same
medium and number of parallel links.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from ccl import text
from ccl.bound import Cut
from ccl.errors import ProblemError
from ccl.plans import Send
from ccl.problem import Problem
from ccl.result import Result
from ccl.text import enumerate_words
from ccl.topology import Declared, Interchange, Link, Topology, device
from formulations.analyses.best_rate import Optimum
from formulations.engines.orbit_lp.group import acting, loads_of

PartKind = Literal["link", "gpu", "nic", "memory", "switch", "host"]
PARTS: tuple[PartKind, ...] = get_args(PartKind)
"""All that can fail, in the order of the report."""

_NOUNS = {each: each.upper() if each in ("gpu", "nic") else each for each in PARTS}

Ends = tuple[str, str]


@dataclass(frozen=True)
class Part:
    """Things of one class, of which one stands for all.

    Parameters
    ----------
    kind
        One of `PARTS`.
    names
        Of the one that stands for them: a device, a host, or the two ends of a link.
    alike
        How many there are, parallel links counted one by one.
    members
        All of them by their names; parallel links are one here.
    parallel
        Of a link, how many lie side by side, itself included; else 1.
    what
        Of a link, medium and bandwidth of all that lie side by side.
    """

    kind: PartKind
    names: tuple[str, ...]
    alike: int
    members: tuple[tuple[str, ...], ...]
    parallel: int = 1
    what: str = ""

    @property
    def noun(self) -> str:
        """What one of them is, without a name: ``GPU``, ``1 of 3 links``."""
        return f"1 of {self.parallel} links" if self.parallel > 1 else _NOUNS[self.kind]

    @property
    def words(self) -> str:
        """Name it: ``switch s``, ``a GPU, such as g0``."""
        name = " – ".join(self.names)
        kind = _NOUNS[self.kind]
        if self.kind == "link":
            side = f"one of {self.parallel} parallel links" if self.parallel > 1 else "a link"
            kind = f"{side} ({self.what})" if self.what else side
            return f"{kind}, such as {name}" if self.alike > self.parallel else f"{kind}, {name}"
        return f"a {kind}, such as {name}" if self.alike > 1 else f"{kind} {name}"


def parts_of(
    problem: Problem, kinds: Collection[str] = PARTS, *, both: bool = True, latencies: bool = False
) -> tuple[Part, ...]:
    """Return one part of each class, in the order of `PARTS` and of the drawing.

    Parameters
    ----------
    problem
        A cluster and what runs on it.
    kinds
        Which kinds of parts; a kind that the cluster does not have gives none.
    both
        Whether the two directions of a link are one part.
    latencies
        Whether links whose latencies differ are of different classes; a steady state hides them.

    Raises
    ------
    ProblemError
        If a kind is unknown, or fluid models cannot say the problem.
    """
    for each in kinds:
        if each not in PARTS:
            raise ProblemError(f"{each!r} is nothing that fails; choose from {', '.join(PARTS)}")
    orbits = _orbits(problem, latencies=latencies)
    found: list[Part] = []
    for kind in (each for each in PARTS if each in kinds):
        if kind == "link":
            found += _links(problem.topology, orbits[1], both=both)
        else:
            found += _devices(problem.topology, orbits[0], kind)
    return tuple(found)


def _orbits(problem: Problem, *, latencies: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the orbit of each device, then of each host, and of each link."""
    topology = problem.topology
    larger = with_hosts(topology)
    sorts: dict[tuple[object, ...], int] = {}
    cost = [
        sorts.setdefault((each.medium, each.count, each.alpha if latencies else 0.0), len(sorts))
        for each in topology.links
    ]
    # An edge between a host and what it holds is not one of the cluster's own links.
    cost += [len(sorts)] * (len(larger.links) - len(cost))
    found = acting(larger, loads_of(problem), costs=np.array(cost, dtype=float))
    many = len(topology.devices) + len(topology.hosts)
    return found.group.orbits()[:many], found.group.link_orbits()[: len(topology.links)]


def with_hosts(topology: Topology) -> Topology:
    """Return the cluster with a device for each host, last, and links to what it holds."""
    if not topology.hosts:
        return topology
    name = {host: f"host {host} of the drawing" for host in topology.hosts}
    joins = tuple(
        Link(each.name, name[each.host], 1.0) for each in topology.devices if each.host is not None
    )
    return replace(
        topology,
        devices=(*topology.devices, *(device("switch", each) for each in name.values())),
        links=(*topology.links, *joins),
        declared=tuple(_declared(each, _held(topology, name)) for each in topology.declared),
    )


def _held(topology: Topology, name: dict[str, str]) -> dict[str, frozenset[str]]:
    held: defaultdict[str, set[str]] = defaultdict(set)
    for each in topology.devices:
        if each.host is not None:
            held[name[each.host]].add(each.name)
    return {host: frozenset(devices) for host, devices in held.items()}


def _declared(declared: Declared, held: dict[str, frozenset[str]]) -> Declared:
    """Return an interchange whose blocks have the hosts that they hold, each after the others."""
    if not isinstance(declared, Interchange):
        return declared
    host = {each: name for name, devices in held.items() for each in devices}
    blocks = []
    for block in declared.blocks:
        inside = set(block)
        seen = dict.fromkeys(host[each] for each in block if each in host)
        blocks.append((*block, *(each for each in seen if held[each] <= inside)))
    if len(set(map(len, blocks))) > 1:
        return declared
    inner = tuple(_declared(each, held) for each in declared.inner)
    return Interchange(tuple(blocks), inner)


def _devices(topology: Topology, orbit: np.ndarray, kind: PartKind) -> Iterator[Part]:
    """Yield one part of each orbit of devices of a kind, or of hosts."""
    if kind == "host":
        named = dict(enumerate(topology.hosts, start=len(topology.devices)))
    else:
        named = {i: each.name for i, each in enumerate(topology.devices) if each.kind == kind}
    classes: defaultdict[int, list[tuple[str, ...]]] = defaultdict(list)
    for place, name in named.items():
        classes[int(orbit[place])].append((name,))
    for members in classes.values():
        yield Part(kind, members[0], len(members), tuple(members))


def _links(topology: Topology, orbit: np.ndarray, *, both: bool) -> Iterator[Part]:
    """Yield one part of each orbit of links; the two directions are one part if asked."""
    place = topology.link_index
    classes: defaultdict[tuple[int, ...], list[Ends]] = defaultdict(list)
    for i, link in enumerate(topology.links):
        back = place.get((link.dst, link.src)) if both else None
        if back is None:
            classes[(int(orbit[i]),)].append(link.ends)
        elif i < back:
            classes[tuple(sorted((int(orbit[i]), int(orbit[back]))))].append(link.ends)
    for members in classes.values():
        link = topology.link(*members[0])
        what = f"{link.medium} at {text.number(link.bandwidth, 4)} GB/s" if link.medium else ""
        yield Part(
            "link",
            members[0],
            link.count * len(members),
            tuple(members),
            parallel=link.count,
            what=what or f"{text.number(link.bandwidth, 4)} GB/s",
        )


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
    """The report on the part that is lost or lags."""

    part: Part
    optimum: Optimum | None

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

    @property
    def algbw(self) -> float:
        """GB/s in the steady state; 0 where the collective can run no more."""
        return 0.0 if self.optimum is None else self.optimum.algbw

    @property
    def makespan(self) -> float | None:
        """µs of each of many repetitions in the steady state; None without a repetition."""
        return None if self.optimum is None else self.optimum.makespan

    @property
    def cut(self) -> Cut | None:
        """The bottleneck cut with the fewest devices inside, where a cut decides."""
        return self.optimum.cuts[-1] if self.optimum is not None and self.optimum.cuts else None

    @property
    def reached(self) -> bool:
        """Whether a plan has this rate; else no plan has a higher one."""
        return self.optimum is None or self.optimum.reached


@dataclass(frozen=True)
class Failure(_OfPart):
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
        A verified plan on what is left, where one was requested and found.
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
    def severity(self) -> tuple[bool, int, float]:
        """Larger is worse: running no more, then ranks cut off, then what is lost."""
        return self.optimum is None, len(self.cut_off), self.lost

    @property
    def sentence(self) -> str:
        """What the loss does."""
        what = self.words
        if self.cut_off:
            return f"losing {what} cuts off {enumerate_words(self.cut_off, NAMED)}"
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
        The losses, in the order of `PARTS`.
    result
        Today's plan, where schedules were requested and one was found.
    """

    problem: Problem
    today: Optimum
    rows: tuple[Failure, ...]
    result: Result | None = None

    @property
    def worst(self) -> Failure | None:
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
            return f"{self.problem.topology} has nothing of the requested kinds to lose."
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
        A verified plan made for the slowed cluster, where one was requested and found.
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
        The stragglers, in the order of `PARTS`.
    result
        Today's plan, where schedules were requested and one was found.
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
            return f"{self.problem.topology} has nothing of the requested kinds to lag."
        lead = f"What hurts most when it lags is {worst.words}: "
        if worst.replayed is None or self.result is None:
            return f"{lead}{worst.algbw:.4g} GB/s, of {self.today.algbw:.4g} GB/s today."
        times = f"today's plan takes {worst.replayed:.4g} µs in place of {self.result.makespan:.4g}"
        if worst.wins is None or worst.wins < SMALL:
            return f"{lead}{times} µs."
        return f"{lead}{times} µs, and re-planning wins {_percent(worst.wins)} of it."


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"
