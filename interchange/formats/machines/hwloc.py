"""What ``lstopo --of xml`` writes, as a topology of one host: its PCIe tree with GPUs and adapters.

Packages and PCIe switches become switches. hwloc tells the speed that a PCIe link has at the
moment, not what it is capable of. NVLinks are in a table of the file that is left out: ``nvidia-smi
topo -m`` tells them better, and `interchange.formats.merging` joins the two.

Source of the shape: open-mpi/hwloc, its documentation of objects, attributes and hwloc2.dtd.
"""

from __future__ import annotations

from ccl.errors import FormatError, ProblemError
from ccl.serialization.documents import document
from ccl.topology import Device, DeviceKind, Link, SharedLimit, Topology, device, duplex
from interchange.formats.format import Asked, Imported, Reader, Report
from interchange.formats.machines._figures import HOP_ALPHA, MEMORY, PCIE, SOCKETS
from interchange.formats.machines._hwloc_parts import Found, Part, collapsed, parts_of, without
from interchange.formats.machines._told import bandwidth, choice, count, yes
from interchange.formats.xml import Element, begins_with, parse_xml

SPEEDS = {"file": "as the file tells", "pcie": "as the setting pcie says"}
NICS = {"rdma": "those with RDMA, if any has it", "all": "all", "none": "none"}
MOST_LEAVES = 4096
"""GPUs and adapters of a host, virtual ones too."""

IDLE = 8.0
"""GB/s below which the link of a GPU looks as if it saved power."""


def recognises(content: bytes) -> bool:
    """Say whether a text is XML with objects of hwloc in it."""
    return begins_with(content, "topology") and b"<object type=" in content[:65536]


def read(content: bytes, asked: Asked) -> Imported:
    """Read a topology of hwloc 1, 2 or 3.

    Raises
    ------
    FormatError
        If it is no XML of hwloc, has no GPU, or a setting is unknown.
    """
    try:
        root = parse_xml(content)
        machine = next(root.each("object"), None)
        if root.tag != "topology" or machine is None:
            msg = "it is no <topology> with an <object>; give what lstopo --of xml writes"
            raise FormatError(msg)
    except FormatError as error:
        msg = f"{asked.name}: {error}"
        raise FormatError(msg) from None
    try:
        return _Reading(root, machine, asked).imported()
    except (FormatError, ProblemError) as error:
        told = str(error)
        msg = told if told.startswith(f"{asked.name}: ") else f"{asked.name}: {told}"
        raise type(error)(msg) from None


class _Reading:
    """Makes the topology of a machine, and notes what becomes of each part."""

    def __init__(self, root: Element, machine: Element, asked: Asked) -> None:
        self.root = root
        self.machine = machine
        self.asked = asked
        self.host = _host(machine)
        self.taken: list[str] = []
        self.assumed: list[str] = []
        self.left_out: list[str] = []
        self.devices: list[Device] = []
        self.links: list[Link] = []
        self.limits: list[SharedLimit] = []
        self.names: dict[int, str] = {}
        self.used: set[str] = set()
        self.numbers: dict[str, int] = {}
        self.untold = 0
        self.generation = choice(asked, "pcie", among=PCIE, usual="4")
        self.speeds = choice(asked, "speeds", among=SPEEDS, usual="file")
        self.sockets = bandwidth(asked, "sockets", usual=SOCKETS[self.generation])

    def imported(self) -> Imported:
        """Return the topology with its report."""
        found = Found()
        top = parts_of(self.machine, found)
        self.chosen(top)
        chains = collapsed(top)
        gpus = sorted(
            (each for each in top.everything() if each.sort == "gpu"),
            key=lambda each: (*each.rank, each.name),
        )
        leaves = sum(each.sort in {"gpu", "nic"} for each in top.everything())
        if leaves > MOST_LEAVES:
            msg = f"it has {leaves:,} GPUs and adapters; a host is read up to {MOST_LEAVES:,}"
            raise FormatError(msg)
        if not gpus:
            msg = (
                "it has no GPU; write it where lstopo sees PCI devices (lstopo --whole-io --of xml)"
            )
            raise FormatError(msg)
        for i, gpu in enumerate(gpus):
            self.make(gpu, "gpu", f"gpu{i}")
        self.lay(top)
        self.told(top, gpus, chains)
        self.told_beside(found)
        name = self.asked.name.rpartition("/")[2].partition(".")[0].strip() or "hwloc"
        topology = Topology(name, tuple(self.devices), tuple(self.links), tuple(self.limits))
        report = Report(tuple(self.taken), tuple(self.assumed), tuple(self.left_out))
        return Imported(document(topology), report)

    def chosen(self, top: Part) -> None:
        """Take out memories and adapters that are not wanted."""
        drop = {id(each) for each in top.everything() if each.sort == "memory"}
        if yes(self.asked, "memory"):
            drop = set()
        elif drop:
            self.left_out.append(f"{count(len(drop), 'memory', 'memories')} (setting memory=true)")
        nics = [each for each in top.everything() if each.sort == "nic"]
        wanted = choice(self.asked, "nics", among=NICS, usual="rdma")
        rdma = any(each.fabric for each in nics)
        lost = {
            id(each)
            for each in nics
            if wanted == "none" or (wanted == "rdma" and rdma and not each.fabric)
        }
        if lost:
            self.left_out.append(
                f"{count(len(lost), 'network adapter')} without RDMA (setting nics=all)"
                if wanted == "rdma"
                else count(len(lost), "network adapter")
            )
        without(top, drop | lost)

    def lay(self, top: Part) -> None:
        """Draw the packages with what hangs on them, and what joins them."""
        packages = [each for each in top.parts if each.sort == "package"]
        loose = [each for each in top.parts if each.sort != "package"]
        names = [self.place(each) for each in packages]
        if len(names) == 2 and not loose:
            self.join(names[0], names[1], self.sockets, "socket link")
            return
        if len(names) == 1:
            hub = names[0]
        else:
            hub = self.make(top, "switch", "sockets0" if names else "cpu0")
            for name in names:
                self.join(name, hub, self.sockets, "socket link")
        for each in loose:
            self.hang(each, hub)

    def place(self, part: Part) -> str:
        """Draw a part with what is below it; return its name."""
        if part.sort == "gpu":
            return self.names[id(part)]
        if part.sort == "nic":
            name = self.make(part, "nic", part.name or "nic0")
        elif part.sort == "memory":
            name = self.make(part, "memory", f"mem{part.name or 0}")
        else:
            sort = "cpu" if part.sort == "package" else "pcie"
            name = self.make(part, "switch", f"{sort}{part.name or 0}")
        for each in part.parts:
            self.hang(each, name)
        return name

    def hang(self, part: Part, above: str) -> None:
        """Draw a part and link it to what is above it."""
        name = self.place(part)
        if part.sort == "memory":
            ends = self.join(name, above, MEMORY, "memory bus")
            self.limits.append(SharedLimit(f"memory bus of {name}", ends, MEMORY))
            return
        speed = part.speed if self.speeds == "file" else 0.0
        self.untold += not speed
        self.join(name, above, speed or PCIE[self.generation], _medium(speed, self.generation))

    def make(self, part: Part, kind: DeviceKind, name: str) -> str:
        """Make the device of a part, with the first number that is free where a name is not."""
        stem = name.rstrip("0123456789") or name
        while name in self.used:
            number = self.numbers.get(stem, 0)
            self.numbers[stem] = number + 1
            name = f"{stem}{number}"
        self.used.add(name)
        self.names[id(part)] = name
        self.devices.append(device(kind, name, host=self.host))
        return name

    def join(
        self, first: str, second: str, bandwidth: float, medium: str
    ) -> tuple[tuple[str, str], ...]:
        """Link two devices both ways and return the ends of the two links."""
        pair = duplex(first, second, bandwidth=bandwidth, alpha=HOP_ALPHA, medium=medium)
        self.links += pair
        return tuple(each.ends for each in pair)

    def told(self, top: Part, gpus: list[Part], chains: int) -> None:
        """Say what was drawn and what was assumed of it."""
        sorts = [each.sort for each in top.everything()]
        parts = {
            "GPU": len(gpus),
            "network adapter": sorts.count("nic"),
            "package": sorts.count("package"),
        }
        listed = [count(number, what) for what, number in parts.items() if number]
        bridges = sorts.count("bridge")
        listed += [count(bridges, "PCIe switch", "PCIe switches")] if bridges else []
        self.taken.append(f"{', '.join(listed)} of {self.host}")
        if chains:
            self.left_out.append(f"{count(chains, 'bridge')} with one thing below, drawn as a link")
        if self.untold:
            self.assumed.append(
                f"{count(self.untold, 'PCIe link')} without a speed have 16 lanes of generation "
                f"{self.generation}, {PCIE[self.generation]:g} GB/s one way (setting pcie)"
            )
        if any(link.medium == "socket link" for link in self.links):
            self.assumed.append(
                f"packages are joined at {self.sockets:g} GB/s one way (setting sockets)"
            )
        if self.limits:
            self.assumed.append(f"a memory reads and writes {MEMORY:g} GB/s together")
        self.assumed.append(f"the latency of every link is {HOP_ALPHA} µs")
        slow = sum(0 < gpu.speed < IDLE for gpu in gpus)
        if slow and self.speeds == "file":
            self.assumed.append(
                f"{count(slow, 'GPU has', 'GPUs have')} the PCIe speed told, below {IDLE:g} GB/s "
                "as of idle ones (setting speeds=pcie takes the setting's)"
            )
        if len({gpu.rank[0] for gpu in gpus}) > 1 or gpus[0].rank[0] > 1:
            self.assumed.append("GPUs are numbered by CUDA, or else by PCI address")

    def told_beside(self, found: Found) -> None:
        """Say what else the file has."""
        tables = {
            each.attributes.get("name", "")
            for each in self.root.everywhere("distances2", "distances2hetero")
        }
        fabrics = sorted(each for each in tables if each.startswith(("NVLink", "XGMI")))
        if fabrics:
            self.left_out.append(
                f"the table {fabrics[0]}; merge it with what nvidia-smi topo -m or rocm-smi prints"
            )
        if found.displays:
            self.left_out.append(f"{count(found.displays, 'display adapter')} of the board")
        if found.others:
            self.left_out.append(f"{count(found.others, 'other PCI device')}")


def _host(machine: Element) -> str:
    """Return the name of the machine, or h0."""
    said = (
        each.attributes.get("value", "").strip()
        for each in machine.each("info")
        if each.attributes.get("name") == "HostName"
    )
    return next(filter(None, said), "h0")


def _medium(speed: float, generation: str) -> str:
    """Return what a link is called: the generation only where its speed comes from it."""
    fitting = (each for each, rate in PCIE.items() if abs(speed - rate) < 0.02 * rate)
    number = next(fitting, "") if speed else generation
    return f"PCIe {number}".strip()


READER = Reader(
    name="hwloc",
    title="hwloc topology (lstopo XML)",
    endings=("xml",),
    recognises=recognises,
    read=read,
    settings={
        "pcie": "generation of PCIe links without a speed, 3 to 6",
        "speeds": "file for the speeds told, pcie for that of the setting everywhere",
        "sockets": "GB/s one way between packages",
        "nics": "rdma for adapters with RDMA if there are any, all, or none",
        "memory": "true draws the memory of each NUMA domain",
    },
)
