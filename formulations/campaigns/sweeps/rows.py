"""Row of a sweep and its columns, how long the rest takes, and the child process that makes rows.

One dataclass makes the schema, with units in the fields' metadata. A row is made where its task is
solved. The whole result goes along as gzipped JSON, so that one row can be opened; it is not part
of a `Row`, of which there may be many in memory. `estimated` says how long the rest of a sweep
takes, from the rows that are there.

`serve` is the child process of a worker: tasks come in lines of JSON, one after the other. For each
task it answers ``begin`` with the fingerprint once everything is loaded, ``best`` with the row of a
plan that is not the last, once a second at most, so that little is lost when the process is ended,
and ``row``. It ends when the pipe that its tasks come through is closed, whatever its solver is
doing, and when nobody has looked for a while.
"""

from __future__ import annotations

import gzip
import json
import time
import zlib
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from statistics import fmean
from typing import IO, TYPE_CHECKING, Any, Final, cast, get_args, get_type_hints

import msgspec

from ccl import __version__
from ccl.bound import Cut, Path
from ccl.collective import CollectiveKind, make_collective
from ccl.errors import CclError, FormatError, ProblemError
from ccl.problem import Problem
from ccl.result import Result
from ccl.serialization.text import MOST_BYTES
from ccl.serialization.topoloom import result_to_json
from ccl.text import listing
from ccl.topology import Topology
from formulations.analyses.comparison.child import PLANS, warm_up
from formulations.campaigns.sweeps.tasks import Task, digest, made
from formulations.core.run import Progress
from formulations.jobs.child import Speaker, lines_of
from formulations.solving.api import solve

if TYPE_CHECKING:
    import pyarrow as pa

    from ccl.bound import Bound

FORMAT: Final = "topoloom-sweep/1"
RESULT = "result"
"""The column beside those of `Row`: gzipped JSON of the result, read by `topoloom`."""

NAMED = 3
"""Hosts and devices of a cut that are named."""

CLOCKED = ("solve_time", "wall", "worker", "attempts")
"""Columns that differ when the same is solved again."""


def _is(about: str, unit: str = "") -> Any:
    return field(metadata={"about": about, "unit": unit})


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One task and what came of it; what follows from a plan is None without one."""

    task: str = _is("key of the task")
    cluster: str = _is("name of the cluster, with its changes")
    fingerprint: str = _is("of the problem that the plan answers; empty where it has none")
    gpus: int | None = _is("number of GPUs")
    hosts: int | None = _is("number of hosts")
    collective: str = _is("kind of the collective")
    size: float = _is("whole buffer as in nccl-tests", "B")
    chunks: int | None = _is("chunks per shard that stay whole; empty where plans cut as they like")
    root: int = _is("rank of the root")
    formulation: str = _is("name of the formulation")
    options: str = _is("its options that are not the default, as JSON")
    status: str | None = _is("whether the plan is proved optimal, and among which plans")
    stop: str | None = _is("name of the reason why it stopped")
    makespan: float | None = _is("of the verified plan, replayed", "µs")
    bound: float | None = _is("largest lower bound on the makespan of every plan", "µs")
    gap: float | None = _is("makespan above the bound, as a share of the bound")
    algbw: float | None = _is("size over makespan", "GB/s")
    busbw: float | None = _is("algbw times the factor of nccl-tests", "GB/s")
    bound_kind: str | None = _is("what proves the bound")
    bottleneck: str | None = _is("what proves the bound, in words")
    epochs: int | None = _is("number of epochs of a schedule")
    found_by: str | None = _is("who found the plan")
    solve_time: float | None = _is("of the solve, building included", "s")
    wall: float = _is("of the whole task, on a clock on the wall", "s")
    worker: str = _is("who solved it")
    attempts: int = _is("processes that tried; 0 where none had to")
    version: str = _is("of Topoloom")
    why_not: str = _is("why there is no plan; else empty")


_OF_TASK = ("cluster", "gpus", "hosts", "collective", "size", "chunks", "root", "formulation")
"""Columns that a task has by the same name."""

Values = dict[str, Any]
"""A row and its result, by the names of columns."""


def schema() -> pa.Schema:
    """Return the columns of the Parquet files."""
    import pyarrow as pa  # noqa: PLC0415  processes that solve do without

    kinds: dict[Any, pa.DataType] = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    hints = get_type_hints(Row)
    columns = []
    for each in fields(Row):
        kind, *optional = get_args(hints[each.name]) or (hints[each.name],)
        values = {key: value for key, value in each.metadata.items() if value}
        columns.append(pa.field(each.name, kinds[kind], nullable=bool(optional), metadata=values))
    values = {"about": "the result, JSON of topoloom/1, gzipped"}
    columns.append(pa.field(RESULT, pa.binary(), nullable=True, metadata=values))
    return pa.schema(columns, metadata={"format": FORMAT})


def row_of(values: Mapping[str, Any]) -> Row:
    """Return the row of its values."""
    return Row(**{each.name: values[each.name] for each in fields(Row)})


def unsolved(task: Task, why_not: str, *, version: str) -> Values:
    """Return the values of a task without a plan.

    Parameters
    ----------
    task, why_not
        Which and why.
    version
        Of Topoloom.
    """
    values: Values = {each.name: None for each in fields(Row)}
    return values | {
        **{name: getattr(task, name) for name in _OF_TASK},
        "task": task.key,
        "fingerprint": "",
        "options": json.dumps(task.options, sort_keys=True),
        "wall": 0.0,
        "worker": "",
        "attempts": 0,
        "version": version,
        "why_not": why_not,
        RESULT: None,
    }


def solved_values(result: Result) -> Values:
    """Return what a result adds to the values of its task."""
    bound = result.bound
    return {
        "fingerprint": result.problem.fingerprint,
        "status": str(result.status),
        "stop": result.stop.name,
        "makespan": result.makespan,
        "bound": bound.makespan,
        "gap": result.gap,
        "algbw": result.algbw,
        "busbw": result.busbw,
        "bound_kind": bound.kind,
        "bottleneck": bottleneck(bound, result.problem.topology),
        "epochs": result.epochs,
        "found_by": result.found_by or result.formulation,
        "solve_time": result.solve_time,
        "why_not": "",
        RESULT: packed(result_to_json(result)),
    }


def bottleneck(bound: Bound, topology: Topology) -> str:
    """Describe what holds the makespan up: ``25 GB/s out of h0``, the path, or the argument."""
    witness = bound.witness
    if isinstance(witness, Path):
        return f"the path {' -> '.join(witness.devices)}"
    if not isinstance(witness, Cut):
        return bound.reference
    within = set(witness.inside)
    beyond = [each.name for each in topology.devices if each.name not in within]
    less = len(beyond) == 1 or len(beyond) < len(within)
    side = _listed(topology, set(beyond) if less else within)
    return f"{witness.bandwidth:.6g} GB/s {'into' if less else 'out of'} {side}"


def packed(value: Any) -> bytes:
    """Return JSON, gzipped; equal values make equal bytes."""
    return gzip.compress(json.dumps(value, separators=(",", ":")).encode(), mtime=0)


def unpacked(content: bytes) -> Any:
    """Return the JSON values that `packed` was given.

    Raises
    ------
    FormatError
        If they are malformed, or more than files may have.
    """
    reader = zlib.decompressobj(wbits=31)
    try:
        text = reader.decompress(content, MOST_BYTES)
        if reader.unconsumed_tail or not reader.eof:
            raise FormatError(
                f"the result is cut off or has more than {MOST_BYTES:,} bytes; solve it again"
            )
        return json.loads(text)
    except (zlib.error, ValueError):
        raise FormatError("the result is not gzipped JSON; solve it again") from None


def without_clock(values: Iterable[Row]) -> list[tuple[Any, ...]]:
    """Return rows sorted by their task, without the columns that a clock fills: `CLOCKED`."""
    names = [each.name for each in fields(Row) if each.name not in CLOCKED]
    return sorted(tuple(getattr(row, name) for name in names) for row in values)


def _listed(topology: Topology, names: set[str]) -> str:
    """Name hosts that are whole and other devices, the first few of many."""
    broken = {each.host for each in topology.devices if each.name not in names} | {None}
    values = {
        (each.name if each.host in broken else str(each.host)): None
        for each in topology.devices
        if each.name in names
    }
    return listing(list(values), NAMED)


def estimated(left: Sequence[Task], rows: Iterable[Row], workers: int) -> float | None:
    """Return the seconds that tasks take together, if each takes what its formulation took so far.

    Parameters
    ----------
    left
        Tasks without rows.
    rows
        Those that are there.
    workers
        How many solve at the same time.

    Returns
    -------
        None where a formulation has no row yet.
    """
    took = defaultdict[str, list[float]](list)
    for row in rows:
        took[row.formulation].append(row.wall)
    if not {each.formulation for each in left} <= took.keys():
        return None
    means = {name: fmean(walls) for name, walls in took.items()}
    return sum(means[each.formulation] for each in left) / workers


def at_most(left: Sequence[Task], workers: int) -> float | None:
    """Return the seconds that tasks take if each needs all of its limit; None without a limit."""
    limits = [each.time_limit for each in left]
    return None if None in limits else sum(each or 0.0 for each in limits) / workers


IDLE = 60.0
"""Seconds without a task after which the process ends: its asker may be gone without a word."""


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Solve the tasks that `requests` names; the body of the child process."""
    speak, warm = _Speaker(answers), set[tuple[str, str]]()
    for line in lines_of(requests, IDLE):
        task = msgspec.json.decode(line, type=Task)
        try:
            _answer(task, speak, warm)
        except CclError as error:
            speak.line({"event": "row", "values": {"why_not": str(error)}})


def _answer(task: Task, speak: _Speaker, warm: set[tuple[str, str]]) -> None:
    topology = _topology(json.dumps(task.source), task.digest)
    collective = make_collective(
        cast(CollectiveKind, task.collective),
        len(topology.ranks),
        task.size,
        chunks=task.chunks,
        root=task.root,
    )
    problem = Problem(topology, collective)
    first = task.formulation, task.collective
    if first not in warm:
        warm.add(first)
        warm_up(task.method, collective.kind)
    speak.begin(problem.fingerprint)
    result = solve(
        problem,
        task.formulation,
        options=task.options,
        time_limit=task.time_limit,
        gap=task.gap,
        progress=speak.progress,
    )
    speak.row("row", result)


@lru_cache(maxsize=4)
def _topology(source: str, wanted: str) -> Topology:
    """Make a cluster of its source, the very one that the sweep is about."""
    topology = made(json.loads(source))
    if digest(topology) != wanted:
        raise ProblemError(
            f"{topology} is another cluster here, in Topoloom {__version__}, than where the sweep "
            "was started; install the same version on all workers"
        )
    return topology


class _Speaker(Speaker):
    """Writes lines, not too many of those with a plan that is not the last."""

    reported = 0.0

    def begin(self, fingerprint: str) -> None:
        """Report that a solve begins."""
        self.reported = time.monotonic()
        self.line({"event": "begin", "fingerprint": fingerprint, "version": __version__})

    def progress(self, news: Progress) -> None:
        """Report the best plan so far."""
        if news.result is not None and time.monotonic() - self.reported >= PLANS:
            self.reported = time.monotonic()
            self.row("best", news.result)

    def row(self, event: str, result: Result) -> None:
        """Report the values of a result."""
        values: Values = solved_values(result)
        values[RESULT] = b64encode(values[RESULT]).decode()
        self.line({"event": event, "values": values})
