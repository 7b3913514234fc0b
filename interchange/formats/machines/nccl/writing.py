"""Writes a drawn host as an NCCL system XML, and says how it differs when it is read again.

Nothing is reported lost from knowledge of the writer: what was written is read by the reader, and
the two clusters are compared. `difference` says in sentences in what they differ, where devices of
one are known in the other.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from ccl.options import option
from ccl.serialization.documents import Document
from ccl.text import count
from ccl.topology import Link, Topology
from interchange.formats.fields import some
from interchange.formats.format import Writer, Written, one_file
from interchange.formats.machines.nccl import parts as nccl
from interchange.formats.machines.nccl.shape import Shape, Spot, fast, host_of, shape_of
from interchange.formats.machines.nccl.system import build
from interchange.formats.xml import Element, parse_xml, xml_text


def difference(
    drawn: Topology, back: Topology, called: Mapping[str, str]
) -> tuple[int, tuple[str, ...]]:
    """Compare a cluster with what was read back.

    Parameters
    ----------
    drawn
        The cluster.
    back
        What was read.
    called
        What the devices of the first that were written are called in the second.

    Returns
    -------
    int
        How much differs but for names and latencies.
    tuple of str
        Sentences; none only if the two are equal.
    """
    told: list[str] = []
    kept = {name: to for name, to in called.items() if to in back.index}
    differing = _devices(drawn, back, kept, told) + _links(drawn, back, kept, told)
    if drawn.limits:
        told.append(f"{count(len(drawn.limits), 'shared limit')}")
    renamed = [name for name, to in kept.items() if name != to]
    if renamed:
        told.append(
            f"the names of {count(len(renamed), 'device')}, such as {renamed[0]}, which becomes "
            f"{kept[renamed[0]]}"
        )
    elif not told and drawn != back:
        told.append("the name of the cluster, the order of devices and links, or last digits")
    return differing + len(drawn.limits), tuple(told)


def _devices(drawn: Topology, back: Topology, kept: Mapping[str, str], told: list[str]) -> int:
    gone = [each.name for each in drawn.devices if each.name not in kept]
    if gone:
        told.append(
            f"{count(len(gone), 'device')} of other hosts, the network or no kind of NCCL's"
            f": {some(gone)}"
        )
    new = sorted(set(back.index) - set(kept.values()), key=back.index.__getitem__)
    if new:
        told.append(f"places are invented that NCCL wants: {some(new)}")
    changed = [
        each.name
        for each in drawn.devices
        if each.name in kept and replace(each, name=kept[each.name]) != back.device(kept[each.name])
    ]
    if changed:
        told.append(
            f"host, kind, abilities or buffer of {count(len(changed), 'device')}: {some(changed)}"
        )
    return len(gone) + len(new) + len(changed)


def _links(drawn: Topology, back: Topology, kept: Mapping[str, str], told: list[str]) -> int:
    known = [link for link in drawn.links if link.src in kept and link.dst in kept]
    ends = {(kept[link.src], kept[link.dst]) for link in known}
    pairs = [
        (link, back.links[back.link_index[kept[link.src], kept[link.dst]]])
        for link in known
        if (kept[link.src], kept[link.dst]) in back.link_index
    ]
    there = {link.ends for link, _ in pairs}
    gone = [link for link in known if link.ends not in there]
    if gone:
        told.append(f"{count(len(gone), 'link')} that the format cannot say: {some(gone)}")
    old = set(kept.values())
    new = [
        link for link in back.links if link.ends not in ends and link.src in old and link.dst in old
    ]
    if new:
        told.append(f"{count(len(new), 'link')} that NCCL takes to be there: {some(new)}")
    other = [(a, b) for a, b in pairs if not math.isclose(a.bandwidth, b.bandwidth)]
    if other:
        first, read = other[0]
        told.append(
            f"the bandwidth of {count(len(other), 'link')}, such as {first}: {first.bandwidth:.8g} "
            f"GB/s becomes {read.bandwidth:.8g} GB/s"
        )
    late = [(a, b) for a, b in pairs if a.alpha != b.alpha]
    if late:
        first, read = late[0]
        told.append(
            f"the latency of {count(len(late), 'link')}, such as {first}: {first.alpha:g} µs "
            f"becomes {read.alpha:g} µs"
        )
    worded = [a for a, b in pairs if (a.medium, a.count) != (b.medium, b.count)]
    if worded:
        told.append(f"medium or number of {count(len(worded), 'link')}: {some(worded)}")
    return len(gone) + len(new) + len(other) + len(worded)


READ_BY_NCCL = 256
"""Elements that NCCL reads of a file (NVIDIA/nccl, src/graph/topo.h)."""

_WIDTHS = (1, 2, 4, 8, 16)
_CLASSES = {"gpu": "0x030200", "amd": "0x120000", "nic": "0x020000", "bridge": "0x060400"}


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the drawing does not say."""

    host: str = option("", "Host", "A file describes one; empty for the first or only one")
    sm: int = option(
        nccl.DEFAULT_SM,
        "GPU architecture",
        "Compute capability, such as 90, of GPUs whose NVLinks do not say theirs",
        min=10,
        max=999,
    )


def write(content: Document, options: Options) -> Written:
    """Write one host of a topology.

    Raises
    ------
    FormatError
        If there is no such host, or it has no GPU.
    """
    topology = content.topology
    host = host_of(topology, options.host)
    shape = shape_of(topology, host)
    written = [_written(topology, shape, options.sm, planned=planned) for planned in (True, False)]
    best = min(written, key=lambda each: each[1])
    return one_file(best[0], ending="xml", lost=best[2])


def _written(
    topology: Topology, shape: Shape, sm: int, *, planned: bool
) -> tuple[str, int, tuple[str, ...]]:
    """Return the text, how many things differ, and the sentences."""
    writing = _Writing(topology, shape, sm, planned=planned)
    text = xml_text(writing.system())
    parts = nccl.read_parts(parse_xml(text.encode()), planned=planned, merged=False)
    back = build(parts, copies=1, network="flat").topology
    differing, sentences = difference(topology, back, writing.called)
    lost = ["PCI addresses are invented; put in those of the machine before NCCL loads the file"]
    if not planned:
        lost.append(
            "the bandwidths of data sheets: NCCL plans with less, and reading the file gives them "
            "back with bandwidths=spec"
        )
    elements = text.count("<") - text.count("</")
    if elements > READ_BY_NCCL:
        lost.append(f"NCCL reads {READ_BY_NCCL} elements of a file; this one has {elements:,}")
    return text, differing, (*lost, *sentences)


class _Writing:
    """Builds the elements; `called` says what the reader will call each device."""

    def __init__(self, topology: Topology, shape: Shape, sm: int, *, planned: bool) -> None:
        self.topology, self.shape, self.sm, self.planned = topology, shape, sm, planned
        self.called: dict[str, str] = {}
        self.gpus = [name for name, role in shape.roles.items() if role == "gpu"]
        self.nics = [name for name, role in shape.roles.items() if role == "nic"]
        for names, role in ((self.gpus, "gpu"), (self.nics, "nic")):
            self.called.update({name: f"{role}{i}" for i, name in enumerate(names)})
        numbered: tuple[list[Spot], ...] = ([*self.gpus], [*self.nics], [*shape.ports])
        self.place = {each: i for many in numbered for i, each in enumerate(many)}
        self.addresses: dict[Spot, str] = {}
        self._address_all()
        self.generations = {name: self._generation(name) for name in self.gpus}
        self.amd = any(each in nccl.XGMIS for each in self.generations.values())
        self.bridges = self.switches = 0

    def _address_all(self) -> None:
        spots = [*self.shape.above, *self.shape.roles]
        for number, spot in enumerate(dict.fromkeys(spots), start=1):
            self.addresses[spot] = f"{number >> 8:04x}:{number & 255:02x}:00.0"

    def system(self) -> Element:
        """Return the root."""
        root = Element("system", {"version": "2" if self.amd else "1"})
        for number, cpu in enumerate(self.shape.cpus):
            kind = self._cpu_kind(cpu)
            element = Element("cpu", {"numaid": str(number), "arch": kind.arch})
            if kind.vendor:
                said = {"vendor": kind.vendor, "familyid": kind.family, "modelid": kind.model}
                element.attributes.update({key: str(value) for key, value in said.items()})
            if isinstance(cpu, str):
                self.called[cpu] = f"cpu{number}"
            element.children = [self._pci(spot) for spot in self._sorted(cpu)]
            element.children += self._local(cpu)
            root.children.append(element)
        # Only now, because the reader numbers NVSwitches by the first GPU that names them.
        elements = {each.attributes["rank"]: each for each in root.everywhere("gpu")}
        for rank, name in enumerate(self.gpus):
            elements[str(rank)].children = self._links(name)
        return root

    def _sorted(self, above: Spot) -> list[Spot]:
        """Return what hangs on a place, drawn things in their order and invented ones after."""
        index = self.topology.index
        spots = [each for each in self.shape.below.get(above, []) if not self._is_local(each)]
        last = len(index)
        return sorted(spots, key=lambda each: index[each] if isinstance(each, str) else last - each)

    def _is_local(self, spot: Spot) -> bool:
        """Say whether it has no PCI address of its own: a NIC of a CPU, one of many of a card."""
        above = self.shape.above.get(spot)
        if not (isinstance(spot, str) and isinstance(above, str)):
            return False
        link = self._link(above, spot)
        local = ("nic", "gpu") if self.shape.roles[above] == "pcie" else ("nic",)
        return self.shape.roles[spot] in local and link is not None and link.medium == "local"

    def _local(self, above: Spot) -> list[Element]:
        """Return the GPUs, ports and crossings of a CPU or card; a port may have several CPUs."""
        if not isinstance(above, str):
            return []
        found = [self._gpu(name) for name in self._local_gpus(above)]
        nics = [
            Element("nic", {}, [self._net(link.dst)])
            for link in self.topology.links_out[above]
            if self.shape.roles.get(link.dst) == "nic" and self._is_local(link.dst)
        ]
        crossings = [
            Element("pcilink", {"target": self.addresses[link.dst]})
            for link in self.topology.links_out[above]
            if link.medium == "local" and self.shape.roles.get(link.dst) == "pcie"
        ]
        return [*found, *nics, *crossings]

    def _local_gpus(self, card: Spot) -> list[str]:
        many = [each for each in self.shape.below.get(card, []) if isinstance(each, str)]
        return [each for each in many if self.shape.roles[each] == "gpu" and self._is_local(each)]

    def _speakers(self, name: str) -> list[str]:
        """Return the devices whose NVLinks a GPU lists: its own, for a card's first GPU its too."""
        card = self.shape.above[name]
        first = self._local_gpus(card)[:1] == [name]
        return [name, str(card)] if first else [name]

    def _link(self, src: str, dst: str) -> Link | None:
        at = self.topology.link_index.get((src, dst))
        return None if at is None else self.topology.links[at]

    def _cpu_kind(self, cpu: Spot) -> nccl.Cpu:
        for link in self.topology.links_out[cpu] if isinstance(cpu, str) else ():
            for kind in (*nccl.CPUS, nccl.UNKNOWN_CPU):
                if (kind.wire.medium, kind.wire.bandwidth) == (link.medium, link.bandwidth):
                    return kind
        return nccl.CPUS[1]

    def _pci(self, spot: Spot) -> Element:
        role = self.shape.roles.get(spot) if isinstance(spot, str) else None
        port = self.shape.ports.get(spot) if isinstance(spot, int) else None
        above = self.shape.above[spot]
        link = None
        if isinstance(spot, str) and isinstance(above, str):
            link = self._link(above, spot) or self._link(spot, above)
        generation, width = self._lanes(link, exact=role != "nic")
        kind = "nic" if port is not None else role if role in ("gpu", "nic") else "bridge"
        said = {
            "busid": self.addresses[spot],
            "class": _CLASSES["amd" if kind == "gpu" and self.amd else kind],
            "link_speed": f"{generation.transfers} GT/s PCIe",
            "link_width": str(width),
        }
        element = Element("pci", said)
        if port is not None:
            element.children = [Element("nic", {}, [self._port(spot, port)])]
        elif kind == "gpu" and isinstance(spot, str):
            element.children = [self._gpu(spot)]
        elif kind == "nic" and isinstance(spot, str):
            net = self._net(spot)
            if any(each.medium == "InfiniBand" for each in self.topology.links_out[spot]):
                said["class"] = "0x020700"
            element.children = [Element("nic", {}, [net])]
        else:
            if isinstance(spot, str):
                self.called[spot] = f"pcie{self.bridges}"
            self.bridges += 1
            element.children = [self._pci(each) for each in self._sorted(spot)]
            element.children += self._local(spot)
        element.attributes = said
        return element

    def _lanes(self, link: Link | None, *, exact: bool) -> tuple[nccl.PcieGeneration, int]:
        """Return the PCIe that carries what a link does, or the nearest, not less if not exact."""
        medium = link.medium if link is not None else "PCIe 4"
        bandwidth = link.bandwidth if link is not None else nccl.PCIES[3].planned * 16
        usual = sorted(nccl.PCIES, key=lambda each: f"PCIe {each.number}" != medium)
        lanes = [(usual[0], width) for width in (*_WIDTHS, *range(1, nccl.MOST_LANES + 1))]
        lanes += [(each, width) for each in usual[1:] for width in _WIDTHS if exact]
        rates = [
            (each.wire(width, planned=self.planned).bandwidth, each, width) for each, width in lanes
        ]
        same = next((row for row in rates if row[0] == bandwidth), None)
        if same is not None:
            return same[1:]
        near = rates[: len(_WIDTHS)]
        if not exact:
            near = [row for row in near if row[0] >= bandwidth] or near
        return min(near, key=lambda row: abs(row[0] - bandwidth))[1:]

    def _gpu(self, name: str) -> Element:
        rank, generation = self.place[name], self.generations[name]
        said = {"dev": str(rank), "sm": "90" if self.amd else generation.key}
        if self.amd:
            gcn = {"gfx94": "gfx942", "gfx95": "gfx950"}.get(generation.key, generation.key)
            said |= {"gcn": gcn, "arch": "38911"}
        return Element("gpu", said | {"rank": str(rank), "gdr": "1"})

    def _net(self, name: str) -> Element:
        """Return the port of a NIC; its speed is what it has into the network, or in all."""
        outside = [
            link.bandwidth
            for link in self.topology.links_out[name]
            if link.dst not in self.shape.roles
        ]
        inside = [link.bandwidth for link in self.topology.links_out[name]]
        return _port(self.place[name], max(outside or inside, default=1.25))

    def _port(self, spot: Spot, link: Link) -> Element:
        return _port(len(self.nics) + self.place[spot], link.bandwidth)

    def _links(self, name: str) -> list[Element]:
        """Return what hangs on a GPU: NVLinks, and C2C."""
        found = []
        index = self.topology.index
        links = [link for each in self._speakers(name) for link in self.topology.links_out[each]]
        links.sort(key=lambda link: index[link.dst])
        for link in links:
            role = self.shape.roles.get(link.dst)
            if role == "cpu" and link.medium == "NVLink-C2C":
                rate = str(max(1, round(link.bandwidth * 1000 / link.count)))
                found.append(Element("c2c", {"bw": rate, "count": str(link.count)}))
            elif self._is_nvlink(link):
                found.append(self._nvlink(name, link, str(role)))
        return found

    def _is_nvlink(self, link: Link) -> bool:
        """Say whether a link is written as NVLink: to GPUs also what does not say what it is."""
        role = self.shape.roles.get(link.dst)
        if link.medium == "NVLink-C2C":
            return False
        bare = role in ("gpu", "nvswitch") and self.shape.roles[link.src] == "gpu"
        return fast(link) or (bare and not link.medium.startswith("PCIe"))

    def _nvlink(self, name: str, link: Link, role: str) -> Element:
        count = _times(link, self.generations[name].wire(planned=self.planned).bandwidth)
        classes = {"nvswitch": nccl.NVSWITCH, "cpu": nccl.NVSWITCH_CPU}
        said = {
            "target": self.addresses.get(link.dst, "0000:00:00.0"),
            "count": str(count),
            "tclass": classes.get(role, _CLASSES["amd" if self.amd else "gpu"]),
        }
        if role == "nvswitch" and link.dst not in self.called:
            self.called[link.dst] = f"nvswitch{self.switches}"
            self.switches += 1
        return Element("xgmi" if self.amd else "nvlink", said)

    def _generation(self, name: str) -> nccl.Generation:
        """Return the generation whose figures the links of a GPU have."""
        links = [
            link
            for each in self._speakers(name)
            for link in self.topology.links_out[each]
            if link.dst in self.shape.roles and self._is_nvlink(link)
        ]
        media = {link.medium for link in links}
        known = [each for each in (*nccl.NVLINKS, *nccl.XGMIS) if each.medium in media]
        links = [link for link in links if not known or link.medium == known[0].medium]
        for each in known or [nccl.nvlink(self.sm)]:
            wire = each.wire(planned=self.planned)
            if all(link.bandwidth == wire.times(link.count).bandwidth for link in links):
                return each
        return known[0] if known else nccl.nvlink(self.sm)


def _times(link: Link, rate: float) -> int:
    """Return the number of NVLinks that come closest to a link."""
    return int(min(max(1.0, round(min(link.bandwidth / rate, 1e9))), nccl.MOST_PARALLEL))


def _port(number: int, bandwidth: float) -> Element:
    speed = int(min(max(1.0, round(min(bandwidth * 8000, 1e12))), nccl.MOST_SPEED))
    said = {"name": f"nic{number}", "dev": str(number), "speed": str(speed), "port": "1"}
    return Element("net", said | {"latency": "0.000000", "maxconn": "131072", "gdr": "1"})


WRITER = Writer("nccl", "NCCL or RCCL topology", "xml", "topology", write, Options)
