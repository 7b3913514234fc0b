"""Tables of a catalog: the question that each problem is, their versions, and opening the file.

SQLite in write-ahead mode: readers never wait, writers wait for one another up to `PATIENCE`. A
write that has returned is in the log and the log is synced (``synchronous=FULL``), so that neither
``kill -9`` nor a loss of power takes it away; one that was cut off leaves no trace. Every use opens
the file anew and closes it: nothing is shared between threads, or inherited by a fork. `opened`
brings the tables of earlier versions up to those of today.

Two problems are one question (`requested_by`) if they are of the same bytes and, where these are
fixed, of the same chunks. Where chunks are automatic a plan may cut them, and so may its result:
what it answers is the problem in equal parts (`Collective.cut`). The question is the uncut problem,
and a plan of it says in how many parts it is.
"""

import hashlib
import json
import math
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.exc import DBAPIError

from ccl.bound import Bound
from ccl.collective import Collective, find_arguments, make_collective
from ccl.errors import CatalogError
from ccl.problem import Problem
from ccl.result import PROOF_TOLERANCE, Status
from ccl.serialization.topoloom import topology_to_json
from ccl.symmetry.canonical import Canonical, canonical
from ccl.topology import Topology
from formulations.campaigns.catalog.relabelling import bounds_in, problem_bytes, problem_in

_DIGITS = 12
"""Digits of a size that count: sums in another order may differ in the last."""


def uncut(collective: Collective) -> Collective:
    """Return what `cut` or `recut` has made this of; itself where its chunks are fixed."""
    if collective.whole:
        return collective
    kind, ranks, size = collective.kind, collective.ranks, collective.size
    named = find_arguments(collective)
    if named is not None:
        return collective if named[0] == 1 else make_collective(kind, ranks, size, root=named[1])
    if kind == "all-reduce" and collective.alike:
        one = make_collective(kind, ranks, size)
        if replace(collective.chunks[0], size=one.chunks[0].size) == one.chunks[0]:
            return one
    chunks = collective.chunks
    parts = math.gcd(*(len(tuple(alike)) for _, alike in groupby(chunks)))
    if parts == 1:
        return collective
    merged = tuple(replace(each, size=each.size * parts) for each in chunks[::parts])
    return replace(collective, chunks=merged)


def requested_by(problem: Problem) -> Problem:
    """Return the problem that stands for the question of a problem, in its own names."""
    return _with(problem, uncut(problem.collective))


def parts_of(problem: Problem) -> int:
    """Return into how many parts each chunk of the question is cut in a problem.

    Those of an all-reduce are alike, and plans cut them into any number: where that is no multiple
    of theirs it is returned below 0, as -92 for 92 chunks in all.
    """
    collective = problem.collective
    many, have = len(collective.chunks), len(uncut(collective).chunks)
    return -many if many % have else many // have


def in_parts(problem: Problem, parts: int) -> Problem:
    """Return the question of a problem with every chunk in `parts` parts; see `parts_of`."""
    one = uncut(problem.collective)
    made = one if parts == 1 else one.cut(parts) if parts > 0 else one.recut(-parts)
    return _with(problem, made)


def form_of(problem: Problem) -> Canonical:
    """Return the canonical form of the question of a problem; fixed chunks have a digest apart."""
    requested = requested_by(problem)
    found = canonical(requested.topology, requested.collective, windows=requested.windows)
    return replace(found, digest=fixed(found.digest)) if requested.collective.whole else found


def fixed(digest: str) -> str:
    """Return the digest of the question in which the chunks of another are to stay whole."""
    return hashlib.sha256(f"{digest}, whole".encode()).hexdigest()[: len(digest)]


def size_of(problem: Problem) -> float:
    """Return the bytes of a problem as a catalog counts them."""
    return float(f"{problem.collective.size:.{_DIGITS}g}")


def exact(topology: Topology) -> str:
    """Return a key that distinguishes drawings of a cluster."""
    content = json.dumps(topology_to_json(topology), sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _with(problem: Problem, collective: Collective) -> Problem:
    """Return a problem with another collective, itself where that is its own."""
    same = collective == problem.collective
    return problem if same else replace(problem, collective=collective)


_COLUMNS = (
    "questions ADD COLUMN whole BOOLEAN NOT NULL DEFAULT 0",
    "plans ADD COLUMN parts INTEGER NOT NULL DEFAULT 1",
    "plans ADD COLUMN whole_bound FLOAT",
    "plans ADD COLUMN chunk FLOAT NOT NULL DEFAULT 0",
)


def among_which_plans(connection: sql.Connection) -> None:
    """Return whether chunks were fixed, and among which plans a plan is proved.

    One chunk per shard was what nobody had requested, so that these are automatic now. What was
    called optimal may have met a bound for whole chunks only.
    """
    columns = connection.exec_driver_sql("PRAGMA table_info(questions)")
    if "whole" in {row[1] for row in columns}:
        return  # The tables are new: they were made as they are today.
    for each in _COLUMNS:
        connection.exec_driver_sql(f"ALTER TABLE {each}")
    for number, digest, content in connection.exec_driver_sql(
        "SELECT id, digest, content FROM questions"
    ).all():
        problem = problem_in(content)
        if uncut(problem.collective) != problem.collective:
            whole = replace(problem, collective=replace(problem.collective, whole=True))
            connection.exec_driver_sql(
                "UPDATE questions SET whole = 1, digest = ?, content = ? WHERE id = ?",
                (fixed(digest), problem_bytes(whole), number),
            )
        _state_proofs(connection, number, problem)


def _state_proofs(connection: sql.Connection, question: int, problem: Problem) -> None:
    """Write the bounds and the status of the plans of a question anew."""
    share = problem.collective.chunk_size / problem.collective.size
    for number, size, makespan, status, content in connection.exec_driver_sql(
        "SELECT id, size, makespan, status, content FROM plans WHERE question = ?", (question,)
    ).all():
        try:
            proof = _proof(bounds_in(content), makespan, Status(status))
        except CatalogError:
            continue  # Its reader finds it damaged, and drops it.
        connection.exec_driver_sql(
            "UPDATE plans SET bound = ?, whole_bound = ?, status = ?, chunk = ? WHERE id = ?",
            (*proof, share * size, number),
        )


def _proof(
    bounds: Sequence[Bound], makespan: float, status: Status
) -> tuple[float, float | None, str]:
    """Return the bound, that for whole chunks and the status of a plan of `makespan` µs."""
    every = max(each.makespan for each in bounds if not each.whole_chunks)
    whole = max((each.makespan for each in bounds if each.whole_chunks), default=0.0)
    met = makespan / (1 + PROOF_TOLERANCE)
    if every >= met:
        status = Status.OPTIMAL
    elif whole >= met:
        status = Status.WHOLE
    return every, whole if whole > every else None, str(status)


PATIENCE = 60.0
"""Seconds that a writer waits for another."""

MARK = 0x70_6C_6F_6D
"""``application_id`` of the files, by which they are known."""

META = sql.MetaData()

QUESTIONS = sql.Table(
    "questions",
    META,
    sql.Column("id", sql.Integer, primary_key=True),
    sql.Column("digest", sql.String(32), nullable=False, unique=True),
    sql.Column("family", sql.String(32), nullable=False, index=True),
    sql.Column("topology", sql.String(32), nullable=False, index=True),
    sql.Column("cluster", sql.String, nullable=False),
    sql.Column("kind", sql.String, nullable=False),
    sql.Column("ranks", sql.Integer, nullable=False),
    sql.Column("chunks", sql.Integer, nullable=False),
    sql.Column("root", sql.Integer, nullable=False),
    sql.Column("whole", sql.Boolean, nullable=False),
    sql.Column("content", sql.LargeBinary, nullable=False),
    sql.Column("places", sql.LargeBinary, nullable=False),
)
"""Questions up to isomorphism and size: `content` stands for all, `places` in canonical order.

Where chunks are `whole` they are part of the question, else it has one for each shard.
"""

PLANS = sql.Table(
    "plans",
    META,
    sql.Column("id", sql.Integer, primary_key=True),
    sql.Column("question", sql.ForeignKey("questions.id"), nullable=False),
    sql.Column("size", sql.Float, nullable=False),
    sql.Column("formulation", sql.String, nullable=False),
    sql.Column("options", sql.String, nullable=False),
    sql.Column("version", sql.String, nullable=False),
    sql.Column("parts", sql.Integer, nullable=False),
    sql.Column("makespan", sql.Float, nullable=False),
    sql.Column("bound", sql.Float, nullable=False),
    sql.Column("whole_bound", sql.Float),
    sql.Column("status", sql.String, nullable=False),
    sql.Column("chunk", sql.Float, nullable=False),
    sql.Column("stop", sql.String, nullable=False),
    sql.Column("found_by", sql.String, nullable=False),
    sql.Column("solve_time", sql.Float, nullable=False),
    sql.Column("given", sql.Float),
    sql.Column("kept", sql.String, nullable=False),
    sql.Column("content", sql.LargeBinary, nullable=False),
    sql.UniqueConstraint("question", "size", "formulation", "options", "version"),
    sql.Index("plans_by_makespan", "question", "size", "makespan"),
)
"""Plans in the names of the cluster of their question; `given` is in s, none without a limit.

Each chunk of the question is in so many `parts`; the largest has `chunk` bytes.
"""


PROPOSALS = sql.Table(
    "proposals",
    META,
    sql.Column("id", sql.Integer, primary_key=True),
    sql.Column("digest", sql.String(32), nullable=False, unique=True),
    sql.Column("title", sql.String, nullable=False),
    sql.Column("best", sql.String, nullable=False),
    sql.Column("networks", sql.Integer, nullable=False),
    sql.Column("seconds", sql.Float, nullable=False),
    sql.Column("version", sql.String, nullable=False),
    sql.Column("stored", sql.String, nullable=False),
    sql.Column("view", sql.String, nullable=False, server_default="{}"),
    sql.Column("content", sql.LargeBinary, nullable=False),
)
"""Searches for networks, one of each request; `view` is how it was looked at, in JSON."""


def _first(connection: sql.Connection) -> None:
    META.create_all(connection, checkfirst=False)


def _with_proposals(connection: sql.Connection) -> None:
    PROPOSALS.create(connection, checkfirst=True)


MIGRATIONS = (_first, among_which_plans, _with_proposals)
"""What makes the tables of each version of those before it; the file says which it has."""


def opened(path: Path) -> sql.Engine:
    """Open a catalog, create it if missing, and bring it to the newest version.

    Raises
    ------
    CatalogError
        If it cannot be written, is no catalog, or comes from a newer Topoloom.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CatalogError(
            f"the catalog {path} has no folder to lie in: {error.strerror}; name another path"
        ) from error
    engine = sql.create_engine(
        sql.URL.create("sqlite", database=str(path)),
        poolclass=sql.NullPool,
        connect_args={"timeout": PATIENCE},
    )
    sql.event.listen(engine, "connect", _prepare)
    sql.event.listen(engine, "begin", _begin)
    with described(path):
        _migrate(engine, path)
    return engine


@contextmanager
def described(path: Path) -> Iterator[None]:
    """Describe SQLite's message in one sentence.

    Raises
    ------
    CatalogError
        In place of every error of the database.
    """
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        why = getattr(error, "orig", None) or error
        raise CatalogError(
            f"the catalog {path} cannot be used: {why}; free it, move it away or name another"
        ) from error


@contextmanager
def writing(engine: sql.Engine) -> Iterator[sql.Connection]:
    """Open a transaction that may write; it takes its turn among processes at once."""
    with engine.execution_options(writes=True).begin() as connection:
        yield connection


def _prepare(connection: Any, _record: object) -> None:
    """Set up a connection; transactions are begun by `_begin`, not by sqlite3."""
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in ("synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: sql.Connection) -> None:
    # A transaction that begins by reading and then writes could be too late to take its turn.
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _migrate(engine: sql.Engine, path: Path) -> None:
    with engine.connect() as connection:
        mark, version = _state(connection)
        tables = connection.execute(sql.text("SELECT count(*) FROM sqlite_schema")).scalar_one()
    if (mark, version) == (MARK, len(MIGRATIONS)):
        return
    if mark != MARK and tables:
        raise CatalogError(
            f"{path} is a database of something else; name another path for the catalog"
        )
    if version > len(MIGRATIONS):
        raise CatalogError(
            f"the catalog {path} has version {version} and this Topoloom knows versions up to "
            f"{len(MIGRATIONS)}; use a newer Topoloom, or name another path"
        )
    _write_ahead(engine)
    with writing(engine) as connection:
        # Another process may have done it in the meantime.
        for migrate in MIGRATIONS[_state(connection)[1] :]:
            migrate(connection)
        connection.exec_driver_sql(f"PRAGMA application_id={MARK}")
        connection.exec_driver_sql(f"PRAGMA user_version={len(MIGRATIONS)}")


def _write_ahead(engine: sql.Engine) -> None:
    """Set the mode, which the file keeps; SQLite does not wait for others where it changes."""
    until = time.monotonic() + PATIENCE
    connection = engine.raw_connection()
    try:
        while True:
            try:
                connection.cursor().execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.01)
    finally:
        connection.close()


def _state(connection: sql.Connection) -> tuple[int, int]:
    mark = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
    return mark, connection.exec_driver_sql("PRAGMA user_version").scalar_one()
