"""What brings the tables of earlier versions up to those of today."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection

from ccl.bound import Bound
from ccl.errors import CatalogError
from ccl.problem import Problem
from ccl.result import PROOF_TOLERANCE, Status
from formulations.campaigns.catalog.packed import bounds_in, problem_bytes, problem_in
from formulations.campaigns.catalog.questions import fixed, uncut

_COLUMNS = (
    "questions ADD COLUMN whole BOOLEAN NOT NULL DEFAULT 0",
    "plans ADD COLUMN parts INTEGER NOT NULL DEFAULT 1",
    "plans ADD COLUMN whole_bound FLOAT",
    "plans ADD COLUMN chunk FLOAT NOT NULL DEFAULT 0",
)


def among_which_plans(connection: Connection) -> None:
    """Say whether chunks were fixed, and among which plans a plan is proved.

    One chunk per shard was what nobody had asked for, so that these are automatic now. What was
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


def _state_proofs(connection: Connection, question: int, problem: Problem) -> None:
    """Write the bounds and the status of the plans of a question anew."""
    share = problem.collective.chunk_size / problem.collective.size
    for number, size, makespan, status, content in connection.exec_driver_sql(
        "SELECT id, size, makespan, status, content FROM plans WHERE question = ?", (question,)
    ).all():
        try:
            proof = _proof(bounds_in(content), makespan, Status(status))
        except CatalogError:
            continue  # Whoever asks for it finds it damaged, and drops it.
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
