"""The tables of a catalog, their versions, and how the file is opened.

SQLite in write-ahead mode: readers never wait, writers wait for one another up to `PATIENCE`. A
write that has returned is in the log and the log is synced (``synchronous=FULL``), so that neither
``kill -9`` nor a loss of power takes it away; one that was cut off leaves no trace. Every use opens
the file anew and closes it: nothing is shared between threads, or inherited by a fork.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Boolean,
    Column,
    Connection,
    Engine,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    NullPool,
    String,
    Table,
    UniqueConstraint,
    create_engine,
    event,
    text,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateIndex, CreateTable

from ccl.errors import CatalogError
from formulations.campaigns.catalog.migrations import among_which_plans

PATIENCE = 60.0
"""Seconds that a writer waits for another."""

MARK = 0x70_6C_6F_6D
"""``application_id`` of the files, by which they are known."""

META = MetaData()

QUESTIONS = Table(
    "questions",
    META,
    Column("id", Integer, primary_key=True),
    Column("digest", String(32), nullable=False, unique=True),
    Column("family", String(32), nullable=False, index=True),
    Column("topology", String(32), nullable=False, index=True),
    Column("cluster", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("ranks", Integer, nullable=False),
    Column("chunks", Integer, nullable=False),
    Column("root", Integer, nullable=False),
    Column("whole", Boolean, nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("places", LargeBinary, nullable=False),
)
"""Questions up to isomorphism and size: `content` stands for all, `places` in canonical order.

Where chunks are `whole` they are part of the question, else it has one for each shard.
"""

PLANS = Table(
    "plans",
    META,
    Column("id", Integer, primary_key=True),
    Column("question", ForeignKey("questions.id"), nullable=False),
    Column("size", Float, nullable=False),
    Column("formulation", String, nullable=False),
    Column("options", String, nullable=False),
    Column("version", String, nullable=False),
    Column("parts", Integer, nullable=False),
    Column("makespan", Float, nullable=False),
    Column("bound", Float, nullable=False),
    Column("whole_bound", Float),
    Column("status", String, nullable=False),
    Column("chunk", Float, nullable=False),
    Column("stop", String, nullable=False),
    Column("found_by", String, nullable=False),
    Column("solve_time", Float, nullable=False),
    Column("given", Float),
    Column("kept", String, nullable=False),
    Column("content", LargeBinary, nullable=False),
    UniqueConstraint("question", "size", "formulation", "options", "version"),
    Index("plans_by_makespan", "question", "size", "makespan"),
)
"""Plans in the names of the cluster of their question; `given` is in s, none without a limit.

Each chunk of the question is in so many `parts`; the largest has `chunk` bytes.
"""


def _first(connection: Connection) -> None:
    for table in META.sorted_tables:
        connection.execute(CreateTable(table))
        for index in sorted(table.indexes, key=lambda each: str(each.name)):
            connection.execute(CreateIndex(index))


MIGRATIONS = (_first, among_which_plans)
"""What makes the tables of each version of those before it; the file says which it has."""


def opened(path: Path) -> Engine:
    """Open a catalog, make it where there is none, and bring it to the newest version.

    Raises
    ------
    CatalogError
        If it cannot be written, is no catalog, or comes from a newer Topoloom.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"the catalog {path} has no folder to lie in: {error.strerror}; name another path"
        raise CatalogError(msg) from error
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=NullPool,
        connect_args={"timeout": PATIENCE},
    )
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    with told(path):
        _migrate(engine, path)
    return engine


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Say in one sentence what SQLite says.

    Raises
    ------
    CatalogError
        In place of every error of the database.
    """
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        why = getattr(error, "orig", None) or error
        msg = f"the catalog {path} cannot be used: {why}; free it, move it away or name another"
        raise CatalogError(msg) from error


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
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


def _begin(connection: Connection) -> None:
    # A transaction that begins by reading and then writes could be too late to take its turn.
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _migrate(engine: Engine, path: Path) -> None:
    with engine.connect() as connection:
        mark, version = _state(connection)
        tables = connection.execute(text("SELECT count(*) FROM sqlite_schema")).scalar_one()
    if (mark, version) == (MARK, len(MIGRATIONS)):
        return
    if mark != MARK and tables:
        msg = f"{path} is a database of something else; name another path for the catalog"
        raise CatalogError(msg)
    if version > len(MIGRATIONS):
        msg = (
            f"the catalog {path} has version {version} and this Topoloom knows versions up to "
            f"{len(MIGRATIONS)}; use a newer Topoloom, or name another path"
        )
        raise CatalogError(msg)
    _write_ahead(engine)
    with writing(engine) as connection:
        # Another process may have done it in the meantime.
        for migrate in MIGRATIONS[_state(connection)[1] :]:
            migrate(connection)
        connection.exec_driver_sql(f"PRAGMA application_id={MARK}")
        connection.exec_driver_sql(f"PRAGMA user_version={len(MIGRATIONS)}")


def _write_ahead(engine: Engine) -> None:
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


def _state(connection: Connection) -> tuple[int, int]:
    mark = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
    return mark, connection.exec_driver_sql("PRAGMA user_version").scalar_one()
