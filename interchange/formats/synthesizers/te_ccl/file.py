"""What stands in a schedule file of TE-CCL, and which devices its numbers are.

The numbers before its keys differ from version to version (``6-Flows`` and ``7-Flows`` are one
thing), so keys count without them. Times are seconds, here µs; epochs count from 0, numbers of
devices are rows of TE-CCL's matrix of capacities. A flow is a line::

    Chunk 0 from 4 traveled over 4->9 in epoch 0 via switches 17 -> 0
    Chunk 3 from 1 traveled over 1->4 with volume 0.25 in epoch 0 via switches 0

the second with an amount of the chunk, as its linear program gives. The way of a demand under
"Chunk paths" has the same without its first words: a list of such texts, or for amounts a list of
paths, each a list of pairs of epoch and text.

Switches are among the rows of the matrix. On a cluster that is open a number is the place among all
devices, or among the GPUs, or GPUs and switches each count in their order; the first of these on
which every link of the file exists is taken (`placed`). `able` says what devices must be able to
do.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, NamedTuple

from ccl.errors import FormatError
from ccl.serialization.text import decode_json
from ccl.topology import Link, Topology, device
from interchange.formats.fields import some

MOST = 10_000_000
"""Largest number of a device, a chunk or an epoch."""

_KEY = re.compile(r"^\d+[a-z]?-")
_HOP = re.compile(
    r"(?P<src>\d{1,8}) *-> *(?P<dst>\d{1,8})"
    r"(?: with volume (?P<volume>\d[\d.eE+-]{0,30}))?"
    r" (?:in|at) epoch (?P<epoch>\d{1,8})"
    r"(?: via switch(?:es)? (?P<via>\d{1,8}(?: *(?:->|,) *\d{1,8}){0,99}))?\s*"
)
_FLOW = re.compile(
    r"\s*Chunk (?P<chunk>\d{1,8}) from (?P<source>\d{1,8}) travell?ed over " + _HOP.pattern
)
_DEMAND = re.compile(
    r"\s*Demand at (?P<at>\d{1,8}) for chunk (?P<chunk>\d{1,8}) from (?P<source>\d{1,8})"
    r"(?: met by epoch \d{1,8})?\s*"
)
_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(r"\s*(?:GPU|Chunk)? *(\d{1,8})\s*")


class Hop(NamedTuple):
    """A chunk, or an amount of it, over a link or over several through switches."""

    src: int
    dst: int
    epoch: int
    via: tuple[int, ...] = ()
    volume: float | None = None


class Piece(NamedTuple):
    """Which chunk: its number among those of its source."""

    source: int
    chunk: int


@dataclass(frozen=True)
class Output:
    """A schedule file.

    Parameters
    ----------
    epoch_duration
        µs.
    epochs
        How many it says it takes, or None.
    makespan
        µs, as it says, or None.
    algbw
        GB/s, as it says, or None.
    flows
        What travels, in the order of the lines.
    demands
        Who is said to have which piece, and when in µs, or None where it does not say.
    paths
        By demand, the paths of its amounts, each from source to GPU; empty for whole chunks.
    chunk_size
        Bytes, where a file says so itself.
    solve_time
        s, or None.
    others
        Keys that mean nothing here.
    """

    epoch_duration: float
    epochs: int | None
    makespan: float | None
    algbw: float | None
    flows: tuple[tuple[Piece, Hop], ...]
    demands: Mapping[tuple[int, Piece], float | None]
    paths: Mapping[tuple[int, Piece], tuple[tuple[Hop, ...], ...]]
    chunk_size: float | None = None
    solve_time: float | None = None
    others: tuple[str, ...] = field(default=())

    @property
    def fluid(self) -> bool:
        """Whether it gives amounts, as the linear program does."""
        return any(hop.volume is not None for _, hop in self.flows)


def looks_like_output(content: bytes) -> bool:
    """Say whether content has the two keys that every schedule of TE-CCL has."""
    return (
        content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"
        and b'-Epoch_Duration"' in content
        and b'-Flows"' in content
    )


def parse_output(content: bytes) -> Output:
    """Read a schedule file.

    Raises
    ------
    FormatError
        With the place, if it is malformed.
    """
    value = decode_json(content, Any)
    if not isinstance(value, dict):
        raise FormatError("at the top: it is no object; a schedule of TE-CCL is one")
    keys = {_KEY.sub("", key): key for key in value}
    said = {name: value[key] for name, key in keys.items()}
    lines = said.get("Flows")
    if not isinstance(lines, list):
        raise FormatError(
            'it has no list "7-Flows"; a schedule of TE-CCL says there what travels when'
        )
    tau = _number(said, keys, "Epoch_Duration", least=0.0)
    if tau is None:
        raise FormatError('it has no "1-Epoch_Duration"; give the duration of an epoch in seconds')
    epochs = _number(said, keys, "Epochs_Required", least=0.5)
    if epochs is not None and (epochs != int(epochs) or epochs > MOST):
        raise FormatError(
            f"at {keys['Epochs_Required']}: {epochs:g} is no number of epochs up to {MOST:,}"
        )
    makespan = _number(said, keys, "Collective_Finish_Time", least=0.0)
    chunk = _number(said, keys, "Chunk_Size", least=0.0)
    demands, paths = _paths(said.get("Chunk paths"))
    return Output(
        epoch_duration=tau * 1e6,
        epochs=None if epochs is None else int(epochs),
        makespan=None if makespan is None else makespan * 1e6,
        algbw=_number(said, keys, "Algo_Bandwidth", least=0.0),
        flows=tuple(_flow(line, number) for number, line in enumerate(lines)),
        demands=demands | _met(said.get("Demand_Met")),
        paths=paths,
        chunk_size=None if chunk is None else chunk * 1e9,
        solve_time=_number(said, keys, "Solver_Time", least=-1.0),
        others=tuple(key for name, key in keys.items() if name not in _KNOWN),
    )


_KNOWN = frozenset(
    (
        *("Epoch_Duration", "Expected_Epoch_Duration", "Epochs_Required", "Chunk_Size"),
        *("Collective_Finish_Time", "Algo_Bandwidth", "Demand_Met", "Flows", "Chunk paths"),
        "Solver_Time",
    )
)


def _number(
    said: Mapping[str, Any], keys: Mapping[str, str], name: str, *, least: float
) -> float | None:
    """Return a number above `least` in a reasonable range, None where nothing is said."""
    value = said.get(name)
    if value is None:
        return None
    fits = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not fits or not least < value < 1e15 or (value and abs(value) < 1e-15):
        shown = str(value)[:40]
        raise FormatError(
            f"at {keys[name]}: {shown} is no number above {max(least, 0):g} that can be"
        )
    return float(value)


def _flow(line: Any, number: int) -> tuple[Piece, Hop]:
    found = _FLOW.fullmatch(line) if isinstance(line, str) else None
    if found is None:
        raise FormatError(
            f"at Flows[{number}]: {str(line)[:80]!r} is no flow; one is "
            "'Chunk 0 from 1 traveled over 1->2 in epoch 0'"
        )
    chunk, source, *words = found.groups()
    return Piece(int(source), int(chunk)), _hop(words, f"Flows[{number}]")


def _hop(words: Sequence[str | None], where: str) -> Hop:
    """Read what `_HOP` finds."""
    src, dst, share, epoch, via = words
    volume = None
    if share is not None:
        try:
            volume = float(share)
        except ValueError:
            volume = math.nan
        if not 0 <= volume < 1e6:
            raise FormatError(
                f"at {where}: the volume {share} is no share of a chunk; give up to 1"
            )
    crossed = () if via is None else tuple(map(int, _DIGITS.findall(via)))
    return Hop(int(src or 0), int(dst or 0), int(epoch or 0), crossed, volume)


def _met(value: Any) -> dict[tuple[int, Piece], float | None]:
    """Read who has what when: GPU, GPU that it is from, chunk, seconds."""
    met: dict[tuple[int, Piece], float | None] = {}
    if value is None:
        return met
    for at, sources in _items(value, "Demand_Met"):
        for source, chunks in _items(sources, f"Demand_Met.GPU {at}"):
            place = f"Demand_Met.GPU {at}.GPU {source}"
            for chunk, time in _items(chunks, place):
                fits = isinstance(time, (int, float)) and not isinstance(time, bool)
                if not fits or not 0 <= time < 1e15:
                    raise FormatError(
                        f"at {place}.Chunk {chunk}: {str(time)[:40]} is no time in seconds"
                    )
                met[at, Piece(source, chunk)] = time * 1e6
    return met


def _items(value: Any, place: str) -> list[tuple[int, Any]]:
    if not isinstance(value, dict):
        raise FormatError(f"at {place}: expected an object, got {str(value)[:40]!r}")
    items = []
    for key, each in value.items():
        found = _NUMBER.fullmatch(key)
        if found is None:
            raise FormatError(
                f"at {place}: {key[:40]!r} is no GPU or chunk; one is 'GPU 1' or 'Chunk 0'"
            )
        items.append((int(found[1]), each))
    return items


def _paths(
    value: Any,
) -> tuple[
    dict[tuple[int, Piece], float | None], dict[tuple[int, Piece], tuple[tuple[Hop, ...], ...]]
]:
    """Read the demands that have paths, and the paths of amounts; odd ones are left out."""
    demands: dict[tuple[int, Piece], float | None] = {}
    paths: dict[tuple[int, Piece], tuple[tuple[Hop, ...], ...]] = {}
    if not isinstance(value, dict):
        return demands, paths
    for key, listed in value.items():
        found = _DEMAND.fullmatch(key)
        if found is None:
            raise FormatError(
                f"at Chunk paths: {key[:60]!r} is no demand; one is "
                "'Demand at 1 for chunk 0 from 2 met by epoch 3'"
            )
        demand = int(found["at"]), Piece(int(found["source"]), int(found["chunk"]))
        demands[demand] = None
        read = [_way(each) for each in listed] if isinstance(listed, list) else []
        if read and all(read):
            paths[demand] = paths.get(demand, ()) + tuple(each for each in read if each)
    return demands, paths


def _way(value: Any) -> tuple[Hop, ...] | None:
    """Return the path of an amount, or None if it is malformed."""
    if not isinstance(value, list) or not value:
        return None
    hops = []
    for each in value:
        text = each[1] if isinstance(each, list) and len(each) == 2 else None
        found = _HOP.fullmatch(text) if isinstance(text, str) else None
        if found is None or found["volume"] is None:
            return None
        hops.append(_hop(found.groups(), "Chunk paths"))
    return tuple(hops)


@dataclass(frozen=True)
class Cluster:
    """A topology with the number that each device has in a file.

    Parameters
    ----------
    topology
        On which the flows exist, with the abilities that they need.
    names
        Of the devices by number.
    notes
        What was changed or assumed, in sentences.
    """

    topology: Topology
    names: Mapping[int, str]
    notes: tuple[str, ...] = ()

    @cached_property
    def stops(self) -> frozenset[int]:
        """Numbers of the devices that cannot store."""
        device = self.topology.device
        return frozenset(each for each, name in self.names.items() if not device(name).stores)


def route(hop: Hop) -> tuple[int, ...]:
    """Return the numbers of the devices of a hop, both ends included."""
    return hop.src, *hop.via, hop.dst


def hops(output: Output) -> Iterator[tuple[Piece, Hop]]:
    """Yield all hops of the flows and of the paths."""
    yield from output.flows
    for (_, piece), paths in output.paths.items():
        yield from ((piece, hop) for hop in chain.from_iterable(paths))


def sources_and_ends(output: Output) -> set[int]:
    """Return the numbers that can only be GPUs: they have chunks first or last."""
    found = {piece.source for piece, _ in output.flows}
    for at, piece in output.demands:
        found |= {at, piece.source}
    return found


def placed(output: Output, topology: Topology) -> Cluster | str:
    """Find the devices on a topology, or say which link it lacks."""
    ends = dict.fromkeys(ends for _, hop in hops(output) for ends in pairwise(route(hop)))
    gpus = sources_and_ends(output)
    numbers = gpus | {number for each in ends for number in each}
    lacks = ""
    for names in _numberings(topology, gpus, numbers):
        missing = [
            (src, dst)
            for src, dst in ends
            if (names.get(src, ""), names.get(dst, "")) not in topology.link_index
        ]
        strange = [number for number in gpus if names.get(number) not in topology.rank]
        if not missing and not strange:
            return Cluster(topology, names)
        if missing and not lacks:
            more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            lacks = "it uses the link {}->{}".format(*missing[0]) + more
    return lacks or f"it has {len(gpus)} GPUs, of which {max(gpus, default=0)} is the last number"


def _numberings(
    topology: Topology, gpus: set[int], numbers: set[int]
) -> Iterator[Mapping[int, str]]:
    yield dict(enumerate(each.name for each in topology.devices))
    yield dict(enumerate(topology.ranks))
    others = [each.name for each in topology.devices if each.kind != "gpu"]
    rest = sorted(numbers - gpus)
    if len(gpus) == len(topology.ranks) and len(rest) <= len(others):
        yield dict(
            [*zip(sorted(gpus), topology.ranks, strict=True), *zip(rest, others, strict=False)]
        )


def derived(output: Output, chunk_size: float) -> Cluster:
    """Make a topology of the links that the flows use, as wide as the most that one carries.

    In an epoch at the most; of what a chunk of `chunk_size` bytes takes longer than an epoch for,
    a file says nothing.
    """
    gpus = sources_and_ends(output)
    found = {number for _, hop in hops(output) for number in route(hop)}
    crossed = {number for _, hop in output.flows for number in hop.via}
    passed = crossed | (found - gpus if not output.fluid else set())
    names = {
        number: f"s{number}" if number in passed - gpus else f"g{number}"
        for number in sorted(found | gpus)
    }
    loads: defaultdict[tuple[int, int], defaultdict[int, float]] = defaultdict(
        lambda: defaultdict(float)
    )
    once = set()
    for piece, hop in output.flows:
        for depth, ends in enumerate(pairwise(route(hop))):
            # What parts at a switch has crossed the links before it once.
            key = piece, hop.epoch, route(hop)[: depth + 2]
            if hop.volume is not None or key not in once:
                once.add(key)
                loads[ends][hop.epoch] += 1.0 if hop.volume is None else hop.volume
    each = chunk_size * 1e-3 / output.epoch_duration
    most = {ends: max(*load.values(), 1e-6) for ends, load in loads.items()}
    widest: defaultdict[int, float] = defaultdict(float)
    for ends, load in most.items():
        for number in passed.intersection(ends):
            widest[number] = max(widest[number], load)
    # A chunk crosses both links of a switch at once here, one after the other in the file.
    links = tuple(
        Link(names[src], names[dst], max(load, widest[src], widest[dst]) * each)
        for (src, dst), load in most.items()
    )
    devices = tuple(device("switch" if name[0] == "s" else "gpu", name) for name in names.values())
    notes = (
        f"{len(links)} links are those of the flows, each as wide as the most that it carries in "
        "an epoch and without latency; name the cluster to know better"
    )
    return Cluster(Topology("TE-CCL", devices, links), names, (notes,))


def crossed_gpus(output: Output, cluster: Cluster) -> set[int]:
    """Return the numbers of devices that store and are crossed as switches all the same."""
    crossed = {number for _, hop in hops(output) for number in hop.via}
    return {each for each in crossed if cluster.topology.device(cluster.names[each]).stores}


def able(output: Output, cluster: Cluster) -> Cluster:
    """Make switches of GPUs that the file crosses, and let switches copy where its flows part.

    Raises
    ------
    FormatError
        If a device is crossed as a switch and has chunks of its own.
    """
    names, topology = cluster.names, cluster.topology
    crossed = {number: hop for _, hop in hops(output) for number in hop.via}
    stores = crossed_gpus(output, cluster)
    for number in sorted(stores & sources_and_ends(output)):
        raise FormatError(
            f"GPU {number} ({names[number]}) has chunks of its own and is crossed as a switch in "
            f"epoch {crossed[number].epoch}; a device is one of both"
        )
    turned = {names[number] for number in stores}
    parting = {names[number] for number in _parting(output)}
    parting = {name for name in parting if not topology.device(name).copies} | turned & parting
    if not turned and not parting:
        return cluster
    devices = []
    for each in topology.devices:
        if each.name in turned:
            copies = each.name in parting
            devices.append(device("switch", each.name, host=each.host, copies=copies))
        else:
            devices.append(replace(each, copies=each.copies or each.name in parting))
    notes = list(cluster.notes)
    if turned:
        notes.append(
            f"GPU {', '.join(sorted(turned))} is a switch, because the file crosses it as one and "
            "wants nothing from it or for it (TE-CCL's NDv2 of 2 chassis marks GPU 0 so)"
        )
    if parting - turned:
        alone = sorted(parting - turned)
        notes.append(f"{some(alone)} cop{'ies' if len(alone) == 1 else 'y'}, as the flows need")
    made = replace(topology, devices=tuple(devices), declared=())
    return Cluster(made, names, tuple(notes))


def _parting(output: Output) -> set[int]:
    """Return the numbers of switches at which whole chunks part."""
    onward: defaultdict[tuple[Piece, int, tuple[int, ...]], set[int]] = defaultdict(set)
    came: defaultdict[tuple[Piece, int], int] = defaultdict(int)
    left: defaultdict[tuple[Piece, int], int] = defaultdict(int)
    sources = sources_and_ends(output)
    for piece, hop in output.flows:
        if hop.volume is not None and hop.volume < 1:
            continue
        way = route(hop)
        for depth in range(1, len(way) - 1):
            onward[piece, hop.epoch, way[: depth + 1]].add(way[depth + 1])
        came[piece, hop.dst] += 1
        left[piece, hop.src] += 1
    found = {way[-1] for (_, _, way), ends in onward.items() if len(ends) > 1}
    stops = {number for (piece, number), many in left.items() if many > came[piece, number] > 0}
    return found | (stops - sources)
