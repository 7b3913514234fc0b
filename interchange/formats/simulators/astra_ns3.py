"""Networks of ASTRA-sim's ns-3 backend, and of SimAI, in plain text.

::

    9 1 8                       devices, switches among them, links
    8                           numbers of the switches
    0 8 400Gbps 0.0005ms 0      two ends, rate, delay, error rate; a link goes both ways
    ...

SimAI begins with ``devices gpus_per_server nvswitches switches links gpu_type`` and lists its
NVSwitches before the others. ns-3 reads words, not lines, and so does this reader; from ``#`` to
the end of a line is a comment. Devices that are no switches are GPUs, whose order is their ranks.

Beside the network the writer puts the logical topology that ASTRA-sim wants: one dimension of all
GPUs, which says nothing of the links.

Sources: astra-sim/astra-sim, examples/network/ns3; aliyun/SimAI,
astra-sim-alibabacloud/inputs/topo.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ccl import text
from ccl.errors import FormatError
from ccl.serialization.documents import Document, document
from ccl.topology import Device, Link, Topology, device, duplex
from interchange.formats.fields import counted, delay, digits, lost_details, rate, short, text_in
from interchange.formats.format import Imported, Reader, Report, Request, Writer, Written

MOST_BYTES = 64 * 2**20
MOST_DEVICES = 100_000
MOST_LINKS = 1_000_000

NAME = "ns-3 network"

_HEADER = re.compile(r"\s*\d+[ \t]+\d+[ \t]+\d+(?:[ \t]+\d+[ \t]+\d+[ \t]+\S+)?[ \t]*\Z")
_LINK = re.compile(rb"^[ \t]*\d+[ \t]+\d+[ \t]+[\d.eE+-]+[kKMGT]?i?(?:bps|b/s|Bps|B/s)[ \t]", re.M)


@dataclass(frozen=True, slots=True)
class _Header:
    """The first line; `per_host` is 0 and `nvswitches` 0 where it is not SimAI's."""

    devices: int
    switches: int
    links: int
    nvswitches: int = 0
    per_host: int = 0
    gpu: str = ""


def recognises(content: bytes) -> bool:
    """Say whether a text begins with one of the headers and has a line of a link."""
    for line in content[:65_536].decode("latin-1").removeprefix("ï»¿").splitlines():
        words = line.partition("#")[0]
        if words.strip():
            return _HEADER.match(words) is not None and _LINK.search(content) is not None
    return False


def read(content: bytes, request: Request) -> Imported:
    """Read a network; errors as `interchange.formats.format.Reader`."""
    return _Reading(_words(content)).imported()


def write(content: Document) -> Written:
    """Write a topology, with the smaller rate and the longer delay where two directions differ."""
    topology = content.topology
    order = sorted(topology.devices, key=lambda each: each.kind != "gpu")
    number = {each.name: place for place, each in enumerate(order)}
    rows, differing = [], 0
    for place, link in enumerate(topology.links):
        back = topology.link_index.get((link.dst, link.src), len(topology.links))
        if back < place:  # both ways are one line
            continue
        ways = (link, *topology.links[back : back + 1])
        speeds = min(each.bandwidth for each in ways), max(each.alpha for each in ways)
        differing += len(ways) == 1 or any((w.bandwidth, w.alpha) != speeds for w in ways)
        words = f"{digits(speeds[0], times=8)}Gbps {digits(speeds[1], shift=-3)}ms"
        rows.append(f"{number[link.src]} {number[link.dst]} {words} 0\n")
    gpus = len(topology.ranks)
    head = f"{len(order)} {len(order) - gpus} {len(rows)}\n"
    switches = " ".join(map(str, range(gpus, len(order))))
    network = f"{head}{switches}\n{''.join(rows)}"
    logical = json.dumps({"logical-dims": [str(gpus)]}) + "\n"
    files = {"network.txt": network.encode(), "logical.json": logical.encode()}
    return Written(files, _lost(topology, differing))


def _words(content: bytes) -> list[list[str]]:
    """Return the words of each line."""
    plain = text_in(content, most=MOST_BYTES)
    return [line.partition("#")[0].split() for line in plain.split("\n")]


class _Reading:
    """Takes word after word."""

    def __init__(self, lines: Sequence[Sequence[str]]) -> None:
        self._lines = lines
        self._at = next((i for i, line in enumerate(lines) if line), len(lines))
        self.header = self._header()
        self._rest = self._after()
        self._errors = 0
        self._line = 1

    def imported(self) -> Imported:
        """Return what the words say."""
        switches = self._switches()
        devices, names, numbers = self._devices(switches)
        links = self._links(names, numbers)
        over = next(self._rest, None)
        topology = Topology(NAME, self._placed(devices, links), tuple(links))
        return Imported(document(topology), self._report(topology, over is not None))

    def _after(self) -> Iterator[tuple[int, str]]:
        for number in range(self._at + 1, len(self._lines)):
            for word in self._lines[number]:
                yield number + 1, word

    def _header(self) -> _Header:
        words = self._lines[self._at] if self._at < len(self._lines) else ()
        if len(words) not in (3, 6):
            raise FormatError(
                f"line {self._at + 1}: it begins with {len(words)} words; ASTRA-sim's header has "
                "3 numbers, devices, switches and links, and SimAI's has 5 and the type of GPU"
            )
        what = f"line {self._at + 1}: the number of"
        total = counted(words[0], f"{what} devices", least=1, most=MOST_DEVICES)
        if len(words) == 3:
            switches = counted(words[1], f"{what} switches", least=0, most=total)
            links = counted(words[2], f"{what} links", least=0, most=MOST_LINKS)
            return _Header(total, switches, links)
        per_host = counted(words[1], f"{what} GPUs of a server", least=1, most=MOST_DEVICES)
        nvswitches = counted(words[2], f"{what} NVSwitches", least=0, most=total)
        others = counted(words[3], f"{what} switches", least=0, most=total - nvswitches)
        links = counted(words[4], f"{what} links", least=0, most=MOST_LINKS)
        return _Header(total, nvswitches + others, links, nvswitches, per_host, words[5])

    def _word(self, what: str) -> str:
        """Return the next word."""
        found = next(self._rest, None)
        if found is None:
            header = self.header
            switches = text.count(header.switches, "switch")
            links = text.count(header.links, "link")
            raise FormatError(f"it ends before {what}; its header tells of {switches} and {links}")
        self._line = found[0]
        return found[1]

    def _number(self, what: str) -> int:
        """Return the number of a device."""
        word = self._word(what)
        most = self.header.devices - 1
        return counted(word, f"line {self._line}: {what}", least=0, most=most)

    def _switches(self) -> list[int]:
        found: dict[int, None] = {}
        for place in range(self.header.switches):
            number = self._number(f"the number of switch {place + 1}")
            if number in found:
                raise FormatError(
                    f"line {self._line}: switch {number} comes a second time; name each once"
                )
            found[number] = None
        return list(found)

    def _devices(self, switches: Sequence[int]) -> tuple[list[Device], list[str], set[int]]:
        """Make the devices, GPUs first; return their names by number, and the NVSwitches."""
        header = self.header
        names = [""] * header.devices
        nvswitches = set(switches[: header.nvswitches])
        for place, number in enumerate(switches):
            inside = place < header.nvswitches
            names[number] = f"nv{place}" if inside else f"s{place - header.nvswitches}"
        devices = []
        for rank, number in enumerate(i for i, name in enumerate(names) if not name):
            host = f"h{rank // header.per_host}" if header.per_host else None
            names[number] = f"g{rank}"
            devices.append(device("gpu", f"g{rank}", host=host))
        devices += [device("switch", names[number]) for number in switches]
        return devices, names, nvswitches

    def _links(self, names: Sequence[str], nvswitches: set[int]) -> list[Link]:
        links: list[Link] = []
        for place in range(1, self.header.links + 1):
            src = self._number(f"the first end of link {place}")
            dst = self._number(f"the second end of link {place}")
            word = self._word(f"the rate of link {place}")
            bandwidth = rate(word, f"line {self._line}: the rate of link {place}")
            word = self._word(f"the delay of link {place}")
            alpha = delay(word, f"line {self._line}: the delay of link {place}")
            self._errors += self._word(f"the error rate of link {place}").strip("0.") != ""
            if src == dst:
                raise FormatError(
                    f"line {self._line}: link {place} joins {src} with itself; join two devices"
                )
            medium = "NVLink" if src in nvswitches or dst in nvswitches else ""
            links += duplex(names[src], names[dst], bandwidth=bandwidth, alpha=alpha, medium=medium)
        return links

    def _placed(self, devices: Sequence[Device], links: Sequence[Link]) -> tuple[Device, ...]:
        """Put each NVSwitch into the host of its GPUs."""
        if not self.header.nvswitches:
            return tuple(devices)
        host = {each.name: each.host for each in devices}
        near: dict[str, set[str | None]] = {}
        for link in links:
            near.setdefault(link.dst, set()).add(host[link.src])
        placed = []
        for each in devices:
            hosts = near.get(each.name, set())
            inside = each.name.startswith("nv") and len(hosts) == 1
            placed.append(device("switch", each.name, host=hosts.pop()) if inside else each)
        return tuple(placed)

    def _report(self, topology: Topology, over: bool) -> Report:
        header, gpus = self.header, len(topology.ranks)
        others = header.switches - header.nvswitches
        devices = f"{text.count(gpus, 'GPU')}, {text.count(others, 'switch', 'switches')}"
        taken = [f"{devices} and {text.count(header.links, 'link')} with the same rate both ways"]
        if header.per_host:
            hosts = f"{text.count(len(topology.hosts), 'host')} of {header.per_host} GPUs"
            nvswitches = text.count(header.nvswitches, "NVSwitch")
            taken.append(f"{hosts} and {nvswitches}, whose links are NVLink")
        pairs = len(topology.links) // 2
        if pairs < header.links:
            taken.append(f"{text.count(header.links - pairs, 'link')} beside others, added to them")
        left = []
        if header.gpu:
            left.append(f"the type of the GPUs, {short(header.gpu)}")
        if self._errors:
            left.append(f"error rates of {text.count(self._errors, 'link')}")
        if over:
            left.append("words after the last link")
        return Report(tuple(taken), ("what is no switch is a GPU",), tuple(left))


def _lost(topology: Topology, differing: int) -> tuple[str, ...]:
    lost = [] if topology.name == NAME else [f"its name, {topology.name}"]
    if differing:
        lost.append(
            f"{text.count(differing, 'link')} of one way, or unlike the way back, become two-way, "
            "with the smaller bandwidth and the longer latency"
        )
    for kind, one, more in (("nic", "NIC", "NICs"), ("memory", "memory", "memories")):
        found = sum(each.kind == kind for each in topology.devices)
        if found:
            are = "is" if found == 1 else "are"
            lost.append(f"that {text.count(found, one, more)} {are} no switch")
    gpus = [each.name for each in topology.devices if each.kind == "gpu"]
    rest = [each.name for each in topology.devices if each.kind != "gpu"]
    if [*gpus, *rest] != [
        *(f"g{i}" for i in range(len(gpus))),
        *(f"s{i}" for i in range(len(rest))),
    ]:
        lost.append("names: devices are numbered, GPUs by rank and then the others")
    if topology.hosts:
        lost.append(f"which devices share one of the {text.count(len(topology.hosts), 'host')}")
    return (*lost, *lost_details(topology))


READER = Reader(
    "astra-ns3", "ASTRA-sim ns-3 or SimAI network (text)", ("txt", "topo"), recognises, read
)

WRITER = Writer("astra-ns3", "ASTRA-sim ns-3 network (text)", "zip", "topology", write)
