"""The matrix that ``nvidia-smi topo -m`` prints.

A header names GPUs and, after them, network adapters; then come a row for each and a legend. Cells
are separated by tabs, in copies also by spaces; a terminal underlines the header. After the cells
of a GPU's row come its CPU affinity and its NUMA affinity, either of which may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ccl.errors import FormatError
from interchange.formats.machines._pcie_tree import LEVELS

MOST_SIDE = 256
"""Devices of a matrix; a host has 16 GPUs and some dozens of adapters."""

MOST_LINKS = 1024
"""NVLinks of a cell; a GPU has 18."""

_STYLE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\[\d+(?:;\d+)*m")
_GPU = re.compile(r"GPU(\d{1,6})")
_NVLINKS = re.compile(r"NV(\d{1,6})")
_LEGEND = re.compile(r"\s*(NIC\d{1,6})\s*:\s*(\S{1,60})\s*")
_AFTER = frozenset({"CPU", "NUMA", "GPU", "..."})
_CELLS = frozenset({*LEVELS, "SOC", "X"})


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
        msg = "it has no matrix of GPUs; give what nvidia-smi topo -m prints"
        raise FormatError(msg)
    matrix = Matrix(_columns(lines[start].split(), start + 1))
    _read_rows(matrix, lines, start)
    seen = {row for row, _ in matrix.cells}
    lost = next((each for each in matrix.gpus if each not in seen), None)
    if lost is not None and len(matrix.names) > 1:
        msg = f"line {start + 1}: the header names {lost}, which has no row; give the whole matrix"
        raise FormatError(msg)
    matrix.adapters = _adapters(lines, matrix.nics)
    return matrix


def nvlinks(cell: str) -> int:
    """Return the NVLinks of a cell, 0 if it is none of them."""
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
        msg = f"line {line}: it has {len(names):,} columns; a matrix is read up to {MOST_SIDE:,}"
        raise FormatError(msg)
    twin = next((each for i, each in enumerate(names) if each in names[:i]), None)
    if twin is not None:
        msg = f"line {line}: two columns are called {twin}; each needs a name of its own"
        raise FormatError(msg)
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
            msg = f"line {at}: {words[0]} has a second row; give one matrix"
            raise FormatError(msg)
        seen.add(words[0])
        _read_row(matrix, words, at)
        _read_affinity(matrix, line, words, has_numa=has_numa)


def _read_row(matrix: Matrix, words: Sequence[str], line: int) -> None:
    row, names = words[0], matrix.names
    if len(words) <= len(names):
        msg = (
            f"line {line}: the row of {row} has {len(words) - 1} cells and the header "
            f"{len(names)} columns; give a cell for each"
        )
        raise FormatError(msg)
    for column, cell in zip(names, words[1:], strict=False):
        if (cell == "X") != (column == row) or not _is_cell(cell, row, column):
            shown = cell if len(cell) <= 20 else cell[:17] + "..."
            msg = (
                f"line {line}: {row} to {column} is {shown!r}; there are X for itself, NV# between "
                f"GPUs (up to NV{MOST_LINKS}), {', '.join(LEVELS)}"
            )
            raise FormatError(msg)
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
