"""The sweeps that the page may see: those whose folders were named when the server was started.

The page knows them by their names alone. Rows are read again when a file of the folder has changed,
so that a sweep that still runs, here or elsewhere, fills the view.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ccl.errors import FormatError, ProblemError
from ccl.result import Result
from formulations.campaigns.sweeps.rows import Row
from formulations.campaigns.sweeps.store import is_sweep, open_result, read_request, read_rows

Stamp = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of one sweep.

    Parameters
    ----------
    name
        Of the sweep.
    tasks
        How many rows there will be.
    rows
        Those that are there, in the order of the tasks.
    stamp
        Another one whenever a file has changed.
    """

    name: str
    tasks: int
    rows: tuple[Row, ...]
    stamp: str


class Shelf:
    """Folders of sweeps by name.

    Parameters
    ----------
    folders
        Of sweeps, or folders that hold such folders.

    Raises
    ------
    FormatError
        If one is neither.
    """

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        self._folders: dict[str, Path] = {}
        for folder in folders:
            for each in _sweeps_in(folder):
                self._folders[_free(each.stem, self._folders)] = each
        self._read: dict[str, tuple[Stamp, Found]] = {}
        self._lock = threading.Lock()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sweeps."""
        return tuple(self._folders)

    def found(self, name: str) -> Found:
        """Return the rows of a sweep as they are now.

        Raises
        ------
        ProblemError
            If there is no sweep of this name.
        FormatError
            If its files are not those of a sweep.
        """
        folder = self._folder(name)
        with self._lock:
            stamp = _stamp(folder)
            kept = self._read.get(name)
            if kept is None or kept[0] != stamp:
                tasks = len(read_request(folder).tasks)
                found = Found(name, tasks, read_rows(folder), str(hash(stamp)))
                kept = self._read[name] = (stamp, found)
        return kept[1]

    def result(self, name: str, task: str) -> Result:
        """Return the result of a task, verified again; errors as `open_result`."""
        return open_result(self._folder(name), task)

    def _folder(self, name: str) -> Path:
        if name not in self._folders:
            msg = f"there is no sweep {name!r}; there are {', '.join(self._folders) or 'none'}"
            raise ProblemError(msg)
        return self._folders[name]


def _sweeps_in(folder: Path) -> list[Path]:
    if is_sweep(folder):
        return [folder]
    found = sorted(each for each in folder.glob("*/") if is_sweep(each))
    if not found:
        msg = f"{folder} is not the folder of a sweep and holds none; topoloom sweep makes one"
        raise FormatError(msg)
    return found


def _free(name: str, taken: dict[str, Path]) -> str:
    """Return a name that no other sweep has."""
    wanted, number = name, 1
    while wanted in taken:
        number += 1
        wanted = f"{name} {number}"
    return wanted


def _stamp(folder: Path) -> Stamp:
    """Return what changes with the files: their names and times."""
    found = []
    for each in sorted(folder.glob("*.*")):
        try:
            found.append((each.name, each.stat().st_mtime_ns))
        except FileNotFoundError:  # it has become part of another meanwhile
            continue
    return tuple(found)
