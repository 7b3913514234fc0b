"""What of a cluster can be moved: kinds of links, shared limits, whole-number arguments.

A class is what `formulations.analyses.sensitivity` changes together: links of one bandwidth and
medium with their opposites. Moving it multiplies the bandwidth of all of them; so it does with
their latency, and where they have none today they all get the new one.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ccl.errors import ProblemError
from ccl.topology import Link, SharedLimit, Topology
from formulations.analyses.sensitivity.cutting_planes import link_classes
from gallery import Entry, entry, open_cluster
from gallery.recognise import spec, spec_of

LEFT = ("seed",)
"""Whole-number arguments that are no size of a cluster."""

Ends = tuple[str, str]
Step = tuple[float, float]
"""A value today, and what it becomes."""
Turn = tuple[Step, Step]
"""Of bandwidth and of latency."""


@dataclass(frozen=True, slots=True)
class Knob:
    """A kind of links, or of shared limits, whose bandwidth and alpha can be moved.

    Parameters
    ----------
    key
        What tells it from the others, in this cluster and in one with more hosts.
    title
        What it is: ``InfiniBand``.
    many
        How many there are: ``2 links``, of both directions together.
    links
        Their ends; of limits, those they hold.
    bandwidth
        GB/s today, of most of them.
    alpha
        µs today, of most of them; None for limits, which have none.
    limits
        Names of the limits, where it is one of these.
    """

    key: str
    title: str
    many: str
    links: tuple[Ends, ...]
    bandwidth: float
    alpha: float | None
    limits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """Where the knobs stand; what is not named stands where it does today.

    Parameters
    ----------
    bandwidth
        GB/s by key of a knob.
    alpha
        µs by key of a knob.
    arguments
        Of the gallery's cluster, by name.
    """

    bandwidth: Mapping[str, float] = field(default_factory=dict)
    alpha: Mapping[str, float] = field(default_factory=dict)
    arguments: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Origin:
    """Which cluster of the gallery a drawing is, and its whole-number arguments."""

    entry: Entry
    arguments: Mapping[str, Any]

    @property
    def counts(self) -> dict[str, int]:
        """The arguments that can be moved, with their values."""
        return {
            each.name: int(self.arguments[each.name])
            for each in self.entry.parameters
            if each.kind == "int" and each.name not in LEFT
        }

    @property
    def name(self) -> str:
        """What opens it: ``ndv2:hosts=4``."""
        return spec(self.entry, self.arguments)

    def with_counts(self, counts: Mapping[str, int]) -> Topology:
        """Make the cluster with other counts.

        Raises
        ------
        ProblemError
            If there is no such cluster.
        """
        return open_cluster(spec(self.entry, {**self.arguments, **counts}))


def knobs_of(topology: Topology) -> tuple[Knob, ...]:
    """Return the knobs of a cluster: kinds of links, those of the most first, then limits."""
    if not topology.links:
        return ()
    number = link_classes(topology)
    members: dict[int, list[Link]] = {}
    for label, link in zip(number.tolist(), topology.links, strict=True):
        members.setdefault(label, []).append(link)
    found = sorted((_of_links(each) for each in members.values()), key=lambda k: -len(k.links))
    return (*_told_apart(found, topology), *_of_limits(topology.limits))


def _told_apart(knobs: Sequence[Knob], topology: Topology) -> Iterator[Knob]:
    """Yield kinds of links; of those that are called alike say what they join if it differs."""
    kinds = {each.name: each.kind for each in topology.devices}

    def end(name: str) -> str:
        return "GPU" if kinds[name] == "gpu" else name.rstrip("0123456789") or name

    joined = {each: sorted(map(end, each.links[0]), key=lambda end: end != "GPU") for each in knobs}
    for each in knobs:
        alike = {tuple(joined[other]) for other in knobs if other.title == each.title}
        title = f"{each.title}, {' to '.join(joined[each])}"
        yield each if len(alike) == 1 else replace(each, title=title)


def origin_of(topology: Topology) -> Origin | None:
    """Return which cluster of the gallery this is, or None."""
    told = spec_of(topology)
    return None if told is None else read_origin(told)


def read_origin(spec: str) -> Origin:
    """Read the name of a gallery's cluster with its arguments, such as ``ndv2:hosts=4``.

    Raises
    ------
    ProblemError
        If the gallery has no such entry.
    """
    name, _, rest = spec.partition(":")
    found = entry(name)
    given = dict(part.split("=", 1) for part in rest.split(",") if part)
    whole = {each.name for each in found.parameters if each.kind == "int"}
    read = {key: int(value) if key in whole else value for key, value in given.items()}
    return Origin(found, {each.name: each.default for each in found.parameters} | read)


def changed(topology: Topology, change: Change, origin: Origin | None = None) -> Topology:
    """Return the cluster with its knobs moved.

    Parameters
    ----------
    topology
        As it is today.
    change
        Where the knobs stand.
    origin
        Which cluster of the gallery it is, where counts are moved.

    Raises
    ------
    ProblemError
        If a value is none that a link can have, or there is no such cluster in the gallery.
    """
    today = {each.key: each for each in knobs_of(topology)}
    if origin is not None and change.arguments and dict(change.arguments) != origin.counts:
        topology = origin.with_counts(change.arguments)
    links: dict[Ends, Turn] = {}
    limits: dict[str, Turn] = {}
    for knob in knobs_of(topology):
        before = today.get(knob.key)
        if before is None:
            continue
        rate = (before.bandwidth, change.bandwidth.get(knob.key, before.bandwidth))
        wait = _waits(before, change.alpha.get(knob.key))
        if knob.limits:
            limits.update(dict.fromkeys(knob.limits, (rate, wait)))
        else:
            links.update(dict.fromkeys(knob.links, (rate, wait)))
    still = ((1.0, 1.0), (0.0, 0.0))
    return replace(
        topology,
        links=tuple(_link(each, *links.get(each.ends, still)) for each in topology.links),
        limits=tuple(
            replace(each, bandwidth=_turned(each.bandwidth, limits.get(each.name, still)[0]))
            for each in topology.limits
        ),
    )


def moved_knobs(topology: Topology, change: Change, origin: Origin | None) -> tuple[Knob, ...]:
    """Return the knobs of the changed cluster, with bandwidths and latencies of today.

    Parameters
    ----------
    topology, change, origin
        As for `changed`.
    """
    if origin is not None and change.arguments and dict(change.arguments) != origin.counts:
        topology = origin.with_counts(change.arguments)
    return knobs_of(topology)


def _waits(knob: Knob, alpha: float | None) -> Step:
    """Return the latency of most links today, and what it becomes."""
    before = knob.alpha or 0.0
    if alpha is None:
        return before, before
    if not 0 <= alpha < math.inf:
        raise ProblemError(f"the alpha of {knob.title} is {alpha:g} µs; give 0 µs or more")
    return before, alpha


def _link(link: Link, rate: Step, wait: Step) -> Link:
    if rate[0] == rate[1] and wait[0] == wait[1]:
        return link
    return replace(link, bandwidth=_turned(link.bandwidth, rate), alpha=_turned(link.alpha, wait))


def _turned(value: float, step: Step) -> float:
    """Return a value after a change, where `step` is the usual one before and after it.

    The usual value becomes just the requested one, so that exact rates have small denominators.
    """
    before, after = step
    if value == before or not before:
        return after if value == before else value + after
    return float(f"{value * after / before:.12g}")


def _of_links(links: Sequence[Link]) -> Knob:
    kinds = sorted({(each.medium, each.bandwidth) for each in links})
    title = ", ".join(dict.fromkeys(medium or "Links" for medium, _ in kinds))
    lines = {tuple(sorted(each.ends)) for each in links}
    return Knob(
        key="+".join(f"{medium}@{rate:g}" for medium, rate in kinds),
        title=title,
        many=f"{len(lines):,} link{'' if len(lines) == 1 else 's'}",
        links=tuple(each.ends for each in links),
        bandwidth=_usual(each.bandwidth for each in links),
        alpha=_usual(each.alpha for each in links),
    )


def _of_limits(limits: Sequence[SharedLimit]) -> list[Knob]:
    kinds: dict[float, list[SharedLimit]] = {}
    for each in limits:
        kinds.setdefault(each.bandwidth, []).append(each)
    return [
        Knob(
            key=f"limit@{rate:g}",
            title=f"Limit {alike[0].name}" if len(alike) == 1 else "Shared limits",
            many=f"{len(alike):,} limit{'' if len(alike) == 1 else 's'}",
            links=tuple(ends for each in alike for ends in each.links),
            bandwidth=rate,
            alpha=None,
            limits=tuple(each.name for each in alike),
        )
        for rate, alike in sorted(kinds.items())
    ]


def _usual(values: Any) -> float:
    """Return the value that most have, of these the largest."""
    counts: dict[float, int] = {}
    for each in values:
        counts[each] = counts.get(each, 0) + 1
    return max(counts, key=lambda value: (counts[value], value))
