"""Accesses to the same memory that nothing orders, found without waiting for bad luck.

Two accesses to a cell by two threads, one of them a write, are in order only if a chain of
program order and of counters leads from one to the other. One pass over the actions, in an order
in which they may happen, keeps for each thread a vector clock, how far every other thread is known
to have come, and for each cell its last write and the reads since (Flanagan, Freund: FastTrack,
PLDI 2009). The clocks have one column for each thread that shares a cell which is written.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from interchange.execution.machine import Machine
from interchange.programs.checks import Finding

COLUMNS = 8192
"""Columns that clocks have at most; of more threads, parts of the memory are checked in turn."""
MOST = 12
"""Hazards that are listed."""


@dataclass(frozen=True, slots=True)
class Hazard:
    """Two actions of different threads, a cell, and whether each writes it."""

    before: int
    after: int
    cell: int
    before_writes: bool
    after_writes: bool


def hazards(machine: Machine, order: Sequence[int]) -> list[Hazard]:
    """Return pairs of actions that nothing orders, at most `MOST`, each with its first cell."""
    cells, threads = _shared(machine)
    found: list[Hazard] = []
    if len(cells):
        clocks = _Clocks(machine, order)
        for low, high in _parts(cells, threads):
            found += clocks.check(cells[low:high], threads[low:high])
            if len(found) >= MOST:
                break
    return found[:MOST]


def described(machine: Machine, hazard: Hazard) -> Finding:
    """Return a hazard as a sentence."""
    does = {True: "writes", False: "reads"}
    words = (
        f"{machine.place(hazard.after)} {does[hazard.after_writes]} "
        f"{machine.cell_name(hazard.cell)} and {machine.place(hazard.before)} "
        f"{does[hazard.before_writes]} it, and nothing says which comes first"
    )
    return Finding("hazard", words, *machine.where(hazard.after))


def overlaps(machine: Machine) -> Iterator[Finding]:
    """Yield the steps whose source and destination share chunks without being the same."""
    for number, action in enumerate(machine.actions):
        for effect in action.effects:
            if any(0 < abs(effect.target - source) < effect.count for source in effect.sources):
                words = (
                    f"{machine.place(number)} reads and writes {effect.count} chunks that overlap "
                    f"in part from {machine.cell_name(effect.target)}; what it reads is open"
                )
                yield Finding("overlap", words, *machine.where(number))
                break


def unwritten(
    machine: Machine, order: Sequence[int], *, defined: bytearray, racing: set[int]
) -> Iterator[Finding]:
    """Yield the steps that read what holds nothing yet, except those that are `racing`.

    Parameters
    ----------
    machine, order
        Actions in an order in which they may happen.
    defined
        1 for each cell of the memory that holds something at the start; it is changed.
    racing
        Actions of hazards: whether they read too early is what the hazard says.
    """
    ones = bytearray(b"\1") * (machine.memory + 1)
    for number in order:
        for effect in machine.actions[number].effects:
            for source in effect.sources:
                stop = min(source + effect.count, machine.memory)
                if source < stop and 0 in defined[source:stop] and number not in racing:
                    first = defined.index(0, source, stop)
                    words = f"{machine.place(number)} reads {machine.cell_name(first)}"
                    where = machine.where(number)
                    yield Finding("unwritten", f"{words}, which nothing wrote before", *where)
            stop = min(effect.target + effect.count, machine.memory)
            if effect.target < stop:
                defined[effect.target : stop] = ones[: stop - effect.target]


def _shared(machine: Machine) -> tuple[np.ndarray, np.ndarray]:
    """Return cells that several threads access and one writes, with each thread, by cell.

    Returns
    -------
    cells, threads
        Same shape; a pair stands for one thread that accesses one cell.
    """
    touches = [
        (machine.owners[number], cell, count, writes)
        for number in range(len(machine.actions))
        for cell, count, writes in machine.touched(number)
        if cell < machine.memory
    ]
    if not touches:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    thread, first, count, writes = np.array(touches, np.int64).T
    past = np.cumsum(count)
    cell = np.repeat(first - past + count, count) + np.arange(past[-1])
    thread = np.repeat(thread, count)
    written = np.zeros(machine.memory, bool)
    written[cell[np.repeat(writes, count) > 0]] = True
    pairs = np.unique(cell[written[cell]] * len(machine.threads) + thread[written[cell]])
    cell, thread = np.divmod(pairs, len(machine.threads))
    several = np.bincount(cell, minlength=machine.memory)[cell] > 1
    return cell[several], thread[several]


def _parts(cells: np.ndarray, threads: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield ranges of the pairs, whole cells, whose threads fit into the columns."""
    waiting = [(0, len(cells))]
    while waiting:
        low, high = waiting.pop()
        middle = int(np.searchsorted(cells, cells[(low + high) // 2]))
        if middle <= low or len(np.unique(threads[low:high])) <= COLUMNS:
            yield low, high
        else:
            waiting += [(middle, high), (low, middle)]


class _Clocks:
    """Vector clocks of a machine's threads along one order."""

    def __init__(self, machine: Machine, order: Sequence[int]) -> None:
        self._machine = machine
        self._order = order
        self._joins = [_before(machine, number) for number in range(len(machine.actions))]
        longest = max(len(thread.actions) for thread in machine.threads)
        self._kind = np.int16 if longest < np.iinfo(np.int16).max else np.int32

    def check(self, cells: np.ndarray, threads: np.ndarray) -> list[Hazard]:
        """Return the hazards among some cells, which only `threads` access."""
        machine = self._machine
        columns = {int(thread): place for place, thread in enumerate(np.unique(threads))}
        ledger = _Ledger(machine, set(cells.tolist()), columns)
        rows: list[np.ndarray | None] = [None] * len(machine.threads)
        kept: dict[int, np.ndarray | None] = {}
        uses = [0] * len(machine.actions)
        for joined in self._joins:
            for each in joined:
                uses[each] += 1
        for number in self._order:
            thread = machine.owners[number]
            row = rows[thread]
            for each in self._joins[number]:
                row = _joined(row, kept[each])
                uses[each] -= 1
                if not uses[each]:
                    del kept[each]
            column = columns.get(thread)
            if column is not None:
                row = np.zeros(len(columns), self._kind) if row is None else row
                ledger.enter(number, row)
                row[column] = number - machine.starts[thread] + 1
            rows[thread] = row
            if uses[number]:
                kept[number] = None if row is None else row.copy()
            if len(ledger.found) >= MOST:
                break
        return ledger.found


def _joined(row: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    """Return a clock that knows what both know; `row` may be changed, `other` is not."""
    if other is None:
        return row
    if row is None:
        return other.copy()
    np.maximum(row, other, out=row)
    return row


def _before(machine: Machine, number: int) -> tuple[int, ...]:
    """Return the last action of each other thread that must be before an action by its guards.

    Of a counter with P posts, n of them by one thread, at most i - 1 + P - n can come without
    that thread's i-th; if those are fewer than the guard asks for, the i-th has been.
    """
    found = []
    for counter, value in machine.actions[number].guards:
        posters = machine.posters[counter]
        threads: dict[int, list[int]] = {}
        for each in posters:
            threads.setdefault(machine.owners[each], []).append(each)
        for thread, own in threads.items():
            needed = min(value - len(posters) + len(own), len(own))
            if needed > 0 and thread != machine.owners[number]:
                found.append(own[needed - 1])
    return tuple(found)


class _Ledger:
    """Last write of each cell and the reads since, as action numbers."""

    def __init__(self, machine: Machine, cells: set[int], columns: dict[int, int]) -> None:
        self._machine = machine
        self._cells = cells
        self._columns = columns
        self._writer: dict[int, int] = {}
        self._readers: dict[int, dict[int, int]] = {}
        self._told: set[tuple[int, int]] = set()
        self.found: list[Hazard] = []

    def enter(self, number: int, clock: np.ndarray) -> None:
        """Enter the accesses of an action whose thread knows what `clock` says."""
        thread = self._machine.owners[number]
        for first, count, writes in self._machine.touched(number):
            if first >= self._machine.memory:
                continue
            for cell in range(first, first + count):
                if cell not in self._cells:
                    continue
                last = self._writer.get(cell)
                if last is not None:
                    self._compare(Hazard(last, number, cell, True, writes), clock)
                if not writes:
                    self._readers.setdefault(cell, {})[thread] = number
                    continue
                for reader in self._readers.pop(cell, {}).values():
                    self._compare(Hazard(reader, number, cell, False, True), clock)
                self._writer[cell] = number

    def _compare(self, pair: Hazard, clock: np.ndarray) -> None:
        """Keep a pair if its second thread does not know of its first action."""
        machine, before = self._machine, pair.before
        thread = machine.owners[before]
        if thread == machine.owners[pair.after]:
            return
        if clock[self._columns[thread]] > before - machine.starts[thread]:
            return
        if (before, pair.after) not in self._told:
            self._told.add((before, pair.after))
            self.found.append(pair)
