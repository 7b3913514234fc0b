"""What ``rocm-smi --showtopo`` prints, as text or as JSON, as a topology of one host.

Pairs of GPUs that XGMI joins directly become links; the others reach each other over the host. The
tool says one hop of every pair in an XGMI hive, joined directly or not; the weight tells them
apart, 15 for every link on the way.

Source: ROCm/rocm-systems, issue 5763 and pull request 7372, for weights and hops.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

from ccl.errors import FormatError, ProblemError
from ccl.serialization.documents import document
from ccl.topology import Link, Topology, device, duplex
from interchange.formats.format import Asked, Imported, Reader, Report
from interchange.formats.machines._figures import DIRECT_ALPHA, HOP_ALPHA, PCIE, SOCKETS
from interchange.formats.machines._pcie_tree import LEVELS, Tree, Widths, grown, joined, laid
from interchange.formats.machines._rocm_topo import Pair, Tables, is_json, is_text, tables_of
from interchange.formats.machines._told import bandwidth, choice, count, yes

HOST = "h0"

MI300_LINK = 64.0
"""GB/s one way of an XGMI link of MI300X, eight of which are a full mesh."""

MI200_LINK = 50.0
"""GB/s one way of an XGMI link of MI200 and MI250."""

NEAREST = {
    "nearest": "pairs of the least weight are linked",
    "all": "all pairs of one hop are linked",
}


def recognises(content: bytes) -> bool:
    """Say whether a text is of this format."""
    return is_json(content) or is_text(content)


def read(content: bytes, asked: Asked) -> Imported:
    """Read the tables.

    Raises
    ------
    FormatError
        If there are none, they are no tables, or a setting is unknown.
    """
    try:
        tables = tables_of(content)
    except FormatError as error:
        msg = f"{asked.name}: {error}"
        raise FormatError(msg) from None
    try:
        return _Reading(tables, asked).imported()
    except ProblemError as error:
        msg = f"{asked.name}: {error}"
        raise ProblemError(msg) from None


class _Reading:
    """Makes the topology of tables, and notes what becomes of each part."""

    def __init__(self, tables: Tables, asked: Asked) -> None:
        self.tables = tables
        self.asked = asked
        self.gpus = sorted(tables.gpus)
        self.names = {gpu: f"gpu{gpu}" for gpu in self.gpus}
        self.taken = [f"{count(len(self.gpus), 'GPU')} of one host"]
        self.assumed: list[str] = []
        self.left_out: list[str] = []

    def imported(self) -> Imported:
        """Return the topology with its report."""
        pairs = self.direct(self.hive())
        links = self.links(pairs)
        tree = self.tree(pairs)
        gpus = [device("gpu", name, host=HOST) for name in self.names.values()]
        name = self.asked.name.rpartition("/")[2].partition(".")[0].strip() or "rocm-smi"
        topology = Topology(name, (*gpus, *tree.devices), (*links, *tree.links))
        report = Report(tuple(self.taken), tuple(self.assumed), tuple(self.left_out))
        return Imported(document(topology), report)

    def hive(self) -> list[Pair]:
        """Return the pairs that are of XGMI and one hop, both ways."""
        kinds = self.tables.kinds
        found: list[Pair] = []
        unlike = unknown = 0
        for a, b in combinations(self.gpus, 2):
            said = {kinds.get((a, b), "").upper(), kinds.get((b, a), "").upper()}
            unlike += len(said) > 1
            unknown += not said & {"XGMI", "PCIE"}
            hops = self.number(self.tables.hops, a, b)
            if said == {"XGMI"} and (hops is None or hops <= 1):
                found.append((a, b))
        if unlike:
            self.left_out.append(f"XGMI that only one way tells, of {count(unlike, 'pair')}")
        if unknown:
            self.assumed.append(f"{count(unknown, 'pair')} of unknown link type meet over the host")
        return found

    def direct(self, hive: list[Pair]) -> list[Pair]:
        """Return the pairs that have a link of their own."""
        weights = {pair: self.number(self.tables.weights, *pair) for pair in hive}
        known = sorted({each for each in weights.values() if each is not None})
        if choice(self.asked, "xgmi", among=NEAREST, usual="nearest") == "all" or len(known) < 2:
            return hive
        near = [pair for pair in hive if weights[pair] in {None, known[0]}]
        far = len(hive) - len(near)
        self.assumed.append(
            f"{count(far, 'XGMI pair')} of weight {_listing(known[1:])} have no link of their own, "
            f"for the least is {known[0]} and each link on the way adds as much (setting xgmi=all "
            "links them)"
        )
        return near

    def links(self, pairs: list[Pair]) -> list[Link]:
        """Return the links of XGMI."""
        if not pairs:
            return []
        full = len(self.gpus) == 8 and len(pairs) == 28
        each = bandwidth(self.asked, "bandwidth", usual=MI300_LINK if full else MI200_LINK)
        as_said = self.asked.settings.get("bandwidth", "").strip()
        model = "as set" if as_said else f"as of {'MI300X' if full else 'MI200'}"
        self.taken.append(f"{count(len(pairs), 'pair')} of GPUs that XGMI joins directly")
        self.assumed.append(
            f"each such pair has one link of {each:g} GB/s one way, {model}, for neither number "
            f"nor speed is told, and {DIRECT_ALPHA} µs (setting bandwidth)"
        )
        return [
            link
            for a, b in pairs
            for link in duplex(
                self.names[a],
                self.names[b],
                bandwidth=each,
                alpha=DIRECT_ALPHA,
                medium="Infinity Fabric",
            )
        ]

    def tree(self, pairs: list[Pair]) -> Tree:
        """Return what joins the GPUs over the host, empty where XGMI joins all."""
        place = {gpu: i for i, gpu in enumerate(self.gpus)}
        groups = joined(len(self.gpus), ((place[a], place[b]) for a, b in pairs))
        if len(groups) == 1 and not yes(self.asked, "pcie_tree"):
            if len(self.gpus) > 1:
                self.left_out.append(
                    "the ways over the host, for XGMI joins all GPUs (setting pcie_tree=true "
                    "draws them)"
                )
            return Tree()
        pcie = choice(self.asked, "pcie", among=PCIE, usual="4")
        sockets = bandwidth(self.asked, "sockets", usual=SOCKETS[pcie])
        apart = {(self.names[a], self.names[b]): self.apart(a, b) for a, b in self.every()}
        top, _ = grown(list(self.names.values()), apart, {})
        widths = Widths(pcie=PCIE[pcie], medium=f"PCIe {pcie}", sockets=sockets)
        numa = {self.names[gpu]: str(domain) for gpu, domain in self.tables.numas.items()}
        tree = laid(top, widths, host=HOST, numa=numa)
        self.taken.append(f"{count(tree.counts.get('numa', 0), 'NUMA domain')} that GPUs hang on")
        self.assumed.append(
            f"PCIe links have 16 lanes of generation {pcie}, {PCIE[pcie]:g} GB/s one way, and "
            f"{HOP_ALPHA} µs; NUMA domains are joined at {sockets:g} GB/s (settings pcie, sockets)"
        )
        return tree

    def every(self) -> Iterable[Pair]:
        """Return all pairs of GPUs."""
        return combinations(self.gpus, 2)

    def apart(self, a: int, b: int) -> int:
        """Return the level at which two GPUs meet on the host: NUMA tells it, else the hops."""
        numas, hops = self.tables.numas, self.number(self.tables.hops, a, b)
        if a in numas and b in numas:
            return LEVELS.index("NODE" if numas[a] == numas[b] else "SYS")
        return LEVELS.index("SYS" if hops is not None and hops > 2 else "NODE")

    def number(self, table: dict[Pair, str], a: int, b: int) -> int | None:
        """Return the larger of what a table says of two ways, None if it tells no number."""
        words = [table.get(pair, "") for pair in ((a, b), (b, a))]
        return max((int(word) for word in words if _is_number(word)), default=None)


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 10


def _listing(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:4]))
    return shown + (", ..." if len(numbers) > 4 else "")


READER = Reader(
    name="rocm-smi",
    title="rocm-smi --showtopo",
    endings=("txt", "json"),
    recognises=recognises,
    read=read,
    settings={
        "bandwidth": "GB/s one way of the XGMI between two GPUs",
        "xgmi": "nearest links XGMI pairs of the least weight, all every pair of one hop",
        "pcie": "generation of PCIe, 3 to 6",
        "sockets": "GB/s one way between NUMA domains",
        "pcie_tree": "true draws the ways over the host where XGMI joins all GPUs",
    },
)
