"""Networks of ASTRA-sim's analytical backend, in YAML: products of rings, full meshes and switches.

::

    topology: [ Ring, Switch ]      # Ring, FullyConnected or Switch, the innermost dimension first
    npus_count: [ 8, 2 ]
    bandwidth: [ 200.0, 50.0 ]      # GB/s one way of each link
    latency: [ 50.0, 500.0 ]        # ns of each link

A GPU has a place in each dimension, and the place in the first one changes fastest with the rank.
GPUs that differ in one dimension alone are joined as that dimension says: in a ring both ways,
each with each, or all with a switch of their own. A ring of two is one link each way. Such products
are made from their dimensions (`product`) and recognised in a topology (`dimensions_of`).

The shape is so small that it is read from the events of the parser: no object is made of what the
file says, and an alias, which could grow without end, is refused where it stands.

Sources: astra-sim/astra-network-analytical, common/network-parser/NetworkParser.cc, and
common/NetworkFunction.cc, where a GB/s is 2^30 bytes a second; for the products
congestion_aware/multi-dim-topology and basic-topology.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeVar, get_args

import yaml

from ccl import text
from ccl.errors import FormatError
from ccl.serialization.documents import Document, document
from ccl.topology import Device, Link, Topology, device, duplex
from interchange.formats.fields import counted, decimal, digits, lost_details, short, text_in
from interchange.formats.format import Imported, Reader, Report, Request, Writer, Written, one_file

Block = Literal["Ring", "FullyConnected", "Switch"]
BLOCKS: tuple[Block, ...] = get_args(Block)

_Member = TypeVar("_Member")


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension: how many GPUs are joined how, GB/s one way and µs of a link."""

    block: Block
    count: int
    bandwidth: float
    alpha: float


def sizes(dimensions: Sequence[Dimension]) -> tuple[int, int]:
    """Return how many devices and one-way links a product has."""
    gpus = math.prod(each.count for each in dimensions)
    devices, links = gpus, 0
    for each in dimensions:
        if each.block == "Switch":
            devices += gpus // each.count
            links += 2 * gpus
        elif each.block == "Ring":
            links += gpus * (1 if each.count == 2 else 2)
        else:
            links += gpus * (each.count - 1)
    return devices, links


def product(dimensions: Sequence[Dimension]) -> Topology:
    """Make GPUs g0, g1, ... and switches s0, s1, ...; hosts are those of the first dimension.

    A product of one dimension has no hosts, since nothing tells one machine from another.
    """
    gpus = math.prod(each.count for each in dimensions)
    inner = dimensions[0].count
    hosted = len(dimensions) > 1
    devices: list[Device] = [
        device("gpu", f"g{rank}", host=f"h{rank // inner}" if hosted else None)
        for rank in range(gpus)
    ]
    links: list[Link] = []
    stride, switches = 1, 0
    for place, each in enumerate(dimensions):
        for members in _groups(gpus, stride=stride, count=each.count):
            names = [f"g{rank}" for rank in members]
            if each.block == "Switch":
                host = f"h{members[0] // inner}" if hosted and not place else None
                devices.append(device("switch", f"s{switches}", host=host))
                pairs = [(name, f"s{switches}") for name in names]
                switches += 1
            else:
                pairs = list(_pairs(each.block, names))
            for first, second in pairs:
                links += duplex(first, second, bandwidth=each.bandwidth, alpha=each.alpha)
        stride *= each.count
    title = " × ".join(f"{_called(each)} {each.count}" for each in dimensions)
    return Topology(title, tuple(devices), tuple(links))


def _called(each: Dimension) -> Block:
    """Return what a dimension is, where a mesh of two or three is a ring."""
    return "Ring" if each.block == "FullyConnected" and each.count <= 3 else each.block


def dimensions_of(topology: Topology) -> tuple[Dimension, ...]:
    """Return the dimensions of a product, recognised by the ranks of its GPUs.

    Raises
    ------
    FormatError
        If it is malformed, saying what is in the way.
    """
    edges = _edges(topology)
    if len(topology.ranks) < 2:
        raise FormatError(f"{topology} has {len(topology.ranks)} GPU; a product has 2 or more")
    for found in _candidates(edges, len(topology.ranks)):
        if _edges(product(found)) == edges:
            return found
    raise FormatError(
        f"{topology} is no product of rings, full meshes and switches in the order of its ranks; "
        "write it for ns-3"
    )


_Wire = tuple[float, float]
"""GB/s and µs of a link."""

_Edges = dict[frozenset[int], "tuple[str, _Wire]"]
"""By the ranks that it joins: what a switch, or a link, joins them with."""


def _edges(topology: Topology) -> _Edges:
    """Return links as pairs of ranks and switches as sets of them; refuse what is neither."""
    rank = topology.rank
    members: dict[str, set[int]] = {}
    wires: dict[str, set[_Wire]] = {}
    edges: _Edges = {}
    for link in topology.links:
        wire = link.bandwidth, link.alpha
        back = topology.link_index.get((link.dst, link.src))
        if back is None or (topology.links[back].bandwidth, topology.links[back].alpha) != wire:
            raise FormatError(
                f"link {link} has no equal way back; the analytical network has both ways alike"
            )
        if link.src in rank and link.dst in rank:
            edges[frozenset((rank[link.src], rank[link.dst]))] = "link", wire
        elif link.src in rank:
            members.setdefault(link.dst, set()).add(rank[link.src])
            wires.setdefault(link.dst, set()).add(wire)
        elif link.dst not in rank:
            raise FormatError(
                f"link {link} joins two devices that are no GPUs; the analytical network has "
                "switches between GPUs alone"
            )
    for each in topology.devices:
        if each.kind == "gpu":
            continue
        if each.kind != "switch" or len(wires.get(each.name, ())) != 1:
            what = "a switch whose links differ" if each.kind == "switch" else f"a {each.kind}"
            raise FormatError(
                f"{each.name} is {what}; the analytical network has equal links to each switch"
            )
        group = frozenset(members[each.name])
        if group in edges:
            raise FormatError(
                f"{each.name} joins GPUs that are joined already; the network has one way"
            )
        edges[group] = "switch", next(iter(wires[each.name]))
    return edges


def _candidates(edges: _Edges, gpus: int) -> Iterator[tuple[Dimension, ...]]:
    """Yield products that agree with what GPU 0 is joined with."""
    own = {group: told for group, told in edges.items() if 0 in group}
    waiting: list[tuple[tuple[Dimension, ...], int, frozenset[frozenset[int]]]]
    waiting = [((), 1, frozenset())]
    while waiting:
        found, stride, used = waiting.pop()
        if stride == gpus:
            if len(used) == len(own):
                yield found
            continue
        for each in reversed(list(_next(own, stride, gpus=gpus))):
            groups = _joins(each, stride)
            if not groups & used:
                waiting.append(((*found, each), stride * each.count, used | groups))


def _next(
    own: dict[frozenset[int], tuple[str, _Wire]], stride: int, *, gpus: int
) -> Iterator[Dimension]:
    """Yield the dimensions that may come next, given what GPU 0 is joined with."""
    rest = gpus // stride
    for group, (kind, wire) in own.items():
        if kind == "switch" and stride in group and rest % len(group) == 0:
            found = Dimension("Switch", len(group), *wire)
            if _joins(found, stride) == {group}:
                yield found
    first = own.get(frozenset((0, stride)))
    if first is None or first[0] != "link":
        return
    for block in ("Ring", "FullyConnected"):
        for count in range(2 if block == "Ring" else 4, rest + 1):
            if block == "FullyConnected" and own.get(frozenset((0, (count - 1) * stride))) != first:
                break
            found = Dimension(block, count, *first[1])
            if rest % count == 0 and all(own.get(each) == first for each in _joins(found, stride)):
                yield found


def _joins(dimension: Dimension, stride: int) -> frozenset[frozenset[int]]:
    """Return what a dimension joins GPU 0 with."""
    if dimension.block == "Switch":
        return frozenset((frozenset(range(0, stride * dimension.count, stride)),))
    others: Sequence[int] = range(1, dimension.count)
    if dimension.block == "Ring":
        others = (1, dimension.count - 1)
    return frozenset(frozenset((0, stride * other)) for other in others)


def _groups(gpus: int, *, stride: int, count: int) -> Iterator[range]:
    """Yield the ranks that differ in one dimension alone."""
    whole = stride * count
    for base in range(0, gpus, whole):
        for first in range(base, base + stride):
            yield range(first, first + whole, stride)


def _pairs(block: Block, members: Sequence[_Member]) -> Iterator[tuple[_Member, _Member]]:
    if block == "Ring":
        yield from pairwise(members)
        if len(members) > 2:
            yield members[-1], members[0]
    else:
        for i, first in enumerate(members):
            for second in members[i + 1 :]:
                yield first, second


MOST_BYTES = 2**20
MOST_DIMENSIONS = 16
MOST_DEVICES = 100_000
MOST_LINKS = 400_000

KEYS = ("topology", "npus_count", "bandwidth", "latency")
_KEY = re.compile(rb"^(?:topology|npus_count)[ \t]*:", re.MULTILINE)

_Words = dict[str, tuple[int, list[tuple[int, str]]]]
"""By key its line, and its values with theirs."""


def recognises(content: bytes) -> bool:
    """Say whether a text has the first two keys at the beginnings of lines."""
    found = {each.rstrip(b": \t") for each in _KEY.findall(content[:65_536])}
    return len(found) == 2


def read(content: bytes, request: Request) -> Imported:
    """Read a network; errors as `interchange.formats.format.Reader`."""
    words = _words(content)
    dimensions = _dimensions(words)
    topology = product(dimensions)
    return Imported(document(topology), _report(topology, dimensions, words))


def write(content: Document) -> Written:
    """Write a topology that is a product.

    Raises
    ------
    FormatError
        If it is malformed.
    """
    topology = content.topology
    dimensions = dimensions_of(topology)
    rows: dict[str, list[str]] = {
        "topology": [str(each.block) for each in dimensions],
        "npus_count": [str(each.count) for each in dimensions],
        "bandwidth": [_with_point(digits(each.bandwidth)) for each in dimensions],
        "latency": [_with_point(digits(each.alpha, shift=3)) for each in dimensions],
    }
    units = {"bandwidth": "  # GB/s; ASTRA-sim takes 2^30 bytes for a GB", "latency": "  # ns"}
    lines = [f"{key}: [ {', '.join(row)} ]{units.get(key, '')}\n" for key, row in rows.items()]
    return one_file("".join(lines), ending="yml", lost=_lost(topology, product(dimensions)))


def _words(content: bytes) -> _Words:
    """Return the values by key, as words with their lines."""
    plain = text_in(content, most=MOST_BYTES)
    try:
        return _mapping(yaml.parse(plain, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        line = 1 if error.problem_mark is None else error.problem_mark.line + 1
        raise FormatError(f"line {line}: it is not YAML ({error.problem})") from None
    except yaml.YAMLError as error:
        raise FormatError(f"it is not YAML ({str(error).splitlines()[0]})") from None
    except (ValueError, OverflowError):  # what PyYAML lets pass
        raise FormatError(
            "it is not YAML (an escape of no character, or a version of too many digits)"
        ) from None


def _mapping(events: Iterator[yaml.Event]) -> _Words:
    """Follow the events of one mapping of words and lists of words."""
    found: _Words = {}
    depth = 0
    key: str | None = None
    for event in events:
        line = 1 if event.start_mark is None else event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise FormatError(
                f"line {line}: it has the alias *{event.anchor}; write out what it stands for"
            )
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            depth += 1
            if depth > 2 or isinstance(event, yaml.MappingStartEvent) != (depth == 1):
                raise FormatError(
                    f"line {line}: it is a mapping of lists, such as npus_count: [ 8, 2 ]"
                )
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            depth -= 1
            key = None
        elif isinstance(event, yaml.ScalarEvent) and depth:
            if key is None:
                key = _key(event.value, line, found)
            else:
                found[key][1].append((line, event.value))
                key = key if depth == 2 else None
    return found


def _key(word: str, line: int, found: _Words) -> str:
    if word in found:
        raise FormatError(f"line {line}: {short(word)} comes a second time; give it once")
    found[word] = line, []
    return word


def _dimensions(words: _Words) -> tuple[Dimension, ...]:
    """Return the dimensions, checked and bounded before anything is made of them."""
    for key in KEYS:
        if key not in words:
            raise FormatError(f"it has no {key}; there are {', '.join(KEYS)}")
    many = len(words["topology"][1])
    if not 1 <= many <= MOST_DIMENSIONS:
        raise FormatError(
            f"line {words['topology'][0]}: topology has {many} dimensions; give 1 to 16"
        )
    for key in KEYS[1:]:
        line, row = words[key]
        if len(row) != many:
            raise FormatError(
                f"line {line}: {key} has {len(row)} values and topology {many}; give {many}"
            )
    found = tuple(_dimension(words, place) for place in range(many))
    devices, links = sizes(found)
    if devices > MOST_DEVICES or links > MOST_LINKS:
        raise FormatError(
            f"line {words['npus_count'][0]}: it has {devices:,} devices and {links:,} links; "
            f"at most {MOST_DEVICES:,} and {MOST_LINKS:,} are read"
        )
    return found


def _dimension(words: _Words, place: int) -> Dimension:
    row = {key: words[key][1][place] for key in KEYS}
    what = {key: f"line {line}: {key} of dimension {place + 1}" for key, (line, _) in row.items()}
    named = row["topology"][1]
    block = next((each for each in BLOCKS if each == named), None)
    if block is None:
        raise FormatError(f"{what['topology']} is {short(named)}; there are {', '.join(BLOCKS)}")
    count = counted(row["npus_count"][1], what["npus_count"], least=2, most=MOST_DEVICES)
    bandwidth = float(decimal(row["bandwidth"][1], what["bandwidth"]))
    latency = decimal(row["latency"][1], what["latency"])
    if not 0 < bandwidth < float("inf"):
        raise FormatError(f"{what['bandwidth']} is {bandwidth:g} GB/s; give a positive bandwidth")
    if not 0 <= float(latency) < float("inf"):
        raise FormatError(f"{what['latency']} is {float(latency):g} ns; give zero or more")
    return Dimension(block, count, bandwidth, float(latency.scaleb(-3)))


def _report(topology: Topology, dimensions: Sequence[Dimension], words: _Words) -> Report:
    taken = [
        f"dimension {place}: {each.block} of {each.count} GPUs, links of {each.bandwidth:g} GB/s "
        f"and {each.alpha:g} µs"
        for place, each in enumerate(dimensions, 1)
    ]
    gpus = len(topology.ranks)
    switches = text.count(len(topology.devices) - gpus, "switch")
    links = text.count(len(topology.links), "one-way link")
    taken.append(f"{text.count(gpus, 'GPU')}, {switches} and {links} in all")
    assumed = ["a GB/s is 10^9 bytes a second; ASTRA-sim's analytical network counts 2^30"]
    if len(dimensions) > 1:
        hosts = f"{text.count(len(topology.hosts), 'host')} of {dimensions[0].count} GPUs"
        assumed.append(f"the first dimension is a host: {hosts}")
    if any(each.block == "Ring" and each.count == 2 for each in dimensions):
        assumed.append("a ring of 2 GPUs is one link each way")
    unknown = [word for word in words if word not in KEYS]
    named = ", ".join(map(short, unknown[:5]))
    left = (f"{text.count(len(unknown), 'key')} of no known meaning: {named}",) if unknown else ()
    return Report(tuple(taken), tuple(assumed), left)


def _with_point(number: str) -> str:
    """Return a number that every reader of YAML takes for one with a fraction."""
    digits, *power = number.partition("E")
    return number if "." in digits else f"{digits}.0{''.join(power)}"


def _lost(topology: Topology, made: Topology) -> tuple[str, ...]:
    """Say what reading the file again does not give."""
    if topology == made:
        return ()
    lost = [] if topology.name == made.name else [f"its name, {topology.name}"]
    ours = sorted(topology.devices, key=lambda each: each.kind != "gpu")
    if [each.name for each in topology.devices] != [each.name for each in made.devices]:
        lost.append("names and order of devices: GPUs become g0, g1, ... by rank, switches s0, ...")
    if [each.host for each in ours] != [each.host for each in made.devices]:
        lost.append("hosts: those that are read again are the first dimension")
    return (*lost, *lost_details(topology))


READER = Reader(
    "astra-sim", "ASTRA-sim analytical network (YAML)", ("yml", "yaml"), recognises, read
)

WRITER = Writer("astra-sim", "ASTRA-sim analytical network (YAML)", "yml", "topology", write)
