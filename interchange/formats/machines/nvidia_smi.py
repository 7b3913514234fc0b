"""What ``nvidia-smi topo -m`` prints, as a topology of one host.

NVLinks become links between GPUs or, where every GPU has equally many to every other and the user
says so, links to one switch; the path classes become a tree of PCIe switches and NUMA domains, to
which network adapters are attached.

In the `Matrix` that is printed, a header names GPUs and, after them, network adapters; then come a
row for each and a legend. Cells are separated by tabs, in copies also by spaces; a terminal
underlines the header. After the cells of a GPU's row come its CPU affinity and its NUMA affinity,
either of which may be missing.

Source: the legend that the tool prints, and NVIDIA/nccl, src/graph/topo.h, for the path classes.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ccl.errors import FormatError
from ccl.serialization.documents import document
from ccl.text import count
from ccl.topology import Link, Topology, device, duplex
from interchange.formats.fields import answer, choice, yes
from interchange.formats.format import Imported, Reader, Remarks, Request
from interchange.formats.machines import _pcie_tree as pcie

MOST_SIDE = 256
"""Devices of a matrix; a host has 16 GPUs and some dozens of adapters."""

MOST_LINKS = 1024
"""NVLinks of a cell; a GPU has 18."""

_STYLE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\[\d+(?:;\d+)*m")
_GPU = re.compile(r"GPU(\d{1,6})")
_NVLINKS = re.compile(r"NV(\d{1,6})")
_LEGEND = re.compile(r"\s*(NIC\d{1,6})\s*:\s*(\S{1,60})\s*")
_AFTER = frozenset({"CPU", "NUMA", "GPU", "..."})
_CELLS = frozenset({*pcie.LEVELS, "SOC", "X"})


@dataclass
class Matrix:
    """What a matrix says.

    Parameters
    ----------
    names
        Of the columns.
    cells
        By row and column, without the diagonal.
    cpus, numas
        CPU and NUMA affinity of GPUs, where told.
    adapters
        What the legend calls network adapters.
    more
        Whether another matrix comes after it.
    """

    names: tuple[str, ...]
    cells: dict[tuple[str, str], str] = field(default_factory=dict)
    cpus: dict[str, str] = field(default_factory=dict)
    numas: dict[str, str] = field(default_factory=dict)
    adapters: dict[str, str] = field(default_factory=dict)
    more: bool = False

    @property
    def gpus(self) -> tuple[str, ...]:
        """Columns that are GPUs."""
        return tuple(each for each in self.names if _GPU.fullmatch(each))

    @property
    def nics(self) -> tuple[str, ...]:
        """Columns that are none."""
        return tuple(each for each in self.names if not _GPU.fullmatch(each))


def is_matrix(content: bytes) -> bool:
    """Say whether a text has a header of GPUs and a row below it."""
    lines = _lines(content[:65536])
    start = next((i for i, line in enumerate(lines) if _is_header(line.split())), None)
    return start is not None and any(
        _GPU.fullmatch(line.split()[0]) and "X" in line.split()[1:]
        for line in lines[start + 1 : start + 20]
        if line.strip()
    )


def matrix_of(content: bytes) -> Matrix:
    """Read the first matrix of a text.

    Raises
    ------
    FormatError
        If there is none, or a row or a cell is wrong, with its line.
    """
    lines = _lines(content)
    start = next((i for i, line in enumerate(lines) if _is_header(line.split())), None)
    if start is None:
        raise FormatError("it has no matrix of GPUs; give what nvidia-smi topo -m prints")
    matrix = Matrix(_columns(lines[start].split(), start + 1))
    _read_rows(matrix, lines, start)
    seen = {row for row, _ in matrix.cells}
    lost = next((each for each in matrix.gpus if each not in seen), None)
    if lost is not None and len(matrix.names) > 1:
        raise FormatError(
            f"line {start + 1}: the header names {lost}, which has no row; give the whole matrix"
        )
    matrix.adapters = _adapters(lines, matrix.nics)
    return matrix


def nvlinks(cell: str) -> int:
    """Return the NVLinks of a cell, 0 if it is not among them."""
    found = _NVLINKS.fullmatch(cell)
    return int(found[1]) if found else 0


def _lines(content: bytes) -> list[str]:
    return _STYLE.sub("", content.decode(errors="replace")).split("\n")


def _is_header(words: Sequence[str]) -> bool:
    """Say whether words are names of devices alone, the first that of a GPU."""
    if not words or not _GPU.fullmatch(words[0]):
        return False
    return not any(each in _CELLS or _NVLINKS.fullmatch(each) for each in words)


def _columns(words: Sequence[str], line: int) -> tuple[str, ...]:
    names: list[str] = []
    for each in words:
        if each in _AFTER:
            break
        names.append(each)
    if len(names) > MOST_SIDE:
        raise FormatError(
            f"line {line}: it has {len(names):,} columns; a matrix is read up to {MOST_SIDE:,}"
        )
    twin = next((each for i, each in enumerate(names) if each in names[:i]), None)
    if twin is not None:
        raise FormatError(
            f"line {line}: two columns are called {twin}; each needs a name of its own"
        )
    return tuple(names)


def _read_rows(matrix: Matrix, lines: Sequence[str], start: int) -> None:
    """Read the rows below the header at `start`, up to a text that is no row."""
    has_numa = "NUMA" in lines[start].split()
    seen: set[str] = set()
    for at, line in enumerate(lines[start + 1 :], start + 2):
        words = line.split()
        if not words:
            continue
        if words[0] not in matrix.names or (_is_header(words) and len(matrix.names) > 1):
            matrix.more = any(_is_header(each.split()) for each in lines[at - 1 :])
            return
        if words[0] in seen:
            raise FormatError(f"line {at}: {words[0]} has a second row; give one matrix")
        seen.add(words[0])
        _read_row(matrix, words, at)
        _read_affinity(matrix, line, words, has_numa=has_numa)


def _read_row(matrix: Matrix, words: Sequence[str], line: int) -> None:
    row, names = words[0], matrix.names
    if len(words) <= len(names):
        raise FormatError(
            f"line {line}: the row of {row} has {len(words) - 1} cells and the header "
            f"{len(names)} columns; give a cell for each"
        )
    for column, cell in zip(names, words[1:], strict=False):
        if (cell == "X") != (column == row) or not _is_cell(cell, row, column):
            shown = cell if len(cell) <= 20 else cell[:17] + "..."
            raise FormatError(
                f"line {line}: {row} to {column} is {shown!r}; there are X for itself, NV# between "
                f"GPUs (up to NV{MOST_LINKS}), {', '.join(pcie.LEVELS)}"
            )
        if column != row:
            matrix.cells[row, column] = "SYS" if cell == "SOC" else cell


def _is_cell(cell: str, row: str, column: str) -> bool:
    if cell in _CELLS:
        return True
    both = _GPU.fullmatch(row) is not None and _GPU.fullmatch(column) is not None
    return both and 0 < nvlinks(cell) <= MOST_LINKS


def _read_affinity(matrix: Matrix, line: str, words: Sequence[str], *, has_numa: bool) -> None:
    """Read what comes after the cells; tabs tell which of the two is missing."""
    row, side = words[0], len(matrix.names)
    if not _GPU.fullmatch(row):
        return
    after = [each.strip() for each in line.split("\t")[side + 1 :]] if "\t" in line else []
    after = after or list(words[side + 1 :])
    if after and any(each.isdigit() for each in after[0]):
        matrix.cpus[row] = after[0]
    if has_numa and len(after) > 1 and any(each.isdigit() for each in after[1]):
        matrix.numas[row] = after[1]


def _adapters(lines: Iterable[str], nics: Sequence[str]) -> dict[str, str]:
    """Return what the legend calls adapters, left out where two would be called alike."""
    found = [each for each in map(_LEGEND.fullmatch, lines) if each and each[1] in nics]
    named = {each[1]: each[2] for each in found}
    names = [*named.values(), *(each for each in nics if each not in named)]
    return named if len(set(names)) == len(names) else {}


HOST = "h0"

RATES = {"spec": "of the data sheet", "planned": "that NCCL plans with"}

Pair = tuple[str, str]


def read(content: bytes, request: Request) -> Imported:
    """Read a matrix.

    Raises
    ------
    Question
        If all GPUs have equally many NVLinks to all others, or more one way than the other.
    FormatError
        If it is no matrix, or a setting is unknown.
    """
    return _Reading(matrix_of(content), request).imported()


@dataclass(frozen=True)
class _Rates:
    """What is assumed of NVLinks and PCIe: generations, and GB/s of one link."""

    nvlink: str
    nvlink_bandwidth: float
    widths: pcie.Widths


class _Reading(Remarks):
    """Makes the topology of a matrix, and notes what becomes of each part."""

    def __init__(self, matrix: Matrix, request: Request) -> None:
        super().__init__()
        self.matrix = matrix
        self.request = request
        self.called = {each: _named(each, matrix) for each in matrix.names}
        self.gpus = [self.called[each] for each in matrix.gpus]
        self.nics = [self.called[each] for each in matrix.nics]
        self.numas = {self.called[each]: told for each, told in matrix.numas.items()}

    def imported(self) -> Imported:
        """Return the topology with its report."""
        links = self.directed()
        groups = pcie.components(self.gpus, links)
        switched = self.switched(links, groups)
        rates = self.rates(links, switched)
        devices = [device("gpu", name, host=HOST) for name in self.gpus]
        made = [*self.through(switched, links, rates), *self.straight(switched, links, rates)]
        devices += [device("switch", _switch(i), host=HOST) for i in range(len(switched))]
        devices += [device("nic", name, host=HOST) for name in self.nics]
        self.taken.insert(0, self.devices_described())
        tree = self.tree(groups, links, rates)
        self.said_beside()
        name = self.request.stem or "nvidia-smi"
        topology = Topology(name, (*devices, *tree.devices), (*made, *tree.links))
        return Imported(document(topology), self.report())

    def devices_described(self) -> str:
        """Return how many devices there are."""
        nics = f" and {count(len(self.nics), 'network adapter')}" if self.nics else ""
        return f"{count(len(self.gpus), 'GPU')}{nics} of one host"

    def directed(self) -> dict[Pair, int]:
        """Return the NVLinks from each GPU to each other that it has any to."""
        links = {
            (self.called[row], self.called[column]): nvlinks(cell)
            for (row, column), cell in self.matrix.cells.items()
            if nvlinks(cell)
        }
        odd = next((pair for pair in links if links.get(pair[::-1]) != links[pair]), None)
        if odd is None:
            return links
        choices = {
            "rows": "a row says what its GPU sends over",
            "columns": "a column says what its GPU sends over",
        }
        doubt = (
            f"the matrix is not symmetric, {odd[0]} to {odd[1]} has "
            f"{count(links[odd], 'NVLink')} and back {links.get(odd[::-1], 0)}; are rows sources "
            "or destinations?"
        )
        if answer(self.request, "direction", choices=choices, doubt=doubt) == "columns":
            return {pair[::-1]: number for pair, number in links.items()}
        return links

    def switched(self, links: Mapping[Pair, int], groups: list[list[str]]) -> list[list[str]]:
        """Return the groups whose GPUs meet at a switch, which only the user knows."""
        alike = [group for group in groups if len(group) > 2 and _is_alike(group, links)]
        if not alike:
            return []
        group = alike[0]
        width, peers = links[group[0], group[1]], len(group) - 1
        choices = {
            "switch": f"one NVSwitch, {count(width, 'link')} of each GPU in all",
            "mesh": f"a mesh, {count(width, 'link')} for each pair, {width * peers} of each GPU",
        }
        most = max(pcie.MOST_NVLINKS.values())
        hint = f"; no GPU has more than {most}" if width * peers > most else ""
        doubt = (
            f"each of {len(group)} GPUs has NV{width} to every other; through NVSwitches that is "
            f"{width} links of a GPU in all, in a mesh {width * peers}{hint}"
        )
        said = answer(self.request, "nvlink", choices=choices, doubt=doubt)
        return alike if said == "switch" else []

    def rates(self, links: Mapping[Pair, int], switched: list[list[str]]) -> _Rates:
        """Return the figures that are assumed, as the settings say or the counts suggest."""
        most = _most(links, switched)
        usual = _generation(most, links)
        nvlink = choice(self.request, "generation", pcie.NVLINK, usual)
        rate = choice(self.request, "bandwidths", RATES, "spec")
        widths = pcie.widths_of(self.request, pcie.PCIE_OF_NVLINK[nvlink] if links else "4")
        if links:
            known = "as set" if "generation" in self.request.settings else f"for a GPU has {most}"
            self.assumed.append(
                f"NVLinks are of generation {nvlink}, {known}: {pcie.NVLINK[nvlink][rate]:g} GB/s "
                f"one way each, {RATES[rate]} (settings generation, bandwidths)"
            )
        return _Rates(nvlink, pcie.NVLINK[nvlink][rate], widths)

    def through(
        self, switched: list[list[str]], links: Mapping[Pair, int], rates: _Rates
    ) -> list[Link]:
        """Return the links of GPUs to the NVSwitch of their group."""
        made: list[Link] = []
        for i, group in enumerate(switched):
            width = links[group[0], group[1]]
            for name in group:
                made += duplex(
                    name,
                    _switch(i),
                    bandwidth=width * rates.nvlink_bandwidth,
                    alpha=pcie.HOP_ALPHA,
                    medium=f"NVLink {rates.nvlink[0]}",
                    count=width,
                )
            self.taken.append(
                f"{count(width, 'NVLink')} of each of {len(group)} GPUs to NVSwitches"
            )
            self.assumed.append(
                f"NVSwitches are one, called {_switch(i)}, and {pcie.HOP_ALPHA} µs is the latency "
                "to it"
            )
        return made

    def straight(
        self, switched: list[list[str]], links: Mapping[Pair, int], rates: _Rates
    ) -> list[Link]:
        """Return the links from GPU to GPU."""
        done = {name for group in switched for name in group}
        made = [
            Link(
                *pair,
                width * rates.nvlink_bandwidth,
                pcie.DIRECT_ALPHA,
                f"NVLink {rates.nvlink[0]}",
                width,
            )
            for pair, width in links.items()
            if pair[0] not in done
        ]
        if made:
            self.taken.append(f"{count(len(made), 'link')} of NVLink between GPUs")
            self.assumed.append(f"{pcie.DIRECT_ALPHA} µs is the latency of an NVLink between GPUs")
        return made

    def tree(self, groups: list[list[str]], links: Mapping[Pair, int], rates: _Rates) -> pcie.Tree:
        """Return the PCIe tree, empty where NVLinks join all and there are no adapters."""
        wanted = yes(self.request, "pcie_tree")
        if len(groups) == 1 and not self.nics and not wanted:
            if len(self.gpus) > 1:
                self.left_out.append(
                    "the PCIe paths, for NVLinks join all GPUs (setting pcie_tree=true keeps them)"
                )
            return pcie.Tree()
        names = [*self.gpus, *self.nics]
        apart = self.apart()
        top, wrong = pcie.grown(names, apart, self.guessed(links, apart))
        tree = pcie.laid(
            top,
            rates.widths,
            host=HOST,
            numa={name: told for name, told in self.numas.items() if told.isdigit()},
        )
        self.tree_described(tree, wrong, rates)
        return tree

    def apart(self) -> dict[Pair, int]:
        """Return how far from each other the pairs are of which the matrix tells it."""
        apart: dict[Pair, int] = {}
        odd = 0
        for (row, column), cell in self.matrix.cells.items():
            if cell not in pcie.LEVELS:
                continue
            pair, level = (self.called[row], self.called[column]), pcie.LEVELS.index(cell)
            back = apart.pop(pair[::-1], None)
            odd += back is not None and back != level
            apart[pair] = level if back is None else max(level, back)
        if odd:
            self.left_out.append(f"the nearer of two path classes of {count(odd, 'pair')}")
        self.bring_together(apart)
        return apart

    def bring_together(self, apart: dict[Pair, int]) -> None:
        """Let GPUs of one NUMA domain meet in it, even if the matrix has SYS for them.

        Root complexes of one socket may have nothing in common that the tool sees.
        """
        numa = self.numas
        near = [
            (a, b)
            for (a, b), far in apart.items()
            if far == pcie.LEVELS.index("SYS") and a in numa and numa[a] == numa.get(b)
        ]
        apart.update(dict.fromkeys(near, pcie.LEVELS.index("NODE")))
        if near:
            self.assumed.append(
                f"{count(len(near), 'pair')} of GPUs that the matrix puts across NUMA domains meet "
                "in the one that their NUMA affinity names"
            )

    def guessed(self, links: Mapping[Pair, int], apart: Mapping[Pair, int]) -> dict[Pair, int]:
        """Return at most how far GPUs with NVLinks are, of which only the affinity tells it."""
        near = {
            self.called[each]: self.matrix.numas.get(each, self.matrix.cpus.get(each))
            for each in self.matrix.gpus
        }
        guessed = {
            (a, b): pcie.LEVELS.index("NODE" if near[a] == near[b] else "SYS")
            for a, b in links
            if None not in {near[a], near[b]} and (a, b) not in apart and (b, a) not in apart
        }
        if guessed:
            pairs = len({frozenset(pair) for pair in guessed})
            self.assumed.append(
                f"{count(pairs, 'pair')} of GPUs with NVLinks meet in the PCIe tree where their "
                "affinity and the adapters put them"
            )
        return guessed

    def tree_described(self, tree: pcie.Tree, wrong: int, rates: _Rates) -> None:
        """Say what the tree is made of."""
        sorts = {"pcie": "PCIe switch", "bridge": "host bridge", "numa": "NUMA domain"}
        many = {"pcie": "PCIe switches"}
        parts = [
            count(tree.counts[sort], what, many.get(sort, ""))
            for sort, what in sorts.items()
            if sort in tree.counts
        ]
        if not parts:
            return
        self.taken.append(f"the PCIe tree: {', '.join(parts)}; what joins nothing is not drawn")
        self.assumed.append(
            f"PCIe links have {rates.widths.lanes}, and {pcie.HOP_ALPHA} µs (setting pcie)"
        )
        if "sockets" in tree.counts or tree.counts.get("numa", 0) > 1:
            self.assumed.append(
                f"NUMA domains are joined at {rates.widths.sockets:g} GB/s one way "
                "(setting sockets)"
            )
        if wrong:
            self.left_out.append(
                f"that {count(wrong, 'pair is', 'pairs are')} further apart in the matrix than in "
                "the tree"
            )

    def said_beside(self) -> None:
        """Say what else the matrix has."""
        if self.matrix.cpus:
            self.left_out.append(f"the CPU affinity of {count(len(self.matrix.cpus), 'GPU')}")
        if self.matrix.more:
            self.left_out.append("a second matrix below the first")


def _named(column: str, matrix: Matrix) -> str:
    """Return what a column is called: GPU0 is gpu0, NIC0 what the legend calls it or nic0."""
    if column in matrix.gpus or column not in matrix.adapters:
        lower = column.lower()
        return lower if column.startswith(("GPU", "NIC")) else column
    return matrix.adapters[column]


def _switch(i: int) -> str:
    return f"nvswitch{i}"


def _is_alike(group: list[str], links: Mapping[Pair, int]) -> bool:
    """Say whether every GPU has equally many NVLinks to every other."""
    width = links.get((group[0], group[1]))
    return width is not None and all(
        links.get((a, b)) == width for a in group for b in group if a != b
    )


def _most(links: Mapping[Pair, int], switched: list[list[str]]) -> int:
    """Return the NVLinks of the GPU that has most."""
    done = {name for group in switched for name in group}
    sums: dict[str, int] = {}
    for (a, _), width in links.items():
        sums[a] = width if a in done else sums.get(a, 0) + width
    return max(sums.values(), default=0)


def _generation(most: int, links: Mapping[Pair, int]) -> str:
    """Return the oldest generation since 2 whose GPUs have as many NVLinks.

    Bridges of four links, each between two GPUs, are those of workstations.
    """
    if set(links.values()) == {4} and len({a for a, _ in links}) == len(links):
        return "3-bridge"
    fitting = (each for each in ("2", "3", "4") if most <= pcie.MOST_NVLINKS[each])
    return next(fitting, "4")


SETTINGS = {
    "nvlink": "switch or mesh, where all GPUs have equally many NVLinks to all others",
    "direction": "rows or columns are sources, where the matrix is not symmetric",
    "generation": "of NVLink, 1 to 5, or 3-bridge for the slower links of workstations",
    "bandwidths": "spec for the data sheet, planned for what NCCL plans with",
    "pcie": "generation of PCIe, 3 to 6",
    "sockets": "GB/s one way between NUMA domains",
    "pcie_tree": "true keeps the PCIe tree where NVLinks join all GPUs",
}

READER = Reader("nvidia-smi", "nvidia-smi topo -m", ("txt",), is_matrix, read, SETTINGS)
