"""The folder of a sweep: rows that are safe once they are written, whatever happens next.

Rows are written as they come, a Parquet file for what came within a second: under a name that
readers pass over, flushed to the disk, then renamed. Many small files become one from time to
time, and all of them at the end. Of rows with the same task the one in the last file counts, so
that a kill between two steps loses nothing and repeats nothing. Other programs may read the files
as they are: ``rows-*.parquet``.
"""

import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ccl.errors import FormatError
from ccl.result import Result
from ccl.serialization.text import decode_json, read_bytes, write_text
from ccl.serialization.topoloom import result_from_json
from formulations.campaigns.sweeps.rows import FORMAT, RESULT, Row, Values, schema, unpacked

FLUSH = 1.0
"""Seconds for which a row may be in memory alone."""

MANY = 256
"""Rows that are written at once at the latest."""

FILES = 50
"""Small files that become one."""

GROUP = 1_000
"""Rows that are in memory while files become one."""

TRIES = 20
"""How often a reader looks again when a file that it saw has become part of another."""

_REQUEST = "sweep.json"
_LOCK = "lock"


class Request(msgspec.Struct, frozen=True):
    """The request of the folder's last sweep.

    Parameters
    ----------
    format
        Of the folder.
    version
        Of Topoloom.
    spec
        Its spec as plain values.
    tasks
        Keys of its tasks, in order.
    """

    format: Literal["topoloom-sweep/1"]
    version: str
    spec: dict[str, Any]
    tasks: list[str]


def read_rows(folder: str | Path) -> tuple[Row, ...]:
    """Return the rows that are there of the folder's last sweep, in the order of its tasks.

    Rows of tasks that a changed spec no longer has stay in the folder and are left out. It may be
    read while the sweep runs.

    Raises
    ------
    FormatError
        If there is no such folder, or a file of it is not one of a sweep.
    """
    request = read_request(folder)
    names = [each.name for each in fields(Row)]
    found: dict[str, Row] = {}
    for table in _tables(Path(folder), names):
        columns = [_values(table, name) for name in names]
        rows = (Row(**dict(zip(names, each, strict=True))) for each in zip(*columns, strict=True))
        found |= {row.task: row for row in rows}
    return tuple(found[key] for key in request.tasks if key in found)


def is_sweep(folder: str | Path) -> bool:
    """Return whether a folder is that of a sweep."""
    return (Path(folder) / _REQUEST).is_file()


def read_request(folder: str | Path) -> Request:
    """Return the request of the folder's last sweep.

    Raises
    ------
    FormatError
        If the folder is not that of a sweep.
    """
    path = Path(folder) / _REQUEST
    if not is_sweep(folder):
        raise FormatError(f"{folder} is not the folder of a sweep: it has no {_REQUEST}")
    try:
        request: Request = decode_json(read_bytes(path), Request)
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None
    return request


def open_result(folder: str | Path, task: str) -> Result:
    """Return the result of a task; its plan is verified and replayed again.

    Parameters
    ----------
    folder
        Of the sweep.
    task
        Its key: `Row.task`.

    Raises
    ------
    FormatError
        If there is no row of it, it has no plan, or the result is not one of the row's problem.
    ScheduleError
        If the plan breaks a rule.
    """
    chosen = None
    columns = ["task", "fingerprint", "why_not", RESULT]
    for table in _tables(Path(folder), columns, task=task):
        chosen = table.to_pylist()[-1] if table.num_rows else chosen
    if chosen is None:
        raise FormatError(f"{folder} has no row of the task {task!r}")
    if chosen[RESULT] is None:
        raise FormatError(f"the task {task} has no plan: {chosen['why_not']}")
    result = result_from_json(unpacked(chosen[RESULT]))
    if result.problem.fingerprint != chosen["fingerprint"]:
        raise FormatError(
            f"the result of the task {task} is of another problem than its row; solve it again"
        )
    return result


class Keeper:
    """Writes rows into a folder that it has locked; make it with `keeping`.

    Parameters
    ----------
    folder
        Made where it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._waiting: list[Values] = []
        self._since = 0.0
        self._small: list[Path] = []
        for left in folder.glob(".rows-*"):  # by one who was killed
            left.unlink()
        if len(_parts(folder)) > FILES:
            self._join(_parts(folder))

    def there(self) -> dict[str, str]:
        """Return for each task that has a row why it has no plan; empty where it has one."""
        found: dict[str, str] = {}
        for table in _tables(self.folder, ["task", "why_not"]):
            found |= dict(zip(_values(table, "task"), _values(table, "why_not"), strict=True))
        return found

    def begin(self, spec: Any, tasks: Iterable[str], *, version: str) -> None:
        """Write the request."""
        request = Request(FORMAT, version, msgspec.to_builtins(spec), list(tasks))
        write_text(self.folder / _REQUEST, msgspec.json.encode(request).decode())

    def add(self, values: Values) -> None:
        """Take a row; it is on the disk within `FLUSH` seconds if `flush` is called as often."""
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting.append(values)

    def flush(self, *, now: bool = False) -> None:
        """Write what has waited long enough, or is much, or everything `now`."""
        due = now or len(self._waiting) >= MANY or time.monotonic() - self._since >= FLUSH
        if not (self._waiting and due):
            return
        table = pa.Table.from_pylist(self._waiting, schema=schema())
        self._small.append(self._written(iter([table])))
        self._waiting = []
        if len(self._small) >= FILES:
            self._join(self._small)

    def compact(self) -> None:
        """Make one file of all."""
        parts = _parts(self.folder)
        if len(parts) > 1:
            self._join(parts)

    def _join(self, parts: Sequence[Path]) -> None:
        """Make one file of the last ones, then take these away."""
        last = {
            key: place
            for place, part in enumerate(parts)
            for key in _values(_read(part, ["task"]), "task")
        }
        self._written(_grouped(parts, last))
        for part in parts:
            part.unlink()
        self._small = []

    def _written(self, tables: Iterator[pa.Table]) -> Path:
        """Write a file whole or not at all, after all others."""
        parts = _parts(self.folder)
        number = int(parts[-1].stem.removeprefix("rows-")) + 1 if parts else 1
        path = self.folder / f"rows-{number:08d}.parquet"
        part = self.folder / f".{path.name}"
        try:
            with part.open("wb") as file:
                with pq.ParquetWriter(file, schema(), compression="zstd") as writer:
                    for table in tables:
                        writer.write_table(table)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
            _sync(self.folder)
        except OSError as error:
            with suppress(OSError):
                part.unlink()
            raise _unwritable(self.folder, error) from None
        return path


@contextmanager
def keeping(folder: Path) -> Iterator[Keeper]:
    """Lock a folder and give who writes into it; what it has is written when the block ends.

    The lock is the system's, so that it ends with the process that holds it, however it ends; its
    file says which one.

    Raises
    ------
    FormatError
        If the folder cannot be written, or another sweep is writing into it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / _LOCK).open("a+")
    except OSError as error:
        raise _unwritable(folder, error) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            msg = f"{folder} is being written by another sweep (process {file.read().strip()}); "
            msg += "wait for its end or give another folder"
            raise FormatError(msg) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        keeper = Keeper(folder)
        try:
            yield keeper
        finally:
            keeper.flush(now=True)


def _values(table: pa.Table, name: str) -> list[Any]:
    return table[name].to_pylist()


def _parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("rows-*.parquet"))


def _grouped(parts: Sequence[Path], last: dict[str, int]) -> Iterator[pa.Table]:
    """Yield the rows of files, those of each task from the last file that has it."""
    waiting: list[pa.Table] = []
    for place, part in enumerate(parts):
        for batch in _opened(part).iter_batches(batch_size=GROUP):
            table = pa.Table.from_batches([batch], schema=schema())
            mask = pa.array([last[key] == place for key in _values(table, "task")])
            waiting.append(table.filter(mask))
            if sum(each.num_rows for each in waiting) >= GROUP:
                yield pa.concat_tables(waiting)
                waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _tables(folder: Path, columns: list[str], *, task: str | None = None) -> list[pa.Table]:
    """Read columns of all files, the oldest first; on request only the rows of one task."""
    for _ in range(TRIES):
        try:
            return [_read(part, columns, task=task) for part in _parts(folder)]
        except FileNotFoundError:  # it has become part of another
            continue
    raise FormatError(f"{folder} changes faster than it can be read; try again")


def _read(part: Path, columns: list[str], *, task: str | None = None) -> pa.Table:
    """Read columns of a file; errors as `_opened`."""
    try:
        return _chosen(_opened(part), columns, task)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(part, error) from None


def _chosen(file: pq.ParquetFile, columns: list[str], task: str | None) -> pa.Table:
    if task is None:
        return file.read(columns=columns)
    groups = []
    for number in range(file.num_row_groups):
        keys = _values(file.read_row_group(number, columns=["task"]), "task")
        if task in keys:
            groups.append(file.read_row_group(number, columns=columns).slice(keys.index(task), 1))
    kept = pa.schema([schema().field(each) for each in columns])
    return pa.concat_tables(groups) if groups else kept.empty_table()


def _opened(part: Path) -> pq.ParquetFile:
    """Open a file, once it has the columns of a sweep.

    Raises
    ------
    FormatError
        If it is not a table or has other columns.
    """
    try:
        file = pq.ParquetFile(part)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(part, error) from None
    wanted, read = schema(), file.schema_arrow
    if not read.equals(wanted):
        differ = [each.name for each in wanted if each.name not in read.names] or [
            each.name
            for each in read
            if each.name not in wanted.names or not each.equals(wanted.field(each.name))
        ]
        raise FormatError(
            f"{part} has not the columns of a sweep ({FORMAT}); look at {', '.join(differ[:4])}"
        )
    return file


def _sync(folder: Path) -> None:
    """Make sure that a rename is on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unreadable(part: Path, error: Exception) -> FormatError:
    reason = (str(error).splitlines() or ["it is damaged"])[0].rstrip(".")
    return FormatError(f"{part} cannot be read: {reason}")


def _unwritable(folder: Path, error: OSError) -> FormatError:
    return FormatError(f"{folder} cannot be written: {(error.strerror or str(error)).lower()}")
