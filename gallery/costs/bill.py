"""Bill of parts of a cluster: what it costs, draws and how its cables run.

GPUs are counted with their share of host, inner switches and network card. Switches are counted by
the ports in use: the cheapest that has as many, or, where none has, a folded Clos network of the
cheapest radix in its place. Cables have the cheapest class that reaches; transceivers are one for
two cables at a switch, one for each at a card.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import cycle
from typing import Literal

import numpy as np

from ccl import text
from ccl.cabling import Cable, Cabling, End, cabling_of
from ccl.errors import ProblemError
from ccl.topology import Topology
from gallery.costs.designs import clos
from gallery.costs.floor import Floor, Placement, place
from gallery.costs.parts import Part, Parts, Span, read_parts

NOT_MODELLED = (
    "cable trays, patch panels, power whips and cooling are not modelled, nor are storage and "
    "management networks, spares, labour and support; lengths are estimates, 30 % more or less is "
    "assumed"
)

Group = Literal["compute", "network"]


@dataclass(frozen=True, slots=True)
class Row:
    """A part of a bill.

    Parameters
    ----------
    part
        Name of the row in the parts file.
    title
        Its name for people.
    group
        ``compute`` or ``network``.
    count, unit
        How many, and of what: ``each`` or ``m``.
    dollars, watts
        Of one.
    source, date
        What both figures rest on, and when that was true.
    """

    part: str
    title: str
    group: Group
    count: float
    unit: str
    dollars: Span
    watts: Span
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class LaidCable:
    """A cable with its class and length.

    Parameters
    ----------
    label
        Unique in its bill: ``C00001``.
    first, second
        Its ends.
    bandwidth
        GB/s, one way.
    kind
        Name of its class in the parts file.
    type
        What NetBox calls the class.
    length
        Metres.
    """

    label: str
    first: End
    second: End
    bandwidth: float
    kind: str
    type: str
    length: float


@dataclass(frozen=True)
class Bill:
    """What a cluster takes.

    Parameters
    ----------
    topology
        The cluster.
    rows
        Parts, by group.
    cables
        In the order of the topology's links.
    switches
        Part of each switch, by its name.
    racks
        Rack of each box, by its name.
    assumed
        What was assumed where the topology does not say, in sentences.
    left_out
        What is not modelled, in a sentence.
    """

    topology: Topology
    rows: tuple[Row, ...]
    cables: tuple[LaidCable, ...]
    switches: Mapping[str, str]
    racks: Mapping[str, int]
    assumed: tuple[str, ...]
    left_out: str = NOT_MODELLED

    @cached_property
    def dollars(self) -> Span:
        """Dollars of all parts."""
        return Span.total(each.dollars * each.count for each in self.rows)

    @cached_property
    def watts(self) -> Span:
        """Watts of all parts."""
        return Span.total(each.watts * each.count for each in self.rows)

    @cached_property
    def network_dollars(self) -> Span:
        """Dollars of switches and cables; cards are counted with the GPUs."""
        mine = (each for each in self.rows if each.group == "network")
        return Span.total(each.dollars * each.count for each in mine)

    @cached_property
    def network_watts(self) -> Span:
        """Watts of switches and cables; cards are counted with the GPUs."""
        mine = (each for each in self.rows if each.group == "network")
        return Span.total(each.watts * each.count for each in mine)

    @cached_property
    def metres(self) -> float:
        """Metres of all cables."""
        return math.fsum(each.length for each in self.cables)

    @cached_property
    def classes(self) -> dict[str, int]:
        """Number of cables of each class."""
        return dict(Counter(each.kind for each in self.cables))


def bill_of(topology: Topology, parts: Parts | None = None, floor: Floor | None = None) -> Bill:
    """Return the bill of parts of a cluster.

    Parameters
    ----------
    topology
        The cluster.
    parts
        What can be bought; by default the packaged parts (`read_parts`).
    floor
        How racks stand; by default rows of 16.

    Raises
    ------
    ProblemError
        If no cable reaches far enough, or no switch has ports that are fast enough.
    """
    parts = parts or read_parts()
    floor = floor or Floor()
    cabling, sentences = _divided(cabling_of(topology), parts.fastest)
    cabling, switches, more = _built(cabling, parts)
    dear = partial(_cable_price, parts, 0.0) if floor.objective == "dollars" else float
    placed = place(topology, cabling, floor, cost=dear)
    cables = tuple(_laid(cabling, placed, parts))
    counts = _counted(cabling, cables, switches, parts=parts)
    rows = (
        _row("gpu", len(topology.ranks), parts, group="compute"),
        *(_row(name, count, parts, group="network") for name, count in counts.items() if count),
    )
    assumed = (*_assumed(topology, cabling, parts), *sentences, *more)
    return Bill(topology, rows, cables, switches, placed.racks, assumed)


@dataclass(frozen=True)
class Prices:
    """What can be bought, for many clusters one after the other.

    Parameters
    ----------
    parts
        With dollars and watts.
    floor
        How racks stand.
    """

    parts: Parts = field(default_factory=read_parts)
    floor: Floor = field(default_factory=Floor)

    def bill(self, topology: Topology) -> Bill | None:
        """Return the bill of parts of a cluster, None where some of it cannot be bought."""
        try:
            return bill_of(topology, self.parts, self.floor)
        except ProblemError:
            return None

    def between(self, gpus: int, bandwidth: float) -> np.ndarray | None:
        """Return the dollars of a cable between any two GPUs, None if all cost the same.

        Parameters
        ----------
        gpus
            How many; they fill racks in the order of their numbers.
        bandwidth
            GB/s; more than the fastest cable has takes several.

        Returns
        -------
        Symmetric, shape (gpus, gpus); None as well where no cable reaches.
        """
        racks = np.arange(gpus) // self.floor.rack_gpus
        lengths = self.floor.lengths(int(racks[-1]) + 1)
        kinds, place = np.unique(lengths, return_inverse=True)
        count = math.ceil(bandwidth / self.parts.fastest - 1e-9)
        price = partial(_cable_price, self.parts, bandwidth / count, direct=True)
        try:
            prices = count * np.array([price(length) for length in kinds.tolist()])
        except ProblemError:
            return None
        if np.ptp(prices) <= 1e-9 * prices.max():
            return None
        return np.asarray(prices[place].reshape(lengths.shape)[np.ix_(racks, racks)])


def _divided(cabling: Cabling, fastest: float) -> tuple[Cabling, list[str]]:
    """Return cabling in which no cable is faster than the fastest that can be bought."""
    wide = [each for each in cabling.cables if each.bandwidth > fastest * (1 + 1e-9)]
    if not wide:
        return cabling, []
    cables: list[Cable] = []
    for each in cabling.cables:
        count = math.ceil(each.bandwidth / fastest - 1e-9)
        cables += (
            replace(
                each,
                first=_parallel(each.first, part, count),
                second=_parallel(each.second, part, count),
                bandwidth=each.bandwidth / count,
            )
            for part in range(count)
        )
    more = len(cables) - len(cabling.cables) + len(wide)
    told = (
        f"{text.count(len(wide), 'link')} of more than {text.bandwidth(fastest)}, the fastest "
        f"cable of the parts: counted as {text.count(more, 'cable')}"
    )
    return replace(cabling, cables=tuple(cables)), [told]


def _parallel(end: End, part: int, count: int) -> End:
    return end if count == 1 else replace(end, port=f"{end.port}.{part + 1}")


def _built(cabling: Cabling, parts: Parts) -> tuple[Cabling, dict[str, str], list[str]]:
    """Choose a part for each switch, and build those that none can be of several."""
    ports: defaultdict[str, list[float]] = defaultdict(list)
    for each in cabling.cables:
        for end in (each.first, each.second):
            ports[end.box].append(each.bandwidth)
    chosen: dict[str, str] = {}
    boxes, cables, sentences = dict(cabling.boxes), list(cabling.cables), []
    for switch in [box for box in cabling.boxes if box in cabling.switches]:
        fast, many = max(ports[switch]), len(ports[switch])
        offers = parts.switches(fast)
        part = min(offers, key=lambda name: _price(offers[name], many))
        radix = offers[part].ports
        if many <= radix:
            chosen[switch] = part
            continue
        del boxes[switch]
        cables = list(_expanded(switch, cables, radix, bandwidth=fast))
        inner = dict.fromkeys(
            end.box for each in cables for end in (each.first, each.second) if end.device == switch
        )
        boxes |= dict.fromkeys(inner, (switch,))
        chosen |= dict.fromkeys(inner, part)
        sentences.append(
            f"{switch} has {many:,} ports, more than a {offers[part].title}: counted as "
            f"{text.count(len(inner), 'switch')} that block nothing"
        )
    made = Cabling(boxes, tuple(cables), frozenset(chosen), cabling.backplanes)
    return made, chosen, _merged_sentences(sentences)


def _price(part: Part, ports: int) -> float:
    """Return what a switch of so many ports typically costs, built of one kind."""
    try:
        return sum(clos(ports, part.ports).switches) * part.dollars.typical
    except ProblemError:  # another kind may have ports enough
        return math.inf


def _merged_sentences(sentences: Sequence[str], most: int = 2) -> list[str]:
    """Return the first of sentences that are alike, and how many more there are."""
    if len(sentences) <= most:
        return list(sentences)
    more = text.count(len(sentences) - most, "switch")
    return [*sentences[:most], f"the same holds of {more} more"]


def _expanded(
    switch: str, cables: Sequence[Cable], radix: int, *, bandwidth: float
) -> Iterator[Cable]:
    """Yield cables with a folded Clos network in place of a switch.

    Its leaves take the ports in order, half of their own each. Links up go round the spines: all of
    them in two tiers; in three those of a pod, which has as many leaves as a leaf has links up.
    """
    half, taken = radix // 2, 0
    ports: Counter[str] = Counter()

    def plug(box: str) -> End:
        ports[box] += 1
        return End(box, f"p{ports[box]}", switch)

    def leaf(end: End) -> End:
        nonlocal taken
        if end.box != switch:
            return end
        taken += 1
        return plug(f"{switch}/leaf{(taken - 1) // half}")

    for each in cables:
        yield Cable(leaf(each.first), leaf(each.second), each.bandwidth)
    tiers = clos(taken, radix).switches
    names = [
        [f"{switch}/{tier}{i}" for i in range(count)]
        for tier, count in zip(("leaf", "spine", "core"), tiers, strict=False)
    ]
    pods = [(names[0], names[1])]
    if len(tiers) == 3:
        pods = [
            (names[0][first : first + half], names[1][first : first + half])
            for first in range(0, tiers[0], half)
        ]
        pods.append((names[1], names[2]))
    for lower, upper in pods:
        round_robin = cycle(upper)
        for box in lower:
            yield from (
                Cable(plug(box), plug(next(round_robin)), bandwidth) for _ in range(ports[box])
            )


def _laid(cabling: Cabling, placed: Placement, parts: Parts) -> Iterator[LaidCable]:
    """Yield cables with class and length."""
    classes: dict[tuple[float, float], str] = {}
    for number, each in enumerate(cabling.cables, start=1):
        length = placed.length(each.first.box, each.second.box)
        key = length, each.bandwidth
        if key not in classes:
            classes[key] = parts.cable_class(*key)
        kind = classes[key]
        yield LaidCable(
            f"C{number:05d}",
            each.first,
            each.second,
            each.bandwidth,
            kind,
            parts.cables[kind].type,
            length,
        )


def _cable_price(parts: Parts, bandwidth: float, length: float, *, direct: bool = False) -> float:
    """Return the dollars of the class that a bill takes for a cable as fast and as long."""
    return parts.cable_dollars(parts.cable_class(length, bandwidth), length, direct=direct)


def _counted(
    cabling: Cabling, cables: Sequence[LaidCable], switches: Mapping[str, str], *, parts: Parts
) -> dict[str, float]:
    """Return how many of each part of the network there are, in the order of the parts file."""
    counts: Counter[str] = Counter(switches.values())
    twins: Counter[tuple[str, str]] = Counter()
    metres: defaultdict[str, list[float]] = defaultdict(list)
    for each in cables:
        kind = parts.cables[each.kind]
        counts[kind.cable] += 1
        if kind.metre:
            metres[kind.metre].append(each.length)
        for end in (each.first, each.second):
            if end.box in cabling.switches and kind.at_switch:
                twins[end.box, kind.at_switch] += 1
            elif end.box not in cabling.switches and kind.at_card:
                counts[kind.at_card] += 1
    for (_, name), ends in twins.items():
        counts[name] += math.ceil(ends / 2)
    found = {name: float(counts[name]) for name in parts.parts}
    return found | {name: math.fsum(lengths) for name, lengths in metres.items()}


def _row(name: str, count: float, parts: Parts, *, group: Group) -> Row:
    part = parts.part(name)
    figures = [part.dollars, *([part.watts] if part.watts else [])]
    sources = [f"{each.unit[0]}: {each.source}" for each in figures]
    return Row(
        name,
        part.title,
        group,
        count,
        "m" if part.dollars.unit == "$ per m" else "each",
        part.dollars.span,
        part.watts.span if part.watts else Span(0.0, 0.0, 0.0),
        "; ".join(sources),
        "; ".join(dict.fromkeys(each.date for each in figures)),
    )


def _assumed(topology: Topology, cabling: Cabling, parts: Parts) -> Iterator[str]:
    """Yield what was assumed of what the topology does not say."""
    yield "a GPU is counted with its share of host, inner switches and network card"
    if cabling.backplanes:
        joined = text.count(cabling.backplanes, "pair") + " of devices"
        yield f"{joined} are joined through a backplane, which is counted with the GPUs"
    back = topology.link_index
    one_way = sum((each.dst, each.src) not in back for each in topology.links)
    if one_way:
        yield f"{text.count(one_way, 'one-way link')} count as much as links both ways"
    slow = Counter(
        each.bandwidth
        for each in cabling.cables
        if each.bandwidth < min(kind.bandwidth for kind in parts.cables.values()) * (1 - 1e-9)
    )
    for bandwidth, count in sorted(slow.items()):
        cables = f"{text.count(count, 'cable')} of {text.bandwidth(bandwidth)}"
        yield f"at the price of faster ones, as the parts have none as slow: {cables}"
