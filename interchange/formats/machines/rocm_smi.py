"""What ``rocm-smi --showtopo`` prints, as text or as JSON, as a topology of one host.

Pairs of GPUs that XGMI joins directly become links; the others reach each other over the host. The
tool says one hop of every pair in an XGMI hive, joined directly or not; the weight tells them
apart, 15 for every link on the way.

Of the `Tables`, the text has a banner for each, then a header of GPUs and a row for each. The JSON
names pairs in its keys, each pair once, and has all values as text.

Sources: ROCm/rocm-systems, issue 5763 and pull request 7372, for weights and hops;
ROCm/rocm_smi_lib, python_smi_tools/rocm_smi.py, for the shape.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

from ccl.errors import FormatError
from ccl.serialization.documents import document
from ccl.serialization.text import decode_json
from ccl.text import count
from ccl.topology import Link, Topology, device, duplex
from interchange.formats.fields import bandwidth, choice, some, yes
from interchange.formats.format import Imported, Reader, Remarks, Request
from interchange.formats.machines import _pcie_tree as pcie

MOST_GPUS = 256

Pair = tuple[int, int]

_BANNER = re.compile(r"\s*={3,}\s*(\S.*?)\s*={3,}\s*")
_GPU = re.compile(r"GPU\s?\[?(\d{1,4})\]?")
_NUMA = re.compile(r"\s*GPU\s?\[?(\d{1,4})\]?\s*:\s*\(Topology\) Numa Node:\s*(\d{1,4})\s*")
_PAIR = re.compile(r"\(topology\) (.+) between drm devices (\d{1,4}) and (\d{1,4})")
_CARD = re.compile(r"card(\d{1,4})")

_TABLES = {"weight": "weights", "hops": "hops", "link type": "kinds"}
"""The attribute of `Tables` for what comes before ``between``."""


@dataclass
class Tables:
    """What is reported of GPUs and of pairs of them, each pair both ways where it is.

    Parameters
    ----------
    gpus
        Their numbers.
    weights, hops
        Of pairs, as text.
    kinds
        ``XGMI`` or ``PCIE`` by pair.
    numas
        NUMA domains by GPU.
    """

    gpus: set[int] = field(default_factory=set)
    weights: dict[Pair, str] = field(default_factory=dict)
    hops: dict[Pair, str] = field(default_factory=dict)
    kinds: dict[Pair, str] = field(default_factory=dict)
    numas: dict[int, int] = field(default_factory=dict)


def is_text(content: bytes) -> bool:
    """Say whether a text has one of the tables."""
    head = content[:65536].lower()
    return b"weight between two gpus" in head or b"link type between two gpus" in head


def is_json(content: bytes) -> bool:
    """Say whether JSON text names pairs of devices as the tool does."""
    head = content[:65536].lower()
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") and (
        b'"(topology) ' in head and b" between drm devices " in head
    )


def tables_of(content: bytes) -> Tables:
    """Read the tables of a text or of JSON.

    Raises
    ------
    FormatError
        If there is none of link types, or a row is not as its header says, with its line.
    """
    tables = _of_json(content) if is_json(content) else _of_text(content)
    if not tables.kinds and len(tables.gpus) != 1:
        raise FormatError(
            "it does not tell the link types between GPUs; give what rocm-smi --showtopo prints"
        )
    if len(tables.gpus) > MOST_GPUS:
        raise FormatError(f"it has {len(tables.gpus):,} GPUs; they are read up to {MOST_GPUS:,}")
    return tables


def _of_json(content: bytes) -> Tables:
    told = decode_json(content, dict[str, dict[str, str | float | bool | None]])
    tables = Tables()
    for owner, values in told.items():
        card = _CARD.fullmatch(owner.lower())
        if card:
            tables.gpus.add(int(card[1]))
        for key, value in values.items():
            pair = _PAIR.fullmatch(key.lower())
            if pair:
                _note(tables, pair[1], (int(pair[2]), int(pair[3])), str(value))
            elif card and key.lower() == "(topology) numa node" and str(value).isdecimal():
                tables.numas[int(card[1])] = int(str(value)[:4])
    return tables


def _note(tables: Tables, what: str, pair: Pair, value: str) -> None:
    """Keep what JSON says of a pair, for both ways unless the other is reported too."""
    if what in _TABLES and pair[0] != pair[1]:
        tables.gpus.update(pair)
        table = getattr(tables, _TABLES[what])
        table[pair] = value
        table.setdefault(pair[::-1], value)


def _of_text(content: bytes) -> Tables:
    tables = Tables()
    table: dict[Pair, str] | None = None
    columns: list[int] = []
    for at, line in enumerate(content.decode(errors="replace").split("\n"), 1):
        banner = _BANNER.fullmatch(line)
        numa = _NUMA.fullmatch(line)
        words = line.split()
        if banner:
            what = banner[1].lower().partition(" between two gpus")[0]
            table = getattr(tables, _TABLES[what]) if what in _TABLES else None
            columns = []
        elif numa:
            tables.gpus.add(int(numa[1]))
            tables.numas[int(numa[1])] = int(numa[2])
        elif table is not None and words and all(map(_GPU.fullmatch, words)):
            columns = _numbers(words, at)
            tables.gpus.update(columns)
        elif table is not None and words and _GPU.fullmatch(words[0]):
            _row(table, columns, words, at)
    return tables


def _numbers(words: Sequence[str], line: int) -> list[int]:
    numbers = [int(found[1]) for found in map(_GPU.fullmatch, words) if found]
    if len(set(numbers)) < len(numbers) or len(numbers) > MOST_GPUS:
        raise FormatError(
            f"line {line}: it names a GPU twice, or more than {MOST_GPUS:,}; name each once"
        )
    return numbers


def _row(table: dict[Pair, str], columns: Sequence[int], words: Sequence[str], line: int) -> None:
    found = _GPU.fullmatch(words[0])
    row = int(found[1]) if found else -1
    if len(words) != len(columns) + 1 or row not in columns:
        raise FormatError(
            f"line {line}: the row of {words[0]} has {len(words) - 1} cells and its header "
            f"{len(columns)} columns; give a row for each column and a cell for each GPU"
        )
    table.update(
        ((row, column), word)
        for column, word in zip(columns, words[1:], strict=True)
        if column != row
    )


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


def read(content: bytes, request: Request) -> Imported:
    """Read the tables.

    Raises
    ------
    FormatError
        If there are none, they are no tables, or a setting is unknown.
    """
    return _Reading(tables_of(content), request).imported()


class _Reading(Remarks):
    """Makes the topology of tables, and notes what becomes of each part."""

    def __init__(self, tables: Tables, request: Request) -> None:
        super().__init__()
        self.tables = tables
        self.request = request
        self.gpus = sorted(tables.gpus)
        self.names = {gpu: f"gpu{gpu}" for gpu in self.gpus}
        self.taken = [f"{count(len(self.gpus), 'GPU')} of one host"]

    def imported(self) -> Imported:
        """Return the topology with its report."""
        pairs = self.direct(self.hive())
        links = self.links(pairs)
        tree = self.tree(pairs)
        gpus = [device("gpu", name, host=HOST) for name in self.names.values()]
        name = self.request.stem or "rocm-smi"
        topology = Topology(name, (*gpus, *tree.devices), (*links, *tree.links))
        return Imported(document(topology), self.report())

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
        if choice(self.request, "xgmi", NEAREST, "nearest") == "all" or len(known) < 2:
            return hive
        near = [pair for pair in hive if weights[pair] in {None, known[0]}]
        far = len(hive) - len(near)
        self.assumed.append(
            f"{count(far, 'XGMI pair')} of weight {some(known[1:])} have no link of their own, "
            f"for the least is {known[0]} and each link on the way adds as much (setting xgmi=all "
            "links them)"
        )
        return near

    def links(self, pairs: list[Pair]) -> list[Link]:
        """Return the links of XGMI."""
        if not pairs:
            return []
        full = len(self.gpus) == 8 and len(pairs) == 28
        each = bandwidth(self.request, "bandwidth", usual=MI300_LINK if full else MI200_LINK)
        as_said = self.request.settings.get("bandwidth", "").strip()
        model = "as set" if as_said else f"as of {'MI300X' if full else 'MI200'}"
        self.taken.append(f"{count(len(pairs), 'pair')} of GPUs that XGMI joins directly")
        self.assumed.append(
            f"each such pair has one link of {each:g} GB/s one way, {model}, for neither number "
            f"nor speed is said, and {pcie.DIRECT_ALPHA} µs (setting bandwidth)"
        )
        return [
            link
            for a, b in pairs
            for link in duplex(
                self.names[a],
                self.names[b],
                bandwidth=each,
                alpha=pcie.DIRECT_ALPHA,
                medium="Infinity Fabric",
            )
        ]

    def tree(self, pairs: list[Pair]) -> pcie.Tree:
        """Return what joins the GPUs over the host, empty where XGMI joins all."""
        if len(pcie.components(self.gpus, pairs)) == 1 and not yes(self.request, "pcie_tree"):
            if len(self.gpus) > 1:
                self.left_out.append(
                    "the paths over the host, for XGMI joins all GPUs (setting pcie_tree=true "
                    "draws them)"
                )
            return pcie.Tree()
        widths = pcie.widths_of(self.request, "4")
        every = combinations(self.gpus, 2)
        apart = {(self.names[a], self.names[b]): self.apart(a, b) for a, b in every}
        top, _ = pcie.grown(list(self.names.values()), apart, {})
        numa = {self.names[gpu]: str(domain) for gpu, domain in self.tables.numas.items()}
        tree = pcie.laid(top, widths, host=HOST, numa=numa)
        self.taken.append(f"{count(tree.counts.get('numa', 0), 'NUMA domain')} that GPUs hang on")
        self.assumed.append(
            f"PCIe links have {widths.lanes}, and {pcie.HOP_ALPHA} µs; NUMA domains are joined at "
            f"{widths.sockets:g} GB/s (settings pcie, sockets)"
        )
        return tree

    def apart(self, a: int, b: int) -> int:
        """Return the level at which two GPUs meet on the host: NUMA tells it, else the hops."""
        numas, hops = self.tables.numas, self.number(self.tables.hops, a, b)
        if a in numas and b in numas:
            return pcie.LEVELS.index("NODE" if numas[a] == numas[b] else "SYS")
        return pcie.LEVELS.index("SYS" if hops is not None and hops > 2 else "NODE")

    def number(self, table: dict[Pair, str], a: int, b: int) -> int | None:
        """Return the larger of what a table says of two directions, None if it tells no number."""
        words = [table.get(pair, "") for pair in ((a, b), (b, a))]
        return max((int(word) for word in words if _is_number(word)), default=None)


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 10


SETTINGS = {
    "bandwidth": "GB/s one way of the XGMI between two GPUs",
    "xgmi": "nearest links XGMI pairs of the least weight, all every pair of one hop",
    "pcie": "generation of PCIe, 3 to 6",
    "sockets": "GB/s one way between NUMA domains",
    "pcie_tree": "true draws the paths over the host where XGMI joins all GPUs",
}

READER = Reader("rocm-smi", "rocm-smi --showtopo", ("txt", "json"), recognises, read, SETTINGS)
